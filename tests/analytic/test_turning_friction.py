"""Torsional and rolling friction: spheres that spin and roll on a plane, and what they do when they slide as well."""

import math

import numpy as np
import pytest

import coulomb

G = 9.81
RADIUS = 0.1
MASS = 0.7


def rotated(quaternion, x):
    w, *u = quaternion
    return x + 2 * np.cross(u, np.cross(u, x) + w * x)


def ball(friction=1.0, torsional=None, rolling=None, radius=RADIUS, normal=(0, 0, 1), **scene_options):
    """A ball that touches a plane through the origin."""
    scene = coulomb.Scene(timestep=1e-3, **scene_options)
    scene.add_ground(friction=friction, normal=normal)
    place = radius * np.asarray(normal, float) / np.linalg.norm(normal)
    scene.add_sphere(
        radius, mass=MASS, position=place, name="ball", torsional_friction=torsional, rolling_friction=rolling
    )
    return scene.build()


def run(model, steps, v, **options):
    sim = coulomb.Simulator(model, **options)
    q, _ = model.neutral()
    return sim, sim.rollout(q, np.asarray(v, float), steps=steps)


def torque_on_ball(sim):
    (contact,) = sim.contacts
    return contact.torque if contact.geometry_a == "ball" else -contact.torque


def test_a_spinning_ball_slows_down_and_stops():
    """I dw/dt = -mu_s m g, until it stands; and it does not turn back."""
    torsional = 0.02
    model = ball(torsional=torsional)
    sim, r = run(model, 300, [0, 0, 0, 0, 0, 10.0])
    rate = torsional * G / (0.4 * RADIUS**2)
    expected = np.maximum(10.0 - rate * 1e-3 * np.arange(301), 0)
    assert expected[-1] == 0 and expected[150] > 1
    np.testing.assert_allclose(r.v[:, 5], expected, atol=1e-9)
    np.testing.assert_allclose(r.v[:, [0, 1, 2, 3, 4]], 0, atol=1e-9)


def test_its_torque_is_reported():
    model = ball(torsional=0.02)
    sim, _ = run(model, 1, [0, 0, 0, 0, 0, 10.0])
    np.testing.assert_allclose(torque_on_ball(sim), [0, 0, -0.02 * MASS * G], atol=1e-9)
    assert sim.contacts[0].mode == "sliding"
    without, _ = run(ball(), 1, [0, 0, 0, 0, 0, 10.0])
    assert not without.contacts[0].torque.any()


def rolling_of(friction, rolling, radius=RADIUS):
    """(slip over rolling speed, moment over m g, deceleration): force and moment are opposite to slip and rolling as the cone weighs them,
    u / (R w) = eps f R / M with eps = (mu_r / (mu R))^2, and both speeds fall in proportion."""
    eps = (rolling / (friction * radius)) ** 2
    s = (eps - 1.4 + math.sqrt((1.4 - eps) ** 2 + 4 * eps)) / 2
    pull = (1 + s) / (1.4 + s)  # f R / M
    moment = rolling / math.sqrt(1 + eps * pull**2)
    return s, moment, pull * moment * G / radius


