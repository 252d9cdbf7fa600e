"""Derivatives of steps that take the gains of actuators, and springs, at their end: every input and every parameter against differences, reverse
mode against forward mode, in contact. Gains are so large that what acts at the end decides the step.
"""

import numpy as np
import pytest
from all_columns import assert_columns, assert_reverse

import coulomb
from coulomb.control import Solver
from tests.gradient.test_every_parameter import SOFT, acting

# A base that slides on the ground and is driven along and about two axes, an arm on a hinge and a slide, a hand on a ball joint that slides on
# a block. Gains that oppose speed and length are there on every kind of joint, constant and by the control, along the joint and the parent;
# one drives what it should brake.
ROBOT = """<mujoco><option timestep="0.005" gravity=".3 .2 -9.81"/><compiler angle="radian"/><worldbody>
  <geom name="floor" type="plane" size="3 3 .1" friction=".3"/>
  <body name="base" pos="0 0 .0995"><freejoint name="base"/><geom name="base" type="box" size=".2 .15 .1" mass="2" friction=".3"/>
    <body name="arm" pos=".1 0 .12" euler=".2 .3 0"><joint name="shoulder" axis="0 1 .2" stiffness="20" springref=".1" damping=".3"/>
      <geom name="arm" type="capsule" fromto="0 0 0 .3 0 .1" size=".03" mass=".4"/>
      <body name="tip" pos=".3 0 .1"><joint name="reach" type="slide" axis="1 0 .3" stiffness="200" damping=".2"/>
        <geom name="tip" type="sphere" size=".03" pos=".05 0 0" mass=".05"/>
        <body name="hand" pos=".1 0 0"><joint name="wrist" type="ball" stiffness=".2" damping=".01"/>
          <geom name="hand" type="capsule" fromto="0 0 0 .15 .05 .05" size=".02" mass=".08"/></body></body></body></body>
</worldbody><actuator>
  <general name="thrust" joint="base" gear=".3 .2 -.1 .5 -.4 .6" gainprm="3" biastype="affine" biasprm=".2 0 -30"/>
  <general name="drag" joint="base" gear="1 .5 0 0 0 .2" gaintype="affine" gainprm="0 0 -40"/>
  <general name="wing" jointinparent="base" gear=".1 0 .3 .2 .3 -.1" gainprm="2" biastype="affine" biasprm="0 0 -5"/>
  <position name="hold" joint="shoulder" kp="300" kv="40"/>
  <general name="brake" joint="shoulder" gear="1.5" gaintype="affine" gainprm="1 -20 -10"/>
  <general name="driver" joint="shoulder" gainprm="1" biastype="affine" biasprm="0 3 2"/>
  <velocity name="run" joint="reach" kv="30" gear=".7"/>
  <position name="stay" joint="reach" kp="2000" kv="10"/>
  <position name="turn" joint="wrist" kp="3" kv=".5" gear=".3 .5 -.4"/>
  <position name="tilt" jointinparent="wrist" kp="2" kv=".3" gear="-.2 .6 .5"/>
  <general name="curb" joint="wrist" gear=".5 -.1 .2" gaintype="affine" gainprm=".1 -.3 -.4"/>
</actuator></mujoco>"""
# Bounds of forces. At the start of the step thrust is beyond its one and comes back by the end, drag and run are within and go beyond; hold,
# stay, turn, tilt and curb stay beyond. And of a joint's sum.
BOUNDS = {"thrust": 12, "drag": 20.8, "hold": 18, "run": 10, "stay": 60, "turn": 0.6, "tilt": 0.25, "curb": 0.05}
SUM = 'actuatorfrclimited="true" actuatorfrcrange="-30 20"'
LEFT_OUT = (*SOFT, "joint_friction")  # zero here, where it has one side only


