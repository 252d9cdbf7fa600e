"""Height fields and triangle meshes: a flat one is the plane, seams are not felt, and what the surface holds does not pass through it. Distances
by brute force over all triangles, in NumPy."""

import pickle

import numpy as np
import pytest

import coulomb
from coulomb.kinematics import lowest_points

SHAPES = {
    "sphere": lambda scene, **kw: scene.add_sphere(0.05, **kw),
    "box": lambda scene, **kw: scene.add_box([0.1, 0.15, 0.08], **kw),
    "capsule": lambda scene, **kw: scene.add_capsule(0.04, 0.1, **kw),
    "cylinder": lambda scene, **kw: scene.add_cylinder(0.05, 0.1, **kw),
    "ellipsoid": lambda scene, **kw: scene.add_ellipsoid([0.05, 0.07, 0.04], **kw),
    "mesh": lambda scene, **kw: scene.add_mesh(0.05 * np.random.default_rng(1).normal(size=(30, 3)), **kw),
}
TURNED = np.array([0.9, 0.3, 0.2, 0.1]) / np.linalg.norm([0.9, 0.3, 0.2, 0.1])
SPACING = 0.05


def on(ground, kind, position=(0.013, 0.021, 0.15), quaternion=TURNED):
    """The model of one body over what `ground` adds to the scene."""
    scene = coulomb.Scene(timestep=2e-3)
    ground(scene)
    SHAPES[kind](scene, mass=1.0, position=position, quaternion=quaternion, name="body")
    return scene.build()


def thrown(model, steps):
    """(steps, nq + nv) of a throw that ends on the ground; every step is solved."""
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    v[:] = 0.5, 0.2, 0, 1, 2, 3
    states = []
    for _ in range(steps):
        q, v = sim.step(q, v)
        assert sim.status.converged, sim.status
        states.append(np.r_[q, v])
    return np.array(states)


def grid(heights, spacing=SPACING):
    """(vertices, triangles) of a height field, written out."""
    rows, columns = heights.shape
    x, y = (np.arange(columns) - (columns - 1) / 2) * spacing, (np.arange(rows) - (rows - 1) / 2) * spacing
    vertices = np.stack([*np.meshgrid(x, y), heights], -1).reshape(-1, 3)
    v = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = (part.ravel() for part in (v[:-1, :-1], v[:-1, 1:], v[1:, 1:], v[1:, :-1]))
    return vertices, np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])


def distance_to_triangles(point, vertices, triangles):
    """Of a point, by the plane where it projects into a triangle and by the three sides."""
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    n = np.cross(b - a, c - a)
    n /= np.linalg.norm(n, axis=1)[:, None]
    height = np.einsum("ij,ij->i", point - a, n)
    foot = point - height[:, None] * n
    inside = np.all([np.einsum("ij,ij->i", np.cross(q - p, foot - p), n) >= 0 for p, q in ((a, b), (b, c), (c, a))], 0)
    least = np.abs(height[inside]).min(initial=np.inf)
    for p, q in ((a, b), (b, c), (c, a)):
        t = np.clip(np.einsum("ij,ij->i", point - p, q - p) / np.einsum("ij,ij->i", q - p, q - p), 0, 1)
        least = min(least, np.linalg.norm(point - p - t[:, None] * (q - p), axis=1).min())
    return least


@pytest.mark.parametrize("kind", SHAPES)
def test_a_flat_field_is_the_plane(kind):
    flat = np.zeros((41, 31))
    plane = thrown(on(lambda scene: scene.add_ground(friction=0.7), kind), 600)
    field = thrown(on(lambda scene: scene.add_heightfield(flat, SPACING, friction=0.7), kind), 600)
    mesh = thrown(on(lambda scene: scene.add_triangle_mesh(*grid(flat), friction=0.7), kind), 600)
    assert np.abs(field - plane).max() < 1e-9
    assert np.abs(mesh - plane).max() < 1e-9


