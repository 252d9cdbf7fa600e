"""A finger that tips a block over: control alone, and with its shape.

DiffRedMax's finger flip, with a finger of our own: gravity, 150 steps of 5 ms, controls in blocks of 5 steps. A cube of 6 cm is
hinged at its far lower edge; the finger, arched in front of it, has to push the near face and turn it by 90 degrees.
Cost, over the blocks: 5 |u|^2, in the first half the squared distance of the tip from a point of the face (cm), and after it
50 (angle - 90 degrees)^2. 120 controls and 9 scales between 0.5 and 3.

    python examples/papers/diffredmax/finger_flip.py [--quick] [--output FOLDER]
"""

import codesign_common as common
import numpy as np

STEPS, BLOCK = 150, 5
SIDE, EDGE = 0.06, np.array([0.237, 0.0, -0.10])  # m: of the cube; the middle of its hinged edge
TOUCH = np.array([-SIDE + 0.02, 0.0, 0.05])  # behind its near face, from the edge: to be pushed
GOAL = np.pi / 2
TORQUE = 0.3  # N m
ARCHED = (0.0, -0.3, 0.9, 0.8)  # rad: the tip in front of the cube, also of longer fingers
BLOCK_XML = f"""<body name="cube" pos="{EDGE[0]} {EDGE[1]} {EDGE[2]}">
  <joint name="cube" axis="0 1 0" range="0 {np.pi / 2}" limited="true" damping="0.002"/>
  <geom name="cube" type="box" pos="{-SIDE / 2} 0 {SIDE / 2}" size="{SIDE / 2} {SIDE / 2} {SIDE / 2}" density="300"
    contype="2" conaffinity="1" friction="0.8"/></body>"""


def task():
    chain = common.finger(balls=common.BALLS)
    model, start, angle = common.with_hinge(chain, TORQUE, BLOCK_XML, ARCHED, gravity=9.8, timestep=5e-3)

    def cost(book, u):
        total = 5 * np.sum(u**2)
        for k in range(len(u)):
            t = (k + 1) * BLOCK
            if 2 * k < len(u):
                gap = (book.point(t, "p2") - (EDGE + TOUCH)) / common.CM
                total += gap @ gap
                book.pull(t, "p2", 2 * gap / common.CM)
            else:
                left = book.q[t, angle] - GOAL
                total += 50 * left**2
                book.dQ[t, angle] += 100 * left
        return total, 10 * u

    return common.Task(
        common.morphology(model, [chain]),
        cost,
        start,
        steps=STEPS,
        block=BLOCK,
        bounds={None: (0.5, 3)},
        **common.penalty(5e5, 2.5e3, 3e2),
    )


def main():
    options = common.arguments(__doc__, quick="few iterations")
    flip = task()

    def end(a, x):
        return flip.simulate(a, x)[1].q[-1][-1]

    results = common.study(
        "Finger flip",
        flip,
        options,
        at=(0.1, 1.05),
        iterations=(8, 100),
        describe=lambda a, x: f"turns the cube by {np.degrees(end(a, x)):.0f} degrees",
        frames=(0, 50, 75, 110, 150),
        tolerance=1e-5,
        light=["cube"],
        limits=((-0.01, 0.32), (-0.09, 0.09), (-0.13, 0.09)),
        view=(12, -75),
    )
    control, both = results.values()
    if not options.quick:
        assert both[2][-1] < 0.5 * control[2][-1] and abs(end(*both[:2]) - GOAL) < 0.1


if __name__ == "__main__":
    main()
