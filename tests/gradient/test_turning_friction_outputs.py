"""Torques of torsional and rolling friction in outputs: contact sensors, force and torque sensors; their values and derivatives."""

import numpy as np
import pytest
from test_force_outputs import differences

import coulomb

DATA = 'data="found force torque dist pos normal tangent"'
SCENE = f"""<mujoco><option timestep="0.002"/><default><geom condim="6" friction=".5 .03 .01"/></default><worldbody>
  <geom name="floor" type="plane" size="5 5 .1" friction="FLOOR"/>
  <body name="egg" pos="0 0 .1" euler="20 10 0"><freejoint/><inertial pos=".01 .02 .01" mass="1.5" diaginertia=".01 .012 .014"/>
    <geom name="egg" type="ellipsoid" size=".1 .09 .1"/>
    <body name="arm" pos="0 0 .1"><joint axis="1 0 0" damping=".1"/><geom name="head" size=".05" mass=".2" pos="0 0 .1" contype="0" conaffinity="0"/>
    <site name="wrist"/></body><site name="core"/></body>
  <body name="other" pos=".6 0 .46999"><joint axis="0 1 0"/><geom name="stick" type="capsule" fromto="0 0 0 .5 .1 -.42" size=".05" mass="1" priority="1" friction=".3 .03 .01"/><site name="root"/></body>
  </worldbody><sensor>
    <contact name="egg" geom1="floor" body2="egg" num="1" {DATA}/><contact name="stick" geom1="stick" num="2" {DATA}/>
    <contact name="net" geom1="floor" subtree2="egg" reduce="netforce" {DATA}/>
    <accelerometer name="core" site="core"/><force name="wrist" site="wrist"/><torque name="twist" site="wrist"/>
    <force name="root" site="root"/><torque name="hinge" site="root"/></sensor></mujoco>"""
PARAMETERS = [
    "friction/floor",
    "torsional_friction/floor",
    "rolling_friction/floor",
    "geometry_placement/egg",
    "size/stick",
    "mass/egg",
]


SLIPS, HOLDS = ".6 .04 .015", "1 .4 .3"


def start(v_scale=1.0):
    """Moving, on a floor where it slides; at rest, on one that holds it."""
    model = coulomb.load(SCENE.replace("FLOOR", SLIPS if v_scale else HOLDS))
    sim = coulomb.Simulator(model, tolerance=1e-14)
    q, v = model.neutral()
    v = v_scale * np.array([0.3, -0.2, -0.3, 3.0, 2.0, 9.0, 0.4, 0.3])
    q[2] = 0.05
    for _ in range(20):  # the egg up to the floor, a little into it
        sim.step(q, np.zeros(8))
        q[2] += max(c.depth for c in sim.contacts if "egg" in (c.geometry_a, c.geometry_b)) - 1e-5
    sim.reset()
    sim.step(q, v)
    return model, sim, q, v


def test_torques_are_those_of_the_contacts():
    model, sim, q, v = start()
    contact = next(c for c in sim.contacts if "egg" in (c.geometry_a, c.geometry_b))
    on_egg = 1 if contact.geometry_a == "egg" else -1
    torque, force = on_egg * contact.torque, on_egg * contact.impulse / 0.002
    assert np.abs(torque).min() > 1e-3
    row = sim.output("sensor/egg")
    frame = np.array([row[11:14], row[14:17], np.cross(row[11:14], row[14:17])])
    assert row[1:4] == pytest.approx(frame @ force, rel=1e-9) and row[4:7] == pytest.approx(frame @ torque, rel=1e-9)
    net = sim.output("sensor/net")
    assert net[4:7] == pytest.approx(torque, rel=1e-9) and net[1:4] == pytest.approx(force, rel=1e-9)


def test_a_hinge_carries_what_friction_asks():
    """The stick is still on its hinge and turns on the floor about the hinge alone: what the sensor reads closes the balance of momentum."""
    model, sim, q, v = start()
    with_torques = sim.output("sensor/hinge")
    text = SCENE.replace("FLOOR", SLIPS).replace('condim="6"', 'condim="3"')
    plain = coulomb.Simulator(coulomb.load(text), tolerance=1e-14)
    plain.step(q, v)
    assert np.abs(with_torques - plain.output("sensor/hinge")).max() > 1e-3


@pytest.mark.parametrize("scale", [1.0, 0.0])
def test_derivatives(scale):
    model, sim, q, v = start(scale)
    names = [f"sensor/{name}" for name in model.sensor_names]
    memory = sim.memory
    sim.freeze_memory(True)
    sim.step(q, v)
    assert sim.status.converged
    base, d = sim.output(names), sim.derivatives(wrt=PARAMETERS)
    modes = [c.mode for c in sim.contacts]
    assert ("sticking" in modes) == (scale == 0) and "sliding" in modes

    def at(q=q, v=v, model=model, **more):
        other = coulomb.Simulator(model, tolerance=1e-14)
        other.memory = memory
        other.freeze_memory(True)
        other.step(q, v, **more)
        assert [c.mode for c in other.contacts] == modes
        return other.output(names)

    zero = np.zeros(model.nv)
    moved = {
        "q": differences(lambda w: at(q=model.integrate(q, w)), zero, 1e-6),
        "v": differences(lambda v: at(v=v), v, 1e-5),
        "tau": differences(lambda tau: at(tau=tau), zero, 1e-3),
    }
    for name in PARAMETERS:
        value = np.asarray(model.parameters()[name].value, dtype=float)
        moved[name] = differences(
            lambda x, name=name, value=value: at(model=model.with_parameters({name: x.reshape(value.shape)})),
            value.ravel(),
            1e-5 * max(1e-1, np.abs(value).max()),
        )
    w = np.random.default_rng(3).normal(size=base.size)
    outputs, first = {}, 0
    for name in names:
        size = model.outputs()[name].tangent_size
        outputs[name] = w[first : first + size]
        first += size
    g = sim.vjp(outputs=outputs, wrt=PARAMETERS)
    felt = 0
    for name, J in moved.items():
        found = d.output(names, name)
        scale_of = np.maximum(np.abs(J).max(axis=1, keepdims=True), 1e-2 * np.abs(J).max() + 1e-2)
        error = np.abs(found - J) / scale_of
        assert error.max() <= 5e-5, (name, np.unravel_index(error.argmax(), error.shape), error.max())
        back = getattr(g, name) if name in ("q", "v", "tau") else g[name]
        assert back == pytest.approx(w @ found, rel=1e-8, abs=1e-8 * np.abs(w @ found).max() + 1e-12)
        felt += np.abs(J[4:7]).max() > 1e-3
    assert felt >= (4 if scale else 3)
