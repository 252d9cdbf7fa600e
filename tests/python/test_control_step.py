"""batch.control_step and coulomb.torch.control_step: the states of steps taken one by one, to the bit, with what environments remember
carried from call to call; derivatives that are the product of those steps' Jacobians and the differences of the whole; masks and resets."""

import gc
import os
import pickle
import subprocess
import sys
import weakref

import numpy as np
import pytest

import coulomb
from scenes import contacts

N, K = 4, 3
OPTIONS = [
    {},
    {"contact": "lcp"},
    {"contact": "lcp", "gradient": "complementarity_aware"},
    {"contact": "penalty"},
    {"stepper": "bdf1"},
    {"continuous_collision": True},
]


def pushed(threads=2, **options):
    """A batch of arms that push boxes, their states and inputs."""
    model, q, v = contacts.arm_pushes_box(np.random.default_rng(0))
    random = np.random.default_rng(1)
    batch = coulomb.BatchSimulator(model, N, threads, 2e-3, **options)
    Q, V = np.tile(q, (N, 1)), np.tile(v, (N, 1)) + 0.1 * random.normal(size=(N, model.nv))
    inputs = {
        "tau": 0.1 * random.normal(size=(N, model.nv)),
        "fext": 0.1 * random.normal(size=(N, model.num_bodies, 6)),
    }
    return batch, Q, V, random.normal(size=(N, model.nu)), inputs


def one_by_one(batch, Q, V, U, inputs, steps=K):
    """States after so many steps of batch.step, and the product of their Jacobians."""
    A = B = None
    for _ in range(steps):
        Q, V = batch.step(Q, V, U, **inputs)
        d = batch.derivatives()
        A, B = (d.A, d.B) if A is None else (d.A @ A, d.A @ B + d.B)
    return Q, V, A, B


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_control_step_is_its_steps_and_carries_what_they_remember(options):
    batch, Q, V, U, inputs = pushed(**options)
    other, *_ = pushed(**options)
    for _ in range(4):
        Q1, V1, record = batch.control_step(Q, V, U, substeps=K, **inputs)
        Q2, V2, A, B = one_by_one(other, Q, V, U, inputs)
        assert np.array_equal(Q1, Q2) and np.array_equal(V1, V2)
        assert record.substeps == K and record.converged.all() and record.status
        assert pickle.dumps(batch.memory) == pickle.dumps(other.memory)

        # Its Jacobian is the product, its products are those with that.
        J = record.jacobian()
        scale = np.abs(A).max()
        if options.get("gradient") != "complementarity_aware":
            assert np.abs(J.A - A).max() < 1e-12 * scale and np.abs(J.B - B).max() < 1e-12 * max(scale, np.abs(B).max())
        random = np.random.default_rng(2)
        nv = batch.model.nv
        dQ1, dV1 = random.normal(size=(2, N, nv))
        g = record.vjp(dQ1, dV1)
        expected = np.einsum("nij,ni->nj", A, np.concatenate([dQ1, dV1], axis=1))
        assert np.abs(np.concatenate([g.q, g.v], axis=1) - expected).max() < 1e-10 * scale
        dQ, dV = random.normal(size=(2, N, nv))
        dU = random.normal(size=U.shape)
        found = np.concatenate(record.jvp(dQ, dV, dU), axis=1)
        expected = np.einsum("nij,nj->ni", A, np.concatenate([dQ, dV], axis=1)) + np.einsum("nij,nj->ni", B, dU)
        assert np.abs(found - expected).max() < 1e-10 * scale
        Q, V = Q1, V1


