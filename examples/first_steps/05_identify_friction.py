"""How slippery is the floor? A friction coefficient from noisy positions of a sliding box: least squares with an exact Jacobian."""

import numpy as np
from scipy.optimize import least_squares

import coulomb

STEPS, TRUTH, NOISE = 300, 0.3, 1e-3  # noise in metres


def simulator(friction):
    scene = coulomb.Scene(timestep=2e-3)
    scene.add_ground(friction=friction)
    scene.add_box((0.2, 0.2, 0.1), mass=1.0, position=(0, 0, 0.0499), name="box")
    return coulomb.Simulator(scene.build())


def slide(friction):
    sim = simulator(friction)
    q, v = sim.model.neutral()
    v[0] = 1.5
    return sim.rollout(q, v, steps=STEPS)


# What was measured: the place of the box at every step, a millimetre off.
measured = slide(TRUTH).q[:, 0] + np.random.default_rng(0).normal(scale=NOISE, size=STEPS + 1)


def errors(x):
    return slide(x[0]).q[:, 0] - measured


def jacobian(x):
    by_friction = slide(x[0]).jacobian(["friction/ground"])["friction/ground"]  # (T + 1, 2 nv, 1)
    return by_friction[:, 0]


fit = least_squares(errors, x0=[0.6], jac=jacobian, bounds=(0.01, 2.0))
print(f"friction {fit.x[0]:.5f}, in truth {TRUTH}, after {fit.nfev} simulations")
assert abs(fit.x[0] - TRUTH) < 1e-3
