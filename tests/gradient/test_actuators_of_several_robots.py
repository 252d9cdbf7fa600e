"""Actuators whose tendon or bodies tie several robots: MuJoCo's forces, exact derivatives, islands of steps."""

import numpy as np
import pytest

import coulomb

# Two fingers of a palm that is fixed to the world, a third arm, and a free ball that may lie on one of them.
GRIPPER = """<mujoco><compiler angle="radian"/><option timestep=".002" integrator="Euler"/><worldbody>
  <geom name="floor" type="plane" size="1 1 .1"/>
  <body name="palm" pos="0 0 .5">
   <body name="left" pos="-.1 0 0"><joint name="l" axis="0 1 0" damping=".01"/><geom name="left" type="capsule" size=".02" fromto="0 0 0 -.2 0 .05" mass=".3"/>
    <site name="l_tip" pos="-.2 0 .05"/></body>
   <body name="right" pos=".1 0 0"><joint name="r" axis="0 1 0"/><geom name="right" type="capsule" size=".02" fromto="0 0 0 .2 0 .05" mass=".2"/>
    <body pos=".2 0 .05"><joint name="r2" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .1 0 0" mass=".1"/><site name="r_tip" pos=".1 0 0"/></body></body></body>
  <body name="arm" pos="0 .6 .8"><joint name="a" axis="1 0 0"/><geom type="capsule" size=".02" fromto="0 0 0 0 .2 0" mass=".5"/><site name="a_tip" pos="0 .2 0"/></body>
  <body name="ball" pos="-.25 0 .6094"><freejoint/><geom name="ball" size=".05" mass=".2"/><site name="ball" pos="0 0 .05"/></body>
</worldbody>
<tendon><fixed name="split"><joint joint="l" coef=".5"/><joint joint="r" coef="-.7"/></fixed>
  <spatial name="rope"><site site="a_tip"/><site site="l_tip"/><site site="ball"/></spatial></tendon>
<actuator>{actuators}</actuator></mujoco>"""
ACTUATORS = {
    "motor": '<motor tendon="split" gear="3"/>',
    "servo": '<position tendon="split" kp="4" kv=".02" gear="2"/><motor joint="a"/>',
    "rope": '<general tendon="rope" gainprm="2" biastype="affine" biasprm="1 -3 -.05"/>',
    "rope and servo": '<general tendon="rope" gainprm="2" biastype="affine" biasprm="1 -3 -.05"/><position tendon="split" kp="2" kv=".01"/>',
    "site": '<position site="r_tip" refsite="a_tip" gear="1 .5 -1 .2 .1 .3" kp="2" kv=".01"/>',
    "muscle": '<muscle tendon="rope" force="5" lengthrange=".2 2"/>',
}
STEPPERS = {
    "semi_implicit": {},
    "lcp": {"contact": "lcp"},
    "penalty": {"contact": "penalty"},
    "bdf1": {"stepper": "bdf1"},
    "bdf2": {"stepper": "bdf2"},
}


def gripper(actuators):
    return coulomb.load(GRIPPER.format(actuators=ACTUATORS[actuators]))


def random_state(model, rng, touching=True):
    q = np.array(model.neutral()[0])
    v = 0.3 * rng.normal(size=model.nv)
    q[:4] += 0.1 * rng.normal(size=4)
    if touching:  # the ball on the left finger
        q[:4] *= 1e-4
        v[-6:] = [0, 0, -0.5, *(0.1 * rng.normal(size=3))]
    else:
        q[4:7] += 0.3
    return q, v, rng.uniform(0.1, 1, model.nu)


@pytest.mark.parametrize("actuators", ACTUATORS)
def test_forces_are_mujocos(actuators):
    mujoco = pytest.importorskip("mujoco")
    text = GRIPPER.format(actuators=ACTUATORS[actuators]).replace('damping=".01"', "")
    model, theirs = coulomb.load(text), mujoco.MjModel.from_xml_string(text)
    data, sim = mujoco.MjData(theirs), coulomb.Simulator(model, joint_forces="explicit")
    rng = np.random.default_rng(0)
    for _ in range(10):
        q, v, u = random_state(model, rng, touching=False)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        if theirs.na:
            data.act[:] = u
        mujoco.mj_forward(theirs, data)
        assert data.ncon == 0
        v_next = sim.step(q, v, u)[1]
        assert (v_next - v)[:4] / model.timestep == pytest.approx(data.qacc[:4], rel=1e-8, abs=1e-7)


