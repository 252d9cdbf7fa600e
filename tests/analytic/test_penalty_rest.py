"""Penalty contact at rest in every direction: forces that cancel one another are known to their own rounding; and the price of a step without solution."""

import numpy as np
import pytest

import coulomb

STEPPERS = ["semi_implicit", "bdf1", "bdf2"]
TURNS = [((0, 0, 1), 0.0), ((1, 2, 3), 0.5), ((1, 2, 3), 1.3), ((1, 0, 0), 0.7), ((-2, 1, 0.3), 2.9)]


class Turned:
    """The world, turned and moved as a whole."""

    def __init__(self, axis, angle, origin=(0, 0, 0)):
        axis = np.array(axis, float) / np.linalg.norm(axis)
        self.quaternion = np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis)])
        self.origin = np.array(origin, float)

    def along(self, x):
        w, u = self.quaternion[0], self.quaternion[1:]
        t = 2 * np.cross(u, x)
        return np.array(x, float) + w * t + np.cross(u, t)

    def at(self, x):
        return self.origin + self.along(x)


def boxes_on_a_plane(turned, sizes):
    scene = coulomb.Scene(gravity=turned.along((0, 0, -9.81)))
    up = turned.along((0, 0, 1))
    scene.add_ground(normal=up, height=float(up @ turned.origin), friction=0.6)
    height = 0.0
    for size in sizes:
        scene.add_box(size, mass=1.0, position=turned.at((0, 0, height + size[2] / 2)), quaternion=turned.quaternion)
        height += size[2]
    return scene.build()


def check_rest(model, stepper):
    # It starts where corners just touch, or do not; then it settles.
    sim = coulomb.Simulator(model, timestep=2e-3, contact="penalty", stepper=stepper)
    q, v = model.neutral()
    iterations = []
    for _ in range(150):
        q, v = sim.step(q, v)
        assert sim.status.converged, sim.status
        iterations.append(sim.status.iterations)
    assert iterations[0] <= 150 and max(iterations[1:]) <= 20, iterations
    assert sum(iterations[-50:]) <= 150, iterations
    assert np.abs(v).max() < 1e-3


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("turn", TURNS)
def test_a_box_at_rest_on_a_turned_plane(turn, stepper):
    check_rest(boxes_on_a_plane(Turned(*turn), [(0.1, 0.1, 0.1)]), stepper)


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("turn", TURNS)
def test_a_flat_box_far_from_the_origin(turn, stepper):
    check_rest(boxes_on_a_plane(Turned(*turn, origin=(30, -50, 20)), [(0.3, 0.2, 0.04)]), stepper)


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("turn", TURNS)
def test_boxes_on_one_another(turn, stepper):
    check_rest(boxes_on_a_plane(Turned(*turn), [(0.2, 0.2, 0.1), (0.1, 0.12, 0.1)]), stepper)


@pytest.mark.parametrize("stepper", ["semi_implicit", "bdf2"])
def test_a_step_without_solution_costs_a_bounded_number_of_iterations(stepper):
    # Sides of the same width that slide along one another: crossings of nearly parallel edges run from end to end.
    random = np.random.default_rng(0)
    scene = coulomb.Scene(gravity=(*(2 * random.normal(size=2)), -9))
    scene.add_ground(friction=0.8)
    for k in range(3):
        mass = 0.2 * 10 ** random.uniform(-1, 1)
        scene.add_box((0.04, 0.04, 0.08), mass=mass, position=(0, 0, 0.04 + 0.08 * k), friction=0.3)
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=1e-3, contact="penalty", stepper=stepper)
    q, v = model.neutral()
    for _ in range(100):
        q, v = sim.step(q, v)
        assert sim.status.iterations <= 600, sim.status


@pytest.mark.parametrize("stepper", ["semi_implicit", "bdf1", "bdf2"])
def test_a_stack_of_equal_boxes_settles_without_parts(stepper):
    """Their sides lie in one plane but for rounding: outlines that lose a corner where edges all but coincide have forces that jump there."""
    random = np.random.default_rng(0)
    for _ in range(40):
        world = Turned(random.normal(size=3), random.uniform(0, 6))
        scene = coulomb.Scene(gravity=world.along((0, 0, -9.81)))
        place = lambda z, world=world: dict(position=world.at((0, 0, 200 + z)), quaternion=world.quaternion)  # noqa: E731
        scene.add_box((4, 4, 0.2), fixed=True, friction=0.5, **place(-0.1))
        for k in range(3):
            scene.add_box((0.2, 0.3, 0.1), mass=1.0, friction=1.0, **place(0.05 + 0.1 * k))
        model = scene.build()
        sim = coulomb.Simulator(model, timestep=1e-3, contact="penalty", stepper=stepper)
        q, v = model.neutral()
        for _ in range(5):
            q, v = sim.step(q, v)
            assert sim.status.converged and "parts" not in sim.status.reason
            assert sim.status.iterations < 25
