"""Steps that are split at impacts (continuous_collision) against closed forms: times, velocities after, and derivatives of both."""

import math

import numpy as np
import pytest

import coulomb
from scenes.basics import GRAVITY, about


def simulator(scene, timestep=1e-3, **options):
    return coulomb.Simulator(scene.build(), timestep, continuous_collision=True, **options)


def run(sim, v, steps, q=None):
    """(q, v, impacts as (time, Impact), Jacobian of the whole motion, positions of the first body at every step)."""
    q0, rest = sim.model.neutral()
    q, v = q0 if q is None else q, rest + np.asarray(v, dtype=float)
    hits, heights, J = [], [q[2]], np.eye(2 * sim.model.nv)
    for step in range(steps):
        q, v = sim.step(q, v)
        assert sim.status.converged, sim.status
        hits += [(step * sim.timestep + i.time, i) for i in sim.impacts]
        heights.append(q[2])
        J = sim.derivatives().A @ J
    return q, v, hits, J, np.array(heights)


def ball_above_floor(height, restitution, radius=0.1, gravity=GRAVITY):
    scene = coulomb.Scene(gravity=(0, 0, -gravity))
    scene.add_ground(friction=0, restitution=restitution)
    scene.add_sphere(radius, mass=1.0, position=(0, 0, height + radius), name="ball")
    return scene


@pytest.mark.parametrize(
    ("masses", "speeds", "restitution", "after", "tolerance"),
    [
        ((1, 3), (2, 0), 0.5, (-0.25, 0.75), 1e-10),
        ((1, 1000), (1, 0), 1.0, (-999 / 1001, 2 / 1001), 1e-9),
        ((2, 5), (3, -1), 0.7, (-13 / 7, 33 / 35), 1e-10),
    ],
)
@pytest.mark.parametrize("gap", [0.0, 0.0123])
def test_two_spheres_collide(masses, speeds, restitution, after, tolerance, gap):
    scene = coulomb.Scene(gravity=(0, 0, 0))
    for i, mass in enumerate(masses):
        scene.add_sphere(0.1, mass=mass, position=((0.2 + gap) * i, 0, 0), restitution=restitution, friction=0.3)
    _, v, hits, *_ = run(simulator(scene), [speeds[0], 0, 0, 0, 0, 0, speeds[1], 0, 0, 0, 0, 0], 50)
    assert v[[0, 6]] == pytest.approx(after, abs=tolerance)
    assert len(hits) == 1
    time, impact = hits[0]
    assert time == pytest.approx(gap / (speeds[0] - speeds[1]), abs=1e-9)
    assert impact.approach == pytest.approx(speeds[0] - speeds[1], abs=1e-12)
    assert abs(impact.impulse[0]) == pytest.approx(masses[1] * (after[1] - speeds[1]), abs=1e-8)


def test_newtons_cradle():
    scene = coulomb.Scene(gravity=(0, 0, 0))
    for i in range(5):
        scene.add_sphere(0.1, mass=1.0, position=(0.201 * i, 0, 0), restitution=1.0, friction=0.3)
    _, v, hits, *_ = run(simulator(scene), np.r_[1, np.zeros(29)], 50)
    assert v[::6] == pytest.approx([0, 0, 0, 0, 1], abs=1e-8)
    assert [t for t, _ in hits] == pytest.approx([0.001 * k for k in (1, 2, 3, 4)], abs=1e-12)


def test_a_ball_bounces_to_rest():
    sim = simulator(ball_above_floor(1.0, 0.8), restitution_threshold=1e-5, penetration_tolerance=1e-9)
    q, v, hits, _, heights = run(sim, np.zeros(6), 4200)
    times = [t for t, _ in hits]
    fall = math.sqrt(2 / GRAVITY)
    assert times[:3] == pytest.approx([0.451524, 1.173961, 1.751912], abs=1e-6)
    assert times[:8] == pytest.approx(
        [fall * (1 + 2 * sum(0.8**k for k in range(1, n))) for n in range(1, 9)], abs=1e-9
    )
    third = heights[math.ceil(times[2] * 1e3) : math.floor(times[3] * 1e3)].max() - 0.1
    assert third == pytest.approx(0.262144, abs=0.5 * GRAVITY * 0.5e-3**2 + 1e-9)  # between steps it is a little higher
    assert times[-1] == pytest.approx(fall * 9, abs=2e-3)  # 1 (e + e^2 + ...) + 1 = 9 falls
    assert (q[2], v[2]) == pytest.approx((0.1, 0), abs=1e-8)
    assert heights.min() > 0.1 - 1e-8


