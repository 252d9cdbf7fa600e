"""Readings of the sensors of MJCF files against MuJoCo's sensordata at the same state, on models with every kind of object."""

import itertools
import pickle

import mujoco
import numpy as np
import pytest

import coulomb

BODIES = """
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" pos="0 0 -1"/>
    <site name="fixed" pos="0.3 -0.2 0.5" euler="20 30 40"/>
    <body name="base" pos="0.1 0.2 0.9" euler="10 20 30"><freejoint name="root"/>
      <inertial pos="0.02 -0.03 0.04" mass="1.3" fullinertia="0.03 0.04 0.05 0.002 -0.003 0.001"/>
      <geom name="trunk" type="box" size=".1 .2 .15" pos="0.05 0 0" quat="0.8 0.6 0 0"/>
      <site name="imu" pos="0.02 0.03 -0.05" quat="0.5 0.5 -0.5 0.5"/>
      <body name="arm" pos="0.1 0 0.2" quat="0.5 0.5 -0.5 0.5">
        <joint name="ball" type="ball" pos="0.01 0.02 -0.03" range="0 40" limited="true" damping="0.1"/>
        <geom name="upper" type="capsule" fromto="0 0 0 0.1 0.2 0.3" size="0.05" mass="0.4"/>
        <body name="hand" pos="0.1 0.2 0.3">
          <joint name="hinge" axis="1 2 3" pos="0.02 0 0.01" range="-20 60" limited="true" ref="10"/>
          <joint name="slide" type="slide" axis="0 -1 2" range="-0.1 0.3" limited="true" actuatorfrcrange="-2 3"/>
          <geom name="palm" type="sphere" size="0.07" density="800"/>
          <site name="tip" pos="0.05 0.06 0.07" euler="5 -20 70"/>
        </body>
      </body>
      <body name="welded" pos="-0.2 0 0" euler="0 30 0"><geom name="fin" type="ellipsoid" size="0.05 0.08 0.1"/></body>
    </body>
    <body name="post" pos="0 2 0" euler="0 0 30"><geom name="pole" type="cylinder" size="0.1 1"/>
      <body name="door" pos="0.1 0 0"><joint name="swing" axis="0 0 1" pos="-0.1 0 0"/>
        <geom name="leaf" type="box" size="0.4 0.02 0.9" pos="0.4 0 0"/><geom name="seen" type="mesh" mesh="tetra" contype="0" conaffinity="0"/>
      </body></body>
  </worldbody>
  <asset><mesh name="tetra" vertex="-.1 -.1 -.1  .2 0 0  0 .2 0  0 0 .25"/></asset>
  <actuator>
    <motor name="m0" joint="hinge" gear="3" ctrlrange="-1 1" ctrllimited="true"/>
    <position name="m1" joint="slide" kp="12" kv="0.8" gear="2" forcerange="-5 5"/>
    <position name="m2" joint="ball" kp="4" gear="0 1 0.5"/>
    <motor name="m3" jointinparent="ball" gear="-1 0.5 2"/>
    <motor name="m4" jointinparent="root" gear="0 0 0 1 -2 3"/>
  </actuator>"""
OBJECTS = [
    *(("xbody", b) for b in ("base", "arm", "hand", "welded", "door", "post")),
    *(("body", b) for b in ("base", "hand", "welded", "door")),
    *(("geom", g) for g in ("trunk", "upper", "palm", "fin", "leaf", "pole", "floor", "seen")),
    *(("site", s) for s in ("fixed", "imu", "tip")),
]
FRAME_KINDS = "framepos framequat framexaxis frameyaxis framezaxis framelinvel frameangvel".split()
REFERENCES = [None, ("site", "imu"), ("xbody", "hand"), ("geom", "leaf"), ("body", "base"), ("site", "fixed")]


def model_of(sensors):
    text = f"<mujoco>{BODIES}<sensor>{sensors}</sensor></mujoco>"
    theirs = mujoco.MjModel.from_xml_string(text)
    return theirs, mujoco.MjData(theirs), coulomb.load(text)


