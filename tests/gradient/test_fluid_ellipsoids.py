"""The ellipsoid model of a medium (fluidshape="ellipsoid"): forces are MuJoCo's; derivatives against differences, the Taylor remainder,
reverse mode against forward mode, with respect to everything that they depend on, with every stepper."""

import pickle

import numpy as np
import pytest

import coulomb
from coulomb.mjcf_export import to_mjcf
from tests.gradient.step_options import OPTIONS

mujoco = pytest.importorskip("mujoco")

# A fish: a trunk with a fin of two geoms and a tail, beside a body that has a box. Every coefficient occurs.
FISH = """<mujoco><option timestep="0.002" density="{density}" viscosity="{viscosity}" wind="{wind}" integrator="Euler"/>
<compiler angle="radian"/><worldbody>{world}
  <body name="trunk" pos="0 0 .5"><freejoint name="root"/>
    <geom name="trunk" type="ellipsoid" size=".2 .05 .1" mass="1" fluidshape="ellipsoid" fluidcoef=".5 .25 1.5 1 1"/>
    <body name="fin" pos=".05 .05 0" euler=".2 0 .1"><joint name="fin" type="{joint}" damping=".01"/>
      <geom name="ray" type="capsule" fromto="0 0 0 0 .12 .02" size=".01" mass=".05" fluidshape="ellipsoid" fluidcoef=".7 .1 .9 .4 .6"/>
      <geom name="skin" type="box" size=".04 .06 .004" pos="0 .06 0" euler=".1 .2 .3" mass=".05" fluidshape="ellipsoid"/>
      <geom name="dry" type="sphere" size=".02" mass=".01"/></body>
    <body name="tail" pos="-.2 0 0"><joint name="tail" axis="0 0 1" damping=".01"/><joint name="bend" type="slide" axis="1 0 .2" damping=".1"/>
      <geom name="tail" type="cylinder" size=".03 .05" pos="-.06 0 0" mass=".2" fluidshape="ellipsoid" fluidcoef="1 1 1 0 2"/>
      <body name="lure" pos="-.1 0 0"><joint name="lure" axis="0 1 0" damping=".01"/>
        <geom name="lure" type="box" size=".03 .02 .01" pos="-.04 0 0" mass=".1"/></body></body></body>
</worldbody></mujoco>"""
MEDIA = {
    "water": dict(density=1000, viscosity=0.001, wind="0 0 0"),
    "honey": dict(density=0, viscosity=5, wind=".1 0 0"),
    "wind": dict(density=40, viscosity=0.1, wind=".5 -1 .3"),
}
JOINTS = ["hinge", "ball"]


def document(medium="wind", joint="hinge", world=""):
    return FISH.format(world=world, joint=joint, **MEDIA[medium])


def state(model, rng):
    return model.integrate(model.neutral()[0], 0.4 * rng.normal(size=model.nv)), rng.normal(size=model.nv)


@pytest.mark.parametrize("medium", MEDIA)
@pytest.mark.parametrize("joint", JOINTS)
def test_forces_and_accelerations_are_mujocos(medium, joint):
    text = document(medium, joint)
    model, theirs = coulomb.load(text), mujoco.MjModel.from_xml_string(text)
    data, rng = mujoco.MjData(theirs), np.random.default_rng(0)
    for _ in range(50):
        q, v = state(model, rng)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(theirs, data)
        assert model.passive_forces(q, v) == pytest.approx(data.qfrc_passive, rel=1e-10, abs=1e-10)
        force = model.passive_forces(q, v) - model.bias(q, v)
        assert np.linalg.solve(model.mass_matrix(q), force) == pytest.approx(data.qacc_smooth, rel=1e-8, abs=1e-8)


MESH = '<asset><mesh name="m" vertex="0 0 0 .2 0 0 0 .3 0 .05 0 .1"/></asset>'


