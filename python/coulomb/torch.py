"""Steps and rollouts for PyTorch: `import coulomb.torch`, with the extra `torch`.

    q1, v1 = coulomb.torch.step(sim, q, v, u, parameters={"mass/box": mass})
    Q, V = coulomb.torch.rollout(sim, q0, v0, U)
    Q, V, Y = coulomb.torch.rollout(sim, q0, v0, U, fext=push, outputs=["position/foot", "contact_force/foot"])
    Q, V = coulomb.torch.control_step(batch, Q, V, U, substeps=4)
    V[..., -1, :].square().sum().backward()
    foot = coulomb.torch.output(sim, "position/foot", q1, v1)

Tensors of float64 or float32, on any device; the step itself is computed in float64 on the CPU. Leading axes are a
batch; they broadcast against each other, those of parameters too. Gradients are exact (docs/conventions.md), of first
order only: a second derivative (hessian, a gradient penalty, create_graph=True) raises RuntimeError where it would be
used. torch.func and vmap are refused: leading axes are the batch.

A step is a function of its arguments: that of `sim` after reset(). `sim` gives the model and the options, and stays
as it is. A rollout carries its memory from step to step, as Simulator.rollout. With stepper="bdf2", which looks two
states back, every step() is therefore one of its starts, SDIRK2: of second order too, and chains of them have exact
gradients. A control_step of a batch is not such a function: it goes on from what the batch remembers of its last one.

Gradients by q are by its nq numbers. Quaternions are scaled to unit length first, so that q need not be exactly
normalised, and their gradient has no component along them: subtract it, normalise, and you have moved on the sphere.
"""

from __future__ import annotations

import dataclasses
import math
import weakref

import numpy as np
import torch

from . import _poses
from ._core import BatchSimulator, _substeps_of
from ._functional import Inputs, NamedModel, functional

__all__ = ["control_step", "output", "rollout", "step"]


def step(sim, q, v, u=None, tau=None, parameters=None, *, fext=None, mocap=None, outputs=None, return_status=False):
    """One step: (q1, v1), differentiable in every tensor.

    q (..., nq), v (..., nv), controls u (..., nu), joint forces tau (..., nv), wrenches on bodies fext (..., num_bodies, 6)
    as in Simulator.step; None: zero. mocap (..., m, 7): poses of Model.mocap_bodies, as in Simulator.step, but with quaternions of any
    length; None: where the model has them. parameters: names of Model.parameters() to values (..., size), or a number where the
    size is 1; the model is made anew only when a value changed. outputs: a name or a list of names of Simulator.output,
    forces too; a further result, their readings (..., size) one after the other. return_status: a last result, bool (...):
    the step converged (StepStatus.converged). Where it did not, the gradient is that of the iterate that was used.

    ValueError or TypeError names a bad argument; second derivatives raise RuntimeError.
    """
    _refuse_transforms("coulomb.torch.step")
    f = functional(sim)
    model = f.model
    sizes = {"q": model.nq, "v": model.nv, "u": model.nu, "tau": model.nv, "fext": (model.num_bodies, 6)}
    sizes["mocap"] = (len(model.mocap_bodies), 7)
    given = {"q": q, "v": v, "u": u, "tau": tau, "fext": fext, "mocap": mocap}
    call = _Arguments(sim, given, sizes, parameters)
    readings = None if outputs is None else f.output_names(outputs, of_steps=True)[1]
    results = _Step.apply(call.functional, call.names, readings, return_status, *call.rows)
    return tuple(call.shaped(result) for result in results)


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
    """A trajectory: Q (..., T + 1, nq), V (..., T + 1, nv), the initial state first; differentiable in every tensor.

    q0 (..., nq), v0 (..., nv), controls U (..., T, nu), joint forces tau (..., T, nv), wrenches on bodies fext (..., T,
    num_bodies, 6); None: zero, for `steps` steps. mocap (..., T, m, 7): as in step. substeps: each row of inputs is held
    for so many steps, as in Simulator.rollout. parameters: as in step. outputs: as in step; a further result (..., T + 1,
    size): at every state, or of a force in the step that ends there, zero in the first row. return_status: a last result,
    bool (..., T): each step converged. Gradients by one sweep backward over the trajectory.

    ValueError or TypeError names a bad argument; second derivatives raise RuntimeError.
    """
    _refuse_transforms("coulomb.torch.rollout")
    f = functional(sim)
    given = {"U": U, "tau": tau, "fext": fext, "mocap": mocap}
    given = {name: None if value is None else _tensor(name, value) for name, value in given.items()}
    steps = f.number_of_steps(steps, {name: tuple(t.shape) for name, t in given.items() if t is not None})
    substeps = _substeps_of(substeps, steps)
    sizes = {"q0": (f.model.nq,), "v0": (f.model.nv,), **f.step_shapes(steps)}
    call = _Arguments(sim, {"q0": q0, "v0": v0, **given}, sizes, parameters)
    readings = None if outputs is None else f.output_names(outputs, of_steps=True)[1]
    rows = [_held(row, 1, substeps) if k in (2, 3, 4, 5) else row for k, row in enumerate(call.rows)]  # those of steps
    results = _Rollout.apply(call.functional, call.names, steps * substeps, readings, return_status, *rows)
    results = [result[:, ::substeps] for result in results[: 2 + bool(readings)]] + [
        result.reshape(len(result), steps, substeps).all(-1) for result in results[2 + bool(readings) :]
    ]
    return tuple(call.shaped(result) for result in results)


