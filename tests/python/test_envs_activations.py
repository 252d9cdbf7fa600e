"""Environments and worlds of a model with activations: actions are controls, activations are a part of the state."""

import numpy as np
import pytest

import coulomb

pytest.importorskip("gymnasium")
from coulomb.envs import Task, VectorEnv  # noqa: E402

ARM = """<mujoco><option timestep="0.005"/><worldbody>
  <body><joint name="a" axis="0 1 0" armature=".05"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" mass="1"/></body>
</worldbody><actuator>
  <general name="filter" joint="a" dyntype="filter" dynprm=".03" gainprm="2" ctrlrange="-1 1" ctrllimited="true"/>
  <general name="integrator" joint="a" dyntype="integrator" ctrlrange="-3 3" ctrllimited="true" actlimited="true" actrange="-.1 .2"/>
</actuator></mujoco>"""


class Arm(Task):
    episode_length = 6

    def __init__(self):
        super().__init__(coulomb.load(ARM), 0.005, 4)

    def draw(self, random):
        return random.uniform(-0.1, 0.1, 1), np.zeros(1), np.zeros(0)

    def observe(self, state):
        if isinstance(state.q, np.ndarray):
            return np.concatenate([state.q, state.v, state.activation], axis=1)
        import torch

        return torch.cat([state.q, state.v, state.activation], dim=1)

    def reward(self, before, after):
        return -(after.q[:, 0] ** 2) - after.activation[:, 0] ** 2, {}


def test_an_environment_is_its_steps():
    task = Arm()
    assert (task.action_low == [-1, -3]).all() and (task.action_high == [1, 3]).all()
    env = VectorEnv(3, task=task)
    observation = env.reset(seed=0)[0]
    assert not env.state.activation.any()
    state = env.state.q.copy(), env.state.v.copy(), np.zeros((3, 2))
    sim = coulomb.ActivatedSimulator(coulomb.BatchSimulator(task.model, 3, 1, timestep=task.timestep))
    rng = np.random.default_rng(0)
    for _ in range(4):
        actions = rng.uniform(task.action_low, task.action_high, (3, 2))
        observation = env.step(actions)[0]
        for _ in range(task.frame_skip):
            state = sim.step(*state, actions)
        assert observation == pytest.approx(np.concatenate(state, axis=1), rel=1e-6, abs=1e-7)
        assert (env.state.activation == state[2]).all() and state[2].any()
    env.reset(seed=0)
    assert not env.state.activation.any()


def test_worlds_have_the_gradient_of_activations():
    torch = pytest.importorskip("torch")
    from coulomb.learn.worlds import Worlds

    task, n = Arm(), 2
    rng = np.random.default_rng(1)
    actions = torch.tensor(rng.uniform(-0.5, 0.5, (3, n, 2)), requires_grad=True)

    def total(actions):
        worlds = Worlds(task, n, seed=0, num_threads=1)
        return sum(worlds.step(a).reward.sum() for a in actions), worlds

    value, worlds = total(actions)
    (g,) = torch.autograd.grad(value, actions)
    d = torch.tensor(rng.normal(size=actions.shape))
    ends = [total(actions.detach() + e * d)[0].item() for e in (1e-6, -1e-6)]
    assert (g * d).sum().item() == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)

    # They go on as they were saved, and episodes begin with zeros.
    worlds.detach()
    saved = worlds.saved()
    other = Worlds(task, n, seed=5, num_threads=1)
    other.restore(saved)
    for _ in range(2):
        assert (worlds.step(actions[0].detach()).reward == other.step(actions[0].detach()).reward).all()
    while not worlds.step(actions[0].detach()).ended.all():
        assert worlds.state.activation.any()
    assert not worlds.state.activation.any()


def test_models_without_activations_have_none():
    from coulomb.envs import IDS

    env = VectorEnv(2, task=IDS["coulomb/HalfCheetah-v5"][0])
    env.reset(seed=0)
    assert env.state.activation is None and env.simulation.activated is None
