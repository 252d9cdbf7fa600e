"""Fixed tendons against MuJoCo: lengths, sensors, forces of actuators, accelerations, trajectories; limits and equalities, which MuJoCo softens."""

import pickle

import numpy as np
import pytest

import coulomb
from coulomb.mjcf_export import to_mjcf
from tests.tendon_scenes import FINGER, GRIPPER, text

mujoco = pytest.importorskip("mujoco")

FREE = '<option timestep="0.002"><flag contact="disable" limit="disable"/></option>'


def both(document):
    return coulomb.load(document), mujoco.MjModel.from_xml_string(document)


def free(scene, **parts):
    """Without contacts and limits: nothing is soft in MuJoCo."""
    return text(scene, **parts).replace('<option timestep="0.002"/>', FREE)


def test_tendons_are_what_mujoco_compiles():
    model, theirs = both(text(GRIPPER, tendon='limited="true" range="-.01 .04"'))
    assert [t.name for t in model.tendons] == ["split", "other"]
    assert model.tendons[0].joints == [1, 2] and model.tendons[1].joints == [1, 0]
    assert model.tendons[0].coefficients == pytest.approx([0.5, 0.7])
    assert (model.tendons[0].limited, model.tendons[0].lower, model.tendons[0].upper) == (True, -0.01, 0.04)
    assert not model.tendons[1].limited
    assert [a.tendon for a in model.actuators] == [0, 1, 1, -1] and [a.joint for a in model.actuators] == [
        -1,
        -1,
        -1,
        0,
    ]
    assert "velocity gains of 3 actuators of tendons" in " ".join(model.deviations)
    again = pickle.loads(pickle.dumps(model))
    assert again.tendons[0].coefficients == pytest.approx([0.5, 0.7]) and again.actuators[0].tendon == 0


def test_two_robots_keep_their_tendons():
    scene = coulomb.Scene()
    for _ in range(2):
        scene.add_mjcf(text(GRIPPER, equality='<equality><tendon tendon1="split" tendon2="other"/></equality>'))
    model = pickle.loads(pickle.dumps(scene)).build()
    assert [t.name for t in model.tendons] == ["split", "other", "split_2", "other_2"]
    assert model.tendons[2].joints == [4, 5] and model.actuators[4].tendon == 2
    assert (model.equalities[1].tendon_a, model.equalities[1].tendon_b) == (2, 3)
    q = np.arange(6.0)
    coulomb.Simulator(model).step(q, np.zeros(6), np.zeros(8))
    assert model.output("tendon_length/other_2", q)[0] == pytest.approx(4 - 0.2 * 3)
    assert model.output("sensor/sensor0_2", q)[0] == pytest.approx(0.5 * 4 + 0.7 * 5)


@pytest.mark.parametrize("scene", [GRIPPER, FINGER], ids=["gripper", "finger"])
def test_trajectories_without_constraints(scene):
    model, theirs = both(free(scene))
    data = mujoco.MjData(theirs)
    sim = coulomb.Simulator(model, joint_forces="explicit")
    random = np.random.default_rng(0)
    q, v = 0.1 * random.normal(size=model.nv), random.normal(size=model.nv)
    data.qpos[:], data.qvel[:] = q, v
    for i in range(200):
        u = 0.3 * np.sin(0.05 * i + np.arange(model.nu))
        data.ctrl[:] = u
        mujoco.mj_step(theirs, data)
        q, v = sim.step(q, v, u)
        assert sim.status.converged
    assert np.abs(q - data.qpos).max() < 1e-9 and np.abs(v - data.qvel).max() < 1e-8


def test_forces_and_sensors():
    model, theirs = both(free(GRIPPER))
    data = mujoco.MjData(theirs)
    random = np.random.default_rng(1)
    for _ in range(20):
        q, v, u = (random.normal(size=n) for n in (model.nq, model.nv, model.nu))
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(theirs, data)
        assert model.actuator_forces(q, v, u) == pytest.approx(data.qfrc_actuator, abs=1e-10)
        names = ["tendon_length/split", "tendon_velocity/split", *(f"sensor/sensor{i}" for i in range(4))]
        expected = [data.ten_length[0], data.ten_velocity[0], *data.sensordata[:4]]
        assert model.output(names, q, v) == pytest.approx(expected, abs=1e-12)


SPRINGS = {
    "spring": 'stiffness="300" springlength=".01"',
    "slack": 'stiffness="300" springlength="-.02 .03"',
    "damper": 'damping="20"',
    "all": 'stiffness="300" springlength=".01" damping="20" frictionloss="2"',
}


