"""All shooting nodes of a trajectory as one function of CasADi, with its Jacobian (docs/glue.md).

    steps = Steps(model, knots=50, substeps=2)
    opti.subject_to(X[:, 1:] == steps(X[:, :-1], U))
    opti.solver("ipopt", gauss_newton(opti))

Keep `steps` as long as what was made of it: CasADi does not.
"""

from __future__ import annotations

import numpy as np

try:
    import casadi
except ImportError as error:
    raise ImportError("coulomb.glue.casadi needs the 'casadi' package: pip install 'coulomb[glue]'") from error

from .._coordinates import Coordinates
from ._knots import Knots


class Steps(casadi.Callback):
    """X1 (nq + nv, knots) = steps(X (nq + nv, knots), U (nu, knots)): column t of X1 is where the control step from column t leads.

    All columns are stepped at once, in C++ on threads. x = (q, v) as numbers; quaternions are scaled to unit length first, so that any change of
    their numbers has a derivative, and gaps that are closed have unit ones. Every column starts cold. Columns whose step overflows are nan, which
    IPOPT answers by a shorter step. There is no second derivative: IPOPT needs gauss_newton, or hessian_approximation="limited-memory".

    Parameters
    ----------
    model : Model
    knots : int
        Columns.
    substeps : int
        Steps of the simulator from knot to knot.
    timestep : float, optional
        Of a step of the simulator, s. Default: the model's.
    inputs : "u" or "tau"
        Controls of the model's actuators, or a force on every dof.
    num_threads : int
        0: all cores that this process may use. The same bits for any number.
    name : str
        In CasADi's expressions.
    options
        As Simulator takes: contact law, stepper, gradient.

    Attributes
    ----------
    converged : (knots,) bool
        Of the last evaluation: the step was solved as posed.
    evaluations, linearizations : int
        How often all columns were stepped, and differentiated.

    Raises
    ------
    ValueError, TypeError
        Names the argument.
    """

    def __init__(self, model, knots, substeps=1, *, timestep=None, inputs="u", num_threads=0, name="steps", **options):
        self._knots = Knots(model, knots, substeps, timestep, inputs, num_threads, options)
        self._coordinates = Coordinates(model)
        self._last = None
        self.converged = np.ones(self._knots.n, dtype=bool)
        self.evaluations = self.linearizations = 0
        self._slopes = []
        super().__init__()
        self.construct(name, {})

    @property
    def nx(self):
        """nq + nv."""
        return self._knots.nx

    @property
    def nu(self):
        """Number of controls of a knot."""
        return self._knots.nu

    @property
    def timestep(self):
        """Seconds from knot to knot."""
        return self._knots.timestep

    @property
    def limits(self):
        """(lower, upper), (nu,) each: the actuators' control ranges."""
        return self._knots.lower, self._knots.upper

    def columns(self, Q, V):
        """X of states (n, nq), (n, nv), such as a guess."""
        return np.hstack([Q, V]).T

    def states(self, X):
        """(Q, V) of X (nq + nv, n)."""
        Q, V = np.split(np.asarray(X, dtype=float).T, [self._coordinates.nq], axis=1)
        return np.ascontiguousarray(Q), np.ascontiguousarray(V)

    def get_n_in(self):
        return 2

    def get_n_out(self):
        return 1

    def get_name_in(self, i):
        return ("X", "U")[i]

    def get_name_out(self, i):
        return "X1"

    def get_sparsity_in(self, i):
        return casadi.Sparsity.dense((self.nx, self.nu)[i], self._knots.n)

    def get_sparsity_out(self, i):
        return casadi.Sparsity.dense(self.nx, self._knots.n)

    def eval(self, arguments):
        return [self._step(arguments)[0].T]

    def has_jac_sparsity(self, output, argument):
        return True

    def get_jac_sparsity(self, output, argument, symmetric):
        """Block diagonal: a column of X1 depends on the same column of X and of U alone."""
        block = casadi.Sparsity.dense(self.nx, (self.nx, self.nu)[argument])
        return casadi.diagcat(*[block] * self._knots.n)

    def has_jacobian(self):
        return True

    def get_jacobian(self, name, names_in, names_out, options):
        slope = _Slope(self, name, options)
        self._slopes.append(slope)
        return slope

    def _step(self, arguments):
        """X1, the record of its steps, X with unit quaternions, their lengths. Kept: IPOPT asks for values and Jacobian at the same point."""
        X, U = (np.array(part, dtype=float).T for part in arguments[:2])
        key = X.tobytes(), U.tobytes()
        if self._last is None or self._last[0] != key:
            q, lengths = self._normalized(X[:, : self._coordinates.nq])
            X = np.hstack([q, X[:, self._coordinates.nq :]])
            X1, self.converged, record = self._knots.step(X, U)
            self.evaluations += 1
            self._last = key, (X1, record, q, lengths)
        return self._last[1]

    def _normalized(self, q):
        """As Coordinates.normalized; a quaternion of length 0 becomes nan, as the other points at which nothing can be said."""
        for a, _ in self._coordinates.quaternions:
            q = np.where((np.linalg.norm(q[:, a : a + 4], axis=1) == 0)[:, None], np.nan, q)
        return self._coordinates.normalized(q)

    def _jacobian(self, arguments):
        """(n, nx, nx) and (n, nx, nu), of the numbers of x."""
        X1, record, q, lengths = self._step(arguments)
        self.linearizations += 1
        n, nv, nq = self._knots.n, self._coordinates.nv, self._coordinates.nq
        by_x, by_u = np.full((n, self.nx, self.nx), np.nan), np.full((n, self.nx, self.nu), np.nan)
        sound = np.isfinite(X1).all(axis=1)
        if not sound.any():
            return by_x, by_u
        A, B = (J[sound] for J in self._knots.jacobian(record))

        # From tangents to numbers: rows of q1, columns of q.
        E, P = self._coordinates.expansion(X1[sound, :nq]), self._coordinates.projection(q[sound], lengths[sound])
        rows_A = np.concatenate([E @ A[:, :nv], A[:, nv:]], axis=1)
        by_x[sound] = np.concatenate([rows_A[..., :nv] @ P, rows_A[..., nv:]], axis=2)
        by_u[sound] = np.concatenate([E @ B[:, :nv], B[:, nv:]], axis=1)
        return by_x, by_u


