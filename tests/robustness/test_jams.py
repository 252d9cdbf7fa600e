"""Contacts that friction jams: told always, against an enumeration of all modes (scenes/jams.py), and cheap."""

from itertools import product

import numpy as np
import pytest

import coulomb
from scenes import robots
from scenes.jams import ball_between_planes, ball_on_slides, has_solution, random_wedge

SOLVED = 1e-4  # of the problem's scale: an exact residual above it is never called solved
MISSED = 0.05  # of the wedges that have a solution: where it is not found, the reason does not say that there is none


def test_the_status_of_random_wedges():
    """Without names: a contact problem by itself."""
    missed = solvable = jammed = 0
    for dofs, contacts, seed in product((2, 3), (1, 2, 3), range(30)):
        wedge = random_wedge(np.random.default_rng([dofs, contacts, seed]), dofs, contacts)
        truth = has_solution(wedge)
        if truth is None:
            continue
        solution = coulomb.ContactProblem(*wedge.matrices).solve()
        case = dofs, contacts, seed
        assert solution.status in ("solved", "relaxed"), case
        if not truth:
            assert solution.status == "relaxed", case
            largest = np.abs(wedge.matrices[1]).max() / np.diag(wedge.matrices[0]).min()
            assert np.abs(solution.impulse).max() < 1e4 * largest, case
        jammed += not truth
        solvable += truth
        missed += truth and solution.status != "solved"
    assert solvable >= 50 and jammed >= 50
    assert missed <= MISSED * solvable


def test_balls_in_corners():
    """Steps: with names, cold and from memory."""
    missed = solvable = jammed = 0
    for dofs, contacts, seed in product((2, 3), (1, 2, 3), range(20)):
        model, q, v, wedge = ball_between_planes(np.random.default_rng([7, dofs, contacts, seed]), dofs, contacts)
        truth = has_solution(wedge)
        if truth is None:
            continue
        sim = coulomb.Simulator(model, timestep=2e-3)
        for _ in range(2):
            sim.step(q, v)
            status = sim.status
            assert len(sim.contacts) == contacts
            assert status.converged == (status.exact_residual <= SOLVED), (dofs, contacts, seed)
            assert truth or not status.converged, (dofs, contacts, seed)
            if not status.converged:
                check_told(status)
                assert not (truth and "contradict" in status.reason), (dofs, contacts, seed)
        jammed += not truth
        solvable += truth
        missed += truth and not status.converged
    assert solvable >= 30 and jammed >= 10
    assert missed <= MISSED * solvable


def check_told(status):
    """By a reason that is true of what is known, with names of contacts."""
    reasons = ("friction jams: ", "no solution was found: ", "the constraints contradict one another: ")
    assert status.reason.startswith(tuple("relaxed: " + reason for reason in reasons))
    names = status.contradictions or status.unsolved
    assert names and all(" on " in name for name in names)
    assert status.relaxation > 0


SLIDES = [(0.66, 0.38, 0.65), (0.01, 0.08, 1)]
NORMALS = [(0.27, 0.95, -0.15), (0.95, -0.11, -0.3)]


def ball_in_a_corner(friction=0.92, depth=3.4e-3):
    """On two slides between two planes: (model, q, v), at rest without gravity."""
    axes, normals = (np.array(rows) / np.linalg.norm(rows, axis=1)[:, None] for rows in (SLIDES, NORMALS))
    return coulomb.load(ball_on_slides(axes, normals, [depth, depth], friction))


def test_a_ball_in_a_corner():
    model = ball_in_a_corner()
    sim = coulomb.Simulator(model, timestep=2e-3)
    for _ in range(2):
        sim.step(*model.neutral())
        assert sim.status.reason.startswith("relaxed: friction jams: ")
        assert len(sim.status.contradictions) == 2 and sim.status.unsolved == []
        assert max(np.abs(c.impulse).max() for c in sim.contacts) < 1e3
        assert np.abs(sim.derivatives().A).max() < 1e3
    assert sim.status.exact_residual > SOLVED


