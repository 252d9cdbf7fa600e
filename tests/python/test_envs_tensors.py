"""Tasks read tensors as they read arrays: the same numbers, and gradients that differences confirm."""

import numpy as np
import pytest
from envs_here import HERE

from coulomb.envs import IDS, State, VectorEnv

torch = pytest.importorskip("torch")


def some_steps(name):
    """(task, state before, state after) in the middle of episodes."""
    envs = VectorEnv(4, task=IDS[name][0])
    envs.reset(seed=0)
    envs.action_space.seed(0)
    for _ in range(8):
        before = envs.state
        envs.step(envs.action_space.sample())
    return envs.task, before, envs.state


def tensors(state):
    tensor = lambda x: torch.tensor(x, dtype=torch.float64, requires_grad=True)  # noqa: E731
    readings = {name: tensor(value) for name, value in state.readings.items()}
    return State(tensor(state.q), tensor(state.v), tensor(state.action), tensor(state.goal), readings)


@pytest.mark.parametrize("name", HERE)
def test_the_same_numbers(name):
    task, before, after = some_steps(name)
    left, right = tensors(before), tensors(after)
    assert task.observe(right).detach().numpy() == pytest.approx(task.observe(after), rel=1e-12, abs=1e-12)
    reward, terms = task.reward(before, after)
    reward_t, terms_t = task.reward(left, right)
    assert reward_t.detach().numpy() == pytest.approx(reward, rel=1e-12, abs=1e-12)
    assert set(terms) == set(terms_t)
    assert (task.terminated(right).numpy() == task.terminated(after)).all()
    assert task.control(right.action).detach().numpy() == pytest.approx(task.control(after.action), rel=1e-12)


def along(parts, directions, scale):
    moved = [part + scale * direction for part, direction in zip(parts[:3], directions)]
    return State(*moved, parts.goal, parts.readings)


@pytest.mark.parametrize("name", HERE)
def test_gradients_of_observations_and_rewards(name):
    """By q, v and action of the next state, readings held, along a random direction, against central differences."""
    task, before, after = some_steps(name)
    random = np.random.default_rng(1)
    directions = [random.normal(size=part.shape) for part in after[:3]]
    weights = random.normal(size=task.observe(after).shape)

    left, right = tensors(before), tensors(after)
    value = task.reward(left, right)[0].sum() + (torch.tensor(weights) * task.observe(right)).sum()
    gradients = torch.autograd.grad(value, [right.q, right.v, right.action], allow_unused=True)
    slope = sum((g.numpy() * d).sum() for g, d in zip(gradients, directions) if g is not None)

    def at(scale):
        state = along(after, directions, scale)
        return task.reward(before, state)[0].sum() + (weights * task.observe(state)).sum()

    h = 1e-6
    assert slope == pytest.approx((at(h) - at(-h)) / (2 * h), rel=1e-5, abs=1e-4)
