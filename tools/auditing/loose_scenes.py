"""Random scenes of bodies that no joint holds: floors of tiles, near misses, what rolls and wobbles, heaps, throws, overlaps at the start.

Every function takes a numpy Generator and returns a Draft with the facts that are known of it.
"""

from __future__ import annotations

import copy
import math

import numpy as np

from .drafts import IDENTITY, Draft, Shape, about, any_quaternion

SHAPES = ("box", "sphere", "capsule", "cylinder", "ellipsoid", "mesh")
CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)


def log_uniform(random, low, high):
    return float(math.exp(random.uniform(math.log(low), math.log(high))))


def any_size(random, kind, s):
    """Sizes as MJCF has them, of about s."""
    sides = s * random.uniform(0.5, 1.2, 3)
    sizes = {"sphere": (s,), "capsule": sides[:2], "cylinder": sides[:2], "mesh": CUBE * sides}
    return sizes.get(kind, sides)


def stand_beside(draft, random, x):
    """In half of the scenes a box stands on the ground."""
    if random.random() < 0.5:
        draft.plane()
        draft.free("standing", "box", (0.1, 0.1, 0.1), 1.0, (x, 0, 0.1))
        draft.smooth = False


def tiles(random):
    """Bodies glide and roll over a floor of boxes side by side, some with steps of rounding, some between walls of boxes. Its twin has one slab."""
    draft = Draft(timestep=float(random.choice([1e-3, 2e-3])), horizon=0.8)
    rise = float(random.choice([0, 0, 1e-12, -1e-12, 1e-10, 1e-9, -1e-9]))
    length, friction = log_uniform(random, 0.1, 0.5), float(random.choice([0, 0, 0.2]))
    count = int(math.ceil(2.1 / length)) + 2  # longer than the fastest goes
    slab = [Shape("box", (2, 1, 0.1), (0.5, 0, -0.1), friction=friction, name="slab")]
    floor = []
    for k in range(count):
        at = (-0.35 + length * (k + 0.5), 0, -0.1 + rise * (k % 2))
        floor.append(Shape("box", (length / 2, 1, 0.1), at, friction=friction, name=f"tile{k}"))
    kind = str(random.choice(["box", "cylinder", "sphere", "mesh", "box"]))
    half = random.uniform(0.03, 0.08, 3)
    size = {"sphere": (half[2],), "cylinder": (half[0], half[2]), "mesh": CUBE * half}.get(kind, half)
    yaw = about((0, 0, 1), random.choice([0, 0, 0.3, 1.0]))
    speed = log_uniform(random, 0.2, 2.0)
    draft.free(
        "glider",
        kind,
        size,
        log_uniform(random, 0.2, 5),
        (0, 0, half[2]),
        yaw,
        (speed, 0, 0, 0, 0, 0),
        friction=friction,
    )

    # A wall of boxes along the way, touched at depth zero.
    if kind in ("box", "mesh") and yaw[0] == 1 and random.random() < 0.4:
        side = half[1] + 0.05
        slab.append(Shape("box", (2, 0.05, 0.1), (0.5, side, 0.1), friction=0, name="slab_wall"))
        floor += [
            Shape("box", (length / 2, 0.05, 0.1), (-0.35 + length * (k + 0.5), side, 0.1), friction=0, name=f"wall{k}")
            for k in range(count)
        ]
    draft.fixed = floor
    draft.twin = copy.deepcopy(draft)
    draft.twin.fixed = slab
    draft.twin_tolerance = 1e-5 + (0 if rise == 0 or abs(rise) < 1e-11 else 1e3 * abs(rise))
    return draft


