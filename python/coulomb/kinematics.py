"""How low bodies reach, for placing robots on the ground. Where bodies and geometries are: Model.body_placements and its kin."""

from __future__ import annotations

import numpy as np


def lowest_points(model, q, bodies):
    """The least height (m) of the geometries of each of these bodies at q; inf for a body without. Half-spaces do not count."""
    positions, turns = model.geometry_placements(q)
    types = model.geometry_types
    lowest = {int(body): np.inf for body in bodies}
    for geometry, body in enumerate(model.geometry_body):
        kind, size, up = types[geometry], model.geometry_size[geometry], turns[geometry, 2]
        if kind == "half_space" or int(body) not in lowest:
            continue
        if kind == "mesh":
            reach = -float((model.mesh_vertices(model.geometry_mesh[geometry]) @ up).min())
        else:
            around, along = np.hypot(up[0], up[1]), abs(up[2])
            reach = {
                "sphere": size[0],
                "capsule": size[0] + size[1] * along,
                "cylinder": size[0] * around + size[1] * along,
                "box": np.abs(up) @ size,
                "ellipsoid": np.linalg.norm(up * size),
            }[kind]
        lowest[int(body)] = min(lowest[int(body)], float(positions[geometry, 2] - reach))
    return [lowest[int(body)] for body in bodies]


def lowest_point(model, q):
    """The least height (m) of the geometries of the moving bodies at q; 0 if there are none. Half-spaces do not count."""
    lowest = min(lowest_points(model, q, range(1, model.num_bodies)), default=np.inf)
    return lowest if np.isfinite(lowest) else 0.0
