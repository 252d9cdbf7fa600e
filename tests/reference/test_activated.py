"""ActivatedSimulator: states with activations move as in MuJoCo, and their derivatives are exact, forward and in reverse."""

import numpy as np
import pytest
from test_activations import ARM, controls

import coulomb

mujoco = pytest.importorskip("mujoco")

NU, NV = 7, 2
N = 2 * NV + NU


def start(rng, lead=()):
    return 0.3 * rng.normal(size=(*lead, NV)), rng.normal(size=(*lead, NV)), 0.005 * rng.normal(size=(*lead, NU))


def single(**options):
    return coulomb.ActivatedSimulator(coulomb.Simulator(coulomb.load(ARM), **options))


@pytest.mark.parametrize("substeps", [1, 5])
def test_trajectories_are_mujocos(substeps):
    theirs = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(theirs)
    sim = single(joint_forces="explicit")
    U = controls(np.random.default_rng(0), 80, NU)
    r = sim.rollout(*sim.initial, U, substeps=substeps)
    assert r.activation.shape == (81, NU) and r.q.shape == (81, NV) and r.steps == 80
    for t, u in enumerate(U):
        data.ctrl[:] = u
        mujoco.mj_step(theirs, data, substeps)
        assert r.activation[t + 1, 1:] == pytest.approx(data.act, abs=1e-12)
        assert r.q[t + 1] == pytest.approx(data.qpos, abs=1e-9)
        assert r.v[t + 1] == pytest.approx(data.qvel, abs=1e-8)
    assert np.abs(data.act).max() > 0.01 and np.abs(r.q).max() > 0.05


@pytest.mark.parametrize("options", [{}, {"joint_forces": "implicit"}, {"stepper": "bdf1", "contact": "penalty"}])
def test_derivatives_of_a_step(options):
    sim = single(**options)
    rng = np.random.default_rng(1)
    x, u = start(rng), 0.5 * rng.normal(size=NU)
    sim.step(*x, u)
    A, B = d = sim.derivatives(wrt=["armature/a"])
    assert A.shape == (N, N) and B.shape == (N, NU) and d["armature/a"].shape == (N, 1)

    def ends(d, e):
        sim.simulator.reset()
        moved = [a + e * b for a, b in zip((*x, u), np.split(d, [NV, 2 * NV, N]))]
        return np.concatenate(sim.step(*moved))

    for d in np.eye(N + NU):
        difference = (ends(d, 1e-6) - ends(d, -1e-6)) / 2e-6
        assert np.concatenate([A, B], axis=1) @ d == pytest.approx(difference, abs=1e-6)

    # Products are those of the matrices.
    sim.simulator.reset()
    sim.step(*x, u)
    w, d = rng.normal(size=N), rng.normal(size=N + NU)
    g = sim.vjp(*np.split(w, [NV, 2 * NV]), wrt=["armature/a"])
    assert np.concatenate([g.q, g.v, g.activation]) == pytest.approx(w @ A, rel=1e-9, abs=1e-12)
    assert g.u == pytest.approx(w @ B, rel=1e-9, abs=1e-12)
    assert g["armature/a"] == pytest.approx(w[: 2 * NV] @ sim.derivatives(["armature/a"])["armature/a"][: 2 * NV])
    forward = sim.jvp(*np.split(d, [NV, 2 * NV, N]))
    assert np.concatenate(forward) == pytest.approx(np.concatenate([A, B], axis=1) @ d, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("substeps", [1, 3])
def test_derivatives_of_a_rollout(substeps):
    sim = single()
    rng = np.random.default_rng(2)
    T = 12
    x, U = start(rng), 0.5 * controls(rng, T, NU)
    tau = 0.1 * rng.normal(size=(T, NV))
    r = sim.rollout(*x, U, tau=tau, substeps=substeps)

    # It is its steps, bit for bit.
    sim.simulator.reset()
    state = x
    for t in range(T):
        for _ in range(substeps):
            state = sim.step(*state, U[t], tau[t])
        for here, there in zip((r.q, r.v, r.activation), state):
            assert (here[t + 1] == there).all()

    dQ, dV, dA = (rng.normal(size=(T + 1, k)) for k in (NV, NV, NU))
    g = r.vjp(dQ, dV, dA, wrt=["armature/a"])
    assert g.u.shape == (T, NU) and g.tau.shape == (T, NV) and g["armature/a"].shape == (1,)

    def value(x, U, tau):
        s = sim.rollout(*x, U, tau=tau, substeps=substeps)
        return (s.q * dQ).sum() + (s.v * dV).sum() + (s.activation * dA).sum()

    for _ in range(3):
        d = [rng.normal(size=a.shape) for a in (*x, U, tau)]
        ends = [value([a + e * b for a, b in zip(x, d[:3])], U + e * d[3], tau + e * d[4]) for e in (1e-6, -1e-6)]
        product = sum((a * b).sum() for a, b in zip((g.q, g.v, g.activation, g.u, g.tau), d))
        assert product == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)
        tangents = r.jvp(*d)
        assert sum((a * b).sum() for a, b in zip(tangents, (dQ, dV, dA))) == pytest.approx(product, rel=1e-9)

    # The matrices of the rows, chained.
    A, B = r.linearize()
    assert A.shape == (T, N, N) and B.shape == (T, N, NU)
    X = np.concatenate(d[:3])
    for t in range(T):
        X = A[t] @ X + B[t] @ d[3][t]
    last = np.concatenate([x[-1] for x in r.jvp(*d[:4])])
    assert last == pytest.approx(X, rel=1e-9, abs=1e-9)


