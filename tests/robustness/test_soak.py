"""The short form of `make soak` (tools/soak.py): robots, heaps and conveyors for some seconds, each with statuses, overlaps and memory that do not drift."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import soak  # noqa: E402

# Steps over all environments; the largest share of control steps by status that is not "solved"; m, the deepest overlap. Statuses are those of the long run with
# room for a few steps; depths twice those that short runs have (legs that strike, bodies thrown at each other), of the conveyor its penetration tolerance.
SHORT = {
    "go1": (320_000, {}, 2e-4),
    "heap": (44_800, {"failed": 1e-3}, 2e-2),
    "conveyor": (32_000, {"impact_limit": 1e-2, "inelastic": 2e-3}, 1e-5),
}
CONVEYOR_GROWTH = (
    150.0  # MB: workspaces keep the size of the step that was split most often, 64 times at most (soak.md)
)


@pytest.mark.parametrize("name", SHORT)
def test_nothing_drifts(name):
    steps, allowed, deepest = SHORT[name]
    rows, statuses, done, _ = soak.soak(name, steps)
    assert done == steps and len(rows) == soak.PIECES

    # Every control step ended with a status that the scene may have.
    total = sum(statuses.values())
    others = {reason: count / total for reason, count in statuses.items() if reason != "solved"}
    assert total == steps // soak.SUBSTEPS
    assert all(share <= allowed.get(reason, 0) for reason, share in others.items()), others

    # Overlaps as deep as ever, memory as much; of the conveyor bounded.
    assert max(row["depth"] for row in rows) <= deepest
    quarter = soak.PIECES // 4
    if name == "conveyor":
        assert rows[-1]["memory"] - rows[0]["memory"] < CONVEYOR_GROWTH
    else:
        assert rows[-1]["memory"] <= soak.MEMORY * rows[-quarter - 1]["memory"]
