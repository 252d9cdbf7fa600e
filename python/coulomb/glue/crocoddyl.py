"""Actions of Crocoddyl that are steps of a simulator, through contact (docs/glue.md).

    state = State(model)                                  # x = (q, v), as Coulomb has them
    costs = crocoddyl.CostModelSum(state, model.nu)
    action = ActionModel(state, costs, substeps=2)
    solver = crocoddyl.SolverBoxFDDP(crocoddyl.ShootingProblem(x0, [action] * T, terminal))

x is not Crocoddyl's StateMultibody: quaternions are (w, x, y, z), the velocity of a free joint is in world axes. What needs one (frames,
contacts, centroidal quantities) is read by ResidualModelOutputs instead.
"""

from __future__ import annotations

import numpy as np

try:
    import crocoddyl
except ImportError as error:
    raise ImportError("coulomb.glue.crocoddyl needs the 'crocoddyl' package: pip install 'coulomb[glue]'") from error

from .._core import Model
from ._knots import Knots
from ._rotations import Tangents, right_jacobian, turn_between

_FIRST, _SECOND = crocoddyl.Jcomponent.first, crocoddyl.Jcomponent.second


class State(crocoddyl.StateAbstract):
    """x = (q, v) of a model, with the differences of Model.integrate and Model.difference.

    What these refuse (numbers that are not finite, quaternions that are not of unit length) gives nan, and solvers stop there; to raise would
    end the process (ActionModel.calc).

    Parameters
    ----------
    model : Model
    """

    def __init__(self, model):
        if not isinstance(model, Model):
            raise TypeError(f"model: expected a Model, got {type(model).__name__}")
        super().__init__(model.nq + model.nv, 2 * model.nv)
        self.model = model
        self._tangents = Tangents(model)
        self._random = np.random.default_rng(0)

    def point(self, q, v):
        """x of (q, v)."""
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        for name, value, size in (("q", q, self.model.nq), ("v", v, self.model.nv)):
            if value.shape != (size,):
                raise ValueError(f"{name}: got shape {value.shape}, expected ({size},)")
        return np.concatenate([q, v])

    def split(self, x):
        """(q, v) of x."""
        return x[: self.model.nq], x[self.model.nq :]

    def zero(self):
        """Neutral, at rest."""
        return self.point(*self.model.neutral())

    def rand(self):
        """A point up to 1 (m, rad, m/s, rad/s) from zero, along every direction."""
        return self.integrate(self.zero(), self._random.uniform(-1, 1, self.ndx))

    def diff(self, x0, x1):
        (q0, v0), (q1, v1) = self.split(x0), self.split(x1)
        return np.concatenate([_or_nan(self.model.difference, q0, q1, self.model.nv), v1 - v0])

    def integrate(self, x, dx):
        q, v = self.split(x)
        nv = self.model.nv
        return np.concatenate([_or_nan(self.model.integrate, q, dx[:nv], self.model.nq), v + dx[nv:]])

    def Jdiff(self, x0, x1, firstsecond=crocoddyl.Jcomponent.both):
        d = _or_nan(self.model.difference, self.split(x0)[0], self.split(x1)[0], self.model.nv)
        t = self._tangents
        return self._chosen(
            firstsecond,
            lambda: self._with_velocities(t.difference_by_first(d), -1.0),
            lambda: self._with_velocities(t.difference_by_second(d), 1.0),
        )

    def Jintegrate(self, x, dx, firstsecond=crocoddyl.Jcomponent.both, *_):
        w = dx[: self.model.nv]
        t = self._tangents
        return self._chosen(
            firstsecond,
            lambda: self._with_velocities(t.integrate_by_q(w), 1.0),
            lambda: self._with_velocities(t.integrate_by_w(w), 1.0),
        )

    def JintegrateTransport(self, x, dx, Jin, firstsecond):
        """The product of Jintegrate, by one of its arguments, with Jin."""
        if firstsecond not in (_FIRST, _SECOND):
            raise ValueError("firstsecond: expected Jcomponent.first or Jcomponent.second")
        Jin[:] = self.Jintegrate(x, dx, firstsecond) @ Jin
        return Jin

    def _with_velocities(self, of_q, of_v):
        nv = self.model.nv
        J = of_v * np.eye(2 * nv)
        J[:nv, :nv] = of_q
        return J

    @staticmethod
    def _chosen(firstsecond, first, second):
        """The return value that Crocoddyl expects from an override: one matrix, or a list of both."""
        if firstsecond == _FIRST:
            return first()
        if firstsecond == _SECOND:
            return second()
        return [first(), second()]


