"""What environments are given: actions and states of the right shape, finite, as float64; options of resets that exist."""

from __future__ import annotations

import numpy as np


def checked(name, actions, shape, rows):
    """actions as float64 of that shape; rows (bool (n,)) are looked at, others become zero.

    ValueError: names the argument, the element and its value.
    """
    try:
        given = np.asarray(actions)
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected numbers of shape {shape}, got {type(actions).__name__}: {error}") from error
    if values.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {values.shape}")

    values[~rows] = 0
    if not np.isfinite(values).all():
        place = tuple(int(k) for k in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(f"{name}{list(place)} is {values[place]}, expected a finite number")
    return values


def refuse_unknown(options):
    """ValueError: names options of a reset that there are not."""
    unknown = sorted(set(options) - {"q", "v", "goal"})
    if unknown:
        raise ValueError(f"options: {', '.join(map(repr, unknown))} is not known, expected 'q', 'v', 'goal'")
