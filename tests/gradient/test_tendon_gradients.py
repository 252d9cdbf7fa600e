"""Derivatives of steps with fixed tendons: actuators, limits and equalities against differences, the Taylor remainder, reverse mode against
forward mode, in rollouts and batches, with contact and with every stepper."""

import numpy as np
import pytest

import coulomb
from tests.gradient.step_options import OPTIONS
from tests.tendon_scenes import FINGER, FLOOR, GRIPPER, text

BALL = '<body name="ball" pos=".241 0 .2199"><freejoint/><geom name="ball" size=".05" mass=".1" friction=".5"/></body>'
LIMIT = 'limited="true" range="-.4 .5"'
CURVED = '<equality><tendon tendon1="J0" tendon2="difference" polycoef=".1 .5 .3 .2 0"/></equality>'
PLAIN = '<equality><tendon tendon1="difference"/></equality>'
SCENES = {
    "gripper": text(GRIPPER),
    "gripper at its limit": text(GRIPPER, tendon='limited="true" range="-.01 .04"'),
    "gripper that is coupled": text(
        GRIPPER, equality='<equality><tendon tendon1="split" tendon2="other" polycoef="0 .5 .3 0 0"/></equality>'
    ),
    "gripper with a spring": text(GRIPPER, tendon='stiffness="300" springlength=".01" damping="20" frictionloss=".5"'),
    "gripper with a slack spring": text(GRIPPER, tendon='stiffness="300" springlength="0 .02" damping="20"'),
    "gripper with dry friction": text(GRIPPER, tendon='frictionloss="3"'),
    "finger with a spring": text(FINGER, tendon='stiffness="2" springlength="-.3 .3" damping=".05"'),
    "finger": text(FINGER),
    "finger at its limit": text(FINGER, tendon=LIMIT),
    "coupled finger": text(FINGER, equality=PLAIN),
    "finger on a curve": text(FINGER, equality=CURVED),
    "coupled finger on a ball": text(FINGER, equality=PLAIN, world=BALL, floor=FLOOR, tendon=LIMIT),
}
# Where a limit of the tendon is, or nearly, and driven into it.
STATES = {
    "gripper": ([0.2, 0.03, 0.02], [0.3, -0.2, 0.1]),
    "gripper with a spring": ([0.2, 0.03, 0.02], [0.3, -0.2, 0.1]),
    "gripper with a slack spring": ([0.2, 0.03, 0.02], [0.3, 0.2, 0.1]),
    "gripper with dry friction": ([0.2, 0.03, 0.02], [0.3, 0.05, -0.04]),
    "gripper at its limit": ([0.2, 0.03, 0.036], [0.3, 0.2, 0.1]),
    "gripper that is coupled": ([0.2, 0.03, -0.02], [0.3, 0.2, 0.1]),
}


def start(name, model, rng):
    if name in STATES:
        q, v = STATES[name]
        return np.array(q), np.array(v)
    q = np.array(model.neutral()[0])
    q[:4] = 0.1, 0.4, 0.26, 0.25
    v = 0.3 * rng.normal(size=model.nv)
    v[2:4] = 0.5, 0.4
    if "ball" in name:
        # Half a millimetre within the last link, which presses it down.
        q[4:7] = model.output("position/tip", q) + [0, 0, -0.0595]
        v[1] = 0.5
    return q, v


PARAMETERS = (
    "actuator_gain/",
    "actuator_kp/",
    "actuator_kd/",
    "tendon_limits/",
    "tendon_stiffness/",
    "tendon_damping/",
    "tendon_friction/",
    "timestep",
    "gravity",
    "mass/",
    "armature/",
)


def names_of(model):
    # The ball's own armature is zero: differences would make it negative.
    chosen = [n for n in model.parameters() if n.startswith(PARAMETERS) and n != "armature/joint4"]
    return ["q", "v", "u", "tau", *chosen]


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("name", SCENES)
def test_steps(name, options):
    rng = np.random.default_rng(0)
    model = coulomb.load(SCENES[name])
    sim = coulomb.Simulator(model, timestep=2e-3, **options)
    q, v = start(name, model, rng)
    reached = touched = False
    for _ in range(6):
        u = np.array([0.6, 0.3, 0.2, 0.1]) + 0.1 * rng.normal(size=model.nu)
        tau = 0.05 * rng.normal(size=model.nv)
        check = coulomb.check_gradients(sim, q, v, u, tau, wrt=names_of(model), tolerance=2e-6)
        assert check.passed and check.converged, (check.errors, check.changed)
        reached = reached or check.smooth
        q, v = sim.step(q, v, u, tau=tau)
        touched = touched or any(c.mode != "separating" for c in sim.contacts)
    assert reached and touched == ("ball" in name)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("name", SCENES)
