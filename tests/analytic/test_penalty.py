"""Penalty contact: rest depths, the law seen from outside, and the scenes of hard contact at a stiffness where they must agree."""

import math

import numpy as np
import pytest

import coulomb
from scenes.basics import GRAVITY, Slope, force

STEPPERS = ["semi_implicit", "bdf1", "bdf2"]
STIFF = {"contact": "penalty", "contact_stiffness": 1e7, "contact_damping": 1e8, "contact_friction_stiffness": 1e5}
REL = 1e-3


def run(model, duration, v=None, fext=None, stepper="semi_implicit", **options):
    sim = coulomb.Simulator(model, timestep=1e-3, stepper=stepper, **{"contact": "penalty", **options})
    q, v0 = model.neutral()
    v = v0 if v is None else np.array(v, float)
    qs, vs = [q], [v]
    for _ in range(round(duration / 1e-3)):
        q, v = sim.step(q, v, fext=fext)
        assert sim.status.converged, sim.status
        qs.append(q), vs.append(v)
    return sim, np.array(qs), np.array(vs)


def block_on_floor(friction=0.3, **material):
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY))
    scene.add_ground(friction=friction, **material)
    scene.add_box((0.2, 0.2, 0.1), mass=1.0, position=(0, 0, 0.05), name="block")
    return scene.build()


# Rest


@pytest.mark.parametrize("stepper", STEPPERS)
def test_a_ball_sinks_by_its_weight_over_the_stiffness(stepper):
    scene = coulomb.Scene()
    scene.add_ground()
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1), contact_stiffness=1e4, name="ball")
    sim, qs, _ = run(scene.build(), 2.0, stepper=stepper)
    assert 0.1 - qs[-1, 2] == pytest.approx(9.81e-4, abs=1e-9)
    assert sim.contacts[0].depth == pytest.approx(9.81e-4, abs=1e-9)
    assert force(sim, on="ball")[2] == pytest.approx(9.81, rel=1e-6)


@pytest.mark.parametrize(("ground", "ball", "k"), [
    ({}, {}, 1e5), ({"contact_stiffness": 3e4}, {}, 3e4), ({"contact_stiffness": 3e4}, {"contact_stiffness": 1e4}, 7500),
    ({"contact_scale": 0.5}, {"contact_stiffness": 2e4, "contact_scale": 0.4}, 4000),
])  # fmt: skip
def test_two_materials_combine(ground, ball, k):
    scene = coulomb.Scene()
    scene.add_ground(**ground)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1), **ball)
    _, qs, _ = run(scene.build(), 1.0, stepper="bdf1", contact_damping=3e5)
    assert 0.1 - qs[-1, 2] == pytest.approx(GRAVITY / k, rel=1e-5)


def test_every_corner_is_a_spring_of_its_own():
    _, qs, _ = run(block_on_floor(contact_stiffness=1e4), 1.0, stepper="bdf1")
    assert 0.05 - qs[-1, 2] == pytest.approx(GRAVITY / 4e4, rel=1e-6)


def test_contact_points_carry_instead_of_the_surface():
    """Five pegs under a box; the two in the air carry nothing."""
    points = [(-0.1, -0.1, -0.07), (0.1, -0.1, -0.07), (0, 0.1, -0.07), (0, 0, -0.05), (0, 0, 0.3)]
    scene = coulomb.Scene()
    scene.add_box((1, 1, 0.2), position=(0, 0, -0.1), fixed=True, contact_stiffness=1e4, name="table")
    scene.add_box((0.2, 0.2, 0.1), mass=1.0, position=(0, 0, 0.07), contact_points=points, name="box")
    model = scene.build()
    assert model.parameters()["contact_points/box"].value == pytest.approx(np.ravel(points))
    sim, qs, _ = run(model, 1.0, stepper="bdf1")
    depths = np.array([c.depth for c in sim.contacts])
    assert len(depths) == 3
    assert depths.sum() == pytest.approx(GRAVITY / 1e4, rel=1e-6)
    assert depths * 1e4 == pytest.approx(GRAVITY * np.array([1, 1, 2]) / 4, rel=1e-3)  # the lever rule
    moved = model.with_parameters({"contact_points/box": np.ravel(points) + np.tile([0, 0, 0.01], 5)})
    _, lower, _ = run(moved, 1.0, stepper="bdf1")
    assert lower[-1, 2] == pytest.approx(qs[-1, 2] - 0.01, abs=1e-6)


# The law


