"""DiffHumanoid-v0: a humanoid of 21 joints, with ankles, as DiffRL has it; dimensions of Gymnasium's humanoid, feet of our own."""

from __future__ import annotations

from ..arrays import rotation_matrix, square_sum
from .compliance import LIMIT_STIFFNESS
from .diff_runner import DiffRunner
from .height import height_reward

LEAST_HEIGHT = 0.74  # m
STRENGTH = 0.35
TRUNK = [200, 200, 200]  # N m: abdomen z, y, x
LEG = [200, 200, 600, 400, 100, 100]  # hip x, z, y, knee, ankle y, x
ARM = [100, 100, 200]  # two of the shoulder, elbow

LEG_TEXT = """
          <body name="{side}_thigh" pos="0 {y}.1 -.04">
            <joint name="{side}_hip_x" class="hip" axis="{m}1 0 0" range="-45 15"/>
            <joint name="{side}_hip_z" class="hip" axis="0 0 {m}1" range="-60 35"/>
            <joint name="{side}_hip_y" class="hip" axis="0 1 0" range="-120 45" stiffness="20"/>
            <geom name="{side}_thigh" fromto="0 0 0 0 {m}.01 -.34" size=".06"/>
            <body name="{side}_shin" pos="0 {m}.01 -.403">
              <joint name="{side}_knee" pos="0 0 .02" axis="0 -1 0" range="-160 2"/>
              <geom name="{side}_shin" fromto="0 0 0 0 0 -.3" size=".049"/>
              <body name="{side}_foot" pos="0 0 -.39">
                <joint name="{side}_ankle_y" pos="0 0 .08" axis="0 1 0" range="-50 50" stiffness="6"/>
                <joint name="{side}_ankle_x" pos="0 0 .08" axis="{m}1 0 {m}.5" range="-50 50" stiffness="3"/>
                <geom name="{side}_outer_foot" fromto="-.07 {y}.02 0 .14 {y}.04 0" size=".027"/>
                <geom name="{side}_inner_foot" fromto="-.07 0 0 .14 {m}.02 0" size=".027"/>
              </body>
            </body>
          </body>"""
ARM_TEXT = """
      <body name="{side}_upper_arm" pos="0 {y}.17 .06">
        <joint name="{side}_shoulder1" axis="2 {m}1 1" range="{first}" stiffness="10"/>
        <joint name="{side}_shoulder2" axis="0 {y}1 1" range="{first}" stiffness="10"/>
        <geom name="{side}_upper_arm" fromto="0 0 0 .16 {y}.16 -.16" size=".04"/>
        <body name="{side}_lower_arm" pos=".18 {y}.18 -.18">
          <joint name="{side}_elbow" axis="0 -1 {m}1" range="-90 50"/>
          <geom name="{side}_lower_arm" fromto=".01 {m}.01 .01 .17 {m}.17 .17" size=".031"/>
          <geom name="{side}_hand" type="sphere" pos=".18 {m}.18 .18" size=".04"/>
        </body>
      </body>"""
SCENE = """
<mujoco model="diff_humanoid">
  <compiler angle="degree" inertiafromgeom="true"/>
  <option timestep="0.004166666666666667"/>
  <default>
    <joint type="hinge" armature=".007" damping="11" stiffness="2" limited="true"/>
    <geom type="capsule" contype="1" conaffinity="0" density="1000" friction=".75" rgba=".85 .55 .3 1"/>
    <motor ctrllimited="true" ctrlrange="-1 1"/>
    <default class="hip"> <joint armature=".01" damping="15" stiffness="10"/> </default>
    <default class="abdomen"> <joint armature=".02" damping="15" stiffness="10"/> </default>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="40 40 1" contype="0" conaffinity="1"/>
    <body name="torso" pos="0 0 1.35">
      <camera name="track" mode="trackcom" pos="0 -4 0" xyaxes="1 0 0 0 0 1"/>
      <freejoint/>
      <geom name="torso" fromto="0 -.07 0 0 .07 0" size=".07"/>
      <geom name="head" type="sphere" pos="0 0 .19" size=".09"/>
      <geom name="upper_waist" fromto="-.01 -.06 -.12 -.01 .06 -.12" size=".06"/>
      <body name="lower_waist" pos="-.01 0 -.26" quat="1 0 -.002 0">
        <joint name="abdomen_z" class="abdomen" pos="0 0 .065" axis="0 0 1" range="-45 45" stiffness="20"/>
        <joint name="abdomen_y" class="abdomen" pos="0 0 .065" axis="0 1 0" range="-75 30"/>
        <geom name="lower_waist" fromto="0 -.06 0 0 .06 0" size=".06"/>
        <body name="pelvis" pos="0 0 -.165" quat="1 0 -.002 0">
          <joint name="abdomen_x" class="abdomen" pos="0 0 .1" axis="1 0 0" range="-35 35"/>
          <geom name="pelvis" fromto="-.02 -.07 0 -.02 .07 0" size=".09"/>{legs}
        </body>
      </body>{arms}
    </body>
  </worldbody>
  <actuator>{motors}</actuator>
</mujoco>"""


def scene():
    """The humanoid as MJCF: the left side mirrors the right one."""
    right = dict(side="right", y="-", m="", first="-90 70")
    left = dict(side="left", y="", m="-", first="-70 90")
    legs = LEG_TEXT.format(**right) + LEG_TEXT.format(**left)
    arms = ARM_TEXT.format(**right) + ARM_TEXT.format(**left)
    joints = ["abdomen_z", "abdomen_y", "abdomen_x"]
    for side in ("right", "left"):
        joints += [f"{side}_{joint}" for joint in ("hip_x", "hip_z", "hip_y", "knee", "ankle_y", "ankle_x")]
    for side in ("right", "left"):
        joints += [f"{side}_{joint}" for joint in ("shoulder1", "shoulder2", "elbow")]
    strengths = [*TRUNK, *LEG, *LEG, *ARM, *ARM]
    motors = "".join(f'<motor joint="{j}" gear="{STRENGTH * s:g}"/> ' for j, s in zip(joints, strengths))
    return SCENE.format(legs=legs, arms=arms, motors=motors)


class DiffHumanoid(DiffRunner):
    """Reward: dx/dt + 0.1 upright + heading + height - 0.002 |a|^2; of d = z - 0.84 within [-1, 0.1], height is -200 d^2 below 0 and 10 d
    above. Ends below 0.74 m. 60 Hz in frame_skip steps.
    """

    start_height = 1.35
    target = 200.0

    def __init__(
        self,
        frame_skip=4,
        noise=1.0,
        terminate=True,
        contact_stiffness=None,
        contact_dashpot=0.0,
        limit_stiffness=LIMIT_STIFFNESS,
    ):
        super().__init__(scene(), frame_skip, noise, terminate, contact_stiffness, contact_dashpot, limit_stiffness)

    def reward(self, before, after):
        forward = after.v[:, 0]
        upright, heading = self.cosines(after, rotation_matrix(after.q[:, 3:7]))
        upright = 0.1 * upright
        height = height_reward(after.q[:, 2] - (LEAST_HEIGHT + 0.1), most=0.1, scale=10.0)
        cost = 0.002 * square_sum(after.action)
        terms = {
            "reward_forward": forward,
            "reward_upright": upright,
            "reward_heading": heading,
            "reward_height": height,
            "reward_ctrl": -cost,
        }
        return forward + upright + heading + height - cost, terms

    def terminated(self, state):
        return state.q[:, 2] < LEAST_HEIGHT if self._terminate else super().terminated(state)
