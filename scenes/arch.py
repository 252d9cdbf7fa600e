"""A semicircular masonry arch of wedge-shaped blocks, each a convex mesh."""

import math

import numpy as np

import coulomb


def voussoir_arch(thickness, count=15, friction=0.7, radius=1.0, depth=0.3, density=1000.0):
    """The model of `count` equal voussoirs between two springings on the floor. thickness: over the mean radius."""
    scene = coulomb.Scene(gravity=(0, 0, -9.81))
    scene.add_ground(friction=friction)
    inner, outer = radius * (1 - thickness / 2), radius * (1 + thickness / 2)
    for i in range(count):
        angles = (math.pi * i / count, math.pi * (i + 1) / count)
        middle = radius * np.array([math.cos(sum(angles) / 2), 0, math.sin(sum(angles) / 2)])
        corners = [
            (r * math.cos(a), y, r * math.sin(a))
            for a in angles
            for r in (inner, outer)
            for y in (-depth / 2, depth / 2)
        ]
        scene.add_mesh(
            np.array(corners) - middle, density=density, position=middle, friction=friction, name=f"voussoir{i}"
        )
    return scene.build()
