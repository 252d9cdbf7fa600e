"""Batches forward and backward beside MuJoCo's batches forward alone. `make bench` runs it.

python benchmarks/batches.py [--quick] [--robots go1,atlas] [--models FOLDER] [--output FOLDER]

Rollouts of 50 steps from the recorded states under random controls, with the gradient of a weighted sum of all velocities
by the initial states and controls; mujoco.rollout takes the same steps from the same states. Both use one thread, then two.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy is imported
    os.environ.setdefault(variable, "1")

import argparse
from pathlib import Path
from time import perf_counter, process_time

import mujoco
import mujoco.rollout
import numpy as np
import report
from robots import find_robots
from trajectories import random_controls

import coulomb

HERE = Path(__file__).resolve().parent
MODELS = Path(os.environ.get("COULOMB_BENCH_MODELS") or HERE.parent.parent / "shared" / "models")
ROBOTS = ["half_cheetah", "humanoid", "ur5", "hopper"]
TIMESTEP = 2e-3  # s
STEPS = 50
ENVIRONMENTS = 120
ALLOWED = 1.3  # forward and backward, of MuJoCo's forward
COLUMNS = [
    "robot",
    "threads",
    "MuJoCo",
    "forward",
    "forward for vjp",
    "vjp",
    "forward/MuJoCo",
    "both/MuJoCo",
    "unsolved",
]
EXPLANATION = f"""\
µs per step and environment, of batches of {ENVIRONMENTS} environments and {STEPS} steps of 2 ms, called from Python; best of several, in turns.
forward: without derivatives; both: the forward pass that keeps what the vjp needs, and the vjp (initial states, controls).
of processor time: both/MuJoCo by the processor time of all threads, which a busy machine does not change.
MuJoCo: mujoco.rollout, Newton, Euler, pyramidal cone. unsolved: share of the steps that were not solved as posed."""


class MujocoBatch:
    def __init__(self, robot, q, v, controls, threads):
        model = robot.mujoco_model
        model.opt.solver, model.opt.integrator = mujoco.mjtSolver.mjSOL_NEWTON, mujoco.mjtIntegrator.mjINT_EULER
        model.opt.cone, model.opt.timestep = mujoco.mjtCone.mjCONE_PYRAMIDAL, TIMESTEP
        self.model, self.controls = model, controls
        self.data = [mujoco.MjData(model) for _ in range(threads)]
        self.pool = mujoco.rollout.Rollout(nthread=threads if threads > 1 else 0)

        # The full physics state: time, q, v, and actuators' states if there are any.
        kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
        self.states = np.zeros((len(q), mujoco.mj_stateSize(model, kind)))
        self.states[:, 1 : 1 + model.nq] = q
        self.states[:, 1 + model.nq : 1 + model.nq + model.nv] = v

    def forward(self):
        self.pool.rollout(self.model, self.data, self.states, self.controls)


class CoulombBatch:
    def __init__(self, robot, q, v, controls, threads):
        self.batch = coulomb.BatchSimulator(robot.model, num_envs=len(q), num_threads=threads, timestep=TIMESTEP)
        self.inputs = q, v, controls
        self.weights = np.random.default_rng(1).normal(size=(len(q), STEPS + 1, robot.model.nv))
        self.rollout = None

    def forward_alone(self):
        self.rollout = self.batch.rollout(*self.inputs, derivatives=False)

    def forward(self):
        self.rollout = self.batch.rollout(*self.inputs)

    def backward(self):
        self.rollout.vjp(dV=self.weights)


def measure(robot, threads, repeats):
    """µs per step and environment of every call: the best of the repeats, which take turns."""
    picked = np.arange(ENVIRONMENTS) % len(robot.q)
    q, v = robot.q[picked], robot.v[picked]
    one = random_controls(robot.mujoco_model, STEPS * ENVIRONMENTS, share=0.1, held=10)
    controls = one.reshape(ENVIRONMENTS, STEPS, -1)
    theirs = MujocoBatch(robot, q, v, controls, threads)
    ours = CoulombBatch(robot, q, v, controls, threads)
    calls = {
        "mujoco": theirs.forward,
        "forward_alone": ours.forward_alone,
        "forward": ours.forward,
        "backward": ours.backward,  # of the rollout just made
    }
    best = {clock: dict.fromkeys(calls, np.inf) for clock in (perf_counter, process_time)}
    for _ in range(repeats + 1):  # the first sizes the workspaces, and is never the best
        for name, call in calls.items():
            start = [clock() for clock in best]
            call()
            for clock, before in zip(best, start):
                best[clock][name] = min(best[clock][name], clock() - before)
    us, us_processor = (
        {name: 1e6 * time / (STEPS * ENVIRONMENTS) for name, time in times.items()} for times in best.values()
    )
    return {
        "robot": robot.name,
        "threads": threads,
        "unsolved": 1 - float(ours.rollout.converged.mean()),
        "us": us,
        "us_processor": us_processor,
    }


def ratio(us):
    return (us["forward"] + us["backward"]) / us["mujoco"]


def table(results):
    rows = []
    for r in results:
        us = r["us"]
        row = [r["robot"], str(r["threads"])]
        row += [f"{us[name]:.1f}" for name in ("mujoco", "forward_alone", "forward", "backward")]
        row += [f"{us['forward_alone'] / us['mujoco']:.2f}", f"{ratio(us):.2f}"]
        row += [f"{ratio(r['us_processor']):.2f}", f"{r['unsolved']:.2g}"]
        rows.append(row)
    return report.markdown(COLUMNS, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    models_help = "folder of <robot>/model.xml and states.npz (COULOMB_BENCH_MODELS); without it, packages' robots"
    parser.add_argument("--models", type=Path, default=MODELS, help=models_help)
    parser.add_argument("--robots", type=lambda text: text.split(","), help="names, with commas")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--output", type=Path, default=HERE / "results", help="folder of the result files")
    options = parser.parse_args()

    loaders, missing = find_robots(options.models, options.robots)
    for message in missing:
        print("left out:", message)
    results = []
    for name, load in loaders:
        if options.robots is None and name not in ROBOTS:
            continue
        robot = load()
        for threads in (1, 2):
            results.append(measure(robot, threads, repeats=3 if options.quick else 10))
            print(table(results[-1:])[-1], flush=True)

    criteria = report.Criteria()
    for r in results:
        name = f"{r['robot']}, threads {r['threads']}: both, of MuJoCo's forward"
        criteria.at_most(name, ratio(r["us"]), ALLOWED)
        criteria.at_most(f"{name}, processor time", ratio(r["us_processor"]), ALLOWED)
    env = report.environment(None)
    lines = [*table(results), "", EXPLANATION, "", *criteria.lines()]
    print("", *lines, sep="\n")
    data = {"unit": "us", "results": results, "criteria": criteria.entries}
    title = "Batches forward and backward, beside MuJoCo's forward"
    paths = report.write_study(options.output, "batches", title, env, lines, data)
    print(*(f"written: {path}" for path in paths), sep="\n")


if __name__ == "__main__":
    main()
