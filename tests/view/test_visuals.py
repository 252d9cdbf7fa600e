"""What models look like: visual shapes of URDF and MJCF files on the right bodies, with the right colours, and no effect on the motion."""

import pickle

import numpy as np
import pytest

import coulomb
from coulomb._collada import read_collada
from coulomb.mjcf_export import to_mjcf
from coulomb.view import mjcf_visuals
from coulomb.view.bodies import placements
from coulomb.view.meshes import MOST_FACES, primitive, read_mesh, simplified
from coulomb.view.poses import matrices, quaternions
from coulomb.view.urdf_visuals import UrdfVisuals
from coulomb.view.visuals import sources_of

INERTIAL = "<inertial><mass value='1'/><inertia ixx='.01' ixy='0' ixz='0' iyy='.01' iyz='0' izz='.01'/></inertial>"
BOX = "<geometry><box size='.2 .4 .6'/></geometry>"
URDF = f"""<robot name="two"><material name="red"><color rgba="1 0 0 1"/></material>
  <link name="base">{INERTIAL}<collision>{BOX}</collision><visual>{BOX}<material name="red"/></visual></link>
  <link name="tool"><visual><origin xyz="0 0 .1" rpy="0 0 1"/><geometry><sphere radius=".05"/></geometry>
    <material name="own"><color rgba="0 1 0 .5"/></material></visual></link>
  <link name="arm">{INERTIAL}<visual><origin xyz=".1 0 0"/><geometry><cylinder radius=".03" length=".2"/></geometry></visual></link>
  <joint name="weld" type="fixed"><parent link="base"/><child link="tool"/><origin xyz=".3 0 0" rpy="0 1 0"/></joint>
  <joint name="turn" type="continuous"><parent link="tool"/><child link="arm"/><origin xyz="0 .2 0" rpy="1 0 0"/></joint>
</robot>"""
MJCF = """<mujoco><asset><material name="gold" rgba="1 .8 0 1"/><mesh name="wedge" vertex="0 0 0  .1 0 0  0 .2 0  0 0 .3"/></asset>
  <worldbody><geom name="floor" type="plane" size="1 1 1" rgba=".2 .3 .4 1"/>
  <body name="a" pos="0 0 1"><freejoint/><geom name="hull" size=".1" group="3"/>
    <geom name="skin" type="box" size=".1 .2 .3" contype="0" conaffinity="0" material="gold"/>
    <geom name="unseen" size=".1" rgba="1 0 0 0"/>
    <body name="shell"><geom name="s" size=".05"/></body>
    <body name="b" pos="0 0 .5"><joint/><geom name="w" type="mesh" mesh="wedge" rgba="0 0 1 1"/></body></body></worldbody></mujoco>"""
TETRAHEDRON = """solid s
facet normal 0 0 -1\nouter loop\nvertex 0 0 0\nvertex 0 1 0\nvertex 1 0 0\nendloop\nendfacet
facet normal 0 -1 0\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 0 1\nendloop\nendfacet
facet normal -1 0 0\nouter loop\nvertex 0 0 0\nvertex 0 0 1\nvertex 0 1 0\nendloop\nendfacet
facet normal 1 1 1\nouter loop\nvertex 1 0 0\nvertex 0 1 0\nvertex 0 0 1\nendloop\nendfacet
endsolid s
"""


def volume(vertices, faces):
    a, b, c = (np.asarray(vertices)[np.asarray(faces)[:, i]] for i in range(3))
    return np.einsum("ij,ij->", a, np.cross(b, c)) / 6


def by_name(model):
    return {visual.name: visual for visual in model.visuals}


def mesh_robot(file):
    return (
        f"<robot name='r'><link name='leg'>{INERTIAL}<visual><geometry><mesh filename='{file}' scale='1 1 -2'/></geometry>"
        "</visual></link></robot>"
    )


def placed(model, visual, q):
    """World placement of a visual, by hand."""
    positions, turns = model.body_placements(q)
    R = turns[visual.body]
    return positions[visual.body] + R @ visual.position, R @ matrices(visual.quaternion)


