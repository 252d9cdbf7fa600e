"""Scenes with several bodies in contact, at random states near rest or impact: what gradients and contact laws are tested on.

Each function of CONTACT_SCENES takes a numpy random generator and returns (model, q, v).
"""

import math
import re

import numpy as np

import coulomb

from .basics import GRAVITY, Slope, about

OCTAHEDRON = [(0.12, 0, 0), (-0.1, 0, 0), (0, 0.11, 0), (0, -0.12, 0), (0, 0, 0.1), (0, 0, -0.13)]


def _scene(friction=0.6, restitution=None):
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY))
    scene.add_ground(friction=friction, restitution=restitution)
    return scene


def _state(scene, random, speed=0.2):
    """Neutral and a random velocity."""
    model = scene.build()
    q, v = model.neutral()
    return model, q, v + speed * random.normal(size=model.nv)


def _put_down(model, random, steps=120, speed=0.05):
    """A state on the way to rest: some steps from neutral, then a small random velocity on top."""
    trajectory = coulomb.Simulator(model, timestep=2e-3).rollout(*model.neutral(), steps=steps)
    q, v = trajectory.q.reshape(steps + 1, -1)[-1].copy(), trajectory.v.reshape(steps + 1, -1)[-1].copy()
    return model, q, v + speed * random.normal(size=model.nv)


def stack(random):
    scene = _scene()
    for i in range(3):
        scene.add_box((0.2, 0.24, 0.2), mass=1.0 + i, position=(0.02 * i, 0.01 * i, 0.0999 + 0.1999 * i), friction=0.5)
    return _state(scene, random, 0.05)


def wedge(random):
    """A box on a fixed ramp."""
    scene, slope = _scene(), Slope(25)
    scene.add_box((2, 1, 0.2), fixed=True, position=(0, 0, 1), quaternion=slope.quaternion, friction=0.3)
    top = np.array([0, 0, 1]) + 0.1999 * slope.normal
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=top, quaternion=slope.quaternion)
    return _state(scene, random)


def ball_between_boxes(random):
    scene = _scene()
    for x in (-0.2, 0.2):
        scene.add_box((0.2, 0.3, 0.3), mass=2.0, position=(x, 0, 0.1499), friction=0.5)
    scene.add_sphere(0.1002, mass=0.5, position=(0, 0.01, 0.2), friction=0.7)
    return _state(scene, random)


CHAIN = """<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <geom type="plane" size="5 5 1" euler="0 20 0" friction="0.6"/>
  <body pos="0 0 0.12" euler="0 20 0"><freejoint/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".05" friction="0.6"/>
    <body pos=".3 0 0"><joint type="hinge" axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto=".12 0 0 .4 0 0" size=".05" friction="0.6"/>
      <body pos=".4 0 0"><joint type="ball" damping=".1"/><geom type="box" pos=".2 0 0" size=".08 .06 .05" friction="0.6"/>
      </body></body></body></worldbody></mujoco>"""


def chain_on_slope(random):
    scene = coulomb.Scene()
    scene.add_mjcf(CHAIN)
    model, q, v = _put_down(scene.build(), random)
    q[:3] -= 1e-4 * Slope(20).normal  # at rest gaps are zero to rounding, and steps have a kink there
    return model, q, v


ARM = """<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <geom type="plane" size="5 5 1" friction="0.5"/>
  <body pos="0 0 .15"><joint name="a" axis="0 0 1" armature=".01"/><geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/>
    <body pos=".4 0 0"><joint name="b" axis="0 0 1"/><geom type="capsule" fromto=".07 0 0 .4 0 0" size=".03" friction="0.4"/>
  </body></body>
  <body pos=".62 .1298 .0999"><freejoint/><geom type="box" size=".1 .1 .1" mass="1" friction="0.5"/></body></worldbody>
  <actuator><motor joint="a" gear="2"/><position joint="b" kp="20" kv="1"/></actuator></mujoco>"""


def arm_pushes_box(random, actuators=2):
    scene = coulomb.Scene()
    scene.add_mjcf(ARM if actuators == 2 else re.sub("<position .*?/>", "", ARM))
    model, q, v = _state(scene, random, 0.02)
    q[:2] = 0.001, 0.0005  # not parallel to the box
    v[0] += 0.5
    return model, q, v


LIMITED = """<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <body><joint axis="0 1 0" limited="true" range="-1 0.3" frictionloss=".2" damping=".1" stiffness="2"/>
    <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/>
    <body pos=".5 0 0"><joint type="slide" axis="1 0 0" limited="true" range="0 0.2" frictionloss=".5"/>
      <geom size=".05"/></body></body></worldbody></mujoco>"""


def joint_at_limit(random):
    scene = coulomb.Scene()
    scene.add_mjcf(LIMITED.replace("-1 0.3", "-17.2 17.2"))  # degrees
    model, q, v = _state(scene, random, 0.5)
    return model, np.array([math.radians(17.2) + 1e-4, 0.1]), np.array([0.3, v[1]])


EQUALITY = """<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <body name="one" pos="0 0 1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body name="two" pos=".3 0 1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body name="three" pos=".6 0 1"><freejoint/><geom type="capsule" size=".05 .1"/></body>
  <body name="four" pos="0 1 1"><joint name="j" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
    <body pos=".4 0 0"><joint name="k" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/></body></body>
  </worldbody>
  <equality><connect body1="one" body2="two" anchor=".15 0 0"/><weld body1="two" body2="three"/>
  <joint joint1="j" joint2="k" polycoef="0 -1 .2 0 0"/></equality></mujoco>"""


def equalities(random):
    scene = coulomb.Scene()
    scene.add_mjcf(EQUALITY)
    model = scene.build()
    q, v = model.neutral()
    return model, model.integrate(q, 0.001 * random.normal(size=model.nv)), v + random.normal(size=model.nv)


def bounce(random):
    scene = _scene(friction=0.4, restitution=0.8)
    for i in range(3):
        scene.add_sphere(0.1, mass=1 + i, position=(0.5 * i, 0, 0.0999))
    model, q, v = _state(scene, random)
    v[2::6] -= 2
    return model, q, v


def meshes(random):
    scene = _scene()
    scene.add_mesh(OCTAHEDRON, mass=1.0, position=(0, 0, 0.1299), friction=0.5)
    scene.add_mesh(OCTAHEDRON, mass=2.0, position=(0.02, 0.01, 0.3598), quaternion=about("z", 0.4))
    return _state(scene, random, 0.1)


def tumbling_primitives(random):
    scene = _scene()
    scene.add_capsule(0.05, 0.3, mass=1.0, position=(0, 0, 0.0499), quaternion=about("x", math.pi / 2))
    scene.add_cylinder(0.1, 0.2, mass=1.0, position=(0.5, 0, 0.0999), quaternion=about("y", math.pi / 2))
    scene.add_ellipsoid((0.1, 0.12, 0.08), mass=1.0, position=(1.0, 0, 0.0799))
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(1.5, 0, 0.1413), quaternion=about("x", math.pi / 4))
    return _state(scene, random)


CONTACT_SCENES = [
    stack, wedge, ball_between_boxes, chain_on_slope, arm_pushes_box, joint_at_limit, equalities, bounce, meshes,
    tumbling_primitives,
]  # fmt: skip
