"""Prints the folder that holds libcoulomb, its headers and its CMake package in this Python environment."""

import pathlib

import cmeel

print(pathlib.Path(cmeel.__file__).resolve().parent.parent / "cmeel.prefix")
