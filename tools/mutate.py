"""Mutation test of the derivatives: is every wrong sign, term, factor, index and condition caught by a test?

python tools/mutate.py [--count 200] [--seed 0] [--only REGEX] [--report tests/robustness/mutations.md] [--again]
python tools/mutate.py --show KEY            # one mutation as it stands in the file

Mutations (tools/mutations.py) are drawn in proportion to the lines of the files. Each is compiled and linked into a library of its own, which C++ tests and
pytest find preloaded; the first failure kills it. Only tests that reach its statement are run, quick ones that killed others first. Those that gave the same
machine code as the original are no change. What is learnt is kept in build/mutants, so an interrupted run continues. Survivors that are equivalent are listed
with the reason in tests/robustness/equivalent_mutations.json. Exit code 1: others survived.

Why not a tool of the field: Mull is a plugin for versions of clang that Linux distributions do not have as a package; dextool needs a D compiler and clang's
libraries; universalmutator (PyPI) rewrites lines by regular expressions, which know no terms, factors or arguments, and builds and tests the whole project for
each. What is needed beyond tree-sitter's syntax tree is short: one compilation, one link, and the choice of tests by coverage.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import datetime
import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path

from mutations import Mutation, candidates, draw, shares, squeeze

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "mutants"
SOURCE = WORK / "source"  # a copy: the files being worked on may change meanwhile
BUILD = WORK / "build"
COPIED = ["CMakeLists.txt", "cmake", "include", "src", "python", "tests", "scenes", "pyproject.toml"]
EQUIVALENT = ROOT / "tests" / "robustness" / "equivalent_mutations.json"
FLAGS = "-O1 -finline-functions -finline-small-functions -DNDEBUG -DCOULOMB_NO_SIMD_CLONES"

# cmake, ctest and ninja may be beside Python.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

# Where derivatives are computed, below src/coulomb.
FILES = [
    "collision/motion/*.cpp",
    "constraints/corrections.cpp",
    "constraints/path_products.cpp",
    "constraints/penalty/penalty_derivatives.cpp",
    "constraints/row_*.cpp",
    "dynamics/body_motion.cpp",
    "dynamics/derivative_pairs.cpp",
    "dynamics/end_shift.cpp",
    "dynamics/inverse_dynamics_vjp.cpp",
    "dynamics/outputs.cpp",
    "dynamics/prepare_derivatives.cpp",
    "dynamics/spin_derivatives.cpp",
    "dynamics/turned_spin.cpp",
    "parameters/*.cpp",
    "parameters/kinds/*.cpp",
    "rollout/rollout_derivatives.cpp",
    "rollout/rollout_jacobian.cpp",
    "rollout/rollout_outputs.cpp",
    "solvers/lcp/lcp_derivatives.cpp",
    "solvers/linearization/*.cpp",
    "stepping/gradients/*.cpp",
    "stepping/impacts/impact_gap.cpp",
    "stepping/impacts/impact_gradient.cpp",
    "stepping/impacts/impact_motion.cpp",
    "stepping/impacts/impact_path.cpp",
    "stepping/impacts/impact_products.cpp",
    "stepping/impacts/impact_tangents.cpp",
    "stepping/implicit/implicit_linearization.cpp",
    "stepping/implicit/implicit_parameters.cpp",
    "stepping/implicit/implicit_products.cpp",
    "stepping/implicit/spinning_start.cpp",
    "stepping/outputs/*.cpp",
    "stepping/semi_implicit/step_*.cpp",
    "stepping/step_gradient.cpp",
]

# Tests that may kill. Python's are what make quick takes of these folders, by file.
PYTHON_TESTS = [
    "tests/gradient/test_*.py",
    "tests/reference/test_*sensors.py",
    "tests/robustness/test_split_steps_*.py",
    "tests/robustness/test_tumbling_*.py",
]
PATIENCE = 15  # times what a test needs of the processor, and a minute: what takes longer hangs, on a busy machine too


# --- the build that is mutated ------------------------------------------------------------------------------------------------


def prepare():
    """Copies the sources and builds library, tests and module in build/mutants."""
    for name in COPIED:
        copy_changed(ROOT / name, SOURCE / name)
    options = [
        "-G",
        "Ninja",
        "-DCMAKE_BUILD_TYPE=Mutants",
        f"-DCMAKE_CXX_FLAGS={FLAGS}",
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
    ]
    options += ["-DCOULOMB_BUILD_PYTHON=ON", "-DCOULOMB_BUILD_TESTS=ON", f"-DPython_EXECUTABLE={sys.executable}"]
    subprocess.run(["cmake", "-S", SOURCE, "-B", BUILD, *options, "--log-level=NOTICE"], check=True)
    subprocess.run(
        ["cmake", "--build", BUILD, "--parallel", os.environ.get("JOBS", "1")], check=True, stdout=subprocess.DEVNULL
    )

    # The package as Python finds it: what is Python, and the module beside it.
    package = WORK / "package" / "coulomb"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(SOURCE / "python" / "coulomb", package)
    for module in BUILD.glob("_core*.so"):
        shutil.copy(module, package)


def copy_changed(origin: Path, copy: Path):
    """A file or a folder, leaving what is the same untouched so that nothing is compiled again; what is gone goes."""
    if origin.is_file():
        if not copy.exists() or copy.read_bytes() != origin.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(origin, copy)
        return
    names = {path.name for path in origin.iterdir() if path.name != "__pycache__"}
    for path in copy.iterdir() if copy.is_dir() else ():
        if path.name not in names:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in sorted(names):
        copy_changed(origin / name, copy / name)


class Compiler:
    """Compiles single files of a build and links the library with them."""

    def __init__(self, build: Path):
        self.build = build
        commands = json.loads((build / "compile_commands.json").read_text())
        self.commands = {command["file"]: command for command in commands}
        library = next(path for path in build.glob("libcoulomb.so*") if not path.is_symlink())
        said = subprocess.run(
            ["ninja", "-C", build, "-t", "commands", "-s", library.name], capture_output=True, text=True
        )
        self.link_command = next(line for line in said.stdout.splitlines() if " -shared " in line)
        self.library = library.name

    def compile(self, source: Path, text: Path, target: Path, *options: str) -> bool:
        """`text` with the options of `source`, whose folder its includes are relative to."""
        command = self.commands[str(source)]
        words = shlex.split(command["command"])
        words = words[
            next(
                k
                for k, word in enumerate(words)
                if re.search(r"(\+\+|cc|clang)(-\d+)?$", word) and "ccache" not in word
            ) :
        ]
        words[words.index("-o") + 1] = str(target)
        words[words.index("-c") + 1] = str(text)
        for flag in ("-MF", "-MT"):
            if flag in words:
                del words[words.index(flag) : words.index(flag) + 2]
        words = [word for word in words if word not in ("-MD", "-Werror")]
        words += ["-w", f"-iquote{source.parent}", *options]
        return subprocess.run(words, cwd=command["directory"], capture_output=True).returncode == 0

    def link(self, objects: dict[Path, Path], target: Path, *options: str):
        """The library with some of its objects replaced: {source: object}."""
        command = self.link_command
        for source, made in objects.items():
            command = command.replace(f" {self.object_of(source)} ", f" {shlex.quote(str(made))} ")
        command = command.replace(f" -o {self.library} ", f" -o {shlex.quote(str(target))} " + " ".join(options) + " ")
        subprocess.run(command, shell=True, cwd=self.build, check=True, capture_output=True)

    def object_of(self, source: Path) -> str:
        words = shlex.split(self.commands[str(source)]["command"])
        return os.path.relpath(os.path.join(self.build, words[words.index("-o") + 1]), self.build)


# --- the tests ----------------------------------------------------------------------------------------------------------------


def list_tests(build: Path, pattern: str = "^(unit|reference)[.]", python: bool = True) -> list[dict]:
    """name, command, folder of every C++ test whose name fits, and of every file of Python tests."""
    said = subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True
    )
    tests = []
    for test in json.loads(said.stdout)["tests"]:
        if re.search(pattern, test["name"]):
            tests.append(
                {
                    "name": test["name"],
                    "seconds": 1.0,
                    "command": test["command"],
                    "folder": str(ROOT if build != BUILD else SOURCE),
                }
            )
    for glob in PYTHON_TESTS if python else ():
        for path in sorted(SOURCE.glob(glob)):
            name = str(path.relative_to(SOURCE))
            options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--no-header"]
            tests.append(
                {"name": name, "command": [sys.executable, "-m", "pytest", *options, name], "folder": str(SOURCE)}
            )
    return tests


def run_test(test: dict, library: Path, seconds: float, **variables: str) -> str:
    """ "passed", "failed" or "hangs", with this library in place of the one it was linked to."""
    environment = dict(
        os.environ, LD_PRELOAD=str(library), PYTHONPATH=str(WORK / "package"), PYTHONDONTWRITEBYTECODE="1", **variables
    )
    process = subprocess.Popen(
        test["command"],
        cwd=test["folder"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        test["said"] = process.communicate(timeout=seconds)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return "hangs"
    code = (
        0 if process.returncode == 5 and "pytest" in test["command"] else process.returncode
    )  # 5: all of them are slow
    return "failed" if code else "passed"


def seconds_of_children() -> float:
    """Of the processor, by all processes that have ended: the same on a busy machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(compiler: Compiler, files: list[Path]) -> list[dict]:
    """All tests with seconds and the lines of `files` that they reach: {"src/...": [lines]}. Those that fail without a mutation are left out."""
    folder = WORK / "coverage"
    known_file = folder / "tests.json"
    stamp = digest(SOURCE / "src", SOURCE / "include", SOURCE / "python")
    table = json.loads(known_file.read_text()) if known_file.exists() else {}
    known = {test["name"]: test for test in table["tests"]} if table.get("stamp") == stamp else {}
    wanted = list_tests(BUILD)
    for test in wanted:
        test["stamp"] = digest(SOURCE / test["name"] if test["name"].endswith(".py") else Path(test["command"][0]))
    if all(test["name"] in known and known[test["name"]]["stamp"] == test["stamp"] for test in wanted):
        return [test for test in known.values() if test["lines"] is not None]

    # The files with counters in them, the others as they are.
    library = folder / "libcoulomb.so"
    if not known:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        objects = {}
        for path in files:
            objects[path] = folder / (str(path.relative_to(SOURCE)).replace("/", "-") + ".o")
            if not compiler.compile(path, path, objects[path], "-O0", "--coverage"):
                sys.exit(f"mutate: {path} does not compile")
        compiler.link(objects, library, "--coverage")

    tests = []
    for test in wanted:
        if test["name"] in known and known[test["name"]]["stamp"] == test["stamp"]:
            tests.append(known[test["name"]])
            continue
        counts = folder / "counts"
        shutil.rmtree(counts, ignore_errors=True)
        counts.mkdir()
        began = seconds_of_children()
        verdict = run_test(test, library, 1200, GCOV_PREFIX=str(counts), GCOV_PREFIX_STRIP=str(len(folder.parts) - 1))
        test["seconds"] = round(seconds_of_children() - began, 2)
        test["lines"] = lines_reached(folder, counts) if verdict == "passed" else None
        if verdict != "passed":
            print(f"left out, it {verdict} without a mutation: {test['name']}", test.get("said", "")[-300:], flush=True)
        test.pop("said", None)
        tests.append(test)
        rest = [test for name, test in known.items() if name not in {done["name"] for done in tests}]
        known_file.write_text(json.dumps({"stamp": stamp, "tests": tests + rest}))
    return [test for test in tests if test["lines"] is not None]


