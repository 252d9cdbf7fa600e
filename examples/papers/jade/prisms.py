"""Prisms slide on a table and stop: friction takes mu g dt of the speed in every step, whatever the number of contacts.

Jade [Yang2024], invalid LCP solutions: 2 m/s, friction 0.16, g = 9 m/s^2, 150 steps of 10 ms. Jade's speed falls by 0.0147 a step, right
is 0.0144; Nimble's solver gives up on the several contacts and drops friction.

    python examples/papers/jade/prisms.py [--quick] [--output FOLDER]
"""

import numpy as np
from jade_common import LAWS, arguments, finish, simulator, sliding_stop, strobe

import coulomb
from coulomb.pictures import COLOURS, STYLE

TIMESTEP, STEPS, GRAVITY, FRICTION, SPEED = 1e-2, 150, 9.0, 0.16, 2.0
RADIUS, HEIGHT = 0.1, 0.1
LOSS = FRICTION * GRAVITY * TIMESTEP  # m/s per step


def prism(sides, turn=0.0):
    """Corners of a prism that stands on its base."""
    angles = 2 * np.pi * np.arange(sides) / sides + turn
    return np.array([(RADIUS * np.cos(a), RADIUS * np.sin(a), z) for a in angles for z in (-HEIGHT / 2, HEIGHT / 2)])


def slide(sides, law):
    """Positions along x and speeds of the body, and the other components of its largest velocity."""
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY), timestep=TIMESTEP)
    scene.add_ground(friction=FRICTION)
    scene.add_mesh(prism(sides), mass=1.0, position=(0, 0, HEIGHT / 2), friction=FRICTION, name="prism")
    model = scene.build()
    sim = simulator(model, law)
    q, v = model.neutral()
    v[0] = SPEED
    path, speeds, astray = [q], [SPEED], 0.0
    for _ in range(STEPS):
        q, v = sim.step(q, v)
        assert sim.status.converged, sim.status
        path.append(q)
        speeds.append(v[0])
        astray = max(astray, np.abs(v[1:]).max())
    return model, np.array(path), np.array(speeds), astray


def picture(runs, stop, path):
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, (top, left, right) = plt.subplots(3, 1, figsize=(8, 9), layout="constrained", height_ratios=(0.9, 2, 1))
        for k, ((sides, law), (model, q, speeds, _)) in enumerate(runs.items()):
            if law == LAWS[0]:
                at = [q[0] + 0, q[60] + 0, q[-1] + 0]
                for pose in at:
                    pose[1] = 0.35 * k / len(LAWS)
                strobe(top, model, at, colours={"prism": COLOURS[k % 7]})
            left.plot(speeds, color=COLOURS[k % 7], linewidth=4.5 - 0.5 * k, label=f"{sides} sides, {law}")
            errors = np.abs(np.diff(speeds)[: stop - 1] + LOSS)
            right.semilogy(np.maximum(errors, 1e-18), ".", color=COLOURS[k % 7], markersize=3)
        top.set(xlim=(-0.2, 1.6), title="From above: start, after 60 steps, and where they stop")
        top.autoscale_view()
        left.plot(SPEED - 0.0147 * np.arange(stop), ":", color="black", label="published: -0.0147 a step")
        left.set(
            xlabel="step (10 ms)", ylabel="speed [m/s]", title="Speed: falls by μ g dt = 0.0144 a step, then rests"
        )
        left.legend()
        right.axhline(0.0003, color="black", linestyle=":")
        right.annotate("published: 3e-4", (2, 0.0012), fontsize=9)
        right.set(
            xlabel="step", ylabel="error [m/s]", title="Distance of the loss of speed from 0.0144", ylim=(1e-18, 3e-2)
        )
        finish(figure, path)


def main():
    options = arguments(__doc__, "three prisms instead of six")
    stop, way = sliding_stop(SPEED, FRICTION, GRAVITY, TIMESTEP)
    runs = {
        (sides, law): slide(sides, law)
        for sides in ((3, 4, 6) if options.quick else (3, 4, 5, 6, 8, 12))
        for law in LAWS
    }
    print("published: the speed falls by 0.0147 a step; right is 0.0144")
    for (sides, law), (_, q, speeds, astray) in runs.items():
        losses = -np.diff(speeds)[: stop - 1]
        rest = int(np.flatnonzero(np.abs(speeds) < 1e-9)[0])
        print(
            f"{sides:2d} sides, {law}: {losses.mean():.10f} a step, error at most {np.abs(losses - LOSS).max():.0e}; "
            f"rests after step {rest} ({stop}) at {q[-1, 0]:.6f} m ({way:.6f}; v^2 / 2 μ g = {SPEED**2 / (2 * FRICTION * GRAVITY):.6f}); astray {astray:.0e}"
        )
        assert np.abs(losses - LOSS).max() < 1e-10 and rest == stop and astray < 1e-9, (sides, law)
        assert abs(q[-1, 0] - way) < 1e-9 and np.abs(speeds[stop:]).max() < 1e-10, (sides, law)
    picture({key: runs[key] for key in list(runs)[: 3 * len(LAWS)]}, stop, options.output / "jade_prisms.png")


if __name__ == "__main__":
    main()
