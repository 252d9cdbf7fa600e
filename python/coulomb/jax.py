"""Steps and rollouts for JAX: `import coulomb.jax`, with the extra `jax`.

    q1, v1 = coulomb.jax.step(sim, q, v, u, parameters={"mass/box": mass})
    gradient = jax.grad(lambda U: coulomb.jax.rollout(sim, q0, v0, U)[1][-1, 2])(U)
    Q, V, Y = coulomb.jax.rollout(sim, q0, v0, U, fext=push, outputs=["position/foot", "contact_force/foot"])
    foot = coulomb.jax.output(sim, "position/foot", q1, v1)

They work inside jit, vmap, grad, jvp, jacobian: a callback computes the step on the CPU in float64, and its Jacobian
when it is differentiated; JAX multiplies with it forward and, transposed, in reverse. A rollout that is
differentiated keeps the Jacobian of every step, and the products run as a scan. Arrays of float64 (jax_enable_x64) or
float32. Leading axes are a batch; they broadcast against each other, those of parameters too. Gradients are exact
(docs/conventions.md), of first order only.

A step is a function of its arguments: that of `sim` after reset(). `sim` gives the model and the options, and stays
as it is. A rollout carries its memory from step to step, as Simulator.rollout. With stepper="bdf2", which looks two
states back, every step() is therefore one of its starts, SDIRK2: of second order too, and chains of them have exact
gradients.

Gradients by q are by its nq numbers; quaternions are scaled to unit length first, and their gradient has no
component along them.
"""

from __future__ import annotations

import collections
import functools
import logging
import math
import types

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from . import _poses
from ._core import _substeps_of
from ._functional import Inputs, functional

__all__ = ["control_step", "output", "rollout", "step"]

_OF_BODIES = ("fext", "mocap")  # inputs with an axis for bodies


class _Call(collections.namedtuple("_Call", "inputs parameters readings")):
    """The part of a traced call that is not arrays: names of the inputs and of the parameters, in the order of the arrays; Readings
    of outputs, or None.
    """

    @property
    def names(self):
        return (*self.inputs, *self.parameters)

    def split(self, arrays):
        """(inputs by name, parameters by name)."""
        count = len(self.inputs)
        return dict(zip(self.inputs, arrays)), dict(zip(self.parameters, arrays[count:]))


def step(sim, q, v, u=None, tau=None, parameters=None, *, fext=None, mocap=None, outputs=None, return_status=False):
    """One step: (q1, v1), differentiable in every array.

    q (..., nq), v (..., nv), controls u (..., nu), joint forces tau (..., nv), wrenches on bodies fext (..., num_bodies, 6)
    as in Simulator.step; None: zero. mocap (..., m, 7): poses of Model.mocap_bodies, as in Simulator.step, but with quaternions of any
    length; None: where the model has them. parameters: names of Model.parameters() to values (..., size), or a number where the
    size is 1. outputs: a name or a list of names of Simulator.output, forces too; a further result, their readings (...,
    size) one after the other. return_status: a last result, bool (...): the step converged (StepStatus.converged). Where it
    did not, the derivative is that of the iterate that was used.

    ValueError or TypeError names a bad argument; a value that the step refuses is an error of JAX with the reason in
    it.
    """
    f = functional(sim)
    given = {"q": (q, (f.model.nq,)), "v": (v, (f.model.nv,)), "u": (u, (f.model.nu,)), "tau": (tau, (f.model.nv,))}
    if fext is not None:
        given["fext"] = (fext, (f.model.num_bodies, 6))
    if mocap is not None:
        given["mocap"] = (mocap, (len(f.placements), 7))
    names, rows = _arguments(f, given, parameters)
    readings = None if outputs is None else f.output_names(outputs, of_steps=True)[1]
    q1, v1, converged, *y = _step(f, _Call(tuple(given), names, readings), *rows)
    return (q1, v1, *y, *([converged > 0.5] if return_status else []))