def lines_reached(folder: Path, counts: Path) -> dict[str, list[int]]:
    """What gcov makes of the counters of one test."""
    names = []
    for path in counts.glob("*.gcda"):
        shutil.copy(folder / (path.stem + ".gcno"), counts)
        names.append(path.name)
    if not names:
        return {}
    said = subprocess.run(
        ["gcov", "--json-format", "--stdout", *names], cwd=counts, capture_output=True, text=True, check=True
    )
    reached = collections.defaultdict(set)
    for report in said.stdout.splitlines():
        for file in json.loads(report)["files"] if report.startswith("{") else ():
            path = Path(file["file"])
            if SOURCE / "src" in path.parents and path.suffix == ".cpp":
                reached[str(path.relative_to(SOURCE))].update(
                    line["line_number"] for line in file["lines"] if line["count"]
                )
    return {name: sorted(lines) for name, lines in reached.items()}


def digest(*places: Path) -> str:
    """Of files, and of all that folders have below."""
    hashed = hashlib.sha256()
    for place in places:
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if path.is_file() and path.suffix not in (".pyc", ".so"):
                hashed.update(str(path).encode() + path.read_bytes())
    return hashed.hexdigest()


# --- one mutation -------------------------------------------------------------------------------------------------------------


class Judge:
    """Compiles mutations and lets the tests look at them; learns which tests kill."""

    def __init__(self, compiler: Compiler, source: Path, tests: list[dict], work: Path, budget: float = float("inf")):
        self.compiler, self.source, self.tests, self.work, self.budget = compiler, source, tests, work, budget
        self.runs, self.kills = collections.Counter(), collections.Counter()
        self.lock = threading.Lock()
        self.originals = {}

    def judge(self, mutation: Mutation) -> dict:
        """{"verdict": "does not compile" | "same code" | "killed" | "survived" | "not reached", "by": test}."""
        path = self.source / mutation.file
        folder = self.work / mutation.key()
        made, library = folder / "made.o", folder / "libcoulomb.so"
        try:
            if not self.compile(path, mutation.apply(path.read_bytes()), made):
                return {"verdict": "does not compile"}
            if made.read_bytes() == self.original(path):
                return {"verdict": "same code"}
            tests = self.tests_for(mutation)
            if not tests:
                return {"verdict": "not reached"}
            self.compiler.link({path: made}, library)
            return self.run(tests, library)
        finally:
            shutil.rmtree(folder)

    def compile(self, path: Path, text: bytes, made: Path) -> bool:
        """`text` in place of the file, under the name of the file: that goes into the object."""
        made.parent.mkdir(parents=True, exist_ok=True)
        copy = made.parent / path.name
        copy.write_bytes(text)
        return self.compiler.compile(path, copy, made, "-g0")

    def original(self, path: Path) -> bytes:
        """The object without a mutation, compiled as mutations are."""
        with self.lock:
            if path not in self.originals:
                made = self.work / "original" / "made.o"
                self.compile(path, path.read_bytes(), made)
                self.originals[path] = made.read_bytes()
            return self.originals[path]

    def tests_for(self, mutation: Mutation) -> list[dict]:
        """Those that reach the statement, the best first: kills per second so far."""

        def reaches(test):
            lines = test["lines"].get(mutation.file, ()) if "lines" in test else ()
            return "lines" not in test or any(mutation.first <= line <= mutation.last for line in lines)

        with self.lock:
            worth = {
                t["name"]: (self.kills[t["name"]] + 1) / (self.runs[t["name"]] + 2) / t["seconds"] for t in self.tests
            }
        return sorted(filter(reaches, self.tests), key=lambda test: -worth[test["name"]])

    def run(self, tests: list[dict], library: Path) -> dict:
        spent = 0.0
        for number, test in enumerate(tests):
            spent += test["seconds"]
            if spent > self.budget and number > 0:
                return {"verdict": "survived", "tests": number, "of": len(tests)}
            verdict = run_test(dict(test), library, PATIENCE * test["seconds"] + 60)
            with self.lock:
                self.runs[test["name"]] += 1
                self.kills[test["name"]] += verdict != "passed"
            if verdict != "passed":
                return {"verdict": "killed", "by": test["name"], "how": verdict}
        return {"verdict": "survived", "tests": len(tests), "of": len(tests)}


