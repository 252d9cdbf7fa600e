"""A pole on a cart comes to rest upright: multiple shooting, the Jacobian of every shot from one sweep through its steps.

Nimble [Werling2021], cartpole: start (1 m, 1 rad), force ±10 N, 500 steps of 10 ms in shots of 50, loss |q_T|^2 + |v_T|^2, IPOPT with a
limited-memory Hessian. The paper shows wall-clock time only (figure 7).

    python examples/papers/nimble/cartpole.py [--quick] [--output FOLDER]
"""

import numpy as np
from nimble_common import arguments, cartpole, shooting, swing_picture

import coulomb

STEPS, SHOT, FORCE = 500, 50, 10.0


def main():
    import casadi

    options = arguments(__doc__, "does nothing here: it takes a second")
    model = cartpole(force=FORCE)
    sim = coulomb.Simulator(model)
    start = np.array([1.0, 1.0]), np.zeros(2)
    controls, statistics = shooting(sim, *start, STEPS, SHOT, casadi.sumsqr, FORCE)
    r = sim.rollout(*start, controls)
    loss = np.sum(r.q[-1] ** 2) + np.sum(r.v[-1] ** 2)
    print("published: wall-clock time in a plot, no loss")
    print(
        f"here: {statistics['iter_count']} iterations, {statistics['seconds']:.2f} s; one rollout with the controls found: "
        f"loss {loss:.0e}, largest force {np.abs(controls).max():.1f} N"
    )
    assert statistics["success"] and loss < 1e-8 and np.abs(controls).max() <= FORCE * (1 + 1e-6), (statistics, loss)
    cuts = np.arange(SHOT, STEPS, SHOT)
    swing_picture(model, r, controls, cuts, options.output / "nimble_cartpole.png", "From 1 m, 1 rad to rest upright")


if __name__ == "__main__":
    main()
