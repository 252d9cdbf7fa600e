"""Mass, inertia, friction and restitution of a thrown box from noisy positions of markers on its corners.

scipy.optimize.least_squares fits all recordings at once; the Jacobian of a recording is chained forward from the
steps' derivatives, X_{k+1} = A_k X_k + d[parameters]. Unknown are the logarithms of the mass, of the three principal
second moments s = integral of x^2 dm (Ixx = sy + sz and so on, so that every guess is a physical body) and of the
friction, and the restitution.

What can be seen. Contact with a fixed floor shows accelerations only: scale mass and inertia together and every
impulse scales along, the motion stays. So throws on the floor alone leave one direction free, exactly, whatever the
noise: they give friction, restitution and the ratios of inertia to mass. Throws against a block of known mass give
the mass too. Both fits are shown.

What the gradient leaves out. Impacts happen on the grid of time steps: the moment of a second impact depends on the
unknowns, in jumps, and its derivative is not in the Jacobian. So a recording starts at a known release and ends at
its second impact, which the markers show. Whole recordings with several bounces (120 ms) let the same fit stall at
1.4 times the noise, friction 0.5 % off.

    python examples/applications/identify_box.py [--quick] [--output FOLDER]
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

import coulomb
from coulomb.kinematics import lowest_point
from coulomb.pictures import COLOURS, STYLE

HALF = np.array([0.1, 0.07, 0.05])  # m
BLOCK_MASS, BLOCK_HALF = 1.0, np.array([0.06, 0.12, 0.1])  # kg, m
TIMESTEP, EVERY = 1e-3, 2  # s; a sample every 2 steps
NOISE = 5e-4  # m, standard deviation of every coordinate of a marker
MARKERS = HALF * np.array([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)])
LABELS = ("mass", "$s_x$", "$s_y$", "$s_z$", "friction", "restitution")
TRUE = np.r_[np.log([0.8, 0.003, 0.001, 0.0006, 0.35]), 0.45]
GUESS = np.r_[np.log([0.5, *(0.5 * HALF**2 / 3), 0.6]), 0.2]  # a homogeneous box
NAMES = ("inertia/box", "friction/box", "restitution/box")
SCALING = np.array([1, 1, 1, 1, 0, 0]) / 2  # mass and second moments together: what a fixed floor cannot show


def parameters(theta):
    """Values of the model's parameters at theta, and their derivatives (12, 6)."""
    m, sx, sy, sz, friction = np.exp(theta[:5])
    values = {
        "inertia/box": np.array([m, 0, 0, 0, sy + sz, 0, sx + sz, 0, 0, sx + sy]),  # Pinocchio's ten
        "friction/box": friction,
        "restitution/box": theta[5],
    }
    D = np.zeros((12, 6))
    D[0, 0] = m
    D[[4, 6, 9], 1] = 0, sx, sx
    D[[4, 6, 9], 2] = sy, 0, sy
    D[[4, 6, 9], 3] = sz, sz, 0
    D[10, 4], D[11, 5] = friction, 1
    return values, D


def scene(block):
    """The box over the floor and, if asked for, the block of known mass.

    A pair has the larger friction and restitution of its two.
    """
    scene = coulomb.Scene(timestep=TIMESTEP)
    scene.add_ground(friction=0.05, restitution=0.0)
    scene.add_box(size=2 * HALF, mass=1.0, friction=0.5, restitution=0.5, name="box")
    if block:
        position = (HALF[0] + BLOCK_HALF[0] + 0.03, 0, BLOCK_HALF[2])
        scene.add_box(
            size=2 * BLOCK_HALF, mass=BLOCK_MASS, position=position, friction=0.1, restitution=0.0, name="block"
        )
    return scene.build()


def marker_rows(q):
    """World positions (12,) of the markers, and their derivatives (12, 6) by the box's tangent."""
    w, x, y, z = q[3:7]
    R = np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip
    turns = [-R @ np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]]) for c in MARKERS]
    return (q[:3] + MARKERS @ R.T).ravel(), np.vstack([np.hstack([np.eye(3), turn]) for turn in turns])


