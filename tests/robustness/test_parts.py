"""Compiled models whose arrays were changed afterwards: indices that lead nowhere and numbers out of range are refused by name."""

import math

import pytest

import coulomb

mujoco = pytest.importorskip("mujoco")

XML = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
  <body name="one"><freejoint name="base"/><geom name="ball" size=".1"/>
    <body name="two" pos=".3 0 0"><joint name="hinge" axis="0 1 0"/><geom name="box" type="box" size=".1 .1 .1"/></body></body></worldbody>
<actuator><motor name="motor" joint="hinge"/></actuator>
<equality><weld name="weld" body1="one" body2="two" active="false"/></equality></mujoco>"""


@pytest.mark.parametrize(
    ("field", "row", "value", "said"),
    [
        ("body_parentid", 2, 7, "body 'two' parent: index 7 is not within 0 .. 1"),
        ("body_mass", 1, -1.0, "body 'one' mass"),
        ("body_quat", 2, 2.0, "body 'two' quat"),
        ("jnt_bodyid", 1, 9, "joint 'hinge' body: index 9 is not within 1 .. 2"),
        ("jnt_axis", 1, 0.0, "joint 'hinge' axis"),
        ("geom_bodyid", 2, -3, "geometry 'box' body: index -3 is not within 0 .. 2"),
        ("geom_size", 1, -0.1, "geometry 'ball' size"),
        ("actuator_trnid", 0, 5, "actuator 'motor': actuator_trnid[0][0] = 5 is not a joint: the model has 2 joints"),
        ("eq_obj1id", 0, 44, "equality 'weld' body_a: index 44 is not within 0 .. 2"),
        ("qpos0", 3, 9.0, "joint 'base' q"),
    ],
)
def test_what_leads_nowhere_is_named(field, row, value, said):
    model = mujoco.MjModel.from_xml_string(XML)
    getattr(model, field)[row] = value
    scene = coulomb.Scene()
    with pytest.raises(ValueError) as error:
        scene.add_mujoco_model(model)
    assert said in str(error.value)
    assert scene.build().num_bodies == 1  # nothing of it has been added


@pytest.mark.parametrize(
    ("field", "row", "value", "said"),
    [
        ("geom_fluid", (1, 3), math.nan, "geom_fluid[1][3]: nan is not finite"),
        ("geom_fluid", (1, 9), math.inf, "geom_fluid[1][9]: inf is not finite"),
        ("geom_size", (1, 0), 0, "body 'one' ellipsoid in the medium semiaxes: 0 must be positive"),
        ("geom_quat", (1, 0), 3, "body 'one' ellipsoid in the medium quat"),
        ("geom_bodyid", 1, 7, "geometry 'ball' body: index 7 is not within 0 .. 2"),
    ],
)
def test_an_ellipsoid_of_nothing_is_named(field, row, value, said):
    text = XML.replace('name="ball" size', 'name="ball" fluidshape="ellipsoid" size')
    model = mujoco.MjModel.from_xml_string(text)
    getattr(model, field)[row] = value
    with pytest.raises(ValueError) as error:
        coulomb.Scene().add_mujoco_model(model)
    assert said in str(error.value)


@pytest.mark.parametrize("joint", [-1, 2, 5, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("inertia", [{}, {"actuator_armature": [0.3]}, {"actuator_damping": [0.2]}])
def test_an_actuator_of_no_joint_is_named(joint, inertia):
    """Also where the actuator has armature or damping of its own, which are added to its joint."""
    arrays = coulomb.mjcf.mujoco_arrays(mujoco.MjModel.from_xml_string(XML))
    arrays["reals"].update(inertia)
    arrays["integers"]["actuator_trnid"][0] = joint
    scene = coulomb.Scene()
    with pytest.raises(ValueError) as error:
        scene.add_mujoco_model(arrays)
    assert f"actuator 'motor': actuator_trnid[0][0] = {joint} is not a joint: the model has 2 joints" in str(
        error.value
    )
    assert scene.build().num_bodies == 1


TENDON = XML.replace(
    "</mujoco>", '<tendon><fixed name="t"><joint joint="hinge" coef="1"/></fixed></tendon></mujoco>'
).replace("</actuator>", '<position name="cord" tendon="t"/></actuator>')


@pytest.mark.parametrize(
    ("field", "row", "said"),
    [
        ("body_parentid", 2, "body 'two' parent: index {} is not within 0 .. 1"),
        ("jnt_bodyid", 1, "joint 'hinge' body: index {} is not within 1 .. 2"),
        ("jnt_qposadr", 1, "joint 'hinge' jnt_qposadr: index {} is not within 0 .. 7"),
        ("jnt_dofadr", 1, "joint 'hinge' jnt_dofadr: index {} is not within 0 .. 6"),
        ("wrap_objid", 0, "tendon 't' joint: index {} is not within 0 .. 1"),
        ("actuator_trntype", 0, "transmission by trntype {} is not supported"),
        ("nbody", 0, "nbody is {}"),
        ("njnt", 0, "njnt is {}"),
    ],
)
@pytest.mark.parametrize("value", [-2, -(2**31), 2**31 - 1])
@pytest.mark.parametrize("softness", [None, "file"])
def test_what_other_elements_look_up_is_named(field, row, said, value, softness):
    """Before tendons, actuators and their reports follow it."""
    if field in ("nbody", "njnt") and value > 0:
        said = "is missing or has no"
    arrays = coulomb.mjcf.mujoco_arrays(mujoco.MjModel.from_xml_string(TENDON))
    arrays["integers"][field][row] = value
    scene = coulomb.Scene()
    with pytest.raises(ValueError) as error:
        scene.add_mujoco_model(arrays, softness=softness)
    assert said.format(value) in str(error.value)
    assert scene.build().num_bodies == 1
