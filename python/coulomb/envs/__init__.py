"""Environments for Gymnasium over Coulomb's batch: `import coulomb.envs`, with the extra `envs`. docs/learning.md

    envs = gymnasium.make_vec("coulomb/HalfCheetah-v5", num_envs=64)
    env = gymnasium.make("coulomb/HalfCheetah-v5")

Importing registers the ids. A Task is what environments and learning by gradients read; VectorEnv and Env run any of them.
"""

try:
    import gymnasium as _gymnasium  # noqa: F401
except ImportError as error:
    raise ImportError("coulomb.envs needs the 'gymnasium' package: pip install 'coulomb[envs]'") from error

from .checker import check_vector_env
from .registration import IDS, register
from .simulation import Simulation
from .single import Env
from .task import State, Task
from .vector import VectorEnv

__all__ = ["IDS", "Env", "Simulation", "State", "Task", "VectorEnv", "check_vector_env", "register"]

register()