def test_visuals_of_a_urdf_ride_on_their_links():
    """The frames of links behind fixed joints are sites of the model: an answer that visuals do not use."""
    model = coulomb.load(URDF, floating_base=True)
    q = model.integrate(model.neutral()[0], np.random.default_rng(0).normal(size=model.nv))
    found = by_name(model)
    assert sorted(found) == ["arm_0", "base_0", "tool_0"]
    assert found["base_0"].rgba == (1, 0, 0, 1) and found["tool_0"].rgba == (0, 1, 0, 0.5)
    assert found["base_0"].size == pytest.approx([0.1, 0.2, 0.3]) and found["arm_0"].size[:2] == pytest.approx(
        [0.03, 0.1]
    )
    assert model.body_names[found["tool_0"].body] == "base" and model.body_names[found["arm_0"].body] == "arm"

    position, _ = placed(model, found["tool_0"], q)
    tool = next(site for site in model.sites if site.name == "tool")
    positions, turns = model.body_placements(q)
    R = turns[tool.body] @ matrices(tool.quaternion)
    assert position == pytest.approx(positions[tool.body] + turns[tool.body] @ tool.position + R @ [0, 0, 0.1])


@pytest.mark.parametrize("name", ["go1", "go2", "ur5", "panda"])
def test_placements_are_pinocchios(name):
    pin = pytest.importorskip("pinocchio")
    from scenes import robots

    file, floating, _ = {**robots.URDF, "panda": ("panda_description/urdf/panda.urdf", False, None)}[name]
    from coulomb.demo import robot_path

    try:
        path, packages = robot_path(file)
    except RuntimeError as error:
        pytest.skip(str(error))
    joint = [pin.JointModelFreeFlyer()] if floating else []
    reference = pin.buildModelFromUrdf(str(path), *joint)
    shapes = pin.buildGeomFromUrdf(reference, str(path), pin.GeometryType.VISUAL, package_dirs=[str(packages)])
    scene = coulomb.Scene()
    scene.add_urdf(path, floating_base=floating, package_dirs=[packages])
    model = scene.build()

    q = model.integrate(model.neutral()[0], np.random.default_rng(1).normal(size=model.nv))
    q_pin, _ = model.to_pinocchio(q, np.zeros(model.nv))
    data, places = reference.createData(), shapes.createData()
    pin.forwardKinematics(reference, data, q_pin)
    pin.updateGeometryPlacements(reference, data, shapes, places)
    # Pinocchio's are of links, numbered as they are in the file, one for each element: a mesh of ours is one for each colour.
    of_theirs = {shape.name: place for shape, place in zip(shapes.geometryObjects, places.oMg)}
    assert {visual.name for visual in model.visuals} == set(of_theirs)
    for visual in model.visuals:
        position, turn = placed(model, visual, q)
        assert position == pytest.approx(of_theirs[visual.name].translation, abs=1e-9)
        assert turn == pytest.approx(of_theirs[visual.name].rotation, abs=1e-9)


@pytest.mark.parametrize("file", ["go1_description/meshes/hip.dae", "go1_description/meshes/depthCamera.dae",
                                  "panda_description/meshes/visual/link6.dae"])  # fmt: skip
def test_collada_is_what_the_collision_loader_reads(file):
    coal = pytest.importorskip("coal")
    from coulomb.demo import robot_path

    try:
        path, _ = robot_path(file)
    except RuntimeError as error:
        pytest.skip(str(error))
    reference = coal.MeshLoader().load(str(path), np.ones(3))
    pieces = read_collada(path)
    ours = np.concatenate([vertices[np.unique(faces)] for vertices, faces, _ in pieces])
    theirs = reference.vertices()
    assert sum(len(faces) for _, faces, _ in pieces) == reference.num_tris
    assert ours.min(0) == pytest.approx(theirs.min(0), abs=1e-6) and ours.max(0) == pytest.approx(
        theirs.max(0), abs=1e-6
    )
    assert all(colour is not None for _, _, colour in pieces)


def test_two_copies_of_a_robot_and_a_box():
    """Bodies of the second copy have other names; the box has no file and looks as it collides."""
    scene = coulomb.Scene()
    scene.add_ground()
    scene.add_box((0.1, 0.1, 0.1), name="base", position=(3, 0, 1))
    scene.add_urdf(URDF)
    scene.add_urdf(URDF, position=(0, 1, 0))
    model = scene.build()
    carried = {}
    for visual in model.visuals:
        carried.setdefault(visual.name, []).append(model.body_names[visual.body])
    assert carried == {
        "ground": ["world"],
        "base": ["base"],
        "base_0": ["base_2", "base_3"],
        "tool_0": ["base_2", "base_3"],
        "arm_0": ["arm", "arm_2"],
    }


