"""Where a picture is taken from: a fixed place, or an orbit around a point that may ride on a body."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MARGIN = 0.8  # of the picture's half width and height that a fitted camera fills
AZIMUTH, ELEVATION = 140.0, -18.0  # looks at the front of what looks along x, from its right and a little above


class Place(NamedTuple):
    """position (3,) m, and axes (3, 3): rows right, up and forward."""

    position: np.ndarray
    axes: np.ndarray


class Fixed(NamedTuple):
    """A camera that stays."""

    place: Place
    distance: float  # m, to what it looks at

    def at(self, positions):
        """The Place when the bodies' origins are at positions (num_bodies, 3)."""
        return self.place


class Orbit(NamedTuple):
    """A camera around a target, which is seen from the body's origin if there is a body: it follows, and does not turn with it."""

    azimuth: float
    elevation: float
    distance: float
    target: np.ndarray
    body: int | None

    def at(self, positions):
        """The Place when the bodies' origins are at positions (num_bodies, 3)."""
        centre = self.target if self.body is None else positions[self.body] + self.target
        axes = axes_of(self.azimuth, self.elevation)
        return Place(centre - self.distance * axes[2], axes)


def axes_of(azimuth, elevation):
    """(3, 3) rows right, up, forward. Degrees: azimuth of the direction that is looked in, from x to y; elevation: negative looks down."""
    a, e = np.radians([azimuth, elevation])
    right = [np.sin(a), -np.cos(a), 0.0]
    up = [-np.sin(e) * np.cos(a), -np.sin(e) * np.sin(a), np.cos(e)]
    forward = [np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)]
    return np.array([right, up, forward])


def looking(position, target):
    """A Fixed camera. ValueError: it stands at its target."""
    position, target = three("position", position), three("target", target)
    forward = target - position
    distance = float(np.linalg.norm(forward))
    if not distance > 1e-9 * (1 + np.abs(target).max()):
        raise ValueError(f"position: the camera is at its target, {target.tolist()}, so it has no direction")

    # Straight up or down the upper edge of the picture is towards y.
    forward /= distance
    level = np.hypot(forward[0], forward[1])
    azimuth = np.degrees(np.arctan2(forward[1], forward[0])) if level > 1e-9 else 90.0
    return Fixed(Place(position, axes_of(azimuth, np.degrees(np.arctan2(forward[2], level)))), distance)


def fitted_distance(points, target, axes, focal, width, height):
    """m: the least at which all points (n, 3) are inside the picture, from the target against the forward axis."""
    right, up, forward = ((points - target) @ axes.T).T
    across = np.abs(right) * focal / (0.5 * MARGIN * width) - forward
    upward = np.abs(up) * focal / (0.5 * MARGIN * height) - forward
    return max(float(across.max()), float(upward.max()), 1e-3)


def three(name, values):
    """(3,), finite."""
    try:
        found = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.shape != (3,) or not np.isfinite(found).all():
        raise ValueError(f"{name}: got {values!r}, expected three finite numbers")
    return found
