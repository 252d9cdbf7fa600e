"""The robots of the benchmark and their states in contact.

With a folder of models (`<robot>/model.xml`, `<robot>/states.npz` with q, v and w, MuJoCo's warm start), exactly those
states. Without one, robots that packages ship (gymnasium, example-robot-data), with states sampled from falls that
MuJoCo simulates.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

import coulomb
from coulomb.mjcf import compile_mjcf

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scenes import robots as scenes  # noqa: E402

ORDER = ["half_cheetah", "humanoid", "ur5", "go1", "h1", "atlas", "hopper"]


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
    for name in (*scenes.GYMNASIUM, "ur5", "go1"):
        needed = scenes.missing(name)
        if needed:
            missing.append(f"{name}: {needed}")
        else:
            loaders[name] = lambda name=name: _from_package(name)
    return loaders, missing


def _from_package(name):
    mj = scenes.in_mujoco(name)
    source = "gymnasium" if name in scenes.GYMNASIUM else "example-robot-data"
    model = _coulomb_model(mj) if name in scenes.GYMNASIUM else scenes.from_urdf(name)
    return Robot(name, source, mj, model, *scenes.falling_states(mj))
