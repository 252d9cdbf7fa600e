"""How low bodies reach, and poses in which robots stand on the ground. Where bodies and geometries are: Model.body_placements and its kin."""

from __future__ import annotations

import numpy as np


def _reach(model, geometry, direction):
    """How far a geometry reaches from its origin along a unit direction (3,) of its own frame, m."""
    kind, size = model.geometry_types[geometry], model.geometry_size[geometry]
    if kind == "mesh":
        return float((model.mesh_vertices(model.geometry_mesh[geometry]) @ direction).max())
    around, along = np.hypot(direction[0], direction[1]), abs(direction[2])
    return float(
        {
            "sphere": size[0],
            "capsule": size[0] + size[1] * along,
            "cylinder": size[0] * around + size[1] * along,
            "box": np.abs(direction) @ size,
            "ellipsoid": np.linalg.norm(direction * size),
        }[kind]
    )


def lowest_points(model, q, bodies):
    """The least height (m) of the geometries of each of these bodies at q; inf for a body without. Half-spaces do not count."""
    positions, turns = model.geometry_placements(q)
    lowest = {int(body): np.inf for body in bodies}
    for geometry, body in enumerate(model.geometry_body):
        if model.geometry_types[geometry] in ("half_space", "surface") or int(body) not in lowest:
            continue
        height = positions[geometry, 2] - _reach(model, geometry, -turns[geometry, 2])
        lowest[int(body)] = min(lowest[int(body)], float(height))
    return [lowest[int(body)] for body in bodies]


def lowest_point(model, q):
    """The least height (m) of the geometries of the moving bodies at q; 0 if there are none. Half-spaces do not count."""
    lowest = min(lowest_points(model, q, range(1, model.num_bodies)), default=np.inf)
    return lowest if np.isfinite(lowest) else 0.0


def _free_joints_of_bodies(model):
    """For each body the free joint that carries its tree, or -1: the tree hangs on the world by another joint, or is fixed."""
    carriers = np.full(model.num_bodies, -1)
    free = {int(model.joint_body[j]): j for j, kind in enumerate(model.joint_types) if kind == "free"}
    for body in range(1, model.num_bodies):
        parent = int(model.body_parent[body])
        carriers[body] = free.get(body, carriers[parent])
    return carriers


def _moving_bodies(model):
    """(num_bodies,) bool: those that a joint carries."""
    moves = np.zeros(model.num_bodies, dtype=bool)
    moves[np.asarray(model.joint_body, dtype=int)] = True
    for body in range(1, model.num_bodies):
        moves[body] |= moves[model.body_parent[body]]
    return moves


_LEVEL = 1e-3  # cosine: half-spaces that lean by more than 89.9 degrees are walls


def _up(model):
    """The direction (3,) against gravity; without gravity z."""
    gravity = np.linalg.norm(model.gravity)
    return -model.gravity / gravity if gravity > 0 else np.array([0.0, 0.0, 1.0])


def _ground(model):
    """The fixed half-space whose plane is the most level, or None."""
    up = _up(model)
    _, turns = model.geometry_placements(model.q_neutral)
    kinds = enumerate(model.geometry_types)
    planes = [g for g, kind in kinds if kind == "half_space" and turns[g, :, 2] @ up > _LEVEL]
    return max(planes, key=lambda g: turns[g, :, 2] @ up, default=None)


_TOUCH = 1e-9  # m: overlaps that are rounding


def _resting_shift(blocked):
    """Where a tree goes from 0 that is blocked for shifts in these intervals [(low, high), ...]; 0 where nothing is beneath it."""
    merged = []
    for low, high in sorted(blocked):
        if merged and low < merged[-1][1] + _TOUCH:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    beneath = [high for low, high in merged if low < -_TOUCH or high <= _TOUCH]
    return beneath[-1] if beneath and np.isfinite(beneath[-1]) else 0.0


def rest_pose(model, q=None, clearance=0.0):
    """Result of Model.rest_pose."""
    q = model.neutral()[0] if q is None else model.normalize(q)
    if q.ndim == 2:
        return np.array([rest_pose(model, row, clearance) for row in q]).reshape(q.shape)
    clearance = float(clearance)
    if not np.isfinite(clearance):
        raise ValueError(f"clearance: got {clearance}, must be a finite number (m)")
    carriers = _free_joints_of_bodies(model)
    moves = _moving_bodies(model)
    if all(moves[body] for body in model.geometry_body):
        raise ValueError(
            "rest_pose: the model has no half-space or other scenery to rest on; add one (Scene.add_ground, or ground=True of "
            "coulomb.load), or set the height of the base in q"
        )
    ground = _ground(model)
    positions, turns = model.geometry_placements(q)
    up = _up(model) if ground is None else turns[ground, :, 2]

    # Which shifts of each tree are blocked: by the ground, of which the gap is exact, and by all else that is fixed.
    blocked = {}
    pairs = list(zip(model.pair_a, model.pair_b, strict=True))
    for a, b in pairs:
        if ground is None or ground not in (a, b):
            continue
        geometry = int(b if a == ground else a)
        joint = int(carriers[model.geometry_body[geometry]])
        if joint >= 0:
            height = (positions[geometry] - positions[ground]) @ up
            gap = height - _reach(model, geometry, -turns[geometry].T @ up)
            blocked.setdefault(joint, []).append((-np.inf, clearance - gap))
    for pair, low, high in model._blocked_shifts(q, np.ascontiguousarray(up)):
        a, b = pairs[int(pair)]
        joint = int(carriers[model.geometry_body[int(a if moves[model.geometry_body[a]] else b)]])
        if joint >= 0 and ground not in (a, b):
            blocked.setdefault(joint, []).append((low - clearance, high + clearance))

    # Each tree by itself.
    for joint, intervals in blocked.items():
        first = int(model.joint_q[joint])
        q[first : first + 3] += _resting_shift(intervals) * up
    return q
