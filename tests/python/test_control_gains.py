"""Feedback of coulomb.control is that of the plan: a Riccati recursion by hand on the linearisation of the same plan, whatever the search was regularised by."""

import numpy as np
import pytest

import coulomb
from coulomb.control import Mpc, Solver

CARTPOLE = """<mujoco><option timestep="0.02"/><worldbody><body><joint name="cart" type="slide" axis="1 0 0"/>
  <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><body><joint name="pole" axis="0 1 0"/>
  <inertial pos="0 0 -.5" mass=".2" diaginertia=".001 .001 .001"/></body></body></worldbody>
  <actuator><motor joint="cart" {limits}/></actuator></mujoco>"""
HOPPER = """<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="9 9 1" friction="1"/>
  <body name="torso"><joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/><joint name="pitch" axis="0 -1 0"/>
    <inertial pos="0 0 0" mass="1" diaginertia=".013 .013 .013"/>
    <body name="leg" pos="0 0 -.2"><joint name="knee" axis="0 -1 0" damping=".5"/><inertial pos="0 0 -.2" mass=".2" diaginertia=".01 .01 .01"/>
      <body name="foot" pos="0 0 -.4"><joint name="ankle" axis="0 -1 0" damping=".5"/><inertial pos=".05 0 0" mass=".1" diaginertia=".005 .005 .005"/>
        <geom name="toe" size=".03" pos=".15 0 0" friction="1"/><geom name="heel" size=".03" pos="-.05 0 0" friction="1"/></body></body></body></worldbody>
  <actuator><motor joint="knee"/><motor joint="ankle"/></actuator></mujoco>"""


def riccati(solver, result, weight, terminal, control):
    """K (N, nu, 2 nv) of diagonal costs of states and controls."""
    sim = coulomb.Simulator(solver.model, timestep=solver.timestep)
    rollout = sim.rollout(result.Q[0], result.V[0], result.U)
    assert np.array_equal(rollout.q, result.Q) and np.array_equal(rollout.v, result.V)
    steps = rollout.linearize()
    P, K = np.diag(terminal), []
    for A, B in zip(steps.A[::-1], steps.B[::-1]):
        gain = -np.linalg.solve(control * np.eye(B.shape[1]) + B.T @ P @ B, B.T @ P @ A)
        K.append(gain)
        P = np.diag(weight) + A.T @ P @ (A + B @ gain)
        P = (P + P.T) / 2
    return np.array(K[::-1])


def hopper(N=20):
    model = coulomb.load(HOPPER)
    weight, terminal = np.full(10, 0.1), np.full(10, 100.0)
    solver = Solver(model, N)
    q = np.array([0, 0.613, 0.3, -0.5, 0.2])
    solver.add_state(weight, (q + [0.5, 0.1, 0, 0, 0], np.zeros(5)), terminal=terminal)
    solver.add_control(1e-3)
    return solver, q, np.zeros(5), (weight, terminal, 1e-3)


def cartpole(N=40, limits=""):
    model = coulomb.load(CARTPOLE.format(limits=limits))
    weight, terminal = np.array([0.1, 0.1, 0.01, 0.01]), np.array([20.0, 50, 2, 2])
    solver = Solver(model, N)
    solver.add_state(weight, (np.array([0, np.pi]), np.zeros(2)), terminal=terminal)
    solver.add_control(0.01)
    return solver, np.zeros(2), np.zeros(2), (weight, terminal, 0.01)


@pytest.mark.parametrize("scene", [cartpole, hopper])
@pytest.mark.parametrize("regularization, iterations", [(1e-9, 3), (1e-9, 200), (1e3, 5), (1e6, 300)])
def test_gains_are_those_of_the_plan_however_much_the_search_was_regularised(scene, regularization, iterations):
    solver, q, v, costs = scene()
    result = solver.solve(q, v, iterations=iterations, regularization=regularization)
    assert result.gain_regularization <= 1e-9
    K = riccati(solver, result, *costs)
    assert np.abs(result.K - K).max() <= 1e-6 * np.abs(K).max()


def test_gains_predict_what_the_plan_costs_nearby():
    # Followed from a start that is off, the feedback costs no more than the controls alone.
    solver, q, v, _ = cartpole()
    result = solver.solve(q, v, iterations=5, regularization=1e4)
    sim = coulomb.Simulator(solver.model)

    def cost(K, dq):
        Q, V, U = [q + dq], [v], []
        for t in range(solver.horizon):
            dx = np.r_[solver.model.difference(result.Q[t], Q[-1]), V[-1] - result.V[t]]
            U.append(result.U[t] + K[t] @ dx)
            q1, v1 = sim.step(Q[-1], V[-1], U[-1])
            Q.append(q1)
            V.append(v1)
        return solver.cost(np.array(Q), np.array(V), np.array(U))[0]

    # To second order: the rest falls by the best feedback, whose second difference is the least.
    def curvature(K, h=1e-3):
        dq = np.array([0.0, h])
        return (cost(K, dq) - 2 * cost(K, 0 * dq) + cost(K, -dq)) / h**2

    best = curvature(result.K)
    for scale in (0.0, 0.5, 1.5):
        assert curvature(scale * result.K) > best


def test_controls_at_limits_have_no_feedback_and_others_do():
    solver, q, v, _ = cartpole(limits='ctrllimited="true" ctrlrange="-3 3"')
    result = solver.solve(q, v, iterations=100)
    at_limit = np.abs(result.U[:, 0]) == 3
    assert at_limit.any() and not at_limit.all()
    assert not result.K[at_limit].any() and np.abs(result.K[~at_limit]).max(axis=(1, 2)).min() > 0


def test_costs_that_do_not_see_a_control_say_so():
    solver = Solver(coulomb.load(CARTPOLE.format(limits="")), 5)
    solver.add_state([1.0, 0, 0, 0], (np.ones(2), np.zeros(2)), terminal=0)
    result = solver.solve(np.zeros(2), np.zeros(2), iterations=3)
    assert result.gain_regularization > 0 and np.isfinite(result.K).all()


def test_a_tick_has_the_gains_of_its_models():
    # Converged: those of the plan.
    solver, q, v, costs = cartpole()
    mpc = Mpc(solver, start_iterations=300)
    u, K = mpc.step(q, v)
    assert mpc.result.converged
    np.testing.assert_allclose(K, riccati(solver, mpc.result, *costs)[0], rtol=1e-6, atol=1e-6)

    # And not those of a regularised search.
    mpc = Mpc(solver, start_iterations=30, regularization=1e5)
    _, regularised = mpc.step(q, v)
    assert np.abs(regularised).max() > 0.1 * np.abs(K).max()
