"""Constraints that no velocity satisfies: the step is relaxed, names them, stays finite, and the rest of the scene does not notice."""

import numpy as np
import pytest

import coulomb


def between_walls(balls=1):
    """Each ball is as deep in the wall on its left as in the one on its right."""
    scene = coulomb.Scene()
    for i in range(balls):
        for name, side in (("left", -1), ("right", 1)):
            scene.add_box((1, 1, 1), fixed=True, position=(side * 0.59, 3 * i, 0), friction=0.5, name=f"{name}{i}")
        scene.add_sphere(0.1, mass=1.0, position=(0, 3 * i, 0), friction=0.5, name=f"ball{i}")
    return scene.build()


def first_step(model, **options):
    sim = coulomb.Simulator(model, timestep=2e-3, **options)
    q, v = sim.step(*model.neutral())
    assert np.isfinite(q).all() and np.isfinite(v).all()
    return sim, q, v


def words(*names):
    """A contact's name has its geometries in the order of the model's pairs."""
    return lambda told: all(name in told for name in names)


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
def test_a_ball_between_two_walls(contact):
    sim, q, v = first_step(between_walls(), contact=contact)
    status = sim.status
    assert not status.converged and not status
    assert status.relaxation > 0 and status.residual <= 1e-10 < status.exact_residual
    assert len(status.contradictions) == 2
    assert any(map(words("left0", " on ", "ball0"), status.contradictions))
    assert any(map(words("right0", " on ", "ball0"), status.contradictions))
    listed = ", ".join(status.contradictions)
    assert status.reason == f"relaxed: the constraints contradict one another: {listed}"
    assert abs(v[0]) < 1e-6 and np.isfinite(sim.derivatives().A).all()


def test_at_most_five_are_named_and_the_others_counted():
    sim, _, _ = first_step(between_walls(balls=4))
    assert len(sim.status.contradictions) == 8
    assert sim.status.reason.endswith(", ".join(sim.status.contradictions[:5]) + " and 3 more")


HINGES = """<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody>
<body name="a"><joint name="first" axis="0 1 0" limited="true" range="{0}"/><geom size=".1" mass="1"/></body>
<body name="b" pos="1 0 0"><joint name="second" axis="0 1 0" limited="true" range="{1}"/><geom size=".1" mass="1"/></body>
</worldbody><equality>{2}</equality></mujoco>"""


def test_two_joint_limits_that_exclude_one_another():
    equality = '<joint name="alike" joint1="first" joint2="second"/>'
    sim, _, _ = first_step(coulomb.load(HINGES.format(".1 1", "-1 -.1", equality)))
    assert sorted(sim.status.contradictions) == [
        "equality alike",
        "joint first at its lower limit",
        "joint second at its upper limit",
    ]
    assert sim.status.reason.startswith("relaxed: ")


def test_a_weld_against_a_limit():
    """The slide is to be at 0.1 at least, the weld holds it where it is, at 0."""
    model = coulomb.load(
        """<mujoco><option gravity="0 0 0"/><worldbody>
        <body name="cart"><joint name="rail" type="slide" axis="1 0 0" limited="true" range=".1 1"/>
        <geom size=".1" mass="1"/></body></worldbody>
        <equality><weld name="hook" body1="cart"/></equality></mujoco>"""
    )
    sim = coulomb.Simulator(model, timestep=2e-3)
    _, v = sim.step(np.zeros(1), np.zeros(1))
    assert sorted(sim.status.contradictions) == ["joint rail at its lower limit", "weld hook"]
    assert 0 < v[0] < 1  # both give way


def test_what_can_be_satisfied_is_not_named():
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.09), friction=0.5)
    sim, _, _ = first_step(scene.build())
    assert sim.status.converged and sim.status.reason == "solved" and sim.status.contradictions == []
    assert sim.status.exact_residual <= 1e-7 and sim.status.relaxation == 0


