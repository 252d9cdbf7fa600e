"""RLlib's PPO on coulomb/Hopper-v5, by the id alone. RLlib pins a version of Gymnasium: `make rllib` runs this in an environment of its own.

    python tools/rllib_hopper.py [--iterations 5]

Prints what the episodes paid after each iteration, and fails where that does not grow.
"""

import argparse
from importlib import metadata

import gymnasium
import ray
from ray.rllib.algorithms.ppo import PPOConfig


def configuration():
    """PPO on 16 environments of one batch, in a worker process that imports coulomb.envs by the id."""
    return (
        PPOConfig()
        .environment("coulomb.envs:coulomb/Hopper-v5")
        .env_runners(
            num_env_runners=1,
            num_envs_per_env_runner=16,
            gym_env_vectorize_mode=gymnasium.VectorizeMode.VECTOR_ENTRY_POINT,
        )
        .training(train_batch_size_per_learner=2048, minibatch_size=256, num_epochs=5, lr=1e-3)
        .debugging(seed=0, log_level="ERROR")
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=5)
    options = parser.parse_args()
    print(*(f"{name} {metadata.version(name)}" for name in ("ray", "gymnasium", "torch")), sep=", ")

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    algorithm = configuration().build_algo()
    returns = []
    for iteration in range(options.iterations):
        episodes = algorithm.train()["env_runners"]
        returns.append(episodes["episode_return_mean"])
        steps = int(episodes["num_env_steps_sampled_lifetime"])
        told = f"mean return {returns[-1]:.1f}, {episodes['episode_len_mean']:.0f} control steps an episode"
        print(f"iteration {iteration + 1}: {steps} control steps, {told}", flush=True)
    algorithm.stop()
    ray.shutdown()
    assert returns[-1] > returns[0], f"mean returns {returns} do not grow"


if __name__ == "__main__":
    main()
