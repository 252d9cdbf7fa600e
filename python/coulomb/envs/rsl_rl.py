"""Environments for RSL-RL 5: `import coulomb.envs.rsl_rl`, with the extra `rsl-rl`.

envs = coulomb.envs.rsl_rl.VecEnv("coulomb/Go1Walk-v0", num_envs=256)
OnPolicyRunner(envs, configuration, log_dir).learn(500)
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

try:
    import torch
    from rsl_rl.env import VecEnv as _VecEnv
    from tensordict import TensorDict
except ImportError as error:
    raise ImportError("coulomb.envs.rsl_rl needs the 'rsl-rl-lib' package: pip install 'coulomb[rsl-rl]'") from error

from . import registration  # noqa: F401


class VecEnv(_VecEnv):
    """A vector environment as RSL-RL takes it: float32 tensors, one group of observations "policy", episodes that start again by
    themselves.

    id: of gymnasium.make_vec, which gets num_envs and options. device: of the tensors; the simulation is on the CPU. seed: of
    environment 0. extras have "time_outs", and in "log" the means of the infos.
    """

    def __init__(self, id: str, num_envs: int = 1, *, device: str = "cpu", seed: int | None = None, **options: Any):
        self.envs = gymnasium.make_vec(id, num_envs=num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **options)
        self.num_envs = num_envs
        self.num_actions = int(np.prod(self.envs.single_action_space.shape))
        self.device = device
        self.cfg = {"id": id, "num_envs": num_envs, "seed": seed, **options}

        if self.envs.max_episode_steps is None:
            raise ValueError(f"id: episodes of {id!r} have no end, give max_episode_steps")
        self.max_episode_length = self.envs.max_episode_steps
        self._observations, _ = self.envs.reset(seed=seed)

    @property
    def unwrapped(self):
        return self.envs

    @property
    def episode_length_buf(self):
        """int64 (n,): control steps of every episode so far."""
        return torch.as_tensor(self.envs.elapsed_steps, device=self.device)

    @episode_length_buf.setter
    def episode_length_buf(self, steps):
        self.envs.elapsed_steps = steps.cpu().numpy()

    def reset(self):
        self._observations, _ = self.envs.reset()
        return self.get_observations(), {}

    def get_observations(self):
        return TensorDict({"policy": self._tensor(self._observations)}, batch_size=[self.num_envs], device=self.device)

    def step(self, actions):
        results = self.envs.step(actions.detach().cpu().numpy())
        self._observations, rewards, terminations, truncations, infos = results
        time_outs = torch.as_tensor(truncations & ~terminations, device=self.device)
        dones = torch.as_tensor(terminations | truncations, device=self.device).long()
        extras = {"time_outs": time_outs, "log": self._log(infos)}
        return self.get_observations(), self._tensor(rewards), dones, extras

    def close(self):
        self.envs.close()

    def _tensor(self, values):
        return torch.as_tensor(values, dtype=torch.float32, device=self.device)

    @staticmethod
    def _log(infos):
        """Means of what the environments that go on say; numbers only."""
        entries = {key: value for key, value in infos.items() if not key.startswith(("_", "final"))}
        numbers = {key: value for key, value in entries.items() if value.ndim == 1 and value.dtype != object}
        return {f"/{key}": float(value[infos["_" + key]].mean()) for key, value in numbers.items()}
