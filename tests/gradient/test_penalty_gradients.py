"""Derivatives with penalty contact: of steps by everything, of 200 steps in contact, forward against reverse."""

import functools

import numpy as np
import pytest
from rollout_differences import Trajectory

import coulomb

STEPPERS = ["semi_implicit", "bdf1", "bdf2"]
SOFT = {"contact_stiffness": 4e3, "contact_damping": 2e3, "contact_friction_stiffness": 30.0}

ARM = """<mujoco><worldbody><body name="upper" pos="0 0 .45"><joint name="shoulder" axis="0 1 0" damping=".05" armature=".001"/>
  <geom name="upper" type="capsule" fromto="0 0 0 .2 0 -.1" size=".03" mass=".4" friction=".7"/>
  <body name="lower" pos=".2 0 -.1"><joint name="elbow" axis="0 1 0" stiffness="1" damping=".05"/>
    <geom name="finger" type="box" pos=".02 0 -.1" size=".02 .03 .1" euler="0 10 0" mass=".3" friction=".8"/></body></body></worldbody>
  <actuator><motor name="shoulder" joint="shoulder"/><motor name="elbow" joint="elbow"/></actuator></mujoco>"""


def push():
    """A two-link arm drops its finger on a box and pushes it over the ground."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5, **SOFT)
    scene.add_mjcf(ARM)
    corners = [(x, y, -0.1) for x in (-0.02, 0.02) for y in (-0.03, 0.03)] + [
        (0, 0, -0.1),
        (0.02, 0, -0.05),
        (0.02, 0, 0),
    ]
    scene.set_contact("finger", contact_points=corners, contact_scale=0.8)
    scene.add_box(
        (0.12, 0.1, 0.1),
        mass=0.5,
        position=(0.25, 0.01, 0.0495),
        friction=0.6,
        contact_stiffness=3e3,
        contact_scale=1.3,
        name="box",
    )
    return scene.build(), np.array([0.3, -0.4])


def pegs():
    """A mesh and an ellipsoid in a pile on a box with contact points, itself on the ground."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.4, **SOFT)
    points = [(x, y, z) for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.05, 0.05)] + [
        (0, 0, 0.05),
        (0.05, 0, 0.05),
    ]
    scene.add_box(
        (0.2, 0.2, 0.1),
        mass=1.0,
        position=(0, 0, 0.049),
        contact_points=points,
        friction=0.7,
        contact_stiffness=6e3,
        name="table",
    )
    vertices = np.random.default_rng(3).normal(size=(9, 3)) * 0.04
    scene.add_mesh(vertices, mass=0.4, position=(0.02, 0.01, 0.13), friction=0.6, name="stone")
    scene.add_sphere(0.05, mass=0.3, position=(-0.05, -0.05, 0.148), friction=0.9, contact_damping=3e3, name="ball")
    return scene.build(), np.zeros(0)


def turned():
    """Flat sides with common outlines of more corners than either: a box on a box, a tetrahedron on an octahedron."""

    def ring(radius, z, turn):
        angles = 2 * np.pi * np.arange(3) / 3 + turn
        return [(radius * np.cos(a), radius * np.sin(a), z) for a in angles]

    def turn(angle, x=0.0, y=0.0):
        quaternion = np.array([np.cos(angle / 2), x, y, np.sin(angle / 2)])
        return quaternion / np.linalg.norm(quaternion)

    def firm(damping):  # of two equal ones neither counts alone
        return {"contact_stiffness": 6e3, "contact_damping": damping}

    scene = coulomb.Scene(gravity=(3, 1, -9))
    scene.add_ground(friction=0.5, **SOFT)
    scene.add_box((0.24, 0.2, 0.1), mass=1.0, position=(0, 0, 0.0495), friction=0.6, **firm(2e5), name="low")
    scene.add_box(
        (0.2, 0.14, 0.06), mass=0.6, position=(0.05, 0.03, 0.1292), quaternion=turn(0.6), friction=0.4, name="high"
    )
    stone = ring(0.1, -0.03, 0.1) + ring(0.07, 0.03, np.pi / 3)
    scene.add_mesh(stone, mass=0.9, position=(1, 0, 0.0295), friction=0.25, **firm(1.9e5), name="stone")
    tip = [*ring(0.08, -0.02, 0.7), (0.0, 0.0, 0.04)]
    scene.add_mesh(
        tip, mass=0.5, position=(1.02, 0.01, 0.0792), quaternion=turn(-0.4, 0, 2e-3), friction=0.2, name="tip"
    )
    return scene.build(), np.zeros(0)


