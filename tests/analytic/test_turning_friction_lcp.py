"""Torsional and rolling friction of pyramids: every moment has a bound of its own, and sticks or slides by itself."""

import numpy as np
import pytest

import coulomb

G, RADIUS, MASS = 9.81, 0.1, 0.7


def ball(friction=1.0, torsional=None, rolling=None, normal=(0, 0, 1)):
    scene = coulomb.Scene(timestep=1e-3)
    scene.add_ground(friction=friction, normal=normal)
    place = RADIUS * np.asarray(normal, float) / np.linalg.norm(normal)
    scene.add_sphere(
        RADIUS, mass=MASS, position=place, name="ball", torsional_friction=torsional, rolling_friction=rolling
    )
    return scene.build()


def spin_of(r):
    """rad/s about the vertical: angular velocities are in the ball's axes."""
    w, x, y, z = np.moveaxis(r.q[:, 3:], 1, 0)
    vertical = np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z], axis=1)
    return (vertical * r.v[:, 3:]).sum(axis=1)


def run(model, steps, v, **options):
    sim = coulomb.Simulator(model, contact="lcp", **options)
    return sim, sim.rollout(model.neutral()[0], np.asarray(v, float), steps=steps)


def test_spin_and_slip_do_not_share_a_bound():
    """A ball that slides and spins loses mu g of speed and mu_s m g / I of spin, as if each were alone; in the cone both lose less."""
    torsional, friction = 0.02, 0.3
    _, r = run(ball(friction, torsional), 50, [2.0, 0, 0, 0, 0, 10.0])
    spin = 10.0 - torsional * G / (0.4 * RADIUS**2) * 1e-3 * np.arange(51)
    np.testing.assert_allclose(spin_of(r), spin, atol=1e-8)
    np.testing.assert_allclose(r.v[:, 0], 2.0 - friction * G * 1e-3 * np.arange(51), atol=1e-8)
    cone = coulomb.Simulator(ball(friction, torsional)).rollout(r.q[0], r.v[0], steps=50)
    assert spin_of(cone)[-1] > spin[-1] + 0.1 and cone.v[-1, 0] > r.v[-1, 0] + 0.005


def test_a_spinning_ball_stops_and_stands():
    sim, r = run(ball(torsional=0.02), 300, [0, 0, 0, 0, 0, 10.0])
    rate = 0.02 * G / (0.4 * RADIUS**2)
    np.testing.assert_allclose(r.v[:, 5], np.maximum(10.0 - rate * 1e-3 * np.arange(301), 0), atol=1e-8)
    assert sim.contacts[0].mode == "sticking"


def test_it_only_spins():
    """The polygon sticks while the spin slides: no feature of the polygon is reported."""
    sim, _ = run(ball(torsional=0.02), 1, [0, 0, 0, 0, 0, 10.0])
    (contact,) = sim.contacts
    assert contact.mode == "sliding" and contact.facet == -1 and np.abs(contact.turning).tolist() == [1, 0, 0]
    np.testing.assert_allclose(np.abs(contact.torque), [0, 0, 0.02 * MASS * G], atol=1e-8)


@pytest.mark.parametrize(("rolling", "rolls"), [(0.012, False), (0.008, True)])
def test_a_slope_holds_a_ball(rolling, rolls):
    """Along x, where the moment is about one tangent: it holds where mu_r > R tan(slope)."""
    model = ball(rolling=rolling, normal=(0.1, 0, 1))
    _, r = run(model, 100, np.zeros(6))
    assert (r.v[-1, 0] > 1e-3) if rolls else np.abs(r.v).max() < 1e-9


def test_a_rolling_ball_slows_down():
    """It rolls without slipping: (I + m R^2) dw/dt = -mu_r m g."""
    rolling, v0 = 0.003, 0.5
    _, r = run(ball(rolling=rolling), 200, [v0, 0, 0, 0, v0 / RADIUS, 0])
    rate = rolling * G / (1.4 * RADIUS)
    np.testing.assert_allclose(r.v[:, 0], v0 - rate * 1e-3 * np.arange(201), atol=1e-8)
    np.testing.assert_allclose(r.v[:, 4] * RADIUS, r.v[:, 0], atol=1e-8)


def test_split_steps_and_memory():
    """Warm or cold, split or not: the same motion of a ball that lies, slides and spins."""
    model = ball(0.3, 0.02, 0.003)
    v = [0.5, 0.2, 0, 1.0, 2.0, 10.0]
    runs = [
        run(model, 50, v, **options)[1] for options in ({}, dict(warm_start=False), dict(continuous_collision=True))
    ]
    for r in runs[1:]:
        np.testing.assert_allclose(r.v, runs[0].v, atol=1e-6)
