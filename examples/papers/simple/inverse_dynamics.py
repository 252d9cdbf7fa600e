"""Joint torques that hold a robot still, found through the contact: min over tau of 1/2 |v+ - v*|^2 by Gauss-Newton.

Simple [LeLidec2024, section on inverse dynamics]: Go1 standing, with 10 kg on its back, in a hand-stand, and a humanoid in a push-up, with
v = v* = 0. The paper reports about 10 iterations to 1e-5 and that finite differences stall higher; it gives neither poses nor time
step: those here are ours (1 ms).

A hand-stand on two round feet leaves one direction that no joint torque holds at v = 0: the fall about the line through the feet. So the
pose is turned until the centre of mass is above that line. With the centre 1 cm beside it the residual ends at 3e-4, 3 cm at 1e-3: what
gravity does in one step; damping between 1e-12 and 1e-3 changed nothing. The example shows both.

    python examples/papers/simple/inverse_dynamics.py [--quick] [--output FOLDER]
"""

import argparse
from pathlib import Path

import numpy as np

import coulomb
from coulomb.demo import STANDING, robot_path
from coulomb.kinematics import lowest_point, lowest_points
from coulomb.pictures import convergence_picture, scene_picture

TIMESTEP = 1e-3
PRESS = 5e-6  # m: how deep the pose lies in the ground
SLOP = 1e-5  # m: what position correction leaves alone, so that v = 0 is a solution
DIFFERENCE = 1e-6  # N m


def build(urdf, contact_margin=1e-4):
    path, packages = robot_path(urdf)
    scene = coulomb.Scene(timestep=TIMESTEP, contact_margin=contact_margin)
    scene.add_ground(friction=0.9)
    # Links of a pose by hand may overlap a little; the ground is what matters here.
    scene.add_urdf(path, floating_base=True, package_dirs=[packages], self_collision=False)
    return scene.build()


def placed(model, joints, turn):
    """The pose with these joint angles (name to rad) and this quaternion of the base, resting on the ground."""
    q, v = model.neutral()
    q[3:7] = np.asarray(turn) / np.linalg.norm(turn)
    for name, angle in joints.items():
        q[model.joint_q[model.joint_names.index(name)]] = angle
    q[2] -= lowest_point(model, q) + PRESS
    return q, v


def pitched(angle):
    return np.array([np.cos(angle / 2), 0, np.sin(angle / 2), 0])


def load_on(model, body, mass, point):
    """fext of a mass (kg) that rests on a body at `point` (m, from its centre of mass, world axes)."""
    force = np.array([0, 0, -9.81 * mass])
    fext = np.zeros((model.num_bodies, 6))
    fext[model.body_names.index(body)] = [*force, *np.cross(point, force)]
    return fext


def turned_until(model, joints, gap, pitch):
    """The pose whose base is pitched, near `pitch` (rad), so that gap(q) = 0 (secant)."""
    a, b = pitch, pitch + 0.05
    ga = gap(placed(model, joints, pitched(a))[0])
    for _ in range(50):
        gb = gap(placed(model, joints, pitched(b))[0])
        if abs(gb) < 1e-13 or gb == ga:
            break
        a, b, ga = b, b - gb * (b - a) / (gb - ga), gb
    return placed(model, joints, pitched(b))


def solve(model, q, v, fext, gradients, iterations):
    """|v+ - v*| per iteration, the torques (N m) of the joints, and the simulator after the last step."""
    sim = coulomb.Simulator(model, timestep=TIMESTEP, slop=SLOP, tolerance=1e-14)
    nv = model.nv
    joints = np.arange(6, nv)
    tau, errors, damping = np.zeros(nv), [], 1e-8

    def step(torque):
        full = np.zeros(nv)
        full[joints] = torque
        return sim.step(q, v, None, tau=full, fext=fext)[1]

    torque = tau[joints]
    velocity = step(torque)
    errors.append(np.linalg.norm(velocity))
    while len(errors) <= iterations and errors[-1] > 1e-12:
        if gradients == "analytic":
            step(torque)
            J = sim.derivatives().dv_dtau[:, joints].copy()
        else:
            J = np.stack([(step(torque + DIFFERENCE * e) - velocity) / DIFFERENCE for e in np.eye(len(joints))], axis=1)
        # Levenberg-Marquardt damping, relative to J: a joint that nothing moves gets no torque.
        scale = np.linalg.norm(J, 2) ** 2
        best = None
        for factor in (damping, 1e2 * damping, 1e4 * damping, 1e6 * damping):
            move = -np.linalg.solve(J.T @ J + factor * scale * np.eye(len(joints)), J.T @ velocity)
            for length in (1.0, 0.5, 0.25):
                after = step(torque + length * move)
                if best is None or np.linalg.norm(after) < np.linalg.norm(best[1]):
                    best = (torque + length * move, after)
            if np.linalg.norm(best[1]) < 0.5 * errors[-1]:
                break
        if np.linalg.norm(best[1]) >= errors[-1]:
            errors.append(errors[-1])
            break
        torque, velocity = best
        errors.append(np.linalg.norm(velocity))
    step(torque)
    return np.array(errors), torque, sim


