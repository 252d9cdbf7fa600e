"""Fast, spinning bodies of all shapes in a closed room of thin walls: nothing leaves it, nothing sinks beyond the tolerance.

COULOMB_TUNNELLING_SCENES: how many scenes (default 1000; 10,000 take two minutes). A failure names the seed of its scene.
"""

import os

import numpy as np
import pytest

import coulomb

SCENES = int(os.environ.get("COULOMB_TUNNELLING_SCENES", "1000"))
BATCH = 50
TOLERANCE = 1e-5
HALF = 1.0  # of the room


def add_walls(scene, thickness, material):
    for axis in range(3):
        for side in (-1, 1):
            size, position = np.full(3, 2 * HALF + 2 * thickness), np.zeros(3)
            size[axis], position[axis] = thickness, side * (HALF + thickness / 2)
            scene.add_box(size, position=position, fixed=True, name=f"wall {axis} {side}", **material)


def add_body(scene, random, r, where):
    """A solid within radius r; thin ones too."""
    pick = random.integers(6)
    if pick == 0:
        return scene.add_sphere(r, **where)
    if pick == 1:
        return scene.add_box(r * random.uniform(0.05, 1.1, 3), **where)
    if pick == 2:
        return scene.add_capsule(r * random.uniform(0.05, 0.5), r * random.uniform(0.1, 1), **where)
    if pick == 3:
        return scene.add_cylinder(r * random.uniform(0.1, 0.8), r * random.uniform(0.1, 1.1), **where)
    if pick == 4:
        return scene.add_ellipsoid(r * random.uniform(0.2, 1, 3), **where)
    points = random.normal(size=(random.integers(4, 12), 3))
    return scene.add_mesh(r * points / np.linalg.norm(points, axis=1)[:, None], **where)


def room(seed):
    """(model, q, v): up to three bodies, to 300 m/s and 100 rad/s, in a room whose walls are 1 mm to 10 cm thick."""
    random = np.random.default_rng(seed)
    scene = coulomb.Scene(gravity=(0, 0, -9.81))
    material = {"restitution": random.choice([0.0, 0.5, 1.0]), "friction": random.choice([0.0, 0.3, 1.0])}
    add_walls(scene, 10 ** random.uniform(-3, -1), material)
    placed = []
    for i in range(random.integers(1, 4)):
        r = 10 ** random.uniform(-2, -0.6)
        for _ in range(100):
            centre = random.uniform(1.8 * r - HALF, HALF - 1.8 * r, 3)
            if all(np.linalg.norm(centre - other) > 1.8 * (r + size) for other, size in placed):
                break
        else:
            continue
        placed.append((centre, r))
        turn = random.normal(size=4)
        where = {"density": 1000.0, "position": centre, "quaternion": turn / np.linalg.norm(turn), "name": f"body {i}"}
        add_body(scene, random, r, where | material)
    model = scene.build()
    q, v = model.neutral()
    v = v.reshape(-1, 6).copy()
    for body in v:
        for part, fastest in ((body[:3], 2.5), (body[3:], 2.0)):
            direction = random.normal(size=3)
            part[:] = direction / np.linalg.norm(direction) * 10 ** random.uniform(-1, fastest)
    return model, q, v.ravel()


def centres_of_mass(model, q):
    """Of the bodies that move."""
    positions, rotations = model.body_placements(q)
    return (positions + np.einsum("bij,bj->bi", rotations, model.body_com))[model.joint_body]


def depth(probe, q):
    """Deepest overlap at q, by a step of next to no length."""
    probe.reset()
    probe.step(q, np.zeros(probe.model.nv))
    return max((c.depth for c in probe.contacts), default=0.0)


@pytest.mark.parametrize("first", range(0, SCENES, BATCH))
def test_nothing_passes_through_anything(first):
    split = 0
    for seed in range(first, first + BATCH):
        model, q, v = room(seed)
        sim = coulomb.Simulator(model, timestep=0.01, continuous_collision=True, penetration_tolerance=TOLERANCE)
        probe = coulomb.Simulator(model, timestep=1e-9)
        assert depth(probe, q) == 0
        for step in range(3):
            q, v = sim.step(q, v)
            where = f"seed {seed}, step {step}: {sim.status.reason}"
            assert np.isfinite(q).all() and np.isfinite(v).all(), where
            assert depth(probe, q) <= TOLERANCE, where
            assert np.abs(centres_of_mass(model, q)).max() < HALF, where
            split += len(sim.impacts) > 0
    assert split > BATCH / 2


