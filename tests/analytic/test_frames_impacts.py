"""Known answers of impacts, in turned scenes with other shapes than those of test_impacts.py."""

import math

import numpy as np
import pytest

import coulomb
from scenes.basics import about
from scenes.frames import VARIANTS, World, run


@pytest.fixture(params=["turned", "turned-reverse"])
def world(request):
    """Without gravity; by verbs, since MJCF has no coefficient of restitution."""
    frame = VARIANTS["turned"]().frame
    return World(frame=frame, reverse=request.param == "turned-reverse", gravity=(0, 0, 0))


FACES = {
    "sphere": (0.1,),
    "box": (0.2, 0.3, 0.25),
    "mesh": (0.2, 0.2, 0.2),
    "capsule": (0.1, 0.3),
    "ellipsoid": (0.1, 0.2, 0.15),
}
PAIRS = ["box-box", "mesh-box", "sphere-box", "capsule-capsule", "capsule-sphere", "ellipsoid-mesh", "capsule-mesh"]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(
    ("masses", "speeds", "restitution", "gap"),
    [((1, 3), (2, 0), 0.5, 0.0), ((1, 1000), (1, 0), 1.0, 0.005), ((4, 0.01), (1, -2), 0.3, 0.001), ((1, 1), (1, 0), 0, 0.01)],
)  # fmt: skip
def test_head_on(world, pair, masses, speeds, restitution, gap):
    """On one, two or four contact points: those of a face must not count more than once."""
    for i, kind in enumerate(pair.split("-")):
        place = {"position": ((0.2 + gap) * i, 0, 0), "velocity": (speeds[i], 0, 0, 0, 0, 0)}
        world.body(f"body{i}", kind, FACES[kind], masses[i], restitution=restitution, friction=0.4, **place)
    _, _, v = run(*world.build(), 30)
    momentum = masses[0] * speeds[0] + masses[1] * speeds[1]
    for i in range(2):
        after = (momentum + masses[1 - i] * restitution * (speeds[1 - i] - speeds[i])) / sum(masses)
        assert world.velocity(v, f"body{i}") == pytest.approx([after, 0, 0, 0, 0, 0], abs=1e-9)


@pytest.mark.parametrize("shape", ["sphere", "ellipsoid"])
@pytest.mark.parametrize(
    ("along", "down", "restitution", "friction", "mass", "heading"),
    [(4, 3, 0.8, 0.1, 1, 0), (4, 3, 0.8, 1, 0.2, 200), (1, 2, 0.5, 0.05, 1, 100), (3, 0.7, 1, 0.5, 1, 20), (2, 5, 0, 0.03, 2, 0)],
)  # fmt: skip
def test_a_ball_hits_the_floor_obliquely(world, shape, along, down, restitution, friction, mass, heading):
    direction = np.array([math.cos(math.radians(heading)), math.sin(math.radians(heading)), 0])
    size = 0.1 if shape == "sphere" else (0.1, 0.1, 0.1)
    world.plane(friction, restitution=restitution)
    velocity = (*(along * direction - [0, 0, down]), 0, 0, 0)
    world.body("ball", shape, size, mass, (0, 0, 0.1), velocity=velocity)
    _, _, v = run(*world.build(), 1)
    lost = min(friction * (1 + restitution) * down, 2 / 7 * along)  # slips to the end, or leaves rolling
    after = world.velocity(v, "ball")
    assert after[:3] == pytest.approx((along - lost) * direction + [0, 0, restitution * down], abs=1e-9)
    assert 0.1 * after[3:] == pytest.approx(2.5 * lost * np.cross([0, 0, 1], direction), abs=1e-9)


@pytest.mark.parametrize("kind", ["capsule", "box", "mesh", "cylinder"])
@pytest.mark.parametrize(("degrees", "speed"), [(30, 1.0), (50, 2.0), (70, 0.3)])
def test_the_end_of_a_rod_hits_the_floor(world, kind, degrees, speed):
    half, radius, angle = 0.5, 1e-3, math.radians(degrees)
    inertia = half**2 / 3
    c, s = math.cos(angle), math.sin(angle)
    size = (2 * radius, 2 * radius, 2 * half) if kind in ("box", "mesh") else (radius, 2 * half)
    round_end = kind == "capsule"
    height = half * s + radius * (1 if round_end else c)
    lever = half * c - (0 if round_end else radius * s)  # from the centre to the point that touches
    world.plane(0.0, restitution=0.0)
    world.body(
        "rod", kind, size, 1.0, (0, 0, height - 1e-9), about("y", math.pi / 2 - angle), velocity=(0, 0, -speed, 0, 0, 0),
        inertia=(inertia, 0, inertia, 0, 0, 1e-6),
    )  # fmt: skip
    model, q, v = world.build()
    sim = coulomb.Simulator(model, timestep=1e-3, baumgarte=0)
    _, v1 = sim.step(q, v)
    assert sim.status.converged
    impulse = speed / (1 + lever**2 / inertia)
    assert world.force(sim, on="rod") * sim.timestep == pytest.approx([0, 0, impulse], abs=1e-8)
    assert abs(world.velocity(v1, "rod")[4]) == pytest.approx(lever * impulse / inertia, abs=1e-8)
