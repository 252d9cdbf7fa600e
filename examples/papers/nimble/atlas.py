"""A humanoid in a crouch jumps until its hands touch two markers: gradients through all the contacts of its feet.

Nimble [Werling2021], Atlas: it jumps towards green markers from a crouch; ±500 N m, 0.4 s, loss: squared distance of the left hand from its
marker at the end; multiple shooting with shots of 20 ms. The paper shows a video and figure 9; its start is not described. Here both hands
have a marker above where they are in the crouch, steps are 2 ms, torques are constant for 20 ms, and L-BFGS-B on whole rollouts
suffices: springs and dampers in the joints hold the crouch, the torques come on top, so that no guess falls over.

Atlas where its model is at hand: COULOMB_ROBOTS names a folder with atlas/model.xml. Otherwise Unitree's G1 of example-robot-data, a fifth as
heavy.

    python examples/papers/nimble/atlas.py [--quick] [--output FOLDER]
"""

import os
from pathlib import Path

import numpy as np
from nimble_common import arguments, finish, outlines, strobe
from scipy.optimize import minimize

import coulomb
from coulomb.demo import robot_path
from coulomb.kinematics import lowest_point
from coulomb.pictures import COLOURS, STYLE

TIMESTEP, STEPS, HOLD, TORQUE = 2e-3, 200, 10, 500.0
EFFORT = 1e-3  # m^2, for all torques at their bounds: chooses among the many ways


def robot():
    """(name, model, {joint: angle of the crouch}, hands, rise of the markers in m, spring in N m/rad, damper in N m s/rad)"""
    atlas = Path(os.environ.get("COULOMB_ROBOTS", "no folder")) / "atlas" / "model.xml"
    scene = coulomb.Scene(timestep=TIMESTEP)
    if atlas.is_file():
        scene.add_mjcf(atlas, use_options=False)
        angles = (("hpy", -0.75), ("kny", 1.3), ("aky", -0.55))
        crouch = {f"{side}_leg_{joint}": angle for side in "lr" for joint, angle in angles}
        return "Atlas", scene.build(), crouch, ("l_hand", "r_hand"), 0.8, 1500.0, 30.0
    path, packages = robot_path("g1_description/urdf/g1_29dof_rev_1_0.urdf")
    scene.add_ground(friction=1.0)
    scene.add_urdf(path, floating_base=True, package_dirs=[packages], self_collision=False)
    angles = (("hip_pitch", -0.7), ("knee", 1.2), ("ankle_pitch", -0.5))
    crouch = {f"{side}_{joint}_joint": angle for side in ("left", "right") for joint, angle in angles}
    return "G1", scene.build(), crouch, ("left_wrist_yaw_link", "right_wrist_yaw_link"), 0.7, 300.0, 5.0


def crouched(model, crouch):
    q, v = model.neutral()
    for joint, angle in crouch.items():
        q[model.joint_q[model.joint_names.index(joint)]] = angle
    q[2] -= lowest_point(model, q) + 1e-5
    return q, v


class Jump:
    """The robot with its springs; torques (pieces, joints) to a rollout, and to the loss with its gradient."""

    def __init__(self):
        self.name, model, crouch, self.hands, rise, spring, damper = robot()
        self.q, self.v = crouched(model, crouch)
        stiffness = np.minimum(spring, 0.05 * np.diag(model.mass_matrix(self.q)) / TIMESTEP**2)  # springs are explicit
        parameters = {}
        for joint, first in zip(model.joint_names[1:], model.joint_v[1:]):  # all but the free one
            parameters[f"joint_stiffness/{joint}"] = stiffness[first]
            parameters[f"joint_damping/{joint}"] = damper
        self.model = model.with_parameters(parameters)
        self.sim = coulomb.Simulator(self.model)
        self.rest = stiffness[6:] * (self.q - model.q_spring)[7:]  # makes the crouch the rest of the springs
        self.outputs = [f"position/{hand}" for hand in self.hands]
        self.targets = [model.output(name, self.q, self.v) + [0, 0, rise] for name in self.outputs]
        self.shape = STEPS // HOLD, model.nv - 6
        self.distances = []

    def rollout(self, x):
        tau = np.zeros((STEPS, self.model.nv))
        tau[:, 6:] = self.rest + TORQUE * np.repeat(x.reshape(self.shape), HOLD, axis=0)
        return self.sim.rollout(self.q, self.v, steps=STEPS, tau=tau)

    def away(self, r):
        return [r.output(name)[-1] - target for name, target in zip(self.outputs, self.targets)]

    def __call__(self, x):
        r = self.rollout(x)
        away = self.away(r)
        weights = {name: np.zeros((STEPS + 1, 3)) for name in self.outputs}
        for name, vector in zip(self.outputs, away):
            weights[name][-1] = 2 * vector
        slope = TORQUE * r.vjp(outputs=weights).tau[:, 6:].reshape(self.shape[0], HOLD, -1).sum(axis=1).ravel()
        self.distances.append(max(np.linalg.norm(vector) for vector in away))
        return np.sum(np.square(away)) + EFFORT * np.mean(x**2), slope + 2 * EFFORT * x / x.size


def picture(jump, r, path):
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(13, 4.8), layout="constrained", width_ratios=(2.4, 1))
        picked = np.linspace(0, STEPS, 5).astype(int)
        shift = 0.15 + max(
            np.ptp(np.concatenate([p for _, p in outlines(jump.model, q, (1, 2))])[:, 0]) for q in r.q[picked]
        )
        for k, step in enumerate(picked):
            pose = r.q[step].copy()
            pose[1] += k * shift
            strobe(left, jump.model, [pose], along=(1, 2), scenery=())
            for target in jump.targets:
                left.plot(target[1] + k * shift, target[2], "o", color=COLOURS[2], markersize=8, zorder=60)
            left.annotate(f"{1e3 * step * TIMESTEP:.0f} ms", (k * shift, -0.04), ha="center", va="top")
        left.axhline(0, color="#555555")
        left.autoscale_view()
        left.set(xticks=[], xlabel="", ylim=(-0.2, None), title=f"{jump.name} from behind; green: the markers")
        right.semilogy(jump.distances, color=COLOURS[0])
        right.set(xlabel="rollout with its gradient", ylabel="m", title="Farther hand from its marker")
        finish(figure, path)


def main():
    options = arguments(__doc__, "fewer iterations")
    jump = Jump()
    size = jump.shape[0] * jump.shape[1]
    limit = {"maxfun": 100 if options.quick else 300, "maxiter": 1000, "maxcor": 20}
    answer = minimize(jump, np.zeros(size), jac=True, method="L-BFGS-B", bounds=[(-1, 1)] * size, options=limit)
    r = jump.rollout(answer.x)
    distance = max(np.linalg.norm(vector) for vector in jump.away(r))
    clear = lowest_point(jump.model, r.q[-1])
    print("published: a video")
    print(
        f"here, {jump.name}: hands {jump.distances[0]:.2f} m from their markers in the crouch, {distance:.4f} m after "
        f"{len(jump.distances)} rollouts; then the whole robot is {100 * clear:.1f} cm above the ground"
    )
    assert r.converged and distance < 0.15 * jump.distances[0] and clear > 0.01, (distance, clear)
    picture(jump, r, options.output / "nimble_atlas.png")


if __name__ == "__main__":
    main()
