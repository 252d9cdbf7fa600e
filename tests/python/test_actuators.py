"""Actuators that a user adds: motors, position and velocity servos, on scenes and on robots from URDF."""

import numpy as np
import pytest

import coulomb
from tests.python.test_names import ARM

MJCF = """<mujoco><compiler autolimits="false"/><option timestep="0.002"/><worldbody>
  <body><joint name="a" axis="0 1 0"/><geom name="g" type="capsule" size=".05" fromto="0 0 0 .3 0 0"/>
    <body pos=".3 0 0"><joint name="b" type="slide" axis="1 0 0"/><geom type="sphere" size=".1" pos=".1 0 0"/>
      <body pos=".2 0 0"><joint name="c" type="ball"/><geom type="capsule" size=".04" fromto="0 0 0 0 .2 0"/></body></body></body>
  </worldbody>{}</mujoco>"""
BY_FILE = """<actuator>
  <motor name="a" joint="a" gear="3" ctrllimited="true" ctrlrange="-1 2"/>
  <position name="b" joint="b" kp="30" kv="2" forcelimited="true" forcerange="-4 5"/>
  <velocity name="servo" joint="b" kv="3" gear="2"/>
  <motor name="c" joint="c" gear="1 2 3"/></actuator>"""


def by_hand():
    scene = coulomb.Scene()
    scene.add_mjcf(MJCF.format(""))
    names = [
        scene.add_actuator("a", gear=3, control_range=(-1, 2)),
        scene.add_actuator("b", kind="position", kp=30, kd=2, force_range=(-4, 5)),
        scene.add_actuator("b", kind="velocity", kd=3, gear=2, name="servo"),
        scene.add_actuator("c", gear=(1, 2, 3)),
    ]
    assert names == ["a", "b", "servo", "c"]
    return scene.build()


def state(model, seed=0):
    random = np.random.default_rng(seed)
    q = model.integrate(model.neutral()[0], 0.3 * random.normal(size=model.nv))
    return q, random.normal(size=model.nv), random.normal(size=model.nu)


def test_they_are_those_of_a_file():
    ours, theirs = by_hand(), coulomb.load(MJCF.format(BY_FILE))
    steps = [coulomb.Simulator(m).step(*state(m)) for m in (ours, theirs)]
    assert all(map(np.array_equal, *steps))
    assert set(ours.parameters()) == set(theirs.parameters())


@pytest.mark.parametrize("options", [{}, {"stepper": "bdf1"}, {"stepper": "bdf2"}], ids=str)
def test_gains_have_gradients(options):
    model = by_hand()
    q, v, u = state(model, 3)
    u[1], v[model.joint("b").v] = q[model.joint("b").q][0] + 0.05, 0.3  # within the force's limits
    names = ["actuator_kp/b", "actuator_kd/b", "actuator_kd/servo", "actuator_gain/c"]
    sim = coulomb.Simulator(model, **options)
    assert [model.parameters()[name].value[0] for name in names] == [30, 2, 3, 1]
    result = coulomb.check_gradients(sim, q, v, u, wrt=names)
    assert result.passed and result.smooth
    sim.reset()
    sim.step(q, v, u)
    d = sim.derivatives(wrt=names)
    assert all(np.abs(d[name]).max() > 1e-6 for name in names)


def test_forces_by_gains():
    """The servo's force by its gains, and beyond its limit not at all."""
    model = by_hand()
    q, v, u = state(model, 3)
    position, speed = q[model.joint("b").q][0], 0.3
    v[model.joint("b").v] = speed
    u[1] = position + 0.05
    sim = coulomb.Simulator(model)
    sim.step(q, v, u)
    assert np.isclose(sim.output("actuator_force/b")[0], 30 * 0.05 - 2 * speed, rtol=1e-13)
    d = sim.derivatives()
    assert np.isclose(d.output("actuator_force/b", "actuator_kp/b")[0, 0], 0.05, rtol=1e-12)
    assert np.isclose(d.output("actuator_force/b", "actuator_kd/b")[0, 0], -speed, rtol=1e-12)
    assert np.isclose(d.output("actuator_force/servo", "actuator_kd/servo")[0, 0], u[2] - 2 * speed, rtol=1e-12)
    u[1] = position + 10
    sim.step(q, v, u)
    assert sim.output("actuator_force/b")[0] == 5
    d = sim.derivatives(wrt=["actuator_kp/b"])
    assert not d["actuator_kp/b"].any() and not d.output("actuator_force/b", "actuator_kp/b").any()


def test_a_gain_moves_with_its_bias():
    model = by_hand().with_parameters({"actuator_kp/b": 50, "actuator_kd/servo": 7})
    b, servo = model.actuators[1], model.actuators[2]
    assert np.array_equal(b.gain, [50, 0, 0]) and np.array_equal(b.bias, [0, -50, -2])
    assert np.array_equal(servo.gain, [7, 0, 0]) and np.array_equal(servo.bias, [0, 0, -7])
    with pytest.raises(ValueError, match="actuator_kp/b': 0 must be positive"):
        model.with_parameters({"actuator_kp/b": 0})


