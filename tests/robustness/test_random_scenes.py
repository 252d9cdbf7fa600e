"""What must hold in every step of every scene: seeded random bodies that fall, collide, roll and pile up.

The seed of a failure is in the name of its test.
"""

import math

import numpy as np
import pytest

import coulomb
from scenes.frames import World, turn

KINDS = ["sphere", "box", "capsule", "cylinder", "ellipsoid", "mesh"]
SMOOTH = ["sphere", "capsule", "ellipsoid"]


def random_world(
    seed, kinds=KINDS, restitution=0.0, gravity=True, count=None, frame=(1.0, 0.0, 0.0, 0.0), reverse=False
):
    """Bodies of random shape, size, mass and speed above a floor, with a second plane that makes a wedge with it in half the scenes;
    without gravity, there is no floor and they fly into each other."""
    random = np.random.default_rng(seed)
    world = World(frame=frame, reverse=reverse, gravity=(0, 0, -9.81) if gravity else (0, 0, 0))
    count = count or int(random.integers(2, 8))
    if gravity:
        world.plane(random.choice([0, 0.1, 0.5, 1.0, 1.5]), restitution=restitution)
        if random.random() < 0.5:
            world.plane(random.choice([0, 0.4, 1.0]), (-math.sin(0.5), 0, math.cos(0.5)), (0.5, 0, 0), restitution)
    for i in range(count):
        kind, s = str(random.choice(kinds)), random.uniform(0.05, 0.15)
        sides = s * random.uniform(0.7, 2, 3)
        size = {
            "sphere": s,
            "capsule": (0.7 * s, 1.5 * s),
            "cylinder": (0.8 * s, 1.7 * s),
            "ellipsoid": 0.6 * sides,
        }.get(kind, sides)
        quaternion = random.normal(size=4)
        velocity = random.normal(size=6) * [0.5, 0.5, 0.5, 2, 2, 2]
        position = random.uniform(-0.2, 0.2, 3)
        position[2] = 0.25 + 0.3 * i if gravity else 0.35 * (i - count / 2)
        if not gravity:
            velocity[2] -= 1.5 * (i - count / 2)
        world.body(
            f"body{i}", kind, size, 10 ** random.uniform(-1, 1), position, quaternion / np.linalg.norm(quaternion), velocity,
            friction=random.choice([0.0, 0.2, 0.8]), restitution=restitution,
        )  # fmt: skip
    return world


def inertia(model, body):
    xx, xy, yy, xz, yz, zz = model.body_inertia[body]
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def kinetic_energy(model, v):
    """Of free bodies whose frames are at their centres of mass."""
    return sum(
        0.5 * model.body_mass[b] * v[6 * b - 6 : 6 * b - 3] @ v[6 * b - 6 : 6 * b - 3]
        + 0.5 * v[6 * b - 3 : 6 * b] @ inertia(model, b) @ v[6 * b - 3 : 6 * b]
        for b in range(1, model.num_bodies)
    )


def check_contacts(sim):
    """Every contact pushes, stays in its cone, and friction opposes the slip."""
    contacts = sim.contacts
    impulse = max((np.linalg.norm(c.impulse) for c in contacts), default=0.0)
    if impulse == 0:
        return
    speed = max(1.0, *(np.linalg.norm(c.velocity) for c in contacts))
    for c in contacts:
        normal, approach = c.impulse @ c.normal, c.velocity @ c.normal
        tangential, slip = c.impulse - normal * c.normal, c.velocity - approach * c.normal
        assert normal >= -1e-8 * impulse
        assert np.linalg.norm(tangential) <= c.friction * normal + 1e-8 * impulse
        assert abs(c.friction * normal * np.linalg.norm(slip) + tangential @ slip) <= 2e-8 * impulse * speed
        if c.mode == "separating":
            assert normal <= 1e-8 * impulse


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_contacts_obey_their_law(seed, restitution):
    model, q, v = random_world(seed, restitution=restitution).build()
    sim = coulomb.Simulator(model, timestep=2e-3)
    touched, unsolved = 0, []
    for k in range(300):
        fastest = max(
            np.linalg.norm(v[i : i + 3]) + 0.3 * np.linalg.norm(v[i + 3 : i + 6]) for i in range(0, model.nv, 6)
        )
        q, v = sim.step(q, v)
        assert np.isfinite(q).all() and np.isfinite(v).all()
        if sim.status.converged:
            check_contacts(sim)
        else:
            unsolved.append(f"step {k}: {sim.status}")
        touched += len(sim.contacts)
        # What one step can overlap, twice for two bodies that meet, and the rest of the one before that is being removed.
        assert max((c.depth for c in sim.contacts), default=0.0) <= 4 * fastest * sim.timestep + 1e-3
    assert touched > 10
    # The solver may give in, with a status that says why, but hardly ever: one step in 30000 of such scenes.
    assert len(unsolved) <= 1, unsolved


