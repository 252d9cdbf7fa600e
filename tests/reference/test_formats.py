"""docs/formats.md: what it says of every element is what the loaders do."""

import importlib.util
import re
from pathlib import Path

import pytest

import coulomb

pytest.importorskip("mujoco")
ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("formats_table", ROOT / "docs" / "formats_table.py")
TABLE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(TABLE)
ROWS = list(TABLE.rows())
TRIED = [row for row in ROWS if row[5] is not None]


def loaded(text):
    scene = coulomb.Scene()
    if text.startswith("<robot"):
        scene.add_urdf(text)
    else:
        scene.add_mjcf(text)
    return scene.build()


@pytest.mark.parametrize("row", TRIED, ids=[f"{row[0]} {row[2]}" for row in TRIED])
def test_what_the_page_says(row):
    _, _, _, result, words, example = row
    if result == "refused":
        with pytest.raises(ValueError, match=re.escape(words)):
            loaded(example)
        return
    model = loaded(example)
    if result == "read":
        assert model.ignored == []
    else:
        assert any(words in line for line in model.ignored), model.ignored
        assert any(words in line for line in model.deviations) == (result == "changed")


def test_the_page_is_up_to_date():
    assert TABLE.PAGE.read_text() == TABLE.page(), "run docs/formats_table.py"


def test_most_rows_have_an_example():
    assert {row[3] for row in ROWS} == set(TABLE.RESULTS)
    assert len(TRIED) > 0.85 * len(ROWS)
