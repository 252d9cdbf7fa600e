"""What the examples of Jade's experiments share.

Jade [Yang2024]; keys in docs/references.md.
Every experiment runs with both laws of friction: the exact cone ("ncp") and Jade's own, the pyramid ("lcp").
"""

import sys
from pathlib import Path

import numpy as np

import coulomb

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

# Programs take these from here.
from plot_common import arguments, finish, strobe  # noqa: E402, F401

LAWS = ("ncp", "lcp")


def simulator(model, law, **options):
    """Steps are split at impacts, so that nothing passes through anything."""
    return coulomb.Simulator(model, contact=law, continuous_collision=True, **options)


def sliding_stop(speed, friction, gravity, timestep):
    """Steps until a sliding body rests, and the distance: every step takes friction * gravity * timestep of the speed, at a constant rate."""
    loss = friction * gravity * timestep
    steps = int(np.ceil(speed / loss - 1e-9))
    speeds = np.maximum(speed - loss * np.arange(steps + 1), 0)
    return steps, timestep * (speeds[:-1] + speeds[1:]).sum() / 2
