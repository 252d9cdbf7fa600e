"""coulomb.glue.aligator. What it is made of is tested everywhere, against Pinocchio's Lie groups, which are Aligator's; the rest where Aligator's
Python package is installed (conda)."""

import numpy as np
import pytest
from glue_scenes import FREE, UP, cartpole, moved

import coulomb
from coulomb.glue._rotations import pinocchio_order, spaces


def test_the_spaces_are_those_of_pinocchio():
    """Points, differences and sums on the product of spaces are those of Model.integrate and difference."""
    groups = pytest.importorskip("pinocchio").liegroups
    model = coulomb.load(FREE)
    assert spaces(model) == [
        ("vector", 3), ("rotation", 3), ("rotation", 3), ("vector", 3), ("rotation", 3), ("vector", 15),
    ]  # fmt: skip
    product = None
    for kind, size in spaces(model):
        factor = groups.SO3() if kind == "rotation" else groups.Rn(size)
        product = factor if product is None else product * factor
    random = np.random.default_rng(0)
    order = pinocchio_order(model)
    (q0, v0), (q1, v1) = moved(model, random), moved(model, random)
    x0, x1 = np.r_[q0, v0][order], np.r_[q1, v1][order]
    dx = np.r_[model.difference(q0, q1), v1 - v0]
    assert (product.nq, product.nv) == (33, 30)
    np.testing.assert_allclose(product.difference(x0, x1), dx, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        product.integrate(x0, dx), np.r_[model.integrate(q0, dx[:15]), v1][order], rtol=0, atol=1e-12
    )


def installed():
    aligator = pytest.importorskip("aligator")
    if not hasattr(aligator, "dynamics"):
        pytest.skip("this is another package of that name")
    return aligator


def test_derivatives_are_those_of_differences():
    installed()
    from coulomb.glue.aligator import Dynamics

    model = coulomb.load(FREE)
    dynamics = Dynamics(model, 2, inputs="tau", tolerance=1e-14)
    random = np.random.default_rng(1)
    x, u = dynamics.point(*moved(model, random, 0.1)), 0.1 * random.normal(size=model.nv)
    data = dynamics.createData()

    def after(x, u):
        dynamics.forward(x, u, data)
        return data.xnext.copy()

    space, e = dynamics.space, 1e-6
    middle = after(x, u)
    dynamics.dForward(x, u, data)
    for J, shift in (
        (data.Jx.copy(), lambda d: after(space.integrate(x, d), u)),
        (data.Ju.copy(), lambda d: after(x, u + d)),
    ):
        columns = [space.difference(shift(-e * row), shift(e * row)) / (2 * e) for row in np.eye(J.shape[1])]
        np.testing.assert_allclose(J, np.array(columns).T, rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.concatenate(dynamics.split(middle)), np.concatenate(dynamics.split(after(x, u))))


def test_proxddp_swings_a_pole_up_as_the_control_solver_does():
    aligator = installed()
    from coulomb.glue.aligator import Dynamics

    horizon = 100
    model, solver = cartpole(horizon)
    expected = solver.solve(np.zeros(2), np.zeros(2), iterations=300)
    dynamics = Dynamics(model)
    space, goal = dynamics.space, dynamics.point(*UP)
    cost = aligator.CostStack(space, 1)
    cost.addCost(aligator.QuadraticStateCost(space, 1, goal, np.diag([0.1, 0.1, 0.01, 0.01])))
    cost.addCost(aligator.QuadraticControlCost(space, np.zeros(1), np.diag([0.01])))
    terminal = aligator.QuadraticStateCost(space, 1, goal, np.diag([200.0, 500, 20, 20]))
    problem = aligator.TrajOptProblem(dynamics.point(np.zeros(2), np.zeros(2)), 1, space, terminal)
    for _ in range(horizon):
        stage = aligator.StageModel(cost, dynamics)
        box = aligator.constraints.BoxConstraint(*dynamics.limits)
        stage.addConstraint(aligator.ControlErrorResidual(space.ndx, 1), box)
        problem.addStage(stage)
    found = aligator.SolverProxDDP(1e-6, 1e-4, max_iters=500)
    found.setup(problem)
    assert found.run(problem, [], [])
    assert found.results.traj_cost == pytest.approx(expected.cost, rel=1e-3)