def bouncing(z, v, g, e, seconds):
    """Height and speed of a point after bounces on the floor, for complex numbers too (their real parts decide)."""
    left, bounces = seconds, 0
    while True:
        hit = (v + np.sqrt(v * v + 2 * g * z)) / g
        if not np.real(hit) < np.real(left):
            return z + v * left - 0.5 * g * left * left, v - g * left, bounces
        left = left - hit
        z, v, bounces = 0.0, -e * (v - g * hit), bounces + 1


@pytest.mark.parametrize(
    ("z0", "v0", "e", "seconds", "bounces"), [(1.0, 0, 1.0, 0.8, 1), (1.0, 0.5, 0.8, 1.9, 3), (0.3, -2, 0.9, 1.3, 3)]
)
@pytest.mark.parametrize("timestep", [1e-3, 1e-2])
def test_derivatives_of_a_bouncing_ball(z0, v0, e, seconds, bounces, timestep):
    sim = simulator(ball_above_floor(z0, e), timestep)
    names = ["restitution/ground", "gravity", "size/ball", "mass/ball"]
    q, v = sim.model.neutral()
    v = v + [0, 0, v0, 0, 0, 0]
    trajectory = sim.rollout(q, v, steps=round(seconds / timestep))
    z, speed, count = bouncing(z0, v0, GRAVITY, e, seconds)
    assert count == bounces
    assert (trajectory.q[-1, 2] - 0.1, trajectory.v[-1, 2]) == pytest.approx((z, speed), rel=1e-9)
    step = 1e-30j
    of = {
        "z": bouncing(z0 + step, v0, GRAVITY, e, seconds),
        "v": bouncing(z0, v0 + step, GRAVITY, e, seconds),
        "g": bouncing(z0, v0, GRAVITY + step, e, seconds),
        "e": bouncing(z0, v0, GRAVITY, e + step, seconds),
    }
    if seconds == 0.8:
        assert z == pytest.approx(0.947915, abs=1e-6)
        assert [np.imag(of[k][0]) * 1e30 for k in "zv"] == pytest.approx([0.543558, -0.103047], rel=1e-4)
    for row, is_velocity in ((0, False), (1, True)):
        dq, dv = np.zeros((2, trajectory.steps + 1, 6))
        (dv if is_velocity else dq)[-1, 2] = 1
        g = trajectory.vjp(dq, dv, wrt=names)
        expected = {k: np.imag(x[row]) * 1e30 for k, x in of.items()}
        assert g.q0[2] == pytest.approx(expected["z"], rel=1e-6)
        assert g.v0[2] == pytest.approx(expected["v"], rel=1e-6)
        assert g["gravity"][2] == pytest.approx(-expected["g"], rel=1e-6)
        assert g["restitution/ground"][0] == pytest.approx(expected["e"], rel=1e-6)
        assert g["size/ball"][0] == pytest.approx((0 if is_velocity else 1) - expected["z"], rel=1e-6, abs=1e-9)
        assert g["mass/ball"][0] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("timestep", [0.01, 0.1, 1.0])
