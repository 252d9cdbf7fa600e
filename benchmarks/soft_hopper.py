"""The hopper of DiffRL on a floor as soft as DiffRL's own: 2e4 N/m and 1e3 N s/m at every point of contact."""

from coulomb.envs.tasks.diff_hopper import DiffHopper


class SoftHopper(DiffHopper):
    def __init__(self, frame_skip=4, **keywords):
        super().__init__(frame_skip, contact_stiffness=2e4, contact_dashpot=1e3, **keywords)
