"""What stands, stops and falls, in scenes turned as a whole, by verbs and by MJCF, with other shapes than those of test_statics.py."""

import math

import numpy as np
import pytest

import coulomb
from scenes.basics import GRAVITY, about
from scenes.frames import VARIANTS, run


@pytest.fixture(params=VARIANTS, ids=VARIANTS.keys())
def world(request):
    return VARIANTS[request.param]()


def turned(world, name, before, after):
    """Angle (rad) between two attitudes of a body."""
    return 2 * math.acos(min(1.0, abs(world.attitude(before, name) @ world.attitude(after, name))))


BRICKS = {"box": (0.2, 0.2, 0.2), "mesh": (0.2, 0.2, 0.2), "cylinder": (0.1, 0.2)}


@pytest.mark.parametrize("shape", BRICKS)
@pytest.mark.parametrize("masses", [[1.0] * 10, [3.0, 1.0, 4.0, 1.0, 5.0], [1.0, 1000.0], [1e-2, 10.0], [1000.0, 1.0]])
def test_a_stack_carries_its_weight(world, shape, masses):
    world.plane(0.5)
    for i, mass in enumerate(masses):
        world.body(f"brick{i}", shape, BRICKS[shape], mass, (0, 0, 0.2 * i + 0.1), friction=0.5)
    model, q, v = world.build()
    sim, q1, _ = run(model, q, v, 200)
    assert np.abs(q1 - q).max() < 1e-6
    for i in range(len(masses)):
        force = world.force(sim, on=f"brick{i}", by=f"brick{i - 1}" if i else "world")
        assert force[2] == pytest.approx(GRAVITY * sum(masses[i:]), rel=1e-6)
        assert np.abs(force[:2]).max() < 1e-5 * GRAVITY * sum(masses)


@pytest.mark.parametrize(("width", "height", "kind"), [(0.2, 0.6, "mesh"), (0.25, 0.5, "cylinder"), (0.3, 0.3, "box")])
@pytest.mark.parametrize("falls", [False, True])
def test_a_tower_tips_at_its_diagonal(world, width, height, kind, falls):
    """Of a cylinder, one of the contact points on its rim must lie straight down the slope."""
    angle = math.atan(width / height) + math.radians(0.27 if falls else -0.24)
    normal = np.array([math.sin(angle), 0, math.cos(angle)])
    world.plane(1.5, normal)
    size = (width / 2, height) if kind == "cylinder" else (width, width, height)
    world.body("tower", kind, size, 2.0, height / 2 * normal, about("y", angle))
    model, q, v = world.build()
    _, q1, _ = run(model, q, v, 600)
    angle_turned = turned(world, "tower", q, q1)
    assert (angle_turned > 0.01) if falls else (angle_turned < 1e-6)


@pytest.mark.parametrize("kind", ["capsule", "box", "mesh"])
@pytest.mark.parametrize("slides", [False, True])
@pytest.mark.parametrize("degrees", [60, 45])
def test_a_ladder_at_a_smooth_wall(world, kind, slides, degrees):
    half, radius, angle = 1.0, 1e-3, math.radians(degrees)
    least = 1 / (2 * math.tan(angle))
    world.plane(least * (0.97 if slides else 1.04))
    world.plane(0.0, normal=(-1, 0, 0))
    c, s = math.cos(angle), math.sin(angle)
    round_end = kind == "capsule"
    x, z = (half * c + radius, half * s + radius) if round_end else (half * c + radius * s, half * s + radius * c)
    size = (radius, 2 * half) if round_end else (2 * radius, 2 * radius, 2 * half)
    world.body("ladder", kind, size, 3.0, (-x, 0, z), about("y", math.pi / 2 - angle), friction=0.0)
    model, q, v = world.build()
    _, q1, _ = run(model, q, v, 500)
    angle_turned = turned(world, "ladder", q, q1)
    assert (angle_turned > 3e-3) if slides else (angle_turned < 1e-6)


@pytest.mark.parametrize("shape", ["box", "mesh"])
@pytest.mark.parametrize(
    ("side", "spin", "friction", "mass"), [(0.2, 5.0, 0.3, 1.0), (0.1, 8.0, 0.5, 4.0), (0.4, -2.0, 0.2, 0.1)]
)
def test_a_spinning_box_stops(world, shape, side, spin, friction, mass):
    world.plane(friction)
    world.body("box", shape, (side, side, 0.05), mass, (0, 0, 0.025), velocity=(0, 0, 0, 0, 0, spin))
    model, q, v = world.build()
    time = abs(spin) * (side**2 / 6) / (friction * GRAVITY * side / math.sqrt(2))  # the weight is on the corners
    sim, stopped = coulomb.Simulator(model, 1e-3), None
    for k in range(1, round(1.2 * time / 1e-3) + 3):
        q, v = sim.step(q, v)
        assert sim.status.converged
        if stopped is None and abs(v[5]) < 1e-9:
            stopped = k * 1e-3
    assert stopped == pytest.approx(time, abs=max(0.02 * time, 1e-3))
    assert np.abs(v[:3]).max() < 1e-9
