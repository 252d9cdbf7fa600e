"""Contacts without friction: lifting a body off the ground takes no more than its weight."""

import numpy as np
import pytest

import coulomb

H = 1e-3


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize("depth", [0.0, 1e-5])
def test_a_ball_that_is_pulled_up_leaves_the_ground(contact, depth):
    scene = coulomb.Scene(timestep=H)
    scene.add_ground(friction=0.0)
    scene.add_sphere(0.3, mass=0.1, position=(0, 0, 0.3 - depth), friction=0.0, name="ball")
    model = scene.build()
    sim = coulomb.Simulator(model, contact=contact)
    q, v = model.neutral()
    v = sim.step(q, v, tau=np.array([0, 0, 2.0, 0, 0, 0]))[1]
    assert sim.status.converged
    assert v[2] == pytest.approx(H * (2.0 / 0.1 - 9.81), rel=1e-12)
