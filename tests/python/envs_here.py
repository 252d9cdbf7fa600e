"""The ids of coulomb.envs whose robots are installed: Go1 comes with example-robot-data."""

from coulomb.demo import robot_path
from coulomb.envs import IDS


def _installed(name):
    if "Go1" not in name:
        return True
    try:
        robot_path("go1_description/urdf/go1.urdf")
    except RuntimeError:
        return False
    return True


HERE = [name for name in IDS if _installed(name)]
