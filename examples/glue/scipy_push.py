"""A box is pushed to a place through frictional contact: SciPy's SLSQP on one rollout, its end and the derivative of that from Rollout.jacobian.

python examples/glue/scipy_push.py [--quick] [--output FOLDER]
"""

import time

import numpy as np
from push_common import EFFORT, KNOTS, PLACE, SUBSTEPS, arguments, picture, report, scene
from scipy.optimize import minimize

import coulomb

ENDS = [0, 1, 3]  # of (q, v): finger, box, the finger's velocity


def main():
    options = arguments(__doc__, "does nothing here: it takes a second")
    model, q0, v0, guess = scene()
    sim = coulomb.Simulator(model)
    rollouts = {}

    def rollout(u):
        """The last one is kept: SLSQP asks for the end and its derivative at the same forces."""
        if u.tobytes() not in rollouts:
            rollouts.clear()
            rollouts[u.tobytes()] = sim.rollout(q0, v0, u[:, None], substeps=SUBSTEPS)
        return rollouts[u.tobytes()]

    def miss(u):
        r = rollout(u)
        return np.concatenate([r.q[-1], r.v[-1]])[ENDS] - [0, PLACE, 0]

    def slope_of_miss(u):
        return rollout(u).jacobian(wrt=["u"], all_states=False)["u"][ENDS]

    def effort(u):
        return 0.5 * EFFORT * u @ u, EFFORT * u

    end = {"type": "eq", "fun": miss, "jac": slope_of_miss}
    began = time.perf_counter()
    found = minimize(
        effort, guess[:, 0], jac=True, method="SLSQP", constraints=[end], bounds=[(-15, 15)] * KNOTS,
        options={"maxiter": 200, "ftol": 1e-10},
    )  # fmt: skip
    seconds = time.perf_counter() - began

    assert found.success, found.message
    forces = found.x[:, None]
    _, r = report("SLSQP", model, forces, seconds, found.nit)
    picture(model, forces, r, options.output / "scipy_push.png", "A push, and friction stops the box at 0.5 m: SLSQP")


if __name__ == "__main__":
    main()
