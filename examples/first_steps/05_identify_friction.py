"""How slippery is the floor? A friction coefficient from noisy positions of a sliding box: least squares with an exact Jacobian."""

import numpy as np

import coulomb
from coulomb.identify import Unknown, Window, fit

STEPS, TRUTH, NOISE = 300, 0.3, 1e-3  # noise in metres


scene = coulomb.Scene(timestep=2e-3)
scene.add_ground(friction=TRUTH)
scene.add_box((0.2, 0.2, 0.1), mass=1.0, position=(0, 0, 0.0499), name="box")
model = scene.build()
q, v = model.neutral()
v[0] = 1.5

# What was measured: the place of the box at every step, a millimetre off.
r = coulomb.Simulator(model).rollout(q, v, steps=STEPS)
measured = r.output("position/box") + np.random.default_rng(0).normal(scale=NOISE, size=(STEPS + 1, 3))
window = Window(outputs={"position/box": measured}, output_deviation={"position/box": NOISE}, start=(q, v))

# What is looked for, from a guess that is twice too large.
friction = Unknown("friction/ground", start=0.6, lower=0.01, upper=2.0)
found = fit(model, window, friction, initial_states=False)
print(found)
value, error = found.values["friction/ground"][0], found.errors["friction/ground"]
print(f"friction {value:.5f} +- {error:.5f}, in truth {TRUTH}, after {found.evaluations} simulations")
assert abs(value - TRUTH) < 1e-3 and abs(value - TRUTH) < 4 * error
