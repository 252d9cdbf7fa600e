"""Python tests with the module that the preset "fuzz" builds: by clang, with address and undefined-behaviour sanitizers (tools/fuzz.py).

python tools/sanitized_tests.py [--jobs 2] [TEST ...]

Without names: CORE, what passes arrays, files and threads through the bindings. Every file runs in a process of its own, into which the sanitizer's runtime is
preloaded. Leaks are not looked for: Python keeps memory to its end. Exit code 1: a test failed, or a sanitizer spoke.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "fuzz"
PACKAGE = BUILD / "package"
LOG = BUILD / "sanitizer.log"  # with the process appended: what a sanitizer says, whoever keeps its words
LONGEST = 600  # s, of one file
LEFT_OUT = "not fit_into_memory"  # a bound of addresses stops the sanitizer itself
CORE = [
    "tests/python/test_batch.py",
    "tests/python/test_batch_rollout.py",
    "tests/python/test_contact_problem.py",
    "tests/python/test_control_step.py",
    "tests/python/test_interface.py",
    "tests/python/test_load.py",
    "tests/python/test_rollout.py",
    "tests/python/test_saved.py",
    "tests/python/test_simulator_calls.py",
    "tests/python/test_sparse_derivatives.py",
    "tests/python/test_substeps.py",
    "tests/robustness/test_bad_input.py",
    "tests/robustness/test_damaged_files.py",
    "tests/robustness/test_overflow.py",
    "tests/robustness/test_wrong_calls.py",
]


def make_package():
    """The package as Python finds it: its files, and the sanitized module beside them."""
    modules = list(BUILD.glob("_core*.so"))
    if not modules:
        sys.exit("sanitized_tests: build/fuzz has no module; python tools/fuzz.py builds it")
    shutil.rmtree(PACKAGE, ignore_errors=True)
    shutil.copytree(ROOT / "python" / "coulomb", PACKAGE / "coulomb")
    for module in modules:
        (PACKAGE / "coulomb" / module.name).symlink_to(module)


def runtime():
    """The libraries to preload: the runtime of the compiler that built the module, and of C++, which has to be there before exceptions are thrown."""
    cache = (BUILD / "CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, re.MULTILINE).group(1)
    found = []
    for name in (f"libclang_rt.asan-{os.uname().machine}.so", "libstdc++.so.6"):
        said = subprocess.run([compiler, "-print-file-name=" + name], capture_output=True, text=True, check=True)
        path = Path(said.stdout.strip())
        if not path.is_file():
            sys.exit(f"sanitized_tests: {compiler} has no {name}; on Debian or Ubuntu: apt install libclang-rt-16-dev")
        found.append(str(path))
    return " ".join(found)


def run(test, preloaded):
    """(test, seconds, exit code, what was said)."""
    environment = dict(os.environ, LD_PRELOAD=preloaded, PYTHONPATH=str(PACKAGE), PYTHONDONTWRITEBYTECODE="1")
    environment["ASAN_OPTIONS"] = f"detect_leaks=0:log_path={LOG}"
    options = ["-q", "-m", "not slow", "-k", LEFT_OUT, "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", *options, test]
    begin = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace", timeout=LONGEST
        )
        code, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        code, said = 1, f"not done after {LONGEST} s"
    return test, time.perf_counter() - begin, code, said


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tests", nargs="*", default=CORE)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="files at once")
    options = parser.parse_args()
    make_package()
    preloaded = runtime()
    for path in BUILD.glob(LOG.name + ".*"):
        path.unlink()

    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for test, seconds, code, said in pool.map(lambda test: run(test, preloaded), options.tests):
            last = said.strip().splitlines()[-1] if code == 0 else f"code {code}"
            print(f"{seconds:6.1f} s  {test}: {last}", flush=True)
            failed += code != 0
            if code:
                print(said[-6000:])
    said = sorted(BUILD.glob(LOG.name + ".*"))
    for path in said:
        print(path.read_text(errors="replace")[:3000])
    return bool(failed or said)


if __name__ == "__main__":
    sys.exit(main())
