"""Rollout.linearize: the matrices of every step are those of the steps by themselves, and their product is the derivative of the trajectory."""

import numpy as np
import pytest

import coulomb
from scenes import contacts
from scenes.trajectories import TRAJECTORIES, quadruped, thrown_box

OPTIONS = [{}, {"contact": "lcp"}, {"contact": "penalty"}, {"stepper": "bdf1"}, {"stepper": "bdf2"},
           {"continuous_collision": True}, {"gradient": "smoothed_collision", "gradient_samples": 4}]  # fmt: skip
WRT = ["gravity", "timestep"]


def made(build, steps=40, **options):
    model, q, v, U, h = build()
    sim = coulomb.Simulator(model.with_parameters({"timestep": h}), **options)
    return sim, q, v, U[:steps]


def by_steps(sim, q, v, U):
    """A, B, B_tau, A_previous and the columns of WRT of one step after the other."""
    sim.reset()
    out = []
    for u in U:
        q, v = sim.step(q, v, u)
        d = sim.derivatives(wrt=WRT)
        A_previous = np.zeros_like(d.A) if d.A_previous is None else d.A_previous
        out.append([d.A, d.B, d.B_tau, A_previous, *(d[name] for name in WRT)])
    return [np.array(x) for x in zip(*out)]


def parts(linearization):
    A_previous = linearization.A_previous
    A_previous = np.zeros_like(linearization.A) if A_previous is None else A_previous
    return [linearization.A, linearization.B, linearization.B_tau, A_previous, *(linearization[name] for name in WRT)]


