"""VectorEnv: n environments of one task over coulomb.BatchSimulator, with the three autoreset modes of Gymnasium."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from . import infos as vector_infos
from .actions import checked, refuse_unknown
from .rendering import Camera, Pictures
from .simulation import Simulation
from .spaces import of_task
from .tasks import task_of


class VectorEnv(gymnasium.vector.VectorEnv):
    """n environments of a task; row i is the single environment `Env` with that row's seed, bit for bit.

    task: a Task, or "module:Class" of one. max_episode_steps: control steps until an episode is truncated; None: the task's.
    autoreset_mode: when an environment whose episode ended starts again: "NextStep" (the step that follows resets it and
    ignores its action), "SameStep" (`final_obs` and `final_info` of infos say how it ended), or "Disabled", only by
    `reset(options={"reset_mask": mask})`. num_threads: 0: all cores. simulator_options: as coulomb.Simulator takes.
    task_options: as the task takes.

    An environment whose numbers overflow ends: it is truncated with reward 0, `infos["failure"]` says why, and the others go
    on. ValueError: actions of another shape or not finite, by row and column; nothing has moved then.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        task: Any,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        num_threads: int = 0,
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
        self.num_envs = int(num_envs)
        self.max_episode_steps = self.task.episode_length if max_episode_steps is None else int(max_episode_steps)
        if self.max_episode_steps is not None and self.max_episode_steps < 1:
            raise ValueError(f"max_episode_steps is {max_episode_steps!r}, expected an integer of at least 1, or None")
        self.autoreset_mode = _mode(autoreset_mode)
        self.simulation = Simulation(self.task, self.num_envs, num_threads, simulator_options)

        self.single_observation_space, self.single_action_space = of_task(self.simulation)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

        camera = Camera(width, height, camera_name, camera_id, default_camera_config)
        self.pictures = Pictures(self.task, render_mode, camera)
        self.render_mode = render_mode
        self.metadata = {**self.pictures.metadata, "autoreset_mode": self.autoreset_mode}

        # Of every environment: its random numbers, steps of its episode, and whether it ended or never began.
        self._randoms: list[np.random.Generator | None] = [None] * self.num_envs
        self._seeds: list[int] = [-1] * self.num_envs
        self._elapsed = np.zeros(self.num_envs, int)
        self._ended = np.zeros(self.num_envs, bool)
        self._waiting = np.ones(self.num_envs, bool)
        self._observation = np.zeros(self.observation_space.shape)

    @property
    def state(self):
        """The State of all environments: q, v, last action, goal, readings."""
        return self.simulation.state

    @property
    def elapsed_steps(self):
        """int (n,): control steps of every episode so far."""
        return self._elapsed.copy()

    @elapsed_steps.setter
    def elapsed_steps(self, steps):
        steps = np.asarray(steps)
        if steps.shape != (self.num_envs,) or not np.issubdtype(steps.dtype, np.integer) or (steps < 0).any():
            raise ValueError(f"elapsed_steps: expected {self.num_envs} integers, none negative, got {steps!r}")
        self._elapsed = steps.astype(int)

    @property
    def np_random(self):
        """One generator per environment."""
        self._make_randoms()
        return tuple(self._randoms)

    @np_random.setter
    def np_random(self, generators):
        self._randoms = list(generators)
        self._seeds = [-1] * self.num_envs

    @property
    def np_random_seed(self):
        """The seed of every environment; -1 where it is not known."""
        self._make_randoms()
        return tuple(self._seeds)

    def reset(self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None):
        """Starts episodes: observations (n, size) and infos.

        seed: that of environment i is seed + i; or a list, one each, None to go on with its generator. options: "reset_mask",
        bool (n,): only these environments; the others' observations are those of before. "q" (n, nq), "v" (n, nv), "goal"
        (n, g): where to start instead of at random.
        """
        options = dict(options or {})
        rows = self._reset_rows(options.pop("reset_mask", None))
        refuse_unknown(options)
        self._take_seeds(seed, rows)

        infos: dict[str, Any] = {}
        observation = self._observation.copy()
        self._start(rows, observation, infos, options)
        self._observation = observation
        return observation.copy(), infos

    def step(self, actions: Any):
        """One control step: observations (n, size), rewards (n,), terminations (n,), truncations (n,), infos."""
        moving = self._moving_rows()
        shape = (self.num_envs, len(self.task.action_low))
        outcome = self.simulation.advance(checked("actions", actions, shape, moving), moving)

        # Episodes end by the task, by their length, or because numbers overflowed.
        self._elapsed[moving] += 1
        terminated = moving & outcome.terminated
        truncated = np.zeros(self.num_envs, bool)
        if self.max_episode_steps is not None:
            truncated = moving & (self._elapsed >= self.max_episode_steps)
        truncated[list(outcome.failure)] = True
        ended = terminated | truncated

        # Environments of which the infos are those of this step; the others are reset and say what a reset says.
        same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
        stays = moving & ~ended if same_step else moving
        infos = vector_infos.of_step(outcome, stays)
        if same_step and ended.any():
            self._add_final(infos, outcome, ended)
        observation = outcome.observation
        if not stays.all():
            self._start(~stays, observation, infos, {})

        self._ended = ended & stays
        self._observation = observation
        reward = np.where(moving, outcome.reward, 0.0)
        return observation.copy(), reward, terminated, truncated, infos

    def set_state(self, q, v, rows=None):
        """Puts environments (of the mask `rows`) at q (n, nq) and v (n, nv); their episodes go on from there. Observations (n, size)."""
        rows = np.ones(self.num_envs, bool) if rows is None else np.asarray(rows, bool)
        model, n = self.task.model, self.num_envs
        q, v = checked("q", q, (n, model.nq), rows), checked("v", v, (n, model.nv), rows)
        self.simulation.start(rows, q[rows], v[rows], self.simulation.state.goal[rows])

        self._ended[rows] = False
        self._waiting[rows] = False
        self._observation = self._observation.copy()
        self._observation[rows] = self.simulation.observe(rows)
        return self._observation.copy()

    def render(self):
        """A frame of every environment, uint8 (height, width, 3)."""
        return tuple(self.pictures.frame(q, v) for q, v in zip(self.state.q, self.state.v))

    def close_extras(self, **kwargs):
        self.pictures.close()

    def call(self, name, *args, **kwargs):
        """An attribute of the environments, or what a method of theirs gives, once for all of them."""
        value = getattr(self, name)
        if name == "render":
            return value()
        result = value(*args, **kwargs) if callable(value) else value
        return (result,) * self.num_envs

    def _start(self, rows, observation, infos, options):
        """Begins episodes of `rows`; fills in what they observe and say."""
        self._make_randoms()
        drawn = [self.task.draw(self._randoms[row]) for row in np.flatnonzero(rows)]
        starts = [np.array(column) for column in zip(*drawn)]
        for k, name in enumerate(("q", "v", "goal")):
            if name in options:
                starts[k] = checked(f"options[{name!r}]", options[name], (self.num_envs, starts[k].shape[1]), rows)[
                    rows
                ]
        self.simulation.start(rows, *starts)

        self._elapsed[rows] = 0
        self._ended[rows] = False
        self._waiting[rows] = False
        observation[rows] = self.simulation.observe(rows)
        vector_infos.add(infos, self.simulation.info(rows), rows)

    def _moving_rows(self):
        if self._waiting.any():
            names = np.flatnonzero(self._waiting).tolist()
            raise gymnasium.error.ResetNeeded(f"environments {names} were never reset: call reset() before step()")
        if self.autoreset_mode is AutoresetMode.DISABLED and self._ended.any():
            names = np.flatnonzero(self._ended).tolist()
            raise gymnasium.error.ResetNeeded(
                f"the episodes of environments {names} are over: reset(options={{'reset_mask': mask}}) before step()"
            )
        return ~self._ended

    def _reset_rows(self, mask):
        if mask is None:
            return np.ones(self.num_envs, bool)
        if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (self.num_envs,):
            raise ValueError(f"options['reset_mask']: expected a bool array of shape ({self.num_envs},), got {mask!r}")
        if not mask.any():
            raise ValueError("options['reset_mask'] is False everywhere, expected at least one True")
        return mask.copy()

    def _take_seeds(self, seed, rows):
        if seed is None or isinstance(seed, (int, np.integer)):
            seed = [None if seed is None else int(seed) + row for row in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(f"seed: expected one number, or {self.num_envs}, got {len(seed)}")
        for row in np.flatnonzero(rows):
            if seed[row] is not None:
                self._randoms[row], self._seeds[row] = seeding.np_random(seed[row])

    def _make_randoms(self):
        for row, random in enumerate(self._randoms):
            if random is None:
                self._randoms[row], self._seeds[row] = seeding.np_random()

    def _add_final(self, infos, outcome, ended):
        rows = np.flatnonzero(ended)
        final_obs = {row: outcome.observation[row].copy() for row in rows}
        vector_infos.add_objects(infos, "final_obs", final_obs, self.num_envs)
        infos["final_info"] = vector_infos.of_step(outcome, ended)
        infos["_final_info"] = ended.copy()


def _mode(name):
    try:
        return AutoresetMode(name)
    except ValueError as error:
        known = [mode.value for mode in AutoresetMode]
        raise ValueError(f"autoreset_mode is {name!r}, expected one of {known}") from error
