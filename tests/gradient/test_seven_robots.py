"""Seven robots, sixty recorded states in contact each: the contact law to 1e-9, every block of the Jacobian to 1e-6.

The law to 1e-9 in nine tenths of the states: where two points of one foot are to move at speeds that do not fit together, they slip by
the misfit (docs/conventions.md, what the compliance leaves). By how much the status says: no state violates it by more.

The reference are differences of the same step that know their own error (differences.py). States whose active set changes within the
least of them, +-3e-6, have no two-sided derivative: they are counted and left out. So are blocks that differences know less well than 1e-6.
"""

import numpy as np
import pytest
from differences import TOLERANCE, Blocks, Step
from last_bits import known_to

import coulomb
from scenes import robots
from scenes.wedges import solved_or_proved

LAW = 1e-9
MISFIT = 1e-5


def law_to(sim):
    """What the last step may violate the law by: the residual of the problem without compliance, in another norm."""
    assert sim.status.exact_residual <= MISFIT, sim.status
    return LAW + 10 * sim.status.exact_residual


def contact_law_violation(sim):
    """Largest violation of cone, complementarity and opposed sliding, relative to the largest impulse and speed of the step."""
    contacts = sim.contacts
    if not contacts:
        return 0.0
    lam = np.array([c.impulse for c in contacts])
    vel = np.array([c.velocity for c in contacts])
    n = np.array([c.normal for c in contacts])
    mu = np.array([c.friction for c in contacts])
    ln, vn = np.sum(lam * n, 1), np.sum(vel * n, 1)
    lt, vt = lam - ln[:, None] * n, vel - vn[:, None] * n
    impulse = max(np.abs(lam).max(), 1e-12)
    speed = max(np.abs(vel).max(), 1e-3)
    ltn, vtn = np.linalg.norm(lt, axis=1), np.linalg.norm(vt, axis=1)
    dissipation = np.sum(lt * vt, 1) + mu * ln * vtn  # zero when friction opposes sliding with all it has
    return max(np.max(-ln) / impulse, np.max(ltn - mu * ln) / impulse, np.max(np.abs(dissipation)) / (impulse * speed))


def states(name):
    """A simulator, and (number, q, v, u) of the recorded states."""
    model, qs, vs = robots.load(name)
    random = np.random.default_rng(3)
    U = 0.1 * random.normal(size=(len(qs), model.nu))
    return coulomb.Simulator(model), list(zip(range(len(qs)), qs, vs, U))


@pytest.mark.parametrize("name", robots.NAMES)
def test_contact_law_and_jacobian_at_every_state(name):
    sim, cases = states(name)
    nv = sim.model.nv
    not_smooth, unresolved, blocks, worst, failures = 0, 0, 0, np.zeros(4), []
    violations = []
    for state, q, v, u in cases:
        step = Step(sim, q, v, u)
        assert solved_or_proved(sim, q), f"state {state}: {sim.status.reason}"
        if step.converged:
            violations.append(contact_law_violation(sim))
            assert violations[-1] <= law_to(sim), f"state {state}: {violations[-1]}, {sim.status}"
        numeric, error = step.jacobian()
        step.close()
        if numeric is None:
            not_smooth += 1
            continue
        found = Blocks(step.analytic, numeric, error, nv, sim.timestep, floor=1e-2)
        errors, resolved = found.errors[1], found.resolved[1]  # those of dv: dq+ follows
        blocks, unresolved = blocks + resolved.size, unresolved + np.sum(~resolved)
        worst = np.maximum(worst, np.where(resolved, errors, 0))
        if found.wrong or np.any(errors[resolved] > TOLERANCE):
            failures.append((state, errors, found.wrong))
    print(f"\n{name}: worst relative error dv_dq, dv_dv, dv_dtau, dv_du {worst}")
    print(f"{not_smooth} of {len(cases)} states left out, {unresolved} of {blocks} blocks not resolved")
    assert np.max(violations) <= MISFIT and np.quantile(violations, 0.9) <= LAW
    assert not failures, failures
    # Near many states differences meet a change of the points that stand for a foot, which depend on the pose.
    assert not_smooth <= 0.25 * len(cases) and unresolved <= 0.125 * blocks, "too little is left to judge by"


@pytest.mark.parametrize("name", robots.NAMES)
def test_forward_and_reverse_mode_at_every_state(name):
    """To 1e-12 of the Jacobian, or to what its last bits are worth where the step is jammed."""
    sim, cases = states(name)
    nv = sim.model.nv
    for state, q, v, u in cases:
        random = np.random.default_rng(state)
        w, x = random.normal(size=nv), random.normal(size=(2, nv))

        def both(q, v, u, w=w, x=x):
            sim.reset()
            sim.step(q, v, u)
            g = sim.vjp(np.zeros(nv), w)
            return np.array([w @ sim.jvp(dq=x[0], dv=x[1])[1], g.q @ x[0] + g.v @ x[1]])

        forward, reverse = both(q, v, u)
        J = sim.derivatives().A[nv:]
        off = abs(forward - reverse)
        scale = np.linalg.norm(w) * np.linalg.norm(x) * max(np.linalg.norm(J), 1)
        if off > 1e-12 * scale:
            known = known_to(both, q, v, u).max()
            print(f"{name} {state}: {off:.1e}, known to {known:.1e}, Jacobian {np.linalg.norm(J):.1e}")
            assert off <= known, f"state {state}: {off:.1e}, known to {known:.1e}"
            assert known <= 1e-6 * scale, f"state {state}: a derivative of which doubles know nothing"
