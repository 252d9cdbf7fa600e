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


def of_python(text, function):
    """The lines of a test and its decorators; of the whole file where no function is named."""
    if not function:
        return text
    at = text.index(f"\ndef {function}(") + 1
    above = text.rfind("\n\n\n", 0, at)
    below = text.find("\n\n\n", at)
    return text[above : below if below > 0 else len(text)]


@pytest.mark.parametrize("name", NAMED)
def test_the_test_is_there_and_is_run(name):
    """It asserts something, and nothing marks it as one to be skipped or expected to fail."""
    file, _, function = name.partition("::")
    text = (ROOT / file).read_text()
    if file.endswith(".cpp"):
        assert re.search(r"\bCHECK|\bREQUIRE|\bEXPECT", text) and not re.search(r"\bskip\(|\bdisabled\b", text, re.I)
        return
    assert not function or f"\ndef {function}(" in text
    found = of_python(text, function)
    assert re.search(r"\bassert|pytest\.raises|_refused\(", found)
    assert not re.search(r"mark\.(skip|xfail)\b", found)