def test_differences_of_the_whole():
    """With memories saved, so that every difference starts where the step did."""
    batch, Q, V, U, inputs = pushed()
    wrt = ["mass/" + batch.model.body_names[-1], "gravity"]
    for _ in range(3):
        Q, V, _ = batch.control_step(Q, V, U, substeps=K, **inputs)
    memory = batch.memory
    _, V1, record = batch.control_step(Q, V, U, substeps=K, **inputs)
    dV1 = np.random.default_rng(3).normal(size=V1.shape)
    g = record.vjp(np.zeros_like(dV1), dV1, [*wrt, "fext"])

    def loss(dq=0.0, dv=0.0, du=0.0, dtau=0.0, dfext=0.0):
        batch.memory = memory
        Qd = np.array([batch.model.integrate(q, w) for q, w in zip(Q, dq + np.zeros_like(V))])
        more = {"tau": inputs["tau"] + dtau, "fext": inputs["fext"] + dfext}
        _, V1, _ = batch.control_step(Qd, V + dv, U + du, substeps=K, derivatives=False, **more)
        return (dV1 * V1).sum(axis=1)

    random = np.random.default_rng(4)
    h = 1e-7  # one of the arms has a kink 7e-7 away
    for name, array, gradient in [
        ("dq", V, g.q),
        ("dv", V, g.v),
        ("du", U, g.u),
        ("dtau", V, g.tau),
        ("dfext", inputs["fext"], g["fext"]),
    ]:
        d = random.normal(size=array.shape)
        difference = (loss(**{name: h * d}) - loss(**{name: -h * d})) / (2 * h)
        exact = (gradient * d).reshape(N, -1).sum(axis=1)
        assert np.abs(difference - exact).max() < 1e-5 * max(1, np.abs(exact).max()), name

    # Parameters, each environment's its own.
    for name in wrt:
        size = g[name].shape[1]
        base = np.tile(np.atleast_1d(batch.model.parameters()[name].value), (N, 1))
        d = random.normal(size=(N, size))
        values = []
        for sign in (1, -1):
            batch.set_parameters({name: base + sign * h * d})
            values.append(loss())
        batch.set_parameters({name: base})
        difference = (values[0] - values[1]) / (2 * h)
        exact = (g[name] * d).sum(axis=1)
        assert np.abs(difference - exact).max() < 1e-5 * max(1, np.abs(exact).max()), name


def test_rows_that_the_mask_leaves_out_are_passed_on():
    batch, Q, V, U, inputs = pushed()
    mask = np.array([True, False, True, False])
    Q[1], V[3], U[1] = np.nan, np.inf, np.nan
    Q1, V1, record = batch.control_step(Q, V, U, substeps=K, mask=mask, **inputs)
    assert np.array_equal(Q1[~mask], Q[~mask], equal_nan=True) and np.array_equal(V1[~mask], V[~mask])
    assert record.converged.all() and record.status.reason[1] == "left out by the mask"
    assert (record.status.iterations[~mask] == 0).all() and record.status.reason[0] == "solved"

    # The identity for them, and for the others what they are without a mask.
    random = np.random.default_rng(2)
    dQ1, dV1 = random.normal(size=(2, *V.shape))
    g = record.vjp(dQ1, dV1, ["gravity", "fext"])
    assert g.valid.all()
    assert np.array_equal(g.q[~mask], dQ1[~mask]) and np.array_equal(g.v[~mask], dV1[~mask])
    assert not g.u[~mask].any() and not g["gravity"][~mask].any() and not g["fext"][~mask].any()
    J = record.jacobian(["gravity"])
    assert np.array_equal(J.A[1], np.eye(2 * V.shape[1])) and not J.B[1].any() and not J["gravity"][1].any()
    dq1, dv1 = record.jvp(dQ1, dV1, random.normal(size=U.shape))
    assert np.array_equal(dq1[~mask], dQ1[~mask]) and np.array_equal(dv1[~mask], dV1[~mask])

    whole, Q, V, U, inputs = pushed()
    Q2, V2, all_of_them = whole.control_step(Q, V, U, substeps=K, **inputs)
    assert np.array_equal(Q1[mask], Q2[mask]) and np.array_equal(V1[mask], V2[mask])
    assert np.array_equal(g.q[mask], all_of_them.vjp(dQ1, dV1).q[mask])


def test_a_record_stays_good_when_the_batch_goes_on():
    batch, Q, V, U, inputs = pushed()
    dQ1, dV1 = np.random.default_rng(2).normal(size=(2, *V.shape))
    records, gradients, states = [], [], (Q, V)
    for _ in range(5):
        *states, record = batch.control_step(*states, U, substeps=K, **inputs)
        records.append(record)
        gradients.append(record.vjp(dQ1, dV1).q)
    batch.reset()
    batch.step(Q, V, U)
    for record, gradient in zip(records[::-1], gradients[::-1]):
        assert np.array_equal(record.vjp(dQ1, dV1).q, gradient)


