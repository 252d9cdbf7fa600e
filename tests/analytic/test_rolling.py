"""Spheres on planes: rolling, rolling with slip, and a slide that becomes rolling."""

import math

import numpy as np
import pytest

from scenes.basics import GRAVITY, Slope, force, simulate

RADIUS = 0.1


def sphere_on_slope(degrees, friction, radius=RADIUS):
    slope = Slope(degrees)
    scene = slope.scene(friction)
    scene.add_sphere(radius, mass=1.0, position=radius * slope.normal, name="ball")
    return slope, scene.build()


@pytest.mark.parametrize("radius", [0.1, 0.03])
@pytest.mark.parametrize(("degrees", "friction"), [(15, 1.0), (10, 0.2)])
def test_a_sphere_rolls_down_a_slope(degrees, friction, radius):
    slope, model = sphere_on_slope(degrees, friction, radius)
    sim, trajectory = simulate(model, 0.5)
    pull = GRAVITY * math.sin(slope.angle)
    if degrees == 15:
        assert 5 / 7 * pull == pytest.approx(1.813582, abs=1e-6) and 2 / 7 * pull == pytest.approx(0.725433, abs=1e-6)
    assert trajectory.v[-1, :3] @ slope.down / 0.5 == pytest.approx(5 / 7 * pull, rel=1e-4)
    assert -force(sim, on="ball") @ slope.down == pytest.approx(2 / 7 * pull, rel=1e-4)
    assert sim.contacts[0].mode == "sticking"


@pytest.mark.parametrize(("degrees", "friction"), [(30, 0.05), (45, 0.2)])
def test_a_sphere_slips_down_a_steep_slope(degrees, friction):
    slope, model = sphere_on_slope(degrees, friction)
    sim, trajectory = simulate(model, 0.5)
    a = GRAVITY * (math.sin(slope.angle) - friction * math.cos(slope.angle))
    spin = 2.5 * friction * GRAVITY * math.cos(slope.angle)
    if degrees == 30:
        assert a == pytest.approx(4.480215, abs=1e-6) and spin == pytest.approx(1.061964, abs=1e-6)
    assert trajectory.v[-1, :3] @ slope.down / 0.5 == pytest.approx(a, rel=1e-4)
    assert RADIUS * np.linalg.norm(trajectory.v[-1, 3:]) / 0.5 == pytest.approx(spin, rel=1e-4)
    assert sim.contacts[0].mode == "sliding"


@pytest.mark.parametrize(("speed", "friction"), [(2.0, 0.2), (3.0, 0.5)])
def test_a_slide_becomes_rolling(speed, friction):
    _, model = sphere_on_slope(0, friction)
    _, trajectory = simulate(model, 0.5, v=[speed, 0, 0, 0, 0, 0])
    slip = np.abs(trajectory.v[:, 0] - RADIUS * trajectory.v[:, 4])  # the ball does not turn its y axis
    first = int(np.flatnonzero(slip < 1e-9)[0])
    time = 2 * speed / (7 * friction * GRAVITY)
    if speed == 2.0:
        assert time == pytest.approx(0.291248, abs=1e-6)
    assert first * 1e-3 == pytest.approx(time, abs=1e-3)
    assert trajectory.v[-1, 0] == pytest.approx(5 / 7 * speed, abs=1e-8)
    distance = trajectory.q[first, 0] - trajectory.v[first, 0] * (first * 1e-3 - time)
    assert distance == pytest.approx(12 / 49 * speed**2 / (friction * GRAVITY), abs=1e-3)  # .499282 for the first
