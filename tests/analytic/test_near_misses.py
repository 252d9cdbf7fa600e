"""What goes by pushes nobody: a gap that the motion does not close has no force, however near it is.

Contacts ahead of time act along the line of the closest points of now. Whether the bodies will touch is another question.
"""

import math

import numpy as np
import pytest

import coulomb

LAWS = ["ncp", "lcp"]


def passes(add_moving, add_fixed, clearance, speed, timestep, phase, **options):
    """Largest change of the velocity of a body that passes above another one, without gravity."""
    scene = coulomb.Scene(gravity=(0, 0, 0))
    add_fixed(scene)
    add_moving(scene, (-0.15 + phase * speed * timestep, 0.02, 0.1 + clearance))
    sim = coulomb.Simulator(scene.build(), timestep=timestep, **options)
    q, v = sim.model.neutral()
    v[0] = speed
    start, worst = v.copy(), 0.0
    for _ in range(int(0.3 / (speed * timestep))):
        q, v = sim.step(q, v)
        worst = max(worst, np.abs(v - start).max())
    return worst


MOVING = {
    "box": lambda s, x: s.add_box((0.1, 0.1, 0.1), mass=1.0, position=x),
    "yawed box": lambda s, x: s.add_box(
        (0.1, 0.1, 0.1), mass=1.0, position=x, quaternion=(math.cos(0.2), 0, 0, math.sin(0.2))
    ),
    "ball": lambda s, x: s.add_sphere(0.05, mass=1.0, position=x),
    "cylinder": lambda s, x: s.add_cylinder(0.05, 0.1, mass=1.0, position=x),
}
FIXED = {
    "box": lambda s: s.add_box((0.1, 0.1, 0.1), fixed=True),
    "ball": lambda s: s.add_sphere(0.05, fixed=True),
    "cylinder": lambda s: s.add_cylinder(0.05, 0.1, fixed=True),
}


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize("fixed", FIXED)
@pytest.mark.parametrize("moving", MOVING)
def test_a_body_passes_another(moving, fixed, contact):
    for clearance in (1e-5, 1e-4, 1e-3):
        for speed, timestep in ((0.3, 2e-3), (3.0, 1e-3)):
            for phase in (0.0, 0.31, 0.77):
                args = MOVING[moving], FIXED[fixed], clearance, speed, timestep, phase
                assert passes(*args, contact=contact) == 0


@pytest.mark.parametrize("clearance", [1e-5, 1e-4, 1e-3, 1e-2])
def test_a_peg_goes_into_its_slot(clearance):
    """Room on both sides, 3 m/s: no change."""
    for phase in (0.0, 0.27, 0.5, 0.81):
        scene = coulomb.Scene(gravity=(0, 0, 0))
        for side in (-1, 1):
            scene.add_box((0.2, 0.2, 0.1), fixed=True, position=(side * (0.15 + clearance), 0, 0))
        scene.add_box((0.1, 0.1, 0.3), mass=1.0, position=(0, 0, 0.3 + phase * 3e-3))
        sim = coulomb.Simulator(scene.build(), timestep=1e-3)
        q, v = sim.model.neutral()
        v[2] = -3.0
        for _ in range(100):
            q, v = sim.step(q, v)
        np.testing.assert_array_equal(v, [0, 0, -3.0, 0, 0, 0])


@pytest.mark.parametrize("contact", LAWS)
def test_a_box_slides_past_a_block(contact):
    """.1 mm beside its way: it stops where friction stops it, v^2/2 mu g from the start (semi-implicit: less v h/2), and does not turn."""
    scene = coulomb.Scene()
    scene.add_box((4.0, 4.0, 0.2), fixed=True, position=(0, 0, -0.1), friction=0.2)
    scene.add_box((0.1, 0.1, 0.1), fixed=True, position=(0.25, 0.1 + 1e-4, 0.05), friction=0.2)
    scene.add_box((0.1, 0.1, 0.1), mass=1.0, position=(0, 0, 0.05), friction=0.2)
    sim = coulomb.Simulator(scene.build(), timestep=2e-3, contact=contact)
    q, v = sim.model.neutral()
    v[0] = 1.5
    for _ in range(500):
        q, v = sim.step(q, v)
    assert np.abs(v).max() < 1e-9
    assert q[0] == pytest.approx(1.5**2 / (2 * 0.2 * 9.81) - 0.5 * 1.5 * 2e-3, abs=1e-5)
    assert abs(q[6]) < 1e-9


@pytest.mark.parametrize("contact", LAWS)
def test_what_hits_stops(contact):
    """Bodies thrown at a box from all sides end no deeper in it than the correction leaves: nothing that comes is overlooked."""
    random = np.random.default_rng(3)
    deepest = []
    for k in range(24):
        scene = coulomb.Scene(gravity=(0, 0, 0))
        scene.add_box((0.2, 0.2, 0.2), fixed=True)
        way = random.normal(size=3)
        way /= np.linalg.norm(way)
        turn = random.normal(size=4)
        place = {"mass": 1.0, "position": 0.4 * way, "quaternion": turn / np.linalg.norm(turn)}
        add, size = [
            (scene.add_box, ((0.1, 0.1, 0.1),)),
            (scene.add_cylinder, (0.05, 0.1)),
            (scene.add_capsule, (0.04, 0.1)),
            (scene.add_sphere, (0.05,)),
        ][k % 4]
        add(*size, **place)
        sim = coulomb.Simulator(scene.build(), timestep=2e-3, contact=contact)
        q, v = sim.model.neutral()
        v[:3] = -2.0 * way + 0.3 * random.normal(size=3)
        v[3:] = 2.0 * random.normal(size=3)
        energy = v[:3] @ v[:3]
        for _ in range(150):
            q, v = sim.step(q, v)
            deepest.append(max((c.depth for c in sim.contacts), default=0.0))
        assert v[:3] @ v[:3] < energy
    assert max(deepest) < 5e-3
    assert np.quantile(deepest, 0.99) < 5e-4