def test_servos_of_a_urdf_hold_it():
    model = coulomb.load(ARM, kp=400, kd=20)
    assert [a.name for a in model.actuators] == ["shoulder", "elbow"]
    assert [tuple(a.force_range) for a in model.actuators] == [(-20, 20), (-10, 10)]
    target = np.array([0.3, 0.5])
    r = coulomb.Simulator(model).rollout(*model.neutral(), np.tile(target, (3000, 1)))
    gravity = model.bias(r.q[-1], np.zeros(2))
    assert np.abs(r.v[-1]).max() < 1e-9 and 1e-3 < np.abs(r.q[-1] - target).max() < 0.05
    assert np.allclose(400 * (target - r.q[-1]), gravity, rtol=0, atol=1e-6)


def test_gains_by_joint():
    scene = coulomb.Scene()
    scene.add_urdf(ARM, actuators="position", kp={"shoulder": 5, "elbow": 6}, kd={"shoulder": 1, "elbow": 2})
    assert [tuple(a.bias) for a in scene.build().actuators] == [(0, -5, -1), (0, -6, -2)]
    scene = coulomb.Scene()
    scene.add_urdf(ARM, kd=3.0)
    assert [tuple(a.bias) for a in scene.build().actuators] == [(0, 0, -3)] * 2


def test_a_free_body_can_be_pushed():
    scene = coulomb.Scene(gravity=(0, 0, 0), timestep=1e-2)
    scene.add_box((0.1, 0.1, 0.1), mass=2, name="box")
    assert scene.add_actuator("box_joint", gear=(1, 0, 0, 0, 0, 0), name="push") == "push"
    model = scene.build()
    q, v = coulomb.Simulator(model).step(*model.neutral(), [3.0])
    assert np.allclose(v, [0.015, 0, 0, 0, 0, 0], rtol=1e-14, atol=1e-17)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(joint="a", kind="servo"), "kind: got 'servo', expected 'motor', 'position' or 'velocity'"),
        (dict(joint="a", kind="position"), "kp: needed for kind 'position'"),
        (dict(joint="a", kind="position", kp=-1), "kp: -1 must be positive"),
        (dict(joint="a", kind="position", kp=1, kd=-1), "kd: -1 must be non-negative"),
        (dict(joint="a", kind="velocity"), "kd: needed"),
        (dict(joint="a", kp=3), "kp: got 3, but a motor has no gains"),
        (dict(joint="c"), "gear: needed: joint 'c' has 3 degrees of freedom"),
        (dict(joint="a", gear=(1, 2)), "gear: got 2 numbers, joint 'a' has 1"),
        (dict(joint="a", gear=0), "gear: all zero"),
        (dict(joint="a", gear=np.nan), "gear.*nan is not finite"),
        (dict(joint="a", control_range=(2, 1)), r"control_range: \(2, 1\) is not an interval"),
        (dict(joint="a", force_range=(0, np.inf)), "force_range.*inf is not finite"),
    ],
)
def test_wrong_ones_are_named(options, message):
    scene = coulomb.Scene()
    scene.add_mjcf(MJCF.format(""))
    with pytest.raises(ValueError, match=message):
        scene.add_actuator(**options)
    scene.add_actuator("a", name="mine")
    with pytest.raises(ValueError, match="'mine' is taken by another actuator"):
        scene.add_actuator("b", name="mine")
    assert scene.build().nu == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(kp={"elbow": 1}), "kp: no value for joint 'shoulder', which has a motor"),
        (dict(kp={"elbow": 1, "shoulder": 1, "elbo": 1}), "did you mean 'elbow'"),
        (dict(actuators="servo"), "kind: got 'servo'"),
        (dict(actuators="motor", kp=3), "a motor has no gains"),
        (dict(actuators=False, kp=3), "actuators=False leaves nothing"),
        (dict(kp=0), "kp: 0 must be positive"),
    ],
)
def test_wrong_gains_of_a_urdf_are_named(options, message):
    scene = coulomb.Scene()
    with pytest.raises(ValueError, match=message):
        scene.add_urdf(ARM, **options)
    assert scene.build().num_joints == 0


def test_servos_reach_mujoco():
    mujoco = pytest.importorskip("mujoco")
    from coulomb.mjcf_export import to_mjcf

    model = by_hand()
    theirs = mujoco.MjModel.from_xml_string(to_mjcf(model))
    data = mujoco.MjData(theirs)
    q, v, u = state(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
    mujoco.mj_forward(theirs, data)
    sim = coulomb.Simulator(model)
    sim.step(q, v, u)
    ours = [sim.output(f"actuator_force/{a.name}")[0] for a in model.actuators]
    assert np.allclose(data.actuator_force, ours, rtol=1e-12, atol=1e-12)
