"""The leg with which a hopper jumps highest for 6 J in its spring: lengths of thigh and shank, stiffness of the knee.

A trunk of 1 kg that a rail keeps upright stands on a leg of two links, 0.6 kg/m. A spring in the knee is wound up to 6 J, whatever its
stiffness, so that a soft one means a deep crouch; then it is let go. The jump is the height of the trunk at the highest point above
standing on a straight leg. Long legs are heavy; short ones must turn fast, and what the knee's rotor and damper take grows with the
square of that. The best is in between.

Unknowns: two lengths by cages (coulomb.morphology) and the stiffness. They change masses, inertias, boxes, the place of the knee, the foot
and the start. L-BFGS-B with the gradient of one reverse sweep,

    d jump/dx = rollout.vjp(..., wrt=names) . d parameters/dx + d jump/dq0 . dq0/dx

    python examples/applications/design_hopper.py [--quick] [--output FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import coulomb
from coulomb.morphology import Cage, Link, Morphology, Part, Scales
from coulomb.pictures import COLOURS, STYLE

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from plot_common import arguments, finish, outlines  # noqa: E402

ENERGY, TRUNK, REST = 6.0, 1.0, 0.25  # J, kg, rad: bend of the knee where the spring is at rest
LENGTH, SIDE, DENSITY, RADIUS = 0.2, 0.02, 1500.0, 0.012  # m, m, kg/m^3, m: links before the optimisation, and the foot
STIFFNESS = 4.0  # N m/rad before the optimisation
DAMPING, ROTOR = 0.02, 1e-3  # N m s/rad, kg m^2: of the knee
BOUNDS = ((0.3, 2.5), (0.3, 2.5), (0.5, 4.0))  # of the two lengths and the stiffness, in those before
TIMESTEP, STEPS, GRAVITY = 5e-5, 9000, 9.81  # s; small: take-off falls on a step
TOOTH = 1e-3  # m; the jump has teeth, of .3 mm, where take-off moves to another step
NAMES = ("thigh", "shank", "stiffness")
XML = f"""<mujoco><compiler angle="radian"/><option timestep="{TIMESTEP}" gravity="0 0 -{GRAVITY}"/><worldbody>
  <geom name="ground" type="plane" size="5 5 1" friction="1"/>
  <body name="trunk"><joint name="rail" type="slide" axis="0 0 1"/>
    <geom name="trunk" type="box" size=".05 .04 .03" pos="0 0 .03" mass="{TRUNK}" contype="0" conaffinity="2"/>
    <body name="thigh"><joint name="hip" axis="0 1 0"/>
      <geom name="thigh" type="box" size="{SIDE / 2} {SIDE / 2} {LENGTH / 2}" pos="0 0 {-LENGTH / 2}" density="{DENSITY}"
        contype="0" conaffinity="2"/>
      <body name="shank" pos="0 0 {-LENGTH}"><joint name="knee" axis="0 1 0" stiffness="{STIFFNESS}" springref="{REST}"
          damping="{DAMPING}" armature="{ROTOR}"/>
        <geom name="shank" type="box" size="{SIDE / 2} {SIDE / 2} {LENGTH / 2}" pos="0 0 {-LENGTH / 2}" density="{DENSITY}"
          contype="0" conaffinity="2"/>
        <geom name="foot" type="sphere" size="{RADIUS}" pos="0 0 {-LENGTH}" mass="0"/></body></body></body>
