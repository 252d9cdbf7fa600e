"""Known answers of one contact, in scenes turned as a whole, in another order of bodies, by verbs and by MJCF, with other shapes."""

import math

import numpy as np
import pytest

import coulomb
from scenes.basics import GRAVITY, about, semi_implicit_distance
from scenes.frames import VARIANTS, run

BLOCKS = {"box": ("box", (0.2, 0.3, 0.1)), "mesh": ("mesh", (0.2, 0.3, 0.1)), "cylinder": ("cylinder", (0.12, 0.1))}


@pytest.fixture(params=VARIANTS, ids=VARIANTS.keys())
def world(request):
    return VARIANTS[request.param]()


def slope(world, degrees, friction):
    """Adds a plane that falls along +x; returns its normal, the direction down it and the attitude on it."""
    a = math.radians(degrees)
    normal = np.array([math.sin(a), 0, math.cos(a)])
    world.plane(friction, normal)
    return a, normal, np.array([math.cos(a), 0, -math.sin(a)]), about("y", a)


@pytest.mark.parametrize("shape", BLOCKS)
@pytest.mark.parametrize(("degrees", "friction", "mass", "gravity"), [(20, 0.5, 1.0, 9.81), (35, 0.9, 7.0, 1.62)])
def test_a_block_rests_on_a_slope(world, shape, degrees, friction, mass, gravity):
    world.gravity = (0, 0, -gravity)
    kind, size = BLOCKS[shape]
    a, normal, down, attitude = slope(world, degrees, friction)
    world.body("block", kind, size, mass, 0.05 * normal, attitude, friction=0.1)
    model, q, v = world.build()
    sim, q1, _ = run(model, q, v, 500)
    assert np.abs(q1 - q).max() < 1e-8
    f = world.force(sim, on="block")
    assert -f @ down == pytest.approx(mass * gravity * math.sin(a), rel=1e-6)
    assert f @ normal == pytest.approx(mass * gravity * math.cos(a), rel=1e-6)


@pytest.mark.parametrize("shape", BLOCKS)
@pytest.mark.parametrize(("degrees", "friction", "mass", "gravity"), [(30, 0.2, 1.0, 9.81), (50, 0.7, 0.3, 3.7)])
def test_a_block_slides_down_a_slope(world, shape, degrees, friction, mass, gravity):
    world.gravity = (0, 0, -gravity)
    kind, size = BLOCKS[shape]
    a, normal, down, attitude = slope(world, degrees, friction)
    world.body("block", kind, size, mass, 0.05 * normal, attitude, friction=0.1)
    model, q, v = world.build()
    _, q1, v1 = run(model, q, v, 400)
    acceleration = gravity * (math.sin(a) - friction * math.cos(a))
    moved = world.place(q1, "block") - world.place(q, "block")
    assert moved @ down == pytest.approx(acceleration * 0.4 * 0.401 / 2, abs=1e-6)
    assert moved @ normal == pytest.approx(0, abs=1e-6) and moved[1] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("shape", ["box", "mesh"])
@pytest.mark.parametrize(("speed", "friction", "heading"), [(2.0, 0.3, 45), (1.3, 0.8, 200), (0.5, 0.05, 15)])
def test_a_slide_stops(world, shape, speed, friction, heading):
    kind, size = BLOCKS[shape]
    along = np.array([math.cos(math.radians(heading)), math.sin(math.radians(heading)), 0])
    world.plane(friction)
    # As wide as long, and low: a block does not turn while it slides, whatever its heading.
    world.body("block", kind, (0.2, 0.2, 0.02), 2.0, (0, 0, 0.01), velocity=[*(speed * along), 0, 0, 0])
    model, q, v = world.build()
    _, q1, v1 = run(model, q, v, round(1.05 * speed / (friction * GRAVITY) / 1e-3) + 2)
    moved = world.place(q1, "block") - world.place(q, "block")
    assert moved @ along == pytest.approx(semi_implicit_distance(speed, friction * GRAVITY, 1e-3), abs=1e-6)
    assert np.cross(moved, along) == pytest.approx(np.zeros(3), abs=1e-8)
    assert np.abs(v1).max() < 1e-9


@pytest.mark.parametrize("shape", BLOCKS)
@pytest.mark.parametrize(
    ("share", "friction", "mass", "heading"),
    [(0.99, 0.3, 1, 0), (1.01, 0.3, 1, 75), (0.99, 1.2, 5, 130), (1.01, 1.2, 5, 280)],
)
def test_a_push_at_the_border_of_the_cone(world, shape, share, friction, mass, heading):
    kind, size = BLOCKS[shape]
    along = np.array([math.cos(math.radians(heading)), math.sin(math.radians(heading)), 0])
    world.plane(friction)
    world.body("block", kind, size, float(mass), (0, 0, 0.05))
    model, q, v = world.build()
    # In the plane of the contacts, so that the push turns nothing over.
    push = share * friction * mass * GRAVITY * along
    fext = world.wrench(model, "block", push, np.cross([0, 0, -0.05], push))
    _, _, v1 = run(model, q, v, 100, fext=fext)
    excess = max(0.0, share - 1) * friction * GRAVITY
    assert world.velocity(v1, "block")[:3] / 0.1 == pytest.approx(excess * along, abs=1e-6)