def make_judge(known: dict, options) -> Judge:
    """With all tests, and what earlier verdicts say of them."""
    scratch = WORK / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    compiler = Compiler(BUILD)
    judge = Judge(compiler, SOURCE, measure(compiler, find_files(SOURCE, "")), scratch, options.budget)
    for entry in known.values():
        judge.runs[entry.get("by")] += 1
        judge.kills[entry.get("by")] += 1
    return judge


def draw_and_judge(files: list[Path], options) -> list[tuple[Mutation, dict]]:
    """So many mutations that compile and change the code. Verdicts are kept in a file, line by line."""
    kept = WORK / "verdicts.jsonl"
    known = {}
    for line in kept.read_text().splitlines() if kept.exists() else ():
        known.update({(entry := json.loads(line))["key"]: entry})
    unsettled = ("survived", "not reached")
    lock = threading.Lock()
    judges = []  # one, once a mutation has to be judged

    def verdict_of(mutation):
        entry = known.get(mutation.key())
        if entry is None or options.again and entry["verdict"] in unsettled:
            with lock:
                if not judges:
                    judges.append(make_judge(known, options))
            entry = {"key": mutation.key(), "place": f"{mutation.file}:{mutation.line}", **judges[0].judge(mutation)}
            with lock, kept.open("a") as stream:
                stream.write(json.dumps(entry) + "\n")
            if entry["verdict"] in unsettled:
                print(entry["key"], describe(mutation), entry["verdict"], flush=True)
        return mutation, entry

    def of_file(path, count):
        name = str(path.relative_to(SOURCE))
        done = []
        for mutation in draw(candidates(name, path.read_bytes()), f"{options.seed} {name}"):
            if sum(entry["verdict"] not in ("does not compile", "same code") for _, entry in done) >= count:
                break
            done.append(verdict_of(mutation))
        return done

    sizes = {path: len(path.read_bytes().splitlines()) for path in files}
    counts = shares(sizes, options.count)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return [pair for done in pool.map(of_file, counts, counts.values()) for pair in done]


