"""The pages of the Python interface from its docstrings: python docs/pages.py [FOLDER]; `make docs` runs it.

coulomb.torch, coulomb.jax and what else needs an extra have pages when it is installed.
"""

import importlib
import pathlib
import sys

import pdoc
import pdoc.render

import coulomb
import coulomb.glue

TEMPLATES = pathlib.Path(__file__).parent / "page_templates"


def show_inherited(cls):
    """pdoc leaves out what a class has from a base in a private module; users call it all the same."""
    for base in cls.__mro__[1:-1]:
        for name, member in vars(base).items():
            if not name.startswith("_") and name not in vars(cls):
                setattr(cls, name, member)


def show_if_installed(name):
    try:
        importlib.import_module("coulomb." + name)
    except ImportError as error:
        print(f"no page for coulomb.{name}: {error}")
    else:
        package, _, last = ("coulomb." + name).rpartition(".")
        sys.modules[package].__all__.append(last)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/docs")
    show_inherited(coulomb.Scene)
    coulomb.glue.__all__ = []  # each of its modules needs a library of its own
    for name in ("torch", "jax", "morphology", "kinematics", "pictures", "mjcf_export", "envs", "glue"):
        show_if_installed(name)
    for name in ("crocoddyl", "casadi", "aligator"):
        show_if_installed("glue." + name)
    pdoc.render.configure(template_directory=TEMPLATES)
    pdoc.pdoc("coulomb", output_directory=folder)
    print("open", folder / "index.html")


if __name__ == "__main__":
    main()