def control_step(
    batch,
    Q,
    V,
    U=None,
    parameters=None,
    *,
    tau=None,
    fext=None,
    mocap=None,
    substeps=1,
    mask=None,
    outputs=None,
    return_status=False,
):
    """(Q1, V1): BatchSimulator.control_step of `batch`, differentiable in every tensor: what policies are learned with.

    Q (n, nq), V (n, nv), U (n, nu), tau (n, nv), fext (n, num_bodies, 6); None: zero. mocap (n, m, 7): poses of the mocap bodies;
    None: where they are. They are held for `substeps` steps. Every
    environment goes on from what it remembers of its last call; batch.reset(mask) makes those of a mask start cold, and
    where their rows of Q and V are new ones no gradient crosses the reset. mask (n,) bool: environments that step; the
    others' rows are passed on, and so is their gradient. No step is run again for the gradient. Numbers that overflow on the
    way give an environment a gradient of zero, and the status False.

    parameters: names of Model.parameters() to values (n, size), one row per environment; set in the batch where its models have
    others, whoever set those: such environments start cold. outputs: names as in step; a further result
    (n, size), readings at (Q1, V1), of forces in the last substep. return_status: a last result, bool (n,): every substep
    converged.

    ValueError or TypeError names a bad argument, and no environment has moved; second derivatives raise RuntimeError.
    """
    _refuse_transforms("coulomb.torch.control_step")
    if not isinstance(batch, BatchSimulator):
        raise TypeError(f"batch: expected a coulomb.BatchSimulator, got {type(batch).__name__}")
    state = _control_states.get(batch) or _ControlState.of(batch)
    n, model = state.n, state.model
    given = {"Q": Q, "V": V, "U": U, "tau": tau, "fext": fext, "mocap": mocap}
    sizes = {"Q": (model.nq,), "V": (model.nv,), "U": (model.nu,), "tau": (model.nv,), "fext": (model.num_bodies, 6)}
    sizes["mocap"] = (len(model.mocap_bodies), 7)
    for name in ("Q", "V"):
        if given[name] is None:
            raise TypeError(f"{name}: got None")
    parameters = dict(parameters or {})
    shapes = {name: (n, *sizes[name]) for name in given}
    shapes |= {f"parameters['{name}']": (n, state.size_of(name)) for name in parameters}
    values = (*given.values(), *parameters.values())
    rows = [_of_shape(name, value, shape) for (name, shape), value in zip(shapes.items(), values)]
    readings = None if outputs is None else state.output_names(outputs, of_steps=True)[1]
    call = _ControlCall(batch, state, tuple(parameters), substeps, mask, readings, return_status)
    return _ControlStep.apply(call, *rows)