@pytest.mark.parametrize("kind", ["sphere", "box", "cylinder", "mesh"])
def test_a_tilted_field_is_the_tilted_plane(kind):
    """A slope made of heights, and a flat field whose frame is turned."""
    slope = 0.2
    normal = np.array([-slope, 0, 1]) / np.hypot(slope, 1)
    heights = slope * SPACING * (np.arange(41) - 20) * np.ones((41, 1))
    half = np.arctan2(slope, 1) / 2
    turned = [np.cos(half), 0, -np.sin(half), 0]
    plane = thrown(on(lambda scene: scene.add_ground(friction=0.7, normal=normal), kind), 300)
    field = thrown(on(lambda scene: scene.add_heightfield(heights, SPACING, friction=0.7), kind), 300)
    frame = thrown(
        on(lambda scene: scene.add_heightfield(np.zeros((41, 41)), SPACING, friction=0.7, quaternion=turned), kind), 300
    )
    assert np.abs(field - plane).max() < 1e-6
    assert np.abs(frame - plane).max() < 1e-6


@pytest.mark.parametrize("kind", SHAPES)
def test_rounding_of_the_heights_is_not_felt(kind):
    """Bumps of a picometre at every corner: a body that slides on them moves as on the plane."""
    bumps = 1e-12 * np.random.default_rng(0).normal(size=(61, 61))
    sim, reference = (
        coulomb.Simulator(on(ground, kind, (0, 0, 0.2), (1, 0, 0, 0)))
        for ground in (
            lambda scene: scene.add_heightfield(bumps, SPACING, friction=0.05),
            lambda scene: scene.add_ground(friction=0.05),
        )
    )
    low = 0.2 - lowest_points(reference.model, reference.model.neutral()[0], [1])[0]
    ends = []
    for s in (sim, reference):
        q, v = s.model.neutral()
        q[2], v[0] = low, 1.0
        for _ in range(300):
            q, v = s.step(q, v)
            assert s.status.converged
        ends.append(np.r_[q, v])
    assert np.abs(ends[0] - ends[1]).max() < 1e-6


@pytest.mark.parametrize("rough", [0.005, 0.03])
def test_a_ball_keeps_its_distance_to_all_triangles(rough):
    rng = np.random.default_rng(2)
    for _ in range(4):
        heights = rough * rng.normal(size=(15, 15))
        vertices, triangles = grid(heights)
        model = on(lambda scene, h=heights: scene.add_heightfield(h, SPACING, friction=0.4), "sphere")
        for q in thrown(model, 500)[:, :7]:
            if np.abs(q[:2]).max() > 0.3:
                break
            assert distance_to_triangles(q[:3], vertices, triangles) > 0.05 - 1e-5


