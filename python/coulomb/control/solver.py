"""Solver: costs by name, and the trajectory that is best by their sum."""

from __future__ import annotations

import dataclasses
import difflib

import numpy as np

from .._core import _TrajectorySolver

_BUDGET = {
    "tolerance": 1e-8,
    "gap_tolerance": 1e-9,
    "regularization": 1e-9,
    "max_regularization": 1e6,
    "step_lengths": 11,
    "armijo": 1e-4,
}


@dataclasses.dataclass(frozen=True)
class Gate:
    """A factor of a weight, between 0 and 1, that opens as an output falls: 1 / (1 + exp((y - threshold) / width)).

    With the height of a foot and the weight of its speed: a foot is not to slip, but may swing.

    Parameters
    ----------
    output : str
        Name of an output of states that is no orientation.
    row : int
        Which of its numbers y is.
    threshold, width : float
        Where the factor is one half, and how wide the passage is, in the output's unit.
    """

    output: str
    row: int = 0
    threshold: float = 0.0
    width: float = 0.01


@dataclasses.dataclass
class Result:
    """Result of a solve. N: knots, nu: controls.

    Attributes
    ----------
    Q, V, U : (N + 1, nq), (N + 1, nv), (N, nu)
        States at the knots, and controls.
    K : (N, nu, 2 nv)
        Feedback: u = U[t] + K[t] @ dx, dx the difference of the state from (Q[t], V[t]) in its tangent space. Best for the model of the cost along
        this trajectory, however much the search was regularised; zero for a control at a limit that the cost pushes it through.
    cost : float
        Infinite where it overflows.
    converged : bool
        No gaps, no more than the tolerance to be gained, and every step solved as posed.
    status, reason : str
        "converged", "unsolved steps", "iteration limit", "no descent" or "not differentiable"; and why.
    iterations : int
    costs, gaps : (iterations + 1,)
        The cost and the sum of |gaps| at the start and after every iteration.
    steps : (iterations,)
        Lengths of the steps that were accepted; 0: none was, the next one is regularised more.
    promised : float
        What the last model of the cost promised to gain.
    regularization : float
        In the end, relative to the mean diagonal of the Hessian by the controls.
    gain_regularization : float
        The same in K: up to 1e-9, or the least with which the model is convex. Where none is, or a step has no derivative, K is zero.
    unconverged : int
        Knots with a step of the simulator that was not solved as posed.
    timings : dict
        Seconds in "linearize", "riccati" and "rollouts".
    """

    Q: np.ndarray
    V: np.ndarray
    U: np.ndarray
    K: np.ndarray
    cost: float
    status: str
    reason: str
    iterations: int
    costs: np.ndarray
    gaps: np.ndarray
    steps: np.ndarray
    promised: float
    regularization: float
    gain_regularization: float
    unconverged: int
    timings: dict

    @property
    def converged(self):
        return self.status == "converged"

    def __repr__(self):
        return f"<control.Result: {self.status} after {self.iterations} iterations, cost {self.cost:.6g}>"


class Term:
    """A term of the cost, whose weight and reference may change between solves.

    Attributes
    ----------
    name : str
    weight : (N + 1, width)
        Assigned: a number, (width,), or all rows. Row N belongs to the last state. What is read cannot be written to.
    reference : (N + 1, size)
        Assigned: (size,) or all rows; of a state also (q, v). What is read cannot be written to.
    """

    def __init__(self, solver, index, name, width, size, q_size=None, last_row=True):
        self._core = solver._core
        self._horizon = solver.horizon
        self._index, self.name = index, name
        self._width, self._size, self._q_size, self._last_row = width, size, q_size, last_row

    @property
    def weight(self):
        return self._core.weight(self._index)

    @weight.setter
    def weight(self, value):
        self.set_weight(value)

    def set_weight(self, weight, terminal=None):
        """As Solver.add_outputs. ValueError: wrong shape, a weight that is negative or not finite."""
        rows = _weight_rows(weight, terminal, self._horizon, self._width, self._last_row)
        self._core.set_weight(self._index, rows)

    @property
    def reference(self):
        if not self._size:
            raise ValueError(f"reference: '{self.name}' has none")
        return self._core.reference(self._index)

    @reference.setter
    def reference(self, value):
        if not self._size:
            raise ValueError(f"reference: '{self.name}' has none")
        rows = _reference_rows(value, self._horizon, self._size, self._q_size, self._last_row)
        self._core.set_reference(self._index, rows)

    def __repr__(self):
        return f"<control.Term: {self.name}>"


