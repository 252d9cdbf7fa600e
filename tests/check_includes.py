"""The dependency rule of ARCHITECTURE.md, checked on the #include lines.

    base <- linalg <- model <- dynamics, collision <- constraints <- parameters <- stepping <- rollout <- control

A room, with all its sub-folders, may include itself and the rooms it stands on. solvers/ knows problems, not robots: it stands on
linalg alone; render/ knows surfaces and cameras: it stands on base alone. Libraries that read files (urdfdom,
TinyXML-2, Assimp, Qhull, MuJoCo) appear only in the loaders.

Public headers, include/coulomb/, belong to the rooms that implement them and follow the same rule among themselves; they include public
headers and the standard library alone. They are all that is installed, and all of include/ that the target `coulomb` shows its users.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STANDS_ON = {
    "base": set(),
    "linalg": {"base"},
    "render": {"base"},
    "model": {"base", "linalg"},
    "dynamics": {"base", "linalg", "model"},
    "collision": {"base", "linalg", "model"},
    "solvers": {"base", "linalg"},
    "constraints": {"base", "linalg", "model", "dynamics", "collision", "solvers"},
    "parameters": {"base", "linalg", "model", "dynamics", "collision", "solvers", "constraints"},
    "stepping": {"base", "linalg", "model", "dynamics", "collision", "solvers", "constraints", "parameters"},
    "rollout": {"base", "linalg", "model", "dynamics", "collision", "solvers", "constraints", "parameters", "stepping"},
    "control": {
        "base",
        "linalg",
        "model",
        "dynamics",
        "collision",
        "solvers",
        "constraints",
        "parameters",
        "stepping",
        "rollout",
    },
}
# Who implements what a public header declares.
PUBLIC = {
    "instruction_set.hpp": "base",
    "version.hpp": "base",
    "model.hpp": "model",
    "sensors.hpp": "model",
    "configuration.hpp": "model",
    "scene_parts.hpp": "model",
    "scene.hpp": "model",
    "robot_description.hpp": "model",
    "collision_cache.hpp": "collision",
    "dynamics.hpp": "dynamics",
    "solver.hpp": "solvers",
    "contact_problem.hpp": "solvers",
    "lcp.hpp": "solvers",
    "parameters.hpp": "parameters",
    "step_memory.hpp": "stepping",
    "derivatives.hpp": "stepping",
    "simulator.hpp": "stepping",
    "outputs.hpp": "stepping",
    "rollout.hpp": "rollout",
    "batch.hpp": "rollout",
    "control.hpp": "control",
}
UMBRELLA = "coulomb/coulomb.hpp"
OUTSIDE = re.compile(
    r"^(pinocchio|coal|hpp|urdf_\w+|tinyxml2|console_bridge|Eigen|boost|mujoco|assimp|octomap|libqhull\w*|nanobind)(/|\.|$)"
)
LOADERS = re.compile(r"^src/coulomb/model/(loaders/(urdf\w*|mesh_files|mjcf)|shapes/convex_hull)\.cpp$")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)


STANDARD = re.compile(r"^[a-z_0-9]+$")  # <vector>
# cmake/: what goes into an install prefix, and what the target shows to those that link it.
INSTALLED = re.compile(r"install\(\s*(?:DIRECTORY|FILES)\s+([^)]*?)\s+DESTINATION[^)]*install_include", re.DOTALL)
SHOWN = re.compile(r"target_include_directories\(\s*coulomb\s+PUBLIC\s+([^)]*?)(?:PRIVATE|\))", re.DOTALL)


def room(path: str) -> str:
    """Room of a header or source like coulomb/dynamics/spin.hpp or coulomb/dynamics.hpp; empty for what is in none."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else PUBLIC.get(parts[-1], "")


def violations_of(path: pathlib.Path, top: pathlib.Path) -> list[str]:
    """Of one header or source below top, which is include/ or src/."""
    name = path.relative_to(ROOT).as_posix()
    inside = path.relative_to(top).as_posix()
    public = top.name == "include"
    own = room(inside)
    if public and not own and inside != UMBRELLA:
        return [f"{name}: is a public header of no room: add it to tests/check_includes.py"]
    if own and own not in STANDS_ON:
        return [f"{name}: folder {own} is not in the dependency rule: add it to tests/check_includes.py"]

    found = []
    for include in INCLUDE.findall(path.read_text()):
        if OUTSIDE.match(include) and not LOADERS.match(name):
            found.append(f"{name}: includes {include}, which only the loaders may see")
        if include.startswith("coulomb/"):
            homes = [folder for folder in ("include", "src") if (ROOT / folder / include).exists()]
            other = room(include)
            if not homes:
                found.append(f"{name}: includes {include}, which does not exist")
            if len(homes) > 1:
                found.append(f"{name}: includes {include}, which is both public and private")
            if public and homes == ["src"]:
                found.append(f"{name}: includes {include}, which is private: users do not have it")
            if include == UMBRELLA:
                found.append(f"{name}: includes {include}, which is for users: name the headers that are needed")
            if other and other != own and inside != UMBRELLA and other not in STANDS_ON.get(own, set()):
                found.append(f"{name}: includes {include}, but {own or 'src/coulomb'} does not stand on {other}")
        elif (path.parent / include).exists():
            found.append(f'{name}: includes "{include}": write the path from {top.name}, "coulomb/..."')
        elif public and not STANDARD.match(include):
            found.append(f"{name}: includes {include}, which users may not have")
    return found


def violations_of_build() -> list[str]:
    """Of what is installed, and of what the target shows."""
    text = "\n".join(path.read_text() for path in sorted((ROOT / "cmake").glob("*.cmake")))
    installed = [item for match in INSTALLED.findall(text) for item in match.split()]
    shown = [item for match in SHOWN.findall(text) for item in match.split() if "BUILD_INTERFACE" in item]
    found = [
        f"cmake/: installs {item} as headers, expected include/coulomb alone"
        for item in installed
        if item != "include/coulomb"
    ]
    if not installed:
        found.append("cmake/: installs no headers, expected include/coulomb")
    if len(shown) != 1 or not shown[0].rstrip('">').endswith("/include"):
        found.append(f"cmake/: the target coulomb shows {shown}, expected include/ alone")
    return found


def violations() -> tuple[int, list[str]]:
    found = violations_of_build()
    count = 0
    for top in (ROOT / "include", ROOT / "src"):
        for path in sorted(top.rglob("*.[ch]pp")):
            count += 1
            found += violations_of(path, top)
    found += [
        f"include/coulomb/{name}: is not there" for name in PUBLIC if not (ROOT / "include" / "coulomb" / name).exists()
    ]
    return count, found


def main() -> int:
    count, found = violations()
    for line in found:
        print(line)
    print(f"dependency rule: {count} files, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