def output(sim, name, q, v=None, parameters=None):
    """Readings (..., size) of an output of Model.outputs() at (q, v), or of a list of names, one after the other;
    differentiable in every tensor. Orientations are quaternions. v None: zero.

    ValueError or TypeError names a bad argument; second derivatives raise RuntimeError.
    """
    _refuse_transforms("coulomb.torch.output")
    f = functional(sim)
    names, readings = f.output_names(name)
    v = torch.zeros(f.model.nv, dtype=_tensor("q", q).dtype, device=_tensor("q", q).device) if v is None else v
    call = _Arguments(sim, {"q": q, "v": v}, {"q": f.model.nq, "v": f.model.nv}, parameters)
    return call.shaped(_Output.apply(f, names, readings, call.names, *call.rows))


_NO_TRANSFORMS = (
    "torch.func and vmap (grad, jacrev, jvp, vectorize=True, ...) are not supported: leading axes are the batch, so give "
    "all rows at once, and differentiate with backward(), torch.autograd.grad or torch.autograd.functional.jacobian"
)


def _refuse_transforms(name):
    """RuntimeError inside torch.func's transforms, which see through no callback."""
    active = getattr(torch._C, "_are_functorch_transforms_active", None)
    if active is not None and active():
        raise RuntimeError(f"{name}: {_NO_TRANSFORMS}")


def _held(tensor, axis, substeps):
    """Every row for so many steps."""
    return tensor if tensor is None or substeps == 1 else tensor.repeat_interleave(substeps, axis)


def _tensor(name, value):
    try:
        tensor = value if isinstance(value, torch.Tensor) else torch.as_tensor(np.asarray(value, dtype=float))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: expected a tensor or numbers: {error}") from None
    if tensor.dtype not in (torch.float64, torch.float32):
        raise TypeError(f"{name}: expected float64 or float32, got {tensor.dtype}")
    return tensor


class _Arguments:
    """Arguments as rows: tensors (n, size) in one order, None where None was given; and the way back."""

    def __init__(self, sim, given, sizes, parameters):
        self.functional = functional(sim)
        parameters = dict(parameters or {})
        sizes = {name: size if isinstance(size, tuple) else (size,) for name, size in sizes.items()}
        tensors = {name: None if value is None else _tensor(name, value) for name, value in given.items()}
        for name in list(given)[:2]:
            if tensors[name] is None:
                raise TypeError(f"{name}: got None")
        self.names = tuple(parameters)
        for name, value in parameters.items():
            key = f"parameters['{name}']"
            sizes[key] = (self.functional.size_of(name),)
            tensors[key] = _tensor(key, value)
            if tensors[key].ndim == 0 and sizes[key] == (1,):
                tensors[key] = tensors[key][None]
        present = {name: tensor for name, tensor in tensors.items() if tensor is not None}
        lead = {}
        for name, tensor in present.items():
            core = len(sizes[name])
            if tensor.ndim < core or tuple(tensor.shape[tensor.ndim - core :]) != sizes[name]:
                expected = ", ".join(map(str, sizes[name]))
                raise ValueError(f"{name}: expected shape (..., {expected}), got {tuple(tensor.shape)}")
            lead[name] = tuple(tensor.shape[: tensor.ndim - core])
        try:
            self.lead = torch.broadcast_shapes(*lead.values())
        except RuntimeError:
            told = ", ".join(f"{name} {shape}" for name, shape in lead.items() if shape)
            raise ValueError(f"leading axes do not broadcast: {told}") from None
        if 0 in self.lead:
            raise ValueError(f"leading axes: an empty batch, {self.lead}")
        tensors = {
            name: None
            if t is None
            else t.expand(self.lead + sizes[name]).reshape((math.prod(self.lead),) + sizes[name])
            for name, t in tensors.items()
        }
        self.rows = tuple(tensors.values())

    def shaped(self, rows):
        return rows.reshape(self.lead + rows.shape[1:])


