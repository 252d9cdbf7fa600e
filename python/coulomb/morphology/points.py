"""Points of bodies in the world, and what a cost's gradient by them is by the state, by the point and by the placements of
the joints on the way: the part of a gradient by a design that does not go through the simulation.

A point p of a body with the origin o and the axes R is at x = o + R p, and with the Jacobians of the body's position and
orientation (its own axes) by q or a placement, J_o and J_R (docs/outputs.md),

    dx = R dp + (J_o - R [p] J_R) d(q or placement)
"""

from __future__ import annotations

import numpy as np

from .checks import finite, known


class BodyPoints:
    """Points of the bodies of a model at q: world positions and their reverse derivative."""

    def __init__(self, model, q):
        self.model = model
        self._q, self._v = finite("q", q, (model.nq,)), np.zeros(model.nv)
        self._positions, self._turns = model.body_placements(self._q)
        self._names, self._types = model.body_names, model.joint_types
        self._jacobians = {}

    def position(self, body, point):
        """(3,) m, world. body: name. point: (3,) in the body's frame."""
        b = known("body", body, self._names)
        return self._positions[b] + self._turns[b] @ finite("point", point, (3,))

    def vjp(self, body, point, gradient):
        """The gradient (3,) of a cost by the world position of a point, to its gradients by q (nv,), in the tangent space,
        by the point (3,), and by the placements of the joints that carry the body: joint_placement/<joint> to (6,).
        """
        b = known("body", body, self._names)
        point, gradient = finite("point", point, (3,)), finite("gradient", gradient, (3,))
        by_point = self._turns[b].T @ gradient
        if b == 0:
            return np.zeros(self.model.nv), by_point, {}
        moment = np.cross(point, by_point)
        found = {name: gradient @ o + moment @ R for name, (o, R) in self._slopes(b).items()}
        return found.pop("q"), by_point, found

    def _slopes(self, b):
        """Jacobians, by name, of position and orientation of a body."""
        if b not in self._jacobians:
            names = ["q", *(f"joint_placement/{self.model.joint_names[j]}" for j in self._carriers(b))]
            of = [f"{kind}/body/{self._names[b]}" for kind in ("position", "orientation")]
            self._jacobians[b] = {
                name: [self.model.output_jacobian(output, self._q, self._v, name) for output in of] for name in names
            }
        return self._jacobians[b]

    def _carriers(self, b):
        """The joints with a placement between a body and the world."""
        out = []
        while b > 0:
            joints = np.flatnonzero(self.model.joint_body == b)
            if len(joints) and self._types[joints[0]] != "free":
                out.append(joints[0])
            b = int(self.model.body_parent[b])
        return out