def frame_sensors(kinds=FRAME_KINDS, more=""):
    out = []
    for kind, (otype, oname), reference in itertools.product(kinds, OBJECTS, REFERENCES):
        relative = f' reftype="{reference[0]}" refname="{reference[1]}"' if reference else ""
        out.append(f'<{kind} objtype="{otype}" objname="{oname}"{relative}{more}/>')
    return "".join(out)


OTHERS = (
    "".join(f'<velocimeter site="{s}"/><gyro site="{s}"/>' for s in ("fixed", "imu", "tip"))
    + "".join(f'<jointpos joint="{j}"/><jointvel joint="{j}"/>' for j in ("hinge", "slide", "swing"))
    + '<ballquat joint="ball"/><ballangvel joint="ball"/>'
    + "".join(
        f'<subtreecom body="{b}"/><subtreelinvel body="{b}"/><subtreeangmom body="{b}"/>'
        for b in ("base", "arm", "hand", "welded", "door", "world")
    )
    + "".join(f'<actuatorpos actuator="m{i}"/><actuatorvel actuator="m{i}"/>' for i in range(5))
    + "".join(f'<jointlimitpos joint="{j}"/><jointlimitvel joint="{j}"/>' for j in ("hinge", "slide", "ball"))
    + "<e_potential/><e_kinetic/>"
)


def states(model, count, seed):
    random = np.random.default_rng(seed)
    for _ in range(count):
        yield (
            model.integrate(model.neutral()[0], random.normal(size=model.nv)),
            2 * random.normal(size=model.nv),
            2 * random.normal(size=model.nu),
        )


def compare(theirs, data, model, count=6, seed=0):
    names = [f"sensor/{name}" for name in model.sensor_names]
    assert len(names) == theirs.nsensor and not any("sensor" in line for line in model.ignored)
    felt = np.zeros(theirs.nsensordata, dtype=bool)
    for q, v, u in states(model, count, seed):
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(theirs, data)
        ours = model.output(names, q, v)
        assert ours.shape == data.sensordata.shape
        error = np.abs(ours - data.sensordata)
        worst = int(error.argmax())
        assert error[worst] <= 1e-10 * max(1, np.abs(data.sensordata).max()), (
            worst,
            ours[worst],
            data.sensordata[worst],
        )
        felt |= data.sensordata != 0
    return felt


def test_frames():
    felt = compare(*model_of(frame_sensors()))
    assert felt.mean() > 0.8


def test_other_states():
    felt = compare(*model_of(OTHERS), count=40)
    still = (
        9  # velocities of a site of the world, of its velocimeter and gyro; lengths and speed of a free joint's motor
    )
    assert (~felt).sum() <= still


def test_cutoff_clamps():
    vectors = ["framepos", "framelinvel", "frameangvel"]
    others = OTHERS.replace('<ballquat joint="ball"/>', "").replace("/>", ' cutoff="0.2"/>')
    theirs, data, model = model_of(frame_sensors(vectors, ' cutoff="0.3"') + others)
    compare(theirs, data, model)
    assert (np.abs(data.sensordata) == 0.3).any() and (np.abs(data.sensordata) == 0.2).any()


@pytest.mark.parametrize("seed", range(3))
def test_actuator_forces_are_those_of_the_step(seed):
    sensors = "".join(f'<actuatorfrc actuator="m{i}"/>' for i in range(5))
    sensors += '<jointactuatorfrc joint="hinge"/><jointactuatorfrc joint="slide"/>'
    theirs, data, model = model_of(sensors)
    sim = coulomb.Simulator(model, timestep=1e-4)
    names = [f"sensor/{name}" for name in model.sensor_names]
    for q, v, u in states(model, 10, seed):
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(theirs, data)
        sim.step(q, v, u)
        assert np.abs(sim.output(names) - data.sensordata).max() <= 1e-10 * max(1, np.abs(data.sensordata).max())


ZONES = {
    "sphere": ".05",
    "capsule": ".02 .03",
    "ellipsoid": ".02 .03 .04",
    "cylinder": ".02 .03",
    "box": ".02 .03 .04",
}


