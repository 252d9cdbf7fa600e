"""Go1 walks because it is told to be at 0.5 m/s and not to slip: model-predictive control through contact, no gait given.

Controls are the targets of the twelve servos. A plan is 35 knots of 10 ms; every 10 ms one iteration of iLQR starts from the plan before, one
knot on (coulomb.control). The cost asks for a velocity, a height, an upright trunk and joints near their standing pose. Two terms a
foot make it step: one of its speed along the ground, through a gate that opens near the ground, so that a foot has to lift to swing;
one of its height, because a foot in the air has no gradient that would bring it down. Without them it skates.

On its way Go1 is pushed four times: the trunk's velocity jumps by up to 1.2 m/s. What comes out walks on all four, about two of
them down, but in no animal's order: no gait is given, and none is periodic.

--speed and --yaw_rate ask for another walk. --trot gives the heights of feet a timetable, diagonal pairs in turn, and nothing else. --step puts a step
in the way, that many metres high; it needs the trot: a foot that stands before a wall has no gradient that would lift it. Plans of steps of
10 ms stumble over one step in ten, so there only those of 2.5 ms are made.

    python examples/applications/mpc_go1.py [--quick] [--speed 0.5] [--yaw_rate 0] [--trot] [--step 0] [--output FOLDER]
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import coulomb
from coulomb.control import Gate, Mpc, Solver
from coulomb.demo import STANDING, robot_path
from coulomb.pictures import COLOURS, STYLE

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from plot_common import arguments, finish, strobe  # noqa: E402

FEET = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
RADIUS = 0.02  # m, of a foot
HEIGHT = 0.31  # m, of the trunk
STIFFNESS, DAMPING = 60.0, 2.0  # N m/rad of the servos, N m s/rad of the joints
KNOTS, TICK, TIMESTEP = 35, 0.01, 0.0025  # s
REACH = 1.2  # rad: targets of servos from the standing pose
PUSHES = {0.8: (0, 0.8), 1.6: (0, -1.2), 2.4: (1.0, 0), 3.2: (-1.2, 0)}  # s: m/s forward and to the left
LAST = 4.0  # s
EDGE = 0.5  # m from the start to the step
PERIOD, LIFT = 0.5, 0.1  # s, m of the trot


@dataclass(frozen=True)
class Task:
    """What is asked of Go1."""

    speed: float = 0.5  # m/s
    yaw_rate: float = 0.0  # rad/s
    trot: bool = False
    step: float = 0.0  # m

    def ground(self, x, ahead=0.0):
        """Its height at x, and already `ahead` m before the step."""
        return self.step * (np.asarray(x) > EDGE - ahead)

    def below(self, x):
        """The mean height of the ground between the feet of a trunk at each of x, (n,)."""
        return self.ground(np.atleast_1d(x)[:, None] + np.linspace(-0.25, 0.25, 21)).mean(axis=1)

    def timetable(self, times):
        """Heights of the feet over the ground, (len(times), 4): half a period down, half up, diagonal pairs in turn."""
        phase = times[:, None] / PERIOD + [0.0, 0.5, 0.5, 0.0]
        return LIFT * np.maximum(-np.sin(2 * np.pi * phase), 0) if self.trot else np.zeros((len(times), 4))

    @property
    def name(self):
        words = ["turn"] * bool(self.yaw_rate) + ["trot"] * (self.trot and not self.step) + ["step"] * bool(self.step)
        if self.speed != WALK.speed:
            words.append(f"{self.speed:g}")
        return "_".join(["mpc_go1", *words])


WALK = Task()


def go1(step=0.0):
    """The model; damping is the joints' own, which steps take implicitly."""
    path, packages = robot_path("go1_description/urdf/go1.urdf")
    scene = coulomb.Scene(timestep=TIMESTEP)
    scene.add_ground(friction=0.8)
    if step:
        scene.add_box((2, 2, step), position=(EDGE + 1, 0, step / 2), fixed=True, friction=0.8, name="step")
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


def planner(model, timestep=TIMESTEP, knots=KNOTS, task=WALK, **options):
    """The solver with its costs, and these by name. patches=False: a step is a function of its state."""
    limits = STANDING - REACH, STANDING + REACH
    solver = Solver(model, knots, round(TICK / timestep), timestep=timestep, limits=limits, patches=False, **options)
    return solver, add_costs(solver, model, task)