@pytest.mark.parametrize("stepper", STEPPERS)
def test_forces_never_pull(stepper):
    """A ball torn off the ground faster than k_n / k_d, and one dropped on it."""
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_ground(contact_stiffness=1e4, contact_damping=1e5)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.099), name="torn")
    scene.add_sphere(0.1, mass=1.0, position=(1, 0, 0.1), name="dropped")
    sim = coulomb.Simulator(scene.build(), stepper=stepper, contact="penalty")
    q, v = sim.model.neutral()
    v[2], v[8] = 1.0, -0.5
    for k in range(200):
        q, v = sim.step(q, v)
        assert sim.status.converged, sim.status
        for c in sim.contacts:
            assert c.impulse @ c.normal >= 0 and c.depth > 0
        if k == 0:  # nothing held the first back
            assert v[2] == 1.0
    assert v[8] > -1e-9 and v[2] == 1.0


def test_damping_leaves_no_jump_at_touch():
    """k_d d d_dot: the force of a fast approach grows from zero."""
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_ground(contact_stiffness=1e4, contact_damping=1e6)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1))
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=1e-6, contact="penalty")
    q, v = model.neutral()
    v[2] = -1.0
    q, v = sim.step(q, v)
    assert 0 < sim.contacts[0].impulse @ sim.contacts[0].normal / 1e-6 < 1.1 * (1e4 + 1e6) * 1e-6


def test_friction_is_viscous_below_the_cone_and_bounded_by_it():
    model = block_on_floor(0.3, contact_friction_stiffness=50.0)
    wrench = np.zeros((2, 6))
    wrench[1, 0] = 1.0
    sim, _, vs = run(model, 2.0, stepper="bdf1", fext=wrench)
    assert vs[-1, 0] == pytest.approx(1.0 / 200, rel=1e-6) and {c.mode for c in sim.contacts} == {"sticking"}
    wrench[1, 0] = 5.0
    sim, _, vs = run(model, 1.0, stepper="bdf1", fext=wrench)
    assert (vs[-1, 0] - vs[-101, 0]) / 0.1 == pytest.approx(5 - 0.3 * GRAVITY, rel=1e-6)
    assert {c.mode for c in sim.contacts} == {"sliding"}


def test_hard_contact_with_compliance_is_its_stiff_limit():
    """compliance 1/(h^2 k) with the whole error corrected is the undamped spring at the end of the step, force by force."""
    h, k = 1e-3, 2e4

    def fall(compliance, **options):
        scene = coulomb.Scene(contact_margin=0.05)
        scene.add_ground(compliance=compliance)
        scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.12))
        sim = coulomb.Simulator(scene.build(), timestep=h, **options)
        q, v = sim.model.neutral()
        heights = []
        for _ in range(400):
            q, v = sim.step(q, v)
            assert sim.status.converged, sim.status
            heights.append(q[2])
        return np.array(heights)

    hard = fall(1 / (h * h * k), baumgarte=1.0, max_correction_speed=1e3)
    soft = fall(0, contact="penalty", contact_stiffness=k, contact_damping=0.0)
    assert hard.min() < 0.099
    assert np.abs(hard - soft).max() < 1e-9


# The scenes of hard contact


@pytest.mark.parametrize("stepper", STEPPERS)
def test_a_block_slides_down_a_slope(stepper):
    slope = Slope(30)
    scene = slope.scene(0.2)
    scene.add_box((0.2, 0.2, 0.1), mass=1.0, position=0.05 * slope.normal, quaternion=slope.quaternion)
    _, qs, _ = run(scene.build(), 1.0, stepper=stepper, **STIFF)
    expected = 1.602929 if stepper == "bdf2" else 1.604532  # what methods of order one make of a constant acceleration
    assert (qs[-1, :3] - qs[0, :3]) @ slope.down == pytest.approx(expected, rel=REL)


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("degrees", [0.0, 45.0])
def test_a_slide_stops(stepper, degrees):
    along = np.array([math.cos(math.radians(degrees)), math.sin(math.radians(degrees)), 0])
    _, qs, _ = run(block_on_floor(), 1.0, v=[*(2 * along), 0, 0, 0], stepper=stepper, **STIFF)
    assert qs[-1, :3] @ along == pytest.approx(0.679579, rel=2e-3)  # h / 2 of the first step is 1.5e-3 of it
    assert abs(qs[-1, 0] * along[1] - qs[-1, 1] * along[0]) < 1e-6


