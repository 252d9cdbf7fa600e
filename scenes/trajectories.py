"""Scenes whose trajectories meet, keep and lose contacts: what derivatives of rollouts are tested on.

Each function of TRAJECTORIES returns (model, q0, v0, U (200, nu), timestep) with contacts that change on the way.
"""

import numpy as np

import coulomb

from .basics import GRAVITY, about

STEPS = 200


def _leg(name, x, y):
    return f"""<body name="{name}_thigh" pos="{x} {y} 0">
      <joint name="{name}_hip" axis="0 1 0" range="-90 90" damping=".2" armature=".01"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02" mass=".5"/>
      <body name="{name}_shank" pos="0 0 -.2">
        <joint name="{name}_knee" axis="0 1 0" range="-150 -10" damping=".2" armature=".01"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".012" mass=".15"/>
        <geom name="{name}_foot" type="sphere" pos="0 0 -.2" size=".02" mass=".05"/></body></body>"""


LEGS = {"fl": (0.2, 0.12), "fr": (0.2, -0.12), "rl": (-0.2, 0.12), "rr": (-0.2, -0.12)}
JOINTS = [f"{leg}_{joint}" for leg in LEGS for joint in ("hip", "knee")]
MOTORS = "".join(f'<position name="{joint}" joint="{joint}" kp="60" kv="2"/>' for joint in JOINTS)
QUADRUPED = f"""<mujoco><option timestep="0.002" gravity="0 0 -9.81"/>
  <default><geom friction="0.7"/></default><worldbody>
  <geom name="ground" type="plane" size="5 5 1" friction="0.8"/>
  <body name="trunk" pos="0 0 .36"><freejoint/><geom type="box" size=".22 .1 .05" mass="6"/>
    {"".join(_leg(name, x, y) for name, (x, y) in LEGS.items())}</body></worldbody>
  <actuator>{MOTORS}</actuator></mujoco>"""


def quadruped(steps=STEPS):
    """Four legs on position actuators drop a hand's breadth and trot."""
    model = coulomb.load(QUADRUPED)
    q, v = model.neutral()
    q[7:] = np.tile([0.7, -1.4], 4)
    q[:3] += 0.01, 0.02, 0.0
    v[:6] = 0.3, 0.05, -0.2, 0.1, -0.2, 0.15
    phase = 2 * np.pi * 2.5 * model.timestep * np.arange(steps)[:, None] + np.repeat([0, np.pi, np.pi, 0], 2)
    return model, q, v, np.tile([0.7, -1.4], 4) + np.sin(phase) * np.tile([0.25, -0.3], 4), model.timestep


def thrown_box():
    """Lands on a corner, tumbles, slides."""
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY))
    scene.add_ground(friction=0.3, restitution=0.0, name="ground")
    scene.add_box(
        (0.2, 0.16, 0.12), mass=1.3, position=(0, 0, 0.16), quaternion=about("y", 0.3), friction=0.5, name="box"
    )
    model = scene.build()
    q, v = model.neutral()
    v[:] = 1.5, 0.3, -0.5, 0.7, 0.4, 0.9
    return model, q, v, np.zeros((STEPS, 0)), 1e-3


def bouncing_balls():
    """Two balls with restitution: on the ground and against one another."""
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY))
    scene.add_ground(friction=0.03, restitution=0.8, name="ground")
    scene.add_sphere(0.05, mass=0.4, position=(0, 0, 0.1), friction=0.05, restitution=0.7, name="one")
    scene.add_sphere(0.07, mass=0.9, position=(0.3, 0.02, 0.09), friction=0.04, restitution=0.6, name="two")
    model = scene.build()
    q, v = model.neutral()
    v[:] = 1.1, 0.0, -1.0, 0.5, 3.0, 0.2, -0.6, 0.05, -0.4, 0.3, -1.0, 0.4
    return model, q, v, np.zeros((STEPS, 0)), 1e-3


ARM = """<mujoco><option gravity="0 0 -9.81"/><worldbody><geom name="ground" type="plane" size="5 5 1" friction="0.6"/>
  <body name="upper" pos="0 0 .5"><joint name="shoulder" axis="0 1 0" limited="true" range="-180 80"
      frictionloss=".3" damping=".1" armature=".02"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
    <body name="fore" pos=".3 0 0"><joint name="elbow" axis="0 1 0" limited="true" range="-60 60"
        damping=".05" stiffness="1"/>
      <geom type="capsule" fromto="0 0 0 .25 0 0" size=".025" mass=".6"/></body></body></worldbody>
  <actuator><motor name="motor" joint="shoulder" gear="2"/><motor name="motor2" joint="elbow"/></actuator></mujoco>"""


def arm_falls():
    """An arm with motors and dry friction falls, meets a joint limit and the ground."""
    model = coulomb.load(ARM)
    U = np.stack([1.5 * np.sin(np.arange(STEPS) / 25), np.cos(np.arange(STEPS) / 40)], axis=1)
    return model, np.array([0.2, 0.3]), np.array([1.0, 2.0]), U, 2e-3


TRAJECTORIES = [thrown_box, bouncing_balls, arm_falls, quadruped]
