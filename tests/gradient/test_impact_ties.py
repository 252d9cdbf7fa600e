"""Split steps in which several points are hit at the same time: which comes first depends on the direction in which the state changes, so that
no Jacobian is right, and `ambiguous` says so; where they stay together, they are one impact and nothing is ambiguous."""

import numpy as np
import pytest

import coulomb
from scenes.random_scenes import build

TIMESTEP = 0.01


def flat_box(e, tilt=0.0):
    """A box that comes down on its face, 2 mm above the ground, or on an edge or a corner."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5, restitution=e)
    half = np.array([0.1, 0.1, 0.1])
    # Twice the tilt about x and y lowers one corner alone.
    axis = np.array([1.0, 0.3, 0.0]) * tilt
    angle = np.linalg.norm(axis)
    quaternion = np.r_[np.cos(angle / 2), np.sin(angle / 2) * axis / (angle or 1)]
    scene.add_box(2 * half, mass=1.0, quaternion=quaternion, name="box")
    model = scene.build()
    q, v = model.neutral()
    corners = [half * (x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    lowest = min(rotated(quaternion, c)[2] for c in corners)
    q[2] = 0.002 - lowest
    v[2] = -1.0
    return model, q, v


def rotated(quaternion, x):
    w, u = quaternion[0], quaternion[1:]
    return x + 2 * np.cross(u, np.cross(u, x) + w * x)


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize("e", [0.0, 0.5])
def test_a_box_that_falls_flat_on_its_face_is_ambiguous(e, contact):
    model, q, v = flat_box(e)
    sim = coulomb.Simulator(model, timestep=TIMESTEP, contact=contact, continuous_collision=True)
    sim.step(q, v)
    assert len({round(impact.time, 12) for impact in sim.impacts}) == 1
    assert sim.derivatives().ambiguous
    assert sim.vjp(np.zeros(6), np.ones(6)).ambiguous

    # The two sides of a tilt do differ, and neither is the other one's opposite.
    h = 1e-6
    sides = []
    for sign in (1, -1):
        sim.reset()
        sides.append(sim.step(model.integrate(q, np.array([0, 0, 0, sign * h, 0, 0])), v)[1])
    sim.reset()
    middle = sim.step(q, v)[1]
    kink = np.abs((sides[0] - middle) / h - (middle - sides[1]) / h).max()
    assert kink > 1


@pytest.mark.parametrize("e", [0.0, 0.5])
def test_one_that_falls_on_a_corner_is_not(e):
    model, q, v = flat_box(e, tilt=0.3)
    sim = coulomb.Simulator(model, timestep=TIMESTEP, continuous_collision=True)
    sim.step(q, v)
    assert sim.impacts and not sim.derivatives().ambiguous


def test_points_that_stay_together_are_one_impact():
    """A box that slides up and down without turning has all its corners come down at once, whatever changes."""
    model = coulomb.load(
        "<mujoco><worldbody><geom type='plane' size='1 1 1'/><body name='box' pos='0 0 .102'>"
        "<joint type='slide' axis='0 0 1'/><geom type='box' size='.1 .1 .1' mass='1'/></body></worldbody></mujoco>"
    )
    sim = coulomb.Simulator(model, timestep=TIMESTEP, continuous_collision=True)
    q, v = model.neutral()
    v[:] = -1.0
    sim.step(q, v)
    assert len(sim.impacts) > 1 and not sim.derivatives().ambiguous


def test_two_corners_of_a_box_that_is_pushed_where_it_stands():
    """Found by a sweep of random scenes: off by a factor of ten from both sides, and nothing was said."""
    case = build(13, "split boxed")
    sim = coulomb.Simulator(case.model, **case.options)
    if case.memory is not None:
        sim.memory = case.memory
    sim.step(case.q, case.v, case.u, case.tau)
    assert sim.derivatives().ambiguous
