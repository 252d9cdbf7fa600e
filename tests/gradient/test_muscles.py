"""Muscles: MuJoCo's forces and activations, and exact derivatives of steps and of activations."""

import numpy as np
import pytest

import coulomb
from coulomb.mjcf_export import to_mjcf
from tests.gradient.step_options import OPTIONS

ARM = """<mujoco><compiler angle="radian"/><option timestep="0.002" integrator="Euler"><flag contact="disable" limit="disable"/></option><worldbody>
  <site name="w" pos="-.1 0 1.1"/>
  <body pos="0 0 1"><joint name="a" axis="0 1 0" range="-1 1"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" mass="1"/><site name="s" pos=".1 0 .05"/>
   <body pos=".3 0 0"><joint name="b" axis="0 1 .2" range="-2 1"/><geom type="capsule" size=".02" fromto="0 0 0 .2 0 0" mass=".3"/><site name="e" pos=".1 0 .04"/></body></body>
</worldbody><tendon><spatial name="t"><site site="w"/><site site="s"/><site site="e"/></spatial></tendon><actuator>
  <muscle name="path" tendon="t" force="60" lengthrange=".2 .6"/>
  <muscle name="joint" joint="b" gear="-.05" scale="300" lengthrange="-.06 .1" range=".6 1.3" lmin=".4" lmax="1.7" vmax="2" fpmax="1.1" fvmax="1.4" {more}/>
  <general name="pulls" joint="a" gear=".04" dyntype="muscle" dynprm=".02 .05" gaintype="muscle" gainprm=".75 1.05 50 200 .5 1.6 1.5 1.3 1.2"
     lengthrange="-.04 .05" biastype="affine" biasprm="1 -20 -3"/>
  <general name="resists" joint="a" gear=".05" biastype="muscle" biasprm=".5 1.5 40 200 .5 1.6 1.5 1.3 1.2" lengthrange="-.05 .05" gainprm="2"/>
</actuator><sensor><actuatorfrc actuator="path"/><actuatorfrc actuator="joint"/><jointactuatorfrc joint="b"/></sensor></mujoco>"""


def arm(more="", tausmooth=None):
    return ARM.format(more=more + (f' tausmooth="{tausmooth}"' if tausmooth else ""))


def random_state(model, rng, fast=3.0):
    return rng.uniform([-1, -2], [1, 1]), fast * rng.normal(size=model.nv), rng.uniform(0, 1, size=model.nu)


def test_forces_are_mujocos():
    mujoco = pytest.importorskip("mujoco")
    text = arm()
    model, theirs = coulomb.load(text), mujoco.MjModel.from_xml_string(text)
    again = coulomb.load(to_mjcf(model))
    data = mujoco.MjData(theirs)
    sim = coulomb.Simulator(model)
    rng = np.random.default_rng(0)
    muscle = model.actuators[1].muscle
    assert muscle.peak_force == pytest.approx(300 / theirs.actuator_acc0[1]) and muscle.range == pytest.approx(
        [0.6, 1.3]
    )
    assert [a.activation for a in model.actuators] == ["muscle", "muscle", "muscle", "none"]
    seen = np.zeros(2)
    for _ in range(300):
        q, v, u = random_state(model, rng)
        data.qpos[:], data.qvel[:], data.ctrl[:], data.act[:] = q, v, u, u[:3]
        mujoco.mj_forward(theirs, data)
        sim.step(q, v, u)
        wanted = pytest.approx(data.qfrc_actuator, rel=1e-11, abs=1e-11)
        assert model.actuator_forces(q, v, u) == wanted and again.actuator_forces(q, v, u) == wanted
        assert sim.output([f"sensor/sensor{i}" for i in range(3)]) == pytest.approx(
            data.sensordata, rel=1e-11, abs=1e-11
        )
        accelerations = (sim.step(q, v, u)[1] - v) / model.timestep
        assert accelerations == pytest.approx(data.qacc, rel=1e-10, abs=1e-8)
        length = muscle.range[0] + (data.actuator_length[1] - muscle.length_range[0]) / 0.16 * 0.7
        seen = np.array([min(seen[0], length - 1), max(seen[1], length - 1)])
    assert seen[0] < -0.3 and seen[1] > 0.2


