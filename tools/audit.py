"""Random scenes of every kind against rules that need no reference: energy, momentum, company, symmetry, order, the contact law, MuJoCo.

python tools/audit.py [--seconds 3600] [--jobs 2] [--report FILE]
python tools/audit.py --kind loops --law ncp --seed 3 [--rule energy]       # one trial, with everything that was measured

A trial is a kind of scene, a contact law with its stepper, and a seed: the same three, the same trial. Ctrl-C ends early and reports what was seen.
Exit code 1: a rule was broken. tools/auditing/ has scenes and rules.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import shlex
import signal
import sys
import time
from pathlib import Path

import auditing  # noqa: F401  (registers the rules)
from auditing.measures import RULES, Measure
from auditing.report import Tally
from auditing.trials import KINDS, LAWS, Trial, laws_of

from coulomb.progress import Bar

REPORT_EVERY = 60  # s: a run that is killed has lost no more than this
LONGEST = 60  # s of the processor, of one trial; one that takes longer is a finding


def _too_long(*_):
    raise TimeoutError(f"a trial took more than {LONGEST} s of the processor")


def measured(kind, law, seed, rules):
    """{rule: Measure} of one trial. An exception is a broken rule, too."""
    trial, out = Trial(kind, law, seed), {}
    signal.signal(signal.SIGVTALRM, _too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
    try:
        for name in rules:
            try:
                measure = RULES[name][0](trial)
            except TimeoutError:
                raise
            except Exception as error:  # whatever it is, it is reported with its trial
                measure = Measure(float("inf"), 0.0, f"{type(error).__name__}: {error}"[:200])
            if measure is not None:
                out[name] = measure
    except TimeoutError as error:
        out["finite"] = Measure(float("inf"), 0.0, str(error))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return out


def _job(task):
    return task, measured(*task)


def _tasks(options, deadline):
    """Trials, one seed of every kind and law after the other, until the time is over."""
    seeds = (
        itertools.count(options.first_seed)
        if options.seeds is None
        else range(options.first_seed, options.first_seed + options.seeds)
    )
    for seed in seeds:
        for law in options.law:
            for kind in (k for k in options.kind if law in laws_of(k)):
                if time.monotonic() > deadline:
                    return
                yield kind, law, seed, tuple(options.rule)


def audit(options):
    """The Tally of all trials that fit into the time."""
    tally, bar = Tally(), Bar("s")
    begin = time.monotonic()
    next_report = begin + REPORT_EVERY
    ignore = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)  # noqa: E731  (Ctrl-C is for the parent)
    pool = multiprocessing.get_context("fork").Pool(options.jobs, ignore, maxtasksperchild=200)
    try:
        # A bounded queue: tasks are made as results come in, so that the end of the time is seen.
        tasks, pending = _tasks(options, begin + options.seconds), []
        for task in itertools.islice(tasks, 2 * options.jobs):
            pending.append(pool.apply_async(_job, (task,)))
        while pending:
            (kind, law, seed, _), measures = pending.pop(0).get()
            tally.add(kind, law, seed, measures)
            for task in itertools.islice(tasks, 1):
                pending.append(pool.apply_async(_job, (task,)))
            done = min(int(time.monotonic() - begin), int(options.seconds))
            bar(done, int(options.seconds), f"{tally.trials} trials, {tally.broken} findings")

            # What has been seen so far is on disk: an hour is long enough to be cut off.
            if options.report and time.monotonic() > next_report:
                next_report += REPORT_EVERY
                tally.seconds = time.monotonic() - begin
                options.report.write_text(tally.text(options.command) + "\n")
        pool.close()
    except KeyboardInterrupt:
        pool.terminate()
        tally.interrupted = True
    finally:
        bar.close()
        pool.join()
    tally.seconds = time.monotonic() - begin
    return tally


def one(options):
    """One trial, with everything that was measured."""
    broken = False
    for kind, law in itertools.product(options.kind, options.law):
        if law not in laws_of(kind):
            continue
        measures = measured(kind, law, options.seed, options.rule)
        for name, m in measures.items():
            broken |= m.broken
            print(
                f"{kind} {law} {options.seed} {name:15} {'BROKEN' if m.broken else 'holds ':6} {m.value:10.3g} <= {m.bound:8.3g}  {m.note}"
            )
    return broken


def _command(arguments):
    """What repeats it: without the report's own name."""
    parts = list(arguments)
    if "--report" in parts:
        at = parts.index("--report")
        del parts[at : at + 2]
    return shlex.join(["python", "tools/audit.py", *parts])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--law", nargs="+", choices=LAWS, default=list(LAWS))
    parser.add_argument("--rule", nargs="+", choices=RULES, default=list(RULES))
    parser.add_argument("--seed", type=int, help="one seed alone, and what was measured of it")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, help="as many seeds at most (default: until the time is over)")
    parser.add_argument("--report", type=Path, help="Markdown; without it, none is written")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        return int(one(options))
    options.command = _command(sys.argv[1:] if arguments is None else arguments)
    tally = audit(options)
    text = tally.text(options.command)
    print(text)
    if options.report:
        options.report.write_text(text + "\n")
    return int(tally.broken > 0)


if __name__ == "__main__":
    sys.exit(main())
