"""A sliding cube hits another one on a table with friction: both go on at half the speed, and stop together.

Jade [Yang2024], cube hits cube: cubes of equal mass, 0.5 m apart, inelastic, friction 0.16, g = 9 m/s^2, steps of 10 ms; the speed of the
first is not given (2 m/s here, as for the prisms, and 0.5 m between the faces). Published as a plot: both move together, then stop; Bullet's
cubes part, Nimble's lose their friction.

    python examples/papers/jade/cube_hits_cube.py [--quick] [--output FOLDER]
"""

import numpy as np
from jade_common import LAWS, arguments, finish, simulator, sliding_stop, strobe

import coulomb
from coulomb.pictures import COLOURS, STYLE

TIMESTEP, STEPS, GRAVITY, FRICTION, SPEED = 1e-2, 150, 9.0, 0.16, 2.0
SIDE, GAP = 0.2, 0.5
LOSS = FRICTION * GRAVITY * TIMESTEP


def run(law):
    """The model, configurations, and speeds (steps + 1, 2)."""
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY), timestep=TIMESTEP)
    scene.add_ground(friction=FRICTION)
    for name, x in (("grey", 0.0), ("blue", SIDE + GAP)):
        scene.add_box((SIDE,) * 3, mass=1.0, position=(x, 0, SIDE / 2), friction=FRICTION, restitution=0.0, name=name)
    model = scene.build()
    sim = simulator(model, law)
    q, v = model.neutral()
    v[0] = SPEED
    path, speeds = [q], [v[[0, 6]]]
    for _ in range(STEPS):
        q, v = sim.step(q, v)
        assert sim.status.converged, sim.status
        path.append(q)
        speeds.append(v[[0, 6]])
    return model, np.array(path), np.array(speeds)


def speed_after(speed, gap):
    """Of both cubes, at the end of the step in which the first, still `gap` m away, hits the second: brakes, halves, brakes."""
    brake = FRICTION * GRAVITY
    time = (speed - np.sqrt(speed**2 - 2 * brake * gap)) / brake
    return (speed - brake * time) / 2 - brake * (TIMESTEP - time)


def picture(model, q, speeds, hit, path):
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, (top, bottom) = plt.subplots(2, 1, figsize=(8.5, 6.5), layout="constrained", height_ratios=(1.1, 1.5))
        colours = {"grey": "#888888", "blue": COLOURS[0]}
        for row, (when, step) in enumerate((("at rest", -1), ("impact", hit), ("start", 0))):
            pose = q[step].copy()
            pose[[2, 9]] += 0.3 * row
            strobe(top, model, [pose], colours=colours, along=(0, 2))
            top.axhline(0.3 * row, color="#555555", linewidth=1)
            top.annotate(when, (1.3, 0.3 * row + 0.06))
        top.set(xlim=(-0.15, 1.6), ylim=(-0.03, 0.85), yticks=[], ylabel="")
        for k, (name, colour) in enumerate(colours.items()):
            bottom.plot(speeds[:, k], color=colour, linewidth=4 - 2 * k, label=f"{name} cube")
        bottom.axvline(hit, color="black", linestyle=":")
        bottom.annotate(f"impact: {speeds[hit, 0]:.3f} m/s to {speeds[hit + 1, 0]:.3f} m/s", (hit + 2, speeds[hit, 0]))
        bottom.set(
            xlabel="step (10 ms)", ylabel="speed [m/s]", title="The speed halves, then both lose 0.0144 m/s a step"
        )
        bottom.legend()
        finish(figure, path)


def main():
    options = arguments(__doc__, "does nothing here: it takes a second")
    print("published: both move together, then stop (a plot)")
    for law in LAWS:
        model, q, speeds = run(law)
        hit = int(np.flatnonzero(speeds[:, 1] > 1e-9)[0]) - 1  # the last step before
        right = speed_after(speeds[hit, 0], GAP - q[hit, 0])
        lost = np.abs(np.diff(speeds[: hit + 1, 0]) + LOSS).max()
        together = speeds[hit + 2 :]
        steps, way = sliding_stop(speeds[hit + 1, 0], FRICTION, GRAVITY, TIMESTEP)
        after = np.abs(np.diff(speeds[hit + 1 : hit + steps], axis=0) + LOSS).max()
        rest = int(np.flatnonzero(np.abs(speeds[1:]).max(1) < 1e-9)[0]) + 1
        closest = (q[:, 7] - q[:, 0]).min() - SIDE
        print(
            f"here, {law}: {speeds[hit, 0]:.4f} m/s before, {speeds[hit + 1, 0]:.4f} and {speeds[hit + 1, 1]:.4f} m/s after (right: {right:.4f}); loses "
            f"0.0144 m/s a step before and after to {max(lost, after):.0e}; apart by {np.abs(together[:, 0] - together[:, 1]).max():.0e} "
            f"m/s; rest after step {rest}; the faces never nearer than {closest:.0e} m"
        )
        assert abs(speeds[hit + 1, 0] - right) < 1e-9, (law, speeds[hit : hit + 2], right)
        assert max(lost, after) < 1e-10 and np.abs(np.diff(speeds[hit + 1 :], axis=1)).max() < 1e-9, law
        assert rest == hit + 1 + steps and closest > -1e-6, (law, rest, hit + 1 + steps, closest)
        if law == LAWS[0]:
            picture(model, q, speeds, hit, options.output / "jade_cube_hits_cube.png")


if __name__ == "__main__":
    main()