def test_visuals_of_an_mjcf():
    """Geoms of groups 0 to 2, also those that do not collide; materials; the frame of a mesh is MuJoCo's, about its own centre."""
    model = coulomb.load(MJCF)
    found = by_name(model)
    assert sorted(found) == ["floor", "s", "skin", "w"]
    assert found["floor"].kind == "half_space" and found["floor"].body == 0
    assert found["skin"].rgba == pytest.approx((1, 0.8, 0, 1)) and found["w"].rgba == pytest.approx((0, 0, 1, 1))
    assert [model.body_names[found[name].body] for name in ("skin", "s", "w")] == ["a", "shell", "b"]
    assert model.geometry_names.index("skin") not in {*model.pair_a, *model.pair_b}  # it touches nothing

    wedge = found["w"]
    corners = wedge.vertices @ matrices(wedge.quaternion).T + wedge.position
    expected = np.array([(0, 0, 0), (0.1, 0, 0), (0, 0.2, 0), (0, 0, 0.3)])
    assert np.abs(corners[:, None] - expected[None]).sum(2).min(0) == pytest.approx(0, abs=1e-6)
    assert volume(wedge.vertices, wedge.faces) == pytest.approx(0.1 * 0.2 * 0.3 / 6, rel=1e-6)


def test_an_mjcf_with_collision_geoms_alone():
    """Bodies whose geoms are all in hidden groups are seen nevertheless."""
    model = coulomb.load(
        "<mujoco><worldbody><geom name='floor' type='plane' size='1 1 1'/><body><freejoint/><geom name='hull' size='.1' group='3'/>"
        "</body></worldbody></mujoco>"
    )
    assert [visual.name for visual in model.visuals] == ["floor", "hull"]


def test_the_file_of_an_mjcf_is_read_when_visuals_are_asked_for(tmp_path, monkeypatch):
    """Who only simulates waits for no mesh, and pickles hold none; of a string the shapes are kept, as there is nothing to read again."""
    (tmp_path / "robot.xml").write_text(MJCF)
    monkeypatch.chdir(tmp_path)
    read = []
    monkeypatch.setattr(
        mjcf_visuals, "mjcf_visuals", lambda compiled, real=mjcf_visuals.mjcf_visuals: read.append(1) or real(compiled)
    )
    scene = coulomb.Scene()
    scene.add_mjcf("robot.xml")
    models = [coulomb.load("robot.xml"), scene.build()]
    monkeypatch.chdir(tmp_path.parent)
    assert not read and b"wedge" not in pickle.dumps(sources_of(models[0]))
    expected = by_name(coulomb.load(MJCF))
    for model in [*models, pickle.loads(pickle.dumps(models[0]))]:
        found = by_name(model)
        assert list(found) == list(expected)
        assert all(found[name].body == expected[name].body for name in found)
        assert np.array_equal(found["w"].vertices, expected["w"].vertices)
    assert len(read) == 4

    (tmp_path / "robot.xml").write_text("<mujoco><worldbody/></mujoco>")
    with pytest.raises(ValueError, match=r"robot.xml': has 0 bodies, the model 3; was the file changed"):
        pickle.loads(pickle.dumps(models[0])).visuals  # noqa: B018
    (tmp_path / "robot.xml").unlink()
    with pytest.raises(FileNotFoundError, match="robot.xml': the file that the model was read from no longer exists"):
        pickle.loads(pickle.dumps(models[0])).visuals  # noqa: B018