def rollout(
    sim,
    q0,
    v0,
    U=None,
    parameters=None,
    *,
    steps=None,
    tau=None,
    fext=None,
    mocap=None,
    substeps=1,
    outputs=None,
    return_status=False,
):
    """A trajectory: Q (..., T + 1, nq), V (..., T + 1, nv), the initial state first; differentiable in every array.

    q0 (..., nq), v0 (..., nv), controls U (..., T, nu), joint forces tau (..., T, nv), wrenches on bodies fext (..., T,
    num_bodies, 6); None: zero, for `steps` steps. mocap (..., T, m, 7): as in step. substeps: each row of inputs is held
    for so many steps, as in Simulator.rollout. parameters: as in step. outputs: as in step; a further result (..., T + 1,
    size): at every state, or of a force in the step that ends there, zero in the first row. return_status: a last result,
    bool (..., T): each step converged.

    ValueError or TypeError names a bad argument; a value that the step refuses is an error of JAX with the reason in
    it.
    """
    f = functional(sim)
    more = {"U": U, "tau": tau, "fext": fext, "mocap": mocap}
    steps = f.number_of_steps(steps, {name: jnp.shape(value) for name, value in more.items() if value is not None})
    substeps = _substeps_of(substeps, steps)
    given = {"q0": (q0, (f.model.nq,)), "v0": (v0, (f.model.nv,))}
    shapes = f.step_shapes(steps)
    given |= {name: (more[name], shapes[name]) for name in more if name == "U" or more[name] is not None}
    names, rows = _arguments(f, given, parameters)
    readings = None if outputs is None else f.output_names(outputs, of_steps=True)[1]
    inputs = tuple({"q0": "q", "v0": "v", "U": "u"}.get(name, name) for name in given)
    if substeps > 1:
        axes = {name: -len(shapes[name]) for name in given if name in shapes}
        held = [jnp.repeat(row, substeps, axis=axes[name]) if name in axes else row for name, row in zip(given, rows)]
        rows = held + rows[len(held) :]
    Q, V, converged, *Y = _rollout(f, _Call(inputs, names, readings), *rows)
    if substeps > 1:
        Q, V, *Y = (x[..., ::substeps, :] for x in (Q, V, *Y))
        converged = converged.reshape(*converged.shape[:-1], steps, substeps).min(-1)
    return (Q, V, *Y, *([converged > 0.5] if return_status else []))


def control_step(
    sim,
    q,
    v,
    u=None,
    parameters=None,
    *,
    tau=None,
    fext=None,
    mocap=None,
    substeps=1,
    outputs=None,
    return_status=False,
):
    """(q1, v1): `substeps` steps with the inputs held, differentiable in every array: the last state of rollout with one row of
    inputs. Functions of JAX remember nothing, so that each control step starts from reset(); BatchSimulator.control_step and
    coulomb.torch.control_step go on from the last one.

    q (..., nq), v (..., nv), u (..., nu), tau (..., nv), fext (..., num_bodies, 6), mocap (..., m, 7); parameters, outputs, return_status: as in
    step.
    Raises as rollout.
    """
    row = {"U": (u, 1), "tau": (tau, 1), "fext": (fext, 2), "mocap": (mocap, 2)}
    inputs = {name: x if x is None else jnp.expand_dims(jnp.asarray(x), -1 - core) for name, (x, core) in row.items()}
    steps = 1 if all(x is None for x in inputs.values()) else None
    more = {"outputs": outputs, "return_status": return_status, "substeps": substeps, "steps": steps}
    Q, V, *rest = rollout(sim, q, v, inputs.pop("U"), parameters, **inputs, **more)
    status = [rest.pop()[..., 0]] if return_status else []
    return (Q[..., -1, :], V[..., -1, :], *(y[..., -1, :] for y in rest), *status)


def output(sim, name, q, v=None, parameters=None):
    """Readings (..., size) of an output of Model.outputs() at (q, v), or of a list of names, one after the other;
    differentiable in every array. Orientations are quaternions. v None: zero.

    ValueError or TypeError names a bad argument; a value that is refused is an error of JAX with the reason in it.
    """
    f = functional(sim)
    outputs, readings = f.output_names(name)
    v = jnp.zeros(f.model.nv, jnp.result_type(jnp.float32, jnp.asarray(q))) if v is None else v
    names, rows = _arguments(f, {"q": (q, (f.model.nq,)), "v": (v, (f.model.nv,))}, parameters)
    return _output(f, (outputs, readings), names, *rows)


