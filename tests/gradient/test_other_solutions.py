"""Where friction can wedge, a step may have several solutions, and its memory chooses: `ambiguous` says so."""

import numpy as np
import pytest

import coulomb

SAME = 1e-6  # m/s, rad/s: memories that change a velocity by no more need no word
RADIUS = 0.03


def gripper(friction, mass=0.2, shape="sphere"):
    """An object on the ground between two pads on slides, which just touch it."""
    size = RADIUS if shape == "sphere" else f"{RADIUS} {RADIUS} {RADIUS}"
    pads = "".join(
        f'<body pos="{side * (RADIUS + 0.01)} 0 {RADIUS}"><joint type="slide" axis="{-side} 0 0"/>'
        f'<geom type="box" size=".01 .02 .02" mass=".2" friction="{friction} 0 0"/></body>'
        for side in (1, -1)
    )
    return coulomb.load(
        '<mujoco><option timestep="0.001"/><default><geom condim="3"/></default><worldbody>'
        f'<geom type="plane" size="1 1 1" friction="{friction} 0 0"/>{pads}<body pos="0 0 {RADIUS}"><freejoint/>'
        f'<geom type="{shape}" size="{size}" mass="{mass}" friction="{friction} 0 0"/></body></worldbody></mujoco>'
    )


def steps_from_memories(model, v, tau, random, count=4, **options):
    """(v, ambiguous) of the same step, without memory and from that of other steps."""
    q = model.neutral()[0]
    ends = []
    for k in range(count):
        sim = coulomb.Simulator(model, **options)
        if k > 0:
            sim.step(q, random.normal(size=model.nv) * 0.5, tau=tau)
        v_next = sim.step(q, v, tau=tau)[1]
        if sim.status.converged:
            ends.append((v_next, sim.derivatives().ambiguous))
    return ends


def pushed(seed):
    """A gripper whose object moves, and what pushes the pads."""
    random = np.random.default_rng(seed)
    model = gripper(random.choice([1.0, 1.5, 2.0]), random.uniform(0.05, 1))
    v, tau = np.zeros(model.nv), np.zeros(model.nv)
    v[2:] = random.normal(size=6) * 0.3
    tau[:2] = random.uniform(1, 300, 2)
    return model, v, tau, random


def test_memory_chooses_between_solutions_only_where_it_is_said():
    found = 0
    for seed in range(300):
        ends = steps_from_memories(*pushed(seed))
        chosen = max(np.abs(v - ends[0][0]).max() for v, _ in ends) > SAME
        found += chosen
        assert not chosen or all(ambiguous for _, ambiguous in ends), seed
    assert found >= 3


@pytest.mark.parametrize("speed", [0.0, 0.3])
def test_what_has_one_solution_is_not_flagged(speed):
    """A box on the ground: nothing holds it from the other side."""
    scene = coulomb.Scene()
    scene.add_ground(friction=2.0)
    scene.add_box((0.1, 0.1, 0.1), mass=1.0, position=(0, 0, 0.05 - 1e-5), friction=2.0)
    model = scene.build()
    v = np.array([speed, 0.1 * speed, 0, 0, 0, 0])
    random = np.random.default_rng(0)
    assert not any(ambiguous for _, ambiguous in steps_from_memories(model, v, np.zeros(6), random))


def test_a_stack_at_rest_has_one_solution():
    """Held from both sides, and still: friction carries nothing that another solution could release."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.8)
    for k in range(3):
        scene.add_box((0.2 - 0.02 * k, 0.2 - 0.02 * k, 0.1), mass=1.0, position=(0, 0, 0.05 + 0.1 * k), friction=0.8)
    model = scene.build()
    random = np.random.default_rng(0)
    ends = steps_from_memories(model, np.zeros(model.nv), np.zeros(model.nv), random)
    assert not any(ambiguous for _, ambiguous in ends)
    assert max(np.abs(v - ends[0][0]).max() for v, _ in ends) <= SAME
