"""Levels of a solution have labels of their own, and the derivative is that of all of them: forward against differences, reverse as forward."""

from dataclasses import replace

import numpy as np
import pytest
from step_columns import Step, compare

import coulomb
from scenes import robots
from scenes.random_scenes import build


def check(law, seed, least=15):
    """No column of this random scene is wrong, at least so many of those known; and reverse mode says the same, by parameters too."""
    case = build(seed, law)
    random = np.random.default_rng(seed)
    columns, flagged, sim = compare(
        case.model, case.q, case.v, case.u, case.tau, random, parameters=8, memory=case.memory, **case.options
    )
    assert not flagged
    assert not [column for column in columns if column.wrong]
    assert sum(column.known for column in columns) >= least

    names = [str(name) for name in random.permutation(list(case.model.parameters()))[:20]]
    sim.step(case.q, case.v, case.u, tau=case.tau)
    d = sim.derivatives(wrt=names)
    w = random.normal(size=2 * case.model.nv)
    g = sim.vjp(*np.split(w, 2), wrt=names)
    forward = np.r_[w @ d.A, w @ d.B, w @ d.B_tau, np.concatenate([np.ravel(w @ d[name]) for name in names])]
    reverse = np.r_[g.q, g.v, g.u, g.tau, np.concatenate([np.ravel(g[name]) for name in names])]
    assert np.max(np.abs(forward - reverse)) <= 1e-7 * (1 + np.max(np.abs(forward)))


@pytest.mark.parametrize(("law", "seed"), [("hexagon", 177), ("octagon", 57)])
def test_a_pyramid_slides_on_a_side_at_one_level_and_at_a_vertex_at_another(law, seed):
    """Redundant corners of stacked boxes, all pressed to slide by different amounts."""
    check(law, seed)


@pytest.mark.parametrize(("law", "seed"), [("split cone", 24), ("split cone", 269)])
def test_a_level_between_holds_what_the_last_one_does_not(law, seed):
    """Tension that levels build up: contacts stick, and a limit holds, at all levels but the last of four."""
    check(law, seed)


@pytest.mark.parametrize(("law", "seed", "column"), [("cone", 104, 1), ("split cone", 178, 2), ("split cone", 178, 3)])
def test_impulses_that_grow_from_level_to_level(law, seed, column):
    """Equalities that are nearly redundant, solved with seven levels: each has its own right-hand side. Velocities are known to 5e-8 only, and
    bend at 1e-5: differences of one size, where both errors are small."""
    check(law, seed, least=2)
    case = build(seed, law)
    step = Step(case.model, case.q, case.v, case.u, case.tau, case.memory, **case.options)
    A = step.simulator.derivatives().A[:, column]
    ends = [step.along("q", column, size, case.model.nv) for size in (1e-6, -1e-6, 2e-6, -2e-6)]
    differences = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / 12e-6
    assert np.max(np.abs(A)) > 80
    assert differences == pytest.approx(A, abs=1e-4 * np.max(np.abs(A)))


@pytest.mark.skipif(robots.missing("humanoid") is not None, reason="no gymnasium")
def test_a_head_slides_at_a_vertex_at_the_first_level_and_on_a_side_at_the_last():
    """A humanoid that lies on nine points. Level 0 has the head at a vertex of its square, the last one on a side, 2.1e-6 rad from sticking there:
    differences of sizes below that, and no kink so near that it counts."""
    model = coulomb.load(robots.gymnasium_text("humanoid"))
    states = np.load(robots.STATES)
    q, v = states["humanoid.q"][39], states["humanoid.v"][39]
    u = 0.1 * np.random.default_rng(3).normal(size=(robots.NUM_STATES, model.nu))[39]
    sim = coulomb.Simulator(model, contact="lcp")
    sim.step(q, v, u)
    sim.freeze_memory(True)
    sim.step(q, v, u)
    d = sim.derivatives()
    head = sim.contacts[0]
    impulse = head.frame @ head.impulse
    assert (head.mode, head.facet) == ("sliding", 3)
    assert impulse[1] == pytest.approx(head.friction * impulse[2], rel=1e-9)
    assert abs(impulse[0]) < 0.5 * head.friction * impulse[2]
    assert not d.ambiguous

    # Differences of these sizes agree with one another, so that neither rounding nor a kink is in them.
    def differences(size):
        ends = [[sim.step(model.integrate(q, s * e), v, u)[1] for s in (size, -size)] for e in np.eye(model.nv)]
        return np.array([(a - b) / (2 * size) for a, b in ends]).T

    numeric = differences(1.6e-6)
    scale = np.linalg.norm(numeric)
    assert np.linalg.norm(numeric - differences(4e-7)) <= 1e-8 * scale
    assert np.linalg.norm(numeric - d.dv_dq) <= 1e-8 * scale

    # Beyond the border, and still near it, the Jacobian is that of one side.
    sim.step(model.integrate(q, 2.4e-6 * np.eye(model.nv)[4]), v, u)
    assert sim.derivatives().ambiguous


def test_friction_beside_an_island_that_contradicts_itself(monkeypatch):
    """The level that friction acts on first has the compliance of its own island, not that of a ball between walls far away."""

    def derivative(case):
        names = [name for name in case.model.parameters() if name.startswith("friction/")][:5]
        nv = case.model.nv
        sim = coulomb.Simulator(case.model, **case.options)
        sim.step(case.q, case.v, case.u, tau=case.tau)
        derivatives = sim.derivatives(wrt=names)
        return np.array([derivatives[name][nv:, 0] for name in names]), sim.status

    alone = build(197, "cone")
    expected, _ = derivative(alone)

    def build_beside(scene, build_scene=coulomb.Scene.build):
        for side in (-1, 1):
            scene.add_box((0.1, 1, 1), fixed=True, position=(50 + side * 0.145, 0, 50), friction=0.5)
        scene.add_sphere(0.1, mass=1.0, position=(50, 0, 50), friction=0.5)
        return build_scene(scene)

    monkeypatch.setattr(coulomb.Scene, "build", build_beside)
    model = build(197, "cone").model
    q, v = (state.copy() for state in model.neutral())
    q[: alone.model.nq] = alone.q
    v[: alone.model.nv] = alone.v
    tau = np.append(alone.tau, np.zeros(6))
    found, status = derivative(replace(alone, model=model, q=q, v=v, tau=tau))
    assert status.reason.startswith("relaxed")
    assert np.max(np.abs(found[:, : alone.model.nv] - expected)) <= 1e-12
