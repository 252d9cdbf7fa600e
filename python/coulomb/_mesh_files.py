"""Triangles of mesh files: COLLADA by numpy, all others by trimesh."""

from __future__ import annotations

import os

import numpy as np

from ._collada import read_collada


def read_pieces(path, what):
    """[(vertices (n, 3) m, faces (m, 3), rgba or None)] of a file, at least one. ValueError: `what` it is, and what is wrong."""
    is_collada = os.path.splitext(path)[1].lower() == ".dae"
    try:
        with np.errstate(all="ignore"):  # numbers that overflow are refused by who asked for them
            pieces = read_collada(path) if is_collada else _read_by_trimesh(path)
    except Exception as error:  # readers of broken files raise what they like
        raise ValueError(f"{what}: {path!r} cannot be read: {type(error).__name__}: {error}") from error
    if not pieces:
        raise ValueError(f"{what}: {path!r} has no triangles")
    return pieces


def _read_by_trimesh(path):
    """STL, OBJ, PLY, glTF."""
    import trimesh

    pieces = [piece for piece in trimesh.load_scene(path).dump() if isinstance(piece, trimesh.Trimesh)]
    return [(np.asarray(p.vertices), np.asarray(p.faces), _colour(p)) for p in pieces if len(p.faces)]


def _colour(piece):
    """Colour of a piece's material, or None if the file has none."""
    visual = piece.visual
    if not visual.defined:
        return None
    colour = visual.material.main_color if hasattr(visual, "material") else visual.main_color
    return tuple(float(c) / 255 for c in colour)
