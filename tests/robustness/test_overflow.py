"""Numbers near the end of double precision: results are finite, and a status (or a refusal that names it) says what happened."""

import numpy as np
import pytest

import coulomb


def box():
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.0999))
    return scene.build()


def step(model, **inputs):
    """One step; the state before, the state after, the simulator."""
    q, v = model.neutral()
    state = {"q": q, "v": v, **inputs}
    sim = coulomb.Simulator(model)
    q1, v1 = sim.step(**state)
    assert np.isfinite(q1).all() and np.isfinite(v1).all()
    assert np.isfinite(sim.status.residual) and np.isfinite(sim.status.relaxation)
    for contact in sim.contacts:
        assert np.isfinite(contact.impulse).all() and np.isfinite(contact.velocity).all()
    return state, (q1, v1), sim


def derivatives_finite_or_refused(sim):
    try:
        derivatives = sim.derivatives()
    except RuntimeError as error:
        assert "derivatives" in str(error)
        return
    assert np.isfinite(derivatives.A).all() and np.isfinite(derivatives.B_tau).all()


OVERFLOWING = {
    "v": lambda: {"v": np.r_[0, 0, 0, 1e160, 1e160, 0]},
    "tau": lambda: {"tau": np.full(6, 1e200)},
    "tau at the end": lambda: {"tau": np.full(6, 1e308)},
    "fext": lambda: {"fext": np.full((2, 6), 1e308)},
}


@pytest.mark.parametrize("name", OVERFLOWING)
def test_overflow_leaves_the_state_and_says_so(name):
    inputs, (q1, v1), sim = step(box(), **OVERFLOWING[name]())
    assert not sim.status.converged
    assert "overflow" in sim.status.reason
    assert np.array_equal(q1, inputs["q"]) and np.array_equal(v1, inputs["v"])
    assert sim.contacts == []
    with pytest.raises(RuntimeError, match="overflow"):
        sim.derivatives()
    with pytest.raises(RuntimeError, match="overflow"):
        sim.vjp(np.zeros(6), np.zeros(6))
    with pytest.raises(RuntimeError, match="overflow"):
        sim.jvp(dv=np.zeros(6))


@pytest.mark.parametrize("exponent", [0, 20, 60, 100, 140, 149, 151, 154, 155, 200, 250, 300, 307, 308])
@pytest.mark.parametrize("direction", [(1, 0, 0, 0, 0, 0), (0, 0, 0, 1, 0.5, 0.2), (0, 0, -1, 0, 1, 0)])
@pytest.mark.parametrize("what", ["q", "v", "tau", "fext"])
def test_every_magnitude(what, direction, exponent):
    model = box()
    large = np.array(direction) * 10.0**exponent
    inputs = {what: np.array([0 * large, large]) if what == "fext" else large}
    if what == "q":
        inputs["q"] = np.r_[large[:3], model.neutral()[0][3:]]
    _, _, sim = step(model, **inputs)
    derivatives_finite_or_refused(sim)


def test_the_simulator_recovers():
    model = box()
    q, v = model.neutral()
    fresh, sim = coulomb.Simulator(model), coulomb.Simulator(model)
    for _ in range(3):
        sim.step(q, v)
    sim.step(q, v, tau=np.full(6, 1e308))  # what was remembered is gone: the next step starts cold
    one, other = fresh.step(q, v), sim.step(q, v)
    assert np.array_equal(one[0], other[0]) and np.array_equal(one[1], other[1])
    assert sim.status.converged
    assert np.array_equal(fresh.derivatives().A, sim.derivatives().A)


def test_a_lever_of_a_million_kilometres():
    """A mass matrix beyond the precision of doubles: it may be refused, solved or fail, but never give NaN."""
    pytest.importorskip("mujoco")
    model = coulomb.load(
        "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 1'><freejoint/><geom size='.1'/>"
        "<body pos='0 0 -.4'><joint axis='0 -1 0' pos='0 0 1e9' range='-160 -2' limited='true' stiffness='1' damping='1'/>"
        "<geom type='capsule' fromto='0 0 0 0 0 -.3' size='.05'/></body></body></worldbody></mujoco>"
    )
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    for _ in range(20):
        q, v = sim.step(q, v)
        assert np.isfinite(q).all() and np.isfinite(v).all() and np.isfinite(sim.status.residual)
        derivatives_finite_or_refused(sim)


def check_solution(problem, G, g):
    s = problem.solve()
    assert np.isfinite(s.impulse).all() and np.isfinite(s.velocity).all() and np.isfinite(s.margin).all()
    assert np.isfinite(s.residual) and np.isfinite(s.relaxation)
    speed, size = np.abs(g).max(), np.abs(G).max()
    if s.status == "solved" and speed > 1e-290 * max(1.0, size):  # smaller impulses round to zero
        with np.errstate(over="ignore"):
            assert np.allclose(G @ s.impulse + g, s.velocity, rtol=0, atol=1e-9 * speed)
    try:
        derivatives = problem.derivatives()
    except RuntimeError as error:
        assert "overflow" in str(error)
    else:
        assert np.isfinite(derivatives.dlambda_dg).all() and np.isfinite(derivatives.dlambda_dmu).all()
    return s


def test_contact_problem_with_a_huge_velocity():
    G, g = np.eye(3), np.array([0, 0, -1e308])
    s = check_solution(coulomb.ContactProblem(G, g, [1]), G, g)
    assert s.status == "solved" and np.allclose(s.impulse, [0, 0, 1e308])


def test_contact_problem_with_a_huge_matrix():
    G, g = 1e308 * np.eye(3), np.array([0, 0, -1.0])
    s = check_solution(coulomb.ContactProblem(G, g, [1]), G, g)
    assert s.status == "solved" and np.allclose(s.impulse, [0, 0, 1e-308], rtol=1e-9, atol=0)


def test_contact_problem_whose_impulse_is_no_double():
    G, g = 1e-300 * np.eye(3), np.array([0, 0, -1e300])
    s = check_solution(coulomb.ContactProblem(G, g, [1]), G, g)
    assert s.status == "failed" and np.array_equal(s.impulse, np.zeros(3)) and np.array_equal(s.velocity, g)


@pytest.mark.parametrize("size", [1e-308, 1e-200, 1e-100, 1e100, 1e154, 1e200, 1e308])
@pytest.mark.parametrize("speed", [1e-308, 1e-100, 1.0, 1e100, 1e154, 1e200, 1.7e308])
@pytest.mark.parametrize("mu", [0.0, 1.0, 1e200, 1e308])
def test_contact_problem_of_any_size(size, speed, mu):
    W = np.array([[1, 0.2, 0.1], [0.2, 1, 0.3], [0.1, 0.3, 1]])
    direction = np.array([1, 0.5, -1])
    check_solution(coulomb.ContactProblem(size * W, speed * direction, [mu]), size * W, speed * direction)