@pytest.mark.parametrize("tausmooth", [None, 0.3])
def test_activations_and_motion_are_mujocos(tausmooth):
    mujoco = pytest.importorskip("mujoco")
    text = arm('ctrllimited="true" ctrlrange=".1 .8"', tausmooth)
    model, theirs = coulomb.load(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)
    sim = coulomb.Simulator(model)
    activations = coulomb.Activations(model)
    assert activations.size == 3
    again = coulomb.Activations(coulomb.load(to_mjcf(model)))
    a, q, v = activations.initial, np.zeros(2), np.zeros(2)
    for i in range(200):
        u = 0.5 + np.sin(0.1 * i + np.arange(4))
        data.ctrl[:] = u
        mujoco.mj_step(theirs, data)
        assert again.step(a, u)[1] == pytest.approx(activations.step(a, u)[1], abs=1e-14)
        acting, a = activations.step(a, u)
        q, v = sim.step(q, v, acting)
        assert a[:3] == pytest.approx(data.act, abs=1e-12)
    assert q == pytest.approx(data.qpos, abs=1e-9) and v == pytest.approx(data.qvel, abs=1e-8)
    assert np.abs(v).max() > 0.01
    assert [line for line in model.deviations if "muscles" in line] == [
        "velocity of 3 muscles: they act with that at the start of a step"
    ]


@pytest.mark.parametrize("tausmooth", [None, 0.3])
def test_derivatives_of_activations(tausmooth):
    model = coulomb.load(arm('ctrllimited="true" ctrlrange=".1 .8"', tausmooth))
    activations = coulomb.Activations(model)
    rng = np.random.default_rng(1)
    for _ in range(20):
        a, u = rng.uniform(-0.1, 1.1, size=4), rng.uniform(-0.2, 1.2, size=4)
        w = rng.normal(size=(2, 4))
        by_a, by_u = activations.vjp(a, u, *w)
        for of, got in (("a", by_a), ("u", by_u)):
            for k, e in enumerate(1e-7 * np.eye(4)):
                ends = []
                for s in (1, -1):
                    acting, after = activations.step(a + s * e * (of == "a"), u + s * e * (of == "u"))
                    ends.append(w[0] @ acting + w[1] @ after)
                assert got[k] == pytest.approx((ends[0] - ends[1]) / 2e-7, abs=2e-6)


def test_torch_and_jax():
    activations = coulomb.Activations(coulomb.load(arm(tausmooth=0.3)))
    rng = np.random.default_rng(2)
    a, u, w = rng.uniform(0, 1, (5, 4)), rng.uniform(-0.2, 1.2, (5, 4)), rng.normal(size=(2, 5, 4))
    by_a, by_u = activations.vjp(a, u, *w)
    torch = pytest.importorskip("torch")
    ta, tu = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (a, u))
    acting, after = activations.step(ta, tu)
    (torch.tensor(w[0]) * acting + torch.tensor(w[1]) * after).sum().backward()
    assert ta.grad.numpy() == pytest.approx(by_a, abs=1e-12) and tu.grad.numpy() == pytest.approx(by_u, abs=1e-12)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_steps(options):
    rng = np.random.default_rng(3)
    model = coulomb.load(arm())
    kinds = ("actuator_", "muscle_", "mass/", "timestep")
    names = ["q", "v", "u", "tau", *(n for n in model.parameters() if n.startswith(kinds))]
    assert {"muscle_force/path", "muscle_force/resists"} <= set(names) and "actuator_gain/path" not in names
    sim = coulomb.Simulator(model, **options)
    smooth = 0
    for fast in (0.3, 3.0, 0.3, 3.0, 1.0, 1.0):
        q, v, u = random_state(model, rng, fast)
        check = coulomb.check_gradients(sim, q, v, u, wrt=names, tolerance=2e-6)
        assert check.passed and check.converged, (check.errors, check.changed)
        smooth += check.smooth
        sim.step(q, v, u)
        J = sim.derivatives()
        y = rng.normal(size=2 * model.nv)
        back = sim.vjp(y[: model.nv], y[model.nv :])
        for got, block in zip((np.r_[back.q, back.v], back.u), (J.A, J.B), strict=True):
            assert got == pytest.approx(y @ block, rel=1e-8, abs=1e-8 * max(1e-3, np.abs(block).max()))
    assert smooth > 0