@pytest.mark.parametrize("options", [{}, {"stepper": "bdf1"}, {"gradient": "smoothed_step"}], ids=str)
def test_without_room_steps_are_run_again_to_the_same_gradient(options):
    gradients = []
    for budget in (None, 1):
        batch, Q, V, U, inputs = pushed(**options)
        Q, V, _ = batch.control_step(Q, V, U, substeps=K, **inputs)
        _, _, record = batch.control_step(Q, V, U, substeps=K, memory_budget=budget, **inputs)
        g = record.vjp(np.ones_like(V), np.ones_like(V))
        gradients.append(np.concatenate([g.q, g.v, g.u], axis=1))
    assert np.abs(gradients[0] - gradients[1]).max() <= 1e-12 * np.abs(gradients[0]).max()


def test_outputs_and_their_cotangents():
    batch, Q, V, U, inputs = pushed()
    body = batch.model.body_names[-1]
    names = [f"position/{body}", f"contact_force/{body}"]
    Q1, V1, record = batch.control_step(Q, V, U, substeps=K, **inputs)
    y = record.output(names)
    assert np.array_equal(y, batch.output(names))
    w = np.random.default_rng(5).normal(size=(N, 3))
    g = record.vjp(outputs={names[1]: w})
    h = 1e-6
    d = np.random.default_rng(6).normal(size=V.shape)
    values = []
    for sign in (1, -1):
        batch.reset()
        _, _, moved = batch.control_step(Q, V + sign * h * d, U, substeps=K, **inputs)
        values.append((w * moved.output(names[1])).sum(axis=1))
    difference = (values[0] - values[1]) / (2 * h)
    exact = (g.v * d).sum(axis=1)
    assert np.abs(difference - exact).max() < 1e-5 * max(1, np.abs(exact).max())


def test_one_environment_overflows_and_the_others_go_on():
    batch, Q, V, U, inputs = pushed()
    V[2] = 1e200
    Q1, V1, record = batch.control_step(Q, V, U, substeps=K, **inputs)
    assert list(record.converged) == [True, True, False, True] and "overflow" in record.status.reason[2]
    g = record.vjp(np.ones_like(V), np.ones_like(V))
    assert list(g.valid) == [True, True, False, True] and not g.q[2].any() and g.q[1].any()


def test_bdf2_starts_anew_at_every_call():
    batch, Q, V, U, inputs = pushed(stepper="bdf2")
    batch.control_step(Q, V, U, **inputs)
    Q1, _, record = batch.control_step(Q, V, U, **inputs)
    other, *_ = pushed(stepper="bdf2")
    assert np.array_equal(Q1, other.control_step(Q, V, U, **inputs)[0])
    assert record.vjp(np.ones_like(V), np.ones_like(V)).valid.all()
    with pytest.raises(RuntimeError, match="bdf2"):
        batch.control_step(Q, V, U, substeps=2)[2].jacobian()


def test_any_array_that_holds_numbers_will_do():
    batch, Q, V, U, _ = pushed()
    Q1, V1, _ = batch.control_step(Q, V, U)
    batch.reset()
    read_only = [np.array(x) for x in (Q, V, U)]
    for x in read_only:
        x.flags.writeable = False
    assert np.array_equal(Q1, batch.control_step(*read_only)[0])
    batch.reset()
    narrow = [x.astype(np.float32) for x in (Q, V, U)]
    wide = batch.control_step(*[x.astype(float) for x in narrow])[0]
    batch.reset()
    assert np.array_equal(wide, batch.control_step(*narrow)[0])


