"""Signal and noise of a task's policy gradient, in seconds, before hours of training are spent on it.

    python -m coulomb.learn.probe --env Ant

The policy is a constant b with the exploration noise of the run, J the mean reward of a horizon. Every environment gives a gradient dJ/db;
their mean is what a learner follows. It is a signal where its length is many times its standard error, and noise where it is about once that.
"""

from __future__ import annotations

import inspect
import sys
from typing import NamedTuple

import numpy as np
import torch

from coulomb.learn.config import PRESETS, Config, given_options
from coulomb.learn.networks import ClipRows
from coulomb.learn.worlds import Worlds
from coulomb.progress import Bar

WARM_UP = 40  # control steps with noise before the horizon, so that the environments are in the middle of what they do
HORIZONS = (8, 16, 32)
CLIPS = (0.0, 3.0, 10.0)

# What else the tables of a task try, if it has these keywords.
VARIANTS = {
    "rigid floor": {"contact_stiffness": None, "contact_dashpot": 0.0},
    "soft floor, 4e4 N/m": {"contact_stiffness": 4e4, "contact_dashpot": 1e3},
    "rigid limits": {"limit_stiffness": None},
    "soft limits, 1e3 N m/rad": {"limit_stiffness": 1e3},
}


class Signal(NamedTuple):
    """Statistics of the gradients (n, k) of n environments with respect to the constant action."""

    ratio: float  # length of the mean over its standard error: about 1 is noise
    cosine: float  # between the means of two halves of the environments
    median: float  # length of one environment's gradient
    largest: float
    ends: int  # episodes that ended within the horizon


def signal(task, config, horizon, clip):
    """The Signal of a task (coulomb.envs.Task) over so many control steps, at config's seed, num_envs, log_std, gradient and contact.

    clip: as Config.adjoint_clip.
    """
    options = {"gradient": config.gradient, "contact": config.contact}
    worlds = Worlds(task, config.num_envs, config.seed, config.num_threads, options)
    generator = torch.Generator().manual_seed(config.seed)
    middle, reach = (torch.from_numpy((task.action_high + s * task.action_low) / 2) for s in (1, -1))

    def step(constant):
        noise = torch.randn(constant.shape, generator=generator, dtype=torch.float64)
        return worlds.step(middle + reach * torch.tanh(constant + np.exp(config.log_std) * noise))

    constant = torch.zeros(config.num_envs, len(reach), dtype=torch.float64)
    with torch.no_grad():
        for _ in range(WARM_UP):
            step(constant)

    # The mean reward of every environment until its episode ends.
    constant.requires_grad_()
    running = torch.ones(config.num_envs, dtype=torch.float64)
    total = torch.zeros(())
    ends = 0
    for _ in range(horizon):
        q, v = (ClipRows.apply(x, clip) for x in worlds.state[:2])
        worlds.state = worlds.state._replace(q=q, v=v)
        after = step(constant)
        total = total + (running * after.reward).sum() / horizon
        running = running * ~after.ended
        ends += int(after.ended.sum())
    total.backward()

    gradients = constant.grad
    mean = gradients.mean(0)
    error = gradients.std(0).norm() / np.sqrt(len(gradients))
    lengths = gradients.norm(dim=1)
    halves = (half.mean(0) for half in gradients.tensor_split(2))
    cosine = torch.nn.functional.cosine_similarity(*halves, dim=0)
    return Signal(*(x.item() for x in (mean.norm() / error, cosine, lengths.median(), lengths.max())), ends)


def cases(config):
    """(name, keywords of the task, horizon, clip): horizons and clips for the task as the config has it; then other floors and limits."""
    clips = sorted({*CLIPS, config.adjoint_clip})
    for horizon in sorted({*HORIZONS, config.horizon}):
        for clip in clips:
            yield "as configured", {}, horizon, clip
    known = inspect.signature(config.task_class()).parameters
    for name, keywords in VARIANTS.items():
        if all(keyword in known for keyword in keywords):
            yield name, keywords, config.horizon, config.adjoint_clip


def main(arguments=None):
    given = given_options("python -m coulomb.learn.probe", __doc__.split("\n")[0], arguments)
    given.pop("resume", None)
    torch.set_num_threads(1)  # small products
    try:
        config = Config(**{"num_envs": 64, **PRESETS.get(given.get("env", Config.env), {}), **given})
        todo = list(cases(config))
        lines = []
        bar = Bar("case")
        for number, (name, keywords, horizon, clip) in enumerate(todo, start=1):
            found = signal(config.task(**keywords), config, horizon, clip)
            numbers = f"{found.ratio:8.2f} {found.cosine:7.2f} {found.median:9.3g} {found.largest:9.3g} {found.ends:6d}"
            lines.append(f"{name:<26}{horizon:>8}{clip:>6g} {numbers}")
            bar(number, len(todo))
        bar.close()
    except ValueError as error:
        sys.exit(f"python -m coulomb.learn.probe: {error}")
    print(
        f"{config.env}: gradient of the mean reward by a constant action, {config.num_envs} environments, seed {config.seed}"
    )
    print(f"{'task':<26}{'horizon':>8}{'clip':>6} {'signal':>8} {'cosine':>7} {'median':>9} {'largest':>9} {'ends':>6}")
    print("\n".join(lines))
    print("signal: |mean| / standard error (about 1: noise). clip 0: none. docs/learning.md says how to read this.")


if __name__ == "__main__":
    main()