# --- what is said about them --------------------------------------------------------------------------------------------------


def describe(mutation: Mutation) -> str:
    return f"{mutation.file}:{mutation.line}: {squeeze(mutation.before)} → {squeeze(mutation.after)}"


def reasons() -> dict[str, str]:
    """{key: why}, of mutations that change nothing that could be seen."""
    entries = json.loads(EQUIVALENT.read_text()) if EQUIVALENT.exists() else []
    return {entry["key"]: entry["why"] for entry in entries}


def report(pairs, options) -> tuple[str, int]:
    """Markdown, and how many survivors have no reason."""
    why = reasons()
    tried = [
        (mutation, entry) for mutation, entry in pairs if entry["verdict"] not in ("does not compile", "same code")
    ]
    survivors = [(mutation, entry) for mutation, entry in tried if entry["verdict"] != "killed"]
    open_ones = [mutation for mutation, _ in survivors if mutation.key() not in why]
    counted = collections.Counter(mutation.kind for mutation, _ in tried)
    living = collections.Counter(mutation.kind for mutation, _ in survivors)
    killers = collections.Counter(
        "Python" if entry["by"].endswith(".py") else "C++" for _, entry in tried if "by" in entry
    )
    verdicts = collections.Counter(entry["verdict"] for _, entry in pairs)
    hanging = sum(entry.get("how") == "hangs" for _, entry in tried)

    lines = [
        "# Mutations",
        "",
        f"{datetime.date.today()}, `python tools/mutate.py --count {options.count} --seed {options.seed}`, {os.cpu_count()} cores.",
        "",
    ]
    lines += [
        f"{len(tried)} mutations of {len({m.file for m, _ in tried})} files: {verdicts['killed']} killed ({killers['C++']} first by a C++ test, {killers['Python']} by a Python test, "
        f"{hanging} of all by time), {len(survivors)} survived, of these {len(survivors) - len(open_ones)} equivalent. Not counted: {verdicts['same code']} that the compiler makes the same code of, "
        f"{verdicts['does not compile']} that do not compile.",
        "",
        "| kind | tried | survived |",
        "|---|--:|--:|",
        *(f"| {kind} | {counted[kind]} | {living[kind]} |" for kind in counted),
        "",
        "## Survivors",
        "",
        "Of the tests that are not slow, as far as they reach the statement and the budget of seconds goes. What is *open* is a gap of the tests or changes nothing: not yet known.",
        "",
        "| where | mutation | why |",
        "|---|---|---|",
    ]
    for mutation, entry in survivors:
        change = f"`{shorten(mutation.before)}` → `{shorten(mutation.after)}`".replace("|", "\\|")
        reason = why.get(mutation.key(), f"**open**: {entry['verdict']}")
        lines.append(f"| {mutation.file.removeprefix('src/coulomb/')}:{mutation.line} | {change} | {reason} |")
    return "\n".join([*lines, ""]), len(open_ones)


