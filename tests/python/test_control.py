"""coulomb.control: trajectories that are best by a cost, against Riccati equations, quadratic programs, differences and each other."""

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from control_problems import CARTPOLE, MASSES, PUSHED, WEIGHTS, cartpole, masses, matrices, model_of, pushed, rolled

import coulomb
from coulomb.control import Gate, Mpc, Solver


def test_a_linear_problem_takes_one_iteration_and_has_the_gain_of_riccati():
    solver, q, v = masses(300)
    A, B = matrices(solver, q, v)
    R = np.diag([0.1, 0.2])
    P = scipy.linalg.solve_discrete_are(A, B, np.diag(WEIGHTS), R)
    gain = -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)

    result = solver.solve(q, v, iterations=1, regularization=0)
    np.testing.assert_allclose(result.K[0], gain, rtol=0, atol=1e-9)
    x = np.r_[q, v]
    np.testing.assert_allclose(result.cost, 0.5 * x @ P @ x, rtol=1e-9)
    for t in range(50):
        np.testing.assert_allclose(result.U[t], gain @ x, rtol=0, atol=1e-9)
        x = A @ x + B @ result.U[t]
    assert solver.solve(q, v).status == "converged"


def test_limits_are_those_of_a_bounded_least_squares_problem():
    solver, q, v = masses(30, limits=([-0.5, -0.3], [0.25, np.inf]))
    A, B = matrices(solver, q, v)
    columns = np.zeros((30, 2, 31, 4))
    free = [np.r_[q, v]]
    for t in range(30):
        free.append(A @ free[-1])
        columns[t, :, t + 1] = B.T
        for s in range(t + 1, 30):
            columns[t, :, s + 1] = columns[t, :, s] @ A.T
    states = (columns * np.sqrt(WEIGHTS)).reshape(60, -1).T
    J = np.vstack([states, np.diag(np.sqrt(np.tile([0.1, 0.2], 30)))])
    b = np.r_[-(np.array(free) * np.sqrt(WEIGHTS)).ravel(), np.zeros(60)]
    bounds = np.tile([-0.5, -0.3], 30), np.tile([0.25, np.inf], 30)
    expected = scipy.optimize.lsq_linear(J, b, bounds, method="bvls", tol=1e-14).x.reshape(30, 2)
    assert (expected == 0.25).any() and (expected == -0.3).any()

    result = solver.solve(q, v, tolerance=1e-13)
    assert result.converged, result
    np.testing.assert_allclose(result.U, expected, rtol=0, atol=1e-6)
    held = expected[0] <= [-0.5, -0.3]
    assert held.any() and not result.K[0][held].any()


