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
@pytest.mark.parametrize("ratio", [1e-16, 1e-12, 1e-8, 1e-4, 1e4, 1e8, 1e9, 1e10])
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
        2e-4 if ratio >= 1e8 else 1e-5
    )  # relative; a step is called solved from 1e-4 on, and comes nearer where it can
    np.testing.assert_allclose(v, 0, atol=exact * GRAVITY * 1e-3)
    for level, above in ((0, 1 + ratio), (1, ratio)):
        below = "world" if level == 0 else f"box {level - 1}"
        impulses = [c.impulse[2] for c in sim.contacts if {c.body_a, c.body_b} == {below, f"box {level}"}]
        assert abs(sum(impulses)) == pytest.approx(above * GRAVITY * 1e-3, rel=exact)


def stack_of_two(ratio=1.0, inertia=1.0, drop=0.0):
    """A box of 1 kg whose inertia is `inertia` times that of its size, under one of `ratio` kg, both `drop` m too low."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    own = inertia * 0.2**2 / 6
    place = dict(position=(0, 0, 0.1 - drop), friction=0.5, name="lower")
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, inertia=(own, 0, own, 0, 0, own), **place)
    scene.add_box((0.2, 0.2, 0.2), mass=ratio, position=(0, 0, 0.3 - drop), friction=0.5, name="upper")
    return scene.build()


def is_told_truly(status, least_ratio, names=("ground on lower", "lower on upper")):
    """Nothing contradicts: the step is solved as posed, or says whose numbers are how far apart."""
    if status.contradictions or "contradict" in status.reason:
        return False
    if status.converged:
        return status.reason == "solved" and status.badly_scaled == [] and status.scale_ratio == 0
    told = ", ".join(status.badly_scaled)
    named = 0 < len(set(status.badly_scaled) & set(names)) == len(status.badly_scaled)
    beginning = "relaxed: badly scaled constraints, as 1 to "
    return (
        named
        and status.reason == f"{beginning}{status.scale_ratio:.0e}: {told}"
        and least_ratio < status.scale_ratio < np.inf
    )


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize("ratio", [1e9, 1e10, 1e11, 1e12, 1e14, 1e16])
def test_masses_too_far_apart_are_named_as_that(ratio, contact):
    model = stack_of_two(ratio)
    sim = coulomb.Simulator(model, timestep=1e-3, contact=contact)
    q, v = model.neutral()
    for _ in range(20):
        q, v = sim.step(q, v)
        assert np.isfinite(q).all() and np.isfinite(v).all()
        assert is_told_truly(sim.status, 0.1 * ratio), sim.status
    assert np.isfinite(sim.derivatives().A).all()


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize("inertia", [1e-12, 1e-10, 1e-9, 1e-6, 1e6, 1e9, 1e12])
def test_inertia_that_fits_no_body_of_that_size(inertia, contact):
    model = stack_of_two(inertia=inertia)
    sim = coulomb.Simulator(model, timestep=1e-3, contact=contact)
    q, v = model.neutral()
    for _ in range(3):
        q, v = sim.step(q, v)
        assert is_told_truly(sim.status, 1e9), sim.status
    assert sim.status.converged or inertia < 1e-10


@pytest.mark.parametrize("timestep", [1e-3, 1e-9])
@pytest.mark.parametrize("speed", [1.0, 1e6])
def test_bodies_a_thousand_kilometres_in_the_ground(speed, timestep):
    """Contact points on levers of 1e6 m, where a turn moves 1e12 times what a push does."""
    model = stack_of_two(drop=1e6)
    sim, _, _ = finite_step(model, *model.neutral(), timestep=timestep, max_correction_speed=speed)
    assert is_told_truly(sim.status, 1e9, ("ground on lower", "ground on upper", "lower on upper")), sim.status


@pytest.mark.parametrize("mass", [1e-12, 1e-9, 1e9, 1e12, 1e15])
def test_a_heavy_joint_that_a_light_one_carries_along(mass):
    """A limit pushes the light joint, which an equality ties to the other one: 1 m/s for both. A heavy one takes no more than ten times the
    energy that the limit gives a light one alone, so that it stays, which the step says."""
    model = coulomb.load(
        f"""<mujoco><option gravity="0 0 0"/><worldbody>
<body name="a"><joint name="light" type="slide" axis="1 0 0" limited="true" range=".1 1"/><geom size=".1" mass="1"/></body>
<body name="b" pos="1 0 0"><joint name="heavy" type="slide" axis="1 0 0"/><geom size=".1" mass="{mass}"/></body>
</worldbody><equality><joint name="alike" joint1="light" joint2="heavy"/></equality></mujoco>"""
    )
    sim, _, v = finite_step(model, np.zeros(2), np.zeros(2), timestep=1e-3)
    if mass < 1:
        assert is_told_truly(sim.status, 0.1 * mass, ("equality alike", "joint light at its lower limit")), sim.status
        assert sim.status.converged
        np.testing.assert_allclose(v, [1, 1], rtol=1e-6)
        return
    names = ["equality alike", "joint light at its lower limit"]
    assert sim.status.reason == f"relaxed: position correction out of reach: {', '.join(names)}"
    assert sim.status.contradictions == names and sim.status.badly_scaled == []
    assert 0 < v[0] <= 1 and v[0] ** 2 + mass * v[1] ** 2 <= 10


def test_walls_that_all_but_exclude_one_another_throw_nothing_out():
    """A ball between walls at an angle of 1e-5 would be free at 1e5 times the speed that is asked: they are said to contradict."""
    scene = coulomb.Scene(gravity=(0, 0, 0))
    for side, name in ((-1, "left"), (1, "right")):
        angle = 1e-5 * side
        turned = (np.cos(angle / 2), 0, 0, np.sin(angle / 2))
        scene.add_box((1, 4, 4), fixed=True, position=(side * 0.59, 0, 0), quaternion=turned, friction=0.0, name=name)
    scene.add_sphere(0.1, mass=1.0, friction=0.0, name="ball")
    model = scene.build()
    sim, _, v = finite_step(model, *model.neutral(), timestep=1e-3)
    assert sorted(sim.status.contradictions) == ["left on ball", "right on ball"]
    assert sim.status.badly_scaled == [] and np.abs(v).max() < 10


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