def test_reverse_and_forward_agree(name, options):
    rng = np.random.default_rng(1)
    model = coulomb.load(SCENES[name])
    sim = coulomb.Simulator(model, timestep=2e-3, **options)
    q, v = start(name, model, rng)
    u = np.array([0.6, 0.3, 0.2, 0.1])
    for _ in range(4):
        q, v = sim.step(q, v, u)
        J = sim.derivatives()
        y = rng.normal(size=2 * model.nv)
        back = sim.vjp(y[: model.nv], y[model.nv :])
        by = np.r_[back.q, back.v], back.u, back.tau
        for got, block in zip(by, (J.A, J.B, J.B_tau), strict=True):
            assert got == pytest.approx(y @ block, rel=1e-9, abs=1e-9 * max(1e-3, np.abs(block).max()))


@pytest.mark.parametrize("name", ["gripper", "finger at its limit", "coupled finger on a ball"])
def test_taylor_remainder(name):
    """What a linear model of the step leaves falls with the square of the change."""
    rng = np.random.default_rng(2)
    model = coulomb.load(SCENES[name])
    sim = coulomb.Simulator(model, timestep=2e-3)
    q, v = start(name, model, rng)
    u = np.array([0.6, 0.3, 0.2, 0.1])
    for _ in range(10):
        q, v = sim.step(q, v, u)
    q1, v1 = sim.step(q, v, u)
    A = sim.derivatives().A
    d = rng.normal(size=2 * model.nv)
    left = []
    for h in (1e-5, 1e-6):
        q2, v2 = sim.step(model.integrate(q, h * d[: model.nv]), v + h * d[model.nv :], u)
        left.append(np.abs(np.r_[model.difference(q1, q2), v2 - v1] - h * A @ d).max())
    assert left[1] < 0.02 * left[0] or left[0] < 1e-11


@pytest.mark.parametrize("name", ["gripper at its limit", "finger at its limit", "coupled finger"])
def test_rollouts_and_batches(name):
    rng = np.random.default_rng(3)
    model = coulomb.load(SCENES[name])
    q, v = start(name, model, rng)
    U = 0.5 + 0.1 * rng.normal(size=(30, model.nu))
    sim = coulomb.Simulator(model, timestep=2e-3)
    rollout = sim.rollout(q, v, U)
    assert rollout.converged
    w = np.zeros((2, 31, model.nv))
    w[:, -1] = rng.normal(size=(2, model.nv))
    gradient = rollout.vjp(*w)
    dU = rng.normal(size=U.shape)
    ends = []
    h = 1e-6
    for sign in (1, -1):
        end = coulomb.Simulator(model, timestep=2e-3).rollout(q, v, U + sign * h * dU)
        ends.append(w[0, -1] @ model.difference(rollout.q[-1], end.q[-1]) + w[1, -1] @ end.v[-1])
    assert np.sum(gradient.u * dU) == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=2e-5)

    # The same, world by world, on two threads.
    batch = coulomb.BatchSimulator(model, 3, num_threads=2, timestep=2e-3)
    Q, V = np.tile(q, (3, 1)), np.tile(v, (3, 1))
    alone = coulomb.Simulator(model, timestep=2e-3)
    qa, va = q, v
    for u in U:
        Q, V = batch.step(Q, V, np.tile(u, (3, 1)))
        qa, va = alone.step(qa, va, u)
    assert (Q == qa).all() and (V == va).all()


def test_outputs_of_tendons():
    rng = np.random.default_rng(4)
    model = coulomb.load(text(GRIPPER))
    q, v = rng.normal(size=3), rng.normal(size=3)
    names = ["tendon_length/split", "tendon_velocity/other", "sensor/sensor2", "sensor/sensor3"]
    assert set(names) <= set(model.outputs())
    h = 1e-6
    for by in "qv":
        J = model.output_jacobian(names, q, v, by)
        for k, e in enumerate(h * np.eye(3)):
            dq, dv = (e, 0 * e) if by == "q" else (0 * e, e)
            column = (model.output(names, q + dq, v + dv) - model.output(names, q - dq, v - dv)) / (2 * h)
            assert J[:, k] == pytest.approx(column, abs=1e-8)


