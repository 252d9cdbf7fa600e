"""Scenes and solvers that the tests of coulomb.glue share."""

import numpy as np

import coulomb
from coulomb.control import Solver

CARTPOLE = """<mujoco><option timestep="0.02"/><worldbody>
  <body><joint name="cart" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
    <body><joint name="pole" axis="0 1 0"/><inertial pos="0 0 -.5" mass=".2" diaginertia=".001 .001 .001"/></body>
  </body></worldbody><actuator><motor joint="cart" ctrllimited="true" ctrlrange="-8 8"/></actuator></mujoco>"""
# A finger on a rail and a box on the floor, 5 cm apart.
PUSH = """<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="3 1 .1" friction=".3"/>
  <body name="finger" pos="-.2 0 .1"><joint name="finger" type="slide" axis="1 0 0" damping=".5"/><geom size=".05" mass=".5" friction="0"/></body>
  <body name="box" pos="0 0 .0999"><joint name="box_x" type="slide" axis="1 0 0"/><joint name="box_z" type="slide" axis="0 0 1"/>
    <geom type="box" size=".1 .1 .1" mass="1" friction=".3"/></body>
  </worldbody><actuator><motor joint="finger" ctrllimited="true" ctrlrange="-15 15"/></actuator></mujoco>"""
# A ball and a box on the ground: what is free, slides, rolls and turns; and an arm on a ball joint.
FREE = """<mujoco><option timestep="0.01"/><worldbody><geom name="ground" type="plane" size="1 1 1" friction=".5"/>
  <body name="box" pos="0 0 .0999"><freejoint/><geom name="box" type="box" size=".15 .1 .1" mass="1" friction=".5"/></body>
  <body name="arm" pos="0 1 1"><joint name="arm" type="ball"/><geom size=".05" pos="0 0 -.3" mass="1"/></body>
  <body name="ball" pos=".28 .02 .0999"><freejoint/><geom name="ball" type="sphere" size=".1" mass=".5" friction=".5"/></body>
</worldbody></mujoco>"""
UP = np.array([0, np.pi]), np.zeros(2)


def cartpole(horizon):
    """The model, and coulomb.control's solver of the swing-up: state weights .1 .1 .01 .01, in the end 200 500 20 20, controls .01."""
    model = coulomb.load(CARTPOLE)
    solver = Solver(model, horizon)
    solver.add_state([0.1, 0.1, 0.01, 0.01], UP, terminal=[200, 500, 20, 20])
    solver.add_control(0.01)
    return model, solver


def push(horizon=40, substeps=5):
    """The model, a guess of forces (horizon, 1) that pushes the box and draws the finger back, and the rollout of it."""
    model = coulomb.load(PUSH)
    U = np.zeros((horizon, 1))
    U[: horizon // 5] = 10
    U[horizon // 5 : horizon // 3] = -8
    return model, U, coulomb.Simulator(model).rollout(np.zeros(3), np.zeros(3), U, substeps=substeps)


def moved(model, random, size=0.3):
    """A state beside the neutral one, turned, so that a corner of the box is in the ground."""
    q, v = model.neutral()
    dq = size * random.normal(size=model.nv)
    dq[[2, 11]] = 0
    return model.integrate(q, dq), random.normal(size=model.nv)