def one_geom(shape, coefficients, density=1000, viscosity=0.0):
    return (
        f'<mujoco><option density="{density}" viscosity="{viscosity}" gravity="0 0 0"/>{MESH}<worldbody><body name="b"><freejoint/>'
        f'<geom {shape} mass="1" fluidshape="ellipsoid" fluidcoef="{coefficients}"/></body></worldbody></mujoco>'
    )


TERMS = {
    "added mass": "0 0 0 0 0",
    "blunt drag": "1 0 0 0 0",
    "slender drag": "0 1 0 0 0",
    "angular drag": "0 0 1 0 0",
    "Kutta lift": "0 0 0 1 0",
    "Magnus lift": "0 0 0 0 1",
}
SHAPES = {
    "sphere": 'type="sphere" size=".1"',
    "capsule": 'type="capsule" size=".05 .1"',
    "cylinder": 'type="cylinder" size=".05 .1"',
    "ellipsoid": 'type="ellipsoid" size=".1 .2 .05"',
    "box": 'type="box" size=".1 .2 .3"',
    "mesh": 'type="mesh" mesh="m"',
    # So small that products of its semi-axes underflow any absolute floor under a denominator.
    "speck": 'type="ellipsoid" size=".001 .002 .0015"',
}


def passive(model, theirs, data, v):
    data.qvel[:] = v
    mujoco.mj_forward(theirs, data)
    return data.qfrc_passive.copy(), np.asarray(model.passive_forces(model.neutral()[0], v))


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_term_is_mujocos(shape, term):
    """Each term alone: without the added mass, which MuJoCo takes from the shape, but where it is the term."""
    theirs = mujoco.MjModel.from_xml_string(one_geom(SHAPES[shape], TERMS[term]))
    if term != "added mass":
        theirs.geom_fluid[:, 6:] = 0
    scene = coulomb.Scene()
    scene.add_mujoco_model(theirs)
    model, data, rng = scene.build(), mujoco.MjData(theirs), np.random.default_rng(1)
    for scale in (1e-3, 1, 30):
        for _ in range(5):
            v = scale * rng.normal(size=6)
            expected, got = passive(model, theirs, data, v)
            size = np.abs(expected).max()
            # A sphere has the same cross-section along all axes: no lift, and no slender drag. What rounding leaves is small beside blunt drag.
            if shape == "sphere" and term in ("Kutta lift", "slender drag"):
                drag = theirs.opt.density * np.pi * 0.01 * (v[:3] @ v[:3])
                assert size < 1e-13 * drag and np.abs(got).max() < 1e-13 * drag
            else:
                assert size > 0 and got == pytest.approx(expected, rel=1e-10, abs=1e-12 * size)


@pytest.mark.parametrize("shape", SHAPES)
def test_slopes_of_the_force(shape):
    """Against differences of the force itself, at all speeds, and at rest."""
    for coefficients in [*TERMS.values(), ".5 .25 1.5 1 .7"]:
        model, rng = coulomb.load(one_geom(SHAPES[shape], coefficients, viscosity=0.2)), np.random.default_rng(2)
        sim, q = coulomb.Simulator(model, timestep=1e-3, gyroscopic="explicit"), model.neutral()[0]
        inertia = model.mass_matrix(q)
        for v in (np.zeros(6), 0.01 * rng.normal(size=6), rng.normal(size=6), 20 * rng.normal(size=6)):
            sim.step(q, v)
            # At rest, where quadratic drag has a slope of zero but no second derivative, differences are wrong by h.
            h = 1e-6 * np.abs(v).max() if v.any() else 1e-9
            slope = np.array(
                [
                    (model.passive_forces(q, v + h * e) - model.passive_forces(q, v - h * e)) / (2 * h)
                    - (model.bias(q, v + h * e) - model.bias(q, v - h * e)) / (2 * h)
                    for e in np.eye(6)
                ]
            ).T
            got = inertia @ (sim.derivatives().dv_dv - np.eye(6)) / sim.timestep
            assert got == pytest.approx(slope, rel=1e-5, abs=1e-7 * max(1, np.abs(slope).max()))


