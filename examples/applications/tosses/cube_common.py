"""The cube as models of Coulomb, what is fitted of them, and their predictions.

Three models: `box`, a sharp cube; `rounded`, eight balls for its corners and a body of flat sides for its faces, which slide with a friction of their own,
so that a corner and a face are two materials; `lasting`, the same on a table that gives way: spring and damper instead of a coefficient of
restitution, so that an impact takes about a millisecond, in which the friction turns with the sliding.
"""

import itertools

import numpy as np
from tosses_common import HALF, LONGEST_FLIGHT, MASS, PERIOD, SIGNS, product, start, turned

import coulomb
from coulomb.identify import Block, Unknown, Window, fit
from coulomb.identify.unknowns import Coordinates

ROUNDING = 0.0035  # m, radius of the corners: of 2.5, 3.5 and 4.5 mm the best on the validation tosses
FACE = 0.010  # m, from the corner of a sharp cube to where its flat sides begin
PROUD = 5e-5  # m that the flat sides stand out, so that a cube that lies flat lies on them and not on the balls
SUBSTEPS = {"box": 8, "rounded": 8, "lasting": 16}  # per row of the track


def flat_sides():
    """(24, 3): four corners of each face."""
    points = []
    for axis, side, a, b in itertools.product(range(3), (-1, 1), (-1, 1), (-1, 1)):
        point = np.zeros(3)
        point[axis], point[axis - 2], point[axis - 1] = side * (HALF + PROUD), a * (HALF - FACE), b * (HALF - FACE)
        points.append(point)
    return np.array(points)


def words(numbers):
    return " ".join(f"{x:.9g}" for x in np.ravel(numbers))


def model(kind, gravity, com, moment=0.00099, half=HALF):
    """A cube of this kind over a table; friction 0.2 everywhere, and of `lasting` a spring and a damper, are first guesses."""
    assets, shapes = "", f'<geom name="cube" type="box" size="{words([half] * 3)}" mass="0" friction="0"/>'
    if kind != "box":
        assets = f'<asset><mesh name="faces" vertex="{words(flat_sides())}"/></asset>'
        shapes = '<geom name="faces" type="mesh" mesh="faces" mass="0" friction="0"/>' + "".join(
            f'<geom name="corner{k}" type="sphere" size="{ROUNDING}" pos="{words(s * (HALF - ROUNDING))}" mass="0" friction="0"/>'
            for k, s in enumerate(SIGNS)
        )
    scene = coulomb.Scene(timestep=PERIOD / SUBSTEPS[kind])
    scene.add_mjcf(
        f'<mujoco><option gravity="0 0 {-gravity:.9g}"/>{assets}<worldbody><geom name="table" type="plane" size="5 5 1" friction="0"/>'
        f'<body name="cube" pos="0 0 1"><freejoint/><inertial pos="{words(com)}" mass="{MASS}" diaginertia="{words([moment] * 3)}"/>'
        f"{shapes}</body></worldbody></mujoco>"
    )

    # Corners slide by the table's friction, faces by that of their pair with it.
    scene.set_contact("table", friction=0.2)
    if kind != "box":
        scene.set_contact("table", "faces", friction=0.2, restitution=None if kind == "lasting" else 0.0)
    if kind == "lasting":
        scene.set_contact("table", contact_stiffness=1.5e5, contact_dashpot=150.0)
    else:
        scene.set_contact("table", restitution=0.2)
    return scene.build()


