"""BatchSimulator.rollout: trajectories and gradients of single rollouts, trouble of one environment, Ctrl-C."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import coulomb
from scenes import contacts

N, T = 5, 30
WRT = ["gravity", "timestep"]


@pytest.fixture(scope="module")
def case():
    """(model, Q0, V0, U, tau): an arm that pushes a box."""
    random = np.random.default_rng(0)
    model, q, v = contacts.arm_pushes_box(random)
    Q0, V0 = np.tile(q, (N, 1)), np.tile(v, (N, 1)) + 0.1 * random.normal(size=(N, model.nv))
    return model, Q0, V0, random.normal(size=(N, T, model.nu)), 0.1 * random.normal(size=(N, T, model.nv))


@pytest.mark.parametrize("every", [None, 1, 7, 100])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_single_rollouts_and_their_gradients(case, threads, every):
    model, Q0, V0, U, tau = case
    random = np.random.default_rng(1)
    dQ, dV = random.normal(size=(2, N, T + 1, model.nv))
    tangents = dict(dU=random.normal(size=U.shape), dtau=random.normal(size=tau.shape))
    dgravity = random.normal(size=(N, 3))
    batch = coulomb.BatchSimulator(model, N, threads, 2e-3)
    r = batch.rollout(Q0, V0, U, tau=tau, checkpoint_every=every)
    assert r.steps == T and r.q.shape == (N, T + 1, model.nq) and r.v.shape == (N, T + 1, model.nv)
    assert r.converged.all() and batch.status
    g = r.vjp(dQ, dV, WRT)
    assert g.valid.all() and g.parameters == WRT
    forward = r.jvp(dV[:, 0], dQ[:, 0], **tangents, dparameters={"gravity": dgravity})
    assert forward[2].all()
    sim = coulomb.Simulator(model, timestep=2e-3)
    for i in range(N):
        single = sim.rollout(Q0[i], V0[i], U[i], tau=tau[i])
        assert np.array_equal(r.q[i], single.q) and np.array_equal(r.v[i], single.v)
        assert [s.iterations for s in single.status] == list(r.iterations[i])
        assert [s.residual for s in single.status] == list(r.residual[i])
        h = single.vjp(dQ[i], dV[i], WRT)
        for mine, its in ((g.q0, h.q0), (g.v0, h.v0), (g.u, h.u), (g.tau, h.tau), *((g[p], h[p]) for p in WRT)):
            assert np.array_equal(mine[i], its)
        its = single.jvp(dV[i, 0], dQ[i, 0], tangents["dU"][i], tangents["dtau"][i], {"gravity": dgravity[i]})
        assert np.array_equal(forward[0][i], its[0]) and np.array_equal(forward[1][i], its[1])
    assert np.array_equal(batch.derivatives().A[N - 1], sim.derivatives().A)  # of the last step


def test_reverse_is_the_transpose_of_forward_with_parameters_of_their_own():
    model, q, v = contacts.arm_pushes_box(np.random.default_rng(0))
    random = np.random.default_rng(2)
    Q0, V0 = np.tile(q, (N, 1)), np.tile(v, (N, 1))
    gravity = np.array([0, 0, -9.81]) + 0.1 * random.normal(size=(N, 3))
    batch = coulomb.BatchSimulator(model, N, 2, 2e-3, parameters={"gravity": gravity})
    r = batch.rollout(Q0, V0, steps=T)
    dQ, dV = random.normal(size=(2, N, T + 1, model.nv))
    dgravity, dV0 = random.normal(size=(N, 3)), random.normal(size=(N, model.nv))
    g = r.vjp(dQ, dV, ["gravity"])
    q1, v1, _ = r.jvp(dV0=dV0, dparameters={"gravity": dgravity})
    forward = np.sum(dQ * q1 + dV * v1, (1, 2))
    assert np.sum(g.v0 * dV0, 1) + np.sum(g["gravity"] * dgravity, 1) == pytest.approx(forward, rel=1e-9, abs=1e-9)
    assert len(np.unique(r.q[:, -1, 2])) == N


def test_no_steps_and_no_derivatives(case):
    model, Q0, V0, U, _ = case
    batch = coulomb.BatchSimulator(model, N, 2)
    r = batch.rollout(Q0, V0, steps=0)
    assert r.q.shape == (N, 1, model.nq) and np.array_equal(r.v[:, 0], V0)
    g = r.vjp(dV=V0[:, None])
    assert np.array_equal(g.v0, V0) and g.u.shape == (N, 0, model.nu)
    r = batch.rollout(Q0, V0, U, derivatives=False)
    assert np.array_equal(r.q, batch.rollout(Q0, V0, U).q)
    with pytest.raises(RuntimeError, match="without them"):
        r.vjp()


def test_trouble_of_one_environment_is_its_own(case):
    model, Q0, V0, _, tau = case
    push = tau.copy()
    push[1, 10] = 1e308  # numbers overflow in this one step
    batch = coulomb.BatchSimulator(model, N, 2)
    r, well = batch.rollout(Q0, V0, tau=push), coulomb.BatchSimulator(model, N, 2).rollout(Q0, V0, tau=tau)
    others = np.arange(N) != 1
    assert np.array_equal(r.q[others], well.q[others]) and np.array_equal(r.v[others], well.v[others])
    single = coulomb.Simulator(model).rollout(Q0[1], V0[1], tau=push[1])
    assert np.array_equal(r.v[1], single.v) and [s.converged for s in single.status] == list(r.converged[1])
    assert not r.converged[1, 10] and r.converged[others].all() and (r.q[1, 11] == r.q[1, 10]).all()
    dV = np.ones((N, T + 1, model.nv))
    g, expected = r.vjp(dV=dV, wrt=WRT), well.vjp(dV=dV, wrt=WRT)
    assert list(np.flatnonzero(~g.valid)) == [1]
    for mine, its in (
        (g.q0, expected.q0),
        (g.v0, expected.v0),
        (g.tau, expected.tau),
        (g["gravity"], expected["gravity"]),
    ):
        assert np.array_equal(mine[others], its[others]) and not mine[1].any()
    q1, v1, valid = r.jvp(dV0=V0)
    assert list(np.flatnonzero(~valid)) == [1] and not q1[1].any() and np.isfinite(v1).all()


def test_refusals(case):
    model, Q0, V0, U, _ = case
    batch = coulomb.BatchSimulator(model, N, 2)
    bad = U.copy()
    bad[3, 7, 1] = np.nan
    with pytest.raises(ValueError, match=r"U\[3, 7, 1\] is nan, expected a finite number"):
        batch.rollout(Q0, V0, bad)
    with pytest.raises(ValueError, match=r"V0\[0, 0\] is inf"):
        batch.rollout(Q0, V0 + np.inf, U)
    with pytest.raises(ValueError, match=r"U: expected shape"):
        batch.rollout(Q0, V0, U[:, :, :-1])
    with pytest.raises(ValueError, match="steps: needed"):
        batch.rollout(Q0, V0)
    with pytest.raises(ValueError, match="steps: got -1"):
        batch.rollout(Q0, V0, steps=-1)
    with pytest.raises(ValueError, match="steps: got 4"):
        batch.rollout(Q0, V0, U, steps=4)
    with pytest.raises(ValueError, match="checkpoint_every: got 0"):
        batch.rollout(Q0, V0, U, checkpoint_every=0)
    r = batch.rollout(Q0, V0, U)
    dV = np.zeros((N, T + 1, model.nv))
    dV[4, T, 0] = np.nan
    with pytest.raises(ValueError, match=rf"dV\[4, {T}, 0\] is nan"):
        r.vjp(dV=dV)
    with pytest.raises(ValueError, match="mass/nothing"):
        r.vjp(wrt=["mass/nothing"])
    with pytest.raises(ValueError, match=r"parameter 'gravity': got 2 values, expected 3"):
        r.jvp(dparameters={"gravity": np.zeros((N, 2))})


@pytest.fixture
def interruptible():
    """Shells start what runs in their background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("what", ["rollout", "vjp"])
def test_ctrl_c_stops_a_long_rollout(case, what, interruptible):
    model, Q0, V0, _, _ = case
    batch = coulomb.BatchSimulator(model, N, 2)
    steps = 2_000_000 if what == "rollout" else 3_000
    r = None if what == "rollout" else batch.rollout(Q0, V0, steps=steps)
    done = threading.Event()
    sender = threading.Thread(target=lambda: done.wait(0.3) or os.kill(os.getpid(), signal.SIGINT))
    start = time.monotonic()
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        if r is None:
            batch.rollout(Q0, V0, steps=steps, derivatives=False)
        else:
            while True:
                r.vjp(dV=np.ones((N, steps + 1, model.nv)))
    done.set()
    sender.join()
    assert time.monotonic() - start < 60
    if r is None:
        with pytest.raises(RuntimeError, match="no step was taken"):
            batch.derivatives()
    short = batch.rollout(Q0, V0, steps=10)  # and the batch is as good as new
    assert np.array_equal(short.q, coulomb.BatchSimulator(model, N, 1).rollout(Q0, V0, steps=10).q)
