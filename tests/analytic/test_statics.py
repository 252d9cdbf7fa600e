"""What stands and what falls: stacks, mass ratios, tipping, a ladder, a spinning box, a masonry arch."""

import math

import numpy as np
import pytest

import coulomb
from scenes.arch import voussoir_arch
from scenes.basics import GRAVITY, Slope, force, simulate


def tilt(q):
    """Angle (rad) between a free body's z axis and the vertical; q: its seven coordinates."""
    return math.acos(min(1.0, 1 - 2 * (q[4] ** 2 + q[5] ** 2)))


def stack(masses, side=0.2, friction=0.5):
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY))
    scene.add_ground(friction=friction)
    for i, mass in enumerate(masses):
        scene.add_box(
            (side, side, side), mass=mass, position=(0, 0, side * (i + 0.5)), friction=friction, name=f"box{i}"
        )
    return scene.build()


def test_a_stack_of_ten_boxes_stands_for_ten_seconds():
    model = stack([1.0] * 10)
    sim, trajectory = simulate(model, 10.0)
    assert np.abs(trajectory.q[-1] - trajectory.q[0]).max() < 1e-6
    assert force(sim, on="box0", by="world")[2] == pytest.approx(98.1, rel=1e-6)
    for i in range(1, 10):
        assert force(sim, on=f"box{i}", by=f"box{i - 1}")[2] == pytest.approx(GRAVITY * (10 - i), rel=1e-6)


@pytest.mark.parametrize(("upper", "lower"), [(1000.0, 1.0), (300.0, 0.1)])
def test_a_heavy_box_rests_on_a_light_one(upper, lower):
    sim, trajectory = simulate(stack([lower, upper]), 1.0)
    assert force(sim, on="box1", by="box0")[2] == pytest.approx(GRAVITY * upper, rel=1e-5)
    assert force(sim, on="box0", by="world")[2] == pytest.approx(GRAVITY * (upper + lower), rel=1e-5)
    assert np.abs(trajectory.q[-1] - trajectory.q[0]).max() < 1e-5


@pytest.mark.parametrize(("width", "height", "degrees", "falls"), [
    (0.2, 0.6, 18.2, False), (0.2, 0.6, 18.7, True),  # atan(w / h) = 18.4349
    (0.3, 0.6, 26.3, False), (0.3, 0.6, 26.9, True),  # 26.5651
])  # fmt: skip
def test_a_box_tips_at_its_diagonal(width, height, degrees, falls):
    slope = Slope(degrees)
    scene = slope.scene(1.0)
    scene.add_box((width, width, height), mass=1.0, position=height / 2 * slope.normal, quaternion=slope.quaternion)
    _, trajectory = simulate(scene.build(), 1.5)
    turned = abs(tilt(trajectory.q[-1]) - slope.angle)
    assert (turned > 0.05) if falls else (turned < 1e-6)


@pytest.mark.parametrize(("degrees", "friction", "slides"), [
    (60, 0.30, False), (60, 0.28, True),  # 1 / (2 tan 60) = .288675
    (50, 0.44, False), (50, 0.40, True),  # .419550
])  # fmt: skip
def test_a_ladder_at_a_smooth_wall(degrees, friction, slides):
    half, radius, angle = 1.0, 1e-3, math.radians(degrees)
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY))
    scene.add_ground(friction=friction)
    scene.add_ground(friction=0, normal=(-1, 0, 0), height=0, name="wall")
    turn = math.pi / 2 - angle
    scene.add_capsule(
        radius, 2 * half, mass=1.0, position=(-half * math.cos(angle) - radius, 0, half * math.sin(angle) + radius),
        quaternion=(math.cos(turn / 2), 0, math.sin(turn / 2), 0), name="ladder",
    )  # fmt: skip
    _, trajectory = simulate(scene.build(), 1.0)
    turned = abs(tilt(trajectory.q[-1]) - tilt(trajectory.q[0]))
    assert (turned > 0.02) if slides else (turned < 1e-6)


@pytest.mark.parametrize(("side", "spin", "friction"), [(0.2, 5.0, 0.3), (0.1, 8.0, 0.5)])
def test_a_spinning_box_stops(side, spin, friction):
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY))
    scene.add_ground(friction=friction)
    scene.add_box((side, side, 0.05), mass=1.0, position=(0, 0, 0.025))
    _, trajectory = simulate(scene.build(), 0.2, v=[0, 0, 0, 0, 0, spin])
    time = spin * (side**2 / 6) / (friction * GRAVITY * side / math.sqrt(2))  # all weight on four corners
    if side == 0.2:
        assert time == pytest.approx(0.080089, abs=1e-6)
    stopped = np.flatnonzero(np.abs(trajectory.v[:, 5]) < 1e-9)[0] * 1e-3
    assert stopped == pytest.approx(time, rel=0.02)


@pytest.mark.parametrize(
    ("thickness", "falls", "seconds"), [(0.13, False, 1.0), (0.11, False, 0.3), (0.10, True, 1.0), (0.09, True, 1.0)]
)
def test_a_semicircular_arch_needs_its_thickness(thickness, falls, seconds):
    """15 voussoirs, thickness over mean radius at the limit: .1063 (limit analysis)."""
    model = voussoir_arch(thickness, count=15, friction=0.7)
    sim = coulomb.Simulator(model, timestep=2e-3)
    q, v = model.neutral()
    keystone = 7 * 7 + 2  # height of the eighth
    start, sag = q[keystone], 0.0
    for _ in range(round(seconds / sim.timestep)):
        q, v = sim.step(q, v)
        sag = start - q[keystone]
        assert falls or sim.status.converged, sim.status
        if falls and sag > 0.02:
            break
    assert (sag > 0.02) if falls else (abs(sag) < 1e-9)