class Solver:
    """The trajectory of a simulator that is best by a cost.

    Minimises the sum of l(x_t, u_t) over N knots and l(x_N), where x = (q, v), x_(t+1) is where `substeps` steps of the simulator
    with u_t held lead, and l = 1/2 sum w r^2 of the terms that are added. Every solve starts with a cold simulator.

    Parameters
    ----------
    model : Model
    horizon : int
        N.
    substeps : int
        Steps of the simulator from knot to knot.
    timestep : float, optional
        Of a step of the simulator, s. Default: the model's.
    limits : (lower, upper), optional
        Of the controls, numbers or (nu,) each, within the actuators' control ranges, beyond which they saturate. Default: these.
    inputs : "u" or "tau"
        Controls of the model's actuators, or a force on every dof.
    num_threads : int
        The caller's included; 0: all cores that this process may use. The same bits for any number.
    options
        As Simulator takes: contact law, stepper, gradient.

    Raises
    ------
    ValueError
        Names the argument; the stepper "bdf2", which depends on two earlier states.
    """

    def __init__(self, model, horizon, substeps=1, *, timestep=None, limits=None, inputs="u", num_threads=1, **options):
        if timestep is not None:
            options["timestep"] = timestep
        self.model = model
        self.horizon = _whole("horizon", horizon)
        self.substeps = _whole("substeps", substeps)
        self._core = _TrajectorySolver(
            model, self.horizon, self.substeps, _whole("num_threads", num_threads), inputs, **options
        )
        self.terms = []
        if limits is not None:
            self.limits = limits

    @property
    def nu(self):
        """Number of controls."""
        return self._core.nu

    @property
    def timestep(self):
        """Seconds from knot to knot."""
        return self._core.timestep

    @property
    def num_threads(self):
        return self._core.num_threads

    @property
    def limits(self):
        """(lower, upper), (nu,) each, read-only; they may be infinite, and change between solves.

        Assigned: what is outside of an actuator's control range is left out, for there it saturates.
        """
        return self._core.lower, self._core.upper

    @limits.setter
    def limits(self, limits):
        try:
            lower, upper = limits
        except (TypeError, ValueError):
            raise ValueError("limits: expected (lower, upper)") from None
        self._core.set_limits(_broadcast("limits[0]", lower, (self.nu,)), _broadcast("limits[1]", upper, (self.nu,)))

    def add_outputs(self, names, weight, reference=None, *, terminal=None, shape="square", gate=None):
        """A cost of readings of a state: 1/2 sum w (y - reference)^2.

        Parameters
        ----------
        names : str or list of str
            Outputs (Model.outputs), one after the other. Forces belong to steps, not to states.
        weight : float, (width,) or (N + 1, width)
            width: the outputs' tangent sizes together. An orientation's residual is the rotation vector from its reference.
        reference : (size,) or (N + 1, size), optional
            Of readings. Default: zero, orientations: none turned.
        terminal : float or (width,), optional
            Weight at the last state, instead of `weight` there.
        shape : "square", "below" or "above"
            below: only where the reading is less than the reference counts.
        gate : Gate, optional

        Returns
        -------
        Term

        Raises
        ------
        ValueError
            Names argument, element and value; unknown output; a force.
        """
        names = [names] if isinstance(names, str) else list(names)
        sizes = self.model._output_sizes(names)
        size, width = (sum(s[i] for s in sizes) for i in range(2))
        return self._add("outputs", " ".join(names), names, width, size, weight, reference, terminal, shape, gate)

    def add_state(self, weight, reference=None, *, terminal=None, shape="square"):
        """A cost of the state's difference from a reference, in the tangent space: 1/2 sum w (x (-) reference)^2.

        weight: a number, (2 nv,) or (N + 1, 2 nv). reference: (q, v), (nq + nv,) or (N + 1, nq + nv); default: neutral, at rest.
        Else as add_outputs.
        """
        m = self.model
        return self._add("state", "state", [], 2 * m.nv, m.nq + m.nv, weight, reference, terminal, shape, None, m.nq)

    def add_control(self, weight, reference=None, *, shape="square"):
        """A cost of controls: 1/2 sum w (u - reference)^2; (nu,) or (N, nu) or (N + 1, nu), whose last row is not looked at."""
        return self._add(
            "control", "control", [], self.nu, self.nu, weight, reference, None, shape, None, last_row=False
        )

    def add_control_rate(self, weight):
        """A cost of how controls change: 1/2 sum w (u_t - u_(t-1))^2, from `u_before` of a solve on."""
        return self._add(
            "control_rate", "control_rate", [], self.nu, 0, weight, None, None, "square", None, last_row=False
        )

    def _add(self, of, name, names, width, size, weight, reference, terminal, shape, gate, q_size=None, last_row=True):
        rows = _weight_rows(weight, terminal, self.horizon, width, last_row)
        wanted = None
        if reference is not None:
            wanted = _reference_rows(reference, self.horizon, size, q_size, last_row)
        gated = ("", 0, 0.0, 1.0) if gate is None else _gate(gate)
        index = self._core.add(of, shape, names, rows, wanted, *gated)
        term = Term(self, index, name, width, size, q_size, last_row)
        self.terms.append(term)
        return term

    def solve(
        self,
        q0,
        v0,
        U=None,
        Q=None,
        V=None,
        *,
        iterations=100,
        u_before=None,
        from_last=False,
        shift=False,
        roll=True,
        clock="wall",
        progress=None,
        **budget,
    ):
        """The best trajectory from (q0, v0) that `iterations` find.

        Parameters
        ----------
        q0, v0 : (nq,), (nv,)
        U : (N, nu), optional
            A guess, clipped to the limits. Default: zero, or with from_last that of the last solve.
        Q, V : (N + 1, nq), (N + 1, nv), optional
            A guess of states that need not follow the dynamics; the first row is not looked at. Default: a rollout of U.
        iterations : int
            At most.
        u_before : (nu,), optional
            Where control rates begin. Default: zero, or with from_last where they began there.
        from_last : bool
            Start from the states, controls, feedback and warm steps of the last solve.
        shift : bool
            With from_last: one knot on, the last control held.
        roll : bool
            With from_last: first by a rollout under that feedback, so that there are no gaps.
        clock : "wall" or "processor"
            Of the timings.
        progress : bool or callable(done, total), optional
        tolerance : float = 1e-8
            Converged is what promises to gain no more, relative to the cost; or no more than the rounding of the first cost.
        gap_tolerance : float = 1e-9
            Largest entry of a gap (m, rad, m/s, rad/s) that counts as closed.
        regularization, max_regularization : float = 1e-9, 1e6
            Of the Hessian by the controls, first and least, and the most; relative to its mean diagonal.
        step_lengths : int = 11
            1, 1/2, 1/4, ...; as many at once as there are threads.
        armijo : float = 1e-4
            Share of the slope of the merit that a step must gain.

        Returns
        -------
        Result

        Raises
        ------
        ValueError
            Names argument, element and value; nothing has changed then.

        Notes
        -----
        KeyboardInterrupt stops it: there is then no last solve to start from, and `result` is still that of the last one that was done.
        """
        self._run(
            q0, v0, U, Q, V, iterations=iterations, u_before=u_before, from_last=from_last, shift=shift, roll=roll,
            clock=clock, progress=progress, **budget,
        )  # fmt: skip
        return self.result

    def _run(self, q0, v0, U=None, Q=None, V=None, *, iterations, u_before=None, from_last=False, shift=False, roll=True,
             clock="wall", progress=None, gains_of_result=True, **budget):  # fmt: skip
        """solve without a result: what a tick has time for."""
        settings = _settings("solve", budget, ["iterations", "from_last", "u_before"])
        _check_clock(clock)
        bar = _bar(progress)
        try:
            self._core.solve(
                q0=q0, v0=v0, U=U, Q=Q, V=V, u_before=u_before, from_last=from_last, shift=shift, roll=roll,
                iterations=_whole("iterations", iterations), processor_time=clock == "processor",
                gains_of_result=gains_of_result, progress=bar, **settings,
            )  # fmt: skip
        finally:
            if bar is not None and bar is not progress:
                bar.close()

    @property
    def result(self):
        """Result of the last completed solve. ValueError: there was none."""
        return Result(**self._core.result())

    def forget(self):
        """There is no last solve to start from any more."""
        self._core.forget()

    def gradient(self, q0, v0, U, u_before=None):
        """(cost, dU): of the rollout of U (N, nu) from (q0, v0), and its derivative by U, for optimisers of your own.

        U is taken as it is: limits are not looked at, and where an actuator saturates the derivative is zero. The last solve stays.
        ValueError: names argument, element and value; RuntimeError: numbers overflowed.
        """
        return self._core.gradient(q0, v0, U, u_before)

    def cost(self, Q, V, U, u_before=None):
        """(cost, by_term) of states and controls, whether or not they follow the dynamics; by_term: a dict of lists by the terms' names.

        Q (N + 1, nq), V (N + 1, nv), U (N, nu). ValueError: names argument, element and value.
        """
        total, values = self._core.cost(Q, V, U, u_before)
        by_term = {}
        for term, value in zip(self.terms, values, strict=True):
            by_term.setdefault(term.name, []).append(float(value))
        return total, by_term

    def __repr__(self):
        return f"<control.Solver: {self.horizon} knots of {self.timestep:g} s, {self.nu} controls, {len(self.terms)} terms>"


