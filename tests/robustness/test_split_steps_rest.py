"""Steps that are split at impacts come to rest: what lies still lies still, and its Jacobian stays bounded, as without splitting."""

import numpy as np
import pytest

import coulomb
from scenes import heaps

STILL = 1e-8  # m/s, rad/s
SECONDS = 5.0
CUBE, PLATE, TOWER = (0.05, 0.05, 0.05), (0.05, 0.1, 0.01), (0.05, 0.05, 0.2)


def toss(half, seed, friction, restitution=0.0, scene=None):
    """(model, q, v): a box of 400 g in the air, turned at random, at about 1 m/s and 5 rad/s; the last body of the scene."""
    random = np.random.default_rng(seed)
    scene = scene or coulomb.Scene()
    scene.add_ground(friction=friction, restitution=restitution)
    scene.add_box(2 * np.array(half), mass=0.4, position=(0, 0, 0.25), friction=friction)
    model = scene.build()
    q, v = model.neutral()
    q[-4:] = random.normal(size=4)
    q[-4:] /= np.linalg.norm(q[-4:])
    v[-6:] = random.normal(size=6) * [1, 1, 1, 5, 5, 5]
    return model, q, v


def come_to_rest(sim, q, v, seconds=SECONDS):
    """(q, v, largest speed of the last 100 steps, largest entry of their Jacobian, impacts in them, deepest overlap at step ends)."""
    n = sim.model.nv
    for _ in range(max(round(seconds / sim.timestep), 200)):
        q, v = sim.step(q, v)
        assert np.isfinite(q).all() and np.isfinite(v).all()
    J, speed, impacts, depth = np.eye(2 * n), 0.0, 0, 0.0
    for _ in range(100):
        q, v = sim.step(q, v)
        assert sim.status.reason == "solved"
        J = sim.derivatives().A @ J
        speed, impacts = max(speed, np.abs(v).max()), impacts + len(sim.impacts)
        depth = max([depth] + [c.depth for c in sim.contacts])
    return q, v, speed, np.abs(J).max(), impacts, depth


@pytest.mark.parametrize("shape", [CUBE, PLATE, TOWER], ids=["cube", "plate", "tower"])
@pytest.mark.parametrize("friction", [0.2, 1.0])
@pytest.mark.parametrize("milliseconds", [1, 5, 10, 20, 50])
def test_a_tossed_box_lies_still(milliseconds, friction, shape):
    """Boxes that rock on edges much narrower than they are high (the plate's) take longest."""
    for seed in range(4):
        model, q, v = toss(shape, seed, friction)
        sim = coulomb.Simulator(model, timestep=1e-3 * milliseconds, continuous_collision=True)
        q, v, speed, jacobian, impacts, depth = come_to_rest(sim, q, v)
        assert speed < STILL and impacts == 0, f"seed {seed}"
        assert jacobian < 5, f"seed {seed}"
        assert depth < 1e-8, f"seed {seed}"


@pytest.mark.parametrize("restitution", [0.3, 0.7])
def test_a_box_that_bounces_lies_still_at_last(restitution):
    for seed in range(4):
        model, q, v = toss(CUBE, seed, 0.5, restitution)
        sim = coulomb.Simulator(model, timestep=5e-3, continuous_collision=True)
        q, v, speed, jacobian, impacts, _ = come_to_rest(sim, q, v, 8.0)
        assert speed < STILL and impacts == 0 and jacobian < 5, f"seed {seed}"


@pytest.mark.parametrize("seed", [1, 3])
def test_a_box_lies_still_beside_a_contact_without_load(seed):
    """Which contacts hop is asked of each by its own impulse. A ball that hangs at the ground bears nothing, and comes first."""
    scene = coulomb.Scene()
    scene.add_mjcf(
        '<mujoco><worldbody><body pos="3 0 .100005"><joint name="up" type="slide" axis="0 0 1"/><geom type="sphere" size=".1" mass="1"/>'
        '</body></worldbody><equality><joint joint1="up"/></equality></mujoco>'
    )
    model, q, v = toss(CUBE, seed, 0.5, 0.3, scene)
    sim = coulomb.Simulator(model, timestep=5e-3, continuous_collision=True)
    q, v, speed, jacobian, impacts, _ = come_to_rest(sim, q, v, 8.0)
    assert len(sim.contacts) == 5 and sim.contacts[0].impulse[2] == 0
    assert speed < STILL and impacts == 0 and jacobian < 5