def _numpy(tensor):
    if tensor is None:
        return None
    try:
        return tensor.detach().to("cpu", torch.float64).numpy()
    except RuntimeError as error:  # of jacobian(vectorize=True), too
        raise RuntimeError(
            f"coulomb.torch: the numbers of a tensor cannot be read ({error}); {_NO_TRANSFORMS}"
        ) from None


def _like(array, tensor, dtype=None):
    return torch.from_numpy(np.ascontiguousarray(array)).to(tensor.device, dtype or tensor.dtype)


def _result_type(tensors):
    return torch.float64 if any(t is not None and t.dtype == torch.float64 for t in tensors) else torch.float32


def _gradients(ctx, arguments, gradients):
    """Gradients for autograd, as the arguments are in type and device; None where none is needed."""
    out = []
    for like, gradient, needed in zip(ctx.likes, gradients, ctx.needs_input_grad[arguments:]):
        out.append(_like(gradient, like) if needed else None)
    return (None,) * arguments + tuple(out)


def _results(ctx, q, v, y, converged):
    """y: readings, or None; converged: an array of bool, or None."""
    results = [q, v] if y is None else [q, v, y]
    if converged is not None:
        results.append(torch.from_numpy(converged).to(q.device))
        ctx.mark_non_differentiable(results[-1])
    return tuple(results)


def _cotangents(ctx, gradients):
    """(dq, dv, cotangents of outputs or None) of the results' gradients."""
    dq, dv, *more = gradients
    of_outputs = ctx.readings.cotangents(ctx.y, _numpy(more[0])) if ctx.readings else None
    return _numpy(dq), _numpy(dv), of_outputs


class _FirstOrder(torch.autograd.Function):
    """The result of a backward pass, connected to everything that it depends on: a second differentiation raises instead of seeing a constant."""

    @staticmethod
    def forward(ctx, name, find, *tensors):
        """find: the gradients, a tuple of tensors and None. tensors: the cotangents and the arguments."""
        ctx.name, ctx.tensors = name, len(tensors)
        return find()

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError(
            f"{ctx.name}: has first derivatives only; a hessian or a gradient penalty needs second ones: "
            "detach() the gradient (or leave create_graph=False), or take differences of it"
        )


def _first_order(ctx, name, cotangents, find):
    """find(), the gradients of all arguments, as a function of first order of cotangents and arguments."""
    _refuse_transforms(name)
    if not torch.is_grad_enabled():  # no create_graph
        return find()
    return _FirstOrder.apply(name, find, *cotangents, *ctx.saved_tensors)


def _save(ctx, tensors):
    """Remembers the arguments, for create_graph=True."""
    ctx.save_for_backward(*(t for t in tensors if t is not None))


class _Like:
    """Type and device of a tensor, without its memory."""

    def __init__(self, tensor):
        self.dtype, self.device = (None, None) if tensor is None else (tensor.dtype, tensor.device)


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx, functional, names, readings, status, q, v, u, tau, fext, mocap, *values):
        inputs = (q, v, u, tau, fext, mocap)
        ctx.functional, ctx.names, ctx.likes = functional, names, [_Like(t) for t in (*inputs, *values)]
        ctx.parameters = {name: np.array(_numpy(t)) for name, t in zip(names, values)}
        ctx.x = Inputs(functional.coordinates, *map(_numpy, inputs[:4]), fext=_numpy(fext), mocap=_numpy(mocap))
        ctx.readings = readings
        _save(ctx, (*inputs, *values))
        with functional.lock:
            environments = functional.environments(len(q), ctx.parameters, mocap is not None)
            q1, v1 = environments.step(ctx.x)
            ctx.y = environments.readings(readings.names) if readings else None
            converged = environments.converged() if status else None
        ctx.q1 = q1
        dtype = _result_type(inputs)
        y = _like(ctx.y, q, dtype) if readings else None
        return _results(ctx, _like(q1, q, dtype), _like(v1, q, dtype), y, converged)

    @staticmethod
    def backward(ctx, *gradients):
        names = ("fext", "mocap", *ctx.names)
        wrt = [name for name, needed in zip(names, ctx.needs_input_grad[8:]) if needed]

        def find():
            dq1, dv1, of_outputs = _cotangents(ctx, gradients)
            with ctx.functional.lock:
                environments = ctx.functional.environments(len(ctx.x.q), ctx.parameters, ctx.x.mocap is not None)
                g = environments.step_vjp(ctx.x, ctx.q1, dq1, dv1, wrt, of_outputs)
            return _gradients(ctx, 4, [g.get(name) for name in ("q", "v", "u", "tau", *names)])

        return _first_order(ctx, "coulomb.torch.step", gradients, find)


