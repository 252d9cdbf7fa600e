"""docs/formats.md: what it says of every element is what the loaders do."""

import importlib.util
import re
from pathlib import Path

import pytest

import coulomb

mujoco = pytest.importorskip("mujoco")
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


def elements_of_mujoco():
    """(path, attributes) of every element of MuJoCo's schema, which it prints with three blanks for each level."""
    lines, path, found = mujoco.mj_printSchema(False, False).splitlines(), [], []
    for line in lines:
        element = re.match(r"( *)(\S+) \(.\)( .*|$)", line)
        if element:
            level = len(element[1]) // 3
            path = [*path[:level], element[2].replace("(world)", "")]
            found.append((path, element[3].split()))
        else:
            found[-1][1].extend(line.split())
    return found


def test_every_attribute_has_its_place():
    elements = elements_of_mujoco()
    assert len(elements) > 150
    assert sum(len(attributes) for _, attributes in elements) > 1500
    used = {}
    for path, attributes in elements:
        entry = TABLE.entry_of(path)
        assert entry, f"{path} is not in docs/formats_table.py"
        name, results = entry
        used.setdefault(name, set()).update(attributes)
        if TABLE.WHOLE in results.values():
            continue
        known = " ".join(results.values()).split()
        assert len(known) == len(set(known)), f"{name}: twice"
        assert set(attributes) <= set(known), f"{path}: {set(attributes) - set(known)}"
    for name, results in TABLE.ATTRIBUTES.items():
        known = set() if TABLE.WHOLE in results.values() else set(" ".join(results.values()).split())
        assert known <= used.get(name, set()), f"{name}: MuJoCo knows no {known - used.get(name, set())}"


def test_what_is_changed_listed_or_refused_has_an_example():
    """An attribute that the table of attributes says to be refused, ... is in the words of a row that is tried."""
    said = " ".join(f"{what} {words} {example}" for _, _, what, result, words, example in ROWS if result != "read")
    missing = set()
    for name, results in TABLE.ATTRIBUTES.items():
        for result in ("changed", "listed", "refused"):
            attributes = [] if results.get(result) == TABLE.WHOLE else results.get(result, "").split()
            missing |= {f"{name}: {word}" for word in attributes if not re.search(rf"\b{word}\b", said)}
    assert not missing