@pytest.mark.parametrize("root", ["world", "base"])
@pytest.mark.parametrize("visual", ["", f"<visual><origin xyz='0 0 2'/>{BOX}</visual>"])
def test_a_base_that_floats_by_a_joint_of_the_file(root, visual):
    """What is seen of its parent stands where the robot was put."""
    model = coulomb.load(
        f"<robot name='r'><link name='{root}'>{visual}</link><link name='b'>{INERTIAL}<visual>{BOX}</visual></link>"
        f"<link name='c'>{INERTIAL}<visual>{BOX}</visual></link>"
        f"<joint name='j' type='floating'><parent link='{root}'/><child link='b'/></joint>"
        "<joint name='k' type='continuous'><parent link='b'/><child link='c'/></joint></robot>"
    )
    expected = {"b_0": "b", "c_0": "c"} | ({f"{root}_0": {"world": "world_2"}.get(root, root)} if visual else {})
    assert {visual.name: model.body_names[visual.body] for visual in model.visuals} == expected
    if visual:
        assert by_name(model)[f"{root}_0"].position == pytest.approx([0, 0, 2])


def test_links_of_a_file_that_changed_are_named(tmp_path):
    """Those that have visuals; of the others nothing is asked."""
    path = tmp_path / "robot.urdf"
    path.write_text(URDF)
    model = coulomb.load(path)
    path.write_text(URDF.replace('"arm"', '"hand"').replace("</robot>", f'<link name="bare">{INERTIAL}</link></robot>'))
    with pytest.raises(ValueError, match=r"robot.urdf': links \['hand'\]: the model has no bodies for them"):
        model.visuals  # noqa: B018


def test_without_visuals_the_collision_shapes_are_shown():
    bare = URDF.replace("<visual>", "<gazebo>").replace("</visual>", "</gazebo>")
    model = coulomb.load(bare, ground=True)
    assert [(v.name, v.kind) for v in model.visuals] == list(zip(model.geometry_names, model.geometry_types))


def test_they_survive_pickling_and_not_the_archive(tmp_path):
    model = coulomb.load(URDF)
    sim = coulomb.Simulator(model)
    assert sim.model is model
    for other in (pickle.loads(pickle.dumps(model)), pickle.loads(pickle.dumps(sim)).model):
        assert [v.name for v in other.visuals] == [v.name for v in model.visuals]
    scene = coulomb.Scene()
    scene.add_urdf(URDF)
    assert [v.name for v in pickle.loads(pickle.dumps(scene)).build().visuals] == [v.name for v in model.visuals]
    model.save(tmp_path / "model.coulomb")
    assert [v.name for v in coulomb.load(tmp_path / "model.coulomb").visuals] == list(model.geometry_names)


def test_visuals_do_not_move_bodies():
    """The same bits with and without them, and the same MJCF."""
    with_visuals, without = (
        coulomb.load(URDF),
        coulomb.load(URDF.replace("<visual>", "<gazebo>").replace("</visual>", "</gazebo>")),
    )
    assert to_mjcf(with_visuals, 1e-3) == to_mjcf(without, 1e-3)
    states = []
    for model in (with_visuals, without):
        model.visuals  # noqa: B018
        sim = coulomb.Simulator(model)
        q, v = model.neutral()
        for _ in range(20):
            q, v = sim.step(q, v)
        states.append(np.concatenate([q, v]).tobytes())
    assert states[0] == states[1]


def test_a_missing_mesh_is_named_when_it_is_looked_for():
    """A robot whose meshes are missing can be simulated."""
    model = coulomb.load(mesh_robot("package://nowhere/leg.stl"))
    with pytest.raises(FileNotFoundError, match="visual 0 of link 'leg': no mesh 'package://nowhere/leg.stl'"):
        model.visuals  # noqa: B018


@pytest.mark.parametrize(
    "name, text", [("leg.stl", "no mesh"), ("leg.dae", "<COLLADA><a></COLLADA>"), ("leg.dae", "<COLLADA/>")]
)
def test_a_broken_mesh_is_named(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    model = coulomb.load(mesh_robot(tmp_path / name))
    with pytest.raises(ValueError, match=rf"visual 0 of link 'leg': '.*{name}'"):
        model.visuals  # noqa: B018


def test_a_mesh_that_is_scaled_and_mirrored(tmp_path):
    """Its faces still look outside: the volume is positive, and scaled."""
    (tmp_path / "leg.stl").write_text(TETRAHEDRON)
    (visual,) = coulomb.load(mesh_robot("package://leg.stl"), package_dirs=[tmp_path]).visuals
    assert visual.vertices.min(0) == pytest.approx([0, 0, -2]) and visual.vertices.max(0) == pytest.approx([1, 1, 0])
    assert volume(visual.vertices, visual.faces) == pytest.approx(2 / 6)


def test_a_relative_path_is_found_from_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "leg.stl").write_text(TETRAHEDRON)
    (tmp_path / "robot.urdf").write_text(mesh_robot("leg.stl"))
    monkeypatch.chdir(tmp_path)
    model = coulomb.load("robot.urdf")
    monkeypatch.chdir(tmp_path.parent)
    assert model.visuals[0].kind == "mesh"


