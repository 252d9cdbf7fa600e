"""Friction over a floor of tiles is that over one floor.

Where the border of a tile crosses a body's face, both tiles have a point of contact. Those points hold nothing that the body's own
corners do not hold, but they would take their share of the force, and turn and brake the body by where the borders are.
"""

import math

import numpy as np
import pytest

import coulomb

TIMESTEP = 2e-3
SHAPES = ["box", "plate", "lying capsule", "lying cylinder", "standing cylinder", "ball", "hull"]
SETTINGS = {
    "ncp": ({"contact": "ncp"}, {}),
    "lcp": ({"contact": "lcp"}, {}),
    "soft": ({}, {"contact_stiffness": 2e4, "contact_dashpot": 100.0}),
    "split": ({"continuous_collision": True}, {}),
}


def upright(angle):
    return np.array([math.cos(angle / 2), 0, 0, math.sin(angle / 2)])


def lying(angle):
    c, s = math.cos(angle / 2), math.sin(angle / 2)
    return math.sqrt(0.5) * np.array([c, -s, c, s])


def product(a, b):
    w = a[0] * b[0] - a[1:] @ b[1:]
    return np.array([w, *(a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:]))])


def rotated(a, x):
    return product(product(a, np.array([0, *x])), a * np.array([1, -1, -1, -1]))[1:]


def add_floor(scene, tile=None, turned=0.0, rises=(0.0,), gap=0.0, size=1.2, **material):
    """Top at z = 0, the middle a corner of four tiles; without `tile`: one box."""
    if tile is None:
        common = {"position": (0, 0, -0.1), "quaternion": upright(turned), "name": "floor"}
        scene.add_box((size, size, 0.2), fixed=True, **common, **material)
        return
    n = round(size / tile / 2)
    c, s = math.cos(turned), math.sin(turned)
    for k, (i, j) in enumerate((i, j) for i in range(-n, n) for j in range(-n, n)):
        x, y = (i + 0.5) * tile, (j + 0.5) * tile
        where = (c * x - s * y, s * x + c * y, -0.1 + rises[k % len(rises)])
        scene.add_box((tile - gap, tile - gap, 0.2), fixed=True, position=where, quaternion=upright(turned), **material)


def add_body(scene, shape, x=0.0, y=0.0, angle=0.3, sunk=0.0, **material):
    common = {"mass": 1.0, "name": "body", **material}
    if shape == "box":
        scene.add_box((0.1, 0.1, 0.1), position=(x, y, 0.05 - sunk), quaternion=upright(angle), **common)
    elif shape == "plate":
        scene.add_box((0.3, 0.2, 0.04), position=(x, y, 0.02 - sunk), quaternion=upright(angle), **common)
    elif shape == "lying capsule":
        scene.add_capsule(0.05, 0.1, position=(x, y, 0.05 - sunk), quaternion=lying(angle), **common)
    elif shape == "lying cylinder":
        scene.add_cylinder(0.05, 0.1, position=(x, y, 0.05 - sunk), quaternion=lying(angle), **common)
    elif shape == "standing cylinder":
        scene.add_cylinder(0.05, 0.1, position=(x, y, 0.05 - sunk), quaternion=upright(angle), **common)
    elif shape == "ball":
        scene.add_sphere(0.05, position=(x, y, 0.05 - sunk), **common)
    elif shape == "hull":
        points = [
            (0.05 * math.cos(t), 0.05 * math.sin(t), z) for t in np.arange(4) * math.pi / 2 for z in (-0.05, 0.05)
        ]
        scene.add_mesh(points, position=(x, y, 0.05 - sunk), quaternion=upright(angle), **common)


def velocities(scene, velocity, steps=300, **options):
    sim = coulomb.Simulator(scene.build(), timestep=TIMESTEP, **options)
    q, v = sim.model.neutral()
    v[-6:] = velocity
    out = []
    for _ in range(steps):
        q, v = sim.step(q, v)
        assert sim.status.converged
        out.append(v[-6:])
    return np.array(out)


