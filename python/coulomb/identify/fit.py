"""fit: the loop around the problem, scipy.optimize.least_squares with exact Jacobians, and what is said of its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .._core import Model
from ..progress import Bar
from . import report
from .checks import are_positive, by_element, count, positive
from .losses import LOSSES, loss_of_rows, reweighting
from .problem import Problem
from .scatter import Scatter
from .trajectories import Trajectories
from .unknowns import Block, Unknowns
from .windows import BoundWindow, Window

_DENSE = 2e7  # numbers of a Jacobian that is decomposed as it is; larger ones stay sparse, and steps are solved by LSMR
_STALLED = 0.05  # of the cost that the Gauss-Newton step promises to save: a third of a standard error in one direction
_AT_BOUND = 1e-6  # of its scale: an unknown that is as close to a bound lies at it
_RIDGE = 1e-3  # of a standard deviation per scale: holds what nothing determines, and is not felt elsewhere
_ENDS = {
    0: "stopped after max_evaluations",
    1: "converged: the gradient is zero to the tolerance",
    2: "converged: the cost falls no more",
    3: "converged: the steps are below the tolerance",
    4: "converged: neither cost nor unknowns change",
}


def fit(
    model: Model,
    windows: Window | Sequence[Window],
    parameters: str | Block | Sequence[str | Block],
    *,
    timestep: float | None = None,
    segment: int | None = None,
    continuity: float | np.ndarray = 1e-6,
    initial_states: bool = True,
    loss: str = "huber",
    threshold: float = 1.345,
    max_evaluations: int = 100,
    tolerance: float = 1e-8,
    num_threads: int = 0,
    progress: bool | Callable[[int, int], object] | None = None,
    **options,
) -> report.Fit:
    """Fits parameters of the model to what was measured, by Gauss-Newton steps with exact Jacobians in a trust region. Returns a Fit.

    parameters: names of Model.parameters(), Unknown, Inertia or other Blocks. windows: what was measured (Window). timestep, options:
    as Simulator takes. initial_states: the states that windows start from are refined (Window.start_deviation); False: they are exact.
    segment: rows of inputs after which a simulation starts again from a state that is unknown, too (multiple shooting: for long or
    unstable motion); None: windows are simulated as a whole. continuity: how closely segments meet, m, rad, m/s, rad/s; a number or (2 nv,).

    loss: "linear" (squares), or against outliers "huber", "soft_l1", "cauchy"; of measurements only. threshold: in standard
    deviations, from where on. Where a Window does not give its deviation, fits by squares come first and tell the noise. tolerance: relative
    change of cost and unknowns that ends it. progress: True for a bar, or a callable(evaluations, max_evaluations).

    ValueError, TypeError: name argument, element and value. OverflowError: the simulation overflows. KeyboardInterrupt: it can be
    stopped; its attribute `fit` is then the best Fit so far, or None. ImportError: needs SciPy.
    """
    try:
        import scipy.optimize  # noqa: F401
    except ImportError as error:
        raise ImportError("coulomb.identify needs the 'scipy' package: pip install 'coulomb[identify]'") from error
    if not isinstance(model, Model):
        raise TypeError(f"model: got {type(model).__name__}, expected a coulomb.Model")
    if loss not in LOSSES:
        raise ValueError(f"loss: got {loss!r}, expected one of {', '.join(LOSSES)}")
    threshold, tolerance = positive("threshold", threshold), positive("tolerance", tolerance)
    continuity = by_element("continuity", continuity, 2 * model.nv, are_positive, "positive")
    count("max_evaluations", max_evaluations)
    if segment is not None:
        count("segment", segment)
    unknowns = Unknowns(model, parameters)
    if timestep is not None:
        if "timestep" in unknowns.names:
            raise ValueError(
                "timestep: is one of the parameters to identify; give it by Unknown('timestep', start=...)"
            )
        options["timestep"] = timestep = positive("timestep", timestep)
    step = model.timestep if timestep is None else timestep
    windows = [windows] if isinstance(windows, Window) else list(windows)
    if not windows:
        raise ValueError("windows is empty: give at least one window of measurements")
    bound = [BoundWindow(f"windows[{w}]", window, model, step, segment) for w, window in enumerate(windows)]
    trajectories = Trajectories(bound, model, unknowns.names, {**options, "num_threads": num_threads})
    problem = Problem(unknowns, bound, trajectories, continuity, initial_states)
    return _Search(problem, loss, threshold, max_evaluations, tolerance).run(progress)


class _Search:
    """Runs of least_squares in z, x = start + width (z - offset): the first step is about one scale of each unknown long.

    Each run begins at a z of length 1. It is by that length that scipy measures the first step, and from the zeros of a start at bounds
    it would not get away.
    """

    def __init__(self, problem, loss, threshold, max_evaluations, tolerance):
        self.problem, self.loss, self.threshold = problem, loss, threshold
        self.max_evaluations, self.tolerance = max_evaluations, tolerance
        self.width = problem.scale * np.sqrt(problem.size)
        self.noise_known = not problem.groups
        self.history, self.best = [], None

    def x(self, z):
        x = self.problem.start + self.width * (z - self.offset)
        return np.clip(x, self.problem.lower, self.problem.upper)

    def run(self, progress):
        bar = Bar("evaluation") if progress is True else None
        self.tell = bar or (lambda done, total, note: progress(done, total)) if progress else lambda *_: None
        try:
            # Without a known noise, squares first: what remains tells it, outliers left aside by the median. Twice where anything is
            # weighed against it, as it was no more than a guess the first time.
            x, loss = self.problem.start, self.loss
            for _ in range(0 if self.noise_known else 2 if self._noise_weighs() else 1):
                self.loss = "linear"
                x = self._least_squares(x)[0]
                self.problem.estimate_noise(self.last[3])
                self.loss, self.noise_known, self.history, self.best = loss, True, [], None
            status = self._least_squares(x)[1]
        except KeyboardInterrupt as stop:
            stop.fit = self._fit("interrupted: the best so far", False) if self.best else None
            raise
        finally:
            if bar:
                bar.close()
        return self._fit(*self._verdict(status))

    def _noise_weighs(self):
        """Whether the fit by squares changes with the noise: there are several, or something is known besides."""
        problem = self.problem
        known_starts = any(len(known) for _, _, known in problem.parts)
        all_alike = np.all(problem.noise_of[problem.measured] == 0) and problem.one_column
        return not all_alike or known_starts or len(problem.prior) > 0

    def _least_squares(self, x):
        from scipy.optimize import least_squares
        from scipy.sparse import identity, vstack

        # Beside the problem's own rows, a ridge: without it, rounding would move what nothing determines.
        problem = self.problem
        ridge = _RIDGE * np.sqrt(problem.size)
        measured = np.concatenate([problem.measured, np.full(problem.size, False)])
        dense = problem.num_rows * problem.size <= _DENSE
        z = np.full(problem.size, 1 / np.sqrt(problem.size))
        self.offset = z - (x - problem.start) / self.width

        def residual(z):
            r = problem.residual(self.x(z))
            self.tell(problem.evaluations, self.max_evaluations, f"rms {np.sqrt(np.mean(r**2)):.3g}")
            return np.concatenate([r, ridge * (z - self.offset)])

        def jacobian(z):
            self.last = self._point(self.x(z))
            if self.best is None or self.last[2] <= self.best[2]:
                self.best = self.last
            self.history.append(self.last[2])
            seen = self._matrix(self._seen(self.last[1]))
            return (
                np.vstack([seen, ridge * np.eye(problem.size)])
                if dense
                else vstack([seen, ridge * identity(problem.size)])
            )

        bounds = tuple((side - problem.start) / self.width + self.offset for side in (problem.lower, problem.upper))
        left = self.max_evaluations - problem.evaluations
        result = least_squares(
            residual,
            z,
            jac=jacobian,
            bounds=bounds,
            loss=reweighting(loss_of_rows(self.loss, measured)),
            f_scale=self.threshold,
            ftol=self.tolerance,
            xtol=self.tolerance,
            gtol=1e-12,
            max_nfev=max(left, 1),
            tr_solver="exact" if dense else "lsmr",
        )
        return self.x(result.x), result.status

    def _seen(self, jacobian):
        """The Jacobian without what is rounding; in units of a noise that is only guessed, nothing is small by itself."""
        return report.without_unseen(jacobian, self.problem.unknowns.scale, 1.0 if self.noise_known else 0.0)

    def _point(self, x):
        """(x, Jacobian by window, cost, residual), and what else belongs to it."""
        problem = self.problem
        J = problem.jacobian(x)
        r, runs = problem.residual(x), problem.trajectories
        cost = 0.5 * self.threshold**2 * self._rho(r)[0].sum()
        unsolved = sum(runs.unsolved(w) for w in range(len(problem.windows)))
        return x.copy(), J, float(cost), r, unsolved, runs.ambiguous

    def _rho(self, r):
        return loss_of_rows(self.loss, self.problem.measured)((r / self.threshold) ** 2)

    def _matrix(self, jacobian):
        """The Jacobian by z, dense where it is small."""
        from scipy.sparse import csr_matrix, hstack, vstack

        problem, p = self.problem, self.problem.p
        rows = []
        for w, J in enumerate(jacobian):
            here = problem.state_columns(w)
            before, after = csr_matrix((len(J), here.start - p)), csr_matrix((len(J), problem.size - here.stop))
            rows.append(hstack([csr_matrix(J[:, :p]), before, csr_matrix(J[:, p:]), after]))
        prior = np.zeros((len(problem.prior), problem.size))
        prior[np.arange(len(problem.prior)), problem.prior] = 1 / problem.unknowns.deviation[problem.prior]
        whole = vstack([*rows, csr_matrix(prior)]).multiply(self.width).tocsr()
        return whole.toarray() if problem.num_rows * problem.size <= _DENSE else whole

    def _verdict(self, status):
        """How the search ended, and whether at an optimum: if Gauss-Newton still promises much, steps were too short for a reason."""
        if status not in (2, 3, 4):
            return _ENDS[status], status == 1
        x, J, cost, r = self.last[:4]
        promised = self._promised(x, J, r)
        if promised > max(_STALLED, 10 * self.tolerance * cost):
            return (
                f"stalled: steps lower the cost no more, though its slope promises {promised:.2g} less; contacts and dry friction that come and go "
                "make such corners (docs/identify.md)"
            ), False
        return _ENDS[status], True

    def _held(self, x, jacobian, r):
        """(size,): -1 and 1 for what lies at its lower, upper bound, and would lower the cost beyond it; 0 elsewhere."""
        problem = self.problem
        downhill = -self._matrix(self._seen(jacobian)).T @ (self._rho(r)[1] * r)
        near = _AT_BOUND * problem.scale
        at_lower, at_upper = x - problem.lower <= near, problem.upper - x <= near
        return np.where(at_lower & (downhill < 0), -1, np.where(at_upper & (downhill > 0), 1, 0))

    def _promised(self, x, jacobian, r):
        """Decrease of the cost that a Gauss-Newton step promises, along directions that are determined and not held by bounds."""
        _, slope, curve = self._rho(r)
        z = (r / self.threshold) ** 2
        weight = np.sqrt(np.maximum(slope + 2 * curve * z, 1e-3))
        A = self._matrix(jacobian)
        A = np.asarray(A.todense()) if hasattr(A, "todense") else A
        A = A[:, self._held(x, jacobian, r) == 0] * weight[:, None]
        U, sizes, _ = np.linalg.svd(A, full_matrices=False)
        seen = sizes > 1e-7 * sizes[0] if len(sizes) else []
        return 0.5 * float(np.sum((U[:, seen].T @ (slope * r / weight)) ** 2))

    def _fit(self, status, converged):
        problem, u, p = self.problem, self.problem.unknowns, self.problem.p
        x, J, cost, r, unsolved, ambiguous = self.best
        theta, measured = x[:p], problem.measured

        # Which unknowns ended at a bound.
        sides, at_bound = {-1: "lower", 1: "upper"}, self._held(x, J, r)
        held = {u.labels[k]: sides[int(at_bound[k])] for k in range(p) if at_bound[k]}

        # What the data say, in the noise that remains.
        scatter = self._scatter(J, r)
        S = report.reduced(J, np.sqrt(scatter.telling()), p)
        sizes, undetermined = report.directions(S, u.scale, u.labels)
        C = scatter.covariance(np.array([label in held for label in u.labels]))

        # As tables show it.
        shown, by_x = u.shown(theta)
        deviations = np.sqrt(np.diag(C))
        with np.errstate(invalid="ignore"):
            correlation = C / np.outer(deviations, deviations)
        residuals, noise = ([{} for _ in problem.windows] for _ in range(2))
        remains = scatter.noise()
        for w, k, rows in problem.rows_of_readings():
            reading = problem.windows[w].readings[k]
            residuals[w][reading.name] = r[rows].reshape(-1, len(reading.deviation))
            noise[w][reading.name] = reading.deviation * remains[rows][: len(reading.deviation)]
        rms = float(np.sqrt(np.mean(r[measured] ** 2)))
        return report.Fit(
            model=u.at(theta),
            values=u.values(theta),
            labels=u.labels,
            x=theta,
            shown=shown,
            first=u.shown(u.start)[0],
            errors=dict(zip(u.labels, np.abs(by_x) * deviations)),
            covariance=C,
            correlation=correlation,
            held=held,
            singular_values=sizes,
            sensitivity=S,
            undetermined=undetermined,
            residuals=residuals,
            rms=rms,
            noise=noise,
            estimated=problem.groups,
            cost=cost,
            history=self.history,
            evaluations=problem.evaluations,
            refused=problem.refused,
            status=status,
            converged=converged,
            unsolved=unsolved,
            ambiguous=ambiguous,
            starts=[problem.states(x)[0][w, 0] for w in range(len(problem.windows))],
        )

    def _scatter(self, jacobian, r):
        _, slope, curve = self._rho(r)
        psi, psi_slope = slope * r, slope + 2 * curve * (r / self.threshold) ** 2
        return Scatter(self.problem, jacobian, psi, psi_slope, robust=self.loss != "linear")
