"""coulomb.glue.crocoddyl: state, actions and residuals against Crocoddyl's differences; its solvers against coulomb.control."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
from glue_scenes import CARTPOLE, FREE, UP, cartpole, moved, push

import coulomb
from coulomb.control import Solver

crocoddyl = pytest.importorskip("crocoddyl")

from coulomb.glue.crocoddyl import ActionModel, ResidualModelOutputs, ResidualModelState, State  # noqa: E402

FIRST, SECOND, BOTH = crocoddyl.Jcomponent.first, crocoddyl.Jcomponent.second, crocoddyl.Jcomponent.both


def cost_of(residual, weights):
    return crocoddyl.CostModelResidual(
        residual.state, crocoddyl.ActivationModelWeightedQuad(np.array(weights, dtype=float)), residual
    )


def sum_of(state, nu, weights=None, reference=None, control=0.0):
    """A CostModelSum of the state and the control."""
    costs = crocoddyl.CostModelSum(state, nu)
    if weights is not None:
        costs.addCost("state", cost_of(ResidualModelState(state, reference, nu), weights), 1.0)
    if control:
        residual = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, nu))
        costs.addCost("control", residual, control)
    return costs


def differences(function, at, plus, minus, size, step=1e-6):
    """Central differences (rows, size) of function(plus(at, dx)), whose values are subtracted by minus(a, b) = b - a."""
    columns = []
    for i in range(size):
        dx = np.zeros(size)
        dx[i] = step
        columns.append(minus(function(plus(at, -dx)), function(plus(at, dx))) / (2 * step))
    return np.array(columns).T


def plain_plus(a, b):
    return a + b


def plain_minus(a, b):
    return b - a


def test_the_state_is_a_manifold():
    """Identities that Crocoddyl relies on, and every Jacobian against differences; with free and ball joints."""
    state = State(coulomb.load(FREE))
    assert (state.nx, state.ndx, state.nq, state.nv) == (7 + 4 + 7 + 15, 30, 18, 15)
    x0, x1 = state.rand(), state.rand()
    dx = state.diff(x0, x1)
    assert np.abs(dx[3:6]).max() > 0.2 and np.abs(dx[6:9]).max() > 0.2, "rotations that can be told from small ones"
    np.testing.assert_allclose(state.integrate(x0, dx), x1, rtol=0, atol=1e-12)

    by_first, by_second = state.Jdiff(x0, x1, BOTH)
    by = differences(lambda x: state.diff(x, x1), x0, state.integrate, plain_minus, state.ndx)
    np.testing.assert_allclose(by_first, by, rtol=0, atol=1e-8)
    by = differences(lambda x: state.diff(x0, x), x1, state.integrate, plain_minus, state.ndx)
    np.testing.assert_allclose(by_second, by, rtol=0, atol=1e-8)

    by_x, by_dx = state.Jintegrate(x0, dx, BOTH)
    by = differences(lambda x: state.integrate(x, dx), x0, state.integrate, state.diff, state.ndx)
    np.testing.assert_allclose(by_x, by, rtol=0, atol=1e-8)
    by = differences(lambda d: state.integrate(x0, d), dx, plain_plus, state.diff, state.ndx)
    np.testing.assert_allclose(by_dx, by, rtol=0, atol=1e-8)

    for side, J in ((FIRST, by_x), (SECOND, by_dx)):
        moved = np.ones((state.ndx, 2))
        state.JintegrateTransport(x0, dx, moved, side)
        np.testing.assert_allclose(moved, J @ np.ones((state.ndx, 2)), rtol=1e-12)


@pytest.mark.parametrize("substeps", [1, 3])
def test_an_action_in_contact_is_that_of_differences(substeps):
    """Next state, cost and their derivatives at states in which the box slides and the ball rolls."""
    model = coulomb.load(FREE)
    state = State(model)
    nu = model.nv
    q, v = model.neutral()
    random = np.random.default_rng(3)
    x = state.point(model.integrate(q, np.r_[np.zeros(5), 0.3, 0.2, 0.4, -0.1, np.zeros(6)]), v)
    x[model.nq :] = np.r_[0.5, 0.2, 0, 0, 0, 0.3, random.normal(size=3), 0.3, 0, 0, 0, 3.0, 1.0]
    u = 0.2 * random.normal(size=nu)
    weights = random.uniform(0.5, 2, 2 * nu)
    costs = sum_of(state, nu, weights, state.rand(), control=0.3)
    outputs = ["position/ball", "orientation/box", "velocity/box"]
    reference = np.r_[0.1, 0.2, 0.3, np.array([0.8, 0.6, 0, 0]), 0, 0, 0]
    costs.addCost(
        "outputs", cost_of(ResidualModelOutputs(state, outputs, reference, nu), random.uniform(0.5, 2, 9)), 0.7
    )
    action = ActionModel(state, costs, substeps, inputs="tau", tolerance=1e-14)
    data = action.createData()
    action.calc(data, x, u)
    action.calcDiff(data, x, u)
    assert data.converged

    simulator = coulomb.Simulator(model, tolerance=1e-14)
    a, b = state.split(x)
    for _ in range(substeps):
        a, b = simulator.step(a, b, tau=u)
    assert np.array_equal(data.xnext, np.r_[a, b]) and len(simulator.contacts) >= 4

    def after(x, u):
        other = action.createData()
        action.calc(other, x, u)
        return other.xnext.copy(), other.cost

    Fx = differences(lambda y: after(y, u)[0], x, state.integrate, state.diff, state.ndx)
    Fu = differences(lambda w: after(x, w)[0], u, plain_plus, state.diff, nu)
    Lx = differences(lambda y: np.array([after(y, u)[1]]), x, state.integrate, plain_minus, state.ndx)[0]
    Lu = differences(lambda w: np.array([after(x, w)[1]]), u, plain_plus, plain_minus, nu)[0]
    np.testing.assert_allclose(data.Fx, Fx, rtol=0, atol=1e-5 * np.abs(Fx).max())
    np.testing.assert_allclose(data.Fu, Fu, rtol=0, atol=1e-6)
    np.testing.assert_allclose(data.Lx, Lx, rtol=0, atol=1e-6 * np.abs(Lx).max())
    np.testing.assert_allclose(data.Lu, Lu, rtol=0, atol=1e-6)
    assert np.allclose(data.Lxx, data.Lxx.T) and np.linalg.eigvalsh(data.Lxx).min() > 0


def test_costs_are_those_of_the_control_solver():
    """The same weights give the same number, orientations and all."""
    model = coulomb.load(FREE)
    state = State(model)
    random = np.random.default_rng(5)
    (q0, v0), (q1, v1) = moved(model, random), moved(model, random)
    weights, of_turn = random.uniform(0.5, 2, 2 * model.nv), random.uniform(0.5, 2, 3)
    turn = np.array([0.6, 0, 0.8, 0])
    solver = Solver(model, 1, inputs="tau")
    solver.add_state(weights, (q1, v1), terminal=0)
    solver.add_outputs("orientation/arm", of_turn, turn, terminal=0)
    expected = solver.cost(np.tile(q0, (2, 1)), np.tile(v0, (2, 1)), np.zeros((1, model.nv)))[0]

    costs = sum_of(state, model.nv, weights, state.point(q1, v1))
    costs.addCost("turn", cost_of(ResidualModelOutputs(state, "orientation/arm", turn, model.nv), of_turn), 1.0)
    action = ActionModel(state, costs, inputs="tau")
    data = action.createData()
    action.calc(data, state.point(q0, v0))
    assert data.cost == pytest.approx(expected, rel=1e-12) and expected > 1


def test_what_is_refused_of_crocoddyl_is_wrong():
    """Its residual of states takes the Jacobian of the difference for the identity; ours does not."""
    state = State(coulomb.load(FREE))
    x, reference = state.rand(), state.rand()
    weights = np.arange(1.0, 1 + state.ndx)
    slope = differences(lambda y: weights * state.diff(reference, y) ** 2 / 2, x, state.integrate, plain_minus, 30).sum(
        axis=0
    )
    found = []
    for residual in (ResidualModelState(state, reference, 1), crocoddyl.ResidualModelState(state, reference, 1)):
        cost = cost_of(residual, weights)
        data = cost.createData(crocoddyl.DataCollectorAbstract())
        cost.calc(data, x)
        cost.calcDiff(data, x)
        found.append(np.abs(data.Lx - slope).max())
    assert found[0] < 1e-7 and found[1] > 0.1


def solved(kind, actions, terminal, x0, xs, us, iterations):
    problem = crocoddyl.ShootingProblem(x0, actions, terminal)
    solver = kind(problem)
    solver.th_stop = 1e-9
    done = solver.solve(xs, us, iterations)
    return done, solver


def test_box_fddp_swings_a_pole_up_as_the_control_solver_does():
    horizon = 50
    model, solver = cartpole(horizon)
    expected = solver.solve(np.zeros(2), np.zeros(2), iterations=300, tolerance=1e-12)
    state = State(model)
    goal = state.point(*UP)
    running = ActionModel(state, sum_of(state, 1, [0.1, 0.1, 0.01, 0.01], goal, control=0.01))
    terminal = ActionModel(state, sum_of(state, 1, [200, 500, 20, 20], goal))
    assert running.u_lb == -8 and running.u_ub == 8 and running.timestep == pytest.approx(0.02)
    done, found = solved(crocoddyl.SolverBoxFDDP, [running] * horizon, terminal, state.zero(), [], [], 300)
    assert expected.converged and done
    assert found.cost == pytest.approx(expected.cost, rel=1e-6)
    np.testing.assert_allclose(np.array(found.us), expected.U, rtol=0, atol=0.02)
    rolled = coulomb.Simulator(model).rollout(np.zeros(2), np.zeros(2), np.array(found.us))
    np.testing.assert_allclose(np.hstack([rolled.q, rolled.v]), np.array(found.xs), rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind, place", [("SolverFDDP", 0.25), ("SolverBoxFDDP", 0.5)])
def test_a_box_is_pushed_to_a_place_as_the_control_solver_does(kind, place):
    """A finger hits a box, which slides until friction stops it; with and without controls at their limits."""
    horizon, substeps = 40, 5
    model, guess, rollout = push(horizon, substeps)
    state = State(model)
    goal, weights = (np.array([0, place, 0]), np.zeros(3)), [100, 1000, 0, 10, 10, 0]
    solver = Solver(model, horizon, substeps)
    solver.add_state(0, goal, terminal=weights)
    solver.add_control(0.01)
    expected = solver.solve(np.zeros(3), np.zeros(3), guess, iterations=100)

    running = ActionModel(state, sum_of(state, 1, control=0.01), substeps)
    terminal = ActionModel(state, sum_of(state, 1, weights, state.point(*goal)), substeps)
    xs = [state.point(q, v) for q, v in zip(rollout.q, rollout.v)]
    done, found = solved(getattr(crocoddyl, kind), [running] * horizon, terminal, xs[0], xs, list(guess), 100)
    assert expected.converged and done and found.cost == pytest.approx(expected.cost, rel=1e-7)
    assert (np.abs(expected.U).max() == 15) == (kind == "SolverBoxFDDP")
    assert found.xs[-1][1] == pytest.approx(expected.Q[-1, 1], abs=1e-5) and abs(found.xs[-1][1] - place) < 0.03


def test_a_step_is_taken_once_and_again_only_for_another_point():
    model, _ = cartpole(1)
    state = State(model)
    action = ActionModel(state, sum_of(state, 1, [1, 1, 1, 1]))
    data, other = action.createData(), action.createData()
    x, u = state.zero(), np.array([1.0])
    action.calc(data, x, u)
    record = data.record
    action.calc(other, x + 1, u)  # another knot of the same action
    action.calcDiff(data, x, u)
    assert data.record is record
    Fx = data.Fx.copy()
    action.calcDiff(data, x + 0.5, u)
    assert data.record is not record and not np.array_equal(data.Fx, Fx)
    action.calcDiff(data, x, u)
    assert np.array_equal(data.Fx, Fx)


def test_a_step_that_overflows_costs_nan_and_leaves_the_others_alone():
    model, _ = cartpole(1)
    state = State(model)
    action = ActionModel(state, sum_of(state, 1, [1, 1, 1, 1]))
    data = action.createData()
    for bad in (np.full(4, 1e200), np.full(4, np.nan)):
        action.calc(data, bad, np.zeros(1))
        assert np.isnan(data.cost) and np.isnan(data.xnext).all() and not data.converged
        action.calcDiff(data, bad, np.zeros(1))
    action.calc(data, state.zero(), np.ones(1))
    action.calcDiff(data, state.zero(), np.ones(1))
    assert np.isfinite(data.cost) and data.converged and np.isfinite(data.Lx).all() and data.error is None


def solve_from_a_bad_guess():
    """One with a quaternion that is not of unit length."""
    state = State(coulomb.load(FREE))
    action = ActionModel(state, sum_of(state, 15, np.ones(30)), inputs="tau")
    problem = crocoddyl.ShootingProblem(state.zero(), [action] * 3, ActionModel(state, sum_of(state, 15), inputs="tau"))
    bad = state.zero()
    bad[3:7] *= 2
    guess = [state.zero(), bad, state.zero(), state.zero()], [np.zeros(15)] * 3
    assert not crocoddyl.SolverFDDP(problem).solve(*guess, 2)
    problem.calc(*guess)
    good, wrong, _ = problem.runningDatas
    assert good.error is None and np.isfinite(good.cost) and np.isnan(wrong.cost)
    print(wrong.error)


def test_an_error_is_kept_and_ends_no_process():
    """A solver calls from OpenMP, where raising is the end."""
    run = [sys.executable, "-c", "import test_glue_crocoddyl as t; t.solve_from_a_bad_guess()"]
    done = subprocess.run(run, cwd=pathlib.Path(__file__).parent, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "quaternion" in done.stdout, (done.returncode, done.stdout, done.stderr)


def test_coulomb_brings_no_pinocchio():
    """So that it has no say in which version Crocoddyl links."""
    if not pathlib.Path("/proc/self/maps").exists():
        pytest.skip("asks Linux for the libraries of the process")
    code = (
        "import coulomb; print([x for x in open('/proc/self/maps') if 'pinocchio' in x or 'boost' in x or 'coal' in x])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def quaternion_cost():
    state = State(coulomb.load(FREE))
    costs = crocoddyl.CostModelSum(state, 15)
    costs.addCost("wrong", crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelState(state, 15)), 1.0)
    return ActionModel(state, costs, inputs="tau")


def of_cartpole(**change):
    state = State(coulomb.load(CARTPOLE))
    arguments = {"state": state, "costs": sum_of(state, 1, [1, 1, 1, 1])} | change
    return ActionModel(**arguments)


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: State("cartpole.xml"), "model: expected a Model"),
        (
            quaternion_cost,
            "costs: 'wrong' is a crocoddyl.ResidualModelState.*coulomb.glue.crocoddyl.ResidualModelState",
        ),
        (lambda: of_cartpole(state=crocoddyl.StateVector(4)), "state: expected a coulomb.glue.crocoddyl.State"),
        (lambda: of_cartpole(costs=3), "costs: expected a crocoddyl.CostModelSum, got int"),
        (lambda: of_cartpole(costs=crocoddyl.CostModelSum(crocoddyl.StateVector(5), 1)), "costs: their state has 5"),
        (
            lambda: of_cartpole(inputs="tau"),
            r"costs: they are of 1 controls, the model has 2: CostModelSum\(state, 2\)",
        ),
        (lambda: of_cartpole(inputs="torque"), "inputs: got 'torque'"),
        (lambda: of_cartpole(substeps=0), "substeps: got 0, expected at least 1"),
        (lambda: of_cartpole(substeps=1.5), "substeps: expected a whole number"),
        (lambda: of_cartpole(stepper="bdf2"), "stepper: 'bdf2' depends on two earlier states"),
        (lambda: of_cartpole(limits=(1, -1)), r"limits: \[0\] is 1.0 .. -1.0"),
        (lambda: of_cartpole(limits=3), "limits: expected"),
        (lambda: ActionModel(*[State(coulomb.load(FREE)), None]), "model: it has no actuators; inputs='tau'"),
        (
            lambda: State(coulomb.load(CARTPOLE)).point(np.zeros(3), np.zeros(2)),
            r"q: got shape \(3,\), expected \(2,\)",
        ),
        (lambda: ResidualModelState(State(coulomb.load(CARTPOLE)), np.zeros(3)), r"reference: got shape \(3,\)"),
        (lambda: ResidualModelState(State(coulomb.load(CARTPOLE)), [0, np.nan, 0, 0]), r"reference\[1\] is nan"),
        (lambda: ResidualModelOutputs(State(coulomb.load(CARTPOLE)), "joint_position/pol"), "pol"),
        (lambda: ResidualModelOutputs(State(coulomb.load(FREE)), "contact_force/box"), "contact_force/box"),
    ],
)
def test_what_is_wrong_is_named(wrong, message):
    with pytest.raises((ValueError, TypeError), match=message):
        wrong()