def _arguments(f, given, parameters):
    """Names of the parameters, and all arrays with the same leading axes and of one type; zeros for None."""
    parameters = dict(parameters or {})
    given = dict(given)
    for name in list(given)[:2]:
        if given[name][0] is None:
            raise TypeError(f"{name}: got None")
    inputs = [name for name, (value, _) in given.items() if value is not None]
    for name, value in parameters.items():
        size = f.size_of(name)
        given[f"parameters['{name}']"] = (
            jnp.reshape(value, (1,)) if size == 1 and jnp.ndim(value) == 0 else value,
            (size,),
        )
    arrays, lead = {}, {}
    for name, (value, core) in given.items():
        array = jnp.zeros(core) if value is None else jnp.asarray(value)
        if array.ndim < len(core) or array.shape[array.ndim - len(core) :] != core:
            expected = ", ".join(map(str, core))
            raise ValueError(f"{name}: expected shape (..., {expected}), got {array.shape}")
        if not (jnp.issubdtype(array.dtype, jnp.floating) or jnp.issubdtype(array.dtype, jnp.integer)):
            raise TypeError(f"{name}: expected float64 or float32, got {array.dtype}")
        _check_finite(name, array)
        arrays[name], lead[name] = array, array.shape[: array.ndim - len(core)]
    try:
        shape = np.broadcast_shapes(*lead.values())
    except ValueError:
        told = ", ".join(f"{name} {axes}" for name, axes in lead.items() if axes)
        raise ValueError(f"leading axes do not broadcast: {told}") from None
    if 0 in shape:
        raise ValueError(f"leading axes: an empty batch, {shape}")
    dtype = jnp.result_type(jnp.float32, *(arrays[name] for name in inputs))
    rows = [jnp.broadcast_to(a, shape + given[name][1]).astype(dtype) for name, a in arrays.items()]
    return tuple(parameters), rows


def _check_finite(name, array):
    """ValueError for values that are known here; those inside of a transformation are checked by the step, whose error JAX wraps in its own."""
    if isinstance(array, jax.core.Tracer):
        return
    bad = np.argwhere(~np.isfinite(np.asarray(array)))
    if len(bad):
        place = ", ".join(map(str, bad[0]))
        raise ValueError(f"{name}[{place}] is {np.asarray(array)[tuple(bad[0])]}, expected a finite number")


def _call(function, results, *arrays):
    """A callback. results: shapes after the leading axes of arrays[0], which is (..., nq)."""
    lead, dtype = arrays[0].shape[:-1], arrays[0].dtype
    shapes = [jax.ShapeDtypeStruct(lead + shape, dtype) for shape in results]
    return jax.pure_callback(function, shapes, *arrays, vmap_method="broadcast_all")


def _rows(function, cores, *arrays):
    """function on arrays flattened to (n, core), its results in the shape and type of the arguments. cores: their dimensions."""
    lead, dtype = arrays[0].shape[:-1], arrays[0].dtype
    n = math.prod(lead)
    flat = [np.asarray(a, dtype=float).reshape((n,) + a.shape[a.ndim - core :]) for a, core in zip(arrays, cores)]
    try:
        found = function(*flat)
    except Exception as error:
        raise _in_short(error) from None
    return [np.asarray(out, dtype=dtype).reshape(lead + out.shape[1:]) for out in found]


def _a_step():
    yield


def _in_short(error):
    """The error for JAX to report, marked as ours, without the way to it.

    XLA prints every frame of the stack that the traceback's innermost frame stands on before the reason. That of a generator that waits
    stands on none.
    """
    waiting = _a_step()
    next(waiting)
    error.__context__ = error.__cause__ = None
    error.of_coulomb = True
    return error.with_traceback(types.TracebackType(None, waiting.gi_frame, 0, _a_step.__code__.co_firstlineno))


def _is_not_ours(record):
    """A filter for JAX's log: our errors reach the caller and need not be printed as well."""
    return not (record.exc_info and getattr(record.exc_info[1], "of_coulomb", False))


logging.getLogger("jax._src.callback").addFilter(_is_not_ours)


def _once(function):
    """Callbacks that give Jacobians have no derivative."""

    @functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
    def first_order(f, names, wrt, *arrays):
        return function(f, names, wrt, *arrays)

    @first_order.defjvp
    def rule(f, names, wrt, primals, tangents):
        raise NotImplementedError("coulomb.jax: a step has first derivatives only")

    return first_order


