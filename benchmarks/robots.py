"""The robots of the benchmark and their states in contact.

With a folder of models (`<robot>/model.xml`, `<robot>/states.npz` with q, v and w, MuJoCo's warm start), exactly those
states. Without one, robots that packages ship (gymnasium, example-robot-data), with states sampled from falls that
MuJoCo simulates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

import coulomb
from coulomb.mjcf import compile_mjcf

ORDER = ["half_cheetah", "humanoid", "ur5", "go1", "h1", "atlas", "hopper"]
NUM_STATES = 60
FALLS = 3


@dataclass
class Robot:
    """One robot in both engines. q (n, nq), v (n, nv); w (n, nv): MuJoCo's last acceleration, its warm start."""

    name: str
    source: str
    mujoco_model: object
    model: coulomb.Model
    q: np.ndarray
    v: np.ndarray
    w: np.ndarray | None
    same_pairs: object = None  # MuJoCo's model without the pairs that Coulomb leaves out, if there are any


def find_robots(folder, wanted):
    """(robots to load as a list of (name, function that loads), messages about those that are missing)."""
    folder = Path(folder)
    if folder.is_dir():
        names = sorted(p.parent.name for p in folder.glob("*/states.npz"))
        names.sort(key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
        loaders = {name: (lambda name=name: _from_folder(folder / name)) for name in names}
        missing = []
    else:
        loaders, missing = _from_packages()
    if wanted:
        unknown = [name for name in wanted if name not in loaders]
        if unknown:
            raise SystemExit(f"--robots: no robot {', '.join(unknown)}; there are {', '.join(loaders)}")
        loaders = {name: loaders[name] for name in wanted}
    return list(loaders.items()), missing


def _from_folder(folder):
    states = np.load(folder / "states.npz")
    mj = compile_mjcf(folder / "model.xml")
    w = np.ascontiguousarray(states["w"], dtype=float) if "w" in states else None
    q, v = (np.ascontiguousarray(states[key], dtype=float) for key in "qv")
    model = _coulomb_model(mj)
    same_pairs = _with_excludes(folder / "model.xml", mj, left_out_bodies(model))
    return Robot(folder.name, "model.xml and states.npz of a models folder", mj, model, q, v, w, same_pairs)


def left_out_bodies(model):
    """Pairs of bodies none of whose geometries are tested for contact, though the model has pairs of them."""
    simulated = coulomb.Simulator(model).model
    bodies = [
        {frozenset((int(m.geometry_body[a]), int(m.geometry_body[b]))) for a, b in zip(m.pair_a, m.pair_b)}
        for m in (model, simulated)
    ]
    return [sorted(pair) for pair in bodies[0] - bodies[1]]


def _with_excludes(path, mj, body_pairs):
    if not body_pairs or not hasattr(mujoco, "MjSpec"):
        return None
    spec = mujoco.MjSpec.from_file(str(path))
    for a, b in body_pairs:
        spec.add_exclude(bodyname1=mj.body(a).name, bodyname2=mj.body(b).name)
    return spec.compile()


def _coulomb_model(mj):
    scene = coulomb.Scene()
    scene.add_mujoco_model(mj)
    return scene.build()


def _from_packages():
    loaders, missing = {}, []
    try:
        import gymnasium

        assets = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
        for name in ("half_cheetah", "humanoid", "hopper"):
            loaders[name] = lambda name=name: _from_gymnasium(name, assets / f"{name}.xml")
    except ImportError:
        missing.append("half_cheetah, humanoid, hopper: pip install gymnasium")
    from coulomb.demo import robot_path

    urdfs = {
        "ur5": ("ur_description/urdf/ur5_robot.urdf", False, (0.0, 0.0, 0.0)),
        "go1": ("go1_description/urdf/go1.urdf", True, (0.0, 0.0, 0.45)),
    }
    for name, (relative, floating, position) in urdfs.items():
        try:
            path, packages = robot_path(relative)
        except RuntimeError as error:
            missing.append(f"{name}: {error}")
            continue
        loaders[name] = lambda a=(name, path, packages, floating, position): _from_urdf(*a)
    return loaders, missing


def _from_gymnasium(name, path):
    # A margin makes contacts at a distance; without it both engines touch at the same time.
    mj = compile_mjcf(re.sub(r'\smargin="[^"]*"', "", path.read_text()))
    return Robot(name, "gymnasium", mj, _coulomb_model(mj), *_falling_states(mj))


def _from_urdf(name, path, packages, floating, position):
    from coulomb.mjcf_export import to_mjcf

    scene = coulomb.Scene(timestep=2e-3)
    scene.add_ground(friction=0.8)
    scene.add_urdf(path, floating_base=floating, position=position, package_dirs=[packages], friction=0.8)
    model = scene.build()
    mj = compile_mjcf(to_mjcf(model, model.timestep))
    return Robot(name, "example-robot-data", mj, model, *_falling_states(mj))


def _falling_states(mj):
    """States in contact, evenly spread over falls from random poses with zero control."""
    random = np.random.default_rng(0)
    mj.opt.integrator, mj.opt.solver = mujoco.mjtIntegrator.mjINT_EULER, mujoco.mjtSolver.mjSOL_NEWTON
    data = mujoco.MjData(mj)
    steps = int(round(1.5 / mj.opt.timestep))
    q, v, w = [], [], []
    for _ in range(FALLS):
        mujoco.mj_resetData(mj, data)
        velocity = random.normal(scale=0.3, size=mj.nv)
        mujoco.mj_integratePos(mj, data.qpos, velocity, 1.0)  # a random pose about the neutral one
        data.qvel[:] = velocity
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
