"""URDF that the parser would silently read as something else: refused by name. What is only rounding: read and listed."""

import numpy as np
import pytest

import coulomb

INERTIAL = (
    "<inertial><mass value='{mass}'/>"
    "<inertia ixx='{inertia}' ixy='0' ixz='0' iyy='{inertia}' iyz='0' izz='{inertia}'/></inertial>"
)


def link(name, inside="", mass="1", inertia="1"):
    return f"<link name='{name}'>{INERTIAL.format(mass=mass, inertia=inertia)}{inside}</link>"


def joint(name, parent, child, kind="continuous", inside=""):
    return (
        f"<joint name='{name}' type='{kind}'><parent link='{parent}'/><child link='{child}'/>"
        f"<axis xyz='0 0 1'/>{inside}</joint>"
    )


def shape(inside):
    return link("a", f"<collision>{inside}</collision>")


def load(inside):
    scene = coulomb.Scene()
    scene.add_urdf(f"<robot name='r'>{inside}</robot>", floating_base=True)
    return scene.build()


PAIR = link("a") + link("b")
REFUSED = {
    "cycle beside the root": (
        PAIR + link("c") + joint("1", "b", "c") + joint("2", "c", "b"),
        "links 'b', 'c' hang in a cycle",
    ),
    "cycle and nothing else": (PAIR + joint("1", "a", "b") + joint("2", "b", "a"), "links 'a', 'b' hang in a cycle"),
    "below a cycle": (
        PAIR + link("c") + link("d") + joint("1", "b", "c") + joint("2", "c", "b") + joint("3", "c", "d"),
        "links 'b', 'c', 'd' hang in a cycle",
    ),
    "self loop": (PAIR + joint("1", "b", "b"), "joint '1': joins link 'b' to itself"),
    "two parents": (
        PAIR + link("c") + joint("1", "a", "c") + joint("2", "b", "c"),
        "joint '2': link 'c' is the child of joint '1' already",
    ),
    "two roots": (PAIR, r"has 2 root links \('a', 'b'\)"),
    "no link": ("", "has no link"),
    "link twice": (link("a") + link("a"), "link 'a': appears twice"),
    "joint twice": (PAIR + link("c") + joint("1", "a", "b") + joint("1", "a", "c"), "joint '1': appears twice"),
    "link without a name": ("<link/>", "link number 1 has no name"),
    "unknown parent": (PAIR + joint("1", "nobody", "b"), "joint '1' parent: 'nobody' is not a link"),
    "short box": (
        shape("<geometry><box size='1 1'/></geometry>"),
        "link 'a' collision <box> size: \"1 1\" holds 2 numbers",
    ),
    "box of nan": (shape("<geometry><box size='nan 1 1'/></geometry>"), "link 'a' collision <box> size: 'nan'"),
    "sphere of words": (shape("<geometry><sphere radius='wide'/></geometry>"), "<sphere> radius: 'wide'"),
    "cylinder without a length": (
        shape("<geometry><cylinder radius='1'/></geometry>"),
        "<cylinder>: has no attribute length",
    ),
    "mesh without a file": (shape("<geometry><mesh/></geometry>"), "link 'a' collision <mesh>: has no filename"),
    "torus": (shape("<geometry><torus/></geometry>"), "link 'a' collision <torus>: is not a URDF shape"),
    "empty geometry": (shape("<geometry/>"), "link 'a' collision <geometry>: is empty"),
    "empty collision": (shape(""), "link 'a' collision: has no <geometry>"),
    "origin of a shape": (
        shape("<origin xyz='0 0'/><geometry><sphere radius='1'/></geometry>"),
        "link 'a' collision origin xyz: \"0 0\" holds 2 numbers",
    ),
    "mass of nan": (
        PAIR.replace("value='1'", "value='nan'", 1) + joint("1", "a", "b"),
        "link 'a' inertial mass value: 'nan'",
    ),
    "mass of a fixed link": (
        link("a") + link("b", mass="1kg") + joint("1", "a", "b", "fixed"),
        "link 'b' inertial mass value: '1kg'",
    ),
    "inertia of inf": (link("a", inertia="inf"), "link 'a' inertial inertia ixx: 'inf'"),
    "negative inertia": (link("a", inertia="-1"), "link 'a' inertia: .* has a negative trace"),
    "inertia without mass": (
        "<link name='a'><inertial><mass value='1'/></inertial></link>",
        "link 'a' inertial: has no <inertia>",
    ),
    "axis": (PAIR + joint("1", "a", "b").replace("0 0 1", "0 0 up"), "joint '1' axis xyz: 'up'"),
    "no limit": (PAIR + joint("1", "a", "b", "revolute"), "joint '1': is revolute and has no <limit>"),
    "unknown type": (PAIR + joint("1", "a", "b", "hinge"), "joint '1' type: 'hinge' is not a URDF joint type"),
    "mimic without a leader": (
        PAIR + joint("1", "a", "b", inside="<mimic/>"),
        "<mimic> of joint '1': has no attribute joint",
    ),
    "mimic of words": (
        PAIR + joint("1", "a", "b", inside="<mimic joint='1' multiplier='x'/>"),
        "<mimic> of joint '1' multiplier: 'x' is not a number",
    ),
    "limit": (
        PAIR + joint("1", "a", "b", "revolute", "<limit lower='-x' upper='1' effort='1'/>"),
        "joint '1' limit lower: '-x'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case):
    inside, why = REFUSED[case]
    with pytest.raises(ValueError, match="^URDF string: ?.*" + why):
        load(inside)


def test_xml_that_is_not_well_formed():
    with pytest.raises(ValueError, match="not well-formed XML: XML_ERROR_PARSING_ATTRIBUTE in line 2"):
        load("<link name='a'>\n<inertial mass=></inertial></link>")
    never = "not well-formed XML: an element that begins in line {} is closed by another name, or never"
    with pytest.raises(ValueError, match=never.format(1)):
        load("<link name='>'>\n</joint></link>")
    with pytest.raises(ValueError, match=never.format(2)):
        load("\n<link name='a'>")
    with pytest.raises(ValueError, match="elements nested too deep"):
        load("<a>" * 1000 + "</a>" * 1000)


def test_what_is_fine_is_read():
    model = load(
        link("a", "<collision><geometry><box size='.1 .2 .3'/></geometry></collision>")
        + link(
            "b",
            "<collision name='x'><origin rpy='0 0 1'/><geometry><!-- thin --><cylinder length='1' radius='+.1'/></geometry></collision>",
        )
        + "<link name='c'/>"
        + joint("1", "a", "b")
        + joint("2", "b", "c", "fixed", "<origin/>")
    )
    assert model.body_names == ["world", "a", "b"] and model.num_geometries == 2


def test_an_inertia_of_rounding_size_is_zero_and_listed():
    tiny = link("b", mass="0", inertia="-5.4e-20")
    model = load(link("a") + tiny + link("c") + joint("1", "a", "b") + joint("2", "b", "c").replace("0 0 1", "1 0 0"))
    assert any("link 'b': inertia of 5.4e-20" in line for line in model.ignored)
    assert np.array_equal(model.body_inertia[model.body_names.index("b")], np.zeros(6))
    q, v = model.neutral()
    assert np.isfinite(coulomb.Simulator(model).step(q, v)[1]).all()


def test_an_inertia_of_rounding_size_need_not_be_negative():
    scattered = "ixx='3e-20' ixy='-2e-21' ixz='5e-20' iyy='1e-21' iyz='1e-20' izz='1e-20'/>"
    tiny = "<link name='b'><inertial><mass value='0'/><inertia " + scattered + "</inertial></link>"
    model = load(link("a") + tiny + link("c") + joint("1", "a", "b") + joint("2", "b", "c").replace("0 0 1", "1 0 0"))
    assert any("link 'b': inertia of 5e-20" in line for line in model.ignored)


def test_a_small_inertia_is_kept():
    model = load(link("a") + link("b", inertia="1e-18") + joint("1", "a", "b"))
    assert model.body_inertia[model.body_names.index("b")][0] == 1e-18
    assert not any("inertia" in line for line in model.ignored)


def test_a_negative_inertia_beside_a_smaller_robot_is_refused():
    with pytest.raises(ValueError, match="link 'b' inertia: .* has a negative trace"):
        load(link("a", inertia="1e-6") + link("b", inertia="-1e-12") + joint("1", "a", "b"))


def test_nothing_is_written_to_stderr(capfd):
    """The parser warns of materials that it does not know."""
    load(link("a", "<visual><geometry><sphere radius='1'/></geometry><material name='unknown'/></visual>"))
    assert capfd.readouterr() == ("", "")


def test_what_hangs_on_a_root_is_placed_with_it():
    """Also where the rest of the robot floats off that root by a joint of the file."""
    root = link("a", "<collision><origin xyz='0 0 .5'/><geometry><sphere radius='.1'/></geometry></collision>")
    scene = coulomb.Scene()
    place = {"position": (1, 2, 3), "quaternion": (np.sqrt(0.5), 0, np.sqrt(0.5), 0)}
    scene.add_urdf(f"<robot name='r'>{root}{link('b')}{joint('1', 'a', 'b', 'floating')}</robot>", **place)
    model = scene.build()
    assert model.body_names == ["world", "a", "b"]
    q, _ = model.neutral()
    np.testing.assert_allclose(model.geometry_placements(q)[0], [[1.5, 2, 3]], atol=1e-15)
    np.testing.assert_allclose(q[:3], [1, 2, 3])


def test_a_planar_joint_says_where_pinocchio_moves_it_otherwise():
    planar = PAIR + joint("1", "a", "b", "planar")
    scene = coulomb.Scene()
    scene.add_urdf(f"<robot name='r'>{planar.replace('0 0 1', '0 1 0')}</robot>")
    assert any("planar joint '1': moves across its axis; Pinocchio" in line for line in scene.build().deviations)
    scene = coulomb.Scene()
    scene.add_urdf(f"<robot name='r'>{planar}</robot>")
    assert not any("planar" in line for line in scene.build().deviations)
    with pytest.raises(ValueError, match="joint '1' axis"):
        coulomb.Scene().add_urdf(f"<robot name='r'>{planar.replace('0 0 1', '0 0 0')}</robot>")


def test_cylinders_named_for_it_are_capsules():
    """<collision_checking>, an extension of Pinocchio's."""
    pair = "".join(
        f"<collision name='{name}'><geometry><cylinder radius='.1' length='1'/></geometry></collision>"
        for name in ("x", "y")
    )
    model = load(link("a", pair + "<collision_checking><capsule name='y'/></collision_checking>"))
    assert model.geometry_types == ["cylinder", "capsule"]


def test_only_corners_of_triangles_count(tmp_path):
    """A vertex that no triangle has is no part of a collision mesh; links behind fixed joints may use the same file with another scale."""
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv 9 9 9\n"
    (tmp_path / "tip.obj").write_text(corners + "f 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n")
    shape_of = "<collision><geometry><mesh filename='package://tip.obj' scale='{}'/></geometry></collision>"
    robot = link("a", shape_of.format("1 1 1")) + link("b", shape_of.format("2 2 -2")) + joint("1", "a", "b", "fixed")
    scene = coulomb.Scene()
    scene.add_urdf(f"<robot name='r'>{robot}</robot>", package_dirs=tmp_path)
    model = scene.build()
    assert np.array_equal(np.unique(model.mesh_vertices(0)), [0, 1])
    assert np.array_equal(np.unique(model.mesh_vertices(1)), [-2, 0, 2])


def test_a_mesh_that_is_not_there_or_not_one(tmp_path):
    mesh = shape("<geometry><mesh filename='package://tip.stl'/></geometry>")
    for text, why in (
        (None, r"link 'a' collision <mesh>: no mesh 'package://tip.stl' in "),
        ("junk", "link 'a' collision <mesh>: .* has no triangles"),
    ):
        if text:
            (tmp_path / "tip.stl").write_text(text)
        scene = coulomb.Scene()
        with pytest.raises(ValueError, match=why):
            scene.add_urdf(f"<robot name='r'>{mesh}</robot>", package_dirs=tmp_path)
        assert scene.build().num_bodies == 1


def test_a_package_is_found_by_the_name_in_its_package_xml(tmp_path):
    """Its folder has another name, the robot lies below it; a package of that name elsewhere does not count."""
    tip = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n"
    (tmp_path / "models" / "meshes").mkdir(parents=True)
    (tmp_path / "models" / "robots").mkdir()
    (tmp_path / "models" / "meshes" / "tip.obj").write_text(tip)
    (tmp_path / "models" / "package.xml").write_text("<package><name> drake_models\n</name></package>")
    mesh = shape("<geometry><mesh filename='package://{}/meshes/tip.obj'/></geometry>")
    robot = tmp_path / "models" / "robots" / "r.urdf"
    robot.write_text(f"<robot name='r'>{mesh.format('drake_models')}</robot>")
    scene = coulomb.Scene()
    scene.add_urdf(robot)
    assert len(scene.build().mesh_vertices(0)) == 4
    scene = coulomb.Scene()
    scene.add_urdf(robot.read_text(), package_dirs=tmp_path / "models")
    assert len(scene.build().mesh_vertices(0)) == 4

    robot.write_text(f"<robot name='r'>{mesh.format('other_models')}</robot>")
    with pytest.raises(ValueError, match=r"no mesh 'package://other_models/meshes/tip\.obj' in "):
        coulomb.Scene().add_urdf(robot)


def test_a_sphere_of_radius_zero_is_a_point():
    text = f"<robot name='r'>{shape('<geometry><sphere radius=' + chr(39) + '0' + chr(39) + '/></geometry>')}</robot>"
    scene = coulomb.Scene()
    scene.add_ground()
    scene.add_urdf(text, floating_base=True, position=(0, 0, 0.01))
    model = scene.build()
    assert any("of radius 0: a point contact" in line for line in model.deviations)
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    for _ in range(200):
        q, v = sim.step(q, v)
    positions, _ = model.geometry_placements(q)
    assert positions[model.geometry_names.index("a_0"), 2] == pytest.approx(1e-6, abs=1e-7)
    assert sim.status.converged


def test_inertia_of_no_body_is_balanced_on_request():
    """The nearest one: second moments lose their negative principal part; what is one already stays to the last bit."""
    inertial = (
        "<inertial><origin xyz='.1 0 0' rpy='.3 .2 .1'/><mass value='2'/>"
        "<inertia ixx='1' ixy='.1' ixz='0' iyy='2' iyz='-.2' izz='4'/></inertial>"
    )
    text = f"<robot name='r'><link name='a'>{inertial}</link>{link('b')}{joint('1', 'a', 'b')}</robot>"
    with pytest.raises(ValueError, match="link 'a' inertia: .*belongs to no rigid body.*balance_inertia=True"):
        coulomb.load(text, floating_base=True)
    model = coulomb.load(text, floating_base=True, balance_inertia=True)
    assert any("link 'a': no rigid body has its inertia" in line for line in model.deviations)

    # About the principal axes of what was given: S = tr(I)/2 1 - I.
    given = np.array([[1, 0.1, 0], [0.1, 2, -0.2], [0, -0.2, 4]])
    second = np.linalg.eigvalsh(np.trace(given) / 2 * np.eye(3) - given)
    kept = np.maximum(second, 0)
    assert second[0] < -0.1
    xx, xy, yy, xz, yz, zz = model.body_inertia[1]
    got = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    assert np.linalg.eigvalsh(got) == pytest.approx(np.sort(kept.sum() - kept), rel=1e-12)
    assert model.body_mass[1] == 2 and model.body_com[1] == pytest.approx([0.1, 0, 0])
    fine = f"<robot name='r'>{link('a')}{link('b')}{joint('1', 'a', 'b')}</robot>"
    plain, same = coulomb.load(fine), coulomb.load(fine, balance_inertia=True)
    assert np.array_equal(plain.body_inertia, same.body_inertia)
    assert not any("rigid body" in line for line in same.deviations)


def test_limits_without_effort_or_velocity_have_no_bound():
    """urdfdom refuses them; people's files have them."""
    limit = "<limit lower='-1' upper='2'/>"
    whole = "<limit lower='-1' upper='2' effort='3' velocity='4'/>"
    links = link("a") + link("b") + link("c")
    text = f"<robot name='r'>{links}{joint('1', 'a', 'b', 'revolute', limit)}{joint('2', 'b', 'c', 'revolute', whole)}</robot>"
    model = coulomb.load(text)
    assert any("<limit> of 1 joints without effort or velocity: no bound" in line for line in model.deviations)
    assert (model.joint_lower[0], model.joint_upper[0]) == (-1, 2)
    assert [a.control_limited for a in model.actuators] == [False, True]
    without = coulomb.load(text.replace(whole, limit))
    assert not any("velocity limits" in line for line in without.deviations)


def solid(name, shape, inertial=""):
    collision = f"<collision><origin xyz='.1 .2 .3' rpy='.1 .2 .3'/><geometry>{shape}</geometry></collision>"
    return f"<link name='{name}'>{inertial}{collision}</link>"


BOX = "<box size='.1 .2 .3'/>"
CYLINDER = "<cylinder radius='.1' length='.3'/>"


def test_links_without_mass_have_that_of_their_shapes_on_request():
    """As in MuJoCo, whose compiler reads the same file with density 1000."""
    mujoco = pytest.importorskip("mujoco")
    links = link("a") + solid("b", BOX) + solid("c", CYLINDER)
    text = f"<robot name='r'>{links}{joint('1', 'a', 'b')}{joint('2', 'b', 'c')}</robot>"
    with pytest.raises(ValueError, match="mass or inertia that it moves is 0.*link_density"):
        coulomb.load(text)
    model = coulomb.load(text, link_density=1000)
    assert any("mass and inertia of link 'b' and 1 more: computed from collision shapes" in x for x in model.deviations)
    theirs = mujoco.MjModel.from_xml_string(text)
    assert model.body_mass[-2:] == pytest.approx(theirs.body_mass[-2:], rel=1e-12)
    assert model.body_mass[-2] == pytest.approx(1000 * 0.006)
    data = mujoco.MjData(theirs)
    data.qpos[:] = 0.3, -0.5
    mujoco.mj_forward(theirs, data)
    mass = np.zeros((2, 2))
    mujoco.mj_fullM(theirs, data, mass)
    assert model.mass_matrix(np.array(data.qpos)) == pytest.approx(mass, rel=1e-10)

    # What has an inertia keeps it.
    fine = f"<robot name='r'>{link('a')}{link('b')}{joint('1', 'a', 'b')}</robot>"
    assert np.array_equal(coulomb.load(fine).body_inertia, coulomb.load(fine, link_density=1000).body_inertia)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_a_bad_density_is_refused(value):
    with pytest.raises(ValueError, match="link_density"):
        coulomb.load(f"<robot name='r'>{link('a')}</robot>", link_density=value)


def test_an_inertial_without_mass():
    """A density of its own counts, else that of the option; without either it is refused."""
    dense = "<inertial><density value='250'/></inertial>"
    empty = "<inertial><inertia ixx='0' ixy='0' ixz='0' iyy='0' iyz='0' izz='0'/></inertial>"
    make = "<robot name='r'>{}</robot>".format
    model = coulomb.load(make(solid("a", BOX, dense)), floating_base=True)
    assert model.body_mass[1] == pytest.approx(250 * 0.006)
    with pytest.raises(ValueError, match="link 'a' inertial: has no <mass>; link_density=1000"):
        coulomb.load(make(solid("a", BOX, empty)), floating_base=True)
    model = coulomb.load(make(solid("a", BOX, empty)), floating_base=True, link_density=500)
    assert model.body_mass[1] == pytest.approx(500 * 0.006)
    for bad in ("0", "-1", "x"):
        with pytest.raises(ValueError, match="link 'a' inertial density"):
            coulomb.load(make(solid("a", BOX, dense.replace("250", bad))))
    with pytest.raises(ValueError, match="link_density: only for URDF"):
        coulomb.load("<mujoco/>", link_density=1000)


def test_a_package_under_another_name(tmp_path):
    """package://name/meshes/x with no package of that name: below a folder of the file, and listed."""
    folder = tmp_path / "arm_description"
    (folder / "urdf").mkdir(parents=True)
    (folder / "meshes").mkdir()
    corners = [[x, y, z] for x in (0, 0.1) for y in (0, 0.1) for z in (0, 0.1)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [
        "f 1 2 3",
        "f 2 3 4",
        "f 5 6 7",
        "f 6 7 8",
        "f 1 5 3",
        "f 2 6 4",
    ]
    (folder / "meshes" / "box.obj").write_text("\n".join(lines))
    mesh = "<mesh filename='package://arm_support/meshes/box.obj'/>"
    path = folder / "urdf" / "arm.urdf"
    path.write_text(f"<robot name='r'>{shape('<geometry>' + mesh + '</geometry>')}</robot>")
    model = coulomb.load(path, floating_base=True)
    assert model.num_geometries == 1
    (line,) = (x for x in model.deviations if "its files are read from" in x)
    assert "package://arm_support/meshes/box.obj" in line and "arm_description'" in line
    path.write_text(path.read_text().replace("box.obj", "none.obj"))
    with pytest.raises(ValueError, match="no mesh 'package://arm_support/meshes/none.obj'"):
        coulomb.load(path, floating_base=True)
