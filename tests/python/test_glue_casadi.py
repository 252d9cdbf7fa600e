"""coulomb.glue.casadi: all shooting nodes as one function: values, Jacobians and their pattern; IPOPT against coulomb.control."""

import numpy as np
import pytest
from glue_scenes import CARTPOLE, FREE, moved, push

import coulomb
from coulomb.control import Solver

casadi = pytest.importorskip("casadi")

from coulomb.glue.casadi import Steps, gauss_newton  # noqa: E402


def states_of(model, n, seed=0):
    random = np.random.default_rng(seed)
    rows = [moved(model, random, 0.1) for _ in range(n)]
    return np.array([q for q, _ in rows]), np.array([v for _, v in rows]), random


@pytest.mark.parametrize("options", [{}, {"substeps": 3}, {"substeps": 2, "timestep": 0.004, "contact": "lcp"}])
def test_every_column_is_a_rollout_of_its_own(options):
    model, knots = coulomb.load(FREE), 3
    steps = Steps(model, knots, inputs="tau", **options)
    Q, V, random = states_of(model, knots)
    U = random.normal(size=(knots, model.nv))
    X1 = np.array(steps(steps.columns(Q, V), U.T))
    substeps = options.get("substeps", 1)
    simulator = coulomb.Simulator(model, **{k: v for k, v in options.items() if k != "substeps"})
    assert steps.timestep == pytest.approx(substeps * simulator.timestep)
    touching = 0
    for t in range(knots):
        r = simulator.rollout(Q[t], V[t], tau=U[t][None], substeps=substeps)
        np.testing.assert_allclose(X1[:, t], np.r_[r.q[-1], r.v[-1]], rtol=0, atol=1e-13)
        simulator.step(Q[t], V[t], tau=U[t])
        touching += len(simulator.contacts)
    assert steps.converged.all() and touching >= knots
    for found, expected in zip(steps.states(steps.columns(Q, V)), (Q, V)):
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("substeps", [1, 2])
def test_the_jacobian_is_that_of_differences_by_every_number(substeps):
    """Quaternions of any length among them."""
    model, knots = coulomb.load(FREE), 2
    steps = Steps(model, knots, substeps, inputs="tau", tolerance=1e-14)
    Q, V, random = states_of(model, knots, seed=4)
    Q[1, 3:7] *= 1.7
    X, U = steps.columns(Q, V), 0.3 * random.normal(size=(model.nv, knots))
    simulator = coulomb.Simulator(model)
    for t in range(knots):
        simulator.step(model.normalize(Q[t]), V[t])
        assert len(simulator.contacts)
    by_x, by_u = (np.array(J) for J in steps.jacobian()(X, U, steps(X, U)))
    assert by_x.shape == (2 * 33, 2 * 33) and by_u.shape == (2 * 33, 2 * 15)

    def values(x, u):
        return np.array(steps(x.reshape(X.shape, order="F"), u.reshape(U.shape, order="F"))).ravel(order="F")

    x, u, e = X.ravel(order="F"), U.ravel(order="F"), 1e-6
    for J, shift in ((by_x, lambda d: values(x + d, u)), (by_u, lambda d: values(x, u + d))):
        columns = [(shift(e * row) - shift(-e * row)) / (2 * e) for row in np.eye(J.shape[1])]
        np.testing.assert_allclose(J, np.array(columns).T, rtol=0, atol=2e-6 * max(1, np.abs(J).max()))