class ActionModel(crocoddyl.ActionModelAbstract):
    """A control step of the simulator, with costs of the state before it and of its control.

    Costs count as they are at every knot, not times the time step. As the last model of a problem: pass it as terminal; only its costs of
    states count then. One model serves all knots with the same costs. `problem.nthreads` must stay 1: Crocoddyl calls it from Python.

    Parameters
    ----------
    state : State
    costs : crocoddyl.CostModelSum
        Over `state`, with nu controls. For states use ResidualModelState of this module where the model has free or ball joints.
    substeps : int
        Steps of the simulator from knot to knot.
    timestep : float, optional
        Of a step of the simulator, s. Default: the model's.
    limits : (lower, upper), optional
        Of the controls, numbers or (nu,) each, for the solvers with Box in their names. Default: the actuators' control ranges.
    inputs : "u" or "tau"
        Controls of the model's actuators, or a force on every dof.
    options
        As Simulator takes: contact law, stepper, gradient.

    Raises
    ------
    ValueError, TypeError
        Names the argument. A cost that Crocoddyl would differentiate wrongly is refused by its name.
    """

    def __init__(self, state, costs, substeps=1, *, timestep=None, limits=None, inputs="u", **options):
        if not isinstance(state, State):
            raise TypeError(f"state: expected a coulomb.glue.crocoddyl.State, got {type(state).__name__}")
        knots = Knots(state.model, 1, substeps, timestep, inputs, 1, options)
        _check(costs, state, knots.nu)
        super().__init__(state, knots.nu, costs.nr)
        self.costs = costs
        self._state = state
        self._knots = knots
        self.u_lb, self.u_ub = _limits(limits, knots)

    @property
    def timestep(self):
        """Seconds from knot to knot."""
        return self._knots.timestep

    def createData(self):
        return ActionData(self)

    def calc(self, data, x, u=None):
        """Cost and, of a knot with a control, the next state. Both are nan where the step overflows, and where an error came, which `data.error`
        keeps: solvers then try a shorter step. Nothing is raised, as Crocoddyl calls from an OpenMP region, where that would end the process.
        """
        data.at = _key(x, u)
        data.error = None
        data.cost = np.nan
        try:
            if self._step(data, x, u):
                at = (x,) if u is None else (x, u)
                self.costs.calc(data.costs, *at)
                data.cost = data.costs.cost
        except Exception as error:
            data.error = error

    def calcDiff(self, data, x, u=None):
        """Fx, Fu and the derivatives of the costs, or nan as in calc. The step is taken again only if the data is of another (x, u)."""
        if data.at != _key(x, u):
            self.calc(data, x, u)
        try:
            if not np.isnan(data.cost):
                self._differentiate(data, x, u)
                return
        except Exception as error:
            data.error = error
        data.Lx = np.full(self.state.ndx, np.nan)

    def _step(self, data, x, u):
        """Whether there is a state after it."""
        if u is None:
            return np.isfinite(x).all()
        data.converged = False
        data.xnext = np.full(self.state.nx, np.nan)
        after, converged, data.record = self._knots.step(x[None], u[None])
        data.xnext = after[0]
        data.converged = bool(converged[0])
        return np.isfinite(after).all()

    def _differentiate(self, data, x, u):
        if u is None:
            self.costs.calcDiff(data.costs, x)
            return
        A, B = self._knots.jacobian(data.record)
        data.Fx, data.Fu = A[0], B[0]
        self.costs.calcDiff(data.costs, x, u)


class ActionData(crocoddyl.ActionDataAbstract):
    """Data of a knot.

    Attributes
    ----------
    converged : bool
        The step was solved as posed.
    error : Exception or None
        What went wrong in the last evaluation: a quaternion in the guess that is not of unit length, a cost that raised.
    """

    def __init__(self, model):
        super().__init__(model)
        self._collector = crocoddyl.DataCollectorAbstract()
        self.costs = model.costs.createData(self._collector)
        self.costs.shareMemory(self)
        self.record = None
        self.at = None
        self.converged = True
        self.error = None


class ResidualModelState(crocoddyl.ResidualModelAbstract):
    """x (-) reference, in the tangent space, 2 nv. As crocoddyl.ResidualModelState, which takes the Jacobian of the difference for the identity where
    the state is not its own StateMultibody.

    Parameters
    ----------
    state : State
    reference : (nq + nv,), optional
        Default: neutral, at rest.
    nu : int, optional
        Number of controls. Default: of the model's actuators.
    """

    def __init__(self, state, reference=None, nu=None):
        super().__init__(state, state.ndx, state.model.nu if nu is None else nu, True, True, False)
        self._state = state
        self.reference = _vector("reference", state.zero() if reference is None else reference, state.nx)

    def calc(self, data, x, u=None):
        data.r = self._state.diff(self.reference, x)

    def calcDiff(self, data, x, u=None):
        data.Rx = self._state.Jdiff(self.reference, x, _SECOND)