@pytest.mark.parametrize(("friction", "rolling"), [(1.0, 0.002), (0.3, 0.02)])
def test_a_rolling_ball_slows_down_and_stops(friction, rolling):
    s, moment, deceleration = rolling_of(friction, rolling)
    model = ball(friction, rolling=rolling)
    speed = 0.3
    steps = int(1.2 * speed / deceleration / 1e-3)
    sim, r = run(model, steps, [speed, 0, 0, 0, speed / (1 + s) / RADIUS, 0])
    if (friction, rolling) == (1.0, 0.002):
        assert deceleration == pytest.approx(5 / 7 * rolling * G / RADIUS, rel=1e-3)  # as if it did not slip
    expected = np.maximum(speed - deceleration * 1e-3 * np.arange(steps + 1), 0)
    np.testing.assert_allclose(r.v[:, 0], expected, atol=1e-8)
    np.testing.assert_allclose(r.v[:, 4], expected / (1 + s) / RADIUS, atol=1e-7)
    np.testing.assert_allclose(r.v[:, [1, 2, 3, 5]], 0, atol=1e-9)
    middle, _ = run(model, steps // 2, [speed, 0, 0, 0, speed / (1 + s) / RADIUS, 0])
    np.testing.assert_allclose(torque_on_ball(middle), [0, -moment * MASS * G, 0], atol=1e-8)


@pytest.mark.parametrize("torsional", [None, 0.01])
def test_a_ball_holds_on_gentle_slopes(torsional):
    """Its weight asks for f = m g sin a and M = R f: held while (f / mu)^2 + (M / mu_r)^2 <= (m g cos a)^2."""
    friction, rolling = 0.8, 0.01
    steepest = 1 / math.sqrt(1 / friction**2 + (RADIUS / rolling) ** 2)
    for share, holds in ((0.99, True), (1.01, False)):
        angle = math.atan(share * steepest)
        model = ball(friction, torsional, rolling, normal=(math.sin(angle), 0, math.cos(angle)))
        sim, r = run(model, 200, np.zeros(6))
        if holds:
            np.testing.assert_allclose(r.v[-1], 0, atol=1e-9)
            assert sim.contacts[0].mode == "sticking"
            np.testing.assert_allclose(torque_on_ball(sim), [0, -RADIUS * MASS * G * math.sin(angle), 0], atol=1e-7)
        else:
            # of the moment that is left over, less what slip takes
            assert r.v[-1, 0] > 1e-4 and sim.contacts[0].mode == "sliding"


def test_steep_slopes_without_rolling_friction_are_rolled_down_at_once():
    angle = 0.02
    sim, r = run(ball(0.8, normal=(math.sin(angle), 0, math.cos(angle))), 100, np.zeros(6))
    assert r.v[-1, 0] > 0.01


def shares(contact, model):
    """Impulse, torque impulse and velocities along the frame: l = (t1, t2, n, s, r1, r2), c likewise without the normal."""
    frame = contact.frame
    h = model.timestep
    force, torque = frame @ contact.impulse, frame @ contact.torque * h
    return force, torque


@pytest.mark.parametrize("seed", range(8))
def test_sliding_spinning_and_rolling_share_one_cone(seed):
    """The impulse dissipates at least as much as any other of the ellipsoid that the normal impulse allows, and lies on it."""
    random = np.random.default_rng(seed)
    friction, torsional, rolling = 0.5, 0.03, 0.01 if seed % 2 else None
    model = ball(friction, torsional, rolling)
    v = np.r_[random.normal(size=2), 0, random.normal(size=3) * 10]
    sim, r = run(model, 1, v)
    (contact,) = sim.contacts
    v1 = r.v[-1]
    assert contact.mode == "sliding"

    # Velocities after the step, of the ball at the point and in the frame: A is the ground or the ball.
    sign = 1 if contact.geometry_a == "ball" else -1
    frame = contact.frame
    R = np.eye(3)  # a free body turns in its own frame; one step from the neutral pose
    slip = frame @ (v1[:3] + np.cross(R @ v1[3:], [0, 0, -RADIUS])) * sign
    spin = frame @ (R @ v1[3:]) * sign
    force, torque = shares(contact, model)
    normal = force[2]
    lengths = np.array([friction, friction, torsional] + ([rolling, rolling] if rolling else []))
    impulse = np.r_[force[:2], torque[2], torque[:2] if rolling else []]
    c = np.r_[slip[:2], spin[2], spin[:2] if rolling else []]
    if not rolling:
        assert np.abs(torque[:2]).max() < 1e-12
    assert np.linalg.norm(impulse / lengths) == pytest.approx(normal, rel=1e-9)

    # Brute force: many points of the ellipsoid, and the best by the gradient of its border.
    points = random.normal(size=(200000, len(impulse)))
    points *= (normal / np.linalg.norm(points, axis=1))[:, None]
    best = -(points * lengths @ c).min()
    dissipated = -impulse @ c
    assert dissipated >= best * (1 - 1e-9)
    assert dissipated <= best * 1.05
    np.testing.assert_allclose(impulse, -normal * lengths**2 * c / np.linalg.norm(lengths * c), rtol=1e-6, atol=1e-9)


def test_without_friction_there_is_none_of_the_others():
    scene = coulomb.Scene(timestep=1e-3)
    scene.add_ground(friction=0, torsional_friction=0.1)
    scene.add_sphere(RADIUS, mass=MASS, position=(0, 0, RADIUS), friction=0, rolling_friction=0.1)
    model = scene.build()
    assert model.pair_torsional_friction == pytest.approx([0.1]) and model.pair_friction == pytest.approx([0.0])
    _, r = run(model, 10, [0.1, 0, 0, 0, 3.0, 10.0])
    np.testing.assert_allclose(r.v[-1], [0.1, 0, 0, 0, 3.0, 10.0], atol=1e-12)


def pads(torsional, gravity=(0, 0, -9.81)):
    """A plate held by two balls that are pushed against it along y, its centre of mass beside their axis."""
    scene = coulomb.Scene(timestep=1e-3, gravity=gravity)
    scene.add_box((0.3, 0.04, 0.05), mass=0.2, position=(0.1, 0, 0), name="plate")
    for side in (-1, 1):
        name = f"pad{side}"
        scene.add_sphere(
            0.02, mass=0.1, position=(0, side * 0.04, 0), friction=1.0, name=name, torsional_friction=torsional
        )
    return scene.build()


@pytest.mark.parametrize("torsional", [0.012, None])
def test_a_plate_between_two_pads(torsional):
    """Two pads of 40 N resist 2 mu_s 40 N = .96 N m; the plate hangs by .2 g 0.1 = .196 N m."""
    model = pads(torsional)
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    start = q.copy()
    for _ in range(300):
        tau = np.zeros(model.nv)
        for k, side in ((1, -1), (2, 1)):
            # Pads are held by stiff servos, and pushed by 40 N.
            place, speed = q[7 * k : 7 * k + 3] - start[7 * k : 7 * k + 3], v[6 * k : 6 * k + 6]
            tau[6 * k : 6 * k + 3] = -4000 * place - 40 * speed[:3] + [0, 0, 0.1 * 9.81]
            tau[6 * k + 1] = -40 * side - 20 * speed[1]
            tau[6 * k + 3 : 6 * k + 6] = -0.01 * speed[3:] - 5 * q[7 * k + 4 : 7 * k + 7]
        q, v = sim.step(q, v, tau=tau)
    turned = 2 * math.asin(np.linalg.norm(q[4:7]))
    assert (turned < 0.05) if torsional else (turned > 0.5), turned


def test_energy_never_rises_and_momentum_stays():
    """Two balls that meet in free space, spinning and rolling on one another: momentum and angular momentum stay, energy falls."""
    scene = coulomb.Scene(gravity=(0, 0, 0), timestep=1e-3)
    for k, place in enumerate(((0, 0, 0), (0.2, 0, 0))):
        scene.add_sphere(
            0.1,
            mass=1.0 + k,
            position=place,
            name=f"b{k}",
            friction=0.6,
            torsional_friction=0.03,
            rolling_friction=0.01,
        )
    model = scene.build()
    sim = coulomb.Simulator(model, baumgarte=0)
    q, _ = model.neutral()
    v = np.array([0.5, 0.1, -0.2, 3.0, 4.0, -8.0, -0.5, 0.3, 0.1, -2.0, 5.0, 6.0])
    inertia = np.array([0.4 * 1.0 * 0.01, 0.4 * 2.0 * 0.01])
    mass = np.array([1.0, 2.0])

    def momenta(q, v):
        P, L, E = np.zeros(3), np.zeros(3), 0.0
        for k in range(2):
            linear = v[6 * k : 6 * k + 3]
            spin = rotated(q[7 * k + 3 : 7 * k + 7], v[6 * k + 3 : 6 * k + 6])
            P += mass[k] * linear
            L += mass[k] * np.cross(q[7 * k : 7 * k + 3], linear) + inertia[k] * spin
            E += mass[k] * linear @ linear / 2 + inertia[k] * spin @ spin / 2
        return P, L, E

    P0, L0, E0 = momenta(q, v)
    torque = 0
    for _ in range(50):
        q1, v1 = sim.step(q, v)
        P, L, E = momenta(q1, v1)
        torque = max([torque, *(np.abs(c.torque).max() for c in sim.contacts)])
        assert E <= E0 * (1 + 1e-12)
        np.testing.assert_allclose(P, P0, atol=1e-12)
        np.testing.assert_allclose(L, L0, atol=1e-6)
        q, v, E0 = q1, v1, E
    assert torque > 1e-2


@pytest.mark.parametrize("seed", range(4))
def test_the_motion_turns_with_the_world(seed):
    """An egg that is thrown on a plane, and the same with everything turned: tangents are others, the motion is not."""
    random = np.random.default_rng(seed)
    turn = random.normal(size=4)
    turn /= np.linalg.norm(turn)
    v = random.normal(size=6) * (1, 1, 0, 5, 5, 5)

    def thrown(world):
        scene = coulomb.Scene(timestep=1e-3, gravity=rotated(world, np.array([0, 0, -G])))
        scene.add_ground(
            normal=rotated(world, np.array([0, 0, 1.0])), friction=0.5, torsional_friction=0.02, rolling_friction=0.01
        )
        place = rotated(world, np.array([0.1, 0.2, 0.08]))
        scene.add_ellipsoid((0.1, 0.09, 0.08), mass=MASS, position=place, quaternion=world)
        sim = coulomb.Simulator(scene.build())
        q, _ = sim.model.neutral()
        r = sim.rollout(q, np.r_[rotated(world, v[:3]), v[3:]], steps=60)
        modes = {s.converged for s in r.status}
        assert modes == {True}
        return r

    plain, other = thrown(np.array([1.0, 0, 0, 0])), thrown(turn)
    linear = np.array([rotated(turn, x[:3]) for x in plain.v])
    assert np.abs(plain.v[-1, 3:] - v[3:]).max() > 1
    np.testing.assert_allclose(other.v[:, :3], linear, atol=1e-7)
    np.testing.assert_allclose(other.v[:, 3:], plain.v[:, 3:], atol=1e-6)