def test_two_equal_balls_in_line(timestep):
    """The struck ball ends where the other would have gone, less 2 r: d(x)/d(x1, x2, v1, v2) = (1, 0, 1, 0); the other where it was."""
    scene = coulomb.Scene(gravity=(0, 0, 0))
    for name, x in (("one", 0.0), ("two", 0.52)):
        scene.add_sphere(0.1, mass=1.0, position=(x, 0, 0), restitution=1.0, friction=0, name=name)
    q, v, hits, J, _ = run(simulator(scene, timestep), np.r_[1, np.zeros(11)], round(1 / timestep))
    assert [t for t, _ in hits] == pytest.approx([0.32])
    assert (q[0], q[7], v[0], v[6]) == pytest.approx((0.32, 1.2, 0, 1), abs=1e-9)
    inputs = [0, 6, 12, 18]  # x1, x2, v1, v2
    assert J[6, inputs] == pytest.approx([1, 0, 1, 0], abs=1e-9)
    assert J[0, inputs] == pytest.approx([0, 1, 0, 1], abs=1e-9)
    assert J[18, inputs] == pytest.approx([0, 0, 1, 0], abs=1e-9)


@pytest.mark.parametrize(
    ("velocity", "restitution", "friction", "after"),
    [
        ((4, -3), 0.8, 0.1, (3.46, 1.35)),
        ((4, -3), 0.8, 1.0, (20 / 7, 20 / 7)),
        ((1, -2), 0.5, 0.05, (1 - 0.15, 2.5 * 0.15)),
    ],
)
@pytest.mark.parametrize("gap", [0.0, 1e-3])
def test_a_sphere_hits_the_floor_obliquely(velocity, restitution, friction, after, gap):
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_ground(friction=friction, restitution=restitution)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1 + gap))
    _, v, hits, *_ = run(simulator(scene), [velocity[0], 0, velocity[1], 0, 0, 0], 1)
    assert v[0] == pytest.approx(after[0], abs=1e-9)
    assert 0.1 * v[4] == pytest.approx(after[1], abs=1e-9)
    assert v[2] == pytest.approx(-restitution * velocity[1], abs=1e-9)
    assert [t for t, _ in hits] == pytest.approx([-gap / velocity[1]], abs=1e-12)


@pytest.mark.parametrize(("degrees", "speed"), [(30, 1.0), (50, 2.0)])
@pytest.mark.parametrize("gap", [0.0, 2e-4])
def test_the_end_of_a_rod_hits_the_floor(degrees, speed, gap):
    """P = m v / (1 + 3 cos^2), l w = 3 cos / (1 + 3 cos^2) v and its slope over the angle; thin rod, no friction, e = 0."""
    half, radius, angle = 0.5, 0.01, math.radians(degrees)
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_ground(friction=0, restitution=0)
    scene.add_capsule(
        radius, 2 * half, mass=1.0, inertia=(half**2 / 3, 0, half**2 / 3, 0, 0, 1e-6),
        position=(0, 0, half * math.sin(angle) + radius + gap), quaternion=about("y", math.pi / 2 - angle),
    )  # fmt: skip
    sim = simulator(scene, baumgarte=0)
    _, v, hits, J, _ = run(sim, [0, 0, -speed, 0, 0, 0], 1)
    c, s = math.cos(angle), math.sin(angle)
    impulse, rate, slope = 1 / (1 + 3 * c * c), 3 * c / (1 + 3 * c * c), 3 * s * (3 * c * c - 1) / (1 + 3 * c * c) ** 2
    assert hits[0][0] == pytest.approx(gap / speed, abs=1e-12)
    assert abs(hits[0][1].impulse[2]) == pytest.approx(impulse * speed, abs=1e-8)
    assert half * abs(v[4]) == pytest.approx(rate * speed, abs=1e-8)
    turned = -half * np.sign(v[4]) * J[6 + 4, 4]  # a positive turn about y lowers the upper end
    assert turned == pytest.approx(slope * speed, abs=1e-5)


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_a_bullet_does_not_pass_a_wall(restitution):
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_sphere(0.01, mass=0.01, name="bullet")
    scene.add_box((0.001, 1, 1), position=(5.0005, 0, 0), fixed=True, friction=0, restitution=restitution)
    sim = simulator(scene, 0.01)
    q, v, hits, J, _ = run(sim, [1000, 0, 0, 0, 0, 0], 1)
    time = hits[0][0]
    assert time == pytest.approx(0.00499, abs=1e-12)
    assert v[0] == pytest.approx(-1000 * restitution, abs=1e-9)
    assert q[0] == pytest.approx(4.99 - restitution * 1000 * (0.01 - 0.00499), abs=1e-9)
    # x+ = 4.99 - e v (h - t): the derivatives of t from those of x+
    size = sim.derivatives(["size/bullet"])["size/bullet"][0, 0]
    if restitution == 0:
        assert (J[0, 0], J[0, 6], size) == pytest.approx((0, 0, -1), abs=1e-9)
        return
    by_speed = (J[0, 6] + restitution * (0.01 - 0.00499)) / (restitution * 1000)
    by_radius = (size + 1) / (restitution * 1000)
    assert by_speed == pytest.approx(-4.99e-6, abs=1e-9)
    assert by_radius == pytest.approx(-1e-3, abs=1e-9)


