"""PPO of stable-baselines3 on a task that SHAC learns too: the same environments, networks of the same size, a log with the same columns."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

import coulomb.envs.sb3
from coulomb.envs import VectorEnv
from coulomb.learn import log
from coulomb.learn.worlds import JUDGED_SEED, Worlds, returns_of

# DiffRL's settings of rl_games for these tasks, on a quarter of its environments: (environments, control steps of each).
SHAPES = {"Hopper": (256, 32), "LightHopper": (256, 32), "CartPole": (32, 240), "Ant": (256, 32), "LightAnt": (256, 32)}
SETTINGS = {
    "learning_rate": 3e-4,
    "n_epochs": 5,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "clip_range": 0.2,
    "vf_coef": 2.0,
    "max_grad_norm": 1.0,
}
UNITS = {
    "Hopper": (128, 64, 32),
    "LightHopper": (128, 64, 32),
    "CartPole": (64, 64),
    "Ant": (128, 64, 32),
    "LightAnt": (128, 64, 32),
}


class Judge(BaseCallback):
    """After every so many control steps: 16 whole episodes without noise; a row for the log."""

    def __init__(self, config, evaluate_every):
        super().__init__()
        self.config = config
        self.evaluate_every = evaluate_every
        self.rows = []
        self.judged = 0
        self.start = time.perf_counter()

    def _on_step(self):
        return True

    def _on_rollout_end(self):
        finished = [episode["r"] for episode in self.model.ep_info_buffer]
        row = {"epoch": len(self.rows) + 1, "samples": self.num_timesteps}
        row["training_return"] = float(np.mean(finished)) if finished else math.nan
        row["seconds"] = time.perf_counter() - self.start
        row["return"] = math.nan
        if self.num_timesteps - self.judged >= self.evaluate_every:
            self.judged = self.num_timesteps
            row["return"] = float(Learned(self.config, self.model).evaluate().mean())
        self.rows.append(row)


class Learned:
    """A policy of PPO with the attributes and functions of shac.Shac that judge one."""

    def __init__(self, config, model):
        self.config = config
        self.model = model
        self.normalizer = self._normalized

    def _normalized(self, observation):
        return torch.from_numpy(self.model.get_env().normalize_obs(observation.numpy()))

    def actor(self, observation):
        action, _ = self.model.predict(observation.numpy(), deterministic=True)
        return torch.from_numpy(action)

    def evaluate(self, task=None, episodes=16):
        """Returns (episodes,) without noise, from the starts that policies of shac.py are judged at."""
        worlds = Worlds(task or self.config.task(), episodes, JUDGED_SEED)
        return returns_of(lambda observation: self.actor(self.normalizer(observation)), worlds)


def train(config, samples):
    """That many control steps of PPO on the task of a configuration of SHAC: writes log.csv, returns what it learned."""
    torch.set_num_threads(1)
    num_envs, horizon = SHAPES[config.env]
    vector = VectorEnv(num_envs, task=config.task(), autoreset_mode="SameStep", num_threads=config.num_threads)
    envs = VecNormalize(VecMonitor(coulomb.envs.sb3.VecEnv(vector)), gamma=SETTINGS["gamma"])
    policy = {
        "net_arch": {"pi": list(UNITS[config.env]), "vf": list(UNITS[config.env])},
        "activation_fn": torch.nn.ELU,
        "log_std_init": -1.0,
    }
    model = PPO(
        "MlpPolicy",
        envs,
        n_steps=horizon,
        batch_size=num_envs * horizon // 4,
        seed=config.seed,
        policy_kwargs=policy,
        device="cpu",
        **SETTINGS,
    )
    judge = Judge(config, samples // 40)
    model.learn(samples, callback=judge)

    folder = Path(config.output)
    folder.mkdir(parents=True, exist_ok=True)
    log.write(folder / "log.csv", judge.rows)
    return Learned(config, model)
