"""A motion with its contacts: steps of a simulator, kept often enough for a picture."""

from __future__ import annotations

import numpy as np


def recorded_steps(sim, q, v, steps=None, U=None, every=1):
    """(Q, V, contacts): states (T + 1, nq), (T + 1, nv) before each `every`-th step and after the last, and the T lists of Contacts
    of the steps that start there. steps, or U (steps, nu): controls. The simulator goes on from where it is.
    """
    if (steps is None) == (U is None):
        raise ValueError("steps, U: give one of the two")
    steps = len(U) if steps is None else steps
    if steps < 1 or every < 1:
        raise ValueError(f"steps, every: got {steps}, {every}, expected at least 1")
    Q, V, contacts = [], [], []
    for k in range(steps):
        if k % every == 0:
            Q.append(np.array(q))
            V.append(np.array(v))
        q, v = sim.step(q, v) if U is None else sim.step(q, v, U[k])
        if k % every == 0:
            contacts.append(list(sim.contacts))
    return np.array([*Q, q]), np.array([*V, v]), contacts
