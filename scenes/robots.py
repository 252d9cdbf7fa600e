"""Robots for tests: folders with model.xml (MJCF) and states.npz (q, v), where such a folder is at hand.

COULOMB_ROBOTS names it; without it, shared/models beside the repository is tried. Tests skip when there is none.
"""

import os
from pathlib import Path

import numpy as np

import coulomb

NAMES = ["half_cheetah", "hopper", "humanoid", "ur5", "go1", "h1", "atlas"]


def folder():
    """The folder of robots, or None."""
    given = os.environ.get("COULOMB_ROBOTS")
    path = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "models"
    return path if path.is_dir() else None


def load(name):
    """(model, q (n, nq), v (n, nv)): recorded states in contact."""
    path = folder() / name
    states = np.load(path / "states.npz")
    return coulomb.load(str(path / "model.xml")), states["q"], states["v"]
