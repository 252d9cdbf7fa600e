"""coulomb.load and the loaders' promises: what a file says is what steps; what is left out is listed; what cannot be is an error."""

import warnings

import numpy as np
import pytest

import coulomb

EVERYTHING = """<mujoco><compiler angle="radian"/><option timestep="0.002" gravity="0.3 -.2 -9.81"/>
<default><geom contype="0" conaffinity="0"/></default><worldbody>
<body pos="0 0 1" quat=".9 .1 .2 .3"><freejoint/><geom type="box" size=".1 .2 .3" mass="2"/>
  <body pos=".3 0 .1" euler=".2 .3 .4">
    <joint name="h1" axis="0 1 .3" pos=".05 .02 0" damping=".3" stiffness="2" springref=".2" armature=".05" ref=".1"/>
    <joint name="s1" type="slide" axis="1 0 1" damping=".5" stiffness="10" ref=".05"/>
    <geom type="capsule" size=".05 .2" pos=".1 0 0" mass="1"/>
    <body pos="0 .3 0"><joint name="b1" type="ball" pos="0 .05 0" damping=".2" stiffness="1.5" armature=".02"/>
      <geom type="ellipsoid" size=".1 .05 .07" mass=".5"/>
      <body pos=".1 .1 .1"><geom type="cylinder" size=".04 .1" mass=".7"/></body></body></body></body>
<body pos="2 0 0"><joint name="h2" axis="1 0 0"/><joint name="h3" axis="0 1 0"/><joint name="s2" type="slide" axis="0 0 1"/>
  <geom size=".1" pos=".2 0 0" mass="3"/>
  <body pos="0 0 .4"><joint name="h4" axis="0 1 0" actuatorfrcrange="-3 3"/><geom type="box" size=".05 .05 .2"/></body></body>
</worldbody><actuator><motor joint="h1" gear="3"/><position joint="s1" kp="20" kv="2"/>
<velocity joint="h2" kv="4" ctrlrange="-1 1" ctrllimited="true"/>
<general joint="h3" gainprm="2" biasprm=".5 -3 -.2" biastype="affine" gear="1.5" forcerange="-2 2" forcelimited="true"/>
<motor joint="b1" gear=".1 .2 .3 0 0 0"/><motor joint="h4" gear="5"/><position joint="s2" kp="50" ctrlrange="-.1 .1"/></actuator></mujoco>"""


@pytest.mark.parametrize(("integrator", "rule"), [("EULER", "explicit"), ("IMPLICITFAST", "implicit_velocity")])
def test_a_step_without_contact_is_mujocos(integrator, rule):
    """Joints, springs, dampers, actuators and their ranges: MuJoCo's step is the same formula where nothing touches."""
    mujoco = pytest.importorskip("mujoco")
    theirs = mujoco.MjModel.from_xml_string(EVERYTHING)
    theirs.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
    data, ours = mujoco.MjData(theirs), coulomb.load(EVERYTHING)
    sim = coulomb.Simulator(ours, gyroscopic="explicit", joint_forces=rule)
    random = np.random.default_rng(0)
    assert (ours.nq, ours.nv, ours.nu, ours.ignored) == (theirs.nq, theirs.nv, theirs.nu, [])
    for _ in range(30):
        q = ours.integrate(ours.neutral()[0], random.normal(size=ours.nv))
        v, u, tau = random.normal(size=ours.nv), 2 * random.normal(size=ours.nu), random.normal(size=ours.nv)
        data.qpos[:], data.qvel[:], data.ctrl[:], data.qfrc_applied[:] = q, v, u, tau
        mujoco.mj_step(theirs, data)
        q1, v1 = sim.step(q, v, u, tau=tau)
        assert v1 == pytest.approx(data.qvel, abs=1e-11 * np.abs(v1).max())
        assert np.abs(ours.difference(q1, data.qpos)).max() < 1e-12


BODY = (
    "<body name='a' pos='0 0 1'><joint name='j'/><geom name='g' size='.1'/><site name='s'/></body>"
    "<body name='b' pos='1 0 1'><freejoint name='f'/><geom name='h' type='box' size='.1 .1 .1'/></body>"
)


