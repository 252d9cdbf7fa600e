"""DiffHopper-v0: the hopper as learning by gradients knows it from DiffRL: heavier, and rewarded for height and pitch smoothly."""

from __future__ import annotations

import numpy as np

from ..arrays import concatenate, square_sum
from ..task import Task
from . import compliance
from .height import height_reward

CONTROL_RATE = 60.0  # Hz
SCENE = """
<mujoco model="diff_hopper">
  <compiler angle="radian" inertiafromgeom="true"/>
  <option timestep="0.004166666666666667"/>
  <default>
    <joint type="hinge" axis="0 -1 0" armature="{armature}" damping="12" limited="true"/>
    <geom type="capsule" contype="1" conaffinity="0" density="1000" friction=".9" rgba=".85 .55 .3 1"/>
    <motor ctrllimited="true" ctrlrange="-1 1" gear="200"/>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="40 40 1" contype="0" conaffinity="1"/>
    <body name="torso" pos="0 0 1.25">
      <camera name="track" mode="trackcom" pos="0 -4 0" xyaxes="1 0 0 0 0 1"/>
      <joint name="x" type="slide" axis="1 0 0" damping="10" limited="false"/>
      <joint name="z" type="slide" axis="0 0 1" damping="10" limited="false"/>
      <joint name="pitch" axis="0 1 0" damping="10" limited="false"/>
      <geom name="torso" size=".05 .2"/>
      <body name="thigh" pos="0 0 -.2">
        <joint name="thigh" range="-2.6179938779914944 0"/>
        <geom name="thigh" size=".05 .225" pos="0 0 -.225"/>
        <body name="leg" pos="0 0 -.7">
          <joint name="leg" pos="0 0 .25" range="-2.6179938779914944 0"/>
          <geom name="leg" size=".04 .25"/>
          <body name="foot" pos=".065 0 -.25">
            <joint name="foot" pos="-.065 0 0" range="-.7853981633974483 .7853981633974483"/>
            <geom name="foot" size=".06 .195" euler="0 1.5707963267948966 0"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator> <motor joint="thigh"/> <motor joint="leg"/> <motor joint="foot"/> </actuator>
</mujoco>"""


class DiffHopper(Task):
    """Observed: height above the pose of the file, pitch, three joints, all velocities.

    Reward: dx/dt + height + 1 - (pitch / 30 degrees)^2 - 0.1 |a|^2, with height d = z + 0.3 within [-1, 0.3], -200 d^2 where that
    is below 0. Ends below -0.45 m. 60 Hz in frame_skip steps. Joint limits are springs of limit_stiffness (N m/rad; None: rigid); contact is
    rigid, unless contact_stiffness (N/m) and contact_dashpot (N s/m) make the floor soft.
    """

    episode_length = 1000
    camera = {"distance": 4.0, "azimuth": 90.0, "elevation": -10.0}
    armature = 1  # kg m^2 (kg where it slides), at all joints, as DiffRL has it

    def __init__(
        self,
        frame_skip=4,
        noise=0.05,
        terminate=True,
        contact_stiffness=None,
        contact_dashpot=0.0,
        limit_stiffness=compliance.LIMIT_STIFFNESS,
    ):
        model = compliance.build(self.mjcf(), contact_stiffness, contact_dashpot, limit_stiffness)
        super().__init__(model, 1 / (CONTROL_RATE * frame_skip), frame_skip)
        self._noise = noise
        self._terminate = terminate

    def draw(self, random):
        return tuple(random.uniform(-self._noise, self._noise, size=6) for _ in range(2)) + (np.zeros(0),)

    def observe(self, state):
        return concatenate([state.q[:, 1:], state.v])

    def reward(self, before, after):
        forward = after.v[:, 0]
        height = height_reward(after.q[:, 1] + 0.3, most=0.3, scale=1.0)
        pitch = after.q[:, 2] / (np.pi / 6)
        upright = 1 - pitch * pitch
        cost = 0.1 * square_sum(after.action)
        terms = {"reward_forward": forward, "reward_height": height, "reward_upright": upright, "reward_ctrl": -cost}
        return forward + height + upright - cost, terms

    def terminated(self, state):
        return state.q[:, 1] < -0.45 if self._terminate else super().terminated(state)

    def mjcf(self):
        return SCENE.format(armature=self.armature)
