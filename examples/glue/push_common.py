"""What the examples with a pushed box share: a finger on a rail pushes a box once; the box slides on, and friction stops it at a place.

The least effort 0.005 sum u^2 of 40 forces, each held for 25 ms, such that the box ends at 0.5 m, and the finger where it began, at rest. Push
and slide are one problem without phases. The knot at which the finger lets go stays that of the forces to begin with: an exact gradient does not
know of a contact that is not there (docs/conventions.md).
"""

import sys
from pathlib import Path

import numpy as np

import coulomb
from coulomb.pictures import COLOURS, STYLE

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from plot_common import arguments, finish, strobe  # noqa: E402, F401

KNOTS, SUBSTEPS, PLACE, EFFORT = 40, 5, 0.5, 0.01
PUSH = """<mujoco><option timestep="0.005"/><worldbody>
  <geom name="floor" type="box" size="1.2 .5 .02" pos="0 0 -.02" friction=".3"/>
  <body name="finger" pos="-.2 0 .1"><joint name="finger" type="slide" axis="1 0 0" damping=".5"/>
    <geom name="finger" type="sphere" size=".05" mass=".5" friction="0"/></body>
  <body name="box" pos="0 0 .0999">
    <joint name="box_x" type="slide" axis="1 0 0"/><joint name="box_z" type="slide" axis="0 0 1"/>
    <geom name="box" type="box" size=".1 .1 .1" mass="1" friction=".3"/></body>
</worldbody><actuator><motor joint="finger" ctrllimited="true" ctrlrange="-15 15"/></actuator></mujoco>"""


def scene():
    """The model, (q0, v0), and forces (knots, 1) to begin with: they hit the box, which ends short of the place."""
    model = coulomb.load(PUSH)
    guess = np.zeros((KNOTS, 1))
    guess[:8] = 10
    guess[8:14] = -8
    return model, np.zeros(3), np.zeros(3), guess


def rolled(model, q0, v0, U):
    return coulomb.Simulator(model).rollout(q0, v0, U, substeps=SUBSTEPS)


def report(name, model, U, seconds, iterations):
    """Says what was found, and asserts it on a rollout of the forces alone."""
    r = rolled(model, np.zeros(3), np.zeros(3), U)
    effort = 0.5 * EFFORT * np.sum(U**2)
    print(
        f"{name}: effort {effort:.5f} after {iterations} iterations, {seconds:.2f} s; box at {r.q[-1, 1]:.6f} m, "
        f"{r.v[-1, 1]:.1e} m/s, finger at {r.q[-1, 0]:.1e} m"
    )
    assert abs(r.q[-1, 1] - PLACE) < 1e-5 and abs(r.v[-1, 1]) < 1e-9, r.q[-1]
    assert np.abs(r.q[-1, 0]) < 1e-5 and np.abs(r.v[-1, 0]) < 1e-4 and np.abs(U).max() < 15 + 1e-6
    return effort, r


def picture(model, U, r, path, title):
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, (scene_axes, place, force) = plt.subplots(
            3, 1, figsize=(7, 6.4), layout="constrained", height_ratios=[1.1, 1, 1]
        )
        strobe(
            scene_axes, model, r.q[[0, 4, 8, 14, -1]], colours={"finger": COLOURS[1], "box": COLOURS[0]},
            limits=(-0.35, 0.75, -0.04, 0.26), along=(0, 2),
        )  # fmt: skip
        scene_axes.set_title(title)
        t = np.arange(KNOTS + 1) * SUBSTEPS * 0.005
        place.plot(t, r.q[:, 1], color=COLOURS[0], label="box")
        place.plot(t, r.q[:, 0], color=COLOURS[1], label="finger")
        place.axhline(PLACE, color="black", linewidth=0.8, linestyle=":")
        place.set(ylabel="moved [m]")
        place.legend()
        force.step(t[:-1], U[:, 0], where="post", color=COLOURS[2])
        force.set(xlabel="time [s]", ylabel="force [N]")
        finish(figure, path)