WRONG = [
    (dict(Q=lambda x: x[:2]), "Q: expected shape"),
    (dict(V=lambda x: np.where(np.arange(x.size).reshape(x.shape) == 7, np.nan, x)), "V.*nan"),
    (dict(U=lambda x: np.full_like(x, np.inf)), r"U\[0, 0\] is inf"),
    (dict(U=lambda x: "a"), "U"),
    (dict(substeps=lambda _: 0), "substeps: got 0"),
    (dict(substeps=lambda _: 1.5), "substeps: got 1.5"),
    (dict(mask=lambda _: np.ones(3)), "mask"),
    (dict(memory_budget=lambda _: -1.0), "memory_budget: got -1"),
]


@pytest.mark.parametrize("change, message", WRONG, ids=[m for _, m in WRONG])
def test_what_is_wrong_is_named_and_nothing_moves(change, message):
    batch, Q, V, U, _ = pushed()
    given = {"Q": Q, "V": V, "U": U, "substeps": 1, "mask": None, "memory_budget": None}
    batch.control_step(Q, V, U)
    before = pickle.dumps(batch.memory)
    for name, wrong in change.items():
        given[name] = wrong(given[name])
    with pytest.raises((ValueError, TypeError), match=message):
        batch.control_step(given.pop("Q"), given.pop("V"), given.pop("U"), **given)
    assert pickle.dumps(batch.memory) == before


def test_a_wrench_that_is_wrong_is_named_by_its_three_indices():
    batch, Q, V, U, inputs = pushed()
    inputs["fext"][1, 2, 3] = np.nan
    with pytest.raises(ValueError, match=r"fext\[1, 2, 3\] is nan"):
        batch.control_step(Q, V, U, substeps=K, **inputs)


def test_without_derivatives_there_are_none():
    batch, Q, V, U, _ = pushed()
    *_, record = batch.control_step(Q, V, U, derivatives=False)
    for ask in (lambda: record.vjp(V, V), record.jacobian, lambda: record.jvp(V, V), lambda: record.output("time")):
        with pytest.raises(RuntimeError, match="derivatives=False"):
            ask()


torch = pytest.importorskip("torch")
import coulomb.torch  # noqa: E402


def tensors(*arrays):
    return [torch.tensor(x, requires_grad=True) for x in arrays]


def test_torch_has_the_gradient_of_a_policy_through_many_control_steps():
    """Against differences of the whole loop, whose memories start at a reset."""
    batch, Q, V, U, _ = pushed(1)
    model = batch.model
    W = 0.1 * np.random.default_rng(7).normal(size=(model.nv, model.nu))

    def loss(W):
        batch.reset()
        q, v = torch.tensor(Q), torch.tensor(V)
        total = torch.zeros(())
        for _ in range(4):
            q, v = coulomb.torch.control_step(batch, q, v, torch.tanh(v @ W), substeps=K)
            total = total + (v * v).sum() + (q * q).sum()
        return total

    (weights,) = tensors(W)
    loss(weights).backward()
    d = np.random.default_rng(8).normal(size=W.shape)
    h = 1e-6
    difference = (float(loss(torch.tensor(W + h * d))) - float(loss(torch.tensor(W - h * d)))) / (2 * h)
    assert abs(difference - float((weights.grad * torch.tensor(d)).sum())) < 1e-6 * max(1, abs(difference))


def test_torch_gives_parameters_outputs_and_status():
    batch, Q, V, U, inputs = pushed()
    name = "mass/" + batch.model.body_names[-1]
    mass = np.tile(np.atleast_1d(batch.model.parameters()[name].value), (N, 1)) * np.arange(1.0, N + 1)[:, None]
    q, v, u, tau, fext, m = tensors(Q, V, U, inputs["tau"], inputs["fext"], mass)
    more = {"tau": tau, "fext": fext, "substeps": K, "return_status": True}
    body = f"position/{batch.model.body_names[-1]}"
    q1, v1, y, good = coulomb.torch.control_step(batch, q, v, u, {name: m}, outputs=body, **more)
    assert good.dtype == torch.bool and bool(good.all()) and y.shape == (N, 3)
    weights = torch.tensor(np.random.default_rng(9).normal(size=(N, 3)))
    ((y * weights).sum() + (v1 * v1).sum()).backward()

    # What the record itself says.
    own = coulomb.BatchSimulator(batch.model, N, 1, 2e-3, parameters={name: mass})
    Q1, V1, record = own.control_step(Q, V, U, substeps=K, **inputs)
    assert np.array_equal(q1.detach().numpy(), Q1)
    g = record.vjp(np.zeros_like(V), 2 * V1, [name, "fext"], outputs={body: weights.numpy()})
    for tensor, expected in ((v, g.v), (u, g.u), (tau, g.tau), (fext, g["fext"]), (m, g[name])):
        assert np.allclose(tensor.grad.numpy(), expected, rtol=0, atol=1e-12 * np.abs(expected).max())

    # Values that stay keep the memory, those that change start cold.
    memory = pickle.dumps(batch.memory)
    coulomb.torch.control_step(batch, q, v, u, {name: m}, mask=np.zeros(N, bool))
    assert pickle.dumps(batch.memory) == memory