def test_sensors_of_forces():
    rng = np.random.default_rng(4)
    model = coulomb.load(arm())
    sim = coulomb.Simulator(model)
    names = [f"sensor/sensor{i}" for i in range(3)]
    q, v, u = random_state(model, rng, 0.5)
    state = {"q": q, "v": v, "u": u}
    sim.step(**state)
    J = sim.derivatives()
    slopes = {by: J.output(names, by) for by in "qvu"}
    for by, analytic in slopes.items():
        for k, e in enumerate(1e-6 * np.eye(analytic.shape[1])):
            ends = []
            for s in (1, -1):
                sim.step(**(state | {by: state[by] + s * e}))
                ends.append(sim.output(names))
            assert analytic[:, k] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-5)


def test_a_trajectory_has_its_gradient():
    """Through muscles and their activations, along 40 steps."""
    model = coulomb.load(arm(tausmooth=0.2))
    sim, activations = coulomb.Simulator(model), coulomb.Activations(model)
    rng = np.random.default_rng(5)
    U, a, q, v = rng.uniform(0.1, 0.9, (40, 4)), rng.uniform(0.2, 0.8, 4), np.zeros(2), np.zeros(2)

    def loss(U):
        acting, states = activations.run(a, U)
        rollout = sim.rollout(q, v, acting)
        return rollout, states, rollout.q[-1].sum() + 0.3 * rollout.v[-1].sum()

    rollout, states, _ = loss(U)
    w = np.zeros((2, 41, 2))
    w[0, -1], w[1, -1] = 1, 0.3
    _, by_U = activations.run_vjp(states, U, rollout.vjp(*w).u)
    for _ in range(3):
        dU = rng.normal(size=U.shape)
        ends = [loss(U + s * 1e-6 * dU)[2] for s in (1, -1)]
        assert np.sum(by_U * dU) == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5)


def test_bad_muscles_are_refused():
    mujoco = pytest.importorskip("mujoco")
    changes = {
        "range": (1, 0.5),
        "peak_force": (2, 0),
        "1 - shortest": (4, 1),
        "longest - 1": (5, 1),
        "fastest": (6, 0),
        "passive": (7, -1),
        "stretched - 1": (8, 1),
    }
    for message, (index, value) in changes.items():
        compiled = mujoco.MjModel.from_xml_string(arm())
        compiled.actuator_gainprm[2, index] = value
        with pytest.raises(ValueError, match=f"actuator 'pulls' muscle {message}"):
            coulomb.Scene().add_mujoco_model(compiled)
    for index, name in enumerate(("activation_time", "deactivation_time", "smoothing")):
        compiled = mujoco.MjModel.from_xml_string(arm())
        compiled.actuator_dynprm[1, index] = -0.1
        with pytest.raises(ValueError, match=f"actuator 'joint' muscle {name}: -0.1"):
            coulomb.Scene().add_mujoco_model(compiled)
    compiled = mujoco.MjModel.from_xml_string(arm())
    compiled.actuator_lengthrange[2] = 0
    with pytest.raises(ValueError, match="actuator 'pulls' muscle length_range"):
        coulomb.Scene().add_mujoco_model(compiled)
    both = 'biastype="muscle" biasprm=".75 1.05 40 200 .5 1.6 1.5 1.3 1.2"'
    with pytest.raises(ValueError, match="actuator 'pulls': a muscle whose gainprm and biasprm differ"):
        coulomb.load(arm().replace('biastype="affine" biasprm="1 -20 -3"', both))


def test_what_acts_stays_within_zero_and_one():
    from coulomb.activations import acting_range
    from coulomb.control import Solver

    model = coulomb.load(arm())
    assert [acting_range(a) for a in model.actuators] == 3 * [(0, 1)] + [(-np.inf, np.inf)]
    solver = Solver(model, horizon=5)
    assert solver.limits[0][:3] == pytest.approx([0, 0, 0]) and solver.limits[1][:3] == pytest.approx([1, 1, 1])
    activations = coulomb.Activations(model)
    rng = np.random.default_rng(6)
    _, states = activations.run(activations.initial, rng.uniform(-3, 3, (200, 4)))
    assert states[:, :3].min() >= 0 and states[:, :3].max() <= 1 and states[:, :3].max() > 0.5
