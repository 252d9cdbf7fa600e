"""Records robot_states.npz: states in contact of the robots that packages bring, from falls that MuJoCo simulates. Same packages, same states.

python tests/data/record_robot_states.py
"""

import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.pop("COULOMB_ROBOTS", None)

from scenes import robots  # noqa: E402


def main():
    states = {}
    for name in robots.names():
        q, v, _ = robots.falling_states(robots.in_mujoco(name))
        states |= {f"{name}.q": q, f"{name}.v": v}
        print(f"{name}: {len(q)} states, nq {q.shape[1]}, nv {v.shape[1]}")
    np.savez_compressed(robots.STATES, **states)


if __name__ == "__main__":
    main()