def robot(bounds=None):
    xml = ROBOT
    if bounds == "forces":
        for name, force in BOUNDS.items():
            xml = xml.replace(
                f'name="{name}" joint', f'name="{name}" forcelimited="true" forcerange="-{force} {force}" joint'
            )
    if bounds == "sum":
        xml = xml.replace('name="shoulder" axis', f'name="shoulder" {SUM} axis')
    model = acting(coulomb.load(xml), LEFT_OUT)
    q, _ = model.neutral()
    dq = 0.2 * np.sin(np.arange(model.nv) + 1.0)
    dq[:6] = 0
    q = model.integrate(q, dq)
    v = np.array([0.8, 0.3, -0.05, 0.02, -0.01, 0.4, 0.7, 0.4, -0.5, 0.8, 0.6])
    u = np.array([0.4, 0.5, -0.3, 0.6, 0.7, -0.2, 0.3, 0.05, 0.5, -0.3, 0.6])
    return model, q, v, u


def named(model):
    """Parameters that may move both ways."""
    return [name for name in model.parameters() if name.split("/")[0] not in LEFT_OUT]


RULES = ["implicit_velocity", "implicit", "explicit"]
LAWS = {
    "ncp": dict(tolerance=1e-13),
    "pyramid": dict(contact="lcp", friction_directions=4),
    "penalty": dict(contact="penalty", contact_stiffness=1e4, contact_damping=1e2),
    "split": dict(continuous_collision=True),
}


