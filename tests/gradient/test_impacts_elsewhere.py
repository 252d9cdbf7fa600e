"""Split steps: an impact is one of what touches the bodies that are hit. Others do not know of it, in motion and in derivative."""

import numpy as np
import pytest
from step_columns import compare

import coulomb
from scenes.random_scenes import build

TIMESTEP = 2e-3


def box_and_ball(depth, height):
    """A box at rest so deep in the ground; a ball so high above it, 1 m away."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.1 - depth), name="box")
    scene.add_sphere(0.1, mass=1.0, position=(1, 0, 0.1 + height), restitution=0.5, name="ball")
    return scene.build().with_parameters({"timestep": TIMESTEP})


def falling(model):
    v = np.zeros(model.nv)
    v[8] = -1.0
    return model.neutral()[0], v


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
def test_a_box_at_rest_beside_a_ball(contact):
    """The box's tilt sets the velocity of its corners, which no impact of others stops."""
    model = box_and_ball(0.0, 5e-4)
    q, v = falling(model)
    columns, flagged, sim = compare(
        model, q, v, np.zeros(0), np.zeros(12), np.random.default_rng(0), contact=contact, continuous_collision=True
    )
    assert [(impact.geometry_a, impact.geometry_b) for impact in sim.impacts] == [("ground", "ball")]
    assert not flagged
    assert not [column for column in columns if column.wrong]
    assert sum(column.known for column in columns) > 30


def test_a_box_in_the_ground_is_not_kicked():
    """It lies half a tolerance deep, without position correction: it stays, whatever hits the ground elsewhere."""
    model = box_and_ball(5e-6, 5e-4)
    sim = coulomb.Simulator(model, continuous_collision=True, baumgarte=0.0)
    q, v = falling(model)
    for _ in range(2):
        q, v = sim.step(q, v)
    assert np.max(np.abs(v[:6])) < 1e-12
    assert q[2] == pytest.approx(0.1 - 5e-6, abs=1e-12)


@pytest.mark.parametrize("seed", [42, 49, 65])
def test_scenes(seed):
    """Bodies that rest beside others that hit the ground."""
    case = build(seed, "split cone")
    random = np.random.default_rng(seed)
    columns, flagged, sim = compare(
        case.model, case.q, case.v, case.u, case.tau, random, memory=case.memory, **case.options
    )
    assert not flagged and sim.impacts
    assert not [column for column in columns if column.wrong]