def test_control_rates_are_counted_from_the_control_before():
    solver, q, v = masses(20)
    solver.add_control_rate([0.5, 0.0])
    result = solver.solve(q, v, u_before=[0.4, -0.1], tolerance=1e-13)
    assert result.converged

    def cost(U):
        Q, V = rolled(solver, q, v, U.reshape(20, 2))
        states = 0.5 * (np.hstack([Q, V]) ** 2 @ WEIGHTS).sum()
        rates = np.diff(np.vstack([[0.4, -0.1], U.reshape(20, 2)]), axis=0)
        return states + 0.5 * (U.reshape(20, 2) ** 2 @ [0.1, 0.2]).sum() + 0.25 * (rates[:, 0] ** 2).sum()

    np.testing.assert_allclose(cost(result.U.ravel()), result.cost, rtol=1e-12)
    best = scipy.optimize.minimize(cost, np.zeros(40), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(result.U.ravel(), best.x, rtol=0, atol=1e-5)


@pytest.mark.parametrize("substeps", [1, 3])
def test_the_gradient_by_controls_in_contact_is_that_of_differences(substeps):
    solver, q, v, U = pushed(12, substeps=substeps, patches=False)
    gate = Gate("position/box", row=0, threshold=0.01, width=0.01)  # which closes while the box goes by
    solver.add_outputs(["velocity/ball", "orientation/box"], 3.0, [1, 0, 0, 1, 0, 0, 0], gate=gate)
    solver.add_outputs("position/ball", [0, 2, 0], [0, 0.05, 0], shape="below")
    solver.add_control_rate(0.01)
    cost, dU = solver.gradient(q, v, U)

    def by_hand(U):
        Q, V = rolled(solver, q, v, U, patches=False)
        return solver.cost(Q, V, U)[0]

    assert cost == by_hand(U)
    random = np.random.default_rng(0)
    for _ in range(5):
        direction = random.normal(size=U.shape)
        slope = (by_hand(U + 1e-6 * direction) - by_hand(U - 1e-6 * direction)) / 2e-6
        np.testing.assert_allclose((dU * direction).sum(), slope, rtol=2e-5)


def test_costs_are_half_the_weighted_squares_of_what_is_read():
    solver, q, v, U = pushed(3)
    model = solver.model
    gate = Gate("position/box", row=2, threshold=0.12, width=0.01)
    solver.add_outputs("velocity/ball", [1, 2, 3], [0.1, 0, 0], gate=gate)
    solver.add_outputs("position/box", [0, 0, 7], [0, 0, 0.05], shape="above")
    solver.add_outputs("position/ball", [0, 0, 7], [0, 0, 0.05], shape="below")
    Q, V = rolled(solver, q, v, U)
    total, by_term = solver.cost(Q, V, U)
    above = 3.5 * sum((model.output("position/box", q)[2] - 0.05) ** 2 for q in Q)
    np.testing.assert_allclose(by_term["position/box"], [above], rtol=1e-12)
    assert by_term["position/ball"] == [0]
    expected = 0
    for t in range(4):
        r = model.output("velocity/ball", Q[t], V[t]) - [0.1, 0, 0]
        height = model.output("position/box", Q[t])[2]
        expected += 0.5 * ([1, 2, 3] * r**2).sum() / (1 + np.exp((height - 0.12) / 0.01))
    np.testing.assert_allclose(by_term["velocity/ball"], [expected], rtol=1e-12)
    np.testing.assert_allclose(total, sum(map(sum, by_term.values())), rtol=1e-12)


def test_a_pole_is_swung_up_within_limits():
    solver, q, v = cartpole()
    result = solver.solve(q, v, iterations=200)
    assert result.converged, (result, result.reason)
    np.testing.assert_allclose(result.Q[-1], [0, np.pi], atol=0.05)
    np.testing.assert_allclose(result.V[-1], 0, atol=0.1)
    assert np.abs(result.U).max() == 8
    Q, V = rolled(solver, q, v, result.U)
    np.testing.assert_array_equal(result.Q, Q)
    np.testing.assert_array_equal(result.V, V)
    assert (np.diff(result.costs) <= 0).all()


def test_gaps_of_a_guess_close():
    solver, q, v = cartpole()
    guess = np.linspace([0, 0], [0, np.pi], 101)
    result = solver.solve(q, v, Q=guess, V=np.zeros((101, 2)), iterations=200)
    assert result.gaps[0] > 1 and result.gaps[-1] < 1e-9 and result.converged, (result, result.gaps)
    np.testing.assert_allclose(result.Q, rolled(solver, q, v, result.U)[0], atol=1e-7)
    np.testing.assert_allclose(result.Q[-1], [0, np.pi], atol=0.05)


def test_a_linear_problem_with_gaps_takes_one_iteration_too():
    solver, q, v = masses(40)
    best = solver.solve(q, v)
    random = np.random.default_rng(2)
    guess = solver.solve(q, v, random.normal(size=(40, 2)), *random.normal(size=(2, 41, 2)), iterations=1)
    assert guess.gaps[0] > 10 and guess.gaps[1] == 0
    np.testing.assert_allclose(guess.U, best.U, rtol=0, atol=1e-8)


def test_gaps_of_rotations_close_in_contact():
    solver, q, v, U = pushed(10)
    random = np.random.default_rng(1)
    Q = np.array([solver.model.integrate(q, 0.02 * random.normal(size=12)) for _ in range(11)])
    result = solver.solve(q, v, U, Q=Q, V=np.tile(v, (11, 1)), iterations=30)
    assert result.gaps[0] > 1 and result.gaps[-1] < 1e-9, result.gaps
    np.testing.assert_allclose(result.Q, rolled(solver, q, v, result.U)[0], atol=1e-6)


LAWS = [{}, {"contact": "lcp"}, {"contact": "penalty"}, {"stepper": "bdf1"}, {"gradient": "smoothed_step"}]


@pytest.mark.parametrize("options", LAWS, ids=str)
def test_a_box_pushes_a_ball_by_every_law(options):
    solver, q, v, U = pushed(**options)
    result = solver.solve(q, v, U, iterations=15)
    assert result.cost < 2 / 3 * result.costs[0], result.costs
    assert result.unconverged == 0
    np.testing.assert_allclose(result.cost, solver.cost(result.Q, result.V, result.U)[0], rtol=1e-12)


def test_the_same_bits_for_any_number_of_threads_and_again():
    results = []
    for threads in (1, 2, 3, 1):
        solver, q, v, U = pushed(num_threads=threads)
        results.append(solver.solve(q, v, U, iterations=6))
        assert solver.solve(q, v, U, iterations=6).cost == results[-1].cost
    for other in results[1:]:
        for name in ("Q", "V", "U", "K", "costs", "gaps", "steps"):
            np.testing.assert_array_equal(getattr(results[0], name), getattr(other, name))


def test_iterations_may_be_taken_one_by_one():
    solver, q, v = cartpole(60)
    at_once = solver.solve(q, v, iterations=5)
    solver, q, v = cartpole(60)
    solver.solve(q, v, iterations=1)
    for _ in range(4):
        one_by_one = solver.solve(q, v, iterations=1, from_last=True, roll=False)
    np.testing.assert_allclose(one_by_one.U, at_once.U, rtol=0, atol=1e-9)


@pytest.mark.parametrize("roll", [True, False])
def test_a_receding_horizon_swings_up_a_pole_that_is_pushed(roll):
    solver, q, v = cartpole(50)
    solver.terms[0].set_weight([1, 5, 0.1, 0.1], terminal=[20, 500, 5, 20])
    mpc = Mpc(solver, iterations=2, roll=roll)
    plant = coulomb.Simulator(solver.model)
    for tick in range(400):
        u, K = mpc.step(q, v)
        assert np.isfinite(u).all() and K.shape == (1, 4)
        q, v = plant.step(q, v, u)
        if tick == 180:
            v = v + [0.3, 1.0]
    np.testing.assert_allclose(np.r_[q, v], [0, np.pi, 0, 0], atol=0.05)


@pytest.mark.parametrize("roll", [True, False])
def test_a_plan_moves_one_knot_on(roll):
    solver, q, v, U = pushed(12)
    old = solver.solve(q, v, U, iterations=2)
    new = solver.solve(old.Q[1], old.V[1], from_last=True, shift=True, roll=roll, iterations=0)
    np.testing.assert_array_equal(new.U, old.U[[*range(1, 12), 11]])
    np.testing.assert_array_equal(new.Q[:-1], old.Q[1:])
    np.testing.assert_array_equal(new.V[:-1], old.V[1:])
    again = solver.solve(new.Q[0], new.V[0], from_last=True, roll=False, iterations=1)
    assert again.gaps[0] == 0


def test_references_and_weights_change_between_solves():
    solver, q, v = masses(40)
    state, control = solver.terms
    state.reference = [0.5, 0.0], [0, 0]
    state.set_weight(1.0, terminal=100.0)
    control.weight = 1e-3
    assert state.reference.shape == (41, 4) and state.weight[-1, 0] == 100
    fresh = Solver(solver.model, 40)
    fresh.add_state(1.0, ([0.5, 0.0], [0, 0]), terminal=100.0)
    fresh.add_control(1e-3)
    np.testing.assert_array_equal(solver.solve(q, v).U, fresh.solve(q, v).U)


def test_numbers_that_overflow_are_a_status_and_not_nan():
    solver, q, v = masses(50)
    result = solver.solve(q, [1e200, 0])
    assert result.status == "not differentiable" and "overflow" in result.reason
    assert all(np.isfinite(x).all() for x in (result.Q, result.V, result.U, result.K))
    assert result.cost == np.inf


def test_steps_that_cannot_be_solved_are_told():
    equalities = "".join(f'<joint joint1="a" polycoef="{place} 0 0 0 0"/>' for place in (0.1, -0.1))
    solver = Solver(model_of(MASSES.replace("<actuator>", f"<equality>{equalities}</equality><actuator>")), 5)
    solver.add_control(1.0)
    result = solver.solve(np.zeros(2), np.zeros(2))
    assert result.status == "unsolved steps" and result.unconverged == 5 and not result.converged


def test_costs_without_controls_end_with_a_reason():
    solver = Solver(model_of(CARTPOLE), 5)
    result = solver.solve(np.zeros(2), np.zeros(2))
    assert result.converged and result.cost == 0


def test_progress_is_told_and_may_stop_it():
    solver, q, v = cartpole(30)
    seen = []
    solver.solve(q, v, iterations=4, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4)]

    solver.forget()

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solver.solve(q, v, iterations=4, progress=stop)
    with pytest.raises(ValueError, match="no earlier solve"):
        solver.solve(q, v, from_last=True)
    assert np.isfinite(solver.solve(q, v, iterations=2).cost)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.solve([np.nan, 0], [0, 0]), r"q0\[0\]"),
        (lambda s: s.solve([0, 0], [0, np.inf]), r"v0\[1\]"),
        (lambda s: s.solve([0], [0, 0]), "q0"),
        (lambda s: s.solve([0, 0], [0, 0], np.full((4, 2), np.nan)), r"U\[0, 0\] is nan"),
        (lambda s: s.solve([0, 0], [0, 0], np.zeros((3, 2))), "U"),
        (lambda s: s.solve([0, 0], [0, 0], Q=np.zeros((5, 2))), "Q, V"),
        (lambda s: s.solve([0, 0], [0, 0], iterations=-1), "iterations"),
        (lambda s: s.solve([0, 0], [0, 0], tolerance=np.nan), "tolerance"),
        (lambda s: s.solve([0, 0], [0, 0], from_last=True), "no earlier solve"),
        (lambda s: s.add_state(-1.0), r"weight\[0, 0\]: got -1"),
        (lambda s: s.add_state(np.ones(3)), r"weight: got shape \(3,\)"),
        (lambda s: s.add_state(np.ones((4, 4))), "terminal="),
        (lambda s: s.add_state(1.0, terminal=np.ones(3)), "terminal"),
        (lambda s: s.add_state(1.0, np.nan), r"reference\[0, 0\] is nan"),
        (lambda s: s.add_state(1.0, [[0, 0], [0, 0, 0]]), r"reference: expected numbers.*a tuple \(q, v\)"),
        (lambda s: s.add_state(1.0, [np.zeros(2), np.zeros(2)]), r"reference: got shape \(2, 2\).*a tuple \(q, v\)"),
        (lambda s: s.add_state(1.0, ("a", "b")), r"reference\[0\]: expected numbers, got 'a'"),
        (lambda s: s.add_state(1.0, np.zeros((4, 4))), "reference: got 4 rows, expected 5"),
        (lambda s: s.add_outputs("joint_position/a", 1.0, np.zeros((4, 1))), "reference: got 4 rows, expected 5"),
        (lambda s: setattr(s.terms[0], "reference", np.zeros((4, 4))), "reference: got 4 rows, expected 5"),
        (lambda s: s.add_state("x"), "weight: expected numbers, got 'x'"),
        (lambda s: s.terms[1].set_weight(1.0, terminal=2.0), "terminal: a cost of controls has none"),
        (lambda s: s.add_outputs("joint_position/a", 1.0, gate=Gate("")), "gate: got output ''"),
        (
            lambda s: s.add_outputs("joint_position/a", 1.0, gate=Gate("joint_position/a", width="w")),
            "gate_width: expec",
        ),
        (lambda s: s.solve([0, 0], [0, 0], shift=True), "shift: only applies with from_last=True"),
        (lambda s: s.solve([0, 0], [0, 0], roll=False), "roll: only applies with from_last=True"),
        (lambda s: s.solve([0, 0], [0, 0], max_regularization=1e-12), "regularization: got 1e-09, expected at most"),
        (lambda s: s.result, "result: nothing has been solved yet; call solve"),
        (lambda s: Mpc(s, iterations=-3), "iterations: got -3"),
        (lambda s: Mpc(s, start_iterations=-3), "start_iterations: got -3"),
        (lambda s: setattr(Mpc(s), "iterations", -3), "iterations: got -3"),
        (lambda s: Mpc(s, tolerance=np.nan), "tolerance: nan"),
        (lambda s: Mpc(s, clock="sun"), "clock: got 'sun'"),
        (lambda s: Mpc(s).reset(np.zeros((3, 3))), r"U: got shape \(3, 3\), expected \(4, 2\)"),
        (lambda s: Mpc(s).reset(np.full((4, 2), np.inf)), r"U\[0, 0\] is inf"),
        (lambda s: Mpc(s).reset(u_before=[1.0]), "u_before: got shape"),
        (lambda s: s.gradient([0, 0], [0, 0], np.full((4, 2), np.nan)), r"U\[0, 0\] is nan"),
        (lambda s: s.add_outputs("nothing/a", 1.0), "nothing"),
        (lambda s: s.add_outputs("actuator_force/actuator0", 1.0), "force of a step"),
        (lambda s: s.add_outputs([], 1.0), "outputs"),
        (lambda s: s.add_outputs("joint_position/a", 1.0, shape="round"), "shape: got 'round'"),
        (lambda s: s.add_outputs("joint_position/a", 1.0, gate=Gate("joint_position/a", row=1)), "gate_row: got 1"),
        (lambda s: s.add_outputs("joint_position/a", 1.0, gate=Gate("joint_position/a", width=0)), "gate_width"),
        (lambda s: setattr(s, "limits", (1.0, -1.0)), r"limits: \[0\] is 1 .. -1"),
        (lambda s: setattr(s, "limits", 3.0), "limits: expected"),
        (lambda s: Solver(s.model, 0), "horizon: got 0"),
        (lambda s: Solver(s.model, 5, 0), "substeps: got 0"),
        (lambda s: Solver(s.model, 5, inputs="w"), "inputs: got 'w'"),
        (lambda s: Solver(s.model, 5, stepper="bdf2"), "bdf2"),
        (lambda s: Solver(model_of(PUSHED), 5), "take 'tau'"),
        (lambda s: s.terms[1].set_weight(np.nan), r"weight\[0, 0\]"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    solver = masses(4)[0]
    with pytest.raises(ValueError, match=message):
        change(solver)
    assert len(solver.terms) == 2


def test_a_bad_measurement_leaves_the_plan_as_it_was():
    solver, q, v = masses(20)
    other, _, _ = masses(20)
    mpc, same = Mpc(solver), Mpc(other)
    for m in (mpc, same):
        m.step(q, v)
    with pytest.raises(ValueError, match=r"v0\[0\]"):
        mpc.step(q, [np.nan, 0])
    np.testing.assert_array_equal(mpc.step(q, v)[0], same.step(q, v)[0])


def test_a_plan_that_overflowed_is_no_control_and_is_made_anew():
    solver, q, v = masses(20)
    mpc = Mpc(solver)
    mpc.step(q, v)
    with pytest.raises(FloatingPointError, match="no control was found, the numbers of the first rollout overflowed"):
        mpc.step(q, [1e200, 0])
    assert mpc.result.status == "not differentiable"
    mpc.step(q, v)
    assert mpc.result.converged
    np.testing.assert_allclose(mpc.result.cost, masses(20)[0].solve(q, v).cost, rtol=1e-9)


def test_settings_of_a_horizon_are_refused_when_it_is_made():
    solver, _, _ = masses(4)
    with pytest.raises(TypeError, match="Mpc: unknown 'tolerence'; did you mean 'tolerance'"):
        Mpc(solver, tolerence=3)
    with pytest.raises(TypeError, match="u_before applies to the first tick only"):
        Mpc(solver, u_before=[0, 0])


def test_control_rates_of_ticks_begin_at_the_control_before():
    def made():
        solver, q, v = masses(10)
        solver.add_control_rate([5.0, 5.0])
        return solver, q, v

    solver, q, v = made()
    mpc = Mpc(solver, iterations=20)
    mpc.reset(u_before=[0.4, -0.1])
    before = np.array([0.4, -0.1])
    for _ in range(3):
        u, _ = mpc.step(q, v)
        np.testing.assert_allclose(u, made()[0].solve(q, v, u_before=before).U[0], rtol=0, atol=1e-7)
        before = u

    # Also where a plan is lost.
    with pytest.raises(FloatingPointError):
        mpc.step(q, [1e200, 0])
    u, _ = mpc.step(q, v)
    np.testing.assert_allclose(u, made()[0].solve(q, v, u_before=before).U[0], rtol=0, atol=1e-7)
