"""A motion as arrays to draw: configurations, contact forces by mode, paths, and gradients as arrows.

Everything is checked here, once, so that drawing a frame cannot fail. Frames are t = 0 .. T-1, environments i = 0 .. n-1.
"""

from __future__ import annotations

import numpy as np

from .recording import Recording

MODES = ("sticking", "sliding", "separating")


class Motion:
    """Q (n, T, nq) of a model and what goes with it. ValueError names argument, element and value."""

    def __init__(self, model, motion, timestep=None):
        self.model = model
        self.Q = configurations(model, getattr(motion, "q", motion), "motion")

        # What was simulated knows its time step, which need not be the model's; arrays do not. Impulses are of one step.
        step = (
            getattr(motion, "timestep", model.timestep) if timestep is None else number("timestep", timestep, "seconds")
        )
        self.frame_time = step * getattr(motion, "substeps", 1)
        self.contact_time = motion.timestep if isinstance(motion, Recording) else step
        self.contacts = []  # of environment, frame: mode -> (points (k, 3), forces (k, 3))
        self.paths = []  # (T, 3) of environment
        self.gradient = None  # (n, T, nv)
        self.ghost = None  # (n, 1 or T, nq)

    @property
    def num_environments(self):
        return self.Q.shape[0]

    @property
    def num_frames(self):
        return self.Q.shape[1]

    def set_contacts(self, contacts, contact_time):
        """contacts[t], or contacts[i][t] of several environments: the Contacts of the step that starts at frame t."""
        acts = self.contact_time if contact_time is None else number("contact_time", contact_time, "seconds")
        several = self.num_environments > 1
        if not hasattr(contacts, "__len__"):
            raise ValueError(f"contacts: got {contacts!r}, expected a list of Contacts for each frame")
        if several and len(contacts) != self.num_environments:
            raise ValueError(f"contacts: got {len(contacts)} environments, the motion has {self.num_environments}")
        for environment, frames in enumerate(contacts if several else [contacts]):
            where = f"contacts[{environment}]" if several else "contacts"
            if not hasattr(frames, "__len__"):
                raise ValueError(f"{where}: got {frames!r}, expected a list of Contacts for each frame")
            if len(frames) not in (self.num_frames, self.num_frames - 1):
                raise ValueError(
                    f"{where}: got {len(frames)} frames, expected {self.num_frames}, as the motion has, or one less"
                )
            for t, frame in enumerate(frames):
                if not hasattr(frame, "__iter__") or not all(hasattr(c, "impulse") for c in frame):
                    raise ValueError(f"{where}[{t}]: got {frame!r}, expected a list of Contacts")
            arrays = [by_mode(frame, acts) for frame in frames]
            if len(arrays) < self.num_frames:
                arrays.append(arrays[-1] if arrays else by_mode([], acts))
            self.contacts.append(arrays)

    def set_paths(self, names):
        """Where bodies or sites of these names go."""
        names = [names] if isinstance(names, str) else names
        if not hasattr(names, "__iter__"):
            raise ValueError(f"paths: got {names!r}, expected names of bodies and sites")
        for name in names:
            body, point = _carrier(self.model, name)
            for states in self.Q:
                self.paths.append(np.array([_point(self.model, q, body, point) for q in states]))

    def set_gradient(self, gradient):
        """(T, nv) or (n, T, nv), in the tangent space of Model.integrate; the last frame may be missing."""
        G = array("gradient", gradient)
        G = G[None] if G.ndim == 2 else G
        n, T, nv = self.num_environments, self.num_frames, self.model.nv
        if G.ndim != 3 or G.shape[0] != n or G.shape[1] not in (T, T - 1) or G.shape[2] != nv:
            raise ValueError(f"gradient: got shape {np.shape(gradient)}, expected {(n, T, nv) if n > 1 else (T, nv)}")
        if not np.isfinite(G).all():
            raise ValueError(f"gradient: not finite at {tuple(int(i) for i in np.argwhere(~np.isfinite(G))[0])}")
        self.gradient = np.concatenate([G, np.zeros((n, 1, nv))], axis=1) if G.shape[1] < T else G

    def set_ghost(self, ghost):
        """(nq,) that stays, or as many frames as the motion has."""
        states = configurations(self.model, ghost, "ghost")
        n, T = self.num_environments, self.num_frames
        if states.shape[0] not in (1, n) or states.shape[1] not in (1, T):
            raise ValueError(f"ghost: got shape {np.shape(ghost)}, expected one configuration or {self.Q.shape[:2]}")
        self.ghost = states

    def ghosts(self, frame):
        """(n or 1, nq)."""
        return self.ghost[:, min(frame, self.ghost.shape[1] - 1)]


def array(name, value):
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: got {value!r}, expected an array of numbers") from None


def number(name, value, unit="number", least=None):
    """A finite float, above 0 or from `least` on."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = np.nan
    if not np.isfinite(found) or (found <= 0 if least is None else found < least):
        bound = " > 0" if least is None else f" >= {least:g}" if np.isfinite(least) else ""
        raise ValueError(f"{name}: got {value!r}, expected finite {unit}{bound}")
    return found


def configurations(model, motion, name):
    """(nq,), (T, nq) or (n, T, nq) to (n, T, nq), finite."""
    Q = array(name, motion)
    while Q.ndim < 3:
        Q = Q[None]
    if Q.ndim != 3 or Q.shape[2] != model.nq or 0 in Q.shape[:2]:
        raise ValueError(
            f"{name}: got shape {np.shape(motion)}, expected (nq,), (T, nq) or (n, T, nq) with nq = {model.nq}"
        )
    if not np.isfinite(Q).all():
        i, t, k = (int(x) for x in np.argwhere(~np.isfinite(Q))[0])
        raise ValueError(f"{name}: not finite: environment {i}, frame {t}, q[{k}] is {Q[i, t, k]}")
    return Q


def by_mode(contacts, seconds):
    """mode -> (points, forces): the force on the partner above, so that arrows of support point up."""
    found = {}
    for mode in MODES:
        chosen = [c for c in contacts if c.mode == mode]
        points = np.array([c.point for c in chosen]).reshape(-1, 3)
        impulses = [np.asarray(c.impulse) * (1.0 if c.normal[2] >= 0 else -1.0) for c in chosen]
        found[mode] = points, np.array(impulses).reshape(-1, 3) / seconds
    return found


def gradient_arrows(model, q, gradient):
    """(k, 3) origins of the bodies that move, and (k, 3): how each would be moved by a step along the gradient, J_b(q) g."""
    origins, _ = model.body_placements(q)
    moving = sorted({int(b) for b in model.dof_body})
    arrows = [model.point_jacobian(q, body, np.zeros(3))[:3] @ gradient for body in moving]
    return origins[moving], np.array(arrows).reshape(-1, 3)


def _carrier(model, name):
    """(body, point in its frame) of a body or a site."""
    if name in model.body_names:
        return model.body_names.index(name), np.zeros(3)
    for site in model.sites:
        if site.name == name:
            return site.body, site.position
    raise ValueError(
        f"paths: no body or site {name!r}; there are {[*model.body_names, *(s.name for s in model.sites)]}"
    )


def _point(model, q, body, point):
    positions, turns = model.body_placements(q)
    return positions[body] + turns[body] @ point
