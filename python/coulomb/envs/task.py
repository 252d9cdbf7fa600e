"""Task: what an environment is about, as one class that environments and learning by gradients read.

A task has a model, a time step, and functions of states: what is observed, what is rewarded, when an episode has failed. They are pure,
row by row, and written by operators and `arrays`, so that they take NumPy arrays and PyTorch tensors alike, and are differentiable there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coulomb import Model


class State(NamedTuple):
    """n environments between two control steps, one a row: NumPy arrays, or tensors.

    q (n, nq), v (n, nv); action (n, k): the one that led here, zeros after a reset; goal (n, g): what the episode asks for;
    readings: the outputs that the task names, (n, size) each; activation (n, nu): of actuators that have one (coulomb.Activations),
    zeros after a reset; None for a model without.
    """

    q: Any
    v: Any
    action: Any
    goal: Any
    readings: dict[str, Any]
    activation: Any = None


class Task:
    """The base of all tasks. One of your own gives this a model, and has `draw`, `observe`, `reward`, and what else it needs.

    model: of all environments. action_low, action_high: (k,). Attributes that tasks set:

    - timestep (s), frame_skip: a control step is frame_skip steps of timestep; options: others of the simulator.
    - episode_length: control steps; None: no end.
    - readings: names to lists of outputs (docs/outputs.md), read one after the other at every state.
    - contact_wrenches: State.readings["contact_wrenches"] (n, num_bodies, 6) is wanted: torque about the world's origin, and force,
      that contacts give each body in the last of the steps. Not differentiable; zeros after a reset.
    - goal_size: g.
    - camera: where frames are drawn from, as MuJoCo's free camera: azimuth, elevation, distance, and lookat or trackbodyid.
    """

    timestep: float
    frame_skip: int
    episode_length: int | None = None
    options: dict[str, Any] = {}
    readings: dict[str, list[str]] = {}
    contact_wrenches = False
    goal_size = 0
    camera: dict[str, Any] = {}

    model: Model
    action_low: np.ndarray
    action_high: np.ndarray

    def __init__(self, model, timestep, frame_skip):
        if int(frame_skip) != frame_skip or frame_skip < 1:
            raise ValueError(f"frame_skip is {frame_skip!r}, expected an integer of at least 1")

        self.model = model
        self.timestep = float(timestep)
        self.frame_skip = int(frame_skip)

        # Actions are controls, within the actuators' ranges, unless a task says otherwise.
        ranges = [a.control_range if a.control_limited else (-np.inf, np.inf) for a in model.actuators]
        self.action_low, self.action_high = np.array(ranges).reshape(-1, 2).T

    @property
    def control_timestep(self):
        """s: the duration of a control step."""
        return self.timestep * self.frame_skip

    def draw(self, random):
        """Where an episode starts: q (nq,), v (nv,), goal (g,), drawn from a numpy.random.Generator."""
        raise NotImplementedError

    def control(self, action):
        """The controls (n, nu) of actions (n, k)."""
        return action

    def observe(self, state):
        """Observations, (n, size)."""
        raise NotImplementedError

    def reward(self, before, after):
        """The reward (n,) of the control step between two states by after.action, and a dict of its terms (n,)."""
        raise NotImplementedError

    def terminated(self, state):
        """bool (n,): the episode ends here, whatever would follow."""
        return state.q[:, 0] != state.q[:, 0]

    def info(self, state):
        """Entries of infos (n, ...) at every state, after a reset too."""
        return {}

    def step_info(self, before, after):
        """Further entries after a step."""
        return {}

    def mjcf(self):
        """An MJCF text whose cameras frames can be drawn from, with the coordinates of `model`; None: there is none."""
        return None
