"""MuJoCo's quantities of bodies about the centre of mass of their tree: inertias (`cinert`), velocities (`cvel`), contact forces (`cfrc_ext`)."""

from __future__ import annotations

import numpy as np

from ..arrays import concatenate, constant, cross, rotation_matrix, stack, to_world, where


def by_body(readings, bodies, size):
    """A reading of all bodies, one after the other, as (n, bodies, size)."""
    return readings.reshape(len(readings), bodies, size)


class BodyQuantities:
    """Quantities of all bodies but the world, for a model that is one tree, in world axes; `readings` are the outputs that they are made of."""

    def __init__(self, model):
        names = model.body_names[1:]
        self.root = names[0]
        self._count = len(names)
        self._mass = model.body_mass[1:]
        self._com = model.body_com[1:]
        self._inertia = model.body_inertia[1:, [[0, 1, 3], [1, 2, 4], [3, 4, 5]]]
        self.readings = {
            "positions": [f"position/{name}" for name in names],
            "orientations": [f"orientation/{name}" for name in names],
            "velocities": [f"velocity/{name}" for name in names],
            "spins": [f"angular_velocity/{name}" for name in names],
            "com": [f"subtree_com/{self.root}"],
        }

    def inertias(self, state):
        """(n, 10 bodies): xx, yy, zz, xy, xz, yz of the inertia about the tree's centre of mass; mass times offset; mass."""
        origins = by_body(state.readings["positions"], self._count, 3)
        rotation = rotation_matrix(by_body(state.readings["orientations"], self._count, 4))
        mass = constant(self._mass, origins)
        offset = origins + to_world(rotation, constant(self._com, origins)) - state.readings["com"][:, None, :]

        # The inertia about the body's own centre of mass, in world axes: R I R^T.
        inertia = constant(self._inertia, origins)
        half = (rotation[..., :, None, :] * inertia[:, None, :, :]).sum(-1)
        turned = (half[..., :, None, :] * rotation[..., None, :, :]).sum(-1)

        # Steiner's term: m (d.d 1 - d d^T).
        x, y, z = offset[..., 0], offset[..., 1], offset[..., 2]
        parts = [
            turned[..., 0, 0] + mass * (y * y + z * z),
            turned[..., 1, 1] + mass * (x * x + z * z),
            turned[..., 2, 2] + mass * (x * x + y * y),
            turned[..., 0, 1] - mass * x * y,
            turned[..., 0, 2] - mass * x * z,
            turned[..., 1, 2] - mass * y * z,
            mass * x,
            mass * y,
            mass * z,
            mass + 0 * x,
        ]
        return _flat(stack(parts))

    def velocities(self, state):
        """(n, 6 bodies): angular velocity, and velocity of what moves with the body through the tree's centre of mass."""
        origins = by_body(state.readings["positions"], self._count, 3)
        spins = by_body(state.readings["spins"], self._count, 3)
        velocities = by_body(state.readings["velocities"], self._count, 3)
        arm = state.readings["com"][:, None, :] - origins
        return _flat(concatenate([spins, velocities + cross(spins, arm)]))


class ContactForces:
    """Torque about the tree's centre of mass where the contacts were found, and force, that contacts give each body, (n, bodies, 6)."""

    def __init__(self, model, timestep):
        root = model.body_names[1]
        self._timestep = timestep
        self.readings = {"force_com": [f"subtree_com/{root}"], "force_com_velocity": [f"subtree_velocity/{root}"]}

    def __call__(self, state):
        """Contact forces on all bodies but the world. Contacts are those of the last step, found where it began: a time step back."""
        wrenches = state.readings["contact_wrenches"][:, 1:]
        com = state.readings["force_com"] - self._timestep * state.readings["force_com_velocity"]
        torque, force = wrenches[..., :3], wrenches[..., 3:]
        return concatenate([torque - cross(com[:, None, :] + 0 * force, force), force])


def _flat(values):
    return values.reshape(len(values), -1)


class ActuatorForces:
    """Forces of motors on hinges and slides for each degree of freedom, in the order of v from `first` on."""

    def __init__(self, model, first):
        self._gear = np.zeros(model.nv - first)
        self._control = np.zeros(model.nv - first, int)
        self._low, self._high = np.full((2, model.nv - first), np.inf) * [[-1], [1]]
        seen = set()
        for number, actuator in enumerate(model.actuators):
            dof = int(model.joint_v[actuator.joint]) - first if actuator.joint >= 0 else -1
            if dof in seen or dof < 0 or actuator.bias.any() or actuator.gain[1:].any() or actuator.force_limited:
                raise ValueError(
                    f"actuator {actuator.name!r}: include_qfrc_actuator_in_observation knows plain motors, one a joint"
                )
            seen.add(dof)
            self._gear[dof] = actuator.gear[0] * actuator.gain[0]
            self._control[dof] = number
            if actuator.control_limited:
                self._low[dof], self._high[dof] = actuator.control_range

    def __call__(self, state):
        controls = state.action[:, self._control]
        low, high = constant(self._low, controls), constant(self._high, controls)
        return constant(self._gear, controls) * _within(controls, low, high)


def _within(x, low, high):
    x = where(x < low, low, x)
    return where(x > high, high, x)
