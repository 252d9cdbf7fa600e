"""Robust losses: rho(z) of squared residuals z = (r / threshold)^2, with two derivatives, as scipy.optimize.least_squares takes them.

Of measurements only: priors and the continuity of segments are no measurements that could be outliers.
"""

from __future__ import annotations

import numpy as np


def _linear(z):
    return z, np.ones_like(z), np.zeros_like(z)


def _huber(z):
    far = z > 1
    root = np.sqrt(np.where(far, z, 1.0))
    return np.where(far, 2 * root - 1, z), 1 / root, np.where(far, -0.5 / root**3, 0.0)


def _soft_l1(z):
    root = np.sqrt(1 + z)
    return 2 * (root - 1), 1 / root, -0.5 / root**3


def _cauchy(z):
    return np.log1p(z), 1 / (1 + z), -1 / (1 + z) ** 2


LOSSES = {"linear": _linear, "huber": _huber, "soft_l1": _soft_l1, "cauchy": _cauchy}


def loss_of_rows(name, measured):
    """The loss of this name for the rows that were measured, squares for the others."""
    robust = LOSSES[name]

    def loss(z):
        return np.where(measured, robust(z), _linear(z))

    return loss


def reweighting(loss):
    """The loss in scipy's form, which turns it into Gauss-Newton steps on squares weighted by rho': they lower it from far away too.

    With its second derivative, which is all of the curvature that huber's outer part takes away, steps would have no length of their own.
    """

    def without_curvature(z):
        rho = loss(z)
        rho[2] = 0.0
        return rho

    return without_curvature
