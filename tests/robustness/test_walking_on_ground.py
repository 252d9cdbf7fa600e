"""A quadruped with a scripted trot crosses a flat height field as it crosses the plane, and walks over rough ground without falling or
catching."""

import numpy as np

import coulomb
from coulomb.demo import robot_path

TIMESTEP = 2e-3
HEIGHT, LIFT, STRIDE, PERIOD = 0.27, 0.06, 0.16, 0.4  # m, m, m, s
LINK = 0.213  # m: thigh and shank
NODES, SPACING = 161, 0.05


def go1(add_ground):
    scene = coulomb.Scene(gravity=(0, 0, -9.81))
    add_ground(scene)
    path, packages = robot_path("go1_description/urdf/go1.urdf")
    scene.add_urdf(path, package_dirs=packages, floating_base=True, kp=100, kd=3)
    return scene.build()


def targets(time):
    """Angles of hips, thighs and shanks: diagonal pairs of feet go back on the ground and forward in the air, in turn."""
    phase = (time / PERIOD + np.array([0, 0.5, 0.5, 0])) % 1
    on_ground = phase < 0.5
    x = np.where(on_ground, 0.5 - 2 * phase, 2 * phase - 1.5) * STRIDE
    z = -HEIGHT + np.where(on_ground, 0, LIFT * np.sin(2 * np.pi * (phase - 0.5)))
    shank = -2 * np.arccos(np.hypot(x, z) / (2 * LINK))
    thigh = np.arctan2(-x, -z) - shank / 2
    return np.stack([0 * x, thigh, shank], axis=1).ravel()


def walk(model, seconds):
    """Configurations of all steps; each has to be solved."""
    sim = coulomb.Simulator(model, timestep=TIMESTEP)
    q, v = (np.array(x) for x in model.neutral())
    q[2] = HEIGHT + 0.03
    q[7:] = targets(0)
    out = []
    for i in range(round(seconds / TIMESTEP)):
        q, v = sim.step(q, v, targets(i * TIMESTEP))
        assert sim.status.converged, (i, sim.status.reason)
        out.append(q)
    return np.array(out)


def rough_ground(seed):
    """Waves of .3 to 1.5 m, seven centimetres from the deepest to the highest place, highest at zero where the robot starts."""
    rng = np.random.default_rng(seed)
    x, y = np.meshgrid(*[SPACING * (np.arange(NODES) - NODES // 2)] * 2)
    heights = np.zeros((NODES, NODES))
    for _ in range(6):
        direction, length, shift = rng.uniform(0, 2 * np.pi), rng.uniform(0.3, 1.5), rng.uniform(0, 2 * np.pi)
        along = x * np.cos(direction) + y * np.sin(direction)
        heights += 0.006 * np.sin(2 * np.pi * along / length + shift)
    start = slice(NODES // 2 - 8, NODES // 2 + 8)
    return heights - heights[start, start].max()


def test_a_flat_field_is_crossed_as_the_plane_is():
    plane = walk(go1(lambda scene: scene.add_ground(friction=0.8)), 3)
    flat = np.zeros((NODES, NODES))
    field = walk(go1(lambda scene: scene.add_heightfield(flat, spacing=SPACING, friction=0.8)), 3)
    assert plane[-1, 0] > 0.8
    assert np.abs(field - plane).max() < 1e-6


def way(configurations):
    """Metres, second by second after the first half."""
    return np.linalg.norm(np.diff(configurations[250::500, :2], axis=0), axis=1).sum()


def test_rough_ground_is_crossed_in_ten_seconds():
    """It stays on its feet, and goes on: on 12 such grounds 1.93 m in the mean, 1.88 m where the same waves have cells of a quarter of the
    size, 2.07 m in MuJoCo; 3.2 m on the plane. How far on one of them differs widely: an open-loop trot slips where the ground rises."""
    ways = []
    for seed in range(4):
        heights = rough_ground(seed)

        def add_ground(scene, heights=heights):
            scene.add_heightfield(heights, spacing=SPACING, friction=0.8)

        rough = walk(go1(add_ground), 10)
        upright = 1 - 2 * (rough[:, 4] ** 2 + rough[:, 5] ** 2)
        assert rough[:, 2].min() > 0.18 + heights.min() and upright.min() > 0.9
        ways.append(way(rough))
    plane = walk(go1(lambda scene: scene.add_ground(friction=0.8)), 10)
    assert np.mean(ways) > 0.25 * way(plane)
