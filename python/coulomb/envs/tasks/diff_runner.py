"""Common parts of DiffRL's ant and humanoid: a free torso with joints that runs upright towards a target."""

from __future__ import annotations

import numpy as np

from ..arrays import concatenate, rotation_matrix, stack, to_world
from ..task import Task
from . import compliance

CONTROL_RATE = 60.0  # Hz
VELOCITY_SCALE = 0.1  # of joints, as they are observed


class DiffRunner(Task):
    """Observed: height; quaternion w x y z; velocity and angular velocity of the torso, world axes; joints; 0.1 times their
    velocities; how upright the torso is, and how far it looks to the target, cosines; the last action.
    """

    episode_length = 1000
    start_height: float
    target: float  # m, along x from where the episode begins; so far away that only its direction matters

    def __init__(self, mjcf, frame_skip, noise, terminate, contact_stiffness, contact_dashpot, limit_stiffness):
        self._text = mjcf
        model = compliance.build(mjcf, contact_stiffness, contact_dashpot, limit_stiffness)
        super().__init__(model, 1 / (CONTROL_RATE * frame_skip), frame_skip)
        self._noise = noise
        self._terminate = terminate

    def start_joints(self):
        return np.zeros(self.model.nq - 7)

    def draw(self, random):
        """Around the start: 10 cm, 7.5 degrees about any axis, 0.2 rad of the joints, and velocities of 0.25."""
        model, noise = self.model, self._noise
        q = model.neutral()[0]
        q[:3] = np.array([0.0, 0.0, self.start_height]) + noise * random.uniform(-0.1, 0.1, size=3)
        angle = noise * random.uniform(-np.pi / 24, np.pi / 24)
        axis = random.uniform(-0.5, 0.5, size=3)
        axis /= np.sqrt((axis * axis).sum())
        q[3:7] = [np.cos(angle / 2), *(np.sin(angle / 2) * axis)]
        q[7:] = self.start_joints() + noise * random.uniform(-0.2, 0.2, size=model.nq - 7)
        return q, noise * random.uniform(-0.25, 0.25, size=model.nv), np.zeros(0)

    def cosines(self, state, rotation):
        """How upright the torso is, and how far it looks to the target in the horizontal plane; rotation: its matrices (n, 3, 3)."""
        upright = rotation[:, 2, 2]
        x, y = self.target - state.q[:, 0], -state.q[:, 1]
        heading = (rotation[:, 0, 0] * x + rotation[:, 1, 0] * y) / (x * x + y * y) ** 0.5
        return upright, heading

    def observe(self, state):
        q, v = state.q, state.v
        rotation = rotation_matrix(q[:, 3:7])
        spin = to_world(rotation, v[:, 3:6])
        cosines = stack(self.cosines(state, rotation))
        parts = [q[:, 2:7], v[:, :3], spin, q[:, 7:], VELOCITY_SCALE * v[:, 6:], cosines, state.action]
        return concatenate(parts)

    def mjcf(self):
        return self._text