def _bar(progress):
    """The callback that receives (done, total), or None."""
    if progress is None or progress is False:
        return None
    if progress is True:
        from ..progress import Bar

        return Bar("iteration")
    if not callable(progress):
        raise TypeError("progress: expected None, True or a callable(done, total)")
    return progress


def _settings(what, budget, others):
    """The budget's numbers by name, those that are not given as usual."""
    for name in budget:
        if name not in _BUDGET:
            guess = difflib.get_close_matches(name, [*_BUDGET, *others], 1)
            raise TypeError(f"{what}: unknown '{name}'" + (f"; did you mean '{guess[0]}'?" if guess else ""))
    return {**_BUDGET, **budget}


def _check_clock(clock):
    if clock not in ("wall", "processor"):
        raise ValueError(f"clock: got {clock!r}, expected 'wall' or 'processor'")


def _whole(name, value):
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: expected a whole number, got {value!r}")
    return value.__index__()


def _numbers(name, value):
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected numbers, got {value!r:.80}") from None


def _number(name, value):
    array = _numbers(name, value)
    if array.ndim:
        raise ValueError(f"{name}: got shape {array.shape}, expected a number")
    return float(array)


def _broadcast(name, value, shape):
    array = _numbers(name, value)
    try:
        return np.ascontiguousarray(np.broadcast_to(array, shape))
    except ValueError:
        raise ValueError(f"{name}: got shape {array.shape}, expected one that fits {shape}") from None


