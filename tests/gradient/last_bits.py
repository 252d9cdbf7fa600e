"""How well a number is known in double precision: what it changes by when the last bits of its inputs change.

The result of a stable computation is exact for inputs that differ from the given ones in their last bits. So two ways to
compute one number, as forward and reverse mode, agree to that change and no better: where a foot is jammed between the
ground and a limit, doubles know a derivative to 1e-10 of its size.
"""

import numpy as np

TRIES = 6
# Random changes find a good part of the worst one.
FACTOR = 4


def last_bit_changed(x, random):
    """Each number to its neighbour above or below; zeros, which are exact, stay."""
    towards = np.where(random.random(x.shape) < 0.5, -np.inf, np.inf)
    return np.where(x == 0, 0.0, np.nextafter(x, towards))


def known_to(value, *inputs, seed=0):
    """A bound of what rounding does to value(*inputs), a number or an array; of its shape. inputs: arrays of doubles."""
    random = np.random.default_rng(seed)
    base = value(*inputs)
    changes = []
    for _ in range(TRIES):
        moved = [last_bit_changed(np.asarray(x, dtype=float), random) for x in inputs]
        changes.append(np.abs(value(*moved) - base))
    return FACTOR * np.max(changes, axis=0)
