"""Differences on the manifold of configurations: their Jacobians, and those of orientations that are read.

Rotations are moved on their right, R exp(w), so that their tangents are in body axes; all else is a vector space. With J_r the right
Jacobian of exp, exp(w + dw) = exp(w) exp(J_r(w) dw):

    integrate(R, w) = R exp(w)              by R: exp(-w)           by w: J_r(w)
    difference(R0, R1) = d                  by R0: -J_r(-d)^-1      by R1: J_r(d)^-1
"""

from __future__ import annotations

import numpy as np

from .._coordinates import Coordinates
from ..morphology.rotations import left_jacobian, rotation_matrix


class Tangents:
    """Jacobians (nv, nv) of Model.integrate and Model.difference."""

    def __init__(self, model):
        self.nv = model.nv
        self.rotations = [slice(v, v + 3) for _, v in Coordinates(model).quaternions]

    def integrate_by_q(self, w):
        return self._blocks(w, lambda r: rotation_matrix(-r), 1.0)

    def integrate_by_w(self, w):
        return self._blocks(w, right_jacobian, 1.0)

    def difference_by_first(self, d):
        return self._blocks(d, lambda r: -np.linalg.inv(right_jacobian(-r)), -1.0)

    def difference_by_second(self, d):
        return self._blocks(d, lambda r: np.linalg.inv(right_jacobian(r)), 1.0)

    def _blocks(self, w, of_rotation, of_the_rest):
        J = of_the_rest * np.eye(self.nv)
        for at in self.rotations:
            J[at, at] = of_rotation(w[at])
        return J


def right_jacobian(w):
    return left_jacobian(-w)


def turn_between(a, b):
    """The rotation vector (3,) from the unit quaternion a to b, (w, x, y, z), in the axes of a's frame, the short way round."""
    real = a @ b
    imaginary = a[0] * b[1:] - b[0] * a[1:] - np.cross(a[1:], b[1:])
    if real < 0:
        real, imaginary = -real, -imaginary
    sine = np.linalg.norm(imaginary)
    if sine < 1e-8:
        return 2 * imaginary
    return 2 * np.arctan2(sine, real) / sine * imaginary


def spaces(model):
    """("vector", size) and ("rotation", 3) in the order of (q, v), neighbouring vectors as one."""
    found, at = [], 0
    for q, _ in Coordinates(model).quaternions:
        if q > at:
            found.append(("vector", q - at))
        found.append(("rotation", 3))
        at = q + 4
    return [*found, ("vector", model.nq - at + model.nv)]


def pinocchio_order(model):
    """(nq + nv,) whole numbers that take (q, v) to quaternions (x, y, z, w): x[order]."""
    order = np.arange(model.nq + model.nv)
    for q, _ in Coordinates(model).quaternions:
        order[q : q + 4] = q + np.array([1, 2, 3, 0])
    return order
