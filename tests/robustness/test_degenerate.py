"""Geometry and numbers at their ends: sizes, masses, time steps, needles, kisses, thousands of contacts. What is known in closed form is right.

Coincident centres, deep overlaps and speeds are in test_hard_states.py, hulls in test_hulls.py, files in test_damaged_files.py.
"""

import itertools
import time

import numpy as np
import pytest

import coulomb
from scenes.basics import GRAVITY, rotation_matrix
from scenes.shapes import KINDS, add_shape

SECONDS = 20  # what no step here may take on a busy machine; a step is a matter of milliseconds


# --- shapes by their support functions ----------------------------------------------------------------------------------------


def farthest(kind, size, n):
    """The point of a shape that is farthest along n, (3,) unit in its frame."""
    if kind == "sphere":
        return size[0] * n
    if kind == "capsule":
        return size[0] * n + [0, 0, size[1] * np.sign(n[2])]
    if kind == "cylinder":
        return np.r_[size[0] * n[:2] / max(np.hypot(n[0], n[1]), 1e-300), size[1] * np.sign(n[2])]
    if kind == "ellipsoid":
        return size**2 * n / np.linalg.norm(size * n)
    return size * np.sign(n)  # a box, and a mesh of its corners


PAIRS = list(itertools.combinations_with_replacement(KINDS, 2))


class TwoBodies:
    """Two shapes of random sizes and poses, the smaller one at the origin: `share` of the way from its border to its centre there is a point of both."""

    def __init__(self, kinds, random, decades, share):
        self.kinds = kinds
        scales = np.sort(
            10 ** random.uniform(-decades, decades, (2, 1)), axis=0
        )  # lengths are known best at the origin
        self.sizes = scales * random.uniform(0.3, 1, (2, 3))
        quaternions = random.normal(size=(2, 4))
        quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
        self.rotations = [rotation_matrix(q) for q in quaternions]
        n = random.normal(size=3)
        n /= np.linalg.norm(n)
        self.offset = (1 - share) * self.point(0, n) - self.point(1, -n)
        self.scale = np.linalg.norm(self.offset) + np.linalg.norm(self.sizes[1])

        scene = coulomb.Scene(gravity=(0, 0, 0))
        for body in range(2):
            place = {"position": body * self.offset, "quaternion": quaternions[body]}
            add_shape(scene, kinds[body], self.sizes[body], mass=1.0, **place)
        self.model = scene.build()

    def point(self, body, n):
        return self.rotations[body] @ farthest(self.kinds[body], self.sizes[body], self.rotations[body].T @ n)

    def overlap(self, n):
        """How far the second body must move along n to touch no more."""
        return (self.point(0, n) - self.point(1, -n) - self.offset) @ n


def finite_step(model, q, v, **options):
    """One step and its Jacobian, both in time; what is finite is asserted."""
    sim = coulomb.Simulator(model, **options)
    began = time.monotonic()
    q1, v1 = sim.step(q, v)
    assert np.isfinite(q1).all() and np.isfinite(v1).all()
    assert np.isfinite(sim.derivatives().A).all()
    assert time.monotonic() - began < SECONDS
    return sim, q1, v1


@pytest.mark.parametrize("share", [1e-3, 0.5], ids=["shallow", "deep"])
@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_contact_of_any_sizes(kinds, share):
    """Sizes of 1e-6 to 1e6 m: the contact lies along its normal, no random direction is a shorter way out, the step is solved."""
    random = np.random.default_rng([PAIRS.index(kinds), int(1e3 * share)])
    compared = 0
    for _ in range(25):
        pair = TwoBodies(kinds, random, 6, share)
        sim, _, _ = finite_step(pair.model, *pair.model.neutral(), timestep=1e-3)
        assert sim.status.converged

        # Of coordinates of 1e6 m the last digit is 1e-10 m: lengths are known to that share of the larger body, and less is no overlap.
        known = 1e-9 * pair.scale
        directions = random.normal(size=(200, 3))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        if not sim.contacts:
            assert share * pair.sizes[0].min() < known
            continue

        # A face that is nearly normal gives its own normal: 2.9 degrees, whose cosine is 1 - 1.2e-3.
        deepest = max(sim.contacts, key=lambda contact: contact.depth)
        assert deepest.depth <= 1.0013 * min(pair.overlap(n) for n in directions) + known
        assert deepest.depth <= pair.overlap(-deepest.normal) + known
        for contact in sim.contacts:
            assert np.linalg.norm(contact.normal) == pytest.approx(1, abs=1e-12)
            np.testing.assert_allclose(contact.frame @ contact.frame.T, np.eye(3), atol=1e-12)
        compared += 1
    assert compared > 15


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_derivatives_of_any_sizes(kinds):
    """Sizes of 1e-3 to 1e3 m: right by differences wherever differences know; what has no derivative is flagged."""
    random = np.random.default_rng(PAIRS.index(kinds))
    compared = 0
    for _ in range(4):
        pair = TwoBodies(kinds, random, 3, 1e-3)
        sim = coulomb.Simulator(pair.model, timestep=1e-3)
        q, _ = pair.model.neutral()
        check = coulomb.check_gradients(sim, q, 1e-3 * random.normal(size=12))
        assert check.compared == 0 or check.passed, str(check)
        compared += check.compared
    assert compared > 0