@pytest.mark.parametrize("springs", SPRINGS.values(), ids=SPRINGS.keys())
def test_springs_and_dampers(springs):
    model, theirs = both(free(GRIPPER, tendon=springs))
    data = mujoco.MjData(theirs)
    random = np.random.default_rng(3)
    for _ in range(20):
        q, v = 0.05 * random.normal(size=model.nq), random.normal(size=model.nv)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(theirs, data)
        assert model.passive_forces(q, v) == pytest.approx(data.qfrc_passive, abs=1e-10)
        spring = model.energy(q, 0 * v)[1] - coulomb.load(free(GRIPPER)).energy(q, 0 * v)[1]
        beyond = model.output("tendon_length/split", q)[0]
        low, high = model.tendons[0].spring_lower, model.tendons[0].spring_upper
        beyond = min(beyond - low, 0) + max(beyond - high, 0)
        assert spring == pytest.approx(0.5 * model.tendons[0].stiffness * beyond**2, abs=1e-12)
    again = coulomb.load(to_mjcf(model))
    assert again.passive_forces(q, v) == pytest.approx(model.passive_forces(q, v), abs=1e-12)
    assert again.tendons[0].dry_friction == model.tendons[0].dry_friction


@pytest.mark.parametrize("springs", [SPRINGS["spring"], SPRINGS["slack"], SPRINGS["damper"]])
def test_small_steps_with_springs_are_mujocos(springs):
    """Implicit here, explicit there: the difference falls with the step."""
    apart = []
    for h in (2e-4, 1e-4):
        document = free(GRIPPER, tendon=springs).replace('timestep="0.002"', f'timestep="{h}"')
        model, theirs = both(document)
        data, sim = mujoco.MjData(theirs), coulomb.Simulator(model, joint_forces="explicit")
        q, v = np.array([0.1, 0.1, 0.04]), np.array([0.3, -0.4, 0.2])
        data.qpos[:], data.qvel[:] = q, v
        for _ in range(round(0.1 / h)):
            mujoco.mj_step(theirs, data)
            q, v = sim.step(q, v)
            assert sim.status.converged
        apart.append(np.abs(v - data.qvel).max())
    assert apart[1] < 0.6 * apart[0] and apart[0] < 0.05


def test_stiff_springs_are_stable():
    model = coulomb.load(text(GRIPPER, tendon='stiffness="1e7" springlength=".02" damping="1e4"'))
    sim = coulomb.Simulator(model)
    q, v = np.array([0.1, 0.05, 0.04]), np.array([0.3, -2, 1])
    for _ in range(300):
        q, v = sim.step(q, v)
        assert sim.status.converged
    assert 0.5 * q[1] + 0.7 * q[2] == pytest.approx(0.02, abs=1e-5)


def test_a_slack_spring_exerts_no_force():
    """Within its range the step is that without it, to the last bit of what is left of it: nothing."""
    slack, without = (
        coulomb.Simulator(coulomb.load(text(GRIPPER, tendon=t))) for t in ('stiffness="1e5" springlength="-1 1"', "")
    )
    q, v = np.array([0.1, 0.01, 0.02]), np.array([0.3, -0.2, 0.1])
    for _ in range(50):
        expected = without.step(q, v)
        q, v = slack.step(q, v)
        assert np.abs(v - expected[1]).max() < 1e-12


def test_dry_friction_holds_and_slides():
    """Two equal sliders on a tendon with friction f: held by less than f, then moved by the rest."""
    document = """<mujoco><option gravity="0 0 0" timestep="0.001"/><worldbody><body><joint name="a" type="slide" axis="1 0 0"/><geom size=".1" mass="2"/></body>
    <body pos="0 1 0"><joint name="b" type="slide" axis="1 0 0"/><geom size=".1" mass="2"/></body></worldbody>
    <tendon><fixed name="t" frictionloss="3"><joint joint="a" coef="1"/></fixed></tendon>
    <actuator><motor joint="a"/></actuator></mujoco>"""
    sim = coulomb.Simulator(coulomb.load(document))
    q, v = np.zeros(2), np.zeros(2)
    for _ in range(100):
        q, v = sim.step(q, v, [2.9])
    assert np.abs(v).max() < 1e-12
    for _ in range(100):
        q, v = sim.step(q, v, [5.0])
    assert v[0] == pytest.approx((5 - 3) / 2 * 0.1, rel=1e-9) and abs(v[1]) < 1e-12


def test_clamps_of_force_and_joint():
    parts = {"joint": 'actuatorfrcrange="-.3 .3" actuatorfrclimited="true"'}
    model, theirs = both(free(FINGER, **parts))
    data = mujoco.MjData(theirs)
    random = np.random.default_rng(2)
    clamped = 0
    for _ in range(50):
        q, v, u = (random.normal(size=n) for n in (model.nq, model.nv, model.nu))
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(theirs, data)
        assert model.actuator_forces(q, v, u) == pytest.approx(data.qfrc_actuator, abs=1e-10)
        clamped += abs(abs(data.qfrc_actuator[2]) - 0.3) < 1e-12
    assert 10 < clamped < 50


