"""The Jacobian of a step against finite differences of the same step, on scenes of several bodies (robots: test_seven_robots.py).

States where a contact changes within the differences have no two-sided derivative and are left out.
"""

import numpy as np
import pytest
from differences import TOLERANCE, Step, Tally, compare

import coulomb
from scenes.contacts import CONTACT_SCENES


@pytest.mark.parametrize("build", CONTACT_SCENES, ids=lambda f: f.__name__)
def test_gradients_of_scenes(build):
    tally = Tally()
    for seed in range(12):
        random = np.random.default_rng(seed)
        model, q, v = build(random)
        sim = coulomb.Simulator(model, timestep=2e-3)
        blocks = compare(sim, q, v, 0.3 * random.normal(size=model.nu))
        tally.add(blocks)
        if blocks is None:
            continue
        assert np.linalg.norm(sim.derivatives().A) > 0.1
        assert blocks.agree, f"seed {seed}: {blocks.errors}"
    tally.assert_enough()


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
    """|f(x + h d) - f(x) - h J d| falls with h^2 while it is more than rounding and the contacts keep their modes."""
    random = np.random.default_rng(11)
    model, q, v = build(random)
    sim = coulomb.Simulator(model, timestep=2e-3)
    step = Step(sim, q, v, np.zeros(model.nu))
    direction = np.r_[random.normal(size=2 * model.nv) / np.sqrt(model.nv), np.zeros(model.nv + model.nu)]
    sizes, remainders = [], []
    for h in 10.0 ** np.arange(-2, -6.1, -0.25):
        change = None if step.noise is None else step.moved(h * direction)
        if change is None:
            continue
        remainder = np.linalg.norm(change - h * step.analytic @ direction)
        if remainder > 100 * np.linalg.norm(step.noise):
            sizes.append(h)
            remainders.append(remainder)
    if len(sizes) < 3:
        pytest.skip("the contacts change, or the remainder is rounding")
    sizes, remainders = sizes[-6:], remainders[-6:]  # higher orders are in the larger ones
    slope = np.polyfit(np.log(sizes), np.log(remainders), 1)[0]
    assert slope == pytest.approx(2.0, abs=0.1), f"{list(zip(sizes, remainders))}"
