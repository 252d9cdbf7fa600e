"""Options of SHAC: defaults, checks, presets of tasks, and the command line."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import math
from importlib import import_module

from coulomb.learn.horizons import SHORTEST

TASKS = {
    "CartPole": "coulomb.envs.tasks.swing_up:CartPoleSwingUp",
    "Hopper": "coulomb.envs.tasks.diff_hopper:DiffHopper",
    "LightHopper": "coulomb.envs.tasks.light_hopper:LightHopper",
    "HalfCheetah": "coulomb.envs.tasks.diff_half_cheetah:DiffHalfCheetah",
    "Ant": "coulomb.envs.tasks.diff_ant:DiffAnt",
    "LightAnt": "coulomb.envs.tasks.light_ant:LightAnt",
    "Humanoid": "coulomb.envs.tasks.diff_humanoid:DiffHumanoid",
    "Go1Walk": "coulomb.envs.tasks.go1:Go1Walk",
}

# After DiffRL's files [Xu2022], with a quarter of its critic iterations where nothing is said of them, and 64 environments for all.
# Legged ones have half its horizon and a tighter clip (docs/learning.md). Floors are as stiff as DiffRL's (contact_ke).
_LEGGED = {"horizon": 16, "adjoint_clip": 3.0}
PRESETS = {
    "CartPole": {"epochs": 500, "actor_lr": 1e-2, "actor_units": (64, 64)},
    "Hopper": _LEGGED,
    "LightHopper": _LEGGED,
    "HalfCheetah": {"epochs": 2000, "critic_lr": 2e-3},
    "Ant": {**_LEGGED, "epochs": 1400, "critic_lr": 2e-3, "contact_stiffness": 4e4, "contact_dashpot": 1e3},
    "LightAnt": {**_LEGGED, "epochs": 500, "critic_lr": 2e-3},
    "Humanoid": {
        **_LEGGED,
        "epochs": 2000,
        "contact_stiffness": 1.5e4,
        "contact_dashpot": 1e3,
        "critic_lr": 5e-4,
        "target_alpha": 0.995,
        "actor_units": (256, 128),
        "critic_units": (128, 128),
        "critic_iterations": 16,
    },
    "Go1Walk": {
        "epochs": 2000,
        "log_std": -2.0,  # targets .14 rad off: at -.5 a third of the robots falls down within half a second
        "adjoint_clip": 3.0,
        "contact_stiffness": 1e4,
        "contact_dashpot": 300.0,
        "actor_lr": 1e-3,
        "critic_iterations": 16,
        "actor_units": (256, 128),
        "critic_units": (128, 128),
    },
}


@dataclasses.dataclass
class Config:
    """ValueError: an option that is out of its range, by name."""

    env: str = "Hopper"  # a name of TASKS, or "module:Class" of a Task
    seed: int = 0
    epochs: int = 1000
    num_envs: int = 64
    horizon: int = 32  # control steps of one gradient
    longest_horizon: int = 0  # above 0: the horizon adapts between 8 and this (learn/horizons.py)
    gamma: float = 0.99
    td_lambda: float = 0.95
    actor_lr: float = 2e-3  # both fall linearly to 1e-5
    critic_lr: float = 1e-3
    betas: tuple[float, float] = (0.7, 0.95)
    max_norm: float = 1.0  # of the gradient
    critic_iterations: int = 4
    critic_batches: int = 4
    target_alpha: float = 0.2  # share of the old target critic that stays
    actor_units: tuple[int, ...] = (128, 64, 32)
    critic_units: tuple[int, ...] = (64, 64)
    log_std: float = -1.0  # of the exploration noise, at the start
    entropy: bool = False  # rewarded, with a learned weight (learn/networks.py)
    adjoint_clip: float = 10.0  # times the median norm over environments, of the gradient by states; 0: none
    gradient: str = "exact"  # and contact: as coulomb.Simulator takes them
    contact: str = "auto"
    contact_stiffness: float = 0.0  # N/m of the floor's points of contact, and its dashpot in N s/m; 0: rigid
    contact_dashpot: float = 0.0
    randomization: float = (
        0.0  # spread of friction and of floor and limit springs over environments (worlds.randomized); 0: none
    )
    evaluate_every: int = 50  # epochs between deterministic episodes
    evaluations: int = 16
    num_threads: int = 0  # of the simulator; 0: all cores
    output: str = ""  # folder for log.csv and checkpoints; none
    logger: str = ""  # "tensorboard": its events too, into the output folder, or without one into runs/

    def __post_init__(self):
        for name, (good, expected) in RANGES.items():
            value = getattr(self, name)
            if not good(value):
                raise ValueError(f"{name} is {value!r}, expected {expected}")
        if self.longest_horizon and not SHORTEST <= self.horizon <= self.longest_horizon:
            expected = f"from {SHORTEST} to longest_horizon, {self.longest_horizon}"
            raise ValueError(f"horizon is {self.horizon}, expected {expected}, because it is to adapt")
        if self.critic_batches > self.num_envs * self.horizon:
            raise ValueError(
                f"critic_batches is {self.critic_batches}, but an epoch has {self.num_envs * self.horizon} samples"
            )

    def task(self, **keywords):
        """The task that is learned, or one that differs from it by keywords. ValueError: no such task, or one without a floor."""
        floor = {name: getattr(self, name) for name in ("contact_stiffness", "contact_dashpot") if getattr(self, name)}
        kind = self.task_class()
        for name in floor:
            if name not in inspect.signature(kind).parameters:
                raise ValueError(f"{name} is {floor[name]}, but {kind.__name__} has no floor that could be soft")
        return kind(**{**floor, **keywords})

    def task_class(self):
        """The class of the task. ValueError: there is none of that name."""
        names = f"expected {', '.join(TASKS)}, or 'module:Class' of a coulomb.envs.Task"
        module, separator, name = TASKS.get(self.env, self.env).partition(":")
        if not separator:
            raise ValueError(f"env is {self.env!r}, {names}")
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"env is {self.env!r}, {names}: {error}") from error


def _is_int(least):
    return lambda x: isinstance(x, int) and not isinstance(x, bool) and x >= least, f"an integer of at least {least}"


def _is_number(low, high=math.inf, open_low=False, open_high=False):
    def good(x):
        return (
            isinstance(x, (int, float))
            and (low < x if open_low else low <= x)
            and (x < high if open_high else x <= high)
        )

    above = f"{'above' if open_low else 'at least'} {low}"
    below = "" if high == math.inf else f" and {'below' if open_high else 'at most'} {high}"
    return lambda x: good(x) and math.isfinite(x), f"a number {above}{below}"


def _are_units(x):
    return len(x) > 0 and all(isinstance(n, int) and n > 0 for n in x)


RANGES = {
    **{name: _is_int(1) for name in ("epochs", "num_envs", "horizon", "critic_iterations", "critic_batches")},
    **{name: _is_int(1) for name in ("evaluate_every", "evaluations")},
    **{name: _is_int(0) for name in ("seed", "longest_horizon", "num_threads")},
    **{name: _is_number(0, open_low=True) for name in ("actor_lr", "critic_lr", "max_norm")},
    **{name: _is_number(0) for name in ("adjoint_clip", "contact_stiffness", "contact_dashpot", "randomization")},
    **{name: _is_number(0, 1) for name in ("gamma", "td_lambda")},
    **{name: (_are_units, "one or more positive integers") for name in ("actor_units", "critic_units")},
    "target_alpha": _is_number(0, 1, open_high=True),
    "log_std": _is_number(-5, 2),
    "betas": (lambda x: len(x) == 2 and all(0 <= b < 1 for b in x), "two numbers of at least 0 and below 1"),
    "logger": (lambda x: x in ("", "tensorboard"), "'tensorboard' or ''"),
}


def given_options(program, description, arguments=None):
    """The fields of Config that a command line gave, and "resume", a folder; by name."""
    parser = argparse.ArgumentParser(program, description=description)
    for field in dataclasses.fields(Config):
        kind = type(field.default)
        if kind is bool:
            parser.add_argument(f"--{field.name}", action=argparse.BooleanOptionalAction)
        elif kind is tuple:
            parser.add_argument(f"--{field.name}", type=type(field.default[0]), nargs="+")
        else:
            parser.add_argument(f"--{field.name}", type=kind)
    parser.add_argument("--resume", help="the output folder of a run to go on from, with the options that it had")
    given = {name: value for name, value in vars(parser.parse_args(arguments)).items() if value is not None}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
