"""Flat sides whose borders coincide, under penalty contact: equal boxes on each other, prisms, boxes of one width.

A corner on the border of the other face moves with its own body if it moves inwards and with the other one's side if it moves outwards.
Together they are smooth: a shift moves the middle of what two equal faces have in common by half as much, to either side.
"""

import math

import numpy as np
import pytest

import coulomb

DEPTH = 2e-5
HEXAGON = [(0.05 * math.cos(t), 0.05 * math.sin(t)) for t in np.arange(6) * math.pi / 3]


def add(scene, kind, height, **how):
    if kind == "prism":
        scene.add_mesh([(x, y, z) for x, y in HEXAGON for z in (-0.05, 0.05)], position=(0, 0, height), **how)
    else:
        scene.add_box({"box": (0.1, 0.08, 0.1), "longer": (0.16, 0.08, 0.1)}[kind], position=(0, 0, height), **how)


PAIRS = [("box", "box"), ("longer", "box"), ("box", "longer"), ("prism", "prism")]


def stacked(lower, upper, moving=False):
    scene = coulomb.Scene(timestep=1e-3)
    if moving:
        scene.add_ground(friction=0.6)
        add(scene, lower, 0.05 - DEPTH, mass=1.0, name="lower", friction=0.6)
    else:
        add(scene, lower, 0.05 - DEPTH, fixed=True, name="lower", friction=0.6)
    add(scene, upper, 0.15 - 2 * DEPTH, mass=1.0, name="upper", friction=0.6)
    return scene.build()


def simulator(model, stepper):
    return coulomb.Simulator(
        model, contact="penalty", stepper=stepper, contact_stiffness=1e4, contact_damping=1e4, tolerance=1e-13
    )


@pytest.mark.parametrize("stepper", ["semi_implicit", "bdf1"])
@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("lower, upper", PAIRS)
def test_columns_are_the_slopes_on_both_sides(lower, upper, moving, stepper):
    model = stacked(lower, upper, moving)
    sim = simulator(model, stepper)
    q, v = model.neutral()
    v[-4] = -0.005
    reference = sim.step(q, v)[1]
    assert sim.status.converged
    columns = sim.derivatives().A[model.nv :, : model.nv]
    size = np.abs(columns).max()
    assert np.abs(columns[:, -6:-4]).max() > 1e-4 * size

    # Along the sides and tilts; at a turn about the vertical outlines get corners, which has no single slope.
    for j in range(model.nv):
        if j % 6 == 5:
            continue
        for step in (1e-7, -1e-7):
            change = np.zeros(model.nv)
            change[j] = step
            sim.reset()
            slope = (sim.step(model.integrate(q, change), v)[1] - reference) / step
            assert np.abs(slope - columns[:, j]).max() < 2e-5 * size, (j, step)


@pytest.mark.parametrize("lower, upper", PAIRS)
def test_forward_and_reverse_and_the_remainder(lower, upper):
    model = stacked(lower, upper, moving=True)
    sim = simulator(model, "semi_implicit")
    random = np.random.default_rng(1)
    q, v = model.neutral()
    v[-4] = -0.005
    reference = sim.step(q, v)[1]
    dq, dv, weights = random.normal(size=(3, model.nv))
    dq[5::6] = 0
    _, forward = sim.jvp(dq, dv)
    backward = sim.vjp(np.zeros(model.nv), weights)
    assert weights @ forward == pytest.approx(backward.q @ dq + backward.v @ dv, rel=1e-11)

    # The remainder of the first order falls with the square of the step.
    remainders = []
    for step in (4e-7, 2e-7, 1e-7):
        sim.reset()
        moved = sim.step(model.integrate(q, step * dq), v + step * dv)[1]
        remainders.append(np.abs(moved - reference - step * forward).max())
    assert remainders[1] < 0.3 * remainders[0] and remainders[2] < 0.3 * remainders[1]


@pytest.mark.parametrize("lower, upper", PAIRS)
def test_the_force_is_that_beside_the_border(lower, upper):
    model = stacked(lower, upper)
    sim = simulator(model, "semi_implicit")
    q, v = model.neutral()
    exact = sim.step(q, v)[1]
    for shift in (1e-10, -1e-10):
        beside = q.copy()
        beside[:2] += shift
        sim.reset()
        assert np.abs(sim.step(beside, v)[1] - exact).max() < 1e-7


@pytest.mark.parametrize("name", ["size/upper", "size/lower", "geometry_placement/upper"])
def test_parameters_have_the_mean_of_both_sides(name):
    model = stacked("box", "box")
    sim = simulator(model, "semi_implicit")
    q, v = model.neutral()
    sim.step(q, v)
    columns = sim.derivatives(wrt=[name])[name][model.nv :]
    value = model.parameters()[name].value
    differences = np.empty_like(columns)
    for k in range(value.size):
        ends = []
        for step in (1e-7, -1e-7):
            moved = value.copy()
            moved.flat[k] += step
            other = simulator(model.with_parameters({name: moved}), "semi_implicit")
            ends.append(other.step(q, v)[1])
        differences[:, k] = (ends[0] - ends[1]) / 2e-7
    assert np.abs(columns - differences).max() < 1e-4 * np.abs(columns).max()