@pytest.mark.parametrize("seed", range(8))
def test_friction_and_inelastic_impacts_take_energy_away(seed):
    """The contact impulses of a step do no work, without restitution and position correction."""
    model, q, v = random_world(seed).build()
    sim = coulomb.Simulator(model, timestep=1e-3, baumgarte=0)
    for _ in range(500):
        free = v.copy()
        free[2::6] -= 9.81 * sim.timestep
        before = kinetic_energy(model, free)
        # The gyroscopic torque turns the spin for the length of a step: second order.
        spin = max(np.linalg.norm(v[i : i + 3]) for i in range(3, model.nv, 6))
        q, v = sim.step(q, v)
        if sim.contacts:
            assert kinetic_energy(model, v) <= before * (1 + (sim.timestep * spin) ** 2) + 1e-9


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("restitution", [0.0, 0.7])
def test_collisions_keep_momentum(seed, restitution):
    model, q, v = random_world(seed, restitution=restitution, gravity=False, count=6).build()
    mass = np.repeat(model.body_mass[1:], 3).reshape(-1, 3)
    before = (mass * v.reshape(-1, 6)[:, :3]).sum(axis=0)
    sim, touched = coulomb.Simulator(model, timestep=2e-3), 0
    for _ in range(300):
        q, v = sim.step(q, v)
        touched += len(sim.contacts)
        momentum = (mass * v.reshape(-1, 6)[:, :3]).sum(axis=0)
        assert np.abs(momentum - before).max() <= 1e-10 * max(1.0, np.abs(before).max())
    assert touched > 0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("restitution", [0.0, 0.7])
def test_collisions_of_spheres_keep_angular_momentum(seed, restitution):
    """Of spheres, that the gyroscopic torque does not turn: friction and normal forces act at one point on both."""
    model, q, v = random_world(seed, ["sphere"], restitution, gravity=False, count=6).build()

    def angular(q, v):
        x, m = q.reshape(-1, 7)[:, :3], model.body_mass[1:, None]
        return sum(
            np.cross(x[i], m[i] * v[6 * i : 6 * i + 3])
            + turn(q[7 * i + 3 : 7 * i + 7], model.body_inertia[i + 1, 0] * v[6 * i + 3 : 6 * i + 6])
            for i in range(len(x))
        )

    sim, touched = coulomb.Simulator(model, timestep=2e-3), 0
    for _ in range(300):
        before = angular(q, v)
        q1, v = sim.step(q, v)
        touched += len(sim.contacts)
        assert np.abs(angular(q, v) - before).max() <= 1e-10  # over the impulses of the step
        q = q1
    assert touched > 0


def trajectory(world, steps):
    model, q, v = world.build()
    sim = coulomb.Simulator(model, timestep=2e-3)
    states, contacts = [], 0
    for k in range(steps):
        q, v = sim.step(q, v)
        contacts += len(sim.contacts)
        if k % 20:
            continue
        states.append(np.concatenate([[*world.place(q, name), *world.velocity(v, name)] for name in world.bodies]))
    return np.array(states), contacts


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kinds", [SMOOTH, KINDS], ids=["smooth", "all"])
def test_the_frame_and_the_order_of_bodies_do_not_matter(seed, kinds):
    """Until rounding has grown: a scene of faces is chaotic after its first impacts."""
    steps = 281 if kinds is SMOOTH else 161
    plain, touched = trajectory(random_world(seed, kinds), steps)
    assert touched > 0
    turned = np.array([0.3, -0.7, 0.5, 0.4]) / math.sqrt(0.99)
    for frame, reverse in ((tuple(turned), False), ((1.0, 0.0, 0.0, 0.0), True)):
        other, _ = trajectory(random_world(seed, kinds, frame=frame, reverse=reverse), steps)
        assert np.abs(other - plain).max() < 1e-7
