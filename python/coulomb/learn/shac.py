"""SHAC, Short-Horizon Actor-Critic [Xu2022]: a policy learned by gradients through short pieces of simulation, ended by a critic.

    python -m coulomb.learn.shac --env Hopper --seed 0 --output runs/hopper

For `horizon` control steps of `num_envs` environments, J = sum of gamma^t r_t + gamma^h V(s_h) is differentiated by the policy's weights
through rewards, observations and physics; episodes that end on the way end their sum. The critic is then fitted to TD(lambda) returns.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from coulomb.learn import checkpoints, log, ranks
from coulomb.learn.config import PRESETS, Config, given_options
from coulomb.learn.horizons import Horizon
from coulomb.learn.networks import Actor, ClipRows, Normalizer, Temperature, network
from coulomb.learn.worlds import JUDGED_SEED, Worlds, randomized, returns_of
from coulomb.progress import Bar

CHECKPOINT_SECONDS = 60  # the most that a run can lose


class Shac:
    """Everything that a run consists of; epoch() is one update of actor and critic."""

    def __init__(self, config):
        self.config = config
        self.rank, self.num_ranks = ranks.start()
        torch.manual_seed(config.seed)
        self.noise = torch.Generator().manual_seed(config.seed + 7919 * self.rank)
        self.task = config.task()
        options = {"gradient": config.gradient, "contact": config.contact}
        first = self.rank * config.num_envs
        if config.randomization:
            rows = range(first, first + config.num_envs)
            options["parameters"] = randomized(self.task.model, config.seed, rows, config.randomization)
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

    def epoch(self):
        """A horizon, a step of the actor, some of the critic; a dict for the log."""
        self._set_learning_rates()
        self.actor_optimizer.zero_grad()
        loss, data, played = self._play()
        loss.backward()
        cosine = self.actor.differentiate(*played)
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
        row = {"loss": loss.item(), "gradient_norm": norm.item(), "gradient_cosine": cosine, "critic_loss": critic_loss}
        return row | {"horizon": horizon}

    def _play(self):
        """The loss of one horizon; what the critic learns: values at the observations that were seen, and where it ends by a fall; and
        observations, noise and actions, whose gradient is the actor's (Actor.differentiate)."""
        c, worlds, horizon = self.config, self.worlds, self.horizon.steps
        seen = self.normalizer.copy()
        noise = torch.randn(horizon, c.num_envs, len(self.task.action_low), generator=self.noise)
        observations, actions, steps = [], [], []
        self.norms = []  # of the gradient by velocities, which are filled on the way back
        self.actor.requires_grad_(False)
        for t in range(horizon):
            q = ClipRows.apply(worlds.state.q, c.adjoint_clip)
            v = ClipRows.apply(worlds.state.v, c.adjoint_clip, self.norms)
            worlds.state = worlds.state._replace(q=q, v=v)
            observations.append(seen(worlds.observe()))
            action = self.actor(observations[-1], noise[t])
            actions.append(action if action.requires_grad else action.requires_grad_())
            actions[-1].retain_grad()
            steps.append(worlds.step(actions[-1]))
            self._count(steps[-1])

        self.actor.requires_grad_(True)

        # What follows after each step, were it the last one: nothing if the episode is over by itself. The critic learns that nothing
        # (fallen), and is asked there all the same: its slope is how the policy feels that falling is bad.
        ended, fell, lost = (torch.stack([getattr(s, x) for s in steps]) for x in ("ended", "terminated", "overflowed"))
        last = ended.clone()
        last[-1] = True
        observed = torch.stack(observations)
        following = torch.stack([seen(s.observation) for s in steps])
        values = self.target(following).squeeze(-1)
        earned = values.detach() * ~fell

        # Where numbers overflowed there was no step: what came before is cut as by time, at the value of the last good observation.
        if lost.any():
            values = values * ~lost
            earned = torch.where(lost, self.target(observed).squeeze(-1).detach() / c.gamma, earned)

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

        self.normalizer.update(torch.stack([s.observation.detach() for s in steps]))
        targets = self._targets(rewards.detach().float(), earned, last)
        learned = observed[~lost].detach(), targets[~lost], following[fell].detach()
        return loss, learned, (observed.detach(), noise, actions)

    def _targets(self, rewards, values, last):
        """TD(lambda) returns (h, n) [Xu2022]; values: of what follows each step."""
        c = self.config
        goal, targets = values[-1], torch.empty_like(rewards)
        for t in reversed(range(len(rewards))):
            goal = torch.where(last[t], values[t], (1 - c.td_lambda) * values[t] + c.td_lambda * goal)
            goal = targets[t] = rewards[t] + c.gamma * goal
        return targets

    def _count(self, step):
        self.returns += step.reward.detach().numpy()
        for row in np.flatnonzero(step.ended.numpy()):
            self.finished = [*self.finished[-99:], self.returns[row]]
            self.returns[row] = 0

    def _fit_critic(self, inputs, targets, fallen):
        """To the targets in minibatches, in order; each of them also to 0 at all falls, which are few."""
        c, zeros, losses = self.config, torch.zeros(len(fallen)), []
        for _ in range(c.critic_iterations):
            for x, y in zip(inputs.tensor_split(c.critic_batches), targets.tensor_split(c.critic_batches)):
                x, y = torch.cat([x, fallen]), torch.cat([y, zeros])
                loss = (self.critic(x).squeeze(-1) - y).square().sum() / max(len(x), 1)
                self.critic_optimizer.zero_grad()
                loss.backward()
                ranks.average_gradients(list(self.critic.parameters()))
                nn.utils.clip_grad_norm_(self.critic.parameters(), c.max_norm)
                self.critic_optimizer.step()
                losses.append(loss.item())
        with torch.no_grad():
            for old, new in zip(self.target.parameters(), self.critic.parameters()):
                old.lerp_(new, 1 - c.target_alpha)
        return sum(losses) / len(losses)

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
        rest = {"worlds": self.worlds.saved(), "noise": self.noise.get_state()}
        checkpoints.write(path, self.config, {**parts, **numbers, **rest})

    @classmethod
    def saved(cls, path):
        """The run of a checkpoint, where it was. ValueError: names a file that is none."""
        config, contents = checkpoints.read(path)
        run = cls(config)
        run.restore(contents)
        return run

    def load(self, path):
        """Goes on where a checkpoint was. ValueError: names an option that was another one there."""
        saved, contents = checkpoints.read(path)
        checkpoints.check_same(self.config, saved, path)
        self.restore(contents)

    def restore(self, contents):
        for name in self.PARTS:
            getattr(self, name).load_state_dict(contents[name])
        for name in self.NUMBERS:
            setattr(self, name, contents[name])
        self.worlds.restore(contents["worlds"])
        self.noise.set_state(contents["noise"])


