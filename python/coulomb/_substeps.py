"""Trajectories whose inputs are held for several steps, as arrays: what is known of every step, for the rows at which inputs change."""

from __future__ import annotations

import numpy as np


def grouped(x, axis, substeps):
    """x with its axis of steps split in two: rows, and the steps of each."""
    axis %= x.ndim
    return x.reshape(*x.shape[:axis], x.shape[axis] // substeps, substeps, *x.shape[axis + 1 :])


def composed(A, inputs, ambiguous, substeps):
    """The linearization of rows from that of steps, chained: A and every matrix of inputs, (..., T substeps, 2 nv, k), become
    (..., T, 2 nv, k), and a row is ambiguous if one of its steps is.
    """
    A, *inputs = (grouped(x, -3, substeps) for x in (A, *inputs))
    state = A[..., 0, :, :]
    found = [x[..., 0, :, :] for x in inputs]
    for j in range(1, substeps):
        step = A[..., j, :, :]
        state = step @ state
        found = [step @ before + x[..., j, :, :] for before, x in zip(found, inputs)]
    arrays = [np.ascontiguousarray(x) for x in (state, *found)]
    return *arrays, grouped(ambiguous, -1, substeps).any(-1)


def at_rows(x, substeps):
    """(n, T substeps + 1, size) of states, at those where inputs change."""
    return np.ascontiguousarray(x[:, ::substeps])
