"""What a finger's gap does to the gradient, exact and from a distance, and what an optimiser makes of it: from_distance.png."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import coulomb

TIMESTEP = 2e-3
LENGTH = 0.05
TARGET = 0.3  # m: where the box is to be after half a second
STEPS = 250
MODEL = coulomb.load("""<mujoco><option gravity="0 0 0"/><worldbody>
  <body name="finger" pos="-.3 0 0"><joint type="slide" axis="1 0 0"/><geom size=".1" mass="1.5"/></body>
  <body name="box"><joint type="slide" axis="1 0 0"/><geom type="box" size=".1 .1 .1" mass=".5"/></body>
</worldbody></mujoco>""")


def simulator(gradient):
    scale = {"gradient_scale": LENGTH} if gradient == "from_distance" else {}
    return coulomb.Simulator(MODEL, timestep=TIMESTEP, gradient=gradient, **scale)


def thrown(sim, speed):
    """Where the box is at the end, and the derivative of that by the finger's speed."""
    q, _ = MODEL.neutral()
    r = sim.rollout(q, np.array([speed, 0.0]), steps=STEPS)
    dQ = np.zeros((STEPS + 1, 2))
    dQ[-1, 1] = 1.0
    return r.q[-1, 1], r.vjp(dQ, np.zeros_like(dQ)).v0[0]


def main():
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    colors = {"exact": "0.2", "from_distance": "#c2571a"}
    for gradient, color in colors.items():
        sim = simulator(gradient)
        speeds = np.linspace(0.02, 1.2, 160)
        slopes = [thrown(sim, speed)[1] for speed in speeds]
        left.plot(speeds, slopes, color=color, label=gradient)

        # Gradient descent on the squared miss, from a throw that falls short.
        speed, places = 0.1, []
        for _ in range(40):
            place, slope = thrown(sim, speed)
            places.append(place)
            speed -= np.clip(0.5 * 2 * (place - TARGET) * slope, -0.2, 0.2)
        right.plot(places, "-o", ms=3, color=color, label=gradient)

    left.set_xlabel("speed of the finger (m/s); it reaches the box from 0.2 on")
    left.set_ylabel("d box / d speed (s)")
    left.legend()
    right.axhline(TARGET, color="0.7", lw=1, ls="--")
    right.set_xlabel("step of gradient descent")
    right.set_ylabel("place of the box (m)")
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