def train(config, resume=None, progress=True):
    """A whole run; returns the Shac. Writes log.csv, checkpoint.pt and best.pt into config.output, each process of torchrun into a
    folder of its own. resume: such a folder, to go on from its last checkpoint; its log goes on where that is the output too.

    The log grows every epoch; a checkpoint is written after every evaluation, at least once a minute, and at Ctrl-C, which ends the
    run after the current epoch with KeyboardInterrupt (a second Ctrl-C ends it at once).

    ValueError: an output that has a checkpoint, which would be lost; a checkpoint that does not fit."""
    torch.set_num_threads(1)  # small products: more threads cost more than they give
    shac = Shac(config)
    folder = ranks.own_folder(config.output) if config.output else None
    if resume:
        shac.load(ranks.own_folder(resume) / "checkpoint.pt")
    if folder and (folder / "checkpoint.pt").exists() and not (resume and Path(resume).samefile(config.output)):
        raise ValueError(
            f"output is {config.output!r}, where a run is already: go on with it (resume), or choose another folder"
        )
    events = log.Events(config.logger if shac.rank == 0 else "", folder, shac.samples)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    rows = log.read(folder / "log.csv", shac.epochs) if folder and resume else []
    table = log.Table(folder / "log.csv", rows) if folder else None
    best = max((row["return"] for row in rows if "return" in row), default=-math.inf)
    start = time.perf_counter() - (rows[-1]["seconds"] if rows else 0)
    saved = time.perf_counter()
    bar = Bar("epoch")
    with checkpoints.Interruption() as interruption:
        while shac.epochs < config.epochs and not interruption.requested:
            row = {"epoch": shac.epochs + 1, **shac.epoch(), "samples": shac.samples}
            row["training_return"] = float(np.mean(shac.finished)) if shac.finished else math.nan
            row["seconds"] = time.perf_counter() - start
            if shac.epochs % config.evaluate_every == 0 or shac.epochs == config.epochs:
                row["return"] = float(shac.evaluate().mean())
                if folder and row["return"] > best:
                    shac.save(folder / "best.pt")
                best = max(best, row["return"])
            events.add(row)
            if progress and shac.rank == 0:
                told = f"best return {best:.0f}, " if math.isfinite(best) else ""
                bar(shac.epochs, config.epochs, f"{told}with noise {row['training_return']:.0f}")
            if folder:
                table.add(row)
                late = time.perf_counter() - saved > CHECKPOINT_SECONDS
                if "return" in row or late or interruption.requested:
                    shac.save(folder / "checkpoint.pt")
                    saved = time.perf_counter()
    bar.close()
    events.close()
    if interruption.requested:
        raise KeyboardInterrupt(f"after epoch {shac.epochs} of {config.epochs}")
    return shac


def main(arguments=None):
    given = given_options("python -m coulomb.learn.shac", __doc__.split("\n")[0], arguments)
    resume = given.pop("resume", None)
    try:
        if resume:  # with the options that it had
            had, _ = checkpoints.read(ranks.own_folder(resume) / "checkpoint.pt")
            config = Config(**{**dataclasses.asdict(had), "output": resume, **given})
        else:
            config = Config(**{**PRESETS.get(given.get("env", Config.env), {}), **given})
        shac = train(config, resume)
    except ValueError as error:
        sys.exit(f"python -m coulomb.learn.shac: {error}")
    except KeyboardInterrupt as stop:
        rest = f"; continue with --resume {config.output}" if config.output else ""
        print(f"interrupted {stop}{rest}", file=sys.stderr)
        sys.exit(130)
    ranks.finish()
    returns = shac.evaluate()
    if shac.rank == 0:
        told = f"return {returns.mean():.0f} (least {returns.min():.0f}) after {shac.samples} steps"
        print(f"{config.env}, seed {config.seed}: {told}")


if __name__ == "__main__":
    main()
