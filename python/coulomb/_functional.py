"""Steps and rollouts as functions of their arguments alone, batched: what coulomb.torch and coulomb.jax have in common.

Automatic differentiation repeats, reorders and drops calls. So a step here is that of a simulator after reset(), and
a rollout starts from reset() as Simulator.rollout does; both run in private simulators with the model and options of
the one that is given, which stays as it is. Every array has one row per environment: q (n, nq), v (n, nv), u (n, nu),
tau (n, nv), fext (n, num_bodies, 6), mocap (n, m, 7), parameters (n, size). Rows go in and come out as numbers of q (_coordinates.py, of poses: _poses.py); quaternions are scaled
to unit length on the way in.
"""

from __future__ import annotations

import atexit
import collections
import concurrent.futures
import difflib
import functools
import math
import os
import threading
import types
import weakref

import numpy as np

from . import _poses
from ._coordinates import Coordinates, turn
from ._core import BatchSimulator, Simulator

_STEP_INPUTS = ("q", "v", "u", "tau")  # gradients by these come unasked
_INPUTS = (*_STEP_INPUTS, "fext", "mocap")  # of a step, beside parameters
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


class NamedModel:
    """A model as functions of tensors see it: its coordinates, and its parameters and outputs by name."""

    def __init__(self, model):
        self.model = model
        self.coordinates = Coordinates(model)
        self.sizes = {}

    def size_of(self, name):
        """Number of scalars of a parameter. ValueError: there is none of that name."""
        if not self.sizes:
            self.sizes = {key: parameter.size for key, parameter in self.model.parameters().items()}
        if name not in self.sizes:
            kind = str(name).split("/")[0]
            known = [key for key in self.sizes if key.split("/")[0] == kind] or sorted(
                {key.split("/")[0] for key in self.sizes}
            )
            guess = difflib.get_close_matches(str(name), self.sizes, 1)
            hint = f"; did you mean '{guess[0]}'?" if guess else ""
            raise ValueError(
                f"parameters: unknown '{name}'; there are {', '.join(known[:12])}{', ...' * (len(known) > 12)}{hint}"
            )
        return self.sizes[name]

    def output_names(self, names, of_steps=False):
        """(names as a tuple, Readings). of_steps: forces too. ValueError: unknown names."""
        names = (names,) if isinstance(names, str) else tuple(names)
        if not of_steps:
            self.model.output(list(names), *self.model.neutral())  # refuses forces
        return names, Readings(names, self.model._output_sizes(list(names)))


