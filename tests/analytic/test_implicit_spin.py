"""Spinning bodies under implicit steppers: bdf1 keeps the energy and the size of the angular momentum of bodies that no torque acts on, at any rate and
in any frame; mechanisms that spin lose energy; bdf2's error is of second order."""

import numpy as np
import pytest

import coulomb
from scenes.basics import rotation_matrix


def load(bodies, gravity=0.0):
    return coulomb.load(f'<mujoco><option gravity="0 0 {-gravity}"/><worldbody>{bodies}</worldbody></mujoco>')


def body(random, joint, offset=0.2, inside=""):
    """A box of any size whose centre of mass lies somewhere, in axes of its own."""
    a, b, c = random.uniform(0.05, 0.4, 3)
    mass = random.uniform(0.2, 3)
    moments = mass / 12 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    x, y, z = offset * random.normal(size=3)
    turn = random.normal(size=4)
    turn /= np.linalg.norm(turn)
    inertial = f'<inertial pos="{x} {y} {z}" quat="{" ".join(map(str, turn))}" mass="{mass}" diaginertia="{" ".join(map(str, moments))}"/>'
    return f"<body>{joint}{inertial}{inside}</body>"


FREE, BALL = "<freejoint/>", '<joint type="ball"/>'


def energies(model, trajectory, every=1):
    return np.array([sum(model.energy(q, v)) for q, v in zip(trajectory.q[::every], trajectory.v[::every])])


def spinning(model, speed, random):
    """At rest but for a spin of the first joint."""
    v = np.zeros(model.nv)
    first = 3 if "free" in str(model.joint_types[0]) else 0
    w = random.normal(size=3)
    v[first : first + 3] = speed * w / np.linalg.norm(w)
    return model.neutral()[0], v