@pytest.mark.parametrize("bounds", [None, "forces", "sum"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("law", LAWS)
def test_columns_against_differences(law, rule, bounds):
    model, q, v, u = robot(bounds)
    sim = coulomb.Simulator(model, joint_forces=rule, **LAWS[law])
    assert_columns(sim, q, v, u, named(model))


@pytest.mark.parametrize("bounds", [None, "forces", "sum"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("law", LAWS)
def test_reverse_is_forward(law, rule, bounds):
    model, q, v, u = robot(bounds)
    sim = coulomb.Simulator(model, joint_forces=rule, **LAWS[law])
    assert_reverse(sim, q, v, u, named(model))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("law", LAWS)
def test_the_rest_of_a_taylor_series_is_quadratic(law, rule):
    """Along a random direction of state and controls: halving the change leaves a quarter of what the derivative does not say."""
    model, q, v, u = robot()
    sim = coulomb.Simulator(model, joint_forces=rule, **LAWS[law])
    sim.step(q, v, u)
    sim.freeze_memory(True)
    q1, v1 = sim.step(q, v, u)
    d = sim.derivatives()
    random = np.random.default_rng(1)
    dq, dv, du = random.normal(size=model.nv), random.normal(size=model.nv), random.normal(size=model.nu)
    dq[:6], dv[:6] = 0.1 * dq[:6], 0.1 * dv[:6]
    first = d.A @ np.r_[dq, dv] + d.B @ du

    def rest(h):
        q2, v2 = sim.step(model.integrate(q, h * dq), v + h * dv, u + h * du)
        return np.linalg.norm(np.r_[model.difference(q1, q2), v2 - v1] - h * first)

    assert rest(5e-5) < 0.27 * rest(1e-4), (rest(5e-5), rest(1e-4))


@pytest.mark.parametrize("bounds", [None, "forces"])
@pytest.mark.parametrize("rule", ["implicit_velocity", "implicit"])
def test_of_a_rollout(rule, bounds):
    """Many steps, kept ones and ones that are run again, to the same bits: by gains, a stiffness and the time step. Explicit ones explode."""
    model, q, v, u = robot(bounds)
    T = 8
    U = u + 0.1 * np.sin(np.arange(T * model.nu)).reshape(T, model.nu)
    names = ["actuator_kp/hold", "actuator_kd/hold", "actuator_kd/turn", "joint_stiffness/reach", "timestep"]
    random = np.random.default_rng(2)
    dQ, dV = np.zeros((T + 1, model.nv)), np.zeros((T + 1, model.nv))
    dQ[-1], dV[-1] = random.normal(size=(2, model.nv))
    results = []
    for options in ({}, {"keep_factors": False, "checkpoint_every": 4}):
        sim = coulomb.Simulator(model, joint_forces=rule, tolerance=1e-13)
        g = sim.rollout(q, v, U, **options).vjp(dQ, dV, wrt=names)
        results.append(np.concatenate([np.ravel(x) for x in (g.q0, g.v0, g.u, *(g[n] for n in names))]))
    np.testing.assert_array_equal(*results)

    def end(values):
        options = {"timestep": values["timestep"]} if "timestep" in values else {}
        sim = coulomb.Simulator(model.with_parameters(values), joint_forces=rule, tolerance=1e-13, **options)
        rollout = sim.rollout(q, v, U)
        return rollout.q[-1], rollout.v[-1]

    for name in names:
        value = float(np.ravel(model.parameters()[name].value)[0])
        h = 1e-4 * value
        (qa, va), (qb, vb) = end({name: value + h}), end({name: value - h})
        number = (dQ[-1] @ model.difference(qb, qa) + dV[-1] @ (va - vb)) / (2 * h)
        assert g[name][0] == pytest.approx(number, rel=2e-5, abs=1e-8), name


@pytest.mark.parametrize("bounds", [None, "forces", "sum"])
@pytest.mark.parametrize("rule", ["implicit_velocity", "implicit"])
def test_a_batch_takes_the_steps_of_a_simulator(rule, bounds):
    """Environments that start apart: the same bits as simulators of their own, step by step, and the product of their Jacobians."""
    model, q, v, u = robot(bounds)
    substeps, num_envs = 4, 3
    Q, V, U = (np.tile(x, (num_envs, 1)) for x in (q, v, u))
    V += 0.05 * np.sin(np.arange(V.size)).reshape(V.shape)
    U += 0.05 * np.cos(np.arange(U.size)).reshape(U.shape)
    batch = coulomb.BatchSimulator(model, num_envs, joint_forces=rule, tolerance=1e-13)
    Q1, V1, record = batch.control_step(Q, V, U, substeps=substeps)
    jacobian = record.jacobian()
    for k in range(num_envs):
        sim = coulomb.Simulator(model, joint_forces=rule, tolerance=1e-13)
        qk, vk = Q[k], V[k]
        A, B = np.eye(2 * model.nv), np.zeros((2 * model.nv, model.nu))
        for _ in range(substeps):
            qk, vk = sim.step(qk, vk, U[k])
            d = sim.derivatives()
            A, B = d.A @ A, d.A @ B + d.B
        np.testing.assert_array_equal(Q1[k], qk)
        np.testing.assert_array_equal(V1[k], vk)
        np.testing.assert_allclose(jacobian.A[k], A, rtol=0, atol=1e-10 * np.abs(A).max())
        np.testing.assert_allclose(jacobian.B[k], B, rtol=0, atol=1e-10 * np.abs(B).max())


@pytest.mark.parametrize("bounds", [None, "forces"])
def test_a_plan_knows_servos_that_act_at_the_end(bounds):
    """The gradient of a cost by all controls of a plan, whose steps saturate some servos."""
    model, q, v, u = robot(bounds)
    solver = Solver(model, horizon=6, substeps=2, joint_forces="implicit", tolerance=1e-13)
    solver.add_state(np.linspace(1, 2, 2 * model.nv))
    U = u + 0.1 * np.sin(np.arange(6 * model.nu)).reshape(6, model.nu)

    def cost(U):
        sim = coulomb.Simulator(model, joint_forces="implicit", tolerance=1e-13)
        rollout = sim.rollout(q, v, np.repeat(U, 2, axis=0))
        return solver.cost(rollout.q[::2], rollout.v[::2], U)[0]

    value, dU = solver.gradient(q, v, U)
    assert cost(U) == pytest.approx(value, rel=1e-12)
    direction = np.random.default_rng(3).normal(size=U.shape)
    slope = (cost(U + 1e-6 * direction) - cost(U - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose((dU * direction).sum(), slope, rtol=2e-5)
