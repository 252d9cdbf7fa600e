"""Prints the requirements that pyproject.toml states: `requirements.py build runtime test ...`, one a line.

`build` is the build system's, `runtime` the package's own, any other word an optional group.
"""

import pathlib
import sys

try:
    import tomllib
except ImportError:  # Python 3.10: pip brings the same parser
    from pip._vendor import tomli as tomllib

project = tomllib.loads((pathlib.Path(__file__).parent.parent / "pyproject.toml").read_text())


def requirements(group: str) -> list[str]:
    if group == "build":
        return project["build-system"]["requires"]
    if group == "runtime":
        return project["project"]["dependencies"]
    found = []
    for line in project["project"]["optional-dependencies"][group]:
        if line.startswith("coulomb["):  # a group that contains another one
            found += requirements(line[len("coulomb[") : -1])
        else:
            found.append(line)
    return found


for group in sys.argv[1:]:
    for line in requirements(group):
        print(line.replace(" ", ""))
