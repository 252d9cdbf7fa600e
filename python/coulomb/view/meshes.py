"""Triangles: of primitives, of mesh files, and fewer of them where a file has more than a picture needs; their normals."""

from __future__ import annotations

import numpy as np

from .._mesh_files import read_pieces
from .._shapes import revolved, surface, triangulate

MOST_FACES = 8000  # of one mesh: a browser draws, and a page holds, dozens of these
SIDES = 32


def need(package):
    """Imports a package of an extra, or says how to install it."""
    extra, users = {"imageio_ffmpeg": ("video", "save_video needs")}.get(package, ("view", "the viewer needs"))
    try:
        return __import__(package)
    except ImportError as error:
        raise ImportError(
            f"{users} the package '{package}', which the extra '{extra}' brings: pip install 'coulomb[{extra}]'"
        ) from error


def primitive(kind, size, sides=SIDES):
    """(vertices, faces, scale): a unit shape and what it is stretched by, so that shapes of one kind share their triangles. sides: of
    what is round, a multiple of four.
    """
    vertices, loops, scale = surface(kind, size, sides)
    return vertices, triangulate(loops), scale


def cone():
    """(vertices, faces) of the head of an arrow: of radius 1 at z = 0, its tip at z = 1."""
    vertices, loops = revolved([[(0, 0), (1, 0)], [(1, 0), (0, 1)]], SIDES // 2)
    return vertices, triangulate(loops)


def smoothed(vertices, faces, crease=0.7):
    """(vertices, normals, faces): one vertex for each normal it has. A corner's normal is the mean of those faces at its vertex, weighted by
    area, that lie as its own does: to a cosine of `crease`. What lies otherwise is beyond an edge.
    """
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    areas = np.cross(b - a, c - a)
    kept = np.linalg.norm(areas, axis=1) > 0
    faces, areas = faces[kept], areas[kept]
    if not len(faces):
        return np.zeros((1, 3)), np.array([[0.0, 0, 1]]), np.zeros((0, 3), dtype=int)
    units = areas / np.linalg.norm(areas, axis=1, keepdims=True)

    # All pairs of corners at one vertex, corners in the order of their vertices.
    corners = faces.reshape(-1)
    order = np.argsort(corners, kind="stable")
    face = order // 3
    count = np.bincount(corners, minlength=len(vertices))
    first = np.cumsum(count) - count
    partners = count[corners[order]]
    one = np.repeat(np.arange(len(order)), partners)
    other = np.arange(len(one)) + np.repeat(first[corners[order]] - np.cumsum(partners) + partners, partners)
    alike = np.einsum("ij,ij->i", units[face[one]], units[face[other]]) >= crease
    one, other = one[alike], face[other[alike]]
    normals = np.empty((len(corners), 3))
    for axis in range(3):
        normals[order, axis] = np.bincount(one, areas[other, axis], minlength=len(order))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)

    # Corners of one vertex that have the same normal are one.
    keys = np.column_stack([corners, np.round(normals * 1e4).astype(np.int64)])
    _, chosen, index = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return vertices[corners[chosen]], normals[chosen], index.reshape(-1, 3)


def is_closed(vertices, faces):
    """Whether the inside cannot be seen, of a mesh whose equal vertices are joined: every edge has one face on either side, which runs the
    other way there, and the volume is positive.
    """
    starts = faces.reshape(-1)
    ends = np.roll(faces, -1, axis=1).reshape(-1)
    there = np.sort(starts * np.int64(len(vertices)) + ends)
    back = np.sort(ends * np.int64(len(vertices)) + starts)
    once = len(there) > 0 and (there[1:] != there[:-1]).all()
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    return bool(once and (there == back).all() and np.einsum("ij,ij->", a, np.cross(b, c)) > 0)


def read_mesh(path, scale, what):
    """[(vertices, faces, rgba or None)] of a file, one for each of its colours. ValueError: `what` it is, and what is wrong."""
    pieces = read_pieces(path, what)

    # Pieces of one colour are one mesh; a scale that mirrors turns faces inside out.
    found = []
    mirrored = np.prod(scale) < 0
    for rgba in dict.fromkeys(colour for _, _, colour in pieces):
        group = [(vertices, faces) for vertices, faces, colour in pieces if colour == rgba]
        starts = np.cumsum([0, *(len(vertices) for vertices, _ in group)])
        vertices = np.concatenate([vertices for vertices, _ in group]) * scale
        faces = np.concatenate([faces + start for (_, faces), start in zip(group, starts)])
        found.append((*simplified(vertices, faces[:, ::-1] if mirrored else faces), rgba))
    return found


def simplified(vertices, faces, most=MOST_FACES):
    """Equal vertices joined and, above `most` faces, those in one cell of the finest grid that leaves no more.

    A joined vertex is the mean of its cell: surfaces stay within a cell of where they were.
    """
    low = vertices.min(0)
    size = max(float(np.ptp(vertices, axis=0).max()), 1e-12)
    vertices, faces = _clustered(vertices, faces, low, size, 1 << 20)

    # As many cells along the longest side as it may be: faces grow about as their square.
    cells = 512
    while len(faces) > most:
        coarser = _clustered(vertices, faces, low, size, cells)
        if len(coarser[1]) <= most or cells <= 4:
            return coarser
        cells = max(4, int(cells * min(0.95, np.sqrt(most / len(coarser[1])))))
    return vertices, faces


def _clustered(vertices, faces, low, size, cells):
    """One vertex for each cell of a grid, and the faces that are left."""
    key = np.round((vertices - low) * (cells / size)).astype(np.int64)
    index = np.unique((key[:, 0] << 42) + (key[:, 1] << 21) + key[:, 2], return_inverse=True)[1].reshape(-1)
    count = np.bincount(index)
    merged = np.stack([np.bincount(index, vertices[:, i]) / count for i in range(3)], axis=1)
    corners = index[faces]
    kept = (corners[:, 0] != corners[:, 1]) & (corners[:, 1] != corners[:, 2]) & (corners[:, 2] != corners[:, 0])
    corners = corners[kept]

    # Sheets thinner than a cell fold up: one face of each side is enough.
    a, b, c = np.sort(corners, axis=1).T
    _, first = np.unique((a * len(count) + b) * len(count) + c, return_index=True)
    return merged, corners[np.sort(first)]
