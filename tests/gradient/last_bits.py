"""How well a number is known in double precision: what it changes by when the last bits of its inputs change.

A result of a stable computation is the exact one for inputs that differ from those given in their last bits. So two ways to compute one
number, as forward and reverse mode do, agree to that change and no better, however ill-conditioned the problem is: where a foot is jammed between
the ground and a limit, say, 1e-10 of a derivative is all that doubles know of it.
"""

import numpy as np

TRIES = 6
# Random changes of some inputs find a good part of what all of them can do at worst.
FACTOR = 4


def known_to(value, *inputs, seed=0):
    """A bound of what rounding does to value(*inputs), a number or an array: of the same shape. inputs: arrays of doubles."""
    random = np.random.default_rng(seed)
    base = value(*inputs)
    changes = []
    for _ in range(TRIES):
        moved = [np.nextafter(x, np.where(random.random(x.shape) < 0.5, -np.inf, np.inf)) for x in map(np.asarray, inputs)]
        changes.append(np.abs(value(*[np.where(x == 0, 0.0, y) for x, y in zip(inputs, moved)]) - base))
    return FACTOR * np.max(changes, axis=0)
