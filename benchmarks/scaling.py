"""What a second core, a second process and a thousand cores are worth to environments, gradients and SHAC. `make bench` runs it.

python benchmarks/scaling.py [--quick] [--output FOLDER]

Measured on one core and on two, then arithmetic with what was measured: Amdahl's law for threads, messages of gloo for processes. Writes
scaling.json and scaling.md, and puts the tables into docs/scaling.md.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy is imported
    os.environ.setdefault(variable, "1")

import argparse
import contextlib
import json
import subprocess
import sys
import warnings
from pathlib import Path
from time import perf_counter, sleep

import gymnasium
import numpy as np
import report
import torch
from scaling_tables import lines_of, put_into_page

import coulomb
import coulomb.envs  # noqa: F401
from coulomb.learn import ranks, shac
from coulomb.learn.config import PRESETS, Config
from coulomb.learn.worlds import Worlds

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "scaling.md"
ENVIRONMENTS = ["HalfCheetah-v5", "Hopper-v5", "Ant-v5"]
TASKS = ["Hopper", "Ant"]  # of SHAC
NUM_ENVS = 64
HORIZON = 32
EPOCHS = 20  # of a measurement, after a few others
WARM = 5
BUSY = 0.7  # load of others, above which nothing is measured
PATIENCE = 300  # s, for the load of what ran before to be forgotten


# --- one process -------------------------------------------------------------------------------------------------------------------


def best_of(calls, repeats):
    """Seconds of every call by its name: the best of some, in turns, after one that sizes the workspaces."""
    best = dict.fromkeys(calls, np.inf)
    for attempt in range(repeats + 1):
        for name, call in calls.items():
            start = perf_counter()
            call()
            if attempt:
                best[name] = min(best[name], perf_counter() - start)
    return best


def environment_rates(name, repeats):
    """Control steps per second of a vector environment under random actions, by number of threads."""

    def steps(threads):
        envs = gymnasium.make_vec(f"coulomb/{name}", num_envs=NUM_ENVS, num_threads=threads)
        envs.reset(seed=0)
        envs.action_space.seed(0)
        actions = [envs.action_space.sample() for _ in range(HORIZON)]
        return lambda: [envs.step(action) for action in actions]

    seconds = best_of({threads: steps(threads) for threads in (1, 2)}, repeats)
    return {threads: NUM_ENVS * HORIZON / time for threads, time in seconds.items()}


def gradient_rates(name, repeats):
    """Control steps per second, forward and back through a horizon, by number of threads. No policy, no PyTorch."""

    def passes(threads):
        task = Config(env=name).task()
        worlds = Worlds(task, NUM_ENVS, seed=0, num_threads=threads)
        q, v = worlds.state.q.numpy(), worlds.state.v.numpy()
        random = np.random.default_rng(0)
        size = (HORIZON, NUM_ENVS, len(task.action_low))
        controls = [task.control(actions) for actions in random.uniform(task.action_low, task.action_high, size)]
        dQ, dV = random.normal(size=(2, NUM_ENVS, task.model.nv))

        def run():
            worlds.batch.reset(np.ones(NUM_ENVS, bool), q, v)
            Q, V, records = q, v, []
            for control in controls:
                Q, V, record = worlds.batch.control_step(Q, V, control, substeps=task.frame_skip)
                records.append(record)
            g = None
            for record in reversed(records):
                g = record.vjp(dQ, dV) if g is None else record.vjp(g.q, g.v)

        return run

    seconds = best_of({threads: passes(threads) for threads in (1, 2)}, repeats)
    return {threads: NUM_ENVS * HORIZON / time for threads, time in seconds.items()}


# --- SHAC, in processes of its own -------------------------------------------------------------------------------------------------


class Stopwatch:
    """The seconds, calls and bytes that functions took which it is put around."""

    def __init__(self):
        self.clear()

    def clear(self):
        self.seconds, self.calls, self.bytes = 0.0, 0, 0

    def around(self, function):
        def timed(*args, **options):
            start = perf_counter()
            result = function(*args, **options)
            self.seconds += perf_counter() - start
            self.calls += 1
            self.bytes += sum(x.numel() * x.element_size() for x in args if isinstance(x, torch.Tensor))
            return result

        return timed


def worker(name, threads):
    """Prints, as JSON: seconds of an epoch of SHAC, those in the batch's calls and in messages, and how many messages of how many bytes."""
    physics, messages = Stopwatch(), Stopwatch()
    coulomb.BatchSimulator.control_step = physics.around(coulomb.BatchSimulator.control_step)
    step = coulomb._core.BatchControlStep
    step.vjp = physics.around(step.vjp)
    torch.distributed.all_reduce = messages.around(torch.distributed.all_reduce)

    torch.set_num_threads(1)
    given = {"env": name, "num_envs": NUM_ENVS, "horizon": HORIZON, "num_threads": threads}
    run = shac.Shac(Config(**{**PRESETS.get(name, {}), **given}))
    for _ in range(WARM):
        run.epoch()
    if run.num_ranks > 1:
        torch.distributed.barrier()
    physics.clear()
    messages.clear()
    start = perf_counter()
    for _ in range(EPOCHS):
        run.epoch()
    found = {"epoch": (perf_counter() - start) / EPOCHS, "physics": physics.seconds / EPOCHS}
    found |= {"messages": messages.calls / EPOCHS, "bytes": messages.bytes / EPOCHS}
    if run.num_ranks > 1:
        found["hop"] = seconds_of_a_hop()
    if run.rank == 0:
        print("measured", json.dumps(found), flush=True)
    ranks.finish()


