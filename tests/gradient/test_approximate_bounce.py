"""gradient="approximate_bounce" [Werling2021, appendix E] on plain steps: its defining conditions, and what it mends."""

import numpy as np
import pytest

import coulomb

H = 1e-3


def ball(height, restitution=0.8):
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_ground(friction=0, restitution=restitution)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1 + height))
    return scene.build()


def test_one_ball_has_the_derivative_of_the_split_step():
    model = ball(0.0)
    q, v = model.neutral()
    v = v - [0, 0, 3, 0, 0, 0]
    plain, split = (
        coulomb.Simulator(model, H, gradient="approximate_bounce"),
        coulomb.Simulator(model, H, continuous_collision=True),
    )
    plain.step(q, v)
    d = plain.derivatives()
    assert d.dq_dq == pytest.approx(np.diag([1, 1, -0.8, 1, 1, 1]), abs=1e-12)
    assert d.dq_dv == pytest.approx(H * d.dq_dq, abs=1e-15)
    split.step(q + [0, 0, 1e-3, 0, 0, 0, 0], v)  # hits in mid-step
    assert len(split.impacts) == 1
    assert split.derivatives().dq_dq == pytest.approx(d.dq_dq, abs=1e-12)
    assert split.derivatives().dq_dv[2, 2] == pytest.approx(d.dq_dv[2, 2], abs=1e-12)


def test_a_ball_that_starts_higher_ends_lower():
    """One bounce in 60 plain steps: the exact derivative has the wrong sign, the approximate one that of the closed form."""
    v = np.array([0, 0, -1.0, 0, 0, 0])
    slopes = {}
    for gradient in ("exact", "approximate_bounce"):
        sim = coulomb.Simulator(ball(0.0305), H, gradient=gradient)
        r = sim.rollout(sim.model.neutral()[0], v, steps=60)
        dq, dv = np.zeros((2, 61, 6))
        dq[-1, 2] = 1
        slopes[gradient] = r.vjp(dq, dv).q0[2]
    assert slopes["approximate_bounce"] == pytest.approx(-0.8, abs=1e-9)
    assert slopes["exact"] > -0.5


def test_several_bounces_meet_their_conditions_nearest_to_the_identity():
    """A box falls flat on its four corners, tilted gravity or not: J_i X J_i^+ = -e where the four rows allow it; ||X - 1|| least."""
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_ground(friction=0.2, restitution=0.5)
    scene.add_box((0.2, 0.3, 0.1), mass=1.0, position=(0, 0, 0.05))
    scene.add_sphere(0.1, mass=1.0, position=(1, 0, 0.1), restitution=0.9, name="ball")
    sim = coulomb.Simulator(scene.build(), H, gradient="approximate_bounce")
    q, v = sim.model.neutral()
    v = v + [0.1, 0.2, -1, 0, 0, 0, 0.3, 0, -2, 0, 1, 0]
    sim.step(q, v)
    d = sim.derivatives()
    bouncing = [c for c in sim.contacts if c.mode != "separating"]
    assert len(bouncing) == 5
    rows, wanted = [], []
    for c in bouncing:
        centre = q[7:10] if c.geometry_a == "ball" or c.geometry_b == "ball" else q[:3]
        row, offset = np.zeros(12), 6 if centre[0] == 1 else 0
        row[offset : offset + 3], row[offset + 3 : offset + 6] = c.normal, np.cross(c.point - centre, c.normal)
        rows.append(row / np.linalg.norm(row))
        wanted.append(-(0.9 if offset else 0.5))
    X = d.dq_dq
    # least squares over all 144 entries, least norm of X - 1
    A = np.array([np.outer(r, r).ravel() for r in rows])
    change = np.linalg.pinv(A) @ (np.array(wanted) - A @ np.eye(12).ravel())
    assert X == pytest.approx(np.eye(12) + change.reshape(12, 12), abs=1e-10)
    assert [r @ X @ r for r in rows] == pytest.approx(wanted, abs=1e-10)
    assert d.dq_dv == pytest.approx(H * X, abs=1e-12)


def test_the_rest_stays_and_reverse_agrees_with_forward():
    model = ball(0.0)
    q, v = model.neutral()
    v = v + [1, 0, -3, 0, 0, 0]
    tau = np.ones(6)
    exact, approximate = coulomb.Simulator(model, H), coulomb.Simulator(model, H, gradient="approximate_bounce")
    after = [sim.step(q, v, tau=tau) for sim in (exact, approximate)]
    assert np.array_equal(after[0][0], after[1][0]) and np.array_equal(after[0][1], after[1][1])
    names = ["restitution/ground", "mass/sphere", "timestep"]
    e, a = exact.derivatives(names), approximate.derivatives(names)
    assert np.array_equal(e.A[6:], a.A[6:]) and np.array_equal(e.B_tau, a.B_tau)
    assert all(np.array_equal(e[name], a[name]) for name in names)
    w = np.random.default_rng(0).normal(size=(2, 6))
    g = approximate.vjp(*w, wrt=names)
    for reverse, forward in ((g.q, a.A[:, :6]), (g.v, a.A[:, 6:]), (g.tau, a.B_tau), *((g[n], a[n]) for n in names)):
        assert reverse == pytest.approx(w.ravel() @ forward, abs=1e-12)
    approximate.step(q + [0, 0, 1, 0, 0, 0, 0], v)  # nothing bounces
    exact.step(q + [0, 0, 1, 0, 0, 0, 0], v)
    assert np.array_equal(approximate.derivatives().A, exact.derivatives().A)


def test_it_is_for_plain_steps():
    with pytest.raises(ValueError, match="approximate_bounce"):
        coulomb.Simulator(ball(0.0), continuous_collision=True, gradient="approximate_bounce")