def four_bar(turn, place, gravity):
    """A planar loop, turned in space: its third row asks for what rounding leaves, and nothing moves it."""
    turn, place, gravity = (" ".join(map(repr, vector)) for vector in (turn, place, gravity))
    return coulomb.load(
        f"""<mujoco><option gravity="{gravity}"/>
        <default><geom type="capsule" size=".02" mass="1" contype="0" conaffinity="0"/></default>
        <worldbody><body pos="{place}" quat="{turn}">
        <body><joint type="hinge" axis="0 1 0"/><geom fromto="0 0 0 0 0 .3"/>
        <body name="bar" pos="0 0 .3"><joint type="hinge" axis="0 1 0"/><geom fromto="0 0 0 .5 0 .1"/></body></body>
        <body name="right" pos=".5 0 0"><joint type="hinge" axis="0 1 0"/><geom fromto="0 0 0 0 0 .4"/></body>
        </body></worldbody>
        <equality><connect name="pin" body1="bar" body2="right" anchor=".5 0 .1"/></equality></mujoco>"""
    )


TURNS = [(1.0, 0.0, 0.0, 0.0), (0.9, 0.1, -0.3, 0.2), (0.3, 0.7, 0.2, -0.6), (-0.2, 0.4, 0.8, 0.4)]


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize("gravity", [(0.0, 0.0, 0.0), (0.0, 0.0, -9.81)], ids=["floating", "falling"])
@pytest.mark.parametrize("place", [(0.0, 0.0, 0.0), (7.0, -3.0, 2.0)], ids=["near", "away"])
@pytest.mark.parametrize("turn", TURNS)
def test_rounding_is_no_contradiction(turn, place, gravity, contact):
    model = four_bar(turn, place, gravity)
    sim = coulomb.Simulator(model, timestep=1e-3, contact=contact)
    q, v = model.neutral()
    for _ in range(50):
        q, v = sim.step(q, v)
        assert sim.status.reason == "solved" and sim.status.contradictions == []
    assert any(gravity) or np.abs(v).max() <= 1e-11


def two_places_for_one_hinge(lacking):
    return coulomb.load(
        f"""<mujoco><option gravity="0 0 0"/><worldbody>
        <body><joint name="arm" type="hinge" axis="0 1 0"/><geom size=".1" pos=".3 0 0" mass="1"/></body></worldbody>
        <equality><joint name="here" joint1="arm" polycoef="0 0 0 0 0"/>
        <joint name="there" joint1="arm" polycoef="{lacking} 0 0 0 0"/></equality></mujoco>"""
    )


@pytest.mark.parametrize("lacking", [1e-2, 1e-4, 1e-8, 1e-10])
def test_slow_contradictions_are_still_named(lacking):
    sim, _, _ = first_step(two_places_for_one_hinge(lacking))
    assert not sim.status.converged
    assert sorted(sim.status.contradictions) == ["equality here", "equality there"]


def test_between_rounding_and_contradiction_is_no_third():
    """Whatever lacks too little to be named is solved, and nothing else is said of any."""
    named = []
    for lacking in np.geomspace(1e-13, 1e-9, 41):
        sim, _, _ = first_step(two_places_for_one_hinge(lacking))
        reason = sim.status.reason
        assert reason == "solved" or reason.startswith("relaxed: the constraints contradict one another: equality")
        named.append(not sim.status.converged)
    assert named == sorted(named) and not named[0] and named[-1]


def test_the_next_step_forgets():
    """Contradictions are of the last step, not of all so far."""
    model = between_walls()
    sim, _, _ = first_step(model)
    assert sim.status.contradictions
    q, v = model.neutral()
    q[2] = 10
    sim.step(q, v)
    assert sim.status.converged and sim.status.contradictions == []


def test_split_steps_name_them_too():
    sim, _, _ = first_step(between_walls(), continuous_collision=True)
    assert sim.status.converged == (sim.status.contradictions == [])


def test_batches():
    model = between_walls()
    batch = coulomb.BatchSimulator(model, 2, timestep=2e-3)
    q, v = model.neutral()
    free = q.copy()
    free[2] = 10
    batch.step(np.array([q, free]), np.array([v, v]))
    status = batch.status
    assert list(status.converged) == [False, True]
    assert len(status.contradictions[0]) == 2 and status.contradictions[1] == []
    assert status.contradictions[0][0] in status.reason[0] and status.reason[1] == "solved"
    assert status.exact_residual.shape == (2,) and status.exact_residual[0] > 1e-6


def test_rollouts():
    model = between_walls()
    sim = coulomb.Simulator(model, timestep=2e-3)
    rollout = sim.rollout(*model.neutral(), np.zeros((3, 0)))
    assert not rollout.converged and len(rollout.status[0].contradictions) == 2