def seconds_of_a_hop(repeats=200):
    """Of a message to the next process of the ring: a short sum over two takes two, on this machine."""
    short = torch.zeros(1)
    torch.distributed.barrier()
    start = perf_counter()
    for _ in range(repeats):
        torch.distributed.all_reduce(short)
    return (perf_counter() - start) / repeats / 2


def started(name, threads, processes=0):
    """A worker, by torchrun where processes are told; its process."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)] if processes else []
    command = [sys.executable, *torchrun, str(Path(__file__).resolve()), "--worker", name, "--threads", str(threads)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process):
    """What a worker printed."""
    out, error = process.communicate()
    for line in out.splitlines():
        if line.startswith("measured "):
            return json.loads(line.removeprefix("measured "))
    raise RuntimeError(f"a worker ended with code {process.returncode}:\n{error}")


def shac_times(name, rounds):
    """Of one thread, two threads, two runs side by side, torchrun with one process and two: the round in which an epoch was shortest."""
    ways = {
        "1 thread": lambda: [started(name, 1)],
        "2 threads": lambda: [started(name, 2)],
        "2 runs": lambda: [started(name, 1), started(name, 1)],
        "1 rank": lambda: [started(name, 1, 1)],
        "2 ranks": lambda: [started(name, 1, 2)],
    }
    best = {}
    for _ in range(rounds):
        for way, start in ways.items():
            found = max((finished(process) for process in start()), key=lambda one: one["epoch"])
            if way not in best or found["epoch"] < best[way]["epoch"]:
                best[way] = found
            print(f"{name}, {way}: {1e3 * found['epoch']:.0f} ms an epoch", flush=True)
    return best


def wait_until_idle(parser):
    """Ends the program where others go on working."""
    until = perf_counter() + PATIENCE
    while (load := os.getloadavg()[0]) > BUSY:
        if perf_counter() > until:
            parser.error(f"something else runs here (load {load:.1f}): wait until it is below {BUSY}, or take --quick")
        sleep(5)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one round; docs/scaling.md stays as it is")
    parser.add_argument("--output", type=Path, default=HERE / "results", help="folder of the result files")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.worker:
        return worker(options.worker, options.threads)

    if not options.quick:
        wait_until_idle(parser)
    load = os.getloadavg()[0]

    repeats, rounds = (3, 1) if options.quick else (20, 3)
    data = {
        "load": load,
        "num_envs": NUM_ENVS,
        "horizon": HORIZON,
        "environments": {name: environment_rates(name, repeats) for name in ENVIRONMENTS},
        "gradients": {name: gradient_rates(name, repeats) for name in TASKS},
        "shac": {name: shac_times(name, rounds) for name in TASKS},
    }
    data = json.loads(json.dumps(data))  # keys are text from here on, as in the file
    env = report.environment(None)
    lines = lines_of(data)
    print("", *lines, sep="\n")
    title = "Two cores measured, a thousand computed"
    paths = report.write_study(options.output, "scaling", title, env, lines, data)
    if not options.quick:
        put_into_page(PAGE, lines)
        paths.append(PAGE)
    print(*(f"written: {path}" for path in paths), sep="\n")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
