"""A finger that reaches four points one after the other, two of them beyond its reach: control alone, and with its shape.

DiffRedMax's finger reach, with a finger of our own in cages: no gravity, 600 steps of 5 ms, controls in blocks of 20 steps, a target
for 150 steps; sum over the blocks of 0.1 |u|^2 + 10 |tip - target|, in cm. 120 controls and 9 scales between 0.5 and 4.
The distance itself, not its square, is the cost, and the last target counts as much as the first.

    python examples/papers/diffredmax/finger_reach.py [--quick] [--output FOLDER]
"""

import codesign_common as common
import numpy as np

TARGETS = common.CM * np.array([(10, -5, -5), (10, -5, 5), (20, 10, 10), (20, 10, -10)])
STEPS, BLOCK, HOLD = 600, 20, 150


def task():
    chain = common.finger()
    model = common.build([chain], 0.2, gravity=0, timestep=5e-3)

    def cost(book, u):
        total = 0.1 * np.sum(u**2)
        for k in range(len(u)):
            t = (k + 1) * BLOCK
            gap = book.point(t, "p2") - TARGETS[(t - 1) // HOLD]
            distance = np.linalg.norm(gap)
            total += 10 * distance / common.CM
            book.pull(t, "p2", 10 / common.CM * gap / max(distance, 1e-9))
        return total, 0.2 * u

    return common.Task(
        common.morphology(model, [chain]),
        cost,
        model.neutral(),
        steps=STEPS,
        block=BLOCK,
        bounds={None: (0.5, 4)},
        stepper="bdf2",
    )


def nearest(reach, a, x):
    """Row number and distance (m) of the tip when it is nearest to each target in its time."""
    book = common.Book(reach, reach.simulate(a, x)[1], x)
    out = []
    for i, target in enumerate(TARGETS):
        times = range(i * HOLD + 1, (i + 1) * HOLD + 1)
        out.append(min((np.linalg.norm(book.point(t, "p2") - target), t) for t in times))
    return np.array(out)


def targets(axes, model, t):
    for i, (x, y, z) in enumerate(TARGETS):
        now = i == (t - 1) // HOLD
        axes.plot([x], [y], [z], "o", color="#b2182b" if now else "#bbbbbb", markersize=7 if now else 4, zorder=9)


def main():
    options = common.arguments(__doc__, quick="few iterations")
    reach = task()
    results = common.study(
        "Finger reach",
        reach,
        options,
        at=(0.3, 1.1),
        iterations=(25, 500),
        describe=lambda a, x: (
            "comes to the targets within %.1f, %.1f, %.1f, %.1f mm" % tuple(1000 * nearest(reach, a, x)[:, 0])
        ),
        frames=lambda results: {label: nearest(reach, a, x)[:, 1].astype(int) for label, (a, x, _) in results.items()},
        limits=((-0.01, 0.24), (-0.08, 0.12), (-0.12, 0.12)),
        extra=targets,
    )
    if not options.quick:
        control, both = results.values()
        assert both[2][-1] < 0.5 * control[2][-1]
        assert nearest(reach, *control[:2])[:, 0].max() > 0.03 and nearest(reach, *both[:2])[:, 0].max() < 0.01


if __name__ == "__main__":
    main()