def near_misses(random):
    """Bodies that go by others: through slots, above and beside blocks, past one another. Nothing touches, so nothing changes."""
    falls = random.random() < 0.3
    h = float(random.choice([5e-4, 1e-3, 2e-3]))
    draft = Draft(gravity=(0, 0, -9.81) if falls else (0, 0, 0), timestep=h, horizon=0.3, smooth=False)
    clearance, speed = log_uniform(random, 1e-5, 1e-2), log_uniform(random, 0.1, 4.0)
    friction = float(random.choice([0, 0.5]))
    along = np.array([0, 0, -1.0]) if falls else np.array([1.0, 0, 0])
    kind = str(random.choice(SHAPES))
    half = random.uniform(0.03, 0.08, 3)
    size = {"sphere": (half[0],), "capsule": half[:2], "cylinder": half[:2], "mesh": CUBE * half}.get(kind, half)

    # Its extent along y, lying with its axes along the world's.
    extent = {"sphere": half[0], "capsule": half[0], "cylinder": half[0]}.get(kind, half[1])
    start = -0.15 * along - random.uniform(0, speed * h) * along
    draft.free(
        "peg", kind, size, log_uniform(random, 0.1, 10), start, IDENTITY, (*(speed * along), 0, 0, 0), friction=friction
    )
    top = {"sphere": half[0], "capsule": half[0] + half[1], "cylinder": half[1]}.get(kind, half[2])
    block = np.array([0.1, 0.05, 0.1 if falls else 0.8 * top])
    for side in (1, -1)[: int(random.integers(1, 3))]:
        at = (0, side * (extent + clearance + block[1]), 0)
        draft.fixed.append(Shape("box", block, at, friction=friction, name=f"block{side}"))
    draft.untouched = ["peg"]

    # Another free body that comes along the other way, or stands in the way's side.
    if not falls and random.random() < 0.5:
        other = str(random.choice(SHAPES))
        sizes = {"sphere": (0.05,), "capsule": (0.05, 0.06), "cylinder": (0.05, 0.06), "mesh": CUBE * 0.05}
        up = {"capsule": 0.11, "cylinder": 0.06}.get(other, 0.05)
        velocity = (-random.choice([0, 1.0]) * speed, 0, 0, 0, 0, 0)
        draft.free(
            "passer",
            other,
            sizes.get(other, (0.05,) * 3),
            1.0,
            (0.1, 0, top + up + clearance),
            IDENTITY,
            velocity,
            friction=friction,
        )
        draft.untouched.append("passer")
    return draft


def rolling(random):
    """Balls with any spin, cans and coins on their rims, ellipsoids: on a plane or a slab, at rest on what they stand on or just above."""
    draft = Draft(timestep=float(random.choice([1e-3, 2e-3])), horizon=1.0)
    friction = float(random.choice([0.1, 0.3, 0.8]))
    if random.random() < 0.7:
        draft.plane(friction=friction)
    else:
        draft.fixed.append(Shape("box", (5, 5, 0.1), (0, 0, -0.1), friction=friction, name="slab"))
    kind = str(random.choice(["sphere", "cylinder", "coin", "ellipsoid", "capsule"]))
    s = random.uniform(0.04, 0.1)
    velocity = np.concatenate([random.normal(size=2) * 0.5, [0], random.normal(size=3) * 4])
    if kind == "sphere":
        q, size, height = any_quaternion(random), (s,), s
        draft.compare = 0.3
    elif kind in ("cylinder", "coin"):
        size = (s, s * random.uniform(0.8, 2)) if kind == "cylinder" else (s, 0.06 * s)
        tilt = float(random.choice([0, 0.02, 0.2, 0.7, math.pi / 2]))
        q = about((1, 0, 0), tilt)
        height = size[0] * math.sin(tilt) + size[1] * math.cos(tilt)
        kind = "cylinder"
    elif kind == "capsule":
        q, size, height = about((1, 0, 0), math.pi / 2), (s, 1.5 * s), s
    else:
        size = s * random.uniform(0.6, 1.4, 3)
        q, height = IDENTITY, size[2]
    draft.free("roller", kind, size, log_uniform(random, 0.05, 2), (0, 0, height), q, velocity, friction=friction)
    return draft


def drop(draft, random, k, width, speeds):
    """Adds body k of any shape, above those before it, within `width` of the middle. speeds: of its six velocities."""
    kind, s = str(random.choice(SHAPES)), random.uniform(0.04, 0.1)
    velocity = random.normal(size=6) * speeds
    position = (*random.uniform(-width, width, 2), 0.25 + 0.3 * k)
    friction = float(random.choice([0, 0.3, 0.8]))
    size, mass = any_size(random, kind, s), log_uniform(random, 0.1, 10)
    draft.free(f"body{k}", kind, size, mass, position, any_quaternion(random), velocity, friction=friction)


