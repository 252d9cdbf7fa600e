"""The floor of DiffRL's tasks: rigid, or a spring and a damper at every point of contact."""

from __future__ import annotations

import coulomb


def on_floor(mjcf, contact_stiffness, contact_dashpot):
    """The model of a file with a geometry "floor". contact_stiffness: N/m, None: rigid; contact_dashpot: N s/m (docs/conventions.md)."""
    scene = coulomb.Scene()
    scene.add_mjcf(mjcf)
    if contact_stiffness is not None:
        scene.set_contact("floor", contact_stiffness=contact_stiffness, contact_dashpot=contact_dashpot)
    elif contact_dashpot:
        raise ValueError(f"contact_dashpot is {contact_dashpot}, but the floor is rigid: give contact_stiffness too")
    return scene.build()
