"""The mechanical energy of a scene, with springs, motors and servos as potentials, and what position correction may add to it.

A servo that holds a constant u is a spring with a clamp and a damper: force = clamp(kp (u - q) - kv v). As the clamp is monotone, its power is at most that
of clamp(kp (u - q)), which has a potential. A motor has the potential -u q. So without velocity servos, which may bring kv u^2 / 4 (power of kv (u - v) at
most), energy = kinetic + potential + servos is never more than at the start, whatever touches, but for

- the order of the step: semi-implicit Euler keeps E + (h/2) v.F instead, F the forces that have a potential (exactly where they are linear);
- position correction: `natural` is what violated rows would take each by themselves, (1/2) m (b Phi / h)^2, and the lift of what is let out.
"""

from __future__ import annotations

import numpy as np

BAUMGARTE, FASTEST_CORRECTION = 0.1, 1.0  # defaults of Simulator
LIMIT_STIFFNESS, EQUALITY_STIFFNESS = 1e4, 1e6  # likewise, of penalty and implicit steps


def clamped_spring(x, stiffness, force):
    """Potential of the force -clamp(stiffness x, -force, force)."""
    if force is None or stiffness * abs(x) <= force:
        return 0.5 * stiffness * x * x
    return force * (abs(x) - 0.5 * force / stiffness)


class Energy:
    """Of one built draft."""

    def __init__(self, built):
        self.built, self.model, self.draft = built, built.model, built.draft
        names = self.model.joint_names
        self.servos = [(servo, self.model.joint_q[names.index(servo.joint)]) for servo in self.draft.servos]
        self.controls = self.built.u * [servo.kind != "velocity" for servo, _ in self.servos]
        self.masses = np.array(self.model.body_mass)
        self.trees = self._tree_masses()
        self.gravity = np.linalg.norm(self.draft.gravity)

    def _tree_masses(self):
        """Mass of the whole tree that a body belongs to; 0 of the world."""
        root = np.arange(self.model.num_bodies)
        for body in range(1, len(root)):
            parent = self.model.body_parent[body]
            root[body] = body if parent == 0 else root[parent]
        totals = np.bincount(root, self.masses, len(root))
        totals[0] = 0.0
        return totals[root]

    def of_servos(self, q):
        total = 0.0
        for servo, a in self.servos:
            if servo.kind == "motor":
                total -= servo.u * q[a]
            elif servo.kind == "position":
                total += clamped_spring(q[a] - servo.u, servo.kp, servo.force)
        return total

    def parts(self, q, v):
        """(kinetic, potential with servos), J."""
        kinetic, potential = self.model.energy(q, v)
        return kinetic, potential + self.of_servos(q)

    def power(self, q, v):
        """W: of the forces that have a potential."""
        rest = np.zeros_like(v)
        force = self.model.passive_forces(q, rest) - self.model.bias(q, rest)
        return float((force + self.model.actuator_forces(q, rest, self.controls)) @ v)

    def brought(self):
        """W that velocity servos bring at most."""
        return sum(0.25 * s.kv * s.u**2 for s, _ in self.servos if s.kind == "velocity")

    def natural(self, q, contacts, h):
        """J: what the violated rows of a state take each by themselves, and the work that lets them out."""
        total, model = 0.0, self.model
        names = model.body_names
        for c in contacts:
            if c.depth > 0:
                mass = max(self.trees[names.index(c.body_a)], self.trees[names.index(c.body_b)])
                total += (
                    self._taken(mass, min(BAUMGARTE * c.depth / h, FASTEST_CORRECTION)) + mass * self.gravity * c.depth
                )
        for error, inertia, bounded, weight in self.violations(q):
            speed = BAUMGARTE * error / h
            total += self._taken(inertia, min(speed, FASTEST_CORRECTION) if bounded else speed) + weight * error
        return total

    @staticmethod
    def _taken(mass, speed):
        return 0.5 * mass * speed * speed

    def stored(self, q):
        """J: in the springs that limits and equalities are in penalty and implicit steps."""
        return sum(
            0.5 * (LIMIT_STIFFNESS if limit else EQUALITY_STIFFNESS) * e * e for e, _, limit, _ in self.violations(q)
        )

    def violations(self, q):
        """(error in m or rad, inertia in kg or kg m^2, whether a limit, gravity against it in N or N m) of limits and equalities."""
        model, names, out = self.model, self.model.joint_names, []
        mass_matrix = model.mass_matrix(q)
        weight = np.abs(model.bias(q, np.zeros(model.nv)))
        for _, joint in self.draft.joints():
            if joint.limits is not None:
                j = names.index(joint.name)
                x, d = q[model.joint_q[j]], model.joint_v[j]
                error = max(joint.limits[0] - x, x - joint.limits[1], 0.0)
                out.append((error, mass_matrix[d, d], True, weight[d]))
        for joint, leader, slope in self.draft.couplings:
            i, j = names.index(joint), names.index(leader)
            d = model.joint_v[i]
            error = abs(q[model.joint_q[i]] - slope * q[model.joint_q[j]])
            out.append((error, mass_matrix[d, d], False, weight[d]))
        positions, rotations = model.body_placements(q)
        neutral_positions, neutral_rotations = model.body_placements(model.q_neutral)

        def carried(body, point):
            """Where a point of the neutral pose, fixed to a body, is now."""
            if body is None:
                return self.built.view.point(point)
            b = model.body_names.index(body)
            return positions[b] + rotations[b] @ neutral_rotations[b].T @ (
                self.built.view.point(point) - neutral_positions[b]
            )

        for a, b, point in [*self.draft.connects, *((a, b, self._where(a)) for a, b in self.draft.welds)]:
            mass = max(self.trees[model.body_names.index(x)] for x in (a, b) if x is not None)
            error = float(np.linalg.norm(carried(a, point) - carried(b, point)))
            out.append((error, mass, False, mass * self.gravity))
        for a, b in self.draft.welds:
            now = [np.eye(3) if x is None else rotations[model.body_names.index(x)] for x in (a, b)]
            then = [np.eye(3) if x is None else neutral_rotations[model.body_names.index(x)] for x in (a, b)]
            relative = (now[0].T @ now[1]).T @ (then[0].T @ then[1])
            angle = float(np.arccos(np.clip((np.trace(relative) - 1) / 2, -1, 1)))
            out.append((angle, self.trees[model.body_names.index(a)], False, 0.0))
        return out

    def _where(self, body):
        return next(b.position for b in self.draft.bodies if b.name == body)
