"""A sweep on a Slurm cluster: seeds x environments of SHAC, one job each, as one array of jobs; by submitit.

A job that Slurm takes away or that runs out of time is put back into the queue and goes on from its last checkpoint, to the same bits.
Without a cluster, --local runs the jobs as processes of this machine, all at once.

    python examples/applications/slurm_sweep.py --envs Hopper HalfCheetah --seeds 5 --partition cpu [--threads 4] [--minutes 120]
    python examples/applications/slurm_sweep.py --local [--quick] [--output FOLDER]

Every run leaves a folder <env>_<seed> (log.csv, checkpoint.pt, best.pt); the sweep sweep.csv and sweep.png. Started again, it makes what is not
there yet. Needs '.[cluster,learn]'.
"""

import argparse
import csv
from pathlib import Path

import numpy as np
import submitit

from coulomb.learn import log, shac

QUICK = {"epochs": 4, "num_envs": 4, "horizon": 8, "evaluate_every": 2, "evaluations": 2, "actor_units": (16,)}


class Run:
    """One run, as submitit calls it: on a node, and again after the job was taken away."""

    def __call__(self, config):
        folder = Path(config.output)
        resume = folder if (folder / "checkpoint.pt").exists() else None
        shac.train(config, resume, progress=False)
        return log.read(folder / "log.csv", config.epochs)[-1]

    def checkpoint(self, config):
        """What is put into the queue instead: the same, which then finds a checkpoint."""
        return submitit.helpers.DelayedSubmission(self, config)


def configurations(options):
    for env in options.envs:
        for seed in range(options.seeds):
            given = {**shac.PRESETS.get(env, {}), "env": env, "seed": seed, "num_threads": options.threads}
            if options.epochs:
                given["epochs"] = options.epochs
            if options.quick:
                given |= QUICK
            yield shac.Config(**given, output=str(options.output / f"{env}_{seed}"))


def executor(options):
    """Where jobs go: Slurm's queue, or processes of this machine."""
    chosen = submitit.AutoExecutor(folder=options.output / "jobs", cluster="local" if options.local else "slurm")
    chosen.update_parameters(name="shac", timeout_min=options.minutes)
    if not options.local:
        chosen.update_parameters(nodes=1, tasks_per_node=1, cpus_per_task=options.threads)
        chosen.update_parameters(slurm_array_parallelism=options.at_once)
        if options.partition:
            chosen.update_parameters(slurm_partition=options.partition)
    return chosen


def picture(configs, file):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    envs = list(dict.fromkeys(config.env for config in configs))
    figure, axes = plt.subplots(1, len(envs), figsize=(4 * len(envs), 3.2), squeeze=False, layout="constrained")
    for axis, env in zip(axes[0], envs):
        for config in configs:
            if config.env == env:
                rows = [row for row in log.read(Path(config.output) / "log.csv", config.epochs) if "return" in row]
                axis.plot(
                    [row["samples"] for row in rows], [row["return"] for row in rows], label=f"seed {config.seed}"
                )
        axis.set(title=env, xlabel="control steps", ylabel="return without noise")
        axis.legend(fontsize=7)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="+", default=["Hopper"], help="names that coulomb.learn.shac knows")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epochs", type=int, help="of every run; without it, those of its environment")
    parser.add_argument("--threads", type=int, default=1, help="of a job")
    parser.add_argument("--minutes", type=int, default=120, help="that a job may take before it is put back")
    parser.add_argument("--at-once", type=int, default=256, help="jobs of the array that may run at once")
    parser.add_argument("--partition", help="of Slurm")
    parser.add_argument("--local", action="store_true", help="processes of this machine")
    parser.add_argument("--quick", action="store_true", help="tiny runs, local")
    parser.add_argument("--output", type=Path, help="folder that all nodes see; output/examples/sweep, or sweep_quick")
    options = parser.parse_args()
    options.local |= options.quick
    default = Path("output/examples") / ("sweep_quick" if options.quick else "sweep")  # runs of other options
    options.output = (options.output or default).resolve()  # jobs start in folders of their own

    configs = list(configurations(options))
    jobs = executor(options).map_array(Run(), configs)
    print(f"{len(jobs)} jobs, {jobs[0].job_id} to {jobs[-1].job_id}; their output: {options.output / 'jobs'}")
    last = [job.result() for job in jobs]  # waits; an error of a job is raised here

    with (options.output / "sweep.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["env", "seed", "samples", "seconds", "return"])
        for config, row in zip(configs, last):
            writer.writerow([config.env, config.seed, row["samples"], row["seconds"], row["return"]])
    for env in options.envs:
        returns = [row["return"] for config, row in zip(configs, last) if config.env == env]
        print(
            f"{env}: median return {np.median(returns):.1f} of {len(returns)} seeds, from {min(returns):.1f} to {max(returns):.1f}"
        )
    picture(configs, options.output / "sweep.png")
    print(options.output / "sweep.png")
    assert all(row["epoch"] == config.epochs for config, row in zip(configs, last)), "a run is not at its end"


if __name__ == "__main__":
    main()
