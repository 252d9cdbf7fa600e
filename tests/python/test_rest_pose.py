"""Model.rest_pose: every floating robot and free body lies with its lowest point on the ground."""

import math

import numpy as np
import pytest

import coulomb

POINTS = [(0.1, 0, 0), (-0.05, 0.1, 0), (-0.05, -0.1, 0.02), (0, 0, 0.12), (0, 0.01, -0.07)]
SHAPES = {
    "sphere": lambda scene, **how: scene.add_sphere(0.1, **how),
    "capsule": lambda scene, **how: scene.add_capsule(0.05, 0.2, **how),
    "cylinder": lambda scene, **how: scene.add_cylinder(0.05, 0.2, **how),
    "box": lambda scene, **how: scene.add_box((0.1, 0.2, 0.3), **how),
    "ellipsoid": lambda scene, **how: scene.add_ellipsoid((0.1, 0.2, 0.3), **how),
    "mesh": lambda scene, **how: scene.add_mesh(POINTS, **how),
}


def deepest(model, q):
    """How deep the lowest point is in the ground at q."""
    sim = coulomb.Simulator(model, timestep=1e-6)
    sim.step(q, np.zeros(model.nv))
    return max(contact.depth for contact in sim.contacts)


@pytest.mark.parametrize("normal", [(0, 0, 1), (0.3, -0.2, 1)])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_body_of_any_shape_lies_on_the_ground(shape, normal):
    random = np.random.default_rng(0)
    for _ in range(10):
        scene = coulomb.Scene()
        scene.add_ground(normal=normal, height=0.3)
        turn = random.normal(size=4)
        turn /= np.linalg.norm(turn)
        SHAPES[shape](scene, mass=1.0, position=tuple(random.uniform(-1, 1, 3)), quaternion=tuple(turn))
        model = scene.build()
        q = model.rest_pose(clearance=-1e-5)
        assert deepest(model, q) == pytest.approx(1e-5, abs=1e-12)

        # Along the normal, and nothing turns.
        moved = q - model.neutral()[0]
        assert np.abs(np.cross(moved[:3], normal)).max() < 1e-14 and not moved[3:].any()


LEG = """<mujoco><worldbody>
  <geom type="plane" size="1 1 1"/> <geom type="plane" size="1 1 1" pos="9 0 0" euler="0 -90 0"/>
  <body name="base" pos="0 0 3"><freejoint/> <geom type="box" size=".1 .1 .1"/>
    <body pos="0 0 -.1"><joint name="hip" axis="0 1 0"/> <geom type="capsule" size=".02" fromto="0 0 0 0 0 -.4"/>
      <geom type="sphere" size=".5" contype="0" conaffinity="0"/></body></body>
  <body name="ball" pos="1 0 -2"><freejoint/> <geom size=".1"/></body>
  <body name="pendulum" pos="2 0 1"><joint name="swing" axis="0 1 0"/> <geom type="capsule" size=".02" fromto="0 0 0 0 0 -.4"/></body>
</worldbody></mujoco>"""


def test_each_tree_by_itself_and_only_what_may_touch():
    model = coulomb.load(LEG)
    q, _ = model.neutral()
    hip, swing = model.joint_q[model.joint_names.index("hip")], model.joint_q[model.joint_names.index("swing")]
    q[hip], q[swing] = 0.5, 0.7
    given = q.copy()
    rested = model.rest_pose(q)
    assert np.array_equal(q, given)
    expected = given.copy()
    expected[2] = 0.1 + 0.4 * math.cos(0.5) + 0.02
    expected[model.joint_q[model.joint_names.index("hip")] + 3] = 0.1
    assert rested == pytest.approx(expected, abs=1e-15)
    assert rested[[hip, swing]].tolist() == [0.5, 0.7]

    # Rows of configurations, each as it is alone.
    other = q.copy()
    other[hip] = -1.2
    assert np.array_equal(model.rest_pose(np.stack([q, other])), [rested, model.rest_pose(other)])


def rough(rng, scene):
    scene.add_heightfield(0.1 * rng.normal(size=(30, 30)), (0.07, 0.07), name="ground")


def hills(rng, scene):
    """A triangle mesh, open at its border, on a slope."""
    n = 12
    x, y = np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n))
    z = 0.3 * x + 0.05 * rng.normal(size=x.shape)
    cell = np.arange(n * n).reshape(n, n)
    a, b, c, d = (cell[i : n - 1 + i, j : n - 1 + j].ravel() for i, j in ((0, 0), (0, 1), (1, 1), (1, 0)))
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    scene.add_triangle_mesh(np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1), triangles, name="ground")


@pytest.mark.parametrize("ground", [rough, hills])
@pytest.mark.parametrize("shape", SHAPES)
def test_on_ground_that_is_not_flat(shape, ground):
    random = np.random.default_rng(1)
    told = 0
    for _ in range(10):
        scene = coulomb.Scene()
        ground(random, scene)
        turn = random.normal(size=4)
        turn /= np.linalg.norm(turn)
        where = (*random.uniform(-0.6, 0.6, 2), random.uniform(-5, 5))
        SHAPES[shape](scene, mass=1.0, position=where, quaternion=tuple(turn))
        model = scene.build()
        q = model.rest_pose(clearance=-1e-4)
        apart = model.rest_pose(clearance=1e-6)
        assert apart[2] - q[2] == pytest.approx(1e-4 + 1e-6, abs=1e-9)
        assert np.array_equal(q[[0, 1, 3, 4, 5, 6]], model.neutral()[0][[0, 1, 3, 4, 5, 6]])

        # Nothing overlaps, and there is no lower place: pressed in along z, it is deep by the share of the normal.
        assert deepest_or_none(model, apart) < 0
        told += 0 < deepest_or_none(model, q) <= 1e-4 * (1 + 1e-9)
    assert told >= 9


