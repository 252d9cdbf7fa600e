"""Split steps of pairs that overlap a little: where a time of impact moves with the state, and where it does not."""

import numpy as np
import pytest
from step_columns import compare

import coulomb
from scenes.random_scenes import build

TIMESTEP = 5e-3


def balls(*heights, restitution=0.0):
    """Side by side, so high above the ground."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.0, restitution=restitution)
    for i, height in enumerate(heights):
        scene.add_sphere(0.1, mass=1.0 + i, position=(0.5 * i, 0, 0.1 + height), name=f"ball {i}")
    return scene.build()


def derivative_and_differences(model, v, dof):
    """dz+/dz, dvz+/dz of the ball of this dof; h so small that nothing else comes into the step."""
    sim = coulomb.Simulator(model, timestep=TIMESTEP, continuous_collision=True)
    q = model.neutral()[0]
    sim.step(q, v)
    A = sim.derivatives().A
    w = np.eye(2 * model.nv)[[dof, model.nv + dof]]
    reverse = np.array([sim.vjp(*np.split(row, 2)).q[dof] for row in w])
    ends = []
    for h in (1e-9, -1e-9):
        q1, v1 = sim.step(model.integrate(q, h * np.eye(model.nv)[dof]), v)
        ends.append([q1[dof + dof // 6], v1[dof]])
    return w @ A[:, dof], reverse, (np.array(ends[0]) - ends[1]) / 2e-9


def test_what_gravity_alone_cannot_have_brought_in():
    """Going back along its path the ball turns before it leaves the ground: it was in it, and is let out as it is."""
    model = balls(-1e-5)
    v = np.zeros(6)
    v[2] = -6e-3  # back in time it rises by 2e-6
    forward, reverse, differences = derivative_and_differences(model, v, 2)
    assert 0.5 < differences[0] < 1
    assert forward == pytest.approx(differences, abs=1e-5)
    assert reverse == pytest.approx(forward, abs=1e-10)


def test_beside_one_that_hits():
    """The first ball hits at time 0; the one that lies in the ground beside it has no time of its own."""
    model = balls(0.0, -1e-5)
    v = np.zeros(12)
    v[2], v[8] = -1.0, -6e-3
    forward, reverse, differences = derivative_and_differences(model, v, 8)
    assert 0.5 < differences[0] < 1
    assert forward == pytest.approx(differences, abs=1e-5)
    assert reverse == pytest.approx(forward, abs=1e-10)


def test_what_leaves_an_overlap_and_comes_back_into_it():
    """Thrown up within its overlap, not held, and back after 2 v/g: the time moves with speed and gravity as that of any other impact."""
    model = balls(-9.505e-6).with_parameters({"timestep": TIMESTEP})
    q, v = model.neutral()
    v[:3] = 1.0, 0.5, 0.0105
    random = np.random.default_rng(0)
    columns, flagged, sim = compare(
        model, q, v, np.zeros(0), np.zeros(6), random, parameters=20, continuous_collision=True
    )
    assert [impact.time for impact in sim.impacts] == pytest.approx([2 * v[2] / 9.81], rel=1e-4)
    assert not flagged
    assert not [column for column in columns if column.wrong]
    assert sum(column.known for column in columns) > 20


SINKING = [
    ("split cone", 9),
    ("split cone", 15),
    ("split cone", 338),
    ("split boxed", 160),
    ("split cone", 232),
    ("split boxed", 207),
    ("split boxed", 208),
]


@pytest.mark.parametrize(("law", "seed"), SINKING)
def test_scenes(law, seed):
    """What is at its tolerance and sinks: the depth where that is an impact goes with the depth where it started. Others in scenes as above."""
    case = build(seed, law)
    random = np.random.default_rng(seed)
    columns, flagged, sim = compare(
        case.model, case.q, case.v, case.u, case.tau, random, parameters=8, memory=case.memory, **case.options
    )
    assert not flagged
    assert not [column for column in columns if column.wrong]
    assert sum(column.known for column in columns) > 20

    # Reverse as forward, parameters too.
    names = [str(name) for name in random.permutation(list(case.model.parameters()))[:20]]
    sim.step(case.q, case.v, case.u, tau=case.tau)
    d = sim.derivatives(wrt=names)
    w = random.normal(size=2 * case.model.nv)
    g = sim.vjp(*np.split(w, 2), wrt=names)
    forward = np.r_[w @ d.A, w @ d.B, w @ d.B_tau, np.concatenate([np.ravel(w @ d[name]) for name in names])]
    reverse = np.r_[g.q, g.v, g.u, g.tau, np.concatenate([np.ravel(g[name]) for name in names])]
    assert np.max(np.abs(forward - reverse)) <= 1e-8 * (1 + np.max(np.abs(forward)))