def _gate(gate):
    """As the core takes it, which knows none by its empty name."""
    if not isinstance(gate, Gate):
        raise TypeError(f"gate: expected a control.Gate, got {type(gate).__name__}")
    if not isinstance(gate.output, str) or not gate.output:
        raise ValueError(f"gate: got output {gate.output!r}, expected the name of one")
    return (
        gate.output,
        _whole("gate_row", gate.row),
        _number("gate_threshold", gate.threshold),
        _number("gate_width", gate.width),
    )


def _weight_rows(weight, terminal, horizon, width, last_row):
    """(N + 1, width). last_row: knot N has a weight; else it is zero, and need not be given."""
    weight = _numbers("weight", weight)
    shape = (horizon + 1, width)
    if weight.ndim == 2 and len(weight) == horizon and horizon > 1:
        if terminal is None and last_row:
            raise ValueError(f"weight: got {horizon} rows, expected {horizon + 1}, or terminal= for the last")
        weight = np.vstack([weight, np.zeros((1, weight.shape[1]))])
    rows = _broadcast("weight", weight, shape).copy()
    if terminal is not None:
        if not last_row:
            raise ValueError("terminal: a cost of controls has none, the last state has no control")
        rows[-1] = _broadcast("terminal", terminal, (width,))
    if not last_row:
        rows[-1] = 0
    return rows


def _reference_rows(reference, horizon, size, q_size, last_row):
    """(N + 1, size). last_row: knot N has a reference; else it is not looked at, and need not be given."""
    if q_size is not None and isinstance(reference, tuple) and len(reference) == 2:
        q = _broadcast("reference[0]", reference[0], (horizon + 1, q_size))
        v = _broadcast("reference[1]", reference[1], (horizon + 1, size - q_size))
        return np.ascontiguousarray(np.hstack([q, v]))

    state = "" if q_size is None else "; of a state also a tuple (q, v)"
    try:
        reference = np.asarray(reference, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"reference: expected numbers, got {reference!r:.80}{state}") from None
    if reference.ndim == 2 and len(reference) == horizon and horizon > 1:
        if last_row:
            raise ValueError(f"reference: got {horizon} rows, expected {horizon + 1}: the last is of the last state")
        reference = np.vstack([reference, reference[-1:]])
    try:
        return _broadcast("reference", reference, (horizon + 1, size))
    except ValueError as error:
        raise ValueError(f"{error}{state}") from None
