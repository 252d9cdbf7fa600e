"""Triangles: of primitives, of mesh files, and fewer of them where a file has more than a picture needs."""

from __future__ import annotations

import os

import numpy as np

from .._shapes import surface, triangulate
from .collada import read_collada

MOST_FACES = 8000  # of one mesh: a browser draws, and a page holds, dozens of these
SIDES = 32


def need(package):
    """Imports a package of the extra `view`, or says how to install it."""
    try:
        return __import__(package)
    except ImportError as error:
        raise ImportError(
            f"the viewer needs the package '{package}', which the extra 'view' brings: pip install 'coulomb[view]'"
        ) from error


def primitive(kind, size):
    """(vertices, faces, scale): a unit shape and what it is stretched by, so that shapes of one kind share their triangles."""
    vertices, loops, scale = surface(kind, size, SIDES)
    return vertices, triangulate(loops), scale


def read_mesh(path, scale, what):
    """[(vertices, faces, rgba or None)] of a file, one for each of its colours. ValueError: `what` it is, and what is wrong."""
    try:
        pieces = read_collada(path) if os.path.splitext(path)[1].lower() == ".dae" else _read_by_trimesh(path)
    except ImportError:
        raise
    except Exception as error:  # readers of broken files raise what they like
        raise ValueError(f"{what}: {path!r} cannot be read: {type(error).__name__}: {error}") from error
    if not pieces:
        raise ValueError(f"{what}: {path!r} has no triangles")

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


def _read_by_trimesh(path):
    """STL, OBJ, PLY, glTF: what trimesh reads, which viser brings."""
    trimesh = need("trimesh")
    pieces = [piece for piece in trimesh.load_scene(path).dump() if isinstance(piece, trimesh.Trimesh)]
    return [(np.asarray(p.vertices), np.asarray(p.faces), _colour(p)) for p in pieces if len(p.faces)]


def _colour(piece):
    """Of a piece's material, or None where the file has none."""
    visual = piece.visual
    if not visual.defined:
        return None
    colour = visual.material.main_color if hasattr(visual, "material") else visual.main_color
    return tuple(float(c) / 255 for c in colour)


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