def test_readings_have_cotangents():
    sim = single()
    rng = np.random.default_rng(3)
    name = "position/geom1"
    x, U = start(rng), 0.5 * controls(rng, 6, NU)
    r = sim.rollout(*x, U, substeps=2)
    w = rng.normal(size=(7, 3))
    assert r.output(name).shape == (7, 3)
    g = r.vjp(outputs={name: w})
    d = rng.normal(size=U.shape)
    ends = [(sim.rollout(*x, U + e * d, substeps=2).output(name) * w).sum() for e in (1e-6, -1e-6)]
    assert (g.u * d).sum() == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_batches_are_single_simulators(threads):
    n, T = 4, 8
    model = coulomb.load(ARM)
    rng = np.random.default_rng(4)
    sim = coulomb.ActivatedSimulator(coulomb.BatchSimulator(model, n, threads))
    ones = [single() for _ in range(n)]
    assert [part.shape for part in sim.initial] == [(n, NV), (n, NV), (n, NU)]
    x, U = start(rng, (n,)), 0.5 * np.stack([controls(rng, T, NU) for _ in range(n)])

    # Steps, their matrices and products.
    after = sim.step(*x, U[:, 0])
    d = sim.derivatives()
    w = rng.normal(size=(n, NV)), rng.normal(size=(n, NV)), rng.normal(size=(n, NU))
    g, t = sim.vjp(*w), sim.jvp(da=w[2], du=U[:, 1])
    for i, one in enumerate(ones):
        for here, there in zip(after, one.step(*(p[i] for p in x), U[i, 0])):
            assert (here[i] == there).all()
        assert (d.A[i] == one.derivatives().A).all() and (d.B[i] == one.derivatives().B).all()
        assert (g.u[i] == one.vjp(*(p[i] for p in w)).u).all()
        assert (t[2][i] == one.jvp(da=w[2][i], du=U[i, 1])[2]).all()

    # Rollouts.
    r = sim.rollout(*x, U, substeps=2)
    W = [rng.normal(size=(n, T + 1, k)) for k in (NV, NV, NU)]
    g, (A, B) = r.vjp(*W), r.linearize()
    for i, one in enumerate(ones):
        s = one.rollout(*(p[i] for p in x), U[i], substeps=2)
        assert (r.q[i] == s.q).all() and (r.activation[i] == s.activation).all()
        h = s.vjp(*(p[i] for p in W))
        assert (g.u[i] == h.u).all() and (g.activation[i] == h.activation).all()
        assert (A[i] == s.linearize()[0]).all()

    # Control steps go on from call to call; environments that the mask leaves out stay.
    sim.reset()
    [one.reset() for one in ones]
    state, singles = x, [tuple(p[i] for p in x) for i in range(n)]
    for t in range(3):
        *state, record = sim.control_step(*state, U[:, t], substeps=3)
        for i, one in enumerate(ones):
            for _ in range(3):
                singles[i] = one.step(*singles[i], U[i, t])
            assert all((here[i] == there).all() for here, there in zip(state, singles[i]))
    assert record.converged.all() and record.substeps == 3
    g = record.vjp(*w, wrt=["armature/a"])
    d = [rng.normal(size=p.shape) for p in (*x, U[:, 0])]
    forward = record.jvp(*d)
    product = sum((a * b).sum() for a, b in zip((g.q, g.v, g.activation, g.u), d))
    assert sum((a * b).sum() for a, b in zip(w, forward)) == pytest.approx(product, rel=1e-9)
    assert g["armature/a"].shape == (n, 1)

    mask = np.array([True, False, True, False])
    *moved, record = sim.control_step(*state, U[:, 3], substeps=2, mask=mask)
    assert (moved[2][~mask] == state[2][~mask]).all() and (moved[2][mask] != state[2][mask]).any()
    g = record.vjp(*w)
    assert (g.activation[~mask] == w[2][~mask]).all() and not g.u[~mask].any()
    sim.step(*state, U[:, 3], mask=mask)
    A, B = sim.derivatives()
    assert (A[1] == np.eye(N)).all() and not B[1].any()


