"""The derivative of a trajectory's end against one-sided differences of the trajectory."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from one_sided import SIZES, one_sided
from step_columns import NOISE, WRONG

import coulomb

MOST_MOVED = (
    0.01  # m, m/s: a trajectory that doubles changes at every impact goes elsewhere whatever the size of a difference
)


@dataclass
class Direction:
    """A derivative along one random direction."""

    name: str  # "inputs": q, v, u and tau of every step; else a parameter
    error: float  # against the nearer side, less what that side does not know; of the gradient's norm
    kink: float  # the two sides against each other, of the gradient's norm
    known: bool  # both sides are resolved to WRONG, and the smallest change moves the end by less than MOST_MOVED if the gradient holds

    @property
    def wrong(self):
        return self.known and self.error > WRONG


class Trajectory:
    """Steps from (q, v) with constant u and tau, and w . its end as a function of changes of what it depends on."""

    def __init__(self, model, q, v, u, tau, random, steps, **options):
        self.model, self.options = model, options
        self.start = q, v, np.tile(u, (steps, 1)), np.tile(tau, (steps, 1))
        self.rollout = self.run(model, *self.start)
        self.w = random.normal(size=(2, model.nv))

    def run(self, model, q, v, U, tau):
        return coulomb.Simulator(model, **self.options).rollout(q, v, U, tau=tau)

    def gradient(self, names):
        weights = np.zeros((2, len(self.rollout.q), self.model.nv))
        weights[:, -1] = self.w
        return self.rollout.vjp(*weights, wrt=names)

    def change(self, rollout):
        """w . the change of the end; None where a step was not solved as posed."""
        if not rollout.converged:
            return None
        dq = self.model.difference(self.rollout.q[-1], rollout.q[-1])
        return np.array([self.w[0] @ dq + self.w[1] @ (rollout.v[-1] - self.rollout.v[-1])])

    def along_inputs(self, dq, dv, dU, dtau, h):
        q, v, U, tau = self.start
        return self.change(
            self.run(self.model, self.model.integrate(q, h * dq), v + h * dv, U + h * dU, tau + h * dtau)
        )

    def along_parameter(self, name, value, direction, h):
        try:
            model = self.model.with_parameters({name: value + h * direction})
        except ValueError:  # no such model: a negative mass
            return None
        return self.change(self.run(model, *self.start))


def rounding(f, speed):
    """Of f: what is left of f(x) - 2 f(2 x) + f(3 x) for changes too small to bend, where redundant contacts slide 2e-11 m/s at least."""
    noise = 10 * NOISE * speed
    for size in (1e-9, -1e-9, 1.3e-9, -1.3e-9):
        ends = [f(k * size) for k in (1, 2, 3)]
        if all(end is not None for end in ends):
            noise = max(noise, np.max(np.abs(ends[0] - 2 * ends[1] + ends[2])))
    return noise


def compare_rollout(model, q, v, u, tau, random, steps, parameters=0, **options):
    """(list of Direction, whether a step declares a kink); None where a step was not solved as posed."""
    trajectory = Trajectory(model, q, v, u, tau, random, steps, **options)
    if not trajectory.rollout.converged:
        return None
    values = {name: np.asarray(p.value, dtype=float) for name, p in model.parameters().items()}
    names = [str(name) for name in random.permutation(list(values))[:parameters]]
    gradient = trajectory.gradient(names)

    # One direction of all inputs together, forces as large as what they move; one of every parameter.
    h = model.timestep
    inputs = [random.normal(size=x.shape) for x in trajectory.start[1:2] * 2 + trajectory.start[2:]]
    inputs[2] *= 1 / (steps * h)
    inputs[3] *= 1 / (steps * h)
    slopes = {
        "inputs": sum(np.sum(g * d) for g, d in zip((gradient.q0, gradient.v0, gradient.u, gradient.tau), inputs))
    }
    functions = {"inputs": partial(trajectory.along_inputs, *inputs)}
    sizes = {"inputs": np.linalg.norm(np.r_[gradient.q0, gradient.v0])}
    for name in names:
        direction = random.normal(size=values[name].shape) * np.maximum(np.abs(values[name]), 0.02)
        slopes[name] = np.sum(gradient[name] * direction)
        functions[name] = partial(trajectory.along_parameter, name, values[name], direction)
        sizes[name] = np.linalg.norm(gradient[name]) * np.linalg.norm(direction)

    directions = []
    speed = 1 + np.max(np.abs(trajectory.rollout.v[-1]), initial=0)
    for name, f in functions.items():
        scale = max(1.0, sizes[name])
        noise = rounding(f, speed)
        sides = [one_sided(f, sign, noise, 0.2 * WRONG * scale) for sign in (1, -1)]
        known = bool(scale * SIZES[0] <= MOST_MOVED) and all(error <= WRONG * scale for _, error in sides)
        error = kink = np.nan
        if known:
            error = min(max(0.0, abs(side[0] - slopes[name]) - own) for side, own in sides) / scale
            kink = abs(sides[0][0][0] - sides[1][0][0]) / scale
        directions.append(Direction(name, error, kink, known))
    return directions, bool(gradient.ambiguous)
