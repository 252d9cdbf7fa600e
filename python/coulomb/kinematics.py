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


def _ground(model):
    """The fixed half-space whose plane is the most level, or None."""
    up = -model.gravity if model.gravity.any() else np.array([0.0, 0.0, 1.0])
    planes = [g for g, kind in enumerate(model.geometry_types) if kind == "half_space"]
    _, turns = model.geometry_placements(model.q_neutral)
    return max(planes, key=lambda g: turns[g, :, 2] @ up, default=None)


def rest_pose(model, q=None, clearance=0.0):
    """Result of Model.rest_pose."""
    q = model.neutral()[0] if q is None else model.normalize(q)
    if q.ndim == 2:
        return np.array([rest_pose(model, row, clearance) for row in q]).reshape(q.shape)
    clearance = float(clearance)
    if not np.isfinite(clearance):
        raise ValueError(f"clearance: got {clearance}, must be a finite number (m)")
    ground = _ground(model)
    if ground is None:
        raise ValueError(
            "rest_pose: the model has no half-space to rest on; add one (Scene.add_ground, or ground=True of coulomb.load), or set "
            "the height of the base in q"
        )

    # The geometries that may touch the ground: how far is each from its plane?
    carriers = _free_joints_of_bodies(model)
    positions, turns = model.geometry_placements(q)
    normal = turns[ground, :, 2]
    gaps = {}
    for a, b in zip(model.pair_a, model.pair_b, strict=True):
        if ground not in (a, b):
            continue
        geometry = int(b if a == ground else a)
        joint = int(carriers[model.geometry_body[geometry]])
        if joint < 0:
            continue
        height = (positions[geometry] - positions[ground]) @ normal
        gap = height - _reach(model, geometry, -turns[geometry].T @ normal)
        gaps[joint] = min(gaps.get(joint, np.inf), gap)

    # Each tree along the normal, by what it lacks or has too much.
    for joint, gap in gaps.items():
        first = int(model.joint_q[joint])
        q[first : first + 3] += (clearance - gap) * normal
    return q
