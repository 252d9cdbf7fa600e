"""The two pictures of docs/conventions.md, "Other gradients": python docs/pictures/which_gradient.py (about a minute).

The step itself on top, what the gradients say about it below. Everything is seeded: the same numbers every time.
"""

import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import coulomb

FOLDER = pathlib.Path(__file__).parent
H, MU, MASS, G = 1e-2, 0.5, 1.0, 9.81
SAMPLES = 400
COLORS = {
    "exact": "#1f4e9c",
    "complementarity_aware": "#c8321e",
    "smoothed_collision": "#2a8a4a",
    "smoothed_step": "#e08a00",
}
BLACK = "#222222"


def unit(n, i):
    return np.eye(n)[i]


def difference_quotients(x, y):
    return 0.5 * (x[1:] + x[:-1]), np.diff(y) / np.diff(x)


def panels(title, upper, lower, along):
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(6.4, 5.6), sharex=True, height_ratios=(2, 3), layout="constrained"
    )
    top.set_title(title, fontsize=10)
    top.set_ylabel(upper, fontsize=9)
    bottom.set_ylabel(lower, fontsize=9)
    bottom.set_xlabel(along, fontsize=9)
    for axes in (top, bottom):
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    return figure, top, bottom


def save(figure, name):
    figure.savefig(FOLDER / name, dpi=110)
    plt.close(figure)
    print("wrote", FOLDER / name)


def box(depth):
    scene = coulomb.Scene()
    scene.add_ground(friction=MU)
    scene.add_box((0.2, 0.2, 0.2), mass=MASS, position=(0, 0, 0.1 - depth), friction=MU, name="box")
    return scene.build()


def push(model, force, **options):
    """Position correction is off, so that sticking ends at mu m g exactly."""
    sim = coulomb.Simulator(model, timestep=H, baumgarte=0, **options)
    q, v = model.neutral()
    _, v1 = sim.step(q, v, tau=force * MU * MASS * G * unit(6, 0))
    return sim, v1[0]


def pushed_box():
    """Slopes dv1/dtau, in units of h / m: 0 sticks, 1 slides."""
    forces = np.round(np.linspace(0.8, 1.2, 41), 6)  # of mu m g
    model, sunk = box(1e-4), box(1e-2)

    def slopes(model, gradient, **options):
        sims = (push(model, f, gradient=gradient, **options)[0] for f in forces)
        return np.array([sim.vjp(np.zeros(6), unit(6, 0)).tau[0] for sim in sims]) * MASS / H

    figure, top, bottom = panels(
        "A box at rest, pushed sideways: sticking ends at $\\mu m g$",
        "velocity after the step $v_1$ [mm/s]",
        "slope $\\partial v_1/\\partial\\tau$ in $h/m$",
        "push $\\tau$ in $\\mu m g$",
    )
    top.plot(forces, [1e3 * push(model, f)[1] for f in forces], color=BLACK, marker=".", markersize=4)
    blur = dict(gradient_samples=SAMPLES, gradient_scale=3e-3)
    bottom.plot(
        forces,
        slopes(model, "exact"),
        color=COLORS["exact"],
        linewidth=4,
        alpha=0.5,
        label="exact",
        drawstyle="steps-pre",
    )
    collision = slopes(model, "smoothed_collision", **blur)
    bottom.plot(
        forces, collision, "--", drawstyle="steps-pre", color=COLORS["smoothed_collision"], label="smoothed_collision"
    )
    aware = slopes(model, "complementarity_aware")
    bottom.plot(
        forces, aware, "o", color=COLORS["complementarity_aware"], markersize=4, label="complementarity_aware (vjp)"
    )
    bottom.plot(
        forces,
        slopes(sunk, "smoothed_step", **blur),
        color=COLORS["smoothed_step"],
        label="smoothed_step, box 10 mm in the ground",
    )
    bottom.plot(
        forces,
        slopes(model, "smoothed_step", **blur),
        ":",
        color=COLORS["smoothed_step"],
        label="smoothed_step, 0.1 mm: half of the samples fly",
    )
    bottom.legend(fontsize=7.5, loc="upper left", framealpha=1)
    bottom.set_ylim(-0.05, 1.5)
    save(figure, "which_gradient_sliding.png")


def gem(radius=0.1, corners=12):
    """A ring of corners between two apexes: it rocks from corner to corner, one of them on the ground at a time.

    A heavy rotor (armature) keeps it from turning away, so that what the step answers is the depth alone."""
    turn = 2 * np.pi * np.arange(corners) / corners
    points = [(radius * np.sin(t), 0, radius * np.cos(t)) for t in turn] + [(0, 0.08, 0), (0, -0.08, 0)]
    scene = coulomb.Scene()
    scene.add_ground(friction=0.0)
    height = radius * np.cos(np.pi / corners) - 1e-4  # between two corners: 0.1 mm in the ground
    scene.add_mesh(points, mass=1.0, position=(0, 0, height), friction=0.0, name="gem")
    model = scene.build()
    return model.with_parameters({f"armature/{model.joint_names[0]}": [0, 0, 0, 10, 10, 10]})


def rocking():
    """Turned in place, the gem is pushed out of the ground: v1 is the depth of its lowest corner, corrected."""
    model = gem()
    q0, v0 = model.neutral()
    angles = np.radians(np.linspace(-30, 30, 121))

    def step(angle, **options):
        sim = coulomb.Simulator(model, timestep=H, **options)
        return sim, sim.step(model.integrate(q0, angle * unit(6, 4)), v0)[1][2]

    def slopes(**options):
        return [step(a, **options)[0].derivatives().dv_dq[2, 4] for a in angles]

    figure, top, bottom = panels(
        "A polyhedron rocking from corner to corner (every 30°)",
        "velocity upward $v_1$ [m/s]",
        "slope $\\partial v_1/\\partial$angle [m/(s rad)]",
        "angle [°]",
    )
    degrees, speed = np.degrees(angles), np.array([step(a)[1] for a in angles])
    top.plot(degrees, speed, color=BLACK, marker=".", markersize=4)
    middle, quotient = difference_quotients(angles, speed)
    bottom.plot(np.degrees(middle), quotient, "x", color=BLACK, markersize=4, label="the step's difference quotients")
    bottom.plot(degrees, slopes(gradient="exact"), color=COLORS["exact"], linewidth=4, alpha=0.5, label="exact")
    for scale, style in ((5e-3, "--"), (2e-2, "-")):
        blur = dict(gradient_samples=SAMPLES, gradient_scale=scale)
        label = f"smoothed_collision, scale {1e3 * scale:.0f} mm"
        bottom.plot(
            degrees,
            slopes(gradient="smoothed_collision", **blur),
            style,
            color=COLORS["smoothed_collision"],
            label=label,
        )
    bottom.legend(fontsize=7.5, loc="upper right", framealpha=1, ncols=2)
    bottom.set_ylim(-0.4, 0.55)
    save(figure, "which_gradient_rocking.png")


if __name__ == "__main__":
    pushed_box()
    rocking()
