"""Pegs that fill their slots, in split steps: they slide on, and gain no energy."""

import sys
from pathlib import Path

import numpy as np
import pytest

import coulomb

sys.path.insert(0, str(Path(__file__).parents[1] / "gradient"))
from step_columns import compare  # noqa: E402

SIZE = (0.2, 0.2, 0.05)
CLEARANCES = [0, 1e-9, 1e-8, 1e-7, 1e-6]  # m
WALLS = 5e-10  # m: the nearest, of the least clearance
GRAVITY = 9.81
GAINED = 1e-3  # J, of some 3: hops of contacts that sink, each of some tolerances of height


def peg_in_slot(friction, clearance, timestep=2e-3):
    """On a floor between two walls, half beyond the end of them all."""
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY), timestep=timestep)
    scene.add_box((4, 4, 0.2), position=(0, 0, -0.1), fixed=True, friction=friction, name="floor")
    for side in (-1, 1):
        wall = (0, side * (SIZE[1] / 2 + clearance / 2 + 0.1), 0.1)
        scene.add_box((4, 0.2, 0.4), position=wall, fixed=True, friction=friction, name=f"wall {side}")
    scene.add_box(SIZE, mass=1.0, position=(-2, 0, SIZE[2] / 2), friction=friction, name="peg")
    return scene.build()


def energy(q, v):
    """J: of a kilogram."""
    inertia = (np.sum(np.square(SIZE)) - np.square(SIZE)) / 12
    return 0.5 * v[:3] @ v[:3] + 0.5 * inertia @ v[3:] ** 2 + GRAVITY * q[2]


def axis(q):
    """Along the peg, in the world."""
    w, x, y, z = q[3:]
    return np.array([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)])


def thrown(seed, friction):
    random = np.random.default_rng([3, seed])
    model = peg_in_slot(friction, random.choice(CLEARANCES), random.choice([2e-3, 5e-3, 1e-2]))
    v = np.r_[random.uniform(0.5, 3), 0, 0, random.normal(size=3) * [1, 1.5, 1]]
    return model, v, random.choice([0, 5, 20])


@pytest.mark.parametrize("friction", [0.0, 0.3])
def test_pegs_that_tip_over_the_end_of_their_floor(friction):
    """The edge of the floor is below the peg's side, which leans a little against the floor's: the peg's carries the normal."""
    for seed in range(60):
        model, v, force = thrown(seed, friction)
        sim = coulomb.Simulator(model, continuous_collision=True)
        q = model.neutral()[0]
        gained = 0.0
        for k in range(100):
            v_before = v
            q_next, v = sim.step(q, v, tau=np.r_[force, np.zeros(5)])
            assert sim.status.converged, (seed, k)
            moved = q_next[:3] - q[:3]
            work = force * (axis(q) + axis(q_next)) / 2 @ moved
            # The first step hits the walls.
            gained += 0 if k == 0 else energy(q_next, v) - energy(q, v_before) - work
            assert gained <= GAINED, (seed, k)
            q = q_next


@pytest.mark.parametrize("friction", [0.0, 0.3])
def test_their_derivatives(friction):
    known = 0
    for seed in range(24):
        model, v, force = thrown(seed, friction)
        sim = coulomb.Simulator(model, continuous_collision=True)
        q = model.neutral()[0]
        tau = np.r_[force, np.zeros(5)]
        for _ in range(3 + seed):
            q, v = sim.step(q, v, tau=tau)
        random = np.random.default_rng(seed)
        options = {"memory": sim.memory, "noise_size": WALLS / 50, "continuous_collision": True}
        columns, flagged, _ = compare(model, q, v, np.zeros(0), tau, random, **options)
        if flagged:
            continue
        known += sum(column.known for column in columns)
        assert not [column for column in columns if column.wrong], seed
    assert known >= 80
