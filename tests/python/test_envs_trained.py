"""PPO of CleanRL's kind, of skrl (extra `skrl`) and of TorchRL (`torchrl`) learns on the environments as they are: by their wrappers, no adapter of ours.

What there is to learn is quick to learn: torque costs, and nothing else pays. A policy that begins with a standard deviation of 1 has to become
quieter; it does not where rewards, observations or ends of episodes are mixed up on their way.
"""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import coulomb.envs  # noqa: F401

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore")
NAME = "coulomb/HalfCheetah-v5"
LENGTH = 20
COSTLY = {"max_episode_steps": LENGTH, "forward_reward_weight": 0, "ctrl_cost_weight": 1}
ENVS, STEPS, UPDATES, EPOCHS, MINIBATCHES = 8, 64, 15, 4, 4
RATE, GAMMA = 1e-2, 0.9


@pytest.fixture(autouse=True)
def the_same_run_every_time(one_thread):
    torch.manual_seed(0)


def layers(inputs, outputs):
    return torch.nn.Sequential(torch.nn.Linear(inputs, 32), torch.nn.Tanh(), torch.nn.Linear(32, outputs))


# --- in the manner of CleanRL: single environments, each in a stack of wrappers ----------------------------------------------------


def wrapped():
    """What CleanRL's ppo_continuous_action.py makes of an id; this one imports coulomb.envs itself."""
    from gymnasium import wrappers

    env = gymnasium.make(f"coulomb.envs:{NAME}", **COSTLY)
    env = wrappers.RecordEpisodeStatistics(wrappers.FlattenObservation(env))
    env = wrappers.NormalizeObservation(wrappers.ClipAction(env))
    env = wrappers.TransformObservation(env, lambda o: np.clip(o, -10, 10), env.observation_space)
    env = wrappers.NormalizeReward(env, gamma=GAMMA)
    return wrappers.TransformReward(env, lambda r: np.clip(r, -10, 10))


class Gaussian(torch.nn.Module):
    """The mean is a network of what is observed; the standard deviations are parameters."""

    def __init__(self, observed, acted, log_std=0.0):
        super().__init__()
        self.mean = layers(observed, acted)
        self.mean[-1].weight.data *= 0.01
        self.log_std = torch.nn.Parameter(torch.full((acted,), log_std))

    def forward(self, observation):
        mean = self.mean(observation)
        return mean, self.log_std.exp().expand_as(mean)


def advantages_of(rewards, values, dones, following):
    """(T, n), by TD(lambda); dones[t]: the step t ended an episode. following: the value of what is observed in the end."""
    advantages, later, value_after = torch.zeros_like(rewards), 0.0, following
    for t in reversed(range(len(rewards))):
        goes_on = 1 - dones[t]
        later = rewards[t] + GAMMA * value_after * goes_on - values[t] + GAMMA * 0.95 * goes_on * later
        advantages[t], value_after = later, values[t]
    return advantages


