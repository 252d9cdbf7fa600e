"""Named parameters: columns of a step against Richardson differences of the step of a changed model; reverse against forward.

The changed model steps from the same memory (frozen), so that both solve the same problem from the same start. Parameters whose
change alters the active set have no two-sided derivative at this state and are left out; every kind must be compared somewhere.
"""

import math

import numpy as np
import pytest

import coulomb
from scenes import robots
from scenes.basics import about
from scenes.contacts import CONTACT_SCENES

TOLERANCE = 1e-6
CHANGES = (2e-5, 2e-6)  # of (q1, v1) that a difference aims at: the larger truncates, the smaller rounds
KINDS = {
    "mass", "com", "inertia", "friction", "restitution", "compliance", "joint_placement", "geometry_placement", "size", "vertices",
    "joint_stiffness", "joint_damping", "armature", "joint_friction", "joint_limits", "gravity", "timestep", "actuator_gain",
}  # fmt: skip
compared = set()

MATERIALS = """<mujoco><option gravity="0 0 -9.81" timestep="0.002"/><worldbody>
  <geom name="floor" type="plane" size="5 5 1" friction="0.3"/>
  <body name="base" pos="0 0 .0999"><freejoint/>
    <geom name="trunk" type="box" size=".2 .1 .1" mass="2" friction="0.6"/>
    <body name="arm" pos=".2 0 .1" euler="0 10 20"><joint name="shoulder" axis="0 1 0" stiffness="5" springref="10" damping=".2" armature=".01"
        frictionloss=".05" limited="true" range="-40 60"/>
      <geom name="upper" type="capsule" fromto="0 0 0 .2 0 0" size=".03" mass=".3"/>
      <body name="hand" pos=".2 0 0" euler="5 0 0"><joint name="wrist" type="ball" stiffness="1" damping=".05" armature=".002"/>
        <geom name="palm" type="ellipsoid" size=".05 .04 .06" mass=".2"/></body></body></body></worldbody>
  <actuator><motor name="pull" joint="shoulder" gear="3"/><position name="servo" joint="shoulder" kp="10"/></actuator></mujoco>"""


def mixed(random):
    """A base that slides with an arm on springs at its dry friction's bound: every kind of joint parameter."""
    scene = coulomb.Scene()
    scene.add_mjcf(MATERIALS)
    model = scene.build()
    q, v = model.neutral()
    v = v + 0.3 * random.normal(size=model.nv)
    v[0] += 1.0
    v[3:5] *= 0.1
    return model, q, v


def at_a_limit(random):
    model, q, v = mixed(random)
    joint = model.joint_names.index("shoulder")
    q[model.joint_q[joint]] = np.radians(60) + 1e-4
    v[6] = 0.5
    return model, q, v


def bouncing(random):
    scene = coulomb.Scene()
    scene.add_ground(friction=0.4, restitution=0.5)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.0999), friction=0.2, restitution=0.7, name="ball")
    scene.add_box((0.2, 0.2, 0.2), mass=2.0, position=(1, 0, 0.0999), friction=0.9, compliance=1e-3, name="soft")
    model = scene.build()
    q, v = model.neutral()
    v = v + 0.2 * random.normal(size=model.nv)
    v[2], v[8] = -2.0, -0.3
    v[6:8] *= 10
    return model, q, v


def on_a_mesh(random):
    """Ways a mesh carries a contact: its face, an edge, its sides under a box that overhangs, a vertex on the ground."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    table = [(-1, -1, 0), (1.2, -0.9, 0), (0.1, 1.1, 0), (0.05, 0, -0.999)]
    scene.add_mesh(table, mass=50.0, position=(0, 0, 0.9989), friction=0.6, name="table")
    scene.add_sphere(0.1, mass=0.5, position=(0.1, 0.2, 1.0988), name="ball")
    scene.add_box((0.3, 0.4, 0.2), mass=1.0, position=(0.85, -0.75, 1.0988), quaternion=about("z", 0.2), name="box")
    corners, axis = np.array(table), np.array([math.cos(math.pi / 6), 0, 0.5])  # a rod across an edge, one end up
    across = np.cross(axis, corners[0] - corners[2])
    middle = 0.5 * (corners[0] + corners[2]) + [0, 0, 0.9989]
    rod = middle + 0.0499 * across / np.linalg.norm(across) * np.sign(across[2])
    scene.add_capsule(0.05, 0.6, mass=1.0, position=rod, quaternion=about("y", math.pi / 3), name="rod")
    model = scene.build()
    q, v = model.neutral()
    v = v + 0.01 * random.normal(size=model.nv)
    v[2::6] -= 0.1
    return model, q, v


class Problem:
    """One step as a function of one parameter's scalars."""

    def __init__(self, model, q, v, u):
        self.model, self.q, self.v, self.u = model, q, v, u
        self.sim = coulomb.Simulator(model)
        self.sim.step(q, v, u)
        self.memory = self.sim.memory
        self.sim.freeze_memory(True)
        self.q1, self.v1 = self.sim.step(q, v, u)
        self.active = self.signature(self.sim)

    @staticmethod
    def signature(sim):
        return [(c.geometry_a, c.geometry_b, c.mode) for c in sim.contacts if c.mode != "separating"]

    def moved(self, name, value):
        sim = coulomb.Simulator(self.model.with_parameters({name: value}))
        sim.memory = self.memory
        sim.freeze_memory(True)
        q1, v1 = sim.step(self.q, self.v, self.u)
        if not sim.status.converged or self.signature(sim) != self.active:
            return None
        return np.r_[self.model.difference(self.q1, q1), v1 - self.v1]

    def columns(self, name, value, slopes, change):
        """(2 nv, size) by Richardson differences, or None where the step is not smooth. slopes: expected size of each column."""
        J = np.empty((2 * self.model.nv, len(value)))
        for k in range(len(value)):
            least = {"timestep": 1e-4, "com": 1e-2}.get(
                name.split("/")[0], 1e-3
            )  # a centre of mass may be at zero: metres
            size = max(abs(value[k]), 1e-2 * np.abs(value).max(), least)
            largest = 1e-3 if name.startswith("joint_limits") else 1e-2  # a limit a degree away is not to be reached
            h = np.clip(change / max(slopes[k], 1e-12), 1e-7 * size, largest * size)
            at = []
            for size in (h, -h, h / 2, -h / 2):
                changed = value.copy()
                changed[k] += size
                try:
                    at.append(self.moved(name, changed))
                except ValueError:  # a value at the edge of what is physical
                    return None
                if at[-1] is None:
                    return None
            plus, minus, half_plus, half_minus = at
            J[:, k] = (4 * (half_plus - half_minus) / h - (plus - minus) / (2 * h)) / 3
            bend, half_bend = np.linalg.norm(plus + minus), np.linalg.norm(half_plus + half_minus)
            one_sided = bend > 0.9 * np.linalg.norm(plus - minus)  # a limit that only one of them reaches
            if bend > 1e-10 and (half_bend > 0.4 * bend or one_sided):
                return None  # a kink: a tie within the differences
        return J