def masses_of(batch, name):
    return np.array([batch.environment_model(i).parameters()[name].value for i in range(N)]).reshape(N, -1)


def test_torch_sets_its_parameters_again_where_another_writer_changed_them():
    batch, Q, V, U, _ = pushed()
    body = batch.model.body_names[-1]
    name, other = f"mass/{body}", f"inertia/{body}"
    q, v, u = tensors(Q, V, U)
    (mass,) = tensors(np.full((N, 1), 2.0))

    def gradient():
        mass.grad = None
        batch.reset()
        q1, v1 = coulomb.torch.control_step(batch, q, v, u, {name: mass}, substeps=K)
        v1.square().sum().backward()
        return v1.detach().numpy(), mass.grad.numpy().copy()

    first, models, one = gradient(), list(batch._models), np.arange(N) == 1
    heavy = np.tile(batch.model.parameters()[other].value, (N, 1))
    heavy[:, 0] = 5.0

    def models_are_replaced():
        batch._models = [model.with_parameters({name: 5.0}) for model in models]

    # Writers of the same number, of some environments, and of whole models: the first result, to the bit.
    for writer in (
        lambda: batch.set_parameters({name: np.full((N, 1), 5.0)}),
        lambda: batch.set_parameters({name: np.full((N, 1), 5.0)}, one),
        models_are_replaced,
    ):
        writer()
        assert (masses_of(batch, name) == 5).any()
        assert all(np.array_equal(a, b) for a, b in zip(first, gradient()))
        assert (masses_of(batch, name) == 2).all()

    # Writers by a name that has the mass in it, here and there.
    for writer in (
        lambda: batch.set_parameters({other: heavy}),
        lambda: coulomb.torch.control_step(batch, q, v, u, {other: torch.tensor(heavy)}),
    ):
        writer()
        assert (masses_of(batch, name) == 5).all()
        gradient()
        assert (masses_of(batch, name) == 2).all()


def test_torch_keeps_warm_what_has_its_parameters_already():
    batch, Q, V, U, _ = pushed()
    name = "mass/" + batch.model.body_names[-1]
    q, v, u = tensors(Q, V, U)
    batch.set_parameters({name: np.full((N, 1), 2.0)})
    coulomb.torch.control_step(batch, q, v, u)
    memory = batch.memory.environments
    mass = torch.full((N, 1), 2.0)
    mass[1] = 3.0
    coulomb.torch.control_step(batch, q, v, u, {name: mass}, mask=np.zeros(N, bool))
    for i, (before, after) in enumerate(zip(memory, batch.memory.environments)):
        assert (pickle.dumps(before) == pickle.dumps(after)) == (i != 1)


def test_torch_refuses_what_is_wrong_and_second_derivatives():
    batch, Q, V, U, _ = pushed()
    q, v, u = tensors(Q, V, U)
    with pytest.raises(TypeError, match="batch: expected a coulomb.BatchSimulator"):
        coulomb.torch.control_step(coulomb.Simulator(batch.model), q, v, u)
    with pytest.raises(TypeError, match="Q: got None"):
        coulomb.torch.control_step(batch, None, v, u)
    with pytest.raises(ValueError, match="U: expected shape"):
        coulomb.torch.control_step(batch, q, v, u[:2])
    with pytest.raises(ValueError, match="unknown 'mass/nothing'"):
        coulomb.torch.control_step(batch, q, v, u, {"mass/nothing": torch.ones(N, 1)})
    _, v1 = coulomb.torch.control_step(batch, q, v, u)
    (g,) = torch.autograd.grad((v1 * v1).sum(), v, create_graph=True)
    with pytest.raises(RuntimeError, match="first derivatives only"):
        (g * g).sum().backward()