def test_a_frictionless_box_glides_without_hops():
    """And turns about the vertical, all as before."""
    model, q, v = toss(CUBE, 0, 0.0)
    sim = coulomb.Simulator(model, timestep=0.02, continuous_collision=True)
    for _ in range(250):
        q, v = sim.step(q, v)
    for _ in range(50):
        before = v
        q, v = sim.step(q, v)
        assert not sim.impacts
        assert abs(v[2]) < STILL
        assert np.linalg.norm(v[:2]) == pytest.approx(np.linalg.norm(before[:2]), abs=1e-9)


def rests_as_plain(model, q, timestep, seconds=SECONDS):
    sim = coulomb.Simulator(model, timestep=timestep, continuous_collision=True)
    plain = coulomb.Simulator(model, timestep=timestep)
    q, v, speed, jacobian, impacts, depth = come_to_rest(sim, q, np.zeros(model.nv), seconds)
    J, at, w = np.eye(2 * model.nv), q, np.zeros(model.nv)
    for _ in range(100):
        at, w = plain.step(at, w)
        J = plain.derivatives().A @ J
    assert speed < STILL and impacts == 0 and depth < 1e-7
    assert jacobian < 5 * max(np.abs(J).max(), 2)
    assert np.abs(model.difference(q, at)).max() < 1e-6


@pytest.mark.parametrize("timestep", [2e-3, 1e-2])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_heap_lies_still(seed, timestep):
    random = np.random.default_rng(seed)
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    for i in range(5):
        turn = random.normal(size=4)
        place = {"position": (*random.uniform(-0.1, 0.1, 2), 0.15 + 0.2 * i), "quaternion": turn / np.linalg.norm(turn)}
        size = [random.uniform(0.08, 0.16, 3), (0.1, 0.1, 0.1), (0.2, 0.1, 0.05)][i % 3]
        scene.add_box(size, mass=1.0, friction=0.5, **place)
    model = scene.build()
    rests_as_plain(model, model.neutral()[0], timestep)


@pytest.mark.parametrize("gap", [0.0, 1e-3, 1e-6])
@pytest.mark.parametrize("timestep", [1e-3, 1e-2])
def test_a_stack_lies_still(timestep, gap):
    """From rest, and from gaps that are and are not beyond what is taken for touching."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    for i in range(5):
        place = (0.02 * (i % 2), 0, 0.1 + 0.2 * i + gap * (i + 1))
        scene.add_box((2 * heaps.SIDE / 2,) * 3, mass=1.0, position=place, friction=0.5)
    model = scene.build()
    rests_as_plain(model, model.neutral()[0], timestep, 2.0)


def test_a_robot_falls_and_lies_still():
    """Joint limits, several links, and capsules on the ground."""
    scene = coulomb.Scene()
    links = "".join(
        """<body pos=".3 0 0"><joint axis="0 1 0" limited="true" range="-20 30" damping=".02"/><joint axis="0 0 1" limited="true" range="-20 20"
        damping=".02"/><geom type="capsule" fromto="0 0 0 .25 0 0" size=".03" mass=".5" friction=".6"/>"""
        for _ in range(3)
    )
    scene.add_mjcf(f"""<mujoco><worldbody><body pos="0 0 .5"><freejoint/><geom type="box" size=".1 .06 .04" mass="1" friction=".6"/>
      {links}{"</body>" * 3}</body></worldbody></mujoco>""")
    scene.add_ground(friction=0.6)
    model = scene.build()
    for timestep in (2e-3, 1e-2):
        sim = coulomb.Simulator(model, timestep=timestep, continuous_collision=True)
        q, v = model.neutral()
        q, v, speed, jacobian, impacts, _ = come_to_rest(sim, q, v + 0.1, 6.0)
        assert speed < 1e-6 and impacts == 0 and jacobian < 50