def test_what_is_refused_is_named():
    model = coulomb.load(ARM)
    sim = coulomb.ActivatedSimulator(coulomb.Simulator(model))
    q, v, a = sim.initial
    with pytest.raises(RuntimeError, match="no step was taken"):
        sim.derivatives()
    with pytest.raises(TypeError, match="simulator: expected a coulomb.Simulator"):
        coulomb.ActivatedSimulator(model)
    with pytest.raises(TypeError, match="control_step: this is a single Simulator"):
        sim.control_step(q, v, a)
    for call, why in (
        (lambda: sim.step(q, v, a[:3]), r"a: got shape \(3,\)"),
        (lambda: sim.step(q, v, a * np.nan), r"a\[0\] is nan"),
        (lambda: sim.step(q, v, a, a + np.inf), r"u\[0\] is inf"),
        (lambda: sim.rollout(q, v, a), "steps: needed"),
        (lambda: sim.rollout(q, v, a, np.zeros((3, 2))), "U: got shape"),
        (lambda: sim.rollout(q, v, a, np.zeros((3, NU)), steps=4), "steps: got 4, but U has 3 rows"),
        (lambda: sim.rollout(q, v, a, np.zeros((3, NU)), substeps=0), "substeps: got 0"),
        (lambda: sim.rollout(q, v, a, np.zeros((3, NU))).vjp(dA=np.zeros((3, NU))), "dA: got shape"),
        (lambda: sim.rollout(q, v, a, np.zeros((3, NU))).vjp(dA=np.zeros((4, 2))), "dA: got shape"),
        (lambda: sim.rollout(q, v, a, np.zeros((3, NU))).jvp(dU=np.zeros((4, NU))), "dU: got shape"),
    ):
        with pytest.raises(ValueError, match=why):
            call()
    batch = coulomb.BatchSimulator(model, 2, 1, parameters={"timestep": np.array([1e-3, 2e-3])})
    with pytest.raises(ValueError, match="time steps from 0.001 to 0.002"):
        coulomb.ActivatedSimulator(batch)


def test_models_without_activations():
    model = coulomb.load(
        "<mujoco><worldbody><body><joint name='j'/><geom size='.1' pos='0 .2 0'/></body></worldbody>"
        "<actuator><motor joint='j'/></actuator></mujoco>"
    )
    sim = coulomb.ActivatedSimulator(coulomb.Simulator(model))
    q, v, a = sim.initial
    q1, v1, a1 = sim.step(q, v, a, [0.3])
    A, B = sim.derivatives()
    d = sim.simulator.derivatives()
    assert (A[:2, :2] == d.A).all() and (B[:2] == d.B).all() and not A[:, 2].any() and B[2] == 1
    assert (v1 == coulomb.Simulator(model).step(q, v, [0.3])[1]).all() and a1 == 0.3
