"""Pairs of one robot that overlap in its neutral pose are left out: those with the fixed base link, too."""

import numpy as np
import pytest

import coulomb

LINK = """<link name="{name}"><inertial><mass value="1"/><inertia ixx=".02" ixy="0" ixz="0" iyy=".02" iyz="0" izz=".02"/></inertial>
  <collision><origin xyz="{at}"/><geometry><box size="{size}"/></geometry></collision></link>"""
JOINT = """<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/><origin xyz="{at}"/>
  <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="100" velocity="10"/></joint>"""


def torso_with_arms():
    """Shoulders inside the fixed torso and inside each other; a hand on the left arm that can be folded onto the torso."""
    parts = [
        LINK.format(name="torso", at="0 0 0", size=".2 .2 .6"),
        LINK.format(name="left_arm", at=".2 0 0", size=".5 .12 .1"),
        LINK.format(name="right_arm", at="-.2 0 0", size=".5 .12 .1"),
        LINK.format(name="left_hand", at=".15 0 0", size=".3 .1 .1"),
        JOINT.format(name="left", parent="torso", child="left_arm", at="0 .02 .2"),
        JOINT.format(name="right", parent="torso", child="right_arm", at="0 -.02 .2"),
        JOINT.format(name="elbow", parent="left_arm", child="left_hand", at=".45 0 0"),
    ]
    return f'<robot name="torso">{"".join(parts)}</robot>'


def pairs(model):
    names = model.geometry_names
    return {frozenset((names[a], names[b])) for a, b in zip(model.pair_a, model.pair_b, strict=True)}


def build(**options):
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_urdf(torso_with_arms(), name="torso", **options)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0.4, 0.02, 0.2), fixed=True, name="shelf")
    return scene.build()


@pytest.mark.parametrize("floating_base", [False, True])
def test_pairs_with_the_base_and_between_its_arms(floating_base):
    model = build(floating_base=floating_base)
    sim = coulomb.Simulator(model)
    left_out = pairs(model) - pairs(sim.model)
    own = [{"torso_0", "left_arm_0"}, {"torso_0", "right_arm_0"}, {"left_arm_0", "right_arm_0"}]
    assert left_out == {frozenset(pair) for pair in own} & pairs(model)
    assert frozenset(own[2]) in left_out
    assert (frozenset(own[0]) in left_out) != floating_base  # a floating base and its child never collide

    # What does not overlap stays, and so does what belongs to somebody else.
    assert frozenset(("torso_0", "left_hand_0")) in pairs(sim.model)
    assert frozenset(("left_arm_0", "shelf")) in pairs(sim.model)
    ignored = [line for line in sim.model.ignored if "neutral pose" in line]
    assert len(ignored) == len(left_out)
    assert pairs(coulomb.Simulator(model, exclude_neutral_overlaps=False).model) == pairs(model)


def test_arms_of_a_fixed_torso_move_freely():
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_urdf(torso_with_arms(), name="torso")
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=1e-3)
    q, _ = model.neutral()
    v = np.zeros(model.nv)
    v[model.joint_v[model.joint_names.index("right")]] = 1.0
    for _ in range(200):
        q, v = sim.step(q, v)
        assert sim.status.converged
        assert not sim.contacts
    assert q[model.joint_q[model.joint_names.index("right")]] == pytest.approx(0.2, rel=1e-6)


# --- joints that can part what overlaps -------------------------------------------------------------------------------


def gripper(pair="", inner=-0.01):
    """Two fingers of 2 cm on slides, which at zero reach into one another; they open by 3 cm each."""
    finger = """<body name="{n}" pos="{x} 0 0"><joint name="{n}" type="slide" axis="{s} 0 0" range="0 .03"/>
      <geom name="{n}" type="box" size=".01 .01 .03" mass=".1"/></body>"""
    fingers = "".join(finger.format(n=n, x=x, s=s) for n, x, s in (("left", inner, -1), ("right", -inner, 1)))
    return coulomb.load(
        f"""<mujoco><option gravity="0 0 0"/><worldbody><body name="palm"><geom name="palm" type="box" size=".05 .02 .01" pos="0 0 .1" mass="1"/>
        {fingers}</body></worldbody><contact>{pair}</contact></mujoco>"""
    )


def test_fingers_that_overlap_closed_meet_when_they_have_been_apart():
    model = gripper(inner=-0.005)
    assert frozenset(("left", "right")) in pairs(coulomb.Simulator(model).model)
    sim = coulomb.Simulator(model, timestep=1e-3)
    q, v = np.array([0.03, 0.03]), np.zeros(2)
    for _ in range(500):
        q, v = sim.step(q, v, tau=[-0.5, -0.5])
    assert sim.status.converged and {sim.contacts[0].geometry_a, sim.contacts[0].geometry_b} == {"left", "right"}
    assert q.sum() == pytest.approx(0.01, abs=1e-5)  # from centres 1 cm apart to faces that touch


CAN = """<link name="{name}"><inertial><mass value="1"/><inertia ixx=".02" ixy="0" ixz="0" iyy=".02" iyz="0" izz=".02"/></inertial>
  <collision><origin xyz="0 0 {at}"/><geometry><cylinder radius=".06" length=".1"/></geometry></collision></link>"""


