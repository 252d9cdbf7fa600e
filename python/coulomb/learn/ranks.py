"""Processes that learn together, started by torchrun: each has environments of its own, gradients and statistics are those of all.

    torchrun --nproc-per-node 2 -m coulomb.learn.shac --env Hopper

Same seed and same number of processes: same bits. Without torchrun there is one process, and nothing is sent.
"""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import distributed


def start():
    """(rank, number of processes), of this one; joins the others where torchrun has started it."""
    if "RANK" not in os.environ:
        return 0, 1
    if not distributed.is_initialized():
        distributed.init_process_group("gloo")
    return distributed.get_rank(), distributed.get_world_size()


def own_folder(folder):
    """Where this process writes, of a run's folder."""
    together = int(os.environ.get("WORLD_SIZE", "1")) > 1
    return Path(folder) / f"rank{os.environ['RANK']}" if together else Path(folder)


def finish():
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


def summed(x):
    """The sum of a tensor over all processes."""
    if distributed.is_available() and distributed.is_initialized():
        x = x.clone()
        distributed.all_reduce(x)
    return x


def averaged(x):
    """The mean of a tensor over all processes."""
    together = distributed.is_available() and distributed.is_initialized()
    return summed(x) / distributed.get_world_size() if together else x


def average_gradients(parameters):
    """Every gradient becomes the mean over all processes, in one message."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return
    gradients = [p.grad for p in parameters]
    flat = averaged(torch.cat([g.flatten() for g in gradients]))
    for gradient, mean in zip(gradients, flat.split([g.numel() for g in gradients])):
        gradient.copy_(mean.view_as(gradient))
