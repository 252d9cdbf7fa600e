"""Where bodies and geometries are, for pictures and tables. The step itself never comes here: its kinematics are in the core."""

from __future__ import annotations

import numpy as np


def rotation(quaternion):
    """(3, 3) rotation matrix of a unit quaternion (w, x, y, z)."""
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _turn(axis, angle):
    return rotation(np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * np.asarray(axis)]))


def body_frames(model, q):
    """Positions (num_bodies, 3) and rotations (num_bodies, 3, 3) of the bodies in the world, at q."""
    positions, rotations = np.zeros((model.num_bodies, 3)), np.tile(np.eye(3), (model.num_bodies, 1, 1))
    joints_of = {}
    for joint, body in enumerate(model.joint_body):
        joints_of.setdefault(int(body), []).append(joint)
    types = model.joint_types
    for body in range(1, model.num_bodies):
        parent = model.body_parent[body]
        position = positions[parent] + rotations[parent] @ model.body_pos[body]
        turn = rotations[parent] @ rotation(model.body_quat[body])
        for joint in joints_of.get(body, []):
            first, axis, anchor = model.joint_q[joint], model.joint_axis[joint], model.joint_pos[joint]
            if types[joint] == "free":
                position, turn = q[first : first + 3], rotation(q[first + 3 : first + 7])
            elif types[joint] == "slide":
                position = position + turn @ axis * (q[first] - model.q_neutral[first])
            else:
                fixed_point = position + turn @ anchor
                hinge = types[joint] == "hinge"
                turn = turn @ (
                    _turn(axis, q[first] - model.q_neutral[first]) if hinge else rotation(q[first : first + 4])
                )
                position = fixed_point - turn @ anchor
        positions[body], rotations[body] = position, turn
    return positions, rotations


def energy(model, q, v, gravity=None):
    """Kinetic and potential energy (J) of the bodies at (q, v); springs and rotor inertias left out."""
    gravity = np.asarray(model.gravity if gravity is None else gravity)
    centres, turns = _centres(model, q)
    dt = 1e-6
    after, turned = _centres(model, model.integrate(q, dt * np.asarray(v)))
    before, turned_back = _centres(model, model.integrate(q, -dt * np.asarray(v)))
    kinetic = 0.0
    for body in range(1, model.num_bodies):
        velocity = (after[body] - before[body]) / (2 * dt)
        spin = turned[body] @ turned_back[body].T
        omega = np.array([spin[2, 1] - spin[1, 2], spin[0, 2] - spin[2, 0], spin[1, 0] - spin[0, 1]]) / (4 * dt)
        xx, xy, yy, xz, yz, zz = model.body_inertia[body]
        inertia = turns[body] @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turns[body].T
        kinetic += 0.5 * model.body_mass[body] * velocity @ velocity + 0.5 * omega @ inertia @ omega
    return kinetic, -float(model.body_mass @ (centres @ gravity))


def _centres(model, q):
    positions, turns = body_frames(model, q)
    return positions + np.einsum("bij,bj->bi", turns, model.body_com), turns


def lowest_points(model, q, bodies):
    """The least height (m) of the geometries of each of these bodies at q; inf for a body without. Half-spaces do not count."""
    positions, turns = body_frames(model, q)
    lowest = {int(body): np.inf for body in bodies}
    for geometry, body in enumerate(model.geometry_body):
        kind, size = model.geometry_types[geometry], model.geometry_size[geometry]
        if kind == "half_space" or int(body) not in lowest:
            continue
        up = (turns[body] @ rotation(model.geometry_quat[geometry]))[2]
        height = (positions[body] + turns[body] @ model.geometry_pos[geometry])[2]
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
        lowest[int(body)] = min(lowest[int(body)], float(height - reach))
    return [lowest[int(body)] for body in bodies]


def lowest_point(model, q):
    """The least height (m) of the geometries of the moving bodies at q; 0 if there are none. Half-spaces do not count."""
    lowest = min(lowest_points(model, q, range(1, model.num_bodies)), default=np.inf)
    return lowest if np.isfinite(lowest) else 0.0
