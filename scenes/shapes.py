"""Shapes of any kind by name, to be put into scenes."""

import itertools

import numpy as np

KINDS = ("sphere", "box", "capsule", "cylinder", "ellipsoid", "mesh")


def add_shape(scene, kind, size, **options):
    """Adds a shape to a scene. kind: one of KINDS; size: (3,) half lengths or radii, m; round shapes take the first ones, a mesh is the hull of
    the corners of a box. options: as of Scene.add_box.
    """
    size = np.asarray(size, dtype=float)
    if kind == "sphere":
        scene.add_sphere(size[0], **options)
    elif kind == "capsule":
        scene.add_capsule(size[0], 2 * size[1], **options)
    elif kind == "cylinder":
        scene.add_cylinder(size[0], 2 * size[1], **options)
    elif kind == "ellipsoid":
        scene.add_ellipsoid(size, **options)
    elif kind == "box":
        scene.add_box(2 * size, **options)
    elif kind == "mesh":
        corners = np.array(list(itertools.product((-1, 1), repeat=3)))
        scene.add_mesh(size * corners, **options)
    else:
        raise ValueError(f"kind: got {kind!r}, expected one of {', '.join(KINDS)}")
