"""Mechanisms that close loops and tie joints, with limits that they may not reach: slider-cranks, chains, mimics, random ones."""

import numpy as np

import coulomb

_PASSES = 'contype="0" conaffinity="0"'


def mechanism(bodies, equalities, gravity=0.0):
    return coulomb.load(
        f'<mujoco><compiler angle="radian"/><option gravity="0 0 {-gravity}" timestep="0.002"/>'
        f"<worldbody>{bodies}</worldbody><equality>{equalities}</equality></mujoco>"
    )


def link(name, place, axis, end, inside="", attributes="", mass=1.0):
    """A body on a hinge, a bar to `end`."""
    position, tip = (" ".join(map(repr, map(float, point))) for point in (place, end))
    return f"""<body name="{name}" pos="{position}"><joint name="{name}" axis="{axis}" {attributes}/>
<geom type="capsule" fromto="0 0 0 {tip}" size=".01" mass="{mass}" {_PASSES}/>{inside}</body>"""


def slider(place, lowest, inside=""):
    position = " ".join(map(repr, map(float, place)))
    return f"""<body name="slider" pos="{position}">
<joint name="slide" type="slide" axis="1 0 0" limited="true" range="{lowest} 9"/>
<geom type="box" size=".02 .02 .02" mass="1" {_PASSES}/>{inside}</body>"""


def pin(body, point):
    return f'<connect name="pin" body1="{body}" body2="slider" anchor="{" ".join(map(repr, map(float, point)))}"/>'


TABLE = '<geom name="table" type="box" size=".2 .2 .02" pos="0 0 .1" mass=".5" friction=".5"/>'


def slider_crank(beyond, crank=0.2, rod=0.5, gravity=0.0, loaded=False):
    """A slide that a crank moves by a rod. It starts at 0, reaches `crank`, and is to be at `beyond` more than that at least.

    loaded: the slide carries a table, and a box lies on it.
    """
    cosine = 0.5 * crank / rod
    x, z = crank * cosine, crank * np.sqrt(1 - cosine**2)
    outer = link("rod", (x, 0, z), "0 1 0", (rod - x, 0, -z))
    bodies = link("crank", (0, 0, 0), "0 1 0", (x, 0, z), outer)
    bodies += slider((rod, 0, 0), crank + beyond, TABLE if loaded else "")
    if loaded:
        bodies += f"""<body name="box" pos="{rod + 0.03} .01 .22"><freejoint/>
<geom type="box" size=".1 .1 .1" mass="1" friction=".5"/></body>"""
    return mechanism(bodies, pin("rod", (rod - x, 0, -z)), gravity)


def chain(beyond, links=3, length=0.3, gravity=0.0):
    """A slide on a zigzag of links. It starts at 0, reaches a fifth of their length, and is to be at `beyond` more than that at least."""
    up, along = 0.6 * length, 0.8 * length
    signs = [(-1) ** i for i in range(links)]
    bodies = ""
    for i in reversed(range(links)):
        place = (along, 0, up * signs[i - 1]) if i else (0, 0, 0)
        bodies = link(f"link{i}", place, "0 1 0", (along, 0, up * signs[i]), bodies, mass=0.5)
    bodies += slider((links * along, 0, up * sum(signs)), 0.2 * links * length + beyond)
    return mechanism(bodies, pin(f"link{links - 1}", (along, 0, up * signs[-1])), gravity)


def tied_hinges(first, second, slope=1.0, gravity=0.0, inertia=1.0):
    """Two pendulums with these ranges, the second tied to the first: q0 = slope q1."""
    bodies = "".join(
        link(f"hinge{i}", (i, 0, 0), "0 1 0", (0, 0, -0.3), attributes=f'limited="true" range="{limits}"', mass=mass)
        for i, (limits, mass) in enumerate([(first, 1.0), (second, inertia)])
    )
    tie = f'<joint name="tie" joint1="hinge0" joint2="hinge1" polycoef="0 {slope} 0 0 0"/>'
    return mechanism(bodies, tie, gravity)


def random_mechanism(rng):
    """A loop of three to six hinges about random axes, closed to the world or to a slide by a connection or a weld, some joints tied and some
    with limits, and a state that violates all of them. Returns (model, q)."""
    n = rng.integers(3, 7)
    planar = rng.random() < 0.5
    bodies, at, places = "", np.zeros(3), [np.zeros(3)]
    for _ in range(n):
        step = 0.3 * rng.normal(size=3)
        places.append(step * ([1, 0, 1] if planar else 1))
    for i in reversed(range(n)):
        axis = "0 1 0" if planar else " ".join(map(repr, map(float, rng.normal(size=3))))
        low, high = sorted(0.6 * rng.normal(size=2))
        limits = f'limited="true" range="{low} {high + 0.05}"' if rng.random() < 0.3 else ""
        place = places[i] if i else at
        bodies = link(f"link{i}", place, axis, places[i + 1], bodies, limits, mass=10 ** rng.uniform(-1.5, 0.5))
    end = np.sum(places, axis=0)
    bodies += slider(end, -9 if rng.random() < 0.5 else rng.uniform(-0.1, 0.5))

    last, anchor = f"link{n - 1}", " ".join(map(repr, map(float, places[-1])))
    other = 'body2="slider"' if rng.random() < 0.6 else ""
    kind = "weld" if rng.random() < 0.3 else "connect"
    equalities = f'<{kind} name="closure" body1="{last}" {other} anchor="{anchor}"/>'
    if rng.random() < 0.4:
        a, b = rng.choice(n, 2, replace=False)
        slope = rng.uniform(-2, 2)
        equalities += f'<joint name="tie" joint1="link{a}" joint2="link{b}" polycoef="0 {slope} 0 0 0"/>'
    model = mechanism(bodies, equalities)
    q = np.zeros(model.nq) + 10 ** rng.uniform(-4, -0.5) * rng.normal(size=model.nq)
    return model, q
