"""Makes the helper package `scenes` (beside `tests`) importable from every test; markers of known failures and of slow tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.known_failures import reason  # noqa: E402
from tests.slow_tests import is_slow  # noqa: E402


def pytest_collection_modifyitems(items):
    for item in items:
        why = reason(item.nodeid)
        if why:
            item.add_marker(pytest.mark.xfail(reason=why, strict=False))
        if is_slow(item.nodeid):
            item.add_marker(pytest.mark.slow)