</worldbody></mujoco>"""


class Hopper:
    """x: thigh and shank lengths and stiffness, relative to those before."""

    def __init__(self):
        model = coulomb.load(XML)
        box = (-SIDE / 2, -SIDE / 2, -LENGTH), (SIDE / 2, SIDE / 2, 0)
        thigh, shank = (Cage.box(*box, name=name) for name in ("thigh", "shank"))
        longer = np.zeros((16, 3, 2))
        for k, cage in enumerate((thigh, shank)):
            longer[8 * k : 8 * k + 8, 2, k] = cage.handles[:, 2]
        self.leg = Morphology(
            model,
            [Part("thigh", thigh, DENSITY), Part("shank", shank, DENSITY), Part("foot", shank)],
            [Link("knee", thigh)],
            design=Scales([thigh, shank], longer, NAMES[:2]),
        )

    def model(self, x):
        return self.leg.model_of(x[:2]).with_parameters({"joint_stiffness/knee": STIFFNESS * x[2]})

    def start(self, x):
        """q0: the foot under the hip, on the ground, the spring wound up. x may be complex."""
        thigh, shank = LENGTH * x[0], LENGTH * x[1]
        bend = REST + np.sqrt(2 * ENERGY / (STIFFNESS * x[2]))
        hip = -np.arctan(shank * np.sin(bend) / (thigh + shank * np.cos(bend)))
        return np.array([thigh * np.cos(hip) + shank * np.cos(hip + bend) + RADIUS - 1e-6, hip, bend])

    def start_slope(self, x):
        """dq0/dx (3, 3), by complex steps: exact to rounding."""
        return np.stack([self.start(x + 1e-30j * e).imag / 1e-30 for e in np.eye(3)], axis=1)

    def standing(self, x):
        return LENGTH * (x[0] + x[1]) + RADIUS

    def rollout(self, x):
        model = self.model(x)
        return coulomb.Simulator(model).rollout(self.start(x), np.zeros(model.nv), steps=STEPS)

    def jump(self, x):
        return self.height(self.rollout(x))[0] - self.standing(x)

    def height(self, r):
        """Of the highest point of the trunk (m), between steps by its parabola; and the step."""
        heights = r.q[:, 0] + r.v[:, 0] * np.abs(r.v[:, 0]) / (2 * GRAVITY)
        flying = np.flatnonzero((r.v[1:, 0] <= 0) & (r.v[:-1, 0] > 0))
        top = int(flying[np.argmax(r.q[flying, 0])]) if len(flying) else STEPS
        return heights[top], top

    def gradient(self, x):
        """jump and its gradient by x."""
        r = self.rollout(x)
        height, top = self.height(r)
        dQ, dV = np.zeros_like(r.v), np.zeros_like(r.v)
        dQ[top, 0], dV[top, 0] = 1, np.abs(r.v[top, 0]) / GRAVITY
        g = r.vjp(dQ, dV, wrt=[*self.leg.names, "joint_stiffness/knee"])
        total = g.q0 @ self.start_slope(x)
        total[:2] += self.leg.vjp(x[:2], g) - LENGTH
        total[2] += STIFFNESS * g["joint_stiffness/knee"][0]
        return height - self.standing(x), total


def optimise(hopper, x):
    """Designs and jumps after every iteration, the start first."""
    path = [(x, hopper.jump(x))]

    def cost(y):
        value, slope = hopper.gradient(y)
        return -10 * value, -10 * slope

    for _ in range(3):  # take-off in another step is a small kink: begin anew behind it
        before = len(path)
        minimize(
            cost,
            path[-1][0],
            jac=True,
            bounds=BOUNDS,
            method="L-BFGS-B",
            callback=lambda intermediate_result: path.append((intermediate_result.x, -intermediate_result.fun / 10)),
            options={"ftol": 1e-9, "maxiter": 40},
        )
        if len(path) - before < 2:
            break
    return [point for point, _ in path], np.array([value for _, value in path])


def describe(x):
    return f"thigh {100 * LENGTH * x[0]:.1f} cm, shank {100 * LENGTH * x[1]:.1f} cm, {STIFFNESS * x[2]:.2f} N m/rad"


def draw(axes, hopper, x, offset, colour, label):
    """Crouched, at the take-off and at the highest point."""
    r = hopper.rollout(x)
    _, top = hopper.height(r)
    lift = int(np.argmax(r.v[:, 0]))
    for k, t in enumerate((0, lift, top)):
        shift = offset + 0.2 * k
        for name, polygon in outlines(r.model, r.q[t], (0, 2)):
            axes.fill(*(polygon + [shift, 0]).T, color=colour, alpha=0.35 if name == "trunk" else 0.9, linewidth=0.5)
        axes.text(shift, -0.03, ("crouched", "take-off", "highest")[k], ha="center", va="top", fontsize=8.5)
    standing = hopper.standing(x)
    axes.plot([offset + 0.3, offset + 0.5], [standing] * 2, ":", color=colour)
    axes.annotate(
        "", (offset + 0.49, r.q[top, 0]), (offset + 0.49, standing), arrowprops={"arrowstyle": "->", "color": colour}
    )
    text = f"{label}: {describe(x)}".replace(", ", "\n").replace(": ", "\n") + f"\njump {100 * hopper.jump(x):.1f} cm"
    axes.text(
        offset + 0.2, 0.98, text, ha="center", va="top", fontsize=9, color=colour, transform=axes.get_xaxis_transform()
    )


def picture(hopper, points, jumps, path):
    import matplotlib

    matplotlib.use("Agg", force=False)
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 5), layout="constrained", width_ratios=(1.5, 1))
        left.axhline(0, color="#777777", linewidth=1)
        draw(left, hopper, points[0], 0.0, COLOURS[1], "before")
        draw(left, hopper, points[-1], 0.75, COLOURS[0], "after")
        low, high = left.get_ylim()
        left.set(ylabel="z [m]", aspect="equal", ylim=(-0.08, high + 0.3), title="The same 6 J")
        left.grid(False)
        left.set_xticks([])
        right.plot(100 * jumps, "o-", color=COLOURS[0], markersize=4)
        right.set(xlabel="iteration of L-BFGS-B", ylabel="jump [cm]", title="Every iteration jumps higher")
        right.xaxis.set_major_locator(plt.MaxNLocator(integer=True))
        finish(figure, path)


def main():
    options = arguments(__doc__, quick="the same: it takes seconds")
    hopper = Hopper()
    x = np.ones(3)
    _, analytic = hopper.gradient(x)
    h = 1e-6
    numeric = np.array([(hopper.jump(x + h * e) - hopper.jump(x - h * e)) / (2 * h) for e in np.eye(3)])
    error = np.linalg.norm(analytic - numeric) / np.linalg.norm(numeric)
    print(f"gradient of the jump by {', '.join(NAMES)}: {analytic}; from central differences {error:.0e}")
    assert error < 1e-6, error
    points, jumps = optimise(hopper, x)
    for label, point, jump in (("before", points[0], jumps[0]), ("after", points[-1], jumps[-1])):
        print(f"{label:<7} {describe(point)}: jumps {100 * jump:.2f} cm")
    picture(hopper, points, jumps, options.output / "design_hopper.png")
    assert np.all(np.diff(jumps) > -1e-12) and jumps[-1] > jumps[0] + 0.02, jumps
    best = points[-1]
    assert all(low < value < high for value, (low, high) in zip(best, BOUNDS))

    # A maximum, inside the bounds and up to a tooth: half of an unknown or half as much again jumps lower.
    for direction in np.concatenate([np.eye(3), -np.eye(3)]):
        assert hopper.jump(best * (1 + 0.5 * direction)) < jumps[-1], direction
        assert hopper.jump(best * (1 + 0.1 * direction)) < jumps[-1] + TOOTH, direction


if __name__ == "__main__":
    main()
