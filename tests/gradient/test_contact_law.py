"""Every contact of a step obeys Coulomb's law with no compliance: the nonlinear complementarity conditions, from sim.contacts alone."""

import numpy as np
import pytest

import coulomb
from scenes import robots
from scenes.contacts import CONTACT_SCENES

TOLERANCE = 1e-8


def violations(sim, approach, restitution=0.0):
    """Largest violation of each condition, relative to the largest impulse and to the largest speed around.

    approach: function from a contact to the normal speed its law aims at (velocity + bias >= 0).
    """
    contacts = sim.contacts
    impulse_scale = max(np.linalg.norm(c.impulse) for c in contacts)
    speed_scale = max(1.0, max(np.linalg.norm(c.velocity) for c in contacts))
    worst = {
        "cone": 0.0,
        "pushes": 0.0,
        "no approach": 0.0,
        "complementary": 0.0,
        "opposes the slip": 0.0,
        "sticks": 0.0,
    }

    def note(name, value):
        worst[name] = max(worst[name], float(value))

    for c in contacts:
        force_n, speed_n = c.impulse @ c.normal, c.velocity @ c.normal + approach(c)
        force_t, slip = c.impulse - force_n * c.normal, c.velocity - (c.velocity @ c.normal) * c.normal
        limit = c.friction * force_n
        note("cone", (np.linalg.norm(force_t) - limit) / impulse_scale)
        note("pushes", -force_n / impulse_scale)
        note("no approach", -speed_n / speed_scale)
        note("complementary", abs(force_n * speed_n) / impulse_scale / speed_scale)
        # Maximal dissipation: limit |slip| + force_t . slip = 0 holds for rest and for slip.
        note("opposes the slip", abs(limit * np.linalg.norm(slip) + force_t @ slip) / impulse_scale / speed_scale)
        inside = limit - np.linalg.norm(force_t) > 1e-4 * impulse_scale
        note("sticks", np.linalg.norm(slip) / speed_scale if inside and c.mode == "sticking" else 0.0)
    return worst


def speculative(sim):
    """With baumgarte = 0: a contact at a distance may close it within the step, one that penetrates may not approach."""
    return lambda c: max(0.0, -c.depth) / sim.timestep


@pytest.mark.parametrize("seed", [0, 2, 3])
@pytest.mark.parametrize("build", [f for f in CONTACT_SCENES if f.__name__ != "bounce"], ids=lambda f: f.__name__)
def test_contacts_of_scenes(build, seed):
    model, q, v = build(np.random.default_rng(seed))
    sim = coulomb.Simulator(model, timestep=2e-3, baumgarte=0)
    for _ in range(5):
        q, v = sim.step(q, v)
        assert sim.status.converged, sim.status
        if sim.contacts and max(np.linalg.norm(c.impulse) for c in sim.contacts) > 0:
            worst = violations(sim, speculative(sim))
            assert max(worst.values()) <= TOLERANCE, worst


def test_contacts_that_bounce():
    build = next(f for f in CONTACT_SCENES if f.__name__ == "bounce")
    model, q, v = build(np.random.default_rng(0))
    sim = coulomb.Simulator(model, timestep=2e-3, baumgarte=0)
    before = [v[2], v[8], v[14]]
    sim.step(q, v)
    assert sim.status.converged and len(sim.contacts) == 3
    speeds = {c.body_a if c.body_b == "world" else c.body_b: before[i] for i, c in enumerate(sim.contacts)}
    worst = violations(sim, lambda c: 0.8 * speeds[c.body_a if c.body_b == "world" else c.body_b])
    assert max(worst.values()) <= TOLERANCE, worst


@pytest.mark.parametrize("name", robots.NAMES)
def test_contacts_of_robots(name):
    model, qs, vs = robots.load(name)
    sim = coulomb.Simulator(model, baumgarte=0)
    for k in range(0, len(qs), 6):
        sim.reset()
        sim.step(qs[k], vs[k])
        assert sim.status.converged, f"state {k}: {sim.status}"
        if not sim.contacts or max(np.linalg.norm(c.impulse) for c in sim.contacts) == 0:
            continue
        worst = violations(sim, speculative(sim))
        assert max(worst.values()) <= TOLERANCE, f"state {k}: {worst}"