def _needed(names, tangents):
    return tuple(name for name, tangent in zip(names, tangents) if not isinstance(tangent, SymbolicZero))


def _sum(terms):
    return functools.reduce(jnp.add, terms)


# --- one step ------------------------------------------------------------------------------------------------------


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _step(f, call, *arrays):
    """q1, v1, converged, and the readings if there are any."""

    def rows(*arrays):
        with f.lock:
            inputs, parameters = call.split(arrays)
            environments = f.environments(len(arrays[0]), parameters, "mocap" in inputs)
            q1, v1 = environments.step(Inputs(f.coordinates, **inputs))
            y = [environments.readings(call.readings.names)] if call.readings else []
            return [q1, v1, environments.converged(), *y]

    function = functools.partial(_rows, rows, _cores(call))
    return tuple(_call(function, [(f.model.nq,), (f.model.nv,), (), *_shape_of(call.readings)], *arrays))


@_once
def _step_jacobian(f, call, wrt, *arrays):
    """q1, v1, converged, the readings if there are any, and the Jacobians of all numbers by each of wrt."""

    def rows(*arrays):
        with f.lock:
            inputs, parameters = call.split(arrays)
            environments = f.environments(len(arrays[0]), parameters, "mocap" in inputs)
            q1, v1, y, J = environments.step_jacobian(Inputs(f.coordinates, **inputs), wrt, call.readings)
            converged = environments.converged()
        return [q1, v1, converged, *([y] if call.readings else []), *(J[name] for name in wrt)]

    sizes = _sizes(call, arrays)
    nq, nv, ny = f.model.nq, f.model.nv, call.readings.size if call.readings else 0
    function = functools.partial(_rows, rows, _cores(call))
    shapes = [(nq,), (nv,), (), *_shape_of(call.readings), *((nq + nv + ny, sizes[name]) for name in wrt)]
    return _call(function, shapes, *arrays)


@functools.partial(_step.defjvp, symbolic_zeros=True)
def _step_rule(f, call, arrays, tangents):
    inputs = dict(zip(call.names, tangents))
    wrt = _needed(inputs, tangents)
    found = _step_jacobian(f, call, wrt, *arrays)
    count = 4 if call.readings else 3
    results, J = tuple(found[:count]), found[count:]
    if not wrt:
        return results, tuple(jnp.zeros_like(result) for result in results)
    dx = _sum(jnp.einsum("...ij,...j->...i", matrix, _flat(inputs[name], name)) for name, matrix in zip(wrt, J))
    nq, nv = f.model.nq, f.model.nv
    parts = [dx[..., :nq], dx[..., nq : nq + nv], jnp.zeros_like(results[2]), dx[..., nq + nv :]]
    return results, tuple(parts[:count])


def _cores(call, steps=0):
    """Dimensions of every array after its leading axes; inputs of a rollout, but the initial state, have one more."""
    own = {name: 2 for name in _OF_BODIES}
    of_steps = ("u", "tau", *_OF_BODIES)
    return tuple(own.get(n, 1) + (steps if n in of_steps else 0) for n in call.inputs) + (1,) * len(call.parameters)


def _sizes(call, arrays):
    """Numbers (of a step) of each input and parameter, by name."""
    return {n: a.shape[-1] * (a.shape[-2] if n in _OF_BODIES else 1) for n, a in zip(call.names, arrays)}


def _shape_of(readings, *steps):
    """The readings' shape as a list of one, or of none."""
    return [(*steps, readings.size)] if readings else []


def _flat(tangent, name):
    """Wrenches or poses of all bodies as one axis."""
    return tangent.reshape(*tangent.shape[:-2], -1) if name in _OF_BODIES else tangent