def mjcf(world="", extra="", before=""):
    return f"<mujoco>{before}<worldbody>{BODY}{world}</worldbody>{extra}</mujoco>"


TENDON = "<tendon><fixed name='t' {}><joint joint='j' coef='1'/></fixed></tendon>"
REFUSED = {
    "stiffnesspoly": mjcf(extra=TENDON.format("stiffness='1 2 3'")),
    "transmission": mjcf(extra="<actuator><adhesion body='b' ctrlrange='0 1'/></actuator>"),
    "actuator dynamics": mjcf(extra="<actuator><general joint='j' dyntype='user'/></actuator>"),
    "anisotropic friction": mjcf(
        extra="<contact><pair geom1='g' geom2='h' friction='.3 .5 0 0 0' condim='3'/></contact>"
    ),
    "timestep": mjcf(before="<option timestep='0'/>"),
    "gravity": mjcf(before="<option gravity='nan 0 0'/>"),
    "friction": mjcf("<geom size='.1' friction='-1' pos='5 0 0'/>"),
}


@pytest.mark.parametrize(("word", "text"), REFUSED.items(), ids=REFUSED.keys())
def test_what_would_change_the_motion_is_refused(word, text):
    pytest.importorskip("mujoco")
    with pytest.raises(ValueError, match=word):
        coulomb.load(text)


LISTED = {
    "sensors": mjcf(extra="<sensor><clock/></sensor>"),
    "cameras": mjcf("<camera/>"),
    "condim 4": mjcf("<geom size='.1' condim='4' pos='5 0 0'/>"),
    "solref": mjcf("<geom size='.1' solref='.1 1' pos='5 0 0'/>"),
    "margin": mjcf("<geom size='.1' margin='.1' pos='5 0 0'/>"),
    "integrator": mjcf(before="<option integrator='RK4'/>"),
    "cone": mjcf(before="<option cone='elliptic'/>"),
    "noslip": mjcf(before="<option noslip_iterations='3'/>"),
}


@pytest.mark.parametrize(("word", "text"), LISTED.items(), ids=LISTED.keys())
def test_what_is_left_out_is_listed(word, text):
    pytest.importorskip("mujoco")
    assert any(word in line for line in coulomb.load(text).ignored)


FLAGS = {
    "constraint": lambda m: m.num_pairs == 0 and not m.joint_limited.any() and not m.dof_dry_friction.any(),
    "contact": lambda m: m.num_pairs == 0,
    "frictionloss": lambda m: not m.dof_dry_friction.any(),
    "limit": lambda m: not m.joint_limited.any(),
    "gravity": lambda m: not m.gravity.any(),
    "damper": lambda m: not m.dof_damping.any(),
    "spring": lambda m: not m.joint_stiffness.any(),
    "clampctrl": lambda m: not m.actuators[0].control_limited,
}


@pytest.mark.parametrize(("flag", "off"), FLAGS.items(), ids=FLAGS.keys())
def test_flags_switch_off(flag, off):
    pytest.importorskip("mujoco")
    text = (
        "<mujoco><option><flag {}/></option><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 1'>"
        "<joint name='j' damping='1' stiffness='3' frictionloss='.2' limited='true' range='-1 1'/><geom size='.1'/></body>"
        "</worldbody><actuator><motor joint='j' ctrllimited='true' ctrlrange='-1 1'/></actuator></mujoco>"
    )
    assert not off(coulomb.load(text.format("energy='disable'")))
    assert off(coulomb.load(text.format(f"{flag}='disable'")))


def contact_friction(floor, ball):
    model = coulomb.load(
        f"<mujoco><worldbody><geom type='plane' size='1 1 1' {floor}/><body pos='0 0 .0999'><freejoint/><geom size='.1' {ball}/>"
        "</body></worldbody></mujoco>"
    )
    sim = coulomb.Simulator(model)
    sim.step(*model.neutral())
    return [c.friction for c in sim.contacts]


