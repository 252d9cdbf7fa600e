"""Two poles on a cart, one on top of the other, swing up from hanging: multiple shooting.

Nimble [Werling2021], double pendulum cartpole: only in a plot of wall-clock times (figure 7), no numbers. Ours: the poles of the cartpole
example, force ±60 N, 3 s, least effort, and the upright state at rest as a constraint of IPOPT. The motion is unstable: gaps of 1e-6
between the shots would be 1e-3 at its end, so they are closed to 1e-9, and one rollout with the controls found has to stand.

    python examples/papers/nimble/double_pendulum.py [--quick] [--output FOLDER]
"""

import numpy as np
from nimble_common import arguments, cartpole, shooting, swing_picture

import coulomb

STEPS, SHOT, FORCE = 300, 30, 60.0


def main():
    options = arguments(__doc__, "does nothing here: it takes two seconds")
    model = cartpole(poles=2, force=FORCE)
    sim = coulomb.Simulator(model)
    start = np.array([0.0, np.pi, 0.0]), np.zeros(3)
    guess = 0.1 * FORCE * np.sin(3 * model.timestep * np.arange(STEPS))[:, None]
    controls, statistics = shooting(
        sim, *start, STEPS, SHOT, lambda x: 0, FORCE, at_end=lambda x: x, guess=guess, effort=1.0, tolerance=1e-5
    )
    r = sim.rollout(*start, controls)
    error = np.abs(np.r_[r.q[-1], r.v[-1]]).max()
    effort = np.sqrt(np.mean(controls**2))
    print("published: wall-clock time in a plot, no loss")
    print(
        f"here: {statistics['iter_count']} iterations, {statistics['seconds']:.2f} s; one rollout with the controls found ends "
        f"{error:.0e} m, rad, m/s, rad/s from upright and at rest; force {effort:.1f} N rms, at most {np.abs(controls).max():.1f} N"
    )
    assert error < 1e-4 and np.abs(controls).max() <= FORCE * (1 + 1e-6), (statistics, error)
    cuts = np.arange(SHOT, STEPS, SHOT)
    path = options.output / "nimble_double_pendulum.png"
    swing_picture(model, r, controls, cuts, path, "From hanging to upright, at rest, in 3 s")


if __name__ == "__main__":
    main()
