"""Volume, centre, inertia and area of a closed triangle mesh, and their derivatives by its vertices.

By the divergence theorem a closed surface's solid is the signed sum of the tetrahedra (r, a, b, c) over its triangles,
for any point r. With a, b, c taken from r and s = a + b + c,

    V = sum v,    v = a . (b x c) / 6
    F = sum v/4 s                                  first moments
    S = sum v/20 (a a^T + b b^T + c c^T + s s^T)   second moments

Polynomials in the vertices, so the derivatives are exact too. The result does not depend on r: it is put into the middle
of the vertices, where the tetrahedra cancel least, and held when differentiating. The surface need not be convex.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .checks import finite

_PAIRS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))  # Ixx Ixy Iyy Ixz Iyz Izz: Pinocchio's order


@dataclass(frozen=True)
class Solid:
    """Result of solid_properties, for unit density; the derivatives have the axes of the vertices (n, 3) last."""

    volume: float  # m^3
    com: np.ndarray  # (3,) m
    inertia: np.ndarray  # (3, 3) m^5, about the centre of mass
    ten: np.ndarray  # (10,): V, V c, Ixx Ixy Iyy Ixz Iyz Izz about the origin, as the parameter inertia/<body>
    area: float  # m^2
    d_volume: np.ndarray  # (n, 3)
    d_com: np.ndarray  # (3, n, 3)
    d_inertia: np.ndarray  # (3, 3, n, 3)
    d_ten: np.ndarray  # (10, n, 3)
    d_area: np.ndarray  # (n, 3)


def check_triangles(triangles, count, what):
    """The (m, 3) indices of a closed, consistently oriented surface on `count` vertices, or ValueError."""
    triangles = np.asarray(triangles)
    if triangles.ndim != 2 or triangles.shape[1] != 3 or not np.issubdtype(triangles.dtype, np.integer):
        raise ValueError(f"{what}: expected integers of shape (m, 3), got {triangles.dtype} {triangles.shape}")
    outside = np.argwhere((triangles < 0) | (triangles >= count))
    if len(outside):
        i, j = outside[0]
        raise ValueError(f"{what}[{i}, {j}]: {triangles[i, j]} is none of the {count} vertices")
    edges = {}
    for i, triangle in enumerate(triangles.tolist()):
        for edge in zip(triangle, (*triangle[1:], triangle[0])):
            if edge in edges or edge[0] == edge[1]:
                raise ValueError(f"{what}[{i}]: edge {edge} is used twice in this direction")
            edges[edge] = i
    for (a, b), i in edges.items():
        if (b, a) not in edges:
            raise ValueError(f"{what}[{i}]: edge {(a, b)} has no neighbour: the surface is not closed")
    return triangles


def solid_properties(vertices, triangles):
    """The Solid of unit density inside a closed surface; its volume is negative if the triangles look inward.

    vertices: (n, 3) m. triangles: (m, 3) indices, counter-clockwise seen from outside.

    ValueError: names what is not closed, not finite or of the wrong shape.
    """
    points = finite("vertices", vertices, (None, 3))
    return moments(points, check_triangles(triangles, len(points), "triangles"))


def cross(a, b):
    """np.cross of rows of three, without its overhead."""
    return a[..., [1, 2, 0]] * b[..., [2, 0, 1]] - a[..., [2, 0, 1]] * b[..., [1, 2, 0]]


def enclosed_volume(points, triangles):
    x = (points - points.mean(axis=0))[triangles]
    return float(np.einsum("mi,mi->", x[:, 0], cross(x[:, 1], x[:, 2])) / 6)


def moments(points, triangles):
    """solid_properties without its checks."""
    middle = points.mean(axis=0)
    x = (points - middle)[triangles]  # (m, corner, 3)
    s = x.sum(axis=1)
    normals = cross(x[:, [1, 2, 0]], x[:, [2, 0, 1]]) / 6  # dv by the corner
    v = np.einsum("mi,mi->m", x[:, 0], normals[:, 0])
    second = np.einsum("mci,mcj->mij", x, x) + np.einsum("mi,mj->mij", s, s)
    V, F, S = v.sum(), np.einsum("m,mi->i", v, s) / 4, np.einsum("m,mij->ij", v, second) / 20

    n, one = len(points), np.eye(3)
    dV, dF, dS = np.zeros((n, 3)), np.zeros((n, 3, 3)), np.zeros((n, 3, 3, 3))
    for c in range(3):
        at, slope, arm = triangles[:, c], normals[:, c], x[:, c] + s
        np.add.at(dV, at, slope)
        np.add.at(dF, at, np.einsum("mk,mi->mki", slope, s) / 4 + v[:, None, None] / 4 * one)
        product = np.einsum("ki,mj->mkij", one, arm)  # e_k (x + s)^T
        both = product + product.swapaxes(2, 3)
        np.add.at(dS, at, (np.einsum("mk,mij->mkij", slope, second) + v[:, None, None, None] * both) / 20)
    area, d_area = _area(points, triangles)
    return _assemble(middle, V, F, S, dV, np.moveaxis(dF, -1, 0), np.moveaxis(dS, (-2, -1), (0, 1)), area, d_area)


def _assemble(middle, V, F, S, dV, dF, dS, area, d_area):
    """The Solid from moments about `middle` (a constant)."""
    ten, d_ten = np.zeros(10), np.zeros((10, *dV.shape))
    shifted = S + np.outer(middle, F) + np.outer(F, middle) + V * np.outer(middle, middle)
    mixed = np.multiply.outer(middle, dF)
    d_shifted = dS + mixed + mixed.swapaxes(0, 1) + np.multiply.outer(np.outer(middle, middle), dV)
    ten[0], d_ten[0] = V, dV
    ten[1:4], d_ten[1:4] = F + V * middle, dF + np.multiply.outer(middle, dV)
    ten[4:], d_ten[4:] = _six(_inertia(shifted)), _six(_inertia(d_shifted))
    safe = V if V != 0 else np.nan
    com = F / safe
    d_com = (dF - np.multiply.outer(com, dV)) / safe
    mixed = np.multiply.outer(com, d_com)
    central = S - V * np.outer(com, com)
    d_central = dS - np.multiply.outer(np.outer(com, com), dV) - V * (mixed + mixed.swapaxes(0, 1))
    return Solid(float(V), middle + com, _inertia(central), ten, area, dV, d_com, _inertia(d_central), d_ten, d_area)


def _inertia(S):
    """tr(S) 1 - S, on the first two axes."""
    out = -S
    trace = S[0, 0] + S[1, 1] + S[2, 2]
    for i in range(3):
        out[i, i] += trace
    return out


def _six(matrix):
    return np.stack([matrix[i, j] for i, j in _PAIRS])


def _area(points, triangles):
    x = points[triangles]
    across = cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])
    double = np.linalg.norm(across, axis=1)
    unit = across / np.where(double > 0, double, 1)[:, None]
    slope = np.zeros_like(points)
    for c in range(3):
        np.add.at(slope, triangles[:, c], 0.5 * cross(unit, x[:, (c + 2) % 3] - x[:, (c + 1) % 3]))
    return float(double.sum() / 2), slope


def mass_description(ten):
    """Mass (kg), centre of mass (3,) and inertia about it (3, 3) of the ten numbers of inertia/<body>."""
    ten = finite("ten", ten, (10,))
    matrix = np.zeros((3, 3))
    for value, (i, j) in zip(ten[4:], _PAIRS):
        matrix[i, j] = matrix[j, i] = value
    com = ten[1:4] / ten[0]
    return ten[0], com, matrix - ten[0] * (com @ com * np.eye(3) - np.outer(com, com))