SCENES = [push, pegs, turned]


def names_of(model, kinds):
    """Parameters of these kinds, without those at the edge of what they may be."""
    zero = {"joint_stiffness", "joint_damping", "armature"}
    known = model.parameters()
    return [n for n in known if n.split("/")[0] in kinds and (n.split("/")[0] not in zero or known[n].value.all())]


KINDS = {"friction", "contact_stiffness", "contact_damping", "contact_friction_stiffness", "contact_scale", "contact_points",
         "size", "vertices", "geometry_placement", "joint_placement", "mass", "com", "inertia", "gravity", "joint_stiffness",
         "joint_damping", "armature", "actuator_gain"}  # fmt: skip


@functools.cache
def kinds_felt(build, stepper):
    """Compares steps of a scene with differences: the kinds of parameters that have an effect."""
    model, u = build()
    sim = coulomb.Simulator(model, timestep=2e-3, stepper=stepper, contact="penalty")
    q, v = model.neutral()
    names = names_of(model, KINDS)
    random = np.random.default_rng(0)
    modes, touching, felt = set(), 0, set()
    for k in range(241):
        if k % 60 == 40:
            memory = sim.memory
            check = coulomb.check_gradients(sim, q, v, u, wrt=["q", "v", "tau", *names])
            sim.memory = memory
            sim.step(q, v, u)
            touching += len(sim.contacts) > 0
            d = sim.derivatives(wrt=names)
            for key, error in check.errors.items():
                name = key.split("_d", 1)[1]
                effect = (
                    np.inf
                    if name not in names
                    else np.abs(d[name]).max() * np.abs(model.parameters()[name].value).max()
                )
                assert error <= (1e-6 if effect > 1e-3 else 1e-4), (
                    k,
                    key,
                    error,
                    effect,
                )  # small ones drown in rounding
            felt.update(n.split("/")[0] for n in names if np.abs(d[n]).max() > 1e-12)
            w = random.normal(size=(2, model.nv))
            g = sim.vjp(*w, wrt=names)
            for name in names:
                forward = w.ravel() @ d[name]
                assert np.abs(g[name] - forward).max() <= 1e-12 * max(1.0, np.abs(w).max() * np.abs(d[name]).sum()), (
                    name
                )
            sim.memory = memory
        q, v = sim.step(q, v, u)
        assert sim.status.converged
        modes |= {c.mode for c in sim.contacts}
    assert touching >= 3 and {"sticking", "sliding"} <= modes
    return felt


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("build", SCENES, ids=lambda f: f.__name__)
def test_steps_against_differences(build, stepper):
    kinds_felt(build, stepper)


@pytest.mark.parametrize("stepper", STEPPERS)
def test_every_kind_was_felt(stepper):
    assert set().union(*(kinds_felt(build, stepper) for build in SCENES)) == KINDS


# s. turned ends before 0.198 s, when a corner is so near the other mode that changes of 1e-6 take it there
TIMESTEPS = {push: 1e-3, pegs: 1e-3, turned: 8e-4}


