"""Cages: a few handles that carry all points of a part.

A point at p follows the handles h_i from their rest places by linear blend skinning with translations,

    p' = p + sum_i w_i(p) (h_i' - h_i),    sum_i w_i = 1,

so p' is linear in the handles and its derivative is the weights. Here w also reproduces p = sum_i w_i h_i, so that
scaling, shearing or turning all handles together does just that to the points.
"""

from __future__ import annotations

import numpy as np

from .checks import finite
from .volume import check_triangles, cross, enclosed_volume

_SMALL = 1e-10  # relative to the cage's size


class Cage:
    """Handles at rest (k, 3), metres, in the frame of the body whose points they carry.

    triangles: (m, 3), the handles as a closed surface, counter-clockwise seen from outside: then weights are mean value
    coordinates [Ju2005], and a cage turned inside out is found. weights: instead, a function of points
    (n, 3) that returns (n, k), rows of sum 1. name: in errors.

    ValueError: names what is not closed, not finite, flat or of the wrong shape.
    """

    def __init__(self, handles, triangles=None, *, weights=None, name="cage"):
        self.name = str(name)
        self.handles = finite("handles", handles, (None, 3))
        self.size = float(np.ptp(self.handles, axis=0).max()) if len(self.handles) else 0.0
        if len(self.handles) < 4 or np.linalg.matrix_rank(self.handles - self.handles[0], _SMALL * self.size) < 3:
            raise ValueError(f"handles: the {len(self.handles)} handles of cage '{self.name}' lie in one plane")
        if triangles is None and weights is None:
            raise ValueError("triangles: needed, or weights; Cage.box makes both for a box")
        self.triangles, self._weights, self._signs = None, weights, None
        if triangles is not None:
            self.triangles = check_triangles(triangles, len(self.handles), "triangles")
            if not enclosed_volume(self.handles, self.triangles) > _SMALL * self.size**3:
                raise ValueError(f"triangles: those of cage '{self.name}' look inward")
            self._signs = np.sign(self._signed_volumes(self.handles))
        self.handles.flags.writeable = False

    @classmethod
    def box(cls, low, high, *, centres=False, name="cage"):
        """The box between two corners (3,): its 8 corners as handles, x changing fastest, and trilinear weights; with the
        6 centres of faces (-x, +x, -y, ...) after them: 14 handles and mean value coordinates.
        """
        low, high = finite("low", low, (3,)), finite("high", high, (3,))
        if not (high > low).all():
            axis = int(np.argmin(high - low))
            raise ValueError(f"high[{axis}]: {high[axis]} must be above low[{axis}], {low[axis]}")
        corners = low + BOX_CORNERS * (high - low)
        if not centres:
            return cls(corners, BOX_TRIANGLES, weights=lambda points: _trilinear(points, low, high), name=name)
        middles = np.tile((low + high) / 2, (6, 1))
        for axis in range(3):
            middles[2 * axis, axis], middles[2 * axis + 1, axis] = low[axis], high[axis]
        return cls(np.concatenate([corners, middles]), FAN_TRIANGLES, name=name)

    def weights(self, points):
        """(n, k) for points (n, 3) at rest; those outside are carried as well."""
        points = finite("points", points, (None, 3))
        if self._weights is None:
            found = mean_value_coordinates(points, self.handles, self.triangles)
        else:
            found = finite(f"weights of cage '{self.name}'", self._weights(points), (len(points), len(self.handles)))
        sums = found.sum(axis=1)
        if (abs(sums - 1) > 1e-9).any():
            row = int(np.argmax(abs(sums - 1)))
            raise ValueError(f"weights of cage '{self.name}': row {row} has the sum {sums[row]}, not 1")
        return found

    def deform(self, points, handles):
        """points (n, 3), at rest, where the handles (k, 3) take them."""
        handles = finite("handles", handles, self.handles.shape)
        return finite("points", points, (None, 3)) + self.weights(points) @ (handles - self.handles)

    def check(self, handles):
        """ValueError names the triangle, seen from the middle, that the handles turn over."""
        if self.triangles is None:
            return
        volumes = self._signed_volumes(handles)
        turned = np.flatnonzero((self._signs > 0) & ~(volumes > _SMALL * self.size**3 * 1e-3))
        if len(turned):
            corners = ", ".join(map(str, self.triangles[turned[0]]))
            raise ValueError(
                f"cage '{self.name}': handles {corners} are inverted: that side of the cage is turned over"
            )

    def _signed_volumes(self, handles):
        """Signed volumes of the tetrahedra from the middle to the triangles; zero where the middle is nearly in the triangle's plane."""
        x = (handles - handles.mean(axis=0))[self.triangles]
        volumes = np.einsum("mi,mi->m", x[:, 0], cross(x[:, 1], x[:, 2]))
        return np.where(abs(volumes) > 1e-6 * self.size**3, volumes, 0.0) if self._signs is None else volumes


