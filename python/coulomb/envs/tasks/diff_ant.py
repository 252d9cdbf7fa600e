"""DiffAnt-v0: the ant as DiffRL has it: of water's density, strong, with light rotors."""

from __future__ import annotations

import numpy as np

from ..arrays import rotation_matrix
from .compliance import LIMIT_STIFFNESS
from .diff_runner import DiffRunner

LEAST_HEIGHT = 0.27  # m
LEGS = [(1, 1, 1), (-1, 1, -1), (-1, -1, -1), (1, -1, 1)]  # towards x and y; which way the ankle bends
LEG = """
      <body name="leg_{n}">
        <geom name="leg_{n}" fromto="0 0 0 {a} {b} 0"/>
        <body name="hip_{n}" pos="{a} {b} 0">
          <joint name="hip_{n}" axis="0 0 1" range="-40 40"/>
          <geom name="hip_{n}" fromto="0 0 0 {a} {b} 0"/>
          <body name="ankle_{n}" pos="{a} {b} 0">
            <joint name="ankle_{n}" axis="{axis} 1 0" range="{range}"/>
            <geom name="ankle_{n}" fromto="0 0 0 {c} {d} 0"/>
          </body>
        </body>
      </body>"""
SCENE = """
<mujoco model="diff_ant">
  <compiler angle="degree" inertiafromgeom="true"/>
  <option timestep="0.004166666666666667"/>
  <default>
    <joint type="hinge" armature=".05" damping="11" limited="true"/>
    <geom type="capsule" size=".08" contype="1" conaffinity="0" density="{density}" friction=".75" rgba=".85 .55 .3 1"/>
    <motor ctrllimited="true" ctrlrange="-1 1" gear="200"/>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="40 40 1" contype="0" conaffinity="1"/>
    <body name="torso" pos="0 0 .75">
      <camera name="track" mode="trackcom" pos="0 -4 1" xyaxes="1 0 0 0 .3 1"/>
      <freejoint/>
      <geom name="torso" type="sphere" size=".25"/>{legs}
    </body>
  </worldbody>
  <actuator>{motors}</actuator>
</mujoco>"""


def scene(density=1000):
    """The ant as MJCF: four legs that differ in their directions. density: kg/m^3 of all its parts."""
    legs = ""
    for number, (x, y, bend) in enumerate(LEGS, start=1):
        # The ankle's axis is horizontal and across the leg; legs 1 and 4 bend with positive angles, 2 and 3 with negative ones.
        numbers = dict(a=0.2 * x, b=0.2 * y, c=0.4 * x, d=0.4 * y, axis=-x * y)
        legs += LEG.format(n=number, range="30 100" if bend > 0 else "-100 -30", **numbers)
    motors = "".join(f'<motor joint="hip_{n}"/> <motor joint="ankle_{n}"/> ' for n in range(1, 5))
    return SCENE.format(legs=legs, motors=motors, density=density)


class DiffAnt(DiffRunner):
    """Reward: dx/dt + 0.1 upright + heading + height above 0.27 m, below which the episode ends. 60 Hz in frame_skip steps."""

    start_height = 0.75
    target = 10000.0

    density = 1000

    def __init__(
        self,
        frame_skip=4,
        noise=1.0,
        terminate=True,
        contact_stiffness=None,
        contact_dashpot=0.0,
        limit_stiffness=LIMIT_STIFFNESS,
    ):
        mjcf = scene(self.density)
        super().__init__(mjcf, frame_skip, noise, terminate, contact_stiffness, contact_dashpot, limit_stiffness)

    def start_joints(self):
        return np.array([[0.0, bend] for *_, bend in LEGS]).ravel()

    def reward(self, before, after):
        forward = after.v[:, 0]
        upright, heading = self.cosines(after, rotation_matrix(after.q[:, 3:7]))
        upright = 0.1 * upright
        height = after.q[:, 2] - LEAST_HEIGHT
        terms = {
            "reward_forward": forward,
            "reward_upright": upright,
            "reward_heading": heading,
            "reward_height": height,
        }
        return forward + upright + heading + height, terms

    def terminated(self, state):
        return state.q[:, 2] < LEAST_HEIGHT if self._terminate else super().terminated(state)