def test_large_meshes_are_simplified():
    """A sphere of 260000 faces: few enough, closed up to cells, within a cell of where it was."""
    angles = np.linspace(0, np.pi, 361), np.linspace(0, 2 * np.pi, 361)
    polar, around = np.meshgrid(*angles, indexing="ij")
    vertices = np.stack(
        [np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar)], axis=-1
    ).reshape(-1, 3)
    corner = (np.arange(360)[:, None] * 361 + np.arange(360)).reshape(-1)
    faces = np.concatenate(
        [np.stack([corner, corner + 361, corner + 362], 1), np.stack([corner, corner + 362, corner + 1], 1)]
    )
    assert volume(vertices, faces) == pytest.approx(4 / 3 * np.pi, rel=1e-3)
    few_vertices, few_faces = simplified(vertices, faces)
    assert MOST_FACES / 4 < len(few_faces) <= MOST_FACES
    assert np.abs(np.linalg.norm(few_vertices, axis=1) - 1).max() < 0.05
    assert volume(few_vertices, few_faces) == pytest.approx(4 / 3 * np.pi, rel=0.02)


@pytest.mark.parametrize(
    "kind, size, expected",
    [
        ("box", (0.1, 0.2, 0.3), 8 * 0.1 * 0.2 * 0.3),
        ("sphere", (0.5, 0, 0), 4 / 3 * np.pi * 0.5**3),
        ("ellipsoid", (0.1, 0.2, 0.3), 4 / 3 * np.pi * 0.1 * 0.2 * 0.3),
        ("cylinder", (0.5, 0.2, 0), np.pi * 0.5**2 * 0.4),
        ("capsule", (0.5, 0.2, 0), np.pi * 0.5**2 * 0.4 + 4 / 3 * np.pi * 0.5**3),
    ],
)
def test_primitives_have_their_volume_and_look_outside(kind, size, expected):
    """A circle of 32 sides has 0.9936 of its area; profiles of 16 sides lose no more."""
    vertices, faces, scale = primitive(kind, np.array(size))
    assert 0.98 * expected < volume(vertices * scale, faces) <= expected * (1 + 1e-12)


def test_quaternions_of_turns():
    """Every branch: turns by nothing, by half a turn about each axis, and at random."""
    q = np.concatenate([np.eye(4), np.random.default_rng(2).normal(size=(200, 4))])
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    back = quaternions(matrices(q))
    assert np.abs(np.einsum("ij,ij->i", q, back)) == pytest.approx(1, abs=1e-12)


def test_placements_of_many_configurations():
    model = coulomb.load(URDF)
    Q = np.array([[0.1], [0.2]])
    positions, turns = placements(model, Q)
    for i in range(2):
        p, R = model.body_placements(Q[i])
        assert np.array_equal(positions[i], p) and np.array_equal(turns[i], R)


def test_a_file_of_several_colours(tmp_path):
    """One mesh for each colour."""
    (tmp_path / "two.mtl").write_text("newmtl r\nKd 1 0 0\nnewmtl g\nKd 0 1 0\n")
    (tmp_path / "two.obj").write_text(
        "mtllib two.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nusemtl r\nf 1 3 2\nusemtl g\nf 1 2 4\n"
    )
    found = read_mesh(str(tmp_path / "two.obj"), np.ones(3), "a mesh")
    assert sorted(rgba for _, _, rgba in found) == [(0, 1, 0, 1), (1, 0, 0, 1)]


def test_folders_that_are_looked_through_are_named_once():
    """Of a file near the root there are fewer than six above."""
    where = UrdfVisuals("/models/robot.urdf", ("/more",))
    with pytest.raises(FileNotFoundError, match=r"no mesh 'leg.stl' in '/more', '/models';"):
        where._found("leg.stl", "a visual")
