"""Model.rest_pose: every floating robot and free body lies with its lowest point on the ground."""

import math

import numpy as np
import pytest

import coulomb

POINTS = [(0.1, 0, 0), (-0.05, 0.1, 0), (-0.05, -0.1, 0.02), (0, 0, 0.12), (0, 0.01, -0.07)]
SHAPES = {
    "sphere": lambda scene, **how: scene.add_sphere(0.1, **how),
    "capsule": lambda scene, **how: scene.add_capsule(0.05, 0.2, **how),
    "cylinder": lambda scene, **how: scene.add_cylinder(0.05, 0.2, **how),
    "box": lambda scene, **how: scene.add_box((0.1, 0.2, 0.3), **how),
    "ellipsoid": lambda scene, **how: scene.add_ellipsoid((0.1, 0.2, 0.3), **how),
    "mesh": lambda scene, **how: scene.add_mesh(POINTS, **how),
}


def deepest(model, q):
    """How deep the lowest point is in the ground at q."""
    sim = coulomb.Simulator(model, timestep=1e-6)
    sim.step(q, np.zeros(model.nv))
    return max(contact.depth for contact in sim.contacts)


@pytest.mark.parametrize("normal", [(0, 0, 1), (0.3, -0.2, 1)])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_body_of_any_shape_lies_on_the_ground(shape, normal):
    random = np.random.default_rng(0)
    for _ in range(10):
        scene = coulomb.Scene()
        scene.add_ground(normal=normal, height=0.3)
        turn = random.normal(size=4)
        turn /= np.linalg.norm(turn)
        SHAPES[shape](scene, mass=1.0, position=tuple(random.uniform(-1, 1, 3)), quaternion=tuple(turn))
        model = scene.build()
        q = model.rest_pose(clearance=-1e-5)
        assert deepest(model, q) == pytest.approx(1e-5, abs=1e-12)

        # Along the normal, and nothing turns.
        moved = q - model.neutral()[0]
        assert np.abs(np.cross(moved[:3], normal)).max() < 1e-14 and not moved[3:].any()


LEG = """<mujoco><worldbody>
  <geom type="plane" size="1 1 1"/> <geom type="plane" size="1 1 1" pos="9 0 0" euler="0 -90 0"/>
  <body name="base" pos="0 0 3"><freejoint/> <geom type="box" size=".1 .1 .1"/>
    <body pos="0 0 -.1"><joint name="hip" axis="0 1 0"/> <geom type="capsule" size=".02" fromto="0 0 0 0 0 -.4"/>
      <geom type="sphere" size=".5" contype="0" conaffinity="0"/></body></body>
  <body name="ball" pos="1 0 -2"><freejoint/> <geom size=".1"/></body>
  <body name="pendulum" pos="2 0 1"><joint name="swing" axis="0 1 0"/> <geom type="capsule" size=".02" fromto="0 0 0 0 0 -.4"/></body>
</worldbody></mujoco>"""


def test_each_tree_by_itself_and_only_what_may_touch():
    model = coulomb.load(LEG)
    q, _ = model.neutral()
    hip, swing = model.joint_q[model.joint_names.index("hip")], model.joint_q[model.joint_names.index("swing")]
    q[hip], q[swing] = 0.5, 0.7
    given = q.copy()
    rested = model.rest_pose(q)
    assert np.array_equal(q, given)
    expected = given.copy()
    expected[2] = 0.1 + 0.4 * math.cos(0.5) + 0.02
    expected[model.joint_q[model.joint_names.index("hip")] + 3] = 0.1
    assert rested == pytest.approx(expected, abs=1e-15)
    assert rested[[hip, swing]].tolist() == [0.5, 0.7]

    # Rows of configurations, each as it is alone.
    other = q.copy()
    other[hip] = -1.2
    assert np.array_equal(model.rest_pose(np.stack([q, other])), [rested, model.rest_pose(other)])


def test_what_is_refused_is_named():
    scene = coulomb.Scene()
    scene.add_box((0.1, 0.1, 0.1), mass=1.0)
    model = scene.build()
    with pytest.raises(ValueError, match=r"no half-space .*Scene\.add_ground"):
        model.rest_pose()
    scene.add_ground()
    model = scene.build()
    with pytest.raises(ValueError, match="clearance: got nan"):
        model.rest_pose(clearance=math.nan)
    with pytest.raises(ValueError, match="q"):
        model.rest_pose(np.zeros(3))
