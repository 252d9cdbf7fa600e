"""docs/promises.md names tests; they are there."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/promises.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.(?:py|cpp)(?:::\w+)?)`", PAGE)))


def test_every_promise_names_a_test():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "promise | would fail" not in line]
    assert len(rows) > 25 and all("`tests/" in row for row in rows)


@pytest.mark.parametrize("name", NAMED)
def test_the_test_is_there(name):
    file, _, function = name.partition("::")
    text = (ROOT / file).read_text()
    assert f"\ndef {function}(" in text if function else len(text) > 200
