"""Rotation vectors: their matrix, and that of a frame through three moved points, with its derivative."""

from __future__ import annotations

import numpy as np


def skew(w):
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def rotation_matrix(vector):
    """exp of a rotation vector (3,)."""
    angle, K = np.linalg.norm(vector), skew(vector)
    if angle < 1e-6:
        return np.eye(3) + K + K @ K / 2
    return np.eye(3) + np.sin(angle) / angle * K + (1 - np.cos(angle)) / angle**2 * K @ K


def left_jacobian(vector):
    """J with exp(r + dr) = exp(J dr) exp(r)."""
    angle, K = np.linalg.norm(vector), skew(vector)
    if angle < 1e-4:
        return np.eye(3) + K / 2 + K @ K / 6
    return np.eye(3) + (1 - np.cos(angle)) / angle**2 * K + (angle - np.sin(angle)) / angle**3 * K @ K


def rotation_vector(R, near):
    """The rotation vector of R, its angle at most pi, as Model.parameters() gives it; at pi the one closer to `near`."""
    w = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    sine, cosine = np.linalg.norm(w), (np.trace(R) - 1) / 2
    angle = np.arctan2(sine, cosine)
    if angle < 1e-6:
        return w * (1 + angle**2 / 6)
    if np.pi - angle > 1e-4:
        return w * angle / sine
    outer = (R + R.T) / 2 - cosine * np.eye(3)  # the axis from the symmetric part
    axis = outer[:, np.argmax(np.diag(outer))]
    axis = axis / np.linalg.norm(axis)
    side = axis @ w if sine > 1e-12 else axis @ near
    return axis * angle * (1.0 if side >= 0 else -1.0)


def frame_of(points, near, what):
    """Rotation vector of the frame with x along points[1] - points[0] and y towards points[2] (Gram-Schmidt), and its
    derivative (3, 3, 3) by the points' coordinates.
    """
    a, b = points[1] - points[0], points[2] - points[0]
    c = np.cross(a, b)
    la, lc = np.linalg.norm(a), np.linalg.norm(c)
    if not (la > 0 and lc > 1e-9 * la * np.linalg.norm(b)):
        raise ValueError(f"{what}: its cage makes the axes of its frame parallel")
    x, z = a / la, c / lc
    y = np.cross(z, x)
    vector = rotation_vector(np.stack([x, y, z], axis=1), near)
    # spin = x (dz . y)(-1) + y (-(dx . z)) + z (dx . y), in world axes, with dz normal to z
    spin = np.zeros((3, 3, 3))  # by arms: spin[:, arm, coordinate]; arm 0 unused
    spin[:, 1] = (-np.outer(y, z) + np.outer(z, y)) / la - np.outer(x, np.cross(b, y)) / lc
    spin[:, 2] = -np.outer(x, np.cross(y, a)) / lc
    spin[:, 0] = -spin[:, 1] - spin[:, 2]
    return vector, np.tensordot(np.linalg.inv(left_jacobian(vector)), spin, axes=1)
