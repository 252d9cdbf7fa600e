"""Derivatives of differences and sums of configurations: identities, but for the rotations of free and ball joints.

For rotations exp(phi + d) = exp(phi) exp(J d), J the right Jacobian, the transpose of the left one.
"""

from __future__ import annotations

import numpy as np

from ..morphology.rotations import left_jacobian


def rotations(model):
    """First indices in v of the rotations of free and ball joints."""
    first = {"free": 3, "ball": 0}
    return [int(v) + first[kind] for kind, v in zip(model.joint_types, model.joint_v) if kind in first]


def units(model, length, angle):
    """(nv,) units of the tangent space: that of lengths or that of angles."""
    of_kind = {"free": [length] * 3 + [angle] * 3, "ball": [angle] * 3, "hinge": [angle], "slide": [length]}
    out = [angle] * model.nv
    for first, kind in zip(model.joint_v, model.joint_types):
        out[first : first + len(of_kind[kind])] = of_kind[kind]
    return out


def _blocks(places, vector, of_rotation):
    J = np.eye(len(vector))
    for k in places:
        J[k : k + 3, k : k + 3] = of_rotation(vector[k : k + 3])
    return J


def by_summand(places, dq):
    """d(q (+) dq)/d(dq), in the tangent space of the sum."""
    return _blocks(places, dq, lambda phi: left_jacobian(phi).T)


def by_end(places, d):
    """d(q1 (-) q0)/d(q1), where d is that difference."""
    return _blocks(places, d, lambda phi: np.linalg.inv(left_jacobian(phi)).T)


def by_beginning(places, d):
    """d(q1 (-) q0)/d(q0)."""
    return -_blocks(places, d, lambda phi: np.linalg.inv(left_jacobian(phi)))


def turn(measured, quaternion):
    """The rotation vector from one quaternion (w, x, y, z) to another, the short way, in axes of either."""
    w, x, y, z = measured
    back = np.array([[w, x, y, z], [-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])
    r = back @ quaternion
    r = -r if r[0] < 0 else r
    sine = np.linalg.norm(r[1:])
    return 2 * r[1:] if sine < 1e-12 else r[1:] * (2 * np.arctan2(sine, r[0]) / sine)
