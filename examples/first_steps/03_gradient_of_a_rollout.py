"""How does where a box comes to rest depend on how it was pushed? The gradient of a whole trajectory, by one sweep backward."""

import numpy as np

import coulomb

scene = coulomb.Scene(timestep=1e-3)
scene.add_ground(friction=0.4)
scene.add_box((0.2, 0.2, 0.1), mass=1.0, position=(0, 0, 0.0499), name="box")
model = scene.build()
sim = coulomb.Simulator(model)
q0, v0 = model.neutral()

# A push of 20 N along x for 0.1 s, then the box slides on and stops.
tau = np.zeros((700, model.nv))
tau[:100, 0] = 20.0
r = sim.rollout(q0, v0, tau=tau)
print(f"it comes to rest at x = {r.q[-1, 0]:.4f} m")

# The cost is x at the end: its derivative by the states is a 1 in the last row, all else zero.
dQ = np.zeros((701, model.nv))
dQ[-1, 0] = 1.0
g = r.vjp(dQ, wrt=["mass/box", "friction/ground"])
print(f"more push: {g.tau[:100, 0].sum():+.4f} m per N")
print(f"more mass: {g['mass/box'][0]:+.4f} m per kg")
print(f"more friction: {g['friction/ground'][0]:+.4f} m per unit")
assert np.abs(g.tau[-100:, 0]).max() < 1e-6, "a box at rest sticks: pushing it a little moves nothing"

# Differences of two rollouts say the same.
change = 1e-5
heavier = coulomb.Simulator(model.with_parameters({"mass/box": [1 + change]}))
lighter = coulomb.Simulator(model.with_parameters({"mass/box": [1 - change]}))
ends = [s.rollout(q0, v0, tau=tau).q[-1, 0] for s in (heavier, lighter)]
difference = (ends[0] - ends[1]) / (2 * change)
print(f"by differences: {difference:+.4f} m per kg")
assert abs(difference - g["mass/box"][0]) < 1e-5
