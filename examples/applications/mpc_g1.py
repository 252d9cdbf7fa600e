"""A humanoid gets up because it is told to be high: G1 from a deep squat, by model-predictive control through contact.

Controls are the targets of 29 servos with the torque limits of the URDF. A plan is 35 knots of 10 ms, two steps of the simulator each; every 10 ms one
iteration of iLQR starts from the plan before (coulomb.control). The cost asks for the height of the pelvis, an upright trunk and joints near those of
standing, nothing else: no contact, no key pose, no order is given. Up, it is pushed. Hulls of all links touch the ground, but not one another.

From its belly it gets up in some runs, from its knees and its back in few: it finds a crouch on hands, knees or one foot that no small change makes higher.

    python examples/applications/mpc_g1.py [--quick] [--output FOLDER]
"""

import sys
from pathlib import Path

import numpy as np

import coulomb
from coulomb.control import Mpc, Solver
from coulomb.demo import robot_path
from coulomb.pictures import COLOURS, STYLE

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from plot_common import arguments, finish, strobe  # noqa: E402

KNOTS, TICK, TIMESTEP = 35, 0.01, 0.005  # s
STIFFNESS, DAMPING = 200.0, 5.0  # N m/rad of the servos, N m s/rad of the joints
LAST, PUSH = 3.0, (1.5, 0.4)  # s; s and m/s to the left
ARMS = {"elbow": (0.9, 0.9), "shoulder_roll": (0.2, -0.2)}  # rad, left and right
STANDING = {"hip_pitch": -0.2, "knee": 0.4, "ankle_pitch": -0.2}
SQUAT = {"hip_pitch": -1.6, "knee": 2.4, "ankle_pitch": -0.85}


def g1():
    path, packages = robot_path("g1_description/urdf/g1_29dof_rev_1_0.urdf")
    scene = coulomb.Scene(timestep=TIMESTEP)
    scene.add_ground(friction=1.0)
    servos = dict(actuators="position", kp=STIFFNESS)
    scene.add_urdf(path, floating_base=True, package_dirs=[packages], friction=1.0, self_collision=False, **servos)
    model = scene.build()
    joints = [name for name in model.joint_names if name != "root_joint"]
    values = {f"joint_damping/{name}": DAMPING for name in joints} | {f"joint_friction/{name}": 0.0 for name in joints}
    return model.with_parameters(values)


def posed(model, joints):
    """q with these angles of both sides, on the ground."""
    q, _ = model.neutral()
    sides = {name: (angle, angle) for name, angle in joints.items()} | ARMS
    for name, angles in sides.items():
        for side, angle in zip(("left", "right"), angles):
            q[model.joint_q[model.joint_names.index(f"{side}_{name}_joint")]] = angle
    q[2] -= lowest_point(model, q)
    return q


def lowest_point(model, q):
    """m, of its spheres and hulls."""
    places, turns = model.geometry_placements(q)
    heights = []
    for g, kind in enumerate(model.geometry_types):
        if kind == "sphere":
            heights.append(places[g, 2] - model.geometry_size[g][0])
        elif kind == "mesh":
            vertices = np.asarray(model.mesh_vertices(model.geometry_mesh[g]))
            heights.append((places[g] + vertices @ turns[g].T)[:, 2].min())
    return min(heights)


def planner(model):
    """The solver with its costs. patches=False: a step is a function of its state."""
    solver = Solver(model, KNOTS, round(TICK / TIMESTEP), patches=False)
    standing = posed(model, STANDING)
    place = [0, 0, 500, 200, 200, 20, *[1] * 29]
    velocity = [5, 5, 5, 2, 2, 2, *[0.02] * 29]
    solver.add_state([*place, *velocity], (standing, np.zeros(model.nv)))
    solver.add_control(0.05, standing[7:])
    return solver


def get_up(model, last=LAST):
    """A dict of columns, a row a tick: time, q, cost, seconds of the tick's parts, contacts."""
    mpc = Mpc(planner(model), start_iterations=5, roll=False, step_lengths=6, clock="processor")
    q, v = posed(model, SQUAT), np.zeros(model.nv)
    mpc.reset(np.tile(q[7:], (KNOTS, 1)))
    robot = coulomb.Simulator(model)
    rows = []
    for tick in range(round(last / TICK)):
        if tick == round(PUSH[0] / TICK):
            v = v + np.r_[0, PUSH[1], np.zeros(model.nv - 2)]
        u, _ = mpc.step(q, v)
        result = mpc.result
        rows.append((tick * TICK, q, result.cost, list(result.timings.values()), len(robot.contacts)))
        for _ in range(round(TICK / TIMESTEP)):
            q, v = robot.step(q, v, u)
    names = ("time", "q", "cost", "seconds", "contacts")
    return {name: np.array(column) for name, column in zip(names, zip(*rows))}


def upright(q):
    """Cosine of the pelvis' lean."""
    return 1 - 2 * (q[..., 4] ** 2 + q[..., 5] ** 2)


def draw(model, log, height, folder):
    import matplotlib

    matplotlib.use("Agg", force=False)
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, (axis, pictures) = plt.subplots(2, 1, figsize=(8, 4.8))
        axis.plot(log["time"], log["q"][:, 2], color=COLOURS[0], label="pelvis, up")
        axis.plot(log["time"], log["q"][:, 1], color=COLOURS[1], label="to the left")
        axis.axhline(height, color="black", linewidth=0.8, linestyle=":")
        if PUSH[0] < log["time"][-1]:
            axis.axvline(PUSH[0], color="#b2182b", linewidth=0.8)
        axis.set_ylabel("m")
        axis.set_xlabel("s")
        axis.legend(loc="center right", fontsize=8)

        # Side by side: where it is at these times.
        times = [t for t in (0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.4) if t < log["time"][-1]]
        shown = log["q"][[round(t / TICK) for t in times]].copy()
        shown[:, 0] = 0
        strobe(pictures, model, shown, along=(0, 2), shift=0.8, limits=(-0.5, 0.8 * len(times), -0.02, 1.4))
        pictures.set_xticks(0.8 * np.arange(len(times)), [f"{t:g} s" for t in times])
        pictures.set_xlabel("")
        figure.tight_layout()
        finish(figure, folder / "mpc_g1.png")


def main():
    options = arguments(__doc__, "the first 1.2 s, without the push")
    model = g1()
    height = posed(model, STANDING)[2]
    log = get_up(model, 1.2 if options.quick else LAST)
    seconds = log["seconds"][1:]
    parts = ", ".join(f"{n} {1e3 * s:.1f}" for n, s in zip(("models", "Riccati", "rollouts"), seconds.mean(0)))
    low = np.flatnonzero(log["q"][:, 2] < 0.9 * height)[-1]
    print(
        f"pelvis from {log['q'][0, 2]:.2f} to {log['q'][-1, 2]:.2f} m, above 90 % of standing from {log['time'][low] + TICK:.2f} s on; "
        f"{1 / seconds.sum(1).mean():.0f} Hz on one core ({parts} ms)"
    )
    draw(model, log, height, options.output)

    # It gets up, and stays up whatever pushes it.
    assert log["time"][low] < 1.0
    assert log["q"][-1, 2] > 0.95 * height and upright(log["q"][-1]) > 0.95


if __name__ == "__main__":
    main()
