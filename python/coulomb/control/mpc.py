"""Mpc: a horizon that recedes, one tick a knot."""

from __future__ import annotations

from .solver import Solver, _whole


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
    budget
        As Solver.solve: step_lengths, tolerance, ...

    Examples
    --------
    ::

        mpc = Mpc(solver)
        for _ in range(1000):
            u, K = mpc.step(q, v)
            q, v = robot(u)

    """

    def __init__(self, solver, iterations=1, start_iterations=10, *, roll=True, **budget):
        if not isinstance(solver, Solver):
            raise TypeError(f"solver: expected a control.Solver, got {type(solver).__name__}")
        self.solver = solver
        self.iterations = _whole("iterations", iterations)
        self.start_iterations = _whole("start_iterations", start_iterations)
        self.roll = roll
        self._budget = budget
        self._guess = None
        self._started = False

    def reset(self, U=None):
        """The next tick is a first one, from the controls U (N, nu), or zero."""
        self.solver.forget()
        self._guess = U
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
            Between ticks: u + K @ dx, dx the difference of the state from (q, v), in its tangent space.

        Raises
        ------
        ValueError
            A state that is not finite, with the plan as it was.
        """
        if self._started and self.solver._core.has_last:
            self._solve(q, v, self.iterations, from_last=True, shift=True, roll=self.roll)
        else:  # the first one, or the last plan overflowed or was interrupted
            self._solve(q, v, self.start_iterations, U=self._guess)
            self._started = True
        return self.solver._core.first_control()

    def _solve(self, q, v, iterations, **start):
        self.solver._run(q, v, iterations=iterations, **start, **self._budget)

    @property
    def result(self):
        """Result of the last tick."""
        return self.solver.result
