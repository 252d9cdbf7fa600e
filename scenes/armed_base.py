"""A base that lies on the ground and carries an arm on springs, with dry friction and a limit: every kind of joint parameter."""

import numpy as np

LIMIT = 60  # degrees, of the shoulder

TEXT = """<mujoco><option gravity="{gravity}" timestep="0.002"/><worldbody>
  <geom name="floor" type="plane" size="5 5 1" friction="0.3"/>
  <body name="base" pos="0 0 {height}"><freejoint/>
    <geom name="trunk" type="box" size=".2 {half_width} .1" mass="2" friction="0.6"/>
    <body name="arm" pos=".2 0 .1" euler="0 10 20"><joint name="shoulder" axis="0 1 0" stiffness="5" springref="10" damping=".2" armature=".01"
        frictionloss=".05" limited="true" range="-40 {limit}"/>
      <geom name="upper" type="capsule" fromto="0 0 0 .2 0 0" size=".03" mass=".3"/>
      <body name="hand" pos=".2 0 0" euler="5 0 0"><joint name="wrist" type="ball" stiffness="1" damping=".05" armature=".002"/>
        <geom name="palm" type="ellipsoid" size=".05 .04 .06" mass=".2"/>{finger}</body></body></body></worldbody>
  <actuator><motor name="pull" joint="shoulder" gear="3"/>
    <position name="servo" joint="shoulder" kp="10" kv="{servo_damping}"/>{actuators}</actuator></mujoco>"""


def armed_base(gravity=(0, 0, -9.81), height=0.0999, half_width=0.1, servo_damping=0, finger="", actuators=""):
    """The MJCF text. gravity: (3,) m/s^2; height: of the base, m, 0.1 where it touches; half_width: of the trunk, m; servo_damping: N m s;
    finger, actuators: MJCF of bodies on the hand and of more actuators.
    """
    numbers = " ".join(str(g) for g in gravity)
    base = {"height": height, "half_width": half_width, "limit": LIMIT}
    return TEXT.format(gravity=numbers, servo_damping=servo_damping, finger=finger, actuators=actuators, **base)


def put_beyond_its_limit(model, q):
    """Turns the shoulder a little beyond its limit, in place."""
    joint = model.joint_names.index("shoulder")
    q[model.joint_q[joint]] = np.radians(LIMIT) + 1e-4
