"""Gravity compensation: accelerations and trajectories against MuJoCo, what floats, energy, and derivatives against differences, the Taylor
remainder and reverse mode against forward mode, in contact and with every stepper."""

import pickle
import re

import numpy as np
import pytest

import coulomb
from coulomb.mjcf_export import to_mjcf

# An arm of which one link floats, one is held in part and one rises; beside it a box on the floor that weighs a third.
ARM = """<mujoco><option timestep="0.002"><flag contact="{contact}"/></option><compiler angle="radian"/><worldbody>
  <geom name="floor" type="plane" size="2 2 .1" friction=".7"/>
  <body name="upper" pos="0 0 .5" gravcomp="1"><joint name="shoulder" type="ball" damping=".05" armature=".01"/>
    <geom type="capsule" fromto="0 0 0 .2 .05 0" size=".03" mass=".8"/>
    <body name="fore" pos=".2 .05 0" gravcomp=".4"><joint name="elbow" axis="0 1 .2" damping=".02" stiffness="1"/>
      <geom type="box" size=".1 .02 .03" pos=".1 .01 0" mass=".5"/>
      <body name="hand" pos=".2 0 0" gravcomp="1.5"><joint name="wrist" type="slide" axis="1 0 .1" damping=".5"/>
        <geom name="hand" type="sphere" size=".04" pos=".02 0 .01" mass=".3"/></body></body></body>
  <body name="box" pos="0 .6 .0999" gravcomp=".67"><freejoint/><geom name="box" type="box" size=".1 .1 .1" mass="1"/></body>
  </worldbody><actuator><motor joint="elbow"/></actuator></mujoco>"""


def load(contact="enable"):
    return coulomb.load(ARM.format(contact=contact))


def state(model, seed=0):
    rng = np.random.default_rng(seed)
    q, v = (np.array(x) for x in model.neutral())
    q = model.integrate(q, np.r_[0.4 * rng.normal(size=4), 0.02, np.zeros(model.nv - 5)])
    v[:5] = 0.5 * rng.normal(size=5)
    return q, v


def test_accelerations_and_trajectories_are_mujocos():
    mujoco = pytest.importorskip("mujoco")
    model, theirs = load("disable"), mujoco.MjModel.from_xml_string(ARM.format(contact="disable"))
    assert model.body_gravity_compensation == pytest.approx([0, 1, 0.4, 1.5, 0.67])
    data = mujoco.MjData(theirs)
    q, v = state(model)
    data.qpos[:], data.qvel[:] = q, v
    data.ctrl[0] = 0.3
    mujoco.mj_forward(theirs, data)
    tau = model.inverse_dynamics(q, v, data.qacc)
    assert tau == pytest.approx(data.qfrc_actuator + data.qfrc_spring + data.qfrc_damper, abs=1e-9)

    # Written as MJCF and as bytes it is the same.
    for again in (coulomb.load(to_mjcf(model)), pickle.loads(pickle.dumps(model))):
        assert again.body_gravity_compensation == pytest.approx(model.body_gravity_compensation)


def test_what_is_compensated_floats_and_the_rest_falls_by_what_is_left():
    model = load("disable")
    q, v = model.neutral()
    sim = coulomb.Simulator(model, timestep=1e-3)
    _, v1 = sim.step(q, np.zeros(model.nv))
    assert v1[-6:] == pytest.approx([0, 0, -9.81e-3 * 0.33, 0, 0, 0], abs=1e-12)


def test_energy_counts_the_weight_that_is_left():
    """Without dampers the sum of kinetic and potential energy stays; the error falls with the time step."""
    model = load("disable")
    model = model.with_parameters(
        {n: np.zeros(p.size) for n, p in model.parameters().items() if n.startswith("joint_damping")}
    )
    drift = []
    for h in (1e-3, 5e-4):
        sim = coulomb.Simulator(model, timestep=h)
        q, v = state(model)
        before = sum(model.energy(q, v))
        for _ in range(round(0.3 / h)):
            q, v = sim.step(q, v)
        drift.append(abs(sum(model.energy(q, v)) - before))
    assert drift[1] < 0.6 * drift[0] and drift[1] < 0.02


