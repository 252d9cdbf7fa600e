"""Sixty-four throws at once, on threads; then the same in PyTorch, where the gradient of all of them is one backward()."""

import numpy as np
import torch

import coulomb
import coulomb.torch

scene = coulomb.Scene(timestep=5e-3)
scene.add_ground(friction=0.5)
scene.add_box((0.1, 0.1, 0.1), mass=1.0, position=(0, 0, 0.3), name="box")
model = scene.build()

# A batch: every environment has its own state, and here its own friction.
N, STEPS = 64, 160
q, v = model.neutral()
V = np.tile(v, (N, 1))
V[:, 0] = 2.0
frictions = np.linspace(0.2, 1.0, N)[:, None]
batch = coulomb.BatchSimulator(model, N, parameters={"friction/ground": frictions})
r = batch.rollout(np.tile(q, (N, 1)), V, steps=STEPS)
print(f"slippery: {r.q[0, -1, 0]:.2f} m, rough: {r.q[-1, -1, 0]:.2f} m, in {batch}")
assert r.converged.all() and r.q[0, -1, 0] > r.q[-1, -1, 0]

# PyTorch: leading axes are the batch. Which speeds end on targets from 0.6 m to 1.2 m?
sim = coulomb.Simulator(model)
targets = torch.linspace(0.6, 1.2, 8, dtype=torch.float64)
speed = torch.full((8,), 2.0, dtype=torch.float64, requires_grad=True)
optimizer = torch.optim.Adam([speed], lr=0.05)
for _ in range(60):
    start = torch.nn.functional.pad(speed[:, None], (0, 5))  # v0 = (speed, 0, 0, 0, 0, 0)
    Q, _ = coulomb.torch.rollout(sim, q, start, steps=STEPS)
    loss = ((Q[:, -1, 0] - targets) ** 2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("speeds", speed.detach().numpy().round(2), "m/s; worst miss", f"{(Q[:, -1, 0] - targets).abs().max():.4f} m")
assert loss < 1e-2
