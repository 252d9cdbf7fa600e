"""LightAnt-v0: DiffAnt of a quarter of its density, which a laptop teaches to run in a minute."""

from __future__ import annotations

from .compliance import LIMIT_STIFFNESS
from .diff_ant import DiffAnt


class LightAnt(DiffAnt):
    """DiffAnt at 250 kg/m^3: 45 kg instead of 182, under the same motors; rewards, observations and joints are the same.

    The floor is soft by default: 4e4 N/m, DiffRL's contact_ke of its ant, with a dashpot of 1e3 N s/m at every point of contact.
    """

    density = 250

    def __init__(
        self,
        frame_skip=4,
        noise=1.0,
        terminate=True,
        contact_stiffness=4e4,
        contact_dashpot=1e3,
        limit_stiffness=LIMIT_STIFFNESS,
    ):
        super().__init__(frame_skip, noise, terminate, contact_stiffness, contact_dashpot, limit_stiffness)
