"""A box is thrown at a wall: with steps that are split at impacts it bounces where it touches, whatever the time step."""

import numpy as np

import coulomb


def throw(timestep, split):
    """Where the box is after 0.6 s, and its impacts."""
    scene = coulomb.Scene(timestep=timestep)
    scene.add_ground(friction=0.3, restitution=0.5)
    scene.add_box((0.02, 2, 4), fixed=True, position=(1, 0, 1), name="wall")
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.8), restitution=0.6, name="box")
    sim = coulomb.Simulator(scene.build(), continuous_collision=split)
    q, v = sim.model.neutral()
    v[:3] = 6, 0, 1
    impacts = []
    for k in range(round(0.6 / timestep)):
        q, v = sim.step(q, v)
        impacts += [(k * timestep + i.time, {i.geometry_a, i.geometry_b}) for i in sim.impacts]
    return q, impacts


# It flies 0.89 m to the wall at 6 m/s, however long a step is.
for timestep in (1e-3, 1e-2, 3e-2):
    q, impacts = throw(timestep, split=True)
    time, what = impacts[0]
    print(f"steps of {1e3 * timestep:4.0f} ms: {what} at {time:.6f} s, ends at {q[:3].round(4)}")
    assert what == {"wall", "box"} and np.isclose(time, 0.89 / 6, atol=1e-6)

# A plain step sees the wall only where steps begin and end.
fine, coarse = (throw(timestep, split=False)[0] for timestep in (1e-3, 3e-2))
print("plain steps of 1 and 30 ms end", np.linalg.norm(fine[:3] - coarse[:3]).round(3), "m apart")
fine, coarse = (throw(timestep, split=True)[0] for timestep in (1e-3, 3e-2))
print("split steps of 1 and 30 ms end", np.linalg.norm(fine[:3] - coarse[:3]).round(3), "m apart")
