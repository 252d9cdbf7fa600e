"""The lists of slow tests and of the core name tests that there are."""

import re
from pathlib import Path

import pytest

from tests.core_tests import CORE
from tests.slow_tests import SLOW

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("entry", [*SLOW, *CORE])
def test_a_listed_test_is_there(entry):
    file, _, rest = entry.partition("::")
    function = rest.partition("[")[0]
    assert (ROOT / file).exists()
    assert not function or re.search(rf"^def {function}", (ROOT / file).read_text(), re.MULTILINE)


def test_names_of_modules_are_unique():
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py"]
    assert len(names) == len(set(names))
