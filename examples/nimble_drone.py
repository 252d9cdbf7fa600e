"""Saddle points of contact: a drone that rests on the ground, and a box at the edge of sliding.

Nimble (RSS 2021), complementarity-aware gradients: 500 steps of 1 ms, gradient descent of 50 iterations with rate 10, published as curves:
exact gradients make no progress at all, complementarity-aware ones escape after a few iterations.

drone   0.1 kg on a vertical rail, ±10 N, starts 0.1 mm in the ground at -0.1 mm/s, loss (5 m - y_T)^2. It presses on the ground with its
        weight, so a little thrust changes nothing: the exact gradient is zero. Nimble's rule differentiates every step twice, with the
        contacts that were found and without those that the loss wants to open, and takes the larger of |dl/dv|^2 + |dl/dtau|^2 / h. Contacts
        that press are no ties, so `gradient="complementarity_aware"` does not open them; the rule is spelled out here, on top of vjp.
push    A box of 1 kg is pushed with exactly what friction holds, loss (0.5 m - x_T)^2. That is a tie: the documented side is sticking, from
        where a little more push changes nothing. `gradient="complementarity_aware"` takes the other side.

    python examples/nimble_drone.py [--quick] [--output FOLDER]
"""

import numpy as np
from nimble_common import drone, pushed_box
from plot_common import arguments, finish

import coulomb
from coulomb.pictures import COLOURS, STYLE

STEPS, ITERATIONS, RATE, THRUST, TARGET = 500, 50, 10.0, 10.0, 5.0
PUSH_TARGET, PUSH_RATE, PUSH = 0.5, 3000.0, 0.5 * 9.81
LAWS = ("ncp", "lcp")


def descend(sim, q0, v0, gradient, target, rate, iterations, first=0.0):
    """Losses and final heights per iteration of gradient descent on (target - y_T)^2; y is the last coordinate, `first` the first guess."""
    u, losses = np.full((STEPS, 1), first), []
    for _ in range(iterations):
        r = sim.rollout(q0, v0, u)
        place = r.q[-1, -1]
        losses.append((target - place) ** 2)
        cotangent = np.zeros(len(q0))
        cotangent[-1] = -2 * (target - place)
        u = np.clip(u - rate * gradient(sim, r, u, cotangent), -THRUST, THRUST)
    return np.array(losses), sim.rollout(q0, v0, u)


def of_rollout(sim, r, u, cotangent):
    """The gradient by the controls that the simulator gives."""
    dQ = np.zeros((STEPS + 1, len(cotangent)))
    dQ[-1] = cotangent
    return r.vjp(dQ, 0 * dQ).u


def nimbles_rule(without_contact):
    """The same with, at every step, the larger of the gradients with and without the contact."""

    def gradient(sim, r, u, cotangent):
        dq, dv, out = cotangent, 0 * cotangent, np.zeros_like(u)
        for k in reversed(range(STEPS)):
            candidates = []
            for way in (sim, without_contact):
                way.step(r.q[k], r.v[k], u[k])
                candidates.append(way.vjp(dq, dv))
            g = max(candidates, key=lambda g: g.v @ g.v + g.tau @ g.tau / sim.timestep)
            dq, dv, out[k] = g.q, g.v, g.u
        return out

    return gradient


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
    model, *start = drone()
    pushed, *push_start = pushed_box()
    curves, rollouts = {"drone": {}, "push": {}}, {"drone": {}, "push": {}}
    for law in LAWS:
        sim = coulomb.Simulator(model, contact=law, baumgarte=0)
        free = coulomb.Simulator(drone(floor=False)[0], contact=law)
        for name, gradient in (("exact", of_rollout), ("aware", nimbles_rule(free))):
            found = descend(sim, *start, gradient, TARGET, RATE, iterations)
            curves["drone"][f"{name}, {law}"], rollouts["drone"][f"{name}, {law}"] = found
        for name, gradient in (("exact", "exact"), ("aware", "complementarity_aware")):
            sim = coulomb.Simulator(pushed, contact=law, baumgarte=0, gradient=gradient)
            found = descend(sim, *push_start, of_rollout, PUSH_TARGET, PUSH_RATE, iterations, PUSH)
            curves["push"][f"{name}, {law}"], rollouts["push"][f"{name}, {law}"] = found
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
