"""What the MJCF loader does not support: refused where the motion would change, listed in Model.ignored where it would not."""

import re

import mujoco
import numpy as np
import pytest

import coulomb

BODY = '<body name="b"><joint name="j" axis="0 1 0"{joint}/><geom name="g" type="box" size=".1 .2 .3"{geom}/><site name="s"/>{inside}</body>'


def document(option="", asset="", joint="", geom="", inside="", world="", after="", body=""):
    inner = BODY.format(joint=joint, geom=geom, inside=inside).replace('name="b"', f'name="b"{body}')
    return f'<mujoco>{option}<asset>{asset}</asset><worldbody>{inner}<body name="c" pos="2 0 0"><freejoint name="k"/><geom name="h" size=".1"/></body>{world}</worldbody>{after}</mujoco>'


ACTUATOR = "<actuator>{}</actuator>"
REFUSED = {
    "adhesion actuator": (
        dict(after=ACTUATOR.format('<adhesion body="c" ctrlrange="0 1" gain="1"/>')),
        "transmission by body (adhesion) is not supported",
    ),
    "gain of a user": (
        dict(after=ACTUATOR.format('<general joint="j" gaintype="user"/>')),
        "the force of gain type 6, bias type 0 is not supported",
    ),
    "bias of a user": (
        dict(after=ACTUATOR.format('<general joint="j" biastype="user"/>')),
        "the force of gain type 0, bias type 5 is not supported",
    ),
    "delayed motor": (
        dict(after=ACTUATOR.format('<motor joint="j" nsample="2" interp="zoh" delay="0.01"/>')),
        "actuator 'actuator0': delay",
    ),
    "override": (
        dict(option='<option><flag override="enable"/></option>'),
        "option: flag override (contact parameter override)",
    ),
    "polynomial stiffness": (dict(joint=' stiffness="1 2 3"'), "joint 'j': polynomial stiffness"),
    "polynomial damping": (dict(joint=' damping="1 2 3"'), "joint 'j': polynomial damping"),
    "negative stiffness": (dict(joint=' stiffness="-1"'), "joint 'j' stiffness: -1"),
    "negative damping": (dict(joint=' damping="-2"'), "joint 'j' damping: -2"),
    "plastic spring": (dict(joint=' stiffness="1" springyield="0.3"'), "joint 'j': springyield (plastic springs)"),
    "moving surface": (dict(geom=' surfacevel="1 0 0 0 0 0"'), "geom 'g': surfacevel (moving surfaces)"),
    "adhesive geom": (dict(geom=' adhesion="1"'), "geom 'g': adhesion"),
    "anisotropic pair": (
        dict(after='<contact><pair geom1="g" geom2="h" friction="0.5 0.6"/></contact>'),
        "pair 0: anisotropic friction (0.5, 0.6)",
    ),
    "cloth": (
        dict(
            world='<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" radius="0.01" dim="2" mass="1"/>'
        ),
        "flex: deformable bodies",
    ),
}


EQUALITIES = {
    4: "flex (edges of a deformable body) is not supported",
    5: "flexvert (vertices of a deformable body) is not supported",
    6: "flexstrain (strain of a deformable body) is not supported",
    7: "distance was removed from MuJoCo",
    8: "only connect, weld, joint and tendon equalities are supported (type 8)",
}


@pytest.mark.parametrize("kind", EQUALITIES)
def test_refused_equalities(kind):
    model = mujoco.MjModel.from_xml_string(
        document(after='<equality><connect name="e" body1="b" body2="c" anchor="0 0 0"/></equality>')
    )
    model.eq_type[0] = kind
    with pytest.raises(ValueError, match="equality 'e': " + re.escape(EQUALITIES[kind])):
        coulomb.Scene().add_mujoco_model(model)


def test_equalities_that_no_file_can_have_any_more():
    with pytest.raises(ValueError, match="unrecognized element\\s+Element 'distance'"):
        coulomb.load(document(after='<equality><distance geom1="g" geom2="h"/></equality>'))
    cloth = '<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" radius="0.01" dim="2" mass="1"><edge equality="true"/></flexcomp>'
    with pytest.raises(ValueError, match=r"equality 'equality0': flex \(edges of a deformable body\)"):
        coulomb.load(document(world=cloth))


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    parts, why = REFUSED[case]
    with pytest.raises(ValueError, match=r"^MJCF: .*" + re.escape(why)):
        coulomb.load(document(**parts))


