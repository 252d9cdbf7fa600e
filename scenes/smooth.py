"""States with contacts where a step is smooth and little curved: central differences of size 1e-6 measure its
derivative there.

Each function returns (model, q, v).
"""

import numpy as np

import coulomb

ROBOT = """<mujoco><option gravity="0 0 -9.81" timestep="0.002"/><worldbody>
  <geom name="floor" type="plane" size="5 5 1" friction="0.3"/>
  <body name="base" pos="0 0 .099"><freejoint/>
    <geom name="trunk" type="capsule" fromto="-.2 0 0 .2 0 0" size=".1" mass="2" friction="0.6"/>
    <body name="arm" pos=".2 0 .1" euler="0 10 20">
      <joint name="shoulder" axis="0 1 0" stiffness="5" damping=".2" armature=".01"/>
      <geom name="upper" type="capsule" fromto="0 0 0 .2 0 0" size=".03" mass=".3"/>
      <body name="hand" pos=".2 0 0" euler="5 0 0"><joint name="wrist" type="ball" damping=".05" armature=".002"/>
        <geom name="palm" type="ellipsoid" size=".05 .04 .06" mass=".2"/></body></body></body></worldbody>
  <actuator><motor name="pull" joint="shoulder" gear="3"/>
    <position name="servo" joint="shoulder" kp="10"/></actuator></mujoco>"""

BALL = """<mujoco><option gravity="0 0 -9.81" timestep="0.002"/><worldbody>
  <geom type="plane" size="5 5 1" friction="0.5"/>
  <body name="arm" pos="0 0 .2"><joint name="socket" type="ball" damping=".02"/>
    <geom name="tip" type="sphere" pos=".3 0 0" size=".05" mass=".4"/>
    <geom type="box" size=".05 .04 .03" mass=".5"/></body></worldbody></mujoco>"""


def sliding_box():
    """A box that slides on its face and turns, a millimetre deep."""
    scene = coulomb.Scene(timestep=2e-3)
    scene.add_ground(friction=0.8)
    scene.add_box((0.2, 0.3, 0.1), mass=1.5, position=(0, 0, 0.049), friction=0.4, name="box")
    model = scene.build()
    q, v = model.neutral()
    v[:] = 1.0, 0.3, 0.0, 0.0, 0.0, 0.5
    return model, q, v


def robot_in_contact():
    """A log that slides on the ground and swings an arm: free joint, hinge, ball joint, two actuators."""
    scene = coulomb.Scene()
    scene.add_mjcf(ROBOT)
    model = scene.build()
    q, v = model.neutral()
    return model, q, v + np.array([1.0, 0.2, 0, 0, 0, 0.3, 0.5, 0.2, -0.3, 0.1])


def ball_joint():
    """A rod in a ball joint whose round tip slides on the ground."""
    scene = coulomb.Scene()
    scene.add_mjcf(BALL)
    model = scene.build()
    angle = np.arcsin(0.151 / 0.3)
    return model, model.integrate(model.neutral()[0], [0.0, angle, 0.0]), np.array([0.1, 0.05, 2.0])
