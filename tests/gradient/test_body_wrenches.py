"""Forces on bodies: actuators at sites and the drag of a medium. Accelerations are MuJoCo's; derivatives against differences, the Taylor
remainder, reverse mode against forward mode, with respect to everything that they depend on, with every stepper."""

import pickle

import numpy as np
import pytest

import coulomb
from coulomb.mjcf_export import to_mjcf
from tests.gradient.step_options import OPTIONS

mujoco = pytest.importorskip("mujoco")

OPTION = (
    '<option timestep="0.002" integrator="{integrator}" density="{density}" viscosity="{viscosity}" wind="{wind}"/>'
)
# A body with four rotors and a rotor on an arm of two hinges, one of them beside a ball joint's child.
FLYER = (
    "<mujoco>"
    + OPTION
    + """<compiler angle="radian"/><worldbody>{world}
  <body name="trunk" pos="0 0 .5"><freejoint name="root"/><geom name="trunk" type="box" size=".1 .08 .03" mass=".6"/>
    <site name="front" pos=".1 .05 .02" euler="0 .2 .1"/><site name="rear" pos="-.1 -.06 .02" euler=".1 0 .3"/>
    <body name="tail" pos="-.12 0 0"><joint name="tail" type="{joint}" pos="0 0 .01" axis="0 1 .2" damping=".01"/>
      <geom name="tail" type="capsule" fromto="0 0 0 -.15 .02 0" size=".02" mass=".1"/></body></body>
</worldbody>
<actuator><general name="front" site="front" gear="0 .1 1 0 0 .05" gainprm="2" ctrlrange="-3 3"/>
  <general name="rear" site="rear" gear=".2 0 1 .02 0 -.05" gaintype="affine" gainprm="2 0 .3" biastype="affine" biasprm=".1 0 -.4"/></actuator>
<sensor><actuatorfrc actuator="front"/><actuatorvel actuator="rear"/></sensor></mujoco>"""
)
ARM = (
    "<mujoco>"
    + OPTION
    + """<compiler angle="radian"/><worldbody>{world}
  <body name="upper" pos="0 0 .6"><joint name="a" axis="0 1 0" damping=".02" armature=".01"/><joint name="b" axis="1 0 0" damping=".02"/>
    <geom name="upper" type="capsule" fromto="0 0 0 .2 0 0" size=".03" mass=".5"/>
    <body name="lower" pos=".2 0 0" euler=".1 .2 0"><joint name="c" type="slide" axis="1 0 .3" damping=".1"/><joint name="d" axis="0 1 .4" damping=".02"/>
      <geom name="lower" type="box" size=".1 .02 .04" pos=".1 0 0" mass=".3"/><site name="tip" pos=".2 0 .01" euler=".3 .2 .1"/></body></body>
</worldbody>
<actuator><general name="tip" site="tip" gear="1 .3 -.2 .05 .1 .02" gainprm="1.5" biastype="affine" biasprm=".05 0 -.2" forcerange="-2 2"/>
  <motor name="a" joint="a"/></actuator></mujoco>"""
)
MEDIA = {
    "nothing": dict(density=0, viscosity=0, wind="0 0 0"),
    "water": dict(density=1000, viscosity=0, wind="0 0 0"),
    "honey": dict(density=0, viscosity=0.3, wind="0 0 0"),
    "wind": dict(density=40, viscosity=0.1, wind=".5 -1 .3"),
}
SCENES = {
    "flyer": dict(text=FLYER, joint="hinge"),
    "flyer with a ball": dict(text=FLYER, joint="ball"),
    "arm": dict(text=ARM, joint=""),
}


def document(scene, medium, world="", integrator="Euler"):
    parts = SCENES[scene]
    return parts["text"].format(world=world, joint=parts["joint"], integrator=integrator, **MEDIA[medium])


def state(model, rng):
    q = model.integrate(model.neutral()[0], 0.4 * rng.normal(size=model.nv))
    return q, rng.normal(size=model.nv), rng.normal(size=model.nu)


@pytest.mark.parametrize("medium", MEDIA)
@pytest.mark.parametrize("scene", SCENES)
def test_forces_and_accelerations_are_mujocos(scene, medium):
    model, theirs = coulomb.load(document(scene, medium)), mujoco.MjModel.from_xml_string(document(scene, medium))
    data, rng = mujoco.MjData(theirs), np.random.default_rng(0)
    for _ in range(20):
        q, v, u = state(model, rng)
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(theirs, data)
        assert model.actuator_forces(q, v, u) == pytest.approx(data.qfrc_actuator, abs=1e-10)
        assert model.passive_forces(q, v) == pytest.approx(data.qfrc_passive, abs=1e-9)
        force = model.actuator_forces(q, v, u) + model.passive_forces(q, v) - model.bias(q, v)
        assert np.linalg.solve(model.mass_matrix(q), force) == pytest.approx(data.qacc, rel=1e-9, abs=1e-8)