def add_costs(solver, model, task=WALK):
    # Where to be and how fast, as the trunk sees it. Nothing asks for a place along x, and on a curve for none at all.
    q, v = standing(model)
    q[2], v[5] = HEIGHT, task.yaw_rate
    place = [0, 0 if task.yaw_rate else 20, 500, 200, 200, 100, *[10] * 12]
    velocity = [0, 0, 0, 5, 5, 5, *[0.02] * 12]
    terms = {"state": solver.add_state([*place, *velocity], (q, v))}
    solver.add_outputs("velocimeter/trunk", [200, 30, 5], [task.speed, 0, 0])
    solver.add_control(1.5, STANDING)

    # Feet do not slip on the ground, nor on the step, and come down.
    for foot in FEET:
        for name, height, weight in (("ground", 0.0, 5), ("step", task.step, 0)):
            if name == "ground" or task.step:
                near = Gate(f"position/{foot}", row=2, threshold=RADIUS + height, width=0.01)
                terms[name, foot] = solver.add_outputs(f"velocity/{foot}", [weight, weight, 0], gate=near)
        weight = 10000 if task.trot else 1000
        terms["height", foot] = solver.add_outputs(f"position/{foot}", [0, 0, weight], [0, 0, RADIUS])
    return terms


def move_references(task, terms, model, time, q, plan):
    """What changes with time, and with where the last plan, Q or None, takes the feet."""
    times = time + TICK * np.arange(KNOTS + 1)
    wanted = np.tile(np.concatenate(standing(model)), (KNOTS + 1, 1))
    wanted[:, 2], wanted[:, model.nq + 5] = HEIGHT, task.yaw_rate

    # The trunk turns; over the step it is as high as the ground is between its feet, on the mean.
    angle = task.yaw_rate * times
    wanted[:, 3], wanted[:, 6] = np.cos(angle / 2), np.sin(angle / 2)
    wanted[:, 2] += task.below(q[0] + task.speed * (times - time))
    terms["state"].reference = wanted

    # Feet rise by the timetable over the ground that is below them.
    for foot, rise in zip(FEET, task.timetable(times).T):
        height = np.zeros((KNOTS + 1, 3))
        height[:, 2] = RADIUS + rise
        if task.step and plan is not None:
            x = np.array([model.output(f"position/{foot}", knot, np.zeros(model.nv))[0] for knot in plan])
            x = np.r_[x[1:], x[-1]]  # one knot on
            height[:, 2] += task.ground(x, ahead=0.05)
            above = task.ground(x)[:, None] > 0
            terms["ground", foot].weight = ~above * [5, 5, 0]
            terms["step", foot].weight = above * [5, 5, 0]
        terms["height", foot].reference = height


def walk(model, timestep, last=LAST, pushes=PUSHES, task=WALK, **options):
    """A dict of columns, a row a tick: time, q, v, cost, seconds of the tick's parts, feet that are down."""
    solver, terms = planner(model, timestep, task=task, **options)
    mpc = Mpc(solver, start_iterations=5, roll=False, step_lengths=6, clock="processor")
    mpc.reset(np.tile(STANDING, (KNOTS, 1)))
    robot = coulomb.Simulator(model)
    q, v = standing(model)
    rows = []
    plan = None
    for tick in range(round(last / TICK)):
        time = tick * TICK
        if round(time, 3) in pushes:
            v = v + np.r_[pushes[round(time, 3)], np.zeros(model.nv - 2)]

        # Plan, and hold the control for a tick.
        if task.yaw_rate or task.trot:
            move_references(task, terms, model, time, q, plan)
        u, _ = mpc.step(q, v)
        result = mpc.result
        plan = result.Q
        for _ in range(round(TICK / TIMESTEP)):
            q, v = robot.step(q, v, u)
        down = [robot.output(f"contact_force/{foot}")[2] > 1 for foot in FEET]
        forward = model.output("velocimeter/trunk", q, v)[0]
        rows.append((time, q, v, forward, result.cost, list(result.timings.values()), down, result.unconverged))
    names = ("time", "q", "v", "forward", "cost", "seconds", "down", "unconverged")
    return {name: np.array(column) for name, column in zip(names, zip(*rows))}


