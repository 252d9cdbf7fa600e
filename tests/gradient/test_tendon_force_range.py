"""actuatorfrcrange of a tendon with several actuators: MuJoCo's forces, and exact derivatives of steps and sensors at the bound."""

import numpy as np
import pytest

import coulomb
from coulomb.mjcf_export import to_mjcf
from tests.gradient.step_options import OPTIONS

ARM = """<mujoco><compiler angle="radian"/><option timestep="0.002"><flag contact="disable"/></option><worldbody><site name="w" pos="-.2 0 1.3"/>
  <body pos="0 0 1"><joint name="a" axis="0 1 0"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" mass="1"/><site name="s" pos=".2 .05 .05"/>
   <body pos=".3 0 0"><joint name="b" axis="0 1 .2"/><geom type="capsule" size=".02" fromto="0 0 0 .2 0 0" mass=".3"/><site name="e" pos=".1 0 .04"/></body></body>
</worldbody><tendon>{tendon}</tendon><actuator>
  <motor name="m" tendon="t" gear="{gear}"/>
  <general name="g" tendon="t" gear="1.5" gainprm="2 .5 -.2" gaintype="affine" biastype="affine" biasprm=".1 -.3 -.4"/>
  <position name="p" tendon="t" gear=".7" kp="4" kv=".3" forcerange="-3 3"/>
  <position name="j" joint="b" kp="5" kv=".2" forcerange="-1 1"/>
</actuator><sensor><actuatorfrc actuator="m"/><actuatorfrc actuator="p"/><jointactuatorfrc joint="b"/></sensor></mujoco>"""
TENDONS = {
    "fixed": '<fixed name="t" actuatorfrcrange="-1 1.5"><joint joint="a" coef=".8"/><joint joint="b" coef="-1.2"/></fixed>',
    "spatial": '<spatial name="t" actuatorfrcrange="-1 1.5"><site site="w"/><site site="s"/><site site="e"/></spatial>',
}


def arm(tendon, gear=2.0):
    return ARM.format(tendon=TENDONS[tendon], gear=gear)


def random_state(model, rng):
    return 0.5 * rng.normal(size=model.nv), rng.normal(size=model.nv), 2 * rng.normal(size=model.nu)


@pytest.mark.parametrize("tendon", TENDONS)
def test_forces_are_mujocos(tendon):
    mujoco = pytest.importorskip("mujoco")
    model, theirs = coulomb.load(arm(tendon)), mujoco.MjModel.from_xml_string(arm(tendon))
    assert model.tendons[0].force_limited and model.tendons[0].force_range == pytest.approx([-1, 1.5])
    data = mujoco.MjData(theirs)
    sim = coulomb.Simulator(model, joint_forces="explicit")
    rng = np.random.default_rng(0)
    bounded = 0
    for _ in range(40):
        q, v, u = random_state(model, rng)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(theirs, data)
        assert model.actuator_forces(q, v, u) == pytest.approx(data.qfrc_actuator, abs=1e-11)
        sim.step(q, v, u)
        names = ["sensor/sensor0", "sensor/sensor1", "sensor/sensor2"]
        assert sim.output(names) == pytest.approx(data.sensordata, abs=1e-11)
        assert (sim.step(q, v, u)[1] - v) / model.timestep == pytest.approx(data.qacc, rel=1e-10, abs=1e-9)
        total = data.actuator_force[:3].sum()
        bounded += min(abs(total + 1), abs(total - 1.5)) < 1e-12
    assert 10 < bounded < 40
    again = coulomb.load(to_mjcf(model))
    assert again.tendons[0].force_limited and again.tendons[0].force_range == pytest.approx([-1, 1.5])


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("tendon", TENDONS)
def test_derivatives(tendon, options):
    rng = np.random.default_rng(1)
    smooth = 0
    for gear in (2.0, -0.5):
        model = coulomb.load(arm(tendon, gear))
        names = ["q", "v", "u", "tau", *(n for n in model.parameters() if n.startswith(("actuator_", "timestep")))]
        sim = coulomb.Simulator(model, **options)
        for _ in range(4):
            q, v, u = random_state(model, rng)
            check = coulomb.check_gradients(sim, q, v, u, wrt=names, tolerance=2e-6)
            assert check.passed and check.converged, (check.errors, check.changed)
            smooth += check.smooth
            sim.step(q, v, u)
            J = sim.derivatives()
            y = rng.normal(size=2 * model.nv)
            back = sim.vjp(y[: model.nv], y[model.nv :])
            for got, block in zip((np.r_[back.q, back.v], back.u), (J.A, J.B), strict=True):
                assert got == pytest.approx(y @ block, rel=1e-8, abs=1e-8 * max(1e-3, np.abs(block).max()))
    assert smooth > 4


@pytest.mark.parametrize("options", [{}, {"stepper": "bdf1", "contact": "penalty"}], ids=["semi_implicit", "bdf1"])
@pytest.mark.parametrize("tendon", TENDONS)
def test_sensors_of_forces(tendon, options):
    rng = np.random.default_rng(2)
    names = ["actuator_force/m", "actuator_force/p", "sensor/sensor2"]
    model = coulomb.load(arm(tendon))
    sim = coulomb.Simulator(model, **options)
    for _ in range(3):
        q, v, u = random_state(model, rng)
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
                assert analytic[:, k] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-6)


def test_a_gear_of_zero_is_refused():
    with pytest.raises(ValueError, match="actuator 'm' gear: got 0.*the force of its tendon is limited"):
        coulomb.load(arm("fixed", 0))
