"""Policies learned over seeds: returns over samples and over time, beside published ones, and what they are worth elsewhere.

python benchmarks/learning.py [--env Hopper] [--seeds 5] [--variants exact,soft,penalty,ppo:1] [--epochs 1000] [--quick] [--output FOLDER]

Variants: gradients and contacts that SHAC learns with, "ppo" and "ppo_soft": PPO of stable-baselines3 on the same tasks; with a colon, how
many seeds of it. One run after the other, each with all cores; one that is there is not made again, one that was interrupted goes on.
Writes learning_<env>.json, .md and .png. Every policy is scored without noise at its own time step, at finer ones, and in MuJoCo.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
from pathlib import Path

import mujoco
import numpy as np
import report
import torch

from coulomb.envs.task import State
from coulomb.learn import shac
from coulomb.learn.config import PRESETS
from coulomb.learn.worlds import JUDGED_SEED

VARIANTS = {  # of the same task
    "exact": {},
    "complementarity_aware": {"gradient": "complementarity_aware"},
    "smoothed": {"gradient": "smoothed_step"},
    "from_distance": {"gradient": "from_distance"},
    "penalty": {"contact": "penalty"},
    "soft": {"contact_stiffness": 2e4, "contact_dashpot": 1e3},  # the stiffness of DiffRL's hopper
}
NAMES = {"exact": "SHAC", "ppo": "PPO", "soft": "SHAC, soft floor", "ppo_soft": "PPO, soft floor"}
LEARNED_BY_PPO = {"ppo": "exact", "ppo_soft": "soft"}  # with the contact of a variant of SHAC
PPO_SAMPLES = 3  # times those of SHAC
SUBSTEPS = (4, 8, 16)  # per control step; policies are learned at the first
EPISODES = 16
CONTACTS = {"as it is": 16, "same springs": 128, "stiff": 128}  # of MuJoCo: steps per control step
# Of MuJoCo's contact with the same springs, from 1e-4, its least, to 1e-3. In a convex cone sliding adds to the normal force, the more the
# larger it is: at 2e-3 a control step of a light hopper was off by 0.8 m/s and it fell, at 2e-4 by 0.1 (tests/reference/test_learned_in_mujoco.py).
IMPEDANCE = 2e-4
EXPLANATION = """\
Return: mean of 16 episodes without noise, at regular numbers of epochs; with noise: mean of the last 100 episodes that learning ended.
Worst late fall: of the return without noise in the last third of the run, as a share of the best before it. When each first reached a
number: control steps, seconds.

