"""How the time of a step grows with the scene, beside MuJoCo in the same process. `make bench` runs it.

python benchmarks/growing.py [--quick] [--scenes grid,pile] [--budget SECONDS] [--output FOLDER] [--heap]

Grids of separate boxes, stacks, piles, chains of hinges, meshes of many vertices (scenes/heaps.py), to 1000 bodies and 4000
contacts. A scene grows until one size takes more than the budget. --heap: only the fall of 1000 boxes, until they rest.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy is imported
    os.environ.setdefault(variable, "1")

import argparse
import sys
from pathlib import Path
from time import perf_counter, thread_time

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import numpy as np
import report
from timing import pin_to_one_core
from tracks import MujocoTrack

import coulomb
from coulomb.mjcf import compile_mjcf
from scenes import heaps

TIMESTEP = 2e-3  # s
STEPS = 20
LARGEST_JACOBIAN = 300  # degrees of freedom
SETTLING = 40  # steps before those that are timed
SCENES = {  # what is built, its sizes
    "grid": (heaps.grid, (4, 16, 36, 64, 144, 400, 961)),
    "stack": (heaps.stack, (2, 5, 10, 20, 40)),
    "pile": (heaps.pile, (5, 10, 20, 50, 100, 200, 500, 1000)),
    "chain": (heaps.chain, (10, 20, 50, 100, 200, 400)),
    "prisms": (heaps.prisms, (16, 64, 256, 1024)),
}
FALL = 1000  # MuJoCo's steps until a pile lies; the other scenes begin at rest
QUICK = {"grid": 144, "stack": 20, "pile": 100, "chain": 200, "prisms": 256}  # largest sizes
ALLOWED = [("grid", 144, 2), ("stack", 20, 3), ("pile", 100, 3), ("chain", 200, 2)]  # of MuJoCo's step
EXPONENTS = [("grid", "bodies", 1.1), ("pile", "contacts", 1.5)]
COLUMNS = ["scene", "size", "dofs", "contacts", "MuJoCo", "step", "vjp", "Jacobian", "step/MuJoCo", "vjp/MuJoCo"]
COLUMNS += ["iterations", "unsolved"]
EXPLANATION = """\
Median over 20 steps, after 40 to settle, µs of processor time per call from Python, 2 ms steps, one core. size: bodies, links, or vertices of each mesh.
contacts: Coulomb's / MuJoCo's. vjp, Jacobian: by themselves, the Jacobian with what the vjp has factored. MuJoCo: Newton, Euler, pyramidal cone, its warm start.
Piles begin where MuJoCo's steps have brought them to lie. unsolved: steps that were not solved as posed."""


def measure(scene, size, budget):
    """One size of a scene: µs per call, contacts, how the solver fared."""
    mj = compile_mjcf(SCENES[scene][0](size))
    theirs = MujocoTrack(mj, TIMESTEP, mj.qpos0, np.zeros(mj.nv))
    theirs.begin()
    if scene == "pile":
        theirs.run(np.zeros((FALL, mj.nu)))
        theirs.keep_state()

    build_scene = coulomb.Scene()
    build_scene.add_mujoco_model(mj)
    model = build_scene.build()
    point = time_coulomb(model, theirs.q, theirs.v, budget)
    theirs.run(np.zeros((SETTLING + STEPS, mj.nu)))
    point["mujoco"] = 1e-3 * float(np.median(theirs.samples[-STEPS:]))
    point["contacts_mujoco"] = theirs.contacts[-1]
    return {"scene": scene, "size": size, "nv": model.nv, "bodies": model.num_bodies - 1, **point}


def time_coulomb(model, q, v, budget):
    """Median µs of step, vjp and Jacobian over successive steps, as many as the budget (s) allows."""
    sim = coulomb.Simulator(model, timestep=TIMESTEP)
    dq, dv = np.random.default_rng(0).normal(size=(2, model.nv))
    calls = {"vjp": lambda: sim.vjp(dq, dv)}
    if model.nv <= LARGEST_JACOBIAN:
        calls["jacobian"] = sim.derivatives
    times = {name: [] for name in ("step", *calls)}
    iterations, unsolved = [], 0

    start = perf_counter()
    for k in range(SETTLING + STEPS):
        before = thread_time()
        q, v = sim.step(q, v)
        times["step"].append(thread_time() - before)
        iterations.append(sim.status.iterations)
        unsolved += not sim.status.converged or sim.status.reason != "solved"
        for name, call in calls.items():
            if 0 < k < SETTLING:  # once is enough to warm up
                continue
            before = thread_time()
            call()
            times[name].append(thread_time() - before)
        if perf_counter() - start > budget:
            break

    # The last steps, at rest and warm.
    us = {name: 1e6 * float(np.median(values[-STEPS:])) for name, values in times.items()}
    spent = perf_counter() - start
    return {
        **us,
        "contacts": len(sim.contacts),
        "iterations": float(np.mean(iterations[-STEPS:])),
        "steps": len(iterations),
        "unsolved": int(unsolved),
        "too_slow": bool(spent > budget),
    }


def table(points):
    rows = []
    for p in points:
        row = [p["scene"], str(p["size"]), str(p["nv"]), f"{p['contacts']} / {p['contacts_mujoco']}"]
        row += [f"{p[key]:.0f}" if key in p else "" for key in ("mujoco", "step", "vjp", "jacobian")]
        row += [f"{p[key] / p['mujoco']:.2f}" for key in ("step", "vjp")]
        row += [f"{p['iterations']:.1f}", f"{p['unsolved']} of {p['steps']}"]
        rows.append(row)
    return report.markdown(COLUMNS, rows)


