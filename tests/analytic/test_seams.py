"""Inner edges stop nobody: what glides over the seam of two tiles, or along a wall of several blocks, keeps its velocity.

At the seam the next tile is touched at its edge, where its side parts the two shapes as well as its top does.
"""

import math

import numpy as np
import pytest

import coulomb

LAWS = ["ncp", "lcp"]


def upright(angle):
    return (math.cos(angle / 2), 0, 0, math.sin(angle / 2))


def add_body(scene, shape, position, turned=0.0, friction=0.0):
    common = {"mass": 1.0, "position": position, "friction": friction, "name": "body"}
    if shape == "box":
        scene.add_box((0.1, 0.1, 0.1), quaternion=upright(turned), **common)
    elif shape == "cylinder":
        scene.add_cylinder(0.05, 0.1, quaternion=upright(turned), **common)
    elif shape == "lying capsule":
        scene.add_capsule(0.05, 0.1, quaternion=(math.sqrt(0.5), 0, math.sqrt(0.5), 0), **common)
    elif shape == "ball":
        scene.add_sphere(0.05, **common)
    elif shape == "hull":
        points = [
            (0.05 * math.cos(t), 0.05 * math.sin(t), z) for t in np.arange(7) * 2 * math.pi / 7 for z in (-0.05, 0.05)
        ]
        scene.add_mesh(points, quaternion=upright(turned), **common)


def add_tiles(scene, kind, rise=0.0, count=3, friction=0.0):
    """Tops at z = 0, the first from x = -.25 to .25, each higher than the one before."""
    for i in range(count):
        where = {"position": (0.5 * i, 0, -0.1 + rise * i), "friction": friction}
        if kind == "movable":
            where["mass"] = 50.0
        else:
            where["fixed"] = True
        if kind == "mesh":
            points = [(x, y, z) for x in (-0.25, 0.25) for y in (-0.5, 0.5) for z in (-0.1, 0.1)]
            scene.add_mesh(points, **where)
        elif kind == "cylinder" and i % 2 == 1:
            scene.add_cylinder(0.3, 0.2, **where)
        else:
            scene.add_box((0.5, 1.0, 0.2), **where)
    if kind == "movable":
        scene.add_box((5, 5, 0.2), fixed=True, position=(0, 0, -0.3), friction=friction)


def largest_change(scene, velocity, timestep, distance=1.1, **options):
    """Of the body's velocity while it goes that far."""
    sim = coulomb.Simulator(scene.build(), timestep=timestep, **options)
    q, v = sim.model.neutral()
    v[-6:-3] = velocity
    start, worst = v[-6:].copy(), 0.0
    for _ in range(int(distance / (np.linalg.norm(velocity) * timestep))):
        q, v = sim.step(q, v)
        assert sim.status.converged
        worst = max(worst, np.abs(v[-6:] - start).max())
    return worst


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize("kind", ["box", "mesh", "movable"])
@pytest.mark.parametrize("shape", ["box", "cylinder", "lying capsule", "ball", "hull"])
def test_what_glides_over_tiles_keeps_its_velocity(shape, kind, contact):
    for speed, timestep, turned in [(0.3, 5e-3, 0.0), (1.0, 2e-3, 0.3), (3.07, 2e-3, 0.0)]:
        scene = coulomb.Scene()
        add_tiles(scene, kind)
        add_body(scene, shape, (0, 0.013, 0.05), turned)
        assert largest_change(scene, (speed, 0, 0), timestep, contact=contact) < 1e-9


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize("rise", [1e-12, 1e-9, 1e-6, -1e-9, -1e-6])
def test_a_rise_within_rounding_is_one_floor(rise, contact):
    """The body is lifted by the position correction, baumgarte of the rise per step, and not stopped."""
    for shape, speed, turned in [("box", 1.0, 0.0), ("box", 0.3, 0.3), ("ball", 1.0, 0.0)]:
        timestep = 2e-3
        scene = coulomb.Scene()
        add_tiles(scene, "box", rise)
        add_body(scene, shape, (0, 0.013, 0.05), turned)
        assert largest_change(scene, (speed, 0, 0), timestep, contact=contact) < 1e-9 + 4 * abs(rise) / timestep


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize("rise", [9e-6, -9e-6])
def test_a_rise_within_one_floor_stops_nobody(rise, contact):
    """A box tilts as it is lifted, by less than .1 m/s and rad/s: a side that stops it turns it by 4 rad/s and more."""
    for shape, speed, turned in [("box", 1.0, 0.0), ("box", 0.3, 0.3), ("ball", 1.0, 0.0)]:
        scene = coulomb.Scene()
        add_tiles(scene, "box", rise)
        add_body(scene, shape, (0, 0.013, 0.05), turned)
        assert largest_change(scene, (speed, 0, 0), 2e-3, contact=contact) < 0.1


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize(
    "shape, start, heading, speed, turned",
    [
        ("cylinder", (0.0549, 0.0038), 0.888, 2.0, 0.0),
        ("cylinder", (0.0566, 0.0206), 1.262, 0.5, 0.0),
        ("box", (0.0685, 0.0649), 0.939, 2.0, 6.207),
        ("hull", (0.0507, -0.0087), 0.811, 2.0, 5.606),
    ],
)
def test_where_four_tiles_meet(shape, start, heading, speed, turned, contact):
    """Two tiles come at once, one of them at its corner: what holds the body is the floor, and not the other tile's side."""
    scene = coulomb.Scene()
    for x in (-0.25, 0.25):
        for y in (-0.25, 0.25):
            scene.add_box((0.5, 0.5, 0.2), fixed=True, position=(x, y, -0.1), friction=0.0)
    add_body(scene, shape, (*start, 0.05), turned)
    velocity = (-speed * math.cos(heading), -speed * math.sin(heading), 0)
    assert largest_change(scene, velocity, 5e-3, distance=0.05, contact=contact) < 1e-9


