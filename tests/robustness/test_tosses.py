"""Boxes tossed onto the ground, at steps from 1 to 50 ms: every step is solved as posed, and at the end no box is in the ground."""

import itertools

import numpy as np
import pytest

import coulomb

HALF = np.array([0.05, 0.05, 0.05])
SECONDS = 3.0
LONGEST = 12.0
AT_REST = 1e-3  # m/s, rad/s
LEAST_STEPS = 200  # a tenth of the depth is taken away in each: of 3 cm nanometres are left after 170 steps
TOSSES = 6


def toss(half, seed, friction):
    """(model, q, v): a box of 400 g in the air, turned at random, that flies at about 1 m/s and spins at about 5 rad/s."""
    random = np.random.default_rng(seed)
    scene = coulomb.Scene()
    scene.add_ground(friction=friction)
    scene.add_box(2 * half, mass=0.4, position=(0, 0, 0.25), friction=friction)
    model = scene.build()
    q, _ = model.neutral()
    q[3:7] = random.normal(size=4)
    q[3:7] /= np.linalg.norm(q[3:7])
    return model, q, random.normal(size=6) * [1, 1, 1, 5, 5, 5]


def lowest_corner(half, q):
    """m, above the ground."""
    w, x, y, z = q[3:7]
    up = np.array([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])  # world z in body axes
    return min(q[2] + up @ (half * sign) for sign in itertools.product((-1, 1), repeat=3))


@pytest.mark.parametrize("shape", [HALF, HALF * [1, 2, 0.2]], ids=["cube", "plate"])
@pytest.mark.parametrize("friction", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("milliseconds", [1, 2, 5, 10, 20, 50])
def test_a_tossed_box_is_solved_as_posed_and_ends_on_the_ground(milliseconds, friction, shape):
    unsolved = []
    for seed in range(TOSSES):
        model, q, v = toss(shape, seed, friction)
        sim = coulomb.Simulator(model, timestep=1e-3 * milliseconds)
        for k in range(max(round(LONGEST / sim.timestep), LEAST_STEPS)):
            # A plate that landed on its edge rocks for longer: each blow takes a few per cent.
            if k * sim.timestep >= SECONDS and k >= LEAST_STEPS and np.abs(v).max() < AT_REST:
                break
            q, v = sim.step(q, v)
            assert np.isfinite(q).all() and np.isfinite(v).all(), f"seed {seed}, step {k}: {sim.status}"
            if not sim.status.converged or sim.status.reason != "solved":
                unsolved.append(f"seed {seed}, step {k}: {sim.status.reason}")
        height = lowest_corner(shape, q)
        assert -1e-6 < height < 1e-3, f"seed {seed}"
    assert not unsolved