@pytest.mark.parametrize("kind", SHAPES)
def test_bodies_come_to_rest_on_rough_ground(kind):
    """No energy is gained, no corner sinks, and nothing falls through; ground of 30 degrees and more from cell to cell."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        heights = 0.02 * rng.normal(size=(61, 61))
        model = on(lambda scene, h=heights: scene.add_heightfield(h, SPACING, friction=0.9), kind)
        sim = coulomb.Simulator(model)
        q, v = model.neutral()
        v[:] = 0.5, 0.2, 0, 1, 2, 3
        energy, deepest = sum(model.energy(q, v)), 0.0
        for _ in range(1000):
            q, v = sim.step(q, v)
            assert sim.status.converged, sim.status
            now = sum(model.energy(q, v))
            assert now < energy + 5e-3
            energy = now
            deepest = max([deepest, *(c.depth for c in sim.contacts)])
        assert deepest < 2e-3
        assert q[2] > heights.min() - 0.05


def test_a_body_crosses_a_seam_between_slopes():
    """A ball rolls down a valley and up again: contact with two faces at the bottom, one elsewhere, and no loss of height without friction."""
    x = SPACING * (np.arange(41) - 20)
    model = on(
        lambda scene: scene.add_heightfield(0.3 * np.abs(x) * np.ones((41, 1)), SPACING, friction=0.0),
        "sphere",
        (0.3, 0.012, 0.09 + 0.0523),
    )
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    low = np.inf
    for _ in range(400):
        q, v = sim.step(q, v)
        assert sim.status.converged
        low = min(low, q[2])
    # Across the bottom the ball touches both faces: its centre is at r / cos there.
    assert low == pytest.approx(0.05 * np.hypot(1, 0.3), abs=1e-3)


def test_corners_and_edges_of_the_surface_hold():
    """A box lies on the top of a pyramid, across a ridge, and beside neither."""
    peak = np.zeros((5, 5))
    peak[2, 2] = 0.05
    ridge = np.zeros((5, 5))
    ridge[:, 2] = 0.05
    for heights, height in ((peak, 0.05), (ridge, 0.05)):
        model = on(
            lambda scene, h=heights: scene.add_heightfield(h, 0.2, friction=1.0),
            "box",
            (0, 0, height + 0.04),
            (1, 0, 0, 0),
        )
        sim = coulomb.Simulator(model)
        q, v = model.neutral()
        for _ in range(100):
            q, v = sim.step(q, v)
            assert sim.status.converged
        assert q[2] == pytest.approx(height + 0.04, abs=1e-6)
        force = sum(c.impulse for c in sim.contacts)
        assert np.linalg.norm(force) == pytest.approx(9.81 * 2e-3, rel=1e-6)


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("angle", [0.0, 0.4, 2.0])
def test_a_body_that_leaves_the_field_gains_nothing(kind, angle):
    """Off the border, down its wall, and against the wall from outside: energy falls, nothing is found deep in the ground."""
    toward = np.array([np.cos(angle), np.sin(angle), 0])
    for start, speed in ((0.2, 1.5), (0.27, 0.3), (0.6, -2.0)):
        model = on(lambda scene: scene.add_heightfield(np.zeros((9, 11)), SPACING), kind, start * toward + [0, 0, 0.12])
        sim = coulomb.Simulator(model)
        q, v = model.neutral()
        v[:3], v[3:] = speed * toward, (1, 2, 1)
        energy = sum(model.energy(q, v))
        for _ in range(300):
            q, v = sim.step(q, v)
            now = sum(model.energy(q, v))
            assert sim.status.converged, sim.status
            assert now <= energy + 2e-3
            assert max((c.depth for c in sim.contacts), default=0) < 5e-3
            energy = now


def test_heights_stay_above_the_floor():
    model = on(lambda scene: scene.add_heightfield(np.zeros((3, 3)), 1, base=0.5, name="t"), "sphere")
    heights = np.zeros(9)
    heights[4] = -0.5
    with pytest.raises(ValueError, match=r"heights/t.*\[4\].*floor"):
        model.with_parameters({"heights/t": heights})


def test_a_room_of_triangles_holds_a_ball():
    """The inside of a cube: triangles that face inwards, walls at right angles."""
    s = 0.2
    corners = np.array([[x, y, z] for x in (-s, s) for y in (-s, s) for z in (-s, s)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    triangles = []
    for quad in quads:
        a, b, c, d = quad
        normal = np.cross(corners[b] - corners[a], corners[c] - corners[a])
        faces = [(a, b, c), (a, c, d)] if normal @ corners[list(quad)].mean(0) < 0 else [(a, c, b), (a, d, c)]
        triangles += faces
    scene = coulomb.Scene(timestep=2e-3)
    scene.add_triangle_mesh(corners, triangles, friction=0.3)
    scene.add_sphere(0.05, mass=1.0)
    scene.add_box([0.08, 0.06, 0.1], mass=1.0, position=(0.1, 0.1, 0.1))
    model = scene.build()
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    v[:3], v[6:9] = (2, 1.5, 0), (-1, -2, 1)
    for _ in range(1000):
        q, v = sim.step(q, v)
        assert sim.status.converged
        assert np.abs(q[:3]).max() < s - 0.05 + 1e-3 and np.abs(q[7:10]).max() < s
    # The box lies; the ball rolls on, from wall to wall.
    assert np.abs(v[6:]).max() < 1e-6 and abs(q[2] + s - 0.05) < 1e-5


@pytest.mark.parametrize(
    "options", [{"contact": "penalty"}, {"stepper": "bdf1", "contact": "penalty"}, {"contact": "lcp"}]
)
def test_other_laws_of_contact(options):
    heights = 0.01 * np.random.default_rng(4).normal(size=(21, 21))
    model = on(lambda scene: scene.add_heightfield(heights, SPACING, friction=0.7), "box")
    sim = coulomb.Simulator(model, timestep=1e-3, **options)
    q, v = model.neutral()
    for _ in range(1500):
        q, v = sim.step(q, v)
        assert sim.status.converged
    assert np.abs(v).max() < 0.2 and 0 < q[2] < 0.12


def test_points_of_penalty_contact_meet_a_surface():
    flat = np.zeros((11, 11))
    ends = []
    for ground in (lambda scene: scene.add_ground(), lambda scene: scene.add_heightfield(flat, SPACING)):
        scene = coulomb.Scene(timestep=1e-3)
        ground(scene)
        points = 0.05 * np.array([[1, 0, -1], [-1, 1, -1], [-1, -1, -1]])
        scene.add_box([0.1, 0.1, 0.1], mass=1.0, position=(0.01, 0.02, 0.06), contact_points=points)
        model = scene.build()
        sim = coulomb.Simulator(model, contact="penalty")
        q, v = model.neutral()
        for _ in range(300):
            q, v = sim.step(q, v)
        ends.append(np.r_[q, v])
    assert np.abs(ends[0] - ends[1]).max() < 1e-9


@pytest.mark.parametrize("kind", SHAPES)
def test_derivatives_of_state_and_heights(kind):
    rng = np.random.default_rng(5)
    judged = touched = 0
    for _ in range(6):
        heights = 0.02 * rng.normal(size=(5, 5))
        turned = np.array([1, 0.1, 0.05, 0.2]) / np.linalg.norm([1, 0.1, 0.05, 0.2])
        model = on(
            lambda scene, h=heights, r=turned: scene.add_heightfield(h, 0.08, friction=0.7, name="t", quaternion=r),
            kind,
        )
        sim = coulomb.Simulator(model)
        q, v = model.neutral()
        v[:] = 0.2 * rng.normal(size=6)
        wait = rng.integers(0, 20)
        for _ in range(300):
            q, v = sim.step(q, v)
            wait -= len(sim.contacts) > 0
            if wait < 0:
                break
        check = coulomb.check_gradients(sim, q, v, wrt=["q", "v", "heights/t", "friction/t"], tolerance=1e-5)
        judged += check.smooth
        touched += check.smooth and len(sim.contacts) > 0
        assert check.passed or not check.smooth, check.errors
    assert judged >= 2 and touched >= 1


def test_derivatives_by_vertices_of_a_triangle_mesh():
    rng = np.random.default_rng(6)
    vertices, triangles = grid(0.02 * rng.normal(size=(4, 4)), 0.1)
    vertices[:, :2] += 0.01 * rng.normal(size=(16, 2))
    model = on(lambda scene: scene.add_triangle_mesh(vertices, triangles, friction=0.5, name="t"), "sphere")
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    for _ in range(120):
        q, v = sim.step(q, v)
    assert len(sim.contacts) >= 1
    check = coulomb.check_gradients(sim, q, v, wrt=["q", "v", "vertices/t"], tolerance=1e-5)
    assert check.passed and check.smooth, check.errors

    # Reverse mode is the transpose.
    sim.step(q, v)
    by_vertices = sim.derivatives(wrt=["vertices/t"])["vertices/t"]
    w = rng.normal(size=12)
    back = sim.vjp(w[:6], w[6:], wrt=["vertices/t"])
    assert back["vertices/t"].ravel() == pytest.approx(w @ by_vertices, rel=1e-9, abs=1e-12)
    assert np.abs(by_vertices).max() > 1e-3


def test_reverse_and_forward_agree():
    rng = np.random.default_rng(7)
    model = on(
        lambda scene: scene.add_heightfield(0.02 * rng.normal(size=(9, 9)), SPACING, friction=0.7, name="t"), "box"
    )
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    for k in range(200):
        q, v = sim.step(q, v)
        if k % 20:
            continue
        J = sim.derivatives()
        w = rng.normal(size=12)
        back = sim.vjp(w[:6], w[6:])
        assert np.r_[back.q, back.v] == pytest.approx(w @ J.A, rel=1e-9, abs=1e-9 * np.abs(J.A).max())


def test_saved_pickled_and_changed():
    heights = 0.01 * np.random.default_rng(8).normal(size=(6, 7))
    model = on(lambda scene: scene.add_heightfield(heights, (0.1, 0.2), name="t"), "sphere")
    again = pickle.loads(pickle.dumps(model))
    assert (np.asarray(again.surface_vertices(0)) == model.surface_vertices(0)).all()
    assert model.heightfield_shape(0) == (6, 7)
    assert model.surface_vertices(0)[:42, 2].reshape(6, 7) == pytest.approx(heights)
    x = model.surface_vertices(0)[:42, 0].reshape(6, 7)
    assert x[0] == pytest.approx(0.1 * (np.arange(7) - 3))
    changed = model.with_parameters({"heights/t": heights.ravel() + 1})
    assert (changed.geometry_mesh == model.geometry_mesh).all()
    assert changed.surface_vertices(0)[:42, 2].reshape(6, 7) == pytest.approx(heights + 1)
    assert model.surface_vertices(0)[:42, 2].reshape(6, 7) == pytest.approx(heights)


SQUARE = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
WRONG = {
    "one row": (lambda s: s.add_heightfield(np.zeros((1, 5)), 1), "at least two rows of two"),
    "spacing": (lambda s: s.add_heightfield(np.zeros((3, 3)), 0), r"spacing\[0\]"),
    "height": (lambda s: s.add_heightfield([[0, np.nan], [0, 0]], 1), "heights"),
    "base": (lambda s: s.add_heightfield(np.zeros((2, 2)), 1, base=0), "base"),
    "no triangle": (lambda s: s.add_triangle_mesh(SQUARE, np.zeros((0, 3))), "at least one triangle"),
    "index": (lambda s: s.add_triangle_mesh(SQUARE, [[0, 1, 4]]), r"triangles\[0\]: 4 is none of its 4 vertices"),
    "half an index": (lambda s: s.add_triangle_mesh(SQUARE, [[0, 1, 1.5]]), r"triangles\[0, 2\]"),
    "no area": (lambda s: s.add_triangle_mesh(SQUARE, [[0, 1, 1]]), r"triangles\[0\]: its corners lie on one line"),
    "turned neighbour": (lambda s: s.add_triangle_mesh(SQUARE, [[0, 1, 2], [0, 3, 2]]), "in the same direction"),
    "taken": (lambda s: [s.add_heightfield(np.zeros((2, 2)), 1, name="t") for _ in range(2)], "name 't' is taken"),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_input(case):
    call, why = WRONG[case]
    with pytest.raises(ValueError, match=why):
        call(coulomb.Scene())


def test_split_steps_on_flat_ground_are_those_on_a_plane():
    """Impacts at the same times, and the same motion, of every shape; an ellipsoid chatters, which rounding decides after a while."""
    corners = np.array([[-3, -3, 0], [3, -3, 0], [3, 3, 0], [-3, 3, 0.0]])
    grounds = {
        "plane": lambda scene: scene.add_ground(friction=0.5, restitution=0.4),
        "field": lambda scene: scene.add_heightfield(np.zeros((21, 21)), 0.2, friction=0.5, restitution=0.4),
        "mesh": lambda scene: scene.add_triangle_mesh(corners, [[0, 1, 2], [0, 2, 3]], friction=0.5, restitution=0.4),
    }
    for shape in ("sphere", "box", "capsule", "cylinder", "ellipsoid", "mesh"):
        ends = {}
        for name, ground in grounds.items():
            model = on(ground, shape, (0.013, 0.021, 0.4))
            sim = coulomb.Simulator(model, timestep=5e-3, continuous_collision=True)
            q, v = model.neutral()
            v[:] = [0.5, -0.3, -1, 2, 1, -3]
            times = []
            for _ in range(60 if shape == "ellipsoid" else 200):
                q, v = sim.step(q, v)
                assert sim.status.converged
                times += [impact.time for impact in sim.impacts]
            ends[name] = (q, v, times)
        assert len(ends["plane"][2]) > 0
        for name in ("field", "mesh"):
            for ours, theirs in zip(ends[name], ends["plane"], strict=True):
                np.testing.assert_allclose(ours, theirs, atol=1e-9, rtol=0, err_msg=f"{shape} on {name}")
