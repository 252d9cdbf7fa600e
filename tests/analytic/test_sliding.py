"""A block and Coulomb's law: rest and slide on a slope, slide to a stop, pushed, and pushed into another block."""

import math

import numpy as np
import pytest

import coulomb
from scenes.basics import GRAVITY, Slope, force, semi_implicit_distance, simulate


def block_on_slope(degrees, friction):
    slope = Slope(degrees)
    scene = slope.scene(friction)
    scene.add_box((0.2, 0.2, 0.1), mass=1.0, position=0.05 * slope.normal, quaternion=slope.quaternion, name="block")
    return slope, scene.build()


def block_on_floor(friction, size=(0.2, 0.2, 0.1), mass=1.0):
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY))
    scene.add_ground(friction=friction)
    scene.add_box(size, mass=mass, position=(0, 0, size[2] / 2), name="block")
    return scene.build()


@pytest.mark.parametrize(
    ("degrees", "friction", "tangential", "normal"), [(20, 0.5, 3.355218, 9.218385), (25, 0.6, 4.145885, 8.890880)]
)
def test_a_block_rests_on_a_slope(degrees, friction, tangential, normal):
    slope, model = block_on_slope(degrees, friction)
    sim, trajectory = simulate(model, 10.0)
    assert np.abs(trajectory.q[-1] - trajectory.q[0]).max() < 1e-8
    f = force(sim, on="block")
    assert -f @ slope.down == pytest.approx(tangential, rel=1e-6)  # m g sin
    assert f @ slope.normal == pytest.approx(normal, rel=1e-6)  # m g cos


@pytest.mark.parametrize(("degrees", "friction"), [(30, 0.2), (40, 0.5)])
def test_a_block_slides_down_a_slope(degrees, friction):
    slope, model = block_on_slope(degrees, friction)
    a = GRAVITY * (math.sin(slope.angle) - friction * math.cos(slope.angle))
    if degrees == 30:
        assert a == pytest.approx(3.205858, abs=1e-6)
    _, trajectory = simulate(model, 1.0)
    moved = trajectory.q[-1, :3] - trajectory.q[0, :3]
    assert moved @ slope.down == pytest.approx(a * 0.5005, abs=1e-6)  # the step's own sum: 1.604532 for the first
    assert moved @ slope.normal == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("heading", [0.0, 45.0, 110.0])
@pytest.mark.parametrize(("speed", "friction"), [(2.0, 0.3), (1.0, 0.1)])
def test_a_slide_stops_where_it_should_in_any_direction(speed, friction, heading):
    along = np.array([math.cos(math.radians(heading)), math.sin(math.radians(heading)), 0])
    model = block_on_floor(friction)
    _, trajectory = simulate(model, 1.2, v=[*(speed * along), 0, 0, 0])
    moved = trajectory.q[-1, :3]
    expected = semi_implicit_distance(speed, friction * GRAVITY, 1e-3)
    if (speed, friction) == (2.0, 0.3):
        assert expected == pytest.approx(0.678579, abs=1e-6)  # continuous time: v^2 / (2 mu g) = .679579
    assert moved @ along == pytest.approx(expected, abs=1e-6)
    assert moved @ np.array([-along[1], along[0], 0]) == pytest.approx(0, abs=1e-8)
    assert np.abs(trajectory.v[-1]).max() < 1e-9


def test_the_gradient_of_the_stopping_distance():
    """d(distance)/d(initial speed) = v / (mu g), by reverse mode through the whole slide."""
    model = block_on_floor(0.3)
    sim = coulomb.Simulator(model, timestep=1e-3)
    q, v = model.neutral()
    v[0] = 2.0
    states = []
    for _ in range(750):
        states.append((q, v, sim.memory))
        q, v = sim.step(q, v)
    gq, gv = np.zeros(6), np.zeros(6)
    gq[0] = 1.0
    for q, v, memory in reversed(states):
        sim.memory = memory
        sim.step(q, v)
        g = sim.vjp(gq, gv)
        gq, gv = g.q, g.v
    assert gv[0] == pytest.approx(0.679579, rel=2e-3)


@pytest.mark.parametrize(("share", "acceleration"), [(0.99, 0.0), (1.01, 0.02943)])
@pytest.mark.parametrize("heading", [0.0, 30.0])
def test_a_push_moves_a_block_only_beyond_the_cone(share, acceleration, heading):
    model = block_on_floor(0.3)
    sim = coulomb.Simulator(model, timestep=1e-3)
    along = np.array([math.cos(math.radians(heading)), math.sin(math.radians(heading)), 0])
    wrench = np.zeros((2, 6))
    wrench[1, :3] = share * 0.3 * GRAVITY * along
    q, v = model.neutral()
    for _ in range(1000):
        q, v = sim.step(q, v, fext=wrench)
        assert sim.status.converged
    assert v[:3] @ along == pytest.approx(acceleration, abs=1e-6)


@pytest.mark.parametrize(("push", "masses", "friction"), [(20.0, (1.0, 3.0), 0.2), (30.0, (2.0, 1.0), 0.4)])
def test_a_pushed_block_pushes_another(push, masses, friction):
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY))
    scene.add_ground(friction=friction)
    for i, mass in enumerate(masses):  # smooth blocks on a rough floor: of two coefficients the larger counts
        scene.add_box((0.2, 0.2, 0.1), mass=mass, position=(0.2 * i, 0, 0.05), friction=0, name=f"block{i}")
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=1e-3)
    wrench = np.zeros((3, 6))
    wrench[1, 0] = push
    q, v = model.neutral()
    for _ in range(200):
        q, v = sim.step(q, v, fext=wrench)
        assert sim.status.converged
    a = push / sum(masses) - friction * GRAVITY
    assert v[0] / 0.2 == pytest.approx(a, rel=1e-6) and v[6] / 0.2 == pytest.approx(a, rel=1e-6)
    between = force(sim, on="block1", by="block0")[0]
    assert between == pytest.approx(push * masses[1] / sum(masses), rel=1e-6)  # 15 N for the first
