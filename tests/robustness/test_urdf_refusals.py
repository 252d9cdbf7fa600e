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
    "link twice": (link("a") + link("a"), "link 'a': is there twice"),
    "joint twice": (PAIR + link("c") + joint("1", "a", "b") + joint("1", "a", "c"), "joint '1': is there twice"),
    "link without a name": ("<link/>", "link number 1 has no name"),
    "unknown parent": (PAIR + joint("1", "nobody", "b"), "joint '1' parent: 'nobody' is no link"),
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
    "torus": (shape("<geometry><torus/></geometry>"), "link 'a' collision <torus>: is no shape"),
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
    with pytest.raises(ValueError, match="not well-formed XML: .* in line 2"):
        load("<link name='a'>\n<inertial mass=></inertial></link>")
    with pytest.raises(ValueError, match="not well-formed XML: </joint> closes <link> in line 2"):
        load("<link name='>'>\n</joint></link>")
    with pytest.raises(ValueError, match="not well-formed XML: </robot> closes <link> in line 1"):
        load("<link name='a'>")


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