def test_trajectories_are_mujocos():
    text = document("flyer", "wind")
    model, theirs = coulomb.load(text), mujoco.MjModel.from_xml_string(text)
    data, sim = mujoco.MjData(theirs), coulomb.Simulator(model, gyroscopic="explicit", joint_forces="explicit")
    q, v = model.neutral()
    v[:] = 0.3
    data.qpos[:], data.qvel[:] = q, v
    for i in range(200):
        u = 2.0 + np.sin(0.05 * i + np.arange(model.nu))
        data.ctrl[:] = u
        mujoco.mj_step(theirs, data)
        q, v = sim.step(q, v, u)
    assert np.abs(q - data.qpos).max() < 1e-9 and np.abs(v - data.qvel).max() < 1e-8


FLOOR = '<geom name="floor" type="plane" size="3 3 .1" friction=".7"/>'


def parameters_of(model):
    return [
        n
        for n in model.parameters()
        if n.startswith(
            (
                "density",
                "viscosity",
                "wind",
                "actuator_gain/",
                "mass/",
                "com/",
                "timestep",
                "gravity",
                "joint_placement/",
            )
        )
    ]


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("medium", ["nothing", "wind"])
@pytest.mark.parametrize("scene", SCENES)
def test_derivatives(scene, medium, options):
    model = coulomb.load(document(scene, medium, FLOOR))
    sim, rng = coulomb.Simulator(model, timestep=2e-3, **options), np.random.default_rng(1)
    judged = 0
    for _ in range(3):
        q, v, u = state(model, rng)
        check = coulomb.check_gradients(sim, q, v, u, wrt=["q", "v", "u", "tau", *parameters_of(model)], tolerance=2e-6)
        assert check.passed or not check.smooth, (check.errors, check.changed)
        judged += check.smooth
    assert judged


@pytest.mark.parametrize("scene", SCENES)
def test_derivatives_in_contact(scene):
    model = coulomb.load(
        document(scene, "wind", FLOOR.replace("/>", f' pos="0 0 {0.5 if scene == "arm" else 0.46}"/>'))
    )
    sim, rng = coulomb.Simulator(model, timestep=2e-3), np.random.default_rng(2)
    q, v = model.neutral()
    if scene != "arm":
        v[:6] = 1.5, 0.6, -0.3, 0.2, 0.5, 1
    touched = 0
    for k in range(200):
        q, v = sim.step(q, v, -1 + 0.3 * rng.normal(size=model.nu))
        if k % 20 == 19:
            u = rng.normal(size=model.nu)
            check = coulomb.check_gradients(sim, q, v, u, wrt=["q", "v", "u", *parameters_of(model)], tolerance=5e-6)
            # Columns along which a contact changes its mode within the differences are left out.
            assert check.passed, (check.errors, check.changed)
            touched += len(check.changed) <= 5 and len(sim.contacts) > 0
    assert touched


@pytest.mark.parametrize("options", [{}, {"stepper": "bdf1", "contact": "penalty"}], ids=["ncp", "bdf1"])
@pytest.mark.parametrize("scene", SCENES)
def test_reverse_and_forward_agree(scene, options):
    model = coulomb.load(document(scene, "wind"))
    sim, rng = coulomb.Simulator(model, timestep=2e-3, **options), np.random.default_rng(3)
    names = parameters_of(model)
    for _ in range(4):
        q, v, u = state(model, rng)
        sim.step(q, v, u)
        J = sim.derivatives(wrt=names)
        y = rng.normal(size=2 * model.nv)
        back = sim.vjp(y[: model.nv], y[model.nv :], wrt=names)
        for got, block in zip((np.r_[back.q, back.v], back.u, back.tau), (J.A, J.B, J.B_tau), strict=True):
            assert got == pytest.approx(y @ block, rel=1e-9, abs=1e-9 * max(1e-3, np.abs(block).max()))
        for name in names:
            assert back[name].ravel() == pytest.approx(y @ J[name], rel=1e-8, abs=1e-10)


