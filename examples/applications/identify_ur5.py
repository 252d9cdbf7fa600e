"""Link inertia and joint friction of a UR5 from its noisy motion under known torques.

scipy.optimize.least_squares with analytic Jacobians. The robot follows exciting trajectories; joint angles are
measured with noise, joint torques are known. The motion is cut into windows whose first states are unknown as well
(multiple shooting: nothing has to be differentiated or filtered); within a window X_{k+1} = A_k X_k + d[parameters]
gives the Jacobian of every later state.

Unknown are the ten inertial parameters of all six links and dry and viscous friction of all six joints. Inertia is
written relative to the model in the URDF: with the pseudo-inertia P = [[S, m c], [m c^T, m]] (S: second moments) and
its Cholesky factor C there, P = (C T)(C T)^T, T lower triangular with the ten unknowns, exponentials on its diagonal.
So every guess is a physical body.

What can be seen. Joint motion does not show all sixty numbers, only the combinations called base parameters: the
singular values of the Jacobian fall by eleven orders of magnitude after the 36th. A weak prior (PRIOR: how far,
relative, the URDF may be wrong) decides the rest; what is judged is what can be predicted: torques and motion on
another trajectory.

    python examples/applications/identify_ur5.py [--quick] [--output FOLDER]
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

import coulomb
from coulomb.demo import robot_path
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
ROW, COLUMN = np.tril_indices(4)


def ur5():
    path, packages = robot_path("ur_description/urdf/ur5_robot.urdf")
    scene = coulomb.Scene(timestep=TIMESTEP)
    scene.add_urdf(path, package_dirs=[packages], self_collision=False)
    return scene.build()


def pseudo_inertia(ten):
    """(4, 4) from m, m c, Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the frame's origin."""
    inertia = np.array([[ten[4], ten[5], ten[7]], [ten[5], ten[6], ten[8]], [ten[7], ten[8], ten[9]]])
    S = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    return np.block([[S, ten[1:4, None]], [ten[None, 1:4], ten[:1, None]]])


def ten_parameters(P):
    inertia = np.trace(P[:3, :3]) * np.eye(3) - P[:3, :3]
    return np.r_[P[3, 3], P[:3, 3], inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]]


class Unknowns:
    """theta (72,): ten per link, then the logarithms of dry and of viscous friction relative to GUESS; 0: the guess."""

    def __init__(self, model):
        self.model = model
        self.links = [f"inertia/{name}" for name in model.body_names[-6:]]
        self.dry = [f"joint_friction/{name}" for name in model.joint_names]
        self.viscous = [f"joint_damping/{name}" for name in model.joint_names]
        self.names = self.links + self.dry + self.viscous
        parameters = model.parameters()
        self.factors = [np.linalg.cholesky(pseudo_inertia(parameters[name].value)) for name in self.links]
        self.size = 72
        self.prior = np.r_[np.full(60, PRIOR), np.full(12, FRICTION_PRIOR)]

    def values(self, theta):
        """Values by name, and their derivatives (72, 72) in the order of `names`."""
        values, D = {}, np.zeros((72, 72))
        for k, (name, C) in enumerate(zip(self.links, self.factors)):
            T = np.zeros((4, 4))
            T[ROW, COLUMN] = theta[10 * k : 10 * k + 10]
            T[np.diag_indices(4)] = np.exp(np.diag(T))
            values[name] = ten_parameters(C @ T @ T.T @ C.T)
            for j in range(10):
                dT = np.zeros((4, 4))
                dT[ROW[j], COLUMN[j]] = T[ROW[j], ROW[j]] if ROW[j] == COLUMN[j] else 1.0
                half = C @ dT @ T.T @ C.T
                D[10 * k : 10 * k + 10, 10 * k + j] = ten_parameters(half + half.T)
        friction = GUESS * np.exp(theta[60:])
        values.update(zip(self.dry + self.viscous, friction))
        D[range(60, 72), range(60, 72)] = friction
        return values, D

    def distance(self, theta, truth, covariance):
        """Squared, per unknown, in standard deviations; by the parameters, in which what cannot be seen is flat."""
        (a, D), (b, _) = self.values(theta), self.values(truth)
        error = np.linalg.solve(D, np.concatenate([np.atleast_1d(a[name] - b[name]) for name in self.names]))
        return error @ np.linalg.solve(covariance, error) / self.size

    def at(self, theta):
        return self.model.with_parameters(self.values(theta)[0])


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