FLOOR = '<geom name="floor" type="plane" size="3 3 .1" friction=".7"{}/>'
KINDS = ("density", "viscosity", "wind", "fluid_coefficients/", "mass/", "com/", "timestep", "joint_placement/")


def parameters_of(model):
    return [n for n in model.parameters() if n.startswith(KINDS)]


def test_parameters():
    model = coulomb.load(document())
    names = {n: p.size for n, p in model.parameters().items() if n.startswith("fluid_coefficients")}
    assert names == {"fluid_coefficients/trunk": 5, "fluid_coefficients/fin": 10, "fluid_coefficients/tail": 5}
    changed = model.with_parameters({"fluid_coefficients/trunk": [1, 2, 3, 4, 5]})
    assert changed.body_ellipsoids(1)[0].coefficients == pytest.approx([1, 2, 3, 4, 5])
    text = document().replace(".5 .25 1.5 1 1", "1 2 3 4 5")
    q, v = state(model, np.random.default_rng(3))
    assert changed.passive_forces(q, v) == pytest.approx(coulomb.load(text).passive_forces(q, v), abs=1e-12)
    with pytest.raises(ValueError, match="fluid_coefficients/trunk"):
        model.with_parameters({"fluid_coefficients/trunk": [1, 2, 3, 4, np.nan]})
    with pytest.raises(ValueError, match="body: 9"):
        model.body_ellipsoids(9)
    assert model.body_ellipsoids(4) == []


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("joint", JOINTS)
def test_derivatives(joint, options):
    model = coulomb.load(document("wind", joint, FLOOR.format("")))
    sim, rng = coulomb.Simulator(model, timestep=2e-3, **options), np.random.default_rng(4)
    judged = 0
    for _ in range(3):
        q, v = state(model, rng)
        check = coulomb.check_gradients(sim, q, v, wrt=["q", "v", "tau", *parameters_of(model)], tolerance=2e-6)
        assert check.passed or not check.smooth, (check.errors, check.changed)
        judged += check.smooth
    assert judged


def test_derivatives_in_contact():
    model = coulomb.load(document("wind", "hinge", FLOOR.format(' pos="0 0 .41"')))
    sim = coulomb.Simulator(model, timestep=2e-3)
    q, v = model.neutral()
    v[:6] = 1.0, 0.6, -0.3, 0.2, 0.5, 1
    touched = 0
    for k in range(200):
        q, v = sim.step(q, v)
        if k % 20 == 19:
            check = coulomb.check_gradients(sim, q, v, wrt=["q", "v", *parameters_of(model)], tolerance=5e-6)
            # Columns along which a contact changes its mode within the differences are left out.
            assert check.passed, (check.errors, check.changed)
            touched += len(check.changed) <= 5 and len(sim.contacts) > 0
    assert touched


@pytest.mark.parametrize("options", [{}, {"stepper": "bdf1", "contact": "penalty"}], ids=["ncp", "bdf1"])
@pytest.mark.parametrize("height", [0.41, -1])
def test_reverse_and_forward_agree(height, options):
    model = coulomb.load(document("wind", "ball", FLOOR.format(f' pos="0 0 {height}"')))
    sim, rng = coulomb.Simulator(model, timestep=2e-3, **options), np.random.default_rng(5)
    names, contacts = parameters_of(model), 0
    q, v = model.neutral()
    for _ in range(4):
        v = v + 0.1 * rng.normal(size=model.nv)
        q, v = sim.step(q, v)
        contacts += len(sim.contacts)
        J = sim.derivatives(wrt=names)
        y = rng.normal(size=2 * model.nv)
        back = sim.vjp(y[: model.nv], y[model.nv :], wrt=names)
        for got, block in zip((np.r_[back.q, back.v], back.tau), (J.A, J.B_tau), strict=True):
            assert got == pytest.approx(y @ block, rel=1e-9, abs=1e-9 * max(1e-3, np.abs(block).max()))
        for name in names:
            assert back[name].ravel() == pytest.approx(y @ J[name], rel=1e-8, abs=1e-10)
    assert contacts or height < 0


