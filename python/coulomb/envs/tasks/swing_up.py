"""CartPoleSwingUp-v0: a pole that hangs from a cart is to be swung up and kept there; the cart-pole of DiffRL [Xu2022]."""

from __future__ import annotations

import numpy as np

import coulomb

from ..arrays import cos, sin, stack, wrapped
from ..task import Task

CONTROL_RATE = 60.0  # Hz
FORCE = 1000.0  # N per unit of action
MJCF = """
<mujoco model="cartpole">
  <option timestep="0.004166666666666667"/>
  <worldbody>
    <camera name="side" pos="0 -8 1" xyaxes="1 0 0 0 0 1"/>
    <body name="cart">
      <joint name="slide" type="slide" axis="1 0 0"/>
      <geom type="box" size=".25 .1 .25" density="1000" contype="0" conaffinity="0" rgba=".3 .45 .6 1"/>
      <body name="pole">
        <joint name="hinge" type="hinge" axis="0 1 0"/>
        <geom type="box" size=".025 .025 .5" pos="0 0 .5" density="1000" contype="0" conaffinity="0" rgba=".85 .5 .2 1"/>
      </body>
    </body>
  </worldbody>
  <actuator> <motor joint="slide" ctrllimited="true" ctrlrange="-1 1" gear="1000"/> </actuator>
</mujoco>"""


class CartPoleSwingUp(Task):
    """Observed: x, dx/dt, sin, cos of the angle, its velocity; the angle is 0 where the pole stands, and it starts near -pi.

    Reward: -angle^2 - 0.1 dangle/dt^2 - 0.05 x^2 - 0.1 dx/dt^2. Never ends. Cart of 50 kg, pole of 2.5 kg and 1 m, force 1000 N;
    the cart has no stops.
    """

    episode_length = 240
    camera = {"distance": 7.0, "azimuth": 90.0, "elevation": -10.0}

    def __init__(self, frame_skip=4, noise=1.0):
        super().__init__(coulomb.load(MJCF), 1 / (CONTROL_RATE * frame_skip), frame_skip)
        self._noise = noise

    def draw(self, random):
        q = np.array([0.0, -np.pi]) + self._noise * random.uniform(-np.pi / 2, np.pi / 2, size=2)
        return q, self._noise * random.uniform(-0.25, 0.25, size=2), np.zeros(0)

    def observe(self, state):
        angle = state.q[:, 1]
        return stack([state.q[:, 0], state.v[:, 0], sin(angle), cos(angle), state.v[:, 1]])

    def reward(self, before, after):
        angle = wrapped(after.q[:, 1])
        x, speed, spin = after.q[:, 0], after.v[:, 0], after.v[:, 1]
        return -(angle * angle) - 0.1 * spin * spin - 0.05 * x * x - 0.1 * speed * speed, {}

    def mjcf(self):
        return MJCF
