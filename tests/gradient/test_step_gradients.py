"""The Jacobian of a step against finite differences of the same step, on scenes of several bodies (robots: test_seven_robots.py).

States where a contact changes within the differences have no two-sided derivative and are left out.
"""

import numpy as np
import pytest
from differences import jacobian, relative_error

import coulomb
from scenes.contacts import CONTACT_SCENES

TOLERANCE = 1e-6


@pytest.mark.parametrize("build", CONTACT_SCENES, ids=lambda f: f.__name__)
def test_gradients_of_scenes(build):
    seeds, smooth = range(12), 0
    for seed in seeds:
        random = np.random.default_rng(seed)
        model, q, v = build(random)
        sim = coulomb.Simulator(model, timestep=2e-3)
        analytic, numeric = jacobian(sim, q, v, 0.3 * random.normal(size=model.nu))
        if numeric is None:
            continue
        smooth += 1
        assert np.linalg.norm(analytic) > 0.1
        assert relative_error(analytic, numeric, model.nv) <= TOLERANCE, f"seed {seed}"
    assert smooth > 0, "contacts change within the differences at every state"


def test_check_gradients_agrees_with_these_differences():
    model, q, v = CONTACT_SCENES[-1](np.random.default_rng(0))
    sim = coulomb.Simulator(model, timestep=2e-3)
    assert coulomb.check_gradients(sim, q, v, wrt=("q", "v")).max_error <= TOLERANCE


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
    if jacobian(sim, q, v, np.zeros(model.nu))[1] is None:
        pytest.skip("contacts change within the differences")
    sim.reset()
    sim.step(q, v)
    sim.freeze_memory(True)
    q1, v1 = sim.step(q, v)
    modes = [(c.geometry_a, c.geometry_b, c.mode) for c in sim.contacts]
    dq, dv = random.normal(size=(2, model.nv)) / np.sqrt(model.nv)
    jq, jv = sim.jvp(dq=dq, dv=dv)
    sizes, remainders = [], []
    for h in 10.0 ** np.arange(-4, -6.1, -0.25):
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
