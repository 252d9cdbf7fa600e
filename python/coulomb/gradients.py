"""check_gradients: the derivatives of one step against finite differences of the same step.

Central differences D(h) = (f(x + h) - f(x - h)) / 2h at h and h / 2, Richardson-extrapolated: (4 D(h/2) - D(h)) / 3, error O(h^4).
The memory that steps carry on is frozen, so that every step solves the same problem from the same start. Where the active set changes
within the differences (a contact appears, slips or sticks; a limit is reached) a step has no two-sided derivative: such columns are
found without looking at the analytic derivative, reported, and left out of the comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

_INPUTS = ("q", "v", "u", "tau")
_ROUNDING = 2e-15  # of a step, relative to the size of its state


@dataclass
class GradientCheck:
    """What check_gradients found.

    errors: block name ("dv_dq", ...) to relative Frobenius error over the columns compared; a block smaller than what the rounding of
    the differences can resolve is measured against that resolution. changed: (input, index, reason) of the
    columns left out. compared, columns: how many columns were compared, and how many there are. analytic, differences: the (2 nv, columns)
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
        return [(c.geometry_a, c.geometry_b, c.mode) for c in self.sim.contacts]

    def size(self, name):
        sizes = {"q": self.model.nv, "v": self.model.nv, "u": self.model.nu, "tau": self.model.nv}
        return sizes[name] if name in sizes else self.parameters[name].size

    def steps(self, name, h, columns):
        """Sizes of the differences: h for q and v, h / timestep for forces (their impulse); for a parameter what changes the next
        state by some 20 h, within 1e-7 and 1e-2 of its value."""
        if name in ("q", "v"):
            return np.full(self.size(name), h)
        if name in _INPUTS:
            return np.full(self.size(name), h / self.sim.timestep)
        value = np.abs(self.parameters[name].value)
        scale = np.maximum(value, max(1e-2 * value.max(), 1e-4))
        return np.clip(20 * h / np.maximum(np.linalg.norm(columns, axis=0), 1e-12), 1e-7 * scale, 1e-2 * scale)

    def _changed_model(self, name, index, size):
        value = np.array(self.parameters[name].value)
        value[index] += size
        options = dict(self.sim.options)
        if name == "timestep":
            options["timestep"] = value[0]
        try:
            model = self.model.with_parameters({name: value})
        except ValueError as error:  # the value lies on a bound: no two-sided derivative
            return None, f"refused: {error}"
        sim = type(self.sim)(model, **options)
        sim.memory = self.memory
        sim.freeze_memory(True)
        q1, v1 = sim.step(self.q, self.v, self.u, tau=self.tau)
        if not sim.status.converged:
            return None, f"did not converge: {sim.status.reason}"
        signature = [(c.geometry_a, c.geometry_b, c.mode) for c in sim.contacts]
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


def _column(step, name, index, h, base):
    """The numeric column, the reason to leave it out (or None), and its second difference (a kink does not shrink with h)."""
    values = []
    for size in (h, -h, h / 2, -h / 2):
        value, signature = step(name, index, size)
        if value is None:
            return None, f"a step at {size:+.0e} {'' if signature.startswith('did') else 'was '}{signature}", 0.0
        if signature != base:
            return None, f"contacts change at {size:+.0e}: {_difference(base, signature)}", 0.0
        values.append(value)
    plus, minus, half_plus, half_minus = values
    column = (4 * (half_plus - half_minus) / h - (plus - minus) / (2 * h)) / 3
    kink = np.linalg.norm((plus + minus) / h - 2 * (half_plus + half_minus) / (h / 2))
    return column, None, kink


def _difference(before, after):
    if len(before) != len(after):
        return f"{len(before)} contacts become {len(after)}"
    for a, b in zip(before, after):
        if a != b:
            return (
                f"{a[0]} on {a[1]}: {a[2]} becomes {b[2]}"
                if a[:2] == b[:2]
                else f"{a[0]} on {a[1]} becomes {b[0]} on {b[1]}"
            )
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


def check_gradients(sim, q, v, u=None, tau=None, *, wrt=_INPUTS, step=1e-6, tolerance=1e-6):
    """Compares sim.derivatives() at (q, v, u, tau) with finite differences of sim.step. Returns a GradientCheck.

    q (nq,), v (nv,), u (nu,) or None, tau (nv,) or None. wrt: some of "q", "v", "u", "tau" and of the names of Model.parameters(). step:
    size of the differences of q and v (m, rad, m/s, rad/s); those of u and tau are step / timestep, those of parameters follow their
    effect. tolerance: relative Frobenius error that passes. Afterwards the simulator is as after sim.step(q, v, u, tau=tau).

    ValueError names a bad argument.
    """
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
    noise = _ROUNDING * (1 + np.linalg.norm(np.concatenate([function.q1, function.v1])))
    first = 0
    for name in wrt:
        count = function.size(name)
        numeric, analytic = (matrix[:, first : first + count] for matrix in (result.differences, result.analytic))
        steps, kinks = function.steps(name, h, analytic), np.zeros(count)
        for index in range(count):
            column, reason, kinks[index] = _column(function, name, index, steps[index], base)
            if reason is None:
                numeric[:, index] = column
            else:
                result.changed.append((name, index, reason))
        good = ~np.isnan(numeric[0]) if count else np.zeros(0, dtype=bool)
        # A kink leaves a second difference of its own size; a smooth function and rounding leave far less.
        limit = np.maximum(result.tolerance * np.linalg.norm(numeric[:, good]), 10 * noise / steps)
        for index in np.flatnonzero(good & (kinks > limit)):
            result.changed.append((name, int(index), f"the derivative jumps within ±{steps[index]:.0e}"))
            numeric[:, index] = np.nan
            good[index] = False
        for row, rows in (("dq", slice(0, nv)), ("dv", slice(nv, 2 * nv))):
            exact, found = analytic[rows][:, good], numeric[rows][:, good]
            if good.any():
                resolution = noise * np.linalg.norm(1 / steps[good]) / result.tolerance
                scale = max(np.linalg.norm(found), resolution)
                result.errors[f"{row}_d{name}"] = float(np.linalg.norm(exact - found) / scale)
        result.compared += int(good.sum())
        result.columns += count
        first += count
