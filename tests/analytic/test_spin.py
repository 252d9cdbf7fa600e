"""Free and ball joints spin torque-free: known motions, conserved quantities, convergence, and the option that turns it off."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import coulomb
from scenes.basics import rotation_matrix

SIZE = (0.3, 0.2, 0.05)
SPIN = np.array([0.36, 0.48, 0.8])
MOMENTS = (np.square(SIZE).sum() - np.square(SIZE)) / 12  # of 1 kg

OFF_CENTRE = """<mujoco><option gravity="0 0 0"/><worldbody><body name="box" pos="0 0 1"><freejoint/>
  <inertial pos="{c[0]} {c[1]} {c[2]}" mass="1" diaginertia="{i[0]} {i[1]} {i[2]}"/></body></worldbody></mujoco>"""
HANGING = """<mujoco><option gravity="0 0 0"/><worldbody><body name="box" pos="0 0 1"><joint type="ball" pos=".1 -.2 .05" armature="{armature}"/>
  <inertial pos="0 0 0" mass="1" diaginertia="{i[0]} {i[1]} {i[2]}"/></body></worldbody></mujoco>"""


def box():
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_box(SIZE, mass=1.0, name="box")
    return scene.build()


def from_mjcf(text):
    scene = coulomb.Scene()
    scene.add_mjcf(text)
    return scene.build()


def true_spin(w, moments, time):
    """Euler's equations by a Runge-Kutta method of eighth order."""
    speed = np.linalg.norm(w)
    rate = lambda t, w: -np.cross(w, moments * w) / moments  # noqa: E731
    return solve_ivp(rate, (0, time), w, method="DOP853", rtol=3e-14, atol=1e-15 * speed).y[:, -1]


def run(model, v, timestep, duration, **options):
    sim = coulomb.Simulator(model, timestep=timestep, **options)
    q, _ = model.neutral()
    for _ in range(round(duration / timestep)):
        q, v = sim.step(q, v)
    return sim, q, v


@pytest.mark.parametrize("speed", [1.0, 37.0, 370.0, 3000.0])
def test_the_spin_of_a_box_is_that_of_eulers_equations(speed):
    """After one step of 10 ms, up to 30 radians long, to rounding."""
    v = np.r_[1, 2, 3, speed * SPIN]
    _, _, v1 = run(box(), v, 0.01, 0.01)
    assert v1[3:] == pytest.approx(true_spin(speed * SPIN, MOMENTS, 0.01), abs=1e-11 * speed)
    assert v1[:3] == pytest.approx([1, 2, 3], abs=1e-13 * speed)


@pytest.mark.parametrize("timestep", [1e-3, 1e-2])
@pytest.mark.parametrize("speed", [37.0, 370.0])
def test_a_thrown_box_keeps_its_energy_and_the_size_of_its_angular_momentum(speed, timestep):
    """For 10 s; the direction of the angular momentum is that of a point of the path within half a step."""
    model = box()
    sim = coulomb.Simulator(model, timestep=timestep)
    q, _ = model.neutral()
    v = np.r_[0, 0, 0, speed * SPIN]
    energy = MOMENTS @ v[3:] ** 2
    momentum = MOMENTS * v[3:]
    turned = 0.0
    for _ in range(round(10 / timestep)):
        q, v = sim.step(q, v)
        assert MOMENTS @ v[3:] ** 2 == pytest.approx(energy, rel=1e-11)
        assert np.linalg.norm(MOMENTS * v[3:]) == pytest.approx(np.linalg.norm(momentum), rel=1e-11)
        turned = max(
            turned, np.linalg.norm(rotation_matrix(q[3:]) @ (MOMENTS * v[3:]) - momentum) / np.linalg.norm(momentum)
        )
    if speed * timestep < 0.4:
        assert turned < 0.35 * speed * timestep


def test_explicit_gains_energy_as_mujocos_euler():
    """10 % and more per second at 1 ms: what the default mends."""
    model = box()
    sim, _, v = run(model, np.r_[0, 0, 0, 37 * SPIN], 1e-3, 1.0, gyroscopic="explicit")
    assert MOMENTS @ v[3:] ** 2 > 1.1 * 37**2 * MOMENTS @ SPIN**2
    assert sim.options["gyroscopic"] == "explicit"
    assert coulomb.Simulator(model).options["gyroscopic"] == "implicit"


