"""Entries of rotation matrices, for arrays of every kind."""

from __future__ import annotations


def entries(w, x, y, z):
    """The nine of the matrix of a unit quaternion, row by row: from the frame's axes to those of the world."""
    return [
        1 - 2 * (y * y + z * z),
        2 * (x * y - w * z),
        2 * (x * z + w * y),
        2 * (x * y + w * z),
        1 - 2 * (x * x + z * z),
        2 * (y * z - w * x),
        2 * (x * z - w * y),
        2 * (y * z + w * x),
        1 - 2 * (x * x + y * y),
    ]
