"""A box is pushed to a place through frictional contact: direct multiple shooting with CasADi's Opti and IPOPT.

All 40 shooting nodes are one function, coulomb.glue.casadi.Steps, stepped and differentiated in C++ at once; its Jacobian is block diagonal. The
Hessian is that of the cost alone.

    python examples/glue/casadi_push.py [--quick] [--output FOLDER]
"""

import time

import casadi
import numpy as np
from push_common import EFFORT, KNOTS, PLACE, SUBSTEPS, arguments, picture, report, rolled, scene

from coulomb.glue.casadi import Steps, gauss_newton


def main():
    options = arguments(__doc__, "does nothing here: it takes a second")
    model, q0, v0, guess = scene()
    steps = Steps(model, KNOTS, SUBSTEPS)

    opti = casadi.Opti()
    X, U = opti.variable(steps.nx, KNOTS + 1), opti.variable(steps.nu, KNOTS)
    opti.minimize(0.5 * EFFORT * casadi.sumsqr(U))
    opti.subject_to(X[:, 0] == np.concatenate([q0, v0]))
    opti.subject_to(X[:, 1:] == steps(X[:, :-1], U))
    opti.subject_to(opti.bounded(steps.limits[0], U, steps.limits[1]))
    opti.subject_to(X[[0, 1, 3], -1] == np.array([0, PLACE, 0]))  # finger, box, the finger's velocity

    first = rolled(model, q0, v0, guess)
    opti.set_initial(X, steps.columns(first.q, first.v))
    opti.set_initial(U, guess.T)
    opti.solver("ipopt", {"print_time": False, **gauss_newton(opti)}, {"print_level": 0, "sb": "yes", "tol": 1e-6})
    began = time.perf_counter()
    found = opti.solve()
    seconds = time.perf_counter() - began

    forces = found.value(U)[:, None]
    _, r = report("IPOPT", model, forces, seconds, found.stats()["iter_count"])
    print(f"all nodes stepped {steps.evaluations} times, differentiated {steps.linearizations} times")
    assert np.abs(found.value(X).T - np.hstack([r.q, r.v])).max() < 1e-6, "the nodes are one trajectory"
    picture(model, forces, r, options.output / "casadi_push.png", "A push, and friction stops the box at 0.5 m: IPOPT")


if __name__ == "__main__":
    main()
