"""What `--env` names, and the fields of Config that a task wants otherwise: those of DiffRL's files [Xu2022]."""

from __future__ import annotations

TASKS = {
    "CartPole": "coulomb.envs.tasks.swing_up:CartPoleSwingUp",
    "Hopper": "coulomb.envs.tasks.diff_hopper:DiffHopper",
    "HalfCheetah": "coulomb.envs.tasks.diff_half_cheetah:DiffHalfCheetah",
    "Ant": "coulomb.envs.tasks.diff_ant:DiffAnt",
    "Humanoid": "coulomb.envs.tasks.diff_humanoid:DiffHumanoid",
    "Go1Walk": "coulomb.envs.tasks.go1:Go1Walk",
}

PRESETS = {
    "CartPole": {"epochs": 500, "actor_lr": 1e-2, "actor_units": (64, 64)},
    "Ant": {"epochs": 2000, "critic_lr": 2e-3},
    "Humanoid": {
        "epochs": 2000,
        "critic_lr": 5e-4,
        "target_alpha": 0.995,
        "actor_units": (256, 128),
        "critic_units": (128, 128),
        "critic_iterations": 16,
    },
    "Go1Walk": {"epochs": 2000, "log_std": -0.5, "actor_units": (256, 128), "critic_units": (128, 128)},
}
