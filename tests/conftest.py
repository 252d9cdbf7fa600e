"""Makes the helper package `scenes` (beside `tests`) importable from every test; markers of slow tests and of the core; one thread for PyTorch."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.core_tests import is_core  # noqa: E402
from tests.slow_tests import is_slow  # noqa: E402


def pytest_collection_modifyitems(items):
    for item in items:
        if is_slow(item.nodeid):
            item.add_marker(pytest.mark.slow)
        if is_core(item.nodeid):
            item.add_marker(pytest.mark.core)


@pytest.fixture
def one_thread():
    """For tests that train small networks: PyTorch's threads cost them more than they give, above all on a busy machine."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
