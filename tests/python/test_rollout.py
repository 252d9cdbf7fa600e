"""Rollouts: the shape of their arrays, what they refuse and that refusing changes nothing; memories of other models."""

import numpy as np
import pytest

import coulomb


def test_rollout_shapes_with_one_coordinate():
    model = coulomb.load("<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>")
    trajectory = coulomb.Simulator(model).rollout([0.0], [0.0], steps=3)
    assert trajectory.q.shape == (4, 1) and trajectory.v.shape == (4, 1)


ARM = (
    "<mujoco><worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody>"
    "<actuator><motor joint='j'/></actuator></mujoco>"
)


@pytest.mark.parametrize(
    "arguments, why",
    [
        (([np.nan], [0.0], [[0.0]]), r"q0\[0\]"),
        (([0.0], [np.inf], [[0.0]]), r"v0\[0\] is inf"),
        (([0.0], [0.0], [[0.0], [np.nan]]), r"U\[1, 0\] is nan"),
    ],
)
def test_a_refused_rollout_names_the_element_and_changes_nothing(arguments, why):
    model = coulomb.load(ARM)
    sim = coulomb.Simulator(model)
    sim.step([0.1], [0.2], [0.3])
    status, A = repr(sim.status), sim.derivatives().A.copy()
    with pytest.raises(ValueError, match="^" + why):
        sim.rollout(*arguments)
    assert repr(sim.status) == status and np.array_equal(sim.derivatives().A, A)
    with pytest.raises(ValueError, match="steps: got -1"):
        sim.rollout([0.0], [0.0], steps=-1)
    assert repr(sim.status) == status


def stack(*sizes):
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    for i, size in enumerate(sizes):
        scene.add_box((size,) * 3, mass=1.0, position=(0, 0, 0.1 + 0.2 * i))
    return scene.build()


def test_a_memory_of_another_model_is_refused():
    two, three = coulomb.Simulator(stack(0.2, 0.2)), coulomb.Simulator(stack(0.2, 0.2, 0.2))
    three.step(*three.model.neutral())
    two.step(*two.model.neutral())
    with pytest.raises(ValueError, match="^memory: belongs to a model of another structure"):
        two.memory = three.memory
    two.memory = coulomb.Simulator(stack(0.2, 0.2)).memory  # another simulator of such a model is no other model
    assert two.status.converged


def test_a_memory_without_the_overlapping_pairs_is_another_one():
    scene = coulomb.Scene()
    scene.add_mjcf(
        "<mujoco><worldbody><body><freejoint/><geom size='.1'/><body pos='.3 0 0'><joint range='-5 5'/><geom size='.1'/>"
        "<body pos='-.25 0 0'><joint/><geom size='.1'/></body></body></body></worldbody></mujoco>"
    )
    model = scene.build()
    every, fewer = coulomb.Simulator(model, exclude_neutral_overlaps=False), coulomb.Simulator(model)
    assert every.model.num_pairs > fewer.model.num_pairs
    with pytest.raises(ValueError, match="^memory: "):
        fewer.memory = every.memory