@pytest.mark.parametrize("zone", ZONES)
def test_touch_selects_the_contacts_that_mujoco_selects(zone):
    """A box rests on the ground: each corner carries a quarter, here and there; sites all over it, of all orientations."""
    random = np.random.default_rng(len(zone))
    sites, sensors = "", ""
    for i in range(40):
        pos = random.uniform(-1, 1, 3) * (0.14, 0.14, 0.25)
        euler = random.uniform(-180, 180, 3)
        sites += '<site name="s{}" type="{}" size="{}" pos="{} {} {}" euler="{} {} {}"/>'.format(
            i, zone, ZONES[zone], *pos, *euler
        )
        sensors += f'<touch site="s{i}"/>'
    text = f"""<mujoco><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="5 5 1"/>
      <body name="box" pos="0 0 .1"><freejoint/><geom name="g" type="box" size=".1 .1 .1" mass="4"/>{sites}</body></worldbody>
      <sensor>{sensors}</sensor></mujoco>"""
    theirs = mujoco.MjModel.from_xml_string(text)
    data, model = mujoco.MjData(theirs), coulomb.load(text)
    for _ in range(2000):
        mujoco.mj_step(theirs, data)
    mujoco.mj_forward(theirs, data)
    assert data.ncon == 4
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    q[2] = data.qpos[2]
    for _ in range(300):
        q, v = sim.step(q, v)
    ours = sim.output([f"sensor/{name}" for name in model.sensor_names])
    assert len({round(x / 9.81) for x in ours}) >= 2  # some see none, some see one or more
    assert np.abs(ours - data.sensordata).max() <= 1e-3 * 4 * 9.81


def test_limit_forces_hold_the_joint():
    """A pendulum that lies on its limit: the torque is that of its weight."""
    text = """<mujoco><worldbody><body name="b" pos="0 0 1"><joint name="j" axis="0 1 0" range="-30 30" limited="true"/>
      <geom type="sphere" size=".1" pos=".5 0 0" mass="2"/></body></worldbody><sensor><jointlimitfrc joint="j"/></sensor></mujoco>"""
    model = coulomb.load(text)
    sim = coulomb.Simulator(model)
    q, v = np.array([np.radians(30)]), np.zeros(1)
    for _ in range(3):
        q, v = sim.step(q, v)
    assert sim.output("sensor/sensor0")[0] == pytest.approx(2 * 9.81 * 0.5 * np.cos(np.radians(30)), rel=1e-3)


FIELDS = (
    "".join(f'<magnetometer site="{s}"/>' for s in ("fixed", "imu", "tip"))
    + "".join(
        f'<insidesite site="{s}" objtype="{kind}" objname="{name}"/>'
        for s in ("fixed", "imu", "tip", "sphere", "capsule", "ellipsoid", "cylinder", "box")
        for kind, name in (("geom", "palm"), ("body", "hand"), ("xbody", "base"), ("site", "tip"))
    )
    + "".join(f'<tendonlimitpos tendon="{t}"/><tendonlimitvel tendon="{t}"/>' for t in ("sum", "cord"))
)


def test_fields_zones_and_limits_of_tendons():
    zones = '<site name="sphere" size=".5"/><site name="capsule" type="capsule" size=".3 .4"/><site name="ellipsoid" type="ellipsoid" size=".3 .4 .5"/>'
    zones += '<site name="cylinder" type="cylinder" size=".4 .3"/><site name="box" type="box" size=".3 .4 .5"/>'
    bodies = BODIES.replace('<site name="imu"', zones + '<site name="imu"')
    tendons = """<tendon><fixed name="sum" limited="true" range="-.5 .5"><joint joint="hinge" coef="1"/><joint joint="swing" coef=".3"/></fixed>
      <spatial name="cord" limited="true" range="2 2.3"><site site="tip"/><site site="fixed"/></spatial></tendon>"""
    text = f'<mujoco><option magnetic="1 2 3"/>{bodies}{tendons}<sensor>{FIELDS}</sensor></mujoco>'
    theirs = mujoco.MjModel.from_xml_string(text)
    felt = compare(theirs, mujoco.MjData(theirs), coulomb.load(text), count=60)
    assert felt.mean() > 0.7


