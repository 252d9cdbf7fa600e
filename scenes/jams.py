"""Wedges of one to three contacts in two or three degrees of freedom, and whether their problem has a solution.

Independent of the solvers: a solution is looked for in velocities, v = v_free + sum J^T lambda in coordinates of mass
one. Which contacts touch, stick and slide is enumerated; directions of slip are the roots of one function of one
unknown, sampled finely and then solved for.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import brentq, nnls

SAMPLES = 4001
ROUNDING = 1e-9  # of a condition that holds
NEAR = 1e-3  # of a condition, over its scale: nearer than that to a border, a solution is neither counted nor excluded
PARALLEL = 1e-9
FACETS = 720  # of a sticking contact's cone


@dataclass
class Wedge:
    """c = J v + bias in every contact, three rows each: two tangents and the normal; M = 1."""

    J: np.ndarray  # (contacts, 3, dofs)
    bias: np.ndarray  # (contacts, 3)
    friction: np.ndarray
    v_free: np.ndarray

    @property
    def matrices(self):
        """(G, g, mu) of coulomb.ContactProblem."""
        rows = self.J.reshape(-1, self.J.shape[2])
        return rows @ rows.T, rows @ self.v_free + self.bias.ravel(), self.friction


def has_solution(wedge):
    """True, False, or None where a border is too near to tell."""
    found = [slack for slack in slacks(wedge) if slack > -NEAR]
    if any(slack >= NEAR for slack in found):
        return True
    return None if found else False


def slacks(wedge):
    """Of each set of modes and each velocity that satisfies its equations: the least of its inequalities, scaled."""
    for modes in product(("separating", "sticking", "sliding"), repeat=len(wedge.J)):
        sticking = [i for i, mode in enumerate(modes) if mode == "sticking"]
        sliding = [i for i, mode in enumerate(modes) if mode == "sliding"]
        apart = [i for i, mode in enumerate(modes) if mode == "separating"]
        for v, slack in motions(wedge, sticking, sliding):
            c = wedge.J @ v + wedge.bias
            scale = max(np.abs(wedge.J @ wedge.v_free + wedge.bias).max(), np.abs(c).max())
            yield min([slack, *(c[i, 2] / scale for i in apart), *(np.hypot(*c[i, :2]) / scale for i in sliding)])


def motions(wedge, sticking, sliding):
    """(v, least inequality of the impulses) of these modes."""
    none = np.zeros((0, wedge.J.shape[2]))
    rows = np.vstack([none, *(wedge.J[i] for i in sticking), *(wedge.J[i, 2:] for i in sliding)])
    asked = -np.concatenate([np.zeros(0), *(wedge.bias[i] for i in sticking), *(wedge.bias[i, 2:] for i in sliding)])
    if len(rows) == 0:
        yield wedge.v_free, np.inf
        return
    v = np.linalg.lstsq(rows, asked, rcond=None)[0]
    if np.abs(rows @ v - asked).max() > PARALLEL * max(1, np.abs(asked).max()):
        return
    free = np.linalg.svd(rows)[2][np.linalg.matrix_rank(rows) :]
    if len(free) == 0:
        yield v, held(wedge, v, sticking, sliding)
    elif len(sliding) == 1 and not sticking:
        yield from slides_on_one(wedge, sliding[0])
    elif len(free) == 1 and not sticking:
        yield from slides_along(wedge, v, free[0], sliding)
    else:
        raise NotImplementedError("more unknowns than these wedges have")


def held(wedge, v, sticking, sliding):
    """Are there impulses of these modes that lead to v? Positive: yes. Cones of sticking contacts have FACETS sides."""
    c = wedge.J @ v + wedge.bias
    sliders = [rays(wedge, i, c[i : i + 1, :2])[0] for i in sliding]
    impulse = v - wedge.v_free
    size = max(np.linalg.norm(impulse), PARALLEL)
    if not sticking and len(sliders) == len(v):
        pressures = np.linalg.solve(np.array(sliders).T, impulse)
        return pressures.min() / max(np.abs(pressures).max(), PARALLEL)
    angles = 2 * np.pi * np.arange(FACETS) / FACETS
    around = np.column_stack([np.cos(angles), np.sin(angles)])

    def left(share):
        cones = [wedge.J[i, 2] + share * wedge.friction[i] * around @ wedge.J[i, :2] for i in sticking]
        return nnls(np.vstack([*sliders, *cones]).T, impulse)[1] / size

    if left(1 - NEAR) < ROUNDING:
        return 1.0
    return -1.0 if left(1 + NEAR) > NEAR else 0.0


def roots(function, places):
    """Zeros of a function of one unknown between `places`, and where it all but has one. It takes arrays."""

    def one(place):
        return function(np.array([place]))[0]

    values = function(places)
    sizes = np.abs(values)
    changes = np.flatnonzero((values[:-1] == 0) | (values[:-1] * values[1:] < 0))
    for k in changes:
        apart = one(places[k]) * one(places[k + 1]) < 0  # else one of them is zero, up to rounding
        yield (brentq(one, places[k], places[k + 1], xtol=1e-15, rtol=1e-14) if apart else places[k]), True
    low = (sizes[1:-1] <= sizes[:-2]) & (sizes[1:-1] <= sizes[2:]) & (sizes[1:-1] < NEAR**2 * sizes.max())
    for k in np.flatnonzero(low) + 1:
        yield places[k], False


def rays(wedge, i, slips):
    """What moves along with friction against these slips (n, 2), for one unit of pressure: (n, dofs)."""
    lengths = np.maximum(np.linalg.norm(slips, axis=1), 1e-300)
    return wedge.J[i, 2] - wedge.friction[i] * (slips / lengths[:, None]) @ wedge.J[i, :2]


def slides_on_one(wedge, i):
    """One contact slides, against the angle that its friction has."""
    J, bias, free = wedge.J[i], wedge.bias[i], wedge.v_free
    before = J @ free + bias

    def slip(angles):
        """Directions, c times the normal velocity of one unit of pressure, and that velocity."""
        directions = np.column_stack([np.cos(angles), np.sin(angles)])
        along = rays(wedge, i, directions) @ J.T
        return directions, before * along[:, 2:] - before[2] * along, along[:, 2]

    def across(angles):
        directions, c, _ = slip(angles)
        return directions[:, 0] * c[:, 1] - directions[:, 1] * c[:, 0]

    for angle, exact in roots(across, np.linspace(0, 2 * np.pi, SAMPLES)):
        directions, (c,), (normal,) = slip(np.array([angle]))
        if abs(normal) < PARALLEL:
            continue
        pressure = -before[2] / normal
        slipping = directions[0] @ c[:2] / normal / max(np.abs(before).max(), np.abs(c / normal).max())
        slack = min(np.sign(pressure), slipping)
        yield free + pressure * rays(wedge, i, directions)[0], slack if exact else min(slack, 0)


def slides_along(wedge, v, along, sliding):
    """Contacts that slide together leave one motion free: v + tan(angle) along."""

    def parts(angles):
        # Times the cosine, so that nothing is infinite.
        moved = np.outer(np.cos(angles), v) + np.outer(np.sin(angles), along)
        slips = [moved @ wedge.J[i, :2].T + np.outer(np.cos(angles), wedge.bias[i, :2]) for i in sliding]
        each = [rays(wedge, i, slip) for i, slip in zip(sliding, slips, strict=True)]
        return moved - np.outer(np.cos(angles), wedge.v_free), np.stack(each, axis=1)

    def volume(angles):
        impulses, each = parts(angles)
        return np.linalg.det(np.concatenate([impulses[:, None], each], axis=1))

    # Directions turn fast where a slip is about to vanish.
    places = [np.linspace(-np.pi / 2, np.pi / 2, SAMPLES)[1:-1]]
    for i in sliding:
        slope = wedge.J[i, :2] @ along
        turn = np.arctan2(-slope @ (wedge.J[i, :2] @ v + wedge.bias[i, :2]), slope @ slope)
        turn = (turn + np.pi / 2) % np.pi - np.pi / 2
        near = turn + np.outer([-1, 1], np.geomspace(1e-9, 1e-2, 200)).ravel()
        places.append(near[np.abs(near) < np.pi / 2])
    for angle, exact in roots(volume, np.unique(np.concatenate(places))):
        (impulse,), (each,) = parts(np.array([angle]))
        pressures = np.linalg.lstsq(each.T, impulse, rcond=None)[0]
        slack = pressures.min() / max(np.abs(pressures).max(), PARALLEL)
        yield v + np.tan(angle) * along, slack if exact else min(slack, 0)


def frame(normal):
    """Two tangents and the normal, as rows."""
    tangent = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    tangent /= np.linalg.norm(tangent)
    return np.array([tangent, np.cross(normal, tangent), normal])


def random_wedge(random, dofs, contacts, deep=True):
    """A ball on slides between planes, or, one time in three, rows with any levers; asked to part where deep."""

    def unit():
        x = random.normal(size=3)
        return x / np.linalg.norm(x)

    if random.random() < 2 / 3:
        axes = np.array([unit() for _ in range(dofs)])
        root = np.linalg.cholesky(axes @ axes.T)
        J = np.array([frame(unit()) @ axes.T @ np.linalg.inv(root).T for _ in range(contacts)])
    else:
        J = random.normal(size=(contacts, 3, dofs))
    bias = np.zeros((contacts, 3))
    if deep:
        bias[:, 2] = -random.uniform(0.01, 0.2, contacts)
    v_free = random.normal(size=dofs) * (0.2 if random.random() < 0.5 else 0.0 if deep else 1.0)
    return Wedge(J, bias, random.uniform(0.2, 1.5, contacts), v_free)


def ball_on_slides(axes, normals, depths, friction, radius=0.1):
    """MJCF: a kilogram on slides along these axes, so deep in planes with these normals, without gravity."""
    slides = "".join(f'<joint type="slide" axis="{numbers(axis)}"/>' for axis in axes)
    planes = "".join(
        f'<geom name="plane {i}" type="plane" size="5 5 1" pos="{numbers((depth - radius) * normal)}" '
        f'zaxis="{numbers(normal)}" friction="{friction} 0 0" condim="3"/>'
        for i, (normal, depth) in enumerate(zip(normals, depths, strict=True))
    )
    return (
        f'<mujoco><option gravity="0 0 0"/><worldbody>{planes}<body name="ball">{slides}'
        f'<geom name="ball" type="sphere" size="{radius}" mass="1" friction="{friction} 0 0" condim="3"/>'
        "</body></worldbody></mujoco>"
    )


def numbers(values):
    return " ".join(f"{x:.17g}" for x in values)


def ball_between_planes(random, dofs, contacts, timestep=2e-3, baumgarte=0.1):
    """(model, q, v, wedge): a ball on slides, some millimetres deep in planes; the wedge is the problem of its step."""
    import coulomb

    axes = random.normal(size=(dofs, 3))
    normals = random.normal(size=(contacts, 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    depths = random.uniform(2e-4, 4e-3, contacts)
    friction = random.uniform(0.2, 1.5)
    model = coulomb.load(ball_on_slides(axes, normals, depths, friction))
    v = random.normal(size=dofs) * random.choice([0.0, 0.1])

    root = np.linalg.cholesky(axes @ axes.T)
    J = np.array([frame(normal) @ axes.T @ np.linalg.inv(root).T for normal in normals])
    bias = np.zeros((contacts, 3))
    bias[:, 2] = -baumgarte * depths / timestep
    return model, np.zeros(dofs), v, Wedge(J, bias, np.full(contacts, friction), root.T @ v)
