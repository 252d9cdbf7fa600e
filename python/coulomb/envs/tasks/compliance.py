"""The floor and the joint limits of tasks after DiffRL: rigid, or springs with dampers."""

from __future__ import annotations

import coulomb

# limit_ke of all of DiffRL's environments, N m/rad. Their limit_kd, 10 N m s/rad, acts within the limits too: it is part of the dampings
# in the files here (docs/learning.md).
LIMIT_STIFFNESS = 1e3


def build(mjcf, contact_stiffness=None, contact_dashpot=0.0, limit_stiffness=None):
    """The model of an MJCF text with a geometry "floor".

    contact_stiffness: N/m of a point of contact with the floor, None: rigid; contact_dashpot: N s/m; limit_stiffness: N m/rad of
    all joint limits, None: rigid (docs/conventions.md).
    """
    scene = coulomb.Scene()
    scene.add_mjcf(mjcf, limit_stiffness=limit_stiffness)
    floor = springs(contact_stiffness, contact_dashpot)
    if floor:
        scene.set_contact("floor", **floor)
    return scene.build()


def springs(contact_stiffness, contact_dashpot):
    """Keywords of Scene for a floor: none where it is rigid. ValueError: a dashpot without a stiffness."""
    if contact_stiffness is not None:
        return {"contact_stiffness": contact_stiffness, "contact_dashpot": contact_dashpot}
    if contact_dashpot:
        raise ValueError(f"contact_dashpot is {contact_dashpot}, but the floor is rigid: give contact_stiffness too")
    return {}
