"""The ids of the environments."""

from __future__ import annotations

import gymnasium

# id: task, length of episodes in control steps, the return that counts as solved (of MuJoCo's environments; None: none is known)
IDS = {
    "coulomb/HalfCheetah-v5": ("coulomb.envs.tasks.half_cheetah:HalfCheetah", 1000, 4800.0),
    "coulomb/Hopper-v5": ("coulomb.envs.tasks.hopper:Hopper", 1000, 3800.0),
    "coulomb/Walker2d-v5": ("coulomb.envs.tasks.hopper:Walker2d", 1000, None),
    "coulomb/Ant-v5": ("coulomb.envs.tasks.ant:Ant", 1000, 6000.0),
    "coulomb/Humanoid-v5": ("coulomb.envs.tasks.humanoid:Humanoid", 1000, None),
    "coulomb/CartPoleSwingUp-v0": ("coulomb.envs.tasks.swing_up:CartPoleSwingUp", 240, None),
    "coulomb/DiffHopper-v0": ("coulomb.envs.tasks.diff_hopper:DiffHopper", 1000, None),
    "coulomb/DiffHalfCheetah-v0": ("coulomb.envs.tasks.diff_half_cheetah:DiffHalfCheetah", 1000, None),
    "coulomb/DiffAnt-v0": ("coulomb.envs.tasks.diff_ant:DiffAnt", 1000, None),
    "coulomb/LightHopper-v0": ("coulomb.envs.tasks.light_hopper:LightHopper", 1000, None),
    "coulomb/LightAnt-v0": ("coulomb.envs.tasks.light_ant:LightAnt", 1000, None),
    "coulomb/DiffHumanoid-v0": ("coulomb.envs.tasks.diff_humanoid:DiffHumanoid", 1000, None),
    "coulomb/Go1Stand-v0": ("coulomb.envs.tasks.go1:Go1Stand", 1000, None),
    "coulomb/Go1Walk-v0": ("coulomb.envs.tasks.go1:Go1Walk", 1000, None),
    "coulomb/PushT-v0": ("coulomb.envs.tasks.push:PushT", 300, None),
}


def register():
    """Makes the ids known to Gymnasium: single environments and vector ones."""
    for name, (task, length, threshold) in IDS.items():
        if name in gymnasium.registry:
            continue
        gymnasium.register(
            name,
            entry_point="coulomb.envs:Env",
            vector_entry_point="coulomb.envs:VectorEnv",
            max_episode_steps=length,
            reward_threshold=threshold,
            kwargs={"task": task},
        )
