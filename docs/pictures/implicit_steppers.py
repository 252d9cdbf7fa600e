"""The picture of docs/implicit.md: python docs/pictures/implicit_steppers.py (some seconds).

Left: error at t = 0.5 s against the step, a chain with a free base. Right: energy of three boxes on hinges over two swings.
"""

import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import coulomb

FOLDER = pathlib.Path(__file__).parent
INERTIA = 'diaginertia=".002 .003 .004"'
CHAIN = f"""<mujoco><worldbody><body><freejoint/><inertial pos=".1 0 .05" mass="2" diaginertia=".02 .03 .04"/>
<body pos=".3 0 0"><joint type="ball" damping=".3" stiffness="2"/><inertial pos=".1 .02 0" mass="1" {INERTIA}/>
<body pos=".2 0 0"><joint axis="0 1 0" damping=".1" stiffness="1" armature=".01"/><inertial pos=".1 .02 0" mass=".5" {INERTIA}/>
<body pos=".2 0 .1"><joint type="slide" axis="0 .6 .8" stiffness="50"/><inertial pos=".1 .02 0" mass=".5" {INERTIA}/>
</body></body></body></body></worldbody></mujoco>"""
BOX = '<inertial pos="0 0 -.5" mass="1" diaginertia=".085 .085 .0033"/>'
BOXES = f"""<mujoco><worldbody><body><joint axis="0 1 0"/>{BOX}<body pos="0 0 -1"><joint axis="0 1 0"/>{BOX}
<body pos="0 0 -1"><joint axis="0 1 0"/>{BOX}</body></body></body></worldbody></mujoco>"""
COLORS = {"semi_implicit": "#888888", "bdf1": "#c8321e", "bdf2": "#1f4e9c"}


def end(model, stepper, h, duration, v0):
    trajectory = coulomb.Simulator(model, stepper=stepper, timestep=h).rollout(
        np.array(model.neutral()[0]), v0, steps=round(duration / h)
    )
    return trajectory.q[-1], trajectory.v[-1]


def order(axes):
    model = coulomb.load(CHAIN)
    v0 = np.linspace(-1, 1.5, model.nv)
    q, v = end(model, "bdf2", 0.5 / 25600, 0.5, v0)
    steps = 0.5 / (25 * 2.0 ** np.arange(7))
    for stepper in ("bdf1", "bdf2"):
        errors = []
        for h in steps:
            qh, vh = end(model, stepper, h, 0.5, v0)
            errors.append(np.linalg.norm(np.r_[model.difference(q, qh), vh - v]))
        slope = np.polyfit(np.log(steps[2:]), np.log(errors[2:]), 1)[0]
        axes.loglog(steps, errors, "o-", ms=4, color=COLORS[stepper], label=f"{stepper}: slope {slope:.2f}")
    axes.set_xlabel("time step (s)", fontsize=9)
    axes.set_ylabel("error of (q, v) at 0.5 s", fontsize=9)


def energy(axes):
    model = coulomb.load(BOXES)
    for stepper, h in (("semi_implicit", 1e-2), ("bdf1", 1e-3), ("bdf2", 1e-2), ("bdf2", 5e-3)):
        q0 = np.array([1.0, 0.2, 0.1])
        t = coulomb.Simulator(model, stepper=stepper, timestep=h).rollout(q0, np.zeros(3), steps=round(4 / h))
        values = np.array([sum(model.energy(q, v)) for q, v in zip(t.q, t.v)])
        axes.plot(
            h * np.arange(len(values)),
            values - values[0],
            color=COLORS[stepper],
            linestyle="--" if h == 5e-3 else "-",
            linewidth=1.2,
            label=f"{stepper}, h = {1e3 * h:g} ms",
        )
    axes.set_xlabel("time (s)", fontsize=9)
    axes.set_ylabel("energy − initial energy (J)", fontsize=9)


figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
order(left)
energy(right)
for axes in (left, right):
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=8, frameon=False)
figure.savefig(FOLDER / "implicit_steppers.png", dpi=110)
print("wrote", FOLDER / "implicit_steppers.png")
