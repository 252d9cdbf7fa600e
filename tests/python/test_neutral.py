"""Model.neutral() is a pose that the model may start in: as described, with hinges and slides within their limits."""

import numpy as np
import pytest

import coulomb

BODY = """<body pos="0 0 1"><joint name="{name}" {attributes}/><inertial pos=".1 0 0" mass="1" diaginertia=".1 .1 .1"/></body>"""


def load(*joints, extra=""):
    bodies = "".join(BODY.format(name=f"j{i}", attributes=attributes) for i, attributes in enumerate(joints))
    return coulomb.load(
        f'<mujoco><compiler angle="radian" autolimits="true"/><worldbody>{bodies}</worldbody>{extra}</mujoco>'
    )


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ('type="hinge"', 0.0),
        ('type="hinge" range="-1 1"', 0.0),
        ('type="hinge" range="0 1"', 0.0),
        ('type="hinge" range=".5 1"', 0.5),
        ('type="hinge" range="-3.07 -.07"', -0.07),
        ('type="slide" range=".2 .3"', 0.2),
        ('type="slide" range=".2 .3" limited="false"', 0.0),
        ('type="slide" range="-.3 -.2" ref=".4"', -0.2),
        ('type="slide" range="-.3 .6" ref=".4"', 0.4),
    ],
)
def test_hinges_and_slides_are_within_their_limits(attributes, expected):
    model = load(attributes)
    q, v = model.neutral()
    assert q.tolist() == [expected] and not v.any()

    # Kinematics count from where the file has the joint, as ever.
    assert model.q_neutral.tolist() == [0.4 if "ref" in attributes else 0.0]


def test_balls_and_free_bodies_are_as_described():
    model = load('type="ball" range="0 .3"', 'type="free"')
    np.testing.assert_array_equal(model.neutral()[0], [1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0])


def test_coupled_joints_follow_what_the_limits_move():
    couple = '<equality><joint joint1="j1" joint2="j0" polycoef="0 -2 0 0 0"/><joint joint1="j2" joint2="j1" polycoef=".1 1 0 0 0"/></equality>'
    model = load('type="hinge" range=".5 1"', 'type="hinge" range="-3 3"', 'type="hinge"', 'type="hinge"', extra=couple)
    np.testing.assert_allclose(model.neutral()[0], [0.5, -1.0, -0.9, 0.0], atol=1e-15)

    # Where nothing has to move, all stay as described.
    model = load('type="hinge" range="-1 1"', 'type="hinge"', 'type="hinge"', extra=couple)
    assert not model.neutral()[0].any()


def test_a_robot_at_its_neutral_pose_is_not_pushed_by_its_limits():
    """An arm whose zero lies beyond its elbow's limits starts at rest."""
    model = coulomb.load(
        """<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody>
        <body><joint axis="0 1 0" range="-2 2"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
        <body pos=".3 0 0"><joint axis="0 1 0" range="-3 -.07"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/></body></body></worldbody></mujoco>"""
    )
    trajectory = coulomb.Simulator(model, timestep=2e-3).rollout(*model.neutral(), steps=50)
    assert np.abs(trajectory.v).max() < 1e-9 and trajectory.converged
