"""What the recorded tosses of examples/applications/tosses say is found again, from a few of them."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy")
FOLDER = Path(__file__).resolve().parents[2] / "examples" / "applications" / "tosses"
sys.path.insert(0, str(FOLDER))
import cube_common  # noqa: E402
import tosses_common  # noqa: E402

PARTS = tosses_common.split(tosses_common.load())
GRAVITY, COM, DEVIATIONS = tosses_common.free_flight(PARTS["train"])


def test_parts_share_no_toss():
    assert [len(PARTS[name]) for name in ("train", "validation", "test")] == [228, 114, 114]
    assert len({toss.index for part in PARTS.values() for toss in part}) == 456


def test_flights_alone_show_gravity_and_the_centre_of_mass():
    assert GRAVITY == pytest.approx(9.60, abs=0.02)
    assert pytest.approx([0, 0, 5.5e-3], abs=1e-3) == COM
    assert COM[2] > 30 * DEVIATIONS[3]


def test_a_made_up_flight_is_found():
    """A body that spins about its centre of mass, 5 mm off the middle: its start is found to rounding."""
    com, omega = np.array([1e-3, 0, 5e-3]), np.array([4.0, -3.0, 6.0])
    t = tosses_common.PERIOD * np.arange(15)[:, None]
    quaternions = tosses_common.product(tosses_common.turned(omega * t), np.array([0.5, 0.5, -0.5, 0.5]))
    centre = np.array([0, 0, 0.3]) + t * [1, 0.5, 0.2] - 0.5 * 9.6 * t**2 * [0, 0, 1]
    R = tosses_common.rotations(quaternions)
    q, v = tosses_common.Flight(np.hstack([centre - R @ com, quaternions]), 9.6, com).state(0)
    assert q == pytest.approx(np.r_[centre[0] - R[0] @ com, quaternions[0]], abs=1e-9)
    assert v == pytest.approx(np.r_[[1, 0.5, 0.2] - np.cross(omega, R[0] @ com), R[0].T @ omega], abs=1e-7)


def test_the_inertia_of_the_cube_by_its_unknowns():
    block = cube_common.CubeInertia(COM)
    x = block.bind(None).start + [0.3, -0.2, 0.1, 0.05]
    J, h = block.jacobian(x)["inertia/cube"], 1e-6
    sides = [[block.values(x + s * h * e)["inertia/cube"] for s in (1, -1)] for e in np.eye(4)]
    assert pytest.approx(np.stack([(a - b) / (2 * h) for a, b in sides], axis=1), abs=1e-10) == J


def test_friction_of_faces_from_slides():
    found = cube_common.sliding_friction(PARTS["train"][:20], GRAVITY, COM)
    assert found.converged
    assert found.values["pair_friction/table:faces"] == pytest.approx(0.22, abs=0.01)


def test_first_impacts_show_the_cube():
    known = {"pair_friction/table:faces": 0.22}
    rigid, lasting = (
        cube_common.identify(kind, PARTS["train"][:30], GRAVITY, COM, known, 12) for kind in ("rounded", "lasting")
    )
    assert pytest.approx([0, 0, 5.7e-3], abs=7e-4) == lasting.model.parameters()["com/cube"].value
    assert lasting.values["friction/table"] == pytest.approx(0.16, abs=0.01)
    assert rigid.values["restitution/table"] == pytest.approx(0.25, abs=0.03)
    assert lasting.cost < 0.95 * rigid.cost