Then the last policy elsewhere, median (least) of 16 episodes: at its own number of substeps, at finer ones, and in MuJoCo. "As it is":
MuJoCo's default contact and limits, at a sixteenth of the control step. "Same springs": floor and joint limits with the stiffness and the
dashpot that the policy was learned with (rigid ones stiff), at 1/128 of the control step. "Stiff": floor and limits at 1/128, with a time
constant of two steps. The last two have elliptic cones and hardly creep (impratio 100 and more)."""
# Samples and seconds at which the return with noise reached a number: [Georgiev2024]'s own curves, median of 10 seeds, one GPU.
PUBLISHED = {
    "Hopper": {
        "SHAC, GPU": [(1.4e6, 49, 2000), (2.15e6, 72, 3000), (4.9e6, 157, 4000)],
        "AHAC, GPU": [(1.84e6, 74, 3000), (3.6e6, 122, 4000)],
        "PPO, GPU": [(6.6e6, 44, 2000), (8.5e6, 58, 3000), (21e6, 146, 4000)],
    }
}
GOALS = {
    "Hopper": (2000, 3000, 4000),
    "CartPole": (-800, -600, -500),
    "Ant": (1000, 2000, 3000),
    "LightAnt": (2000, 3000, 5000),
    "LightHopper": (2000, 3000, 4500),
    "Humanoid": (1000, 3000, 5000),
}


def config_of(env, variant, seed, epochs, root, threads=0):
    given = {
        **PRESETS.get(env, {}),
        **VARIANTS[LEARNED_BY_PPO.get(variant, variant)],
        "env": env,
        "seed": seed,
        "num_threads": threads,
    }
    config = shac.Config(**{**given, **({"epochs": epochs} if epochs else {})})
    return dataclasses.replace(config, output=str(root / f"{env}_{variant}_{seed}_{config.epochs}"))


def run(config, by_ppo):
    """The log of a run as a dict of columns, and the scores of its last policy."""
    folder = Path(config.output)
    scores = folder / "scores.json"
    if not scores.exists():
        begun = (folder / "checkpoint.pt").exists()
        trained = learned_by_ppo(config) if by_ppo else shac.train(config, resume=folder if begun else None)
        scores.write_text(json.dumps(scored(trained)))
    with (folder / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    columns = {key: np.array([float(row[key] or "nan") for row in rows]) for key in rows[0]}
    return columns, json.loads(scores.read_text())


def learned_by_ppo(config):
    """PPO on what SHAC learned on, for PPO_SAMPLES as many control steps."""
    import ppo_peer

    return ppo_peer.train(config, PPO_SAMPLES * config.epochs * config.num_envs * config.horizon)


def scored(run):
    """Median and least return of whole episodes, by where."""
    out = {}
    for substeps in SUBSTEPS:
        returns = run.evaluate(run.config.task(frame_skip=substeps))
        out[f"{substeps} substeps"] = [float(np.median(returns)), float(returns.min())]
    for contact in CONTACTS:
        returns = in_mujoco(run, contact)
        out[f"MuJoCo {contact}"] = [float(np.median(returns)), float(returns.min())]
    return out


def model_of_mujoco(task, contact):
    """MuJoCo's model of a task. contact: a name of CONTACTS."""
    spec = mujoco.MjSpec.from_string(task.mjcf())
    spec.option.timestep = task.timestep
    if contact == "as it is":
        return spec.compile()

    # Friction that hardly creeps: a tangential velocity falls within a few steps.
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = 100
    if contact == "stiff":
        for part in (*spec.geoms, *spec.joints):
            (part.solref_limit if isinstance(part, mujoco.MjsJoint) else part.solref)[:] = (2 * task.timestep, 1)
        return spec.compile()

    # MuJoCo's force is (k / d r + b / d r' - a) d / (1 - d) / A, for the depth r, its estimate A of the Delassus matrix's diagonal, and an
    # impedance d, constant here: at a small d a spring and a damper, and hardly a mass.
    model = spec.compile()
    constant = (IMPEDANCE, IMPEDANCE, 1, 0.5, 2)
    spec.option.impratio = 4 / IMPEDANCE
    parameters = task.model.parameters()
    if "contact_stiffness/floor" in parameters:
        springs = np.array([parameters[f"{name}/floor"].value[0] for name in ("contact_stiffness", "contact_dashpot")])
        floor = spec.geom("floor")
        for geom in spec.geoms:
            if not (geom.contype & floor.conaffinity or floor.contype & geom.conaffinity) or geom is floor:
                continue
            free = model.body_invweight0[model.geom(geom.name).bodyid[0], 0]
            pair = spec.add_pair(geomname1="floor", geomname2=geom.name, condim=3)
            pair.friction[:2] = max(floor.friction[0], geom.friction[0])
            pair.solref[:] = -springs * free * (1 - IMPEDANCE)
            pair.solimp[:] = constant
            pair.solreffriction[:] = (0, -0.5 * IMPEDANCE / task.timestep)
        for geom in spec.geoms:
            geom.contype = geom.conaffinity = 0
    for name, stiffness, dashpot in zip(
        task.model.joint_names, task.model.joint_limit_stiffness, task.model.joint_limit_dashpot
    ):
        if stiffness > 0:
            joint = spec.joint(name)
            free = model.dof_invweight0[model.joint(name).dofadr[0]]
            joint.solref_limit[:] = -np.array([stiffness, dashpot]) * free * (1 - IMPEDANCE)
            joint.solimp_limit[:] = constant
    return spec.compile()


@torch.no_grad()
def in_mujoco(run, contact):
    """Returns of episodes of the same task that MuJoCo simulates. contact: a name of CONTACTS."""
    task = run.config.task(frame_skip=CONTACTS[contact])
    model = model_of_mujoco(task, contact)
    data = mujoco.MjData(model)
    returns = []
    for episode in range(EPISODES):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], goal = task.draw(np.random.default_rng([JUDGED_SEED, episode]))
        state = row_of(data, np.zeros(model.nu), goal)
        total = 0.0
        for _ in range(task.episode_length):
            action = run.actor(run.normalizer(task.observe(state))).double()
            data.ctrl[:] = task.control(action)[0].numpy()
            mujoco.mj_step(model, data, task.frame_skip)
            after = row_of(data, action[0].numpy(), goal)
            total += float(task.reward(state, after)[0][0])
            state = after
            if bool(task.terminated(state)[0]):
                break
        returns.append(total)
    return np.array(returns)


def row_of(data, action, goal):
    return State(*(torch.tensor(np.array(x))[None] for x in (data.qpos, data.qvel, action, goal)), {})


def reached(columns, key, goal):
    """Samples and seconds at which a column first had a value of at least `goal`."""
    rows = np.flatnonzero(columns[key] >= goal)
    return (columns["samples"][rows[0]], columns["seconds"][rows[0]]) if len(rows) else (np.nan, np.nan)


