"""A leg that lands softly: spring and damper of its knee, by the gradient of a whole landing."""

import numpy as np
from scipy.optimize import minimize

import coulomb

LEG = """<mujoco><option timestep="1e-3"/><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="trunk" pos="0 0 .8"><joint name="fall" type="slide" axis="0 0 1"/><geom type="box" size=".1 .1 .05" mass="4"/>
<body name="foot" pos="0 0 -.4"><joint name="knee" type="slide" axis="0 0 1" stiffness="400" damping="5"/>
<geom name="sole" type="sphere" size=".04" mass=".3"/></body></body></worldbody></mujoco>"""
MODEL = coulomb.load(LEG)
NAMES = ["joint_stiffness/knee", "joint_damping/knee"]
START = np.array([400.0, 5.0])  # N/m, N s/m
STEPS = 1500


def landing(x):
    """What a landing costs, and its gradient. x: the design, in parts of the start."""
    model = MODEL.with_parameters({name: [value] for name, value in zip(NAMES, START * x)})
    r = coulomb.Simulator(model).rollout(*model.neutral(), steps=STEPS)

    # Comfort: jolts of the trunk. Rest: its speed in the second half. Size: how far the knee gives.
    jolts, rest, knee = np.diff(r.v[:, 0]), r.v[STEPS // 2 :, 0], r.q[:, 1]
    dQ, dV = np.zeros((2, *r.v.shape))
    dV[1:, 0] += 20 * jolts
    dV[:-1, 0] -= 20 * jolts
    dV[STEPS // 2 :, 0] += 0.02 * rest
    dQ[:, 1] = 0.04 * knee
    g = r.vjp(dQ, dV, wrt=NAMES)
    cost = 10 * (jolts**2).sum() + 0.01 * (rest**2).sum() + 0.02 * (knee**2).sum()
    return cost, START * [g[name][0] for name in NAMES]


fit = minimize(landing, [1.0, 1.0], jac=True, bounds=[(0.2, 20)] * 2)
spring, damper = START * fit.x
print(
    f"cost {landing(np.ones(2))[0]:.2f} -> {fit.fun:.2f} in {fit.nit} iterations: {spring:.0f} N/m, {damper:.1f} N s/m"
)
assert fit.fun < 0.5 * landing(np.ones(2))[0] and (0.2 < fit.x).all() and (fit.x < 20).all()