def turntable(overlap):
    """A shoulder that turns on its fixed base about the axis of both, and reaches into it by so much."""
    turn = JOINT.format(name="pan", parent="base", child="shoulder", at="0 0 .1").replace("0 1 0", "0 0 1")
    return coulomb.load(
        f'<robot name="r">{CAN.format(name="base", at=0.05)}{CAN.format(name="shoulder", at=0.05 - overlap)}{turn}</robot>'
    )


@pytest.mark.parametrize("overlap", [-2e-5, 0.0, 1e-6, 1e-5, 1e-4, 1e-3, 0.02])
def test_a_link_that_touches_its_fixed_parent_does_not_hold_the_joint(overlap):
    model = turntable(overlap)
    sim = coulomb.Simulator(model, timestep=1e-3)
    q, v = model.neutral()
    for _ in range(100):
        q, v = sim.step(q, v, tau=[0.2])
        assert sim.status.converged and not sim.contacts
    assert v[0] == pytest.approx(0.2 * 0.1 / 0.02, rel=1e-9)


def test_a_neighbour_that_is_clear_of_its_parent_keeps_the_pair():
    assert len(pairs(coulomb.Simulator(turntable(-2e-3)).model)) == 1


def lever(lower, upper):
    """A link beside a post on its fixed base, which it leaves at angles of more than about .2: the axis is half a metre away."""
    turn = JOINT.format(name="hinge", parent="base", child="arm", at="0 0 0").replace("0 1 0", "0 0 1")
    turn = turn.replace('lower="-3" upper="3"', f'lower="{lower}" upper="{upper}"')
    parts = LINK.format(name="base", at=".5 0 0", size=".1 .1 .1") + LINK.format(
        name="arm", at=".5 0 0", size=".12 .1 .1"
    )
    return coulomb.load(f'<robot name="r">{parts}{turn}</robot>')


def left_out_lines(model):
    return [line for line in model.deviations if "left out of simulations" in line]


def test_overlaps_are_judged_within_the_limits_at_the_pose_the_robot_starts_in():
    # Zero, where they overlap, is beyond the limits: nothing is left out. Within +-.05 they always do.
    model = lever(0.5, 2.0)
    assert model.neutral()[0][0] == 0.5
    assert len(pairs(coulomb.Simulator(model).model)) == 1 and not left_out_lines(model)
    assert not pairs(coulomb.Simulator(lever(-0.05, 0.05)).model)
    assert not pairs(coulomb.Simulator(lever(0.02, 0.05)).model)
    assert len(pairs(coulomb.Simulator(lever(-0.05, 1.0)).model)) == 1


def test_what_is_left_out_is_told_before_there_is_a_simulator():
    model = turntable(1e-3)
    (line,) = left_out_lines(model)
    assert "base_0" in line and "shoulder_0" in line
    sim = coulomb.Simulator(model)
    assert sim.model.deviations == model.deviations and sim.model.ignored == model.ignored
    assert coulomb.BatchSimulator(model, 2).model.deviations == model.deviations
    assert not left_out_lines(turntable(-2e-3)) and not left_out_lines(gripper())


def test_pairs_that_are_named_always_act():
    def asked(**options):
        scene = coulomb.Scene(gravity=(0, 0, 0))
        scene.add_urdf(torso_with_arms(), name="torso")
        scene.set_contact("left_arm_0", "torso_0", **options)
        return scene.build()

    for options in ({"friction": 0.3}, {"restitution": 0.1}, {}):
        model = asked(**options)
        kept = pairs(coulomb.Simulator(model).model)
        assert frozenset(("left_arm_0", "torso_0")) in kept and frozenset(("right_arm_0", "torso_0")) not in kept
        assert len(left_out_lines(model)) == 2

    # MJCF's <pair>, of a body and its parent that always overlap.
    xml = """<mujoco><worldbody><body name="a"><geom name="a" size=".1"/><body name="b" pos="0 0 .05"><joint axis="0 0 1"/>
      <geom name="b" size=".1"/></body></body></worldbody>{}</mujoco>"""
    assert not pairs(coulomb.Simulator(coulomb.load(xml.format(""))).model)
    model = coulomb.load(xml.format('<contact><pair geom1="a" geom2="b"/></contact>'))
    assert pairs(coulomb.Simulator(model).model) == {frozenset("ab")}


def test_poses_are_sampled_alike_and_mimics_follow():
    # A plate on two hinges: the second one lifts it off the base, unless it is coupled to stay as it is.
    def plate(mimic):
        parts = LINK.format(name="base", at="0 0 0", size=".1 .1 .1") + LINK.format(
            name="bar", at="0 .2 0", size=".02 .02 .02"
        )
        parts += LINK.format(name="plate", at="0 0 .05", size=".3 .3 .02")
        joints = JOINT.format(name="first", parent="base", child="bar", at="0 0 0").replace("0 1 0", "0 0 1")
        second = JOINT.format(name="second", parent="bar", child="plate", at="0 .08 0").replace("0 1 0", "1 0 0")
        return coulomb.load(f'<robot name="r">{parts}{joints}{second.replace("</joint>", mimic + "</joint>")}</robot>')

    free, tied = plate(""), plate('<mimic joint="first" multiplier="0"/>')
    assert frozenset(("base_0", "plate_0")) in pairs(coulomb.Simulator(free).model)
    assert frozenset(("base_0", "plate_0")) not in pairs(coulomb.Simulator(tied).model)
    assert [left_out_lines(tied) for _ in range(3)] == [left_out_lines(tied)] * 3