def test_a_limit_stops_the_tendon_and_no_joint():
    model = coulomb.load(text(FINGER, tendon='limited="true" range="-.4 .5"'))
    sim = coulomb.Simulator(model)
    q, v, u = np.array([0, 0, 0.2, 0.2]), np.zeros(4), np.array([1.0, 0, 0, 0])
    for _ in range(1000):
        q, v = sim.step(q, v, u)
        assert sim.status.converged
        assert q[2] + q[3] < 0.5 + 1e-9
    assert q[2] + q[3] == pytest.approx(0.5, abs=1e-8)
    assert abs(q[2] - q[3]) > 1e-3


@pytest.mark.parametrize("poly", ["0 1 0 0 0", ".1 .5 .3 0 0"])
def test_an_equality_holds(poly):
    one = f'<equality><tendon tendon1="difference" polycoef="{poly}"/></equality>'
    two = f'<equality><tendon tendon1="J0" tendon2="difference" polycoef="{poly}"/></equality>'
    for equality, wanted in (
        (one, lambda d: float(poly.split()[0])),
        (two, lambda d: np.polyval([float(c) for c in poly.split()][::-1], d)),
    ):
        model = coulomb.load(text(FINGER, equality=equality))
        sim = coulomb.Simulator(model)
        q, v = np.zeros(4), np.zeros(4)
        for i in range(1000):
            q, v = sim.step(q, v, [0.2, 0.1 * np.sin(0.01 * i), 0, 0])
            assert sim.status.converged
        error = (q[2] - q[3]) - wanted(0) if equality == one else (q[2] + q[3]) - wanted(q[2] - q[3])
        assert abs(error) < 1e-4


def test_the_law_of_a_coupled_finger_is_mujocos():
    """An equality of a tendon is exact here and soft in MuJoCo: with a stiff one the finger goes the same way."""
    equality = '<equality><tendon tendon1="difference" solref=".004 1" solimp=".9999 .9999 .001"/></equality>'
    model, theirs = both(free(FINGER, equality=equality))
    data = mujoco.MjData(theirs)
    sim = coulomb.Simulator(model, joint_forces="explicit")
    q, v = np.zeros(4), np.zeros(4)
    for _ in range(200):
        u = np.array([0.5, 0.2, 0, 0])
        data.ctrl[:] = u
        mujoco.mj_step(theirs, data)
        q, v = sim.step(q, v, u)
    assert np.abs(q - data.qpos).max() < 0.01 * np.abs(q).max()


REFUSED = {
    "coefficients of zero": (
        text(FINGER, tendon='limited="true" range="-.4 .5"').replace('coef="1"', 'coef="0"'),
        "all coefficients of tendon 'J0' are zero",
    ),
    "a limit of seventeen joints": (
        "<mujoco><worldbody>"
        + "".join(f'<body><joint name="j{i}" axis="0 1 0"/><geom size=".1" pos=".1 0 0"/>' for i in range(17))
        + "</body>" * 17
        + '</worldbody><tendon><fixed name="t" limited="true" range="0 1">'
        + "".join(f'<joint joint="j{i}" coef="1"/>' for i in range(17))
        + "</fixed></tendon></mujoco>",
        "tendon 't' has 17 degrees of freedom",
    ),
}


@pytest.mark.parametrize(("document", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(document, message):
    with pytest.raises(ValueError, match=message):
        coulomb.load(document)


def test_split_steps_refuse_limits_of_tendons():
    limited = coulomb.load(text(FINGER, tendon='limited="true" range="-.4 .5"'))
    with pytest.raises(ValueError, match="continuous_collision: got true, expected false with tendon 'J0'"):
        coulomb.Simulator(limited, continuous_collision=True)
    coulomb.Simulator(coulomb.load(text(FINGER)), continuous_collision=True)


@pytest.mark.parametrize("scene", [GRIPPER, FINGER], ids=["gripper", "finger"])
def test_written_tendons_are_read_again(scene):
    model = coulomb.load(text(scene, tendon='limited="true" range="-.4 .5"'))
    again = coulomb.load(to_mjcf(model))
    assert [(t.joints, list(t.coefficients), t.limited, t.lower, t.upper) for t in again.tendons] == [
        (t.joints, list(t.coefficients), t.limited, t.lower, t.upper) for t in model.tendons
    ]
    random = np.random.default_rng(5)
    q, v, u = (random.normal(size=n) for n in (model.nq, model.nv, model.nu))
    assert again.actuator_forces(q, v, u) == pytest.approx(model.actuator_forces(q, v, u), rel=1e-13)
