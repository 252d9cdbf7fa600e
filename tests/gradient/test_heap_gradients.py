"""Heaps of more than 100 contacts have their compliance around the impulses of the step before (docs/theory/contact.md, C18). Their
derivative is that of the step with this memory: it includes that axes of contacts turn while remembered impulses keep their direction."""

import numpy as np
import pytest

import coulomb

TIMESTEP = 2e-3


def sliding_slab(mass):
    """25 boxes of 1 kg with a slab on them that slides and turns: 200 contacts, most of which slide. The simulator after five steps, its
    memory frozen, and the state."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    for i in range(5):
        for j in range(5):
            scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0.25 * i, 0.25 * j, 0.1), friction=0.5)
    scene.add_box((1.5, 1.5, 0.2), mass=mass, position=(0.5, 0.5, 0.3), friction=0.5)
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=TIMESTEP)
    q, _ = model.neutral()
    v = 1e-3 * np.random.default_rng(0).normal(size=model.nv)
    v[-6:] = 1, 0.3, 0, 0, 0, 0.5
    for _ in range(5):
        q, v = sim.step(q, v)
    sim.freeze_memory(True)
    sim.step(q, v)
    assert len(sim.contacts) == 200 and sum(c.mode == "sliding" for c in sim.contacts) >= 100
    return sim, q, v


def change(sim, q, v, dq, dv):
    """(dq+, dv+) of the step at (q + dq, v + dv) against the one at (q - dq, v - dv), halved."""
    model = sim.model
    ends = [sim.step(model.integrate(q, side * dq), v + side * dv) for side in (1, -1)]
    return 0.5 * np.concatenate([model.difference(ends[1][0], ends[0][0]), ends[0][1] - ends[1][1]])


@pytest.mark.parametrize("mass", [100.0, 1000.0])
def test_against_differences(mass):
    """Without the turning of axes, or of all that the centre adds, the median error of q is 2e-7."""
    sim, q, v = sliding_slab(mass)
    derivatives = sim.derivatives()
    assert not derivatives.ambiguous
    nv = sim.model.nv
    random = np.random.default_rng(0)
    still = np.zeros(nv)
    errors = {"q": [], "v": []}
    for _ in range(10):
        direction = random.normal(size=nv)
        for name, step in (("q", 3e-8), ("v", 1e-6)):
            dq, dv = (direction, still) if name == "q" else (still, direction)
            exact = derivatives.A @ np.concatenate([dq, dv])
            found = change(sim, q, v, step * dq, step * dv) / step
            errors[name].append(np.abs(found - exact).max() / np.abs(exact).max())
    assert np.median(errors["q"]) < 8e-8
    assert np.median(errors["v"]) < 6e-8


def test_taylor_remainder():
    """What the derivative leaves of a change of velocities falls with its square."""
    sim, q, v = sliding_slab(10.0)
    A = sim.derivatives().A
    nv = sim.model.nv
    direction = np.zeros(nv)
    direction[-6:] = 1, -2, 0, 0, 0, 3
    here = sim.step(q, v)[1]
    left = []
    for size in (1e-2, 1e-3, 1e-4):
        there = sim.step(q, v + size * direction)[1]
        left.append(np.abs(there - here - size * A[nv:, nv:] @ direction).max())
    assert left[0] < 1e-3
    assert left[1] < 0.02 * left[0] and left[2] < 0.02 * left[1]


@pytest.mark.parametrize("mass", [10.0, 1000.0])
def test_forward_and_reverse(mass):
    sim, q, v = sliding_slab(mass)
    A = sim.derivatives().A
    w = np.random.default_rng(1).normal(size=2 * sim.model.nv)
    gradient = sim.vjp(w[: sim.model.nv], w[sim.model.nv :])
    expected = A.T @ w
    assert np.abs(np.concatenate([gradient.q, gradient.v]) - expected).max() < 1e-9 * np.abs(expected).max()


def test_rollouts_leave_out_how_impulses_are_remembered():
    """A rollout's gradient is the product of its steps' derivatives: what passes through the memory is neglected, less than 1e-6
    of it here."""
    sim, q, v = sliding_slab(10.0)
    sim.freeze_memory(False)
    steps = 10
    direction = np.zeros(sim.model.nv)
    direction[-6:] = 1, -2, 0, 0, 0, 3
    rollout = sim.rollout(q, v, steps=steps)
    w = np.random.default_rng(2).normal(size=sim.model.nv)
    Vbar = np.zeros_like(rollout.v)
    Vbar[-1] = w
    gradient = rollout.vjp(np.zeros((steps + 1, sim.model.nv)), Vbar)
    ends = [sim.rollout(q, v + side * 1e-5 * direction, steps=steps).v[-1] for side in (1, -1)]
    expected = w @ (ends[0] - ends[1]) / 2e-5
    assert gradient.v0 @ direction == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["geometry_placement/ground", "geometry_placement/box_26"])
def test_placements_turn_contacts_but_not_what_is_remembered(name):
    """Height and tilts of the ground, or of the slab on its body, with the memory at hand. Without the turning: 5e-5."""
    sim, q, v = sliding_slab(100.0)
    model, memory = sim.model, sim.memory
    w = np.random.default_rng(0).normal(size=2 * model.nv)
    found = np.ravel(sim.vjp(w[: model.nv], w[model.nv :], wrt=[name])[name])
    placement = model.parameters()[name].value
    for k in (2, 3, 4):
        ends = []
        for side in (1, -1):
            moved = np.array(placement)
            moved[k] += side * 1e-7
            other = coulomb.Simulator(model.with_parameters({name: moved}), timestep=TIMESTEP)
            other.memory = memory
            ends.append(other.step(q, v))
        change = np.concatenate([model.difference(ends[1][0], ends[0][0]), ends[0][1] - ends[1][1]])
        assert found[k] == pytest.approx(w @ change / 2e-7, abs=1e-6)