def test_taylor_remainder():
    model = coulomb.load(document("flyer", "wind"))
    sim, rng = coulomb.Simulator(model), np.random.default_rng(4)
    q, v, u = state(model, rng)
    q1, v1 = sim.step(q, v, u)
    A = sim.derivatives().A
    d, left = rng.normal(size=2 * model.nv), []
    for h in (1e-3, 1e-4):
        q2, v2 = sim.step(model.integrate(q, h * d[: model.nv]), v + h * d[model.nv :], u)
        left.append(np.abs(np.r_[model.difference(q1, q2), v2 - v1] - h * A @ d).max())
    assert left[1] < 0.02 * left[0]


@pytest.mark.parametrize("scene", SCENES)
def test_outputs(scene):
    """Forces and speeds of actuators at sites, and the forces of joints that they move."""
    model = coulomb.load(document(scene, "nothing"))
    sim, rng = coulomb.Simulator(model, timestep=2e-3), np.random.default_rng(5)
    names = [f"actuator_force/{a.name}" for a in model.actuators]
    names += [n for n in model.outputs() if n.startswith("joint_actuator_force/") and n.split("/")[1] != "root"][:3]
    q, v, u = state(model, rng)
    sim.step(q, v, u)
    J, h = sim.derivatives(), 1e-6
    derivatives = {by: J.output(names, by) for by in "qvu"}
    for by, size in (("q", model.nv), ("v", model.nv), ("u", model.nu)):
        for k in range(size):
            ends = []
            for sign in (1, -1):
                step = np.eye(size)[k] * sign * h
                at = {"q": q, "v": v, "u": u}
                at[by] = model.integrate(q, step) if by == "q" else at[by] + step
                sim.step(**at)
                ends.append(sim.output(names))
            assert derivatives[by][:, k] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5, abs=1e-6)


def test_a_falling_plate_reaches_its_final_speed():
    """m g = rho b_x b_y v^2 / 2 for a plate that falls flat."""
    mass, rho, side = 0.2, 20.0, 0.3
    text = f"""<mujoco><option density="{rho}"/><worldbody><body pos="0 0 50"><freejoint/>
    <geom type="box" size="{side / 2} {side / 2} .01" mass="{mass}"/></body></worldbody></mujoco>"""
    model = coulomb.load(text)
    sim = coulomb.Simulator(model, timestep=2e-3)
    q, v = model.neutral()
    for _ in range(2000):
        q, v = sim.step(q, v)
    assert -v[2] == pytest.approx(np.sqrt(2 * mass * 9.81 / (rho * side * side)), rel=1e-3)


def test_it_is_saved_and_merged():
    model = coulomb.load(document("flyer", "wind"))
    again = pickle.loads(pickle.dumps(model))
    assert (again.density, again.viscosity) == (40, 0.1) and again.wind == pytest.approx([0.5, -1, 0.3])
    assert again.actuators[0].body == model.actuators[0].body == 1 and again.actuators[0].joint == -1
    scene = coulomb.Scene()
    scene.add_mjcf(document("flyer", "wind"))
    scene.add_mjcf(document("arm", "wind"))
    box = scene.add_box([0.1, 0.2, 0.3], mass=1.0)
    both = scene.build()
    assert [a.body for a in both.actuators] == [1, 1, 4, -1]
    # What was added as a shape is slowed down, too.
    v = np.zeros(both.nv)
    v[-6] = 1.0
    assert both.passive_forces(both.neutral()[0], v)[-6] < -0.5 * 40 * 0.2 * 0.3 * (1 - 0.5) ** 2
    assert box.num_bodies == 1
    with pytest.raises(ValueError, match="its medium"):
        scene.add_mjcf(document("arm", "water"))


def test_what_is_not_there_is_refused():
    body = '<body name="b"><freejoint/><geom name="g" size=".1" {geom}/><site name="s"/></body><site name="w"/>'
    text = (
        '<mujoco><option density="{density}"/><worldbody>'
        + body
        + "</worldbody><actuator>{actuator}</actuator></mujoco>"
    )
    with pytest.raises(ValueError, match="'w' is fixed to the world"):
        coulomb.load(text.format(density=0, geom="", actuator='<motor site="w"/>'))


def test_it_is_written():
    """to_mjcf writes sites and the medium."""
    model = coulomb.load(document("flyer", "wind"))
    again, rng = coulomb.load(to_mjcf(model)), np.random.default_rng(6)
    for _ in range(5):
        q, v, u = state(model, rng)
        assert again.actuator_forces(q, v, u) == pytest.approx(model.actuator_forces(q, v, u), abs=1e-9)
    assert (again.density, again.viscosity) == (40, 0.1) and again.wind == pytest.approx([0.5, -1, 0.3])
