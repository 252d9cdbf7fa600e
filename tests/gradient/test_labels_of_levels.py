"""Levels of a solution have labels of their own, and the derivative is that of all of them: forward against differences, reverse as forward."""

import numpy as np
import pytest
from step_columns import compare

from scenes.random_scenes import build


def check(law, seed):
    """No column of this random scene is wrong, and reverse mode says the same, by parameters too."""
    case = build(seed, law)
    random = np.random.default_rng(seed)
    columns, flagged, sim = compare(
        case.model, case.q, case.v, case.u, case.tau, random, parameters=8, memory=case.memory, **case.options
    )
    assert not flagged
    assert not [column for column in columns if column.wrong]
    assert sum(column.known for column in columns) > 15

    names = [str(name) for name in random.permutation(list(case.model.parameters()))[:20]]
    sim.step(case.q, case.v, case.u, tau=case.tau)
    d = sim.derivatives(wrt=names)
    w = random.normal(size=2 * case.model.nv)
    g = sim.vjp(*np.split(w, 2), wrt=names)
    forward = np.r_[w @ d.A, w @ d.B, w @ d.B_tau, np.concatenate([np.ravel(w @ d[name]) for name in names])]
    reverse = np.r_[g.q, g.v, g.u, g.tau, np.concatenate([np.ravel(g[name]) for name in names])]
    assert np.max(np.abs(forward - reverse)) <= 1e-7 * (1 + np.max(np.abs(forward)))


@pytest.mark.parametrize(("law", "seed"), [("hexagon", 177), ("octagon", 57)])
def test_a_pyramid_slides_on_a_side_at_one_level_and_at_a_vertex_at_another(law, seed):
    """Redundant corners of stacked boxes, all pressed to slide by different amounts."""
    check(law, seed)