# --- a trajectory --------------------------------------------------------------------------------------------------


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _rollout(f, call, *arrays):
    """Q, V, converged, and the readings if there are any."""
    steps = arrays[2].shape[-2]

    def rows(*arrays):
        with f.lock:
            inputs, parameters = call.split(arrays)
            x = Inputs(f.coordinates, **inputs, q_name="q0")
            Q, V, trajectories = f.environments(len(x.q), parameters, "mocap" in inputs).rollout(x, steps)
            Y = [trajectories.readings(call.readings.names)] if call.readings else []
        return [Q, V, trajectories.converged(), *Y]

    function = functools.partial(_rows, rows, _cores(call, 1))
    shapes = [(steps + 1, f.model.nq), (steps + 1, f.model.nv), (steps,), *_shape_of(call.readings, steps + 1)]
    return tuple(_call(function, shapes, *arrays))


@_once
def _rollout_jacobians(f, call, wrt, *arrays):
    """Q, V, converged, the readings if there are any with their derivative by the first state, the derivative of the scaled q0
    by q0, and the Jacobians of every step: by the state, if f.reaches_back by the state before it, then by those of wrt.
    """
    steps, nq, nv = arrays[2].shape[-2], f.model.nq, f.model.nv
    readings = call.readings
    ny = readings.size if readings else 0
    asked, wrt = ("q", *wrt), ("q", *(("previous",) if f.reaches_back else ()), *wrt)

    def rows(*arrays):
        with f.lock:
            inputs, parameters = call.split(arrays)
            x = Inputs(f.coordinates, **inputs, q_name="q0")
            environments = f.environments(len(x.q), parameters, "mocap" in inputs)
            Q, V, converged, Y, J = environments.rollout_jacobians(x, steps, asked, readings)
            of_outputs = _first_readings(environments, readings, x, parameters, Y) if readings else []
        start = f.coordinates.expansion(x.q) @ f.coordinates.projection(x.q, x.lengths)
        empty = {name: np.zeros((len(x.q), 0, nq + nv + ny, sizes[name])) for name in wrt}
        return [Q, V, converged, *of_outputs, start, *(J[name] if steps else empty[name] for name in wrt)]

    sizes = _sizes(call, arrays) | {"q": nq + nv, "previous": nq + nv}
    of_outputs = [*_shape_of(readings, steps + 1), (ny, nq), (ny, nv), *((ny, sizes[n]) for n in _of_first(call))]
    shapes = [(steps + 1, nq), (steps + 1, nv), (steps,), *(of_outputs if readings else []), (nq, nq)]
    shapes += [(steps, nq + nv + ny, sizes[name]) for name in wrt]
    return _call(functools.partial(_rows, rows, _cores(call, 1)), shapes, *arrays)


def _of_first(call):
    """What readings of the first state depend on besides q0 and v0."""
    return (*call.parameters, *(name for name in call.inputs if name == "mocap"))


def _first_readings(environments, readings, x, parameters, Y):
    """All readings, and the derivatives of the first row by q0, v0, the parameters and the poses of the first step, if these are given: forces
    are zero there."""
    f, n = environments.functional, len(x.q)
    posed = x.mocap is not None and x.mocap.shape[1] > 0
    models = environments.posed_models(x.mocap[:, 0]) if posed else None
    y = np.zeros((n, readings.size))
    J = {name: np.zeros((n, readings.size, size)) for name, size in (("q", x.q.shape[1]), ("v", x.v.shape[1]))}
    J |= {name: np.zeros((n, readings.size, values.shape[1])) for name, values in parameters.items()}
    if x.mocap is not None:
        J["mocap"] = np.zeros((n, readings.size, 7 * len(f.placements)))
    wrt = [by for by in J if by != "mocap"] + (f.placements if posed else [])
    row = 0
    for name, (size, _) in zip(readings.names, readings.sizes):
        if not f.is_force(name):
            names, one = f.output_names(name)
            y[:, row : row + size], found = f.output_jacobians(names, one, x, parameters, wrt, models)
            parts = [found.pop(placement) for placement in f.placements if posed]
            if parts:
                projection = _poses.block_projection(x.mocap[:, 0], x.mocap_lengths[:, 0])
                found["mocap"] = np.concatenate(parts, axis=-1) @ projection
            for by, matrix in found.items():
                J[by][:, row : row + size] = matrix
        row += size
    Y = y[:, None] if Y is None else np.concatenate([y[:, None], Y], axis=1)
    return [Y, *J.values()]