LISTED = {
    "sensor": (dict(after="<sensor><clock/></sensor>"), "1 sensors (clock)"),
    "delay": (
        dict(after='<sensor><gyro site="s" delay="0.01" nsample="3"/></sensor>'),
        "delay or interval of 1 sensors",
    ),
    "camera": (dict(inside="<camera/>"), "1 cameras"),
    "light": (dict(inside="<light/>"), "1 lights"),
    "solref of a geom": (dict(geom=' solref="0.01 1"'), "(solref, solimp) of 1 geoms"),
    "solimp of a limit": (
        dict(joint=' range="-10 10" solimplimit="0.5 0.6 0.01"'),
        "(solref, solimp) of 1 joint limits",
    ),
    "solref of a friction loss": (
        dict(joint=' frictionloss="1" solreffriction="0.01 1"'),
        "(solref, solimp) of 1 joint friction losses",
    ),
    "solref of an equality": (
        dict(after='<equality><joint joint1="j" solref="0.01 1"/></equality>'),
        "(solref, solimp) of 1 equalities",
    ),
    "solref of a pair": (
        dict(after='<contact><pair geom1="g" geom2="h" solref="0.01 1"/></contact>'),
        "(solref, solimp) of 1 contact pairs",
    ),
    "margin": (dict(geom=' margin="0.01"'), "geom_margin of 1"),
    "gap": (dict(geom=' margin="0.01" gap="0.01"'), "geom_gap of 1"),
    "margin of a limit": (dict(joint=' margin="0.01" range="-10 10"'), "jnt_margin of 1"),
    "torsional friction": (dict(geom=' condim="4"'), "torsional and rolling friction (condim 4 or 6) of 1"),
    "integrator": (dict(option='<option integrator="RK4"/>'), "integrator RK4"),
    "cone": (dict(option='<option cone="elliptic"/>'), "cone elliptic"),
    "solver": (dict(option='<option solver="PGS"/>'), "solver and iterations"),
    "sleep": (dict(option='<option><flag sleep="enable"/></option>'), "flag sleep"),
    "explicit damping": (dict(option='<option><flag eulerdamp="disable"/></option>'), "flag eulerdamp disable"),
    "weight of a weld's rotation": (
        dict(after='<equality><weld body1="b" body2="c" torquescale="0.5"/></equality>'),
        "torquescale of 1 welds",
    ),
    "noslip": (dict(option='<option noslip_iterations="3"/>'), "noslip_iterations"),
    "picture mesh": (
        dict(
            asset='<mesh name="f" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>',
            world='<geom type="mesh" mesh="f" contype="0" conaffinity="0"/>',
        ),
        "1 geoms that cannot collide",
    ),
    "disabled group": (
        dict(
            option='<option actuatorgroupdisable="2"/>', after=ACTUATOR.format('<motor name="m" joint="j" group="2"/>')
        ),
        "actuator 'm' is disabled",
    ),
}


@pytest.mark.parametrize("case", LISTED)
def test_listed(case):
    parts, line = LISTED[case]
    assert any(line in ignored for ignored in coulomb.load(document(**parts)).ignored)


def test_a_weld_without_torques_is_a_connection():
    """torquescale 0: MuJoCo's rotation rows are zero, so only the point is held."""
    weld = '<equality><weld body1="b" body2="c" anchor="-1 0 0" torquescale="0"/></equality>'
    connect = '<equality><connect body1="c" body2="b" anchor="-1 0 0"/></equality>'
    runs = []
    for equality in (weld, connect):
        model = coulomb.load(document(after=equality))
        assert [e.type for e in model.equalities] == ["connect"]
        q, v = model.neutral()
        v = v + 0.1 * np.arange(1, model.nv + 1)
        runs.append(coulomb.Simulator(model).rollout(q, v, steps=100))
        assert runs[-1].converged
    assert np.allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-9) and not np.allclose(
        runs[0].q[-1, 4:8], runs[0].q[0, 4:8], atol=1e-2
    )


def test_a_plain_model_lists_nothing():
    assert coulomb.load(document()).ignored == []
