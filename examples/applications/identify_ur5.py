"""Link inertia and joint friction of a UR5 from its noisy motion under known torques.

coulomb.identify: Gauss-Newton with exact Jacobians. The robot follows exciting trajectories; joint angles are
measured with noise, joint torques are known. The motion is cut into windows whose first states are unknown as well:
nothing has to be differentiated or filtered.

Unknown are the ten inertial parameters of all six links and dry and viscous friction of all six joints. Inertia is
written relative to the model in the URDF so that every guess is a physical body (coulomb.identify.Inertia).

What can be seen. Joint motion does not show all sixty numbers, only the combinations called base parameters: the
singular values of the Jacobian fall by eleven orders of magnitude after the 36th. A weak prior (PRIOR: how far,
relative, the URDF may be wrong) decides the rest; what is judged is what can be predicted: torques and motion on
another trajectory.

    python examples/applications/identify_ur5.py [--quick] [--output FOLDER]
"""

import argparse
from pathlib import Path

import numpy as np

import coulomb
from coulomb.demo import robot_path
from coulomb.identify import Inertia, Unknown, Unknowns, Window, fit
from coulomb.pictures import COLOURS, STYLE

TIMESTEP, EVERY = 2e-3, 5  # s; angles are measured every 5 steps
WINDOW = 250  # steps
NOISE = 5e-4  # rad
PRIOR = 0.3  # standard deviation of the inertial unknowns
FRICTION_PRIOR = 1.5  # of the logarithms of friction
DRY, VISCOUS = (
    np.array([5.0, 6.0, 4.0, 1.5, 1.2, 1.0]),
    np.array([8.0, 9.0, 6.0, 1.5, 1.2, 0.8]),
)  # N m, N m s/rad: the truth
GUESS = 2.0  # N m, N m s/rad, every joint
STIFFNESS, DAMPING = (
    np.array([800, 800, 500, 80, 80, 40.0]),
    np.array([40, 40, 25, 4, 4, 2.0]),
)  # of the tracking controller
LIMITS = np.array([150, 150, 150, 28, 28, 28.0])  # N m


def ur5():
    path, packages = robot_path("ur_description/urdf/ur5_robot.urdf")
    scene = coulomb.Scene(timestep=TIMESTEP)
    scene.add_urdf(path, package_dirs=[packages], self_collision=False)
    return scene.build()


def unknowns(model):
    """Ten numbers for each link, then the logarithms of dry and of viscous friction of the joints."""
    friction = [f"{kind}/{joint}" for kind in ("joint_friction", "joint_damping") for joint in model.joint_names]
    return [
        *(Inertia(link, deviation=PRIOR) for link in model.body_names[-6:]),
        *(Unknown(name, start=GUESS, log=True, deviation=FRICTION_PRIOR) for name in friction),
    ]


def distance(unknowns, found, truth):
    """Squared, per unknown, in standard deviations; by the parameters, in which what cannot be seen is flat."""
    a, b, D = unknowns.values(found.x), unknowns.values(truth), unknowns.jacobian(found.x)
    apart = np.concatenate([np.atleast_1d(a[name] - b[name]) for name in unknowns.names])
    error = np.linalg.solve(np.concatenate([D[name] for name in unknowns.names]), apart)
    return error @ np.linalg.solve(found.covariance, error) / unknowns.size


class Reference:
    """Joint angles, velocities, accelerations of a sum of sines."""

    def __init__(self, random):
        self.rates = 2 * np.pi * np.array([0.13, 0.31, 0.57, 0.83])  # rad/s
        self.sizes = random.normal(size=(6, 4)) * np.array([0.5, 0.4, 0.25, 0.15])
        self.phases = random.uniform(0, 2 * np.pi, (6, 4))
        self.middle = np.array([0.0, -1.2, 1.0, -0.8, 0.5, 0.0])

    def __call__(self, t):
        angle = self.rates * t + self.phases
        q = self.middle + (self.sizes * np.sin(angle)).sum(1)
        return q, (self.sizes * self.rates * np.cos(angle)).sum(1), -(self.sizes * self.rates**2 * np.sin(angle)).sum(1)


def track(robot, known, reference, steps):
    """Angles and speeds (steps + 1, 6) of the robot and its torques (steps, 6).

    The controller knows only the model `known`.
    """
    sim = coulomb.Simulator(robot)
    q, v, _ = reference(0.0)
    Q, V, U = [q], [v], []
    for k in range(steps):
        goal, speed, acceleration = reference(k * TIMESTEP)
        u = known.inverse_dynamics(goal, speed, acceleration) + STIFFNESS * (goal - q) + DAMPING * (speed - v)
        U.append(np.clip(u, -LIMITS, LIMITS))
        q, v = sim.step(q, v, U[-1])
        Q.append(q)
        V.append(v)
    return np.array(Q), np.array(V), np.array(U)


