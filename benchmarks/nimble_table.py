"""Nimble's benchmark table on its four scenes: the Jacobians of a step, analytic, by central differences, and by Ridders' extrapolation.

[Werling2021, tables II and III]. All five Jacobians: d(q1, v1) by q, v and joint forces. The three ways are timed in turns in one
process, from Python, on the same states; differences call the same step. Central differences and Ridders get both rows of a column from one
pair of steps, where Nimble's five times count every Jacobian apart. Worm and catapult are those of examples/papers/nimble/nimble_common.py; half cheetah
and Atlas are the benchmark's robots (Nimble's are from its own files). The published times are another machine's: compare ratios.

    python benchmarks/nimble_table.py [--quick] [--models FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import thread_time_ns

import numpy as np
from robots import find_robots

import coulomb

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "papers" / "nimble"))
import nimble_common  # noqa: E402

LAWS = ("ncp", "lcp")
PUBLISHED = {  # ms: analytic, central, Ridders (table III, "All")
    "worm": (0.256, 3.82, 9.727),
    "catapult": (0.265, 4.36, 12.0),
    "half_cheetah": (0.395, 8.64, 24.0),
    "atlas": (8.53, 749.0, 2229.0),
}
STATES = 5  # of a robot
STEP = 1e-6  # of central differences
RIDDERS_START, RIDDERS_SHRINK, RIDDERS_ROWS = 1e-4, 1.4, 10


def own_scenes():
    """name -> (model, q, v): the two scenes of Nimble's experiments that are no robots, in contact."""
    worm, catapult = nimble_common.jumpworm(), nimble_common.catapult()
    worm[1][1] = -0.14  # the last link in the floor
    catapult[1][1:4] = -0.025, 0.77, 0.01  # the cube on the arm, 6 mm deep; no joint at its limit
    return {"worm": worm, "catapult": catapult}


def scenes(models):
    """name -> (model, states in contact as a list of (q, v)); messages about what is missing."""
    found = {name: (model, [(q, v)]) for name, (model, q, v) in own_scenes().items()}
    robots, missing = find_robots(models, None)
    for name, load in robots:
        if name in PUBLISHED:
            robot = load()
            picked = range(0, len(robot.q), 4)
            found[name] = (robot.model, [(robot.q[i].copy(), robot.v[i].copy()) for i in picked])
    missing = [message for message in missing if message.split(":")[0] in PUBLISHED]
    if "atlas" not in found:
        missing.append(
            "atlas: no model; --models or COULOMB_BENCH_MODELS names a folder with atlas/model.xml and states.npz"
        )
    return found, missing


class Differences:
    """The Jacobian of the step by q, v and tau, column by column."""

    def __init__(self, sim, q, v):
        self.sim, self.q, self.v, self.model = sim, q, v, sim.model
        self.tau = np.zeros(self.model.nv)
        self.q1, self.v1 = sim.step(q, v, None, self.tau)

    def moved(self, column, size):
        """The next state after one entry of the input was moved, relative to the one without, in tangent space."""
        nv, model = self.model.nv, self.model
        by, entry = divmod(column, nv)
        direction = np.zeros(nv)
        direction[entry] = size
        q = model.integrate(self.q, direction) if by == 0 else self.q
        v = self.v + direction if by == 1 else self.v
        a, b = self.sim.step(q, v, None, direction if by == 2 else self.tau)
        return np.concatenate([model.difference(self.q1, a), b - self.v1])

    def slopes(self, size):
        """Central differences with steps of this size: (2 nv, 3 nv)."""
        columns = [self.moved(k, size) - self.moved(k, -size) for k in range(3 * self.model.nv)]
        return np.stack(columns, axis=1) / (2 * size)

    def central(self):
        return self.slopes(STEP)

    def ridders(self):
        """Central differences at shrinking steps, extrapolated to zero; per entry the value whose neighbours agree best."""
        size, row = RIDDERS_START, [self.slopes(RIDDERS_START)]
        best, error = row[0], np.full(row[0].shape, np.inf)
        for _ in range(RIDDERS_ROWS - 1):
            size /= RIDDERS_SHRINK
            above, row, factor = row, [self.slopes(size)], 1.0
            for previous in above:
                factor *= RIDDERS_SHRINK**2
                row.append((factor * row[-1] - previous) / (factor - 1))
                estimate = np.maximum(np.abs(row[-1] - row[-2]), np.abs(row[-1] - previous))
                better = estimate < error
                best, error = np.where(better, row[-1], best), np.where(better, estimate, error)
            if np.all(np.abs(row[-1] - above[-1]) >= 2 * error):
                break
        return best


