"""Between the numbers of q and the tangent space of Model.integrate, in which the derivatives of a step live.

PyTorch and JAX differentiate with respect to the nq numbers of q; a quaternion has four of them and three
directions. With

    E = d integrate(q, w) / dw at w = 0      (nq, nv): on a unit quaternion E' E = I / 4, and E' q = 0

a tangent w of a unit q is the change E w of its numbers. Quaternions of any length are scaled to unit length first,
so that every change dq of the numbers has a tangent, w = E^+ dq / |q| with E^+ = 4 E'. Cotangents go the other way,
by the transposes: E' c for a cotangent c of the numbers of a result, and (E^+)' g / |q| for the gradient of an
argument; it has no component along q, and E' (E^+)' g = g. Numbers that are no quaternion's are their own tangent.

All functions take arrays with any leading axes.
"""

from __future__ import annotations

import numpy as np


class Coordinates:
    """Where the quaternions of a model are, and the maps above."""

    def __init__(self, model):
        self.nq, self.nv = model.nq, model.nv
        self.quaternions = []  # (first of four in q, first of three in v)
        shift = {"free": 3, "ball": 0}
        for kind, q, v in zip(model.joint_types, model.joint_q, model.joint_v):
            if kind in shift:
                self.quaternions.append((int(q) + shift[kind], int(v) + shift[kind]))
        in_q = np.ones(self.nq, dtype=bool)
        in_v = np.ones(self.nv, dtype=bool)
        for a, b in self.quaternions:
            in_q[a : a + 4] = False
            in_v[b : b + 3] = False
        self.plain_q, self.plain_v = np.flatnonzero(in_q), np.flatnonzero(in_v)

    def normalized(self, q, name="q"):
        """q with unit quaternions (those that are unit to rounding keep their bits), and the lengths (..., number of
        quaternions).
        """
        q = np.array(q, dtype=float)
        lengths = np.ones(q.shape[:-1] + (len(self.quaternions),))
        for k, (a, _) in enumerate(self.quaternions):
            length = np.linalg.norm(q[..., a : a + 4], axis=-1)
            if not (length > 0).all() and not np.isnan(length).any():
                raise ValueError(f"{name}[{a}:{a + 4}]: quaternion of norm 0")
            length = np.where(np.abs(length - 1) > 1e-14, length, 1.0)
            q[..., a : a + 4] /= length[..., None]
            lengths[..., k] = length
        return q, lengths

    def numbers_of_tangent(self, q, w):
        """E w: the change (..., nq) of the numbers of a unit q along the tangent w (..., nv)."""
        out = np.empty(np.broadcast_shapes(q.shape[:-1], w.shape[:-1]) + (self.nq,))
        out[..., self.plain_q] = w[..., self.plain_v]
        for a, b in self.quaternions:
            out[..., a : a + 4] = _times(turn(q[..., a : a + 4]), w[..., b : b + 3])
        return out

    def tangent_of_cotangent(self, q, c):
        """E' c: the cotangent (..., nv) that a cotangent c (..., nq) of the numbers of a unit q is."""
        out = np.empty(np.broadcast_shapes(q.shape[:-1], c.shape[:-1]) + (self.nv,))
        out[..., self.plain_v] = c[..., self.plain_q]
        for a, b in self.quaternions:
            out[..., b : b + 3] = _times(turn(q[..., a : a + 4]).swapaxes(-1, -2), c[..., a : a + 4])
        return out

    def gradient_of_tangent(self, q, lengths, g):
        """(E^+)' g / |q|: the gradient (..., nq) by the numbers of q from that in tangent space, g (..., nv). q:
        unit.
        """
        out = self.numbers_of_tangent(q, g)
        for k, (a, _) in enumerate(self.quaternions):
            out[..., a : a + 4] *= 4 / lengths[..., k, None]
        return out

    def expansion(self, q):
        """E as a matrix (..., nq, nv)."""
        return self.numbers_of_tangent(q[..., None, :], np.eye(self.nv)).swapaxes(-1, -2)

    def projection(self, q, lengths):
        """E^+ / |q| as a matrix (..., nv, nq). q: unit."""
        return self.gradient_of_tangent(q[..., None, :], lengths[..., None, :], np.eye(self.nv))


def turn(q):
    """(..., 4, 3) derivative of q * exp(w / 2) by w at 0: half of q's product with the imaginary units. Quaternions
    (w, x, y, z).
    """
    w, x, y, z = np.moveaxis(q, -1, 0)
    return 0.5 * np.stack([-x, -y, -z, w, -z, y, z, w, -x, -y, x, w], axis=-1).reshape(q.shape[:-1] + (4, 3))


def _times(matrix, vector):
    return (matrix @ vector[..., None])[..., 0]
