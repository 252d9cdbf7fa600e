"""Stopwatches: both engines through one Python call per step, the state put in place before the clock starts.

Every quantity is timed in short blocks that take turns on each state: a change of the machine's pace meets all of them.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from time import perf_counter_ns

import mujoco
import numpy as np

import coulomb

CONES = {"pyramidal": mujoco.mjtCone.mjCONE_PYRAMIDAL, "elliptic": mujoco.mjtCone.mjCONE_ELLIPTIC}
FD_STEP = 1e-6


def pin_to_one_core():
    """The last core that this process may use, or None where that cannot be set."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def clock_cost(clock=perf_counter_ns):
    """ns between two readings of the clock with nothing between them."""
    samples = []
    for _ in range(2000):
        start = clock()
        samples.append(clock() - start)
    return float(np.median(samples))


class MujocoTimer:
    """mj_step with the Newton solver, Euler, one cone; state and warm start copied in before every step."""

    def __init__(self, model, cone):
        model.opt.solver, model.opt.integrator = mujoco.mjtSolver.mjSOL_NEWTON, mujoco.mjtIntegrator.mjINT_EULER
        self.model, self.cone = model, CONES[cone]
        self.data = mujoco.MjData(model)
        self.A, self.B = np.zeros((2 * model.nv, 2 * model.nv)), np.zeros((2 * model.nv, model.nu))

    def place(self, state):
        self.q, self.v, self.w = state["q"], state["v"], state["w"]
        self.model.opt.cone = self.cone
        mujoco.mj_resetData(self.model, self.data)

    def _put(self):
        data = self.data
        data.qpos[:], data.qvel[:] = self.q, self.v
        data.qacc_warmstart[:] = self.w

    def step(self, repeats, out):
        model, data, call = self.model, self.data, mujoco.mj_step
        for _ in range(repeats):
            self._put()
            start = perf_counter_ns()
            call(model, data)
            out.append(perf_counter_ns() - start)

    def jacobian(self, repeats, out):
        model, data, call, A, B = self.model, self.data, mujoco.mjd_transitionFD, self.A, self.B
        for _ in range(repeats):
            self._put()
            start = perf_counter_ns()
            call(model, data, FD_STEP, False, A, B, None, None)
            out.append(perf_counter_ns() - start)


class CoulombTimer:
    """Simulator.step alone, with derivatives(), with vjp(); each from nothing (cold), from the memory of the step
    before (warm), or from the memory of this very step (replay)."""

    def __init__(self, model):
        self.sim = coulomb.Simulator(model)
        random = np.random.default_rng(0)
        self.dq, self.dv = random.normal(size=model.nv), random.normal(size=model.nv)

    def place(self, state):
        self.q, self.v = state["q"], state["v"]
        sim = self.sim
        sim.reset()
        empty = sim.memory
        # Both engines' Euler is v = v0 + h a, q = q0 (+) h v: MuJoCo's last acceleration gives back the step before.
        h = sim.timestep
        sim.step(sim.model.integrate(self.q, -h * self.v), self.v - h * state["w"])
        before = sim.memory
        sim.step(self.q, self.v)
        self.memories = {"cold": empty, "warm": before, "replay": sim.memory}

    def step(self, start_from, repeats, out):
        sim, q, v, memory = self.sim, self.q, self.v, self.memories[start_from]
        call = sim.step
        for _ in range(repeats):
            sim.memory = memory
            start = perf_counter_ns()
            call(q, v)
            out.append(perf_counter_ns() - start)

    def jacobian(self, start_from, repeats, out):
        sim, q, v, memory = self.sim, self.q, self.v, self.memories[start_from]
        step, derivatives = sim.step, sim.derivatives
        for _ in range(repeats):
            sim.memory = memory
            start = perf_counter_ns()
            step(q, v)
            d = derivatives()
            out.append(perf_counter_ns() - start)
            del d

    def vjp(self, start_from, repeats, out):
        sim, q, v, memory = self.sim, self.q, self.v, self.memories[start_from]
        step, vjp, dq, dv = sim.step, sim.vjp, self.dq, self.dv
        for _ in range(repeats):
            sim.memory = memory
            start = perf_counter_ns()
            step(q, v)
            g = vjp(dq, dv)
            out.append(perf_counter_ns() - start)
            del g


def time_robot(robot, rounds, repeats, progress):
    """Mean, median, slowest over the states of the per-state median, µs; contacts, statuses."""
    ours = CoulombTimer(robot.model)
    theirs = {cone: MujocoTimer(robot.mujoco_model, cone) for cone in CONES}
    fd_repeats = max(1, repeats // 8)
    quantities = {f"mujoco_step_{cone}": (timer, timer.step) for cone, timer in theirs.items()}
    if robot.same_pairs is not None:
        timer = MujocoTimer(robot.same_pairs, "pyramidal")
        quantities["mujoco_step_same_pairs"] = (timer, timer.step)
    for start_from in ("warm", "cold", "replay"):
        for name in ("step", "jacobian", "vjp"):
            quantities[f"coulomb_{name}_{start_from}"] = (ours, partial(getattr(ours, name), start_from))
    medians = {name: [] for name in [*quantities, "mujoco_jacobian_fd"]}
    overhead = clock_cost()
    contacts, mujoco_contacts, reasons = [], [], Counter()
    zero = np.zeros(robot.model.nv)
    for i in range(len(robot.q)):
        w = zero if robot.w is None else robot.w[i].copy()
        state = {"q": robot.q[i].copy(), "v": robot.v[i].copy(), "w": w}
        ours.place(state)
        contacts.append(len(ours.sim.contacts))
        reasons[ours.sim.status.reason] += 1
        samples = {name: [] for name in medians}
        for _ in range(rounds):
            for name, (timer, measure) in quantities.items():
                if timer is not ours:
                    timer.place(state)
                measure(2, [])  # warms the caches
                measure(repeats, samples[name])
            pyramidal = theirs["pyramidal"]
            pyramidal.place(state)
            pyramidal.jacobian(fd_repeats, samples["mujoco_jacobian_fd"])
        mujoco_contacts.append(pyramidal.data.ncon)
        for name, values in samples.items():
            medians[name].append((np.median(values) - overhead) * 1e-3)
        progress(i + 1, len(robot.q))
    return {
        "nv": robot.model.nv,
        "pairs": int(ours.sim.model.num_pairs),
        "pairs_left_out": int(robot.model.num_pairs - ours.sim.model.num_pairs),
        "states": len(robot.q),
        "contacts": float(np.mean(contacts)),
        "contacts_mujoco": float(np.mean(mujoco_contacts)),
        "status": dict(reasons),
        "source": robot.source,
        "us": {name: float(np.mean(values)) for name, values in medians.items()},
        "us_median_state": {name: float(np.median(values)) for name, values in medians.items()},
        "us_slowest_state": {name: float(np.max(values)) for name, values in medians.items()},
    }
