"""Planar joints of URDF: the child moves in the plane across <axis>, which is (1, 0, 0) where the file has none, and turns about it."""

import numpy as np
import pytest

import coulomb
from scenes.basics import rotation_matrix

URDF = """<robot name="r"><link name="a"/>
  <link name="b"><inertial><origin xyz="0 0 0"/><mass value="2"/><inertia ixx=".1" ixy="0" ixz="0" iyy=".2" iyz="0" izz=".3"/></inertial></link>
  <joint name="p" type="planar"><parent link="a"/><child link="b"/><origin xyz=".1 .2 1" rpy="{rpy}"/>{axis}</joint></robot>"""
AXES = [
    None,
    (1, 0, 0),
    (0, 1, 0),
    (0, 0, 1),
    (-1, 0, 0),
    (0, -2, 0),
    (0, 0, -1),
    (1, 2, 3),
    (-3, 0.2, 1),
    (0.5, -2, -2),
    (1, 1, -1),
]


def load(axis, rpy="0 0 0"):
    return coulomb.load(URDF.format(rpy=rpy, axis="" if axis is None else '<axis xyz="{} {} {}"/>'.format(*axis)))


def placement(model, q):
    """Where link b is, and its axes."""
    return model.output("position/b", q), rotation_matrix(model.output("orientation/b", q))


@pytest.mark.parametrize("axis", AXES)
def test_it_moves_across_its_axis_and_turns_about_it(axis):
    n = np.array([1.0, 0, 0] if axis is None else axis) / np.linalg.norm([1, 0, 0] if axis is None else axis)
    model = load(axis, "0.3 -0.2 0.5")
    start, R0 = placement(model, np.zeros(3))
    n = R0 @ n

    # Slides: two unit vectors across the axis that make a right-handed frame with it.
    first, second = (placement(model, e)[0] - start for e in np.eye(3)[:2])
    np.testing.assert_allclose(np.cross(first, second), n, atol=1e-14)
    np.testing.assert_allclose([first @ first, second @ second, first @ second], [1, 1, 0], atol=1e-14)

    # The turn: about the axis, through the frame's origin, after the slides.
    p, R = placement(model, [0.4, -0.3, 0.7])
    np.testing.assert_allclose(p, start + 0.4 * first - 0.3 * second, atol=1e-14)
    turn = R @ R0.T
    np.testing.assert_allclose(turn @ n, n, atol=1e-14)
    assert np.trace(turn) == pytest.approx(1 + 2 * np.cos(0.7), abs=1e-14)
    assert np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) @ n == pytest.approx(
        2 * np.sin(0.7), abs=1e-14
    )


@pytest.mark.parametrize(
    ("axis", "first", "second"), [((1, 0, 0), 1, 2), ((0, 1, 0), 2, 0), ((0, 0, 1), 0, 1)], ids=["x", "y", "z"]
)
def test_its_coordinates_along_the_axes_of_the_frame(axis, first, second):
    model = load(axis)
    for q, direction in ((0, first), (1, second)):
        moved = placement(model, np.eye(3)[q])[0] - placement(model, np.zeros(3))[0]
        np.testing.assert_array_equal(moved, np.eye(3)[direction])


@pytest.mark.parametrize("axis", AXES)
def test_it_falls_in_its_plane(axis):
    n = np.array([1.0, 0, 0] if axis is None else axis) / np.linalg.norm([1, 0, 0] if axis is None else axis)
    model, h, steps = load(axis), 1e-3, 100
    trajectory = coulomb.Simulator(model, timestep=h).rollout(np.zeros(3), np.zeros(3), steps=steps)
    fallen = placement(model, trajectory.q[-1])[0] - placement(model, np.zeros(3))[0]
    gravity = np.array([0, 0, -9.81])
    np.testing.assert_allclose(fallen, (gravity - (gravity @ n) * n) * h * h * steps * (steps + 1) / 2, atol=1e-12)
