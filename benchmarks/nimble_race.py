"""Nimble's step and Jacobians beside ours, `contact="lcp"`: one process, the same bodies, the same states, blocks that take turns.

`make bench` and `make bench-nimble` run it, in an environment of its own (Nimble needs NumPy 1):

    build/nimble_env/bin/python benchmarks/nimble_race.py [--quick] [--robots worm,go1] [--models FOLDER] [--output FOLDER]
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy is imported
    os.environ.setdefault(variable, "1")

import datetime
import gc
from dataclasses import dataclass
from time import thread_time_ns

import nimble_peer
import nimble_two_balls
import numpy as np
import report
from nimble_table import own_scenes
from robots import find_robots
from run import arguments, pin_to_one_core

import coulomb
from coulomb.mjcf import compile_mjcf
from coulomb.mjcf_export import to_mjcf


@dataclass
class Scene:
    mujoco_model: object
    q: np.ndarray
    v: np.ndarray
    w: np.ndarray  # acceleration of the step before


def scenes(models, wanted):
    """name -> Scene: Nimble's own, then the robots in their recorded states; messages about what is missing."""
    found = {}
    for name, (model, q, v) in own_scenes().items():
        if not wanted or name in wanted:
            mj = compile_mjcf(to_mjcf(model, model.timestep))
            found[name] = Scene(mj, q[None], v[None], np.zeros((1, len(v))))
    robots, missing = find_robots(models, [name for name in wanted or () if name not in own_scenes()] or None)
    for name, load in robots:
        if not wanted or name in wanted:
            r = load()
            found[name] = Scene(r.mujoco_model, r.q, r.v, np.zeros_like(r.v) if r.w is None else r.w)
    return found, missing


class Pair:
    """One scene in both engines. Each starts a step from what it remembers of the step before."""

    def __init__(self, scene):
        mj = nimble_peer.common_model(scene.mujoco_model)
        builder = coulomb.Scene()
        builder.add_mujoco_model(mj)
        self.model = builder.build()
        self.sim = coulomb.Simulator(self.model, contact="lcp")
        self.plain = coulomb.Simulator(
            self.model, contact="lcp", baumgarte=0.0
        )  # Nimble's default: no correction of positions
        self.peer = nimble_peer.Peer(mj)
        self.h = mj.opt.timestep

    def place(self, q, v, w):
        self.q, self.v = q.copy(), v.copy()
        before = self.model.integrate(q, -self.h * v), v - self.h * w
        self.sim.reset()
        self.sim.step(*before)
        self.memory = self.sim.memory
        self.peer.place(*before)
        self.peer.step()
        self.peer_memory = self.peer.world.getCachedLCPSolution()

    def compare(self):
        """Contacts of both, whether both have friction or neither, and the largest difference of the next velocities."""
        self.plain.reset()
        v1 = self.plain.step(self.q, self.v)[1]
        ours, peer = self.plain.contacts, self.peer
        peer.place(self.q, self.v, self.peer_memory)
        peer.step()
        theirs = peer.contacts()
        rubs = any(np.abs(c.impulse - (c.impulse @ c.normal) * c.normal).max() > 1e-12 for c in ours)
        rubs_there = any(c.lcpResultTangent1 or c.lcpResultTangent2 for c in theirs)
        return len(ours), len(theirs), rubs, rubs_there, np.abs(peer.velocities() - v1).max()

    def mass_error(self):
        """Largest relative difference of the mass matrices."""
        self.peer.place(self.q, self.v)
        M = self.model.mass_matrix(self.q)
        return np.abs(self.peer.mass_matrix() - M).max() / np.abs(M).max()

    def ours(self, jacobians, repeats, out):
        sim, q, v, memory = self.sim, self.q, self.v, self.memory
        for _ in range(repeats):
            sim.memory = memory
            start = thread_time_ns()
            sim.step(q, v)
            if jacobians:
                d = sim.derivatives()
                d = d.A, d.B_tau
            out.append(thread_time_ns() - start)

    def theirs(self, call, repeats, out):
        peer, q, v, memory = self.peer, self.q, self.v, self.peer_memory
        for _ in range(repeats):
            peer.place(q, v, memory)
            start = thread_time_ns()
            result = call()
            out.append(thread_time_ns() - start)
            del result


