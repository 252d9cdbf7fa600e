"""A box falls onto the ground, slides and stops: step by step, all at once, and as a picture."""

import numpy as np
from matplotlib import pyplot as plt

import coulomb

scene = coulomb.Scene(timestep=1e-3)
scene.add_ground(friction=0.4)
scene.add_box((0.2, 0.2, 0.1), mass=1.0, position=(0, 0, 0.15), name="box")
sim = coulomb.Simulator(scene.build())

# It starts 10 cm above the ground and flies to the right at 1.5 m/s.
q0, v0 = sim.model.neutral()
v0[0] = 1.5

# Step by step: a state goes in, the next one comes out.
q, v = q0, v0
for _ in range(5):
    q, v = sim.step(q, v)
print("after 5 ms:", q[:3].round(4), sim.status)

# All at once: 800 steps, and what the contact did along them.
r = sim.rollout(q0, v0, steps=800)
assert r.converged and np.abs(r.v[-1]).max() < 1e-8, "it has come to rest"
time = 1e-3 * np.arange(len(r.q))
force = r.output("contact_force/box")[:, 2]
assert abs(force[-1] - 9.81) < 1e-3, "the ground carries its weight"

figure, (places, forces) = plt.subplots(2, sharex=True)
places.plot(time, r.q[:, 0], label="x: flies, slides, stops")
places.plot(time, r.q[:, 2], label="z: falls, lies")
places.set(ylabel="place [m]")
places.legend()
forces.plot(time, force)
forces.set(xlabel="time [s]", ylabel="force of the ground [N]", yscale="symlog")
figure.savefig("02_simulate_and_plot.png")
print(f"it slid {r.q[-1, 0]:.3f} m: see 02_simulate_and_plot.png")
