"""Rotation matrices of quaternions as one node of PyTorch's graph, where their nine entries would be some forty."""

from __future__ import annotations

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from .. import _rotations


def _slopes():
    """(9, 16): the entries R_i are quadratic in p = (w, x, y, z), so dR_i/dp_a = S_iab p_b with the constants that are returned."""

    def entries(p):
        return np.array(_rotations.entries(*p))

    zero, unit = np.zeros(4), np.eye(4)
    second = [[entries(a + b) - entries(a) - entries(b) + entries(zero) for b in unit] for a in unit]
    return torch.from_numpy(np.moveaxis(np.array(second), 2, 0).copy()).reshape(9, 16)


SLOPES = _slopes()


class RotationMatrix(torch.autograd.Function):
    """quaternion (..., 4) -> (..., 3, 3), with the bits of `arrays.rotation_matrix`. It can be differentiated once."""

    generate_vmap_rule = True

    @staticmethod
    def forward(quaternion):
        numbers = _rotations.entries(*(quaternion[..., k] for k in range(4)))
        return torch.stack(numbers, -1).reshape(*quaternion.shape[:-1], 3, 3)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        (quaternion,) = ctx.saved_tensors
        S = gradient.reshape(*quaternion.shape[:-1], 9) @ SLOPES.to(gradient)
        S = S.reshape(*quaternion.shape, 4)
        return (S * quaternion[..., None, :]).sum(-1)
