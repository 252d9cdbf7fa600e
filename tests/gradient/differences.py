"""The Jacobian of a step by differences that know their own error (coulomb._differences), through the public interface.

The simulator's memory is frozen, so that every step solves the same problem from the same start. Sizes grow as long as every step
converges with the same contacts in the same modes, no tie among them; where even the least sizes do not, the step has no two-sided
derivative there.
"""

import numpy as np

from coulomb._differences import noise_of, sizes, slope

SIZES = sizes(8e-7, 4e-3)  # of q and v; m, rad, m/s, rad/s
SHARES = sizes(1e-6, 7e-2)  # of a parameter
PROBE = 1e-9  # so small a change shows rounding and the first order
ENOUGH = 1e-9  # relative: nobody asks for better ones
TOLERANCE = 1e-6  # relative, and absolute where one unit moves the state by one unit
NOTHING = 1e-2  # relative: differences that know themselves no better tell nothing, not even by how much


def signature(sim):
    """What must not change: the contacts that act, on which side or vertex of a friction pyramid, and ties."""
    return [(c.geometry_a, c.geometry_b, c.mode, c.facet, c.tie) for c in sim.contacts if c.mode != "separating"]


class Step:
    """The change of (q+, v+), 2 nv, by changes of (q, v, tau, u) or of a parameter; None where the step is not smooth."""

    def __init__(self, sim, q, v, u):
        self.sim, self.model, self.q, self.v, self.u = sim, sim.model, q, v, u
        sim.reset()
        sim.step(q, v, u)
        self.memory = sim.memory
        sim.freeze_memory(True)
        self.q1, self.v1 = sim.step(q, v, u)
        self.base, self.converged = signature(sim), sim.status.converged
        derivatives = sim.derivatives()
        self.analytic = np.hstack([derivatives.A, derivatives.B_tau, derivatives.B])
        self.ambiguous = derivatives.ambiguous

        # Rounding, as tiny changes of the state show it, and that of the result itself.
        nv = self.model.nv
        tiny = PROBE * np.random.default_rng(0).normal(size=(8, 2 * nv))
        self.rounding = 1.1e-16 * np.r_[np.ones(nv), 1 + np.abs(self.v1)]
        noise = noise_of(lambda x: self.moved(np.r_[x, np.zeros(nv + self.model.nu)]), tiny)
        self.noise = None if noise is None else np.maximum(noise, self.rounding)
        sim.step(q, v, u)

    def close(self):
        self.sim.freeze_memory(False)

    def _change(self, sim, q, v, u, tau):
        q1, v1 = sim.step(q, v, u, tau=tau)
        if not sim.status.converged or signature(sim) != self.base:
            return None
        return np.r_[self.model.difference(self.q1, q1), v1 - self.v1]

    def moved(self, x):
        """x: change of (q, v, tau, u), 3 nv + nu."""
        nv = self.model.nv
        dq, dv, tau, du = np.split(x, [nv, 2 * nv, 3 * nv])
        return self._change(self.sim, self.model.integrate(self.q, dq), self.v + dv, self.u + du, tau)

    def moved_parameter(self, name, value):
        options = self.sim.options
        if name == "timestep":
            options["timestep"] = value[0]
        try:
            sim = type(self.sim)(self.model.with_parameters({name: value}), **options)
            sim.memory = self.memory
        except ValueError:  # at the edge of what is physical, or other pairs overlap in the neutral pose
            return None
        sim.freeze_memory(True)
        return self._change(sim, self.q, self.v, self.u, np.zeros(self.model.nv))

    def _slope(self, f, steps):
        return slope(f, self.noise, steps, ENOUGH, untouched=self.rounding)

    def jacobian(self):
        """(numeric, error), both (2 nv, 3 nv + nu); None, None: not smooth."""
        if self.noise is None:
            return None, None
        numeric, error = np.empty_like(self.analytic), np.empty_like(self.analytic)
        for k, direction in enumerate(np.eye(numeric.shape[1])):
            unit = 1.0
            if k >= 2 * self.model.nv:  # a force by what it moves; light links move far
                unit /= self.sim.timestep
                probe = self.moved(PROBE * unit * direction)
                if probe is None:
                    return None, None
                unit /= max(1.0, np.linalg.norm(probe) / PROBE)
            column, bar, _ = self._slope(lambda h, change=unit * direction: self.moved(h * change), SIZES)
            if np.isinf(bar).any():
                return None, None
            numeric[:, k], error[:, k] = column / unit, bar / unit
        return numeric, error

    def parameter_columns(self, name, value, unit):
        """(numeric, error), both (2 nv, size); unit: of the changes, per scalar. None, None: not smooth."""
        if self.noise is None:
            return None, None
        shape = 2 * self.model.nv, len(value)
        numeric, error = np.empty(shape), np.empty(shape)
        for k, direction in enumerate(np.eye(len(value))):
            moved = lambda h, change=unit[k] * direction: self.moved_parameter(name, value + h * change)  # noqa: E731
            column, bar, _ = self._slope(moved, SHARES)
            if np.isinf(bar).any():
                return None, None
            numeric[:, k], error[:, k] = column / unit[k], bar / unit[k]
        return numeric, error


