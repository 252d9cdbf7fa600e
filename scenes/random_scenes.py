"""Random scenes of every contact law, stepper and option: free bodies of all shapes, trees, or both, in states where derivatives are hard.

Bodies rest on the ground or on one another, deep, at distance zero or just above; they slide, bounce, spin or hit something within the step.
Trees are those of random_trees: dry friction, limits, equalities, springs, motors; here with servos too.
"""

from dataclasses import dataclass

import numpy as np

import coulomb

from . import random_trees

LAWS = {
    "cone": dict(contact="ncp"),
    "boxed": dict(contact="lcp"),
    "hexagon": dict(contact="lcp", friction_directions=3, friction_polygon="inscribed"),
    "octagon": dict(contact="lcp", friction_directions=4),
    "split cone": dict(contact="ncp", continuous_collision=True),
    "split boxed": dict(contact="lcp", continuous_collision=True),
    "penalty": dict(contact="penalty"),
    "bdf1": dict(stepper="bdf1"),
    "bdf2": dict(stepper="bdf2"),
}
SOFT = ("penalty", "bdf1", "bdf2")
SHAPES = ("sphere", "box", "capsule", "cylinder", "ellipsoid", "mesh")
DEPTHS = (0.0, 1e-6, 1e-5, 1e-4, -1e-6, -1e-5, -1e-4)  # m; negative: a gap
CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])


@dataclass
class Case:
    """One step: from (q, v), with u and tau, after `memory` (None: the first), by a simulator of these options."""

    model: coulomb.Model
    options: dict
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    tau: np.ndarray
    memory: coulomb.StepMemory | None
    state: str


def options_of(law, random):
    """The law's options, and some of those that it can be combined with."""
    options = dict(LAWS[law])
    if law in SOFT:
        options["contact_stiffness"] = float(10 ** random.uniform(3, 5))
        options["contact_damping"] = float(10 ** random.uniform(1, 4))
        options["contact_friction_stiffness"] = float(10 ** random.uniform(1, 4))
        options["limit_stiffness"] = float(10 ** random.uniform(2, 4))
        options["equality_stiffness"] = float(10 ** random.uniform(3, 5))
        options["equality_damping"] = float(10 ** random.uniform(1, 2))
        options["tolerance"] = 1e-13
    else:
        if random.random() < 0.4:
            options["baumgarte"] = float(random.choice([0.02, 0.3, 1.0]))
        if random.random() < 0.2:
            options["slop"] = float(random.choice([1e-5, 1e-3]))
        if random.random() < 0.2:
            options["restitution_threshold"] = float(random.choice([1e-3, 0.1]))
        if random.random() < 0.2:
            options["max_correction_speed"] = float(random.choice([0.01, 0.1]))
    if law not in ("bdf1", "bdf2") and random.random() < 0.3:
        options["gyroscopic"] = "explicit"
    if random.random() < 0.3:
        options["patches"] = False
    return options


def _shape(scene, random, kind, name, position, quaternion, **options):
    """Adds a shape whose half height, when it stands upright, is the number returned by half_height of the same sizes."""
    place = dict(position=position, quaternion=quaternion, name=name, **options)
    s = random
    if kind == "sphere":
        return scene.add_sphere(s[0], **place)
    if kind == "box":
        return scene.add_box(2 * s, **place)
    if kind == "mesh":
        return scene.add_mesh(2 * s * CORNERS, **place)
    if kind == "ellipsoid":
        return scene.add_ellipsoid(s, **place)
    return getattr(scene, f"add_{kind}")(s[0], 2 * s[2], **place)


def half_height(kind, s):
    """Of a shape with the sizes s (3,), m, that stands upright."""
    return s[0] if kind == "sphere" else s[2] + s[0] if kind == "capsule" else s[2]


