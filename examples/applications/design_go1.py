"""The foot radius and shank length with which Go1 stands highest for what it costs.

scipy.optimize.minimize (L-BFGS-B); the gradient is one reverse sweep through the simulation. The robot is put on its
feet and a spring and damper in every joint hold it; when it has come to rest,

    worth = height of the trunk - PRICE_OF_HEAT * heat in the motors - PRICE_OF_MASS * mass of rubber and tube
    heat  = HEAT * |torques|^2

A larger foot lifts the robot by its radius, and its mass grows with the cube. A longer shank lifts it too; but the
pose is held with the same angles, so the feet move forward from under the hips, the trunk sags backwards and the hind
knees pay: torques grow, and beyond 0.3 m the robot sits down. So the best is inside.

The design enters at many places: size and placement of the foot and shank geometries, the ten inertial parameters of
the shank's body, the height of the start. vjp(..., wrt=names) gives the gradient by every parameter of a step; their
sum over the steps, through the derivative of the parameters by the design, is the gradient. The sweep goes through
the whole trajectory, not only through the balance at its end: where the feet come to stick depends on the way there,
so there are many balances. Joints are without dry friction here, so that rest is balance and not where the joints
happened to stick.

    python examples/applications/design_go1.py [--quick] [--output FOLDER]
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import coulomb
from coulomb.demo import STANDING, go1
from coulomb.pictures import COLOURS, STYLE

TIMESTEP, STEPS = 1e-3, 2000
STIFFNESS, DAMPING = 100.0, 6.0  # N m/rad, N m s/rad
HEAT = 0.2  # W/(N m)^2
PRICE_OF_HEAT, PRICE_OF_MASS = 1e-3, 15e-3  # m/W, m/kg
RUBBER, TUBE = 1200.0, 0.3  # kg/m^3, kg/m
BUILT = np.array([0.02, 0.213])  # m: radius and shank of the real robot
BOUNDS = ((0.01, 0.06), (0.16, 0.3))  # m
THIGH = 0.213  # m
PRESS = 1e-5  # m: how deep the feet start in the ground, off the border of touching
LEGS = ("FL", "FR", "RL", "RR")


def robot():
    model = go1()
    return model.with_parameters(
        {f"joint_friction/{joint}": 0.0 for joint in model.joint_names if joint != "root_joint"}
    )


def mass_of(radius, shank):
    """Mass of a foot and of the tube (kg), and derivatives by radius and shank."""
    foot = RUBBER * 4 / 3 * np.pi * radius**3
    return foot, TUBE * shank, np.array([3 * foot / radius, 0.0]), np.array([0.0, TUBE])


def shank_inertia(radius, shank):
    """m, m c, and I about the knee (ten) of a tube along -z with a ball at its end, and the (10, 2) derivative."""
    foot, tube, dfoot, dtube = mass_of(radius, shank)
    along = foot * shank**2 + tube * shank**2 / 3
    ball = 0.4 * foot * radius**2
    ten, D = np.zeros(10), np.zeros((10, 2))
    by_radius, by_shank = np.array([1.0, 0]), np.array([0, 1.0])
    ten[0], D[0] = foot + tube, dfoot + dtube
    ten[3] = -shank * (foot + tube / 2)
    D[3] = -shank * (dfoot + dtube / 2) - (foot + tube / 2) * by_shank
    dalong = shank**2 * (dfoot + dtube / 3) + 2 * shank * (foot + tube / 3) * by_shank
    dball = 0.4 * radius**2 * dfoot + 0.8 * foot * radius * by_radius
    ten[[4, 6, 9]] = along + ball, along + ball, ball
    D[[4, 6, 9]] = dalong + dball, dalong + dball, dball
    return ten, D


class Design:
    def __init__(self):
        self.model = robot()
        self.built = {name: p.value for name, p in self.model.parameters().items()}
        self.evaluations = 0

    def parameters(self, design):
        """Values by name, and by name their derivatives (size, 2) by (radius, shank)."""
        radius, shank = design
        values, D = {}, {}
        ten, dten = shank_inertia(radius, shank)
        for leg in LEGS:
            foot, calf, body = f"{leg}_foot_0", f"{leg}_calf_0", f"inertia/{leg}_calf"
            values[f"size/{foot}"], D[f"size/{foot}"] = np.array([radius]), np.array([[1.0, 0]])
            values[body], D[body] = self.built[body] + ten - shank_inertia(*BUILT)[0], dten
            for geometry, share in ((foot, 1.0), (calf, 0.5)):
                name = f"geometry_placement/{geometry}"
                values[name], D[name] = self.built[name].copy(), np.zeros((6, 2))
                values[name][2], D[name][2, 1] = -share * shank, -share
            name = f"size/{calf}"
            values[name], D[name] = self.built[name].copy(), np.zeros((3, 2))
            values[name][0], D[name][0, 1] = shank / 2, 0.5
        return values, D

    def start(self, design):
        """STANDING with the feet on the ground; the derivative of the height."""
        q, v = self.model.neutral()
        q[7:] = STANDING
        q[3:7] = 1, 0, 0, 0
        thigh, lean = STANDING[1], STANDING[1] + STANDING[2]
        q[:3] = 0, 0, THIGH * np.cos(thigh) + design[1] * np.cos(lean) + design[0] - PRESS
        return q, v, np.array([1.0, np.cos(lean)])

    def stand(self, design, record=None):
        """q, v, torques at the end, and the simulator. record: list that takes what a reverse sweep needs."""
        self.evaluations += 1
        sim = coulomb.Simulator(self.model.with_parameters(self.parameters(design)[0]), timestep=TIMESTEP)
        q, v, _ = self.start(design)
        for _ in range(STEPS):
            u = STIFFNESS * (STANDING - q[7:]) - DAMPING * v[6:]
            if record is not None:
                record.append((sim.memory, q, v, u))
            q, v = sim.step(q, v, u)
        return q, v, STIFFNESS * (STANDING - q[7:]) - DAMPING * v[6:], sim

    def parts(self, design, q, u):
        """Height (m), heat (W), mass (kg)."""
        return q[2], HEAT * (u @ u), 4 * sum(mass_of(*design)[:2])

    def worth(self, design):
        q, _, u, _ = self.stand(design)
        height, heat, mass = self.parts(design, q, u)
        return height - PRICE_OF_HEAT * heat - PRICE_OF_MASS * mass

    def gradient(self, design):
        """worth and its gradient by (radius, shank): one simulation forward, one sweep backward."""
        record = []
        q, v, u, sim = self.stand(design, record)
        height, heat, mass = self.parts(design, q, u)
        _, D = self.parameters(design)
        names = list(D)
        du = -2 * PRICE_OF_HEAT * HEAT * u  # d worth / d torques
        dq, dv = np.zeros(self.model.nv), np.zeros(self.model.nv)
        dq[2] = 1.0
        total = -4 * PRICE_OF_MASS * sum(mass_of(*design)[2:])
        for memory, q, v, u in reversed(record):
            dq[6:] -= STIFFNESS * du
            dv[6:] -= DAMPING * du
            sim.memory = memory
            sim.step(q, v, u)
            g = sim.vjp(dq, dv, wrt=names)
            total = total + sum(g[name] @ D[name] for name in names)
            dq, dv, du = g.q.copy(), g.v.copy(), g.u
        total = total + dq[2] * self.start(design)[2]
        return height - PRICE_OF_HEAT * heat - PRICE_OF_MASS * mass, total


def optimise(design, bounds):
    """L-BFGS-B in cm and mm. Returns scipy's result and the accepted designs with their worth."""
    path = []

    def cost(x):
        worth, gradient = design.gradient(x / 100)
        return -1000 * worth, -10 * gradient

    def note(intermediate_result):
        path.append((intermediate_result.x / 100, -intermediate_result.fun / 1000))

    path.append((BUILT, design.worth(BUILT)))
    options = {"ftol": 1e-7, "gtol": 1e-3, "maxiter": 20}
    limits = 100 * np.array(bounds)
    return minimize(cost, 100 * BUILT, jac=True, bounds=limits, method="L-BFGS-B", callback=note, options=options), path