@functools.cache
def kinds_resolved(build, stepper):
    """State, controls and a parameter of every kind to 1e-6 of the derivative itself, along random directions: the kinds with an effect."""
    model, u = build()
    random = np.random.default_rng(1)
    options = {"timestep": TIMESTEPS[build], "stepper": stepper, "contact": "penalty", "tolerance": 1e-12}
    trajectory = Trajectory(model, *model.neutral(), np.tile(u, (200, 1)), **options)
    contacts = [c for step in trajectory.contacts for c in step]
    assert len(contacts) > 200 and {"sticking", "sliding"} <= {c[2] for c in contacts}
    names = names_of(model, KINDS)
    g = trajectory.gradient(random.normal(size=2 * model.nv), names)
    for name in ["dq", "dv"] + ["dU"] * (model.nu > 0):
        assert trajectory.compare_one([name], random) is not None, name
    resolved = set()
    for kind in sorted({n.split("/")[0] for n in names}):
        those = [str(n) for n in random.permutation([n for n in names if n.split("/")[0] == kind])]
        moving = [n for n in those if g[n].any()]
        for name in [n for n in those if n not in moving][:1]:
            trajectory.compare(name, random)  # one without effect has none, too
        if moving:
            assert trajectory.compare_one(moving, random) is not None, kind
            resolved.add(kind)
    return resolved


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("build", SCENES, ids=lambda f: f.__name__)
def test_two_hundred_steps_against_differences(build, stepper):
    kinds_resolved(build, stepper)


@pytest.mark.parametrize("stepper", STEPPERS)
def test_every_kind_was_resolved(stepper):
    assert set().union(*(kinds_resolved(build, stepper) for build in SCENES)) == KINDS


SHARED = ["contact_stiffness", "contact_damping", "contact_friction_stiffness"]


@pytest.mark.parametrize("stepper", STEPPERS)
def test_numbers_that_no_geometry_sets_are_parameters(stepper):
    """A box that slides to a stop: one number for all its contacts, from the model or from the simulator."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    scene.add_box((0.2, 0.1, 0.1), mass=1.0, position=(0, 0, 0.0498), name="box")
    scene.add_sphere(0.05, mass=0.3, position=(0, 0, 0.1497), contact_stiffness=2e4, name="ball")
    model = scene.build()
    values = {"contact_stiffness": [2e4], "contact_damping": [3e4], "contact_friction_stiffness": [20.0]}
    known = model.parameters()
    assert [known[name].value[0] for name in SHARED] == [1e5, 1e5, 1e4]
    assert "contact_stiffness/ball" in known and "contact_stiffness/box" not in known
    options = {"timestep": 1e-3, "stepper": stepper, "contact": "penalty", "tolerance": 1e-12}
    q, v = model.neutral()
    v[:2] = 0.3, 0.1

    def end(**change):
        sim = coulomb.Simulator(model.with_parameters({**values, **change}), **options)
        return sim, sim.rollout(q, v, steps=200)

    sim, r = end()
    given = coulomb.Simulator(model, **options, **{name: value[0] for name, value in values.items()})
    assert np.array_equal(given.rollout(q, v, steps=200).q, r.q)
    assert {name: given.model.parameters()[name].value[0] for name in SHARED} == {n: x[0] for n, x in values.items()}
    assert given.options["contact_stiffness"] is None  # the model's
    w = np.random.default_rng(0).normal(size=model.nv)
    dV = np.tile(w, (201, 1))
    gradients = [x.rollout(q, v, steps=200).vjp(None, dV, wrt=SHARED) for x in (sim, given)]
    for name in SHARED:
        at = values[name][0]

        def slope(size, name=name, at=at):
            ends = [np.sum(end(**{name: [at * (1 + k * size)]})[1].v @ w) for k in (1, -1, 2, -2)]
            return (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * size * at)

        found = [slope(size) for size in (1e-3, 1e-4, 1e-5)]
        assert abs(gradients[0][name][0]) * at > 1e-6
        assert np.array_equal(gradients[0][name], gradients[1][name])
        assert min(abs(x - gradients[0][name][0]) for x in found) <= 1e-6 * abs(gradients[0][name][0]), name


def test_parameters_given_back_change_nothing():
    model, u = push()
    same = model.with_parameters(
        {name: x.value for name, x in model.parameters().items() if not name.startswith("inertia")}
    )
    ends = [
        coulomb.Simulator(m, contact="penalty").rollout(*m.neutral(), np.tile(u, (100, 1))).q[-1] for m in (model, same)
    ]
    assert np.allclose(*ends, rtol=0, atol=1e-9)
