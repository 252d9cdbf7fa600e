"""A motion with its contacts: steps of a simulator, kept often enough for a picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(eq=False)
class Recording:
    """Result of recorded_steps, for Viewer.show: T + 1 frames, `substeps` steps of `timestep` s apart.

    q (T + 1, nq), v (T + 1, nv): states before each of these steps, and after the last. contacts: T lists of the Contacts of the step that
    starts at each frame; their impulses act for `timestep`.
    """

    q: np.ndarray
    v: np.ndarray
    contacts: list
    timestep: float
    substeps: int

    @property
    def frame_time(self):
        """s from one frame to the next."""
        return self.timestep * self.substeps

    @property
    def contact_time(self):
        """s for which the impulses of the contacts act."""
        return self.timestep


def recorded_steps(sim, q, v, steps=None, U=None, every=1):
    """A Recording of steps (a number), or of controls U (steps, nu): every so many-th state. The simulator goes on from where it is."""
    if (steps is None) == (U is None):
        raise ValueError("steps, U: give one of the two")
    steps = len(U) if steps is None else steps
    for name, value in (("steps", steps), ("every", every)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{name}: got {value!r}, expected an integer of at least 1")
    Q, V, contacts = [], [], []
    for k in range(steps):
        if k % every == 0:
            Q.append(np.array(q))
            V.append(np.array(v))
        q, v = sim.step(q, v) if U is None else sim.step(q, v, U[k])
        if k % every == 0:
            contacts.append(list(sim.contacts))
    return Recording(np.array([*Q, q]), np.array([*V, v]), contacts, sim.timestep, int(every))