class _ControlState(NamedModel):
    """Records about a batch: its model by name; and of each parameter that was set the values that were asked for, with
    those that the models had then, which may differ by rounding.
    """

    @classmethod
    def of(cls, batch):
        state = _control_states[batch] = cls(batch.model)
        state.n = batch.num_envs
        state.asked = {}
        return state

    def set_parameters(self, batch, values):
        """All of them, in the environments whose models have other ones: whoever set those, and by whatever name."""
        names = list(values)
        has = self._read(batch, names)
        mask = np.zeros(self.n, dtype=bool)
        for name, x in values.items():
            differs = (has[name] != x).any(axis=1)
            if name in self.asked:
                asked, got = self.asked[name]
                differs &= (asked != x).any(axis=1) | (got != has[name]).any(axis=1)
            mask |= differs
        if not mask.any():
            return
        batch.set_parameters(values, mask)
        has = self._read(batch, names)
        self.asked.update({name: (x, has[name]) for name, x in values.items()})

    def _read(self, batch, names):
        """{name: (n, size)} of the models that the batch has now."""
        if not names:
            return {}
        columns = np.split(
            batch._parameter_values(names), np.cumsum([self.size_of(name) for name in names])[:-1], axis=1
        )
        return dict(zip(names, columns))


_control_states = weakref.WeakKeyDictionary()


def _of_shape(name, value, shape):
    if value is None:
        return None
    tensor = _tensor(name, value)
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {tuple(tensor.shape)}")
    return tensor


def _finite(tensor, mask):
    """Whether the rows of the mask (None: all) are finite."""
    rows = tensor.detach() if mask is None else tensor.detach()[torch.from_numpy(mask.astype(bool))]
    return bool(torch.isfinite(rows).all())


@dataclasses.dataclass
class _ControlCall:
    """The arguments of a control step that are no tensors."""

    batch: BatchSimulator
    state: _ControlState
    names: tuple
    substeps: int
    mask: object
    readings: object
    status: bool


class _ControlStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call, q, v, u, tau, fext, mocap, *values):
        inputs = (q, v, u, tau, fext, mocap)
        ctx.call, ctx.likes, ctx.readings = call, [_Like(t) for t in (*inputs, *values)], call.readings
        # An input that the step will refuse changes no parameter.
        if all(t is None or _finite(t, call.mask) for t in inputs):
            call.state.set_parameters(call.batch, {name: np.array(_numpy(t)) for name, t in zip(call.names, values)})
        ctx.q, ctx.lengths = call.state.coordinates.normalized(_numpy(q), "Q")
        ctx.mocap, ctx.mocap_lengths = (None, None) if mocap is None else _poses.normalized(_numpy(mocap))
        _save(ctx, (*inputs, *values))
        ctx.q1, v1, ctx.record = call.batch.control_step(
            ctx.q,
            _numpy(v),
            _numpy(u),
            tau=_numpy(tau),
            fext=_numpy(fext),
            mocap=ctx.mocap,
            substeps=call.substeps,
            mask=call.mask,
            derivatives=any(ctx.needs_input_grad) or call.readings is not None,
        )
        ctx.y = ctx.record.output(list(call.readings.names)) if call.readings else None
        dtype = _result_type(inputs)
        y = _like(ctx.y, q, dtype) if call.readings else None
        converged = np.array(ctx.record.converged) if call.status else None
        return _results(ctx, _like(ctx.q1, q, dtype), _like(v1, q, dtype), y, converged)

    @staticmethod
    def backward(ctx, *gradients):
        names = ("fext", "mocap", *ctx.call.names)
        wrt = [name for name, needed in zip(names, ctx.needs_input_grad[5:]) if needed]
        coordinates = ctx.call.state.coordinates

        def find():
            dq1, dv1, of_outputs = _cotangents(ctx, gradients)
            g = ctx.record.vjp(coordinates.tangent_of_cotangent(ctx.q1, dq1), dv1, wrt, outputs=of_outputs)
            found = {name: getattr(g, name) for name in ("v", "u", "tau")} | {name: g[name] for name in wrt}
            found["q"] = coordinates.gradient_of_tangent(ctx.q, ctx.lengths, g.q)
            if "mocap" in found:
                found["mocap"] = _poses.gradient_of_tangent(ctx.mocap, ctx.mocap_lengths, found["mocap"])
            return _gradients(ctx, 1, [found.get(name) for name in ("q", "v", "u", "tau", *names)])

        return _first_order(ctx, "coulomb.torch.control_step", gradients, find)


