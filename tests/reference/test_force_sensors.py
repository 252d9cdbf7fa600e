"""Accelerometers, force and torque sensors: readings against MuJoCo's where the two simulators have the same acceleration, statics, and
derivatives against differences.
"""

import mujoco
import numpy as np
import pytest

import coulomb

ROBOT = """<mujoco><option timestep="0.002" gravity="0.4 -.3 -9.81"/><default><geom friction=".1"/></default>
  <worldbody>{world}<site name="still" pos=".1 .2 .3" euler="10 20 30"/>
    <body name="base" pos="0 0 .5" euler="10 20 30"><freejoint name="root"/>
      <geom name="trunk" type="box" size=".1 .2 .15" pos=".05 0 0" mass="2" contype="0" conaffinity="0"/><site name="imu" pos=".02 .03 -.05" quat=".5 .5 -.5 .5"/>
      <body name="arm" pos=".1 0 .2" quat=".5 .5 -.5 .5"><joint name="ball" type="ball" pos=".01 .02 -.03"/>
        <geom name="upper" type="capsule" fromto="0 0 0 .1 .2 .3" size=".05" mass=".4"/><site name="shoulder" pos=".01 0 .02" euler="5 6 7"/>
        <body name="hand" pos=".1 .2 .3"><joint name="hinge" axis="1 2 3" pos=".02 0 .01" {friction}/>
          <joint name="slide" type="slide" axis="0 -1 2"/><geom name="palm" type="sphere" size=".07" mass=".3" pos=".02 .03 0"/>
          <site name="tip" pos=".05 .06 .07" euler="5 -20 70"/></body></body>
      <body name="welded" pos="-.2 0 0" euler="0 30 0"><geom name="fin" type="ellipsoid" size=".05 .08 .1" mass=".2" contype="0" conaffinity="0"/>
        <site name="mount" euler="50 0 10"/></body></body>
    <body name="post" pos="0 2 0" euler="0 0 30"><geom name="pole" type="cylinder" size=".1 1" mass="3" contype="0" conaffinity="0"/><site name="foot" pos="0 0 -1"/>
      <body name="door" pos=".1 0 0"><joint name="swing" axis="0 0 1" pos="-.1 0 0"/><geom name="leaf" type="box" size=".4 .02 .9" pos=".4 0 0" mass="4" contype="0" conaffinity="0"/>
      </body></body></worldbody>
  <equality>{equality}</equality>
  <actuator><motor joint="hinge"/><position joint="slide" kp="12"/><motor joint="swing"/></actuator>
  <sensor>{sensors}</sensor></mujoco>"""
SITES = "still", "imu", "shoulder", "tip", "mount", "foot"
SENSORS = "".join(
    f'<{kind} name="{kind}_{site}" site="{site}"/>' for kind in ("accelerometer", "force", "torque") for site in SITES
)
SENSORS += "".join(
    f'<{kind} name="{kind}_{site}" objtype="site" objname="{site}"/>'
    for kind in ("framelinacc", "frameangacc")
    for site in SITES
)
NAMES = [
    f"sensor/{kind}_{site}"
    for kind in ("accelerometer", "force", "torque", "framelinacc", "frameangacc")
    for site in SITES
]


def text(world="", friction="", equality="", sensors=SENSORS):
    return ROBOT.format(world=world, friction=friction, equality=equality, sensors=sensors)


def state(model, seed, spread=0.4):
    random = np.random.default_rng(seed)
    q = model.integrate(model.neutral()[0], spread * random.normal(size=model.nv))
    return q, random.normal(size=model.nv), random.normal(size=model.nu), random


@pytest.mark.parametrize("seed", range(5))
def test_readings_in_flight_are_mujocos(seed):
    theirs = mujoco.MjModel.from_xml_string(text())
    data, model = mujoco.MjData(theirs), coulomb.load(text())
    assert not any("sensor" in line for line in model.ignored)
    q, v, u, random = state(model, seed)
    fext = random.normal(size=(model.num_bodies, 6))
    fext[0] = fext[model.body_names.index("post")] = 0
    data.qpos[:], data.qvel[:], data.ctrl[:], data.xfrc_applied[:] = q, v, u, fext
    theirs.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    mujoco.mj_forward(theirs, data)
    sim = coulomb.Simulator(model, gyroscopic="explicit")
    sim.step(q, v, u, fext=fext)
    assert not sim.contacts
    scale = np.abs(data.sensordata).max()
    for i, name in enumerate(NAMES):
        if name not in ("sensor/force_still", "sensor/torque_still"):  # nothing carries the world
            assert np.abs(sim.output(name) - data.sensordata[3 * i : 3 * i + 3]).max() < 1e-11 * scale