def test_taylor_remainder():
    model = coulomb.load(document("wind", "ball"))
    sim, rng = coulomb.Simulator(model), np.random.default_rng(6)
    q, v = state(model, rng)
    q1, v1 = sim.step(q, v)
    A = sim.derivatives().A
    d, left = rng.normal(size=2 * model.nv), []
    for h in (1e-3, 1e-4):
        q2, v2 = sim.step(model.integrate(q, h * d[: model.nv]), v + h * d[model.nv :])
        left.append(np.abs(np.r_[model.difference(q1, q2), v2 - v1] - h * A @ d).max())
    assert left[1] < 0.02 * left[0]


def test_trajectories_are_mujocos():
    text = document("wind", "hinge")
    model, theirs = coulomb.load(text), mujoco.MjModel.from_xml_string(text)
    data, sim = mujoco.MjData(theirs), coulomb.Simulator(model, gyroscopic="explicit", joint_forces="explicit")
    q, v = model.neutral()
    v[:] = 0.3
    data.qpos[:], data.qvel[:] = q, v
    for _ in range(200):
        mujoco.mj_step(theirs, data)
        q, v = sim.step(q, v)
    assert np.abs(q - data.qpos).max() < 1e-9 and np.abs(v - data.qvel).max() < 1e-8


def test_a_sphere_reaches_its_final_speed():
    """m g = rho A blunt v^2, A the area of the disc: drag of the ellipsoid model has no factor 1/2."""
    text = """<mujoco><option density="20"/><worldbody><body pos="0 0 50"><freejoint/>
    <geom size=".1" mass=".2" fluidshape="ellipsoid" fluidcoef=".5 0 0 0 0"/></body></worldbody></mujoco>"""
    model = coulomb.load(text)
    sim = coulomb.Simulator(model, timestep=2e-3)
    q, v = model.neutral()
    for _ in range(3000):
        q, v = sim.step(q, v)
    assert -v[2] == pytest.approx(np.sqrt(0.2 * 9.81 / (20 * 0.5 * np.pi * 0.01)), rel=1e-6)


def test_it_is_saved_merged_and_written():
    model = coulomb.load(document("wind"))
    q, v = state(model, np.random.default_rng(7))
    for again in (pickle.loads(pickle.dumps(model)), coulomb.load(to_mjcf(model))):
        assert again.passive_forces(q, v) == pytest.approx(model.passive_forces(q, v), abs=1e-12)
    scaled = mujoco.MjModel.from_xml_string(document("wind"))
    scaled.geom_fluid[0, 0] = 0.5
    scene = coulomb.Scene()
    scene.add_mujoco_model(scaled)
    assert scene.build().passive_forces(q, v) != pytest.approx(model.passive_forces(q, v), abs=1e-3)
    with pytest.raises(ValueError, match="'trunk' has scale 0.5"):
        to_mjcf(scene.build())
    scene = coulomb.Scene()
    scene.add_mjcf(document("wind"))
    scene.add_mjcf(document("wind", "ball"))
    both = pickle.loads(pickle.dumps(scene)).build()
    other = coulomb.load(document("wind", "ball"))
    q2, v2 = state(other, np.random.default_rng(8))
    q, v = np.r_[q, q2], np.r_[v, v2]
    expected = np.r_[model.passive_forces(q[: model.nq], v[: model.nv]), other.passive_forces(q2, v2)]
    assert both.passive_forces(q, v) == pytest.approx(expected, abs=1e-12)


def test_without_a_medium_it_is_the_same_model():
    with_shape = coulomb.load(document("wind").replace('density="40" viscosity="0.1"', ""))
    without = coulomb.load(
        document("wind").replace('density="40" viscosity="0.1"', "").replace('fluidshape="ellipsoid"', "")
    )
    q, v = state(with_shape, np.random.default_rng(9))
    a, b = coulomb.Simulator(with_shape).step(q, v), coulomb.Simulator(without).step(q, v)
    assert (a[0] == b[0]).all() and (a[1] == b[1]).all()
    assert not any(n.startswith("fluid") for n in with_shape.parameters())
