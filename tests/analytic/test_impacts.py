"""Impacts in one step: two spheres, a sphere with spin on a floor, and the end of a falling rod."""

import math

import numpy as np
import pytest

import coulomb
from scenes.basics import force, simulate


@pytest.mark.parametrize(
    ("masses", "speeds", "restitution", "after", "tolerance"),
    [
        ((1, 3), (2, 0), 0.5, (-0.25, 0.75), 1e-10),
        ((1, 1000), (1, 0), 1.0, (-999 / 1001, 2 / 1001), 1e-9),  # -.998002, .001998
        ((2, 5), (3, -1), 0.7, (-13 / 7, 33 / 35), 1e-10),  # v' = (p -+ m e (v1 - v2)) / M
    ],
)
@pytest.mark.parametrize("gap", [0.0, 0.0123])
def test_two_spheres_collide(masses, speeds, restitution, after, tolerance, gap):
    scene = coulomb.Scene(gravity=(0, 0, 0))
    for i, mass in enumerate(masses):
        scene.add_sphere(0.1, mass=mass, position=((0.2 + gap) * i, 0, 0), restitution=restitution, friction=0.3)
    v = np.zeros(12)
    v[0], v[6] = speeds
    _, trajectory = simulate(scene.build(), 0.05, v=v)
    assert trajectory.v[-1, [0, 6]] == pytest.approx(after, abs=tolerance)
    assert np.delete(trajectory.v[-1], [0, 6]) == pytest.approx(np.zeros(10), abs=tolerance)


@pytest.mark.parametrize(
    ("velocity", "restitution", "friction", "after"),
    [
        ((4, -3), 0.8, 0.1, (3.46, 1.35)),  # slips all the way: loses mu (1 + e) v_n
        ((4, -3), 0.8, 1.0, (20 / 7, 20 / 7)),  # leaves rolling: 2.857143
        ((1, -2), 0.5, 0.05, (1 - 0.15, 2.5 * 0.15)),
    ],
)
def test_a_sphere_hits_the_floor_obliquely(velocity, restitution, friction, after):
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_ground(friction=friction, restitution=restitution)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1))
    sim = coulomb.Simulator(scene.build(), timestep=1e-3)
    _, v = sim.step(sim.model.neutral()[0], [velocity[0], 0, velocity[1], 0, 0, 0])
    assert v[0] == pytest.approx(after[0], abs=1e-9)
    assert 0.1 * v[4] == pytest.approx(after[1], abs=1e-9)
    assert v[2] == pytest.approx(-restitution * velocity[1], abs=1e-9)


@pytest.mark.parametrize(("degrees", "speed"), [(30, 1.0), (50, 2.0)])
def test_the_end_of_a_rod_hits_the_floor(degrees, speed):
    """P = m v / (1 + 3 cos^2); l w = 3 cos / (1 + 3 cos^2) v, and its slope over the angle; thin rod, no friction, e = 0."""
    half, radius, angle = 0.5, 0.01, math.radians(degrees)
    inertia = half**2 / 3
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_ground(friction=0, restitution=0)
    tilt = math.pi / 2 - angle  # the capsule lies along its own z
    scene.add_capsule(
        radius, 2 * half, mass=1.0, inertia=(inertia, 0, inertia, 0, 0, 1e-6),
        position=(0, 0, half * math.sin(angle) + radius - 1e-9),
        quaternion=(math.cos(tilt / 2), 0, math.sin(tilt / 2), 0), name="rod",
    )  # fmt: skip
    sim = coulomb.Simulator(scene.build(), timestep=1e-3, baumgarte=0)
    _, v = sim.step(sim.model.neutral()[0], [0, 0, -speed, 0, 0, 0])
    c, s = math.cos(angle), math.sin(angle)
    impulse, rate, slope = 1 / (1 + 3 * c * c), 3 * c / (1 + 3 * c * c), 3 * s * (3 * c * c - 1) / (1 + 3 * c * c) ** 2
    if degrees == 30:
        assert (impulse, rate, slope) == pytest.approx((0.307692, 0.799408, 0.177515), abs=1e-6)
    assert len(sim.contacts) == 1
    assert force(sim, on="rod")[2] * sim.timestep == pytest.approx(impulse * speed, abs=1e-8)
    assert half * abs(v[4]) == pytest.approx(rate * speed, abs=1e-8)
    # A positive turn about y lowers the upper end, that is, the angle to the floor.
    turned = -half * np.sign(v[4]) * sim.derivatives().dv_dq[4, 4]
    assert turned == pytest.approx(slope * speed, abs=1e-5)
