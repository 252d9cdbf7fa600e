"""The Python interface itself: shapes, errors that name the argument, copies and views, coordinates of `pin`."""

import numpy as np
import pytest

import coulomb


def box_scene():
    scene = coulomb.Scene(gravity=(0, 0, -9.81))
    scene.add_ground(friction=0.8)
    scene.add_box(size=(0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.1), friction=0.5, name="box")
    return scene


@pytest.fixture
def sim():
    return coulomb.Simulator(box_scene().build(), timestep=1e-3)


def test_box_at_rest_carries_its_weight(sim):
    q1, v1 = sim.step(*sim.model.neutral())
    assert sim.status.converged and len(sim.contacts) == 4
    assert np.abs(v1).max() < 1e-12
    assert sum(abs(c.impulse[2]) for c in sim.contacts) == pytest.approx(9.81e-3, rel=1e-9)


def test_shapes(sim):
    q, v = sim.model.neutral()
    sim.step(q, v)
    d = sim.derivatives()
    assert d.A.shape == (12, 12) and d.B.shape == (12, 0) and d.B_tau.shape == (12, 6)
    assert np.array_equal(d.A[6:, :6], d.dv_dq) and np.array_equal(d.A[:6, 6:], d.dq_dv)
    trajectory = sim.rollout(q, v, steps=5)
    assert trajectory.q.shape == (6, 7) and trajectory.v.shape == (6, 6) and len(trajectory.status) == 5


def test_reverse_and_forward_mode_are_adjoint(sim):
    random = np.random.default_rng(0)
    sim.step(*sim.model.neutral())
    w, x = random.normal(size=(2, 6)), random.normal(size=(3, 6))
    g, (dq, dv) = sim.vjp(*w), sim.jvp(dq=x[0], dv=x[1], dtau=x[2])
    assert w[0] @ dq + w[1] @ dv == pytest.approx(g.q @ x[0] + g.v @ x[1] + g.tau @ x[2], rel=1e-10)
    assert np.allclose(
        sim.derivatives().A @ np.r_[x[0], x[1]] + sim.derivatives().B_tau @ x[2], np.r_[dq, dv], rtol=1e-10
    )


def test_derivatives_outlive_the_next_step(sim):
    q, v = sim.model.neutral()
    sim.step(q, v)
    d = sim.derivatives()
    A = d.A.copy()
    sim.step(q + np.array([0, 0, 1, 0, 0, 0, 0]), v)
    assert np.array_equal(d.A, A)


def test_model_arrays_are_read_only_views(sim):
    with pytest.raises(ValueError):
        sim.model.body_mass[1] = 2.0
    assert sim.model.body_mass[1] == 1.0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda s, q, v: s.step(q[:3], v), ValueError, "q: expected shape"),
        (lambda s, q, v: s.step(q, v[None]), ValueError, "v: expected shape"),
        (lambda s, q, v: s.step("text", v), TypeError, "q: expected float64"),
        (lambda s, q, v: s.step(q.astype(complex), v), TypeError, "q: expected float64"),
        (lambda s, q, v: s.step(q, v * np.nan), ValueError, "v[0]"),
        (lambda s, q, v: s.step(q * np.array([1, 1, 1, 2, 1, 1, 1]), v), ValueError, "q"),
        (lambda s, q, v: s.step(q, v, np.zeros(3)), ValueError, "u: expected shape"),
        (lambda s, q, v: s.step(q, v, tau=np.zeros(3)), ValueError, "tau: expected shape"),
        (lambda s, q, v: s.step(q, v, fext=np.zeros(6)), ValueError, "fext: expected shape"),
        (lambda s, q, v: coulomb.Simulator(s.model, timestep=0), ValueError, "timestep"),
        (lambda s, q, v: coulomb.Simulator(s.model, timestep=-1), ValueError, "timestep"),
        (lambda s, q, v: coulomb.Simulator(s.model, contact="soft"), ValueError, "contact"),
        (lambda s, q, v: coulomb.load("no/such/file.urdf"), FileNotFoundError, "no/such/file.urdf"),
        (lambda s, q, v: coulomb.ContactProblem(np.eye(3), np.zeros(3), [-1.0]), ValueError, "mu"),
        (lambda s, q, v: coulomb.ContactProblem(np.eye(2), np.zeros(3), [1.0]), ValueError, "G: expected shape"),
    ],
)
def test_bad_input_names_the_argument_and_changes_nothing(sim, call, error, words):
    q, v = sim.model.neutral()
    before = sim.step(q, v)
    with pytest.raises(error) as raised:
        call(sim, q, v)
    assert words in str(raised.value)
    sim.reset()
    assert np.array_equal(sim.step(q, v)[1], before[1])


def test_lists_and_integers_are_converted(sim):
    q1, _ = sim.step([0, 0, 1, 1, 0, 0, 0], [0] * 6)
    assert q1[2] == pytest.approx(1 - 9.81e-6)


def test_contact_problem_by_hand():
    problem = coulomb.ContactProblem(np.eye(3), [0.1, 0.0, -1.0], [0.5])
    solution = problem.solve()
    assert solution.status == "solved" and solution.modes == ["sticking"]
    assert np.allclose(solution.impulse, [-0.1, 0, 1], atol=1e-12)
    assert np.allclose(problem.derivatives().dlambda_dg, -np.eye(3), atol=1e-12)


def test_check_gradients_in_the_air():
    scene = coulomb.Scene()
    scene.add_box(size=(0.1, 0.2, 0.3), mass=1.0)
    sim = coulomb.Simulator(scene.build())
    q, v = sim.model.neutral()
    check = coulomb.check_gradients(sim, q, v + np.arange(6.0))
    assert check.smooth and check.max_error < 1e-6


def test_coordinates_of_pin():
    pin = pytest.importorskip("pinocchio")
    theirs = pin.buildSampleModelHumanoid()
    scene = coulomb.Scene()
    scene.add_pinocchio(theirs)
    ours = scene.build()
    random = np.random.default_rng(1)
    q = ours.integrate(ours.neutral()[0], random.normal(size=ours.nv))
    v = random.normal(size=ours.nv)
    q_pin, v_pin = ours.to_pinocchio(q, v)
    q_back, v_back = ours.from_pinocchio(q_pin, v_pin)
    assert np.abs(ours.difference(q, q_back)).max() < 1e-13 and np.abs(v - v_back).max() < 1e-13
    T = ours.pinocchio_tangent(q)
    assert np.allclose(T @ v, v_pin, atol=1e-13)
    dq = 1e-6 * random.normal(size=ours.nv)
    moved, _ = ours.to_pinocchio(ours.integrate(q, dq), v)
    assert np.allclose(pin.difference(theirs, q_pin, moved), T @ dq, atol=1e-11)
