"""DiffHalfCheetah-v0: the cheetah as DiffRL has it: heavier than Gymnasium's, one torque for all joints."""

from __future__ import annotations

import numpy as np

from ..arrays import concatenate, square_sum
from ..task import Task
from . import compliance

CONTROL_RATE = 60.0  # Hz
START_HEIGHT = -0.2  # m, from the pose of the file
MJCF = """
<mujoco model="diff_half_cheetah">
  <compiler angle="radian" inertiafromgeom="true"/>
  <option timestep="0.004166666666666667"/>
  <default>
    <joint type="hinge" axis="0 1 0" armature=".1" damping="10" limited="true"/>
    <geom type="capsule" size=".046" contype="1" conaffinity="0" density="1000" friction="1" rgba=".85 .55 .3 1"/>
    <motor ctrllimited="true" ctrlrange="-1 1" gear="200"/>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="40 40 1" contype="0" conaffinity="1"/>
    <body name="torso" pos="0 0 1">
      <camera name="track" mode="trackcom" pos="0 -4 .3" xyaxes="1 0 0 0 0 1"/>
      <joint name="x" type="slide" axis="1 0 0" limited="false"/>
      <joint name="z" type="slide" axis="0 0 1" limited="false"/>
      <joint name="pitch" limited="false"/>
      <geom name="torso" fromto="-.5 0 0 .5 0 0"/>
      <geom name="head" size=".046 .15" pos=".6 0 .1" axisangle="0 1 0 .87"/>
      <body name="back_thigh" pos="-.5 0 0">
        <joint name="back_thigh" range="-.52 1.05" stiffness="240" damping="16"/>
        <geom name="back_thigh" size=".046 .145" pos=".1 0 -.13" axisangle="0 1 0 -3.8"/>
        <body name="back_shin" pos=".16 0 -.25">
          <joint name="back_shin" range="-.785 .785" stiffness="180" damping="14.5"/>
          <geom name="back_shin" size=".046 .15" pos="-.14 0 -.07" axisangle="0 1 0 -2.03"/>
          <body name="back_foot" pos="-.28 0 -.14">
            <joint name="back_foot" range="-.4 .785" stiffness="120" damping="13"/>
            <geom name="back_foot" size=".046 .094" pos=".03 0 -.097" axisangle="0 1 0 -.27"/>
          </body>
        </body>
      </body>
      <body name="front_thigh" pos=".5 0 0">
        <joint name="front_thigh" range="-1 .7" stiffness="180" damping="14.5"/>
        <geom name="front_thigh" size=".046 .133" pos="-.07 0 -.12" axisangle="0 1 0 .52"/>
        <body name="front_shin" pos="-.14 0 -.24">
          <joint name="front_shin" range="-1.2 .87" stiffness="120" damping="13"/>
          <geom name="front_shin" size=".046 .106" pos=".065 0 -.09" axisangle="0 1 0 -.6"/>
          <body name="front_foot" pos=".13 0 -.18">
            <joint name="front_foot" range="-.5 .5" stiffness="60" damping="11.5"/>
            <geom name="front_foot" size=".046 .07" pos=".045 0 -.07" axisangle="0 1 0 -.6"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="back_thigh"/> <motor joint="back_shin"/> <motor joint="back_foot"/>
    <motor joint="front_thigh"/> <motor joint="front_shin"/> <motor joint="front_foot"/>
  </actuator>
</mujoco>"""


class DiffHalfCheetah(Task):
    """Observed: all but x. Reward: dx/dt - 0.1 |a|^2. Never ends.

    60 Hz in frame_skip steps. Springs and dampers of the joints are those of Gymnasium's cheetah and 10 N m s/rad of every joint's limit,
    10 N s/m of the slides of the torso included, as in DiffRL.
    """

    episode_length = 1000

    def __init__(
        self,
        frame_skip=4,
        noise=1.0,
        contact_stiffness=None,
        contact_dashpot=0.0,
        limit_stiffness=compliance.LIMIT_STIFFNESS,
    ):
        model = compliance.build(MJCF, contact_stiffness, contact_dashpot, limit_stiffness)
        super().__init__(model, 1 / (CONTROL_RATE * frame_skip), frame_skip)
        self._noise = noise

    def draw(self, random):
        q = self._noise * random.uniform(-0.1, 0.1, size=9)
        q[1] += START_HEIGHT
        return q, self._noise * random.uniform(-0.25, 0.25, size=9), np.zeros(0)

    def observe(self, state):
        return concatenate([state.q[:, 1:], state.v])

    def reward(self, before, after):
        cost = 0.1 * square_sum(after.action)
        return after.v[:, 0] - cost, {"reward_forward": after.v[:, 0], "reward_ctrl": -cost}

    def mjcf(self):
        return MJCF
