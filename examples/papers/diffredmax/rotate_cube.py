"""A finger that turns the top slab of a cube by a quarter: control alone, and with its shape.

DiffRedMax's rotate cube, with a finger of our own: no gravity, 200 steps of 5 ms, controls in blocks of 5 steps. A slab of
6 x 6 x 2 cm turns about the vertical through its middle, with a stiff bearing; the finger has to press against its side and
turn it by -90 degrees, with the slab farther away than is good for the finger as it is. Cost: over the blocks
5 |u|^2 + 0.1 |tip - tool|^2 (cm), tool a point of the slab where to push; at the end 1000 (angle + 90 degrees)^2. 160 controls and 9 scales between 0.5 and 2. Contact is hard contact with a compliance of
1/(h^2 k), springs of the stiffness k (docs/penalty.md), and exact Coulomb friction.

    python examples/papers/diffredmax/rotate_cube.py [--quick] [--output FOLDER]
"""

import codesign_common as common
import numpy as np

STEPS, BLOCK = 200, 5
PLACE = np.array([0.2, -0.02, -0.05])  # m: middle of the slab
TOOL = np.array([-0.015, 0.025, 0.0])  # in the slab, behind the side to push
GOAL = -np.pi / 2
TORQUE = 0.2  # N m
STIFFNESS = 1000.0  # N/m: of the balls
ARCHED = (0.15, -0.5, 1.1, 0.6)  # rad
SLAB = f"""<body name="slab" pos="{PLACE[0]} {PLACE[1]} {PLACE[2]}"><joint name="slab" axis="0 0 1" damping="0.001"/>
  <geom name="slab" type="box" size="0.03 0.03 0.01" density="300" contype="2" conaffinity="1" friction="0.8"/></body>
  <geom name="cube" type="box" pos="{PLACE[0]} {PLACE[1]} {PLACE[2] - 0.035}" size="0.03 0.03 0.024" contype="0"
    conaffinity="0"/>"""


def task():
    chain = common.finger(balls={**common.BALLS, "phalanx1": 0.002, "j2": 0.002})
    model, start, angle = common.with_hinge(chain, TORQUE, SLAB, ARCHED, gravity=0, timestep=5e-3)
    balls = [name for name, kind in zip(model.geometry_names, model.geometry_types) if kind == "sphere"]
    model = model.with_parameters({f"compliance/{name}": 1 / (model.timestep**2 * STIFFNESS) for name in balls})

    def cost(book, u):
        total = 5 * np.sum(u**2)
        for k in range(len(u)):
            t = (k + 1) * BLOCK
            gap = (book.point(t, "p2") - book.point(t, "slab", TOOL)) / common.CM
            total += 0.1 * gap @ gap
            book.pull(t, "p2", 0.2 * gap / common.CM)
            book.pull(t, "slab", -0.2 * gap / common.CM, TOOL)
        left = book.q[STEPS, angle] - GOAL
        book.dQ[STEPS, angle] += 2000 * left
        return total + 1000 * left**2, 10 * u

    return common.Task(
        common.morphology(model, [chain]),
        cost,
        start,
        steps=STEPS,
        block=BLOCK,
        bounds={None: (0.5, 2)},
        baumgarte=1.0,
    )


def main():
    options = common.arguments(__doc__, quick="few iterations")
    rotate = task()

    def end(a, x):
        return rotate.simulate(a, x)[1].q[-1][-1]

    results = common.study(
        "Rotate cube",
        rotate,
        options,
        at=(0.1, 1.05),
        iterations=(4, 100),
        describe=lambda a, x: f"turns the slab by {np.degrees(end(a, x)):.0f} degrees",
        frames=(0, 60, 120, 200),
        tolerance=1e-5,
        light=["slab"],
        limits=((-0.01, 0.26), (-0.11, 0.09), (-0.12, 0.06)),
        view=(40, -60),
    )
    if not options.quick:
        control, both = results.values()
        assert both[2][-1] < 0.8 * control[2][-1] and abs(end(*both[:2]) - GOAL) < 0.1


if __name__ == "__main__":
    main()
