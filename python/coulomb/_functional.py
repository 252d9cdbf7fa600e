"""Steps and rollouts as functions of their arguments alone, batched: what coulomb.torch and coulomb.jax have in common.

Automatic differentiation repeats, reorders and drops calls. So a step here is that of a simulator after reset(), and
a rollout starts from reset() as Simulator.rollout does; both run in private simulators with the model and options of
the one that is given, which stays as it is. Every array has one row per environment: q (n, nq), v (n, nv), u (n, nu),
tau (n, nv), parameters (n, size). Rows go in and come out as numbers of q (_coordinates.py); quaternions are scaled
to unit length on the way in.
"""

from __future__ import annotations

import atexit
import collections
import concurrent.futures
import functools
import math
import os
import threading
import types
import weakref

import numpy as np

from ._coordinates import Coordinates, turn
from ._core import BatchSimulator, Simulator

_INPUTS = ("q", "v", "u", "tau")
_KEPT = 16  # simulators, models, sets of environments that are remembered


class _Recent(collections.OrderedDict):
    """The last few things that were made, by key."""

    def make(self, key, function):
        if key in self:
            self.move_to_end(key)
        else:
            self[key] = function()
        while len(self) > _KEPT:
            self.popitem(last=False)
        return self[key]


_functionals = _Recent()
_trajectories = weakref.WeakSet()
_lock = threading.Lock()


@atexit.register
def _release():
    """Compiled functions of JAX and graphs of PyTorch outlive the interpreter's modules; what they hold of ours must
    not.
    """
    for trajectories in list(_trajectories):
        trajectories.rows.clear()
    for functional in _functionals.values():
        functional.__dict__.clear()
    _functionals.clear()


def functional(sim):
    """The Functional of a Simulator."""
    if not isinstance(sim, Simulator):
        raise TypeError(f"sim: expected a coulomb.Simulator, got {type(sim).__name__}")
    with _lock:
        return _functionals.make(id(sim), lambda: Functional(sim))


class Functional:
    def __init__(self, sim):
        self.sim = sim  # held, so that its id stays its own
        self.model = sim.model
        self.coordinates = Coordinates(self.model)
        self.options = dict(sim.options, timestep=sim.timestep, exclude_neutral_overlaps=False)
        self.reaches_back = self.options["stepper"] == "bdf2"  # steps of a rollout depend on two states
        self.lock = threading.RLock()  # callbacks may come from several threads
        self.sizes = {}
        self._models, self._environments = _Recent(), _Recent()

    def size_of(self, name):
        """Number of scalars of a parameter. ValueError: there is none of that name."""
        if not self.sizes:
            self.sizes = {key: parameter.size for key, parameter in self.model.parameters().items()}
        if name not in self.sizes:
            kind = str(name).split("/")[0]
            known = [key for key in self.sizes if key.split("/")[0] == kind] or sorted(
                {key.split("/")[0] for key in self.sizes}
            )
            raise ValueError(
                f"parameters: unknown '{name}'; there are {', '.join(known[:12])}{', ...' * (len(known) > 12)}"
            )
        return self.sizes[name]

    def environments(self, n, parameters):
        """n Environments with these parameters: name to (n, size). The last ones are kept by value."""
        key = (n, *((name, value.tobytes()) for name, value in sorted(parameters.items())))
        found = self._environments.make(key, lambda: Environments(self, n, parameters))
        while len(self._environments) > 2 and sum(e.n for e in self._environments.values()) > max(_KEPT, 2 * n):
            self._environments.popitem(last=False)
        return found

    def simulator(self, row):
        """A new simulator; row: name to (size,)."""
        return Simulator(self._model(row), **self._options(row))

    def batch(self, n, parameters):
        """A BatchSimulator; parameters: name to (n, size)."""
        if all((value == value[0]).all() for value in parameters.values()):
            row = {name: value[0] for name, value in parameters.items()}
            return BatchSimulator(self._model(row), n, **self._options(row))
        return BatchSimulator(self.model, n, parameters=parameters, **self._options(parameters))

    def output_names(self, names):
        """(names as a tuple, Readings). ValueError: unknown names."""
        names = (names,) if isinstance(names, str) else tuple(names)
        known = self.model.outputs()
        short = [name for name in names if name not in known]
        for name in short:  # "position/geometry/foot" and errors
            self.model.output(name, *self.model.neutral())
            known[name] = known[name.split("/")[0] + "/" + name.split("/", 2)[2]]
        return names, Readings([(known[name].size, known[name].tangent_size) for name in names])

    def output(self, names, x, parameters):
        """(n, size) readings. x: Inputs; parameters: name to (n, size)."""
        models = self._models_of(parameters, len(x.q))
        return np.stack([model.output(list(names), q, v) for model, q, v in zip(models, x.q, x.v)])

    def output_jacobians(self, names, readings, x, parameters, wrt):
        """Readings and, by name of wrt ("q", "v", parameters), the matrices (n, size, k) of their numbers."""
        y = self.output(names, x, parameters)
        E, out = readings.expansion(y), {}
        models = self._models_of(parameters, len(x.q))
        for name in wrt:
            J = np.stack([m.output_jacobian(list(names), q, v, name) for m, q, v in zip(models, x.q, x.v)])
            out[name] = E @ J @ self.coordinates.projection(x.q, x.lengths) if name == "q" else E @ J
        return y, out

    def _models_of(self, parameters, n):
        return [self._model({name: value[i] for name, value in parameters.items()}) for i in range(n)]

    def _model(self, row):
        key = tuple((name, value.tobytes()) for name, value in sorted(row.items()))
        return self._models.make(key, lambda: self.model.with_parameters(row)) if row else self.model

    def _options(self, parameters):
        """Those of the simulator that was given; but a time step that is a parameter is the model's."""
        return {key: value for key, value in self.options.items() if key not in parameters}


