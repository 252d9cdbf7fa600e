"""Env: one environment of a task; the row of a VectorEnv with its seed, bit for bit."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from . import infos
from .actions import checked, refuse_unknown
from .rendering import MODES, Camera, Pictures
from .simulation import Simulation
from .spaces import of_task
from .tasks import task_of

ALL = np.ones(1, bool)


class Env(gymnasium.Env):
    """One environment of a task. Arguments: as VectorEnv; the length of episodes is the business of Gymnasium's TimeLimit.

    If numbers overflow the episode is truncated with reward 0, and `info["failure"]` says why. ValueError: an action of
    another shape or not finite; nothing has moved then.
    """

    metadata = {
        "render_modes": MODES
    }  # gymnasium.make shows "human" by a window of its own for classes that have frames

    def __init__(
        self,
        *,
        task: Any,
        simulator_options: dict[str, Any] | None = None,
        render_mode: str | None = None,
        width: int = 480,
        height: int = 480,
        camera_name: str | None = None,
        camera_id: int | None = None,
        default_camera_config: dict[str, Any] | None = None,
        **task_options: Any,
    ):
        self.task = task_of(task, task_options)
        self.simulation = Simulation(self.task, 1, 1, simulator_options)
        self.observation_space, self.action_space = of_task(self.simulation)

        camera = Camera(width, height, camera_name, camera_id, default_camera_config)
        self.pictures = Pictures(self.task, render_mode, camera)
        self.render_mode = render_mode
        self.metadata = self.pictures.metadata

    @property
    def dt(self):
        """s: the duration of a control step."""
        return self.task.control_timestep

    @property
    def state(self):
        """The State, of one row."""
        return self.simulation.state

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Starts an episode: observation and info. options: "q" (nq,), "v" (nv,), "goal" (g,) to start there."""
        super().reset(seed=seed)
        options = options or {}
        refuse_unknown(options)
        start = list(self.task.draw(self.np_random))
        for k, name in enumerate(("q", "v", "goal")):
            if name in options:
                start[k] = checked(f"options[{name!r}]", options[name], start[k].shape, np.ones(len(start[k]), bool))
        self.simulation.start(ALL, *(part[None] for part in start))
        return self.simulation.observe(ALL)[0], infos.first_row(self.simulation.info(ALL))

    def step(self, action: Any):
        """One control step: observation, reward, terminated, truncated, info."""
        size = len(self.task.action_low)
        action = checked("action", action, (size,), np.ones(size, bool))
        outcome = self.simulation.advance(action[None], ALL)
        info = infos.of_one(outcome)
        return outcome.observation[0], outcome.reward[0], bool(outcome.terminated[0]), bool(outcome.failure), info

    def set_state(self, q, v):
        """Puts the environment at q (nq,) and v (nv,). The observation there."""
        model = self.task.model
        q, v = (
            checked(name, x, (size,), np.ones(size, bool)) for name, x, size in (("q", q, model.nq), ("v", v, model.nv))
        )
        self.simulation.start(ALL, q[None], v[None], self.simulation.state.goal)
        return self.simulation.observe(ALL)[0]

    def render(self):
        """A frame, uint8 (height, width, 3)."""
        return self.pictures.frame(self.state.q[0], self.state.v[0])

    def close(self):
        self.pictures.close()
