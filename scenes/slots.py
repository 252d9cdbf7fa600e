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
    """A ball or a box in a slot or funnel, `overlap` m deep in every wall; more balls stand in a row from wall to wall."""
    scene = coulomb.Scene(gravity=[0, 0, -gravity])
    places = (2 * RADIUS - overlap) * (np.arange(balls) - 0.5 * (balls - 1))
    for index, normal in enumerate(normals(angle, walls)):
        # A box whose local x axis is the normal: about y, then about z.
        yaw = np.pi * index / walls
        c, s = np.cos(angle / 2), -np.sin(angle / 2)
        turn = [np.cos(yaw) * c, -np.sin(yaw) * s, np.cos(yaw) * s, np.sin(yaw) * c]
        nearest = places[-1] * np.array([-np.cos(2 * yaw), -np.sin(2 * yaw), 0])
        scene.add_box(
            [0.1, 1, 1],
            position=nearest - (RADIUS - overlap + 0.05) * normal,
            quaternion=turn,
            fixed=True,
            friction=friction,
            name=f"wall{index}",
        )
    for index, x in enumerate(places):
        own = (0.5 - 0.1 * index) * friction  # not equal: the larger of a pair counts
        kind = {"mass": 1.0, "position": [x, 0, 0], "friction": own, "name": f"body{index}"}
        if box:
            scene.add_box([2 * RADIUS, 0.08, 0.1], **kind)
        else:
            scene.add_sphere(RADIUS, **kind)
    return scene.build()
