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
