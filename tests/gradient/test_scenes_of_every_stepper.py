"""Random scenes of every law and stepper (scenes/random_scenes.py): no column of a step's derivative and no derivative of a rollout is wrong
without saying so. `make sweep` does it for thousands and writes random_scenes.md.
"""

import numpy as np
import pytest
from rollout_sides import compare_rollout
from step_columns import compare

from scenes.random_scenes import LAWS, build

FIRST = 400  # seeds beyond those of the sweep


@pytest.mark.parametrize("law", LAWS)
def test_steps(law):
    known = compared = 0
    for seed in range(FIRST, FIRST + 8):
        case = build(seed, law)
        random = np.random.default_rng(seed)
        result = compare(case.model, case.q, case.v, case.u, case.tau, random, memory=case.memory, **case.options)
        if result is None:
            continue
        columns, flagged, _ = result
        wrong = [column for column in columns if column.wrong]
        assert flagged or not wrong, (seed, case.state, wrong)
        compared += not flagged
        known += sum(column.known for column in columns)
    assert compared >= 4 and known > 100


@pytest.mark.parametrize("law", LAWS)
def test_rollouts(law):
    """Scenes until three directions are known, as most trajectories meet a kink within 40 steps."""
    known = 0
    for seed in range(FIRST, FIRST + 40):
        case = build(seed, law)
        random = np.random.default_rng(seed)
        result = compare_rollout(
            case.model, case.q, case.v, case.u, case.tau, random, steps=40, parameters=1, **case.options
        )
        if result is None or result[1]:
            continue
        wrong = [direction for direction in result[0] if direction.wrong]
        assert not wrong, (seed, case.state, wrong)
        known += sum(direction.known for direction in result[0])
        if known >= 3 and seed >= FIRST + 5:
            break
    assert known >= 3


@pytest.mark.parametrize("law", ["split cone", "split boxed"])
@pytest.mark.parametrize("seed", [5460, 5636, 6348])
def test_a_cap_that_leans_by_little_sinks_until_its_impact(seed, law):
    """The threshold of the impact is a depth below where the pair was: that of the cap's deepest place, which none of the four points that stand for it is."""
    case = build(seed, "split boxed")
    options = case.options | LAWS[law]
    random = np.random.default_rng(0)
    result = compare(case.model, case.q, case.v, case.u, case.tau, random, 6, memory=case.memory, **options)
    columns, flagged, sim = result
    wrong = [column for column in columns if column.wrong]
    assert not flagged and not wrong, wrong
    assert sum(column.known for column in columns) >= 24
    assert sum(impact.time > 0 for impact in sim.impacts) >= 3