def test_what_jams_costs_little():
    """Factors, ten times as many at most as where less friction lets the balls out."""

    def factors(jammed):
        taken = []
        for seed in range(60):
            model, q, v, wedge = ball_between_planes(np.random.default_rng([9, seed]), 2 + seed % 2, 1 + seed % 3)
            sim = coulomb.Simulator(model, timestep=2e-3)
            sim.step(q, v)
            if sim.status.converged != jammed:
                taken.append(sim.status.iterations)
        assert len(taken) >= 10
        return np.mean(taken)

    assert factors(jammed=True) <= 10 * factors(jammed=False)


def test_a_contradiction_that_stays_costs_no_more_than_a_solved_step():
    """From memory: the impulses that give way, and what proves it."""
    scene = coulomb.Scene()
    for side, name in ((-1, "left"), (1, "right")):
        scene.add_box((1, 1, 1), fixed=True, position=(side * 0.59, 0, 0), friction=0.5, name=name)
    scene.add_sphere(0.1, mass=1.0, friction=0.5, name="ball")
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=2e-3)
    q, v = model.neutral()
    for k in range(10):
        q, v = sim.step(q, v)
        assert sim.status.reason == "relaxed: the constraints contradict one another: left on ball, right on ball"
        assert sim.status.iterations <= 6 or k == 0
    _, cold = coulomb.Simulator(model, timestep=2e-3).step(q, v)
    _, warm = sim.step(q, v)
    np.testing.assert_allclose(warm, cold, rtol=0, atol=1e-10)


def reason_of(sim):
    """Without names and numbers."""
    status = sim.status
    return "solved" if status.converged else ": ".join(status.reason.split(": ")[:2])


def after_neighbours(model, q, v, random, **options):
    """What a step from (q, v) says after steps from states beside it, of the same simulator."""
    sim = coulomb.Simulator(model, timestep=2e-3, **options)
    for size in (1e-3, 2e-3):
        sim.step(q + size * random.normal(size=model.nv), v + 0.3 * random.normal(size=model.nv))
    sim.step(q, v)
    return reason_of(sim)


@pytest.mark.parametrize("solver", ["auto", "ac_lm", "admm"])
def test_what_is_not_solved_is_judged_without_memory(solver):
    """What a start from nothing solves is solved from any memory, and memory changes no reason."""
    random = np.random.default_rng(12)
    looked = unsolved = 0
    for dofs, contacts, seed in product((2, 3), (2, 3), range(60)):
        model, q, v, _ = ball_between_planes(np.random.default_rng([31, dofs, contacts, seed]), dofs, contacts)
        sim = coulomb.Simulator(model, timestep=2e-3, solver=solver)
        sim.step(q, v)
        cold = reason_of(sim)
        for _ in range(4):
            warm = after_neighbours(model, q, v, random, solver=solver)
            assert warm in ("solved", cold), (dofs, contacts, seed)
            looked += 1
            unsolved += warm != "solved"
    assert looked >= 900 and unsolved >= 100


def test_a_jam_from_memory_costs_what_it_costs_without():
    """Impulses that gave way are no start: from the second step on nothing is tried twice."""
    jams = 0
    for seed in range(60):
        model, q, v, _ = ball_between_planes(np.random.default_rng([9, seed]), 2 + seed % 2, 1 + seed % 3)
        sim = coulomb.Simulator(model, timestep=2e-3)
        sim.step(q, v)
        if "friction jams" not in sim.status.reason:
            continue
        cold = sim.status.iterations
        sim.step(q, v)
        assert sim.status.iterations == cold, seed
        jams += 1
    assert jams >= 10


@pytest.mark.skipif("atlas" not in robots.NAMES, reason="needs a folder of robots with atlas")
@pytest.mark.parametrize("state", [32, 44])
def test_a_robot_folded_on_itself(state):
    model, q, v = robots.load("atlas")
    sim = coulomb.Simulator(model, timestep=2e-3)
    sim.step(q[state], v[state])
    assert not sim.status.converged and sim.status.exact_residual > SOLVED
    assert sim.status.contradictions or sim.status.unsolved or sim.status.badly_scaled
