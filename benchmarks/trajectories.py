"""Time of steps along trajectories, beside MuJoCo in the same process. `make bench` runs it.

python benchmarks/trajectories.py [--quick] [--robots go1,atlas] [--steps N] [--models FOLDER] [--output FOLDER]

Each robot falls (from its first recorded state), lies (after it has fallen), and moves under random controls: of 3 % of the
actuators' range, which stirs it where it lies, and of 30 %, which throws it about. Each engine follows its own states under
the same controls; besides, MuJoCo steps from Coulomb's states.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy is imported
    os.environ.setdefault(variable, "1")

import argparse
import gc
from pathlib import Path

import mujoco
import numpy as np
import report
from robots import find_robots
from timing import pin_to_one_core
from tracks import CoulombTrack, FollowingTrack, MujocoTrack, race

HERE = Path(__file__).resolve().parent
MODELS = Path(os.environ.get("COULOMB_BENCH_MODELS") or HERE.parent.parent / "shared" / "models")
TIMESTEP = 2e-3  # s
SETTLING = 1500  # steps from the first state until the robot lies
BLOCK = 150  # steps until the other engine's turn
CONTROLS = {  # share of the actuators' range, steps that each value is held
    "rest": (0.0, 1),
    "falling": (0.0, 1),
    "random": (0.03, 10),
    "violent": (0.3, 25),
}
ALLOWED = {"rest": 1.0, "falling": 1.0, "random": 1.5, "violent": 1.5}  # of MuJoCo's mean
COLUMNS = ["robot", "control", "contacts", "step", "p50", "p99", "max", "MuJoCo", "p50", "p99", "step/MuJoCo"]
COLUMNS += ["p99/MuJoCo", "same states", "+Jacobian", "+J/MuJoCo", "iterations", "most", "unsolved", "relaxed"]
EXPLANATION = """\
µs of processor time per call from Python, mean unless said; 2 ms steps, one core. contacts: Coulomb's / MuJoCo's. +Jacobian: step and all its derivatives.
MuJoCo: Newton, Euler, pyramidal cone, its warm start. p99/MuJoCo: Coulomb's p99 to MuJoCo's mean.
same states: Coulomb's mean to MuJoCo's from Coulomb's states, without the pairs that overlap in the neutral pose.
unsolved: steps that were not solved as posed; relaxed: those of them that were solved with a compliance added."""


def control_ranges(mj):
    """(nu, 2) lowest and highest control of each actuator: its own range, or what its joint can bear."""
    ranges = np.tile([-1.0, 1.0], (mj.nu, 1))
    for i in range(mj.nu):
        joint = mj.actuator_trnid[i, 0]
        on_joint = mj.actuator_trntype[i] == mujoco.mjtTrn.mjTRN_JOINT
        if mj.actuator_ctrllimited[i]:
            ranges[i] = mj.actuator_ctrlrange[i]
        elif on_joint and mj.jnt_actfrclimited[joint]:
            ranges[i] = mj.jnt_actfrcrange[joint] / abs(mj.actuator_gear[i, 0])
    return ranges


def random_controls(mj, steps, share, held):
    """(steps, nu): uniform in that share of the range, each value held for some steps; the same in every run."""
    low, high = control_ranges(mj).T
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    values = np.random.default_rng(0).uniform(-1, 1, (-(-steps // held), mj.nu))
    if share == 0:
        return np.zeros((steps, mj.nu))
    return np.repeat(centre + share * half * values, held, axis=0)[:steps]


def measure(robot, control, steps, rounds):
    """One robot under one kind of control: µs per step of both engines, and how the solver fared."""
    share, held = CONTROLS[control]
    controls = random_controls(robot.mujoco_model, steps, share, held)
    q, v = robot.q[0], robot.v[0]
    theirs = MujocoTrack(robot.mujoco_model, TIMESTEP, q, v)
    ours = CoulombTrack(robot.model, TIMESTEP, q, v)
    with_jacobian = CoulombTrack(robot.model, TIMESTEP, q, v, ask=lambda sim: sim.derivatives())
    following = FollowingTrack(robot.same_pairs or robot.mujoco_model, TIMESTEP, ours)
    tracks = [ours, theirs, with_jacobian, following]

    # Where each engine's robot lies. Also warms the caches and sizes the workspaces.
    before = np.zeros((SETTLING if control == "rest" else 50, robot.mujoco_model.nu))
    for track in tracks:
        track.begin()
        track.run(before)
        if control == "rest":
            track.keep_state()
    following.q, following.v = ours.q, ours.v

    gc.collect()
    gc.disable()
    step, mujoco_step, jacobian, same_states = race(tracks, controls, rounds, BLOCK)
    gc.enable()
    return {
        "nv": robot.model.nv,
        "contacts": float(np.mean(ours.contacts)),
        "contacts_mujoco": float(np.mean(theirs.contacts)),
        "step": summary(step),
        "mujoco": summary(mujoco_step),
        "jacobian": summary(jacobian),
        "mujoco_same_states": summary(same_states),
        "contacts_mujoco_same_states": float(np.mean(following.contacts)),
        "iterations": float(np.mean(ours.iterations)),
        "most_iterations": int(np.max(ours.iterations)),
        "unsolved": dict(ours.reasons.most_common()),
        "relaxed": int(ours.relaxed),
        "went_wrong": [name for name, track in (("Coulomb", ours), ("MuJoCo", theirs)) if track.went_wrong()],
        "samples": {"step": step.round(2).tolist(), "mujoco": mujoco_step.round(2).tolist()},
    }


def summary(times):
    return {
        "mean": float(times.mean()),
        "p50": float(np.percentile(times, 50)),
        "p99": float(np.percentile(times, 99)),
        "max": float(times.max()),
    }


def table(results):
    rows = []
    for (name, control), r in results.items():
        step, theirs, jacobian = r["step"], r["mujoco"], r["jacobian"]
        row = [name, control, f"{r['contacts']:.1f} / {r['contacts_mujoco']:.1f}"]
        row += [micro(step[key]) for key in ("mean", "p50", "p99", "max")]
        row += [micro(theirs[key]) for key in ("mean", "p50", "p99")]
        row += [f"{step['mean'] / theirs['mean']:.2f}", f"{step['p99'] / theirs['mean']:.2f}"]
        row += [f"{step['mean'] / r['mujoco_same_states']['mean']:.2f}"]
        row += [micro(jacobian["mean"]), f"{jacobian['mean'] / theirs['mean']:.2f}"]
        row += [f"{r['iterations']:.1f}", str(r["most_iterations"])]
        row += [str(sum(r["unsolved"].values())), str(r["relaxed"])]
        rows.append(row)
    return report.markdown(COLUMNS, rows)


def micro(time):
    return f"{time:.0f}" if time >= 100 else f"{time:.1f}"


def check(results):
    criteria = report.Criteria()
    ratios = {key: r["step"]["mean"] / r["mujoco"]["mean"] for key, r in results.items()}
    for (name, control), ratio in ratios.items():
        criteria.at_most(f"{name}, {control}: mean step, of MuJoCo's", ratio, ALLOWED[control])
    for (name, control), r in results.items():
        criteria.at_most(f"{name}, {control}: p99, of MuJoCo's mean", r["step"]["p99"] / r["mujoco"]["mean"], 5)
    with_jacobian = [r["jacobian"]["mean"] / r["mujoco"]["mean"] for r in results.values()]
    criteria.at_most("geometric mean: step, of MuJoCo's", report.geometric_mean(list(ratios.values())), 0.8)
    criteria.at_most("geometric mean: step and Jacobian, of MuJoCo's step", report.geometric_mean(with_jacobian), 1.4)
    return criteria


def notes(results):
    same = report.geometric_mean([r["step"]["mean"] / r["mujoco_same_states"]["mean"] for r in results.values()])
    lines = [f"Geometric mean of the step to MuJoCo's from the same states: {same:.2f}."]
    for (name, control), r in results.items():
        if r["went_wrong"]:
            lines.append(f"{name}, {control}: the state of {' and '.join(r['went_wrong'])} blew up.")
        for reason, count in list(r["unsolved"].items())[:3]:
            lines.append(f"{name}, {control}, {count} steps: {reason}")
    return lines


def label_decades(axis, parts):
    """Plain numbers on a logarithmic axis at `parts` of every decade, nothing between them: where it spans less than two decades, matplotlib's
    own labels of the rest run into one another.
    """
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=parts))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def draw(results, path):
    """Ratios of the means per robot, and how the times of the single steps are distributed."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    robots = list(dict.fromkeys(name for name, _ in results))
    columns = 4
    rows = 1 + -(-len(robots) // columns)
    figure = plt.figure(figsize=(3.2 * columns, 2.8 * rows), layout="constrained")
    grid = figure.add_gridspec(rows, columns)

    # One group of bars per robot, one bar per kind of control.
    axes = figure.add_subplot(grid[0, :])
    for i, control in enumerate(CONTROLS):
        ratios = [results[name, control]["step"]["mean"] / results[name, control]["mujoco"]["mean"] for name in robots]
        axes.bar(np.arange(len(robots)) + 0.2 * (i - 1.5), ratios, 0.19, label=control)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(range(len(robots)), robots)
    axes.set_yscale("log")
    label_decades(axes.yaxis, (1, 2, 5))
    axes.set_ylabel("mean step / MuJoCo's")
    axes.legend(ncols=4)

    # Share of the steps that take longer than a time.
    for i, name in enumerate(robots):
        axes = figure.add_subplot(grid[1 + i // columns, i % columns])
        for k, control in enumerate(CONTROLS):
            for engine, style in (("step", "-"), ("mujoco", ":")):
                times = np.sort(results[name, control]["samples"][engine])
                axes.plot(times, 1 - np.arange(len(times)) / len(times), style, color=f"C{k}", linewidth=1)
        axes.set_xscale("log")
        axes.set_yscale("log")
        label_decades(axes.xaxis, (1, 3))
        axes.set_title(f"{name} (dotted: MuJoCo)", fontsize="small")
        axes.set_xlabel("step, µs", fontsize="small")
        axes.set_ylabel("share of slower steps", fontsize="small")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    models_help = "folder of <robot>/model.xml and states.npz (COULOMB_BENCH_MODELS); without it, packages' robots"
    parser.add_argument("--models", type=Path, default=MODELS, help=models_help)
    parser.add_argument("--robots", type=lambda text: text.split(","), help="names, with commas; default: all")
    parser.add_argument("--steps", type=int, default=600, help="of each trajectory")
    parser.add_argument(
        "--quick", action="store_true", help="one round in place of three; writes no files unless --output is given"
    )
    parser.add_argument("--output", type=Path, help="folder of the result files; default: benchmarks/results")
    return parser.parse_args()


def main():
    options = arguments()
    core = pin_to_one_core()
    robots, missing = find_robots(options.models, options.robots)
    for message in missing:
        print("left out:", message)
    results = {}
    for name, load in robots:
        robot = load()
        for control in CONTROLS:
            results[name, control] = measure(robot, control, options.steps, rounds=1 if options.quick else 3)
            print(table({(name, control): results[name, control]})[-1], flush=True)

    env = report.environment(core)
    criteria = check(results)
    lines = [*table(results), "", EXPLANATION, "", *notes(results), "", *criteria.lines()]
    print("", *lines, sep="\n")
    if options.quick and options.output is None:
        return
    folder = options.output or HERE / "results"
    data = {"unit": "us", "results": [{"robot": n, "control": c, **r} for (n, c), r in results.items()]}
    data["criteria"] = criteria.entries
    paths = report.write_study(folder, "trajectories", "Steps along trajectories, beside MuJoCo", env, lines, data)
    paths.append(folder / "trajectories.png")
    draw(results, paths[-1])
    print(*(f"written: {path}" for path in paths), sep="\n")


if __name__ == "__main__":
    main()
