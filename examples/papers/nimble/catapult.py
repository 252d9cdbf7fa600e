"""An arm of three links throws a cube so that it is at the target when half a second is over: gradients through the contacts of the throw.

Nimble [Werling2021], catapult: start (0, 0.1) m, target (2.2, 2.2) m, ±1000 N m, 500 steps of 1 ms, LCP contact. The paper optimises by
multiple shooting and shows a video and wall-clock time (figure 7).

With zero torques the cube rolls off the arm and gradients know nothing of throws. So starts are drawn at random (torques constant for
0.1 s), the best first, and Gauss-Newton of least norm brings the cube to the target: two numbers to zero by 1500 torques. The time at which
the cube leaves the arm moves in steps of 1 ms, so its place has kinks; a start that stalls at one is left for the next. (Multiple shooting,
as in cartpole.py, also gets there from zero torques, or stops 0.1 to 0.3 m away: which of them depends on rounding.)

    python examples/papers/nimble/catapult.py [--quick] [--output FOLDER]
"""

import numpy as np
from nimble_common import arguments, catapult, throw_picture

import coulomb

STEPS, TORQUE, PIECES = 500, 1000.0, 5
TARGET = np.array([2.2, 2.2])


def jacobian(r):
    """Of the cube's final place by all torques, (2, steps * 3): two reverse sweeps."""
    rows = []
    for row in range(2):
        dQ = np.zeros((STEPS + 1, 5))
        dQ[-1, row] = 1
        rows.append(r.vjp(dQ, 0 * dQ).u.ravel())
    return np.array(rows)


def land(sim, start, controls, good):
    """Gauss-Newton of least norm with halved steps, within the bounds; torques, rollout, and the distance after every iteration."""
    r = sim.rollout(*start, controls)
    distances = [np.linalg.norm(r.q[-1, :2] - TARGET)]
    while distances[-1] > good and len(distances) < 40:
        miss, J = r.q[-1, :2] - TARGET, jacobian(r)
        push = (J.T @ miss).reshape(controls.shape)
        stuck = ((controls >= TORQUE) & (push < 0)) | ((controls <= -TORQUE) & (push > 0))
        J[:, stuck.ravel()] = 0
        move = -(J.T @ np.linalg.lstsq(J @ J.T, miss, rcond=1e-12)[0]).reshape(controls.shape)
        for length in 0.5 ** np.arange(12):
            trial = np.clip(controls + length * move, -TORQUE, TORQUE)
            ahead = sim.rollout(*start, trial)
            distance = np.linalg.norm(ahead.q[-1, :2] - TARGET)
            if distance < distances[-1] * (1 - 1e-3 * length):
                break
        else:
            break  # a kink
        controls, r = trial, ahead
        distances.append(distance)
    return controls, r, distances


def main():
    options = arguments(__doc__, "fewer random starts")
    model, *start = catapult()
    sim = coulomb.Simulator(model, contact="lcp")
    random = np.random.default_rng(1)
    tries, good = 300 if options.quick else 2000, 1e-9

    def distance(controls):
        return np.linalg.norm(sim.rollout(*start, controls).q[-1, :2] - TARGET)

    samples = [np.repeat(random.uniform(-TORQUE, TORQUE, (PIECES, 3)), STEPS // PIECES, axis=0) for _ in range(tries)]
    samples.sort(key=distance)
    print(
        f"zero torques: {distance(0 * samples[0]):.3f} m from the target; best of {tries} at random: {distance(samples[0]):.3f} m"
    )
    for number, sample in enumerate(samples[:40]):
        controls, r, distances = land(sim, start, sample, good)
        print(f"start {number + 1}: " + ", ".join(f"{d:.1e}" for d in distances) + " m")
        if distances[-1] < good:
            break
    print("published: a video, and wall-clock time in a plot")
    print(f"here: the cube is {distances[-1]:.0e} m from the target")
    assert distances[-1] < good and np.abs(controls).max() <= TORQUE, distances
    path = options.output / "nimble_catapult.png"
    throw_picture(model, r, controls, path, "Catapult", (-0.7, 2.6, -0.9, 2.5), TARGET)


if __name__ == "__main__":
    main()
