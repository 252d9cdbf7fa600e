"""SHAC, Short-Horizon Actor-Critic [Xu2022]: a policy learned by gradients through short pieces of simulation, ended by a critic.

    python -m coulomb.learn.shac --env Hopper --seed 0 --output runs/hopper

For `horizon` control steps of `num_envs` environments, J = sum of gamma^t r_t + gamma^h V(s_h) is differentiated by the policy's weights
through rewards, observations and physics; episodes that end on the way end their sum. The critic is then fitted to TD(lambda) returns.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from coulomb.envs.tasks import task_of
from coulomb.learn import log, ranks
from coulomb.learn.command import given_options
from coulomb.learn.horizons import Horizon
from coulomb.learn.networks import Actor, ClipRows, Normalizer, Temperature, network
from coulomb.learn.presets import PRESETS, TASKS
from coulomb.learn.worlds import JUDGED_SEED, Worlds, returns_of
from coulomb.progress import Bar


@dataclasses.dataclass
class Config:
    env: str = "Hopper"  # a name of TASKS, or "module:Class" of a Task
    seed: int = 0
    epochs: int = 1000
    num_envs: int = 64
    horizon: int = 32  # control steps of one gradient
    longest_horizon: int = 0  # above 0: the horizon adapts between 8 and this (learn/horizons.py)
    gamma: float = 0.99
    td_lambda: float = 0.95
    actor_lr: float = 2e-3  # both fall linearly to 1e-5
    critic_lr: float = 1e-3
    betas: tuple[float, float] = (0.7, 0.95)
    max_norm: float = 1.0  # of the gradient
    critic_iterations: int = 4
    critic_batches: int = 4
    target_alpha: float = 0.2  # share of the old target critic that stays
    actor_units: tuple[int, ...] = (128, 64, 32)
    critic_units: tuple[int, ...] = (64, 64)
    log_std: float = -1.0  # of the exploration noise, at the start
    entropy: bool = False  # rewarded, with a learned weight (learn/networks.py)
    adjoint_clip: float = 10.0  # times the median norm over environments, of the gradient by states; 0: none
    gradient: str = "exact"  # and contact: as coulomb.Simulator takes them
    contact: str = "auto"
    contact_stiffness: float = 0.0  # N/m of the floor's points of contact, and its dashpot in N s/m; 0: rigid
    contact_dashpot: float = 0.0
    evaluate_every: int = 50  # epochs between deterministic episodes
    evaluations: int = 16
    num_threads: int = 0  # of the simulator; 0: all cores
    output: str = ""  # folder for log.csv and checkpoints; none
    log: str = ""  # "tensorboard": its events too, into the output folder, or without one into runs/


class Shac:
    """Everything that a run consists of; epoch() is one update of actor and critic."""

    def __init__(self, config):
        self.config = config
        self.rank, self.num_ranks = ranks.start()
        torch.manual_seed(config.seed)
        self.noise = torch.Generator().manual_seed(config.seed + 7919 * self.rank)
        self.task = self.task_like()
        options = {"gradient": config.gradient, "contact": config.contact}
        first = self.rank * config.num_envs
        self.worlds = Worlds(self.task, config.num_envs, config.seed, config.num_threads, options, first)
        self.judge_options = {"contact": config.contact}

        size = self.worlds.observe().shape[1]
        self.normalizer = Normalizer(size)
        self.actor = Actor(self.task, size, config.actor_units, config.log_std)
        self.critic = network([size, *config.critic_units, 1], gain=math.sqrt(2))
        self.target = copy.deepcopy(self.critic)
        adam = {"betas": config.betas, "fused": True}
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), config.actor_lr, **adam)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), config.critic_lr, **adam)

        self.temperature = Temperature(len(self.task.action_low)) if config.entropy else None
        self.horizon = Horizon(config.horizon, config.longest_horizon)
        self.epochs = self.samples = 0
        self.returns = np.zeros(config.num_envs)  # of the episodes that are running
        self.finished = []  # returns of the last 100 noisy episodes

    def task_like(self, **keywords):
        """The task that is learned, or one that differs from it by keywords."""
        c = self.config
        soft = {"contact_stiffness": c.contact_stiffness, "contact_dashpot": c.contact_dashpot}
        return task_of(TASKS.get(c.env, c.env), {**(soft if c.contact_stiffness else {}), **keywords})

    def epoch(self):
        """A horizon, a step of the actor, some of the critic; a dict for the log."""
        self._set_learning_rates()
        loss, data = self._play()
        self.actor_optimizer.zero_grad()
        loss.backward()
        ranks.average_gradients(list(self.actor.parameters()))
        norm = nn.utils.clip_grad_norm_(self.actor.parameters(), self.config.max_norm)
        if not torch.isfinite(norm):
            raise FloatingPointError(f"epoch {self.epochs}: the policy's gradient is {norm}")
        self.actor_optimizer.step()
        critic_loss = self._fit_critic(*data)
        self.worlds.detach()
        self.epochs += 1
        horizon = self.horizon.steps
        self.samples += self.config.num_envs * horizon * self.num_ranks
        self.horizon.adapt(self.norms)
        return {"loss": loss.item(), "gradient_norm": norm.item(), "critic_loss": critic_loss, "horizon": horizon}

    def _play(self):
        """The loss of one horizon, and what the critic learns from: observations, rewards, values, ends, all (h, n), and ends by a fall."""
        c, worlds, horizon = self.config, self.worlds, self.horizon.steps
        seen = self.normalizer.copy()
        noise = torch.randn(horizon, c.num_envs, len(self.task.action_low), generator=self.noise)
        observations, actions, steps = [], [], []
        self.norms = []  # of the gradient by velocities, which are filled on the way back
        for t in range(horizon):
            q = ClipRows.apply(worlds.state.q, c.adjoint_clip)
            v = ClipRows.apply(worlds.state.v, c.adjoint_clip, self.norms)
            worlds.state = worlds.state._replace(q=q, v=v)
            observations.append(seen(worlds.observe()))
            actions.append(self.actor(observations[-1], noise[t]))
            steps.append(worlds.step(actions[-1]))
            self._count(steps[-1])

        # What follows after each step, were it the last one: nothing if the episode is over by itself. The critic learns that nothing
        # (fallen), and is asked there all the same: its slope is how the policy feels that falling is bad.
        ended, fell, lost = (torch.stack([getattr(s, x) for s in steps]) for x in ("ended", "terminated", "overflowed"))
        last = ended.clone()
        last[-1] = True
        following = torch.stack([seen(s.observation) for s in steps])
        values = self.target(following).squeeze(-1)
        earned = values.detach() * ~(fell | lost)

        # Discounted within each episode; the value closes its sum.
        rewards = torch.stack([s.reward for s in steps])
        if self.temperature:
            surprise = self.actor.surprise(torch.stack(actions), noise)
            rewards = rewards + self.temperature.bonus(surprise)
            self.temperature.learn(surprise)
        discount, total = torch.ones(c.num_envs), torch.zeros(())
        for t in range(horizon):
            total = total + (discount * rewards[t]).sum() + (discount * c.gamma * values[t])[last[t]].sum()
            discount = torch.where(ended[t], torch.ones(()), discount * c.gamma)
        loss = -total / (horizon * c.num_envs)

        raw = torch.stack([s.observation.detach() for s in steps])
        self.normalizer.update(raw)
        fallen = following[fell].detach()
        return loss, (torch.stack(observations).detach(), rewards.detach().float(), earned, last, fallen)

    def _count(self, step):
        self.returns += step.reward.detach().numpy()
        for row in np.flatnonzero(step.ended.numpy()):
            self.finished = [*self.finished[-99:], self.returns[row]]
            self.returns[row] = 0

    def _fit_critic(self, observations, rewards, values, last, fallen):
        """To TD(lambda) returns, in minibatches of the horizon in order; to 0 where episodes were over by themselves."""
        c = self.config
        goal, targets = values[-1], torch.empty_like(rewards)
        for t in reversed(range(len(rewards))):
            goal = torch.where(last[t], values[t], (1 - c.td_lambda) * values[t] + c.td_lambda * goal)
            goal = targets[t] = rewards[t] + c.gamma * goal
        inputs, targets, zeros = observations.flatten(0, 1), targets.flatten(), torch.zeros(len(fallen))
        total = 0.0
        for _ in range(c.critic_iterations):
            for x, y in zip(inputs.chunk(c.critic_batches), targets.chunk(c.critic_batches)):
                x, y = torch.cat([x, fallen]), torch.cat([y, zeros])
                loss = (self.critic(x).squeeze(-1) - y).square().mean()
                self.critic_optimizer.zero_grad()
                loss.backward()
                ranks.average_gradients(list(self.critic.parameters()))
                nn.utils.clip_grad_norm_(self.critic.parameters(), c.max_norm)
                self.critic_optimizer.step()
                total += loss.item()
        with torch.no_grad():
            for old, new in zip(self.target.parameters(), self.critic.parameters()):
                old.lerp_(new, 1 - c.target_alpha)
        return total / (c.critic_iterations * c.critic_batches)

    def _set_learning_rates(self):
        c = self.config
        left = 1 - self.epochs / c.epochs
        for optimizer, rate in ((self.actor_optimizer, c.actor_lr), (self.critic_optimizer, c.critic_lr)):
            optimizer.param_groups[0]["lr"] = 1e-5 + (rate - 1e-5) * left

    def evaluate(self, task=None, options=None):
        """Returns (evaluations,) of whole episodes without noise; of another task of the same observations, with other options."""
        c = self.config
        worlds = Worlds(task or self.task, c.evaluations, JUDGED_SEED, c.num_threads, options or self.judge_options)
        return returns_of(lambda observation: self.actor(self.normalizer(observation)), worlds)

    # --- to be saved and gone on with, to the same bits ---------------------------------------------------------------------------

    PARTS = ("actor", "critic", "target", "actor_optimizer", "critic_optimizer")
    NUMBERS = ("normalizer", "temperature", "horizon", "epochs", "samples", "returns", "finished")

    def save(self, path):
        parts = {name: getattr(self, name).state_dict() for name in self.PARTS}
        numbers = {name: getattr(self, name) for name in self.NUMBERS}
        rest = {
            "worlds": self.worlds.saved(),
            "noise": self.noise.get_state(),
            "config": dataclasses.asdict(self.config),
        }
        torch.save({**parts, **numbers, **rest}, path)

    @classmethod
    def saved(cls, path):
        """The run of a checkpoint, where it was."""
        run = cls(Config(**torch.load(path, weights_only=False)["config"]))
        run.load(path)
        return run

    def load(self, path):
        saved = torch.load(path, weights_only=False)
        for name in self.PARTS:
            getattr(self, name).load_state_dict(saved[name])
        for name in self.NUMBERS:
            setattr(self, name, saved[name])
        self.worlds.restore(saved["worlds"])
        self.noise.set_state(saved["noise"])


def train(config, resume=None, progress=True):
    """A whole run; returns the Shac. Writes log.csv, checkpoint.pt and best.pt into config.output, each process of torchrun into a
    folder of its own. resume: such a folder, to go on from its last checkpoint; its log goes on where that is the output too."""
    torch.set_num_threads(1)  # small products: more threads cost more than they give
    shac = Shac(config)
    own = f"rank{shac.rank}" if shac.num_ranks > 1 else ""
    folder = Path(config.output) / own if config.output else None
    if resume:
        shac.load(Path(resume) / own / "checkpoint.pt")
    events = log.Events(config.log if shac.rank == 0 else "", folder, shac.samples)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    rows = log.read(folder / "log.csv", shac.epochs) if folder and resume else []
    best = max((row["return"] for row in rows if "return" in row), default=-math.inf)
    start = time.perf_counter() - (rows[-1]["seconds"] if rows else 0)
    bar = Bar("epoch")
    while shac.epochs < config.epochs:
        row = {"epoch": shac.epochs + 1, **shac.epoch(), "samples": shac.samples}
        row["training_return"] = float(np.mean(shac.finished)) if shac.finished else math.nan
        row["seconds"] = time.perf_counter() - start
        if shac.epochs % config.evaluate_every == 0 or shac.epochs == config.epochs:
            row["return"] = float(shac.evaluate().mean())
            if folder and row["return"] > best:
                shac.save(folder / "best.pt")
            best = max(best, row["return"])
        rows.append(row)
        events.add(row)
        if progress and shac.rank == 0:
            told = f"best return {best:.0f}, " if math.isfinite(best) else ""
            bar(shac.epochs, config.epochs, f"{told}with noise {row['training_return']:.0f}")
        if folder and "return" in row:
            shac.save(folder / "checkpoint.pt")
            log.write(folder / "log.csv", rows)
    bar.close()
    events.close()
    return shac


def main(arguments=None):
    given = given_options("python -m coulomb.learn.shac", __doc__.split("\n")[0], Config, arguments)
    resume = given.pop("resume", None)
    config = Config(**{**PRESETS.get(given.get("env", Config.env), {}), **given})
    shac = train(config, resume)
    ranks.finish()
    returns = shac.evaluate()
    print(
        f"{config.env}, seed {config.seed}: return {returns.mean():.0f} (least {returns.min():.0f}) after {shac.samples} steps"
    )


if __name__ == "__main__":
    main()
