"""Plain steps see the gaps that the free velocity would close: bodies stay in contact along curves, and stop where they touch.

Before, contacts were made within a fixed margin of 1e-6 m, which bodies leave by h^2 v^2 / 2R in every step along a curve.
"""

import math

import numpy as np
import pytest

import coulomb
from scenes.basics import GRAVITY

LAWS = ["ncp", "lcp"]


def touches(sim):
    return any(np.linalg.norm(c.impulse) > 0 for c in sim.contacts)


def leaves(timestep, friction, contact="ncp"):
    """Degrees from the top at which a ball that starts at 5 degrees leaves a larger one, and the steps without contact before."""
    large, small, start = 1.0, 0.1, math.radians(5)
    scene = coulomb.Scene()
    scene.add_sphere(large, fixed=True, friction=friction)
    place = (large + small) * np.array([math.sin(start), 0, math.cos(start)])
    scene.add_sphere(small, mass=1.0, position=place, friction=friction)
    sim = coulomb.Simulator(scene.build(), timestep=timestep, contact=contact)
    q, v = sim.model.neutral()
    last, lost, missed = 0.0, 0, 0
    while True:
        q, v = sim.step(q, v)
        angle = math.degrees(math.atan2(q[0], q[2]))
        if touches(sim):
            last, lost, missed = angle, lost + missed, 0
        else:
            missed += 1
        if angle > 65:
            return last, lost


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize(("friction", "rotating"), [(0.0, 0.0), (10.0, 0.4)])
def test_a_ball_rolls_off_a_ball(friction, rotating, contact):
    """It leaves where cos = 2 cos(start) / (3 + 2/5), 3 where it slides; the error is of the first order in the time step."""
    exact = math.degrees(math.acos(2 * math.cos(math.radians(5)) / (3 + rotating)))
    for timestep in (4e-3, 2e-3, 1e-3):
        angle, lost = leaves(timestep, friction, contact)
        assert lost == 0
        assert angle == pytest.approx(exact, abs=0.25 * timestep / 1e-3)


def wheel(sides, timestep, turning, **options):
    """A wheel of that many spokes of 1 m and 1 kg that has its foot on the ground and turns forward: (simulator, q, v, inertia)."""
    inertia, corners = 0.1, math.pi / sides
    points = [
        (math.sin((2 * k + 1) * corners), y, math.cos((2 * k + 1) * corners)) for y in (-0.1, 0.1) for k in range(sides)
    ]
    scene = coulomb.Scene()
    scene.add_ground(friction=5.0)
    scene.add_mesh(
        points, mass=1.0, inertia=(inertia, 0, inertia, 0, 0, inertia), position=(0, 0, math.cos(corners)), friction=5.0
    )
    sim = coulomb.Simulator(scene.build(), timestep=timestep, **options)
    q, v = sim.model.neutral()
    v[4] = turning
    v[:3] = np.cross([0, turning, 0], [-math.sin(corners), 0, math.cos(corners)])
    return sim, q, v, inertia


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize(("timestep", "mean", "worst"), [(2e-3, 2e-3, 5e-3), (1e-3, 1e-3, 2.5e-3)])
def test_a_rimless_wheel_keeps_its_momentum(timestep, mean, worst, contact):
    """At each impact the momentum about the new foot stays: w+ / w- = (cos 2 alpha + I) / (1 + I)."""
    errors = []
    for k in range(8):
        sim, q, v, inertia = wheel(8, timestep, 2.5 + 0.06 * k, contact=contact)
        kinetic = []
        for _ in range(round(0.9 / timestep)):
            q, v = sim.step(q, v)
            kinetic.append(sum(sim.model.energy(q, v)) - GRAVITY * math.cos(math.pi / 8))
        first = int(np.argmax(-np.diff(kinetic) > 0.05))
        expected = (math.cos(math.pi / 4) + inertia) / (1 + inertia)
        errors.append(math.sqrt(kinetic[first + 5] / kinetic[first - 1]) / expected - 1)
    assert abs(np.mean(errors)) < mean
    assert np.abs(errors).max() < worst


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize("speed", [0.3, 3.0, 30.0])
def test_a_body_stops_where_it_touches(speed, contact):
    """It does not sink, nor is it thrown back by the correction of how deep it sank."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.1 + 0.0123), friction=0.5)
    sim = coulomb.Simulator(scene.build(), timestep=2e-3, contact=contact)
    q, v = sim.model.neutral()
    v[2] = -speed
    lowest, fastest = 1.0, -1.0
    for _ in range(100):
        q, v = sim.step(q, v)
        assert sim.status.converged
        lowest, fastest = min(lowest, q[2]), max(fastest, v[2])
    assert lowest > 0.1 - 1e-9
    assert fastest < 1e-9
    assert q[2] == pytest.approx(0.1, abs=1e-9)


@pytest.mark.parametrize("e", [0.5, 1.0])
def test_what_bounces_bounces_from_where_it_touches(e):
    """A contact with restitution waits for the touch: it neither bounces in the air nor is it slowed down before."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0, restitution=e)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1 + 0.0123))
    sim = coulomb.Simulator(scene.build(), timestep=2e-3)
    q, v = sim.model.neutral()
    v[2] = -3.0
    for _ in range(20):
        before = q[2], v[2]
        q, v = sim.step(q, v)
        if v[2] > 0:
            break
    assert before[0] <= 0.1 + 1e-6
    assert v[2] == pytest.approx(-e * before[1], abs=1e-9)
    assert before[1] == pytest.approx(-math.sqrt(9 + 2 * GRAVITY * 0.0123), abs=0.03)


