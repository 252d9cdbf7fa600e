"""Surfaces of primitives as polygons, and polygons as triangles: what pictures, the viewer and morphology draw and measure."""

from __future__ import annotations

import numpy as np


def triangulate(loops):
    """(m, 3) of loops of corners: fans."""
    return np.array([(f[0], f[k], f[k + 1]) for f in loops for k in range(1, len(f) - 1)], int).reshape(-1, 3)


def surface(kind, size, sides):
    """(vertices (n, 3), loops (m, 4), scale (3,)): a unit shape, loops counter-clockwise from outside, and what it is stretched by.

    Shapes of one kind share their numbers, but capsules: their caps stay round, so they come in their own size. sides: of a full turn.
    """
    if kind == "box":
        return *_box(), np.asarray(size)
    arc = np.linspace(-np.pi / 2, np.pi / 2, sides // 2 + 1)
    round_profile = [(np.cos(a), np.sin(a)) for a in arc]
    if kind == "sphere":
        return *revolved([round_profile], sides), np.full(3, size[0])
    if kind == "ellipsoid":
        return *revolved([round_profile], sides), np.asarray(size)
    if kind == "cylinder":
        ends = [(0, -1), (1, -1)], [(1, -1), (1, 1)], [(1, 1), (0, 1)]
        return *revolved(ends, sides), np.array([size[0], size[0], size[1]])

    # The middle arc of a capsule once below and once above.
    low = [(size[0] * r, size[0] * z - size[1]) for r, z in round_profile if z <= 1e-9]
    high = [(size[0] * r, size[0] * z + size[1]) for r, z in round_profile if z >= -1e-9]
    return *revolved([low + high], sides), np.ones(3)


def _box():
    """Each side with corners of its own, so that there are edges."""
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return np.concatenate([corners[list(side)] for side in sides]), np.arange(24).reshape(6, 4)


def revolved(profiles, sides):
    """Profiles of (radius, height), turned around z; where one ends and the next begins there is an edge."""
    angles = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    around = np.arange(sides)
    following = (around + 1) % sides
    vertices, loops, first = [], [], 0
    for profile in profiles:
        for r, z in profile:
            vertices.append(np.stack([r * np.cos(angles), r * np.sin(angles), np.full(sides, z)], axis=1))
        for low in range(first, first + (len(profile) - 1) * sides, sides):
            high = low + sides
            loops.append(np.stack([low + around, low + following, high + following, high + around], axis=1))
        first += len(profile) * sides
    return np.concatenate(vertices), np.concatenate(loops)
