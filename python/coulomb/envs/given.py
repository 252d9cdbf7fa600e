"""Checks of the inputs of environments: actions and states have the right shape and are finite; options of resets exist."""

from __future__ import annotations

import numpy as np


def checked(name, given, shape, rows=None):
    """The input as float64 of that shape; rows (bool (n,), None: all) are checked, others become zero.

    ValueError: names the argument, the element and its value.
    """
    try:
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected numbers of shape {shape}, got {type(given).__name__}: {error}") from error
    if values.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {values.shape}")

    if rows is not None:
        values[~rows] = 0
    if not np.isfinite(values).all():
        place = tuple(int(k) for k in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(f"{name}{list(place)} is {values[place]}, expected a finite number")
    return values


def checked_starts(options, task, shape=(), rows=None, title="options[{!r}]"):
    """q, v and goal, of that leading shape, as far as options say; else None. ValueError: names what is unknown or bad."""
    sizes = {"q": task.model.nq, "v": task.model.nv, "goal": task.goal_size}
    unknown = sorted(set(options) - set(sizes))
    if unknown:
        raise ValueError(f"options: {', '.join(map(repr, unknown))} is not known, expected 'q', 'v', 'goal'")

    given = [(title.format(name), options.get(name), (*shape, size)) for name, size in sizes.items()]
    return [None if value is None else checked(name, value, size, rows) for name, value, size in given]