def go1_task(turn, joints, load=None):
    model = build("go1_description/urdf/go1.urdf")
    q, v = placed(model, joints, turn)
    return model, q, v, None if load is None else load_on(model, "base", load, np.array([0.0, 0.0, 0.06]))


def legs(hip, thigh, calf, which=("FL", "FR", "RL", "RR")):
    return {
        f"{leg}_{part}_joint": angle
        for leg in which
        for part, angle in (("hip", hip), ("thigh", thigh), ("calf", calf))
    }


def hand_stand(beside=0.0):
    """On the fore feet, the hind legs in the air, the centre of mass `beside` (m) the line through the feet."""
    model = build("go1_description/urdf/go1.urdf")
    joints = {**legs(0, -0.6, -0.9, ("FL", "FR")), **legs(0, 1.0, -1.6, ("RL", "RR"))}
    foot = model.body_names.index("FL_calf")
    sole = max(
        (
            g
            for g in range(model.num_geometries)
            if model.geometry_body[g] == foot and model.geometry_types[g] == "sphere"
        )
    )

    def lean(q):
        positions, turns = model.body_placements(q)
        centres = positions + np.einsum("bij,bj->bi", turns, model.body_com)
        centre = model.body_mass @ centres / model.body_mass.sum()
        return (centre - positions[foot] - turns[foot] @ model.geometry_pos[sole])[0] - beside

    q, v = turned_until(model, joints, lean, 1.25)
    return model, q, v, None


def push_up():
    """G1 on its hands and the tips of its feet."""
    model = build("g1_description/urdf/g1_29dof_rev_1_0.urdf")
    joints = {}
    for side, sign in (("left", 1), ("right", -1)):
        joints.update(
            {
                f"{side}_shoulder_pitch_joint": -1.5,
                f"{side}_shoulder_roll_joint": 0.15 * sign,
                f"{side}_elbow_joint": 0.9,
                f"{side}_ankle_pitch_joint": -0.3,
            }
        )
    ends = [
        next(i for i, name in enumerate(model.body_names) if name.startswith(start))
        for start in ("left_wrist_yaw", "left_ankle_roll")
    ]

    def slope(q):
        hand, foot = lowest_points(model, q, ends)
        return hand - foot

    q, v = turned_until(model, joints, slope, 1.2)
    return model, q, v, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer iterations, no pictures of the robots")
    parser.add_argument("--output", default="output/examples", help="folder of the plots (default: %(default)s)")
    options = parser.parse_args()
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    stand = legs(*STANDING[:3])
    tasks = {
        "Go1 standing": lambda: go1_task((1, 0, 0, 0), stand),
        "Go1 with 10 kg on its back": lambda: go1_task((1, 0, 0, 0), stand, 10.0),
        "Go1 hand-stand": hand_stand,
        "G1 push-up": push_up,
    }
    curves, results = {}, {}
    for name, task in tasks.items():
        model, q, v, fext = task()
        for gradients in ("analytic",) if options.quick else ("analytic", "differences"):
            errors, torque, sim = solve(model, q, v, fext, gradients, 15 if options.quick else 25)
            curves[name + ("" if gradients == "analytic" else ", differences")] = errors
            below = np.flatnonzero(errors < 1e-5)
            reached = f"below 1e-5 after {below[0]} iterations" if len(below) else "never below 1e-5"
            print(
                f"{name:<28} {gradients:<11} {len(sim.contacts):2d} contacts: |v+ - v*| from {errors[0]:.1e} to {errors[-1]:.1e}, "
                f"{reached}; largest torque {np.abs(torque).max():.1f} N m",
                flush=True,
            )
            if gradients == "analytic":
                results[name] = below[0] if len(below) else None
                if not options.quick:
                    file = folder / ("simple_" + name.lower().replace(" ", "_") + ".png")
                    print("  ", scene_picture(model, q, sim.contacts, TIMESTEP, file, name))
    errors, _, _ = solve(*hand_stand(0.01), "analytic", 15)
    print(f"Go1 hand-stand, centre of mass 1 cm beside the feet: |v+ - v*| stays at {errors[-1]:.1e}: it has to fall")
    assert 1e-4 < errors[-1] < 1e-3, errors[-1]
    claims = [("published: 1e-5 after about 10 iterations", 1e-5, 10)]
    print(
        convergence_picture(
            curves,
            folder / "simple_inverse_dynamics.png",
            "Torques by Gauss-Newton through the contact",
            r"$|v^+ - v^*|$ [m/s, rad/s]",
            claims=claims,
        )
    )
    print("published: about 10 iterations to 1e-5 (Go1; the others are videos); finite differences stall higher.")
    print(f"here: at most {max(count or 99 for count in results.values())} iterations to 1e-5.")
    for name, count in results.items():
        assert count is not None and count <= 12, f"{name}: not below 1e-5 within 12 iterations"


if __name__ == "__main__":
    main()
