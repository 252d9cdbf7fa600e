"""Trajectories under the clock: one engine, its own state from step to step, every step timed by itself.

Both engines are deterministic: a track that is run again goes through the same states, so that the median over rounds
takes the machine's noise out of every single step and leaves the slow steps slow. The clock is the thread's processor
time: what else runs on the machine takes no part.
"""

from __future__ import annotations

from collections import Counter
from time import thread_time_ns

import mujoco
import numpy as np
from timing import clock_cost

import coulomb


class MujocoTrack:
    """mj_step with the Newton solver, Euler, the pyramidal cone and MuJoCo's own warm start."""

    def __init__(self, model, timestep, q, v):
        self.data = mujoco.MjData(model)
        self.model, self.timestep = model, timestep
        self.q, self.v = q, v
        self.contacts, self.samples = [], []

    def begin(self):
        options = self.model.opt
        options.solver, options.integrator = mujoco.mjtSolver.mjSOL_NEWTON, mujoco.mjtIntegrator.mjINT_EULER
        options.cone, options.timestep = mujoco.mjtCone.mjCONE_PYRAMIDAL, self.timestep
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = self.q, self.v
        self.contacts, self.samples = [], []

    def run(self, controls):
        """One step for every row of controls."""
        model, data, call = self.model, self.data, mujoco.mj_step
        for control in controls:
            self._place()
            data.ctrl[:] = control
            start = thread_time_ns()
            call(model, data)
            self.samples.append(thread_time_ns() - start)
            self.contacts.append(data.ncon)

    def _place(self):
        """Before every step; here the state is already there."""

    def keep_state(self):
        """Later rounds begin where this one is."""
        self.q, self.v = self.data.qpos.copy(), self.data.qvel.copy()

    def went_wrong(self):
        """MuJoCo gave up on a state and began again from its neutral one."""
        bad = (mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL, mujoco.mjtWarning.mjWARN_BADQACC)
        return any(self.data.warning[kind].number for kind in bad)


class FollowingTrack(MujocoTrack):
    """MuJoCo's step from every state of a CoulombTrack, which runs before it in every block.

    Engines part soon, most of all where soft limits and contacts give way: this tells what the same states cost.
    """

    def __init__(self, model, timestep, leader):
        super().__init__(model, timestep, leader.q, leader.v)
        self.leader = leader

    def _place(self):
        self.data.qpos[:], self.data.qvel[:] = self.leader.states[len(self.samples)]


class CoulombTrack:
    """Simulator.step, alone or with what `ask` gets from the simulator after it, in the same reading of the clock."""

    def __init__(self, model, timestep, q, v, ask=None, **options):
        self.sim = coulomb.Simulator(model, timestep=timestep, **options)
        self.ask = ask
        self.q, self.v = np.array(q), np.array(v)
        self.begin()

    def begin(self):
        self.sim.reset()
        self.state = self.q, self.v
        self.contacts, self.samples, self.iterations, self.states = [], [], [], []
        self.reasons, self.relaxed = Counter(), 0

    def run(self, controls):
        """One step for every row of controls."""
        sim, call, ask = self.sim, self.sim.step, self.ask
        q, v = self.state
        for control in controls:
            self.states.append((q, v))
            if ask is None:
                start = thread_time_ns()
                q, v = call(q, v, control)
                stop = thread_time_ns()
            else:
                start = thread_time_ns()
                q, v = call(q, v, control)
                answer = ask(sim)
                stop = thread_time_ns()
                del answer
            self.samples.append(stop - start)
            self._note(sim.status, len(sim.contacts))
        self.state = q, v

    def _note(self, status, contacts):
        self.contacts.append(contacts)
        self.iterations.append(status.iterations)
        self.relaxed += status.relaxation > 0
        if not status.converged or status.reason != "solved":
            self.reasons[status.reason] += 1

    def keep_state(self):
        """Later rounds begin where this one is."""
        self.q, self.v = self.state

    def went_wrong(self):
        return not all(np.isfinite(x).all() for x in self.state)


def race(tracks, controls, rounds, block):
    """us (len(tracks), steps): the median over rounds of every step. The tracks take turns in blocks of steps.

    The first step of a block meets caches that the other engine filled: the blocks begin elsewhere in every round."""
    times = np.empty((rounds, len(tracks), len(controls)))
    for k in range(rounds):
        for track in tracks:
            track.begin()
        borders = [0, *range(block * (k + 1) // rounds, len(controls), block), len(controls)]
        for first, last in zip(borders, borders[1:]):
            for track in tracks:
                track.run(controls[first:last])
        times[k] = [track.samples for track in tracks]
    return 1e-3 * (np.median(times, axis=0) - clock_cost(thread_time_ns))
