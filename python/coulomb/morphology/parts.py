"""The parts of a cage: geometries with their mass, joints, contact points, and the names of the parameters that follow.

    what moves                   in Coulomb
    corners of a mesh            vertices/<geometry>, in the geometry's frame, which stays in its body
    a box                        size/<geometry> and the position in geometry_placement/<geometry>: the box through its moved
                                 corners, whose directions stay
    another shape                the position in geometry_placement/<geometry>
    contact points               contact_points/<geometry>, in the geometry's frame
    contact area                 contact_scale/<geometry>: that of the model times new surface / old surface
    a body, seen from its parent joint_placement/<joint> of its first joint, in the parent's frame
    mass, centre, inertia        inertia/<body>: m, m c, I about the body's origin

Everything is linear in the handles but directions of turned joints, mass properties and areas.
"""

from __future__ import annotations

import numpy as np

from .._shapes import triangulate
from .cage import BOX_CORNERS, BOX_TRIANGLES, Cage
from .checks import finite, known, positive
from .rotations import frame_of, rotation_matrix
from .volume import enclosed_volume, moments

_BOX_TOLERANCE = 1e-6  # relative to the box
_SIDES = 2 * BOX_CORNERS - 1


class Part:
    """A geometry that follows a cage in the frame of its body.

    geometry: its name. cage: a Cage. density: kg/m^3, by which it gives its body mass and inertia; None: it does not.
    contact_scale: scale of penalty contact in proportion to the surface. weights: (n, k) of the geometry's corners, in the
    order of its vertices, instead of the cage's own.
    """

    def __init__(self, geometry, cage, density=None, *, contact_scale=False, weights=None):
        self.geometry, self.cage, self.contact_scale, self.weights = geometry, cage, bool(contact_scale), weights
        self.density = None if density is None else positive(f"density of '{geometry}'", density)


class Link:
    """A joint whose placement in its parent's frame follows a cage of the parent.

    joint: its name, the first of its body. turn: 0, the frame keeps its directions; else metres: the frame turns with the
    cage, as do arms of this length along its x and y axes.
    """

    def __init__(self, joint, cage, turn=0.0):
        self.joint, self.cage = joint, cage
        self.turn = positive(f"turn of '{joint}'", turn) if turn else 0.0


class Marker:
    """A point of a body that follows a cage, for costs: Morphology.points. point: (3,) m at rest, in the body's frame."""

    def __init__(self, name, cage, point):
        self.name, self.cage = str(name), cage
        self.point = finite(f"point of '{name}'", point, (3,))


class Carried:
    """Points (n, 3) on a cage: places and slopes by a design."""

    def __init__(self, cage, points, weights=None, what=""):
        self.cage, self.points = cage, points
        shape = (len(points), len(cage.handles))
        self.weights = cage.weights(points) if weights is None else finite(f"weights of {what}", weights, shape)

    def at(self, handles):
        return self.points + self.weights @ (handles - self.cage.handles)

    def slope(self, dhandles):
        """(n, 3, d) of handles' (k, 3, d)."""
        return np.tensordot(self.weights, dhandles, axes=1)


class LinkFollower:
    def __init__(self, model, parameters, link, what):
        joint = known(f"{what}.joint", link.joint, model.joint_names)
        self.name = f"joint_placement/{link.joint}"
        if self.name not in parameters:
            kind = model.joint_types[joint]
            raise ValueError(f"{what}.joint: '{link.joint}' ({kind}) has no placement; the first joint of its body has")
        self.body = int(model.body_parent[model.joint_body[joint]])
        self.cage, self.turn = link.cage, link.turn
        self.rest = parameters[self.name].value
        R = rotation_matrix(self.rest[3:])
        arms = [self.rest[:3]] + ([self.rest[:3] + link.turn * R[:, k] for k in (0, 1)] if link.turn else [])
        self.points = Carried(link.cage, np.array(arms))

    def values(self, handles, out):
        points = self.points.at(handles)
        out[self.name] = np.concatenate([points[0], self._vector(points)[0] if self.turn else self.rest[3:]])

    def slopes(self, handles, dhandles, out):
        points, dpoints = self.points.at(handles), self.points.slope(dhandles)
        slope = np.zeros((6, dhandles.shape[2]))
        slope[:3] = dpoints[0]
        if self.turn:
            slope[3:] = np.tensordot(self._vector(points)[1], dpoints, axes=2)
        out[self.name] = slope

    def _vector(self, points):
        return frame_of(points, self.rest[3:], f"joint '{self.name.split('/', 1)[1]}'")


