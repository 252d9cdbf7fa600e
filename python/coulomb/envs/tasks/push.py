"""PushT-v0: a round finger pushes a T over a table to where it should lie, and how."""

from __future__ import annotations

import numpy as np

import coulomb

from ..arrays import concatenate, cos, rotation_matrix, sin, square_sum, stack
from ..task import Task

SPEED = 0.5  # m/s of the finger per unit of action
NEAR, STRAIGHT = 0.02, 0.1  # m, rad: so near is done
MJCF = """
<mujoco model="push_t">
  <compiler angle="radian" inertiafromgeom="true"/>
  <option timestep="0.01"/>
  <worldbody>
    <geom name="table" type="plane" size="2 2 1" contype="0" conaffinity="1" friction=".5"/>
    <camera name="above" pos="0 0 1.4"/>
    <body name="t" pos="0 0 .02">
      <freejoint/>
      <geom name="bar" type="box" size=".1 .025 .02" pos="0 .0375 0" mass=".3" contype="1" conaffinity="2" friction=".5" rgba=".35 .5 .7 1"/>
      <geom name="stem" type="box" size=".025 .05 .02" pos="0 -.0375 0" mass=".15" contype="1" conaffinity="2" friction=".5" rgba=".35 .5 .7 1"/>
    </body>
    <body name="finger" pos="0 0 .02">
      <joint name="x" type="slide" axis="1 0 0"/> <joint name="y" type="slide" axis="0 1 0"/>
      <geom name="finger" type="sphere" size=".02" mass=".5" contype="2" conaffinity="0" friction=".3" rgba=".85 .4 .2 1"/>
    </body>
  </worldbody>
  <actuator> <velocity joint="x" kv="50"/> <velocity joint="y" kv="50"/> </actuator>
</mujoco>"""


class PushT(Task):
    """Actions: velocity of the finger, x and y, 0.5 m/s per unit; 10 Hz in frame_skip steps.

    Observed: place and velocity of the finger; place, sin and cos of the angle, velocity and turning of the T; where it should lie:
    place, sin and cos. Reward: -distance - 0.1 (1 - cos of the angle that is left) - 0.1 distance of the finger from the T.
    Ends when the T lies within 2 cm and 0.1 rad.
    """

    episode_length = 300
    goal_size = 3  # x, y, angle
    camera = {"distance": 1.4, "azimuth": 90.0, "elevation": -80.0}

    def __init__(self, frame_skip=10):
        super().__init__(coulomb.load(MJCF), 0.1 / frame_skip, frame_skip)
        self.action_low, self.action_high = np.full((2, 2), 1.0) * [[-1], [1]]

    def control(self, action):
        return SPEED * action

    def draw(self, random):
        q, v = self.model.neutral()
        place, angle = random.uniform(-0.2, 0.2, size=2), random.uniform(-np.pi, np.pi)
        q[:2] = place
        q[3:7] = [np.cos(angle / 2), 0, 0, np.sin(angle / 2)]

        # The finger begins beside the T, out of its reach.
        way = random.uniform(-np.pi, np.pi)
        q[7:] = place + 0.18 * np.array([np.cos(way), np.sin(way)])
        return q, v, random.uniform([-0.2, -0.2, -np.pi], [0.2, 0.2, np.pi])

    def observe(self, state):
        q, v, goal = state.q, state.v, state.goal
        ahead = rotation_matrix(q[:, 3:7])[:, :, 0]
        angles = stack([ahead[:, 1], ahead[:, 0], sin(goal[:, 2]), cos(goal[:, 2])])
        return concatenate([q[:, 7:], v[:, 6:], q[:, :2], v[:, :2], v[:, 5:6], goal[:, :2], angles])

    def reward(self, before, after):
        distance = self._length(after.q[:, :2] - after.goal[:, :2])
        reach = self._length(after.q[:, :2] - after.q[:, 7:])
        turn = 1 - self._straightness(after)
        terms = {"reward_place": -distance, "reward_angle": -0.1 * turn, "reward_reach": -0.1 * reach}
        return sum(terms.values()), terms

    def terminated(self, state):
        near = square_sum(state.q[:, :2] - state.goal[:, :2]) < NEAR**2
        return near & (self._straightness(state) > np.cos(STRAIGHT))

    def info(self, state):
        return {"is_success": self.terminated(state)}

    def mjcf(self):
        return MJCF

    def _straightness(self, state):
        """Cosine of the angle that is left."""
        ahead = rotation_matrix(state.q[:, 3:7])[:, :, 0]
        return ahead[:, 0] * cos(state.goal[:, 2]) + ahead[:, 1] * sin(state.goal[:, 2])

    def _length(self, x):
        return (square_sum(x) + 1e-12) ** 0.5  # smooth where it is zero