@pytest.mark.parametrize("joint", [FREE, BALL], ids=["free", "ball"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("speed", "h"), [(3.0, 1e-2), (37.0, 1e-3), (37.0, 1e-2), (200.0, 2e-3)])
def test_a_body_without_torque_keeps_its_energy(joint, seed, speed, h):
    random = np.random.default_rng(seed)
    model = load(body(random, joint))
    q, v = spinning(model, speed, random)
    trajectory = coulomb.Simulator(model, stepper="bdf1", timestep=h).rollout(q, v, steps=300)
    assert trajectory.converged
    E = energies(model, trajectory)
    assert np.abs(E / E[0] - 1).max() < 1e-8


def test_the_size_of_the_angular_momentum_and_the_way_of_the_centre_of_mass_stay():
    random = np.random.default_rng(7)
    model = load(body(random, FREE))
    q, v = spinning(model, 37.0, random)
    v[:3] = random.normal(size=3)
    r = coulomb.Simulator(model, stepper="bdf1", timestep=1e-3).rollout(q, v, steps=500)
    momenta = np.array([np.linalg.norm(angular_momentum(model, a, b)) for a, b in zip(r.q, r.v)])
    assert np.abs(momenta / momenta[0] - 1).max() < 1e-8
    p = np.array([linear_momentum(model, a, b) for a, b in zip(r.q, r.v)])
    assert np.abs(p - p[0]).max() < 1e-8 * np.abs(p[0]).max()


def inertial(model):
    ten = np.asarray(model.parameters()[f"inertia/{model.body_names[1]}"].value)
    mass, c = ten[0], ten[1:4] / ten[0]
    xx, xy, yy, xz, yz, zz = ten[4:]
    about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return mass, c, about_origin - mass * ((c @ c) * np.eye(3) - np.outer(c, c))


def linear_momentum(model, q, v):
    mass, c, _ = inertial(model)
    return mass * (v[:3] + rotation_matrix(q[3:7]) @ np.cross(v[3:6], c))


def angular_momentum(model, q, v):
    _, _, about_centre = inertial(model)
    return about_centre @ v[3:6]


LIMB = '<body pos=".15 0 0"><joint axis="0 1 0" {}/><inertial pos=".1 0 0" mass=".3" diaginertia=".0003 .001 .001"/></body>'


@pytest.mark.parametrize("h", [1e-3, 2.5e-4])
@pytest.mark.parametrize("limb", ['stiffness="5"', 'damping=".01"', ""], ids=["spring", "damper", "loose"])
def test_a_body_with_a_limb_gains_no_energy_to_speak_of(h, limb):
    random = np.random.default_rng(3)
    model = load(body(random, FREE, 0.02, LIMB.format(limb)))
    q, v = spinning(model, 20.0, random)
    trajectory = coulomb.Simulator(model, stepper="bdf1", timestep=h).rollout(q, v, steps=round(0.5 / h))
    assert trajectory.converged
    E = energies(model, trajectory, 10)
    assert E.max() < E[0] * (1 + 2 * 20.0 * h)


def rope(links):
    """Boxes on hinges that are not parallel to them, the first one free."""
    bodies = ""
    for k in reversed(range(links)):
        joint = FREE if k == 0 else '<joint axis="0 1 .3" damping=".02" stiffness=".5"/>'
        x, z = (0, 0.1) if k == 0 else (0.1, 0)
        box = '<geom type="box" size=".04 .02 .02" mass=".1" contype="0" conaffinity="0"/>'
        bodies = f'<body pos="{x} 0 {z}">{joint}{box}{bodies}</body>'
    end = '<geom type="sphere" size=".06" mass=".2" pos=".1 0 -.04" friction=".1"/>'
    last = bodies.rindex("/>") + 2
    ground = '<geom type="plane" size="1 1 .1" friction=".05"/>'
    return load(ground + bodies[:last] + end + bodies[last:], 9.81).with_parameters({"contact_stiffness": [3e3]})


@pytest.mark.parametrize(("links", "h", "steps"), [(20, 2e-3, 600), (20, 5e-3, 300), (50, 2e-3, 600)])
def test_a_rope_that_whips_gains_no_energy(links, h, steps):
    """It falls while its end drags on the ground: the spin of one stiff body, which it is not, would throw it."""
    model = rope(links)
    q, v = model.neutral()
    v[0] = 0.3
    trajectory = coulomb.Simulator(model, stepper="bdf1", timestep=h).rollout(q, v, steps=steps)
    assert trajectory.converged
    E = energies(model, trajectory, 10)
    assert np.abs(trajectory.v).max() > 20  # it whips
    assert E.max() <= E[0] * (1 + 1e-9)


@pytest.mark.parametrize("joint", [FREE, BALL], ids=["free", "ball"])
def test_bdf2_loses_energy_of_second_order(joint):
    random = np.random.default_rng(5)
    model = load(body(random, joint))
    q, v = spinning(model, 10.0, random)
    errors = []
    for h in (2e-3, 1e-3, 5e-4):
        E = energies(model, coulomb.Simulator(model, stepper="bdf2", timestep=h).rollout(q, v, steps=round(1 / h)), 10)
        errors.append(np.abs(E / E[0] - 1).max())
    assert np.all(np.log2(np.array(errors[:-1]) / errors[1:]) > 1.8)


# --- derivatives ------------------------------------------------------------------------------------------------------


SPINNER = """<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <body name="a"><freejoint name="f"/><inertial pos=".1 -.05 .07" quat=".9 .3 .2 .1" mass="2" diaginertia=".02 .03 .045"/>
    <body name="b" pos=".3 0 0"><joint name="h" axis="0 .6 .8" stiffness="2"/><inertial pos=".1 .02 0" mass=".7" diaginertia=".002 .003 .004"/></body></body>
  <body name="c" pos="2 0 0"><joint name="ball" type="ball" armature=".01"/><inertial pos=".1 0 -.3" mass="1" diaginertia=".01 .02 .025"/>
    <body name="d" pos="0 0 -.5"><joint name="s" type="slide" axis="1 0 0" stiffness="50"/><inertial pos="0 .05 0" mass=".4" diaginertia=".001 .002 .002"/></body></body>
  </worldbody><actuator><motor joint="h"/></actuator></mujoco>"""


@pytest.mark.parametrize("speed", [0.0, 3.0, 30.0])
def test_steps_of_what_spins_against_differences(speed):
    model, random = coulomb.load(SPINNER), np.random.default_rng(1)
    sim = coulomb.Simulator(model, stepper="bdf1", timestep=5e-3)
    q = model.integrate(model.neutral()[0], 0.5 * random.normal(size=model.nv))
    v = random.normal(size=model.nv)
    v[3:6] *= speed
    v[7:10] *= speed
    kinds = ("mass", "com", "inertia", "armature", "joint_placement", "joint_stiffness", "gravity", "timestep")
    names = [
        n
        for n in model.parameters()
        if n.split("/")[0] in kinds
        and not (n.startswith(("armature/f", "armature/h", "armature/s", "joint_stiffness/f", "joint_stiffness/ball")))
    ]
    check = coulomb.check_gradients(
        sim, q, v, random.normal(size=model.nu), wrt=["q", "v", "u", "tau", *names], tolerance=2e-6
    )
    assert check.passed, check
    assert check.compared >= check.columns - 4

    # Reverse mode is the adjoint of forward mode.
    sim.step(q, v)
    d = sim.derivatives(wrt=names)
    w = random.normal(size=2 * model.nv)
    g = sim.vjp(w[: model.nv], w[model.nv :], wrt=names)
    for found, expected in [(np.r_[g.q, g.v], w @ d.A), (g.tau, w @ d.B_tau), *((g[n], w @ d[n]) for n in names)]:
        assert np.abs(found - expected).max() <= 1e-9 * max(1.0, np.abs(expected).max())


def test_trajectories_of_what_spins():
    """What a rollout keeps of its steps, and what it makes again, give the products of the steps."""
    model, random = coulomb.load(SPINNER), np.random.default_rng(2)
    q, v = model.neutral()[0], 5 * random.normal(size=model.nv)
    names = ["inertia/a", "mass/d", "joint_placement/h", "timestep"]
    sim = coulomb.Simulator(model, stepper="bdf1", timestep=5e-3)
    dQ, dV = random.normal(size=(2, 31, model.nv))
    gradients = []
    for keep in (True, False):
        r = sim.rollout(q, v, steps=30, keep_factors=keep)
        g = r.vjp(dQ, dV, wrt=names)
        gradients.append(np.concatenate([g.q0, g.v0, *(np.ravel(g[n]) for n in names)]))
    np.testing.assert_array_equal(*gradients)

    # Against the product of single steps' derivatives.
    p, P = np.r_[dQ[-1], dV[-1]], {n: 0.0 for n in names}
    for t in range(29, -1, -1):
        sim.reset()
        sim.step(r.q[t], r.v[t])
        d = sim.derivatives(wrt=names)
        P = {n: P[n] + p @ d[n] for n in names}
        p = p @ d.A + np.r_[dQ[t], dV[t]]
    expected = np.concatenate([p, *(np.ravel(P[n]) for n in names)])
    assert np.abs(gradients[0] - expected).max() < 1e-9 * np.abs(expected).max()


def test_steps_in_parts_and_their_derivatives():
    model, random = coulomb.load(SPINNER), np.random.default_rng(4)
    sim = coulomb.Simulator(model, stepper="bdf1", timestep=2e-2, newton_iterations=3)
    v = 15 * random.normal(size=model.nv)
    sim.step(model.neutral()[0], v)
    assert sim.status.converged and "parts" in sim.status.reason
    check = coulomb.check_gradients(sim, model.neutral()[0], v, wrt=["q", "v", "mass/b", "timestep"], tolerance=1e-5)
    assert check.passed, check
