"""check_vector_env: is a vector environment what Gymnasium's SyncVectorEnv of single environments is, in every autoreset mode?

Gymnasium checks single environments (gymnasium.utils.env_checker) and has nothing for vector ones. This compares one with the
reference, number by number, and looks for what learners trip over: arrays that are used again, flags of the wrong type, masks.
"""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv


class VectorCheckError(AssertionError):
    """A vector environment is not what its rows are; the message says where."""


def check_vector_env(make_vector, make_single, *, num_envs=3, steps=60, seed=7, modes=tuple(AutoresetMode), exact=True):
    """Checks a vector environment against single ones. VectorCheckError: says the mode, the step and what differs.

    make_vector(num_envs, autoreset_mode) and make_single() make them; episodes should end, by TimeLimit and otherwise, within
    `steps`, and single environments must have the vector environment's time limit. exact: the same bits; else to 1e-9.
    """
    for mode in modes:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of wrappers, about ranges
            envs = make_vector(num_envs, mode)
            reference = SyncVectorEnv([make_single] * num_envs, autoreset_mode=mode)
        try:
            _Comparison(envs, reference, mode, steps, seed, exact).run()
        finally:
            envs.close()
            reference.close()


class _Comparison:
    def __init__(self, envs, reference, mode, steps, seed, exact):
        self.envs, self.reference, self.mode = envs, reference, mode
        self.steps, self.seed, self.exact = steps, seed, exact
        self.where = "construction"
        self.kept = []  # arrays that were returned, and copies of what was in them

    def run(self):
        self._check_attributes()
        self._episode(self.seed)
        self._episode([self.seed + 5 * k for k in range(self.envs.num_envs)])
        self._episode(None)  # generators go on where they were
        self._check_masked_reset()
        self._check_kept()
        self._check_same_seed_same_rows()

    def fail(self, what):
        raise VectorCheckError(f"autoreset {self.mode.value}, {self.where}: {what}")

    def expect(self, holds, what):
        if not holds:
            self.fail(what)

    # --- what is compared -------------------------------------------------------------------------------------------------------

    def _check_attributes(self):
        envs, reference = self.envs, self.reference
        self.expect(isinstance(envs, gymnasium.vector.VectorEnv), "not a gymnasium.vector.VectorEnv")
        self.expect(envs.num_envs == reference.num_envs, f"num_envs is {envs.num_envs}, expected {reference.num_envs}")
        names = ("single_observation_space", "single_action_space", "observation_space", "action_space")
        for name in names:
            mine, its = getattr(envs, name), getattr(reference, name)
            self.expect(mine == its, f"{name} is {mine}, that of single environments {its}")
        mode = envs.metadata.get("autoreset_mode")
        self.expect(mode is self.mode, f"metadata['autoreset_mode'] is {mode!r}, expected {self.mode!r}")

    def _episode(self, seed):
        """Both from a reset, by the same actions."""
        self.where = f"reset(seed={seed})"
        self._compare_reset(self.envs.reset(seed=seed), self.reference.reset(seed=seed))
        self.envs.action_space.seed(self.seed)
        self._steps(f"after reset(seed={seed})")

    def _steps(self, after):
        for step in range(self.steps):
            self.where = f"step {step} {after}"
            actions = self.envs.action_space.sample()
            given = actions.copy()
            mine, its = self.envs.step(actions), self.reference.step(given.copy())
            self.expect(np.array_equal(actions, given), "step changed the array of actions")
            ended = self._compare_step(mine, its)
            if self.mode is AutoresetMode.DISABLED and ended.any():
                self._reset_rows(ended)

    def _reset_rows(self, rows):
        self.where += ", then reset by mask"
        mine = self.envs.reset(options={"reset_mask": rows.copy()})
        its = self.reference.reset(options={"reset_mask": rows.copy()})
        self._compare_reset(mine, its)

    def _check_masked_reset(self):
        """In the middle of episodes; with a seed of its own for the row."""
        rows = np.arange(self.envs.num_envs) == self.envs.num_envs - 1
        seeds = [None] * (self.envs.num_envs - 1) + [self.seed]
        self.where = "reset of the last row by mask, with a seed"
        mine = self.envs.reset(seed=seeds, options={"reset_mask": rows.copy()})
        its = self.reference.reset(seed=seeds, options={"reset_mask": rows.copy()})
        self._compare_reset(mine, its)

        # From here on the episode of that row ends at another time than those of the others.
        self._steps("after a reset of the last row by mask")

    def _check_same_seed_same_rows(self):
        """A row knows nothing of its number: with one seed all rows are the same."""
        self.where = "reset with one seed for all rows"
        observation, _ = self.envs.reset(seed=[self.seed] * self.envs.num_envs)
        self.expect((observation == observation[:1]).all(), "rows with the same seed observe different things")

        self.where = "step of rows with one seed and one action"
        action = np.broadcast_to(self.envs.single_action_space.sample(), self.envs.action_space.shape)
        observation, reward, *_ = self.envs.step(action)
        self.expect((observation == observation[:1]).all(), "rows with the same past observe different things")
        self.expect((reward == reward[0]).all(), f"rows with the same past get rewards {reward}")

    def _compare_reset(self, mine, its):
        self.expect(isinstance(mine, tuple) and len(mine) == 2, "reset must return observations and infos")
        self._compare("observations", mine[0], its[0])
        self.expect(mine[0] in self.envs.observation_space, "observations are not in observation_space")
        self._keep(mine[0])
        self._compare_infos("infos", mine[1], its[1])

    def _compare_step(self, mine, its):
        self.expect(isinstance(mine, tuple) and len(mine) == 5, "step must return five things")
        kinds = {"rewards": np.float64, "terminations": np.bool_, "truncations": np.bool_}
        for (name, kind), value in zip(kinds.items(), mine[1:4]):
            self.expect(isinstance(value, np.ndarray), f"{name} are {type(value).__name__}, expected an array")
            self.expect(value.dtype == kind, f"{name} are {value.dtype}, expected {np.dtype(kind)}")
        for name, left, right in zip(["observations", *kinds], mine[:4], its[:4]):
            self._compare(name, left, right)
            self._keep(left)
        self.expect(mine[0] in self.envs.observation_space, "observations are not in observation_space")
        self._compare_infos("infos", mine[4], its[4])
        return its[2] | its[3]

    def _compare_infos(self, name, mine, its):
        missing, more = sorted(set(its) - set(mine)), sorted(set(mine) - set(its))
        self.expect(not missing, f"{name} lack {missing}, which single environments give")
        self.expect(not more, f"{name} have {more}, which single environments do not give")
        for key, value in its.items():
            if isinstance(value, dict):
                self._compare_infos(f"{name}[{key!r}]", mine[key], value)
            else:
                self._compare(f"{name}[{key!r}]", mine[key], value)

    def _compare(self, name, mine, its):
        self.expect(isinstance(mine, np.ndarray), f"{name}: {type(mine).__name__}, expected an array")
        self.expect(mine.shape == its.shape, f"{name}: shape {mine.shape}, expected {its.shape}")
        self.expect(mine.dtype == its.dtype, f"{name}: {mine.dtype}, expected {its.dtype}")
        for row, (left, right) in enumerate(zip(mine, its)):
            self.expect(self._equal(left, right), f"{name}: row {row} is {left}, that of a single environment {right}")

    def _equal(self, left, right):
        if left is None or right is None or isinstance(left, str) or isinstance(right, str):
            return left == right if type(left) is type(right) else False
        if self.exact:
            return np.array_equal(left, right)
        return np.allclose(np.asarray(left, float), np.asarray(right, float), rtol=1e-9, atol=1e-9)

    # --- arrays that were returned stay as they are --------------------------------------------------------------------------------

    def _keep(self, array):
        if len(self.kept) < 4 * self.steps:
            self.kept.append((self.where, array, array.copy()))

    def _check_kept(self):
        for where, array, copy in self.kept:
            self.expect(
                np.array_equal(array, copy), f"the array returned in {where} has changed since: it was used again"
            )