@pytest.mark.parametrize(("push", "masses", "friction"), [(20.0, (1.0, 3.0), 0.2), (80.0, (5.0, 0.5, 4.0), 0.35)])
@pytest.mark.parametrize("shape", ["box", "mesh"])
def test_pushed_blocks(world, shape, push, masses, friction):
    world.plane(friction)
    for i, mass in enumerate(masses):
        world.body(f"block{i}", shape, (0.2, 0.2, 0.1), mass, (0.2 * i, 0, 0.05), friction=0.0)
    model, q, v = world.build()
    sim, _, v1 = run(model, q, v, 100, fext=world.wrench(model, "block0", (push, 0, 0)))
    a = push / sum(masses) - friction * GRAVITY
    for i in range(len(masses)):
        assert world.velocity(v1, f"block{i}")[0] / 0.1 == pytest.approx(a, rel=1e-6)
        if i:
            assert world.force(sim, on=f"block{i}", by=f"block{i - 1}")[0] == pytest.approx(
                sum(masses[i:]) * (a + friction * GRAVITY), rel=1e-6
            )


ROUND = {
    "sphere": ("sphere", (0.1,), 2 / 5),
    "ellipsoid": ("ellipsoid", (0.1, 0.1, 0.1), 2 / 5),
    "cylinder": ("cylinder", (0.1, 0.3), 1 / 2),
}


@pytest.mark.parametrize("shape", ROUND)
@pytest.mark.parametrize(
    ("degrees", "friction", "gravity"), [(15, 1.0, 9.81), (25, 0.9, 3.0), (30, 0.05, 9.81), (40, 0.15, 20.0)]
)
def test_round_things_roll_or_slip_down_a_slope(world, shape, degrees, friction, gravity):
    world.gravity = (0, 0, -gravity)
    kind, size, k = ROUND[shape]  # inertia k m r^2
    a, normal, down, _ = slope(world, degrees, friction)
    world.body("ball", kind, size, 1.3, 0.1 * normal, about("x", math.pi / 2), friction=0.0)
    model, q, v = world.build()
    sim, _, v1 = run(model, q, v, 200)
    rolls = friction >= math.tan(a) * k / (1 + k)
    assert rolls == (friction > 0.5)
    acceleration = gravity * (math.sin(a) / (1 + k) if rolls else math.sin(a) - friction * math.cos(a))
    spin = acceleration if rolls else friction * gravity * math.cos(a) / k
    out = world.velocity(v1, "ball")
    assert out[:3] / 0.2 == pytest.approx(acceleration * down, rel=1e-4, abs=1e-6)
    assert 0.1 * np.linalg.norm(out[3:]) / 0.2 == pytest.approx(spin, rel=1e-4)
    assert -world.force(sim, on="ball") @ down == pytest.approx(1.3 * spin * k, rel=1e-4)


@pytest.mark.parametrize(
    ("speed", "friction", "radius", "heading"), [(2.0, 0.2, 0.1, 0), (3.0, 0.7, 0.4, 120), (0.7, 0.1, 0.02, 210)]
)
@pytest.mark.parametrize("shape", ["sphere", "ellipsoid"])
def test_a_slide_becomes_rolling(world, shape, speed, friction, radius, heading):
    along = np.array([math.cos(math.radians(heading)), math.sin(math.radians(heading)), 0])
    world.plane(friction)
    size = radius if shape == "sphere" else (radius,) * 3
    world.body("ball", shape, size, 1.0, (0, 0, radius), velocity=[*(speed * along), 0, 0, 0])
    model, q, v = world.build()
    time = 2 * speed / (7 * friction * GRAVITY)
    sim = coulomb.Simulator(model, 1e-3)
    first = None
    for k in range(1, round(1.3 * time / 1e-3)):
        q, v = sim.step(q, v)
        assert sim.status.converged
        if first is None and sim.contacts[0].mode == "sticking":
            first, place, velocity = k, world.place(q, "ball") @ along, world.velocity(v, "ball")[:3] @ along
    assert first * 1e-3 == pytest.approx(time, abs=1e-3)
    assert world.velocity(v, "ball")[:3] == pytest.approx(5 / 7 * speed * along, abs=1e-8)
    assert place - velocity * (first * 1e-3 - time) == pytest.approx(
        12 / 49 * speed**2 / (friction * GRAVITY), abs=1e-3
    )


@pytest.mark.parametrize(
    ("width", "height", "kind"), [(0.2, 0.6, "box"), (0.2, 0.6, "mesh"), (0.25, 0.5, "cylinder"), (0.3, 0.3, "box")]
)
@pytest.mark.parametrize("falls", [False, True])
def test_tipping(world, width, height, kind, falls):
    limit = math.degrees(math.atan(width / height))
    a, normal, down, attitude = slope(world, limit + (0.27 if falls else -0.24), 1.5)
    if kind == "cylinder":  # on a rim of contact points: one must lie straight down the slope
        size = (width / 2, height)
    else:
        size = (width, width, height)
    world.body("tower", kind, size, 2.0, height / 2 * normal, attitude)
    model, q, v = world.build()
    _, q1, v1 = run(model, q, v, 800)
    turned = 2 * math.acos(min(1.0, abs(world.attitude(q1, "tower") @ world.attitude(q, "tower"))))
    assert (turned > 0.02) if falls else (turned < 1e-6)
