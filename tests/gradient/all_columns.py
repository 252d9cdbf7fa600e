"""One step of a scene by all its inputs and parameters: every column against differences, and reverse mode against forward mode."""

import numpy as np

import coulomb


def assert_columns(sim, q, v, u, names):
    """In contact, and of nine columns in ten at least: where differences meet a kink nothing is compared."""
    check = coulomb.check_gradients(sim, q, v, u, wrt=["q", "v", "u", "tau", *names])
    left_out = sorted({name for name, _, _ in check.changed})
    assert check.passed, str(check)
    assert check.contacts and check.compared > 0.9 * check.columns, left_out


def assert_reverse(sim, q, v, u, names):
    """To rounding of the terms of each product."""
    nv = sim.model.nv
    sim.step(q, v, u)
    dq, dv = np.random.default_rng(0).normal(size=(2, nv))
    g = sim.vjp(dq, dv, wrt=names)
    d = sim.derivatives(wrt=names)
    weights = np.r_[dq, dv]
    columns = {"q": d.A[:, :nv], "v": d.A[:, nv:], "tau": d.B_tau, "u": d.B, **{n: d[n] for n in names}}
    for name, matrix in columns.items():
        reverse = g[name] if name in names else getattr(g, name)
        scale = np.abs(weights) @ np.abs(matrix)
        difference = np.abs(reverse - weights @ matrix)
        assert (difference < 1e-9 * scale.max(initial=0) + 1e-11).all(), (name, difference, scale)
