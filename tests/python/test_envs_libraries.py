"""Libraries for reinforcement learning take the environments: stable-baselines3 (extra `sb3`), RSL-RL (`rsl-rl`), skrl, TorchRL.

What skrl, TorchRL and a loop of CleanRL's kind learn on them: test_envs_trained.py."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import coulomb.envs  # noqa: F401

pytestmark = pytest.mark.filterwarnings("ignore")
NAME = "coulomb/Hopper-v5"
LENGTH = 20


def test_stable_baselines_sees_the_same_as_from_single_environments():
    """Against its own DummyVecEnv of single environments, bit for bit: observations, rewards, ends, infos."""
    pytest.importorskip("stable_baselines3", reason="pip install 'coulomb[sb3]'")
    from stable_baselines3.common.vec_env import DummyVecEnv

    from coulomb.envs.sb3 import VecEnv

    envs = VecEnv(NAME, num_envs=3, max_episode_steps=LENGTH)
    reference = DummyVecEnv([lambda: gymnasium.make(NAME, max_episode_steps=LENGTH)] * 3)
    assert envs.observation_space == reference.observation_space and envs.action_space == reference.action_space
    envs.seed(5), reference.seed(5)
    assert np.array_equal(envs.reset(), reference.reset())

    envs.action_space.seed(0)
    ends = 0
    for _ in range(3 * LENGTH):
        actions = np.stack([envs.action_space.sample() for _ in range(3)])
        mine, its = envs.step(actions), reference.step(actions)
        for left, right in zip(mine[:2], its[:2]):
            assert left == pytest.approx(right, rel=1e-6)  # rewards there are float32
        assert np.array_equal(mine[0], its[0]) and np.array_equal(mine[2], its[2])
        for row, (left, right) in enumerate(zip(mine[3], its[3])):
            assert set(left) == set(right), row
            assert all(np.array_equal(left[key], right[key]) for key in right)
        assert all(set(left) == set(right) for left, right in zip(envs.reset_infos, reference.reset_infos))
        ends += mine[2].sum()
    assert ends >= 9
    assert envs.get_attr("render_mode") == [None] * 3 and envs.env_is_wrapped(gymnasium.Wrapper) == [False] * 3

    late = gymnasium.make_vec(NAME, num_envs=2, autoreset_mode=AutoresetMode.NEXT_STEP)
    with pytest.raises(ValueError, match="autoreset_mode"):
        VecEnv(late)


def test_stable_baselines_trains(one_thread):
    """A short run of PPO through its own wrappers; episodes are counted."""
    pytest.importorskip("stable_baselines3", reason="pip install 'coulomb[sb3]'")
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

    from coulomb.envs.sb3 import VecEnv

    envs = VecNormalize(VecMonitor(VecEnv(NAME, num_envs=4, max_episode_steps=LENGTH)))
    learner = PPO("MlpPolicy", envs, n_steps=64, batch_size=128, n_epochs=1, seed=0, device="cpu")
    learner.learn(512)
    episodes = learner.ep_info_buffer
    assert len(episodes) >= 20 and max(episode["l"] for episode in episodes) == LENGTH


def test_rsl_rl_trains(one_thread):
    pytest.importorskip("rsl_rl.runners", reason="pip install 'coulomb[rsl-rl]'")
    import torch
    from rsl_rl.runners import OnPolicyRunner

    from coulomb.envs.rsl_rl import VecEnv

    envs = VecEnv(NAME, num_envs=4, seed=0, max_episode_steps=LENGTH)
    network = {"class_name": "MLPModel", "hidden_dims": [16], "obs_normalization": True}
    configuration = {
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "num_steps_per_env": 16,
        "save_interval": 1000,
        "actor": {**network, "distribution_cfg": {"class_name": "GaussianDistribution"}},
        "critic": network,
        "algorithm": {"class_name": "PPO"},
    }
    runner = OnPolicyRunner(envs, configuration, log_dir=None)
    runner.learn(2, init_at_random_ep_len=True)

    # The lengths of episodes can be set: those that are nearly over are then truncated, and bootstrapped.
    envs.reset()
    envs.episode_length_buf = torch.tensor([0, LENGTH - 1, 0, LENGTH - 1])
    observations, rewards, dones, extras = envs.step(torch.zeros(4, 3))
    assert dones.tolist() == [0, 1, 0, 1] and extras["time_outs"].tolist() == [False, True, False, True]
    assert envs.episode_length_buf.tolist() == [1, 0, 1, 0]
    assert observations["policy"].shape == (4, 11) and observations["policy"].dtype == torch.float32
    assert rewards.shape == (4,) and extras["log"]["/reward_survive"] == 1.0


def test_vector_wrappers_of_gymnasium():
    """Those that learners use most; some refuse the mode SameStep by themselves."""
    from gymnasium.wrappers.vector import NormalizeObservation, NormalizeReward, RecordEpisodeStatistics

    envs = gymnasium.make_vec(NAME, num_envs=4, max_episode_steps=LENGTH)
    envs = NormalizeReward(NormalizeObservation(RecordEpisodeStatistics(envs)))
    envs.reset(seed=0)
    episodes = 0
    for _ in range(3 * LENGTH):
        *_, infos = envs.step(envs.action_space.sample())
        episodes += infos.get("_episode", np.zeros(4, bool)).sum()
    assert episodes >= 8


def test_skrl_takes_the_vector_environment():
    """Its wrapper, which resets once and relies on autoreset."""
    skrl = pytest.importorskip("skrl", reason="pip install 'coulomb[skrl]'")
    import torch
    from skrl.envs.wrappers.torch import wrap_env

    skrl.logger.setLevel("ERROR")
    envs = gymnasium.make_vec(NAME, num_envs=4, max_episode_steps=LENGTH)
    wrapped = wrap_env(envs)
    observations, _ = wrapped.reset()
    assert observations.shape == (4, 11)
    ends = 0
    for _ in range(2 * LENGTH):
        observations, rewards, terminated, truncated, _ = wrapped.step(torch.zeros(4, 3))
        ends += int((terminated | truncated).sum())
    assert rewards.shape == (4, 1) and observations.shape == (4, 11) and ends >= 4


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_torchrl_takes_the_vector_environment(mode):
    """Its GymWrapper and its own check; observations before and after a reset are those of the two episodes."""
    pytest.importorskip("torchrl", reason="pip install 'coulomb[torchrl]'")
    from torchrl.envs import GymWrapper
    from torchrl.envs.utils import check_env_specs

    envs = GymWrapper(gymnasium.make_vec(NAME, num_envs=4, max_episode_steps=LENGTH, autoreset_mode=mode))
    check_env_specs(envs)
    steps = envs.rollout(3 * LENGTH, break_when_any_done=False)
    done = steps["next", "done"][..., 0]
    assert steps.shape == (4, 3 * LENGTH) and done.sum() >= 8
    same = (steps["next", "observation"][:, :-1] == steps["observation"][:, 1:]).all(-1)
    assert (same == ~done[:, :-1]).all()
