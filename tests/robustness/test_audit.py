"""The short form of `make audit` (tools/audit.py): some seeds of every kind of scene, and rules that see what they are for.

A finding names its trial: python tools/audit.py --kind KIND --law LAW --seed SEED.
"""

import copy
import sys
from pathlib import Path

import numpy as np
import pytest

import coulomb

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import auditing  # noqa: E402, F401
from auditing import comparison_rules, run_rules  # noqa: E402
from auditing.drafts import Draft, Shape, View, about, build  # noqa: E402
from auditing.measures import RULES  # noqa: E402
from auditing.trials import KINDS, Trial, laws_of  # noqa: E402

#: Every law with a seed of its own, so that more scenes are seen; odd ones are turned as a whole.
SEEDS = {"ncp": 1000, "lcp": 1001, "split": 1002, "soft": 1003, "penalty": 1004, "bdf1": 1012, "bdf2": 1010}


@pytest.mark.parametrize("kind, law", [(kind, law) for kind in KINDS for law in laws_of(kind)])
def test_a_short_audit_finds_nothing(kind, law):
    trial = Trial(kind, law, SEEDS[law])
    measures = {name: function(trial) for name, (function, _) in RULES.items()}
    assert measures["finite"] is not None
    broken = [f"{name}: {m.value:.3g} > {m.bound:.3g} ({m.note})" for name, m in measures.items() if m and m.broken]
    assert not broken, [trial.command, *broken]


def planted(kind, law="ncp", seed=1000, **options):
    """A trial whose steps take other options than its law has: a fault that rules have to see."""
    trial = Trial(kind, law, seed)
    plain = trial.simulator
    trial.simulator = lambda built=None, timestep=None, **more: plain(built, timestep, **{**options, **more})
    return trial


@pytest.mark.parametrize(
    "kind, law, seed, rule",
    [
        ("heaps", "penalty", 22, "energy"),  # a step whose best iterate had 1e4 m/s, judged by its own large forces
        ("hands", "penalty", 16, "derivative"),  # equal faces on each other
        ("hands", "bdf2", 24, "derivative"),
        ("hands", "ncp", 20, "memory"),  # floor and wall with friction 1: at the border of wedging, two solutions
        ("hands", "split", 20, "memory"),
    ],
)
def test_mended_findings_hold(kind, law, seed, rule):
    function, _ = RULES[rule]
    measure = function(Trial(kind, law, seed))
    assert measure is not None and not measure.broken, measure


def test_explicit_gyroscopic_torque_is_seen_by_the_spin():
    assert any(run_rules.untouched(planted("thrown", seed=s, gyroscopic="explicit")).broken for s in range(1000, 1004))


def test_corrections_without_bound_are_seen():
    seeds = range(1000, 1006)
    assert any(
        run_rules.energy(planted("overlaps", seed=s, baumgarte=1.0, max_correction_speed=1e3)).broken for s in seeds
    )


def test_a_stalled_solver_is_seen_by_the_statuses():
    trials = [planted("heaps", seed=s, solver="pgs", max_iterations=2) for s in range(1000, 1004)]
    assert any(run_rules.unsolved(trial).broken for trial in trials)


@pytest.mark.parametrize("law", ["ncp", "bdf1", "bdf2"])
def test_an_error_that_smaller_steps_keep_is_seen_by_the_order(law):
    trial = Trial("pendulums", law, 1000)
    assert not comparison_rules.order(trial).broken
    run, calls = trial.run, []

    def off(*arguments):
        record = run(*arguments)
        calls.append(len(calls))
        record.q[-1] += 1e-2 * (-1) ** len(calls)
        return record

    trial.run = off
    assert comparison_rules.order(trial).broken


def test_a_velocity_off_by_one_part_in_a_billion_is_seen():
    trial = Trial("near_misses", "ncp", 1000)
    trial.record.v[-1] *= 1 + 1e-9
    assert run_rules.untouched(trial).broken


def test_company_that_is_near_is_seen(monkeypatch):
    monkeypatch.setattr(comparison_rules, "FAR", 0.1)
    assert any(comparison_rules.bits(Trial("heaps", "ncp", s)).broken for s in range(1000, 1004))


def test_a_field_that_turns_by_a_thousandth_is_seen():
    trial = Trial("rolling", "ncp", 1003)
    tilted = copy.deepcopy(trial.draft)
    tilted.gravity = (0.01, 0.0, -9.81)
    assert not comparison_rules.symmetry(trial).broken
    plain = trial.built
    trial.build = lambda view=None: build(tilted, view)
    assert comparison_rules.symmetry(trial).broken and trial.built is plain


@pytest.mark.parametrize("law", ["ncp", "split"])
def test_a_step_without_force_is_seen_by_the_flicker(law):
    trial = Trial("balls_on_balls", law, 1000)
    assert not run_rules.flicker(trial).broken
    force = [sum(c.impulse @ c.normal for c in contacts) for contacts in trial.record.contacts]
    trial.record.contacts[int(np.argsort(force)[-100])] = []
    assert run_rules.flicker(trial).broken


def test_impulses_that_leave_the_cone_are_seen():
    class Contact:
        geometry_a, geometry_b, friction, depth = "a", "b", 0.5, 0.0
        normal, impulse, velocity = np.array([0, 0, 1.0]), np.array([0.6, 0, 1.0]), np.zeros(3)

    error, words = run_rules._law_error([Contact()], 1e-3, False, 1e-12)
    assert error > 0.05 and "leaves the cone" in words
    Contact.impulse, Contact.velocity = np.array([0.5, 0, 1.0]), np.array([1.0, 0, 0])
    assert run_rules._law_error([Contact()], 1e-3, False, 1e-12)[0] > 0.4  # friction that drives
    Contact.impulse, Contact.velocity = np.array([0, 0, 1.0]), np.array([0, 0, 1.0])
    assert "pushes what parts" in run_rules._law_error([Contact()], 1e-3, False, 1e-12)[1]
    Contact.impulse, Contact.velocity = np.array([-0.5, 0, 1.0]), np.array([1.0, 0, 0])
    assert run_rules._law_error([Contact()], 1e-3, False, 1e-12)[0] < 1e-12


def test_a_wall_at_a_seam_is_seen_by_the_twin():
    trial = Trial("tiles", "ncp", 1000)
    wall = Shape("box", (0.05, 1, 0.05), (0.3, 0, 0.05), friction=0.0, name="wall")
    trial.draft.fixed = [*trial.draft.twin.fixed, wall]
    trial.draft.bodies[0].velocity = (2.0, 0, 0, 0, 0, 0)
    assert comparison_rules.twin(trial).broken


@pytest.mark.parametrize("mirror", [False, True])
def test_states_of_views_are_the_same_motion(mirror):
    """Free flight of a body that spins, in a turned, moved and mirrored scene."""
    draft = Draft()
    draft.free("box", "box", (0.1, 0.2, 0.05), position=(0.1, 0.2, 3), velocity=(1, 2, 3, 4, 5, 6))
    view = View(mirror, tuple(about((1, 2, 3), 0.7)), (1, -2, 0.5))
    motions = []
    for built in (build(draft), build(draft, view)):
        sim, q, v = coulomb.Simulator(built.model), built.q, built.v
        for _ in range(20):
            q, v = sim.step(q, v)
        motions.append(np.concatenate(built.motion(q, v)))
    assert np.abs(motions[0] - motions[1]).max() < 1e-12
