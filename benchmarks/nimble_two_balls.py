"""Two equal elastic balls in line (nimblephysics issue 97): radius 0.1 m, x = 0 and 0.52 m, speeds 1 and 0 m/s, T = 1 s, no gravity.

The struck ball ends at x1 + 2 r + v1 T whatever x2 is: the gradient of its place by (x1, x2, v1, v2) is (1, 0, 1, 0).

    python benchmarks/nimble_two_balls.py
"""

from __future__ import annotations

import nimble_peer
import numpy as np

import coulomb
from coulomb.mjcf import compile_mjcf

BALL = '<body pos="{x} 0 0"><joint type="slide" axis="1 0 0"/><geom type="sphere" size=".1" mass="1" friction="0 0 0"/></body>'
BALLS = BALL.format(x=0) + BALL.format(x=0.52)


def nimble_gradient(timestep):
    """The product of Nimble's Jacobians over the steps."""
    text = f'<mujoco><option timestep="{timestep}" gravity="0 0 0"/><worldbody>{BALLS}</worldbody></mujoco>'
    peer = nimble_peer.Peer(nimble_peer.common_model(compile_mjcf(text)), restitution=1.0)
    peer.place(np.zeros(2), np.array([1.0, 0.0]))
    J = np.eye(4)
    for _ in range(round(1 / timestep)):
        by_q_q, by_v_q, by_q_v, by_v_v, _ = peer.jacobians()
        J = np.block([[by_q_q, by_v_q], [by_q_v, by_v_v]]) @ J
    return J[1]


def coulomb_gradient(timestep):
    """From one backward sweep through a rollout whose steps are split at the impact."""
    scene = coulomb.Scene(gravity=(0, 0, 0))
    for name, x in (("one", 0.0), ("two", 0.52)):
        scene.add_sphere(0.1, mass=1.0, position=(x, 0, 0), restitution=1.0, friction=0, name=name)
    model = scene.build()
    sim = coulomb.Simulator(model, timestep, contact="lcp", continuous_collision=True)
    steps = round(1 / timestep)
    r = sim.rollout(model.neutral()[0], np.r_[1.0, np.zeros(11)], np.zeros((steps, model.nu)))
    dQ, dV = np.zeros((2, steps + 1, 12))
    dQ[-1, 6] = 1
    g = r.vjp(dQ, dV)
    return np.array([g.q0[0], g.q0[6], g.v0[0], g.v0[6]])


def lines(timesteps=(1e-2, 1e-3)):
    """What `nimble_race.py` prints."""
    text = [
        "Two elastic balls in line (nimblephysics issue 97): gradient of the struck ball's place by (x1, x2, v1, v2), exactly (1, 0, 1, 0):"
    ]
    for h in timesteps:
        row = "; ".join(
            f"{name} ({', '.join(f'{x:.4g}' for x in np.round(gradient(h), 9) + 0.0)})"
            for name, gradient in (("Coulomb", coulomb_gradient), ("Nimble", nimble_gradient))
        )
        text.append(f"- steps of {1e3 * h:g} ms: {row}")
    return text


if __name__ == "__main__":
    print(*lines() if nimble_peer.nimble else [f"left out: {nimble_peer.INSTALL}"], sep="\n")