def shorten(text: str, length: int = 70) -> str:
    said = squeeze(text)
    return said if len(said) <= length else said[: length - 1] + "…"


def find_files(root: Path, only: str) -> list[Path]:
    found = {path for glob in FILES for path in (root / "src" / "coulomb").glob(glob)}
    return sorted(path for path in found if re.search(only, str(path.relative_to(root))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=200, help="mutations that compile and change the code")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--only", default="", help="a regular expression for files")
    parser.add_argument("--jobs", type=int, default=1, help="mutations at once")
    parser.add_argument("--report", type=Path, help="Markdown; without it, none is written")
    parser.add_argument(
        "--budget", type=float, default=float("inf"), help="seconds of tests for each mutation; all of them without"
    )
    parser.add_argument("--again", action="store_true", help="judge those that survived before")
    parser.add_argument("--no-build", action="store_true", help="build/mutants is as it should be")
    parser.add_argument("--show", metavar="KEY", help="print one mutation and leave")
    options = parser.parse_args()

    if options.show:
        for path in find_files(ROOT, options.only):
            for mutation in candidates(str(path.relative_to(ROOT)), path.read_bytes()):
                if mutation.key() == options.show:
                    print(mutation.kind, describe(mutation), mutation.context, sep="\n")
        return 0
    if not options.no_build:
        prepare()
    pairs = draw_and_judge(find_files(SOURCE, options.only), options)
    text, still_open = report(pairs, options)
    print(text)
    if options.report:
        options.report.write_text(text)
    return 1 if still_open else 0


if __name__ == "__main__":
    sys.exit(main())
