"""A step from memory moves as one that remembers nothing: which points stand for a contact is for the pose to say."""

import numpy as np
import pytest

import coulomb
from scenes import robots

SAME = 1e-9  # m/s, rad/s


def stone(seed, corners=60):
    """A flat stone of many corners, a few of which touch at a time, thrown on the ground."""
    random = np.random.default_rng(seed)
    points = random.normal(size=(corners, 3))
    points *= np.array([0.1, 0.08, 0.05]) / np.linalg.norm(points, axis=1)[:, None]
    points[:, 2] = np.clip(points[:, 2], -0.03, 0.03) + random.uniform(-1e-4, 1e-4, corners)
    scene = coulomb.Scene()
    scene.add_ground(friction=0.6)
    scene.add_mesh(points, mass=1.0, position=(0, 0, 0.08), friction=0.6)
    model = scene.build()
    return model, model.neutral()[0], np.concatenate([random.normal(size=3) * 0.5, random.normal(size=3) * 3])


def largest_difference(model, q, v, steps, every):
    """Of velocities after a step, with and without the memory of those before; and how often that was looked at."""
    sim = coulomb.Simulator(model, timestep=2e-3)
    largest = 0.0
    looked = 0
    for k in range(steps):
        q_next, v_next = sim.step(q, v)
        if k % every == 0 and len(sim.contacts) >= 3:
            looked += 1
            cold = coulomb.Simulator(model, timestep=2e-3)
            largest = max(largest, np.abs(cold.step(q, v)[1] - v_next).max())
        q, v = q_next, v_next
    return largest, looked


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_stone_that_comes_to_lie(seed):
    largest, looked = largest_difference(*stone(seed), steps=400, every=3)
    assert looked >= 20
    assert largest <= SAME


@pytest.mark.skipif("h1" not in robots.NAMES, reason="needs a folder of robots with h1")
def test_a_robot_after_a_fall():
    model, q, v = robots.load("h1")
    largest, looked = largest_difference(model, q[0], v[0], steps=400, every=20)
    assert looked >= 5
    assert largest <= SAME
