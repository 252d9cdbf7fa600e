"""The shapes of bodies in the browser: shapes with the same triangles are instances of one mesh, over bodies and environments.

A frame is then a few messages, however many bodies and environments there are: one array of positions and one of turns for each mesh.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .meshes import SIDES, primitive
from .poses import matrices, quaternions

GROUND = "half_space"


def placements(model, Q):
    """(n, num_bodies, 3) and (n, num_bodies, 3, 3) of the body frames at Q (n, nq)."""
    found = [model.body_placements(q) for q in Q]
    return np.stack([p for p, _ in found]), np.stack([R for _, R in found])


@dataclass
class _Group:
    """Instances of one mesh: k shapes in each of n environments."""

    handle: object
    bodies: np.ndarray  # (k,)
    positions: np.ndarray  # (k, 3), in the body
    turns: np.ndarray  # (k, 3, 3), in the body
    shown: tuple


class Bodies:
    """Draws `visuals` under the scene node `root`, once for each offset (n, 3)."""

    def __init__(self, scene, root, visuals, offsets, decimals, opacity=1.0):
        self.offsets = offsets
        self.decimals = decimals
        self.groups = []
        alike: dict = {}
        for visual in visuals:
            if visual.kind != GROUND:
                vertices, faces, scale = triangles_of(visual)
                seen = opacity * visual.rgba[3]
                flat = visual.kind in ("box", "mesh")
                key = (vertices.tobytes(), faces.tobytes(), flat, seen)
                alike.setdefault(key, (vertices, faces, []))[2].append((visual, scale))
        for number, ((_, _, flat, seen), (vertices, faces, members)) in enumerate(alike.items()):
            first = members[0][0]
            self.groups.append(
                self._group(scene, f"{root}/{number}_{_node(first.name)}", vertices, faces, members, flat, seen)
            )

    def _group(self, scene, node, vertices, faces, members, flat, seen):
        n, k = len(self.offsets), len(members)
        colours = np.array([visual.rgba[:3] for visual, _ in members])
        handle = scene.add_batched_meshes_simple(
            node,
            vertices,
            faces,
            batched_wxyzs=np.tile([1.0, 0, 0, 0], (n * k, 1)),
            batched_positions=np.zeros((n * k, 3)),
            batched_scales=np.tile(np.array([scale for _, scale in members]), (n, 1)),
            batched_colors=np.tile(np.round(255 * np.clip(colours, 0, 1)).astype(np.uint8), (n, 1)),
            opacity=None if seen >= 1 else seen,
            flat_shading=flat,
            side="double" if flat else "front",
            lod="auto" if n * k > 64 else "off",
            receive_shadow=False,  # of themselves they would be striped
        )
        return _Group(
            handle,
            np.array([visual.body for visual, _ in members]),
            np.array([visual.position for visual, _ in members]),
            matrices([visual.quaternion for visual, _ in members]),
            (),
        )

    def place(self, positions, turns):
        """Body frames (n, num_bodies, 3), (n, num_bodies, 3, 3), before offsets."""
        positions = positions + self.offsets[:, None]
        for group in self.groups:
            R = turns[:, group.bodies]
            p = positions[:, group.bodies] + (R @ group.positions[..., None])[..., 0]
            wxyz = quaternions(R @ group.turns)

            # Digits that nobody sees are not sent: what rests costs nothing, and pages stay small.
            p = np.round(p.reshape(-1, 3), self.decimals).astype(np.float32) + np.float32(0)
            wxyz = np.round(wxyz.reshape(-1, 4), 4).astype(np.float32) + np.float32(0)
            shown = p.tobytes(), wxyz.tobytes()
            if shown == group.shown:
                continue
            group.handle.batched_positions = p
            group.handle.batched_wxyzs = wxyz
            group.shown = shown

    def show(self, visible):
        for group in self.groups:
            group.handle.visible = visible

    def remove(self):
        for group in self.groups:
            group.handle.remove()


def triangles_of(visual, sides=SIDES):
    """(vertices, faces, scale) of one shape; sides: of what is round."""
    if visual.kind == "mesh":
        return np.asarray(visual.vertices, np.float32), np.asarray(visual.faces, np.uint32), np.ones(3)
    vertices, faces, scale = primitive(visual.kind, np.asarray(visual.size, dtype=float), sides)
    return np.asarray(vertices, np.float32), np.asarray(faces, np.uint32), scale


def _node(name):
    """A name without what the scene tree would take for a level."""
    return name.replace("/", "_")


def extent(visuals, positions, turns):
    """(low, high) corners of all shapes but half-spaces, body frames as in Bodies.place; a metre around the origin without any."""
    clouds = []
    for visual in visuals:
        if visual.kind == GROUND:
            continue
        vertices, _, scale = triangles_of(visual)
        local = (vertices * scale) @ matrices(visual.quaternion).T + visual.position
        R, p = turns[:, visual.body], positions[:, visual.body]
        clouds.append(np.einsum("nij,vj->nvi", R, local).reshape(-1, 3) + np.repeat(p, len(local), axis=0))
    if not clouds:
        return -np.ones(3), np.ones(3)
    low = np.min([cloud.min(0) for cloud in clouds], axis=0)
    return low, np.max([cloud.max(0) for cloud in clouds], axis=0)


def side_by_side(n, extent_of_one, spacing):
    """(n, 3): environments in rows on the ground."""
    if spacing is None:
        spacing = 1.25 * float(max(extent_of_one[:2]))
    columns = int(np.ceil(np.sqrt(n)))
    index = np.arange(n)
    return np.stack([index // columns * spacing, index % columns * spacing, np.zeros(n)], axis=1)
