"""Heaps of 100 contacts and more begin around the impulses of the step before (docs/theory/contact.md, C18). That costs less, changes no
law, drives no motion, and is a part of the memory like any other."""

import pickle

import numpy as np
import pytest

import coulomb
from scenes import heaps

SIDE = 0.2


def tower(masses):
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    for i, mass in enumerate(masses):
        scene.add_box((SIDE, SIDE, SIDE), mass=mass, position=(0, 0, SIDE * (i + 0.5)), friction=0.5)
    return scene.build()


def slab_on_boxes(mass):
    """25 boxes of 1 kg that carry a slab: 200 contacts."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    for i in range(5):
        for j in range(5):
            scene.add_box((SIDE, SIDE, SIDE), mass=1.0, position=(0.25 * i, 0.25 * j, 0.1), friction=0.5)
    scene.add_box((1.5, 1.5, SIDE), mass=mass, position=(0.5, 0.5, 0.3), friction=0.5)
    return scene.build()


def speed_after_kick(model, timestep, steps):
    """The largest one of all bodies, so many steps after each was kicked by about 1e-4 m/s and rad/s. Every step is solved."""
    sim = coulomb.Simulator(model, timestep=timestep)
    q, v = model.neutral()
    v = 1e-4 * np.random.default_rng(0).normal(size=model.nv)
    for _ in range(steps):
        q, v = sim.step(q, v)
        assert sim.status.converged and sim.status.reason == "solved"
    return np.abs(v).max()


@pytest.mark.parametrize("timestep", [2e-3, 5e-3, 1e-2])
@pytest.mark.parametrize("count", [30, 60, 100, 200])
def test_towers_stand(count, timestep):
    assert speed_after_kick(tower(count * [1.0]), timestep, round(1.5 / timestep)) < 1e-8


@pytest.mark.parametrize("top, timestep", [(1e3, 1e-2), (1e4, 2e-3), (1e4, 1e-2)])
def test_heavy_boxes_on_towers_are_quiet(top, timestep):
    """Where remembered impulses would drive the motion they are left out: the tower under 1e4 kg flew apart at 10 m/s and more."""
    assert speed_after_kick(tower([*(39 * [1.0]), top]), timestep, 300) < 1e-9


@pytest.mark.parametrize("mass", [1e2, 1e4, 1e6])
def test_heavy_slabs_on_many_boxes_are_quiet(mass):
    assert speed_after_kick(slab_on_boxes(mass), 2e-3, 200) < 1e-9


@pytest.fixture(scope="module")
def settled_pile():
    """A pile of 100 boxes that has fallen for 1.5 s, with the simulator that brought it there."""
    model = coulomb.load(heaps.pile(100))
    sim = coulomb.Simulator(model, timestep=5e-3)
    q, v = model.neutral()
    energies = [sum(model.energy(q, v))]
    for _ in range(300):
        q, v = sim.step(q, v)
        assert sim.status.converged and sim.status.reason == "solved"
        energies.append(sum(model.energy(q, v)))
    return sim, q, v, np.array(energies)


def test_a_pile_only_loses_energy(settled_pile):
    energies = settled_pile[3]
    assert np.diff(energies).max() <= 0


def test_a_pile_takes_fewer_iterations_than_one_without_memory_of_impulses(settled_pile):
    """Level 0 around zero took 36 iterations a step."""
    sim, q, v, _ = settled_pile
    saved = sim.memory
    iterations = []
    for _ in range(60):
        q, v = sim.step(q, v)
        iterations.append(sim.status.iterations)
        assert sim.status.exact_residual <= 1e-5
    sim.memory = saved
    assert np.mean(iterations) < 30


def test_memory_goes_on_in_another_process(settled_pile):
    sim, q, v, _ = settled_pile
    saved = pickle.loads(pickle.dumps(sim.memory))
    first = [sim.step(q, v)]
    for _ in range(5):
        first.append(sim.step(*first[-1]))
    other = coulomb.Simulator(sim.model, timestep=sim.timestep)
    other.memory = saved
    second = [other.step(q, v)]
    for _ in range(5):
        second.append(other.step(*second[-1]))
    sim.memory = saved
    assert all(np.array_equal(a, b) for one, two in zip(first, second) for a, b in zip(one, two))


def test_a_reset_forgets_the_impulses(settled_pile):
    sim, q, v, _ = settled_pile
    saved = sim.memory
    sim.reset()
    after = sim.step(q, v)
    fresh = coulomb.Simulator(sim.model, timestep=sim.timestep).step(q, v)
    sim.memory = saved
    assert all(np.array_equal(a, b) for a, b in zip(after, fresh))


def test_memory_changes_velocities_by_less_than_the_compliance():
    """A slab that slides over many boxes: from memory it moves as without, to 1e-7 m/s."""
    model = slab_on_boxes(10.0)
    sim = coulomb.Simulator(model, timestep=2e-3)
    q, v = model.neutral()
    v[-6:] = 1, 0.3, 0, 0, 0, 0.5
    for _ in range(50):
        before = q, v
        q, v = sim.step(q, v)
        cold = coulomb.Simulator(model, timestep=2e-3).step(*before)[1]
        assert np.abs(v - cold).max() < 1e-7


def turned(q, v, angle):
    """The scene turned about the vertical."""
    q, v = q.reshape(-1, 7).copy(), v.reshape(-1, 6).copy()
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    q[:, :3] = q[:, :3] @ turn.T
    v[:, :3] = v[:, :3] @ turn.T
    a, b = np.cos(angle / 2), np.sin(angle / 2)
    w, x, y, z = q[:, 3:].T.copy()
    q[:, 3:] = np.stack([a * w - b * z, a * x - b * y, a * y + b * x, a * z + b * w], axis=1)
    return q.ravel(), v.ravel()


def test_a_turned_heap_moves_alike():
    model = slab_on_boxes(10.0)
    q, v = model.neutral()
    v = 1e-3 * np.random.default_rng(0).normal(size=model.nv)
    v[-6:] = 1, 0.3, 0, 0, 0, 0.5
    first = coulomb.Simulator(model, timestep=2e-3)
    second = coulomb.Simulator(model, timestep=2e-3)
    other = turned(q, v, 0.7)
    for _ in range(20):
        q, v = first.step(q, v)
        other = second.step(*other)
    assert np.abs(turned(q, v, 0.7)[1] - other[1]).max() < 1e-8


def test_the_same_bits_on_any_number_of_threads():
    model = slab_on_boxes(10.0)
    q, v = model.neutral()
    Q = np.tile(q, (4, 1))
    V = 1e-2 * np.random.default_rng(0).normal(size=(4, model.nv))
    V[:, -6] = 1
    runs = []
    for threads in (1, 3):
        batch = coulomb.BatchSimulator(model, num_envs=4, num_threads=threads, timestep=2e-3)
        rollout = batch.rollout(Q, V, steps=20)
        gradient = rollout.vjp(np.ones_like(rollout.v), rollout.v)
        runs.append((rollout.q, rollout.v, gradient.q0, gradient.v0))
    assert all(np.array_equal(a, b) for a, b in zip(*runs))

    # A rollout that runs its steps again from checkpoints has the gradient of one that kept them.
    sim = coulomb.Simulator(model, timestep=2e-3)
    kept = sim.rollout(Q[0], V[0], steps=20).vjp(np.ones((21, model.nv)), runs[0][1][0])
    again = sim.rollout(Q[0], V[0], steps=20, checkpoint_every=7).vjp(np.ones((21, model.nv)), runs[0][1][0])
    assert np.array_equal(kept.v0, again.v0) and np.array_equal(kept.v0, runs[0][3][0])
