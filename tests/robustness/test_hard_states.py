"""States that no physical run reaches: deep overlap, coincident centres, extreme ratios. Results stay finite, trouble is a status."""

import itertools

import numpy as np
import pytest

import coulomb
from scenes.shapes import KINDS, add_shape

SIZES = {
    "sphere": (0.1, 0, 0),
    "box": (0.1, 0.1, 0.1),
    "capsule": (0.1, 0.1, 0),
    "cylinder": (0.1, 0.1, 0),
    "ellipsoid": (0.1, 0.12, 0.14),
    "mesh": (0.1, 0.1, 0.1),
}


def add(scene, kind, **options):
    add_shape(scene, kind, SIZES[kind], **options)


def finite_steps(model, steps=3):
    sim = coulomb.Simulator(model, timestep=1e-3)
    q, v = model.neutral()
    for _ in range(steps):
        q, v = sim.step(q, v)
        assert np.isfinite(q).all() and np.isfinite(v).all()
        assert np.isfinite(sim.derivatives().A).all()
    return sim


@pytest.mark.parametrize("offset", [0.0, 1e-300, 1e-12, 1e-3])
@pytest.mark.parametrize("pair", list(itertools.combinations_with_replacement(KINDS, 2)), ids="-".join)
def test_coincident_centres(pair, offset):
    scene = coulomb.Scene()
    add(scene, pair[0], mass=1.0)
    add(scene, pair[1], mass=1.0, position=(0, 0, offset))
    finite_steps(scene.build())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [0.1, 1.0, 100.0])
def test_deep_in_the_ground(kind, depth):
    scene = coulomb.Scene()
    scene.add_ground()
    add(scene, kind, mass=1.0, position=(0, 0, -depth))
    sim = finite_steps(scene.build())
    assert sim.contacts


@pytest.mark.parametrize("masses", [(1e-6, 1e6), (1e6, 1e-6)])
def test_extreme_mass_ratios(masses):
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    for i, mass in enumerate(masses):
        scene.add_box((0.2, 0.2, 0.2), mass=mass, position=(0, 0, 0.1 + 0.2 * i))
    finite_steps(scene.build())


def test_extreme_sizes():
    scene = coulomb.Scene()
    scene.add_box((1e3, 1e3, 1.0), fixed=True, position=(0, 0, -0.5))
    scene.add_box((1e-3, 1e-3, 1e-3), mass=1e-6, position=(10, 3, 4.999e-4))
    finite_steps(scene.build())


@pytest.mark.parametrize("speed", [1e3, 1e6])
def test_extreme_speeds(speed):
    scene = coulomb.Scene()
    scene.add_ground()
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.1))
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=1e-3)
    q, v = sim.step(model.neutral()[0], speed * np.array([1, -1, -1, 1, 2, -3]))
    assert np.isfinite(q).all() and np.isfinite(v).all()
    assert np.linalg.norm(q[3:7]) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("ulps", [-1, 0, 1])
def test_kissing_contact(ulps):
    height = 0.1 + ulps * np.spacing(0.1)
    scene = coulomb.Scene()
    scene.add_ground()
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, height))
    sim = finite_steps(scene.build())
    assert len(sim.contacts) == 1 and sim.status.converged


def test_an_empty_scene_steps():
    model = coulomb.Scene().build()
    q, v = coulomb.Simulator(model).step(*model.neutral())
    assert q.shape == v.shape == (0,)


def test_hundreds_of_contacts():
    """Boxes side by side, four points each."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    for i, j in itertools.product(range(8), repeat=2):
        scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0.3 * i, 0.3 * j, 0.1))
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=1e-3)
    q, v = sim.step(*model.neutral())
    assert len(sim.contacts) == 256 and sim.status.converged
    assert np.abs(v).max() < 1e-9


def test_a_hundred_redundant_contacts():
    """A table on a hundred feet: 300 rows, of which 6 are independent."""
    pytest.importorskip("mujoco")
    feet = "".join(f"<geom size='.05' pos='{0.2 * i} {0.2 * j} -.05'/>" for i in range(10) for j in range(10))
    model = coulomb.load(
        "<mujoco><worldbody><geom type='plane' size='9 9 1'/><body pos='0 0 .1'><freejoint/>"
        + feet
        + "</body></worldbody></mujoco>"
    )
    sim = finite_steps(model)
    assert len(sim.contacts) == 100 and sim.status.converged
    weight = 9.81 * model.body_mass[1] * sim.timestep
    assert sum(abs(c.impulse[2]) for c in sim.contacts) == pytest.approx(weight, rel=1e-9)


@pytest.mark.parametrize("ratio", [1e-6, 1e6])
@pytest.mark.parametrize("kind", ["sphere", "box", "capsule"])
def test_a_small_body_on_a_large_one(kind, ratio):
    """Sizes 1:1e6 of two bodies that touch."""
    sizes = (1.0, ratio)
    half = {"sphere": (0.5, 0, 0), "box": (0.5, 0.5, 0.5), "capsule": (0.25, 0.25, 0)}[kind]
    scene = coulomb.Scene(gravity=(0, 0, 0))
    for i, size in enumerate(sizes):
        add_shape(scene, kind, size * np.array(half), mass=1.0, position=(0, 0, i * 0.5 * sum(sizes)))
    finite_steps(scene.build())


@pytest.mark.parametrize("ulps", [-1, 0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_two_bodies_that_kiss(kind, ulps):
    """Off by one unit in the last place, a contact is there and the step is the same to rounding."""
    scene = coulomb.Scene(gravity=(0, 0, 0))
    height = {"ellipsoid": 0.28, "capsule": 0.4}.get(kind, 0.2)
    for i in range(2):
        add(scene, kind, mass=1.0, position=(0, 0, i * (height + ulps * np.spacing(height))))
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=1e-3)
    v = np.zeros(12)
    v[2] = 1.0
    _, v1 = sim.step(model.neutral()[0], v)
    assert sim.contacts and sim.status.converged
    assert v1[[2, 8]] == pytest.approx([0.5, 0.5], abs=1e-9)


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize("gap", [1e-2, 1e-5, 0.0])
def test_a_smooth_ground_does_not_attract(contact, gap):
    """A contact that is made before it touches, without friction: no impulse until the gap closes."""
    scene = coulomb.Scene(contact_margin=0.05)
    scene.add_ground(friction=0)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1 + gap), friction=0)
    sim = coulomb.Simulator(scene.build(), timestep=1e-3, contact=contact)
    _, v = sim.step(*sim.model.neutral())
    assert v[2] == pytest.approx(-0.00981 if gap > 9.81e-6 else -gap / 1e-3, abs=1e-12)
    assert len(sim.contacts) == 1 and sim.contacts[0].impulse @ sim.contacts[0].normal >= 0


@pytest.mark.parametrize("friction", [1e3, 1e6, 1e12, 1e200])
def test_any_friction_holds(friction):
    """A box that hits the ground sideways sticks; c_N must not drown beside friction times slip."""
    scene = coulomb.Scene(timestep=2e-3)
    scene.add_ground(friction=friction)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.0999), friction=friction)
    model = scene.build()
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    _, v = sim.step(q, [0.3, 0.1, -1.0, 0.1, 0.2, 0.3])
    assert sim.status.converged
    np.testing.assert_allclose(v, [0, 0, 0.1 * 1e-4 / 2e-3, 0, 0, 0], atol=1e-9)