def columns(function, at, h=1e-6):
    """Richardson-extrapolated central differences of a function of a vector."""

    def central(e, x):
        return (function(at + x * e) - function(at - x * e)) / (2 * x)

    return np.array([(4 * central(e, h / 2) - central(e, h)) / 3 for e in np.eye(len(at))]).T


@pytest.mark.parametrize("touching", [False, True], ids=["apart", "touching"])
@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("actuators", ACTUATORS)
def test_derivatives_against_differences(actuators, stepper, touching):
    model = gripper(actuators)
    rng = np.random.default_rng(3)
    q, v, u = random_state(model, rng, touching)
    sim = coulomb.Simulator(model, warm_start=False, **STEPPERS[stepper])

    def step(dq, dv, du):
        q1, v1 = sim.step(model.integrate(q, dq), v + dv, u + du)
        return np.concatenate([model.difference(base, q1), v1])

    base = sim.step(q, v, u)[0]
    nv, zero_u = model.nv, np.zeros(model.nu)
    sim.step(q, v, u)
    assert (len(sim.contacts) > 0) == touching
    d = sim.derivatives()
    A, B = d.A, d.B
    zero = np.zeros(nv)
    for ours, numeric in (
        (A[:, :nv], columns(lambda x: step(x, zero, zero_u), zero)),
        (A[:, nv:], columns(lambda x: step(zero, x, zero_u), zero)),
        (B, columns(lambda x: step(zero, zero, x), zero_u)),
    ):
        assert np.abs(ours - numeric).max() <= 2e-6 * max(1, np.abs(numeric).max())

    # Reverse is forward.
    sim.step(q, v, u)
    y = rng.normal(size=2 * nv)
    g = sim.vjp(y[:nv], y[nv:])
    assert np.concatenate([g.q, g.v]) == pytest.approx(y @ A, rel=1e-9, abs=1e-10)
    assert g.u == pytest.approx(y @ B, rel=1e-9, abs=1e-10)
    sparse = sim.derivatives(sparse=True)
    assert sparse.A.toarray() == pytest.approx(A, abs=1e-12)
    assert sparse.B.toarray() == pytest.approx(B, abs=1e-12)


@pytest.mark.parametrize("actuators", ACTUATORS)
def test_derivatives_by_parameters(actuators):
    model = gripper(actuators)
    q, v, u = random_state(model, np.random.default_rng(5))
    kinds = ("actuator_", "mass/", "friction/", "timestep", "gravity")
    names = ["q", "v", "u", "tau", *(n for n in model.parameters() if n.startswith(kinds))]
    check = coulomb.check_gradients(coulomb.Simulator(model), q, v, u, wrt=names, tolerance=2e-6)
    assert check.passed and check.smooth, (check.errors, check.changed)


def test_what_is_not_tied_stays_apart():
    """A servo over both fingers joins their islands, and no others: the arm's derivative by the fingers is zero, to the bit."""
    model = gripper("servo")
    q, v, u = random_state(model, np.random.default_rng(0))
    sim = coulomb.Simulator(model)
    sim.step(q, v, u)
    A = sim.derivatives().A
    nv = model.nv
    assert (A[nv : nv + 2, 1] != 0).all() and A[nv, nv + 1] != 0
    assert not A[nv + 3, [0, 1, 2, nv, nv + 1, nv + 2]].any()


def test_batches_have_the_same_bits():
    model = gripper("rope and servo")
    rng = np.random.default_rng(1)
    states = [random_state(model, rng, touching=k % 2 == 0) for k in range(6)]
    Q, V, U = (np.array(x) for x in zip(*states))
    batch = coulomb.BatchSimulator(model, num_envs=6, num_threads=2)
    Q1, V1 = batch.step(Q, V, U)[:2]
    for k, (q, v, u) in enumerate(states):
        q1, v1 = coulomb.Simulator(model).step(q, v, u)
        assert (q1 == Q1[k]).all() and (v1 == V1[k]).all()


def test_steps_are_not_split():
    with pytest.raises(ValueError, match="an actuator of this model ties several robots"):
        coulomb.Simulator(gripper("motor"), continuous_collision=True)


def test_limits_tie_two_robots_at_most():
    text = GRIPPER.format(actuators=ACTUATORS["rope"]).replace(
        '<spatial name="rope">', '<spatial name="rope" limited="true" range="0 9">'
    )
    with pytest.raises(ValueError, match="tendon 'rope' ties joints of more than two robots"):
        coulomb.load(text)