@functools.partial(_rollout.defjvp, symbolic_zeros=True)
def _rollout_rule(f, call, arrays, tangents):
    inputs = dict(zip(call.names, tangents))
    needed = _needed(inputs, tangents)
    wrt = tuple(name for name in needed if name not in ("q", "v"))
    steps = arrays[2].shape[-2]
    Q, V, converged, *found = _rollout_jacobians(f, call, wrt, *arrays)
    first = {}
    if call.readings:
        Y, *found = found
        count = 2 + len(_of_first(call))
        first = dict(zip(("q", "v", *_of_first(call)), found[:count]))
        found = found[count:]
    start, A, *J = found
    before = [J.pop(0)] if f.reaches_back else []

    # What enters in each step, then the recursion over the steps; rows beyond the state are readings.
    dq0 = jnp.einsum("...ij,...j->...i", start, inputs["q"]) if "q" in needed else jnp.zeros_like(Q[..., 0, :])
    dv0 = inputs["v"] if "v" in needed else jnp.zeros_like(V[..., 0, :])
    forcing = jnp.zeros(A.shape[:-1], A.dtype)
    for name, matrix in zip(wrt, J):
        each = name in ("u", "tau", *_OF_BODIES)
        tangent = _flat(inputs[name], name)
        forcing += jnp.einsum("...tij,...tj->...ti" if each else "...tij,...j->...ti", matrix, tangent)
    nx = f.model.nq + f.model.nv

    def advance(states, step):
        x = step[0] + _sum(jnp.einsum("...ij,...j->...i", matrix, state) for matrix, state in zip(step[1:], states))
        return (x[..., :nx], *states)[: len(states)], x

    x0 = jnp.concatenate([dq0, dv0], axis=-1)
    states = (x0, jnp.zeros_like(x0))[: 1 + len(before)]
    _, X = jax.lax.scan(
        advance, states, (jnp.moveaxis(forcing, -2, 0), *(jnp.moveaxis(m, -3, 0) for m in (A, *before)))
    )
    if call.readings:
        terms = [jnp.zeros(Y[..., 0, :].shape, A.dtype)]
        if steps == 0:
            first.pop("mocap", None)
        entering = {n: _flat(inputs[n][..., 0, :, :], n) if n == "mocap" else inputs[n] for n in first if n in needed}
        terms += [jnp.einsum("...ij,...j->...i", first[n], tangent) for n, tangent in entering.items()]
        x0 = jnp.concatenate([x0, _sum(terms)], axis=-1)
    X = jnp.moveaxis(jnp.concatenate([x0[None], X]), 0, -2)
    results = (Q, V, converged, *([Y] if call.readings else []))
    parts = (X[..., : f.model.nq], X[..., f.model.nq : nx], jnp.zeros_like(converged), X[..., nx:])
    return results, parts[: len(results)]


# --- readings ------------------------------------------------------------------------------------------------------


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def _output(f, outputs, names, *arrays):
    def rows(q, v, *values):
        with f.lock:
            return [f.output(outputs[0], Inputs(f.coordinates, q, v), dict(zip(names, values)))]

    return _call(functools.partial(_rows, rows, (1,) * len(arrays)), [(outputs[1].size,)], *arrays)[0]


@_once
def _output_jacobian(f, names, wrt, *arrays):
    (outputs, readings), names = names

    def rows(q, v, *values):
        with f.lock:
            x = Inputs(f.coordinates, q, v)
            y, J = f.output_jacobians(outputs, readings, x, dict(zip(names, values)), wrt)
        return [y, *(J[name] for name in wrt)]

    sizes = dict(zip(("q", "v", *names), (a.shape[-1] for a in arrays)))
    shapes = [(readings.size,), *((readings.size, sizes[name]) for name in wrt)]
    return _call(functools.partial(_rows, rows, (1,) * len(arrays)), shapes, *arrays)


@functools.partial(_output.defjvp, symbolic_zeros=True)
def _output_rule(f, outputs, names, arrays, tangents):
    inputs = dict(zip(("q", "v", *names), tangents))
    wrt = _needed(inputs, tangents)
    y, *J = _output_jacobian(f, (outputs, names), wrt, *arrays)
    if not wrt:
        return y, jnp.zeros_like(y)
    return y, _sum(jnp.einsum("...ij,...j->...i", matrix, inputs[name]) for name, matrix in zip(wrt, J))