class _Rollout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, functional, names, steps, readings, status, q0, v0, U, tau, fext, mocap, *values):
        inputs = (q0, v0, U, tau, fext, mocap)
        ctx.functional, ctx.names, ctx.likes = functional, names, [_Like(t) for t in (*inputs, *values)]
        ctx.parameters = {name: np.array(_numpy(t)) for name, t in zip(names, values)}
        of_bodies = {"fext": _numpy(fext), "mocap": _numpy(mocap)}
        ctx.x = Inputs(functional.coordinates, *map(_numpy, inputs[:4]), q_name="q0", **of_bodies)
        ctx.readings = readings
        _save(ctx, (*inputs, *values))
        with functional.lock:
            environments = functional.environments(len(q0), ctx.parameters, mocap is not None)
            Q, V, ctx.trajectories = environments.rollout(ctx.x, steps)
            ctx.y = ctx.trajectories.readings(readings.names) if readings else None
        dtype = _result_type(inputs)
        y = _like(ctx.y, q0, dtype) if readings else None
        converged = ctx.trajectories.converged() if status else None
        return _results(ctx, _like(Q, q0, dtype), _like(V, q0, dtype), y, converged)

    @staticmethod
    def backward(ctx, *gradients):
        names = ("fext", "mocap", *ctx.names)
        wrt = [name for name, needed in zip(names, ctx.needs_input_grad[9:]) if needed]

        def find():
            dQ, dV, of_outputs = _cotangents(ctx, gradients)
            with ctx.functional.lock:
                environments = ctx.functional.environments(len(ctx.x.q), ctx.parameters, ctx.x.mocap is not None)
                g = environments.rollout_vjp(ctx.x, ctx.trajectories, dQ, dV, wrt, of_outputs)
            return _gradients(ctx, 5, [g.get(name) for name in ("q", "v", "u", "tau", *names)])

        return _first_order(ctx, "coulomb.torch.rollout", gradients, find)


class _Output(torch.autograd.Function):
    @staticmethod
    def forward(ctx, functional, outputs, readings, names, q, v, *values):
        ctx.functional, ctx.outputs, ctx.readings = functional, outputs, readings
        ctx.names, ctx.likes = names, [_Like(t) for t in (q, v, *values)]
        ctx.parameters = {name: np.array(_numpy(t)) for name, t in zip(names, values)}
        ctx.x = Inputs(functional.coordinates, *map(_numpy, (q, v)))
        _save(ctx, (q, v, *values))
        with functional.lock:
            y = functional.output(outputs, ctx.x, ctx.parameters)
        return _like(y, q, _result_type((q, v)))

    @staticmethod
    def backward(ctx, dy):
        inputs = ("q", "v", *ctx.names)
        wrt = [name for name, needed in zip(inputs, ctx.needs_input_grad[4:]) if needed]

        def find():
            with ctx.functional.lock:
                _, J = ctx.functional.output_jacobians(ctx.outputs, ctx.readings, ctx.x, ctx.parameters, wrt)
            w = _numpy(dy)[:, None]
            return _gradients(ctx, 4, [(w @ J[name])[:, 0] if name in J else None for name in inputs])

        return _first_order(ctx, "coulomb.torch.output", (dy,), find)
