"""check_gradients: the derivatives of one step against finite differences of the same step.

Central differences of growing size, extrapolated, that know how far they can be trusted (_differences.py). The memory that steps carry on is
frozen, so that every step solves the same problem from the same start. Sizes grow as long as the contacts and their modes stay; where
the least sizes already change them (a contact appears, slips or sticks; a limit is reached) a step has no two-sided derivative. Such
columns, and those that differences know less well than the tolerance, are found without looking at the analytic derivative, reported,
and left out of the comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ._core import Model, Simulator
from ._differences import EPSILON, GROWTH, noise_of, sizes, slope

_INPUTS = ("q", "v", "u", "tau")
_ROUNDING = 2e-15  # of a step, relative to the size of its state
_GROWN = {True: 1e3, False: 1e5}  # the largest differences, over the step asked for: of an input, of a parameter
_TINY = 1e-3  # those that show the rounding of a step, likewise
_ENOUGH = 1e-2  # better differences than this share of the tolerance are not looked for


@dataclass(repr=False)
class GradientCheck:
    """Result of check_gradients.

    errors: block name ("dv_dq", ...) to relative Frobenius error over the columns compared; a block smaller than what rounding lets any
    differences resolve is measured against that resolution. changed: (input, index, reason) of the columns left out: contacts
    change, or the differences' own error is beyond the tolerance. compared, columns: how many columns were compared, and how many there are. analytic, differences: the (2 nv, columns)
    matrices, columns in the order of wrt; columns left out are NaN in differences.
    """

    tolerance: float
    errors: dict = field(default_factory=dict)
    changed: list = field(default_factory=list)
    compared: int = 0
    columns: int = 0
    contacts: int = 0
    converged: bool = True
    analytic: np.ndarray | None = None
    differences: np.ndarray | None = None

    @property
    def max_error(self):
        """The largest relative error of a block; 0 if nothing could be compared."""
        return max(self.errors.values(), default=0.0)

    @property
    def smooth(self):
        """No column was left out."""
        return not self.changed

    @property
    def passed(self):
        """Every block that was compared agrees to the tolerance, and at least one column was compared."""
        return bool(self.compared > 0 and self.converged and self.max_error <= self.tolerance)

    def __bool__(self):
        return self.passed

    def __repr__(self):
        return f"<GradientCheck: {str(self).splitlines()[len(self.errors)]}, max_error {self.max_error:.1e}>"

    def __str__(self):
        lines = [f"{name:<8} relative error {error:.1e}" for name, error in self.errors.items()]
        verdict = "agree" if self.passed else "DISAGREE"
        lines.append(f"{self.compared} of {self.columns} columns compared, {verdict} to {self.tolerance:.0e}")
        for name, index, reason in self.changed[:5]:
            lines.append(f"left out: {name}[{index}]: {reason}")
        if len(self.changed) > 5:
            lines.append(f"left out: {len(self.changed) - 5} more")
        return "\n".join(lines)


class _Step:
    """The step as a function of a tangent vector: x = (dq, dv, du, dtau) around a base point, with the memory frozen."""

    def __init__(self, sim, q, v, u, tau):
        self.sim, self.model = sim, sim.model
        self.q, self.v, self.u, self.tau = q, v, u, tau
        self.parameters, self.memory = sim.model.parameters(), sim.memory
        self.q1, self.v1 = sim.step(q, v, u, tau=tau)

    def signature(self):
        return _signature(self.sim)

    def size(self, name):
        sizes = {"q": self.model.nv, "v": self.model.nv, "u": self.model.nu, "tau": self.model.nv}
        return sizes[name] if name in sizes else self.parameters[name].size

    def scale(self, name):
        """Unit of a difference: 1 for q and v, 1 / timestep for forces (their impulse), the size of its values for a parameter."""
        if name in ("q", "v"):
            return np.ones(self.size(name))
        if name in _INPUTS:
            return np.full(self.size(name), 1 / self.sim.timestep)
        value = np.abs(self.value(name))
        return np.maximum(value, max(1e-2 * value.max(), 1e-4))

    def value(self, name):
        """Of a parameter. The simulator's own time step counts, not the model's."""
        return np.array([self.sim.timestep]) if name == "timestep" else np.array(self.parameters[name].value)

    def rounding(self):
        """(2 nv,) of the numbers of the next state."""
        return EPSILON * np.concatenate([np.ones(self.model.nv), 1 + np.abs(self.v1)])

    def noise(self, h):
        """(2 nv,) standard deviation of the rounding of a step, as changes of q and v by a thousandth of h show it."""
        nv = self.model.nv

        def moved(x):
            q1, v1 = self.sim.step(self.model.integrate(self.q, x[:nv]), self.v + x[nv:], self.u, tau=self.tau)
            return np.concatenate([self.model.difference(self.q1, q1), v1 - self.v1])

        directions = _TINY * h * np.random.default_rng(0).normal(size=(8, 2 * nv))
        return np.maximum(noise_of(moved, directions), self.rounding())

    def _changed_model(self, name, index, size):
        value = self.value(name)
        value[index] += size
        options = dict(self.sim.options)
        if name == "timestep":
            options["timestep"] = value[0]
        try:
            sim = type(self.sim)(self.model.with_parameters({name: value}), **options)
            sim.memory = self.memory
        except ValueError as error:  # the value lies on a bound, or other pairs overlap in the neutral pose
            return None, f"refused: {error}"
        sim.freeze_memory(True)
        q1, v1 = sim.step(self.q, self.v, self.u, tau=self.tau)
        if not sim.status.converged:
            return None, f"did not converge: {sim.status.reason}"
        signature = _signature(sim)
        return np.concatenate([self.model.difference(self.q1, q1), v1 - self.v1]), signature

    def __call__(self, name, index, size):
        if name not in _INPUTS:
            return self._changed_model(name, index, size)
        values = {"q": self.q, "v": self.v, "u": self.u, "tau": self.tau}
        if name == "q":
            direction = np.zeros(self.model.nv)
            direction[index] = size
            values["q"] = self.model.integrate(self.q, direction)
        else:
            values[name] = values[name].copy()
            values[name][index] += size
        q1, v1 = self.sim.step(values["q"], values["v"], values["u"], tau=values["tau"])
        if not self.sim.status.converged:
            return None, f"did not converge: {self.sim.status.reason}"
        return np.concatenate([self.model.difference(self.q1, q1), v1 - self.v1]), self.signature()


def _column(step, name, index, unit, h, base, noise, tolerance):
    """(column, its error, None), or (None, None, the reason to leave it out): sizes h / 4, h, 4 h ... in this unit."""
    reasons = []

    def change(size):
        value, signature = step(name, index, size * unit)
        if value is None:
            reason = f"a step at {size * unit:+.0e} {'' if signature.startswith('did') else 'was '}{signature}"
        elif signature != base:
            reason = f"contacts change at {size * unit:+.0e}: {_difference(base, signature)}"
        else:
            return value
        reasons.append(reason)
        return None

    column, error, jump = slope(
        change, noise, sizes(h / GROWTH, _GROWN[name in _INPUTS] * h), _ENOUGH * tolerance, step.rounding()
    )
    if np.isinf(error).any():
        return None, None, reasons[0]
    return column / unit, error / unit, None


def _signature(sim):
    return [(c.geometry_a, c.geometry_b, c.mode, c.turning) for c in sim.contacts]


def _difference(before, after):
    if len(before) != len(after):
        return f"{len(before)} contacts become {len(after)}"
    for a, b in zip(before, after):
        if a != b:
            if a[:2] != b[:2]:
                return f"{a[0]} on {a[1]} becomes {b[0]} on {b[1]}"
            first, then = (a[2], b[2]) if a[2] != b[2] else (f"turning {a[3]}", b[3])
            return f"{a[0]} on {a[1]}: {first} becomes {then}"
    return "the same"


def _analytic(derivatives, wrt, nv):
    of = {"q": derivatives.A[:, :nv], "v": derivatives.A[:, nv:], "u": derivatives.B, "tau": derivatives.B_tau}
    return np.concatenate([of[name] if name in of else derivatives[name] for name in wrt], axis=1)


def _array(name, value):
    """As the step itself takes its arguments: what numpy converts safely; the step checks shape and values."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name}: not an array of numbers: {error}") from error
    if array.size and not np.can_cast(array.dtype, float):
        raise TypeError(f"{name}: expected float64, got elements of type {array.dtype}")
    return array.astype(float)


