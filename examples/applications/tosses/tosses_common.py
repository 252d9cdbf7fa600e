"""The recorded tosses: how they are split, what their free flights say, where each one starts, and how far off a prediction is.

Lengths are those of the track, which are about 2 % short (free_flight): so is the cube, of which HALF is half of what its centre is above the
table at rest.
"""

from pathlib import Path

import numpy as np

PERIOD = 1 / 148  # s between rows
HALF = 0.05124  # m, as tracked; resting_height measures it
WIDTH = 0.1048  # m, published: errors are shares of it
MASS = 0.37  # kg
SIGNS = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
LONGEST_FLIGHT = 25  # rows that the start of a toss is taken from, at most


class Toss:
    """One toss: q (rows, 7), x y z and quaternion w x y z; v0 (6,): its first velocities as they were published."""

    def __init__(self, index, q, v0):
        self.index, self.q, self.v0 = index, q, v0
        self.R = rotations(q[:, 3:])
        corners = q[:, 2, None] + self.R[:, 2] @ (HALF * SIGNS).T
        self.corner_heights = corners
        below = corners.min(axis=1) < 0
        self.touch = (
            max(4, int(np.argmax(below))) if below.any() else len(q)
        )  # the first row with a corner of a sharp cube below


def load(path=None):
    data = np.load(path or Path(__file__).with_name("cube_tosses.npz"))
    q = np.cumsum(data["steps"], axis=1, dtype=np.int64).T * np.r_[[1e-6] * 3, [1e-5] * 4]
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    start = data["start"]
    return [Toss(k, q[start[k] : start[k + 1]], data["v"][k]) for k in range(len(start) - 1)]


def split(tosses):
    """Training, validation and test tosses, by a rule that was fixed before any model was fitted: the index modulo 4."""
    parts = {"train": (0, 1), "validation": (2,), "test": (3,)}
    return {name: [toss for toss in tosses if toss.index % 4 in rest] for name, rest in parts.items()}


# Rotations


def rotations(quaternions):
    """(..., 3, 3) from w x y z."""
    w, x, y, z = np.moveaxis(quaternions, -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, -1) for row in rows], -2)


def product(a, b):
    """Of quaternions (..., 4)."""
    real = a[..., :1] * b[..., :1] - np.sum(a[..., 1:] * b[..., 1:], axis=-1, keepdims=True)
    rest = a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:] + np.cross(a[..., 1:], b[..., 1:])
    return np.concatenate([real, rest], axis=-1)


def turned(vectors):
    """Quaternions of rotation vectors (..., 3)."""
    angle = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.concatenate([np.cos(angle / 2), 0.5 * np.sinc(angle / (2 * np.pi)) * vectors], axis=-1)


def between(a, b):
    """Rotation vectors in world axes that take a to b, of angles up to pi."""
    d = product(b, a * np.array([1, -1, -1, -1]))
    d = d * np.where(d[..., :1] < 0, -1, 1)
    sine = np.linalg.norm(d[..., 1:], axis=-1, keepdims=True)
    return d[..., 1:] * np.where(sine > 1e-12, 2 * np.arctan2(sine, d[..., :1]) / np.maximum(sine, 1e-12), 2)


# What free flights say


def free_flight(tosses):
    """Gravity and centre of mass (3,) from the flights alone, with their standard errors (4,).

    The centre of mass flies a parabola: c(t) + R(t) com = a + b t - (0, 0, g) t^2 / 2, linear in a, b of each toss and in g, com of them all.
    """
    blocks, sides = [], []
    for toss in tosses:
        rows = min(toss.touch, LONGEST_FLIGHT)
        if rows < 6:
            continue
        t = PERIOD * np.arange(rows)
        own = np.kron(np.stack([np.ones(rows), t], axis=1), np.eye(3))  # (3 rows, 6): a and b
        common = np.column_stack([np.kron(-0.5 * t**2, [0, 0, 1]), -toss.R[:rows].reshape(-1, 3)])
        Q = np.linalg.qr(own)[0]
        blocks.append(common - Q @ (Q.T @ common))
        side = toss.q[:rows, :3].ravel()
        sides.append(side - Q @ (Q.T @ side))

    # g and the centre of mass, a and b of every toss eliminated; then without the tosses that something else has touched.
    kept = np.full(len(blocks), True)
    for _ in range(3):
        A = np.concatenate([block for block, keep in zip(blocks, kept) if keep])
        y = np.concatenate([side for side, keep in zip(sides, kept) if keep])
        x = np.linalg.lstsq(A, y, rcond=None)[0]
        left = np.array([np.sqrt(np.mean((block @ x - side) ** 2)) for block, side in zip(blocks, sides)])
        kept = left < 3 * np.median(left)
    variance = np.sum((A @ x - y) ** 2) / (len(y) - 6 * kept.sum() - 4)
    return x[0], x[1:], np.sqrt(variance * np.diag(np.linalg.inv(A.T @ A)))


def resting_height(tosses):
    """Median height of the centre at the end of the tosses that lie flat."""
    return np.median([toss.q[-1, 2] for toss in tosses if np.abs(toss.R[-1, 2]).max() > 0.9999])


