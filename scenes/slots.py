"""Bodies squeezed between fixed walls that almost face each other."""

import numpy as np

import coulomb

RADIUS = 0.05


def normals(angle, walls=2):
    """(walls, 3), unit: out of the walls, around the vertical, each this much above the horizontal."""
    around = 2 * np.pi * np.arange(walls) / walls
    return np.column_stack(
        [np.cos(angle) * np.cos(around), np.cos(angle) * np.sin(around), np.full(walls, np.sin(angle))]
    )


def slot(angle, overlap, *, walls=2, balls=1, friction=0.0, box=False, gravity=9.81):
    """A ball or a box in a slot or funnel, `overlap` m deep in every wall; more balls stand along a slot, as deep in their neighbours."""
    scene = coulomb.Scene(gravity=[0, 0, -gravity])
    for index, normal in enumerate(normals(angle, walls)):
        # A box whose local x axis is the normal: about y, then about z.
        yaw = np.pi * index / walls
        c, s = np.cos(angle / 2), -np.sin(angle / 2)
        scene.add_box(
            [0.1, 1, 1],
            position=-(RADIUS - overlap + 0.05) * normal,
            quaternion=[np.cos(yaw) * c, -np.sin(yaw) * s, np.cos(yaw) * s, np.sin(yaw) * c],
            fixed=True,
            friction=friction,
            name=f"wall{index}",
        )
    for index in range(balls):
        place = (2 * RADIUS - overlap) * (index - 0.5 * (balls - 1))
        own = (0.5 - 0.1 * index) * friction  # not equal: the larger of a pair counts
        kind = {"mass": 1.0 + index, "position": [0, place, 0], "friction": own, "name": f"body{index}"}
        if box:
            scene.add_box([2 * RADIUS, 0.08, 0.1], **kind)
        else:
            scene.add_sphere(RADIUS, **kind)
    return scene.build()
