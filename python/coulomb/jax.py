"""Steps and rollouts for JAX: `import coulomb.jax`, with the extra `jax`.

    q1, v1 = coulomb.jax.step(sim, q, v, u, parameters={"mass/box": mass})
    gradient = jax.grad(lambda U: coulomb.jax.rollout(sim, q0, v0, U)[1][-1, 2])(U)
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

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from ._functional import Inputs, functional

__all__ = ["output", "rollout", "step"]


def step(sim, q, v, u=None, tau=None, parameters=None, *, return_status=False):
    """One step: (q1, v1), differentiable in every array.

    q (..., nq), v (..., nv), controls u (..., nu), joint forces tau (..., nv); None: zero. parameters: names of
    Model.parameters() to values (..., size), or a number where the size is 1. return_status: a third result, bool
    (...): the step converged (StepStatus.converged). Where it did not, the derivative is that of the iterate that was
    used.

    ValueError or TypeError names a bad argument; a value that the step refuses is an error of JAX with the reason in
    it.
    """
    f = functional(sim)
    given = {"q": (q, (f.model.nq,)), "v": (v, (f.model.nv,)), "u": (u, (f.model.nu,)), "tau": (tau, (f.model.nv,))}
    names, rows = _arguments(f, given, parameters)
    q1, v1, converged = _step(f, names, *rows)
    return (q1, v1, converged > 0.5) if return_status else (q1, v1)


def rollout(sim, q0, v0, U=None, parameters=None, *, steps=None, return_status=False):
    """A trajectory: Q (..., T + 1, nq), V (..., T + 1, nv), the initial state first; differentiable in every array.

    q0 (..., nq), v0 (..., nv), controls U (..., T, nu); None: zero, for `steps` steps. parameters: as in step.
    return_status: a third result, bool (..., T): each step converged.

    ValueError or TypeError names a bad argument; a value that the step refuses is an error of JAX with the reason in
    it.
    """
    f = functional(sim)
    if U is None and steps is None:
        raise ValueError("steps: needed when U is None")
    if U is not None:
        if jnp.ndim(U) < 2:
            raise ValueError(f"U: expected shape (..., T, {f.model.nu}), got {jnp.shape(U)}")
        if steps is not None and steps != jnp.shape(U)[-2]:
            raise ValueError(f"steps: got {steps}, but U has {jnp.shape(U)[-2]} rows")
        steps = jnp.shape(U)[-2]
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 0:
        raise ValueError(f"steps: got {steps!r}, expected a number of steps")
    given = {"q0": (q0, (f.model.nq,)), "v0": (v0, (f.model.nv,)), "U": (U, (steps, f.model.nu))}
    names, rows = _arguments(f, given, parameters)
    Q, V, converged = _rollout(f, names, *rows)
    return (Q, V, converged > 0.5) if return_status else (Q, V)


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
    """function on arrays flattened to (n, core), its results in the shape and type of the arguments."""
    lead, dtype = arrays[0].shape[:-1], arrays[0].dtype
    n = math.prod(lead)
    flat = [np.asarray(a, dtype=float).reshape((n,) + a.shape[a.ndim - core :]) for a, core in zip(arrays, cores)]
    return [np.asarray(out, dtype=dtype).reshape(lead + out.shape[1:]) for out in function(*flat)]


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
def _step(f, names, *arrays):
    def rows(q, v, u, tau, *values):
        with f.lock:
            environments = f.environments(len(q), dict(zip(names, values)))
            return *environments.step(Inputs(f.coordinates, q, v, u, tau)), environments.converged()

    function = functools.partial(_rows, rows, (1,) * len(arrays))
    return tuple(_call(function, [(f.model.nq,), (f.model.nv,), ()], *arrays))


@_once
def _step_jacobian(f, names, wrt, *arrays):
    def rows(q, v, u, tau, *values):
        with f.lock:
            environments = f.environments(len(q), dict(zip(names, values)))
            q1, v1, J = environments.step_jacobian(Inputs(f.coordinates, q, v, u, tau), wrt)
            converged = environments.converged()
        return [q1, v1, converged, *(J[name] for name in wrt)]

    sizes = dict(zip(("q", "v", "u", "tau", *names), (a.shape[-1] for a in arrays)))
    nq, nv = f.model.nq, f.model.nv
    function = functools.partial(_rows, rows, (1,) * len(arrays))
    return _call(function, [(nq,), (nv,), (), *((nq + nv, sizes[name]) for name in wrt)], *arrays)


@functools.partial(_step.defjvp, symbolic_zeros=True)
def _step_rule(f, names, arrays, tangents):
    inputs = dict(zip(("q", "v", "u", "tau", *names), tangents))
    wrt = _needed(inputs, tangents)
    q1, v1, converged, *J = _step_jacobian(f, names, wrt, *arrays)
    constant = jnp.zeros_like(converged)
    if not wrt:
        return (q1, v1, converged), (jnp.zeros_like(q1), jnp.zeros_like(v1), constant)
    dx = _sum(jnp.einsum("...ij,...j->...i", matrix, inputs[name]) for name, matrix in zip(wrt, J))
    return (q1, v1, converged), (dx[..., : f.model.nq], dx[..., f.model.nq :], constant)


# --- a trajectory --------------------------------------------------------------------------------------------------


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _rollout(f, names, *arrays):
    steps = arrays[2].shape[-2]

    def rows(q, v, U, *values):
        with f.lock:
            x = Inputs(f.coordinates, q, v, U, q_name="q0")
            Q, V, trajectories = f.environments(len(q), dict(zip(names, values))).rollout(x, steps)
        return Q, V, trajectories.converged()

    function = functools.partial(_rows, rows, (1, 1, 2) + (1,) * len(names))
    return tuple(_call(function, [(steps + 1, f.model.nq), (steps + 1, f.model.nv), (steps,)], *arrays))


@_once
def _rollout_jacobians(f, names, wrt, *arrays):
    """Q, V, converged, the derivative of the scaled q0 by q0, and the Jacobians of every step: by the state, if
    f.reaches_back by the state before it, then by those of wrt.
    """
    steps, nq, nv = arrays[2].shape[-2], f.model.nq, f.model.nv
    asked, wrt = ("q", *wrt), ("q", *(("previous",) if f.reaches_back else ()), *wrt)

    def rows(q, v, U, *values):
        with f.lock:
            x = Inputs(f.coordinates, q, v, U, q_name="q0")
            found = f.environments(len(q), dict(zip(names, values))).rollout_jacobians(x, steps, asked)
        Q, V, converged, J = found
        start = f.coordinates.expansion(x.q) @ f.coordinates.projection(x.q, x.lengths)
        return [
            Q,
            V,
            converged,
            start,
            *(J[name] if steps else np.zeros((len(q), 0, nq + nv, sizes[name])) for name in wrt),
        ]

    sizes = dict(zip(names, (a.shape[-1] for a in arrays[3:]))) | {"q": nq + nv, "previous": nq + nv, "u": f.model.nu}
    shapes = [(steps + 1, nq), (steps + 1, nv), (steps,), (nq, nq), *((steps, nq + nv, sizes[name]) for name in wrt)]
    return _call(functools.partial(_rows, rows, (1, 1, 2) + (1,) * len(names)), shapes, *arrays)


@functools.partial(_rollout.defjvp, symbolic_zeros=True)
def _rollout_rule(f, names, arrays, tangents):
    inputs = dict(zip(("q", "v", "u", *names), tangents))
    needed = _needed(inputs, tangents)
    wrt = tuple(name for name in needed if name not in ("q", "v"))
    Q, V, converged, start, A, *J = _rollout_jacobians(f, names, wrt, *arrays)
    before = [J.pop(0)] if f.reaches_back else []
    dq0 = jnp.einsum("...ij,...j->...i", start, inputs["q"]) if "q" in needed else jnp.zeros_like(Q[..., 0, :])
    dv0 = inputs["v"] if "v" in needed else jnp.zeros_like(V[..., 0, :])
    forcing = jnp.zeros(A.shape[:-1], A.dtype)
    for name, matrix in zip(wrt, J):
        forcing += jnp.einsum("...tij,...tj->...ti" if name == "u" else "...tij,...j->...ti", matrix, inputs[name])

    def advance(states, step):
        x = step[0] + _sum(jnp.einsum("...ij,...j->...i", matrix, state) for matrix, state in zip(step[1:], states))
        return (x, *states)[: len(states)], x

    x0 = jnp.concatenate([dq0, dv0], axis=-1)
    states = (x0, jnp.zeros_like(x0))[: 1 + len(before)]
    _, X = jax.lax.scan(
        advance, states, (jnp.moveaxis(forcing, -2, 0), *(jnp.moveaxis(m, -3, 0) for m in (A, *before)))
    )
    X = jnp.moveaxis(jnp.concatenate([x0[None], X]), 0, -2)
    tangents = (X[..., : f.model.nq], X[..., f.model.nq :], jnp.zeros_like(converged))
    return (Q, V, converged), tangents


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
