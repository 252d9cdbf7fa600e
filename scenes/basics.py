"""Rotations, slopes, and sums of contact impulses: what scenes with known answers are made of."""

import math

import numpy as np

import coulomb

GRAVITY = 9.81


def about(axis, angle):
    """Unit quaternion (w, x, y, z) of a rotation by angle (rad) about one of "x", "y", "z"."""
    q = np.zeros(4)
    q[0], q["xyz".index(axis) + 1] = math.cos(angle / 2), math.sin(angle / 2)
    return q


def rotation_matrix(quaternion):
    """(3, 3) of a unit quaternion (w, x, y, z)."""
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


class Slope:
    """A plane through the origin that falls along +x by `degrees`: its normal, the direction down it, and the attitude of a body on it."""

    def __init__(self, degrees):
        a = math.radians(degrees)
        self.angle = a
        self.normal = np.array([math.sin(a), 0.0, math.cos(a)])
        self.down = np.array([math.cos(a), 0.0, -math.sin(a)])
        self.quaternion = about("y", a)

    def scene(self, friction, **options):
        scene = coulomb.Scene(gravity=(0, 0, -GRAVITY), **options)
        scene.add_ground(friction=friction, normal=self.normal)
        return scene


def simulate(model, seconds, v=None, timestep=1e-3, **options):
    """A rollout from the neutral state with velocity v (default: rest); every step must have converged. Returns (simulator, rollout)."""
    sim = coulomb.Simulator(model, timestep, **options)
    q, rest = model.neutral()
    trajectory = sim.rollout(q, rest if v is None else np.asarray(v, dtype=float), steps=round(seconds / timestep))
    bad = [(i, s.reason) for i, s in enumerate(trajectory.status) if not s.converged]
    assert not bad, f"{len(bad)} steps did not converge, the first is {bad[0]}"
    return sim, trajectory


def force(sim, on, by=None):
    """Sum of the contact forces (N) on body `on` in the last step; by: only those of this body ("world" for scenery)."""
    total = np.zeros(3)
    for c in sim.contacts:
        for body, other, sign in ((c.body_a, c.body_b, 1), (c.body_b, c.body_a, -1)):
            if body == on and by in (None, other):
                total += sign * c.impulse
    return total / sim.timestep


def semi_implicit_distance(speed, deceleration, timestep):
    """How far a slide goes that loses `deceleration * timestep` of its speed each step and then stops: exact for the discrete step."""
    distance = 0.0
    while speed > 0:
        speed = max(0.0, speed - deceleration * timestep)
        distance += timestep * speed
    return distance
