"""The look of a model: visual shapes of the files that it was read from. No number of the physics depends on them.

A Scene notes which robots came from which file. The file is read again, for its visuals, when a model's are asked for: who only
simulates waits for no mesh. Models are constant, so their visuals are kept beside them, by the model itself.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._shapes import triangulate

KINDS = ("half_space", "sphere", "capsule", "cylinder", "box", "ellipsoid", "mesh")
_SIZES = {"half_space": 0, "sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3, "mesh": 0}
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
    """The bodies and geometries of the model that one call of Scene added."""

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
    """The arguments of `attach`, which pickles keep."""
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
        kind, vertices, faces = kinds[geometry], None, None
        mesh = model.geometry_mesh[geometry]
        if kind == "mesh":
            vertices = np.array(model.mesh_vertices(mesh))
            faces = triangulate(model.mesh_faces(mesh))
        if kind == "surface":
            kind, vertices, faces = (
                "mesh",
                np.array(model.surface_vertices(mesh)),
                np.array(model.surface_triangles(mesh)),
            )
        found.append(
            Visual(
                model.geometry_names[geometry],
                int(model.geometry_body[geometry]),
                kind,
                np.array(model.geometry_size[geometry]),
                np.array(model.geometry_pos[geometry]),
                np.array(model.geometry_quat[geometry]),
                vertices=vertices,
                faces=faces,
            )
        )
    return found


def checked(model, visuals):
    """The list, if these are visuals of the model's bodies, as arrays. ValueError, TypeError: names what is wrong of which."""
    if not isinstance(visuals, Iterable):
        raise TypeError(f"visuals: got {visuals!r}, expected 'files', 'collision' or a list of Visuals")
    return [_checked(model, visual, f"visuals[{index}]") for index, visual in enumerate(visuals)]


def _checked(model, visual, where):
    if not isinstance(visual, Visual):
        raise TypeError(f"{where}: got {type(visual).__name__}, expected a coulomb.view.Visual")
    if not isinstance(visual.body, (int, np.integer)) or not 0 <= visual.body < model.num_bodies:
        raise ValueError(f"{where}: body {visual.body!r} is none of the model's {model.num_bodies} bodies")
    if visual.kind not in KINDS:
        raise ValueError(f"{where}: kind {visual.kind!r}, expected one of {KINDS}")

    def numbers(name, shape):
        """A field as a finite array; None in the shape: one or more."""
        value = getattr(visual, name)
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            array = np.full(1, np.nan)
        fits = array.ndim == len(shape) and all(n == m or (m is None and n > 0) for n, m in zip(array.shape, shape))
        if not fits or not np.isfinite(array).all():
            shown = (
                "(" + ", ".join("n" if m is None else str(m) for m in shape) + ("," if len(shape) == 1 else "") + ")"
            )
            raise ValueError(f"{where}.{name}: got {value!r}, expected {shown} finite numbers")
        return array

    # Where it is, and its colour.
    found = {"size": numbers("size", (3,)), "position": numbers("position", (3,))}
    found["quaternion"] = quaternion = numbers("quaternion", (4,))
    if not np.linalg.norm(quaternion) > 1e-6:
        raise ValueError(f"{where}.quaternion: got {quaternion}, which is not a rotation")
    rgba = numbers("rgba", (4,))
    if not np.all((rgba >= 0) & (rgba <= 1)):
        raise ValueError(f"{where}.rgba: got {visual.rgba!r}, expected four numbers from 0 to 1")

    # Its extent, by numbers or by triangles.
    sizes = found["size"][: _SIZES[visual.kind]]
    if not np.all(sizes > 0):
        raise ValueError(f"{where}.size: got {visual.size!r}, of a {visual.kind} the first {len(sizes)} are > 0")
    if visual.kind == "mesh":
        found["vertices"] = numbers("vertices", (None, 3))
        faces = numbers("faces", (None, 3))
        if not np.all((faces >= 0) & (faces < len(found["vertices"])) & (faces == np.round(faces))):
            raise ValueError(f"{where}.faces: not all are indices of its {len(found['vertices'])} vertices")
        found["faces"] = faces.astype(int)
    return replace(visual, **found)
