"""Lines and branches of constraints, solvers and derivatives that tests reach: GCC's --coverage, read by gcovr.

python tools/coverage.py [--jobs 2] [--report FILE] [--without-build] [TEST ...]

TEST: files of Python tests; without names those of FOLDERS, and FILES. C++: the unit tests of constraints and solvers. Branches that only exceptions take, of the standard library's
bounds say, are not counted, nor those that the compiler makes by itself. What is measured is what these tests reach, not all tests: a lower bound.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "coverage"
PACKAGE = BUILD / "package"
LONGEST = 1200  # s, of one file of tests

#: What is counted: rooms, and the files of other rooms that are derivatives.
COUNTED = {
    "constraints": "src/coulomb/constraints/",
    "solvers": "src/coulomb/solvers/",
    "derivatives of dynamics": "src/coulomb/dynamics/.*(deriv|vjp).*",
    "derivatives of collision": "src/coulomb/collision/motion/",
    "derivatives of parameters": "src/coulomb/parameters/",
    "derivatives of steps": "src/coulomb/stepping/.*(linear|deriv|gradient|products|levels|kinks|parameters|matrices|outputs).*",
}
UNIT_TESTS = ("constraints", "solvers")
FOLDERS = ("tests/analytic", "tests/gradient", "tests/robustness")
FILES = [
    "tests/python/test_actuators.py",
    "tests/python/test_batch.py",
    "tests/python/test_batch_rollout.py",
    "tests/python/test_contact_problem.py",
    "tests/python/test_contradictions.py",
    "tests/python/test_control_step.py",
    "tests/python/test_lcp.py",
    "tests/python/test_load.py",
    "tests/python/test_morphology.py",
    "tests/python/test_morphology_rollout.py",
    "tests/python/test_rollout.py",
    "tests/python/test_saved.py",
    "tests/python/test_servos.py",
    "tests/python/test_sparse_derivatives.py",
    "tests/python/test_substeps.py",
]


def build(jobs):
    """The preset "coverage": the module, and the unit tests of UNIT_TESTS."""
    python = "-DPython_EXECUTABLE=" + sys.executable
    subprocess.run(["cmake", "--preset", "coverage", python, "--log-level=NOTICE"], cwd=ROOT, check=True)
    command = ["cmake", "--build", str(BUILD), "--parallel", str(jobs), "--target", "_core", *unit_tests()]
    subprocess.run(command, cwd=ROOT, check=True)


def unit_tests():
    """Names of targets, as cmake/CoulombTests.cmake makes them."""
    folder = ROOT / "tests"
    files = [path for room in UNIT_TESTS for path in (folder / "unit" / room).rglob("test_*.cpp")]
    return sorted(str(path.relative_to(folder).with_suffix("")).replace("/", ".") for path in files)


def make_package():
    """The package as Python finds it: its files, and the measured module beside them."""
    shutil.rmtree(PACKAGE, ignore_errors=True)
    shutil.copytree(ROOT / "python" / "coulomb", PACKAGE / "coulomb")
    for module in BUILD.glob("_core*.so"):
        (PACKAGE / "coulomb" / module.name).symlink_to(module)


def run(command):
    """(command, exit code, its last line)."""
    environment = dict(os.environ, PYTHONPATH=str(PACKAGE), PYTHONDONTWRITEBYTECODE="1")
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace", timeout=LONGEST
        )
        lines = (done.stdout + done.stderr).strip().splitlines()
        return command, done.returncode, lines[-1] if lines else ""
    except subprocess.TimeoutExpired:
        return command, 1, f"not done after {LONGEST} s"


def commands(tests):
    """What is run: unit tests, then files of Python tests."""
    python = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"]
    yield from ([str(BUILD / "tests" / name)] for name in unit_tests())
    yield from ([*python, test] for test in tests)


def counts():
    """{name of COUNTED: [lines reached, lines, branches reached, branches]}, and the same by file."""
    report = BUILD / "coverage.json"
    options = ["--exclude-throw-branches", "--exclude-unreachable-branches", "--json-summary", str(report)]
    filters = [option for pattern in COUNTED.values() for option in ("--filter", pattern)]
    subprocess.run(["gcovr", "--root", str(ROOT), *filters, *options, str(BUILD)], cwd=ROOT, check=True)
    rooms, files = collections.defaultdict(lambda: [0] * 4), {}
    for file in json.loads(report.read_text())["files"]:
        name = file["filename"]
        numbers = [file[key] for key in ("line_covered", "line_total", "branch_covered", "branch_total")]
        files[name] = numbers
        room = next((r for r, pattern in COUNTED.items() if name.startswith(pattern.split(".*")[0])), "other")
        rooms[room] = [a + b for a, b in zip(rooms[room], numbers)]
    return rooms, files


def share(reached, total):
    return f"{reached / total:.1%} of {total}" if total else ""


def table(rooms, files):
    lines = ["| | lines | branches |", "|---|--:|--:|"]
    total = [sum(numbers[i] for numbers in rooms.values()) for i in range(4)]
    for name, n in [*rooms.items(), ("all", total)]:
        lines.append(f"| {name} | {share(n[0], n[1])} | {share(n[2], n[3])} |")
    worst = sorted(files.items(), key=lambda item: item[1][2] - item[1][3])[:15]
    lines += [
        "",
        "Files with most branches that are not reached:",
        "",
        "| file | branches | not reached |",
        "|---|--:|--:|",
    ]
    lines += [f"| {name} | {share(n[2], n[3])} | {n[3] - n[2]} |" for name, n in worst]
    return lines


def core():
    """The files of Python tests that are run where none is named."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("test_*.py"))]
    return [str(path.relative_to(ROOT)) for path in files] + FILES


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tests", nargs="*")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--without-build", action="store_true", help="with what was built before; counts go on")
    parser.add_argument("--report", type=Path, help="Markdown; without it, none is written")
    options = parser.parse_args()
    if shutil.which("gcovr") is None:
        sys.exit("coverage: no gcovr; pip install gcovr, or apt install gcovr")
    if not options.without_build:
        build(options.jobs)
        for path in BUILD.rglob("*.gcda"):
            path.unlink()
    make_package()
    tests, failed = options.tests or core(), 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for command, code, last in pool.map(run, commands(tests)):
            print(f"{Path(command[-1]).name}: {last}" + (f" (code {code})" if code else ""), flush=True)
            failed += code != 0
    lines = table(*counts())
    print("\n".join(lines))
    if options.report:
        named = f"`{'`, `'.join(options.tests or [*FOLDERS, *FILES])}`"
        done = f"{len(unit_tests())} unit tests and, of {named}, what is not slow; {failed} of these failed"
        head = ["# Coverage", "", f"{datetime.date.today()}, `python tools/coverage.py`: {done}.", ""]
        options.report.write_text("\n".join([*head, *lines, ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