def deepest_or_none(model, q):
    sim = coulomb.Simulator(model, timestep=1e-7)
    sim.step(q, np.zeros(model.nv))
    return max((contact.depth for contact in sim.contacts), default=-1.0)


def test_a_flat_field_is_the_plane():
    heights = []
    for flat in (True, False):
        scene = coulomb.Scene()
        if flat:
            scene.add_heightfield(np.full((5, 5), 0.2), (1.0, 1.0), name="ground")
        else:
            scene.add_ground(height=0.2)
        for k, shape in enumerate(SHAPES.values()):
            shape(scene, mass=1.0, position=(0.4 * k - 1, 0.1, 3 - k), quaternion=(0.8, 0.36, 0.48, 0), name=f"body{k}")
        model = scene.build()
        heights.append(model.rest_pose()[2::7])
    assert heights[0] == pytest.approx(heights[1], abs=1e-9)


def test_whole_robots_on_terrain():
    """Every geometry of a tree counts, the joints stay, and trees are placed one by one."""
    model = coulomb.load(
        LEG.replace('<geom type="plane" size="1 1 1"/>', '<geom type="hfield" hfield="steps"/>').replace(
            "<worldbody>",
            '<asset><hfield name="steps" nrow="3" ncol="3" size="2 2 .2 .1" elevation="0 0 1 0 0 1 0 0 1"/></asset><worldbody>',
        )
    )
    q, _ = model.neutral()
    q[model.joint_q[model.joint_names.index("hip")]] = 0.5
    rested = model.rest_pose(q)
    assert deepest_or_none(model, model.rest_pose(q, clearance=1e-6)) < 0
    assert 0 < deepest_or_none(model, model.rest_pose(q, clearance=-1e-5)) < 1.1e-5
    assert (np.delete(rested - q, [2, 10]) == 0).all() and rested[2] != q[2]


def table_scene(height):
    scene = coulomb.Scene()
    scene.add_ground()
    scene.add_box((1.0, 1.0, 0.05), position=(0, 0, 0.7), fixed=True, name="table")
    scene.add_sphere(0.1, mass=1.0, position=(0.1, 0, height), name="ball")
    return scene.build()


@pytest.mark.parametrize(
    "height, expected",
    [
        (2, 0.825),
        (0.7, 0.825),
        (0.81, 0.825),
        (0.4, 0.1),
        (0.03, 0.1),
        (-3, 0.1),
        (0.1, 0.1),
        (0.825, 0.825),
        (0.6, 0.825),
    ],
)
def test_tables_and_what_is_under_them(height, expected):
    """Down onto what is beneath, up out of what overlaps."""
    model = table_scene(height)
    assert model.rest_pose()[2] == pytest.approx(expected, abs=1e-9)


def test_solids_of_triangles():
    """A house of triangles: on the roof, and on the floor between."""
    boxes = [((-1, -1, -0.2), (1, 1, 0)), ((-1, -1, 1.5), (1, 1, 1.6))]
    vertices, triangles = [], []
    faces = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]
    for low, high in boxes:
        first = len(vertices)
        vertices += [[(low, high)[k >> i & 1][i] for i in range(3)] for k in range(8)]
        triangles += [[first + f[0], first + f[k], first + f[k + 1]] for f in faces for k in (1, 2)]
    for height, expected in ((3, 1.7), (1.55, 1.7), (1.45, 1.7), (0.7, 0.1), (0.05, 0.1), (-0.1, 0.1), (-0.05, 0.1)):
        scene = coulomb.Scene()
        scene.add_triangle_mesh(vertices, triangles, name="house")
        scene.add_sphere(0.1, mass=1.0, position=(0.3, 0.2, height), name="ball")
        assert scene.build().rest_pose()[2] == pytest.approx(expected, abs=1e-9)


def test_with_nothing_beneath_it_stays():
    scene = coulomb.Scene()
    scene.add_heightfield(np.zeros((3, 3)), (1.0, 1.0))
    scene.add_sphere(0.1, mass=1.0, position=(5, 0, 2), name="ball")
    model = scene.build()
    assert np.array_equal(model.rest_pose(), model.neutral()[0])


def test_what_is_refused_is_named():
    scene = coulomb.Scene()
    scene.add_box((0.1, 0.1, 0.1), mass=1.0)
    model = scene.build()
    with pytest.raises(ValueError, match=r"no half-space .*Scene\.add_ground"):
        model.rest_pose()
    scene.add_ground()
    model = scene.build()
    with pytest.raises(ValueError, match="clearance: got nan"):
        model.rest_pose(clearance=math.nan)
    with pytest.raises(ValueError, match="q"):
        model.rest_pose(np.zeros(3))
