"""Go1 walks because it is told to be at 0.5 m/s and not to slip: model-predictive control through contact, no gait given.

Controls are the targets of the twelve servos. A plan is 35 knots of 10 ms; every 10 ms one iteration of iLQR starts from the plan before, one
knot on (coulomb.control). The cost asks for a velocity, a height, an upright trunk and joints near their standing pose. Two terms a
foot make it step: one of its speed along the ground, through a gate that opens near the ground, so that a foot has to lift to swing;
one of its height, because a foot in the air has no gradient that would bring it down. Without them it skates.

On its way Go1 is pushed four times: the trunk's velocity jumps by up to 1.2 m/s. What comes out walks on all four, about two of
them down, but in no animal's order: no gait is given, and none is periodic.

    python examples/applications/mpc_go1.py [--quick] [--output FOLDER]
"""

import sys
from pathlib import Path

import numpy as np

import coulomb
from coulomb.control import Gate, Mpc, Solver
from coulomb.demo import STANDING, robot_path
from coulomb.pictures import COLOURS, STYLE

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from plot_common import arguments, finish  # noqa: E402

FEET = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
RADIUS = 0.02  # m, of a foot
SPEED, HEIGHT = 0.5, 0.31  # m/s, m
STIFFNESS, DAMPING = 60.0, 2.0  # N m/rad of the servos, N m s/rad of the joints
KNOTS, TICK, TIMESTEP = 35, 0.01, 0.0025  # s
REACH = 1.2  # rad: targets of servos from the standing pose
PUSHES = {0.8: (0, 0.8), 1.6: (0, -1.2), 2.4: (1.0, 0), 3.2: (-1.2, 0)}  # s: m/s forward and to the left
LAST = 4.0  # s


def go1():
    """The model; damping is the joints' own, which steps take implicitly."""
    path, packages = robot_path("go1_description/urdf/go1.urdf")
    scene = coulomb.Scene(timestep=TIMESTEP)
    scene.add_ground(friction=0.8)
    servos = dict(actuators="position", kp=STIFFNESS)
    scene.add_urdf(path, floating_base=True, package_dirs=[packages], friction=0.8, self_collision=False, **servos)
    model = scene.build()
    joints = [name.split("/")[1] for name in model.outputs() if name.startswith("joint_velocity/")]
    legs = [name for name in joints if name != "root_joint"]
    values = {f"joint_damping/{name}": DAMPING for name in legs} | {f"joint_friction/{name}": 0.0 for name in legs}
    return model.with_parameters(values)


def standing(model):
    q, v = model.neutral()
    q[2], q[7:] = HEIGHT + 0.007, STANDING
    return q, v


def planner(model, timestep=TIMESTEP, **options):
    """The solver with its costs. patches=False: a step is a function of its state."""
    limits = STANDING - REACH, STANDING + REACH
    solver = Solver(model, KNOTS, round(TICK / timestep), timestep=timestep, limits=limits, patches=False, **options)

    # Where to be and how fast; nothing asks for a place along x.
    q, v = standing(model)
    q[2], v[0] = HEIGHT, SPEED
    place = [0, 20, 500, 200, 200, 100, *[10] * 12]
    velocity = [200, 30, 5, 5, 5, 5, *[0.02] * 12]
    solver.add_state([*place, *velocity], (q, v))
    solver.add_control(1.5, STANDING)

    # Feet do not slip on the ground, and come down.
    for foot in FEET:
        on_ground = Gate(f"position/{foot}", row=2, threshold=RADIUS, width=0.01)
        solver.add_outputs(f"velocity/{foot}", [5, 5, 0], gate=on_ground)
        solver.add_outputs(f"position/{foot}", [0, 0, 1000], [0, 0, RADIUS])
    return solver