class Environments:
    """n environments, one per row. A step's derivatives are asked with the inputs of that step: it is repeated if
    another came between.
    """

    def __init__(self, functional, n, parameters):
        self.functional, self.n, self.parameters = functional, n, parameters
        self.coordinates = functional.coordinates
        self.last = None

    @functools.cached_property
    def simulators(self):
        """One Simulator per row."""
        return self._each(
            range(self.n), lambda i: self.functional.simulator({k: v[i] for k, v in self.parameters.items()})
        )

    @functools.cached_property
    def batch(self):
        """All rows together, on threads."""
        return self.functional.batch(self.n, self.parameters) if self.n > 1 else _One(self.simulators[0])

    def _each(self, items, function):
        """function of every item, errors with the environment's number."""
        out = []
        for i, item in enumerate(items):
            try:
                out.append(function(item))
            except ValueError as error:
                raise error if self.n == 1 else ValueError(f"environment {i}: {error}") from None
        return out

    def step(self, x):
        """q1 (n, nq), v1 (n, nv). x: an Inputs."""
        self.last = None
        self.batch.reset()
        out = self.batch.step(x.q, x.v, x.u, x.tau)
        self.last = x
        return out

    def converged(self):
        """(n,) bool, of the last step."""
        return np.array(self.batch.status.converged)

    def step_vjp(self, x, q1, dq1, dv1, wrt):
        """Cotangents of the numbers of q1 and v1 to those of "q", "v", "u", "tau" and of wrt's parameters."""
        if self.last is not x:
            self.step(x)
        g = self.batch.vjp(self.coordinates.tangent_of_cotangent(q1, dq1), dv1, wrt)
        out = {name: getattr(g, name) for name in ("q", "v", "u", "tau")} | {name: g[name] for name in wrt}
        out["q"] = self.coordinates.gradient_of_tangent(x.q, x.lengths, out["q"])
        return out

    def step_jacobian(self, x, wrt):
        """q1, v1, and by name of wrt ("q", "v", "u", "tau", parameters) the matrices (n, nq + nv, size) of the
        numbers of (q1, v1).
        """
        q1, v1 = self.step(x)
        return q1, v1, self._jacobian(x.q, x.lengths, q1, wrt)

    def _jacobian(self, q, lengths, q1, wrt, previous=None):
        """previous: the q before q, where "previous" is wanted too."""
        nv = self.coordinates.nv
        d = self.batch.derivatives([name for name in wrt if name not in _INPUTS])
        blocks = {"q": d.A[..., :nv], "v": d.A[..., nv:], "u": d.B, "tau": d.B_tau}
        E = self.coordinates.expansion(q1)
        out = {}
        for name in wrt:
            J = blocks[name] if name in blocks else d[name]
            J = np.concatenate([E @ J[:, :nv], J[:, nv:]], axis=1)
            out[name] = J @ self.coordinates.projection(q, lengths) if name == "q" else J
        if previous is not None:
            J = np.zeros_like(d.A) if d.A_previous is None else d.A_previous
            J = np.concatenate([E @ J[:, :nv], J[:, nv:]], axis=1)
            P = self.coordinates.projection(previous, np.ones_like(lengths))
            out["previous"] = np.concatenate([J[..., :nv] @ P, J[..., nv:]], axis=-1)
        return out

    def rollout(self, x, steps):
        """Q (n, steps + 1, nq), V (n, steps + 1, nv) and what rollout_vjp wants. x.u: (n, steps, nu) or None."""
        self.last = None
        simulators = self.simulators
        every = max(1, math.isqrt(steps))
        found = _parallel(
            lambda i: simulators[i].rollout(x.q[i], x.v[i], _row(x.u, i), steps=steps, checkpoint_every=every), self.n
        )
        rows = self._each(found, _Outcome.get)
        return np.stack([r.q for r in rows]), np.stack([r.v for r in rows]), Trajectories(rows)

    def rollout_vjp(self, x, trajectories, dQ, dV, wrt):
        """Cotangents (n, T + 1, .) of the numbers of Q and of V to those of "q", "v", "u" and the parameters of wrt,
        by name.
        """
        rows = trajectories.rows
        dW = self.coordinates.tangent_of_cotangent(np.stack([r.q for r in rows]), dQ)
        found = _parallel(lambda i: rows[i].vjp(dW[i], dV[i], wrt), self.n)
        grads = self._each(found, _Outcome.get)
        out = {
            name: np.stack([g[key] for g in grads])
            for name, key in [("q", "q0"), ("v", "v0"), ("u", "u"), *zip(wrt, wrt)]
        }
        out["q"] = self.coordinates.gradient_of_tangent(x.q, x.lengths, out["q"])
        return out

    def rollout_jacobians(self, x, steps, wrt):
        """Q, V, converged (n, T), and by name of wrt ("q", meaning the state; "u"; parameters) the matrices (n, T, nq + nv, size) of
        every step.

        That of "q" is (n, T, nq + nv, nq + nv): by the numbers of the state (q, v) before the step. If reaches_back, "previous" is
        the same by the state before that one. T is at least 1."""
        self.last = None
        names = ["q", "v", *(name for name in wrt if name != "q")]
        qs, vs, matrices, converged, lengths = [x.q], [x.v], [], [], np.ones_like(x.lengths)
        self.batch.reset()
        for t in range(steps):
            q, v = self.batch.step(qs[-1], vs[-1], None if x.u is None else np.ascontiguousarray(x.u[:, t]), None)
            before = qs[max(0, t - 1)] if self.functional.reaches_back else None
            matrices.append(self._jacobian(qs[-1], lengths, q, names, before))
            converged.append(self.converged())
            qs.append(q)
            vs.append(v)
        out = {name: np.stack([J[name] for J in matrices], axis=1) for name in matrices[0]} if steps else {}
        if steps:
            out["q"] = np.concatenate([out["q"], out.pop("v")], axis=-1)
        converged = np.stack(converged, axis=1) if steps else np.ones((self.n, 0), dtype=bool)
        return np.stack(qs, axis=1), np.stack(vs, axis=1), converged, out


