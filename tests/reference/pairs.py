"""Pairs of shapes at random poses with a chosen distance, for the comparison of contacts with other libraries."""

import numpy as np

import coulomb

HULL = np.array(
    [
        (0.12, 0, 0.01),
        (-0.1, 0, 0.02),
        (0, 0.11, 0),
        (0.02, -0.12, 0),
        (0, 0.01, 0.1),
        (0.01, 0, -0.13),
        (0.07, 0.07, 0.07),
    ]
)
SIZES = {
    "sphere": (0.1,),
    "capsule": (0.06, 0.2),
    "cylinder": (0.08, 0.22),
    "box": (0.2, 0.15, 0.25),
    "ellipsoid": (0.12, 0.08, 0.1),
    "mesh": (),
}
MARGIN = 0.01  # m: contacts are made below this distance


def add(scene, kind, name):
    if kind == "half_space":
        scene.add_ground(name=name)
    elif kind == "mesh":
        scene.add_mesh(HULL, name=name)
    elif kind in ("box", "ellipsoid"):
        getattr(scene, "add_" + kind)(SIZES[kind], name=name)
    else:
        getattr(scene, "add_" + kind)(*SIZES[kind], name=name)


def two_bodies(kind_a, kind_b):
    """Model of two bodies without gravity; the half-space, if any, is kind_b."""
    scene = coulomb.Scene(gravity=(0, 0, 0), contact_margin=MARGIN)
    add(scene, kind_a, "a")
    add(scene, kind_b, "b")
    return scene.build()


def at_distance(q, distance_of, wanted):
    """Moves body a along x (of the world; z if b is a plane) until distance_of(q) = wanted; None if the distance is not monotone there."""
    axis = 0 if len(q) == 14 else 2
    low, high = 0.0, 1.0
    for _ in range(50):
        q[axis] = (low + high) / 2
        low, high = (q[axis], high) if distance_of(q) < wanted else (low, q[axis])
    return q if abs(distance_of(q) - wanted) < 1e-5 else None


def poses(model, distance_of, n, seed):
    """n configurations: random orientations and offsets, in shallow penetration or nearly touching."""
    rng = np.random.default_rng(seed)
    found = 0
    while found < n:
        q = model.neutral()[0]
        for i in range(0, model.nq, 7):
            q[i : i + 3] = 0.03 * rng.standard_normal(3)
            q[i + 3 : i + 7] = rng.standard_normal(4)
            q[i + 3 : i + 7] /= np.linalg.norm(q[i + 3 : i + 7])
        if at_distance(q, distance_of, rng.uniform(-0.008, 0.008)) is not None:
            found += 1
            yield q


def contacts(model, q):
    """The contacts at q; body b's witness of each is point - depth-half along the normal."""
    sim = coulomb.Simulator(model, timestep=1e-3, exclude_neutral_overlaps=False, patches=False)
    sim.step(q, np.zeros(model.nv))
    return sim.contacts


def deepest(model, q):
    """(distance, unit normal from b to a, point) of the deepest contact, and how many there are."""
    found = contacts(model, q)
    assert found, "no contact although the shapes are within the margin"
    c = max(found, key=lambda c: c.depth)
    sign = 1 if c.geometry_a == "a" else -1
    return -c.depth, sign * c.normal, c.point, len(found)
