"""Flat sides on flat sides under penalty contact: the force is a continuous function of the pose while outlines change corners."""

import numpy as np
import pytest

import coulomb
from scenes.basics import GRAVITY, force

STIFFNESS, DEPTH = 1e4, 1e-4


def tilted(yaw, tilt=(0.0, 0.0)):
    quaternion = np.array([np.cos(yaw / 2), *tilt, np.sin(yaw / 2)])
    return quaternion / np.linalg.norm(quaternion)


def on_a_table(top):
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_box((0.4, 0.3, 0.2), fixed=True, position=(0, 0, -0.1), name="table")
    if top == "box":
        scene.add_box((0.2, 0.1, 0.1), mass=1.0, name="top")
    else:
        angles = 2 * np.pi * np.arange(5) / 5
        ring = np.stack([0.1 * np.cos(angles), 0.08 * np.sin(angles)], axis=1)
        scene.add_mesh([(*p, z) for p in ring for z in (-0.05, 0.05)], mass=1.0, name="top")
    return scene.build()


def wrenches(model, poses, tilt=(0.0, 0.0)):
    """Force, and moment about the table's middle, at (x, y, yaw)."""
    h = 1e-7
    sim = coulomb.Simulator(model, timestep=h, contact="penalty", contact_stiffness=STIFFNESS, contact_damping=0.0)
    out = []
    for x, y, yaw in poses:
        sim.step(np.array([x, y, 0.05 - DEPTH, *tilted(yaw, tilt)]), np.zeros(6))
        contacts = [(c.point, c.impulse / h) for c in sim.contacts]
        out.append(sum((np.r_[f, np.cross(p, f)] for p, f in contacts), np.zeros(6)))
    return np.array(out)


PATHS = {
    "turns": lambda s: (0.11 + 0 * s, 0.06 + 0 * s, 0.01 + 3.1 * s),
    "slides over a corner": lambda s: (0.05 + 0.17 * s, 0.02 + 0.14 * s, 0.4 + 0 * s),
    "slides over a side": lambda s: (0.05 + 0.2 * s, 0.02 + 0 * s, 0.3 + 0 * s),
    "turns while it hangs over": lambda s: (0.17 + 0 * s, 0.13 + 0 * s, 0.1 + 6 * s),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("tilt", [(0.0, 0.0), (2e-4, -1e-4)])
@pytest.mark.parametrize("top", ["box", "mesh"])
def test_no_force_jumps_while_the_outline_changes(top, tilt, path):
    model = on_a_table(top)
    changes = []
    for count in (1000, 4000):
        s = np.linspace(0, 0.9, count)
        w = wrenches(model, np.stack(PATHS[path](s), axis=1), tilt)
        changes.append(np.abs(np.diff(w, axis=0)).max() / np.abs(w).max())
    assert changes[0] < 0.03 and changes[1] < 0.3 * changes[0] + 1e-9, changes


@pytest.mark.parametrize("lower", [(0.4, 0.3, 0.2), (0.2, 0.1, 0.2)])
def test_the_order_of_the_bodies_changes_no_force(lower):
    """Faces of different size, and equal faces of different boxes, that lean against one another: normals of either differ by the tilt."""
    forces = []
    for order in (("lower", "top"), ("top", "lower")):
        scene = coulomb.Scene(gravity=(0, 0, 0))
        for name in order:
            size, height = ((0.2, 0.1, 0.1), 0.05 - DEPTH) if name == "top" else (lower, -0.1)
            scene.add_box(size, mass=1.0, position=(0, 0, height), name=name)
        model = scene.build()
        first = 7 * order.index("top")
        q = model.neutral()[0].copy()
        q[first + 3 : first + 7] = tilted(0.2, (1e-3, -5e-4))
        sim = coulomb.Simulator(model, timestep=1e-4, contact="penalty", contact_stiffness=STIFFNESS)
        sim.step(q, np.zeros(12))
        forces.append(force(sim, on="top", by="lower"))
    assert np.linalg.norm(forces[0]) > 0.1
    assert forces[1] == pytest.approx(forces[0], rel=1e-12, abs=1e-12)


def test_a_flat_side_stands_on_as_many_springs_as_it_has_corners():
    for top, corners in (("box", 4), ("mesh", 5)):
        model = on_a_table(top)
        poses = [(0, 0, 0), (0, 0, 0.5), (0.15, 0.02, 0.7), (0.2, 0.15, 0.7), (0.2, 0.15, 0), (0.2, 0, 0)]
        w = wrenches(model, np.array(poses))
        assert abs(w[:, 2]) == pytest.approx(corners * STIFFNESS * DEPTH, rel=1e-6)


@pytest.mark.parametrize("stepper", ["semi_implicit", "bdf1", "bdf2"])
def test_a_stack_of_turned_boxes_stands(stepper):
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY))
    scene.add_ground()
    for i in range(4):
        scene.add_box(
            (0.2 - 0.02 * (i % 2), 0.2, 0.1),
            mass=1.0,
            position=(0.01 * i, 0, 0.05 + 0.1 * i),
            quaternion=tilted(0.3 * i),
            name=f"box{i}",
        )
    options = {"timestep": 1e-3, "contact": "penalty", "contact_damping": 1e7}
    sim = coulomb.Simulator(scene.build(), stepper=stepper, **options)
    q, v = sim.model.neutral()
    first, iterations = q, []
    for _ in range(600):
        q, v = sim.step(q, v)
        assert sim.status.converged
        iterations.append(sim.status.iterations)
    assert max(iterations) <= 20
    for i in range(4):
        below = f"box{i - 1}" if i else "world"
        assert force(sim, on=f"box{i}", by=below)[2] == pytest.approx((4 - i) * GRAVITY, rel=1e-3)
    assert np.abs(q - first).max() < 2e-3


@pytest.mark.parametrize("stepper", ["semi_implicit", "bdf1", "bdf2"])
def test_a_box_that_hangs_over_an_edge_stays_while_its_middle_is_held(stepper):
    for x, falls in ((0.19, False), (0.21, True)):
        scene = coulomb.Scene()
        scene.add_box((0.4, 0.3, 0.2), fixed=True, position=(0, 0, -0.1), name="table")
        scene.add_box((0.2, 0.1, 0.1), mass=1.0, position=(x, 0.01, 0.05), name="top")
        sim = coulomb.Simulator(scene.build(), timestep=1e-3, contact="penalty", stepper=stepper)
        q, v = sim.model.neutral()
        for _ in range(500):
            q, v = sim.step(q, v)
            assert sim.status.converged
        assert (q[2] < 0.04) == falls
