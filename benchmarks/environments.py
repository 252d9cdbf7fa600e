"""Environments for reinforcement learning: control steps per second beside Gymnasium's of MuJoCo. `make bench` runs it.

python benchmarks/environments.py [--quick] [--ids HalfCheetah-v5,Go1Walk-v0] [--output FOLDER]

Vector environments that gymnasium.make_vec makes, under random actions, episodes that end included; on the cores that this process may
use. MuJoCo's run one after the other on one core ("sync"), and in processes ("async"). A second column of Coulomb's has one thread.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy is imported
    os.environ.setdefault(variable, "1")

import argparse
import warnings
from pathlib import Path
from time import perf_counter, process_time

import gymnasium
import numpy as np
import report

from coulomb.envs import IDS

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = 64
PROCESSES = 16  # environments of "async": a process each
STEPS = 40  # control steps of a block
COLUMNS = [
    "environment",
    "Coulomb",
    "1 thread",
    "MuJoCo sync",
    "MuJoCo async",
    "Coulomb/best MuJoCo",
    "µs",
    "MuJoCo's µs",
]
EXPLANATION = f"""\
Control steps per second of all environments together: {ENVIRONMENTS} of Coulomb's and of "sync", {PROCESSES} processes of "async"; random actions;
best of several blocks of {STEPS} control steps, in turns. The last two columns: processor time of a control step of one environment, of
Coulomb with one thread and of "sync", which a busy machine changes less."""


class Environments:
    """Vector environments in the middle of episodes, with actions drawn beforehand."""

    def __init__(self, name, count, **options):
        self.envs = gymnasium.make_vec(name, num_envs=count, **options)
        self.envs.reset(seed=0)
        self.envs.action_space.seed(0)
        self.actions = [self.envs.action_space.sample() for _ in range(STEPS)]
        self.rate, self.microseconds = 0.0, np.inf
        self._block()  # sizes the workspaces; episodes have come apart

    def _block(self):
        for actions in self.actions:
            self.envs.step(actions)

    def measure(self):
        start, start_processor = perf_counter(), process_time()
        self._block()
        seconds, processor = perf_counter() - start, process_time() - start_processor
        steps = STEPS * self.envs.num_envs
        self.rate = max(self.rate, steps / seconds)
        self.microseconds = min(self.microseconds, 1e6 * processor / steps)


def measure(name, repeats):
    runs = {
        "coulomb": Environments(name, ENVIRONMENTS),
        "coulomb_one_thread": Environments(name, ENVIRONMENTS, num_threads=1),
    }
    theirs = name.removeprefix("coulomb/")
    if theirs in gymnasium.registry:
        runs["mujoco_sync"] = Environments(theirs, ENVIRONMENTS, vectorization_mode="sync")
        runs["mujoco_async"] = Environments(theirs, PROCESSES, vectorization_mode="async")
    for _ in range(repeats):
        for run in runs.values():
            run.measure()
    for run in runs.values():
        run.envs.close()
    return {
        "environment": theirs,
        "rate": {key: run.rate for key, run in runs.items()},
        "us_processor": {key: run.microseconds for key, run in runs.items() if key != "mujoco_async"},
    }


def table(results):
    rows = []
    for r in results:
        rate, us = r["rate"], r["us_processor"]
        row = [r["environment"], f"{rate['coulomb']:.0f}", f"{rate['coulomb_one_thread']:.0f}"]
        if "mujoco_sync" in rate:
            best = max(rate["mujoco_sync"], rate["mujoco_async"])
            row += [f"{rate['mujoco_sync']:.0f}", f"{rate['mujoco_async']:.0f}", f"{rate['coulomb'] / best:.2f}"]
            row += [f"{us['coulomb_one_thread']:.1f}", f"{us['mujoco_sync']:.1f}"]
        else:
            row += ["", "", "", f"{us['coulomb_one_thread']:.1f}", ""]
        rows.append(row)
    return report.markdown(COLUMNS, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ids", type=lambda text: text.split(","), help="names without the prefix, with commas")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--output", type=Path, default=HERE / "results", help="folder of the result files")
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    results = []
    for name in IDS:
        if options.ids is not None and name.removeprefix("coulomb/") not in options.ids:
            continue
        try:
            results.append(measure(name, repeats=3 if options.quick else 10))
        except RuntimeError as error:
            print(f"left out: {name}: {error}")
            continue
        print(table(results[-1:])[-1], flush=True)

    env = report.environment(None)
    lines = [*table(results), "", EXPLANATION]
    print("", *lines, sep="\n")
    data = {"unit": "control steps per second", "results": results}
    title = "Environments, beside Gymnasium's of MuJoCo"
    paths = report.write_study(options.output, "environments", title, env, lines, data)
    print(*(f"written: {path}" for path in paths), sep="\n")


if __name__ == "__main__":
    main()
