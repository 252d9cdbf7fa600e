"""Arrays of users, checked: errors name argument, element and value."""

from __future__ import annotations

import numpy as np


def finite(what, value, shape):
    """A float64 copy of this shape (None: any length), without NaN or infinity."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{what}: expected numbers, got {type(value).__name__}") from None
    expected = "(" + ", ".join("n" if n is None else str(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"
    if array.ndim != len(shape) or any(n is not None and n != m for n, m in zip(shape, array.shape)):
        raise ValueError(f"{what}: expected shape {expected}, got {array.shape}")
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        at = ", ".join(map(str, bad[0]))
        raise ValueError(f"{what}[{at}]: {array[tuple(bad[0])]} is not finite")
    return array


def positive(what, value):
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{what}: expected a number, got {value!r}")
    if not (value > 0 and np.isfinite(value)):
        raise ValueError(f"{what}: {value} must be positive and finite")
    return float(value)


def known(what, name, names):
    """The index of name in names."""
    if name in names:
        return names.index(name)
    told = ", ".join(map(repr, names[:12])) + (", ..." if len(names) > 12 else "")
    raise ValueError(f"{what}: unknown {name!r}; there are {told or 'none'}")
