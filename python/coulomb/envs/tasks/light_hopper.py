"""LightHopper-v0: DiffHopper with light rotors, which leaps further."""

from __future__ import annotations

from .compliance import LIMIT_STIFFNESS
from .diff_hopper import DiffHopper


class LightHopper(DiffHopper):
    """DiffHopper with an armature of 0.05 kg m^2, that of DiffAnt, instead of 1; everything else is the same.

    The floor is soft by default: 2e4 N/m, DiffRL's contact_ke of its hopper, with a dashpot of 1e3 N s/m at every point of contact.
    """

    armature = 0.05

    def __init__(
        self,
        frame_skip=4,
        noise=0.05,
        terminate=True,
        contact_stiffness=2e4,
        contact_dashpot=1e3,
        limit_stiffness=LIMIT_STIFFNESS,
    ):
        super().__init__(frame_skip, noise, terminate, contact_stiffness, contact_dashpot, limit_stiffness)
