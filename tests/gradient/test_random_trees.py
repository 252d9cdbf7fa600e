"""Random trees with dry friction, limits, equalities, springs and contacts (scenes/random_trees.py): every column of a step's derivative
against one-sided differences, and the derivative of short rollouts. No column is wrong without `ambiguous`. `make sweep` does it for many
more scenes and writes random_trees.md.
"""

import numpy as np
import pytest
from one_sided import one_sided
from step_columns import NOISE, WRONG, compare

import coulomb
from scenes.random_trees import build

LAWS = {
    "cone": dict(contact="ncp"),
    "boxed": dict(contact="lcp"),
    "hexagon": dict(contact="lcp", friction_directions=3, friction_polygon="inscribed"),
}


def compare_rollout(seed, steps=12, **options):
    """(derivative, one-sided differences and their errors) of a random function of the end by a random direction of (q, v); None where a step
    was not solved as posed or is ambiguous."""
    random = np.random.default_rng(seed)
    model, q, v, u, tau, _ = build(seed)
    U, T = np.tile(u, (steps, 1)), np.tile(tau, (steps, 1))

    def run(q, v):
        return coulomb.Simulator(model, **options).rollout(q, v, U, tau=T)

    rollout = run(q, v)
    if not rollout.converged:
        return None
    w = random.normal(size=(2, model.nv))
    weights = np.zeros((2, steps + 1, model.nv))
    weights[:, -1] = w
    gradient = rollout.vjp(*weights)
    if gradient.ambiguous:
        return None
    dq, dv = random.normal(size=(2, model.nv))

    def f(h):
        moved = run(model.integrate(q, h * dq), v + h * dv)
        if not moved.converged:
            return None
        return np.array([w[0] @ model.difference(rollout.q[-1], moved.q[-1]) + w[1] @ (moved.v[-1] - rollout.v[-1])])

    expected = gradient.q0 @ dq + gradient.v0 @ dv
    scale = max(1.0, np.linalg.norm(np.r_[gradient.q0, gradient.v0]))
    speed = 1 + np.max(np.abs(rollout.v[-1]), initial=0)
    sides = [one_sided(f, sign, 10 * NOISE * speed, 0.2 * WRONG * scale) for sign in (1, -1)]
    return expected, scale, sides


@pytest.mark.parametrize("law", LAWS)
def test_no_column_of_a_step_is_wrong_unflagged(law):
    known = flagged = scenes = 0
    for seed in range(75):
        random = np.random.default_rng(seed)
        compared = compare(*build(seed)[:5], random, **LAWS[law])
        if compared is None:
            continue
        columns, ambiguous, _ = compared
        wrong = [column for column in columns if column.wrong]
        assert ambiguous or not wrong, (seed, wrong)
        scenes += 1
        flagged += ambiguous
        known += sum(column.known for column in columns)
    assert scenes > 50 and known > 1000
    assert flagged > 5 and scenes - flagged > 20


def test_rollouts():
    compared = 0
    for seed in range(40):
        result = compare_rollout(seed)
        if result is None:
            continue
        expected, scale, sides = result
        if not all(error <= WRONG * scale for _, error in sides):
            continue
        assert min(abs(side[0] - expected) - error for side, error in sides) <= WRONG * scale, (seed, expected, sides)
        compared += 1
    assert compared > 10


@pytest.mark.parametrize("law", LAWS)
def test_forward_and_reverse_mode_are_adjoint(law):
    """Rows that yield and levels of their own included; parameters too."""
    for seed in range(40):
        random = np.random.default_rng(seed)
        model, q, v, u, tau, _ = build(seed)
        sim = coulomb.Simulator(model, **LAWS[law])
        sim.step(q, v, u, tau=tau)
        names = [name for name in model.parameters() if not name.startswith("timestep")]
        names = [names[i] for i in random.permutation(len(names))[:6]]
        d = sim.derivatives(wrt=names)
        w = random.normal(size=2 * model.nv)
        g = sim.vjp(*np.split(w, 2), wrt=names)
        forward = np.r_[w @ d.A, w @ d.B, w @ d.B_tau, np.concatenate([np.ravel(w @ d[name]) for name in names])]
        reverse = np.r_[g.q, g.v, g.u, g.tau, np.concatenate([np.ravel(g[name]) for name in names])]
        assert g.ambiguous == d.ambiguous
        assert np.max(np.abs(forward - reverse)) <= 1e-8 * (1 + np.max(np.abs(forward))), seed