def improve(policy, value, optimizer, seen, acted, chance, advantages, returns):
    """Some epochs of the clipped objective, in minibatches."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(seen)).chunk(MINIBATCHES):
            ratio = (torch.distributions.Normal(*policy(seen[rows])).log_prob(acted[rows]).sum(-1) - chance[rows]).exp()
            advantage = (advantages[rows] - advantages[rows].mean()) / (advantages[rows].std() + 1e-8)
            gain = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
            miss = (value(seen[rows]).squeeze(-1) - returns[rows]).square().mean()
            optimizer.zero_grad()
            (0.5 * miss - gain).backward()
            torch.nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()


@torch.no_grad()
def played(envs, observation, policy, value, episodes):
    """STEPS of all environments: what is observed after them, and six tensors (STEPS, n, ...). Episodes that ended, as (return,
    length), are added to a list."""
    rows = []
    for _ in range(STEPS):
        distribution = torch.distributions.Normal(*policy(observation))
        action = distribution.sample()
        chance = distribution.log_prob(action).sum(-1)
        after, reward, terminated, truncated, infos = envs.step(action.numpy())
        done = torch.tensor(terminated | truncated).float()
        rows.append((observation, action, chance, value(observation).squeeze(-1), torch.tensor(reward).float(), done))
        observation = torch.tensor(after).float()
        if "final_info" in infos:
            over = infos["final_info"]["_episode"]
            episodes += zip(*(infos["final_info"]["episode"][key][over].tolist() for key in "rl"))
    return observation, [torch.stack(column) for column in zip(*rows)]


def test_a_loop_of_cleanrls_kind_learns():
    envs = gymnasium.vector.SyncVectorEnv([wrapped] * ENVS, autoreset_mode=AutoresetMode.SAME_STEP)
    observed, acted = envs.single_observation_space.shape[0], envs.single_action_space.shape[0]
    policy, value = Gaussian(observed, acted, log_std=-0.5), layers(observed, 1)
    optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=RATE)
    observation = torch.tensor(envs.reset(seed=1)[0]).float()
    episodes = []
    for _ in range(UPDATES):
        observation, (seen, acted, chance, values, rewards, dones) = played(envs, observation, policy, value, episodes)
        with torch.no_grad():
            advantages = advantages_of(rewards, values, dones, value(observation).squeeze(-1))
        data = (seen, acted, chance, advantages, advantages + values)
        improve(policy, value, optimizer, *(x.flatten(0, 1) for x in data))

    # Every episode was counted, with the return that the environment paid: at most six actions of 1 each step, after ClipAction.
    returns, lengths = np.array(episodes).T
    assert len(episodes) == ENVS * (UPDATES * STEPS // LENGTH) and (lengths == LENGTH).all()
    assert (returns <= 0).all() and (returns >= -6 * LENGTH).all()
    quarter = len(returns) // 4
    assert returns[-quarter:].mean() > 0.7 * returns[:quarter].mean()


# --- libraries that take the vector environment ------------------------------------------------------------------------------------


def test_skrl_learns():
    pytest.importorskip("skrl", reason="pip install 'coulomb[skrl]'")
    import skrl
    from skrl.agents.torch.ppo import PPO, PPO_CFG
    from skrl.envs.wrappers.torch import wrap_env
    from skrl.memories.torch import RandomMemory
    from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
    from skrl.trainers.torch import SequentialTrainer

    skrl.logger.setLevel("ERROR")

    class Policy(GaussianMixin, Model):
        def __init__(self, **spaces):
            Model.__init__(self, **spaces)
            GaussianMixin.__init__(self)
            self.net = layers(self.num_observations, self.num_actions)
            self.log_std = torch.nn.Parameter(torch.zeros(self.num_actions))

        def compute(self, inputs, role):
            return self.net(inputs["observations"]), {"log_std": self.log_std}

    class Value(DeterministicMixin, Model):
        def __init__(self, **spaces):
            Model.__init__(self, **spaces)
            DeterministicMixin.__init__(self)
            self.net = layers(self.num_observations, 1)

        def compute(self, inputs, role):
            return self.net(inputs["observations"]), {}

    envs = wrap_env(gymnasium.make_vec(NAME, num_envs=ENVS, **COSTLY))
    spaces = {
        "observation_space": envs.observation_space,
        "action_space": envs.action_space,
        "device": "cpu",
    }
    models = {"policy": Policy(**spaces), "value": Value(**spaces)}
    configuration = PPO_CFG(
        rollouts=STEPS, learning_epochs=EPOCHS, mini_batches=MINIBATCHES, learning_rate=RATE, discount_factor=GAMMA
    )
    configuration.experiment.write_interval = configuration.experiment.checkpoint_interval = 0
    memory = RandomMemory(memory_size=STEPS, num_envs=ENVS, device="cpu")
    agent = PPO(models=models, memory=memory, cfg=configuration, **spaces)
    trainer = SequentialTrainer(
        cfg={"timesteps": UPDATES * STEPS, "headless": True, "disable_progressbar": True}, env=envs, agents=agent
    )
    trainer.train()
    assert models["policy"].log_std.mean() < -0.3


def test_torchrl_learns():
    pytest.importorskip("torchrl", reason="pip install 'coulomb[torchrl]'")
    from tensordict.nn import InteractionType, TensorDictModule
    from torchrl.envs import DoubleToFloat, GymWrapper
    from torchrl.modules import IndependentNormal, ProbabilisticActor, ValueOperator
    from torchrl.objectives import ClipPPOLoss
    from torchrl.objectives.value import GAE

    envs = gymnasium.make_vec(NAME, num_envs=ENVS, autoreset_mode=AutoresetMode.SAME_STEP, **COSTLY)
    envs = GymWrapper(envs).append_transform(DoubleToFloat())
    observed, acted = envs.observation_spec["observation"].shape[-1], envs.action_spec.shape[-1]
    policy, value = Gaussian(observed, acted), ValueOperator(layers(observed, 1))
    actor = ProbabilisticActor(
        TensorDictModule(policy, in_keys=["observation"], out_keys=["loc", "scale"]),
        in_keys=["loc", "scale"],
        distribution_class=IndependentNormal,
        default_interaction_type=InteractionType.RANDOM,
        return_log_prob=True,
    )
    loss = ClipPPOLoss(actor, value, clip_epsilon=0.2, entropy_bonus=False, normalize_advantage=True)
    advantage = GAE(gamma=GAMMA, lmbda=0.95, value_network=value)
    optimizer = torch.optim.Adam(loss.parameters(), lr=RATE)
    ends = 0
    for _ in range(UPDATES):
        with torch.no_grad():
            data = envs.rollout(STEPS, actor, break_when_any_done=False)
        ends += int(data["next", "done"].sum())
        for _ in range(EPOCHS):
            with torch.no_grad():
                advantage(data)
            flat = data.reshape(-1)
            for rows in torch.randperm(len(flat)).chunk(MINIBATCHES):
                terms = loss(flat[rows])
                optimizer.zero_grad()
                (terms["loss_objective"] + terms["loss_critic"]).backward()
                torch.nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
                optimizer.step()
    assert ends == UPDATES * ENVS * (STEPS // LENGTH)
    assert policy.log_std.mean() < -0.3
