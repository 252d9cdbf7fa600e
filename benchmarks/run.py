"""Times Coulomb beside MuJoCo: one process, the same states, one core. `make bench` runs it.

python benchmarks/run.py [--quick] [--robots go1,atlas] [--models FOLDER] [--output FOLDER]
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy is imported
    os.environ.setdefault(variable, "1")

import argparse
import datetime
import gc
import sys
from pathlib import Path

import nimble_table
import report
from robots import find_robots
from timing import pin_to_one_core, time_robot

HERE = Path(__file__).resolve().parent
MODELS = Path(os.environ.get("COULOMB_BENCH_MODELS") or HERE.parent.parent / "shared" / "models")


def arguments():
    parser = argparse.ArgumentParser(description="Coulomb's step and derivatives beside MuJoCo's step.")
    models_help = "folder of <robot>/model.xml and states.npz (COULOMB_BENCH_MODELS); without it, packages' robots"
    parser.add_argument("--models", type=Path, default=MODELS, help=models_help)
    parser.add_argument("--robots", type=lambda text: text.split(","), help="names, with commas; default: all")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--output", type=Path, default=HERE / "results", help="folder of the result files")
    return parser.parse_args()


def progress(name):
    """A counter on the terminal; silent elsewhere."""

    def show(done, total):
        if sys.stderr.isatty():
            print(f"\r{name}: state {done} of {total} ", end="\n" if done == total else "", file=sys.stderr, flush=True)

    return show


def main():
    options = arguments()
    core = pin_to_one_core()
    robots, missing = find_robots(options.models, options.robots)
    for message in missing:
        print("left out:", message)
    if not robots:
        sys.exit("no robot to time")
    rounds, repeats = (2, 5) if options.quick else (3, 15)
    results = {}
    for name, load in robots:
        robot = load()
        gc.collect()
        gc.disable()
        results[name] = time_robot(robot, rounds, repeats, progress(name))
        gc.enable()
    env = report.environment(core)
    print(*report.table(results), "", report.EXPLANATION, *report.notes(results), sep="\n")
    nimble = {} if options.robots else nimble_table.measure(options.models, options.quick)[0]
    section = nimble_table.section(nimble)
    print(*section[1], f"{env['cpu']}; {env['compiler']}", sep="\n")
    date = datetime.date.today().isoformat()
    for path in report.write(options.output, date, options.quick, env, results, section):
        print("written:", path)


if __name__ == "__main__":
    main()