@pytest.mark.parametrize("ulps", [-1, 0, 1])
@pytest.mark.parametrize("kinds", [pair for pair in PAIRS if pair[0] != pair[1]], ids="-".join)
def test_different_shapes_that_kiss(kinds, ulps):
    """Off by one unit in the last place, the contact is there and shares the momentum."""
    size = np.array([0.1, 0.1, 0.1])
    height = sum(farthest(kind, size, np.array([0.0, 0, 1]))[2] for kind in kinds)
    scene = coulomb.Scene(gravity=(0, 0, 0))
    for body in range(2):
        place = (0, 0, body * (height + ulps * np.spacing(height)))
        add_shape(scene, kinds[body], size, mass=1.0, position=place, friction=0)
    v = np.zeros(12)
    v[2] = 1.0
    sim, _, v1 = finite_step(scene.build(), scene.build().neutral()[0], v, timestep=1e-3)
    assert sim.contacts and sim.status.converged
    assert v1[[2, 8]] == pytest.approx([0.5, 0.5], abs=1e-9)


# --- needles and doubles ------------------------------------------------------------------------------------------------------

CORNERS = np.array(list(itertools.product((-0.1, 0.1), repeat=3)))


def states_of_a_box(points, friction=0.5):
    """A hull that is thrown onto the ground, slides and turns: 40 steps."""
    scene = coulomb.Scene()
    scene.add_ground(friction=friction)
    scene.add_mesh(points, density=1000.0, position=(0, 0, 0.1001), friction=friction)
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=1e-3)
    q, v = model.neutral()
    v = np.array([0.5, 0.1, -0.2, 0, 0, 1.0])
    for _ in range(40):
        q, v = sim.step(q, v)
        assert sim.status.converged
    assert np.isfinite(sim.derivatives().A).all()
    return np.concatenate([q, v])


def test_doubled_vertices_change_no_bit():
    expected = states_of_a_box(CORNERS)
    assert np.array_equal(states_of_a_box(np.vstack([CORNERS, CORNERS, CORNERS[:3]])), expected)


@pytest.mark.parametrize("near", [1e-17, 1e-15, 1e-13, 1e-11, 1e-9])
def test_vertices_that_almost_coincide(near):
    """Every corner is a cloud of points: faces between them are needles of width `near`. The box falls flat and slides all the same, on smooth ground:
    with friction, which of four corners carry the weight decides how the box turns, and that a misfit of any size may change."""
    random = np.random.default_rng(0)
    cloud = (CORNERS[:, None] + near * random.normal(size=(8, 5, 3))).reshape(-1, 3)
    expected = states_of_a_box(CORNERS, friction=0)
    np.testing.assert_allclose(states_of_a_box(cloud, friction=0), expected, atol=1e3 * near + 1e-9)


@pytest.mark.parametrize("near", [0.0, 1e-16, 1e-12, 1e-9])
def test_vertices_along_edges_and_in_faces(near):
    """Points on edges and faces, out by less than a nanometre: a box all the same."""
    random = np.random.default_rng(1)
    weights = random.dirichlet(np.full(4, 0.3), size=60)
    faces = [CORNERS[CORNERS[:, axis] == side] for axis in range(3) for side in (-0.1, 0.1)]
    on_faces = np.array([w @ faces[k % 6] for k, w in enumerate(weights)])
    points = np.vstack([CORNERS, on_faces + near * random.normal(size=on_faces.shape)])
    np.testing.assert_allclose(states_of_a_box(points), states_of_a_box(CORNERS), atol=1e-6)