def describe(label, log, pushes):
    calm = calm_ticks(log, pushes)
    seconds = log["seconds"][1:]
    parts = ", ".join(f"{n} {1e3 * s:.1f}" for n, s in zip(("models", "Riccati", "rollouts"), seconds.mean(0)))
    down = log["down"]
    diagonal = ((down[:, 0] == down[:, 3]) & (down[:, 1] == down[:, 2]))[calm].mean()
    print(
        f"{label}: {log['forward'][calm].mean():.2f} m/s and {log['v'][calm, 5].mean():+.2f} rad/s between pushes, ends at "
        f"({log['q'][-1, 0]:.2f}, {log['q'][-1, 1]:+.2f}) m, least height {log['q'][:, 2].min():.2f} m, {down.sum(1).mean():.1f} feet down, "
        f"diagonal feet alike {100 * diagonal:.0f} %; {1 / seconds.sum(1).mean():.0f} Hz on one core ({parts} ms)"
    )


def calm_ticks(log, pushes):
    """After the start, and half a second after a push."""
    since = [0.0, *pushes]
    age = np.min([np.where(log["time"] >= t, log["time"] - t, np.inf) for t in since], axis=0)
    return age >= 0.5


def draw(model, task, logs, pushes, path):
    import matplotlib

    matplotlib.use("Agg", force=False)
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(5, 1, figsize=(8, 10), height_ratios=(2, 2, 2, 1.2, 2.2))
        for (label, log), colour in zip(logs.items(), COLOURS):
            axes[0].plot(log["time"], log["forward"], color=colour, label=label)
            axes[1].semilogy(log["time"], log["cost"], color=colour)
            axes[2].plot(log["time"][1:], 1 / log["seconds"][1:].sum(1), color=colour, linewidth=0.8)
        axes[0].axhline(task.speed, color="black", linewidth=0.8, linestyle=":")
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
        for axis in axes[:4]:
            axis.set_xlim(0, log["time"][-1])
            for t in pushes:
                if t < log["time"][-1]:
                    axis.axvline(t, color="#b2182b", linewidth=0.8)

        # How it moves, from the side; on a curve from above.
        shown = log["q"][:: 50 if len(log["q"]) > 200 else 25]
        along = (0, 1) if task.yaw_rate else (0, 2)
        middle, spread = (log["q"][:, along].min(0) + log["q"][:, along].max(0)) / 2, np.ptp(log["q"][:, along], axis=0)
        low, high = middle - spread / 2 - 0.4, middle + spread / 2 + 0.4
        if not task.yaw_rate:
            low[1], high[1] = -0.02, HEIGHT + task.step + 0.15
        strobe(axes[4], model, shown, ("step",), limits=(low[0], high[0], low[1], high[1]), along=along)
        figure.tight_layout()
        finish(figure, path)


def main():
    numbers = {
        "speed": (WALK.speed, "m/s"),
        "yaw_rate": (0.0, "rad/s"),
        "step": (0.0, "m, height of a step on the way"),
    }
    trot = "a timetable of the heights of feet; always with --step"
    options = arguments(__doc__, "the first 1.3 s, one push", numbers, trot=trot)
    task = Task(options.speed, options.yaw_rate, options.trot or options.step > 0, options.step)
    model = go1(task.step)
    last = 1.3 if options.quick else LAST
    pushes = {} if task.step else PUSHES
    logs = {"2.5 ms x 4": walk(model, TIMESTEP, last, pushes, task)}
    if not task.step:
        logs["10 ms"] = walk(model, TICK, last, pushes, task)
    for label, log in logs.items():
        describe(label, log, pushes)
    draw(model, task, logs, pushes, options.output / f"{task.name}.png")

    # It walks as it was told, whatever pushes it, and gets onto the step.
    for log in logs.values():
        calm = calm_ticks(log, pushes)
        assert log["q"][:, 2].min() > 0.2
        assert abs(log["forward"][calm].mean() - task.speed) < 0.1 + 0.2 * abs(task.speed)
        assert abs(log["v"][calm, 5].mean() - task.yaw_rate) < 0.2
        assert (log["unconverged"] == 0).all()
        if task.step and not task.yaw_rate:
            x, _, z = log["q"][-1, :3]
            assert x > 0.8 * task.speed * last and z > 0.9 * (HEIGHT + task.below(x)[0])


if __name__ == "__main__":
    main()
