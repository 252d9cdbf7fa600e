"""Arguments as numbers: what cannot be one is named, with what was expected of it."""

from __future__ import annotations

import numpy as np


def count(name, value):
    """A positive integer."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name}: got {value!r}, expected a positive integer")
    return int(value)


def positive(name, value):
    """A positive, finite number."""
    number = numbers(name, value, "a positive number")
    if number.shape != () or not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name}: got {value!r}, expected a positive number")
    return float(number)


def numbers(name, value, expected="a number or an array of numbers"):
    """An array of floats, of any shape; what it holds is for the caller to check."""
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: got {value!r}, expected {expected}") from None


def by_element(name, value, size, holds, what):
    """(size,) of numbers that all hold, from one number or one for each element."""
    expected = f"{what}: a number or ({size},)"
    array = numbers(name, value, expected)
    if array.shape not in ((), (size,)) or not np.all(holds(array)):
        raise ValueError(f"{name}: got {array}, expected {expected}")
    return np.broadcast_to(array, (size,)).astype(float)


def are_positive(array):
    return np.isfinite(array) & (array > 0)


def mapping(name, value):
    if not isinstance(value, dict):
        raise TypeError(f"{name}: got {type(value).__name__}, expected a dict by name of output")
    return value
