"""What steps that are split at impacts cost where nothing is fast: beside plain steps, on the same states. `make bench` runs it.

python benchmarks/impacts.py [--quick] [--models FOLDER] [--output FOLDER]

A ball in slow flight, a stack of five boxes, and the benchmark's robots after they have come to lie; fifty successive states of each. Both
simulators step from every one of them, in turns, each with the memory of its own step before.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy is imported
    os.environ.setdefault(variable, "1")

import argparse
import datetime
from pathlib import Path
from time import thread_time_ns

import numpy as np
from robots import find_robots

import coulomb

HERE = Path(__file__).resolve().parent
MODELS = Path(os.environ.get("COULOMB_BENCH_MODELS") or HERE.parent.parent / "shared" / "models")
STATES = 50
SETTLING = 1500  # steps


def ball():
    scene = coulomb.Scene()
    scene.add_ground()
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 2))
    return scene.build()


def stack():
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    for i in range(5):
        scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.1 + 0.2 * i), friction=0.5)
    return scene.build()


def rest(model, q, v, settling):
    """States of successive plain steps, after `settling` of them."""
    sim, states = coulomb.Simulator(model), []
    for k in range(settling + STATES):
        if k >= settling:
            states.append((q, v))
        q, v = sim.step(q, v)
    return states


def measure(model, states, rounds):
    """us per step, step and Jacobian, step and vjp: plain and split, the mean over states of the best of `rounds`."""
    w = np.random.default_rng(0).normal(size=(2, model.nv))
    after = (lambda sim: None, lambda sim: sim.derivatives(), lambda sim: sim.vjp(*w))
    sims = [coulomb.Simulator(model, continuous_collision=split) for split in (False, True)]
    times = np.full((len(after), 2, len(states)), np.inf)
    for _ in range(rounds):
        for k, ask in enumerate(after):
            for i, (q, v) in enumerate(states):
                for split, sim in enumerate(sims):
                    start = thread_time_ns()
                    sim.step(q, v)
                    ask(sim)
                    times[k, split, i] = min(times[k, split, i], thread_time_ns() - start)
    return 1e-3 * times.mean(axis=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--models", type=Path, default=MODELS, help="folder of <robot>/model.xml and states.npz")
    parser.add_argument("--output", type=Path, default=HERE / "results", help="folder of the result file")
    options = parser.parse_args()
    rounds = 5 if options.quick else 20
    scenes = [("ball in flight", ball(), 0), ("stack of five boxes", stack(), SETTLING)]
    scenes = [(name, model, *model.neutral(), settling) for name, model, settling in scenes]
    for name, load in find_robots(options.models, None)[0]:
        robot = load()
        scenes.append((f"{name} at rest", robot.model, robot.q[0], robot.v[0], SETTLING))
    lines = ["| scene | step | step and Jacobian | step and `vjp` |", "|---|---|---|---|"]
    print(*lines, sep="\n")
    for name, model, q, v, settling in scenes:
        cells = [f"{a:.1f}, {b:.1f} ({b / a:.2f})" for a, b in measure(model, rest(model, q, v, settling), rounds)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    if options.quick:
        return
    text = f"# Split steps where nothing is fast: microseconds, plain and split (ratio)\n\n{datetime.date.today()}, coulomb {coulomb.__version__}, one core, called from Python; best of {rounds}.\n\n"
    (options.output / "impacts.md").write_text(text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
