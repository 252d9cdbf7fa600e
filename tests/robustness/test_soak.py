"""The short form of `make soak` (tools/soak.py): robots, heaps and conveyors for some seconds, each with statuses, overlaps and memory that do not drift."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import soak  # noqa: E402

# Steps over all environments; the largest share of control steps by status that is not "solved"; m, how deep overlaps are in a share of the pieces.
# Statuses are those of the long run with room for a few steps. Depths are twice what nine pieces of ten had with eight seeds, with any processor's
# rounding: the deepest of a run is that of one throw, and another one after every change (go1 .06 to 1.4 mm, heap 6 to 22 mm). Of the conveyor
# it is the penetration tolerance, always.
SHORT = {
    "go1": (320_000, {"force_bounds": 1e-4}, 1.5e-4, 0.9),
    "heap": (44_800, {"failed": 1e-3}, 1e-2, 0.9),
    "conveyor": (32_000, {"impact_limit": 1e-2, "inelastic": 2e-3}, 1e-5, 1.0),
}
CONVEYOR_GROWTH = (
    150.0  # MB: workspaces keep the size of the step that was split most often, 64 times at most (soak.md)
)


@pytest.mark.parametrize("name", SHORT)
def test_nothing_drifts(name):
    steps, allowed, deepest, share = SHORT[name]
    rows, statuses, done, _ = soak.soak(name, steps)
    assert done == steps and len(rows) == soak.PIECES

    # Every control step ended with a status that the scene may have.
    total = sum(statuses.values())
    others = {reason: count / total for reason, count in statuses.items() if reason != "solved"}
    assert total == steps // soak.SUBSTEPS
    assert all(count <= allowed.get(reason, 0) for reason, count in others.items()), others

    # Overlaps as deep as ever, memory as much; of the conveyor bounded.
    depths = sorted(row["depth"] for row in rows)
    assert depths[int(share * len(rows)) - 1] <= deepest
    quarter = soak.PIECES // 4
    if name == "conveyor":
        assert rows[-1]["memory"] - rows[0]["memory"] < CONVEYOR_GROWTH
    else:
        assert rows[-1]["memory"] <= soak.MEMORY * rows[-quarter - 1]["memory"]