@pytest.mark.parametrize("seed", range(3))
def test_actuator_forces_of_tendons(seed):
    text = f"""<mujoco>{BODIES.replace("</actuator>", '<motor name="t0" tendon="sum" gear="2"/><position name="t1" tendon="sum" kp="5"/></actuator>')}
      <tendon><fixed name="sum"><joint joint="hinge" coef="1"/><joint joint="slide" coef=".3"/></fixed></tendon>
      <sensor><tendonactuatorfrc tendon="sum"/></sensor></mujoco>"""
    theirs = mujoco.MjModel.from_xml_string(text)
    data, model = mujoco.MjData(theirs), coulomb.load(text)
    sim = coulomb.Simulator(model, timestep=1e-4)
    for q, v, u in states(model, 10, seed):
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(theirs, data)
        sim.step(q, v, u)
        assert sim.output("sensor/sensor0") == pytest.approx(data.sensordata, rel=1e-10)
        assert sim.output("tendon_actuator_force/sum")[0] == pytest.approx(data.sensordata[0], rel=1e-10)


def test_distances_of_geometries_and_bodies():
    """MuJoCo's own are found to 1e-6."""
    pairs = [
        ("floor", "trunk"),
        ("pole", "palm"),
        ("leaf", "upper"),
        ("fin", "leaf"),
        ("palm", "trunk"),
        ("leaf", "trunk"),
    ]
    sensors = "".join(
        f'<distance geom1="{a}" geom2="{b}" cutoff="20"/><distance geom1="{b}" geom2="{a}" cutoff=".5"/>'
        for a, b in pairs
    )
    sensors += '<distance body1="base" body2="door" cutoff="20"/><distance body1="hand" geom2="floor" cutoff="20"/>'
    theirs, data, model = model_of(sensors.replace('body2="door"', 'body2="post"'))
    names = [f"sensor/{name}" for name in model.sensor_names]
    cut_off = 0
    for q, v, _ in states(model, 40, 2):
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(theirs, data)
        ours = model.output(names, q, v)
        apart = data.sensordata > 0  # of depths MuJoCo's are less exact
        assert apart.sum() > 5
        assert np.abs(ours - data.sensordata)[apart].max() <= 2e-5
        cut_off += (ours == 0.5).sum()
    assert cut_off > 20


SPRINGS = """<mujoco><option gravity=".5 -1 -9"/><worldbody><site name="w" pos="0 .3 1"/>
  <body name="still" pos="1 2 3"><geom size=".1" mass="7"/></body>
  <body name="a" pos="0 0 1"><joint name="free" type="free" stiffness="3" armature=".2"/><geom type="box" size=".1 .2 .3" mass="2"/><site name="s" pos=".1 0 .2"/>
    <body name="b" pos=".3 0 0" gravcomp=".5"><joint name="ball" type="ball" stiffness="4" armature=".1"/><geom type="capsule" size=".05 .1" mass="1" euler="10 20 30"/>
      <body name="c" pos="0 .3 0"><joint name="hinge" axis="1 2 0" stiffness="5" springref="20" armature=".3"/><joint name="slide" type="slide" stiffness="6" springref=".1"/>
        <geom size=".1" pos=".1 0 0" mass=".5"/><site name="t" pos="0 .1 .1"/></body></body></body></worldbody>
  <tendon><fixed name="sum" stiffness="7" springlength="-.1 .1" armature=".4"><joint joint="hinge" coef="2"/><joint joint="slide" coef="-1"/></fixed>
    <spatial name="cord" stiffness="8" springlength=".2 .5" armature=".6"><site site="w"/><site site="s"/><site site="t"/></spatial></tendon>
  <sensor><e_potential/><e_kinetic/><subtreeangmom body="a"/><subtreeangmom body="b"/></sensor></mujoco>"""


def test_energies_of_springs_and_rotors():
    theirs = mujoco.MjModel.from_xml_string(SPRINGS)
    model = coulomb.load(SPRINGS)
    assert compare(theirs, mujoco.MjData(theirs), model, count=30).all()
    for q, v, _ in states(model, 3, 1):
        assert np.array_equal(model.output("potential_energy", q, v), model.output("sensor/sensor0", q, v))
        assert model.output("kinetic_energy", q, v)[0] == pytest.approx(v @ model.mass_matrix(q) @ v / 2, rel=1e-12)
        assert np.array_equal(model.output("subtree_angular_momentum/b", q, v), model.output("sensor/sensor3", q, v))