@pytest.mark.parametrize("stepper", STEPPERS)
def test_a_block_rests_on_a_slope(stepper):
    slope = Slope(20)
    scene = slope.scene(0.5)
    scene.add_box((0.2, 0.2, 0.1), mass=1.0, position=0.05 * slope.normal, quaternion=slope.quaternion, name="block")
    sim, qs, _ = run(scene.build(), 1.0, stepper=stepper, **STIFF)
    f = force(sim, on="block")
    assert -f @ slope.down == pytest.approx(3.355218, rel=REL)
    assert f @ slope.normal == pytest.approx(9.218385, rel=REL)
    assert np.abs(qs[-1] - qs[0]).max() < 2e-5


@pytest.mark.parametrize("stepper", STEPPERS)
def test_a_pushed_block_pushes_another(stepper):
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY))
    scene.add_ground(friction=0.2)
    for i, mass in enumerate([1.0, 3.0]):
        scene.add_box((0.2, 0.2, 0.1), mass=mass, position=(0.2 * i, 0, 0.05), friction=0, name=f"block{i}")
    wrench = np.zeros((3, 6))
    wrench[1, 0] = 20.0
    sim, _, vs = run(scene.build(), 0.2, fext=wrench, stepper=stepper, **STIFF)
    assert vs[-1, 0] / 0.2 == pytest.approx(3.038, rel=REL)
    assert force(sim, on="block1", by="block0")[0] == pytest.approx(15.0, rel=REL)


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize(
    ("degrees", "friction", "acceleration", "spin"), [(15, 1.0, 1.813582, 1.813582), (30, 0.05, 4.480215, 1.061964)]
)
def test_a_sphere_on_a_slope(stepper, degrees, friction, acceleration, spin):
    slope = Slope(degrees)
    scene = slope.scene(friction)
    scene.add_sphere(0.1, mass=1.0, position=0.1 * slope.normal)
    _, _, vs = run(scene.build(), 0.5, stepper=stepper, **STIFF)
    assert vs[-1, :3] @ slope.down / 0.5 == pytest.approx(acceleration, rel=REL)
    assert 0.1 * np.linalg.norm(vs[-1, 3:]) / 0.5 == pytest.approx(spin, rel=REL)


@pytest.mark.parametrize("stepper", STEPPERS)
def test_a_slide_becomes_rolling(stepper):
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY))
    scene.add_ground(friction=0.2)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1))
    _, qs, vs = run(scene.build(), 0.5, v=[2, 0, 0, 0, 0, 0], stepper=stepper, **STIFF)
    assert vs[-1, 0] == pytest.approx(1.428571, rel=REL)


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("masses", [[1.0] * 10, [1.0, 1000.0]])
def test_a_stack_stands(stepper, masses):
    scene = coulomb.Scene(gravity=(0, 0, -GRAVITY))
    scene.add_ground(friction=0.5)
    for i, mass in enumerate(masses):
        scene.add_box((0.2, 0.2, 0.2), mass=mass, position=(0, 0, 0.2 * (i + 0.5)), friction=0.5, name=f"box{i}")
    sim, qs, _ = run(scene.build(), 1.0, stepper=stepper, **STIFF)
    for i in range(len(masses)):
        carried = GRAVITY * sum(masses[i:])
        below = f"box{i - 1}" if i else "world"
        assert force(sim, on=f"box{i}", by=below)[2] == pytest.approx(carried, rel=REL)
    assert np.abs(qs[-1] - qs[0]).max() < 1e-2 * (masses[-1] / 1000 if masses[-1] > 1 else 0.1)


@pytest.mark.parametrize("stepper", ["semi_implicit", "bdf1"])
@pytest.mark.parametrize(("degrees", "falls"), [(18.2, False), (18.7, True)])
def test_a_box_tips_at_its_diagonal(stepper, degrees, falls):
    slope = Slope(degrees)
    scene = slope.scene(1.0)
    scene.add_box((0.2, 0.2, 0.6), mass=1.0, position=0.3 * slope.normal, quaternion=slope.quaternion)
    _, qs, _ = run(scene.build(), 1.5, stepper=stepper, **STIFF)
    tilt = math.acos(min(1.0, 1 - 2 * (qs[-1, 4] ** 2 + qs[-1, 5] ** 2)))
    assert (abs(tilt - slope.angle) > 0.05) == falls


# Refusals


