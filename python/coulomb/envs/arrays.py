"""The few operations on arrays that tasks need beside operators, for NumPy arrays and PyTorch tensors alike.

Each works on rows, and gives a row the same bits whatever rows stand beside it: no products of matrices, whose sums depend on their
sizes. With tensors each is differentiable.
"""

from __future__ import annotations

import sys

import numpy as np

from .._rotations import entries


def library(x):
    """The module whose functions take x: torch for tensors, else numpy."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(x, torch.Tensor) else np


def concatenate(parts):
    """Along the last axis."""
    xp = library(parts[0])
    return np.concatenate(parts, axis=-1) if xp is np else xp.cat(parts, dim=-1)


def stack(parts):
    """As a new last axis."""
    xp = library(parts[0])
    return np.stack(parts, axis=-1) if xp is np else xp.stack(parts, dim=-1)


def clip(x, low, high):
    return library(x).clip(x, low, high)


def where(condition, x, y):
    return library(condition).where(condition, x, y)


def cos(x):
    return library(x).cos(x)


def sin(x):
    return library(x).sin(x)


def exp(x):
    return library(x).exp(x)


def square_sum(x):
    """The sum of squares of each row."""
    squares = x * x
    return squares.sum(-1)


def finite_rows(x):
    """bool, per row: no number is infinite or nan."""
    return library(x).isfinite(x).all(-1)


def wrapped(angle):
    """The angle in [-pi, pi)."""
    return angle - 2 * np.pi * library(angle).floor((angle + np.pi) / (2 * np.pi))


def constant(values, like):
    """Numbers as an array of the kind and type of `like`."""
    xp = library(like)
    values = np.array(values)
    return values if xp is np else xp.tensor(values, dtype=like.dtype, device=like.device)


# --- rotations, by components: quaternions w x y z in the last axis ----------------------------------------------------------------


def cross(a, b):
    x = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    y = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    z = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return stack([x, y, z])


def rotation_matrix(quaternion):
    """(..., 3, 3): from the frame's axes to those of the world; its columns are the frame's axes."""
    if getattr(quaternion, "requires_grad", False):
        from .rotation_node import RotationMatrix  # needs torch, as its argument does

        return RotationMatrix.apply(quaternion)
    numbers = entries(*(quaternion[..., k] for k in range(4)))
    return stack(numbers).reshape(*quaternion.shape[:-1], 3, 3)


def to_world(rotation, vector):
    """A vector in the frame's axes, in those of the world."""
    return (rotation * vector[..., None, :]).sum(-1)


def to_frame(rotation, vector):
    """A vector in the world's axes, in those of the frame."""
    return (rotation * vector[..., :, None]).sum(-2)
