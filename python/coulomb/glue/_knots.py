"""Shared by the adapters of this package: steps from knot to knot with the controls held, n of them at once, and their Jacobians.

x = (q, v), dx = (dq, dv) in the tangent space of Model.integrate.
"""

from __future__ import annotations

import numpy as np

from .._core import BatchSimulator, Model
from ..activations import acting_range


class Knots:
    """n independent control steps of one model.

    Every one starts cold, so that it depends on its arguments alone: an optimiser's line search may evaluate knots in any order.
    """

    def __init__(self, model, n, substeps, timestep, inputs, num_threads, options):
        if not isinstance(model, Model):
            raise TypeError(f"model: expected a Model, got {type(model).__name__}")
        if inputs not in ("u", "tau"):
            raise ValueError(f"inputs: got {inputs!r}, expected 'u' (actuators) or 'tau' (a force on every dof)")
        if options.get("stepper") == "bdf2":
            raise ValueError(
                "stepper: 'bdf2' depends on two earlier states; use a stepper that depends on one, 'semi_implicit' or 'bdf1'"
            )
        self.n = _at_least_one("knots", n)
        self.substeps = _at_least_one("substeps", substeps)
        if timestep is not None:
            options = {**options, "timestep": timestep}
        self.batch = BatchSimulator(model, self.n, num_threads=num_threads, **options)
        self.model = model
        self.inputs = inputs
        self.nx, self.ndx = model.nq + model.nv, 2 * model.nv
        self.nu = model.nu if inputs == "u" else model.nv
        if not self.nu:
            raise ValueError("model: it has no actuators; inputs='tau' is a force on every dof")
        self.lower, self.upper = self._ranges()

    @property
    def timestep(self):
        """Seconds from knot to knot."""
        return self.substeps * self.batch.timestep

    def _ranges(self):
        """(nu,) lower and upper: the actuators' control ranges."""
        lower, upper = np.full(self.nu, -np.inf), np.full(self.nu, np.inf)
        for i, actuator in enumerate(self.model.actuators if self.inputs == "u" else []):
            lower[i], upper[i] = acting_range(actuator)
        return lower, upper

    def step(self, X, U):
        """X1 (n, nx), converged (n,) bool, and the record that jacobian takes. X: (n, nx), U: (n, nu).

        Rows that are not finite, and those whose step overflows, are nan: that is how the optimisers are told that a step was too
        long. They are masked, so that the others go on; record is None if there are no others.
        """
        sound = np.isfinite(X).all(axis=1) & np.isfinite(U).all(axis=1)
        X1 = np.full_like(X, np.nan)
        if not sound.any():
            return X1, sound, None
        nq = self.model.nq
        held = {"U" if self.inputs == "u" else "tau": np.ascontiguousarray(U)}
        self.batch.reset()
        Q1, V1, record = self.batch.control_step(
            np.ascontiguousarray(X[:, :nq]), np.ascontiguousarray(X[:, nq:]), substeps=self.substeps, mask=sound, **held
        )
        if not record.converged.all():
            sound &= [not reason.startswith("failed: overflow") for reason in record.status.reason]
        X1[sound, :nq], X1[sound, nq:] = Q1[sound], V1[sound]
        return X1, sound & record.converged, record

    def jacobian(self, record):
        """A (n, 2 nv, 2 nv), B (n, 2 nv, nu) of a step's record."""
        d = record.jacobian()
        return d.A, d.B if self.inputs == "u" else d.B_tau


def _at_least_one(name, value):
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: expected a whole number, got {value!r}")
    if value.__index__() < 1:
        raise ValueError(f"{name}: got {value}, expected at least 1")
    return value.__index__()
