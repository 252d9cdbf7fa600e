"""Two fingers that push a peg into a slot: control alone, and with the shapes of the fingers.

DiffRedMax's assembly, with fingers and parts of our own: 500 steps of 1 ms, controls in blocks of 5 steps. A block with a slot and a peg, turned by
30 degrees, slide on a table with friction; the left finger pushes the block, the right one the peg. Cost, over the blocks, in cm and
rad: |u|^2 + 15 |block - middle|^2 + 5 |mouth of the slot - nose of the peg|^2 + 50 (difference of their angles)^2, and the squared
distances of the tips from what they push. 800 controls and 17 scales: the palms' length, and of each finger three lengths and five sides of
cross-sections. Lengths grow by 15 % at most, so that no finger begins inside of what it pushes.

    python examples/papers/diffredmax/assemble.py [--quick] [--continuation] [--output FOLDER]
"""

import codesign_common as common
import numpy as np

STEPS, BLOCK = 500, 5
TORQUE = 0.3  # N m
BASE = 0.255  # m: of the fingers, left and right of the middle
LEFT, RIGHT = (0.0, -0.6, 1.2, 0.2), (0.0, 0.6, -1.2, -0.2)  # rad
BOUNDS = {None: (0.5, 3), "palm length": (0.5, 1.3)}  # lengths: no finger begins inside of what it pushes
BOUNDS |= {f"{side} length {i}": (0.5, 1.15) for side in ("left", "right") for i in range(3)}
MOUTH, NOSE = np.array([0.005, 0.0, 0.0]), np.array([-0.02, 0.0, 0.0])  # of the slot's bottom, of the peg
PUSH = {"left": ("block", np.array([-0.012, 0.0, 0.0])), "right": ("peg", np.array([0.012, 0.0, 0.0]))}
FINGERS = {"left": "l.p2", "right": "r.p2"}


def sliding(name, x, y, turn, shapes):
    joints = "".join(
        f'<joint name="{name}.{axis}" type="{kind}" axis="{vector}" damping="{damping}"/>'
        for axis, kind, vector, damping in (
            ("x", "slide", "1 0 0", 2),
            ("y", "slide", "0 1 0", 2),
            ("turn", "hinge", "0 0 1", 1e-3),
        )
    )
    geoms = "".join(
        f'<geom name="{name}{i}" type="box" pos="{px} {py} 0" size="{sx} {sy} 0.01" density="500" contype="2" conaffinity="3" '
        f'friction="0.2"/>'
        for i, (px, py, sx, sy) in enumerate(shapes)
    )
    return f'<body name="{name}" pos="{x} {y} 0" euler="0 0 {turn}">{joints}{geoms}</body>'


PARTS = sliding(
    "block",
    -0.035,
    0.008,
    0.0,
    ((-0.01, 0, 0.01, 0.029), (0.015, 0.022, 0.015, 0.007), (0.015, -0.022, 0.015, 0.007)),
)
PARTS += sliding("peg", 0.055, -0.004, 0.0, ((0, 0, 0.02, 0.008),))


def chains():
    out = []
    for side, prefix in (("left", "l."), ("right", "r.")):
        chain = common.finger(prefix=prefix, scale_prefix=f"{side} ", palm_scale="palm length", balls=common.BALLS)
        out.append(chain)
    return out


def task(scale=1.0):
    both = chains()
    model = common.build(
        both,
        TORQUE,
        PARTS,
        gravity=0,
        timestep=1e-3,
        positions=[(-BASE, 0, 0), (BASE, 0, 0)],
        eulers=[(np.pi / 2, 0, 0), (np.pi / 2, 0, np.pi)],
    )
    q, v = model.neutral()
    q[:4], q[4:8], q[-1] = LEFT, RIGHT, np.pi / 6
    rows = {name: int(model.joint_q[model.joint_names.index(name)]) for name in ("block.turn", "peg.turn")}

    def cost(book, u):
        total = np.sum(u**2)
        for k in range(len(u)):
            t = (k + 1) * BLOCK
            place = book.point(t, "block", MOUTH * 0) / common.CM
            total += 15 * place[:2] @ place[:2]
            book.pull(t, "block", 30 * np.r_[place[:2], 0] / common.CM, MOUTH * 0)
            gap = (book.point(t, "block", MOUTH) - book.point(t, "peg", NOSE)) / common.CM
            total += 5 * gap @ gap
            book.pull(t, "block", 10 * gap / common.CM, MOUTH)
            book.pull(t, "peg", -10 * gap / common.CM, NOSE)
            turn = book.q[t, rows["block.turn"]] - book.q[t, rows["peg.turn"]]
            total += 50 * turn**2
            book.dQ[t, rows["block.turn"]] += 100 * turn
            book.dQ[t, rows["peg.turn"]] -= 100 * turn
            for side, (body, point) in PUSH.items():
                gap = (book.point(t, FINGERS[side]) - book.point(t, body, point)) / common.CM
                total += gap @ gap
                book.pull(t, FINGERS[side], 2 * gap / common.CM)
                book.pull(t, body, -2 * gap / common.CM, point)
        return total, 2 * u

    return common.Task(
        common.morphology(model, both),
        cost,
        (q, v),
        steps=STEPS,
        block=BLOCK,
        bounds=BOUNDS,
        anew=40,
        **common.penalty(1e5 * scale, 5e3 * scale, 1e3 * scale),
    )


def outcome(assemble, a, x):
    """Block from the middle, slot from peg (m), difference of angles (rad), at the end."""
    r = assemble.simulate(a, x)[1]
    book = common.Book(assemble, r, x)
    gap = book.point(STEPS, "block", MOUTH) - book.point(STEPS, "peg", NOSE)
    names = [r.model.joint_names.index(name) for name in ("block.turn", "peg.turn")]
    turns = r.q[STEPS][r.model.joint_q[names]]
    return np.linalg.norm(book.point(STEPS, "block", 0 * MOUTH)), np.linalg.norm(gap), turns[0] - turns[1]


def words(assemble, a, x):
    middle, gap, turn = outcome(assemble, a, x)
    return (
        f"block {1000 * middle:.1f} mm from the middle, peg {1000 * gap:.1f} mm from the slot's bottom, "
        f"{np.degrees(turn):.1f} degrees"
    )


def softened(iterations):
    """Controls from contact a hundred and ten times softer (--continuation): forces from farther away lead the way."""
    a = None
    for scale in (0.01, 0.1):
        soft = task(scale)
        a = np.zeros((soft.blocks, soft.nu)) if a is None else a
        a = common.run(soft, f"contact scale {scale:g}", a, iterations, False)[0]
    return a


def main():
    options = common.arguments(
        __doc__, quick="few iterations", continuation="controls from softer contact, scale 0.01, 0.1, 1"
    )
    assemble = task()
    results = common.study(
        "Assemble",
        assemble,
        options,
        at=(0.1, 1.02),
        iterations=(1, 120),
        describe=lambda a, x: words(assemble, a, x),
        frames=(0, 100, 250, 500),
        a=softened(1 if options.quick else 40) if options.continuation else None,
        tolerance=1e-5,
        light=["block0", "block1", "block2", "peg0"],
        limits=((-0.16, 0.16), (-0.09, 0.09), (-0.02, 0.02)),
        view=(70, -90),
    )
    if not options.quick and not options.continuation:
        control, both = results.values()
        middle, gap, turn = outcome(assemble, *both[:2])
        assert both[2][-1] < 0.5 * control[2][-1] and max(middle, gap) < 0.006 and abs(turn) < np.radians(12)


if __name__ == "__main__":
    main()
