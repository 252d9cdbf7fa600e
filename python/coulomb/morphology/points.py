"""Points of bodies in the world, and what a cost's gradient by them is by the state, by the point and by the placements of
the joints on the way: the part of a gradient by a design that does not go through the simulation.

A point p of body b, moved by a joint with axis a and anchor c in the world: hinge dp = a x (p - c), slide dp = a, ball and
free dp = R w x (p - c), free: and the velocity of the origin. By the placement of a joint (x, y, z, r): dp = R_parent dx
and dp = (R_parent J(r) dr) x (p - o), o the body's origin at joint position zero.
"""

from __future__ import annotations

import numpy as np

from .checks import finite, known
from .rotations import left_jacobian, rotation_matrix


class BodyPoints:
    """Points of the bodies of a model at q: world positions and their reverse derivative."""

    def __init__(self, model, q):
        self.model = model
        self._q = finite("q", q, (model.nq,))
        self._positions, self._turns = model.body_placements(self._q)
        self._names, self._types = model.body_names, model.joint_types

    def position(self, body, point):
        """(3,) m, world. body: name. point: (3,) in the body's frame."""
        b = known("body", body, self._names)
        return self._positions[b] + self._turns[b] @ finite("point", point, (3,))

    def vjp(self, body, point, gradient):
        """The gradient (3,) of a cost by the world position of a point, to its gradients by q (nv,), in the tangent space,
        by the point (3,), and by joint_placement/<joint> (6,), a dict.
        """
        b, gradient = known("body", body, self._names), finite("gradient", gradient, (3,))
        p, by_point = self.position(body, point), self._turns[b].T @ gradient
        by_q, placements = np.zeros(self.model.nv), {}
        while b > 0:
            joints = np.flatnonzero(self.model.joint_body == b)
            origin = self._through_joints(b, joints[::-1], p, gradient, by_q)
            parent = int(self.model.body_parent[b])
            if len(joints) and self._types[joints[0]] != "free":
                local, R = self._rotation_vector(b), self._turns[parent]
                moment = left_jacobian(local).T @ R.T @ np.cross(p - origin, gradient)
                placements[f"joint_placement/{self.model.joint_names[joints[0]]}"] = np.r_[R.T @ gradient, moment]
            b = parent
        return by_q, by_point, placements

    def _rotation_vector(self, b):
        w, v = self.model.body_quat[b, 0], self.model.body_quat[b, 1:]
        sine = np.linalg.norm(v)
        return 2 * v * (np.arctan2(sine, abs(w)) / sine if sine > 1e-12 else 1.0) * (1.0 if w >= 0 else -1.0)

    def _through_joints(self, b, joints, p, gradient, by_q):
        """Adds the joints' parts, from the last to the first; returns the body's origin before they moved."""
        model, origin, R = self.model, self._positions[b].copy(), self._turns[b].copy()
        for j in joints:
            kind, dof, start = self._types[j], int(model.joint_v[j]), int(model.joint_q[j])
            axis, anchor = R @ model.joint_axis[j], origin + R @ model.joint_pos[j]
            moment = np.cross(p - anchor, gradient)
            if kind == "hinge":
                by_q[dof] += axis @ moment
                R = R @ rotation_matrix(-model.joint_axis[j] * self._q[start])
                origin = anchor - R @ model.joint_pos[j]
            elif kind == "slide":
                by_q[dof] += axis @ gradient
                origin = origin - axis * self._q[start]
            elif kind == "ball":
                by_q[dof : dof + 3] += R.T @ moment
                R = R @ _quaternion_matrix(self._q[start : start + 4]).T
                origin = anchor - R @ model.joint_pos[j]
            else:
                by_q[dof : dof + 3] += gradient
                by_q[dof + 3 : dof + 6] += R.T @ np.cross(p - origin, gradient)
        return origin


def _quaternion_matrix(quaternion):
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    v = np.array([x, y, z])
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.outer(v, v) + w * w * np.eye(3) + 2 * w * K + K @ K
