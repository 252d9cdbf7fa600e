"""Same inputs, same bits: twice, with and without derivatives, and after memory is saved and restored."""

import numpy as np
import pytest

import coulomb
from scenes import heaps
from scenes.contacts import CONTACT_SCENES


def run(sim, q, v, steps, derivatives=False):
    out = []
    for _ in range(steps):
        q, v = sim.step(q, v)
        if derivatives:
            sim.derivatives()
        out.append(np.r_[q, v])
    return np.array(out)


@pytest.mark.parametrize("build", CONTACT_SCENES, ids=lambda f: f.__name__)
def test_the_same_bits(build):
    model, q, v = build(np.random.default_rng(0))
    again, *_ = build(np.random.default_rng(0))
    first = run(coulomb.Simulator(model, timestep=1e-3), q, v, 100)
    assert np.array_equal(run(coulomb.Simulator(model, timestep=1e-3), q, v, 100), first)
    assert np.array_equal(run(coulomb.Simulator(again, timestep=1e-3), q, v, 100), first)
    sim = coulomb.Simulator(model, timestep=1e-3)
    assert np.array_equal(run(sim, q, v, 100, derivatives=True), first)
    sim.reset()
    assert np.array_equal(run(sim, q, v, 100), first)


@pytest.mark.parametrize("build", CONTACT_SCENES, ids=lambda f: f.__name__)
def test_memory_replays_the_rest_of_a_run(build):
    model, q, v = build(np.random.default_rng(1))
    sim = coulomb.Simulator(model, timestep=1e-3)
    x = run(sim, q, v, 20)[-1]
    memory = sim.memory
    q, v = x[: model.nq], x[model.nq :]
    first = run(sim, q, v, 30)
    sim.memory = memory
    assert np.array_equal(run(sim, q, v, 30), first)
    other = coulomb.Simulator(model, timestep=1e-3)
    other.memory = memory
    assert np.array_equal(run(other, q, v, 30), first)


def test_a_rollout_is_its_steps():
    model, q, v = CONTACT_SCENES[0](np.random.default_rng(2))
    sim = coulomb.Simulator(model, timestep=1e-3)
    trajectory = sim.rollout(q, v, steps=50)
    sim.reset()
    assert np.array_equal(np.hstack([trajectory.q, trajectory.v])[1:], run(sim, q, v, 50))


def test_a_heap_has_the_same_bits_on_any_number_of_threads():
    """Different heaps side by side: islands, the interior-point method, sparse factors and their derivatives."""
    pytest.importorskip("mujoco")
    model = coulomb.load(heaps.pile(10))
    q, v = model.neutral()
    heights = np.linspace(0, 0.1, 6)
    Q = np.array([q + height * np.tile([0, 0, 1, 0, 0, 0, 0], 10) for height in heights])
    V = np.array([v + height for height in heights])
    runs = []
    for threads in (1, 2, 5):
        batch = coulomb.BatchSimulator(model, num_envs=6, num_threads=threads, timestep=5e-3)
        rollout = batch.rollout(Q, V, steps=120)
        gradient = rollout.vjp(np.ones_like(rollout.q[..., 0, None] * V[:, None]), rollout.v)
        runs.append((rollout.q, rollout.v, gradient.q0, gradient.v0))

    # And the single simulator's.
    sim = coulomb.Simulator(model, timestep=5e-3)
    assert np.array_equal(sim.rollout(Q[3], V[3], steps=120).v, runs[0][1][3])
    for run in runs[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(run, runs[0]))
