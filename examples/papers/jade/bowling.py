"""A bowling ball at 10 m/s knocks pins off: many impacts within a step, no penetration.

Jade [Yang2024, figure 1]: a ball rolls on the floor at 10 m/s and knocks pins off, "intersection-free". Sizes are not given; those here are a
real alley's: ball 6.8 kg, 108 mm; ten pins of 1.5 kg, 380 mm high (hulls of a turned profile), 305 mm apart. Steps of 10 ms: the ball moves
almost its radius in a step. At the end of every step the distance of every two shapes is measured anew. Four throws with both laws
of friction: straight, and 2, 4 and 6 cm to the left.

    python examples/papers/jade/bowling.py [--quick] [--output FOLDER]
"""

import numpy as np
from jade_common import LAWS, arguments, finish, simulator, strobe

import coulomb
from coulomb.pictures import COLOURS, STYLE

TIMESTEP, STEPS, SPEED, RADIUS, BALL_MASS = 1e-2, 30, 10.0, 0.108, 6.8
TOLERANCE = 1e-5  # m: penetration_tolerance of Simulator
ASIDE = (0.0, 0.02, 0.04, 0.06)  # m
PIN_MASS, SPACING, SIDES = 1.5, 0.305, 12
PROFILE = (
    (0.026, -0.19),
    (0.0605, -0.075),
    (0.0325, 0.125),
    (0.0325, 0.165),
    (0.015, 0.19),
)  # radius, height from the middle


def pin_corners():
    angles = 2 * np.pi * (np.arange(SIDES) + 0.5) / SIDES
    return np.array([(r * np.cos(a), r * np.sin(a), z) for r, z in PROFILE for a in angles])


def alley(rows):
    scene = coulomb.Scene(timestep=TIMESTEP)
    scene.add_ground(friction=0.2, restitution=0.0)
    scene.add_sphere(RADIUS, mass=BALL_MASS, position=(-0.5, 0, RADIUS), friction=0.2, restitution=0.3, name="ball")
    for row in range(rows):
        for k in range(row + 1):
            place = (row * SPACING * np.sqrt(3) / 2, (k - row / 2) * SPACING, 0.19)
            name = f"pin{row}{k}"
            scene.add_mesh(pin_corners(), mass=PIN_MASS, position=place, friction=0.3, restitution=0.3, name=name)
    return scene.build()


def deepest(probe, q):
    """Largest penetration (m) at q, by a detection of its own: contacts of a plain step from rest."""
    probe.reset()
    probe.step(q, np.zeros(probe.model.nv))
    return max((contact.depth for contact in probe.contacts), default=0.0)


def bowl(model, law, aside):
    sim, probe = simulator(model, law), coulomb.Simulator(model)
    q, v = model.neutral()
    q[1] = aside
    v[0], v[4] = SPEED, SPEED / RADIUS  # rolls
    path, depths, impacts = [q], [0.0], [0]
    for _ in range(STEPS):
        q, v = sim.step(q, v)
        assert sim.status.converged, sim.status
        path.append(q)
        depths.append(deepest(probe, q))
        impacts.append(len({round(impact.time, 12) for impact in sim.impacts}))
    return np.array(path), np.array(depths), np.array(impacts)


def fallen(q):
    """Pins that lean more than 30 degrees."""
    turns = q.reshape(-1, 7)[1:, 3:]
    return int(np.sum(1 - 2 * (turns[:, 1] ** 2 + turns[:, 2] ** 2) < np.cos(np.pi / 6)))


def picture(model, q, depths, impacts, path):
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(12, 7), layout="constrained")
        grid = figure.add_gridspec(2, 3, height_ratios=(1.3, 1))
        colours = {"ball": COLOURS[0], **{name: "#e8d8b0" for name in model.geometry_names if name.startswith("pin")}}
        for k, step in enumerate((0, 10, 30)):
            axes = figure.add_subplot(grid[0, k])
            strobe(axes, model, [q[step]], colours=colours, limits=(-0.7, 1.9, -0.9, 0.9))
            axes.set_title(f"From above, after {step * 10} ms")
        bottom = figure.add_subplot(grid[1, 0])
        strobe(bottom, model, [q[18]], colours=colours, along=(0, 2), limits=(-0.3, 1.5, -0.05, 0.8))
        bottom.axhline(0, color="#555555")
        bottom.set_title("From the side, after 180 ms")
        right = figure.add_subplot(grid[1, 1])
        right.bar(range(len(impacts)), impacts, width=1.0, color=COLOURS[0])
        right.set(xlabel="step (10 ms)", ylabel="times of impact in a step", title="Steps are split at impacts")
        last = figure.add_subplot(grid[1, 2])
        last.semilogy(np.maximum(depths, 1e-18), ".", color=COLOURS[1])
        last.axhline(TOLERANCE, color="black", linestyle=":")
        last.set(xlabel="step (10 ms)", ylabel="m", title="Deepest penetration; dotted: tolerance", ylim=(1e-18, 1e-3))
        finish(figure, path)


def main():
    options = arguments(__doc__, "does nothing here: it takes two seconds")
    model = alley(4)
    print('published: "intersection-free" (a picture)')
    for law in LAWS:
        throws = [bowl(model, law, aside) for aside in ASIDE]
        pins = [fallen(q[-1]) for q, _, _ in throws]
        most = [impacts.max() for _, _, impacts in throws]
        depth = max(depths.max() for _, depths, _ in throws)
        print(
            f"here, {law}: {pins} of 10 pins fall, at most {max(most)} times of impact in a step, deepest penetration {depth:.1e} m; "
            f"the ball moves {SPEED * TIMESTEP / RADIUS:.1f} of its radius in a step"
        )
        assert min(pins) >= 4 and min(most) >= 2 and depth < TOLERANCE, (law, pins, most, depth)
        if law == LAWS[0]:
            picture(model, *throws[2], options.output / "jade_bowling.png")


if __name__ == "__main__":
    main()
