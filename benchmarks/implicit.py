"""Implicit steps and their adjoint: time per step of rollouts forward and backward, against steps and parameters. `make bench` runs it.

python benchmarks/implicit.py [--quick] [--output FOLDER]

A finger of three links on a ball that lies on the ground, and a chain as large as a hand: five such fingers on a palm.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy is imported
    os.environ.setdefault(variable, "1")

import argparse
import datetime
from pathlib import Path
from time import process_time

import numpy as np

import coulomb

HERE = Path(__file__).resolve().parent
LINK = '<inertial pos="0 0 -.03" mass=".05" diaginertia="2e-5 2e-5 5e-6"/>'


def finger(name, x, y):
    """Three links, four joints, round tip."""
    link = f'<geom type="capsule" fromto="0 0 0 0 0 -.05" size=".008" mass="0" contype="0" conaffinity="0"/>{LINK}'
    joint = 'type="hinge" damping=".02" armature=".001"'
    return f"""<body name="{name}0" pos="{x} {y} .2"><joint name="{name}a" axis="1 0 0" {joint}/><joint name="{name}b" axis="0 1 0" {joint}/>{link}
<body name="{name}1" pos="0 0 -.06"><joint name="{name}c" axis="0 1 0" {joint}/>{link}
<body name="{name}2" pos="0 0 -.06"><joint name="{name}d" axis="0 1 0" {joint}/>{link}
<geom name="{name}tip" type="sphere" size=".012" pos="0 0 -.06" mass="0"/></body></body></body>"""


def scene(fingers):
    places = [(0.06 * np.cos(a), 0.06 * np.sin(a)) for a in np.arange(fingers) * 2 * np.pi / fingers]
    bodies = "".join(finger(f"f{i}_", x, y) for i, (x, y) in enumerate(places))
    motors = "".join(f'<position joint="f{i}_{j}" kp="1"/>' for i in range(fingers) for j in "abcd")
    return coulomb.load(
        f"""<mujoco><worldbody><geom name="ground" type="plane" size="1 1 .1"/>{bodies}
<body name="ball" pos="0 0 .04"><freejoint/><geom name="ball" type="sphere" size=".04" mass=".1"/></body></worldbody>
<actuator>{motors}</actuator></mujoco>"""
    )


def best(function, repeats):
    times = []
    for _ in range(repeats):
        start = process_time()
        result = function()
        times.append(process_time() - start)
    return min(times), result


def measure(model, stepper, steps, count, repeats):
    """us per step of rollout and vjp for `count` parameter scalars or more: with factors kept, and without; number of scalars."""
    sim = coulomb.Simulator(model, stepper=stepper, timestep=2e-3)
    q0, v0 = np.array(model.neutral()[0]), np.zeros(model.nv)
    U = 0.3 * np.sin(np.linspace(0, 6, steps))[:, None] * np.ones(model.nu)
    names, scalars = [], 0
    for name, parameter in model.parameters().items():
        if scalars >= count:
            break
        if name.split("/")[0] in ("mass", "com", "inertia", "joint_placement", "size"):
            names.append(name)
            scalars += np.size(parameter.value)
    dQ, dV = np.random.default_rng(0).normal(size=(2, steps + 1, model.nv))
    times = []
    for keep in (True, False):
        forward, trajectory = best(lambda keep=keep: sim.rollout(q0, v0, U, keep_factors=keep), repeats)
        assert trajectory.converged
        backward, _ = best(lambda r=trajectory: r.vjp(dQ, dV, wrt=names), repeats)
        times += [1e6 * forward / steps, 1e6 * backward / steps]
    return times, scalars


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--output", type=Path, default=HERE / "results", help="folder of the result file")
    options = parser.parse_args()
    repeats = 3 if options.quick else 10
    lines = [
        "| model | dofs | stepper | steps | parameters | forward, us/step | backward, us/step | ratio | nothing kept: forward | backward |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for label, model in (("finger", scene(1)), ("hand", scene(5))):
        cases = [
            ("bdf1", 200, 0),
            ("bdf2", 50, 0),
            ("bdf2", 200, 0),
            ("bdf2", 800, 0),
            ("bdf2", 200, 10),
            ("bdf2", 200, 40),
            ("bdf2", 200, 100),
        ]
        for stepper, steps, count in cases:
            (forward, backward, *without), scalars = measure(model, stepper, steps, count, repeats)
            lines.append(
                f"| {label} | {model.nv} | {stepper} | {steps} | {scalars} | {forward:.1f} | {backward:.1f} | {backward / forward:.2f} "
                f"| {without[0]:.1f} | {without[1]:.1f} |"
            )
            print(lines[-1], flush=True)
    if options.quick:
        return
    text = f"# Implicit steps and their adjoint\n\n{datetime.date.today()}, coulomb {coulomb.__version__}, one core, processor time; best of {repeats}.\n\n"
    (options.output / "implicit.md").write_text(text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