def test_a_spinning_rod_meets_a_plane():
    radius = 1e-3
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_ground(friction=0, restitution=0)
    scene.add_capsule(radius, 1.0, mass=1.0, position=(0, 0, 0.3 + radius), quaternion=about("y", math.pi / 2))
    _, _, hits, *_ = run(simulator(scene, 0.1), [0, 0, 0, 0, 10, 0], 1)
    exact = math.asin(0.6) / 10
    assert exact == pytest.approx(0.0643501, abs=1e-7)
    assert 0.999 * exact <= hits[0][0] <= exact * (1 + 1e-12)
    assert hits[0][0] == pytest.approx(exact, rel=1e-9)


def prism(sides, radius=0.1, height=0.1):
    corners = [(math.cos(2 * math.pi * k / sides), math.sin(2 * math.pi * k / sides)) for k in range(sides)]
    return np.array([(radius * x, radius * y, z) for z in (-height / 2, height / 2) for x, y in corners])


@pytest.mark.parametrize("sides", [3, 4, 6])
def test_prisms_slide_to_rest(sides):
    """Jade's prisms: 2 m/s, mu .16, g 9, dt .01: .0144 m/s less every step until they stop."""
    scene = coulomb.Scene(gravity=(0, 0, -9))
    scene.add_ground(friction=0.16)
    scene.add_mesh(prism(sides), mass=1.0, position=(0, 0, 0.05), friction=0.16, name="prism")
    sim = simulator(scene, 0.01)
    q, v = sim.model.neutral()
    v = v + [2.0, 0, 0, 0, 0, 0]
    speeds = [v[0]]
    for _ in range(150):
        q, v = sim.step(q, v)
        assert sim.status.converged and not sim.impacts
        speeds.append(v[0])
    assert np.diff(speeds)[:138] == pytest.approx(np.full(138, -0.0144), abs=1e-10)
    assert speeds[139:] == pytest.approx(np.zeros(12), abs=1e-10)
    assert np.delete(v, 0) == pytest.approx(np.zeros(5), abs=1e-9)
    assert q[0] == pytest.approx(2**2 / (2 * 0.16 * 9), abs=1e-5)
    assert q[2] == pytest.approx(0.05, abs=1e-5)


GRIPPER = """<mujoco><option gravity="0 0 -8"/><worldbody>
  <body name="left" pos="-{x} 0 0"><joint name="left" type="slide" axis="1 0 0"/>
    <geom name="left" type="box" size=".01 .02 .02" mass=".05" friction=".8"/></body>
  <body name="right" pos="{x} 0 0"><joint name="right" type="slide" axis="-1 0 0"/>
    <geom name="right" type="box" size=".01 .02 .02" mass=".05" friction=".8"/></body>
  <body name="plate"><freejoint/><geom name="plate" type="box" size="{half} .04 .04" mass=".1" friction=".8"/></body></worldbody>
  <actuator><motor joint="left"/><motor joint="right"/></actuator></mujoco>"""