@pytest.mark.parametrize("kept", [{}, {"keep_factors": False}, {"checkpoint_every": 7, "keep_factors": False}], ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_bits_of_the_steps(options, kept):
    sim, q, v, U = made(quadruped, **options)
    expected = by_steps(sim, q, v, U)
    r = sim.rollout(q, v, U, **kept)
    found = r.linearize(wrt=WRT)
    nv, nu = r.model.nv, r.model.nu
    assert found.A.shape == (40, 2 * nv, 2 * nv) and found.B.shape == (40, 2 * nv, nu) and nu > 0
    assert found.valid is None and found.parameters == WRT and found.ambiguous.shape == (40,)
    assert (found.A_previous is None) == (options.get("stepper") != "bdf2")
    for a, b in zip(parts(found), expected):
        assert np.array_equal(a, b) and np.abs(b).max() > 0 or not b.any()
    assert all(np.array_equal(a, b) for a, b in zip(parts(r.linearize(wrt=WRT)), expected))


@pytest.mark.parametrize("build", TRAJECTORIES, ids=lambda f: f.__name__)
def test_the_product_is_the_derivative_of_the_trajectory(build):
    """x_(t+1) = A x_t + B u_t + F theta against Rollout.jvp, which is tested against differences of whole trajectories."""
    sim, q, v, U = made(build, 60)
    r, random = sim.rollout(q, v, U), np.random.default_rng(0)
    A, B = r.linearize()
    F = r.linearize(wrt=["gravity"])["gravity"]
    nv = r.model.nv
    x, dU, g = random.normal(size=2 * nv), random.normal(size=U.shape), random.normal(size=3)
    dQ, dV = r.jvp(dq0=x[:nv], dv0=x[nv:], dU=dU, dparameters={"gravity": g})
    for t in range(len(U)):
        x = A[t] @ x + B[t] @ dU[t] + F[t] @ g
        expected = np.concatenate([dQ[t + 1], dV[t + 1]])
        assert np.abs(x - expected).max() <= 1e-12 * max(1, np.abs(expected).max())


def test_differences_of_the_trajectory():
    """Taylor's remainder of the whole trajectory is of second order while its contacts stay as they are."""
    sim, q, v, U = made(thrown_box, 60)
    r = sim.rollout(q, v, U)
    A, _ = r.linearize()
    random = np.random.default_rng(1)
    direction = random.normal(size=2 * r.model.nv)
    X = direction
    for matrix in A:
        X = matrix @ X
    remainders = []
    for size in (1e-3, 1e-4):
        moved = sim.rollout(r.model.integrate(q, size * direction[:6]), v + size * direction[6:], U)
        change = np.concatenate([r.model.difference(r.q[-1], moved.q[-1]), moved.v[-1] - r.v[-1]])
        remainders.append(np.linalg.norm(change - size * X))
    assert 0 < remainders[0] < 1e-4 and remainders[1] < 0.02 * remainders[0]


def test_two_states_back():
    """bdf2: x_(t+1) = A x_t + A_previous x_(t-1); A and B alone are refused."""
    sim, q, v, U = made(quadruped, 30, stepper="bdf2")
    r = sim.rollout(q, v, U)
    found, nv = r.linearize(), r.model.nv
    with pytest.raises(RuntimeError, match="depends on two states.*A_previous"):
        _A, _B = found
    x = np.random.default_rng(0).normal(size=2 * nv)
    dQ, dV = r.jvp(dq0=x[:nv], dv0=x[nv:])
    states = [x]
    for t in range(30):
        before = states[-2] if t else np.zeros(2 * nv)
        states.append(found.A[t] @ states[-1] + found.A_previous[t] @ before)
        expected = np.concatenate([dQ[t + 1], dV[t + 1]])
        assert np.abs(states[-1] - expected).max() <= 1e-11 * np.abs(expected).max()
    assert not found.A_previous[0].any() and found.A_previous[1].any()


@pytest.mark.parametrize("options", [{}, {"stepper": "bdf2"}], ids=str)
@pytest.mark.parametrize("threads", [1, 3])
def test_batches_have_the_bits_of_single_ones(threads, options):
    sim, q, v, U = made(quadruped, 15, **options)
    n, model = 4, sim.model
    V = v + 0.1 * np.random.default_rng(0).normal(size=(n, model.nv))
    batch = coulomb.BatchSimulator(model, n, threads, **options)
    r = batch.rollout(np.tile(q, (n, 1)), V, np.tile(U, (n, 1, 1)))
    found = r.linearize(wrt=WRT)
    assert found.valid.all() and found.A.shape == (n, 15, 2 * model.nv, 2 * model.nv)
    for i in range(n):
        single = parts(sim.rollout(q, V[i], U).linearize(wrt=WRT))
        assert all(np.array_equal(a[i], b) for a, b in zip(parts(found), single))


def test_an_overflow_stays_at_home():
    model, q, v = contacts.stack(np.random.default_rng(0))
    Q, V = np.tile(q, (3, 1)), np.tile(v, (3, 1))
    V[1] *= 1e200
    batch = coulomb.BatchSimulator(model, 3, 2)
    r = batch.rollout(Q, V, steps=4)
    found = r.linearize()
    assert found.valid.tolist() == [True, False, True]
    assert not found.A[1].any() and not found.B_tau[1].any() and found.A[0].any() and np.isfinite(found.A).all()
    with pytest.raises(RuntimeError, match="step 0"):
        coulomb.Simulator(model).rollout(Q[1], V[1], steps=4).linearize()


def test_what_is_refused():
    sim, q, v, U = made(quadruped, 5)
    r = sim.rollout(q, v, U)
    with pytest.raises(ValueError, match="parameter 'u': is an input of the step"):
        r.linearize(wrt=["u"])
    with pytest.raises(TypeError, match="wrt: got 'gravity', expected a list of strings"):
        r.linearize(wrt="gravity")
    with pytest.raises(KeyError, match="gravity"):
        r.linearize()["gravity"]
    batch = coulomb.BatchSimulator(sim.model, 2)
    kept = batch.rollout(np.tile(q, (2, 1)), np.tile(v, (2, 1)), steps=3, derivatives=False)
    with pytest.raises(RuntimeError, match="made without them"):
        kept.linearize()
    assert sim.rollout(q, v, steps=0).linearize().A.shape == (0, 2 * sim.model.nv, 2 * sim.model.nv)


def test_it_can_be_stopped():
    sim, q, v, U = made(quadruped, 30)
    r = sim.rollout(q, v, U)

    def progress(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        r.linearize(progress=progress)
    assert r.linearize().A.any()