@pytest.mark.parametrize(("option", "value"), [
    ("contact_stiffness", 0.0), ("contact_stiffness", -1.0), ("contact_damping", -1.0),
    ("contact_friction_stiffness", float("nan")), ("contact_scale", -0.1),
])  # fmt: skip
def test_bad_materials_are_named(option, value):
    scene = coulomb.Scene()
    for add in (lambda **m: scene.add_ground(**m), lambda **m: scene.add_sphere(0.1, **m)):
        with pytest.raises(ValueError, match=option):
            add(**{option: value})
    if option != "contact_scale":
        model = block_on_floor(contact_stiffness=1.0, contact_damping=1.0, contact_friction_stiffness=1.0)
        with pytest.raises(ValueError, match=option):
            coulomb.Simulator(model, contact="penalty", **{option: value})
        with pytest.raises(ValueError, match=option):
            model.with_parameters({f"{option}/ground": [value]})


def test_bad_contact_points_are_named():
    scene = coulomb.Scene()
    with pytest.raises((ValueError, TypeError), match="contact_points"):
        scene.add_sphere(0.1, contact_points=[[0, 0]])
    with pytest.raises(ValueError, match="contact_points"):
        scene.add_sphere(0.1, contact_points=[[0, 0, float("nan")]])


def test_materials_of_a_loaded_robot():
    scene = coulomb.Scene()
    scene.add_mjcf(
        "<mujoco><worldbody><body><freejoint/><geom name='foot' type='sphere' size='.1' mass='1'/></body></worldbody></mujoco>"
    )
    scene.set_contact("foot", contact_stiffness=1e4, contact_points=[(0, 0, -0.1)])
    scene.set_contact("foot", contact_scale=0.5)
    known = scene.build().parameters()
    assert known["contact_stiffness/foot"].value == [1e4] and known["contact_scale/foot"].value == [0.5]
    assert known["contact_points/foot"].value == pytest.approx([0, 0, -0.1])
    with pytest.raises(ValueError, match="hand.*foot"):
        scene.set_contact("hand", contact_scale=1.0)
    scene.add_ground()
    with pytest.raises(ValueError, match="ground.*contact_points"):
        scene.set_contact("ground", contact_points=[(0, 0, 0)])
    with pytest.raises(ValueError, match="foot.*contact_stiffness"):
        scene.set_contact("foot", contact_stiffness=-1.0)


def over_tiles(random):
    """(model, velocities): up to three boxes thrown, or laid down sliding, on a floor of tiles; in a third of the scenes between walls."""
    scene = coulomb.Scene()
    length, friction = random.uniform(0.08, 0.4), float(random.choice([0.3, 0.6, 1.0]))
    count = math.ceil(1.2 / length)
    for i, j in np.ndindex(count, count):
        at = ((i - count / 2 + 0.5) * length, (j - count / 2 + 0.5) * length, -0.1)
        scene.add_box(size=(length, length, 0.2), position=at, friction=friction, fixed=True)
    if random.random() < 1 / 3:
        scene.add_box(size=(2, 0.1, 0.5), position=(0, 0.4, 0.2), friction=friction, fixed=True)
        scene.add_box(size=(0.1, 2, 0.5), position=(0.4, 0, 0.2), friction=friction, fixed=True)
    velocities = []
    for k in range(int(random.integers(1, 4))):
        size, flat = random.uniform(0.08, 0.3, 3), random.random() < 0.5
        turn = random.normal(size=4) * ([1, 0, 0, 1] if flat else [1, 1, 1, 1])
        height = (size[2] / 2 + 0.005 if flat else 0.25) + 0.35 * k
        at = (*random.uniform(-0.25, 0.25, 2), height)
        mass = float(10 ** random.uniform(-1, 1))
        scene.add_box(size=size, mass=mass, position=at, quaternion=turn / np.linalg.norm(turn), friction=0.5)
        velocities += [*(random.normal(size=3) * [2, 2, 0.5]), *(random.normal(size=3) * (0 if flat else 4))]
    return scene.build(), np.array(velocities)


@pytest.mark.parametrize("stepper", ["semi_implicit", "bdf1"])
def test_boxes_thrown_on_stiff_tiles_are_solved(stepper):
    """Corners that begin to push and stop to slide within a step: a search by shorter corrections alone leaves 4 % of these steps to be
    taken in parts, and 1 % unsolved."""
    steps = parts = 0
    for seed in range(20, 28):
        model, v = over_tiles(np.random.default_rng(seed))
        stiff = dict(contact_stiffness=1e7, contact_friction_stiffness=1e6)
        sim = coulomb.Simulator(model, timestep=2e-3, contact="penalty", stepper=stepper, **stiff)
        q = model.neutral()[0]
        for _ in range(120):
            q, v = sim.step(q, v)
            assert sim.status.converged, (seed, steps % 120)
            steps += 1
            parts += "parts" in sim.status.reason
    assert parts < 0.015 * steps