def walk(model, timestep, last=LAST, pushes=PUSHES, **options):
    """A dict of columns, a row a tick: time, q, v, cost, seconds of the tick's parts, feet that are down."""
    mpc = Mpc(planner(model, timestep, **options), start_iterations=5, roll=False, step_lengths=6, clock="processor")
    robot = coulomb.Simulator(model)
    q, v = standing(model)
    rows = []
    for tick in range(round(last / TICK)):
        time = tick * TICK
        if round(time, 3) in pushes:
            v = v + np.r_[pushes[round(time, 3)], np.zeros(model.nv - 2)]

        # Plan, and hold the control for a tick.
        u, _ = mpc.step(q, v)
        result = mpc.result
        for _ in range(round(TICK / TIMESTEP)):
            q, v = robot.step(q, v, u)
        down = [robot.output(f"contact_force/{foot}")[2] > 1 for foot in FEET]
        rows.append((time, q, v, result.cost, list(result.timings.values()), down, result.unconverged))
    names = ("time", "q", "v", "cost", "seconds", "down", "unconverged")
    return {name: np.array(column) for name, column in zip(names, zip(*rows))}


def describe(label, log):
    calm = calm_ticks(log)
    seconds = log["seconds"][1:]
    parts = ", ".join(f"{n} {1e3 * s:.1f}" for n, s in zip(("models", "Riccati", "rollouts"), seconds.mean(0)))
    print(
        f"{label}: {log['v'][calm, 0].mean():.2f} m/s between pushes, drift {log['q'][-1, 1]:+.2f} m, least height "
        f"{log['q'][:, 2].min():.2f} m, {log['down'].sum(1).mean():.1f} feet down; {1 / seconds.sum(1).mean():.0f} Hz on one "
        f"core ({parts} ms)"
    )


def calm_ticks(log):
    """After the start, and half a second after a push."""
    since = [0.0, *(t for t in PUSHES)]
    age = np.min([np.where(log["time"] >= t, log["time"] - t, np.inf) for t in since], axis=0)
    return age >= 0.5


def draw(logs, folder):
    import matplotlib

    matplotlib.use("Agg", force=False)
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(4, 1, figsize=(8, 8), sharex=True, height_ratios=(2, 2, 2, 1.2))
        for (label, log), colour in zip(logs.items(), COLOURS):
            axes[0].plot(log["time"], log["v"][:, 0], color=colour, label=label)
            axes[1].semilogy(log["time"], log["cost"], color=colour)
            axes[2].plot(log["time"][1:], 1 / log["seconds"][1:].sum(1), color=colour, linewidth=0.8)
        axes[0].axhline(SPEED, color="black", linewidth=0.8, linestyle=":")
        axes[0].set_ylabel("forward, m/s")
        axes[0].legend(loc="lower left", fontsize=8)
        axes[1].set_ylabel("cost of the plan")
        axes[2].axhline(1 / TICK, color="black", linewidth=0.8, linestyle=":")
        axes[2].set_ylabel("ticks a second, one core")
        axes[2].set_ylim(bottom=0)

        # When each foot is on the ground, of the first.
        log = next(iter(logs.values()))
        for k in range(4):
            axes[3].fill_between(
                log["time"], k + 0.1, k + 0.9, where=log["down"][:, k], step="post", color=COLOURS[0], lw=0
            )
        axes[3].set_yticks(np.arange(4) + 0.5, [foot[:2] for foot in FEET])
        axes[3].set_ylabel("feet down")
        axes[3].set_xlabel("s")
        for t in PUSHES:
            for axis in axes:
                if t < log["time"][-1]:
                    axis.axvline(t, color="#b2182b", linewidth=0.8)
        figure.tight_layout()
        finish(figure, folder / "mpc_go1.png")


def main():
    options = arguments(__doc__, quick="the first 1.3 s, one push")
    model = go1()
    last = 1.3 if options.quick else LAST
    logs = {
        "2.5 ms x 4": walk(model, TIMESTEP, last),
        "10 ms": walk(model, TICK, last),
    }
    for label, log in logs.items():
        describe(label, log)
    draw(logs, options.output)

    # It walks, whatever pushes it.
    for log in logs.values():
        assert log["q"][:, 2].min() > 0.2
        assert 0.35 < log["v"][calm_ticks(log), 0].mean() < 0.6
        assert (log["unconverged"] == 0).all()


if __name__ == "__main__":
    main()
