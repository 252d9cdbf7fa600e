"""coulomb.control keeps its word: what is told is of one solve, interruptions, bounds, and what no cost counts."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from control_problems import CARTPOLE, MASSES, cartpole, masses, model_of, pushed, rolled

from coulomb.control import Gate, Solver


def interrupted_after(seconds, work):
    """KeyboardInterrupt while work() runs; how long it took to leave."""

    def stop(*_):
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            work()
        return time.monotonic() - begin - seconds
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def endless(solver, q, v, U):
    """A solve that an interruption meets, for it waits after its first iteration."""
    return lambda: solver.solve(q, v, U, iterations=1000, tolerance=0, progress=lambda *_: time.sleep(0.2))


def test_without_a_solve_there_is_no_result():
    script = """
from control_problems import masses
solver = masses(4)[0]
for ask in (lambda: solver.result, solver._core.first_control, solver._core.status):
    try:
        ask()
    except ValueError as error:
        print(error)
"""
    folder = Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["result: nothing has been solved yet; call solve"] * 3, done.stderr


def test_after_a_first_solve_that_was_interrupted_there_is_no_result():
    solver, q, v, U = pushed(40)
    interrupted_after(0.1, endless(solver, q, v, U))
    with pytest.raises(ValueError, match="nothing has been solved yet"):
        _ = solver.result


def test_an_interruption_leaves_the_last_result_whole():
    solver, q, v, U = pushed(40)
    solver.add_control_rate(1e-3)
    old = solver.solve(q, v, U, iterations=2)
    interrupted_after(0.1, endless(solver, q, v, 0.5 * U))
    kept = solver.result
    assert (kept.status, kept.iterations, kept.cost) == (old.status, old.iterations, old.cost)
    for name in ("Q", "V", "U", "K", "costs", "gaps", "steps"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(old, name))
    np.testing.assert_allclose(solver.cost(kept.Q, kept.V, kept.U)[0], kept.cost, rtol=1e-12)
    with pytest.raises(ValueError, match="no earlier solve"):
        solver.solve(q, v, from_last=True)

    # Nor do others notice.
    cost, dU = solver.gradient(q, v, 0.5 * U)
    fresh, _, _, _ = pushed(40)
    fresh.add_control_rate(1e-3)
    expected, dU_expected = fresh.gradient(q, v, 0.5 * U)
    assert cost == expected
    np.testing.assert_array_equal(dU, dU_expected)


def test_a_gradient_is_left_when_it_is_interrupted_and_lets_others_run():
    solver, q, v, U = pushed(1500, substeps=4)
    begin = time.monotonic()
    cost, dU = solver.gradient(q, v, U)
    whole = time.monotonic() - begin
    assert interrupted_after(0.2 * whole, lambda: solver.gradient(q, v, U)) < 0.5 * whole
    np.testing.assert_array_equal(solver.gradient(q, v, U)[1], dU)

    # Beside it the interpreter goes on.
    thread = threading.Thread(target=solver.gradient, args=(q, v, U))
    thread.start()
    longest, last = 0, time.monotonic()
    while thread.is_alive():
        time.sleep(0.001)
        now = time.monotonic()
        longest, last = max(longest, now - last), now
    assert longest < 0.5 * whole


def test_a_solve_depends_on_its_arguments_alone():
    def told(result):
        return [result.U, result.K, result.Q, result.costs]

    solver, q, v = cartpole(30)
    first = told(solver.solve(q, v, iterations=4))
    solver.gradient(q, v, np.full((30, 1), 7.0))
    for a, b in zip(told(solver.solve(q, v, iterations=4)), first, strict=True):
        np.testing.assert_array_equal(a, b)

    nothing = solver.solve(q, v, iterations=0)
    assert not nothing.U.any() and not nothing.K.any()


def test_a_gradient_leaves_the_plan_and_takes_controls_as_they_are():
    solver, q, v = masses(8)
    solver.limits = -0.1, 0.1
    other, _, _ = masses(8, limits=(-0.1, 0.1))
    for s in (solver, other):
        s.solve(q, v, iterations=1)
    U = np.random.default_rng(3).normal(size=(8, 2))
    cost, dU = solver.gradient(q, v, U)
    assert cost == pytest.approx(solver.cost(*rolled(solver, q, v, U), U)[0], rel=1e-12)
    direction = np.random.default_rng(4).normal(size=U.shape)
    slope = (solver.gradient(q, v, U + 1e-6 * direction)[0] - solver.gradient(q, v, U - 1e-6 * direction)[0]) / 2e-6
    np.testing.assert_allclose((dU * direction).sum(), slope, rtol=1e-7)

    a, b = (s.solve(q, v, from_last=True, shift=True, iterations=2) for s in (solver, other))
    np.testing.assert_array_equal(a.U, b.U)
    np.testing.assert_array_equal(a.K, b.K)


@pytest.mark.parametrize("iterations", [0, 1, 3])
def test_the_cost_is_that_of_the_trajectory_that_is_told(iterations):
    solver, q, v = masses(10)
    solver.add_control_rate(1.0)
    solver.solve(q, v)
    guess = {"Q": np.ones((11, 2)), "V": np.ones((11, 2)), "u_before": [1.0, 2.0]}
    for start in (guess, {}, {"from_last": True}, {"from_last": True, "shift": True, "roll": False}):
        before = solver.result.U[0] if "shift" in start else start.get("u_before", [0, 0])
        result = solver.solve(9 * q, v, iterations=iterations, **start)
        if "from_last" in start and "shift" not in start:
            before = [0, 0]  # as in the solve before
        expected = solver.cost(result.Q, result.V, result.U, before)[0]
        np.testing.assert_allclose(result.cost, expected, rtol=1e-12)
        np.testing.assert_allclose(result.costs[-1], expected, rtol=1e-12)
        assert len(result.costs) == len(result.gaps) == result.iterations + 1
        assert len(result.steps) == result.iterations
    assert solver.solve(q, v, iterations=0, **guess).gaps[0] > 1


def test_steps_that_cannot_be_solved_are_told_of_the_trajectory_that_is_there():
    equalities = "".join(f'<joint joint1="a" polycoef="{place} 0 0 0 0"/>' for place in (0.1, -0.1))
    solver = Solver(model_of(MASSES.replace("<actuator>", f"<equality>{equalities}</equality><actuator>")), 5)
    solver.add_control(1.0)
    guess = solver.solve(np.zeros(2), np.zeros(2), Q=np.zeros((6, 2)), V=np.zeros((6, 2)), iterations=0)
    assert guess.unconverged == 5


def test_a_best_cost_of_zero_is_reached():
    solver = Solver(model_of(MASSES), 20)
    solver.add_state(1.0)
    solver.add_control(1.0)
    for U in (None, np.ones((20, 2))):
        result = solver.solve([0, 0], [0, 0], U)
        assert result.converged, (result, result.reason)

    solver = Solver(model_of(MASSES), 20)
    solver.add_state(0, terminal=1.0)
    result = solver.solve([0.7, -0.4], [0.2, 1.0])
    assert result.converged and result.cost < 1e-15 * result.costs[0], (result, result.reason)
    assert len(result.costs) < 20


def stalling():
    """A kink of the dynamics at the optimum: the actuator saturates by its force, which limits of controls know nothing of."""
    text = CARTPOLE.replace('ctrllimited="true" ctrlrange="-8 8"', 'forcelimited="true" forcerange="-8 8"')
    solver = Solver(model_of(text), 20, limits=(-100.0, 100.0))
    solver.add_state([0.1, 0.1, 0.01, 0.01], ([0, np.pi], [0, 0]), terminal=[200, 500, 20, 20])
    solver.add_control(0.01)
    return solver


@pytest.mark.parametrize(("most", "reason"), [(10.0, "has to be short"), (1e100, "gain no more than rounding")])
def test_regularisation_stays_below_its_bound_and_a_stall_is_told(most, reason):
    solver = stalling()
    result = solver.solve(np.zeros(2), np.zeros(2), iterations=1000, max_regularization=most)
    assert result.status == "no descent" and reason in result.reason, (result, result.reason)
    assert result.regularization <= most and result.iterations < 1000
    assert len(result.costs) == len(result.gaps) == result.iterations + 1 == len(result.steps) + 1

    # The next one begins where models are trusted.
    solver.solve(np.zeros(2), np.array([0.2, 0.5]), iterations=0, from_last=True)
    assert solver.result.regularization <= 1e-3


def test_limits_are_within_what_actuators_answer_to():
    solver, q, v = cartpole(20, limits=(-100.0, 5.0))
    assert solver.limits[0] == -8 and solver.limits[1] == 5
    wide, _, _ = cartpole(20, limits=(-100.0, 100.0))
    usual, _, _ = cartpole(20)
    np.testing.assert_array_equal(wide.solve(q, v).U, usual.solve(q, v).U)
    with pytest.raises(
        ValueError, match=r"limits: \[0\] is 9 .. 10, expected some of the control range -8 .. 8 of actu"
    ):
        solver.limits = 9, 10
    assert solver.limits[1] == 5


def test_what_has_no_weight_may_overflow():
    solver, _, _ = masses(3)
    far = np.finfo(float).max
    state, control = solver.terms
    state.weight = [1.0, 1.0, 0.0, 2.0]
    state.reference = [0, 0], [-far, 0]
    control.weight = [0.0, 1.0]
    control.reference = [-far, 0]
    Q, V, U = np.zeros((4, 2)), np.tile([far, 0], (4, 1)), np.tile([far, 0], (3, 1))
    assert solver.cost(Q, V, U)[0] == 0
    guess = solver.solve(Q[0], V[0], U, Q=Q, V=V, iterations=0)
    assert guess.costs[0] == 0

    # A gate that is closed is no weight either.
    gate = Gate("joint_position/a", threshold=-1000.0)
    solver.add_outputs("joint_velocity/a", 1.0, [-far], gate=gate)
    assert solver.cost(Q, V, U)[0] == 0
    assert solver.solve(Q[0], V[0], U, Q=Q, V=V, iterations=0).costs[0] == 0


def test_what_is_read_of_a_term_cannot_be_written_to():
    solver, _, _ = masses(3)
    for array in (solver.terms[0].weight, solver.terms[0].reference, *solver.limits):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 7


def test_rows_of_controls_may_leave_out_the_last():
    solver, q, v = masses(4)
    control = solver.terms[1]
    rows = np.arange(8.0).reshape(4, 2)
    control.weight = rows
    control.reference = rows
    np.testing.assert_array_equal(control.weight[:4], rows)
    np.testing.assert_array_equal(control.reference[:4], rows)