BOX_CORNERS = np.array([(x, y, z) for z in (0, 1) for y in (0, 1) for x in (0, 1)], dtype=float)
BOX_FACES = ((0, 4, 6, 2), (1, 3, 7, 5), (0, 1, 5, 4), (2, 6, 7, 3), (0, 2, 3, 1), (4, 5, 7, 6))  # -x +x -y +y -z +z
BOX_TRIANGLES = np.array([t for a, b, c, d in BOX_FACES for t in ((a, b, c), (a, c, d))])
FAN_TRIANGLES = np.array([(face[k], face[(k + 1) % 4], 8 + i) for i, face in enumerate(BOX_FACES) for k in range(4)])


def _trilinear(points, low, high):
    t = (points - low) / (high - low)
    return np.prod(np.where(BOX_CORNERS[None] == 1, t[:, None], 1 - t[:, None]), axis=2)


def mean_value_coordinates(points, handles, triangles):
    """(n, k): the weights [Ju2005] of points in a closed surface, made exact on linear functions."""
    size = float(np.ptp(handles, axis=0).max())
    found = np.array([_mean_value(p, handles, triangles, size) for p in points]).reshape(len(points), len(handles))
    linear = np.concatenate([handles / size, np.ones((len(handles), 1))], axis=1)
    wanted = np.concatenate([points / size, np.ones((len(points), 1))], axis=1)
    return found + (wanted - found @ linear) @ np.linalg.pinv(linear)  # rounding near the surface


def _mean_value(point, handles, triangles, size):
    arms = handles - point
    lengths = np.linalg.norm(arms, axis=1)
    out = np.zeros(len(handles))
    if lengths.min() < 1e-6 * size:
        out[np.argmin(lengths)] = 1
        return out
    u = arms / lengths[:, None]
    for triangle in triangles:
        t = u[triangle]
        chords = np.linalg.norm(np.roll(t, -1, axis=0) - np.roll(t, -2, axis=0), axis=1)
        angles = 2 * np.arcsin(np.minimum(chords / 2, 1))
        half = angles.sum() / 2
        d = lengths[triangle]
        if np.pi - half < 1e-7:  # in the triangle: its own coordinates
            out[:] = 0
            out[triangle] = np.sin(angles) * np.roll(d, -1) * np.roll(d, -2)
            break
        sines = np.sin(angles)
        beside, before = np.roll(sines, -1), np.roll(sines, -2)
        if (sines < _SMALL).any():
            continue  # seen as a line
        cosines = np.clip(2 * np.sin(half) * np.sin(half - angles) / (beside * before) - 1, -1, 1)
        turned = np.sign(np.linalg.det(t)) * np.sqrt(1 - cosines**2)
        if (abs(turned) < 1e-9).any():
            continue  # in the plane of the triangle, outside of it
        weight = angles - np.roll(cosines, -1) * np.roll(angles, -2) - np.roll(cosines, -2) * np.roll(angles, -1)
        out[triangle] += weight / (d * beside * np.roll(turned, -2))
    return out / out.sum()