def test_a_step_is_not_one_floor():
    scene = coulomb.Scene()
    add_tiles(scene, "box", 1e-4)
    add_body(scene, "box", (0, 0, 0.05))
    assert largest_change(scene, (1.0, 0, 0), 2e-3) > 0.5


@pytest.mark.parametrize("contact", LAWS)
def test_a_wall_of_blocks_is_one_wall(contact):
    """Pressed on it by its weight (the wall slopes), the body slides down from block to block as fast as on one."""
    scene = coulomb.Scene(gravity=(-3.0, 0, -9.81))
    for i in range(4):
        scene.add_box((0.2, 1.0, 0.3), fixed=True, position=(-0.1, 0, -0.3 * i), friction=0.0)
    scene.add_box((0.1, 0.1, 0.1), mass=1.0, position=(0.05, 0, 0.1), friction=0.0)
    sim = coulomb.Simulator(scene.build(), timestep=2e-3, contact=contact)
    q, v = sim.model.neutral()
    for step in range(150):
        q, v = sim.step(q, v)
        np.testing.assert_allclose(v, [0, 0, -9.81 * 2e-3 * (step + 1), 0, 0, 0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("contact", LAWS)
def test_what_rests_at_a_seam_can_be_pushed_over_it(contact):
    """Its side is flush with the seam, and it is at rest: there is no velocity to tell a floor from a wall."""
    scene = coulomb.Scene()
    add_tiles(scene, "box")
    add_body(scene, "box", (0.2, 0, 0.05))
    sim = coulomb.Simulator(scene.build(), timestep=2e-3, contact=contact)
    q, v = sim.model.neutral()
    force = np.array([1.0, 0, 0, 0, 0, 0])
    for step in range(200):
        q, v = sim.step(q, v, tau=force)
        np.testing.assert_allclose(v, [2e-3 * (step + 1), 0, 0, 0, 0, 0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("contact", LAWS)
def test_a_ball_rolls_over_tiles_as_over_one_floor(contact):
    """Friction acts on what rolls, and the point of a ball that is next to the seam comes down; the ball does not."""
    for options in ({}, {"continuous_collision": True}):
        scene = coulomb.Scene()
        add_tiles(scene, "box", friction=0.5)
        add_body(scene, "ball", (0, 0.013, 0.05), friction=0.5)
        sim = coulomb.Simulator(scene.build(), timestep=2e-3, contact=contact, **options)
        q, v = sim.model.neutral()
        v[0], v[4] = 1.0, 20.0
        rolling = v.copy()
        for _ in range(500):
            q, v = sim.step(q, v)
            np.testing.assert_allclose(v, rolling, rtol=0, atol=1e-9)


def test_a_box_comes_to_rest_on_four_tiles():
    """Dropped where they meet, turned: nothing that holds it is taken for an edge."""
    for turned in (0.0, 0.3, 0.7):
        scene = coulomb.Scene()
        for x in (-0.25, 0.25):
            for y in (-0.25, 0.25):
                scene.add_box((0.5, 0.5, 0.2), fixed=True, position=(x, y, -0.1), friction=0.5)
        half = turned / 2
        tilt = np.array([math.cos(half), 0.02, 0.03, math.sin(half)])
        scene.add_box(
            (0.2, 0.2, 0.1), mass=1.0, position=(0.03, 0.02, 0.07), quaternion=tilt / np.linalg.norm(tilt), friction=0.5
        )
        sim = coulomb.Simulator(scene.build(), timestep=2e-3)
        q, v = sim.model.neutral()
        for _ in range(700):
            q, v = sim.step(q, v)
        assert np.abs(v).max() < 1e-9
        assert q[2] == pytest.approx(0.05, abs=1e-9)


@pytest.mark.parametrize("contact", LAWS)
def test_soft_tiles_are_one_floor(contact):
    """Each tile brings points, hence springs, of its own: over a seam the box rises and tilts by little, and is not stopped."""
    scene = coulomb.Scene()
    for i in range(3):
        scene.add_box((0.5, 1.0, 0.2), fixed=True, position=(0.5 * i, 0, -0.1), friction=0.0, contact_stiffness=1e4)
    sunk = 9.81 / 4e4
    scene.add_box((0.1, 0.1, 0.1), mass=1.0, position=(0, 0, 0.05 - sunk), friction=0.0)
    sim = coulomb.Simulator(scene.build(), timestep=2e-3, contact=contact)
    q, v = sim.model.neutral()
    v[0] = 1.0
    for _ in range(350):
        q, v = sim.step(q, v)
        assert v[0] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize("restitution", [0.0, 0.1])
def test_steps_over_a_seam_are_differentiated(restitution, contact):
    """With another tile's top in the place of its side (of another restitution: else the first one's top is the whole floor): state, sizes, time step, both
    modes."""
    seen = 0
    for shape in ("box", "ball", "lying capsule"):
        scene = coulomb.Scene()
        for i, e in enumerate((0.0, restitution)):
            where = {"fixed": True, "position": (0.5 * i, 0, -0.1), "name": f"tile{i}"}
            scene.add_box((0.5, 1.0, 0.2), friction=0.3, restitution=e, **where)
        add_body(scene, shape, (0.1985, 0.013, 0.05 - 1e-5), 0.0, 0.3)
        sim = coulomb.Simulator(scene.build(), timestep=2e-3, contact=contact)
        q, v = sim.model.neutral()
        q[0] += {"box": 0, "ball": 0.0505, "lying capsule": -0.05}[shape]
        v[:] = [1.0, 0.1, -0.02, 0.01, 0.02, 0.03]
        sim.step(q, v)
        seen += any({c.geometry_a, c.geometry_b} == {"tile1", "body"} and abs(c.normal[2]) > 0.99 for c in sim.contacts)
        report = coulomb.check_gradients(sim, q, v, wrt=["size/body", "size/tile1", "timestep", "mass/body"])
        assert report.passed, report
        sim.step(q, v)
        d = sim.derivatives()
        assert not d.ambiguous

        # reverse mode is forward mode
        weights = np.random.default_rng(0).normal(size=(2, 6))
        g = sim.vjp(*weights)
        np.testing.assert_allclose(g.q, d.dq_dq.T @ weights[0] + d.dv_dq.T @ weights[1], rtol=0, atol=1e-10)
        np.testing.assert_allclose(g.v, d.dq_dv.T @ weights[0] + d.dv_dv.T @ weights[1], rtol=0, atol=1e-10)
    assert seen >= 2 or restitution == 0


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize("kind", ["box", "movable"])
@pytest.mark.parametrize("shape", ["box", "cylinder", "ball"])
def test_split_steps_glide_over_seams(shape, kind, contact):
    for speed, timestep in [(0.3, 5e-3), (1.0, 2e-3)]:
        scene = coulomb.Scene()
        add_tiles(scene, kind)
        add_body(scene, shape, (0, 0.013, 0.05))
        options = {"contact": contact, "continuous_collision": True}
        assert largest_change(scene, (speed, 0, 0), timestep, **options) < 1e-9


def line_across_an_edge(shape, angle, offset):
    """It lies on a box whose top ends at x = 0, its axis turned by that angle against the border, and crosses it."""
    scene = coulomb.Scene()
    scene.add_box((0.5, 0.5, 0.2), fixed=True, position=(-0.25, 0, -0.1), friction=0.5, name="floor")
    half = math.sqrt(0.5)
    turned = (math.pi / 2 - angle) / 2
    quaternion = half * np.array([math.cos(turned), -math.sin(turned), math.cos(turned), math.sin(turned)])
    add = scene.add_capsule if shape == "capsule" else scene.add_cylinder
    add(0.05, 0.1, mass=1.0, position=(offset, 0, 0.05), quaternion=quaternion, friction=0.5, name="body")
    return scene.build()


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize("shape", ["capsule", "cylinder"])
@pytest.mark.parametrize("angle", [0.006, 0.02, 0.03, 0.049, 0.06])
def test_a_line_across_an_edge_lies_still(angle, shape, contact):
    """However small its angle to the border: the middle is over the floor, and a point on each side of it holds it."""
    model = line_across_an_edge(shape, angle, -2e-4)
    sim = coulomb.Simulator(model, timestep=2e-3, contact=contact)
    q, v = model.neutral()
    for _ in range(100):
        q, v = sim.step(q, v)
        assert np.abs(v).max() < 1e-9
        assert len(sim.contacts) == 2


@pytest.mark.parametrize("shape", ["capsule", "cylinder"])
def test_a_line_across_an_edge_is_differentiated(shape):
    model = line_across_an_edge(shape, 0.03, -5e-4)
    sim = coulomb.Simulator(model, timestep=2e-3)
    q, v = model.neutral()
    q[2] -= 1e-5
    v[:] = [0.02, 0.3, -0.02, 0.01, 0.02, 0.03]
    sim.step(q, v)
    assert len(sim.contacts) == 2
    report = coulomb.check_gradients(sim, q, v, wrt=["size/body", "size/floor", "timestep", "mass/body"])
    assert report.passed, report