def test_resting_bodies_have_the_contacts_that_they_had():
    """Falling beside one another closes no gap between them; the contacts of a body at rest are those within its margin."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    for i in range(3):
        scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=((0.2 + 1e-5) * i, 0, 0.1), friction=0.5)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.3), friction=0.5)
    model = scene.build()
    for timestep in (1e-3, 1e-2):
        sim = coulomb.Simulator(model, timestep=timestep)
        q, v = model.neutral()
        for _ in range(5):
            q, v = sim.step(q, v)
            assert len(sim.contacts) == 16
            assert all(abs(c.depth) < 1e-9 for c in sim.contacts)


@pytest.mark.parametrize("contact", LAWS)
def test_the_gap_that_closes_is_differentiated(contact):
    """v+ = -gap / h: by configuration, velocity, forces, sizes and the time step, against differences."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.3)
    turn = np.array([1.0, 0.2, 0.3, 0.1])
    scene.add_box(
        (0.2, 0.3, 0.1),
        mass=1.0,
        position=(0, 0, 0.1705),
        quaternion=turn / np.linalg.norm(turn),
        friction=0.3,
        name="box",
    )
    scene.add_sphere(0.1, mass=2.0, position=(1, 0, 0.1013), friction=0.3, name="ball")
    scene.add_ellipsoid((0.1, 0.15, 0.2), mass=1.0, position=(1.01, 0.02, 0.4045), friction=0.3, name="egg")
    sim = coulomb.Simulator(scene.build(), timestep=1e-3, contact=contact)
    q, v = sim.model.neutral()
    v[:] = [0.5, 0.2, -2, 1, 0.5, 0.2, 0.1, 0.3, -2.5, 2, 1, 0, 0.2, 0.1, -6, 0.3, 0.2, 0.4]
    sim.step(q, v)
    ahead = [c for c in sim.contacts if c.depth < -1e-4 and np.linalg.norm(c.impulse) > 1e-3]
    assert len(ahead) >= 2 and {c.geometry_a for c in ahead} | {c.geometry_b for c in ahead} >= {"ball", "egg"}
    report = coulomb.check_gradients(
        sim, q, v, wrt=["size/ball", "size/egg", "timestep", "mass/box", "friction/ground"]
    )
    assert report.passed, report


@pytest.mark.parametrize("baumgarte", [0.02, 0.1])
@pytest.mark.parametrize("timestep", [2e-4, 1e-3])
def test_the_force_along_a_curve_is_steady(timestep, baumgarte):
    """m (g cos - v^2 / R) of a ball that slides off a ball, at every step: gaps of successive steps do not alternate."""
    large, small = 0.5, 0.1
    start = math.radians(5)
    scene = coulomb.Scene()
    scene.add_sphere(large, fixed=True, friction=0.0)
    way = np.array([math.sin(start), 0, math.cos(start)])
    scene.add_sphere(small, mass=1.0, position=(large + small) * way, friction=0.0)
    sim = coulomb.Simulator(scene.build(), timestep=timestep, baumgarte=baumgarte)
    q, v = sim.model.neutral()
    while True:
        q, v = sim.step(q, v)
        cosine = q[2] / np.linalg.norm(q[:3])
        expected = GRAVITY * cosine - v[:3] @ v[:3] / (large + small)
        if expected < 1.0:
            break
        force = sum(np.linalg.norm(c.impulse) for c in sim.contacts) / timestep
        assert force == pytest.approx(expected, abs=0.3)