def compare(model, q, v, u, names, random):
    problem = Problem(model, q, v, u)
    if not problem.sim.status.converged:
        return
    values = {name: p.value for name, p in model.parameters().items() if name in names}
    d = problem.sim.derivatives(wrt=list(values))
    if d.ambiguous:
        return
    w = random.normal(size=(2, model.nv))
    g = problem.sim.vjp(*w, wrt=list(values))
    for name, value in values.items():
        analytic = d[name]
        assert analytic.shape == (2 * model.nv, len(value))
        reverse, forward = g[name], w.ravel() @ analytic
        # Where redundant contacts slide, how they share follows from a compliance of 3e-6: both modes round at 1e-16 over it.
        sliding = sum(c.mode == "sliding" for c in problem.sim.contacts) > 1
        scale = np.linalg.norm(w) * max(np.linalg.norm(analytic), np.linalg.norm(d.A) if sliding else 0, 1e-3)
        assert np.abs(reverse - forward).max() <= 1e-10 * scale, name
        floor = 3e-4 * max(1.0, np.linalg.norm(problem.v1)) / max(np.abs(value).max(), 1e-2)
        errors = []
        for change in CHANGES:
            numeric = problem.columns(name, np.array(value), np.linalg.norm(analytic, axis=0), change)
            if numeric is None:
                break
            errors.append(np.linalg.norm(analytic - numeric) / max(np.linalg.norm(numeric), floor))
            if errors[-1] <= TOLERANCE:
                break
        if numeric is None:
            continue
        assert min(errors) <= TOLERANCE, f"{name}: {min(errors):.1e}"
        if np.linalg.norm(analytic) > 0:
            compared.add(name.split("/")[0])


@pytest.mark.parametrize("build", [*CONTACT_SCENES, mixed, at_a_limit, bouncing, on_a_mesh], ids=lambda f: f.__name__)
def test_scenes(build):
    for seed in range(3):
        random = np.random.default_rng(seed)
        model, q, v = build(random)
        compare(model, q, v, 0.3 * random.normal(size=model.nu), set(model.parameters()), random)


@pytest.mark.parametrize("name", robots.NAMES)
def test_robots(name):
    if robots.folder() is None:
        pytest.skip("no folder of robots (COULOMB_ROBOTS)")
    model, qs, vs = robots.load(name)
    random = np.random.default_rng(1)
    for state in range(5, 60, 25):
        by_kind = {}
        for parameter in model.parameters():
            by_kind.setdefault(parameter.split("/")[0], []).append(parameter)
        by_kind.pop("vertices", None)  # thousands of scalars
        names = {n for group in by_kind.values() for n in random.choice(group, size=min(3, len(group)), replace=False)}
        compare(model, qs[state], vs[state], 0.1 * random.normal(size=model.nu), names, random)


def test_check_gradients_takes_names_of_parameters():
    model, q, v = mixed(np.random.default_rng(0))
    sim = coulomb.Simulator(model)
    names = ["mass/hand", "friction/trunk", "size/palm", "joint_placement/shoulder", "timestep"]
    check = coulomb.check_gradients(sim, q, v, wrt=["v", *names])
    assert check.passed, str(check)
    assert {f"dv_d{name}" for name in names} <= set(check.errors)
    with pytest.raises(ValueError, match="mass/nobody"):
        coulomb.check_gradients(sim, q, v, wrt=["mass/nobody"])


def test_every_kind_was_compared():
    if len(compared) == 0:
        pytest.skip("runs after the others")
    assert compared == KINDS