def late_fall(returns):
    """The largest fall of returns below the best before it, within their last third: a share of that best."""
    best = np.maximum.accumulate(returns)
    falls = (best - returns) / np.abs(best)
    return falls[-max(len(returns) // 3, 1) :].max()


def table(env, runs):
    """Lines of Markdown."""
    lines = [
        "| variant | seed | return at the end | best | worst late fall | "
        + " | ".join(f"{goal}: samples, s" for goal in GOALS[env])
    ]
    lines[0] += " | with noise: " + " | ".join(f"{goal}: samples, s" for goal in GOALS[env]) + " |"
    lines.append("|" + "---|" * (5 + 2 * len(GOALS[env])))
    for (variant, seed), (columns, _) in runs.items():
        returns = columns["return"][~np.isnan(columns["return"])]
        cells = [variant, str(seed), f"{returns[-1]:.0f}", f"{returns.max():.0f}", f"{100 * late_fall(returns):.0f} %"]
        for key in ("return", "training_return"):
            for goal in GOALS[env]:
                samples, seconds = reached(columns, key, goal)
                cells.append("-" if np.isnan(samples) else f"{samples / 1e3:.0f}k, {seconds:.0f}")
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "| variant | seed | " + " | ".join(next(iter(runs.values()))[1]) + " |"]
    lines.append("|" + "---|" * (2 + len(next(iter(runs.values()))[1])))
    for (variant, seed), (_, scores) in runs.items():
        cells = [f"{median:.0f} ({least:.0f})" for median, least in scores.values()]
        lines.append(f"| {variant} | {seed} | " + " | ".join(cells) + " |")
    return lines


def sparse(columns):
    """The rows of a log in which the policy was judged."""
    rows = ~np.isnan(columns["return"])
    return {key: columns[key][rows].tolist() for key in ("epoch", "samples", "seconds", "training_return", "return")}


def band(runs, key, column):
    """x and quantiles (3, x) of a column over runs, where all of them have a value: least, median, greatest."""
    rows = [~np.isnan(columns[column]) for columns in runs]
    ends = [columns[key][r] for columns, r in zip(runs, rows)]
    x = np.geomspace(max(end[0] for end in ends), min(end[-1] for end in ends), 200)
    values = [np.interp(x, end, columns[column][r]) for columns, r, end in zip(runs, rows, ends)]
    return x, np.quantile(values, (0, 0.5, 1), axis=0)


def draw(env, runs, path):
    """Medians of returns over samples and over seconds in a band from the least to the greatest seed; published ones as points."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    variants = dict.fromkeys(variant for variant, _ in runs)
    for axis, key, unit in zip(axes, ("samples", "seconds"), (1e6, 1)):
        for variant, color in zip(variants, plt.cm.tab10.colors):
            columns = [c for (v, _), (c, _) in runs.items() if v == variant]
            x, (least, median, greatest) = band(columns, key, "return")
            axis.plot(x / unit, median, color=color, label=f"{NAMES.get(variant, variant)}, {len(columns)} seeds")
            axis.fill_between(x / unit, least, greatest, color=color, alpha=0.15, lw=0)
            x, (_, median, _) = band(columns, key, "training_return")
            axis.plot(x / unit, median, color=color, lw=0.8, ls=":")
        for mark, (name, points) in zip("osD", PUBLISHED.get(env, {}).items()):
            x = [point[0 if key == "samples" else 1] / unit for point in points]
            axis.plot(x, [point[2] for point in points], mark, color="0.3", ms=5, label=name)
        axis.set_xlabel("million control steps" if key == "samples" else "seconds")
        axis.set_xscale("log")
        axis.set_xlim(left=0.02 if key == "samples" else 3)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("return without noise; dotted: with noise")
    axes[0].legend(fontsize=8)
    figure.suptitle(f"{env}: median of seeds, and the band from the least to the greatest")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", default="Hopper", choices=GOALS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--variants", default="exact", help="with numbers of seeds of their own: exact,ppo:1")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--threads", type=int, default=0, help="of the simulator; 0: all cores")
    parser.add_argument("--quick", action="store_true", help="one seed, 60 epochs; into the folder of the runs")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--runs", type=Path, default=Path("build/learning"), help="logs and policies of runs")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seeds, arguments.epochs = 1, 60
    output = arguments.output or (arguments.runs if arguments.quick else Path(__file__).parent / "results")

    # Everything that is asked for is looked up before the first hour of it is learned.
    configs = {}
    for variant, _, seeds in (part.partition(":") for part in arguments.variants.split(",")):
        if variant not in VARIANTS | LEARNED_BY_PPO:
            parser.error(f"--variants: there is no {variant!r}, expected {', '.join(VARIANTS | LEARNED_BY_PPO)}")
        for seed in range(int(seeds or arguments.seeds)):
            config = config_of(arguments.env, variant, seed, arguments.epochs, arguments.runs, arguments.threads)
            configs[variant, seed] = config
    runs = {key: run(config, key[0] in LEARNED_BY_PPO) for key, config in configs.items()}

    env = report.environment(None)
    name = f"learning_{arguments.env.lower()}"
    lines = [EXPLANATION, "", *table(arguments.env, runs)]
    data = {
        "runs": [
            {"variant": v, "seed": s, "scores": scores, "log": sparse(columns)}
            for (v, s), (columns, scores) in runs.items()
        ]
    }
    report.write_study(output, name, f"{arguments.env}: learned policies", env, lines, data)
    draw(arguments.env, runs, output / f"{name}.png")
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()
