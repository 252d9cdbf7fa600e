"""The rate of model-predictive control beside an iteration whose models are MuJoCo's finite differences. `make bench` runs it.

python benchmarks/control.py [--quick] [--output FOLDER]

Go1, a hopper and a pole on a cart do their tasks (benchmarks/control_scenarios.py). Every few ticks a plan is kept, and MuJoCo rolls out the same
controls from the same state and linearises its own rollout, on the model that coulomb.mjcf_export writes: at our states its soft contacts would
not touch.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy is imported
    os.environ.setdefault(variable, "1")

import argparse
from pathlib import Path
from time import process_time

import control_scenarios as scenarios
import mujoco
import numpy as np
import report
from timing import FD_STEP, pin_to_one_core

from coulomb.mjcf_export import to_mjcf

HERE = Path(__file__).resolve().parent
EVERY = 10  # ticks
COLUMNS = ["", "knots", "steps", "models from", "models", "Riccati", "a rollout", "rollouts", "an iteration", "Hz"]
EXPLANATION = """\
ms of processor time on one core, means over the plans of a run in closed loop, one iteration a tick. Go1 walks at 0.5 m/s and is pushed once. The hopper, of the sizes, masses and
knots of [Kurtz2025] (published: 100 Hz, four threads, another cost), hops half a metre. The cart's pole swings up and is pushed. All arrive, or this fails.
models: steps, A, B and costs of all knots. MuJoCo: mjd_transitionFD, one-sided, Newton, Euler, along its rollout of the same
controls; its models hold no costs. Its iteration: its models and rollouts, our Riccati pass, as many rollouts. Other work on the machine makes all numbers larger, in proportion."""


def time_mujoco(model, timestep, substeps, plans):
    """Mean seconds of the models of a plan, and of a rollout."""
    mj = mujoco.MjModel.from_xml_string(to_mjcf(model, timestep=timestep))
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


def measure(scenario):
    plans, seconds, rollouts = scenarios.run(scenario, EVERY)
    models, riccati, search = seconds.mean(axis=0)
    count = float(rollouts.mean())
    ours = {"models": models, "riccati": riccati, "rollout": search / count}
    models, rollout = time_mujoco(scenario.model, scenario.timestep, scenario.substeps, plans)
    theirs = {**ours, "models": models, "rollout": rollout}
    points = []
    for name, parts in (("Coulomb", ours), ("MuJoCo", theirs)):
        total = parts["models"] + parts["riccati"] + count * parts["rollout"]
        ms = {key: 1e3 * value for key, value in parts.items()}
        point = {"robot": scenario.name, "timestep": scenario.timestep, "substeps": scenario.substeps}
        point["knots"] = scenario.mpc.solver.horizon
        points.append({**point, "from": name, **ms, "rollouts": count, "hz": 1 / total})
    return points


def table(points):
    rows = []
    for p in points:
        steps = f"{1e3 * p['timestep']:g} ms x {p['substeps']}"
        row = [p["robot"], str(p["knots"]), steps, p["from"]]
        row += [f"{p[key]:.2f}" for key in ("models", "riccati", "rollout")]
        rows.append([*row, f"{p['rollouts']:.1f}", f"{1e3 / p['hz']:.1f}", f"{p['hz']:.0f}"])
    return report.markdown(COLUMNS, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="Go1 walks 0.6 s instead of 3 s")
    parser.add_argument("--output", type=Path, default=HERE / "results", help="folder of the result files")
    options = parser.parse_args()
    core = pin_to_one_core()
    points = []
    for scenario in (scenarios.go1(0.0025), scenarios.go1(0.01), scenarios.hopper(), scenarios.cartpole()):
        if options.quick and scenario.quick_ticks:
            scenario.ticks = scenario.quick_ticks
        points += measure(scenario)

    env = report.environment(core)
    lines = [*table(points), "", EXPLANATION]
    print(*lines, sep="\n")
    data = {"unit": "ms", "quick": options.quick, "results": points}
    title = "Model-predictive control, beside MuJoCo's finite differences"
    print(*(f"written: {p}" for p in report.write_study(options.output, "control", title, env, lines, data)), sep="\n")


if __name__ == "__main__":
    main()
