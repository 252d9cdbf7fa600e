"""Files installed beside the Python modules: the library and its headers, for C++ programs."""

from __future__ import annotations

import os


def cmake_prefix() -> str:
    """The folder for CMAKE_PREFIX_PATH, so that find_package(coulomb) finds the C++ library of this Python environment.

    It holds lib/libcoulomb.so, include/coulomb and lib/cmake/coulomb.
    """
    return os.path.dirname(os.path.abspath(__file__))