class PartFollower:
    """One Part of a model."""

    def __init__(self, model, parameters, part, what):
        g = known(f"{what}.geometry", part.geometry, model.geometry_names)
        self.kind, self.what, self.part, self.cage = (
            model.geometry_types[g],
            f"geometry '{part.geometry}'",
            part,
            part.cage,
        )
        if self.kind == "half_space":
            raise ValueError(f"{what}.geometry: '{part.geometry}' is a half-space: it has no end and no cage")
        if part.density is not None and self.kind not in ("box", "mesh"):
            raise ValueError(
                f"{what}.density: '{part.geometry}' is a {self.kind}; boxes and meshes have mass by density"
            )
        self.geometry, self.body = g, int(model.geometry_body[g])
        self.placement = parameters[f"geometry_placement/{part.geometry}"].value
        self.turn = rotation_matrix(self.placement[3:])
        self.mesh = int(model.geometry_mesh[g])
        if self.kind == "box":
            local, self.triangles = _SIDES * model.geometry_size[g], BOX_TRIANGLES
        elif self.kind == "mesh":
            local, self.triangles = model.mesh_vertices(self.mesh), triangulate(model.mesh_faces(self.mesh))
        else:
            local, self.triangles = np.zeros((1, 3)), None
        self.points = Carried(part.cage, self._in_body(local), part.weights, what)
        name = f"contact_points/{part.geometry}"
        self.contacts = None
        if name in parameters and parameters[name].size:
            self.contacts = Carried(part.cage, self._in_body(parameters[name].value.reshape(-1, 3)))
        self.scale = None
        if part.contact_scale:
            name = f"contact_scale/{part.geometry}"
            if name not in parameters or self.triangles is None:
                raise ValueError(f"{what}.contact_scale: the model has no parameter '{name}' of a box or mesh")
            self.scale = parameters[name].value[0]
            self.area = moments(self.points.points, self.triangles).area

    def _in_body(self, local):
        return local @ self.turn.T + self.placement[:3]

    def corners(self, handles):
        """Corners of the solid in the body's frame; for a box those of the box itself."""
        points = self.points.at(handles)
        if self.kind != "box":
            return points
        centre, half = self._box(points)
        return centre + (_SIDES * half) @ self.turn.T

    def _box(self, points):
        """Centre and half sides. ValueError: the points are no box with the old directions."""
        centre = points.mean(axis=0)
        along = (points - centre) @ self.turn
        half = (_SIDES * along).mean(axis=0)
        if not (half > 0).all():
            axis = int(np.argmin(half))
            raise ValueError(f"{self.what}: half side {axis} becomes {half[axis]:.6g}: it must be positive")
        off = np.linalg.norm(along - _SIDES * half, axis=1)
        if off.max() > _BOX_TOLERANCE * half.max():
            corner = int(np.argmax(off))
            raise ValueError(
                f"{self.what}: its cage makes it no box: corner {corner} is {off[corner]:.3g} m off; use a mesh"
            )
        return centre, half

    def solid(self, handles, moved):
        """The Solid of unit density; moved: the model with its new vertices, whose hulls have the faces. A mesh that is
        turned inside out has a hull like any other: it is found with the old faces.
        """
        corners, triangles = self.corners(handles), self.triangles
        volume = enclosed_volume(corners, triangles)
        if not volume > 0:
            raise ValueError(f"{self.what}: its volume becomes {volume:.6g} m^3: it must be positive")
        if self.kind == "mesh":
            triangles = triangulate(moved.mesh_faces(int(moved.geometry_mesh[self.geometry])))
        return moments(corners, triangles)

    def values(self, handles, out):
        name, points = self.part.geometry, self.points.at(handles)
        centre = self.placement[:3]
        if self.kind == "mesh":
            out[f"vertices/{name}"] = ((points - centre) @ self.turn).ravel()
        elif self.kind == "box":
            centre, out[f"size/{name}"] = self._box(points)
        else:
            centre = points[0]
        if self.kind != "mesh":
            out[f"geometry_placement/{name}"] = np.concatenate([centre, self.placement[3:]])
        if self.contacts is not None:
            out[f"contact_points/{name}"] = ((self.contacts.at(handles) - centre) @ self.turn).ravel()

    def scale_value(self, solid, out):
        if self.scale is not None:
            out[f"contact_scale/{self.part.geometry}"] = np.array([self.scale * solid.area / self.area])

    def slopes(self, dhandles, out):
        name, slope = self.part.geometry, self.points.slope(dhandles)
        d = slope.shape[2]
        dcentre = np.zeros((3, d))
        if self.kind == "mesh":
            out[f"vertices/{name}"] = np.einsum("nid,ij->njd", slope, self.turn).reshape(-1, d)
        elif self.kind == "box":
            dcentre = slope.mean(axis=0)
            out[f"size/{name}"] = np.einsum("nk,ik,nid->kd", _SIDES, self.turn, slope) / 8
        else:
            dcentre = slope[0]
        if self.kind != "mesh":
            out[f"geometry_placement/{name}"] = np.concatenate([dcentre, np.zeros((3, d))])
        if self.contacts is not None:
            moved = self.contacts.slope(dhandles) - dcentre
            out[f"contact_points/{name}"] = np.einsum("nid,ij->njd", moved, self.turn).reshape(-1, d)

    def scale_slope(self, solid, corner_slope, out):
        if self.scale is not None:
            by_corner = solid.d_area * self.scale / self.area
            out[f"contact_scale/{self.part.geometry}"] = np.tensordot(by_corner, corner_slope, axes=2)[None]

    def corner_slope(self, dhandles):
        slope = self.points.slope(dhandles)
        if self.kind != "box":
            return slope
        dhalf = np.einsum("nk,ik,nid->kd", _SIDES, self.turn, slope) / 8
        return slope.mean(axis=0) + np.einsum("nk,ik,kd->nid", _SIDES, self.turn, dhalf)


def check_cage(what, cage):
    if not isinstance(cage, Cage):
        raise TypeError(f"{what}.cage: expected a Cage, got {type(cage).__name__}")