class Flight:
    """Least squares on a free flight: a parabola of the centre of mass, a constant angular velocity in world axes."""

    def __init__(self, q, gravity, com):
        self.gravity, self.com, self.rows = gravity, com, len(q)
        t = PERIOD * np.arange(len(q))
        line = np.stack([np.ones(len(q)), t], axis=1)
        centre = q[:, :3] + rotations(q[:, 3:]) @ com + 0.5 * gravity * t[:, None] ** 2 * np.array([0, 0, 1])
        self.a, self.b = np.linalg.lstsq(line, centre, rcond=None)[0]

        # The rotation likewise, about that of the first row.
        self.quaternion, self.omega = q[0, 3:], np.zeros(3)
        for _ in range(5):
            left = between(product(turned(self.omega * t[:, None]), self.quaternion), q[:, 3:])
            turn, faster = np.linalg.lstsq(line, left, rcond=None)[0]
            self.quaternion, self.omega = product(turned(turn), self.quaternion), self.omega + faster

    def state(self, row):
        """(q, v) at a row, in Coulomb's coordinates: of the middle of the cube, angular velocity in body axes."""
        t = PERIOD * row
        quaternion = product(turned(self.omega * t), self.quaternion)
        R = rotations(quaternion)
        down = np.array([0, 0, self.gravity])
        centre, velocity = self.a + self.b * t - 0.5 * down * t**2, self.b - down * t
        v = velocity - np.cross(self.omega, R @ self.com)
        return np.r_[centre - R @ self.com, quaternion], np.r_[v, R.T @ self.omega]


def start(toss, gravity, com, row=0):
    """(q, v) at a row of the flight before the first touch."""
    first = max(0, toss.touch - LONGEST_FLIGHT) if row else 0
    rows = min(toss.touch, first + LONGEST_FLIGHT)
    return Flight(toss.q[first:rows], gravity, np.asarray(com)).state(row - first)


# How far off


def errors(tosses, predictions):
    """(tosses, 2): mean over the toss of the position's error in % of the width, and of the rotation's in degrees."""
    out = []
    for toss, q in zip(tosses, predictions):
        away = np.linalg.norm(q[:, :3] - toss.q[:, :3], axis=1) / WIDTH
        turn = np.linalg.norm(between(toss.q[:, 3:], q[:, 3:]), axis=1)
        out.append((100 * away.mean(), np.degrees(turn).mean()))
    return np.array(out)


def mean_of(predictions):
    """Of several predictions of every toss, the mean: of positions, and of rotations the quaternion nearest to all."""
    out = []
    for paths in zip(*predictions):
        paths = np.array(paths)
        moments = np.einsum("nti,ntj->tij", paths[..., 3:], paths[..., 3:])
        out.append(np.column_stack([paths[..., :3].mean(axis=0), np.linalg.eigh(moments)[1][:, :, -1]]))
    return out


def paired_bootstrap(ours, theirs, samples=10000):
    """Mean of theirs - ours over tosses, and its 95 % interval."""
    difference = theirs - ours
    draws = np.random.default_rng(0).integers(len(difference), size=(samples, len(difference)))
    return difference.mean(), *np.percentile(difference[draws].mean(axis=1), [2.5, 97.5])


# What impacts on one corner say by themselves


def flights(toss):
    """(first, end) rows of the flights of a toss: no corner of a sharp cube within half a millimetre of the table."""
    free = np.r_[False, toss.corner_heights.min(axis=1) > 0.0005, False]
    ends = np.flatnonzero(np.diff(free.astype(int))).reshape(-1, 2)
    return [(a, b) for a, b in ends if b - a >= 4]


def impacts(tosses, gravity, com, rounding):
    """Impacts on one corner between two flights, (n, 4): friction over normal impulse, angle by which the sliding turns in the impact,
    speed of approach, and how deep the corner of a sharp cube is below the table where the two flights meet.
    """
    out = []
    for toss in tosses:
        known = flights(toss)
        for (a, b), (c, d) in zip(known, known[1:]):
            if c - b > 3:
                continue
            before = Flight(toss.q[max(a, b - 14) : b], gravity, com)
            after = Flight(toss.q[c : min(d, c + 14)], gravity, com)
            meeting = meet(before, after, b - max(a, b - 14), b - c)
            if meeting is not None:
                out.append(impact(*meeting, com, rounding))
    return np.array([x for x in out if x is not None])


def meet(before, after, row_before, row_after):
    """The two states (centre of mass, velocity, rotation, angular velocity) where the centres come nearest, if they meet."""

    def at(flight, row):
        q, v = flight.state(row)
        R = rotations(q[3:])
        omega = R @ v[3:]
        return q[:3] + R @ flight.com, v[:3] + np.cross(omega, R @ flight.com), q[3:], omega

    (x0, v0, *_), (x1, v1, *_) = at(before, row_before), at(after, row_after)
    slower = v0 - v1
    shift = (x1 - x0) @ slower / (slower @ slower) / PERIOD
    first, second = at(before, row_before + shift), at(after, row_after + shift)
    apart = np.linalg.norm(first[0] - second[0])
    turned_by = np.linalg.norm(between(first[2], second[2]))
    return (first, second) if apart < 3e-4 and turned_by < 0.01 else None


def impact(before, after, com, rounding):
    x, v0, quaternion, w0 = before
    _, v1, _, w1 = after
    R = rotations(quaternion)
    heights = x[2] + (HALF * SIGNS - com) @ R[2]
    corner, next_one = np.argsort(heights)[:2]
    if heights[next_one] - heights[corner] < 0.004:
        return None

    # Impulse per mass, and how the touching point slides before and after.
    arm = R @ (SIGNS[corner] * (HALF - rounding) - com) - np.array([0, 0, rounding])
    impulse = v1 - v0
    slip0, slip1 = v0 + np.cross(w0, arm), v1 + np.cross(w1, arm)
    sizes = np.linalg.norm(slip0[:2]) * np.linalg.norm(slip1[:2])
    turn = np.degrees(np.arccos(np.clip(slip0[:2] @ slip1[:2] / sizes, -1, 1)))
    return np.linalg.norm(impulse[:2]) / impulse[2], turn, -slip0[2], -heights[corner]
