"""Boxes, capsules and balls in a pit with a wall on every side: the heap that tools/soak.py stirs."""

import coulomb

TIMESTEP = 5e-3


def pit():
    """Model of twelve bodies in the air above the pit, balls with a restitution of .3."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.6)
    for k, (x, y) in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
        size = (0.1, 1.0, 4.0) if x else (1.0, 0.1, 4.0)
        scene.add_box(size, fixed=True, position=(0.45 * x, 0.45 * y, 2.0), friction=0.3, name=f"wall_{k}")

    for k in range(12):
        place = {"position": (0.12 * (k % 3 - 1), 0.12 * (k // 3 % 2), 0.12 + 0.16 * k), "density": 500.0}
        if k % 3 == 0:
            scene.add_box((0.14, 0.12, 0.1), friction=0.6, **place)
        elif k % 3 == 1:
            scene.add_capsule(0.05, 0.1, friction=0.6, **place)
        else:
            scene.add_sphere(0.06, friction=0.6, restitution=0.3, **place)
    return scene.build()