@pytest.mark.parametrize("speed", [37.0, 370.0])
def test_where_the_frame_of_a_body_lies_does_not_matter(speed):
    """A box whose frame is 0.3 m off its centre of mass flies as one whose frame is there: the centre goes straight."""
    c = np.array([0.1, -0.2, 0.2])
    v = np.r_[1, 2, 3, speed * SPIN]
    centred = run(from_mjcf(OFF_CENTRE.format(c=(0, 0, 0), i=MOMENTS)), v, 0.01, 1.0)
    velocity = np.r_[v[:3] - np.cross(v[3:], c), v[3:]]
    moved = run(from_mjcf(OFF_CENTRE.format(c=c, i=MOMENTS)), velocity, 0.01, 1.0)
    R = rotation_matrix(moved[1][3:])
    assert moved[2][3:] == pytest.approx(centred[2][3:], abs=1e-9 * speed)
    assert moved[2][:3] + R @ np.cross(moved[2][3:], c) == pytest.approx([1, 2, 3], abs=1e-10 * speed)
    assert np.abs(moved[1][3:] - centred[1][3:]).max() < 1e-8


@pytest.mark.parametrize("armature", [0, 0.01])
@pytest.mark.parametrize("speed", [37.0, 370.0, 3700.0])
def test_a_body_on_a_ball_joint_keeps_its_energy(speed, armature):
    model = from_mjcf(HANGING.format(i=MOMENTS, armature=armature))
    v = speed * SPIN
    energy = v @ model.mass_matrix(model.neutral()[0]) @ v
    sim, q, v = run(model, v, 0.01, 5.0)
    assert v @ model.mass_matrix(q) @ v == pytest.approx(energy, rel=1e-10)
    assert sim.status.reason == "solved"


@pytest.mark.parametrize("gyroscopic", ["implicit", "explicit"])
def test_convergence_is_of_first_order(gyroscopic):
    """Of the orientation after 0.1 s, to the one of a very short step: halved with the step, or better, and smaller than before."""
    v = np.r_[0, 0, 0, 37 * SPIN]
    _, exact, _ = run(box(), v, 2e-6, 0.1)
    errors = []
    for timestep in (1e-3, 5e-4, 2.5e-4):
        _, q, _ = run(box(), v, timestep, 0.1, gyroscopic=gyroscopic)
        errors.append(2 * np.linalg.norm(q[3:] - exact[3:]))
    assert np.array(errors[:-1]) / errors[1:] == pytest.approx(2, rel=0.15)


def test_what_does_not_spin_and_what_spins_evenly_steps_to_the_same_bits():
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.0999), name="ball")
    scene.add_box((0.2, 0.3, 0.1), mass=1.0, position=(1, 0, 1), name="box")
    model = scene.build()
    q, v = model.neutral()
    v[:6] = 1, 2, 0, 30, 20, 10
    v[6:9] = 1, 2, 3
    for simulator in (coulomb.Simulator(model), coulomb.Simulator(model, gyroscopic="explicit")):
        simulator.step(q, v)
        ends = simulator.step(q, v)
        assert all(np.array_equal(a, b) for a, b in zip(ends, coulomb.Simulator(model).step(q, v)))


def test_a_turn_too_long_to_follow_is_told_and_keeps_its_energy():
    model = box()
    sim = coulomb.Simulator(model, timestep=0.01)
    q, _ = model.neutral()
    for speed in (1e4, 1e6, 1e9):
        v = np.r_[0, 0, 0, speed * SPIN]
        _, v1 = sim.step(q, v)
        assert sim.status.reason.startswith("spin_limit")
        assert MOMENTS @ v1[3:] ** 2 == pytest.approx(MOMENTS @ v[3:] ** 2, rel=1e-6)
    sim.step(q, np.r_[0, 0, 0, 1000 * SPIN])
    assert sim.status.reason == "solved"
    q1, v1 = sim.step(q, np.r_[0, 0, 0, 1e200 * SPIN])
    assert sim.status.reason.startswith("failed: overflow")
    assert np.isfinite(np.r_[q1, v1]).all()


def test_wrong_options_are_named():
    model = box()
    with pytest.raises(ValueError, match='gyroscopic: got "none", expected "implicit" or "explicit"'):
        coulomb.Simulator(model, gyroscopic="none")
    with pytest.raises(ValueError, match='gyroscopic: got "explicit" with stepper "bdf1"'):
        coulomb.Simulator(model, gyroscopic="explicit", stepper="bdf1")
    with pytest.raises(ValueError, match="gyroscopic"):
        coulomb.BatchSimulator(model, 2, gyroscopic="none")