def rough_ground(seed):
    """(model, q, v, height at x, y): a body thrown at a height field, or at a mesh of its triangles without any thickness."""
    random = np.random.default_rng(seed)
    scene = coulomb.Scene(gravity=(0, 0, -9.81))
    material = {"restitution": random.choice([0.0, 0.5, 1.0]), "friction": random.choice([0.0, 0.3, 1.0])}
    spacing, side = 0.2, 21
    heights = random.uniform(0, 0.2, (side, side)) * random.choice([0.1, 0.5, 1])
    if seed % 2:
        scene.add_heightfield(heights, spacing, **material)
    else:
        places = (np.arange(side) - side // 2) * spacing
        x, y = np.meshgrid(places, places)
        first = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).ravel()
        triangles = np.concatenate([first[:, None] + [0, 1, side + 1], first[:, None] + [0, side + 1, side]])
        scene.add_triangle_mesh(np.stack([x, y, heights], -1).reshape(-1, 3), triangles, **material)
    r = 10 ** random.uniform(-1.5, -0.7)
    turn = random.normal(size=4)
    where = {"density": 1000.0, "position": (*random.uniform(-0.5, 0.5, 2), 0.25 + 1.8 * r)}
    add_body(scene, random, r, where | {"quaternion": turn / np.linalg.norm(turn)} | material)
    model = scene.build()
    q, v = model.neutral()
    v[:3] = random.normal(size=3) * 10 ** random.uniform(-1, 1)
    v[2] -= 10 ** random.uniform(0, 2)
    v[3:] = random.normal(size=3) * 10 ** random.uniform(-1, 1.5)

    # Over the triangles of a cell, where the field is cut along the same diagonal.
    def height(x, y):
        column, row = x / spacing + side // 2, y / spacing + side // 2
        i, j = int(np.floor(row)), int(np.floor(column))
        if not (0 <= i < side - 1 and 0 <= j < side - 1):
            return -np.inf
        return heights[i : i + 2, j : j + 2].min()

    return model, q, v, height


@pytest.mark.parametrize("first", range(0, SCENES // 5, BATCH))
def test_nothing_passes_through_rough_ground(first):
    split = 0
    for seed in range(first, first + BATCH):
        model, q, v, height = rough_ground(seed)
        sim = coulomb.Simulator(model, timestep=0.01, continuous_collision=True, penetration_tolerance=TOLERANCE)
        probe = coulomb.Simulator(model, timestep=1e-9)
        assert depth(probe, q) == 0
        for step in range(20):
            q, v = sim.step(q, v)
            where = f"seed {seed}, step {step}: {sim.status.reason}"
            assert np.isfinite(q).all() and np.isfinite(v).all(), where
            assert depth(probe, q) <= TOLERANCE, where
            x, y, z = centres_of_mass(model, q)[0]
            assert z > height(x, y), where
            split += len(sim.impacts) > 0
    assert split > BATCH / 2


def test_a_plain_step_would_pass():
    """The test above can fail: without continuous collision the same bodies leave the room."""
    left = 0
    for seed in range(40):
        model, q, v = room(seed)
        sim = coulomb.Simulator(model, timestep=0.01)
        for _ in range(3):
            q, v = sim.step(q, v)
        left += np.abs(centres_of_mass(model, q)).max() > HALF
    assert left > 10


@pytest.mark.parametrize(("e", "limit"), [(1.0, 8), (0.9, 4)])
def test_the_bound_on_impacts_keeps_bodies_apart(e, limit):
    """A fast ball between two near walls: more impacts than allowed; it slows down, waits, and is never outside."""
    scene = coulomb.Scene(gravity=(0, 0, 0))
    for x in (-0.2, 0.2):
        scene.add_box((0.01, 1, 1), position=(x, 0, 0), fixed=True, restitution=e, friction=0)
    scene.add_sphere(0.15, mass=1.0, position=(0, 0, 0))
    sim = coulomb.Simulator(scene.build(), timestep=0.01, continuous_collision=True, max_impacts=limit)
    q, v = sim.model.neutral()
    q, v = sim.step(q, v + [1000, 0, 0, 0, 0, 0])
    assert "inelastic" in sim.status.reason
    assert len({i.time for i in sim.impacts}) == limit + 1
    assert abs(q[0]) <= 0.045 + TOLERANCE and abs(v[0]) < 1e-9
    assert np.isfinite(sim.derivatives().A).all()


def test_bodies_wait_when_there_are_too_many_impacts():
    """An ellipsoid that rolls fast touches down again and again: after twice max_impacts it waits, safe, and says so."""
    scene = coulomb.Scene()
    scene.add_ground(friction=1.0, restitution=0)
    scene.add_ellipsoid((0.1, 0.2, 0.1), mass=1.0, position=(0, 0, 0.1))
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=0.02, continuous_collision=True, max_impacts=3)
    probe = coulomb.Simulator(model, timestep=1e-9)
    q, v = model.neutral()
    v = v + [0, -10, 0, 100, 0, 0]
    sim.step(q, v)
    sim.freeze_memory(True)
    q1, v1 = sim.step(q, v)
    assert sim.status.reason.startswith("impact_limit") and not sim.status.converged
    assert len({i.time for i in sim.impacts}) == 7
    assert depth(probe, q1) <= TOLERANCE
    assert np.isfinite(v1).all() and abs(v1).max() < 150
    J = sim.derivatives().A
    for k in range(6):
        moved = [sim.step(q, v + s * 1e-6 * np.eye(6)[k]) for s in (1, -1)]
        numeric = np.r_[model.difference(moved[1][0], moved[0][0]), moved[0][1] - moved[1][1]] / 2e-6
        assert J[:, 6 + k] == pytest.approx(numeric, rel=1e-4, abs=1e-4 * np.abs(J).max())
    sim.freeze_memory(False)
    for _ in range(20):  # and goes on from there
        q1, v1 = sim.step(q1, v1)
        assert depth(probe, q1) <= TOLERANCE
    assert np.linalg.norm(q1[:3] - q[:3]) > 0.1
