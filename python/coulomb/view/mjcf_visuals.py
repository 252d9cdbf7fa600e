"""The geoms of a compiled MJCF model, those that do not collide too, as they look in MuJoCo's own viewer."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np

from ..scene import Scene
from .meshes import simplified
from .visuals import Visual

LAST_SHOWN_GROUP = (
    2  # MuJoCo's viewers hide groups 3, 4, 5: by convention the collision shapes of robots that have others
)


@dataclass(frozen=True)
class MjcfVisuals:
    """Visuals of every geom that is shown, with the index of its body in the file: of models that are no file and can not be read again."""

    geoms: tuple

    def read(self, model, part):
        """The robot's Visuals: the file's bodies follow one another, its world is the model's."""
        shift = part.first_body - 1
        return [replace(visual, body=visual.body + shift if visual.body else 0) for visual in self.geoms]


@dataclass(frozen=True)
class MjcfFile:
    """Where a robot was read from: read again when its visuals are asked for."""

    path: str

    @classmethod
    def of(cls, path):
        """Found again from another working folder."""
        return cls(os.path.abspath(path))

    def read(self, model, part):
        """The robot's Visuals. FileNotFoundError, ValueError: name the file."""
        from ..mjcf import compile_mjcf

        if not os.path.isfile(self.path):
            raise FileNotFoundError(
                f"MJCF {self.path!r}: the file that the model was read from no longer exists, so its visuals cannot be read"
            )
        compiled = compile_mjcf(self.path)
        if compiled.nbody - 1 != part.num_bodies:
            raise ValueError(
                f"MJCF {self.path!r}: has {compiled.nbody - 1} bodies, the model {part.num_bodies}; was the file changed since?"
            )
        return mjcf_visuals(compiled).read(model, part)


def mjcf_visuals(compiled):
    """MjcfVisuals of a ``mujoco.MjModel``. Geoms that are all transparent are left out.

    A file that has no geom of a body in the groups that are shown keeps them all in the others: then these are shown.
    """
    import mujoco

    kinds = {
        mujoco.mjtGeom.mjGEOM_PLANE: "half_space",
        mujoco.mjtGeom.mjGEOM_SPHERE: "sphere",
        mujoco.mjtGeom.mjGEOM_CAPSULE: "capsule",
        mujoco.mjtGeom.mjGEOM_ELLIPSOID: "ellipsoid",
        mujoco.mjtGeom.mjGEOM_CYLINDER: "cylinder",
        mujoco.mjtGeom.mjGEOM_BOX: "box",
        mujoco.mjtGeom.mjGEOM_MESH: "mesh",
        mujoco.mjtGeom.mjGEOM_HFIELD: "field",
    }
    shown = compiled.geom_group <= LAST_SHOWN_GROUP
    if not (shown & (compiled.geom_bodyid > 0)).any():
        shown[:] = True
    meshes: dict = {}
    found = []
    for geom in range(compiled.ngeom):
        kind = kinds.get(mujoco.mjtGeom(int(compiled.geom_type[geom])))
        rgba = _rgba(compiled, geom)
        if kind is None or rgba[3] == 0 or not shown[geom]:
            continue
        vertices = faces = None
        if kind == "mesh":
            mesh = int(compiled.geom_dataid[geom])
            if mesh not in meshes:
                meshes[mesh] = _mesh(compiled, mesh)
            vertices, faces = meshes[mesh]
        if kind == "field":
            kind, (vertices, faces) = "mesh", _field(compiled, int(compiled.geom_dataid[geom]))
        found.append(
            Visual(
                compiled.geom(geom).name or f"geom{geom}",
                int(compiled.geom_bodyid[geom]),
                kind,
                np.array(compiled.geom_size[geom]),
                np.array(compiled.geom_pos[geom]),
                np.array(compiled.geom_quat[geom]),
                rgba,
                vertices,
                faces,
            )
        )
    return MjcfVisuals(tuple(found))


def _mesh(compiled, mesh):
    first, count = compiled.mesh_vertadr[mesh], compiled.mesh_vertnum[mesh]
    vertices = np.array(compiled.mesh_vert[first : first + count], dtype=float)
    first, count = compiled.mesh_faceadr[mesh], compiled.mesh_facenum[mesh]
    return simplified(vertices, np.array(compiled.mesh_face[first : first + count], dtype=int))


def _field(compiled, field):
    """The triangles of a height field, as they collide."""
    rows, columns = int(compiled.hfield_nrow[field]), int(compiled.hfield_ncol[field])
    half_x, half_y, top, base = (float(x) for x in compiled.hfield_size[field])
    first = int(compiled.hfield_adr[field])
    heights = top * np.asarray(compiled.hfield_data[first : first + rows * columns], dtype=float)
    scene = Scene()
    scene.add_heightfield(
        heights.reshape(rows, columns), (2 * half_x / (columns - 1), 2 * half_y / (rows - 1)), base=base
    )
    model = scene.build()
    return np.array(model.surface_vertices(0)), np.array(model.surface_triangles(0))


def _rgba(compiled, geom):
    """The material's where the geom has one and keeps MuJoCo's default grey itself."""
    own = compiled.geom_rgba[geom]
    material = int(compiled.geom_matid[geom])
    chosen = compiled.mat_rgba[material] if material >= 0 and np.allclose(own, (0.5, 0.5, 0.5, 1)) else own
    return tuple(float(c) for c in chosen)
