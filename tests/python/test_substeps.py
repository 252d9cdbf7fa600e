"""Inputs that are held for several steps: the states are those of steps done by hand, to the bit, and every derivative is that of the
rollout in which each row is written out as often as it is held."""

import importlib
import importlib.util
import subprocess
import sys

import numpy as np
import pytest

import coulomb
from scenes import contacts

K, T = 4, 6
OPTIONS = [{}, {"contact": "lcp"}, {"stepper": "bdf2", "contact": "penalty"}, {"continuous_collision": True}]


def pushed(actuators=2, **options):
    """A simulator, a state of an arm that pushes a box, and random inputs for T rows."""
    model, q, v = contacts.arm_pushes_box(np.random.default_rng(0), actuators)
    assert model.nu == actuators
    random = np.random.default_rng(1)
    inputs = {"tau": 0.1 * random.normal(size=(T, model.nv)), "fext": random.normal(size=(T, model.num_bodies, 6))}
    return coulomb.Simulator(model, **options), q, v, random.normal(size=(T, model.nu)), inputs


def written_out(U, inputs):
    """The same with a row for every step."""
    return np.repeat(U, K, axis=0), {name: np.repeat(x, K, axis=0) for name, x in inputs.items()}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_states_are_those_of_steps_by_hand(options):
    sim, q, v, U, inputs = pushed(**options)
    r = sim.rollout(q, v, U, substeps=K, **inputs)
    assert (r.steps, r.substeps, len(r.status), r.q.shape) == (T, K, T, (T + 1, sim.model.nq))
    by_hand = coulomb.Simulator(sim.model, **options)
    for t in range(T):
        assert np.array_equal(r.q[t], q) and np.array_equal(r.v[t], v)
        for _ in range(K):
            q, v = by_hand.step(q, v, U[t], inputs["tau"][t], inputs["fext"][t])
    assert np.array_equal(r.q[T], q) and np.array_equal(r.v[T], v)
    assert np.array_equal(r.q, sim.rollout(r.q[0], r.v[0], U, substeps=K, **inputs).q)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_derivatives_are_those_of_the_rollout_written_out(options):
    sim, q, v, U, inputs = pushed(**options)
    nv, nu = sim.model.nv, sim.model.nu
    r, (every_U, every) = sim.rollout(q, v, U, substeps=K, **inputs), written_out(U, inputs)
    whole = sim.rollout(q, v, every_U, **every)
    assert np.array_equal(r.q, whole.q[::K]) and np.array_equal(r.v, whole.v[::K])

    # Reverse mode: cotangents at the rows, an output beside them.
    mass = next(name for name in sim.model.parameters() if name.startswith("mass/"))
    name = next(name for name in sim.model.outputs() if name.startswith("position/"))
    assert np.array_equal(r.output(name), whole.output(name)[::K])
    random = np.random.default_rng(2)
    dQ, dV, dy = (random.normal(size=(T + 1, size)) for size in (nv, nv, 3))
    spread = [np.zeros((T * K + 1, x.shape[1])) for x in (dQ, dV, dy)]
    for to, x in zip(spread, (dQ, dV, dy)):
        to[::K] = x
    g = r.vjp(dQ, dV, ["fext", mass], outputs={name: dy})
    w = whole.vjp(spread[0], spread[1], ["fext", mass], outputs={name: spread[2]})
    for key in ("q0", "v0", mass):
        assert np.array_equal(g[key], w[key])
    for key, x in {"u": U, **inputs}.items():
        assert g[key].shape == x.shape
        np.testing.assert_allclose(g[key], w[key].reshape(T, K, *x.shape[1:]).sum(1), rtol=1e-13, atol=1e-300)

    # Forward mode.
    dU, dtau = random.normal(size=U.shape), random.normal(size=(T, nv))
    found = r.jvp(dU=dU, dtau=dtau, dparameters={mass: 1.0})
    expected = whole.jvp(dU=np.repeat(dU, K, 0), dtau=np.repeat(dtau, K, 0), dparameters={mass: 1.0})
    assert all(np.array_equal(a, b[::K]) for a, b in zip(found, expected))
    wrt = ["q0", "u", "tau", mass]
    J, L = r.jacobian(wrt), r.jacobian(wrt, all_states=False)
    W = whole.jacobian(wrt)
    for key, width in (("q0", 0), ("u", nu), ("tau", nv), (mass, 0)):
        at_rows = W[key][::K]
        if width:
            at_rows = at_rows.reshape(T + 1, 2 * nv, T, K, width).sum(3).reshape(T + 1, 2 * nv, T * width)
        np.testing.assert_allclose(J[key], at_rows, rtol=1e-12, atol=1e-14 * (1 + abs(at_rows).max()))
        assert np.array_equal(L[key], J[key][-1])

    # And against the rows themselves: the cost of the last velocity, moved by one control.
    dx = np.zeros((T + 1, nv))
    dx[-1] = 1
    np.testing.assert_allclose(r.vjp(None, dx).u.ravel(), J["u"][-1, nv:].sum(0), rtol=1e-8, atol=1e-10)