@pytest.mark.parametrize(
    ("floor", "ball", "friction"),
    [
        ("friction='.2'", "friction='.4'", [0.4]),
        ("priority='3' friction='.2'", "friction='.4'", [0.2]),
        ("condim='1'", "condim='1'", [0.0]),
        ("priority='3' condim='1'", "", [0.0]),
        ("", "contype='0' conaffinity='0'", []),
        ("contype='2'", "conaffinity='2' contype='0' friction='.7'", [1.0]),
    ],
)
def test_who_touches_whom_and_how(floor, ball, friction):
    pytest.importorskip("mujoco")
    assert contact_friction(floor, ball) == friction


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"floating_base": True}, ValueError, "floating_base"),
        ({"ignore_mimic": True}, ValueError, "ignore_mimic"),
        ({"friction": 0.3}, ValueError, "friction"),
        ({"timestep": -1}, ValueError, "timestep"),
        ({"colour": "red"}, TypeError, "colour"),
    ],
)
def test_options_that_do_not_fit(options, error, words):
    with pytest.raises(error, match=words):
        coulomb.load(mjcf(), **options)


def test_scene_options_reach_the_scene():
    model = coulomb.load(mjcf(), ground=True, friction=0.3, gravity=(0, 0, -1), timestep=0.004)
    assert model.gravity[2] == -1 and model.timestep == 0.004 and model.geometry_types[0] == "half_space"
    assert model.geometry_friction[0] == 0.3


FELT = "condim 4", "solref", "margin", "integrator", "noslip"


@pytest.mark.parametrize(("word", "text"), LISTED.items(), ids=LISTED.keys())
def test_what_the_motion_may_feel_is_in_a_list_of_its_own(word, text):
    pytest.importorskip("mujoco")
    model = coulomb.load(text)
    felt = [line for line in model.deviations if word.split()[0] in line]
    assert bool(felt) == (word in FELT) and set(model.deviations) <= set(model.ignored)


def test_joint_velocity_limits_of_a_urdf_are_a_deviation():
    from tests.python.test_names import ARM

    model = coulomb.load(ARM)
    assert len(model.deviations) == 1 and "joint velocity limits" in model.deviations[0]


@pytest.mark.parametrize(
    ("floor", "same"),
    [
        ("<geom name='floor' type='plane' size='1 1 1'/>", True),
        ("<body pos='0 0 -1'><geom name='floor' type='plane' size='1 1 1' pos='0 0 1'/></body>", True),
        ("<geom name='floor' type='plane' size='1 1 1' pos='0 0 -.5'/>", False),
        ("<geom name='floor' type='plane' size='1 1 1' euler='0 5 0'/>", False),
        ("<geom name='floor' type='plane' size='1 1 1' contype='0' conaffinity='0'/>", False),
        ("", False),
    ],
)
def test_a_floor_is_not_doubled(floor, same):
    pytest.importorskip("mujoco")
    text = mjcf(world=floor)
    if not same:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = coulomb.load(text, ground=True, friction=0.7)
        assert model.geometry_names[0] == "ground" and model.geometry_friction[0] == 0.7
        return
    with pytest.warns(UserWarning, match="the file has the plane 'floor' at z = 0, no second one is added"):
        model = coulomb.load(text, ground=True)
    assert model.geometry_types.count("half_space") == 1 and model.num_pairs == coulomb.load(text).num_pairs
    with pytest.raises(ValueError, match="friction: got 0.7, but the ground is the file's own plane 'floor'"):
        coulomb.load(text, ground=True, friction=0.7)


def test_options_of_actuators_are_for_urdf():
    pytest.importorskip("mujoco")
    for options in ({"kp": 3.0}, {"actuators": False}, {"kd": 1.0}):
        with pytest.raises(ValueError, match="actuators, kp, kd: only for URDF"):
            coulomb.load(mjcf(), **options)


def test_what_tendons_do_is_refused_by_that_word():
    pytest.importorskip("mujoco")
    with pytest.raises(ValueError, match="tendon"):
        coulomb.load(mjcf(extra=TENDON.format("stiffness='1 2 3'")))
