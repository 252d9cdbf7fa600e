"""What a model looks like: the visual shapes of the files that it was read from. No number of the physics depends on them.

A Scene notes which robots came from which file. The file is read again, for its visuals, when a model's are asked for: who only
simulates waits for no mesh. Models are constant, so their visuals are kept beside them, by the model itself.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np

KINDS = ("half_space", "sphere", "capsule", "cylinder", "box", "ellipsoid", "mesh")
COLLISION_COLOUR = (0.38, 0.54, 0.78, 1.0)
_sources: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
_read: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Visual:
    """One shape of a body. kind and size are those of Model.geometry_types and geometry_size; a mesh has vertices and faces."""

    name: str
    body: int  # index into Model.body_names
    kind: str
    size: np.ndarray = field(default_factory=lambda: np.zeros(3))
    position: np.ndarray = field(default_factory=lambda: np.zeros(3))  # m, in the body's frame
    quaternion: np.ndarray = field(default_factory=lambda: np.array([1.0, 0, 0, 0]))  # wxyz, in the body's frame
    rgba: tuple[float, float, float, float] = COLLISION_COLOUR  # 0..1
    vertices: np.ndarray | None = None  # (n, 3) m
    faces: np.ndarray | None = None  # (m, 3) indices, counter-clockwise seen from outside


@dataclass(frozen=True)
class Part:
    """What a verb of Scene added: which bodies and geometries of the model are one robot's."""

    first_body: int
    num_bodies: int
    first_geometry: int
    num_geometries: int

    @classmethod
    def of(cls, element: Any) -> Part:
        return cls(element.first_body, element.num_bodies, element.first_geometry, element.num_geometries)


def attach(model, sources):
    """Remembers where a model's visuals are: (Part, source) for each robot; source.read(model, part) lists its Visuals."""
    if sources:
        _sources[model] = tuple(sources)


def sources_of(model):
    """What `attach` was given: travels with pickles."""
    return _sources.get(model, ())


def visuals_of(model):
    """Model.visuals: a list of Visual. Robots whose files have none, and shapes of a Scene, look like their collision shapes."""
    if model not in _read:
        found, covered = [], set()
        for part, source in sources_of(model):
            of_robot = source.read(model, part)
            found += of_robot
            if of_robot:
                covered.update(range(part.first_geometry, part.first_geometry + part.num_geometries))
        _read[model] = collision_shapes(model, covered) + found
    return list(_read[model])


def collision_shapes(model, leave_out=()):
    """The collision shapes as Visuals, meshes as the convex hulls that collide."""
    kinds, found = model.geometry_types, []
    for geometry in range(model.num_geometries):
        if geometry in leave_out:
            continue
        vertices = faces = None
        if kinds[geometry] == "mesh":
            mesh = model.geometry_mesh[geometry]
            vertices = np.array(model.mesh_vertices(mesh))
            loops = model.mesh_faces(mesh)
            faces = np.array([(f[0], f[i], f[i + 1]) for f in loops for i in range(1, len(f) - 1)])
        found.append(
            Visual(
                model.geometry_names[geometry],
                int(model.geometry_body[geometry]),
                kinds[geometry],
                np.array(model.geometry_size[geometry]),
                np.array(model.geometry_pos[geometry]),
                np.array(model.geometry_quat[geometry]),
                vertices=vertices,
                faces=faces,
            )
        )
    return found


def checked(model, visuals):
    """The list, if these are visuals of the model's bodies. ValueError, TypeError: names the one that is none."""
    found = list(visuals)
    for index, visual in enumerate(found):
        if not isinstance(visual, Visual):
            raise TypeError(f"visuals[{index}]: got {type(visual).__name__}, expected a coulomb.view.Visual")
        if not 0 <= visual.body < model.num_bodies:
            raise ValueError(f"visuals[{index}]: body {visual.body} is none of the model's {model.num_bodies} bodies")
        if visual.kind not in KINDS:
            raise ValueError(f"visuals[{index}]: kind {visual.kind!r}, expected one of {KINDS}")
    return found