def largest_difference(shape, seed, options, material, **floor):
    """Between tiles and one floor, m/s and rad/s."""
    rng = np.random.default_rng(seed)
    where = dict(zip("xy", rng.uniform(-0.05, 0.05, 2), strict=True))
    velocity = [rng.uniform(0.4, 1.0), rng.uniform(-0.5, 0.5), 0, 0, 0, rng.uniform(-3, 3)]
    ways = []
    for tiles in (floor, {"turned": floor["turned"]}):
        scene = coulomb.Scene()
        add_floor(scene, friction=0.3, **tiles, **material)
        add_body(scene, shape, **where, friction=0.3, **material)
        ways.append(velocities(scene, velocity, **options))
    return np.abs(ways[0] - ways[1]).max()


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("shape", SHAPES)
def test_what_slides_over_tiles_moves_as_on_one_floor(shape, setting):
    options, material = SETTINGS[setting]
    for tile, turned, seed in [(0.1, 0.4, 0), (0.1, 0.0, 1), (0.3, 0.7, 2), (0.3, 0.0, 0), (0.6, 0.0, 3)]:
        assert largest_difference(shape, seed, options, material, tile=tile, turned=turned) < 1e-6


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("rise", [1e-12, 1e-9])
def test_a_rise_within_rounding_changes_nothing(rise, setting):
    """Corners on tiles of other heights would bear by turns."""
    options, material = SETTINGS[setting]
    rises = rise * np.random.default_rng(0).uniform(-1, 1, 7)
    for shape in SHAPES:
        difference = largest_difference(shape, 0, options, material, tile=0.3, turned=0.4, rises=rises)
        assert difference < 1e-8 + 4 * rise / TIMESTEP


@pytest.mark.parametrize("shape", ["box", "plate", "lying capsule", "ball"])
@pytest.mark.parametrize("setting", ["ncp", "lcp"])
def test_a_gap_within_rounding_changes_nothing(setting, shape):
    options, material = SETTINGS[setting]
    for seed in range(2):
        assert largest_difference(shape, seed, options, material, tile=0.1, turned=0.0, gap=1e-7) < 1e-6


