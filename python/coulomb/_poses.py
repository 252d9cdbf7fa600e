"""Between the numbers of mocap bodies' poses, position and quaternion, and their tangent: position and rotation vector, as the parameter
body_placement has them.

With r the rotation vector of a unit quaternion q, and w the turn of its frame about its own axes, dq = E w (_coordinates.turn) and
w = J(r) dr with J the right Jacobian of rotations. So the numbers of q move the tangent by dr = J(r)^-1 E^+ dq / |q|. Arrays (..., m, 7)
and (..., m, 6) with any leading axes.
"""

from __future__ import annotations

import numpy as np

from ._coordinates import turn


def normalized(poses, name="mocap"):
    """Poses with unit quaternions (those that are unit to rounding keep their bits), and the lengths (..., m)."""
    poses = np.array(poses, dtype=float)
    lengths = np.linalg.norm(poses[..., 3:], axis=-1)
    zero = np.argwhere(lengths == 0)
    if len(zero):
        raise ValueError(f"{name}[{', '.join(map(str, zero[0]))}]: quaternion of norm 0")
    lengths = np.where(np.abs(lengths - 1) > 1e-14, lengths, 1.0)
    poses[..., 3:] /= lengths[..., None]
    return poses, lengths


def projections(poses, lengths):
    """(..., m, 6, 7): the tangent by the numbers of poses, whose quaternions are unit ones of those lengths before."""
    r = _rotation_vectors(poses[..., 3:])
    out = np.zeros(poses.shape[:-1] + (6, 7))
    out[..., :3, :3] = np.eye(3)
    out[..., 3:, 3:] = (
        _inverse_right_jacobian(r) @ turn(poses[..., 3:]).swapaxes(-1, -2) * (4 / lengths)[..., None, None]
    )
    return out


def gradient_of_tangent(poses, lengths, g):
    """The gradient (..., m, 7) by the numbers, from that in the tangent, g (..., m, 6)."""
    return (g[..., None, :] @ projections(poses, lengths))[..., 0, :]


def block_projection(poses, lengths):
    """The projections of (n, m, 7) poses as one matrix (n, 6 m, 7 m)."""
    n, m = poses.shape[:2]
    out = np.zeros((n, m, 6, m, 7))
    out[:, np.arange(m), :, np.arange(m)] = projections(poses, lengths).swapaxes(0, 1)
    return out.reshape(n, 6 * m, 7 * m)


def _rotation_vectors(q):
    """Of unit quaternions, no longer than half a turn."""
    w, xyz = np.where(q[..., :1] < 0, -1.0, 1.0) * q[..., :1], np.where(q[..., :1] < 0, -1.0, 1.0) * q[..., 1:]
    n = np.linalg.norm(xyz, axis=-1, keepdims=True)
    small = n < 1e-8
    return np.where(small, 2.0, 2 * np.arctan2(n, w) / np.where(small, 1.0, n)) * xyz


def _inverse_right_jacobian(r):
    """(..., 3, 3) of rotation vectors: 1 + [r] / 2 + c [r]^2 with c = (1 - a cot a) / |r|^2, a = |r| / 2."""
    a = np.linalg.norm(r, axis=-1)[..., None, None] / 2
    small = a < 1e-3
    safe = np.where(small, 1.0, a)
    c = np.where(small, 1 / 12 + a**2 / 180, (1 - safe / np.tan(safe)) / (4 * safe**2))
    x, y, z = np.moveaxis(r, -1, 0)
    zero = np.zeros_like(x)
    cross = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1).reshape(r.shape[:-1] + (3, 3))
    return np.eye(3) + cross / 2 + c * (cross @ cross)