class ResidualModelOutputs(crocoddyl.ResidualModelAbstract):
    """Readings of a state by name less a reference: frames, sensors, centres of mass (docs/outputs.md). Forces belong to steps, not to states.

    Parameters
    ----------
    state : State
    names : str or list of str
        Outputs, one after the other. Of an orientation the residual is the rotation vector from its reference.
    reference : (size,), optional
        Default: zero, orientations: none turned.
    nu : int, optional
        Number of controls. Default: of the model's actuators.
    """

    def __init__(self, state, names, reference=None, nu=None):
        model = state.model
        names = [names] if isinstance(names, str) else list(names)
        self._sizes = model._output_sizes(names)
        size, width = (sum(s[i] for s in self._sizes) for i in range(2))
        model.output_jacobian(names, *model.neutral())  # refuses forces by name
        super().__init__(state, width, model.nu if nu is None else nu, True, True, False)
        self._state, self.names = state, names
        self.reference = _vector("reference", self._zero() if reference is None else reference, size)

    def calc(self, data, x, u=None):
        data.r = self._residual(x)

    def calcDiff(self, data, x, u=None):
        q, v = self._state.split(x)
        model = self._state.model
        J = np.hstack([model.output_jacobian(self.names, q, v, wrt=by) for by in "qv"])
        r = self._residual(x)
        row = 0
        for size, width in self._sizes:
            if size != width:
                at = slice(row + width - 3, row + width)
                J[at] = np.linalg.solve(right_jacobian(r[at]), J[at])
            row += width
        data.Rx = J

    def _residual(self, x):
        y = self._state.model.output(self.names, *self._state.split(x))
        parts, row = [], 0
        for size, width in self._sizes:
            plain = size if size == width else size - 4
            parts.append(y[row : row + plain] - self.reference[row : row + plain])
            if plain < size:
                at = slice(row + plain, row + size)
                parts.append(turn_between(self.reference[at], y[at]))
            row += size
        return np.concatenate(parts)

    def _zero(self):
        rows = [
            np.zeros(size) if size == width else np.r_[np.zeros(size - 4), 1, 0, 0, 0] for size, width in self._sizes
        ]
        return np.concatenate(rows)


def _or_nan(function, a, b, size):
    try:
        return function(a, b)
    except ValueError:
        return np.full(size, np.nan)


def _check(costs, state, nu):
    if not isinstance(costs, crocoddyl.CostModelSum):
        raise TypeError(f"costs: expected a crocoddyl.CostModelSum, got {type(costs).__name__}")
    if costs.state.nx != state.nx or costs.state.ndx != state.ndx:
        raise ValueError(f"costs: their state has {costs.state.nx} numbers, that of the model has {state.nx}")
    if costs.nu != nu:
        raise ValueError(f"costs: they are of {costs.nu} controls, the model has {nu}: CostModelSum(state, {nu})")
    if not state._tangents.rotations:
        return
    for name, item in costs.costs.todict().items():
        residual = getattr(item.cost, "residual", None)
        if isinstance(residual, crocoddyl.ResidualModelState):
            raise ValueError(
                f"costs: '{name}' is a crocoddyl.ResidualModelState, which has no right derivative by the rotations of this "
                "state; use coulomb.glue.crocoddyl.ResidualModelState"
            )


def _limits(limits, knots):
    if limits is None:
        return knots.lower, knots.upper
    try:
        lower, upper = limits
        lower, upper = (np.broadcast_to(np.asarray(side, dtype=float), (knots.nu,)).copy() for side in (lower, upper))
    except (TypeError, ValueError):
        raise ValueError(f"limits: expected (lower, upper), numbers or ({knots.nu},) each") from None
    if not (lower <= upper).all():
        i = int(np.flatnonzero(~(lower <= upper))[0])
        raise ValueError(f"limits: [{i}] is {lower[i]} .. {upper[i]}, expected a lower and an upper one in this order")
    return lower, upper


def _vector(name, value, size):
    value = np.array(value, dtype=float)
    if value.shape != (size,):
        raise ValueError(f"{name}: got shape {value.shape}, expected ({size},)")
    if not np.isfinite(value).all():
        i = int(np.flatnonzero(~np.isfinite(value))[0])
        raise ValueError(f"{name}[{i}] is {value[i]}, expected a finite number")
    return value


def _key(x, u):
    return x.tobytes(), None if u is None else u.tobytes()