def gauss_newton(opti):
    """Options for opti.solver("ipopt", ...): the Hessian of the cost alone, without the curvature of dynamics and constraints.

    For a cost that is a sum of squares. The other choice, as Steps has no second derivative, is hessian_approximation="limited-memory": try both. Call
    this after minimize and the last subject_to.
    """
    cost_factor, multipliers = casadi.MX.sym("lam_f"), casadi.MX.sym("lam_g", opti.ng)
    H, _ = casadi.hessian(opti.f, opti.x)
    arguments = [opti.x, opti.p, cost_factor, multipliers]
    return {"hess_lag": casadi.Function("hess_lag", arguments, [casadi.triu(cost_factor * H)])}


class _Slope(casadi.Callback):
    """The Jacobians of Steps by X and by U, block diagonal."""

    def __init__(self, steps, name, options):
        super().__init__()
        self.steps = steps
        self.patterns = [steps.get_jac_sparsity(0, i, False) for i in range(2)]
        self.construct(name, options)

    def get_n_in(self):
        return 3

    def get_n_out(self):
        return 2

    def get_sparsity_in(self, i):
        return self.steps.get_sparsity_in(i) if i < 2 else self.steps.get_sparsity_out(0)

    def get_sparsity_out(self, i):
        return self.patterns[i]

    def eval(self, arguments):
        """CasADi stores matrices column by column."""
        blocks = self.steps._jacobian(arguments)
        return [casadi.DM(pattern, J.transpose(0, 2, 1).ravel()) for pattern, J in zip(self.patterns, blocks)]