def heaps(random):
    """Bodies fall onto one another into a pit."""
    draft = Draft(timestep=float(random.choice([1e-3, 2e-3, 4e-3])), horizon=0.8, deepest=1e-2)
    draft.plane(friction=float(random.choice([0.2, 0.8])))
    if random.random() < 0.7:
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            draft.plane((x, y, 0.5), (-0.3 * x, -0.3 * y, 0), friction=0.3)
    for k in range(int(random.integers(2, 7))):
        drop(draft, random, k, 0.1, [0.3, 0.3, 0.3, 2, 2, 2])
    return draft


def terrain(random):
    """Bodies fall and roll onto boxes of any heights side by side."""
    draft = Draft(timestep=float(random.choice([1e-3, 2e-3, 4e-3])), horizon=0.8, deepest=1e-2)
    cell = log_uniform(random, 0.08, 0.3)
    rise = float(random.choice([1e-9, 1e-6, 1e-4, 0.01, 0.05]))
    for x in range(-2, 3):
        for y in range(-2, 3):
            at = (cell * x, cell * y, -0.2 + rise * random.uniform(-1, 1))
            draft.fixed.append(Shape("box", (cell / 2, cell / 2, 0.2), at, friction=0.6, name=f"cell{x}{y}"))
    for k in range(int(random.integers(1, 4))):
        drop(draft, random, k, cell, [1, 1, 0.3, 2, 2, 2])
    return draft


def fields(random):
    """Bodies fall and roll onto a height field of slopes and ridges, at its border, too."""
    draft = Draft(timestep=float(random.choice([1e-3, 2e-3, 4e-3])), horizon=0.8, deepest=1e-2)
    spacing, counts = log_uniform(random, 0.05, 0.3), random.integers(4, 12, 2)

    # Sums of a profile along each axis: flat cells. In 64ths, which no file format rounds, from 0 to 1.
    profiles = []
    for count in counts:
        profile = random.integers(0, 33, count) / 64
        profile[random.permutation(count)[:2]] = 0, 0.5
        profiles.append(profile)
    half = 0.5 * spacing * (counts - 1)
    rise = spacing * float(random.choice([1e-9, 1e-4, 0.1, 0.3]))
    size = (half[1], half[0], rise, profiles[0][:, None] + profiles[1])
    at = (*random.uniform(-half[::-1], half[::-1]), -rise)
    draft.fixed.append(Shape("hfield", size, at, friction=0.6, name="field"))
    for k in range(int(random.integers(1, 4))):
        drop(draft, random, k, 0.15, [1, 1, 0.3, 2, 2, 2])
    return draft


def stacks(random):
    """Boxes and cylinders that stand on one another, as built or a little turned; some pushed. They stay."""
    draft = Draft(timestep=float(random.choice([1e-3, 2e-3])), horizon=0.6, deepest=1e-5)
    draft.plane(friction=0.8)
    height = 0.0
    for k in range(int(random.integers(1, 5))):
        kind = str(random.choice(["box", "cylinder"]))
        half = random.uniform(0.03, 0.08, 3)
        size = (half[0], half[2]) if kind == "cylinder" else half
        yaw = about((0, 0, 1), random.choice([0, 0.5]))
        draft.free(f"block{k}", kind, size, log_uniform(random, 0.3, 3), (0, 0, height + half[2]), yaw, friction=0.8)
        height += 2 * half[2]
    draft.compare = 0.3
    draft.still = True
    return draft


def thrown(random):
    """Bodies that spin in free flight, and a box that stands far below."""
    draft = Draft(timestep=float(random.choice([1e-3, 2e-3, 4e-3])), horizon=1.5, smooth=True)
    if random.random() < 0.5:
        draft.gravity = (0, 0, 0)
    for k in range(int(random.integers(1, 3))):
        kind = str(random.choice(SHAPES))
        spin = random.normal(size=3) * log_uniform(random, 1, 40)
        velocity = (*random.normal(size=3), *spin)
        size = any_size(random, kind, random.uniform(0.05, 0.2))
        draft.free(
            f"thrown{k}", kind, size, log_uniform(random, 0.1, 10), (3.0 * k, 0, 40), any_quaternion(random), velocity
        )
        draft.untouched.append(f"thrown{k}")
    stand_beside(draft, random, 0)
    return draft