class Blocks:
    """The blocks (dq, dv) x (q, v, tau, u) of a Jacobian against differences, (2, 4) each.

    errors, bars: relative Frobenius norms of what the Jacobian is off, and of what the differences do not know; blocks below the floor
    (times the time step for forces) count absolutely. wrong: (row, column) of blocks that are further off than the differences do not
    know, also of those that differences do not know to 1e-6.
    """

    def __init__(self, analytic, numeric, error, nv, timestep, floor=1e-4):
        edges = [0, nv, 2 * nv, 3 * nv, numeric.shape[1]]
        self.errors, self.bars, self.wrong = np.zeros((2, 4)), np.zeros((2, 4)), []
        for i, rows in enumerate((slice(0, nv), slice(nv, 2 * nv))):
            for j, (first, last) in enumerate(zip(edges[:-1], edges[1:])):
                a, n, e = (matrix[rows, first:last] for matrix in (analytic, numeric, error))
                natural = timestep if j >= 2 else 1.0
                off, unknown, size = np.linalg.norm(a - n), np.linalg.norm(e), np.linalg.norm(n)
                if off > max(TOLERANCE * max(size, natural), unknown) and unknown < NOTHING * max(size, natural):
                    self.wrong.append((i, j))
                scale = max(size, floor * natural)
                self.errors[i, j], self.bars[i, j] = off / scale, unknown / scale

    @property
    def resolved(self):
        return self.bars <= TOLERANCE

    @property
    def agree(self):
        """To 1e-6 where the differences resolve that, to their own error elsewhere."""
        return not self.wrong and self.errors[self.resolved].max(initial=0) <= TOLERANCE


def compare(sim, q, v, u):
    """The Jacobian of a step: Blocks, or None where it is not smooth."""
    step = Step(sim, q, v, u)
    try:
        assert step.converged, sim.status
        numeric, error = step.jacobian()
    finally:
        step.close()
    return None if numeric is None else Blocks(step.analytic, numeric, error, sim.model.nv, sim.timestep)


class Tally:
    """States and blocks that were compared, and a bound on those that were not."""

    def __init__(self):
        self.states = self.smooth = self.blocks = self.resolved = 0

    def add(self, blocks):
        self.states += 1
        if blocks is None:
            return
        self.smooth += 1
        self.blocks += blocks.bars.size
        self.resolved += blocks.resolved.sum()

    def assert_enough(self):
        told = f"of {self.states} states {self.smooth} smooth, of {self.blocks} blocks {self.resolved} resolved"
        assert self.smooth >= self.states / 3, told
        assert self.resolved >= self.blocks / 2, told
