"""Prints the folder that holds lib/libcoulomb.so, the headers and the CMake package of this Python environment's wheel."""

import coulomb

print(coulomb.cmake_prefix())