SMALL = {
    "ball": lambda s, **o: s.add_sphere(0.01, **o),
    "box": lambda s, **o: s.add_box((0.02, 0.02, 0.02), **o),
    "capsule": lambda s, **o: s.add_capsule(0.01, 0.03, **o),
}


def lowest_after(body, speed, way, phase, friction, contact, held=True):
    """m: how high above the middle of a plate of 2 mm a small body is at its lowest, thrown at it from above.

    phase: where in the grid of steps it comes.
    """
    timestep = 1e-3
    way = np.array(way) / np.linalg.norm(way)
    start = -way * (0.05 / abs(way[2]) + (1 + phase) * speed * timestep)
    scene = coulomb.Scene(gravity=(0, 0, 0))
    plate = {"fixed": True} if held else {"mass": 100.0}
    scene.add_box((2.0, 2.0, 0.002), friction=friction, **plate)
    SMALL[body](scene, mass=0.1, position=tuple(start), friction=friction)
    sim = coulomb.Simulator(scene.build(), timestep=timestep, contact=contact)
    q, v = sim.model.neutral()
    v[-6:-3] = speed * way
    lowest = q[-5]
    for _ in range(8):
        q, v = sim.step(q, v)
        lowest = min(lowest, q[-5] - (0 if held else q[2]))
    return lowest


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize("body", SMALL)
def test_what_is_fast_does_not_pass_through_what_is_thin(body, contact):
    """A step carries it across the plate, to a pose where nothing touches: this is no near miss."""
    for speed in (30.0, 60.0, 200.0):
        for way in ((0, 0, -1), (0.6, 0, -0.8)):
            for phase in np.linspace(0, 1, 7):
                assert lowest_after(body, speed, way, phase, 0.0, contact) > 0.01
        assert lowest_after(body, speed, (0, 0, -1), 0.3, 0.0, contact, held=False) > 0.01


@pytest.mark.parametrize("contact", LAWS)
def test_what_is_fast_and_spins_does_not_pass_through_what_is_thin(contact):
    """Friction gives a ball that grazes the plate its spin, a radian within a step."""
    for speed in (30.0, 50.0, 60.0):
        for way in ((0.6, 0, -0.8), (-0.3, 0.4, -0.866)):
            for phase in np.linspace(0, 1, 9):
                assert lowest_after("ball", speed, way, phase, 0.5, contact) > 0.01


@pytest.mark.parametrize("contact", LAWS)
def test_steps_past_a_near_miss_are_differentiated(contact):
    scene = coulomb.Scene()
    scene.add_box((0.1, 0.1, 0.1), fixed=True, name="block")
    scene.add_box((0.1, 0.1, 0.1), mass=1.0, position=(-0.1003, 0.02, 0.1 + 2e-4), name="box")
    sim = coulomb.Simulator(scene.build(), timestep=1e-3, contact=contact)
    q, v = sim.model.neutral()
    v[:] = [3.0, 0.1, 0.05, 0.1, 0.2, 0.3]
    sim.step(q, v)
    assert not sim.contacts
    assert not sim.derivatives().ambiguous
    report = coulomb.check_gradients(sim, q, v, wrt=["size/box", "timestep"])
    assert report.passed, report


def pressed_ball(force, ahead, contact, shape="sphere"):
    """A body on the floor, pressed down, in front of a kerb as high as itself."""
    scene = coulomb.Scene(timestep=0.01)
    scene.add_ground(friction=0.0)
    scene.add_box((1.0, 1.0, 0.05), fixed=True, position=(0.5, 0.0, 0.025), friction=0.0, name="kerb")
    place = {"mass": 1.0, "position": (-0.02 - ahead, 0.013, 0.02), "friction": 0.0, "name": "body"}
    if shape == "sphere":
        scene.add_sphere(0.02, **place)
    else:
        scene.add_box((0.04, 0.04, 0.04), **place)
    sim = coulomb.Simulator(scene.build(), contact=contact)
    q, v = sim.model.neutral()
    v[0] = 2.0
    return sim, q, v, np.r_[0.0, 0.0, -force, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("shape", ["sphere", "box"])
@pytest.mark.parametrize("contact", LAWS)
def test_what_the_floor_holds_does_not_pass_below(contact, shape):
    """The free velocity, without the floor's force, takes the body below the kerb: it meets the kerb all the same."""
    for force in (0.0, 300.0, 1000.0, 3000.0):
        for ahead in (0.005, 0.01, 0.0199):
            sim, q, v, tau = pressed_ball(force, ahead, contact, shape)
            for _ in range(3):
                q, v = sim.step(q, v, tau=tau)
                assert max((c.depth for c in sim.contacts), default=0.0) < 1e-5
                assert q[0] - 0.5e-4 < -0.02
            assert abs(v[0]) < 1e-6


@pytest.mark.parametrize("contact", LAWS)
def test_steps_that_meet_all_the_same_are_differentiated(contact):
    sim, q, v, tau = pressed_ball(1000.0, 0.01, contact)
    sim.step(q, v, tau=tau)
    assert len(sim.contacts) == 2
    assert not sim.derivatives().ambiguous
    report = coulomb.check_gradients(sim, q, v, tau=tau, wrt=["timestep"])
    assert report.passed, report
