"""Seven robots, sixty recorded states in contact each: the contact law to 1e-8, every block of the Jacobian to 1e-6.

The reference is Richardson-extrapolated central differences of the same step. States whose active set changes within +-1e-5 have no
two-sided derivative: they are counted, with the reason, and left out. Two base steps are tried, since 1e-5 truncates (curved
hulls, stiff position correction) where 2e-6 drowns in rounding (light links), and the other way round.
"""

import numpy as np
import pytest

import coulomb
from scenes import robots

TOLERANCE = 1e-6
RADIUS = 1e-5  # of the neighbourhood in which the active set must not change
SEPARATING = "separating"


def active_set(sim):
    return [(c.geometry_a, c.geometry_b, c.mode) for c in sim.contacts if c.mode != SEPARATING]


def joint_at_limit(model, q):
    """Some joint within RADIUS of a limit: the bias of its row has a kink there (speculative on one side, Baumgarte on the other)."""
    parameters = model.parameters()
    for j, name in enumerate(model.joint_names):
        limits = parameters.get(f"joint_limits/{name}")
        if limits is not None and np.abs(q[model.joint_q[j]] - limits.value).min() < RADIUS:
            return True
    return False


class Reference:
    """Differences of the step at one state; frozen memory, so that every step starts from the same point.

    Sizes are those of (q, v); forces and controls move by as much as changes the next velocity that far.
    """

    def __init__(self, sim, q, v, u):
        self.sim, self.q, self.v, self.u = sim, q, v, u
        sim.reset()
        sim.step(q, v, u)
        sim.freeze_memory(True)
        self.v1 = sim.step(q, v, u)[1]
        self.active = active_set(sim)
        d = sim.derivatives()
        self.J = np.hstack([d.A, d.B_tau, d.B])[sim.model.nv :]
        nv = sim.model.nv
        self.unit = np.ones(self.J.shape[1])
        self.unit[2 * nv :] = 1 / np.maximum(np.linalg.norm(self.J[:, 2 * nv :], axis=0), sim.timestep)

    def close(self):
        self.sim.freeze_memory(False)

    def moved(self, k, size):
        """v1 with the k-th of (q, v, tau, u) moved; forces by their impulse."""
        model = self.sim.model
        x = np.zeros(3 * model.nv + model.nu)
        x[k] = size * self.unit[k]
        dq, dv, tau, du = np.split(x, [model.nv, 2 * model.nv, 3 * model.nv])
        return self.sim.step(model.integrate(self.q, dq), self.v + dv, self.u + du, tau=tau)[1]

    def why_not_smooth(self):
        """None, or what changes within +-RADIUS."""
        if joint_at_limit(self.sim.model, self.q):
            return "a joint reaches its limit"
        for k in range(3 * self.sim.model.nv + self.sim.model.nu):
            for size in (RADIUS, -RADIUS):
                self.moved(k, size)
                if not self.sim.status.converged:
                    return "a neighbour has no solution"
                now = active_set(self.sim)
                if now == self.active:
                    continue
                pairs = [[c[:2] for c in contacts] for contacts in (self.active, now)]
                return "a contact changes its mode" if pairs[0] == pairs[1] else "a contact begins or ends"
        return None

    def columns(self, h):
        model = self.sim.model
        J = np.empty((model.nv, 3 * model.nv + model.nu))
        for k in range(J.shape[1]):
            step = h * self.unit[k]
            coarse = (self.moved(k, h) - self.moved(k, -h)) / (2 * step)
            fine = (self.moved(k, h / 2) - self.moved(k, -h / 2)) / step
            J[:, k] = (4 * fine - coarse) / 3
        return J


def block_errors(J, reference, nv, timestep):
    """Relative Frobenius error of dv_dq, dv_dv, dv_dtau, dv_du; a block of zeros counts as one of 1e-2 (times h for forces)."""
    errors = []
    small = 1e-2 * timestep
    for first, last, floor in ((0, nv, 1e-2), (nv, 2 * nv, 1e-2), (2 * nv, 3 * nv, small), (3 * nv, J.shape[1], small)):
        difference = np.linalg.norm(J[:, first:last] - reference[:, first:last])
        errors.append(difference / max(np.linalg.norm(reference[:, first:last]), floor))
    return np.array(errors)


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


@pytest.mark.parametrize("name", robots.NAMES)
def test_contact_law_and_jacobian_at_every_state(name):
    if robots.folder() is None:
        pytest.skip("no folder of robots (COULOMB_ROBOTS)")
    model, qs, vs = robots.load(name)
    sim = coulomb.Simulator(model)
    random = np.random.default_rng(3)
    left_out, worst, failures = {}, np.zeros(4), []
    for state, (q, v) in enumerate(zip(qs, vs)):
        reference = Reference(sim, q, v, 0.1 * random.normal(size=model.nu))
        assert sim.status.converged, f"state {state}: {sim.status.reason}"
        assert contact_law_violation(sim) <= 1e-8, f"state {state}"
        J = reference.J
        w, x = random.normal(size=model.nv), random.normal(size=(2, model.nv))
        forward = w @ sim.jvp(dq=x[0], dv=x[1])[1]
        g = sim.vjp(np.zeros(model.nv), w)
        assert abs(g.q @ x[0] + g.v @ x[1] - forward) <= 1e-10 * max(np.linalg.norm(J[:, : 2 * model.nv]), 1), (
            f"state {state}"
        )
        reason = reference.why_not_smooth()
        if reason:
            left_out[reason] = left_out.get(reason, 0) + 1
        else:
            errors = block_errors(J, reference.columns(RADIUS), model.nv, sim.timestep)
            if errors.max() > TOLERANCE:
                errors = np.minimum(errors, block_errors(J, reference.columns(RADIUS / 5), model.nv, sim.timestep))
            worst = np.maximum(worst, errors)
            if errors.max() > TOLERANCE:
                failures.append((state, errors))
        reference.close()
    print(f"\n{name}: worst relative error dv_dq, dv_dv, dv_dtau, dv_du {worst}; left out of {len(qs)}: {left_out}")
    assert not failures
    assert sum(left_out.values()) <= 0.25 * len(qs), "too little is left to judge by"