def test_linearize_chains_the_steps():
    sim, q, v, U, inputs = pushed()
    nv = sim.model.nv
    mass = next(name for name in sim.model.parameters() if name.startswith("mass/"))
    r = sim.rollout(q, v, U, substeps=K, **inputs)
    rows = r.linearize([mass])
    A, B = rows
    assert A.shape == (T, 2 * nv, 2 * nv) and B.shape == (T, 2 * nv, sim.model.nu) and rows.ambiguous.shape == (T,)
    J = r.jacobian(["q0", "v0", "u", mass])
    X, F = np.eye(2 * nv), np.zeros((2 * nv, 1))
    by_u = np.zeros((2 * nv, sim.model.nu * T))
    for t in range(T):
        X, F, by_u = A[t] @ X, A[t] @ F + rows[mass][t], A[t] @ by_u
        by_u[:, t * sim.model.nu : (t + 1) * sim.model.nu] += B[t]
        np.testing.assert_allclose(np.hstack([J["q0"][t + 1], J["v0"][t + 1]]), X, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(J["u"][-1], by_u, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(J[mass][-1], F, rtol=1e-9, atol=1e-10)

    two_states = coulomb.Simulator(sim.model, stepper="bdf2", contact="penalty")
    with pytest.raises(RuntimeError, match="linearize: a bdf2 step depends on the two states before it"):
        two_states.rollout(q, v, U, substeps=K).linearize()


# One control and many steps of a row: where the steps of a row lie side by side in memory, NumPy would add them in another order.
@pytest.mark.parametrize("actuators, K", [(2, K), (1, 20)])
@pytest.mark.parametrize("options", OPTIONS[:1] + OPTIONS[2:3], ids=str)
def test_a_batch_is_its_rollouts(options, actuators, K):
    sim, q, v, U, inputs = pushed(actuators, **options)
    n, nv = 3, sim.model.nv
    random = np.random.default_rng(3)
    many = {name: np.stack([x * (1 + i) for i in range(n)]) for name, x in {"U": U, **inputs}.items()}
    batch = coulomb.BatchSimulator(sim.model, n, 2, **options)
    R = batch.rollout(np.tile(q, (n, 1)), np.tile(v, (n, 1)), substeps=K, **many)
    assert (R.steps, R.substeps, R.q.shape, R.converged.shape) == (T, K, (n, T + 1, sim.model.nq), (n, T))
    dQ, dV = random.normal(size=(2, n, T + 1, nv))
    dU = random.normal(size=many["U"].shape)
    name = next(name for name in sim.model.outputs() if name.startswith("position/"))
    dy = random.normal(size=(n, T + 1, 3))
    G, (JQ, JV, valid), Y = R.vjp(dQ, dV, ["fext"], outputs={name: dy}), R.jvp(dU=dU), R.output(name)
    bare = batch.rollout(np.tile(q, (n, 1)), np.tile(v, (n, 1)), substeps=K, derivatives=False, **many)
    assert valid.all() and np.array_equal(bare.output(name), Y)
    for i in range(n):
        r = sim.rollout(q, v, substeps=K, **{key: x[i] for key, x in many.items()})
        assert np.array_equal(R.q[i], r.q) and np.array_equal(R.v[i], r.v) and np.array_equal(Y[i], r.output(name))
        assert np.array_equal(R.converged[i], [s.converged for s in r.status])
        g = r.vjp(dQ[i], dV[i], ["fext"], outputs={name: dy[i]})
        for key in ("q0", "v0", "u", "tau", "fext"):
            assert np.array_equal(getattr(G, key)[i], g[key])
        assert all(np.array_equal(a, b) for a, b in zip((JQ[i], JV[i]), r.jvp(dU=dU[i])))
        if not options:
            assert np.array_equal(R.linearize().A[i], r.linearize().A)


def test_the_status_of_a_row_is_that_of_its_worst_substep():
    """A box falls on a corner, and one sweep of Gauss-Seidel is not enough for some of the steps."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.103), name="box")
    options = dict(timestep=1e-3, contact="lcp", solver="pgs", max_iterations=1)
    sim = coulomb.Simulator(scene.build(), **options)
    q, v = sim.model.neutral()
    v[0], v[3], v[4] = 0.5, 0.3, 0.5
    rows = 15
    r, whole = sim.rollout(q, v, steps=rows, substeps=K), sim.rollout(q, v, steps=rows * K)
    steps = [whole.status[t * K : (t + 1) * K] for t in range(rows)]
    worst = [max(row, key=lambda s: (not s.converged, s.residual)) for row in steps]

    # The scene has what the rule tells apart: rows in part, and a worst step that is not the first that did not converge, nor the last.
    wrong = [[not s.converged for s in row] for row in steps]
    assert any(any(row) and not all(row) for row in wrong)
    assert any(
        any(bad) and w is not row[bad.index(True)] and w is not row[-1] for bad, row, w in zip(wrong, steps, worst)
    )
    for status, row, w in zip(r.status, steps, worst):
        assert (status.converged, status.residual, status.reason) == (w.converged, w.residual, w.reason)
        assert status.iterations == sum(s.iterations for s in row)

    # Rows are counted, from 0.
    bad = [t for t, s in enumerate(r.status) if not s.converged]
    assert 0 < bad[0] and len(bad) < sum(map(sum, wrong))
    told = f"<Rollout: {rows} steps of {K} substeps, {len(bad)} not converged, the first is step {bad[0]}, of <Model"
    assert repr(r).startswith(told)

    # A batch says the same.
    R = coulomb.BatchSimulator(sim.model, 2, 2, **options).rollout([q, q], [v, v], steps=rows, substeps=K)
    for name in ("converged", "iterations", "residual"):
        assert np.array_equal(getattr(R, name), [[getattr(s, name) for s in r.status]] * 2)
    assert repr(R) == f"<BatchRollout: {rows} steps of {K} substeps of 2 environments, 0 of them converged>"


def test_torch():
    torch = pytest.importorskip("torch")
    import coulomb.torch

    sim, q, v, U, inputs = pushed()
    given = {name: torch.tensor(x, requires_grad=True) for name, x in {"U": U, **inputs}.items()}
    name = next(name for name in sim.model.outputs() if name.startswith("position/"))
    Q, V, Y, good = coulomb.torch.rollout(sim, q, v, substeps=K, outputs=name, return_status=True, **given)
    r = sim.rollout(q, v, U, substeps=K, **inputs)
    assert np.array_equal(V.detach().numpy(), r.v) and np.array_equal(Y.detach().numpy(), r.output(name))
    assert good.tolist() == [s.converged for s in r.status]
    V.sum().backward()
    g = r.vjp(None, np.ones_like(r.v), ["fext"])
    for key, x in given.items():
        np.testing.assert_allclose(x.grad.numpy(), g[key.lower()], rtol=1e-12, atol=1e-14)


def test_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    import coulomb.jax

    sim, q, v, U, inputs = pushed()
    name = next(name for name in sim.model.outputs() if name.startswith("position/"))
    call = dict(substeps=K, outputs=name, return_status=True)
    Q, V, Y, good = coulomb.jax.rollout(sim, q, v, U, **inputs, **call)
    r = sim.rollout(q, v, U, substeps=K, **inputs)
    assert np.array_equal(V, r.v) and np.array_equal(Y, r.output(name))
    assert good.tolist() == [s.converged for s in r.status]
    found = jax.grad(lambda U, fext: coulomb.jax.rollout(sim, q, v, U, fext=fext, **call)[1].sum(), (0, 1))(
        U, inputs["fext"]
    )
    g = sim.rollout(q, v, U, fext=inputs["fext"], substeps=K).vjp(None, np.ones_like(r.v), ["fext"])
    for mine, key in zip(found, ("u", "fext")):
        np.testing.assert_allclose(mine, g[key], rtol=1e-9, atol=1e-11)


def packages():
    """coulomb.torch and coulomb.jax, where what they stand on is installed."""
    return [importlib.import_module(f"coulomb.{name}") for name in ("torch", "jax") if importlib.util.find_spec(name)]


@pytest.mark.skipif(sys.platform != "linux", reason="no bound of memory")
def test_rows_that_do_not_fit_into_memory_are_named():
    program = """if 1:
        import resource
        import coulomb
        scene = coulomb.Scene()
        scene.add_sphere(0.1, name="ball")
        sim = coulomb.Simulator(scene.build())
        batch = coulomb.BatchSimulator(sim.model, 1, 1)
        q, v = sim.model.neutral()
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        for call in (
            lambda: sim.rollout(q, v, tau=[v], substeps=600000000),
            lambda: batch.rollout([q], [v], tau=[[v]], substeps=600000000),
        ):
            try:
                call()
            except MemoryError as error:
                print(error)"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    told = "substeps: got 600000000, 3600000000 numbers of rows held for so many steps do not fit into memory"
    assert [line.split(";")[0] for line in done.stdout.splitlines()] == [told, told], done.stderr


def test_what_is_refused_is_named():
    sim, q, v, U, inputs = pushed()
    batch = coulomb.BatchSimulator(sim.model, 2, 1)
    calls = [lambda k: sim.rollout(q, v, U, substeps=k), lambda k: batch.rollout([q, q], [v, v], [U, U], substeps=k)]
    calls += [lambda k, package=package: package.rollout(sim, q, v, U, substeps=k) for package in packages()]
    for bad in (0, -3, 2**31, 2**70, 2.5, "2", True, False, np.True_, None, (2**31 - 1) // T + 1):
        for call in calls:
            with pytest.raises(
                ValueError, match=f"substeps: got {bad!r}, expected a number of steps from 1 to 357913941,"
            ):
                call(bad)
    wrong = U.copy()
    wrong[4, 0] = np.nan  # the row that was given, not that of a step
    with pytest.raises(ValueError, match=r"U\[4, 0\] is nan"):
        sim.rollout(q, v, wrong, substeps=K)
    with pytest.raises(ValueError, match=r"U\[1, 4, 0\] is nan"):
        batch.rollout([q, q], [v, v], [U, wrong], substeps=K)
    with pytest.raises(ValueError, match="steps: got 3, but U has 6 rows"):
        sim.rollout(q, v, U, steps=3, substeps=K)
    with pytest.raises(ValueError, match=r"dV: expected shape \(7, "):
        sim.rollout(q, v, U, substeps=K).vjp(None, np.zeros((T * K + 1, sim.model.nv)))


def test_no_inputs_and_no_rows():
    sim, q, v, _, _ = pushed()
    assert np.array_equal(sim.rollout(q, v, steps=3, substeps=5).q, sim.rollout(q, v, steps=15).q[::5])
    r = sim.rollout(q, v, steps=0, substeps=5)
    assert r.q.shape == (1, sim.model.nq) and r.status == [] and r.linearize().A.shape[0] == 0
    assert r.vjp(None, np.ones((1, sim.model.nv))).u.shape == (0, sim.model.nu)
    assert r.jacobian(["u"])["u"].shape == (1, 2 * sim.model.nv, 0)
