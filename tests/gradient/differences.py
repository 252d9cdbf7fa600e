"""The Jacobian of a step by finite differences through the public interface, and the states where it means something.

Central differences at h and h / 2, Richardson-extrapolated (error O(h^4)); the simulator's memory is frozen, so every step solves
the same problem from the same start. A state is smooth if no step within +-h changes a contact or its mode, all converge, and the
second difference is that of a smooth function (a kink, seen or unseen in the list of contacts, leaves one of its own size).
"""

import numpy as np

UNRESOLVED = 3e-7  # relative disagreement of two differences beyond which neither is a reference


def signature(sim):
    return [(c.geometry_a, c.geometry_b, c.mode) for c in sim.contacts]


def jacobian(sim, q, v, u, h=3e-6):
    """(analytic, numeric), both (2 nv, 3 nv + nu) over (q, v, tau, u).

    numeric is None where the step is not smooth, or where differences at h and at h / 3 disagree: they then tell nothing.
    """
    analytic, numeric = _jacobian(sim, q, v, u, h)
    if numeric is not None:
        finer = _jacobian(sim, q, v, u, h / 3)[1]
        if finer is None or relative_error(finer, numeric, sim.model.nv) > UNRESOLVED:
            numeric = None
    return analytic, numeric


def _jacobian(sim, q, v, u, h):
    model = sim.model
    sim.reset()
    sim.step(q, v, u)
    sim.freeze_memory(True)
    try:
        q1, v1 = sim.step(q, v, u)
        assert sim.status.converged, sim.status
        base, d = signature(sim), sim.derivatives()
        analytic = np.hstack([d.A, d.B_tau, d.B])
        numeric = np.empty_like(analytic)

        def moved(k, size):
            x = np.zeros(3 * model.nv + model.nu)
            x[k] = size if k < 2 * model.nv else size / sim.timestep  # a force: by its impulse
            dq, dv, tau, du = np.split(x, [model.nv, 2 * model.nv, 3 * model.nv])
            qh, vh = sim.step(model.integrate(q, dq), v + dv, u + du, tau=tau)
            if not sim.status.converged or signature(sim) != base:
                return None
            return np.r_[model.difference(q1, qh), vh - v1]

        for k in range(numeric.shape[1]):
            values = [moved(k, size) for size in (h, -h, h / 2, -h / 2)]
            if any(value is None for value in values):
                return analytic, None
            plus, minus, half_plus, half_minus = values
            step = h if k < 2 * model.nv else h / sim.timestep
            numeric[:, k] = (4 * (half_plus - half_minus) / step - (plus - minus) / (2 * step)) / 3
            bend, half_bend = np.linalg.norm(plus + minus), np.linalg.norm(half_plus + half_minus)
            if (
                bend > 1e-12 * (1 + np.linalg.norm(v1)) / h * 1e-2 and half_bend > 0.4 * bend
            ):  # h^2 makes a quarter, a kink a half
                return analytic, None
        return analytic, numeric
    finally:
        sim.freeze_memory(False)


def relative_error(analytic, numeric, nv):
    """Largest relative Frobenius error of the blocks (dq, dv) x (q, v, tau, u); blocks below what differences resolve count absolutely."""
    edges = [0, nv, 2 * nv, 3 * nv, numeric.shape[1]]
    worst = 0.0
    for rows in (slice(0, nv), slice(nv, 2 * nv)):
        for first, last in zip(edges[:-1], edges[1:]):
            a, n = analytic[rows, first:last], numeric[rows, first:last]
            floor = 1e-4 if first < 2 * nv else 1e-7
            worst = max(worst, np.linalg.norm(a - n) / max(np.linalg.norm(n), floor))
    return worst