def test_normals_and_segments_between_geometries():
    """MuJoCo's own are found to 1e-6 in the distance, which leaves their points to its root."""
    pairs = (
        ("floor", "trunk"),
        ("pole", "palm"),
        ("leaf", "upper"),
        ("fin", "leaf"),
        ("palm", "trunk"),
        ("palm", "floor"),
    )
    kinds = "distance", "normal", "fromto"
    sensors = "".join(
        f'<{k} geom1="{a}" geom2="{b}" cutoff="{c}"/>' for a, b in pairs for c in (20, 0.5) for k in kinds
    )
    theirs, data, model = model_of(sensors)
    assert not any("sensor" in line for line in model.ignored)
    names = [f"sensor/{name}" for name in model.sensor_names]
    apart, overlapping, cut_off = 0, 0, 0
    for q, v, _ in states(model, 100, 2):
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(theirs, data)
        for i in range(2 * len(pairs)):
            expected, ours = data.sensordata[10 * i : 10 * i + 10], model.output(names[3 * i : 3 * i + 3], q, v)
            if expected[0] in (20, 0.5):
                assert np.array_equal(ours[1:], np.zeros(9)) and np.array_equal(expected[1:], np.zeros(9))
                cut_off += 1
                continue
            distance, normal, start, end = ours[0], ours[1:4], ours[4:7], ours[7:]
            length = np.linalg.norm(end - start)
            assert end - start == pytest.approx(length * normal, abs=1e-9)
            assert abs(distance) == pytest.approx(min(length, 20 if i % 2 == 0 else 0.5), abs=1e-9)
            if expected[0] > 0:
                assert ours == pytest.approx(expected, abs=5e-3)
                apart += 1
            elif "palm" in pairs[i // 2] and "floor" in pairs[i // 2]:
                assert ours == pytest.approx(expected, abs=1e-9)
                overlapping += 1
    assert apart > 100 and overlapping > 5 and cut_off > 20


def test_what_is_not_supported_is_listed():
    text = f"<mujoco>{BODIES}<sensor>%s</sensor></mujoco>".replace(
        '<site name="imu"', '<camera name="eye" resolution="9 9"/><site name="imu"'
    )
    model = coulomb.load(
        text % '<clock/><camprojection site="tip" camera="eye"/><clock/><gyro name="g" site="imu"/>'
        '<rangefinder site="tip" data="dist normal"/><contact geom1="floor" data="found linvel"/>'
    )
    assert model.sensor_names == ["g"]
    assert [line for line in model.ignored if "sensor" in line] == [
        "5 sensors (clock, camprojection, rangefinder, contact)"
    ]


def test_two_robots_keep_their_sensors_apart():
    own = """<framepos name="p" objtype="site" objname="tip"/><touch name="t" site="tip"/><rangefinder name="r" site="imu"/>
      <insidesite name="i" site="imu" objtype="geom" objname="trunk"/><distance name="d" geom1="palm" body2="post" cutoff="9"/>
      <contact name="c" subtree1="base" data="found normal"/><contact name="z" site="imu"/>"""
    text = f"<mujoco>{BODIES}<sensor>{own}</sensor></mujoco>"
    scene = coulomb.Scene()
    for _ in range(2):
        scene.add_mjcf(text)
    model = scene.build()
    assert model.sensor_names == [*"ptridcz", *(f"{name}_2" for name in "ptridcz")]
    q, _ = model.neutral()
    q[: model.nq // 2] = coulomb.load(text).integrate(q[: model.nq // 2], np.ones(model.nv // 2))
    single = coulomb.load(text)
    for name, end, half in itertools.product("pid", ("", "_2"), (0, 1)):
        if half == (end == "_2"):
            own = q[half * model.nq // 2 :][: model.nq // 2]
            assert np.array_equal(model.output(f"sensor/{name}{end}", q), single.output(f"sensor/{name}", own))

    # A copy of the model has the same sensors.
    again = pickle.loads(pickle.dumps(model))
    names = [n for n in model.outputs() if n.startswith("sensor/") and n.split("/")[1][0] in "prid"]
    assert np.array_equal(again.output(names, q), model.output(names, q))
    assert list(again.outputs()) == list(model.outputs())
