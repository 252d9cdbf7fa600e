"""Mpc: a horizon that recedes, one tick a knot."""

from __future__ import annotations

import numpy as np

from .._core import _TrajectorySolver
from .solver import Solver, _check_clock, _settings, _whole


class Mpc:
    """Plans again at every tick, from the plan of the tick before.

    Parameters
    ----------
    solver : Solver
        Ticks come every solver.timestep seconds. Its weights and references may change between ticks.
    iterations : int
        Of a tick.
    start_iterations : int
        Of the first tick.
    roll : bool
        Begin a tick with a rollout of the shifted plan under its feedback from the state that was measured; else with
        the shifted states themselves and a gap to them, which saves a rollout.
    clock : "wall" or "processor"
        Of the timings.
    budget
        As Solver.solve: step_lengths, tolerance, ...

    Raises
    ------
    TypeError, ValueError
        Names the argument and its value.

    Examples
    --------
    ::

        mpc = Mpc(solver)
        for _ in range(1000):
            u, K = mpc.step(q, v)
            q, v = robot(u)

    """

    def __init__(self, solver, iterations=1, start_iterations=10, *, roll=True, clock="wall", **budget):
        if not isinstance(solver, Solver):
            raise TypeError(f"solver: expected a control.Solver, got {type(solver).__name__}")
        if "u_before" in budget:
            raise TypeError(
                "Mpc: u_before applies to the first tick only, so pass it to reset(); later ticks use the control before"
            )
        self.solver = solver
        self.iterations = iterations
        self.start_iterations = start_iterations
        self.roll = roll
        self._clock = clock
        self._budget = _settings("Mpc", budget, ["iterations", "start_iterations", "roll", "clock"])
        self.reset()

        # What is wrong is told now, not at some tick.
        _check_clock(clock)
        _TrajectorySolver.check_budget(**{**self._budget, "iterations": self.iterations})

    @property
    def iterations(self):
        return self._iterations

    @iterations.setter
    def iterations(self, value):
        self._iterations = _count("iterations", value)

    @property
    def start_iterations(self):
        return self._start_iterations

    @start_iterations.setter
    def start_iterations(self, value):
        self._start_iterations = _count("start_iterations", value)

    def reset(self, U=None, u_before=None):
        """The next tick is a first one.

        Parameters
        ----------
        U : (N, nu), optional
            The controls that it starts from. Default: zero.
        u_before : (nu,), optional
            The control before it, where control rates begin. Default: zero.

        Raises
        ------
        ValueError
            Names argument, element and value; with the plan as it was.
        """
        nu = self.solver.nu
        guess = None if U is None else _finite("U", U, (self.solver.horizon, nu))
        before = None if u_before is None else _finite("u_before", u_before, (nu,))
        self.solver.forget()
        self._guess = guess
        self._before = before
        self._started = False

    def step(self, q, v):
        """A tick: the control to apply now, and its feedback.

        Parameters
        ----------
        q, v : (nq,), (nv,)
            As measured.

        Returns
        -------
        u : (nu,)
        K : (nu, 2 nv)
            Between ticks: u + K @ dx, dx the difference of the state from (q, v), in its tangent space. Best for the model of the cost along the
            plan that the last iteration began with, however much that was regularised.

        Raises
        ------
        ValueError
            A state that is not finite, with the plan as it was.
        FloatingPointError
            The plan from here has numbers that overflow: there is no control to apply. The next tick plans anew.
        """
        core = self.solver._core
        if self._started and core.has_last:
            self._solve(q, v, self.iterations, from_last=True, shift=True, roll=self.roll)
        else:  # the first one, or the last plan overflowed or was interrupted
            self._solve(q, v, self.start_iterations, U=self._guess, u_before=self._before)
            self._started = True

        status, reason = core.status()
        if status == "not differentiable":
            raise FloatingPointError(f"Mpc.step: no control was found, {reason}")
        u, K = core.first_control()
        self._before = u.copy()  # if the next one plans anew
        return u, K

    def _solve(self, q, v, iterations, **start):
        self.solver._run(q, v, iterations=iterations, clock=self._clock, gains_of_result=False, **start, **self._budget)

    @property
    def result(self):
        """Result of the last tick."""
        return self.solver.result


def _count(name, value):
    value = _whole(name, value)
    if value < 0:
        raise ValueError(f"{name}: got {value}, expected at least 0")
    return value


def _finite(name, value, shape):
    """A copy."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected numbers, got {value!r:.80}") from None
    if array.shape != shape:
        raise ValueError(f"{name}: got shape {array.shape}, expected {shape}")
    for index in np.argwhere(~np.isfinite(array))[:1].tolist():
        raise ValueError(f"{name}{index} is {array[tuple(index)]}, expected a finite number")
    return array
