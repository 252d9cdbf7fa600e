"""Robots that fall, lie and move at random: every step is solved as posed, or proved not to have a solution, and nothing sinks in.

COULOMB_TRAJECTORY_STEPS: how long each robot is left alone, 300 steps if not said.
"""

import os
from functools import cache

import numpy as np
import pytest

import coulomb
from coulomb.demo import robot_path
from scenes import robots
from scenes.wedges import solved_or_proved

pytest.importorskip("mujoco")
STEPS = int(os.environ.get("COULOMB_TRAJECTORY_STEPS", "300"))
TIMESTEP = 2e-3  # s
DROP = 0.02  # m
DEEP = 1e-4  # m
HALF_A_TURN = np.pi / TIMESTEP  # rad/s: faster, a step that takes velocities as constant says nothing of a motion
CORRECTED = 60  # steps after which nothing is left of a depth: a tenth is taken away in each
FLOATING = {  # robots of example-robot-data, put on a floating base
    "go1": "go1_description/urdf/go1.urdf",
    "a1": "a1_description/urdf/a1.urdf",
    "laikago": "laikago_description/urdf/laikago.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "hyq": "hyq_description/robots/hyq_no_sensors.urdf",
    "anymal_b": "anymal_b_simple_description/robots/anymal.urdf",
    "anymal_c": "anymal_c_simple_description/urdf/anymal.urdf",
    "icub": "icub_description/robots/icub.urdf",
    "g1": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "talos": "talos_data/robots/talos_full_v2.urdf",
}
WEDGED = ["a1", "talos"]  # the trunk comes to lie on its own thighs; the waist folds the base into the torso
FAT = ["icub"]  # hulls of its parts overlap by up to 8 cm where it starts: tried without contact between its own parts
GYMNASIUM = ["hopper", "half_cheetah", "humanoid", "walker2d", "ant"]
RECORDED = [name for name in ("h1", "atlas") if name in robots.NAMES]  # of a folder of robots, where there is one


@cache
def floating_robot(name):
    """(model, q, v) with its lowest point DROP above the ground."""
    try:
        path, packages = robot_path(FLOATING[name])
    except RuntimeError as error:
        pytest.skip(str(error))
    scene = coulomb.Scene(timestep=TIMESTEP)
    scene.add_ground(friction=0.8)
    own = name not in FAT
    scene.add_urdf(path, floating_base=True, package_dirs=[packages], friction=0.8, self_collision=own)
    model = scene.build()

    # A pose within the joints' limits, which the neutral one need not be.
    q, v = model.neutral()
    for joint in np.flatnonzero(model.joint_limited):
        place = model.joint_q[joint]
        q[place] = np.clip(q[place], model.joint_lower[joint], model.joint_upper[joint])

    # Wholly below the ground, the deepest contact tells where the lowest point is.
    q[2] -= 10
    sim = coulomb.Simulator(model)
    sim.step(q, v)
    q[2] += max(c.depth for c in sim.contacts if "ground" in (c.geometry_a, c.geometry_b)) + DROP
    return model, q, v


@cache
def gymnasium_robot(name):
    """(model, q, v) as gymnasium puts it."""
    gymnasium = pytest.importorskip("gymnasium")
    path = os.path.join(os.path.dirname(gymnasium.__file__), "envs", "mujoco", "assets", f"{name}.xml")
    model = coulomb.load(path)
    return model, *model.neutral()


@cache
def recorded_robot(name):
    """(model, q, v), first of the recorded states."""
    model, q, v = robots.load(name)
    return model, q[0], v[0]


def robot(name):
    kinds = ((FLOATING, floating_robot), (GYMNASIUM, gymnasium_robot), (RECORDED, recorded_robot))
    return next(load(name) for names, load in kinds if name in names)


class Watch:
    """Follows a simulator: statuses, and for how long geometries stay deep in each other.

    Robots pushed into themselves may be wedged: friction holds shut what the position correction asks to open. Such a
    step is relaxed, names what contradicts, and a linear program proves it.
    """

    def __init__(self, sim):
        self.sim = sim
        self.steps = 0
        self.unsolved = []
        self.wedged = 0
        self.touched = False
        self.deep_for = {}  # steps, by pair of geometries
        self.longest = 0

    def look(self, q_before, q, v):
        status = self.sim.status
        assert np.isfinite(q).all() and np.isfinite(v).all(), f"step {self.steps}: {status}"
        if not status.converged or status.reason != "solved":
            proved = not status.converged and solved_or_proved(self.sim, q_before)
            self.wedged += proved
            if not proved:
                self.unsolved.append(f"step {self.steps}: {status.reason}")

        # An impact is deep for a while; a pair that stays deep is not corrected.
        deep = {(c.geometry_a, c.geometry_b) for c in self.sim.contacts if c.depth > DEEP}
        self.deep_for = {pair: self.deep_for.get(pair, 0) + 1 for pair in deep}
        self.longest = max(self.longest, *self.deep_for.values(), 0)
        self.touched |= bool(self.sim.contacts)
        self.steps += 1

    def check_statuses(self):
        allowed = self.steps // 1000  # steps that may be relaxed
        assert len(self.unsolved) <= allowed, f"{len(self.unsolved)} of {self.steps} steps: {self.unsolved[:3]}"


@pytest.mark.parametrize("name", [*FLOATING, *GYMNASIUM, *RECORDED])
def test_a_robot_that_is_dropped_comes_to_lie(name):
    model, q, v = robot(name)
    sim = coulomb.Simulator(model, timestep=TIMESTEP)
    watch = Watch(sim)
    for _ in range(STEPS):
        q_before = q
        q, v = sim.step(q, v)
        watch.look(q_before, q, v)
    watch.check_statuses()
    assert watch.wedged == 0 or name in WEDGED
    assert watch.touched
    assert watch.longest <= CORRECTED


@pytest.mark.parametrize("share", [0.2, 1.0])
@pytest.mark.parametrize("name", [*FLOATING, *GYMNASIUM, *RECORDED])
def test_a_robot_under_random_controls(name, share):
    """Controls in that share of the actuators' ranges, held for 20 steps each.

    No more than lifts the robot at a lever of 30 cm: some files give limits that no motor has.
    """
    model, q, v = robot(name)
    sim = coulomb.Simulator(model, timestep=TIMESTEP)
    watch = Watch(sim)
    random = np.random.default_rng(0)
    most = 0.3 * 9.81 * np.sum(model.body_mass)
    low, high = np.clip([control_range(actuator) for actuator in model.actuators], -most, most).T
    for k in range(300):
        if k % 20 == 0:
            u = 0.5 * (low + high) + share * 0.5 * (high - low) * random.uniform(-1, 1, model.nu)
        q_before = q
        q, v = sim.step(q, v, u)
        if np.abs(v).max() > HALF_A_TURN:
            break  # small links that no damping holds
        watch.look(q_before, q, v)
    assert watch.steps >= 150
    watch.check_statuses()


def control_range(actuator):
    """Lowest and highest control: as limited, or what gives the largest force, or one."""
    if actuator.control_limited:
        return actuator.control_range
    if actuator.force_limited:
        return np.array(actuator.force_range) / actuator.gain
    return np.array([-1.0, 1.0])


def test_lying_costs_no_iterations():
    """At rest the last impulses are the next: a factor for each of the three levels, but where a foot settles once in a while."""
    model, q, v = robot("go1")
    sim = coulomb.Simulator(model, timestep=TIMESTEP)
    iterations = []
    for _ in range(1500):
        q, v = sim.step(q, v)
        iterations.append(sim.status.iterations)
    assert np.quantile(iterations[-100:], 0.95) <= 3
