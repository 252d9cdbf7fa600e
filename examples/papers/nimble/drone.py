"""Saddle points of contact: a drone that rests on the ground, and a box at the edge of sliding.

Nimble [Werling2021], complementarity-aware gradients: 500 steps of 1 ms, gradient descent of 50 iterations with rate 10, published as curves:
exact gradients make no progress at all, complementarity-aware ones escape after a few iterations.

drone   0.1 kg on a vertical rail, no friction, ±10 N, starts 0.1 mm in the ground at -0.1 mm/s, loss (5 m - y_T)^2. It presses on the
        ground with its weight, so a little thrust changes nothing: the exact gradient is zero. Nimble's rule differentiates a step with
        both classes of a contact, however firmly it presses, and takes the larger of |dl/dv|^2 + |dl/dtau|^2 / h:
        `gradient="complementarity_aware"` with `tie_margin=1`.
push    A box of 1 kg is pushed with exactly what friction holds, loss (0.5 m - x_T)^2. That is a tie: the documented side is sticking, from
        where a little more push changes nothing. `gradient="complementarity_aware"` takes the other side; here the usual tie_margin will do.

    python examples/papers/nimble/drone.py [--quick] [--output FOLDER]
"""

import numpy as np
from nimble_common import arguments, drone, finish, pushed_box

import coulomb
from coulomb.pictures import COLOURS, STYLE

STEPS, ITERATIONS, RATE, THRUST, TARGET = 500, 50, 10.0, 10.0, 5.0
PUSH_TARGET, PUSH_RATE, PUSH = 0.5, 3000.0, 0.5 * 9.81
LAWS = ("ncp", "lcp")


def descend(sim, q0, v0, target, rate, iterations, first=0.0):
    """Losses and final heights per iteration of gradient descent on (target - y_T)^2; y is the last coordinate, `first` the first guess."""
    u, losses = np.full((STEPS, 1), first), []
    for _ in range(iterations):
        r = sim.rollout(q0, v0, u)
        place = r.q[-1, -1]
        losses.append((target - place) ** 2)
        dQ, dV = np.zeros((2, STEPS + 1, len(q0)))
        dQ[-1, -1] = -2 * (target - place)
        u = np.clip(u - rate * r.vjp(dQ, dV).u, -THRUST, THRUST)
    return np.array(losses), sim.rollout(q0, v0, u)


def picture(curves, rollouts, path):
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 2, figsize=(11, 7.5), layout="constrained")
        times = 1e-3 * np.arange(STEPS + 1)
        for column, (task, target) in enumerate((("drone", TARGET), ("push", PUSH_TARGET))):
            top, bottom = axes[:, column]
            for k, (label, losses) in enumerate(curves[task].items()):
                wide, dashed = 3.5 - 1.8 * (k % 2), "-" if k % 2 == 0 else "--"
                top.plot(losses, dashed, color=COLOURS[k // 2], linewidth=wide, label=label)
                bottom.plot(
                    times, rollouts[task][label].q[:, -1], dashed, color=COLOURS[k // 2], linewidth=wide, label=label
                )
            top.set(xlabel="iteration of gradient descent", ylabel="loss [m²]")
            bottom.axhline(target, color="black", linestyle=":")
            bottom.set(
                xlabel="time [s]",
                ylabel="height, distance [m]",
                title="Motion after the last iteration; dotted: target",
            )
            top.legend()
        axes[0, 0].set_title("Drone that rests on the ground")
        axes[0, 1].set_title("Box pushed with exactly what friction holds")
        finish(figure, path)


def main():
    options = arguments(__doc__, "25 iterations instead of 50")
    iterations = 25 if options.quick else ITERATIONS
    tasks = {  # scene, tie_margin, and what gradient descent takes
        "drone": (drone(), 1.0, (TARGET, RATE, iterations)),
        "push": (pushed_box(), 1e-6, (PUSH_TARGET, PUSH_RATE, iterations, PUSH)),
    }
    curves, rollouts = {task: {} for task in tasks}, {task: {} for task in tasks}
    for task, ((model, *start), margin, descent) in tasks.items():
        for law in LAWS:
            for name, gradient in (("exact", "exact"), ("aware", "complementarity_aware")):
                ties = {"tie_margin": margin} if name == "aware" else {}
                sim = coulomb.Simulator(model, contact=law, baumgarte=0, gradient=gradient, **ties)
                found = descend(sim, *start, *descent)
                curves[task][f"{name}, {law}"], rollouts[task][f"{name}, {law}"] = found
    print("published: exact gradients make no progress, complementarity-aware ones escape after several iterations")
    for task, runs in curves.items():
        for label, losses in runs.items():
            moved = np.flatnonzero(losses < losses[0] * (1 - 1e-9))
            when = f"escapes after {moved[0]} iterations" if len(moved) else "never moves"
            print(f"here, {task}, {label}: loss {losses[0]:.4f} to {losses[-1]:.1e}, {when}")
            if label.startswith("exact"):
                assert np.all(losses == losses[0]), (task, label)  # to the bit
            else:
                assert losses[-1] < 0.05 * losses[0] and 0 < moved[0] <= 10, (task, label, losses)
    picture(curves, rollouts, options.output / "nimble_drone.png")


if __name__ == "__main__":
    main()