class CubeInertia(Block):
    """Centre of mass (mm) and the logarithm of the moment of inertia about it, the same about all axes; com=None: in the middle."""

    def __init__(self, com, moment=0.00099):
        self.com, self.moment = com, moment

    def bind(self, model):
        free = 0 if self.com is None else 3
        labels = ["com x [mm]", "com y [mm]", "com z [mm]"][:free] + ["log moment"]
        at = np.r_[np.zeros(0) if self.com is None else 1e3 * np.asarray(self.com), np.log(self.moment)]
        inf = np.full(len(at), np.inf)
        return Coordinates(labels, at, -inf, inf, at, inf, np.r_[np.ones(free), 0.1], ["inertia/cube"])

    def values(self, x):
        c = 1e-3 * x[:-1] if len(x) > 1 else np.zeros(3)
        J = np.exp(x[-1]) * np.eye(3) + MASS * (c @ c * np.eye(3) - np.outer(c, c))
        return {"inertia/cube": np.r_[MASS, MASS * c, J[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]]}

    def jacobian(self, x):
        columns = []
        for k in range(len(x) - 1):
            c, e = 1e-3 * x[:-1], 1e-3 * np.eye(3)[k]
            dJ = MASS * (2 * (c @ e) * np.eye(3) - np.outer(c, e) - np.outer(e, c))
            columns.append(np.r_[0.0, MASS * e, dJ[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])
        columns.append(np.exp(x[-1]) * np.r_[np.zeros(4), 1, 0, 1, 0, 0, 1])
        return {"inertia/cube": np.stack(columns, axis=1)}


# What is measured


def first_impacts(tosses, gravity, com, substeps, rows):
    """A window of each toss: so many rows from two before the first touch, its start known from the flight."""
    windows = []
    for toss in tosses:
        first = toss.touch - 2
        if first < 4 or first + rows >= len(toss.q):
            continue
        windows.append(
            Window(
                q=toss.q[first : first + rows + 1],
                u=np.zeros((rows, 0)),
                substeps=substeps,
                deviation=[0.002] * 3 + [0.02] * 3,  # of the law of impact, not of the track
                start=start(toss, gravity, com, first),
            )
        )
    return windows


def slides(tosses, substeps, rows=12):
    """A window of each toss that slides on a face for so long: starts flat, on the table, and is measured along it."""
    windows = []
    for toss in tosses:
        heights = np.sort(toss.corner_heights, axis=1)
        flat = np.all(np.abs(heights[:, :4]) < 0.003, axis=1)
        for first in range(LONGEST_FLIGHT, len(toss.q) - rows):
            speed = np.linalg.norm(toss.q[first + rows, :2] - toss.q[first + rows - 2, :2]) / (2 * PERIOD)
            if flat[first : first + rows + 1].all() and speed > 0.05:
                windows.append(slide(toss, first, rows, substeps))
                break
    return windows


def slide(toss, first, rows, substeps):
    # Flat: the axis that points up or down becomes vertical.
    q, R = toss.q[first : first + rows + 1], toss.R[first]
    axis = int(np.argmax(np.abs(R[2])))
    vertical = np.sign(R[2, axis]) * np.eye(3)[2]
    begin = q[0].copy()
    begin[2] = HALF + PROUD
    begin[3:] = upright(q[0, 3:], R[:, axis], vertical)

    # Along the table: x, y and the turn about the vertical, with their velocities, are not known exactly.
    plane = np.r_[True, True, False, np.arange(3) == axis]
    line = np.polyfit(PERIOD * np.arange(6), q[:6, :2], 2)
    return Window(
        q=q,
        u=np.zeros((rows, 0)),
        substeps=substeps,
        deviation=np.where(plane, [0.0005] * 3 + [0.005] * 3, 1.0),
        start=(begin, np.r_[line[1], np.zeros(4)]),
        start_deviation=np.r_[np.where(plane, 0.001, 0.0), np.where(plane, [0.1] * 3 + [3.0] * 3, 0.0)],
    )


def upright(quaternion, direction, vertical):
    """The quaternion turned by the least that takes a direction to the vertical."""
    turn = np.cross(direction, vertical)
    sine = np.linalg.norm(turn)
    return product(turned(turn * (np.arcsin(sine) / max(sine, 1e-12))), quaternion)


# Fits and predictions


def identify(kind, tosses, gravity, com, known, rows):
    """The model of this kind that fits the first impacts of these tosses, and how it was found (coulomb.identify.Fit).

    com: first guess of the centre of mass; None: held in the middle. known: values by parameter that are not looked for.
    """
    middle = np.zeros(3) if com is None else com
    guess = model(kind, gravity, middle).with_parameters(known)
    unknowns = [CubeInertia(com), Unknown("friction/table", start=0.16)]
    if kind == "lasting":
        unknowns += [Unknown(f"contact_{name}/table", log=True) for name in ("stiffness", "dashpot")]
    else:
        unknowns += [Unknown("restitution/table")]
    windows = first_impacts(tosses, gravity, middle, SUBSTEPS[kind], rows)
    options = dict(loss="cauchy", max_evaluations=20, tolerance=1e-3, num_threads=1)
    return fit(guess, windows, unknowns, initial_states=False, **options)


def sliding_friction(tosses, gravity, com):
    """Friction of a face on the table, from slides alone."""
    kind = "rounded"
    windows = slides(tosses, SUBSTEPS[kind])
    unknown = Unknown("pair_friction/table:faces", start=0.2)
    return fit(model(kind, gravity, com), windows, unknown, max_evaluations=20, tolerance=1e-4, num_threads=1)


def predict(model, tosses, starts, side_by_side=32):
    """Paths (rows, 7) of every toss from its (q, v), all rows that were tracked."""
    out, order = [None] * len(tosses), sorted(range(len(tosses)), key=lambda k: len(tosses[k].q))
    substeps = round(PERIOD / model.timestep)
    for first in range(0, len(order), side_by_side):
        some = order[first : first + side_by_side]
        rows = max(len(tosses[k].q) for k in some) - 1
        batch = coulomb.BatchSimulator(model, num_envs=len(some), num_threads=1)
        Q, V = (np.array([starts[k][part] for k in some]) for part in (0, 1))
        r = batch.rollout(Q, V, np.zeros((len(some), rows, 0)), substeps=substeps, derivatives=False)
        for k, path in zip(some, r.q):
            out[k] = path[: len(tosses[k].q)]
    return out


def starts_of(tosses, gravity, com):
    return [start(toss, gravity, com) for toss in tosses]
