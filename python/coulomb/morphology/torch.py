"""The parameters of a Morphology as tensors: `import coulomb.morphology.torch`, with the extra `torch`.

    values = coulomb.morphology.torch.parameters(morphology, x)
    Q, V = coulomb.torch.rollout(sim, q0, v0, U, parameters=values)

x (..., n) may be made by PyTorch from anything, and the values changed by it before they are used. The model of `sim` is
the one of the morphology.
"""

from __future__ import annotations

import numpy as np
import torch

from ..torch import _first_order, _refuse_transforms, _save

__all__ = ["parameters", "points"]


def parameters(morphology, x):
    """Name to tensor (..., size), differentiable in x (..., n), float64 or float32. Errors as Morphology.parameters."""
    names = morphology.names
    return dict(zip(names, _Values.apply(morphology.parameters, morphology.jacobian, tuple(names), _checked(x))))


def points(morphology, x):
    """Name to tensor (..., 3) of the markers in their bodies' frames, differentiable in x."""
    names = tuple(morphology.markers)
    return dict(zip(names, _Values.apply(morphology.points, morphology.points_jacobian, names, _checked(x))))


def _checked(x):
    _refuse_transforms("coulomb.morphology.torch")
    if not isinstance(x, torch.Tensor) or x.dtype not in (torch.float64, torch.float32) or x.ndim == 0:
        raise TypeError(
            f"x: expected a tensor (..., n) of float64 or float32, got {getattr(x, 'dtype', type(x).__name__)}"
        )
    return x


class _Values(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, jacobian, names, x):
        ctx.jacobian, ctx.names, ctx.shape, ctx.like = jacobian, names, x.shape, (x.dtype, x.device)
        _save(ctx, (x,))
        ctx.rows = x.detach().to("cpu", torch.float64).reshape(-1, x.shape[-1]).numpy().copy()
        found = [values(row) for row in ctx.rows]
        return tuple(
            torch.from_numpy(np.stack([row[name] for row in found])).to(x.device, x.dtype).reshape(*x.shape[:-1], -1)
            for name in names
        )

    @staticmethod
    def backward(ctx, *gradients):
        def find():
            out = np.zeros_like(ctx.rows)
            flat = [g.detach().to("cpu", torch.float64).reshape(len(ctx.rows), -1).numpy() for g in gradients]
            for i, row in enumerate(ctx.rows):
                slopes = ctx.jacobian(row)
                for name, gradient in zip(ctx.names, flat):
                    out[i] += gradient[i] @ slopes[name]
            dtype, device = ctx.like
            return None, None, None, torch.from_numpy(out).to(device, dtype).reshape(ctx.shape)

        return _first_order(ctx, "coulomb.morphology.torch", gradients, find)
