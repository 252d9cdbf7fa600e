"""URDF that is written as xacro macros: expanded by the package ``xacro``, or refused by a message that names it."""

import os
import re

from . import _core


def is_xacro(path_or_xml):
    """Is this a file or text with macros? A URDF that xacro expanded has none, whatever its comments and its namespace recall."""
    if path_or_xml.lstrip().startswith("<"):
        return _has_macros(path_or_xml)
    if path_or_xml.lower().endswith(".xacro"):
        return True
    if not os.path.isfile(path_or_xml):
        return False
    with open(path_or_xml, errors="replace") as file:
        return _has_macros(file.read())


def _has_macros(text):
    return "<xacro:" in re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)


def expand(path_or_xml, package_dirs):
    """(XML without macros, folders where its meshes are looked up), of what is_xacro.

    ImportError without the package; ValueError: a string, whose includes have no folder, or macros that xacro cannot expand.
    """
    if path_or_xml.lstrip().startswith("<"):
        raise ValueError(
            "URDF string: has <xacro:...> macros; pass the path of the .xacro file, or expand it with xacro"
        )
    if not os.path.isfile(path_or_xml):
        raise FileNotFoundError(f"path: no such file: {path_or_xml!r}")
    try:
        import xacro
    except ImportError as error:
        raise ImportError(
            f"URDF {path_or_xml!r} has xacro macros, which need the package 'xacro': pip install 'coulomb[xacro]'"
        ) from error
    try:
        text = xacro.process_file(path_or_xml).toxml()
    except Exception as error:  # xacro raises what its expressions raise
        raise ValueError(f"URDF {path_or_xml!r}: xacro cannot expand it: {type(error).__name__}: {error}") from error
    return text, list(_core._package_folders(path_or_xml, list(package_dirs)))