def draw_robot(axes, design, point, offset, colour, label):
    """The legs of one side, standing, and the trunk."""
    q, _, u, _ = design.stand(point)
    model = design.model.with_parameters(design.parameters(point)[0])
    bodies, turns = model.body_placements(q)
    shapes, _ = model.geometry_placements(q)
    trunk = model.geometry_names.index("trunk_0")
    half = model.geometry_size[trunk]
    corners = np.array([(x, z) for x, z in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
    R = turns[model.body_names.index("base")]
    outline = shapes[trunk][[0, 2]] + corners * half[[0, 2]] @ R[[0, 2]][:, [0, 2]].T
    axes.fill(outline[:, 0] + offset, outline[:, 1], color=colour, alpha=0.25, linewidth=0)
    for leg in ("FL", "RL"):
        foot = shapes[model.geometry_names.index(f"{leg}_foot_0")]
        joints = [bodies[model.body_names.index(f"{leg}_{part}")] for part in ("thigh", "calf")]
        line = np.array([*joints, foot])
        axes.plot(line[:, 0] + offset, line[:, 2], "-", color=colour, linewidth=3.5, solid_capstyle="round")
        axes.plot(line[:2, 0] + offset, line[:2, 2], "o", color="white", markeredgecolor=colour, markersize=6, zorder=3)
        angle = np.linspace(0, 2 * np.pi, 60)
        axes.fill(
            foot[0] + offset + point[0] * np.cos(angle), foot[2] + point[0] * np.sin(angle), color=colour, zorder=3
        )
    height, heat, mass = design.parts(point, q, u)
    radius, shank = 1000 * point
    text = f"{label}\nfoot {radius:.0f} mm, shank {shank:.0f} mm\nheight {1000 * height:.0f} mm, heat {heat:.0f} W"
    axes.text(q[0] + offset, 0.46, text, ha="center", va="bottom", fontsize=9, color=colour)
    axes.plot([q[0] - 0.3 + offset, q[0] + 0.3 + offset], [height, height], ":", color=colour, linewidth=1)


def picture(design, path, best, count, file):
    from matplotlib import pyplot as plt

    points, worths = np.array([p for p, _ in path]), np.array([w for _, w in path])
    radii, shanks = np.linspace(0.012, 0.05, count), np.linspace(0.18, 0.29, count + 2)
    with plt.rc_context(STYLE):
        figure, (left, middle, right) = plt.subplots(
            1, 3, figsize=(14.5, 4.3), layout="constrained", width_ratios=(1.35, 1.1, 0.9)
        )
        left.axhline(0, color="#777777", linewidth=1)
        draw_robot(left, design, BUILT, 0.0, COLOURS[1], "as built")
        draw_robot(left, design, best, 0.7, COLOURS[0], "best")
        left.set(xlabel="x [m]", ylabel="z [m]", title="Standing, from the side")
        left.set_aspect("equal", adjustable="datalim")
        left.grid(False)
        grid = 1000 * np.array([[design.worth(np.array([r, s])) for r in radii] for s in shanks])
        levels = np.sort(1000 * worths.max() - np.array([0.3, 1, 2, 4, 6, 9, 12, 16, 20, 25]))
        filled = middle.contourf(
            1000 * radii, 1000 * shanks, grid, levels=[*levels, 1000 * worths.max() + 1], cmap="Blues", extend="min"
        )
        middle.contour(1000 * radii, 1000 * shanks, grid, levels=levels, colors="white", linewidths=0.6)
        figure.colorbar(filled, ax=middle, label="worth [mm]", format="%.0f")
        middle.plot(1000 * points[:, 0], 1000 * points[:, 1], "o-", color=COLOURS[1], markersize=4)
        middle.plot(*(1000 * best), "*", color=COLOURS[1], markersize=13)
        middle.set(
            xlabel="radius of the feet [mm]", ylabel="shank [mm]", title="Worth of a design, and the way of L-BFGS-B"
        )
        middle.grid(False)
        right.plot(1000 * worths, "o-", color=COLOURS[0], markersize=4)
        right.xaxis.set_major_locator(plt.MaxNLocator(integer=True))
        right.set(xlabel="iteration", ylabel="worth [mm]", title="Every iteration is better")
        figure.savefig(file, dpi=160)
        plt.close(figure)
    return file


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a coarse map")
    parser.add_argument("--output", default="output/examples", help="folder of the plot (default: %(default)s)")
    options = parser.parse_args()
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    design = Design()
    _, analytic = design.gradient(BUILT)
    h = 1e-5
    numeric = np.array([(design.worth(BUILT + h * e) - design.worth(BUILT - h * e)) / (2 * h) for e in np.eye(2)])
    error = np.linalg.norm(analytic - numeric) / np.linalg.norm(numeric)
    print(f"gradient of the worth by radius and shank, as built: {analytic}; from central differences {error:.0e}")
    assert error < 1e-5, error
    result, path = optimise(design, BOUNDS)
    best = result.x / 100
    for k, (point, worth) in enumerate(path):
        print(f"  {k:2d}: foot {1000 * point[0]:.2f} mm, shank {1000 * point[1]:.2f} mm, worth {1000 * worth:.3f} mm")
    print(f"{result.message}; {result.nfev} evaluations; gradient {np.linalg.norm(result.jac):.1e} mm/cm")
    for label, point in (("as built", BUILT), ("best", best)):
        q, v, u, _ = design.stand(point)
        height, heat, mass = design.parts(point, q, u)
        print(
            f"{label:<9} height {1000 * height:.1f} mm, heat {heat:.1f} W, rubber and tube {mass:.2f} kg, "
            f"speed {np.abs(v).max():.0e}"
        )
        assert np.abs(v).max() < 1e-3  # it has come to rest
    print(picture(design, path, best, 4 if options.quick else 14, folder / "design_go1.png"))
    worths = np.array([worth for _, worth in path])
    assert np.all(np.diff(worths) > 0), worths
    assert worths[-1] > worths[0] + 0.01 and np.linalg.norm(result.jac) < 0.05, result
    assert all(low < x < high for x, (low, high) in zip(best, BOUNDS))
    for step in 1e-3 * np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (1, -1), (-1, 1)]):
        assert design.worth(best + step) < worths[-1], step  # a maximum: no neighbour at 1 mm is better


if __name__ == "__main__":
    main()
