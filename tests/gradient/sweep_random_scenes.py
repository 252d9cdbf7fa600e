"""Derivatives of steps and of rollouts of random scenes, of every law and stepper, against one-sided differences: writes random_scenes.md.

python tests/gradient/sweep_random_scenes.py [--scenes 340] [--rollouts 40] [--steps 200] [--laws cone,bdf2] [--jobs 2]
"""

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rollout_sides import compare_rollout  # noqa: E402
from step_columns import WRONG, compare  # noqa: E402
from sweep_random_trees import KINK, table  # noqa: E402

from scenes.random_scenes import LAWS, build  # noqa: E402


def judged(compared):
    """(all known ones, those off both sides, those with a kink) of columns or directions."""
    known = [x for x in compared if x.known]
    return known, [x for x in known if x.wrong], [x for x in known if x.kink > KINK]


def sweep_steps(law, scenes):
    counts, notes = Counter(), []
    for seed in range(scenes):
        case = build(seed, law)
        random = np.random.default_rng(seed)
        counts["scenes"] += 1
        result = compare(case.model, case.q, case.v, case.u, case.tau, random, memory=case.memory, **case.options)
        if result is None:
            counts["not solved as posed"] += 1
            continue
        columns, flagged, _ = result
        known, wrong, kinks = judged(columns)
        counts["columns"] += len(columns)
        counts["known"] += len(known)
        counts["flagged"] += flagged
        counts["wrong, flagged"] += bool(wrong) and flagged
        counts["wrong, not flagged"] += bool(wrong) and not flagged
        counts["kink, not flagged"] += bool(kinks) and not wrong and not flagged
        if flagged or not wrong + kinks:
            continue
        worst = max(wrong or kinks, key=lambda column: column.error if wrong else column.kink)
        notes.append(
            f"- {law}, scene {seed} ({case.state}): {worst.name}[{worst.entry}], error {worst.error:.1e}, "
            f"sides differ by {worst.kink:.1e}, {len(wrong)} columns wrong"
        )
    return counts, notes


def sweep_rollouts(law, scenes, steps):
    counts, notes = Counter(), []
    for seed in range(scenes):
        case = build(seed, law)
        random = np.random.default_rng(seed)
        counts["rollouts"] += 1
        result = compare_rollout(
            case.model, case.q, case.v, case.u, case.tau, random, steps, parameters=2, **case.options
        )
        if result is None:
            counts["not solved as posed"] += 1
            continue
        directions, flagged = result
        known, wrong, kinks = judged(directions)
        counts["directions"] += len(directions)
        counts["known"] += len(known)
        counts["flagged"] += flagged
        counts["wrong, flagged"] += bool(wrong) and flagged
        counts["wrong, not flagged"] += bool(wrong) and not flagged
        if wrong and not flagged:
            worst = max(wrong, key=lambda direction: direction.error)
            notes.append(
                f"- {law}, rollout {seed} ({case.state}): {worst.name}, error {worst.error:.1e}, "
                f"sides differ by {worst.kink:.1e}"
            )
    return counts, notes


def sweep(law, scenes, rollouts, steps):
    """(counts of steps, counts of rollouts, notes of both)."""
    of_steps, notes = sweep_steps(law, scenes)
    of_rollouts, more = sweep_rollouts(law, rollouts, steps)
    print(law, dict(of_steps), dict(of_rollouts), flush=True)
    return of_steps, of_rollouts, notes + more


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenes", type=int, default=340)
    parser.add_argument("--rollouts", type=int, default=40)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--laws", default=",".join(LAWS))
    parser.add_argument("--report", default=str(Path(__file__).parent / "random_scenes.md"))
    arguments = parser.parse_args()
    laws = arguments.laws.split(",")
    asked = arguments.scenes, arguments.rollouts, arguments.steps
    with ProcessPoolExecutor(arguments.jobs) as pool:
        found = list(pool.map(sweep, laws, *([x] * len(laws) for x in asked)))
    steps = [(law, counts) for law, (counts, _, _) in zip(laws, found)]
    rollouts = [(law, counts) for law, (_, counts, _) in zip(laws, found)]
    notes = [note for _, _, more in found for note in more]
    of_steps = ["scenes", "not solved as posed", "columns", "known", "flagged", "wrong, flagged", "wrong, not flagged", "kink, not flagged"]  # fmt: skip
    of_rollouts = ["rollouts", "not solved as posed", "directions", "known", "flagged", "wrong, flagged", "wrong, not flagged"]  # fmt: skip
    text = f"""# Random scenes of every law and stepper: derivatives against one-sided differences

Written by `make sweep`. Scenes of `scenes/random_scenes.py`: free bodies of all shapes (at rest, stacked, tumbling, in flight), random trees,
or both; servos, restitution, compliance, and the options of the law. By q, v, u, tau and four parameters of each scene, the time step among them.
Known: the differences of both sides are good to {WRONG:g} of the largest entry of its input's columns. Wrong: off both sides by more than that.
Flagged: `ambiguous`, a contact that acts and is `frozen`, or a grazing impact. Kinks that are not flagged are those of docs/conventions.md.

## Steps

{table(of_steps, steps)}

## Rollouts of {arguments.steps} steps

One random direction of all inputs together, and one of each of two parameters. Known, wrong: relative to the gradient, at least to 1;
not known where the gradient is so large that no difference stays near its trajectory.

{table(of_rollouts, rollouts)}

## Found

{chr(10).join(notes) if notes else "Nothing."}
"""
    Path(arguments.report).write_text(text)
    print(text)
    return any(counts["wrong, not flagged"] for _, counts in steps + rollouts)


if __name__ == "__main__":
    sys.exit(main())
