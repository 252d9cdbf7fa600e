"""Every column of the derivative of one step (by q, v, u, tau and parameters) against one-sided differences of the step."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from one_sided import one_sided

import coulomb

WRONG = 1e-6  # of the largest entry of the same input's columns
NOISE = 2e-12  # m/s: velocities where redundant contacts slide (rounding over the compliance)
LEAST_SCALE = 0.1
MOST_ENTRIES = 3  # of a parameter


@dataclass
class Column:
    name: str
    entry: int
    error: float  # of the derivative against the nearer side, relative
    kink: float  # the two sides against each other, relative; nan: one of them is not resolved
    known: bool  # both sides are resolved to WRONG

    @property
    def wrong(self):
        return self.known and self.error > WRONG


class Step:
    """One step as a function of changes of its inputs, from a frozen memory: the change of its end (q, v), None where it is relaxed.

    memory: of the steps before; None: that of the step itself."""

    def __init__(self, model, q, v, u, tau, memory=None, **options):
        self.model, self.inputs, self.options, self.memory = model, (q, v, u, tau), options, memory
        self.simulator = self.start(model)
        self.end = self.simulator.step(q, v, u, tau=tau)
        self.values = {name: np.asarray(p.value, dtype=float) for name, p in model.parameters().items()}

    def start(self, model):
        q, v, u, tau = self.inputs
        simulator = coulomb.Simulator(model, **self.options)
        if self.memory is None:
            simulator.step(q, v, u, tau=tau)
        else:
            simulator.memory = self.memory
        simulator.freeze_memory(True)
        return simulator

    def moved(self, name, x):
        """Forces by their impulse."""
        q, v, u, tau = self.inputs
        simulator, h = self.simulator, self.model.timestep
        if name == "q":
            q = self.model.integrate(q, x)
        elif name == "v":
            v = v + x
        elif name == "u":
            u = u + x / h
        elif name == "tau":
            tau = tau + x / h
        else:
            try:
                simulator = self.start(self.model.with_parameters({name: self.values[name] + x}))
            except ValueError:  # no such model: a limit beyond the other, a negative mass
                return None
        q1, v1 = simulator.step(q, v, u, tau=tau)
        if not simulator.status.converged:
            return None
        return np.r_[self.model.difference(self.end[0], q1), v1 - self.end[1]]

    def noise(self, random, size=1e-9):
        """Of the end's largest entry: what is left of f(x) - 2 f(2 x) + f(3 x) along changes of (q, v) too small to bend; 2e-12 m/s at least.

        One of the eight changes may meet a kink, which is no noise: the largest does not count.
        """
        scatter = []
        for name in ("q", "v") * 4:
            x = size * random.normal(size=self.model.nv)
            ends = [self.moved(name, k * x) for k in (1, 2, 3)]
            if all(end is not None for end in ends):
                scatter.append(np.max(np.abs(ends[0] - 2 * ends[1] + ends[2]), initial=0))
        least = NOISE * (1 + np.max(np.abs(self.end[1]), initial=0))
        return max([least, *sorted(scatter)[:-1]])

    def along(self, name, entry, size, count):
        x = np.zeros(count)
        x[entry] = size
        return self.moved(name, x)


def declared(simulator, derivatives):
    """Whether the step says that its derivative is one of several: ambiguous, a frozen contact that acts, a grazing impact."""
    frozen = any(c.frozen and c.mode != "separating" for c in simulator.contacts)
    return derivatives.ambiguous or frozen or any(impact.grazing for impact in simulator.impacts)


def compare(model, q, v, u, tau, random, parameters=4, memory=None, noise_size=1e-9, **options):
    """(list of Column, whether the step declares a kink, simulator), or None where the step was not solved as posed.

    noise_size: of changes that tell noise; well below the distance to any kink that most of them would meet."""
    step = Step(model, q, v, u, tau, memory, **options)
    if not step.simulator.status.converged:
        return None
    names = list(step.values)
    names = [names[i] for i in random.permutation(len(names))[:parameters]]
    step.simulator.step(q, v, u, tau=tau)
    d = step.simulator.derivatives(wrt=names)
    flagged = declared(step.simulator, d)
    h = model.timestep
    blocks = {"q": d.A[:, : model.nv], "v": d.A[:, model.nv :], "tau": d.B_tau / h, "u": d.B / h}
    blocks |= {name: d[name] for name in names}

    columns = []
    noise = step.noise(random, noise_size)
    for name, analytic in blocks.items():
        scale = max(np.max(np.abs(analytic), initial=0), LEAST_SCALE)
        count = analytic.shape[1]
        entries = random.permutation(count)[:MOST_ENTRIES] if name in names else range(count)
        for k in entries:
            f = partial(step.along, name, k, count=count)
            sides = [one_sided(f, sign, noise, 0.2 * WRONG * scale) for sign in (1, -1)]
            known = all(error <= WRONG * scale for _, error in sides)
            error = kink = np.nan
            if known:
                error = min(max(0.0, np.max(np.abs(side - analytic[:, k])) - own) for side, own in sides) / scale
                kink = np.max(np.abs(sides[0][0] - sides[1][0])) / scale
            columns.append(Column(name, int(k), error, kink, known))
    return columns, flagged, step.simulator
