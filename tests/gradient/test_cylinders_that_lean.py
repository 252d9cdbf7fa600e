"""Cylinders that lean a little on a flat side: their deepest point goes round the rim as they lean otherwise, or roll."""

import numpy as np
import pytest
from step_columns import compare

import coulomb

OPTIONS = {"cone": {}, "penalty": dict(contact="penalty"), "bdf1": dict(stepper="bdf1")}


def product(a, b):
    """Of two quaternions."""
    return np.r_[a[0] * b[0] - a[1:] @ b[1:], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])]


def turned(axis, angle):
    axis = np.asarray(axis, dtype=float)
    return np.r_[np.cos(angle / 2), np.sin(angle / 2) * axis / np.linalg.norm(axis)]


def on_a_table(lean, lying, first):
    """A cylinder of 5 x 20 cm that touches at one point of a rim."""
    pose = product(turned((1, 0.3, 0), lean), turned((1, 0, 0), np.pi / 2) if lying else np.array([1.0, 0, 0, 0]))
    height = 0.05 if lying else 0.1
    scene = coulomb.Scene()
    verbs = [
        lambda: scene.add_box((1, 1, 0.2), fixed=True, position=(0, 0, -0.1), name="table"),
        lambda: scene.add_cylinder(0.05, 0.2, mass=1.0, quaternion=pose, position=(0.01, 0.02, height), name="can"),
    ]
    for verb in verbs if first == "table" else verbs[::-1]:
        verb()
    return scene.build()


@pytest.mark.parametrize("first", ["table", "can"])
@pytest.mark.parametrize("lying", [True, False], ids=["lying", "standing"])
@pytest.mark.parametrize("law", OPTIONS)
@pytest.mark.parametrize("lean", [1e-2, 1e-3, 1e-4])
def test_a_step(lean, law, lying, first):
    model = on_a_table(lean, lying, first)
    sim = coulomb.Simulator(model, tolerance=1e-13, timestep=1e-3, **OPTIONS[law])
    q, v = model.neutral()
    v[:] = 0.1, 0.2, 0, 0.3, -0.2, 0.5
    check = coulomb.check_gradients(sim, q, v)
    assert len(sim.contacts) > 0
    assert check.passed, check
    assert check.compared >= (15 if lying or lean > 1e-4 else 8)


@pytest.mark.parametrize("law", ["penalty", "bdf1"])
@pytest.mark.parametrize("lean", [1e-2, 1e-3])
def test_one_point_of_the_rim_carries(lean, law):
    """It is half a right angle from the four points that stand for a flat cap, and these are in the air."""
    scene = coulomb.Scene()
    scene.add_box((1, 1, 0.2), fixed=True, position=(0, 0, -0.1), name="table")
    height = 0.1 * np.cos(lean) + 0.05 * np.sin(lean) - 7e-3 * lean
    pose = turned((1, 1, 0), lean)
    scene.add_cylinder(0.05, 0.2, mass=1.0, quaternion=pose, position=(0.01, 0.02, height), name="can")
    model = scene.build().with_parameters({"timestep": 1e-4})
    sim = coulomb.Simulator(model, tolerance=1e-13, **OPTIONS[law])
    q, v = model.neutral()
    v[3:] = 1e-3, -2e-3, 5e-3
    sim.step(q, v)
    assert len(sim.contacts) == 1 and sim.contacts[0].impulse[2] != 0
    assert np.abs(sim.derivatives().dpoint("q")).max() > 0.02 / lean

    random = np.random.default_rng(0)
    tau = np.zeros(model.nv)
    columns, flagged, _ = compare(model, q, v, np.zeros(0), tau, random, tolerance=1e-13, **OPTIONS[law])
    assert not flagged
    assert not [column for column in columns if column.wrong]
    assert sum(column.known for column in columns) >= (18 if lean > 1e-3 else 8)


@pytest.mark.parametrize("shape", ["cylinder", "capsule"])
@pytest.mark.parametrize("lean", [3e-2, 1e-2, 1e-3])
@pytest.mark.parametrize("offset", [0.0, 0.03])
def test_a_log_that_leaves_a_cap_across_its_rim(shape, lean, offset):
    """It goes down across the rim: the deepest place is that of rim and side, with a normal of its own, as deep as the shapes are."""
    scene = coulomb.Scene()
    scene.add_cylinder(0.1, 0.2, fixed=True, position=(0, 0, -0.1), name="can")
    along = product(turned((0, 1, 0), lean), turned((0, 1, 0), np.pi / 2))
    height = 0.05 / np.cos(lean) + 0.1 * np.tan(lean) * np.sqrt(1 - (offset / 0.1) ** 2) - 2e-4
    place = dict(mass=1.0, quaternion=along, position=(0, offset, height), friction=0.5, name="log")
    if shape == "cylinder":
        scene.add_cylinder(0.05, 0.6, **place)
    else:
        scene.add_capsule(0.05, 0.6, **place)
    model = scene.build()
    sim = coulomb.Simulator(model, tolerance=1e-13, timestep=1e-3)
    q, v = model.neutral()
    v[:] = 0.1, 0.2, -0.1, 0.3, -0.2, 0.5
    check = coulomb.check_gradients(sim, q, v)
    assert check.passed and check.compared >= 12, check

    # The rim's tangent and the line span the plane of contact.
    deepest = max(sim.contacts, key=lambda contact: contact.depth)
    axis = np.array([np.cos(lean), 0, -np.sin(lean)])
    radial = deepest.point * [1, 1, 0] / np.linalg.norm(deepest.point[:2])
    assert abs(deepest.normal @ axis) < 1e-9
    assert abs(deepest.normal @ np.cross([0, 0, 1], radial)) < 2e-3
