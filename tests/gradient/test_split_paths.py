"""Split steps: derivatives of every rule that moves a tree, side by side, against differences, and reverse against forward mode."""

import re

import numpy as np
import pytest
from step_columns import compare

import coulomb

BOX = '<geom type="box" size=".1 .15 .2" mass="1"/>'
SCENE = f"""<mujoco><worldbody><geom type="plane" size="1 1 1" friction=".5"/>
  <body pos="0 0 .2"><freejoint/>{BOX}</body>
  <body pos="2 0 5"><freejoint/>{BOX}</body>
  <body pos="4 0 .1"><freejoint/><geom type="sphere" size=".1" mass="1"/></body>
  <body pos="6 0 5"><joint type="slide" axis="0 0 1" stiffness="1000"/>{BOX}</body>
  <body pos="8 0 5"><joint type="hinge" axis="0 1 0" limited="true" range="0 1"/>
    <geom type="box" size=".1 .1 .1" pos="-.5 0 0" mass="1"/></body>
  <body pos="10 0 .2"><freejoint/>{BOX}
    <body pos="0 0 .2"><joint type="hinge" axis="0 1 0" stiffness="20"/>
      <geom type="capsule" size=".02" fromto="0 0 0 0 0 .3" mass=".2"/></body></body>
  {{can}}
</worldbody></mujoco>"""

CAN = '<body pos="12 0 .06"><freejoint/><geom type="cylinder" size=".05 .06" mass=".4"/></body>'


def moving(slow=1.0, can=CAN):
    """slow: of what turns on the ground, so that it moves between the two ends of (1 + s) a."""
    scene = coulomb.Scene()
    scene.add_mjcf(SCENE.format(can=can))
    model = scene.build().with_parameters({"timestep": 2e-3})
    q = model.neutral()[0]
    v = np.r_[
        [1, 0.5, 0, 0, 0, slow],
        [1, 0, 2, 20, 25, 10],
        [1, 0, 0, 0, 3 * slow, 4 * slow],
        1,
        0.0,
        [0.8, 0.3, 0, 0, 0, 0.2 * slow, 1.5],
        [0.3, 0.2, 0, 0, 0, 5 * slow] if can else [],
    ]
    return model, q, v


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
def test_every_rule_against_differences(contact):
    # The points of a cap that turns on a pyramid of friction are a kink.
    model, q, v = moving(can=CAN if contact == "ncp" else "")
    columns, flagged, sim = compare(
        model,
        q,
        v,
        np.zeros(0),
        np.zeros(model.nv),
        np.random.default_rng(0),
        contact=contact,
        continuous_collision=True,
    )
    assert not flagged and not sim.impacts
    assert not [column for column in columns if column.wrong]
    assert sum(column.known for column in columns) > 60


def rolling_state(seed):
    """A few steps of a ball, a can on its rim and a spinning coin: what is held, hops and turns."""
    random = np.random.default_rng(seed)
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5, restitution=0.0)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1), name="ball")
    tilt = 0.3
    height = 0.06 * np.cos(tilt) + 0.05 * np.sin(tilt)
    turned = (np.cos(tilt / 2), np.sin(tilt / 2), 0, 0)
    scene.add_cylinder(0.05, 0.12, mass=0.4, position=(1, 0, height), quaternion=turned, name="can")
    scene.add_ellipsoid((0.1, 0.06, 0.04), mass=1.0, position=(2, 0, 0.04), name="ellipsoid")
    model = scene.build().with_parameters({"timestep": 2e-3})
    v = np.r_[1, 0, 0, 0, 5, 20, random.normal(size=3) * 0.1, 1, 0, 8, 0.5, 0, 0, 0, 10, 1.0] + 0.1 * random.normal(
        size=18
    )
    v[[2, 8, 14]] = 0
    sim = coulomb.Simulator(model, continuous_collision=True)
    q = model.neutral()[0]
    for _ in range(3 + seed):
        q, v = sim.step(q, v)
    return model, q, v, sim.memory


@pytest.mark.parametrize("seed", range(4))
def test_what_rolls_and_wobbles_against_differences(seed):
    model, q, v, memory = rolling_state(seed)
    columns, flagged, _ = compare(
        model, q, v, np.zeros(0), np.zeros(18), np.random.default_rng(seed), memory=memory, continuous_collision=True
    )
    assert flagged or not [column for column in columns if column.wrong]
    assert sum(column.known for column in columns) > 20


