"""PPO of stable-baselines3 on a task that SHAC learns too: the same environments, networks of the same size, a log with the same columns."""

from __future__ import annotations

import csv
import math
import time

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

import coulomb.envs.sb3
from coulomb.envs import VectorEnv
from coulomb.envs.tasks import task_of
from coulomb.learn.presets import TASKS
from coulomb.learn.worlds import JUDGED_SEED, Worlds, returns_of

# DiffRL's settings of rl_games for these tasks, on a quarter of its environments: (environments, control steps of each).
SHAPES = {"Hopper": (256, 32), "CartPole": (32, 240), "Ant": (256, 32)}
SETTINGS = {
    "learning_rate": 3e-4,
    "n_epochs": 5,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "clip_range": 0.2,
    "vf_coef": 2.0,
    "max_grad_norm": 1.0,
}
UNITS = {"Hopper": (128, 64, 32), "CartPole": (64, 64), "Ant": (128, 64, 32)}


class Judge(BaseCallback):
    """After every so many control steps: 16 whole episodes without noise; a row for the log."""

    def __init__(self, env, evaluate_every):
        super().__init__()
        self.env = env
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
            row["return"] = float(Learned(self.env, self.model).evaluate().mean())
        self.rows.append(row)


class Learned:
    """A policy of PPO with the functions of shac.Shac that judge one."""

    def __init__(self, env, model):
        self.model = model
        self.env = env
        self.task = self.task_like()
        self.normalizer = self._normalized

    def task_like(self, **keywords):
        return task_of(TASKS[self.env], keywords)

    def _normalized(self, observation):
        return torch.from_numpy(self.model.get_env().normalize_obs(observation.numpy()))

    def actor(self, observation):
        action, _ = self.model.predict(observation.numpy(), deterministic=True)
        return torch.from_numpy(action)

    def evaluate(self, task=None, episodes=16):
        """Returns (episodes,) without noise, from the starts that policies of shac.py are judged at."""
        worlds = Worlds(task or self.task, episodes, JUDGED_SEED)
        return returns_of(lambda observation: self.actor(self.normalizer(observation)), worlds)


def train(env, seed, samples, folder, threads=0):
    """A run of that many control steps: writes log.csv, returns what it learned."""
    torch.set_num_threads(1)
    num_envs, horizon = SHAPES[env]
    vector = VectorEnv(num_envs, task=TASKS[env], autoreset_mode="SameStep", num_threads=threads)
    envs = VecNormalize(VecMonitor(coulomb.envs.sb3.VecEnv(vector)), gamma=SETTINGS["gamma"])
    policy = {
        "net_arch": {"pi": list(UNITS[env]), "vf": list(UNITS[env])},
        "activation_fn": torch.nn.ELU,
        "log_std_init": -1.0,
    }
    model = PPO(
        "MlpPolicy",
        envs,
        n_steps=horizon,
        batch_size=num_envs * horizon // 4,
        seed=seed,
        policy_kwargs=policy,
        device="cpu",
        **SETTINGS,
    )
    judge = Judge(env, samples // 40)
    model.learn(samples, callback=judge)

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, judge.rows[0].keys())
        writer.writeheader()
        writer.writerows(judge.rows)
    return Learned(env, model)
