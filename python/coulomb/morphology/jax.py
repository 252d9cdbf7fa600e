"""The parameters of a Morphology as JAX arrays: `import coulomb.morphology.jax`, with the extra `jax`.

    values = coulomb.morphology.jax.parameters(morphology, x)
    Q, V = coulomb.jax.rollout(sim, q0, v0, U, parameters=values)

x (..., n) may be made by JAX from anything; works inside jit, vmap, grad and jvp: callbacks compute values and slopes in
float64 on the CPU. The model of `sim` is the one of the morphology.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["parameters", "points"]


def parameters(morphology, x):
    """Name to array (..., size), differentiable in x (..., n). Errors are those of JAX, with the reason in them."""
    sizes = tuple((name, len(value)) for name, value in morphology.parameters(morphology.start).items())
    return _named(_Source(morphology, "parameters", "jacobian"), sizes, x)


def points(morphology, x):
    """Name to array (..., 3) of the markers in their bodies' frames, differentiable in x."""
    return _named(_Source(morphology, "points", "points_jacobian"), tuple((name, 3) for name in morphology.markers), x)


class _Source:
    """The callbacks' target; equal for equal morphologies, so that compiled functions are reused."""

    def __init__(self, morphology, values, slopes):
        self.morphology, self.key = morphology, (id(morphology), values)
        self.values, self.slopes = getattr(morphology, values), getattr(morphology, slopes)

    def __hash__(self):
        return hash(self.key)

    def __eq__(self, other):
        return isinstance(other, _Source) and self.key == other.key


def _named(source, sizes, x):
    x = jnp.asarray(x)
    n = source.morphology.design.size
    if x.ndim == 0 or x.shape[-1] != n:
        raise ValueError(f"x: expected shape (..., {n}), got {x.shape}")
    return dict(zip((name for name, _ in sizes), _values(source, sizes, x.astype(jnp.result_type(x, jnp.float32)))))


def _callback(function, sizes, tail, x):
    """Per row of x (..., n): function(row)[name], of shape (size, *tail)."""
    shapes = [jax.ShapeDtypeStruct((*x.shape[:-1], size, *tail), x.dtype) for _, size in sizes]

    def call(array):
        array = np.asarray(array, dtype=float)
        rows = [function(row) for row in array.reshape(-1, array.shape[-1])]
        return [
            np.stack([row[name] for row in rows]).astype(x.dtype).reshape(*array.shape[:-1], size, *tail)
            for name, size in sizes
        ]

    return jax.pure_callback(call, shapes, x, vmap_method="broadcast_all")


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _values(source, sizes, x):
    return _callback(source.values, sizes, (), x)


@_values.defjvp
def _rule(source, sizes, arrays, tangents):
    (x,), (dx,) = arrays, tangents
    slopes = _callback(source.slopes, sizes, (x.shape[-1],), x)
    return _values(source, sizes, x), [jnp.einsum("...ij,...j->...i", slope, dx) for slope in slopes]