class Functional(NamedModel):
    def __init__(self, sim):
        super().__init__(sim.model)
        self.sim = sim  # held, so that its id stays its own
        self.options = dict(sim.options, timestep=sim.timestep, exclude_neutral_overlaps=False)
        self.placements = [f"body_placement/{self.model.body_names[body]}" for body in self.model.mocap_bodies]
        self.reaches_back = self.options["stepper"] == "bdf2"  # steps of a rollout depend on two states
        self.lock = threading.RLock()  # callbacks may come from several threads
        self._models, self._environments = _Recent(), _Recent()

    def step_shapes(self, steps):
        """Shapes of the inputs of a rollout that has that many steps, by name."""
        return {
            "U": (steps, self.model.nu),
            "tau": (steps, self.model.nv),
            "fext": (steps, self.model.num_bodies, 6),
            "mocap": (steps, len(self.placements), 7),
        }

    def number_of_steps(self, steps, shapes):
        """The number of steps that `steps` (or None) and the inputs of a rollout agree on. shapes: of those given, by name."""
        for name, shape in shapes.items():
            expected = self.step_shapes("T")[name]
            if len(shape) < len(expected):
                raise ValueError(f"{name}: expected shape (..., {', '.join(map(str, expected))}), got {tuple(shape)}")
            rows = shape[-len(expected)]
            if steps is not None and steps != rows:
                raise ValueError(f"steps: got {steps}, but {name} has {rows} rows")
            steps = rows
        if steps is None:
            raise ValueError("steps: needed when U is None (and tau, fext and mocap)")
        if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 0:
            raise ValueError(f"steps: got {steps!r}, expected a number of steps")
        return steps

    def environments(self, n, parameters, posed=False):
        """n Environments with these parameters: name to (n, size). The last ones are kept by value. posed: mocap bodies are given poses
        in every call; others stay where the model has them.
        """
        for name in self.placements if posed else ():
            if name in parameters:
                raise ValueError(f"parameters['{name}']: mocap gives the pose of this body; take one of them")
        key = (n, posed, *((name, value.tobytes()) for name, value in sorted(parameters.items())))
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

    def is_force(self, name):
        """Whether the output belongs to a step and not to a state."""
        return self.model._is_force(name)

    def output(self, names, x, parameters):
        """(n, size) readings. x: Inputs; parameters: name to (n, size)."""
        models = self._models_of(parameters, len(x.q))
        return np.stack([model.output(list(names), q, v) for model, q, v in zip(models, x.q, x.v)])

    def output_jacobians(self, names, readings, x, parameters, wrt, models=None):
        """Readings and, by name of wrt ("q", "v", parameters), the matrices (n, size, k) of their numbers. models: with the parameters, one
        for each row, if there are any already."""
        models = self._models_of(parameters, len(x.q)) if models is None else models
        y = np.stack([model.output(list(names), q, v) for model, q, v in zip(models, x.q, x.v)])
        E, out = readings.expansion(y), {}
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
        """Options of the given simulator; a time step that is a parameter is the model's."""
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

    def posed_models(self, poses):
        """The models with their mocap bodies at poses (n, m, 7), one for each row."""
        self.last = None
        for simulator, row in zip(self.simulators, poses):
            for body, pose in zip(simulator.model.mocap_bodies, row):
                simulator.move_body(simulator.model.body_names[body], pose[:3], pose[3:])
        return [simulator.model for simulator in self.simulators]

    def step(self, x):
        """q1 (n, nq), v1 (n, nv). x: an Inputs."""
        self.last = None
        self.batch.reset()
        out = self.batch.step(x.q, x.v, x.u, x.tau, x.fext, mocap=x.mocap)
        self.last = x
        return out

    def readings(self, names):
        """(n, size) outputs of the last step; names: a tuple."""
        return self.batch.output(list(names))

    def converged(self):
        """(n,) bool, of the last step."""
        return np.array(self.batch.status.converged)

    def step_vjp(self, x, q1, dq1, dv1, wrt, outputs=None):
        """Cotangents of the numbers of q1 and v1 to those of "q", "v", "u", "tau" and of wrt's parameters, and of "fext" and
        "mocap" where wrt has them. outputs: cotangents of outputs (Readings.cotangents), or None.
        """
        if self.last is not x:
            self.step(x)
        asked = self._asked(wrt)
        g = self.batch.vjp(self.coordinates.tangent_of_cotangent(q1, dq1), dv1, asked, outputs=outputs)
        out = {name: getattr(g, name) for name in ("q", "v", "u", "tau")}
        out |= {name: g[name] for name in wrt if name != "mocap"}
        if "mocap" in wrt:
            out["mocap"] = _poses.gradient_of_tangent(x.mocap, x.mocap_lengths, self._of_poses(g))
        out["q"] = self.coordinates.gradient_of_tangent(x.q, x.lengths, out["q"])
        return out

    def _asked(self, wrt):
        """Names of wrt as a step knows them: poses of mocap bodies are parameters."""
        return [name for name in wrt if name != "mocap"] + (self.functional.placements if "mocap" in wrt else [])

    def _of_poses(self, found):
        """(n, ..., m, 6): the parts of the mocap bodies' placements in a result."""
        parts = [found[name] for name in self.functional.placements]
        return np.stack(parts, axis=-2) if parts else np.zeros((self.n, 0, 6))

    def step_jacobian(self, x, wrt, readings=None):
        """q1, v1, readings y or None, and by name of wrt ("q", "v", "u", "tau", "fext", "mocap", parameters) the matrices (n, nq + nv,
        size) of the numbers of (q1, v1); with readings (Readings) the rows of y follow: (n, nq + nv + ny, size).
        """
        q1, v1 = self.step(x)
        y = self.readings(readings.names) if readings else None
        poses = _poses.block_projection(x.mocap, x.mocap_lengths) if "mocap" in wrt else None
        return q1, v1, y, self._jacobian(x.q, x.lengths, q1, wrt, None, readings, y, poses)

    def _jacobian(self, q, lengths, q1, wrt, previous=None, readings=None, y=None, poses=None):
        """previous: the q before q, where "previous" is wanted too. poses: _poses.block_projection, where "mocap" is."""
        nv = self.coordinates.nv
        d = self.batch.derivatives([name for name in self._asked(wrt) if name not in _INPUTS])
        blocks = {"q": d.A[..., :nv], "v": d.A[..., nv:], "u": d.B, "tau": d.B_tau}
        if "fext" in wrt:
            blocks["fext"] = self._wrench_columns()
        if "mocap" in wrt:
            parts = [d[name] for name in self.functional.placements]
            blocks["mocap"] = np.concatenate(parts, axis=-1) if parts else np.zeros((self.n, 2 * nv, 0))
        if previous is not None:
            blocks["previous"] = np.zeros_like(d.A) if d.A_previous is None else d.A_previous
        wrt = [*wrt, "previous"] if previous is not None else wrt
        of_outputs = self._output_rows(readings, wrt) if readings else {}

        # From tangent spaces to numbers: rows of q1 and of y, columns of q and of the state before.
        E = self.coordinates.expansion(q1)
        E_y = readings.expansion(y) if readings else None
        out = {}
        for name in wrt:
            J = blocks[name] if name in blocks else d[name]
            rows = [E @ J[:, :nv], J[:, nv:]]
            if readings:
                rows.append(E_y @ of_outputs[name])
            J = np.concatenate(rows, axis=1)
            if name == "q":
                J = J @ self.coordinates.projection(q, lengths)
            elif name == "mocap":
                J = J @ poses
            elif name == "previous":
                P = self.coordinates.projection(previous, np.ones_like(lengths))
                J = np.concatenate([J[..., :nv] @ P, J[..., nv:]], axis=-1)
            out[name] = J
        return out

    def _wrench_columns(self):
        """(n, 2 nv, 6 num_bodies) of (q1, v1) by fext, row by row."""
        nv = self.coordinates.nv
        rows = []
        for k in range(2 * nv):
            weights = np.zeros((self.n, 2 * nv))
            weights[:, k] = 1
            dq, dv = np.ascontiguousarray(weights[:, :nv]), np.ascontiguousarray(weights[:, nv:])
            rows.append(self.batch.vjp(dq, dv, ["fext"])["fext"].reshape(self.n, -1))
        return np.stack(rows, axis=1) if rows else np.zeros((self.n, 0, 6 * self.functional.model.num_bodies))

    def _output_rows(self, readings, wrt):
        """Jacobians of the last step's outputs, (n, tangent size, size), by name of wrt."""
        parameters = [name for name in self._asked(wrt) if name not in (*_STEP_INPUTS, "previous")]
        rows = {name: [] for name in wrt}
        for output, (_, tangent_size) in zip(readings.names, readings.sizes):
            for k in range(tangent_size):
                weights = np.zeros((self.n, tangent_size))
                weights[:, k] = 1
                g = self.batch.vjp(None, None, parameters, outputs={output: weights})
                for name in wrt:
                    if name == "previous":
                        parts = [g.previous_q, g.previous_v]
                        parts = [np.zeros_like(g.v) if part is None else part for part in parts]
                        rows[name].append(np.concatenate(parts, axis=-1))
                    elif name == "mocap":
                        rows[name].append(self._of_poses(g).reshape(self.n, -1))
                    else:
                        value = getattr(g, name) if name in _STEP_INPUTS else g[name]
                        rows[name].append(value.reshape(self.n, -1))
        return {name: np.stack(values, axis=1) for name, values in rows.items()}

    def rollout(self, x, steps):
        """Q (n, steps + 1, nq), V (n, steps + 1, nv) and what rollout_vjp wants. x.u: (n, steps, nu) or None; tau, fext
        likewise.
        """
        self.last = None
        simulators = self.simulators
        every = max(1, math.isqrt(steps))
        found = _parallel(
            lambda i: simulators[i].rollout(
                x.q[i],
                x.v[i],
                _row(x.u, i),
                steps=steps,
                tau=_row(x.tau, i),
                fext=_row(x.fext, i),
                mocap=_row(x.mocap, i),
                checkpoint_every=every,
            ),
            self.n,
        )
        rows = self._each(found, _Outcome.get)
        return np.stack([r.q for r in rows]), np.stack([r.v for r in rows]), Trajectories(rows)

    def rollout_vjp(self, x, trajectories, dQ, dV, wrt, outputs=None):
        """Cotangents (n, T + 1, .) of the numbers of Q and of V to those of "q", "v", "u", "tau" and the parameters of wrt, by
        name, and of "fext" and "mocap" where wrt has them. outputs: cotangents of outputs (Readings.cotangents), or None.
        """
        rows = trajectories.rows
        dW = self.coordinates.tangent_of_cotangent(np.stack([r.q for r in rows]), dQ)
        outputs = outputs or {}
        found = _parallel(
            lambda i: rows[i].vjp(dW[i], dV[i], wrt, outputs={k: w[i] for k, w in outputs.items()} or None), self.n
        )
        grads = self._each(found, _Outcome.get)
        out = {
            name: np.stack([g[key] for g in grads])
            for name, key in [("q", "q0"), ("v", "v0"), ("u", "u"), ("tau", "tau"), *zip(wrt, wrt)]
        }
        out["q"] = self.coordinates.gradient_of_tangent(x.q, x.lengths, out["q"])
        if "mocap" in out:
            out["mocap"] = _poses.gradient_of_tangent(x.mocap, x.mocap_lengths, out["mocap"])
        return out

    def rollout_jacobians(self, x, steps, wrt, readings=None):
        """Q, V, converged (n, T), readings Y (n, T, ny) of the steps or None, and by name of wrt ("q", meaning the state; "u", "tau",
        "fext", "mocap"; parameters) the matrices (n, T, nq + nv + ny, size) of every step.

        That of "q" is (n, T, nq + nv, nq + nv): by the numbers of the state (q, v) before the step. If reaches_back, "previous" is
        the same by the state before that one. T is at least 1."""
        self.last = None
        names = ["q", "v", *(name for name in wrt if name != "q")]
        qs, vs, ys, matrices, converged, lengths = [x.q], [x.v], [], [], [], np.ones_like(x.lengths)
        self.batch.reset()
        for t in range(steps):
            inputs = [None if a is None else np.ascontiguousarray(a[:, t]) for a in (x.u, x.tau, x.fext)]
            mocap = None if x.mocap is None else np.ascontiguousarray(x.mocap[:, t])
            q, v = self.batch.step(qs[-1], vs[-1], *inputs, mocap=mocap)
            poses = _poses.block_projection(mocap, x.mocap_lengths[:, t]) if "mocap" in names else None
            before = qs[max(0, t - 1)] if self.functional.reaches_back else None
            y = self.readings(readings.names) if readings else None
            matrices.append(self._jacobian(qs[-1], lengths, q, names, before, readings, y, poses))
            converged.append(self.converged())
            ys.append(y)
            qs.append(q)
            vs.append(v)
        out = {name: np.stack([J[name] for J in matrices], axis=1) for name in matrices[0]} if steps else {}
        if steps:
            out["q"] = np.concatenate([out["q"], out.pop("v")], axis=-1)
        converged = np.stack(converged, axis=1) if steps else np.ones((self.n, 0), dtype=bool)
        Y = np.stack(ys, axis=1) if readings and steps else None
        return np.stack(qs, axis=1), np.stack(vs, axis=1), converged, Y, out