def test_a_box_that_weighs_a_third_slides_and_presses_by_a_third():
    model = load()
    sim = coulomb.Simulator(model)
    q, v = (np.array(x) for x in model.neutral())
    for _ in range(200):
        q, v = sim.step(q, v)
    pressed = sum(c.impulse[2] for c in sim.contacts if "box" in (c.geometry_a, c.geometry_b)) / sim.timestep
    assert abs(pressed) == pytest.approx(0.33 * 9.81, rel=1e-6)


OPTIONS = {
    "ncp": {},
    "lcp": {"contact": "lcp"},
    "split": {"continuous_collision": True},
    "penalty": {"contact": "penalty"},
    "bdf1": {"stepper": "bdf1", "contact": "penalty"},
    "bdf2": {"stepper": "bdf2", "contact": "penalty"},
}
NAMES = ("gravity", "mass/", "com/", "inertia/", "joint_placement/", "geometry_placement/", "timestep")


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_derivatives(options):
    model = load()
    sim = coulomb.Simulator(model, timestep=2e-3, **options)
    names = ["q", "v", "u", "tau", *(n for n in model.parameters() if n.startswith(NAMES))]
    rng = np.random.default_rng(1)
    q, v = state(model)
    v[5] = 0.5
    most = 0
    for _ in range(3):
        check = coulomb.check_gradients(sim, q, v, [0.3], wrt=names, tolerance=2e-6)
        assert check.passed and check.converged, (check.errors, check.changed)
        most = max(most, check.compared / check.columns)
        q, v = sim.step(q, v, [0.3])

        # Reverse mode.
        wrt = names[4:]
        d = sim.derivatives(wrt=wrt)
        y = rng.normal(size=2 * model.nv)
        back = sim.vjp(y[: model.nv], y[model.nv :], wrt=wrt)
        pairs = [(np.r_[back.q, back.v], d.A), (back.u, d.B), (back.tau, d.B_tau), *((back[n], d[n]) for n in wrt)]
        for got, block in pairs:
            assert np.ravel(got) == pytest.approx(y @ block, rel=1e-9, abs=1e-9 * max(1e-3, np.abs(block).max()))
    assert most > 0.8


def test_the_share_is_a_parameter_from_zero_on():
    """A model without compensation has the derivative by it, too."""
    model = coulomb.load(re.sub(r' gravcomp="[^"]*"', "", ARM.format(contact="disable")))
    assert not model.body_gravity_compensation.any()
    sim = coulomb.Simulator(model, timestep=2e-3)
    q, v = state(model)
    sim.step(q, v)
    name = "gravity_compensation/fore"
    exact = sim.derivatives(wrt=[name])[name][:, 0]
    h = 1e-3
    ends = []
    for sign in (1, -1):
        end = coulomb.Simulator(model.with_parameters({name: [sign * h]}), timestep=2e-3).step(q, v)
        ends.append(end)
    dq = model.difference(ends[1][0], ends[0][0]) / (2 * h)
    dv = (ends[0][1] - ends[1][1]) / (2 * h)
    assert np.r_[dq, dv] == pytest.approx(exact, abs=1e-10)
    assert np.abs(exact).max() > 1e-3


def test_taylor_remainder():
    model = load()
    sim = coulomb.Simulator(model, timestep=2e-3)
    q, v = state(model)
    q1, v1 = sim.step(q, v, [0.3])
    A = sim.derivatives().A
    d = np.random.default_rng(3).normal(size=2 * model.nv)
    d[5:10] = d[model.nv + 5 :] = 0
    left = []
    for h in (1e-4, 1e-5):
        q2, v2 = sim.step(model.integrate(q, h * d[: model.nv]), v + h * d[model.nv :], [0.3])
        left.append(np.abs(np.r_[model.difference(q1, q2), v2 - v1] - h * A @ d).max())
    assert left[1] < 0.02 * left[0]