class Throw:
    """A recording: release (q, v), length, and the markers' measured positions."""

    def __init__(self, kind, random):
        self.model = scene(block=kind == "hit")
        self.steps = {"bounce": 120, "slide": 200, "hit": 120}[kind]
        self.q, self.v = self.model.neutral()
        self.kind = kind
        if kind == "bounce":  # any side up, spinning, 2 cm above the floor
            turn = random.normal(size=4)
            self.q[3:7] = turn / np.linalg.norm(turn)
            self.q[2] -= lowest_point(self.model, self.q) - 0.02
            self.v[:6] = [*random.uniform(-1.5, 1.5, 2), random.uniform(-2.5, -1.5), *random.uniform(-6, 6, 3)]
        elif kind == "slide":
            self.q[2] = HALF[2] - 1e-5
            self.v[:2], self.v[5] = random.uniform(-1.2, 1.2, 2), random.uniform(-6, 6)
        else:  # in the air, a little turned, at the block
            turn = np.r_[1, 0.15 * random.normal(size=3)]
            self.q[3:7] = turn / np.linalg.norm(turn)
            self.q[1:3] = random.uniform(-0.05, 0.05), 0.12
            self.v[:6] = [random.uniform(1.5, 2.5), *random.uniform(-0.2, 0.2, 2), *random.uniform(-2, 2, 3)]

    def run(self, theta, steps=None, jacobian=True):
        """Marker positions (samples * 12,), their Jacobian (samples * 12, 6), and the configurations."""
        values, D = parameters(theta)
        sim = coulomb.Simulator(self.model.with_parameters(values))
        q, v = self.q, self.v
        X = np.zeros((2 * self.model.nv, 6))
        positions, rows, path = [], [], [q]
        for k in range(1, (steps or self.steps) + 1):
            q, v = sim.step(q, v)
            path.append(q)
            if jacobian:
                d = sim.derivatives(wrt=NAMES)
                X = d.A @ X + np.hstack([d[name] for name in NAMES]) @ D
            if k % EVERY == 0:
                p, P = marker_rows(q)
                positions.append(p)
                rows.append(P @ X[:6])
        return np.concatenate(positions), np.concatenate(rows), np.array(path)

    def measure(self, theta, random):
        """Noisy samples up to the second impact."""
        sim = coulomb.Simulator(self.model.with_parameters(parameters(theta)[0]))
        q, v, touching = self.q, self.v, []
        for k in range(self.steps):
            q, v = sim.step(q, v)
            if any("box" in (c.geometry_a, c.geometry_b) and np.linalg.norm(c.impulse) > 0 for c in sim.contacts):
                touching.append(k)
        if self.kind != "slide":
            self.steps = min([self.steps, *(k - 1 for k in touching if k > touching[0] + 1)]) // EVERY * EVERY
        exact = self.run(theta, jacobian=False)[0]
        self.measured = exact + NOISE * random.normal(size=exact.size)


class Fit:
    """least_squares on the recordings over the unknowns in `free`: residuals in units of the noise."""

    def __init__(self, throws, start, free):
        self.throws, self.start, self.free, self.cache, self.history = throws, start, list(free), (None, None), []
        upper = np.full(6, np.inf)
        upper[5] = 1.0
        lower = np.where(np.isinf(upper), -np.inf, 0.0)
        bounds = (lower[self.free], upper[self.free])
        self.result = least_squares(
            lambda x: self.both(x)[0],
            start[self.free],
            jac=lambda x: self.both(x)[1][:, self.free],
            bounds=bounds,
            x_scale="jac",
        )
        self.theta = self.full(self.result.x)
        J = self.both(self.result.x)[1]
        self.sizes, V = np.linalg.svd(J, full_matrices=False)[1:]  # of all six, also those that were held
        self.weakest = V[-1] * np.sign(V[-1].sum())
        self.deviations = np.full(6, np.inf)
        self.deviations[self.free] = np.sqrt(np.diag(np.linalg.inv(J[:, self.free].T @ J[:, self.free])))

    def full(self, x):
        theta = self.start.copy()
        theta[self.free] = x
        return theta

    def both(self, x):
        theta = self.full(x)
        if self.cache[0] is None or not np.array_equal(self.cache[0], theta):
            runs = [throw.run(theta) for throw in self.throws]
            r = np.concatenate([run[0] - throw.measured for run, throw in zip(runs, self.throws)]) / NOISE
            self.cache = (theta.copy(), (r, np.concatenate([run[1] for run in runs]) / NOISE))
            self.history.append((theta.copy(), np.sqrt(np.mean(r**2))))
        return self.cache[1]


def relative(theta):
    """Distance to the truth, relative: of mass, s, friction; absolute for the restitution."""
    return np.abs(np.r_[np.expm1((theta - TRUE)[:5]), (theta - TRUE)[5]])


def check_jacobian(throw, theta, h=1e-6):
    """Largest difference from central differences, relative (to 1 mm at least: some throws hardly touch)."""
    J = throw.run(theta)[1]
    sides = [[throw.run(theta + sign * h * e, jacobian=False)[0] for sign in (1, -1)] for e in np.eye(6)]
    return np.abs(J - np.stack([(a - b) / (2 * h) for a, b in sides], axis=1)).max() / max(np.abs(J).max(), 1e-3)


