"""Policy: what a run has learned, as a function from observations to actions.

policy = Policy.load("runs/hopper")                  # or a file: runs/hopper/best.pt
action = policy(observation)                         # NumPy arrays, (size,) or (n, size)
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from coulomb.learn import checkpoints
from coulomb.learn.networks import Actor


class Policy:
    """A learned policy without exploration noise. task: the coulomb.envs.Task that it was trained on; config: the options of its run."""

    def __init__(self, config, task, actor, normalizer):
        self.config = config
        self.task = task
        self.actor = actor
        self.normalizer = normalizer

    @classmethod
    def load(cls, path):
        """The policy of a checkpoint, or of a run's folder: its best.pt, or its checkpoint.pt where no return was measured yet.

        Checkpoints are pickles: load only files that you trust. ValueError: the path has no checkpoint, or a damaged one.
        """
        path = Path(path)
        if path.is_dir():
            path = next(
                (path / name for name in ("best.pt", "checkpoint.pt") if (path / name).is_file()), path / "best.pt"
            )
        config, contents = checkpoints.read(path)
        task = config.task()
        normalizer = contents["normalizer"]
        actor = Actor(task, len(normalizer.mean), config.actor_units, config.log_std)
        actor.load_state_dict(contents["actor"])
        return cls(config, task, actor.requires_grad_(False), normalizer)

    def __call__(self, observation):
        """Actions (k,) or (n, k) within the task's bounds for observations (size,) or (n, size). ValueError: another size, nan."""
        rows = torch.as_tensor(np.asarray(observation, dtype=np.float64))
        size = len(self.normalizer.mean)
        if rows.ndim not in (1, 2) or rows.shape[-1] != size:
            raise ValueError(f"observation: got shape {tuple(rows.shape)}, expected ({size},) or (n, {size})")
        if torch.isnan(rows).any():
            first = tuple(int(i) for i in torch.isnan(rows).nonzero()[0])
            raise ValueError(f"observation{list(first)}: nan")
        actions = self.actor(self.normalizer(torch.atleast_2d(rows))).double().numpy()
        return actions if rows.ndim == 2 else actions[0]