class Windows:
    """The least-squares problem: x = theta, then angles and speeds that start the windows, less their first guess."""

    def __init__(self, unknowns, measured, torques):
        self.unknowns, self.U = unknowns, torques
        self.starts = np.arange(0, len(torques) - WINDOW + 1, WINDOW)
        self.measured = measured  # (samples, 6), every EVERY steps
        self.guess = self.first_states()
        self.scale = np.r_[unknowns.prior, np.tile(np.repeat([0.01, 0.1], 6), len(self.starts))]
        self.cache, self.history = (None, None), []

    def first_states(self):
        """Parabolas through the first samples of each window."""
        times = TIMESTEP * EVERY * np.arange(9)
        fits = [np.polyfit(times, self.measured[s // EVERY : s // EVERY + 9], 2) for s in self.starts]
        return np.array([np.r_[fit[2], fit[1]] for fit in fits])

    def window(self, model, D, start, state):
        """Residuals at the samples and their Jacobian by theta and by the window's state."""
        sim = coulomb.Simulator(model)
        q, v, n = state[:6], state[6:], self.unknowns.size
        X = np.hstack([np.zeros((12, n)), np.eye(12)])
        first = start // EVERY
        r, J = [q - self.measured[first]], [X[:6]]
        for k in range(1, WINDOW + 1):
            q, v = sim.step(q, v, self.U[start + k - 1])
            d = sim.derivatives(wrt=self.unknowns.names)
            X = d.A @ X
            X[:, :n] += np.hstack([d[name] for name in self.unknowns.names]) @ D
            if k % EVERY == 0:
                r.append(q - self.measured[first + k // EVERY])
                J.append(X[:6])
        return np.concatenate(r) / NOISE, np.concatenate(J) / NOISE

    def both(self, x):
        if self.cache[0] is None or not np.array_equal(self.cache[0], x):
            n = self.unknowns.size
            values, D = self.unknowns.values(x[:n])
            model = self.unknowns.model.with_parameters(values)
            rows = (WINDOW // EVERY + 1) * 6
            r, J = np.zeros(rows * len(self.starts) + n), np.zeros((rows * len(self.starts) + n, len(x)))
            for w, start in enumerate(self.starts):
                at, here = slice(w * rows, (w + 1) * rows), slice(n + 12 * w, n + 12 * w + 12)
                r[at], block = self.window(model, D, start, self.guess[w] + x[here])
                J[at, :n], J[at, here] = block[:, :n], block[:, n:]
            r[-n:], J[-n:, :n] = x[:n] / self.unknowns.prior, np.diag(1 / self.unknowns.prior)
            self.cache = (x.copy(), (r, J))
            self.history.append(np.sqrt(np.mean(r[:-n] ** 2)))
        return self.cache[1]

    def solve(self):
        """least_squares from x = 0, where its first step is at most one `scale` long."""
        x = np.zeros(len(self.scale))
        return least_squares(
            lambda x: self.both(x)[0], x, jac=lambda x: self.both(x)[1], x_scale=self.scale, ftol=1e-4, max_nfev=40
        )


def spectrum(problem, x):
    """What the data say, the states eliminated: singular values of the inertial unknowns times PRIOR; covariance."""
    J = problem.both(x)[1]
    n = problem.unknowns.size
    Q = np.linalg.qr(J[:, n:])[0]
    seen = J[:, :n] - Q @ (Q.T @ J[:, :n])
    inertial = np.linalg.svd(seen[:-n, :60] * PRIOR, compute_uv=False)
    return inertial, np.linalg.inv(seen.T @ seen)


def check_jacobian(problem, direction, h=1e-5):
    """Relative difference from central differences at the first guess, along one direction.

    h is small: a joint that starts or stops to slide within the difference is a kink.
    """
    analytic = problem.both(np.zeros(len(direction)))[1] @ direction
    plus, minus = problem.both(h * direction)[0], problem.both(-h * direction)[0]
    problem.history.clear()
    return np.linalg.norm(analytic - (plus - minus) / (2 * h)) / np.linalg.norm(analytic)


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
    truth, found = np.r_[DRY, VISCOUS], GUESS * np.exp(estimate[60:])
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
    axis.set(xlabel="evaluation", ylabel="residual, rms [noise]", title="least_squares, analytic Jacobian")


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
    unknowns = Unknowns(ur5())
    true = np.r_[0.15 * random.normal(size=60), np.log(np.r_[DRY, VISCOUS] / GUESS)]
    robot, urdf = unknowns.at(true), unknowns.model
    Q, V, U = track(robot, urdf, Reference(random), 2000 if options.quick else 5000)
    measured = Q[::EVERY] + NOISE * random.normal(size=Q[::EVERY].shape)
    problem = Windows(unknowns, measured, U)
    jacobian_error = check_jacobian(problem, random.normal(size=len(problem.scale)) * 0.3 * problem.scale)
    print(f"Jacobian from central differences, along a random direction: {jacobian_error:.0e}")
    result = problem.solve()
    estimate = result.x[:72]
    inertial, covariance = spectrum(problem, result.x)
    deviations = np.sqrt(np.diag(covariance))
    print(f"{len(problem.starts)} windows of {WINDOW * TIMESTEP} s, {measured.size} angles, {len(result.x)} unknowns")
    print(f"rms {problem.history[0]:.0f} to {problem.history[-1]:.3f} noise in {len(problem.history)} evaluations")
    rank = np.sum(inertial > 1e-8 * inertial[0])
    print(
        f"{rank} base parameters: singular values {inertial[0]:.0e} to {inertial[rank - 1]:.1f}, "
        f"then {inertial[rank]:.0e}"
    )
    print(f"{np.sum(inertial > 1)} of 60 inertial directions are better known than the prior")
    distance = unknowns.distance(estimate, true, covariance)
    print(f"squared distance from the truth per unknown, in standard deviations: {distance:.2f}")
    friction = np.abs(np.expm1((estimate - true)[60:]))
    print(
        f"friction: errors up to {100 * friction.max():.2f} %, "
        f"standard deviations up to {100 * deviations[60:].max():.2f} %"
    )
    validation = track(robot, urdf, Reference(np.random.default_rng(7)), 2500)
    models = {"URDF, guessed friction": unknowns.at(np.zeros(72)), "identified": unknowns.at(estimate)}
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
    print(picture(models, validation, estimate, deviations, inertial, problem.history, folder / "identify_ur5.png"))
    assert jacobian_error < 1e-6, jacobian_error
    assert 0.9 < problem.history[-1] < 1.05, problem.history
    assert rank == 36 and inertial[36] < 1e-6 * inertial[35], inertial
    assert distance < 2, distance
    assert np.all(friction < 5 * deviations[60:]) and friction.max() < 0.05, friction
    assert outcome["truth"][0] < 1e-6  # what is judged by is the simulated robot's own equation
    assert outcome["identified"][0] < 0.05 * outcome["URDF, guessed friction"][0], outcome
    assert outcome["identified"][1] < 0.02 * outcome["URDF, guessed friction"][1], outcome


if __name__ == "__main__":
    main()
