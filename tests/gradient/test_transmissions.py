"""Transmissions by slider-cranks, and by sites that push off other ones (refsite): MuJoCo's lengths, forces and accelerations, and exact
derivatives of steps and sensors."""

import numpy as np
import pytest

import coulomb
from coulomb.mjcf_export import to_mjcf
from tests.gradient.step_options import OPTIONS

ROBOT = """<mujoco><compiler angle="radian"/><option timestep="0.002"><flag contact="disable"/></option><worldbody>
 <site name="world" pos=".1 -.2 .8" euler=".4 .3 -.2"/>
 <body name="base" pos="0 0 1">{root}<geom type="box" size=".1 .12 .05" mass="1"/><site name="base" pos=".02 .03 .05" euler=".2 -.4 .3"/>
  <body name="left" pos=".1 .1 0"><joint name="l" axis="0 1 .3"/><geom type="capsule" size=".02" fromto="0 0 0 .2 0 0" mass=".4"/>
   <body name="tip" pos=".2 0 0"><joint name="t" type="ball"/><geom type="capsule" size=".02" fromto="0 0 0 .1 0 .02" mass=".2"/>
    <site name="tip" pos=".05 .02 .03" euler="-.5 .2 .7"/></body></body>
  <body name="right" pos=".1 -.1 0"><joint name="r" axis=".2 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .2 0 0" mass=".3"/>
   <body name="slide" pos=".1 0 0"><joint name="s" type="slide" axis="1 .1 .2"/><geom size=".03" mass=".2"/>
    <site name="right" pos=".03 .01 .02" euler=".3 .6 -.1"/></body></body></body>
</worldbody><actuator>{actuators}</actuator>
<sensor><actuatorpos actuator="x"/><actuatorvel actuator="x"/><actuatorfrc actuator="x"/><jointactuatorfrc joint="l"/></sensor></mujoco>"""
ROOTS = {"free": "<freejoint/>", "ball": '<joint name="ball" type="ball" pos="0 .02 -.1"/>', "fixed": ""}
LAW = (
    'gear="{gear}" gaintype="affine" gainprm="2 .4 -.1" biastype="affine" biasprm=".2 -1.5 -.3" forcelimited="true" '
    'forcerange="-20 20"'
)
GEARS = {"force": ".5 -1 2 0 0 0", "torque": "0 0 0 1 .5 -.7", "wrench": ".5 -1 2 .3 .5 -.7"}
PAIRS = {
    "world": ("tip", "world"),
    "carrier": ("tip", "base"),
    "carried": ("base", "tip"),
    "branches": ("tip", "right"),
}


def refsite(pair, gear, root="free"):
    site, reference = PAIRS[pair]
    law = LAW.format(gear=GEARS[gear])
    actuators = f'<general name="x" site="{site}" refsite="{reference}" {law}/><motor joint="l"/>'
    return ROBOT.format(root=ROOTS[root], actuators=actuators)


def crank(ends=("tip", "right"), rod=0.6, root="free"):
    law = LAW.format(gear="1.5 0 0 0 0 0")
    actuators = (
        f'<general name="x" cranksite="{ends[0]}" slidersite="{ends[1]}" cranklength="{rod}" {law}/><motor joint="l"/>'
    )
    return ROBOT.format(root=ROOTS[root], actuators=actuators)


def cases():
    for root in ROOTS:
        for pair in PAIRS:
            if root == "fixed" and pair in ("world", "branches"):
                continue  # two arms of a fixed body are two robots, and "world" is "carrier"
            for gear in GEARS:
                yield f"{root}, {pair}, {gear}", refsite(pair, gear, root)
        if root != "fixed":
            yield f"{root}, crank", crank(root=root)
        yield f"{root}, crank on the world", crank(("tip", "world"), 1.5, root)
        yield f"{root}, short rod", crank(("base", "tip"), 0.001, root)


CASES = dict(cases())


def random_state(model, rng):
    q = model.integrate(np.array(model.neutral()[0]), 0.7 * rng.normal(size=model.nv))
    return q, rng.normal(size=model.nv), rng.normal(size=model.nu)


@pytest.mark.parametrize("text", CASES.values(), ids=CASES.keys())
def test_lengths_forces_and_accelerations_are_mujocos(text):
    mujoco = pytest.importorskip("mujoco")
    model, theirs = coulomb.load(text), mujoco.MjModel.from_xml_string(text)
    again = coulomb.load(to_mjcf(model))
    data = mujoco.MjData(theirs)
    sim = coulomb.Simulator(model, joint_forces="explicit")
    rng = np.random.default_rng(0)
    for _ in range(20):
        q, v, u = random_state(model, rng)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(theirs, data)
        sim.step(q, v, u)
        assert model.output(["sensor/sensor0", "sensor/sensor1"], q, v) == pytest.approx(data.sensordata[:2], abs=1e-10)
        assert sim.output("sensor/sensor2") == pytest.approx(data.sensordata[2:3], abs=1e-10)
        assert model.actuator_forces(q, v, u) == pytest.approx(data.qfrc_actuator, abs=1e-10)
        assert again.actuator_forces(q, v, u) == pytest.approx(data.qfrc_actuator, abs=1e-10)

        # What spins freely turns by another rule than MuJoCo's, of which the acceleration has no part at rest.
        data.qvel[:] = 0
        mujoco.mj_forward(theirs, data)
        v_next = sim.step(q, 0 * v, u)[1]
        assert v_next / model.timestep == pytest.approx(data.qacc, rel=1e-10, abs=1e-8)


