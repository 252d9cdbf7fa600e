"""Explicit dynamics of Aligator that are steps of a simulator, through contact (docs/glue.md).

    dynamics = Dynamics(model, substeps=2)
    cost = aligator.CostStack(dynamics.space, dynamics.nu)
    stage = aligator.StageModel(cost, dynamics)

Aligator's Python package is in conda (PyPI's package of that name is another thing).
"""

from __future__ import annotations

import numpy as np

try:
    import aligator
    import aligator.dynamics
except ImportError as error:
    message = "coulomb.glue.aligator needs Aligator's Python package: conda install -c conda-forge aligator (PyPI's is another one)"
    raise ImportError(message) from error

from ._knots import Knots
from ._rotations import pinocchio_order, spaces


def space_of(model):
    """The manifold of (q, v): vectors, and SO(3) for every rotation, in the order of the model.

    Their tangents are Coulomb's; quaternions of points are (x, y, z, w), as Pinocchio has them.
    """
    product = aligator.manifolds.CartesianProduct()
    for kind, size in spaces(model):
        product.addComponent(aligator.manifolds.SO3() if kind == "rotation" else aligator.manifolds.VectorSpace(size))
    return product


class Dynamics(aligator.dynamics.ExplicitDynamicsModel):
    """x_next = a control step of the simulator from x with u held.

    Parameters
    ----------
    model : Model
    substeps : int
        Steps of the simulator from knot to knot.
    timestep : float, optional
        Of a step of the simulator, s. Default: the model's.
    inputs : "u" or "tau"
        Controls of the model's actuators, or a force on every dof.
    options
        As Simulator takes: contact law, stepper, gradient.

    Raises
    ------
    ValueError, TypeError
        Names the argument.
    """

    def __init__(self, model, substeps=1, *, timestep=None, inputs="u", **options):
        knots = Knots(model, 1, substeps, timestep, inputs, 1, options)
        super().__init__(space_of(model), knots.nu)
        self._knots = knots
        self._order = pinocchio_order(model)

    @property
    def limits(self):
        """(lower, upper), (nu,) each: the actuators' control ranges."""
        return self._knots.lower, self._knots.upper

    def point(self, q, v):
        """x of (q, v)."""
        return np.concatenate([np.asarray(q, dtype=float), np.asarray(v, dtype=float)])[self._order]

    def split(self, x):
        """(q, v) of x."""
        numbers = np.empty(self._knots.nx)
        numbers[self._order] = x
        return numbers[: self._knots.model.nq], numbers[self._knots.model.nq :]

    def forward(self, x, u, data):
        """data.xnext; nan where the step overflows."""
        data.xnext[:] = self._step(x, u)[0][0][self._order]

    def dForward(self, x, u, data):
        """data.Jx, data.Ju."""
        X1, _, record = self._step(x, u)
        if not np.isfinite(X1).all():
            data.Jx[...] = np.nan
            return
        A, B = self._knots.jacobian(record)
        data.Jx[...] = A[0]
        data.Ju[...] = B[0].reshape(data.Ju.shape)

    def _step(self, x, u):
        return self._knots.step(np.concatenate(self.split(x))[None], np.asarray(u, dtype=float)[None])
