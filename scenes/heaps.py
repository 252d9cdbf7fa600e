"""Scenes of any size, as MJCF so that other engines can load them: grids, stacks and piles of boxes, chains, meshes of many vertices."""

import numpy as np

SIDE = 0.2  # m, of the boxes; 1 kg each, friction .5


def world(bodies, timestep=2e-3, assets=""):
    """MJCF of bodies on the ground."""
    return f"""<mujoco><option timestep="{timestep}"/><size memory="1G"/><default><geom friction=".5 0 0" condim="3"/></default>{assets}
<worldbody><geom name="ground" type="plane" size="50 50 1"/>{bodies}</worldbody></mujoco>"""


def box(index, position, quaternion=(1, 0, 0, 0), mass=1.0):
    x, y, z = position
    w, i, j, k = quaternion
    half = SIDE / 2
    return f"""<body name="box{index}" pos="{x} {y} {z}" quat="{w} {i} {j} {k}"><freejoint/>
<geom name="box{index}" type="box" size="{half} {half} {half}" mass="{mass}"/></body>"""


def grid(count):
    """Boxes that lie beside each other on the ground and never touch."""
    columns = int(np.ceil(np.sqrt(count)))
    places = [(1.5 * SIDE * (i % columns), 1.5 * SIDE * (i // columns), SIDE / 2) for i in range(count)]
    return world("".join(box(i, place) for i, place in enumerate(places)))


def stack(count, masses=None):
    """Boxes one upon another; masses from below."""
    masses = [1.0] * count if masses is None else masses
    return world("".join(box(i, (0, 0, SIDE * (i + 0.5)), mass=masses[i]) for i in range(count)))


def pile(count, seed=0):
    """Boxes in the air, turned at random, that fall into a heap."""
    random = np.random.default_rng(seed)
    columns = max(2, round(count ** (1 / 3)))
    bodies = []
    for i in range(count):
        layer, place = divmod(i, columns * columns)
        at = 2 * SIDE * np.array([place % columns, place // columns, layer + 1]) + random.uniform(-0.05, 0.05, 3)
        quaternion = random.normal(size=4)
        bodies.append(box(i, at, quaternion / np.linalg.norm(quaternion)))
    return world("".join(bodies))


def chain(links):
    """A chain of hinges that falls from the horizontal, without contact."""
    link = '<joint axis="0 1 0" damping=".01"/><geom type="capsule" fromto="0 0 0 .1 0 0" size=".02" mass=".1" contype="0" conaffinity="0"/>'
    opening = [f'<body name="link{i}" pos="{0 if i == 0 else 0.1} 0 {0 if i else 3}">{link}' for i in range(links)]
    return world("".join(opening) + "</body>" * links)


def prisms(vertices):
    """Two prisms of that many vertices each, one upon the other."""
    angles = 2 * np.pi * np.arange(vertices // 2) / (vertices // 2)
    circle = 0.1 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points = [f"{x:.9g} {y:.9g} {z}" for z in (-0.05, 0.05) for x, y in circle]
    assets = f'<asset><mesh name="prism" vertex="{" ".join(points)}"/></asset>'
    bodies = "".join(
        f'<body pos="0 0 {0.05 + 0.1 * i}"><freejoint/><geom type="mesh" mesh="prism" mass="1"/></body>'
        for i in range(2)
    )
    return world(bodies, assets=assets)