def check_gradients(
    sim: Simulator,
    q: ArrayLike,
    v: ArrayLike,
    u: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    *,
    wrt: str | Sequence[str] = _INPUTS,
    step: float = 1e-6,
    tolerance: float = 1e-6,
) -> GradientCheck:
    """Compares sim.derivatives() at (q, v, u, tau) with finite differences of sim.step. Returns a GradientCheck.

    q (nq,), v (nv,), u (nu,) or None, tau (nv,) or None. wrt: some of "q", "v", "u", "tau" and of the names of Model.parameters(). step:
    size of the least differences of q and v (m, rad, m/s, rad/s) within which no contact may change; they grow up to 1000 step while
    none does. Those of u and tau are step / timestep, those of parameters step times their values, up to 100000 step. tolerance: relative Frobenius error that passes. Afterwards the simulator is as after sim.step(q, v, u, tau=tau).

    ValueError names a bad argument.
    """
    if not isinstance(sim, Simulator):
        advice = "; make one: coulomb.Simulator(model)" if isinstance(sim, Model) else ""
        raise TypeError(f"sim: expected a coulomb.Simulator, got {type(sim).__name__}{advice}")
    wrt = [wrt] if isinstance(wrt, str) else list(wrt)
    if not wrt:
        raise ValueError("wrt: names no input")
    parameters = sim.model.parameters()
    for name in wrt:
        if name not in _INPUTS and name not in parameters:
            raise ValueError(
                f"wrt: got {name!r}, expected some of {', '.join(_INPUTS)} or a name of model.parameters()"
            )
    for name, value in (("step", step), ("tolerance", tolerance)):
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{name}: got {value}, expected a positive number")
    model = sim.model
    q, v = _array("q", q), _array("v", v)
    u = np.zeros(model.nu) if u is None else _array("u", u)
    tau = np.zeros(model.nv) if tau is None else _array("tau", tau)
    before = sim.memory
    sim.step(q, v, u, tau=tau)  # bad arguments end here; and the memory now knows these contacts
    result = GradientCheck(tolerance)
    try:
        sim.freeze_memory(True)
        function = _Step(sim, q, v, u, tau)
        result.converged = sim.status.converged
        result.contacts = len(sim.contacts)
        base = function.signature()
        derivatives = sim.derivatives(wrt=[name for name in wrt if name not in _INPUTS])
        result.analytic = _analytic(derivatives, wrt, model.nv)
        _compare(result, function, base, wrt, step)
    finally:
        sim.freeze_memory(False)
        sim.memory = before
        sim.step(q, v, u, tau=tau)
    return result