def collisions(random):
    """Bodies in empty space that fly into one another: momentum is kept."""
    draft = Draft(gravity=(0, 0, 0), timestep=2e-3, horizon=0.5, deepest=1e-2, isolated=True)
    kinds = ("sphere",) if random.random() < 0.3 else SHAPES
    count = int(random.integers(2, 5))
    for k in range(count):
        kind, x = str(random.choice(kinds)), 0.3 * (k - (count - 1) / 2)
        velocity = random.normal(size=6) * [0.2, 0.2, 0.2, 2, 2, 2]
        velocity[0] -= 4 * x
        size = any_size(random, kind, random.uniform(0.05, 0.1))
        friction = float(random.choice([0, 0.3]))
        draft.free(
            f"body{k}",
            kind,
            size,
            log_uniform(random, 0.3, 3),
            (x, *random.uniform(-0.03, 0.03, 2)),
            any_quaternion(random),
            velocity,
            friction=friction,
        )
    if random.random() < 0.3:
        middle = np.mean([draft.bodies[0].position, draft.bodies[1].position], axis=0)
        if random.random() < 0.5:
            draft.connects.append(("body0", "body1", middle))
        else:
            draft.welds.append(("body0", "body1"))
    return draft


def sliding(random):
    """Boxes and balls on slopes and in grooves."""
    draft = Draft(timestep=2e-3, horizon=0.6, deepest=1e-5)
    angle, friction = random.uniform(0, 0.6), float(random.choice([0, 0.2, 0.5, 0.9]))
    if random.random() < 0.3:
        normals = [(math.sin(s * 0.6), 0, math.cos(0.6)) for s in (-1, 1)]
        for n in normals:
            draft.plane(n, friction=friction)
        draft.free(
            "ball",
            "sphere",
            (0.08,),
            1.0,
            (0, 0, 0.08 / math.cos(0.6)),
            any_quaternion(random),
            (0, random.normal(), 0, 0, 0, 0),
            friction=friction,
        )
    else:
        n = np.array([math.sin(angle), 0, math.cos(angle)])
        draft.plane(n, friction=friction)
        half = random.uniform(0.04, 0.1, 3)
        velocity = (*(random.normal() * np.array([math.cos(angle), 0, -math.sin(angle)])), 0, 0, 0)
        draft.free(
            "box",
            "box",
            half,
            log_uniform(random, 0.2, 5),
            half[2] * n,
            about((0, 1, 0), angle),
            velocity,
            friction=friction,
        )
        tips = friction * half[2] > 0.6 * half[0]
        draft.compare = 0.0 if tips else 0.3
    return draft


def balls_on_balls(random):
    """A ball that rolls or slides off another one: it is in contact until it leaves."""
    draft = Draft(timestep=float(random.choice([2e-4, 2e-4, 1e-3])), horizon=0.4, deepest=1e-4, steady_contact=True)
    friction, r, R = float(random.choice([0, 0.3, 1])), random.uniform(0.05, 0.15), random.uniform(0.2, 0.6)
    draft.fixed.append(Shape("sphere", (R,), friction=friction, name="below"))
    angle = random.uniform(0.05, 0.4)
    at = (R + r) * np.array([math.sin(angle), 0, math.cos(angle)])
    draft.free("ball", "sphere", (r,), 1.0, at, any_quaternion(random), friction=friction)
    draft.compare = 0.3
    return draft


def overlaps(random):
    """Bodies that start in each other or in the ground: let out, not thrown."""
    draft = Draft(timestep=float(random.choice([1e-3, 2e-3])), horizon=3.0, deepest=1e-6)
    draft.plane(friction=0.6)
    depth, height = log_uniform(random, 1e-5, 0.02), 0.0
    for k in range(int(random.integers(1, 4))):
        half = random.uniform(0.04, 0.08, 3)
        half[:2] = half[:2].max()
        draft.free(
            f"block{k}", "box", half, log_uniform(random, 0.3, 3), (0, 0, height + half[2] - depth), friction=0.6
        )
        height += 2 * half[2] - depth
    return draft
