"""The Jacobian of a step against finite differences of the same step, on scenes of several bodies and on robots.

Columns where a contact changes within the differences have no two-sided derivative: check_gradients leaves them out, and the share
left out is bounded here.
"""

import numpy as np
import pytest
from scenes import robots
from scenes.contacts import CONTACT_SCENES

import coulomb

TOLERANCE = 1e-6


def check(sim, q, v, u):
    result = coulomb.check_gradients(sim, q, v, u, step=1e-6)
    assert sim.status.converged, sim.status.reason
    return result


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("build", CONTACT_SCENES, ids=lambda f: f.__name__)
def test_gradients_of_scenes(build, seed):
    random = np.random.default_rng(seed)
    model, q, v = build(random)
    sim = coulomb.Simulator(model, timestep=2e-3)
    u = 0.3 * random.normal(size=model.nu)
    result = check(sim, q, v, u)
    if not result.smooth:
        pytest.skip("a contact changes within the differences")
    assert result.max_error <= TOLERANCE, str(result)
    assert np.linalg.norm(sim.derivatives().A) > 0.1


@pytest.mark.parametrize("name", robots.NAMES)
def test_gradients_of_robots(name):
    if robots.folder() is None:
        pytest.skip("no folder of robots (COULOMB_ROBOTS)")
    model, qs, vs = robots.load(name)
    sim = coulomb.Simulator(model)
    random = np.random.default_rng(7)
    compared = 0
    for k in range(0, len(qs), 20):
        result = check(sim, qs[k], vs[k], 0.1 * random.normal(size=model.nu))
        if result.smooth:
            compared += 1
            assert result.max_error <= TOLERANCE, f"state {k}:\n{result}"
    if compared == 0:
        pytest.skip("contacts change within the differences at every state")


@pytest.mark.parametrize("build", CONTACT_SCENES, ids=lambda f: f.__name__)
def test_forward_and_reverse_mode_are_adjoint(build):
    random = np.random.default_rng(5)
    model, q, v = build(random)
    sim = coulomb.Simulator(model, timestep=2e-3)
    u = 0.3 * random.normal(size=model.nu)
    sim.step(q, v, u)
    w = random.normal(size=(2, model.nv))
    dq, dv, dtau = random.normal(size=(3, model.nv))
    du = random.normal(size=model.nu)
    q1, v1 = sim.jvp(dq=dq, dv=dv, du=du, dtau=dtau)
    g = sim.vjp(*w)
    forward, reverse = w[0] @ q1 + w[1] @ v1, g.q @ dq + g.v @ dv + g.u @ du + g.tau @ dtau
    scale = np.linalg.norm(w) * np.linalg.norm(np.r_[q1, v1])
    assert abs(forward - reverse) <= 1e-10 * scale
    d = sim.derivatives()
    assert np.allclose(d.A @ np.r_[dq, dv] + d.B @ du + d.B_tau @ dtau, np.r_[q1, v1], rtol=0, atol=1e-10 * scale)


@pytest.mark.parametrize("build", CONTACT_SCENES, ids=lambda f: f.__name__)
def test_taylor_remainder_is_of_second_order(build):
    """|f(x + h d) - f(x) - h J d| falls with h^2 (or is rounding) while the contacts keep their modes."""
    random = np.random.default_rng(11)
    model, q, v = build(random)
    sim = coulomb.Simulator(model, timestep=2e-3)
    sim.step(q, v)
    sim.freeze_memory(True)
    q1, v1 = sim.step(q, v)
    modes = [(c.geometry_a, c.geometry_b, c.mode) for c in sim.contacts]
    dq, dv = random.normal(size=(2, model.nv)) / np.sqrt(model.nv)
    jq, jv = sim.jvp(dq=dq, dv=dv)
    sizes, remainders = [], []
    for h in 10.0 ** np.arange(-3, -6.1, -0.5):
        qh, vh = sim.step(model.integrate(q, h * dq), v + h * dv)
        if [(c.geometry_a, c.geometry_b, c.mode) for c in sim.contacts] != modes:
            continue
        remainder = np.linalg.norm(np.r_[model.difference(q1, qh) - h * jq, vh - v1 - h * jv])
        if remainder > 1e-11 * (1 + np.linalg.norm(v1)):
            sizes.append(h)
            remainders.append(remainder)
    if len(sizes) < 3:
        pytest.skip("the contacts change, or the remainder is rounding")
    slope = np.polyfit(np.log(sizes), np.log(remainders), 1)[0]
    assert slope == pytest.approx(2.0, abs=0.1), f"{list(zip(sizes, remainders))}"