def test_tiles_of_different_shapes_are_one_floor():
    """Their normals are equal to rounding."""
    ways = []
    for mixed in (True, False):
        scene = coulomb.Scene()
        if mixed:
            turned = 0.4
            for k in range(4):
                along, across = [(1, 1), (-1, 1), (-1, -1), (1, -1)][k]
                c, s = 0.3 * math.cos(turned), 0.3 * math.sin(turned)
                where = (c * along - s * across, s * along + c * across, -0.1)
                if k % 2 == 0:
                    angle = turned + k * math.pi / 2
                    scene.add_box((0.6, 0.6, 0.2), fixed=True, position=where, quaternion=upright(angle), friction=0.3)
                else:
                    points = [(x, y, z) for x in (-0.3, 0.3) for y in (-0.3, 0.3) for z in (-0.1, 0.1)]
                    tilt = np.array([0.6, 0.8, 0, 0])
                    turn = np.array([0.6, -0.8, 0, 0])
                    scene.add_mesh(
                        [rotated(turn, p) for p in points],
                        fixed=True,
                        position=where,
                        quaternion=product(upright(turned), tilt),
                        friction=0.3,
                    )
        else:
            add_floor(scene, turned=0.4, friction=0.3)
        add_body(scene, "box", x=-0.1, friction=0.3)
        ways.append(velocities(scene, [0.8, 0.1, 0, 0, 0, 2.0], steps=120))
    np.testing.assert_allclose(ways[0], ways[1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
def test_feet_of_a_frame_on_tiles(contact):
    """One link with four feet, each over tiles of its own."""
    feet = "".join(
        f'<geom type="box" size=".03 .04 .02" pos="{x} {y} .02" mass="1"/>' for x in (-0.2, 0.2) for y in (-0.15, 0.15)
    )
    robot = f'<mujoco><worldbody><body name="frame"><freejoint/>{feet}</body></worldbody></mujoco>'
    ways = []
    for floor in ({"tile": 0.05}, {"tile": 0.3}, {}):
        scene = coulomb.Scene()
        add_floor(scene, friction=1.0, turned=0.2, **floor)
        scene.add_mjcf(robot)
        ways.append(velocities(scene, [0.8, 0.3, 0, 0, 0, 1.0], steps=60, contact=contact))
    np.testing.assert_allclose(ways[0], ways[2], rtol=0, atol=1e-6)
    np.testing.assert_allclose(ways[1], ways[2], rtol=0, atol=1e-6)


@pytest.mark.parametrize("options", [{"contact": "ncp"}, {"contact": "lcp"}, {"continuous_collision": True}])
@pytest.mark.parametrize("shape", ["box", "lying capsule", "standing cylinder"])
def test_a_movable_block_of_two_geometries_is_one_block(shape, options):
    """The block slides as well."""
    whole = '<geom type="box" size=".4 .3 .05" mass="8" friction=".3"/>'
    half = '<geom type="box" size=".2 .3 .05" pos="{} 0 0" mass="4" friction=".3"/>'
    ways = []
    for text in (whole, half.format(-0.2) + half.format(0.2)):
        scene = coulomb.Scene()
        scene.add_mjcf(
            f'<mujoco><worldbody><body name="block" pos="0 0 -.05"><joint type="slide" axis="1 0 0"/>'
            f'<inertial pos="0 0 0" mass="8" diaginertia="1 1 1"/>{text}</body></worldbody></mujoco>'
        )
        add_body(scene, shape, x=-0.1, friction=0.3)
        sim = coulomb.Simulator(scene.build(), timestep=TIMESTEP, **options)
        q, v = sim.model.neutral()
        v[-6:] = [0.7, 0.1, 0, 0, 0, 2.0]
        ways.append([])
        for _ in range(150):
            q, v = sim.step(q, v)
            ways[-1].append(v)
    np.testing.assert_allclose(ways[0], ways[1], rtol=0, atol=1e-6)
    assert ways[0][-1][0] > 0.01


def contacts_of(scene, falls=0.0):
    sim = coulomb.Simulator(scene.build(), timestep=TIMESTEP)
    q, v = sim.model.neutral()
    v[2] = -falls
    sim.step(q, v)
    return sim.contacts


def two_tiles(other_friction=0.3, rise=0.0, gap=0.0):
    scene = coulomb.Scene()
    for i, friction in ((0, 0.3), (1, other_friction)):
        where = ((i - 0.5) * 0.5 + i * gap, 0, -0.1 + i * rise)
        scene.add_box((0.5, 1.0, 0.2), fixed=True, position=where, friction=friction, name=f"tile{i}")
    return scene


def test_what_is_one_floor():
    """Tiles of one plane and one friction. A body that reaches beyond them all has what the tiles have."""
    for floor, x, number in [
        ({}, 0.0, 4),
        ({"gap": 1e-3}, 0.0, 4),  # all corners lie on tiles
        ({"other_friction": 0.4}, 0.0, 8),
        ({"rise": 1e-7}, 0.0, 8),
        ({}, 0.47, 4),  # over one tile and its outer border
    ]:
        scene = two_tiles(**floor)
        add_body(scene, "box", x=x, angle=0.1, sunk=1e-6, friction=0.3)
        assert len(contacts_of(scene)) == number

    # Each point is that of the tile below it.
    scene = two_tiles()
    add_body(scene, "box", angle=0.1, sunk=1e-6, friction=0.3)
    for c in contacts_of(scene):
        below = "tile1" if c.point[0] > 0 else "tile0"
        assert {c.geometry_a, c.geometry_b} == {below, "body"}


def test_tiles_that_lean_by_rounding_are_one_floor():
    """By 5e-6 rad, about the seam on which a ball lies."""
    scene = coulomb.Scene()
    for side, lean in ((-1, 5e-6), (1, 0.0)):
        where = (0.25 * side - 0.1 * lean, 0, -0.1 - 0.25 * side * lean)
        scene.add_box((0.5, 1.0, 0.2), fixed=True, position=where, quaternion=(1, 0, lean / 2, 0), friction=0.3)
    add_body(scene, "ball", sunk=1e-6, friction=0.3)
    assert len(contacts_of(scene)) == 1


def tiles_touched(scene, falls=0.0):
    return {name for c in contacts_of(scene, falls) for name in (c.geometry_a, c.geometry_b) if name != "body"}


def test_a_ridge_is_no_floor():
    """A box that stands with an edge along it, on two slopes of 3 degrees."""
    scene = coulomb.Scene()
    slope = math.radians(3)
    c, s = math.cos(slope), math.sin(slope)
    for side in (-1, 1):
        where = (side * 0.25 * c - side * 0.1 * s, 0, -0.25 * s - 0.1 * c)
        turn = (math.cos(slope / 2), 0, side * math.sin(slope / 2), 0)
        scene.add_box((0.5, 1.0, 0.2), fixed=True, position=where, quaternion=turn, name=f"slope{side}")
    edge = (math.cos(math.pi / 8), 0, math.sin(math.pi / 8), 0)
    scene.add_box((0.1, 0.2, 0.1), mass=1.0, position=(0, 0, 0.05 * math.sqrt(2)), quaternion=edge, name="body")
    assert tiles_touched(scene) == {"slope-1", "slope1"}


def test_a_wide_gap_is_no_seam():
    """A ball that falls deep into the tiles, beside a gap, touches what is on the other side."""
    scene = two_tiles(gap=0.02)
    add_body(scene, "ball", x=-5e-4, sunk=5e-3, friction=0.3)
    assert tiles_touched(scene, falls=1.0) == {"tile0", "tile1"}


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize("shape", ["box", "lying capsule", "standing cylinder", "hull"])
def test_steps_on_a_seam_are_differentiated(shape, contact):
    """By what belongs to one tile, too: a little more friction there is still one floor, and acts on its points."""
    scene = two_tiles()
    add_body(scene, shape, x=0.01, sunk=1e-5, friction=0.1)
    sim = coulomb.Simulator(scene.build(), timestep=TIMESTEP, contact=contact)
    q, v = sim.model.neutral()
    v[:] = [1.0, 0.1, -0.02, 0.01, 0.02, 0.3]
    wrt = ["q", "v", "tau", "friction/tile0", "friction/tile1", "mass/body"]
    report = coulomb.check_gradients(sim, q, v, wrt=wrt + (["size/body"] if shape != "hull" else []))
    assert report.passed and not report.changed, report
    sim.step(q, v)
    d = sim.derivatives(wrt=["friction/tile0", "friction/tile1"])
    assert min(np.abs(d["friction/tile0"]).max(), np.abs(d["friction/tile1"]).max()) > 1e-4


@pytest.mark.parametrize("setting", ["ncp", "lcp", "soft"])
def test_the_derivative_on_tiles_is_that_on_one_floor(setting):
    options, material = SETTINGS[setting]
    for shape in SHAPES:
        found = []
        for floor in ({"tile": 0.3}, {}):
            scene = coulomb.Scene()
            add_floor(scene, friction=0.3, **floor, **material)
            add_body(scene, shape, x=0.01, y=-0.02, sunk=1e-4, friction=0.3, **material)
            sim = coulomb.Simulator(scene.build(), timestep=TIMESTEP, **options)
            q, v = sim.model.neutral()
            v[:] = [1.0, 0.2, -0.02, 0.01, 0.02, 0.3]
            sim.step(q, v)
            found.append(sim.derivatives().A)
        np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-7 * np.abs(found[1]).max())