class Trajectories:
    """The Rollout of every row."""

    def __init__(self, rows):
        self.rows = rows
        _trajectories.add(self)

    def converged(self):
        """(n, T) bool."""
        return np.array([[status.converged for status in row.status] for row in self.rows], dtype=bool)


class Readings:
    """Where the quaternions of stacked outputs are. Sizes: (numbers, size of the tangent) of each."""

    def __init__(self, sizes):
        self.size, self.tangent_size = (sum(column) for column in zip(*sizes))
        self.sizes = sizes

    def expansion(self, y):
        """Derivative (n, size, tangent_size) of the numbers of y (n, size) by their tangent."""
        E = np.zeros((len(y), self.size, self.tangent_size))
        row = column = 0
        for size, tangent in self.sizes:
            plain = size if size == tangent else size - 4
            E[:, range(row, row + plain), range(column, column + plain)] = 1
            if plain < size:
                E[:, row + plain : row + size, column + plain : column + tangent] = turn(y[:, row + plain : row + size])
            row, column = row + size, column + tangent
        return E


class _One:
    """One simulator as a batch of one: without threads."""

    def __init__(self, sim):
        self.reset = sim.reset
        self.sim = sim

    @property
    def status(self):
        return types.SimpleNamespace(converged=[self.sim.status.converged])

    def step(self, Q, V, U, tau):
        q, v = self.sim.step(Q[0], V[0], _row(U, 0), _row(tau, 0))
        return q[None], v[None]

    def vjp(self, dQ1, dV1, wrt):
        return _First(self.sim.vjp(dQ1[0], dV1[0], wrt))

    def derivatives(self, wrt):
        return _First(self.sim.derivatives(wrt))


class _First:
    """Derivatives of one environment with an axis for it."""

    def __init__(self, found):
        self._found = found

    def __getattr__(self, name):
        value = getattr(self._found, name)
        return None if value is None else value[None]

    def __getitem__(self, name):
        return self._found[name][None]


class _Outcome:
    """A result, or the error that took its place."""

    def __init__(self, function, i):
        self.value = self.error = None
        try:
            self.value = function(i)
        except ValueError as error:
            self.error = error

    def get(self):
        if self.error is not None:
            raise self.error
        return self.value


def _parallel(function, n):
    """_Outcome of function(i) for every i, on threads: trajectories run without the GIL."""
    if n == 1:
        return [_Outcome(function, 0)]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with concurrent.futures.ThreadPoolExecutor(min(n, cores)) as pool:
        return list(pool.map(lambda i: _Outcome(function, i), range(n)))


class Inputs:
    """Arguments of a step or a rollout, as rows of their own (nothing outside can change them)."""

    def __init__(self, coordinates, q, v, u=None, tau=None, q_name="q"):
        self.q, self.lengths = coordinates.normalized(q, q_name)
        self.v = np.array(v, dtype=float)
        self.u = None if u is None else np.array(u, dtype=float)
        self.tau = None if tau is None else np.array(tau, dtype=float)


def _row(array, i):
    return None if array is None else array[i]