def test_frames_have_them_by_name():
    model = coulomb.load(text())
    sim = coulomb.Simulator(model)
    q, v, u, _ = state(model, 1)
    q1, v1 = sim.step(q, v, u)
    for kind in ("accelerometer", "force", "torque"):
        for site in SITES[1:5]:
            assert np.array_equal(sim.output(f"{kind}/{site}"), sim.output(f"sensor/{kind}_{site}"))
            assert f"{kind}/{site}" in model.force_outputs()
    turn = coulomb.load(text(sensors='<gyro name="g" site="tip"/><velocimeter name="w" site="tip"/>'))
    assert np.array_equal(turn.output("gyro/tip", q, v), turn.output("sensor/g", q, v))
    assert np.array_equal(turn.output("velocimeter/tip", q, v), turn.output("sensor/w", q, v))


def test_at_rest_they_weigh():
    """A box that stands: its accelerometer feels the ground, a force sensor on a post what stands on top of it."""
    scene = coulomb.Scene(timestep=1e-3)
    scene.add_ground()
    scene.add_urdf(
        """<robot name="tower"><link name="low"><inertial><mass value="2"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/>
        </inertial><collision><geometry><box size=".2 .2 .2"/></geometry></collision></link>
        <link name="high"><inertial><origin xyz=".03 0 .1"/><mass value="1.5"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/>
        </inertial></link><link name="imu"/>
        <joint name="turn" type="revolute"><parent link="low"/><child link="high"/><origin xyz="0 0 .1"/><axis xyz="0 0 1"/>
        <limit lower="-1" upper="1" effort="9" velocity="9"/></joint>
        <joint name="mount" type="fixed"><parent link="high"/><child link="imu"/><origin rpy="3.141592653589793 0 0"/></joint></robot>""",
        floating_base=True,
        position=(0, 0, 0.1),
    )
    model = scene.build()
    sim = coulomb.Simulator(model)
    r = sim.rollout(*model.neutral(), steps=20)
    assert np.allclose(r.output("accelerometer/imu")[-1], [0, 0, -9.81], rtol=0, atol=1e-6)
    assert np.allclose(r.output("force/high")[-1], [0, 0, 1.5 * 9.81], rtol=0, atol=1e-6)
    assert np.allclose(r.output("torque/high")[-1], [0, -0.03 * 1.5 * 9.81, 0], rtol=0, atol=1e-6)
    # the base hangs on nothing: what the ground gives is all it gets
    assert np.allclose(r.output("force/low")[-1], 0, rtol=0, atol=1e-9)
    assert np.allclose(r.output("torque/low")[-1], 0, rtol=0, atol=1e-9)


GROUND = '<geom name="floor" type="plane" size="5 5 1" friction=".15"/>'
SCENES = {
    "free": dict(),
    "contact": dict(world=GROUND),
    "held": dict(equality='<connect body1="hand" body2="post" anchor=".1 0 .1"/><weld body1="door" body2="world"/>'),
}


def simulator(name, options):
    model = coulomb.load(text(**SCENES[name]))
    q, v, u, random = state(model, 3, 0.05)
    if name == "contact":
        q[2] = 0.0
        low = min(lowest(model, q, g) for g in ("upper", "palm"))
        q[2] = -low - 0.003
    fext = 0.3 * random.normal(size=(model.num_bodies, 6))
    return coulomb.Simulator(model, tolerance=1e-14, **options), q, v, u, fext


def lowest(model, q, geometry):
    from coulomb.kinematics import lowest_points

    return lowest_points(model, q, [model.geometry_body[model.geometry_names.index(geometry)]])[0]


def differences(f, size, h):
    columns = []
    for e in np.eye(size):
        columns.append((8 * (f(h * e) - f(-h * e)) - (f(2 * h * e) - f(-2 * h * e))) / (12 * h))
    return np.array(columns).T


STEPS = {"q": 1e-5, "v": 1e-4, "u": 1e-2, "tau": 1e-1}


def compare(analytic, f, size, h, tolerance=1e-6):
    """Of two lengths of step the one that tells more: rounding of impulses over the time step, or terms of fifth order."""
    numbers = [differences(f, size, length) for length in (h, 5 * h)]
    scale = np.abs(numbers[0]).max() + 1e-3
    assert scale > 1e-2
    assert min(np.abs(analytic - n).max() for n in numbers) < tolerance * scale


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("wrt", STEPS)
def test_derivatives_by_inputs(scene, wrt):
    sim, q, v, u, fext = simulator(scene, {})
    model, tau = sim.model, np.zeros(sim.model.nv)
    sim.step(q, v, u, tau, fext)
    assert (scene == "contact") == any(c.mode == "sliding" for c in sim.contacts)
    analytic = sim.derivatives().output(NAMES, wrt)

    def readings(e):
        sim.reset()
        moved = {"q": q, "v": v, "u": u, "tau": tau}
        moved[wrt] = model.integrate(q, e) if wrt == "q" else moved[wrt] + e
        sim.step(*moved.values(), fext)
        return sim.output(NAMES)

    compare(analytic, readings, model.nu if wrt == "u" else model.nv, STEPS[wrt])


