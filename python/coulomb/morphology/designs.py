"""Maps from the numbers x of a design to the handles of all cages, one below the other.

A design has size, start (size,), names (size,), handles(x) -> (k, 3), jacobian(x) -> (k, 3, size). Write your own with
these five, or chain another program's derivative behind Handles (docs/design.md).
"""

from __future__ import annotations

import numpy as np

from .checks import finite


class Handles:
    """x is all coordinates of the handles of these cages."""

    def __init__(self, cages):
        self._rest = np.concatenate([cage.handles for cage in cages]) if cages else np.zeros((0, 3))
        self.size = self._rest.size
        self.start = self._rest.ravel()
        self.names = [f"{cage.name}[{i}].{axis}" for cage in cages for i in range(len(cage.handles)) for axis in "xyz"]
        self._jacobian = np.eye(self.size).reshape(*self._rest.shape, self.size)

    def handles(self, x):
        return np.reshape(x, self._rest.shape)

    def jacobian(self, x):
        return self._jacobian


class Scales:
    """Handles that are linear in scales, all 1 at the start: h = fixed + matrix x.

    cages: of the Morphology, in its order. matrix: (k, 3, n), handles per unit of scale. names: n, for errors.

    ValueError: a scale that is not positive, by its name.
    """

    def __init__(self, cages, matrix, names):
        rest = np.concatenate([cage.handles for cage in cages])
        self.names, self.size = list(names), len(names)
        self._matrix = finite("matrix", matrix, (*rest.shape, self.size))
        self._fixed = rest - self._matrix.sum(axis=2)
        self.start = np.ones(self.size)

    def handles(self, x):
        for i, value in enumerate(x):
            if not value > 0:
                raise ValueError(f"x[{i}]: scale '{self.names[i]}' is {value:.6g}; it must be positive")
        return self._fixed + self._matrix @ x

    def jacobian(self, x):
        return self._matrix
