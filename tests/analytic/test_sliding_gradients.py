"""A block slid at v0 = 2 m/s comes to rest after v0^2 / (2 mu g): the gradient of that distance through a rollout."""

import numpy as np
import pytest

import coulomb

G, H = 9.81, 1e-3


@pytest.mark.parametrize("v0, mu", [(2.0, 0.3), (1.0, 0.5)])
@pytest.mark.parametrize("heading", [0.0, np.pi / 4])
def test_distance_by_speed_and_friction(v0, mu, heading):
    scene = coulomb.Scene(gravity=(0, 0, -G))
    scene.add_ground(friction=mu)
    scene.add_box((0.2, 0.2, 0.1), mass=1.0, position=(0, 0, 0.05), friction=0.1, name="block")
    sim = coulomb.Simulator(scene.build(), timestep=H)
    q, v = sim.model.neutral()
    along = np.array([np.cos(heading), np.sin(heading)])
    v[:2] = v0 * along
    r = sim.rollout(q, v, steps=1000)
    assert r.converged
    exact = v0**2 / (2 * mu * G)
    assert along @ r.q[-1, :2] == pytest.approx(exact, abs=2 * v0 * H)
    dQ, dV = np.zeros((1001, 6)), np.zeros((1001, 6))
    dQ[-1, :2] = along
    g = r.vjp(dQ, dV, wrt=["friction/ground", "mass/block"])
    time = v0 / (mu * G)
    a_step = 1.1 * H / time  # the block stops within a step of the exact time: 1.6e-3 for the first case
    assert along @ g.v0[:2] == pytest.approx(time, rel=a_step)
    assert g["friction/ground"][0] == pytest.approx(-exact / mu, rel=a_step)
    assert g["mass/block"][0] == pytest.approx(0, abs=1e-9)  # a block on the floor does not show its mass
