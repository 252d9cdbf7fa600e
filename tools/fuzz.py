"""Runs the fuzzers of tests/fuzz, built by clang with address and undefined-behaviour sanitizers.

python tools/fuzz.py [--seconds 60] [--jobs 2] [--only scenes urdf] [--report FILE] [--keep 40]

Each starts from tests/fuzz/corpus/<thing> and what earlier runs found (build/fuzz/found). An input that breaks a promise, crashes, hangs or leaks is kept in
build/fuzz/broken, and the exit code is 1. --keep: so many of the inputs found, those that reach most, go into tests/fuzz/corpus.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "fuzz"
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
COMPILERS = ["clang++", *(f"clang++-{version}" for version in range(21, 13, -1))]
LONGEST = 30  # s, of one input: longer is a hang
LARGEST = 200  # bytes, of an input that is kept; texts may be as long as ten of them
NAMES = sorted(path.stem.removeprefix("fuzz_") for path in (ROOT / "tests" / "fuzz").glob("fuzz_*.cpp"))


def build(jobs):
    """The preset "fuzz"; ends the program where there is no clang."""
    compiler = next((name for name in COMPILERS if shutil.which(name)), None)
    if compiler is None:
        sys.exit("fuzz: no clang++; on Debian or Ubuntu: apt install clang-16 libclang-rt-16-dev")
    python = ["-DPython_EXECUTABLE=" + sys.executable, "-DCMAKE_CXX_COMPILER=" + compiler]
    subprocess.run(["cmake", "--preset", "fuzz", *python, "--log-level=NOTICE"], cwd=ROOT, check=True)
    subprocess.run(["cmake", "--build", str(BUILD), "--parallel", str(jobs)], cwd=ROOT, check=True)


def fuzz(name, seconds):
    """A row of the report: executions, inputs kept, what broke."""
    found, broken = BUILD / "found" / name, BUILD / "broken" / name
    for folder in (found, broken):
        folder.mkdir(parents=True, exist_ok=True)
    before = set(broken.iterdir())
    options = [
        f"-max_total_time={seconds}",
        f"-timeout={LONGEST}",
        f"-report_slow_units={LONGEST}",
        "-rss_limit_mb=4000",
        f"-artifact_prefix={broken}/",
    ]
    options += [
        "-print_final_stats=1",
        "-verbosity=1",
        f"-max_len={LARGEST * (10 if name in ('urdf', 'archives') else 1)}",
    ]
    given = [str(path) for path in (found, CORPUS / name) if path.is_dir()]
    done = subprocess.run(
        [str(BUILD / "fuzz" / f"fuzz_{name}"), *options, *given], capture_output=True, text=True, errors="replace"
    )
    (BUILD / f"{name}.log").write_text(done.stderr)

    executions = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
    reached = re.findall(r"cov: (\d+) ft: (\d+)", done.stderr)
    return {
        "name": name,
        "executions": int(executions.group(1)) if executions else 0,
        "edges": int(reached[-1][0]) if reached else 0,
        "inputs": len(list(found.iterdir())),
        "broken": sorted(set(broken.iterdir()) - before),
        "code": done.returncode,
        "said": [line for line in done.stderr.splitlines() if re.search(r"promise broken|ERROR: |runtime error", line)],
    }


def keep(name, count):
    """The corpus becomes the inputs that reach all that is reached, the smallest first, and of them so many."""
    merged = BUILD / "merged" / name
    shutil.rmtree(merged, ignore_errors=True)
    merged.mkdir(parents=True)
    given = [str(CORPUS / name), str(BUILD / "found" / name)]
    program = str(BUILD / "fuzz" / f"fuzz_{name}")
    subprocess.run([program, "-merge=1", f"-timeout={LONGEST}", str(merged), *given], capture_output=True, check=True)
    files = sorted(merged.iterdir(), key=lambda path: (path.stat().st_size, path.name))
    for path in files[:: max(1, len(files) // count)][:count]:
        shutil.copy(path, CORPUS / name / path.name[:12])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=int, default=60, help="of each fuzzer")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="fuzzers at once")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--report", type=Path, help="Markdown; without it, none is written")
    parser.add_argument("--keep", type=int, default=0, help="inputs that go into tests/fuzz/corpus, of each")
    parser.add_argument("--no-build", action="store_true", help="take the fuzzers as they are")
    options = parser.parse_args()
    if not options.no_build:
        build(options.jobs)
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda name: fuzz(name, options.seconds), options.only))
    for name in options.only if options.keep else ():
        keep(name, options.keep)

    lines = ["| fuzzer | seconds | inputs tried | edges reached | inputs kept | broken |", "|---|--:|--:|--:|--:|--:|"]
    for row in rows:
        numbers = [options.seconds, row["executions"], row["edges"], row["inputs"], len(row["broken"])]
        lines.append(f"| {row['name']} | " + " | ".join(str(number) for number in numbers) + " |")
    print(*lines, sep="\n")
    if options.report:
        options.report.write_text("\n".join(["# Fuzzing", "", f"{datetime.date.today()}.", "", *lines, ""]))
    failed = [row for row in rows if row["code"]]
    for row in failed:
        print(f"{row['name']}: code {row['code']}", *row["broken"], *row["said"][:3], sep="\n  ")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
