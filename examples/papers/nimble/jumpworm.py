"""Three links under a cube learn to jump: random search finds the take-off, gradients make it high.

Nimble [Werling2021], jump-worm: ±100 N m, 400 steps of 1 ms, loss -100 y_T |y_T| of the cube's height y_T (0 at the start). The paper optimises
by multiple shooting and shows a video.

To stand stretched, at 0.176 m, is a local optimum: any small change of the torques lowers the cube. It is where multiple shooting and single
shooting from zero torques end here. The paper's conclusion, that gradient-free search escapes local optima and gradients refine, is followed:
the best of some hundred random torques (constant for 0.1 s at a time) are starts for L-BFGS on the whole rollout.

    python examples/papers/nimble/jumpworm.py [--quick] [--output FOLDER]
"""

import numpy as np
from nimble_common import arguments, jumpworm, outlines, polish, throw_picture

import coulomb

STEPS, TORQUE, PIECES = 400, 100.0, 4
STRETCHED = 0.75 - 0.575  # m: three links on the floor, upright


def loss(q, v):
    """-100 y |y|, and its gradients by q and v."""
    slope = np.zeros(len(q))
    slope[1] = -200 * abs(q[1])
    return -100 * q[1] * abs(q[1]), slope, 0 * v


def main():
    options = arguments(__doc__, "fewer starts")
    model, *start = jumpworm()
    sim = coulomb.Simulator(model, contact="lcp")
    random = np.random.default_rng(1)

    def height(controls):
        return sim.rollout(*start, controls).q[-1, 1]

    from_zero = height(polish(sim, *start, np.zeros((STEPS, 3)), loss, TORQUE, 80))
    tries, starts = (300, 4) if options.quick else (2000, 12)
    samples = [np.repeat(random.uniform(-TORQUE, TORQUE, (PIECES, 3)), STEPS // PIECES, axis=0) for _ in range(tries)]
    samples.sort(key=height, reverse=True)
    found = [polish(sim, *start, sample, loss, TORQUE, 80) for sample in samples[:starts]]
    heights = np.array([height(controls) for controls in found])
    controls = found[heights.argmax()]
    r = sim.rollout(*start, controls)
    tip = min(point[1] for name, polygon in outlines(model, r.q[-1]) if name != "floor" for point in polygon)
    print(f"from zero torques, L-BFGS: {from_zero:.3f} m (stretched on the floor: {STRETCHED:.3f} m)")
    print(f"best of {tries} random torques: {height(samples[0]):.3f} m")
    print("published: a video")
    print(f"here: L-BFGS from the best {starts}: " + ", ".join(f"{h:.3f}" for h in heights) + " m")
    print(f"the cube ends {heights.max():.3f} m above its start, the lowest corner {tip + 0.575:.3f} m above the floor")
    assert heights.max() > 0.25 and tip > -0.5 and np.abs(controls).max() <= TORQUE * (1 + 1e-9), heights
    throw_picture(
        model, r, controls, options.output / "nimble_jumpworm.png", "Jump-worm", (-0.5, 4.1, -0.95, 0.55), shift=0.6
    )


if __name__ == "__main__":
    main()
