"""Bodies that tumble over one another, slide along edges and are squeezed between others: split steps find their way to the end.

Faces and edges that turn under one another are where a search for impacts can creep and impacts can follow each other without end.
"""

import numpy as np
import pytest

import coulomb

RADIUS = 0.11
DEPTH = 1e-5


def prism(radius, height, sides=12):
    angle = 2 * np.pi * np.arange(sides) / sides
    ring = np.c_[radius * np.cos(angle), radius * np.sin(angle)]
    return np.r_[np.c_[ring, np.full(sides, -height / 2)], np.c_[1.2 * ring, np.full(sides, height / 2)]]


def skittles(rows=4):
    scene = coulomb.Scene()
    scene.add_ground(friction=0.2, restitution=0.0)
    scene.add_sphere(RADIUS, mass=6.0, position=(-0.3, 0, RADIUS), friction=0.2, restitution=0.3, name="ball")
    for row in range(rows):
        for k in range(row + 1):
            place = (0.26 * row, 0.3 * (k - row / 2), 0.19)
            scene.add_mesh(
                prism(0.035, 0.38), mass=1.5, position=place, friction=0.3, restitution=0.3, name=f"{row} {k}"
            )
    return scene.build()


@pytest.mark.parametrize("seed", range(12))
def test_a_ball_among_skittles(seed):
    random = np.random.default_rng(seed)
    timestep, contact = (0.01, 0.005)[seed // 2 % 2], ("ncp", "lcp")[seed % 2]
    model = skittles()
    sim = coulomb.Simulator(model, timestep=timestep, contact=contact, continuous_collision=True)
    probe = coulomb.Simulator(model)
    q, v = model.neutral()
    speed = random.uniform(5, 15)
    q[1], v[0], v[4], v[5] = random.uniform(-0.08, 0.08), speed, speed / RADIUS, random.uniform(-20, 20)
    for step in range(int(0.35 / timestep)):
        q, v = sim.step(q, v)
        assert sim.status.converged, (seed, step, sim.status)
        probe.step(q, v)
        assert max((c.depth for c in probe.contacts), default=0) < DEPTH, (seed, step)
    assert np.abs(v).max() < 300, seed