def add_bodies(scene, random):
    """One to four bodies: stacked, side by side, or tumbling. Returns their heights' pattern by name."""
    pattern = str(random.choice(["side by side", "stack", "tumbling", "flying"]))
    height = 0.0
    for i in range(random.integers(1, 5)):
        kind = str(random.choice(SHAPES))
        s = random.uniform(0.04, 0.12, 3)
        if kind == "capsule" or kind == "cylinder":
            s[0] = min(s[0], s[2])
        depth = float(random.choice(DEPTHS))
        quaternion = np.array([1.0, 0, 0, 0])
        x, y, up = 0.3 * i + 1.5, 0.02 * i, half_height(kind, s)
        if pattern == "stack":
            x, kind = (
                1.5 + random.uniform(-0.02, 0.02),
                str(random.choice(["box", "box", "mesh", "cylinder", "sphere"])),
            )
            s[0] = min(s[0], s[2]) if kind == "cylinder" else s[0]
            up = half_height(kind, s)
            if i:  # faces that are exactly parallel have two normals near them
                quaternion = np.r_[1.0, 1e-3 * random.normal(size=3)]
                quaternion /= np.linalg.norm(quaternion)
        if pattern in ("tumbling", "flying"):
            quaternion = random.normal(size=4)
            quaternion /= np.linalg.norm(quaternion)
            x = 1.5 + random.uniform(-0.1, 0.1)
        z = height + up - depth if pattern != "tumbling" else height + 0.15
        if pattern == "flying":
            z = 1 + 0.3 * i
        if pattern in ("stack", "tumbling"):
            height = z + (up if pattern == "stack" else 0.15)
        options = dict(mass=float(10 ** random.uniform(-0.7, 0.7)))
        if random.random() < 0.8:
            options["friction"] = float(random.choice([0.0, 0.2, 0.5, 1.0]))
        if random.random() < 0.35:
            options["restitution"] = float(random.choice([0.3, 0.7, 1.0]))
        if random.random() < 0.15:
            options["compliance"] = float(10 ** random.uniform(-6, -3))
        _shape(scene, s, kind, f"free{i}", (x, y, z), quaternion, **options)
    return pattern


def build(seed, law):
    """The Case of this seed under this law."""
    random = np.random.default_rng([seed, list(LAWS).index(law)])
    options = options_of(law, random)

    # Trees, free bodies, or both, in one scene.
    what = str(random.choice(["tree", "tree", "bodies", "bodies", "both"]))
    scene, scalar = coulomb.Scene(), []
    if what != "bodies":
        text, scalar, _ = random_trees.describe(random)
        scene.add_mjcf(text)
    pattern = ""
    if what != "tree":
        if what == "bodies" and random.random() < 0.9:
            scene.add_ground(friction=float(random.choice([0.0, 0.3, 0.8])))
        pattern = add_bodies(scene, random)

    # Servos at joints of the trees; a limit whose ends are one number.
    for joint in scalar:
        if random.random() < 0.25:
            kind = str(random.choice(["position", "velocity"]))
            gains = dict(kp=float(random.uniform(1, 20))) if kind == "position" else {}
            scene.add_actuator(joint, kind=kind, kd=float(random.uniform(0, 0.1)), **gains)
    model = scene.build()
    timestep = float(random.choice([1e-3, 2e-3, 5e-3]))
    model = model.with_parameters({"timestep": timestep})
    for name, parameter in model.parameters().items():
        if name.startswith("joint_limits/") and np.size(parameter.value) == 2 and random.random() < 0.15:
            model = model.with_parameters({name: np.zeros(2)})

    # The numbers of penalty contact are parameters: those of the model, not of every simulator.
    model = coulomb.Simulator(model, **options).model
    options = {name: value for name, value in options.items() if not name.startswith("contact_")}

    # A state: as built, pushed from there, in motion, or what some steps made of it.
    state = str(random.choice(["neutral", "pushed", "pushed", "settled", "settled", "moving", "moving"]))
    q, v = model.neutral()
    u = random.normal(size=model.nu) * random.choice([0, 0.1, 1])
    tau = random.normal(size=model.nv) * random.choice([0, 0, 0.05, 0.5])
    if state == "pushed":
        v = random.normal(size=model.nv) * 10.0 ** random.uniform(-4, 0)
    if state == "moving" or pattern in ("tumbling", "flying"):
        v = random.normal(size=model.nv) * random.choice([1, 1, 5])
        q = model.integrate(q, random.normal(size=model.nv) * random.choice([1e-4, 1e-2]))
    memory = None
    if state == "settled" or law == "bdf2" or pattern == "tumbling":
        sim = coulomb.Simulator(model, **options)
        for _ in range(random.choice([1, 10, 60, 300]) if law != "bdf2" else random.choice([1, 10, 60])):
            q, v = sim.step(q, v, u, tau=tau)
        memory = sim.memory
    return Case(model, options, q, v, u, tau, memory, f"{what} {pattern} {state}")
