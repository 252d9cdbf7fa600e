"""Rotations and poses as numpy arrays, for many at once."""

from __future__ import annotations

import numpy as np

from .._rotations import entries


def matrices(quaternions):
    """(..., 4) wxyz to (..., 3, 3)."""
    q = np.asarray(quaternions, dtype=float)
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return np.stack(entries(*np.moveaxis(q, -1, 0)), axis=-1).reshape(*q.shape[:-1], 3, 3)


def quaternions(turns):
    """(..., 3, 3) to (..., 4) wxyz, the largest of the four positive: no division by a small one."""
    R = np.asarray(turns, dtype=float)
    a, b, c = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]

    # 4 q q^T, whose best row is the one with the largest diagonal entry.
    outer = np.empty((*R.shape[:-2], 4, 4))
    outer[..., 0, 0], outer[..., 1, 1] = 1 + a + b + c, 1 + a - b - c
    outer[..., 2, 2], outer[..., 3, 3] = 1 - a + b - c, 1 - a - b + c
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        outer[..., 0, i + 1] = outer[..., i + 1, 0] = R[..., k, j] - R[..., j, k]
        outer[..., j + 1, k + 1] = outer[..., k + 1, j + 1] = R[..., j, k] + R[..., k, j]
    best = np.argmax(np.diagonal(outer, axis1=-2, axis2=-1), axis=-1)
    rows = np.take_along_axis(outer, best[..., None, None], axis=-2)[..., 0, :]
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def from_rpy(rpy):
    """URDF's roll, pitch, yaw about fixed axes to (3, 3)."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    return about_z @ about_y @ about_x