@pytest.mark.parametrize("thickness", [0.02, 0.002])
@pytest.mark.parametrize("force", [10.0, 1.0, 0.55, 0.45])
def test_a_plate_between_two_fingers(thickness, force):
    """Held while 2 mu F > m g (F > .5 N), dropped when less, never entered; the fingers start .5 mm away."""
    scene = coulomb.Scene()
    scene.add_mjcf(GRIPPER.format(half=thickness / 2, x=thickness / 2 + 0.0105))
    sim = simulator(scene, 0.01)
    q, v = sim.model.neutral()
    v = v - [0, 0, 0, 0, 0.1, 0, 0, 0]
    speeds = []
    for step in range(22):
        q, v = sim.step(q, v, [force, force])
        assert sim.status.reason == "solved", sim.status
        assert all(c.depth <= 1e-5 for c in sim.contacts)
        assert 0.001 - q[0] - q[1] > -2e-5  # between the pads, less the plate
        if step >= 3:
            assert abs(v[:2]).max() < 1e-6 and len(sim.contacts) == 8
            speeds.append(v[4])
    change = 0.01 * (2 * 0.8 * force / 0.1 - 8)
    if force > 0.5:
        assert speeds[-1] == pytest.approx(0, abs=1e-9)
        sliding = [b - a for a, b in zip(speeds, speeds[1:]) if b < -1e-9]
        assert sliding == pytest.approx([change] * len(sliding), abs=1e-8)
        assert force > 0.6 or len(sliding) > 2
    else:
        assert np.diff(speeds) == pytest.approx(np.full(18, change), abs=1e-8)
        assert q[4] < -0.02


def test_a_pendulum_keeps_its_energy():
    """Where nothing touches the step is of order two and has no drift; a plain step of order one neither."""
    scene = coulomb.Scene()
    scene.add_mjcf("""<mujoco><worldbody><body><joint type="hinge" axis="0 1 0"/>
      <geom type="sphere" pos="0 0 -1" size=".1" mass="1"/></body></worldbody></mujoco>""")
    errors = []
    for timestep in (0.02, 0.01):
        sim = simulator(scene, timestep)
        q, v = np.array([2.0]), np.array([0.0])
        start, worst = sum(sim.model.energy(q, v)), 0.0
        for _ in range(round(100 / timestep)):
            q, v = sim.step(q, v)
            worst = max(worst, abs(sum(sim.model.energy(q, v)) - start))
        errors.append(worst)
    assert errors[0] < 0.02
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


def test_a_body_that_spins_fast_is_followed_in_parts():
    """300 rad/s at a step of 10 ms, 3 rad, is followed in 8 parts, as by 8 steps."""
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_box((0.1, 0.2, 0.3), mass=1.0)
    ends = []
    for timestep, steps in ((0.01, 1), (0.00125, 8)):
        v = 300 * np.array([0, 0, 0, 0.36, 0.48, 0.8])
        q, v, *_ = run(simulator(scene, timestep), v, steps)
        ends.append(np.r_[q, v])
    assert ends[0] == pytest.approx(ends[1], rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("size", [(0.3, 0.2, 0.05), (0.4, 0.02, 0.02)])
@pytest.mark.parametrize("spin", [(30, 10, 20), (100, 300, 50), (10, 1000, 20)])
def test_a_tumbling_box_keeps_its_energy_and_angular_momentum(size, spin):
    """In flight: the implicit midpoint rule conserves both exactly (the momentum in size; its direction to the order of the turn)."""
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_box(size, mass=1.0, name="box")
    sim = simulator(scene, timestep=0.01)
    squares = np.square(size)
    inertia = (squares.sum() - squares) / 12
    q, v = sim.model.neutral()
    v[3:] = spin
    energy, momentum = inertia @ v[3:] ** 2, np.linalg.norm(inertia * v[3:])
    for _ in range(100):
        q, v = sim.step(q, v)
        assert sim.status.converged
    assert inertia @ v[3:] ** 2 == pytest.approx(energy, rel=1e-9)
    assert np.linalg.norm(inertia * v[3:]) == pytest.approx(momentum, rel=1e-9)