def rattling_states(seed):
    """Steps of a coin that wobbles nearly flat, with more impacts than half of max_impacts: there the points of its rim stop."""
    random = np.random.default_rng(seed)
    radius = 10 ** random.uniform(-2, -1)
    height = radius * random.uniform(0.05, 0.6)
    tilt = 10 ** random.uniform(-2, -0.3)
    place = (0, 0, height / 2 * np.cos(tilt) + radius * np.sin(tilt))
    turned = (np.cos(tilt / 2), np.sin(tilt / 2), 0, 0)
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    scene.add_cylinder(radius, height, mass=0.1, position=place, quaternion=turned, friction=0.5, name="coin")
    model = scene.build().with_parameters({"timestep": 0.01})
    v = np.r_[random.uniform(-0.1, 0.1, 2), 0, random.uniform(-1, 1, 3) * [3, 3, 40]]
    sim = coulomb.Simulator(model, continuous_collision=True)
    q = model.neutral()[0]
    states = []
    for _ in range(50):
        memory = sim.memory
        q_next, v_next = sim.step(q, v)
        if len(sim.impacts) > 17:
            states.append((q, v, memory))
        q, v = q_next, v_next
    return model, states


def test_what_rattles_against_differences():
    checked = 0
    for seed in range(12):
        model, states = rattling_states(seed)
        for q, v, memory in states[:2]:
            columns, flagged, _ = compare(
                model,
                q,
                v,
                np.zeros(0),
                np.zeros(6),
                np.random.default_rng(0),
                memory=memory,
                continuous_collision=True,
            )
            assert flagged or not [column for column in columns if column.wrong]
            checked += 0 if flagged else sum(column.known for column in columns)
    assert checked > 50


@pytest.mark.parametrize("slow", [1.0, 1e-4])
def test_reverse_is_the_adjoint_of_forward(slow):
    """At 1e-4 of the speed the blend of (1 + s) a is half way."""
    model, q, v = moving(slow)
    random = np.random.default_rng(1)
    sim = coulomb.Simulator(model, continuous_collision=True)
    sim.step(q, v)
    names = ["timestep", "gravity"]
    names += [name for name in model.parameters() if name.startswith(("mass/", "joint_stiffness/"))]
    forward = sim.derivatives(names)
    bar = random.normal(size=(2, model.nv))
    back = sim.vjp(bar[0], bar[1], names)
    bar = bar.reshape(-1)
    columns = np.c_[np.r_[forward.dq_dq, forward.dv_dq], np.r_[forward.dq_dv, forward.dv_dv]]
    assert np.r_[back.q, back.v] == pytest.approx(bar @ columns, rel=1e-10, abs=1e-10)
    for name in names:
        assert back[name] == pytest.approx(bar @ forward[name].reshape(2 * model.nv, -1), rel=1e-10, abs=1e-10), name


@pytest.mark.parametrize("slow", [1e-3, 1e-4])
def test_between_sliding_and_turning(slow):
    """Where turning bodies go over to the end's velocity: central differences by v, of all rows."""
    model, q, v = moving(slow)
    sim = coulomb.Simulator(model, continuous_collision=True)
    sim.step(q, v)
    jacobian = sim.derivatives()
    sim.freeze_memory(True)
    step = 3e-8

    def end(x):
        q1, v1 = sim.step(q, v + x)
        return np.r_[q1[:3], q1[14:17], v1]

    end(np.zeros(model.nv))
    rows = np.r_[0:3, 12:15]
    for d in [0, 1, 5, 12, 16, 17]:
        x = np.zeros(model.nv)
        x[d] = step
        difference = (end(x) - end(-x)) / (2 * step)
        exact = np.r_[jacobian.dq_dv[rows, d], jacobian.dv_dv[:, d]]
        assert difference == pytest.approx(exact, abs=1e-6), d


def test_bodies_of_one_island_share_how_they_turn():
    """Two boxes that slide on each other and turn about as slowly as (I13) blends: each feels the other's angular velocity."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    for k in range(2):
        scene.add_box((0.2, 0.2, 0.1), mass=1 + k, position=(0.02 * k, 0, 0.05 + 0.1 * k), friction=0.4, name=f"box{k}")
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=2e-3, continuous_collision=True)
    q, v = model.neutral()
    v[[0, 6, 5, 11]] = 0.5, 1.0, 8e-4, 1.1e-3
    for _ in range(4):
        q, v = sim.step(q, v)
    v[[5, 11]] += 9e-4, -5e-4

    # Against differences, and reverse against forward.
    check = coulomb.check_gradients(sim, q, v)
    compared = int(re.search(r"(\d+) of 36 columns compared, agree", str(check))[1])
    assert compared >= 30
    sim.step(q, v)
    weights = np.random.default_rng(0).normal(size=(2, model.nv))
    reverse = sim.vjp(*weights)
    forward = sim.derivatives().A.T @ weights.ravel()
    assert np.abs(np.concatenate([reverse.q, reverse.v]) - forward).max() < 1e-11 * np.abs(forward).max()
