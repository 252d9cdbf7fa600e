"""Files of xacro macros: expanded, or refused by name."""

import sys

import pytest

import coulomb

ARM = """<?xml version="1.0"?>
<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:property name="half" value="${pi/2}"/>
  <xacro:macro name="part" params="name mass">
    <link name="${name}"><inertial><mass value="${2*mass}"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
      <collision><geometry><mesh filename="package://arm/meshes/tip.obj"/></geometry></collision></link>
  </xacro:macro>
  <xacro:part name="a" mass="1"/><xacro:part name="b" mass="3"/>
  <joint name="j" type="revolute"><parent link="a"/><child link="b"/><origin rpy="${half} 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-${half}" upper="${half}" effort="1" velocity="1"/></joint>
</robot>"""
TIP = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n"


@pytest.fixture
def path(tmp_path):
    (tmp_path / "arm" / "meshes").mkdir(parents=True)
    (tmp_path / "arm" / "meshes" / "tip.obj").write_text(TIP)
    file = tmp_path / "arm" / "arm.urdf.xacro"
    file.write_text(ARM)
    return file


def test_macros_are_expanded_beside_their_meshes(path):
    pytest.importorskip("xacro")
    model = coulomb.load(path, floating_base=True)
    assert model.body_mass[1:].tolist() == [2, 6] and model.num_geometries == 2
    assert model.joint_upper[-1] == pytest.approx(1.5707963267948966)

    # The name does not decide.
    other = path.with_name("arm.urdf")
    other.write_text(ARM)
    assert coulomb.load(other, floating_base=True).body_mass[1:].tolist() == [2, 6]


def test_without_the_package_the_error_says_so(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(ImportError, match=r"arm\.urdf\.xacro' has xacro macros.*pip install 'coulomb\[xacro\]'"):
        coulomb.load(path)


def test_what_cannot_be_expanded_is_named(path):
    with pytest.raises(ValueError, match="URDF string: has <xacro:...> macros"):
        coulomb.load(ARM)
    with pytest.raises(FileNotFoundError, match="no such file"):
        coulomb.load(path.with_name("none.xacro"))
    pytest.importorskip("xacro")
    path.write_text(ARM.replace("${pi/2}", "${nothing}"))
    with pytest.raises(ValueError, match=r"arm\.urdf\.xacro': xacro cannot expand it: .*nothing"):
        coulomb.load(path)


def test_what_xacro_leaves_behind_is_no_macro(tmp_path):
    link = '<link name="a"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>'
    comment = '<!-- <xacro:include filename="r.xacro"/>\n-->'
    text = f'<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">{comment}{link}</robot>'
    assert coulomb.load(text, floating_base=True).nv == 6
    file = tmp_path / "r.urdf"
    file.write_text(text)
    assert coulomb.load(file, floating_base=True).nv == 6


WITH_PARTS = """<robot name="{0}" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="heavy" default="false"/>
  <xacro:include filename="$(find parts)/part.xacro"/>
  <xacro:if value="$(arg heavy)"><xacro:part name="$(arg tip)" mass="9"/></xacro:if>
  <xacro:unless value="$(arg heavy)"><xacro:part name="$(arg tip)" mass="1"/></xacro:unless></robot>"""
PART = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:macro name="part" params="name mass"><link name="${name}"><inertial>
  <mass value="${mass}"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
  <collision><geometry><mesh filename="file://$(find parts)/meshes/tip.obj"/></geometry></collision></link></xacro:macro></robot>"""


@pytest.fixture
def robot(tmp_path):
    """A file that includes one of a package beside its own."""
    (tmp_path / "robots" / "arm" / "urdf").mkdir(parents=True)
    (tmp_path / "robots" / "parts" / "meshes").mkdir(parents=True)
    (tmp_path / "robots" / "parts" / "meshes" / "tip.obj").write_text(TIP)
    (tmp_path / "robots" / "parts" / "part.xacro").write_text(PART)
    file = tmp_path / "robots" / "arm" / "urdf" / "arm.xacro"
    file.write_text(WITH_PARTS)
    return file


def test_packages_and_arguments(robot):
    pytest.importorskip("xacro")
    modules = set(sys.modules)
    model = coulomb.load(robot, floating_base=True, xacro_args={"heavy": True, "tip": "hand"})
    assert model.body_names[1] == "hand" and model.body_mass[1] == 9 and model.num_geometries == 1
    assert coulomb.load(robot, floating_base=True, xacro_args={"tip": 3}).body_mass[1] == 1
    assert not {name for name in set(sys.modules) - modules if name.startswith("ament")}

    # A package in a folder that only package_dirs has, under another name.
    parts = robot.parents[2] / "parts"
    elsewhere = robot.parents[3] / "elsewhere"
    elsewhere.mkdir()
    parts.rename(elsewhere / "parts-2.0")
    (elsewhere / "parts-2.0" / "package.xml").write_text("<package><name>parts</name></package>")
    with pytest.raises(ValueError, match=r"no package 'parts' in .*package_dirs"):
        coulomb.load(robot, xacro_args={"tip": "a"})
    model = coulomb.load(robot, floating_base=True, xacro_args={"tip": "a"}, package_dirs=elsewhere / "parts-2.0")
    assert model.num_geometries == 1


def test_arguments_that_are_not_there(robot, path, tmp_path):
    pytest.importorskip("xacro")
    with pytest.raises(ValueError, match="substitution argument tip; xacro_args gives it a value"):
        coulomb.load(robot)
    with pytest.raises(ValueError, match=r"no argument 'head'; it has: heavy, tip"):
        coulomb.load(robot, xacro_args={"tip": "a", "head": 1})
    with pytest.raises(TypeError, match="xacro_args: expected a dict"):
        coulomb.load(robot, xacro_args=["tip"])
    plain = tmp_path / "plain.urdf"
    plain.write_text('<robot name="r"><link name="a"/></robot>')
    with pytest.raises(ValueError, match="xacro_args: the file has no xacro macros"):
        coulomb.load(plain, xacro_args={"tip": 1})
    with pytest.raises(ValueError, match="xacro_args.*only for URDF"):
        coulomb.load("<mujoco/>", xacro_args={"tip": 1})


def test_the_command_reads_them(robot, capsys):
    pytest.importorskip("xacro")
    from coulomb.__main__ import main

    assert main(["simulate", str(robot), "--duration", "0.01", "--xacro-arg", "tip=hand"]) == 0
    assert "1 bodies, 6 degrees of freedom" in capsys.readouterr().out
    assert main(["decompose", str(robot), "--xacro-arg", "tip=hand"]) == 0
    assert "tip.obj" in capsys.readouterr().out