@pytest.mark.parametrize("stepper", ["semi_implicit", "bdf1"])
def test_forces_of_tendons(stepper):
    model = coulomb.load(
        text(GRIPPER, equality='<equality><tendon name="tie" tendon1="split" tendon2="other"/></equality>')
    )
    contact = {} if stepper == "semi_implicit" else {"contact": "penalty"}
    sim = coulomb.Simulator(model, timestep=2e-3, stepper=stepper, **contact)
    names = ["actuator_force/grip", "actuator_force/affine", "sensor/sensor4", "sensor/sensor5", "equality_force/tie"]
    q, v, u = np.array([0.2, 0.03, 0.02]), np.array([0.3, -0.2, 0.1]), np.array([0.6, 0.3, 0.2, 0.1])
    sim.step(q, v, u)
    J = sim.derivatives()
    analytic = {by: J.output(names, by) for by in "qvu"}
    h = 1e-6
    for by, size in (("q", 3), ("v", 3), ("u", 4)):
        derivative = analytic[by]
        for k in range(size):
            ends = []
            for sign in (1, -1):
                state = {"q": q.copy(), "v": v.copy(), "u": u.copy()}
                state[by][k] += sign * h
                sim.step(**state)
                ends.append(sim.output(names))
            assert derivative[:, k] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5, abs=1e-5)


CLAMPS = [{}, {"joint_forces": "implicit"}, {"joint_forces": "explicit"}, {"stepper": "bdf1"}, {"contact": "penalty"}]


@pytest.mark.parametrize("options", CLAMPS, ids=["speeds", "implicit", "explicit", "bdf1", "penalty"])
def test_joints_whose_actuators_saturate(options):
    """A bound on the sum of a servo and a tendon, the servo's part judged at the end of the step."""
    document = text(FINGER, joint='actuatorfrcrange="-.3 .3" actuatorfrclimited="true"')
    model = coulomb.load(document.replace("<motor", '<position joint="J2" kp="3" kv=".3"/><motor', 1))
    sim = coulomb.Simulator(model, timestep=2e-3, **options)
    rng = np.random.default_rng(0)
    for _ in range(25):
        q, v, u = 0.3 * rng.normal(size=4), rng.normal(size=4), rng.normal(size=model.nu)
        check = coulomb.check_gradients(sim, q, v, u, wrt=names_of(model), tolerance=2e-6)
        assert check.passed, (check.errors, check.changed)


@pytest.mark.parametrize("equality", ["", PLAIN], ids=["free", "coupled"])
def test_steps_that_are_split(equality):
    model = coulomb.load(text(FINGER, world=BALL, floor=FLOOR, equality=equality))
    sim = coulomb.Simulator(model, timestep=2e-3, continuous_collision=True)
    q, v = start("ball", model, np.random.default_rng(1))
    q[6] -= 0.003
    impacts = 0
    for _ in range(20):
        u = np.array([0.6, 0.3, 0.2, 0.1])
        check = coulomb.check_gradients(sim, q, v, u, tolerance=1e-5)
        assert check.passed, (check.errors, check.changed)
        q, v = sim.step(q, v, u)
        impacts += len(sim.impacts)
    assert impacts > 0


@pytest.mark.parametrize("law", ["stiffness", "damping", "armature"])
def test_laws_too_small_to_divide_by(law):
    """Less than anything has a finite inverse: the step is the one without it, and so are its derivatives."""
    text = """<mujoco><worldbody><body><joint name="j" axis="0 1 0"/><geom size=".1" mass="1" pos=".1 0 0"/></body></worldbody>
      <tendon><fixed name="t" {}><joint joint="j" coef="1"/></fixed></tendon></mujoco>"""
    found = []
    for more in ("", f'{law}="1e-320"', f'{law}="1e-280"'):
        model = coulomb.load(text.format(more))
        sim = coulomb.Simulator(model)
        q1, v1 = sim.step([0.2], [0.3])
        assert sim.status.converged, sim.status.reason
        found.append(np.concatenate([q1, v1, sim.derivatives().A.ravel()]))
    assert found[1] == pytest.approx(found[0], rel=1e-12) and found[2] == pytest.approx(found[0], rel=1e-12)
