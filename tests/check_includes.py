"""The dependency rule of ARCHITECTURE.md, checked on the #include lines.

    base <- linalg <- model <- dynamics, collision <- constraints <- parameters <- stepping <- rollout

A room, with all its sub-folders, may include itself and the rooms it stands on. solvers/ knows problems, not robots: it stands on
linalg alone. Pinocchio, Coal, Eigen and MuJoCo appear only in the loaders, the reference tests and the Python package.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STANDS_ON = {
    "base": set(),
    "linalg": {"base"},
    "model": {"base", "linalg"},
    "dynamics": {"base", "linalg", "model"},
    "collision": {"base", "linalg", "model"},
    "solvers": {"base", "linalg"},
    "constraints": {"base", "linalg", "model", "dynamics", "collision", "solvers"},
    "parameters": {"base", "linalg", "model", "dynamics", "collision", "solvers", "constraints"},
    "stepping": {"base", "linalg", "model", "dynamics", "collision", "solvers", "constraints", "parameters"},
    "rollout": {"base", "linalg", "model", "dynamics", "collision", "solvers", "constraints", "parameters", "stepping"},
}
OUTSIDE = re.compile(r"^(pinocchio|coal|hpp|urdf|Eigen|boost|mujoco|assimp|octomap|libqhull\w*|nanobind)(/|\.|$)")
LOADERS = re.compile(
    r"^src/coulomb/model/(loaders/((urdf\w*|pinocchio_\w+|mjcf)\.cpp|pinocchio_parts\.hpp)|shapes/convex_hull\.cpp)$"
)
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)


def folder(path: str) -> str:
    """Folder of src/coulomb that a path like coulomb/model/model.hpp belongs to; empty for the files of src/coulomb itself."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else ""


def violations() -> tuple[int, list[str]]:
    found = []
    files = sorted((ROOT / "src").rglob("*.[ch]pp"))
    for file in files:
        name = file.relative_to(ROOT).as_posix()
        own = folder(file.relative_to(ROOT / "src").as_posix())
        if own and own not in STANDS_ON:
            found.append(f"{name}: folder {own} is not in the dependency rule: add it to tests/check_includes.py")
            continue
        for include in INCLUDE.findall(file.read_text()):
            if OUTSIDE.match(include) and not LOADERS.match(name):
                found.append(f"{name}: includes {include}, which only the loaders may see")
            if include.startswith("coulomb/"):
                other = folder(include)
                umbrella = name == "src/coulomb/coulomb.hpp"
                if other and other != own and not umbrella and other not in STANDS_ON.get(own, set()):
                    found.append(f"{name}: includes {include}, but {own or 'src/coulomb'} does not stand on {other}")
                if not (ROOT / "src" / include).exists():
                    found.append(f"{name}: includes {include}, which does not exist")
            elif (file.parent / include).exists():
                found.append(f'{name}: includes "{include}": write the path from src, "coulomb/..."')
    return len(files), found


def main() -> int:
    count, found = violations()
    for line in found:
        print(line)
    print(f"dependency rule: {count} files, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