def clock(function, repeats):
    """The median of the CPU time, µs: whatever else the machine does."""
    samples = []
    for _ in range(repeats):
        start = thread_time_ns()
        function()
        samples.append(thread_time_ns() - start)
    return 1e-3 * float(np.median(samples))


def time_scene(model, states, law, quick):
    """Means over the first STATES states in contact, µs, and the largest difference of the analytic Jacobian from Ridders', relative.

    Passed over: states on a kink, where another contact begins within STEP, so that differences are of no use.
    """
    sim = coulomb.Simulator(model, contact=law)
    rows, contacts, errors = [], [], []
    for q, v in states:
        sim.freeze_memory(False)
        sim.reset()
        sim.step(q, v)  # every way then starts from the impulses of this step
        sim.freeze_memory(True)
        differences = Differences(sim, q, v)
        touching = len(sim.contacts)

        def analytic():
            sim.step(q, v)  # noqa: B023
            d = sim.derivatives()
            return d.A, d.B_tau

        exact = np.hstack(analytic())
        scale = np.abs(exact).max()
        if touching == 0 or np.abs(exact - differences.central()).max() > 1e-4 * scale:
            continue
        contacts.append(touching)
        errors.append(np.abs(exact - differences.ridders()).max() / scale)
        ways = {
            "step": (lambda: sim.step(q, v), 300),  # noqa: B023
            "analytic": (analytic, 300),
            "central": (differences.central, 5),
            "ridders": (differences.ridders, 2),
        }
        turns = [{name: clock(f, n // 5 if quick else n) for name, (f, n) in ways.items() if n >= 5 or not quick}]
        if quick:
            turns[0]["ridders"] = clock(differences.ridders, 1)
        else:
            turns += [{name: clock(f, n) for name, (f, n) in ways.items()} for _ in range(2)]
        rows.append({name: float(np.median([turn[name] for turn in turns])) for name in ways})
        if len(rows) == STATES:
            break
    out = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return {"us": out, "nv": model.nv, "contacts": float(np.mean(contacts)), "difference": float(max(errors))}


def measure(models, quick):
    """{(scene, law): result}, messages about what is missing."""
    found, missing = scenes(models)
    results = {}
    for name in PUBLISHED:
        for law in LAWS:
            if name in found:
                results[name, law] = time_scene(*found[name], law, quick)
    return results, missing


def table(results):
    """The lines of a Markdown table."""
    titles = ["scene", "law", "nv", "contacts", "step", "+Jacobian", "central", "Ridders", "central/J", "Ridders/J"]
    titles += ["published ms", "ratios", "J against Ridders"]
    rows = []
    for (name, law), result in results.items():
        us, published = result["us"], PUBLISHED[name]
        rows.append(
            [name, law, str(result["nv"]), f"{result['contacts']:.1f}"]
            + [
                f"{us[way]:.1f}" if us[way] < 1000 else f"{us[way]:.0f}"
                for way in ("step", "analytic", "central", "ridders")
            ]
            + [f"{us['central'] / us['analytic']:.0f}", f"{us['ridders'] / us['analytic']:.0f}"]
            + ["/".join(f"{x:g}" for x in published), "/".join(f"{x / published[0]:.0f}" for x in published[1:])]
            + [f"{result['difference']:.0e}"]
        )
    widths = [max(len(row[i]) for row in [titles, *rows]) for i in range(len(titles))]
    lines = ["| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths)) + " |" for row in [titles, *rows]]
    lines.insert(1, "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|")
    return lines


EXPLANATION = """\
Nimble's table (RSS 2021, table III): step, step and all its Jacobians (+Jacobian), central differences, Ridders; µs, from Python, one core.
Published: analytic/central/Ridders, ms, on the authors' machine; ratios: to analytic."""


def section(results):
    """(what report.write adds to the JSON file, lines of the Markdown file)"""
    data = {f"{name}, {law}": {**result, "published_ms": PUBLISHED[name]} for (name, law), result in results.items()}
    return {"nimble_table": data}, ["", *table(results), "", EXPLANATION] if results else []


def main():
    from run import arguments, pin_to_one_core

    options = arguments()
    pin_to_one_core()
    results, missing = measure(options.models, options.quick)
    for message in missing:
        print("left out:", message)
    print(*table(results), EXPLANATION, sep="\n")


if __name__ == "__main__":
    main()