@pytest.mark.parametrize("text", CASES.values(), ids=CASES.keys())
def test_sensors(text):
    rng = np.random.default_rng(1)
    model = coulomb.load(text)
    sim = coulomb.Simulator(model)
    names = [f"sensor/sensor{i}" for i in range(4)]
    q, v, u = random_state(model, rng)
    state = {"q": q, "v": v, "u": u}
    sim.step(**state)
    J = sim.derivatives()
    slopes = {by: J.output(names, by) for by in "qvu"}
    for by, analytic in slopes.items():
        for k, e in enumerate(1e-6 * np.eye(analytic.shape[1])):
            ends = []
            for s in (1, -1):
                moved = model.integrate(q, s * e) if by == "q" else state[by] + s * e
                sim.step(**(state | {by: moved}))
                ends.append(sim.output(names))
            assert analytic[:, k] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_steps(options):
    rng = np.random.default_rng(2)
    smooth = 0
    for text in list(CASES.values())[:: 1 if options == {} else 4]:
        model = coulomb.load(text)
        kinds = ("actuator_", "mass/", "timestep")
        names = ["q", "v", "u", "tau", *(n for n in model.parameters() if n.startswith(kinds))]
        sim = coulomb.Simulator(model, **options)
        q, v, u = random_state(model, rng)
        check = coulomb.check_gradients(sim, q, v, u, wrt=names, tolerance=2e-6)
        assert check.passed and check.converged, (text, check.errors, check.changed)
        smooth += check.smooth
        sim.step(q, v, u)
        J = sim.derivatives()
        y = rng.normal(size=2 * model.nv)
        back = sim.vjp(y[: model.nv], y[model.nv :])
        for got, block in zip((np.r_[back.q, back.v], back.u), (J.A, J.B), strict=True):
            assert got == pytest.approx(y @ block, rel=1e-8, abs=1e-8 * max(1e-3, np.abs(block).max()))
    assert smooth > 0


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("text", [crank(), refsite("branches", "wrench")], ids=["crank", "refsite"])
def test_readings_of_forces_along_a_rollout(text, options):
    """Their lengths depend on poses, which recalled steps and steps that end elsewhere must not take from the last one: single steps, all
    steps recalled, all run again; and by differences."""
    rng = np.random.default_rng(6)
    model = coulomb.load(text)
    names = ["sensor/sensor2", "sensor/sensor3"]  # of the actuator, and in the joint
    q, v, _ = random_state(model, rng)
    U, w, d = rng.normal(size=(4, model.nu)), rng.normal(size=(5, 1)), rng.normal(size=model.nv)
    sim = coulomb.Simulator(model, **options)
    steps, x = [], (q, v)
    for u in U:
        x = sim.step(*x, u)
        steps.append(sim.output(names))

    def value(e, more):
        return (sim.rollout(model.integrate(q, e * d), v, U, **more).output(names[0]) * w).sum()

    for more in ({}, {"keep_factors": False}):
        rollout = sim.rollout(q, v, U, **more)
        assert rollout.output(names)[1:] == pytest.approx(np.array(steps), rel=1e-9, abs=1e-9)
        slope = rollout.vjp(outputs={names[0]: w}).q0 @ d
        assert slope == pytest.approx((value(1e-6, more) - value(-1e-6, more)) / 2e-6, rel=1e-5, abs=1e-6)


def test_a_crank_that_turns():
    """The slider's coordinate in closed form: r cos(q) - sqrt(rod^2 - r^2 sin^2 q)."""
    text = """<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody><site name="guide" euler="0 1.5707963267948966 0"/>
      <body><joint name="j" axis="0 1 0"/><geom size=".02" mass="1"/><site name="end" pos=".3 0 0"/></body></worldbody>
      <actuator><motor name="x" cranksite="end" slidersite="guide" cranklength=".5"/></actuator>
      <sensor><actuatorpos actuator="x"/></sensor></mujoco>"""
    model = coulomb.load(text)
    for angle in np.linspace(-3, 3, 13):
        length = 0.3 * np.cos(angle) - np.sqrt(0.25 - (0.3 * np.sin(angle)) ** 2)
        assert model.output("sensor/sensor0", np.array([angle]))[0] == pytest.approx(length, abs=1e-12)


def test_placements_at_one_end_are_refused():
    model = coulomb.load(refsite("carrier", "force"))
    sim = coulomb.Simulator(model)
    sim.step(*random_state(model, np.random.default_rng(3)))
    with pytest.raises(ValueError, match="one end of actuator 'x'"):
        sim.derivatives(wrt=["joint_placement/l"])
    both_ends = coulomb.load(refsite("carrier", "force", "ball"))
    sim = coulomb.Simulator(both_ends)
    rng = np.random.default_rng(4)
    check = coulomb.check_gradients(sim, *random_state(both_ends, rng), wrt=["joint_placement/ball"], tolerance=2e-6)
    assert check.passed, check.errors