def picture(fits, unseen, path):
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13.5, 4.0), layout="constrained")
        steps = 400
        floor, both = fits.values()
        times = TIMESTEP * np.arange(steps + 1)
        truth = unseen.run(TRUE, steps, jacobian=False)[2]
        seen = truth[::10, 2] + NOISE * np.random.default_rng(5).normal(size=len(truth[::10]))
        left.plot(times[::10], 100 * seen, "o", color="#444444", markersize=3.5, label="measured, every 10 ms")
        for theta, label, style, colour in (
            (GUESS, "first guess", "--", COLOURS[1]),
            (both.theta, "identified", "-", COLOURS[0]),
        ):
            left.plot(times, 100 * unseen.run(theta, steps, jacobian=False)[2][:, 2], style, color=colour, label=label)
        left.set(xlabel="time [s]", ylabel="height of the centre [cm]", title="A throw that was not used")
        left.legend()
        for (label, fit), colour in zip(fits.items(), (COLOURS[1], COLOURS[0])):
            middle.semilogy([size for _, size in fit.history], "o-", color=colour, markersize=4, label=label)
        middle.axhline(1, color="#555555", linestyle=":")
        middle.annotate("noise", (0.02, 1.03), xycoords=("axes fraction", "data"), fontsize=9, color="#444444")
        middle.set(xlabel="evaluation", ylabel="residual, rms [noise]", title="least_squares, analytic Jacobian")
        middle.legend()
        columns = {"first guess": (GUESS, None), **{label: (fit.theta, fit.deviations) for label, fit in fits.items()}}
        for k, ((label, (theta, deviations)), colour) in enumerate(
            zip(columns.items(), ("#bbbbbb", COLOURS[1], COLOURS[0]))
        ):
            places = np.arange(6) + 0.26 * (k - 1)
            right.bar(places, 100 * relative(theta), 0.24, color=colour, label=label)
            if deviations is not None and np.isfinite(deviations[0]):
                right.plot(places, 200 * deviations, "_", color="black", markersize=10, label="2 standard deviations")
        right.annotate(
            "not observable:\nany common scale", (-0.4, 55), fontsize=9, ha="left", va="bottom", color=COLOURS[1]
        )
        right.set_yscale("log")
        right.set(
            xticks=range(6),
            xticklabels=LABELS,
            xlim=(-0.6, 5.6),
            xlabel="s: second moments of mass along the axes",
            ylabel="error [%]",
            title="What was found",
            ylim=(3e-3, 2e4),
        )
        right.tick_params(axis="x", labelsize=9)
        right.legend(loc="upper right", ncols=2, fontsize=9)
        figure.savefig(path, dpi=160)
        plt.close(figure)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer throws")
    parser.add_argument("--output", default="output/examples", help="folder of the plot (default: %(default)s)")
    options = parser.parse_args()
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    counts = {"bounce": 8, "slide": 1, "hit": 3} if options.quick else {"bounce": 16, "slide": 2, "hit": 8}
    throws = [Throw(kind, random) for kind, count in counts.items() for _ in range(count)]
    for throw in throws:
        throw.measure(TRUE, random)
    on_floor = [throw for throw in throws if throw.kind != "hit"]
    worst = max(check_jacobian(throw, GUESS) for throw in throws[:: 4 if options.quick else 1])
    print(
        f"{len(throws)} recordings, {sum(t.measured.size for t in throws)} coordinates; "
        f"Jacobian from central differences: {worst:.0e}"
    )
    assert worst < 1e-6, worst
    fits = {
        "floor only": Fit(on_floor, GUESS, range(1, 6)),  # without the mass, which it cannot see
        "floor and known block": Fit(throws, GUESS, range(6)),
    }
    for label, fit in fits.items():
        print(
            f"\n{label}: rms {fit.history[0][1]:.1f} to {fit.history[-1][1]:.3f} noise "
            f"in {len(fit.history)} evaluations"
        )
        print(f"  singular values {fit.sizes[0]:.1e} to {fit.sizes[-1]:.1e}")
        for name, error, deviation in zip(LABELS, relative(fit.theta), fit.deviations):
            print(f"  {name.strip('$'):<12} error {100 * error:7.3f} %, standard deviation {100 * deviation:.3f} %")
        assert 0.95 < fit.history[-1][1] < 1.05
    floor, both = fits.values()
    print(
        f"\nfloor only: the weakest direction is {np.round(floor.weakest, 6)}: mass and inertia scale together, unseen."
    )
    assert floor.sizes[-1] < 1e-9 * floor.sizes[0] and np.allclose(floor.weakest, SCALING, atol=1e-6)
    ratios = np.abs((floor.theta - TRUE)[1:4] - (floor.theta - TRUE)[0])
    assert np.all(ratios < 4 * floor.deviations[1:4]) and relative(floor.theta)[0] > 0.3
    assert np.all(relative(floor.theta)[4:] < 4 * floor.deviations[4:])
    assert both.sizes[-1] > 1e-3 * both.sizes[0] and np.all(relative(both.theta) < 4 * both.deviations)
    unseen = Throw("bounce", np.random.default_rng(3))
    print(picture(fits, unseen, folder / "identify_box.png"))


if __name__ == "__main__":
    main()
