"""The benchmarks of coulomb.control run in their quick mode, and what they compare with is right: iLQR in NumPy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def ilqr(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "applications"))
    import mpc_go1
    import python_ilqr

    return mpc_go1, python_ilqr


@pytest.mark.parametrize("name, rows", [("control", 8), ("pushes", 4)])
def test_quick_mode(name, rows, tmp_path):
    program = ROOT / "benchmarks" / f"{name}.py"
    command = [sys.executable, program, "--quick", "--output", tmp_path]
    outcome = subprocess.run(command, env={**os.environ}, capture_output=True, text=True, timeout=300)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    results = json.loads((tmp_path / f"{name}.json").read_text())["results"]
    assert len(results) == rows
    assert (tmp_path / f"{name}.md").read_text().count("\n|") >= rows + 2


def test_models_in_numpy_give_the_gradient_of_the_solver(ilqr):
    """A, B and the costs' gradients of knots, swept backward: dcost/dU as Solver.gradient has it, of Go1 with feet on the ground."""
    mpc_go1, python_ilqr = ilqr
    model = mpc_go1.go1()
    solver, _ = mpc_go1.planner(model, 0.005, knots=6)
    costs = python_ilqr.Costs(solver)
    mpc_go1.add_costs(costs, model)
    dynamics = python_ilqr.CoulombDynamics(model, 0.005, 2, patches=False)
    random = np.random.default_rng(0)
    q, v = mpc_go1.standing(model)
    q[2] -= 0.007
    q = model.integrate(q, np.r_[np.zeros(3), 0.1, -0.2, 0.3, np.zeros(12)])
    U = mpc_go1.STANDING + random.uniform(-0.2, 0.2, (6, model.nu))

    # The rollout, its models and costs.
    dynamics.begin(q, v)
    Q, V = (np.array(rows) for rows in zip((q, v), *(dynamics.knot(u) for u in U)))
    dynamics.begin(q, v)
    AB = [dynamics.knot_derivatives(u) for u in U]
    quadratics = [costs.quadratic(*knot) for knot in zip(Q, V, [*U, None])]

    # Backward.
    adjoint, dU = quadratics[-1][1], []
    for (A, B), (_, lx, _, lu, _) in zip(AB[::-1], quadratics[-2::-1]):
        dU.insert(0, lu + B.T @ adjoint)
        adjoint = lx + A.T @ adjoint
    cost, expected = solver.gradient(q, v, U)
    assert np.isclose(sum(terms[0] for terms in quadratics), cost, rtol=1e-10)
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(dU, expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())


def test_boxed_newton_finds_the_minimum_on_the_box(ilqr):
    _, python_ilqr = ilqr
    random = np.random.default_rng(1)
    held = 0
    for _ in range(50):
        root = random.normal(size=(6, 6))
        H, g = root @ root.T + 0.1 * np.eye(6), 3 * random.normal(size=6)
        x, free = python_ilqr.boxed_newton(H, g, -np.ones(6), np.ones(6))

        # Stationary where free, pushed against the limit elsewhere: of a convex function, the minimum.
        slope = H @ x + g
        assert np.abs(x).max() <= 1
        np.testing.assert_allclose(slope[free], 0, atol=1e-8)
        assert (slope[~free] * x[~free] < 0).all() and (np.abs(x[~free]) == 1).all()
        held += (~free).sum()
    assert held > 50