def _compare(result, function, base, wrt, h):
    nv = function.model.nv
    result.differences = np.full(result.analytic.shape, np.nan)
    rounding = _ROUNDING * (1 + np.linalg.norm(np.concatenate([function.q1, function.v1])))
    noise = function.noise(h)
    first = 0
    for name in wrt:
        count = function.size(name)
        numeric, analytic = (matrix[:, first : first + count] for matrix in (result.differences, result.analytic))
        units, errors = function.scale(name), np.zeros((2 * nv, count))
        for index in range(count):
            column, error, reason = _column(function, name, index, units[index], h, base, noise, result.tolerance)
            if reason is None:
                numeric[:, index], errors[:, index] = column, error
            else:
                result.changed.append((name, index, reason))
        good = ~np.isnan(numeric[0]) if count else np.zeros(0, dtype=bool)

        # Columns that the differences know less well than the tolerance are no reference; nobody knows zeros better than rounding lets.
        resolution = rounding * np.linalg.norm(1 / (h * units[good])) / result.tolerance
        size = max(np.linalg.norm(numeric[:, good]), resolution)
        for index in np.flatnonzero(good):
            error = np.linalg.norm(errors[:, index])
            if error > result.tolerance * size:
                reason = f"differences tell it to {error / size:.0e} only: a kink nearby, or rounding"
                result.changed.append((name, int(index), reason))
                numeric[:, index] = np.nan
                good[index] = False
        for row, rows in (("dq", slice(0, nv)), ("dv", slice(nv, 2 * nv))):
            exact, found, unknown = analytic[rows][:, good], numeric[rows][:, good], errors[rows][:, good]
            if good.any():
                known = max(np.linalg.norm(found), resolution, np.linalg.norm(unknown) / result.tolerance)
                result.errors[f"{row}_d{name}"] = float(np.linalg.norm(exact - found) / known)
        result.compared += int(good.sum())
        result.columns += count
        first += count
