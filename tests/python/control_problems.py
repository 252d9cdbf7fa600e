"""Problems of optimal control that tests solve, and rollouts by a simulator of the tests' own."""

import numpy as np

import coulomb
from coulomb.control import Solver

# Two masses on rails, joined to the world by springs and dampers: linear, and coupled by the second's place on the first.
MASSES = """<mujoco><option timestep="0.05" gravity="0 0 0"/><worldbody>
  <body><joint name="a" type="slide" axis="1 0 0" stiffness="2" damping=".3"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
    <body><joint name="b" type="slide" axis=".6 .8 0" stiffness="1"/><inertial pos="0 0 0" mass=".5" diaginertia="1 1 1"/></body>
  </body></worldbody><actuator><motor joint="a"/><motor joint="b"/></actuator></mujoco>"""
CARTPOLE = """<mujoco><option timestep="0.02"/><worldbody>
  <body><joint name="cart" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
    <body><joint name="pole" type="hinge" axis="0 1 0"/><inertial pos="0 0 -.5" mass=".2" diaginertia=".001 .001 .001"/></body>
  </body></worldbody><actuator><motor joint="cart" ctrllimited="true" ctrlrange="-8 8"/></actuator></mujoco>"""
# A ball and a box on the ground: what is free, slides, rolls and turns.
PUSHED = """<mujoco><option timestep="0.01"/><worldbody><geom name="ground" type="plane" size="1 1 1" friction=".5"/>
  <body name="box" pos="0 0 .0999"><freejoint/><geom name="box" type="box" size=".15 .1 .1" mass="1" friction=".5"/></body>
  <body name="ball" pos=".28 .02 .0999"><freejoint/><geom name="ball" type="sphere" size=".1" mass=".5" friction=".5"/></body>
</worldbody></mujoco>"""
WEIGHTS = np.array([3.0, 1.0, 0.5, 0.2])


def model_of(text):
    scene = coulomb.Scene()
    scene.add_mjcf(text)
    return scene.build()


def masses(horizon, **options):
    solver = Solver(model_of(MASSES), horizon, **options)
    solver.add_state(WEIGHTS)
    solver.add_control([0.1, 0.2])
    return solver, np.array([0.7, -0.4]), np.array([0.2, 1.0])


def matrices(solver, q, v):
    """A and B of one step; the same everywhere."""
    simulator = coulomb.Simulator(solver.model)
    simulator.step(q, v, np.zeros(2))
    d = simulator.derivatives()
    return d.A, d.B


def cartpole(horizon=100, **options):
    solver = Solver(model_of(CARTPOLE), horizon, **options)
    solver.add_state([0.1, 0.1, 0.01, 0.01], ([0, np.pi], [0, 0]), terminal=[200, 500, 20, 20])
    solver.add_control(0.01)
    return solver, np.zeros(2), np.zeros(2)


def pushed(horizon=25, inputs="tau", **options):
    """The box is to push the ball; forces on the box alone, the others held by their weight."""
    model = model_of(PUSHED)
    solver = Solver(model, horizon, inputs=inputs, **options)
    q, v = model.neutral()
    goal = q.copy()
    goal[7] += 0.1
    weight = np.zeros(2 * model.nv)
    weight[6:9] = 50
    weight[[3, 4, 5, 12]] = [1, 1, 5, 0.1]
    solver.add_state(weight, (goal, v))
    solver.add_control(np.r_[np.full(6, 1e-3), np.full(6, 1e3)])
    U = np.zeros((horizon, model.nv))
    U[:, 0] = 7.5
    U[:, 5] = 0.02
    return solver, q, v, U


def rolled(solver, q, v, U, **options):
    """Q, V at the knots by a simulator of the test's own."""
    simulator = coulomb.Simulator(solver.model, **options)
    held = {"tau": U} if solver._core.nu == solver.model.nv and not solver.model.nu else {"U": U}
    rollout = simulator.rollout(q, v, substeps=solver.substeps, **held)
    return rollout.q, rollout.v