class Trajectories:
    """The Rollout of every row."""

    def __init__(self, rows):
        self.rows = rows
        _trajectories.add(self)

    def readings(self, names):
        """(n, T + 1, size) outputs; names: a tuple."""
        return np.stack([row.output(list(names)) for row in self.rows])

    def converged(self):
        """(n, T) bool."""
        return np.array([[status.converged for status in row.status] for row in self.rows], dtype=bool)


class Readings:
    """Where the quaternions of stacked outputs are. Sizes: (numbers, size of the tangent) of each name."""

    def __init__(self, names, sizes):
        self.names = names
        self.size, self.tangent_size = (sum(column) for column in zip(*sizes)) if sizes else (0, 0)
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

    def cotangents(self, y, dy):
        """Cotangents (..., tangent size) by name, from those of the numbers, dy (..., size), at the readings y."""
        flat = dy.reshape(-1, 1, self.size) @ self.expansion(y.reshape(-1, self.size))
        tangent = flat.reshape(*dy.shape[:-1], self.tangent_size)
        ends = np.cumsum([size for _, size in self.sizes])
        return dict(zip(self.names, map(np.ascontiguousarray, np.split(tangent, ends[:-1], axis=-1))))


class _One:
    """One simulator as a batch of one: without threads."""

    def __init__(self, sim):
        self.reset = sim.reset
        self.sim = sim

    @property
    def status(self):
        return types.SimpleNamespace(converged=[self.sim.status.converged])

    def step(self, Q, V, U, tau, fext, *, mocap=None):
        q, v = self.sim.step(Q[0], V[0], _row(U, 0), _row(tau, 0), _row(fext, 0), mocap=_row(mocap, 0))
        return q[None], v[None]

    def output(self, names):
        return self.sim.output(names)[None]

    def vjp(self, dQ1, dV1, wrt, outputs=None):
        outputs = {name: weights[0] for name, weights in outputs.items()} if outputs else None
        return _First(self.sim.vjp(_row(dQ1, 0), _row(dV1, 0), wrt, outputs=outputs))

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

    def __init__(self, coordinates, q, v, u=None, tau=None, q_name="q", fext=None, mocap=None):
        self.q, self.lengths = coordinates.normalized(q, q_name)
        self.v = np.array(v, dtype=float)
        self.u = None if u is None else np.array(u, dtype=float)
        self.tau = None if tau is None else np.array(tau, dtype=float)
        self.fext = None if fext is None else np.array(fext, dtype=float)
        self.mocap = self.mocap_lengths = None
        if mocap is not None:
            self.mocap, self.mocap_lengths = _poses.normalized(mocap)


def _row(array, i):
    return None if array is None else array[i]