def exponent(points, scene, over, quantity):
    """Slope of log time over log size, of the larger sizes; None: too few."""
    chosen = [p for p in points if p["scene"] == scene and p["bodies"] >= 16 and p[over] > 0]
    if len(chosen) < 2:
        return None
    return float(np.polyfit(*(np.log([p[key] for p in chosen]) for key in (over, quantity)), 1)[0])


def check(points, quick):
    criteria = report.Criteria()
    found = {(p["scene"], p["size"]): p for p in points}
    scenes = {p["scene"] for p in points}
    for scene, size, most in ALLOWED:
        if scene in scenes:
            p = found.get((scene, size))
            for quantity in ("step", "vjp"):
                name = f"{scene} of {size}: {quantity}, of MuJoCo's step"
                criteria.at_most(name, p and p[quantity] / p["mujoco"], most)
    for scene, over, most in EXPONENTS:
        if scene in scenes:
            for quantity in ("step", "vjp"):
                name = f"{scene}: exponent of {quantity} over {over}"
                criteria.at_most(name, exponent(points, scene, over, quantity), most)
            if not quick:
                largest = max(p["size"] for p in points if p["scene"] == scene)
                missing = SCENES[scene][1][-1] - largest
                criteria.at_most(f"{scene}: bodies missing from the largest size, for want of time", missing, 0)
    return criteria


def draw(points, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    scenes = list(dict.fromkeys(p["scene"] for p in points))
    figure, all_axes = plt.subplots(1, len(scenes), figsize=(3.2 * len(scenes), 3), layout="constrained", squeeze=False)
    for scene, axes in zip(scenes, all_axes[0]):
        own = [p for p in points if p["scene"] == scene]
        for key, label in (("mujoco", "MuJoCo step"), ("step", "step"), ("vjp", "vjp"), ("jacobian", "Jacobian")):
            known = [p for p in own if key in p]
            axes.loglog([p["size"] for p in known], [p[key] for p in known], "o-", markersize=3, label=label)
        axes.set_title(scene)
        axes.set_xticks([p["size"] for p in own], [p["size"] for p in own], fontsize="small", rotation=45)
        axes.minorticks_off()
        axes.set_xlabel("vertices" if scene == "prisms" else "bodies")
    all_axes[0][0].set_ylabel("µs")
    all_axes[0][0].legend(fontsize="small")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def heap(count, seconds, budget):
    """The fall of many boxes, until they rest. Prints how it goes; returns the criteria."""
    timestep = 5e-3
    model = coulomb.load(heaps.pile(count))
    sim = coulomb.Simulator(model, timestep=timestep)
    q, v = model.neutral()
    unsolved, start, k = 0, perf_counter(), 0
    for k in range(1, round(seconds / timestep) + 1):
        q, v = sim.step(q, v)
        unsolved += not sim.status.converged or sim.status.reason != "solved"
        spent = perf_counter() - start
        if k % 20 == 0:
            print(
                f"{k * timestep:.2f} s: {len(sim.contacts)} contacts, {1e3 * spent / k:.1f} ms a step, {unsolved} steps "
                f"not solved as posed; 99 of 100 boxes slower than {slow(v):.2g} m/s",
                flush=True,
            )
        if spent > budget:
            print(f"given up after {spent:.0f} s")
            break
    criteria = report.Criteria()
    criteria.at_most("steps not solved as posed", unsolved, 0)
    criteria.at_most(
        f"speed after {seconds:g} s, 99 of 100 boxes, m/s", slow(v) if k * timestep >= seconds else None, 0.01
    )
    criteria.at_most("depth, m", max((c.depth for c in sim.contacts), default=0), 1e-3)
    print(*criteria.lines(), sep="\n")


def slow(v):
    """The speed that 99 of 100 free bodies stay below."""
    return float(np.percentile(np.linalg.norm(v.reshape(-1, 6)[:, :3], axis=1), 99))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenes", type=lambda text: text.split(","), default=list(SCENES), help="names, with commas")
    parser.add_argument("--quick", action="store_true", help="no larger sizes than the criteria ask for")
    parser.add_argument(
        "--budget", type=float, default=20, help="seconds for one size of a scene; larger ones are left out then"
    )
    parser.add_argument("--output", type=Path, default=HERE / "results", help="folder of the result files")
    parser.add_argument("--heap", type=int, nargs="?", const=1000, help="only the fall of so many boxes (1000)")
    parser.add_argument("--seconds", type=float, default=8, help="of the heap's fall")
    options = parser.parse_args()
    for scene in options.scenes:
        if scene not in SCENES:
            sys.exit(f"--scenes: no scene {scene}; there are {', '.join(SCENES)}")
    return options


def main():
    options = arguments()
    core = pin_to_one_core()
    if options.heap:
        heap(options.heap, options.seconds, budget=100 * options.budget)
        return
    points = []
    for scene in options.scenes:
        for size in SCENES[scene][1]:
            if options.quick and size > QUICK[scene]:
                break
            points.append(measure(scene, size, options.budget))
            print(table(points[-1:])[-1], flush=True)
            if points[-1]["too_slow"]:
                break

    env = report.environment(core)
    criteria = check(points, options.quick)
    lines = [*table(points), "", EXPLANATION, "", *criteria.lines()]
    print("", *lines, sep="\n")
    data = {"unit": "us", "quick": options.quick, "results": points, "criteria": criteria.entries}
    paths = report.write_study(options.output, "growing", "Scenes that grow, beside MuJoCo", env, lines, data)
    paths.append(options.output / "growing.png")
    draw(points, paths[-1])
    print(*(f"written: {path}" for path in paths), sep="\n")


if __name__ == "__main__":
    main()