def test_torch_changes_no_parameter_where_an_input_is_refused():
    batch, Q, V, U, _ = pushed()
    name = "mass/" + batch.model.body_names[-1]
    coulomb.torch.control_step(batch, *tensors(Q, V, U))
    before = pickle.dumps(batch.memory), batch.environment_model(0).parameters()[name].value
    U[1, 0] = np.nan
    with pytest.raises(ValueError, match=r"U\[1, 0\] is nan"):
        coulomb.torch.control_step(batch, *tensors(Q, V, U), {name: torch.full((N, 1), 7.0)})
    assert (pickle.dumps(batch.memory), batch.environment_model(0).parameters()[name].value) == before


def test_torch_takes_float32_and_cuts_resets():
    batch, Q, V, U, _ = pushed()
    q, v, u = (torch.tensor(x, dtype=torch.float32, requires_grad=True) for x in (Q, V, U))
    q1, v1 = coulomb.torch.control_step(batch, q, v, u, substeps=K)
    assert v1.dtype == torch.float32

    # Environment 0 is reset between two control steps: nothing of its first one is felt.
    done = np.arange(N) == 0
    batch.reset(done)
    q0, v0 = torch.tensor(Q, dtype=torch.float32), torch.tensor(V, dtype=torch.float32)
    start = torch.tensor(done)[:, None]
    _, v2 = coulomb.torch.control_step(batch, torch.where(start, q0, q1), torch.where(start, v0, v1), u.detach())
    v2.square().sum().backward()
    assert not u.grad[0].any() and u.grad[1:].any()
    assert u.grad.dtype == torch.float32


def test_a_batch_is_freed_with_its_graph():
    batch, Q, V, U, _ = pushed()
    alive = weakref.ref(batch)
    q, v, u = tensors(Q, V, U)
    results = coulomb.torch.control_step(batch, q, v, u)
    assert batch in coulomb.torch._control_states
    del batch
    gc.collect()
    assert alive() is not None  # the graph needs it
    del results
    gc.collect()
    assert alive() is None


def test_nothing_is_told_to_have_leaked_at_the_end():
    code = (
        "import coulomb, coulomb.torch, torch\n"
        "s = coulomb.Scene(); s.add_sphere(.1, mass=1., name='b'); m = s.build()\n"
        "b = coulomb.BatchSimulator(m, 2)\n"
        "q = torch.tensor([list(m.neutral()[0])] * 2, requires_grad=True)\n"
        "keep = coulomb.torch.control_step(b, q, torch.zeros(2, m.nv))\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))
    assert out.returncode == 0 and "leak" not in out.stderr, out.stderr


def test_jax_has_the_same_state_and_gradient():
    jax = pytest.importorskip("jax")
    import coulomb.jax

    jax.config.update("jax_enable_x64", True)
    batch, Q, V, U, inputs = pushed()
    sim = coulomb.Simulator(batch.model, timestep=2e-3)
    Q1, V1, record = batch.control_step(Q, V, U, substeps=K, **inputs)

    def energy(v, u):
        q1, v1, good = coulomb.jax.control_step(sim, Q, v, u, substeps=K, return_status=True, **inputs)
        return (v1 * v1).sum(), (q1, good)

    (dv, du), (q1, good) = jax.grad(energy, (0, 1), has_aux=True)(V, U)
    assert np.array_equal(q1, Q1) and bool(good.all())
    g = record.vjp(np.zeros_like(V), 2 * V1)
    assert np.allclose(dv, g.v, rtol=0, atol=1e-10 * np.abs(g.v).max())
    assert np.allclose(du, g.u, rtol=0, atol=1e-10 * np.abs(g.u).max())
    q1, v1 = coulomb.jax.control_step(sim, Q[0], V[0])
    assert q1.shape == (sim.model.nq,) and v1.shape == (sim.model.nv,)
