"""States that no physical run reaches: deep overlap, coincident centres, extreme ratios. Results stay finite, trouble is a status."""

import itertools

import numpy as np
import pytest

import coulomb

ADD = {
    "sphere": lambda s, **o: s.add_sphere(0.1, **o),
    "box": lambda s, **o: s.add_box((0.2, 0.2, 0.2), **o),
    "capsule": lambda s, **o: s.add_capsule(0.1, 0.2, **o),
    "cylinder": lambda s, **o: s.add_cylinder(0.1, 0.2, **o),
    "ellipsoid": lambda s, **o: s.add_ellipsoid((0.1, 0.12, 0.14), **o),
    "mesh": lambda s, **o: s.add_mesh(0.1 * np.array(list(itertools.product((-1, 1), repeat=3))), **o),
}


def finite_steps(model, steps=3):
    sim = coulomb.Simulator(model, timestep=1e-3)
    q, v = model.neutral()
    for _ in range(steps):
        q, v = sim.step(q, v)
        assert np.isfinite(q).all() and np.isfinite(v).all()
        assert np.isfinite(sim.derivatives().A).all()
    return sim


@pytest.mark.parametrize("offset", [0.0, 1e-300, 1e-12, 1e-3])
@pytest.mark.parametrize("pair", list(itertools.combinations_with_replacement(ADD, 2)), ids="-".join)
def test_coincident_centres(pair, offset):
    scene = coulomb.Scene()
    ADD[pair[0]](scene, mass=1.0)
    ADD[pair[1]](scene, mass=1.0, position=(0, 0, offset))
    finite_steps(scene.build())


@pytest.mark.parametrize("kind", ADD)
@pytest.mark.parametrize("depth", [0.1, 1.0, 100.0])
def test_deep_in_the_ground(kind, depth):
    scene = coulomb.Scene()
    scene.add_ground()
    ADD[kind](scene, mass=1.0, position=(0, 0, -depth))
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
