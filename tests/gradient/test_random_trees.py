"""Random trees with dry friction, limits, equalities, springs and contacts (scenes/random_trees.py): every column of a step's derivative
against one-sided differences, and the derivative of short rollouts. No column is wrong without `ambiguous`. `make sweep` does it for many
more scenes and writes random_trees.md.
"""

import numpy as np
import pytest
from rollout_sides import compare_rollout
from step_columns import compare

import coulomb
from scenes.random_trees import build

LAWS = {
    "cone": dict(contact="ncp"),
    "boxed": dict(contact="lcp"),
    "hexagon": dict(contact="lcp", friction_directions=3, friction_polygon="inscribed"),
}


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
        result = compare_rollout(*build(seed)[:5], np.random.default_rng(seed), steps=12)
        if result is None or result[1]:
            continue
        wrong = [direction for direction in result[0] if direction.wrong]
        assert not wrong, (seed, wrong)
        compared += all(direction.known for direction in result[0])
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
