"""Contact sensors against MuJoCo's: which contacts, in which order, in which frame; at rest also their forces, which are the weight's."""

import mujoco
import numpy as np
import pytest

import coulomb

DATA = 'data="found force torque dist pos normal tangent"'
# Two stools of three feet, listed before the floor, which MuJoCo's contacts begin with.
BODIES = """<option timestep="0.002" gravity="1.5 -.7 -9.6" cone="elliptic" impratio="100"/>
  <default><geom friction="1.2" solref=".004 1" solimp=".999 .9999 1e-4"/></default>
  <worldbody>
  <body name="stool" pos="0 0 .0999999"><freejoint/>
    <inertial pos=".01 .02 -.02" mass="1.5" diaginertia=".01 .012 .02"/>
    <geom name="foot0" size=".03" pos=".2 0 -.07"/><geom name="foot1" size=".03" pos="-.1 .17 -.07"/>
    <body name="leg"><geom name="foot2" type="ellipsoid" size=".03 .03 .03" pos="-.1 -.17 -.07"/></body>
    <site name="zone" type="box" size=".05 .05 .1" pos=".2 0 -.07"/></body>
  <body name="other" pos="1 0 .0999998"><freejoint/>
    <inertial pos=".01 .02 -.02" mass="2" diaginertia=".01 .012 .02"/>
    <geom name="foot3" size=".03" pos=".2 0 -.07"/><geom name="foot4" size=".03" pos="-.1 .17 -.07"/><geom name="foot5" size=".03" pos="-.1 -.17 -.07"/></body>
  <geom name="floor" type="plane" size="5 5 .1"/>
  </worldbody>"""
SELECTIONS = [
    'geom1="floor" geom2="foot1"',
    'geom1="foot1" geom2="floor"',
    'geom1="floor" num="4"',
    'geom2="floor" num="7"',
    'body1="stool" num="3"',
    'subtree1="stool" body2="world" num="3"',
    'subtree1="other" reduce="netforce"',
    'body1="world" subtree2="stool" reduce="netforce"',
    'subtree1="stool" subtree2="other"',
    'site="zone" num="2"',
    'subtree1="stool" num="2" reduce="maxforce"',
    'subtree1="other" num="3" reduce="mindist"',
    'num="6"',
]
SIZE = 17


def settled():
    sensors = "".join(f'<contact name="c{i}" {selection} {DATA}/>' for i, selection in enumerate(SELECTIONS))
    text = f"<mujoco>{BODIES}<sensor>{sensors}</sensor></mujoco>"
    theirs = mujoco.MjModel.from_xml_string(text)
    data, model = mujoco.MjData(theirs), coulomb.load(text)
    for _ in range(3000):
        mujoco.mj_step(theirs, data)
    mujoco.mj_forward(theirs, data)
    assert data.ncon == 6 and np.abs(data.qvel).max() < 1e-4
    sim = coulomb.Simulator(model)
    q = np.array(data.qpos)
    sim.step(q, np.zeros(model.nv))
    return theirs, data, model, sim


def test_as_mujoco():
    theirs, data, model, sim = settled()
    assert not any("sensor" in line for line in model.ignored)
    for i, selection in enumerate(SELECTIONS):
        first, size = theirs.sensor_adr[i], theirs.sensor_dim[i]
        expected = data.sensordata[first : first + size].reshape(-1, SIZE)
        ours = sim.output(f"sensor/c{i}").reshape(-1, SIZE)
        assert ours.shape == expected.shape
        if "reduce" not in selection:
            # In no particular order.
            ours, expected = (x[np.lexsort(np.round(x[:, 8:11], 6).T)] for x in (ours, expected))
        assert np.array_equal(ours[:, 0], expected[:, 0]), selection
        assert np.abs(ours[:, 7] - expected[:, 7]).max() <= 1e-10, selection
        assert np.abs(ours[:, 11:] - expected[:, 11:]).max() <= 1e-10, selection
        if "netforce" in selection:
            # Soft contacts share the load not quite as rigid ones do; what it adds up to is the weight.
            assert np.abs(ours[:, 1:4] - expected[:, 1:4]).max() <= 1e-2
            assert np.abs(ours[:, 8:11] - expected[:, 8:11]).max() <= 1e-2
        else:
            assert np.abs(ours[:, 8:11] - expected[:, 8:11]).max() <= 1e-10, selection
            assert np.abs(ours[:, 1] - expected[:, 1]).max() <= 2e-2 * 20, selection


def test_sizes_and_units():
    for fields, size in (("found", 1), ("found dist", 2), ("found force torque", 7), ("pos tangent", 6)):
        model = coulomb.load(
            f'<mujoco><worldbody><geom name="g" size="1"/></worldbody><sensor><contact name="c" geom1="g" num="3" data="{fields}"/></sensor></mujoco>'
        )
        assert model.outputs()["sensor/c"].size == 3 * size
        with pytest.raises(ValueError, match="force of a step"):
            model.output("sensor/c", [])


def test_a_geometry_that_is_only_looked_at_has_no_contacts():
    model = coulomb.load("""<mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody><geom name="floor" type="plane" size="1 1 1"/>
      <body pos="0 0 .0999"><freejoint/><geom name="ball" size=".1"/><geom name="seen" type="mesh" mesh="m" mass="0" contype="0" conaffinity="0"/></body></worldbody>
      <sensor><contact name="c" geom1="seen"/><contact name="d" geom1="ball"/></sensor></mujoco>""")
    sim = coulomb.Simulator(model)
    sim.step(*model.neutral())
    assert sim.output("sensor/c")[0] == 0 and sim.output("sensor/d")[0] == 1