@pytest.mark.parametrize("thin", [1e-3, 1e-5, 1e-7, 1e-9, 1e-12])
@pytest.mark.parametrize("long", [1.0, 1e3])
def test_a_needle_falls_flat_or_is_refused(thin, long):
    """A tetrahedron of this width: read and stepped, or refused by name."""
    points = np.array([[0, 0, 0], [long, 0, 0], [long, thin, 0], [0.5 * long, 0.5 * thin, thin]])
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    try:
        scene.add_mesh(points, mass=1.0, position=(0, 0, 0), name="needle")
        model = scene.build()
    except ValueError as error:
        assert "needle" in str(error) and thin < 1e-4 * long
        return
    q, v = model.neutral()
    for _ in range(5):
        sim, q, v = finite_step(model, q, v, timestep=1e-3)
    assert sim.contacts and abs(v).max() < 1 / thin


# --- masses, time steps, numbers of contacts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize("ratio", [1e-8, 1e-4, 1e4, 1e8])
def test_a_stack_of_unequal_masses_rests(ratio, contact):
    """A box of 1 kg under one of `ratio` kg: every level carries what is above it."""
    masses = [1.0, ratio]
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    for level, mass in enumerate(masses):
        scene.add_box((0.2, 0.2, 0.2), mass=mass, position=(0, 0, 0.1 + 0.2 * level), friction=0.5, name=f"box {level}")
    model = scene.build()
    sim, _, v = finite_step(model, *model.neutral(), timestep=1e-3, contact=contact)
    assert sim.status.converged
    exact = (
        2e-4 if ratio == 1e8 else 1e-5
    )  # relative; a step is called solved from 1e-4 on, and comes nearer where it can
    np.testing.assert_allclose(v, 0, atol=exact * GRAVITY * 1e-3)
    for level, above in ((0, 1 + ratio), (1, ratio)):
        below = "world" if level == 0 else f"box {level - 1}"
        impulses = [c.impulse[2] for c in sim.contacts if {c.body_a, c.body_b} == {below, f"box {level}"}]
        assert abs(sum(impulses)) == pytest.approx(above * GRAVITY * 1e-3, rel=exact)


@pytest.mark.parametrize("stepper", ["semi_implicit", "bdf2"])
@pytest.mark.parametrize("timestep", [1e-6, 1e-5, 1e-4, 1e-2, 0.1])
def test_any_time_step(timestep, stepper):
    """A box on the ground slows down by mu g h where contact is rigid, a ball in the air gains g h; the Jacobian is right by differences."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    scene.add_box((2.0, 2.0, 0.2), mass=1.0, position=(0, 0, 0.1), friction=0.5)
    scene.add_sphere(0.1, mass=1.0, position=(0, 5, 5))
    model = scene.build()
    q, v = model.neutral()
    v[0], v[6:9] = 10.0, (1.0, 2.0, 3.0)
    sim, _, v1 = finite_step(model, q, v, timestep=timestep, stepper=stepper)
    assert sim.status.converged
    if stepper == "semi_implicit":
        assert v1[0] - v[0] == pytest.approx(-0.5 * GRAVITY * timestep, rel=1e-6)
    np.testing.assert_allclose(v1[6:9] - v[6:9], [0, 0, -GRAVITY * timestep], rtol=1e-6, atol=1e-15)
    check = coulomb.check_gradients(sim, q, v)
    assert check.compared == 0 or check.passed, str(check)


def test_ten_thousand_contacts():
    """2500 boxes side by side, four points each: all at rest, each carries its weight, and the product of the derivative is that of a box."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    for i, j in itertools.product(range(50), repeat=2):
        scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0.3 * i, 0.3 * j, 0.1))
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=1e-3)
    began = time.monotonic()
    _, v = sim.step(*model.neutral())
    assert len(sim.contacts) == 10_000 and sim.status.converged
    assert np.abs(v).max() < 1e-9
    impulses = np.array([contact.impulse for contact in sim.contacts])
    assert np.abs(impulses[:, 2]).sum() == pytest.approx(2500 * GRAVITY * 1e-3, rel=1e-9)

    # They stick: no velocity passes on, and no position but for the correction of depth, which is none here.
    cotangent = sim.vjp(np.zeros(model.nv), np.ones(model.nv))
    assert np.isfinite(cotangent.q).all() and np.abs(cotangent.v).max() < 1e-9
    assert time.monotonic() - began < SECONDS
