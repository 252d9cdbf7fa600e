"""No contact: free fall, pendulum, spring, free and heavy tops, against closed forms."""

import math

import numpy as np
import pytest

import coulomb
from scenes.basics import GRAVITY, simulate


def free_body(inertia, gravity=(0, 0, 0)):
    scene = coulomb.Scene(gravity=gravity)
    scene.add_sphere(0.1, mass=1.0, inertia=(inertia[0], 0, inertia[1], 0, 0, inertia[2]), name="body")
    return scene.build()


def crossings(values, timestep):
    """Times at which a sequence passes zero, linearly interpolated."""
    i = np.flatnonzero(np.sign(values[1:]) * np.sign(values[:-1]) < 0)
    return (i + values[i] / (values[i] - values[i + 1])) * timestep


@pytest.mark.parametrize(("height", "expected"), [(10.0, 5.090095), (20.0, 15.090095)])
def test_free_fall(height, expected):
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY))
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, height))
    _, trajectory = simulate(scene.build(), 1.0)
    assert trajectory.q[-1, 2] == pytest.approx(expected, abs=1e-10)  # z0 - g h^2 n (n + 1) / 2


PENDULUM = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body><joint name="hinge" axis="0 1 0"/>
  <inertial pos="0 0 -{l}" mass="1" diaginertia="1e-10 1e-10 1e-10"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("length", [1.0, 0.4])
def test_period_of_a_point_pendulum_from_90_degrees(length):
    model = coulomb.load(PENDULUM.format(l=length))
    sim = coulomb.Simulator(model, timestep=1e-3)
    trajectory = sim.rollout([math.pi / 2], [0.0], steps=3100)
    times = crossings(trajectory.q.ravel(), 1e-3)
    expected = 2.367842 * math.sqrt(length)  # 4 K(sin 45) sqrt(l / g)
    assert times[2] - times[0] == pytest.approx(expected, rel=1e-5)


SPRING = """<mujoco><option gravity="0 0 0"/><worldbody><body><joint type="slide" axis="1 0 0" stiffness="{k}" damping="{c}"/>
  <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(("k", "c"), [(100, 2), (50, 1)])
def test_damped_spring(k, c):
    model = coulomb.load(SPRING.format(k=k, c=c))
    trajectory = coulomb.Simulator(model, timestep=1e-3).rollout([0.1], [0.0], steps=1000)
    w = math.sqrt(k - c * c / 4)
    exact = 0.1 * math.exp(-c / 2) * (math.cos(w) + c / (2 * w) * math.sin(w))
    if (k, c) == (100, 2):
        assert exact == pytest.approx(-0.0336852, abs=1e-7)
    assert trajectory.q.ravel()[-1] == pytest.approx(exact, abs=2e-3)  # first order


@pytest.mark.parametrize("spin", [1.0, 0.5])
def test_a_symmetric_top_repeats_its_body_rates(spin):
    model = free_body((1, 1, 2))
    period = 2 * math.pi / spin  # (I3 - I1) / I1 w3
    rates = np.array([0.1, 0, spin])
    _, trajectory = simulate(model, period + 2e-3, v=[0, 0, 0, *rates])
    times = np.arange(trajectory.steps + 1) * 1e-3
    at_period = [np.interp(period, times, trajectory.v[:, 3 + i]) for i in range(3)]
    assert at_period == pytest.approx(rates, abs=5e-4)


def test_the_middle_axis_turns_over():
    model = free_body((1, 2, 3))
    _, trajectory = simulate(model, 8.0, v=[0, 0, 0, 0.1, 2, 0])
    assert crossings(trajectory.v[:, 4], 1e-3)[0] == pytest.approx(3.793118, rel=1e-3)
    assert crossings(trajectory.v[1:, 5], 1e-3)[0] == pytest.approx(
        7.586237, rel=1e-3
    )  # where the body is at (.1, -2, 0)
    assert trajectory.v[7586, 4] < -1.9
