"""Environments for stable-baselines3: `import coulomb.envs.sb3`, with the extra `sb3`.

    envs = coulomb.envs.sb3.VecEnv("coulomb/HalfCheetah-v5", num_envs=16)
    PPO("MlpPolicy", VecMonitor(envs)).learn(1_000_000)

Single environments (gymnasium.make) go into stable-baselines3 as they are; this is the batch.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

try:
    from stable_baselines3.common.vec_env import VecEnv as _VecEnv
except ImportError as error:
    message = "coulomb.envs.sb3 needs the 'stable-baselines3' package: pip install 'coulomb[sb3]'"
    raise ImportError(message) from error

from . import registration  # noqa: F401


class VecEnv(_VecEnv):
    """A vector environment as stable-baselines3 takes it: episodes that end start again in the same step.

    id: of gymnasium.make_vec, which gets num_envs and options; or a vector environment with autoreset_mode="SameStep".
    infos have "terminal_observation" and "TimeLimit.truncated" where an episode ended, as stable-baselines3 wants them.
    """

    def __init__(self, id: str | gymnasium.vector.VectorEnv, num_envs: int = 1, **options: Any):
        if isinstance(id, str):
            self.envs = gymnasium.make_vec(id, num_envs=num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **options)
        else:
            self.envs = id
        mode = self.envs.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.SAME_STEP:
            raise ValueError(f"id: its autoreset_mode is {mode}, expected {AutoresetMode.SAME_STEP}")

        self._actions: Any = None
        spaces = self.envs.single_observation_space, self.envs.single_action_space
        super().__init__(self.envs.num_envs, *spaces)

    def reset(self):
        options = {key: np.stack([each[key] for each in self._options]) for key in self._options[0]}
        observations, infos = self.envs.reset(seed=list(self._seeds), options=options)
        self.reset_infos = _of_rows(infos, self.num_envs)
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions):
        self._actions = actions

    def step_wait(self):
        observations, rewards, terminations, truncations, infos = self.envs.step(self._actions)
        final_obs, final_info = infos.pop("final_obs", None), infos.pop("final_info", {})
        ended = infos.pop("_final_obs", np.zeros(self.num_envs, bool))
        infos.pop("_final_info", None)

        # What rows that ended say is of their last step; what the reset said is in reset_infos.
        each = _of_rows(infos, self.num_envs)
        if ended.any():
            last = _of_rows(final_info, self.num_envs)
            for row in np.flatnonzero(ended):
                self.reset_infos[row] = each[row]
                each[row] = {**last[row], "terminal_observation": final_obs[row]}
        for info, truncated in zip(each, truncations & ~terminations):
            info["TimeLimit.truncated"] = bool(truncated)
        return observations, rewards, terminations | truncations, each

    def close(self):
        self.envs.close()

    def get_images(self):
        return list(self.envs.render())

    def get_attr(self, attr_name, indices=None):
        value = getattr(self.envs, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name, value, indices=None):
        if len(list(self._get_indices(indices))) != self.num_envs:
            raise ValueError(f"indices: {attr_name!r} is one for all environments of a batch; leave indices out")
        setattr(self.envs, attr_name, value)

    def env_method(self, method_name, *method_args, indices=None, **method_kwargs):
        value = getattr(self.envs, method_name)(*method_args, **method_kwargs)
        return [value for _ in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False for _ in self._get_indices(indices)]


def _of_rows(infos, num_envs):
    """The infos of a vector environment as one dict a row."""
    each: list[dict[str, Any]] = [{} for _ in range(num_envs)]
    for key, values in infos.items():
        if key.startswith("_"):
            continue
        for row in np.flatnonzero(infos["_" + key]):
            each[row][key] = values[row]
    return each