def test_the_jacobian_of_a_problem_is_sparse_and_one_evaluation():
    """Expressions around the function keep the blocks, and IPOPT's pair of value and Jacobian steps once."""
    model, knots = coulomb.load(CARTPOLE), 40
    steps = Steps(model, knots)
    X, U = casadi.MX.sym("X", 4, knots + 1), casadi.MX.sym("U", 1, knots)
    gaps = casadi.vec(X[:, 1:] - steps(X[:, :-1], U))
    J = casadi.jacobian(gaps, casadi.veccat(X, U))
    assert J.nnz() == knots * (4 * 4 + 4 + 4)
    program = casadi.Function("program", [X, U], [gaps, J])
    random = np.random.default_rng(1)
    steps.evaluations = steps.linearizations = 0
    x, u = random.normal(size=(4, knots + 1)), random.normal(size=(1, knots))
    _, found = program(x, u)
    assert (steps.evaluations, steps.linearizations) == (1, 1)
    program(x, u)
    assert (steps.evaluations, steps.linearizations) == (1, 2)

    A, B = coulomb.Simulator(model), []
    for t in range(knots):
        A.step(x[:2, t], x[2:, t], u[:, t])
        d = A.derivatives()
        B.append(d.B)
        rows = slice(4 * t, 4 * t + 4)
        np.testing.assert_allclose(-np.array(found[rows, rows]), d.A, rtol=0, atol=1e-13)
        np.testing.assert_allclose(-np.array(found[rows, 4 * (knots + 1) + t]), d.B, rtol=0, atol=1e-13)


def program_of_push(steps, guess, rollout, weights, goal, exact):
    """A finger pushes a box to a place with little force: Opti, X and U. exact: the place is a constraint as well, of finger and box."""
    knots = guess.shape[0]
    opti = casadi.Opti()
    X, U = opti.variable(steps.nx, knots + 1), opti.variable(steps.nu, knots)
    opti.subject_to(X[:, 1:] == steps(X[:, :-1], U))
    opti.subject_to(X[:, 0] == np.zeros(steps.nx))
    opti.subject_to(opti.bounded(steps.limits[0], U, steps.limits[1]))
    miss = X[:, -1] - goal
    opti.minimize(0.5 * casadi.sum1(weights * miss**2) + 0.5 * 0.01 * casadi.sumsqr(U))
    if exact:
        opti.subject_to(miss[:2] == 0)
    opti.set_initial(X, steps.columns(rollout.q, rollout.v))
    opti.set_initial(U, guess.T)
    return opti, X, U


def test_ipopt_pushes_a_box_to_a_place_as_the_control_solver_does():
    knots, substeps = 40, 5
    model, guess, rollout = push(knots, substeps)
    goal, weights = np.array([0, 0.5, 0, 0, 0, 0]), np.array([100.0, 1000, 0, 10, 10, 0])
    solver = Solver(model, knots, substeps)
    solver.add_state(0, (goal[:3], goal[3:]), terminal=weights)
    solver.add_control(0.01)
    expected = solver.solve(np.zeros(3), np.zeros(3), guess, iterations=100)
    assert expected.converged

    steps = Steps(model, knots, substeps)
    opti, X, U = program_of_push(steps, guess, rollout, weights, goal, exact=False)
    opti.solver("ipopt", {"print_time": False, **gauss_newton(opti)}, {"print_level": 0, "sb": "yes", "tol": 1e-6})
    found = opti.solve()
    assert found.value(opti.f) == pytest.approx(expected.cost, rel=1e-6)
    np.testing.assert_allclose(found.value(U), expected.U[:, 0], rtol=0, atol=0.01)
    assert found.stats()["iter_count"] < 60 and steps.converged.all()

    opti, X, U = program_of_push(steps, guess, rollout, weights, goal, exact=True)
    opti.solver("ipopt", {"print_time": False, **gauss_newton(opti)}, {"print_level": 0, "sb": "yes", "tol": 1e-6})
    found = opti.solve()
    rolled = coulomb.Simulator(model).rollout(np.zeros(3), np.zeros(3), found.value(U)[:, None], substeps=substeps)
    np.testing.assert_allclose(rolled.q[-1, :2], goal[:2], rtol=0, atol=1e-7)
    assert found.value(opti.f) > expected.cost and abs(rolled.v[-1, 1]) < 1e-9


