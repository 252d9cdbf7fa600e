"""Robots for tests and benchmarks, with states in contact.

Packages that `pip` installs bring seven (gymnasium, example-robot-data), so that every clone has them; their states are recorded in
tests/data/robot_states.npz. A folder that COULOMB_ROBOTS names is taken instead: `<robot>/model.xml` (MJCF), `<robot>/states.npz` (q, v).
"""

import importlib.util
import os
import re
import unittest
from pathlib import Path

import numpy as np

import coulomb

STATES = Path(__file__).resolve().parents[1] / "tests" / "data" / "robot_states.npz"
TIMESTEP = 2e-3  # of robots whose files say nothing
FALLS = 3
NUM_STATES = 60  # of all falls

GYMNASIUM = ["half_cheetah", "hopper", "humanoid"]
URDF = {  # file, whether the base is free, where it stands
    "ur5": ("ur_description/urdf/ur5_robot.urdf", False, (0.0, 0.0, 0.0)),
    "go1": ("go1_description/urdf/go1.urdf", True, (0.0, 0.0, 0.45)),
    "g1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", True, (0.0, 0.0, 0.8)),
    "go2": ("go2_description/urdf/go2.urdf", True, (0.0, 0.0, 0.45)),
}


class Missing(unittest.SkipTest):
    """The package that brings a robot is not installed: pytest skips what asks for that robot, and says what to install."""


def folder():
    """The folder of robots that COULOMB_ROBOTS names, or None. ValueError: there is none with states."""
    given = os.environ.get("COULOMB_ROBOTS")
    if not given:
        return None
    if not any(Path(given).glob("*/states.npz")):
        raise ValueError(f"COULOMB_ROBOTS: {given!r} holds no <robot>/states.npz; name a folder that does, or unset it")
    return Path(given)


def names():
    """Robots that `load` knows."""
    if folder() is not None:
        return sorted(path.parent.name for path in folder().glob("*/states.npz"))
    return [*GYMNASIUM, *URDF]


NAMES = names()


def load(name):
    """(model, q (n, nq), v (n, nv)): recorded states in contact. Missing: its package is not installed."""
    if folder() is not None:
        states = np.load(folder() / name / "states.npz")
        return coulomb.load(folder() / name / "model.xml"), states["q"], states["v"]
    states = np.load(STATES)
    model = coulomb.load(gymnasium_text(name)) if name in GYMNASIUM else from_urdf(name)
    return model, states[f"{name}.q"], states[f"{name}.v"]


def missing(name):
    """What to install for a robot of a package, or None."""
    if name in GYMNASIUM:
        return None if importlib.util.find_spec("gymnasium") else "pip install gymnasium"
    from coulomb.demo import robot_path

    try:
        robot_path(URDF[name][0])
    except RuntimeError as error:
        return str(error)
    return None


def _require(name):
    needed = missing(name)
    if needed:
        raise Missing(f"{name}: {needed}")


def gymnasium_text(name):
    """The MJCF of a robot of gymnasium, without margins: those make contacts at a distance, where no other engine has them."""
    _require(name)
    package = Path(importlib.util.find_spec("gymnasium").origin).parent
    return re.sub(r'\smargin="[^"]*"', "", (package / "envs" / "mujoco" / "assets" / f"{name}.xml").read_text())


def from_urdf(name):
    """The model of a robot of example-robot-data, on the ground."""
    _require(name)
    from coulomb.demo import robot_path

    relative, floating, position = URDF[name]
    path, packages = robot_path(relative)
    scene = coulomb.Scene(timestep=TIMESTEP)
    scene.add_ground(friction=0.8)
    scene.add_urdf(path, floating_base=floating, position=position, package_dirs=[packages], friction=0.8)
    return scene.build()


def in_mujoco(name):
    """The compiled model of the robot for MuJoCo."""
    from coulomb.mjcf import compile_mjcf
    from coulomb.mjcf_export import to_mjcf

    if folder() is not None:
        return compile_mjcf(folder() / name / "model.xml")
    return compile_mjcf(gymnasium_text(name) if name in GYMNASIUM else to_mjcf(from_urdf(name), TIMESTEP))


def falling_states(mj):
    """States q, v and MuJoCo's warm start w, one a row: in contact, evenly spread over falls from random poses with zero control."""
    import mujoco

    random = np.random.default_rng(0)
    mj.opt.integrator, mj.opt.solver = mujoco.mjtIntegrator.mjINT_EULER, mujoco.mjtSolver.mjSOL_NEWTON
    data = mujoco.MjData(mj)
    steps = int(round(1.5 / mj.opt.timestep))
    q, v, w = [], [], []
    for _ in range(FALLS):
        # A random pose about the neutral one.
        mujoco.mj_resetData(mj, data)
        velocity = random.normal(scale=0.3, size=mj.nv)
        mujoco.mj_integratePos(mj, data.qpos, velocity, 1.0)
        data.qvel[:] = velocity

        # Its fall, and the same number of states from each.
        found = []
        for _ in range(steps):
            state = data.qpos.copy(), data.qvel.copy(), data.qacc_warmstart.copy()
            mujoco.mj_step(mj, data)
            if data.ncon > 0:
                found.append(state)
        if not found:
            continue
        for i in np.linspace(0, len(found) - 1, min(NUM_STATES // FALLS, len(found))).astype(int):
            for rows, row in zip((q, v, w), found[i]):
                rows.append(row)
    if not q:
        raise RuntimeError("no state in contact in the simulated falls")
    return np.array(q), np.array(v), np.array(w)
