"""Convex hulls of clouds of points: vertices with any number of edges, any size and place; the volume is Qhull's by SciPy."""

import itertools

import numpy as np
import pytest

import coulomb

qhull = pytest.importorskip("scipy.spatial")


def circle(n):
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    return np.c_[np.cos(angle), np.sin(angle)]


def prism(n):
    return np.vstack([np.c_[circle(n), -np.ones(n)], np.c_[circle(n), np.ones(n)]])


def cone(n):
    """One vertex with n edges."""
    return np.vstack([np.c_[circle(n), np.zeros(n)], [[0, 0, 1]]])


def turned(points, seed):
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    return points @ (rotation * np.linalg.det(rotation))


def single_precision(points):
    return points.astype(np.float32).astype(float)


def check(points):
    scene = coulomb.Scene()
    scene.add_mesh(points, density=1000.0)
    model = scene.build()
    hull = qhull.ConvexHull(points)
    assert model.body_mass[1] == pytest.approx(1000 * hull.volume, rel=1e-6)
    vertices = model.mesh_vertices(0)
    assert len(vertices) <= len(hull.vertices)
    assert {tuple(v) for v in vertices} <= {tuple(p) for p in points}
    return model


@pytest.mark.parametrize("n", [3, 100, 254, 255, 256, 257, 300, 512, 1000])
@pytest.mark.parametrize("shape", [prism, cone])
def test_any_number_of_edges_at_a_vertex(shape, n):
    check(shape(n))
    check(turned(shape(n), n))
    check(single_precision(0.1 * turned(shape(n), n)))


@pytest.mark.parametrize("n", [64, 100])
def test_a_prism_of_many_sides_rests(n):
    """On its cap, then on a side face, it stays where it is."""
    half = np.pi / n  # a side face, not an edge, is lowest
    spin = np.array([[np.cos(half), -np.sin(half), 0], [np.sin(half), np.cos(half), 0], [0, 0, 1]])
    for quaternion, height in (((1, 0, 0, 0), 0.1), ((np.sqrt(0.5), np.sqrt(0.5), 0, 0), 0.1 * np.cos(np.pi / n))):
        scene = coulomb.Scene()
        scene.add_ground(friction=0.5)
        scene.add_mesh(0.1 * prism(n) @ spin, density=1000.0, position=(0, 0, height), quaternion=quaternion)
        model = scene.build()
        sim = coulomb.Simulator(model)
        q, v = model.neutral()
        for _ in range(50):
            q, v = sim.step(q, v)
            assert sim.status.converged
        assert sim.contacts and abs(q[2] - height) < 1e-3 and np.abs(v).max() < 0.02


@pytest.mark.parametrize("n", [2, 4, 10])
def test_grids_have_eight_corners(n):
    model = check(np.array(list(itertools.product(np.linspace(0, 1, n), repeat=3))))
    assert len(model.mesh_vertices(0)) == 8


@pytest.mark.parametrize("seed", range(20))
def test_rounded_boxes_as_cad_writes_them(seed):
    rng = np.random.default_rng(seed)
    corners = np.array(list(itertools.product((-1, 1), repeat=3))) * rng.uniform(0.01, 0.2, 3)
    ball = rng.normal(size=(80, 3))
    ball *= 0.01 / np.linalg.norm(ball, axis=1, keepdims=True)
    check(single_precision((corners[:, None] + ball).reshape(-1, 3)))


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_clouds_of_any_size_and_place(size, offset):
    check(size * (np.random.default_rng(1).normal(size=(200, 3)) + offset))


@pytest.mark.parametrize(
    "points",
    [np.zeros((5, 3)), np.outer(np.arange(5), [1, 2, 3]), np.c_[circle(300), np.zeros(300)]],
    ids=["a point", "a line", "a disc"],
)
def test_what_has_no_volume_is_refused(points):
    with pytest.raises(ValueError, match="the points lie in one plane"):
        coulomb.Scene().add_mesh(points)