def time_scene(scene, rounds, repeats):
    """Means over the states of the per-state medians, µs, and how far the two do the same."""
    pair = Pair(scene)
    quantities = {
        "step": lambda n, out: pair.ours(False, n, out),
        "jacobian": lambda n, out: pair.ours(True, n, out),
        "nimble_plain_step": lambda n, out: pair.theirs(pair.peer.world.step, n, out),
        "nimble_step": lambda n, out: pair.theirs(pair.peer.step, n, out),
        "nimble_jacobian": lambda n, out: pair.theirs(pair.peer.jacobians, n, out),
    }
    repeats *= max(1, 20 // len(scene.q))
    medians, compared, mass_error = {name: [] for name in quantities}, [], 0.0
    for q, v, w in zip(scene.q, scene.v, scene.w):
        pair.place(q, v, w)
        compared.append(pair.compare())
        mass_error = max(mass_error, pair.mass_error())
        samples = {name: [] for name in quantities}
        for _ in range(rounds):
            for name, run in quantities.items():
                run(repeats, samples[name])
        for name, values in samples.items():
            medians[name].append(1e-3 * float(np.median(values)))
    ours, theirs, rubs, rubs_there, difference = np.array(compared).T
    alike = (ours == theirs) & (rubs == rubs_there)
    ours_us, theirs_us = (np.array(medians[name]) for name in ("jacobian", "nimble_jacobian"))
    ratios = theirs_us / ours_us
    return {
        "nv": pair.model.nv,
        "states": len(scene.q),
        "us": {name: float(np.mean(values)) for name, values in medians.items()},
        "contacts": float(ours.mean()),
        "contacts_nimble": float(theirs.mean()),
        "friction_lost": int(np.sum((rubs > 0) & (rubs_there == 0) & (theirs > 0))),
        "alike": int(alike.sum()),
        "difference": float(np.median(difference[alike])) if alike.any() else None,
        "mass_error": float(mass_error),
        "ratio_smallest": float(ratios.min()),
        "ratio_alike": None if not alike.any() else float(theirs_us[alike].mean() / ours_us[alike].mean()),
    }


TITLES = ["scene", "nv", "contacts", "step", "Nimble step", "its step()", "+Jacobians", "Nimble +Jacobians", "ratio"]
TITLES += ["smallest", "friction lost", "alike", "their ratio", "difference"]


def table(results):
    """The lines of a Markdown table."""
    rows = []
    for name, r in results.items():
        us = r["us"]
        times = [us[key] for key in ("step", "nimble_step", "nimble_plain_step", "jacobian", "nimble_jacobian")]
        rows.append(
            [name, str(r["nv"]), f"{r['contacts']:.1f} / {r['contacts_nimble']:.1f}"]
            + [f"{t:.0f}" if t >= 1000 else f"{t:.1f}" for t in times]
            + [f"{us['nimble_jacobian'] / us['jacobian']:.1f}", f"{r['ratio_smallest']:.1f}"]
            + [f"{r['friction_lost']} of {r['states']}", str(r["alike"])]
            + ([f"{r['ratio_alike']:.1f}", f"{r['difference']:.0e}"] if r["alike"] else ["", ""])
        )
    widths = [max(len(row[i]) for row in [TITLES, *rows]) for i in range(len(TITLES))]
    lines = ["| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths)) + " |" for row in [TITLES, *rows]]
    lines.insert(1, "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|")
    return lines


EXPLANATION = """\
Mean over the states of the per-state median, µs of processor time; one Python call per step in both engines, one core, each with the
impulses of the step before. +Jacobians: the step and all its Jacobians, of the next q and v by q and v, and by forces. Nimble's step is
the one its gradients belong to (forwardPass); its step() solves the LCP in another way. Ratio: Nimble's time with Jacobians by ours;
smallest: of all states.

Contacts: ours / those in Nimble's LCP. Same bodies, inertias (mass matrices agree to {mass:.0e}), shapes and friction; armature, limits,
springs, damping, and contacts within one robot are left out of both, cylinders are capsules. Friction lost: states in contact that Nimble
solves without friction, as it does where its LCP solvers fail. Alike: states with as many contacts in both, and friction in both or in
neither; their ratio; difference: the median of |v+ - Nimble's v+| over them, without position correction, m/s or rad/s (Nimble puts contact
points on one surface, Coulomb halfway between the two). Of a round hull Nimble keeps the outermost of the vertices within 1 cm of the
lowest: they may all be above the floor (ur5, h1). Contacts deeper than 3 cm it forgets."""


def measure(models, wanted, quick):
    found, missing = scenes(models, wanted)
    results = {}
    for name, scene in found.items():
        gc.collect()
        gc.disable()
        try:
            results[name] = time_scene(scene, *((2, 3) if quick else (3, 10)))
        except NotImplementedError as error:  # a joint or shape that Nimble has not
            missing.append(f"{name}: {error}")
        gc.enable()
    return results, missing


def main():
    options = arguments()
    if nimble_peer.nimble is None:
        print("left out: Nimble is not installed here;", nimble_peer.INSTALL)
        return
    core = pin_to_one_core()
    results, missing = measure(options.models, options.robots, options.quick)
    for message in missing:
        print("left out:", message)
    env = report.environment(core)
    version = report.metadata.version("nimblephysics")
    text = EXPLANATION.format(mass=max(r["mass_error"] for r in results.values()))
    machine = f"{env['cpu']}; {env['compiler']}; Python {env['python']}; coulomb {coulomb.__version__}, nimblephysics {version}"
    balls = [] if options.robots else ["", *nimble_two_balls.lines()]
    lines = [*table(results), "", text, *balls, "", f"{machine}, numpy {np.__version__}."]
    print(*lines, sep="\n")
    if not (options.quick or options.robots):
        options.output.mkdir(parents=True, exist_ok=True)
        head = [f"# Nimble beside Coulomb, {datetime.date.today().isoformat()}", ""]
        (options.output / "nimble.md").write_text("\n".join([*head, *lines]) + "\n")


if __name__ == "__main__":
    main()
