"""The spaces of a task's environments."""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Box


def of_task(simulation):
    """(observations, actions) of one environment: float64 without bounds, float32 within the task's, as Gymnasium's MuJoCo ones."""
    task = simulation.task
    simulation.start(np.ones(simulation.num_envs, bool), simulation.state.q, simulation.state.v, simulation.state.goal)
    size = simulation.observe(np.arange(1)).shape[1]
    observations = Box(-np.inf, np.inf, (size,), np.float64)
    actions = Box(task.action_low.astype(np.float32), task.action_high.astype(np.float32), dtype=np.float32)
    return observations, actions
