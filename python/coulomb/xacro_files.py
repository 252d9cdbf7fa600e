"""URDF that is written as xacro macros: expanded by the package ``xacro``, or refused by a message that names it."""

import contextlib
import os
import re
import sys
import threading
import types
from collections.abc import Mapping

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


def expand(path_or_xml, package_dirs, xacro_args=None):
    """(XML without macros, folders where its meshes are looked up), of what is_xacro.

    package_dirs: ``$(find package)`` and meshes are looked up there, then above the file. xacro_args: of ``$(arg name)``, by name.
    ImportError without the package; ValueError: a string, whose includes have no folder, an argument that the file does not have, or macros
    that xacro cannot expand.
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
    folders = list(_core._package_folders(path_or_xml, list(package_dirs)))
    given = _Arguments(_written(xacro_args))
    asked = set(given)
    with _LOCK, _packages_in(folders):
        try:
            text = xacro.process_file(path_or_xml, mappings=given).toxml()
        except Exception as error:  # xacro raises what its expressions raise
            raise ValueError(
                f"URDF {path_or_xml!r}: xacro cannot expand it: {type(error).__name__}: {error}{_advice(error)}"
            ) from error
    unknown = sorted(asked - given.asked_for)
    if unknown:
        known = ", ".join(sorted(given.asked_for)) or "none"
        raise ValueError(f"xacro_args: {path_or_xml!r} has no argument {unknown[0]!r}; it has: {known}")
    return text, folders


def _written(xacro_args):
    """As xacro has them, which are texts."""
    if xacro_args is None:
        return {}
    if not isinstance(xacro_args, Mapping):
        raise TypeError(f"xacro_args: expected a dict of arguments by name, got {type(xacro_args).__name__}")
    return {
        str(name): str(value).lower() if isinstance(value, bool) else str(value) for name, value in xacro_args.items()
    }


def _advice(error):
    return "; xacro_args gives it a value" if "substitution argument" in str(error) else ""


class _Arguments(dict):
    """Arguments, and the names that the file asks for: it declares them, or just uses them."""

    def __init__(self, given):
        super().__init__(given)
        self.asked_for = set()

    def __contains__(self, name):
        self.asked_for.add(name)
        return super().__contains__(name)

    def __getitem__(self, name):
        self.asked_for.add(name)
        return super().__getitem__(name)


# xacro keeps its arguments in variables of its module.
_LOCK = threading.Lock()


@contextlib.contextmanager
def _packages_in(folders):
    """``$(find package)`` asks ROS 2's index of packages: here one that knows the folders, and then ROS's own, if there is one."""
    names = ("ament_index_python", "ament_index_python.packages")
    before = {name: sys.modules.get(name) for name in names}
    try:
        from ament_index_python.packages import get_package_share_directory as installed
    except ImportError:
        installed = None

    def find(package):
        folder = _package_folder(package, folders)
        if folder is not None:
            return folder
        if installed is not None:
            return installed(package)
        tried = ", ".join(repr(folder) for folder in folders)
        raise LookupError(f"no package {package!r} in {tried}; name the folder that holds it in package_dirs")

    index, packages = (types.ModuleType(name) for name in names)
    index.packages, packages.get_package_share_directory = packages, find
    sys.modules.update(zip(names, (index, packages), strict=True))
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


def _package_folder(package, folders):
    """The folder of a package: of its name, or with a package.xml that has it."""
    for folder in folders:
        for place in (os.path.join(folder, package), folder):
            if os.path.basename(place) == package and os.path.isdir(place):
                return place
    try:
        return os.path.dirname(_core._find_mesh(f"package://{package}/package.xml", folders, "$(find)"))
    except ValueError:
        return None
