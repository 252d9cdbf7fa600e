"""Go1 walks and is pushed: which models plan better, Coulomb's exact derivatives or MuJoCo's finite differences, on either simulator? `make bench` runs it.

python benchmarks/pushes.py [--quick] [--output FOLDER]

Planner and plant are apart. The plants: Coulomb, and MuJoCo on the model that coulomb.mjcf_export writes, both at 2.5 ms. The task and its costs are
those of examples/applications/mpc_go1.py: 35 knots of 10 ms, one iteration a tick. A run is 1.4 s with one push at 0.5 s.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy is imported
    os.environ.setdefault(variable, "1")

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "examples" / "applications"))

import numpy as np
import report
from mpc_go1 import HEIGHT, KNOTS, REACH, STANDING, TICK, TIMESTEP, add_costs, go1, planner, standing
from python_ilqr import Costs, CoulombDynamics, MujocoDynamics, PythonMpc
from timing import pin_to_one_core

from coulomb.control import Mpc

TICKS, PUSHED = 140, 50  # four horizons
PUSHES = ((0, 0.8), (0, -1.2), (1.0, 0), (-1.2, 0))  # m/s forward and to the left
START_ITERATIONS = 5
START = np.tile(STANDING, (KNOTS, 1))
LIMITS = STANDING - REACH, STANDING + REACH
EXPLANATION = """\
Costs: of the states and controls that were realised, {ticks} ticks, sums over the four runs and each of them; pushes {pushes} m/s.
survived: runs whose trunk is above {height} m at the end, and never on the ground. vx: forward, mean over the runs, of the 0.2 s before the push and of the last 0.4 s.
Coulomb: coulomb.control, exact derivatives, roll=False. Python: the same iLQR in NumPy (benchmarks/python_ilqr.py), with rollouts in place of gaps
and regularisation that is raised within a tick; MuJoCo: mjd_transitionFD, one-sided, Newton, Euler. Four runs each, and walking is chaotic: small differences mean nothing."""


def coulomb_mpc(model, timestep, iterations=1):
    solver, _ = planner(model, timestep)
    mpc = Mpc(solver, iterations, START_ITERATIONS, roll=False, step_lengths=6)
    mpc.reset(START)
    return mpc


def python_mpc(model, dynamics):
    costs = Costs(planner(model)[0])
    add_costs(costs, model)
    return PythonMpc(model, dynamics, costs, LIMITS, START, START_ITERATIONS)


def planners(model, quick):
    """Functions that make one, by (models from, steps of a knot)."""

    def mujoco_mpc(substeps):
        return lambda: python_mpc(model, MujocoDynamics(model, TICK / substeps, substeps))

    def python_coulomb():
        return python_mpc(model, CoulombDynamics(model, TIMESTEP, 4, patches=False))

    table = {
        ("Coulomb", "2.5 ms x 4"): lambda: coulomb_mpc(model, TIMESTEP),
        ("Coulomb", "10 ms x 1"): lambda: coulomb_mpc(model, TICK),
        ("Coulomb, 4 iterations", "10 ms x 1"): lambda: coulomb_mpc(model, TICK, iterations=4),
        ("Coulomb, Python", "2.5 ms x 4"): python_coulomb,
        ("MuJoCo, Python", "2.5 ms x 4"): mujoco_mpc(4),
        ("MuJoCo, Python", "5 ms x 2"): mujoco_mpc(2),
        ("MuJoCo, Python", "10 ms x 1"): mujoco_mpc(1),
    }
    if quick:
        return {key: table[key] for key in (("Coulomb", "10 ms x 1"), ("MuJoCo, Python", "10 ms x 1"))}
    return table


def plants(model):
    substeps = round(TICK / TIMESTEP)
    return {
        "Coulomb": CoulombDynamics(model, TIMESTEP, substeps),
        "MuJoCo": MujocoDynamics(model, TIMESTEP, substeps),
    }


def run(model, mpc, plant, push, ticks, pushed):
    """Q, V, U of the plant."""
    q, v = standing(model)
    plant.begin(q, v)
    Q, V, U = [q], [v], []
    for tick in range(ticks):
        if tick == pushed:
            plant.push(np.array(push))
            v = v + np.r_[push, np.zeros(model.nv - 2)]
        u, _ = mpc.step(q, v)
        q, v = plant.knot(u)
        Q.append(q)
        V.append(v)
        U.append(u)
    return np.array(Q), np.array(V), np.array(U)


def judge(model, make, plant, pushes, ticks, pushed):
    """The numbers of a row."""
    scale, _ = planner(model, knots=ticks)
    costs, survived, before, after = [], 0, [], []
    for push in pushes:
        Q, V, U = run(model, make(), plant, push, ticks, pushed)
        costs.append(scale.cost(Q, V, U)[0])
        survived += bool(Q[:, 2].min() > 0.12 and Q[-1, 2] > 0.8 * HEIGHT)
        before.append(V[max(pushed - 20, 0) : pushed, 0].mean())
        after.append(V[-40:, 0].mean())
    return {
        "costs": costs,
        "survived": survived,
        "before": float(np.mean(before)),
        "after": float(np.mean(after)),
    }


def table(rows):
    columns = ["models from", "steps", "plant", "cost", "each", "survived", "vx before", "after"]
    lines = []
    for r in rows:
        each = " ".join(f"{c:.0f}" for c in r["costs"])
        line = [r["from"], r["steps"], r["plant"], f"{sum(r['costs']):.0f}", each, f"{r['survived']}/{len(r['costs'])}"]
        lines.append([*line, f"{r['before']:.2f}", f"{r['after']:.2f}"])
    return report.markdown(columns, lines)


def check(rows):
    """On either plant coulomb.control's best is at or below MuJoCo's best."""
    criteria = report.Criteria()
    for plant in ("Coulomb", "MuJoCo"):
        best = {
            source: min(sum(r["costs"]) for r in rows if r["plant"] == plant and r["from"] == source)
            for source in ("Coulomb", "MuJoCo, Python")
        }
        name = f"plant {plant}: cost by coulomb.control / by MuJoCo's finite differences, best of each"
        criteria.at_most(name, best["Coulomb"] / best["MuJoCo, Python"], 1.0)
        fallen = sum(len(r["costs"]) - r["survived"] for r in rows if r["plant"] == plant and r["from"] == "Coulomb")
        criteria.at_most(f"plant {plant}: falls with coulomb.control", fallen, 0)
    return criteria


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one push, 0.3 s, two planners")
    parser.add_argument("--output", type=Path, default=HERE / "results", help="folder of the result files")
    options = parser.parse_args()
    core = pin_to_one_core()
    model = go1()
    pushes, ticks, pushed = (PUSHES[:1], 30, 10) if options.quick else (PUSHES, TICKS, PUSHED)
    rows = []
    for (source, steps), make in planners(model, options.quick).items():
        for name, plant in plants(model).items():
            row = {"from": source, "steps": steps, "plant": name}
            rows.append({**row, **judge(model, make, plant, pushes, ticks, pushed)})
            print(table(rows[-1:])[-1], flush=True)

    env = report.environment(core)
    criteria = check(rows)
    words = EXPLANATION.format(ticks=ticks, pushes=", ".join(map(str, pushes)), height=0.8 * HEIGHT)
    lines = [*table(rows), "", words, "", *criteria.lines()]
    print("", *lines, sep="\n")
    data = {"quick": options.quick, "results": rows, "criteria": criteria.entries}
    title = "Go1 is pushed: plans by exact derivatives and by finite differences, on two simulators"
    print(*(f"written: {p}" for p in report.write_study(options.output, "pushes", title, env, lines, data)), sep="\n")


if __name__ == "__main__":
    main()
