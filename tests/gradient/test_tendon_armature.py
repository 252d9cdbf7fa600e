"""Armature of tendons: MuJoCo's accelerations, exact derivatives of steps, dynamics queries, and where it is refused."""

import numpy as np
import pytest

import coulomb
from coulomb.mjcf_export import to_mjcf
from tests.spatial_tendon_scenes import ROPE, random_robot

# A hand: the tendon "across" runs over two fingers, which are no ancestors of each other, "along" over a finger and its arm.
HAND = """<mujoco><compiler angle="radian"/><option timestep="0.002" integrator="{integrator}"><flag contact="disable"/></option><worldbody>
  <body pos="0 0 1"><joint name="arm" axis="0 1 0" damping=".1"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" mass="1"/>
   <body pos=".3 .08 0"><joint name="a" axis="0 1 .2"/><geom type="capsule" size=".02" fromto="0 0 0 .2 0 0" mass=".3"/>
    <body pos=".2 0 0"><joint name="tip" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .1 0 0" mass=".1"/></body></body>
   <body pos=".3 -.08 0"><joint name="b" axis="0 1 -.3"/><geom type="capsule" size=".02" fromto="0 0 0 .2 0 0" mass=".2"/></body></body>
  {world}
</worldbody><tendon>
  <fixed name="across" armature=".3" {across}><joint joint="a" coef="1"/><joint joint="b" coef="-.6"/></fixed>
  <fixed name="along" armature=".05" {along}><joint joint="arm" coef=".5"/><joint joint="tip" coef="2"/></fixed>
</tendon><actuator><motor joint="arm" gear="2"/><motor tendon="across" gear=".5"/><position joint="tip" kp="3" kv=".2"/></actuator></mujoco>"""
LAWS = {
    "armature": "",
    "spring": 'stiffness="20" springlength=".1" damping=".3"',
    "slack spring": 'stiffness="20" springlength="-.1 .1" damping=".3"',
    "dry friction": 'frictionloss=".1"',
    "limit": 'limited="true" range="-5 .02"',
}


def hand(across="", along="", integrator="implicitfast", world=""):
    return HAND.format(across=across, along=along, integrator=integrator, world=world)


def random_state(model, rng):
    return 0.3 * rng.normal(size=model.nv), rng.normal(size=model.nv), rng.normal(size=model.nu)


def dense_mass(mujoco, theirs, data, coupled):
    """MuJoCo's mass matrix, which leaves out what a tendon couples across branches; with that."""
    mass = np.zeros((theirs.nv, theirs.nv))
    for k, e in enumerate(np.eye(theirs.nv)):
        mujoco.mj_mulM(theirs, data, mass[k], e)
    if coupled:
        mass[1, 3] += 0.3 * -0.6
        mass[3, 1] += 0.3 * -0.6
    return mass


@pytest.mark.parametrize("coupled", [False, True], ids=["along", "across"])
def test_accelerations_and_queries_are_mujocos(coupled):
    mujoco = pytest.importorskip("mujoco")
    text = hand(integrator="Euler").replace('damping=".1"', "").replace('kv=".2"', "")
    if not coupled:
        text = text.replace('joint="b" coef="-.6"', 'joint="tip" coef="-.6"')
    model, theirs = coulomb.load(text), mujoco.MjModel.from_xml_string(text)
    across = "armature of 1 tendons across branches: it couples them, which MuJoCo's mass matrix leaves out"
    assert (across in model.deviations) == coupled
    data = mujoco.MjData(theirs)
    sim = coulomb.Simulator(model, joint_forces="explicit")
    rng = np.random.default_rng(0)
    assert [t.armature for t in model.tendons] == [0.3, 0.05]
    for _ in range(30):
        q, v, u = random_state(model, rng)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(theirs, data)
        mass = dense_mass(mujoco, theirs, data, coupled)
        v_next = sim.step(q, v, u)[1]
        acceleration = np.linalg.solve(mass, data.qfrc_actuator - data.qfrc_bias) if coupled else data.qacc
        assert (v_next - v) / model.timestep == pytest.approx(acceleration, rel=1e-10, abs=1e-9)

        # The mass matrix, the forces of a motion and the energy know it, too.
        assert model.mass_matrix(q) == pytest.approx(mass, abs=1e-12)
        a = rng.normal(size=model.nv)
        assert model.inverse_dynamics(q, v, a) == pytest.approx(mass @ a + data.qfrc_bias, abs=1e-11)
        assert model.energy(q, v)[0] == pytest.approx(0.5 * v @ mass @ v, rel=1e-12)


