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