PARAMETERS = {
    "mass/hand": 1e-3, "com/hand": 1e-4, "inertia/arm": 1e-5, "mass/door": 1e-2, "gravity": 1e-1, "timestep": 1e-5,
    "joint_placement/ball": 1e-4, "joint_placement/hinge": 1e-4, "joint_placement/swing": 1e-4, "friction/floor": 1e-3,
    "size/TOUCHING": 1e-4, "geometry_placement/TOUCHING": 1e-4, "actuator_gain/actuator0": 1e-1,
}  # fmt: skip


OF_CONTACTS = "size/TOUCHING", "geometry_placement/TOUCHING"
UNFELT = {"free": (*OF_CONTACTS, "timestep"), "contact": (), "held": OF_CONTACTS}


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("key", PARAMETERS)
def test_derivatives_by_parameters(scene, key):
    if key == "friction/floor" and scene != "contact":
        return  # there is none
    sim, q, v, u, fext = simulator(scene, {})
    model = sim.model
    sim.step(q, v, u, None, fext)
    touching = [c.geometry_b if c.geometry_a == "floor" else c.geometry_a for c in sim.contacts] or ["palm"]
    name = key.replace("TOUCHING", touching[0])
    sim.step(q, v, u, None, fext)
    analytic = sim.derivatives(wrt=[name]).output(NAMES, name)
    value = np.asarray(model.parameters()[name].value, dtype=float)
    options = {k: x for k, x in sim.options.items() if k != "timestep"}

    def readings(e):
        changed = coulomb.Simulator(model.with_parameters({name: value + e}), **options)
        changed.step(q, v, u, None, fext)
        return changed.output(NAMES)

    felt = np.abs(differences(readings, value.size, PARAMETERS[key])).max() > 1e-2
    assert felt or key in UNFELT[scene]
    if felt:
        compare(analytic, readings, value.size, PARAMETERS[key], 3e-6)
    else:
        assert np.abs(analytic).max() < 1e-4


SOFT = dict(contact_stiffness=1e4, contact_damping=1e2, equality_stiffness=200, equality_damping=3)


@pytest.mark.parametrize("options", [dict(contact="penalty"), dict(stepper="bdf1"), dict(stepper="bdf2")], ids=str)
@pytest.mark.parametrize("scene", SCENES)
def test_accelerometers_of_other_steps(scene, options):
    sim, q, v, u, fext = simulator(scene, options | SOFT)
    names = [name for name in NAMES if "acc" in name]
    sim.step(q, v, u, None, fext)
    analytic = sim.derivatives().output(names, "v")

    def readings(e):
        sim.reset()
        sim.step(q, v + e, u, None, fext)
        return sim.output(names)

    compare(analytic, readings, sim.model.nv, 1e-4)
    for name in ("sensor/force_tip", "sensor/torque_tip"):
        with pytest.raises(RuntimeError, match="not available with implicit steppers and penalty contact"):
            sim.output(name)


def test_along_a_rollout():
    sim, q, v, u, fext = simulator("contact", {})
    steps, random = 5, np.random.default_rng(0)
    W = {name: random.normal(size=(steps + 1, 3)) for name in NAMES}
    U, wrenches = np.tile(u, (steps, 1)), np.tile(fext, (steps, 1, 1))

    def loss(s, t=0.0):
        r = sim.rollout(q, v + s * direction, U, fext=wrenches + t * push)
        return sum((r.output(name) * w).sum() for name, w in W.items())

    direction, push = random.normal(size=sim.model.nv), random.normal(size=wrenches.shape)
    g = sim.rollout(q, v, U, fext=wrenches).vjp(wrt=["fext"], outputs=W)
    h = 1e-4
    number = (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h)
    assert abs(g.v0 @ direction / number - 1) < 1e-6
    number = (8 * (loss(0, h) - loss(0, -h)) - (loss(0, 2 * h) - loss(0, -2 * h))) / (12 * h)
    assert abs((g.fext * push).sum() / number - 1) < 1e-6


def test_paths_whose_pull_they_do_not_take_off_are_listed():
    mjcf = """<mujoco><worldbody><site name="w" pos="-.3 0 .1"/><body><joint name="j" axis="0 1 0"/><geom size=".05" mass="1" pos=".1 0 0"/>
      <site name="c" pos=".1 0 .05"/></body></worldbody>{more}<sensor><force site="c"/><torque site="c"/></sensor></mujoco>"""
    path = '<tendon><spatial name="t" {law}><site site="w"/><site site="c"/></spatial></tendon>'
    driven = '<actuator><motor tendon="t"/></actuator>'
    fixed = '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>'
    crank = '<actuator><motor cranksite="c" slidersite="w" cranklength=".6"/></actuator>'
    line = "pull of spatial tendons on 2 force and torque sensors: they do not take it off"
    cases = {path.format(law='stiffness="5"'): True, path.format(law="") + driven: True, path.format(law=""): False}
    for more, is_listed in {**cases, fixed + driven: False, crank: False}.items():
        assert (line in coulomb.load(mjcf.format(more=more)).deviations) == is_listed, more