ARM = """<mujoco><option timestep="0.01"/><worldbody><body pos="0 0 1"><joint name="arm" type="ball"/>
  <geom size=".05" pos="0 0 -.3" mass="1"/><geom size=".05" pos=".2 0 0" mass="1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("limited_memory", [True, False])
def test_ipopt_turns_an_arm_on_a_ball_joint(limited_memory):
    """Unknowns are the four numbers of quaternions; where gaps are closed they are of unit length. Both Hessians find one optimum."""
    model, knots = coulomb.load(ARM), 20
    q, v = model.neutral()
    goal = model.integrate(q, [0.5, -0.6, 0.7])
    steps = Steps(model, knots, 5, inputs="tau")
    opti = casadi.Opti()
    X, U = opti.variable(7, knots + 1), opti.variable(3, knots)
    opti.minimize(casadi.sumsqr(U))
    opti.subject_to(X[:, 0] == np.r_[q, v])
    opti.subject_to(X[:, 1:] == steps(X[:, :-1], U))
    opti.subject_to(X[1:, -1] == np.r_[goal[1:], v])
    opti.set_initial(X, np.tile(np.r_[q, v][:, None], (1, knots + 1)))
    hessian = ({}, {"hessian_approximation": "limited-memory"}) if limited_memory else (gauss_newton(opti), {})
    opti.solver(
        "ipopt", {"print_time": False, **hessian[0]}, {"print_level": 0, "sb": "yes", "tol": 1e-6, **hessian[1]}
    )
    found = opti.solve()
    Q, _ = steps.states(found.value(X))
    np.testing.assert_allclose(np.linalg.norm(Q, axis=1), 1, rtol=0, atol=1e-9)
    rolled = coulomb.Simulator(model).rollout(q, v, tau=found.value(U).T, substeps=5)
    np.testing.assert_allclose(rolled.q, Q, rtol=0, atol=1e-8)
    np.testing.assert_allclose(rolled.q[-1], goal, rtol=0, atol=1e-8)
    assert found.value(opti.f) == pytest.approx(30.7064, rel=1e-4), "of both"


def test_the_same_bits_for_any_number_of_threads():
    model = coulomb.load(FREE)
    Q, V, random = states_of(model, 8)
    U = random.normal(size=(model.nv, 8))
    found = []
    for threads in (1, 2, 3):
        steps = Steps(model, 8, inputs="tau", num_threads=threads)
        X = steps.columns(Q, V)
        X1 = steps(X, U)
        found.append([np.array(M) for M in (X1, *steps.jacobian()(X, U, X1))])
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], other))


def test_what_overflows_or_is_no_rotation_is_nan_in_its_column_alone():
    model = coulomb.load(FREE)
    steps = Steps(model, 3, inputs="tau")
    Q, V, _ = states_of(model, 3)
    U = np.zeros((model.nv, 3))
    good = np.array(steps(steps.columns(Q, V), U))
    V[1] = 1e200
    Q[2, 3:7] = 0
    X = steps.columns(Q, V)
    bad = np.array(steps(X, U))
    assert (
        np.array_equal(bad[:, 0], good[:, 0])
        and np.isnan(bad[:, 1:]).all()
        and list(steps.converged) == [True, False, False]
    )
    U[0, 0] = np.nan
    assert np.isnan(np.array(steps(X, U))).all()
    U[0, 0] = 0
    by_x = np.array(steps.jacobian()(X, U, bad)[0])
    assert np.isfinite(by_x[:33, :33]).all() and np.isnan(by_x[33:66, 33:66]).all()


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda model: Steps("cartpole.xml", 3), "model: expected a Model, got str"),
        (lambda model: Steps(model, 0), "knots: got 0, expected at least 1"),
        (lambda model: Steps(model, 2.0), "knots: expected a whole number"),
        (lambda model: Steps(model, 3, substeps=0), "substeps: got 0"),
        (lambda model: Steps(model, 3, inputs="x"), "inputs: got 'x'"),
        (lambda model: Steps(model, 3, stepper="bdf2"), "stepper: 'bdf2'"),
        (lambda model: Steps(coulomb.load(FREE), 3), "model: it has no actuators"),
        (lambda model: Steps(model, 3, timestep=-1.0), "timestep"),
        (lambda model: Steps(model, 3, gradiant="exact"), "gradiant"),
    ],
)
def test_what_is_wrong_is_named(wrong, message):
    with pytest.raises((ValueError, TypeError), match=message):
        wrong(coulomb.load(CARTPOLE))
