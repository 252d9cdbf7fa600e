"""A finger that flicks a box 10.5 cm away: control alone, and with the lengths of its links.

DiffRedMax's torque finger flick, in a plane: links of 4, 2 and 1 cm, 1 x 1 cm thick, on joints with dampers, a cube of 1 cm that slides on the ground
with friction 0.2, 1000 steps of 0.5 ms, a torque per joint and step (3000 controls), cost (way of the box - 10.5 cm)^2 at the end, in cm.
Here the squares of the controls cost a little (1e-3), and co-design has the three lengths, scales between 0.5 and 2.

    python examples/papers/diffredmax/finger_flick.py [--quick] [--output FOLDER]
"""

import codesign_common as common
import numpy as np

from coulomb.morphology import ChainCage, Piece

STEPS, BLOCK = 1000, 1
WAY = 10.5  # cm
TORQUE = 0.01  # N m
START = (0.0, np.pi / 2, np.pi / 4)  # rad: up, forward, forward and down
CUBE = f"""<body name="cube" pos="{5.2 * common.CM} 0 {0.5 * common.CM}"><joint name="way" type="slide" axis="1 0 0"/>
  <joint name="height" type="slide" axis="0 0 1"/><joint name="turn" type="hinge" axis="0 1 0"/>
  <geom name="cube" type="box" size="0.005 0.005 0.005" density="1000" contype="2" conaffinity="5" friction="0.2"/></body>
  <geom name="ground" type="plane" size="1 1 1" contype="4" conaffinity="2" friction="0.2"/>"""


def finger():
    """Three links along x that turn about y: euler puts the chain upright."""
    square = (common.CM, common.CM)
    pieces = [Piece("base", "base", 0.002, square, square)]
    for i, length in enumerate((4, 2, 1)):
        pieces.append(Piece(f"link{i}", f"link{i}", length * common.CM, square, square, f"length {i}"))
    hinge = {"axis": "0 1 0", "damping": 1e-3, "armature": 1e-7}
    return ChainCage(pieces, {f"link{i}": hinge for i in range(3)}, balls={"link1": 5e-4, "link2": 5e-4})


def task():
    chain = finger()
    model = common.build(
        [chain],
        TORQUE,
        CUBE,
        gravity=9.8,
        timestep=5e-4,
        positions=[(0, 0, 3.0 * common.CM)],
        eulers=[(0, -np.pi / 2, 0)],
    )
    q, v = model.neutral()
    q[:3] = START

    def cost(book, u):
        left = book.q[STEPS, 3] / common.CM - WAY
        book.dQ[STEPS, 3] += 2 * left / common.CM
        return left**2 + 1e-3 * np.sum(u**2), 2e-3 * u

    return common.Task(
        common.morphology(model, [chain], markers=False),
        cost,
        (q, v),
        steps=STEPS,
        block=BLOCK,
        bounds={None: (0.5, 2)},
        **common.penalty(1e5, 1e2, 3e2),
    )


def main():
    options = common.arguments(__doc__, quick="few iterations")
    flick = task()
    a = np.zeros((STEPS, 3))  # a first try: come down behind the cube, then stretch
    a[:350, 0], a[350:, 1:] = 0.8, -1

    def way(a, x):
        return flick.simulate(a, x)[1].q[-1][3] / common.CM

    results = common.study(
        "Finger flick",
        flick,
        options,
        at=(a, 1.0, 1e-7),  # less than to the next touch
        iterations=(10, 60),
        describe=lambda a, x: f"flicks the cube {way(a, x):.2f} cm",
        frames=(0, 250, 400, 1000),
        a=a,
        light=["cube"],
        limits=((-0.03, 0.2), (-0.01, 0.01), (0, 0.11)),
        view=(8, -85),
    )
    if not options.quick:
        assert abs(way(*results["control and design"][:2]) - WAY) < 0.2


if __name__ == "__main__":
    main()
