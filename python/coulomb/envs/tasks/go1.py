"""Go1Stand-v0 and Go1Walk-v0: the quadruped Go1 of Unitree, by servos of its joints. Its URDF comes with the package example-robot-data."""

from __future__ import annotations

import numpy as np

import coulomb
from coulomb.demo import STANDING, robot_path

from ..arrays import concatenate, constant, exp, rotation_matrix, square_sum, to_frame
from ..task import Task
from .compliance import springs

STANDING_HEIGHT = 0.3  # m, of the trunk, in the pose STANDING
STIFFNESS, DAMPING = 35.0, 1.0  # N m/rad, N m s/rad
CONTROL_RATE = 50.0  # Hz
ACTION_SCALE = 0.25  # rad of the servos' targets per unit of action
LEAST_HEIGHT = 0.18  # m
LEAST_UPRIGHT = 0.5  # cosine of the tilt


class Go1(Task):
    """Observed: velocity, angular velocity and the direction of gravity in the trunk's axes; the commanded velocity (x, y, turn);
    joints from the standing pose; 0.05 times their velocities; the last action.

    Actions: targets of the twelve servos, 0.25 rad from the standing pose per unit. 50 Hz in frame_skip steps.
    """

    episode_length = 1000
    goal_size = 3
    camera = {"distance": 1.6, "azimuth": 120.0, "elevation": -15.0, "trackbodyid": 1}

    def __init__(self, frame_skip=4, noise=1.0, friction=0.8, contact_stiffness=None, contact_dashpot=0.0):
        timestep = 1 / (CONTROL_RATE * frame_skip)
        floor = {"friction": friction, **springs(contact_stiffness, contact_dashpot)}
        super().__init__(_model(floor, timestep), timestep, frame_skip)
        self.action_low, self.action_high = np.full((2, 12), 4.0) * [[-1], [1]]
        self._noise = noise

    def control(self, action):
        return constant(STANDING, action) + ACTION_SCALE * action

    def up(self, state):
        """(n, 3): the vertical, in the trunk's axes."""
        return rotation_matrix(state.q[:, 3:7])[:, 2, :]

    def velocity(self, state):
        """(n, 3): m/s, in the trunk's axes."""
        return to_frame(rotation_matrix(state.q[:, 3:7]), state.v[:, :3])

    def observe(self, state):
        joints = state.q[:, 7:] - constant(STANDING, state.q)
        parts = [self.velocity(state), state.v[:, 3:6], -self.up(state), state.goal, joints, 0.05 * state.v[:, 6:]]
        return concatenate([*parts, state.action])

    def reward(self, before, after):
        velocity, spin = self.velocity(after), after.v[:, 3:6]
        off = velocity[:, :2] - after.goal[:, :2]
        turn = spin[:, 2] - after.goal[:, 2]
        low = after.q[:, 2] - STANDING_HEIGHT
        terms = {
            "reward_velocity": exp(-4 * square_sum(off)),
            "reward_turn": 0.5 * exp(-4 * turn * turn),
            "reward_bounce": -2 * velocity[:, 2] * velocity[:, 2],
            "reward_roll": -0.05 * square_sum(spin[:, :2]),
            "reward_tilt": -1 * square_sum(self.up(after)[:, :2]),
            "reward_height": -20 * low * low,
            "reward_ctrl": -0.01 * square_sum(after.action - before.action),
        }
        return sum(terms.values()), terms

    def terminated(self, state):
        return (state.q[:, 2] < LEAST_HEIGHT) | (self.up(state)[:, 2] < LEAST_UPRIGHT)

    def _pose(self, random, height, tilt, joints):
        """Standing, off by so much; at rest or nearly."""
        noise = self._noise
        q, v = self.model.neutral()
        q[2] = height
        axis = np.array([*(tilt * noise * random.uniform(-1, 1, size=2)), noise * random.uniform(-np.pi, np.pi)])
        angle = np.sqrt((axis * axis).sum())
        sinc = np.sin(angle / 2) / angle if angle > 0 else 0.5
        q[3:7] = [np.cos(angle / 2), *(sinc * axis)]
        q[7:] = STANDING + joints * noise * random.uniform(-1, 1, size=12)
        return q, v + 0.1 * noise * random.uniform(-1, 1, size=self.model.nv)


class Go1Stand(Go1):
    """Falls from a few centimetres, tilted, and is to stand still: the commanded velocity is zero."""

    def draw(self, random):
        height = STANDING_HEIGHT + self._noise * random.uniform(0.03, 0.1)
        return *self._pose(random, height, tilt=0.3, joints=0.3), np.zeros(3)


class Go1Walk(Go1):
    """Walks as it is told: up to 1 m/s forward, half of that backward and sideways, and 1 rad/s of turning."""

    def draw(self, random):
        q, v = self._pose(random, STANDING_HEIGHT + 0.02, tilt=0.05, joints=0.1)
        return q, v, random.uniform([-0.5, -0.5, -1.0], [1.0, 0.5, 1.0])


def _model(floor, timestep):
    path, packages = robot_path("go1_description/urdf/go1.urdf")
    scene = coulomb.Scene(timestep=timestep)
    scene.add_ground(**floor)
    servos = dict(actuators="position", kp=STIFFNESS, kd=DAMPING)
    scene.add_urdf(
        path, floating_base=True, package_dirs=[packages], friction=floor["friction"], self_collision=False, **servos
    )
    return scene.build()
