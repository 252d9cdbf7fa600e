"""The rate of model-predictive control of Go1, beside an iteration whose models are MuJoCo's finite differences. `make bench` runs it.

python benchmarks/control.py [--quick] [--output FOLDER]

Go1 walks by examples/applications/mpc_go1.py. Every few ticks its plan, 35 knots, is kept, and MuJoCo rolls out the same controls from the same state
and linearises its own rollout, on the model that coulomb.mjcf_export writes: at our states its soft contacts would not touch.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy is imported
    os.environ.setdefault(variable, "1")

import argparse
import sys
from pathlib import Path
from time import process_time

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "examples" / "applications"))

import mujoco
import numpy as np
import report
from mpc_go1 import KNOTS, STANDING, TICK, go1, planner, standing
from timing import FD_STEP, pin_to_one_core

import coulomb
from coulomb.control import Mpc
from coulomb.mjcf_export import to_mjcf

SUBSTEPS = (4, 1)  # of a knot
PUSH = 50, (0, 0.8)  # tick, m/s
EVERY = 10  # ticks
COLUMNS = ["steps", "models from", "models", "Riccati", "a rollout", "rollouts", "an iteration", "Hz"]
EXPLANATION = """\
ms of processor time on one core, means over the plans of a walk of Go1 at 0.5 m/s that is pushed once; 35 knots of 10 ms, one iteration a tick.
models: steps, A, B and costs of all knots. MuJoCo: mjd_transitionFD, one-sided, Newton, Euler, along its rollout of the same
controls; its models hold no costs. Its iteration: its models and rollouts, our Riccati pass, as many rollouts. Other work on the machine makes all numbers larger, in proportion."""


def walk(model, substeps, ticks):
    """Plans (Q, U) on the way, seconds of the parts of ticks, and rollouts a tick."""
    mpc = Mpc(planner(model, TICK / substeps), start_iterations=5, roll=False, step_lengths=6, clock="processor")
    robot = coulomb.Simulator(model)
    q, v = standing(model)
    plans, seconds, rollouts = [], [], []
    for tick in range(ticks):
        if tick == PUSH[0]:
            v = v + np.r_[PUSH[1], np.zeros(model.nv - 2)]
        u, _ = mpc.step(q, v)
        result = mpc.result
        if tick > 0 and len(result.steps):
            seconds.append(list(result.timings.values()))
            length = result.steps[-1]
            rollouts.append(6 if length == 0 else 1 - np.log2(length))
        if tick > 0 and tick % EVERY == 0:
            plans.append((result.Q, result.V, result.U))
        for _ in range(round(TICK / model.timestep)):
            q, v = robot.step(q, v, u)
    assert q[2] > 0.2, "Go1 fell"
    models, riccati, search = np.mean(seconds, axis=0)
    count = float(np.mean(rollouts))
    return plans, {"models": models, "riccati": riccati, "rollout": search / count, "rollouts": count}


def time_mujoco(model, substeps, plans):
    """Mean seconds of the models of a plan, and of a rollout."""
    mj = mujoco.MjModel.from_xml_string(to_mjcf(model, timestep=TICK / substeps))
    data = mujoco.MjData(mj)
    A, B = np.zeros((2 * mj.nv, 2 * mj.nv)), np.zeros((2 * mj.nv, mj.nu))

    def begin(q, v):
        mujoco.mj_resetData(mj, data)
        data.qpos[:], data.qvel[:] = q, v

    def models(Q, V, U):
        begin(Q[0], V[0])
        for u in U:
            data.ctrl[:] = u
            for _ in range(substeps):
                mujoco.mjd_transitionFD(mj, data, FD_STEP, False, A, B, None, None)
                mujoco.mj_step(mj, data)

    def rollout(Q, V, U):
        begin(Q[0], V[0])
        for u in U:
            data.ctrl[:] = u
            for _ in range(substeps):
                mujoco.mj_step(mj, data)

    def mean(work):
        before = process_time()
        for plan in plans:
            work(*plan)
        return (process_time() - before) / len(plans)

    rollout(*plans[0])
    return mean(models), mean(rollout)


def measure(model, substeps, ticks):
    plans, ours = walk(model, substeps, ticks)
    models, rollout = time_mujoco(model, substeps, plans)
    theirs = {**ours, "models": models, "rollout": rollout}
    points = []
    for name, seconds in (("Coulomb", ours), ("MuJoCo", theirs)):
        total = seconds["models"] + seconds["riccati"] + seconds["rollouts"] * seconds["rollout"]
        ms = {key: 1e3 * value for key, value in seconds.items() if key != "rollouts"}
        points.append({"substeps": substeps, "from": name, **ms, "rollouts": seconds["rollouts"], "hz": 1 / total})
    return points


def table(points):
    rows = []
    for p in points:
        steps = f"{1e3 * TICK / p['substeps']:g} ms x {p['substeps']}"
        row = [steps, p["from"], *(f"{p[key]:.2f}" for key in ("models", "riccati", "rollout"))]
        rows.append([*row, f"{p['rollouts']:.1f}", f"{1e3 / p['hz']:.1f}", f"{p['hz']:.0f}"])
    return report.markdown(COLUMNS, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a walk of 0.6 s instead of 3 s")
    parser.add_argument("--output", type=Path, default=HERE / "results", help="folder of the result files")
    options = parser.parse_args()
    core = pin_to_one_core()
    model = go1()
    assert len(STANDING) == model.nu and KNOTS == 35
    points = []
    for substeps in SUBSTEPS:
        points += measure(model, substeps, 60 if options.quick else 300)

    env = report.environment(core)
    lines = [*table(points), "", EXPLANATION]
    print(*lines, sep="\n")
    data = {"unit": "ms", "quick": options.quick, "results": points}
    title = "Model-predictive control of Go1, beside MuJoCo's finite differences"
    print(*(f"written: {p}" for p in report.write_study(options.output, "control", title, env, lines, data)), sep="\n")


if __name__ == "__main__":
    main()