def windows(measured, U):
    """Pieces of the motion: measured (samples, 6), every EVERY steps."""
    starts = np.arange(0, len(U) - WINDOW + 1, WINDOW)
    return [
        Window(measured[s // EVERY : (s + WINDOW) // EVERY + 1], u=U[s : s + WINDOW], every=EVERY, deviation=NOISE)
        for s in starts
    ]


def predicted_torques(model, Q, V):
    """Torques (steps, 6) that give these steps: M a + b + damping and dry friction of the speeds after the step."""
    viscous, dry = model.dof_damping, model.dof_dry_friction
    inverse = [model.inverse_dynamics(q, v, (w - v) / TIMESTEP) for q, v, w in zip(Q, V, V[1:])]
    return np.array(inverse) + viscous * V[1:] + dry * np.sign(V[1:])


def moving(V):
    """Where friction is known: a joint that sticks hides how much of it is used."""
    return np.abs(V[1:]) > 0.02  # rad/s


def motion_error(model, Q, V, U, steps=500):
    """Root mean square over joints and starts of the angle after 0 ... steps of open-loop prediction."""
    errors = []
    for start in range(0, len(U) - steps + 1, steps):
        r = coulomb.Simulator(model).rollout(Q[start], V[start], U[start : start + steps])
        errors.append(r.q - Q[start : start + steps + 1])
    return np.sqrt(np.mean(np.square(errors), axis=(0, 2)))


def draw_validation(axes, models, motion):
    """Torques of two joints, and the growth of the error of open-loop prediction."""
    Q, V, U = motion
    times = TIMESTEP * np.arange(len(U))
    shown = slice(0, 2000)
    styles = {"URDF, guessed friction": ("--", COLOURS[1]), "identified": ("-", COLOURS[0])}
    for axis, joint in ((axes[0], 1), (axes[1], 3)):
        axis.plot(times[shown], U[shown, joint], color="#aaaaaa", linewidth=5, label="applied")
        for label, model in models.items():
            style, colour = styles[label]
            torque = np.where(moving(V), predicted_torques(model, Q, V), np.nan)
            axis.plot(times[shown], torque[shown, joint], style, color=colour, label=label, linewidth=1.3)
        name = models["identified"].joint_names[joint].replace("_joint", "").replace("_", " ")
        axis.set(xlabel="time [s]", ylabel="torque [N m]", title=f"Validation motion: {name}")
        axis.margins(y=0.25)
        axis.legend(loc="upper left", ncols=3, columnspacing=1, handlelength=1.5)
    axis = axes[2]
    for label, model in models.items():
        error = motion_error(model, Q, V, U)
        axis.semilogy(
            TIMESTEP * np.arange(1, len(error)), error[1:], styles[label][0], color=styles[label][1], label=label
        )
    axis.axhline(NOISE, color="#555555", linestyle=":")
    axis.annotate("noise of the measurements", (0.01, NOISE * 1.2), xycoords=("axes fraction", "data"), fontsize=9)
    axis.set(
        xlabel="horizon [s]",
        ylabel="error of the angles, rms [rad]",
        title="Validation motion: open-loop prediction",
        ylim=(1e-6, 3),
    )
    axis.legend(loc="lower right")


def draw_estimate(axes, estimate, deviations, data, history):
    """Friction beside the truth, the singular values of the inertial unknowns, and the convergence."""
    axis, places = axes[0], np.arange(6)
    truth, found = np.r_[DRY, VISCOUS], np.exp(estimate[60:])
    for k, (label, colour) in enumerate((("dry [N m]", COLOURS[2]), ("viscous [N m s/rad]", COLOURS[3]))):
        part, at = slice(6 * k, 6 * k + 6), places + 0.36 * (k - 0.5)
        spread = 2 * (found * deviations[60:])[part]
        axis.bar(at, found[part], 0.32, yerr=spread, color=colour, alpha=0.75, label=label, error_kw={"linewidth": 1})
        axis.plot(at, truth[part], "_", color="black", markersize=14, label="truth" if k else None)
    axis.axhline(GUESS, color=COLOURS[1], linestyle="--", linewidth=1, label="first guess")
    names = ["pan", "lift", "elbow", "wrist 1", "wrist 2", "wrist 3"]
    axis.set(xticks=places, xticklabels=names, title="Joint friction")
    axis.legend()
    axis = axes[1]
    axis.semilogy(np.arange(1, 61), data, "o", color=COLOURS[0], markersize=4)
    axis.axhline(1, color="#555555", linestyle=":")
    axis.annotate("below: the prior decides", (0.02, 0.4), xycoords=("axes fraction", "data"), va="top", fontsize=9)
    axis.set(
        xlabel="direction among the 60 inertial unknowns",
        ylabel="singular value [1 / prior]",
        title="What the motion shows of the inertia",
    )
    axis = axes[2]
    axis.semilogy(history, "o-", color=COLOURS[0], markersize=4)
    axis.axhline(1, color="#555555", linestyle=":")
    axis.annotate("noise", (0.02, 1.1), xycoords=("axes fraction", "data"), fontsize=9)
    axis.set(xlabel="step", ylabel="residual, rms [noise]", title="Gauss-Newton, exact Jacobian")


def picture(models, motion, estimate, deviations, data, history, path):
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 3, figsize=(14.5, 7.4), layout="constrained")
        draw_validation(axes[0], models, motion)
        draw_estimate(axes[1], estimate, deviations, data, history)
        figure.savefig(path, dpi=160)
        plt.close(figure)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4 s of motion instead of 10")
    parser.add_argument("--output", default="output/examples", help="folder of the plot (default: %(default)s)")
    options = parser.parse_args()
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(1)
    urdf = ur5()
    parameters = Unknowns(urdf, unknowns(urdf))
    true = np.r_[0.15 * random.normal(size=60), np.log(np.r_[DRY, VISCOUS])]
    robot = parameters.at(true)
    Q, V, U = track(robot, urdf, Reference(random), 2000 if options.quick else 5000)
    measured = Q[::EVERY] + NOISE * random.normal(size=Q[::EVERY].shape)
    pieces = windows(measured, U)
    found = fit(urdf, pieces, unknowns(urdf), loss="linear", tolerance=1e-4)
    inertial = np.linalg.svd(found.sensitivity[:, :60] * PRIOR, compute_uv=False)
    deviations = np.sqrt(np.diag(found.covariance))
    residuals = sum(piece.q.size for piece in pieces)
    history = np.sqrt(2 * np.array(found.history) / residuals)
    print(f"{len(pieces)} windows of {WINDOW * TIMESTEP} s, {measured.size} angles, {72 + 12 * len(pieces)} unknowns")
    print(f"rms {history[0]:.0f} to {found.rms:.3f} noise in {found.evaluations} evaluations")
    rank = np.sum(inertial > 1e-8 * inertial[0])
    print(
        f"{rank} base parameters: singular values {inertial[0]:.0e} to {inertial[rank - 1]:.1f}, "
        f"then {inertial[rank]:.0e}"
    )
    print(f"{np.sum(inertial > 1)} of 60 inertial directions are better known than the prior")
    apart = distance(parameters, found, true)
    print(f"squared distance from the truth per unknown, in standard deviations: {apart:.2f}")
    friction = np.abs(np.expm1((found.x - true)[60:]))
    print(
        f"friction: errors up to {100 * friction.max():.2f} %, "
        f"standard deviations up to {100 * deviations[60:].max():.2f} %"
    )
    validation = track(robot, urdf, Reference(np.random.default_rng(7)), 2500)
    models = {"URDF, guessed friction": parameters.at(parameters.start), "identified": found.model}
    judged = moving(validation[1])
    size = np.sqrt(np.mean(validation[2][judged] ** 2))
    outcome = {}
    for label, model in [("truth", robot), *models.items()]:
        difference = (predicted_torques(model, *validation[:2]) - validation[2])[judged]
        outcome[label] = np.sqrt(np.mean(difference**2)), motion_error(model, *validation)[-1]
        print(
            f"  {label:<23} torque error {outcome[label][0]:.1e} of {size:.0f} N m rms, "
            f"angles after 1 s {outcome[label][1]:.1e} rad"
        )
    print(picture(models, validation, found.x, deviations, inertial, history, folder / "identify_ur5.png"))
    assert found.converged and 0.9 < found.rms < 1.05, found.status
    assert rank == 36 and inertial[36] < 1e-6 * inertial[35], inertial
    assert apart < 2, apart
    assert np.all(friction < 5 * deviations[60:]) and friction.max() < 0.05, friction
    assert outcome["truth"][0] < 1e-6  # what is judged by is the simulated robot's own equation
    assert outcome["identified"][0] < 0.05 * outcome["URDF, guessed friction"][0], outcome
    assert outcome["identified"][1] < 0.02 * outcome["URDF, guessed friction"][1], outcome


if __name__ == "__main__":
    main()