def test_trajectories_are_mujocos():
    mujoco = pytest.importorskip("mujoco")
    text = hand().replace('joint="b" coef="-.6"', 'joint="tip" coef="-.6"')
    model, theirs = coulomb.load(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    sim = coulomb.Simulator(model)
    q, v, _ = random_state(model, np.random.default_rng(1))
    data.qpos[:], data.qvel[:] = q, v
    for i in range(300):
        u = np.sin(0.03 * i + np.arange(model.nu))
        data.ctrl[:] = u
        mujoco.mj_step(theirs, data)
        q, v = sim.step(q, v, u)
        assert sim.status.converged
    assert q == pytest.approx(data.qpos, abs=1e-10) and v == pytest.approx(data.qvel, abs=1e-9)
    again = coulomb.load(to_mjcf(model))
    assert [t.armature for t in again.tendons] == [0.3, 0.05]


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_derivatives(law):
    rng = np.random.default_rng(2)
    floor = '<geom name="floor" type="plane" size="2 2 .1" pos="0 0 .9"/>'
    text = hand(law, LAWS["spring"], world=floor).replace('<flag contact="disable"/>', "")
    model = coulomb.load(text)
    kinds = ("tendon_", "actuator_", "mass/", "timestep", "gravity")
    names = ["q", "v", "u", "tau", *(n for n in model.parameters() if n.startswith(kinds))]
    assert {"tendon_armature/across", "tendon_armature/along"} <= set(names)
    sim = coulomb.Simulator(model)
    smooth = touched = 0
    for _ in range(6):
        q, v, u = random_state(model, rng)
        tau = 0.1 * rng.normal(size=model.nv)
        check = coulomb.check_gradients(sim, q, v, u, tau, wrt=names, tolerance=2e-6)
        assert check.passed and check.converged, (check.errors, check.changed)
        smooth += check.smooth
        sim.step(q, v, u, tau=tau)
        touched += len(sim.contacts) > 0
        J = sim.derivatives()
        y = rng.normal(size=2 * model.nv)
        back = sim.vjp(y[: model.nv], y[model.nv :])
        for got, block in zip((np.r_[back.q, back.v], back.u, back.tau), (J.A, J.B, J.B_tau), strict=True):
            assert got == pytest.approx(y @ block, rel=1e-8, abs=1e-8 * max(1e-3, np.abs(block).max()))
    assert smooth > 0 and touched > 0


def test_a_heavy_tendon_keeps_two_fingers_in_step():
    """As the armature grows, the motion becomes that of an equality."""
    text = hand().replace('armature=".3"', 'armature="1e6"')
    model = coulomb.load(text)
    sim = coulomb.Simulator(model)
    q, v = np.zeros(4), np.array([0.5, 0.6, 0.2, 1.0])  # the rate of "across" is zero
    for _ in range(100):
        q, v = sim.step(q, v, np.array([1.0, 0.0, 0.5]))
    assert abs(q[1] - 0.6 * q[3]) < 1e-6 and np.abs(q).max() > 0.05


HEAVY = {"tendon": 'armature=".4"', "pulley": 'armature=".3" damping=".2"'}


def robot(seed, root, **parts):
    rng = np.random.default_rng(seed)
    text = random_robot(rng, root=root, **parts)
    model = coulomb.load(text)
    q = model.integrate(np.array(model.neutral()[0]), 0.5 * rng.normal(size=model.nv))
    return text, model, q, rng.normal(size=model.nv), rng


@pytest.mark.parametrize("root", ["hinge", "free", "ball"])
def test_paths_have_mujocos_inertia_and_bias(root):
    mujoco = pytest.importorskip("mujoco")
    for seed in range(10):
        text, model, q, v, rng = robot(seed, root, **HEAVY)
        theirs = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(theirs)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(theirs, data)
        rows = np.zeros((2, model.nv))
        mujoco.mju_sparse2dense(rows, data.ten_J, theirs.ten_J_rownnz, theirs.ten_J_rowadr, theirs.ten_J_colind)
        plain = coulomb.load(random_robot(np.random.default_rng(seed), root=root))
        mass = plain.mass_matrix(q) + rows.T @ np.diag([0.4, 0.3]) @ rows
        assert model.mass_matrix(q) == pytest.approx(mass, abs=1e-11)
        assert model.bias(q, v) == pytest.approx(data.qfrc_bias, abs=1e-10)
        assert model.energy(q, v)[0] == pytest.approx(0.5 * v @ mass @ v, rel=1e-11)
        a = rng.normal(size=model.nv)
        assert model.inverse_dynamics(q, v, a) == pytest.approx(mass @ a + data.qfrc_bias, abs=1e-10)

        # Along one branch MuJoCo's matrix is the same.
        text, model, *_ = robot(seed, root, tendon='armature=".4"')
        theirs = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(theirs)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(theirs, data)
        force = data.qfrc_actuator + data.qfrc_passive - data.qfrc_bias
        assert np.linalg.solve(model.mass_matrix(q), force) == pytest.approx(data.qacc, rel=1e-9, abs=1e-8)
        assert not [line for line in model.deviations if "branches" in line]


@pytest.mark.parametrize("root", ["hinge", "free", "ball"])
def test_derivatives_of_inverse_dynamics(root):
    for seed in range(5):
        _, model, q, v, rng = robot(seed, root, **HEAVY)
        a = rng.normal(size=model.nv)
        slopes = model.inverse_dynamics_derivatives(q, v, a)
        for k, e in enumerate(1e-6 * np.eye(model.nv)):
            by_q = [model.inverse_dynamics(model.integrate(q, s * e), v, a) for s in (1, -1)]
            by_v = [model.inverse_dynamics(q, v + s * e, a) for s in (1, -1)]
            assert slopes[0][:, k] == pytest.approx((by_q[0] - by_q[1]) / 2e-6, rel=1e-6, abs=1e-6)
            assert slopes[1][:, k] == pytest.approx((by_v[0] - by_v[1]) / 2e-6, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    "options", [{}, {"joint_forces": "explicit"}, {"contact": "lcp"}], ids=["ncp", "explicit", "lcp"]
)
@pytest.mark.parametrize("root", ["hinge", "free", "ball"])
def test_derivatives_of_steps_with_paths(root, options):
    smooth = 0
    for seed in range(6):
        laws = HEAVY if seed % 2 else HEAVY | {"tendon": 'armature=".4" stiffness="30" springlength=".1"'}
        _, model, q, v, rng = robot(seed, root, **laws)
        kinds = ("tendon_", "actuator_", "mass/", "timestep", "gravity")
        names = ["q", "v", "u", "tau", *(n for n in model.parameters() if n.startswith(kinds))]
        sim = coulomb.Simulator(model, **options)
        u = rng.normal(size=model.nu)
        check = coulomb.check_gradients(sim, q, v, u, wrt=names, tolerance=2e-6)
        assert check.passed and check.converged, (check.errors, check.changed)
        smooth += check.smooth
        sim.step(q, v, u)
        J = sim.derivatives()
        y = rng.normal(size=2 * model.nv)
        back = sim.vjp(y[: model.nv], y[model.nv :])
        for got, block in zip((np.r_[back.q, back.v], back.u), (J.A, J.B), strict=True):
            assert got == pytest.approx(y @ block, rel=1e-8, abs=1e-8 * max(1e-3, np.abs(block).max()))
    assert smooth > 3


def test_a_heavy_rope_between_two_bodies():
    """Across two robots; momentum stays, and the energy, which short steps keep to first order."""
    text = ROPE.format(gravity=0, floor="", tendon='armature=".5"')
    model = coulomb.load(text)
    rng = np.random.default_rng(8)
    q, v = np.array(model.neutral()[0]), 0.5 * rng.normal(size=12)
    check = coulomb.check_gradients(
        coulomb.Simulator(model), q, v, wrt=["q", "v", "tendon_armature/rope"], tolerance=2e-6
    )
    assert check.passed, check.errors
    drift = []
    for h in (2e-3, 1e-3, 5e-4):
        sim = coulomb.Simulator(model, timestep=h)
        end = sim.rollout(q, v, steps=int(round(0.4 / h)))
        before, after = model.energy(q, v)[0], model.energy(end.q[-1], end.v[-1])[0]
        drift.append(abs(after - before) / before)
        mass = np.array([1.0, 0.5])
        momentum = [mass @ np.array([x[:3], x[6:9]]) for x in (v, end.v[-1])]
        assert momentum[0] == pytest.approx(momentum[1], abs=1e-9)
    assert drift[0] < 0.02 and drift[2] < 0.5 * drift[0]


def test_where_it_is_refused():
    model = coulomb.load(hand())
    for options in ({"stepper": "bdf1", "contact": "penalty"}, {"stepper": "semi_implicit", "contact": "penalty"}):
        with pytest.raises(ValueError, match="tendon 'across', whose armature"):
            coulomb.Simulator(model, **options)
    with pytest.raises(ValueError, match="tendon 'across'.*armature"):
        coulomb.Simulator(model, continuous_collision=True)

    # MuJoCo does not compile it either.
    mujoco = pytest.importorskip("mujoco")
    compiled = mujoco.MjModel.from_xml_string(random_robot(np.random.default_rng(0), "sphere"))
    compiled.tendon_armature[0] = 0.4
    with pytest.raises(ValueError, match="tendon 't' armature: got 0.4 for a path around an obstacle"):
        coulomb.Scene().add_mujoco_model(compiled)
