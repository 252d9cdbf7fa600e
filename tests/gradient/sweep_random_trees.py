"""Derivatives of steps and short rollouts of many random trees against one-sided differences: writes random_trees.md beside this file.

python tests/gradient/sweep_random_trees.py [--scenes 700] [--rollouts 300]
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rollout_sides import compare_rollout  # noqa: E402
from step_columns import WRONG, compare  # noqa: E402
from test_random_trees import LAWS  # noqa: E402

from scenes.random_trees import build  # noqa: E402

KINK = 1e-5  # of the largest entry: two sides that differ by more


def sweep_steps(scenes, options):
    counts = Counter()
    notes = []
    for seed in range(scenes):
        model, q, v, u, tau, state = build(seed)
        compared = compare(model, q, v, u, tau, np.random.default_rng(seed), **options)
        if compared is None:
            counts["relaxed"] += 1
            continue
        columns, ambiguous, _ = compared
        known = [column for column in columns if column.known]
        wrong = [column for column in known if column.wrong]
        kinks = [column for column in known if column.kink > KINK]
        counts["scenes"] += 1
        counts["columns"] += len(columns)
        counts["known"] += len(known)
        counts["ambiguous"] += ambiguous
        counts["wrong"] += bool(wrong)
        counts["wrong, not ambiguous"] += bool(wrong) and not ambiguous
        counts["kink, not ambiguous"] += bool(kinks) and not ambiguous
        counts["ambiguous, but smooth"] += ambiguous and len(known) == len(columns) and not wrong and not kinks
        if not ambiguous:
            notes += [
                f"scene {seed} ({state}): {c.name}[{c.entry}], error {c.error:.1e}, sides differ by {c.kink:.1e}"
                for c in known
                if c.wrong or c.kink > KINK
            ]
    return counts, notes


def sweep_rollouts(scenes, options):
    counts = Counter()
    notes = []
    for seed in range(scenes):
        result = compare_rollout(*build(seed)[:5], np.random.default_rng(seed), steps=12, **options)
        if result is None or result[1]:
            counts["ambiguous or relaxed"] += 1
            continue
        counts["rollouts"] += 1
        if not all(direction.known for direction in result[0]):
            continue
        counts["known"] += 1
        wrong = [direction for direction in result[0] if direction.wrong]
        counts["wrong, not ambiguous"] += bool(wrong)
        notes += [f"rollout {seed}: error {direction.error:.1e}" for direction in wrong]
    return counts, notes


def table(names, rows):
    lines = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    lines += [f"| {law} | " + " | ".join(str(counts[name]) for name in names) + " |" for law, counts in rows]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenes", type=int, default=700)
    parser.add_argument("--rollouts", type=int, default=300)
    arguments = parser.parse_args()
    steps, rollouts, notes = [], [], []
    for law, options in LAWS.items():
        counts, found = sweep_steps(arguments.scenes, options)
        steps.append((law, counts))
        notes += [f"- {law}: {note}" for note in found]
        counts, found = sweep_rollouts(arguments.rollouts, options)
        rollouts.append((law, counts))
        notes += [f"- {law}: {note}" for note in found]
    notes = notes[:60]
    text = f"""# Random trees: derivatives against one-sided differences

Written by `make sweep`. Scenes of `scenes/random_trees.py`: dry friction, limits, equalities, springs, motors, contacts, in states where they meet.
A column is known where the differences of both sides are good to {WRONG:g} of the largest entry of its input's columns; it is wrong where it
is off both sides by more than that.

## Steps

{table(["scenes", "relaxed", "columns", "known", "ambiguous", "wrong", "wrong, not ambiguous", "kink, not ambiguous", "ambiguous, but smooth"], steps)}

"ambiguous, but smooth": all columns are known and their sides agree. The differences begin at 4e-8, bands of the compliance of 1e-8 are flagged.

## Rollouts of 12 steps

{table(["rollouts", "ambiguous or relaxed", "known", "wrong, not ambiguous"], rollouts)}

## Found

{chr(10).join(notes) if notes else "Nothing."}
"""
    (Path(__file__).parent / "random_trees.md").write_text(text)
    print(text)
    return any(counts["wrong, not ambiguous"] for _, counts in steps + rollouts)


if __name__ == "__main__":
    sys.exit(main())
