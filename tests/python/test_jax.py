"""coulomb.jax: gradients forward and reverse against JAX's own differences; jit, vmap, types, errors."""

import numpy as np
import pytest
from autograd_differences import check_jacobian

import coulomb
from scenes.smooth import ball_joint, robot_in_contact, sliding_box

jax = pytest.importorskip("jax", reason="JAX is not installed")
cj = pytest.importorskip("coulomb.jax")
jnp = jax.numpy


@pytest.fixture(autouse=True)
def double_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def check(function, *arguments):
    """Forward and reverse."""

    @jax.jit
    def flat(*values):
        return jnp.concatenate([jnp.ravel(x) for x in jax.tree_util.tree_leaves(function(*values))])

    inputs = [jnp.asarray(x) for x in arguments]
    every = tuple(range(len(inputs)))
    jacobians = [jax.jit(mode(flat, every))(*inputs) for mode in (jax.jacfwd, jax.jacrev)]
    modes = [[np.asarray(b).reshape(b.shape[0], -1) for b in blocks] for blocks in jacobians]
    check_jacobian(lambda *x: np.asarray(flat(*map(jnp.asarray, x))), modes, inputs)


@pytest.mark.parametrize("build", [sliding_box, ball_joint, robot_in_contact])
def test_step_by_every_input(build):
    model, q, v = build()
    sim = coulomb.Simulator(model)
    sim.step(q, v)
    assert any(c.mode != "separating" for c in sim.contacts) and coulomb.check_gradients(sim, q, v).smooth
    random = np.random.default_rng(0)
    u, tau = 0.1 * random.normal(size=model.nu), 0.01 * random.normal(size=model.nv)
    if model.nu:
        check(lambda *x: cj.step(sim, *x), q, v, u, tau)
    else:
        check(lambda q, v, tau: cj.step(sim, q, v, tau=tau), q, v, tau)


def test_quaternions_of_other_lengths():
    model, q, v = robot_in_contact()
    sim = coulomb.Simulator(model)
    longer = q.copy()
    longer[3:7] *= 1.7
    check(lambda q: cj.step(sim, q, v), longer)
    check(lambda q: cj.rollout(sim, q, v, steps=2), longer)


def test_parameters():
    model, q, v = sliding_box()
    sim = coulomb.Simulator(model)
    names = "mass/box", "friction/ground", "com/box"
    values = [model.parameters()[name].value for name in names]
    check(lambda *x: cj.step(sim, q, v, parameters=dict(zip(names, x))), *values)
    check(lambda *x: cj.rollout(sim, q, v, parameters=dict(zip(names, x)), steps=4), *values)


def test_the_step_is_the_simulators():
    model, q, v = robot_in_contact()
    sim = coulomb.Simulator(model)
    u = np.array([0.1, -0.2])
    expected = coulomb.Simulator(model).step(q, v, u)
    for got in (cj.step(sim, q, v, u), jax.jit(lambda *x: cj.step(sim, *x))(q, v, u)):
        assert np.array_equal(got[0], expected[0]) and np.array_equal(got[1], expected[1])
    U = np.tile(u, (7, 1))
    expected = sim.rollout(q, v, U)
    Q, V = jax.jit(lambda *x: cj.rollout(sim, *x))(q, v, U)
    assert np.array_equal(Q, expected.q) and np.array_equal(V, expected.v)
    loss = lambda U: (cj.rollout(sim, q, v, U)[1] ** 2).sum()  # noqa: E731
    assert jax.value_and_grad(loss)(U)[0] == loss(U)  # differentiated or not


def test_forward_and_reverse_agree():
    model, q, v = robot_in_contact()
    sim = coulomb.Simulator(model)
    U = 0.1 * np.random.default_rng(2).normal(size=(5, model.nu))

    def last(U, m):
        Q, V = cj.rollout(sim, q, v, U, parameters={name: m})
        return jnp.concatenate([Q[-1], V[-1]])

    name = next(name for name in model.parameters() if name.startswith("mass/"))
    m = jnp.asarray(model.parameters()[name].value)
    for forward, reverse in zip(jax.jacfwd(last, (0, 1))(U, m), jax.jacrev(last, (0, 1))(U, m)):
        assert np.abs(forward).max() > 1e-6
        np.testing.assert_allclose(forward, reverse, rtol=1e-10, atol=1e-14)


def test_rollout_against_the_adjoint_of_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    import coulomb.torch as ct

    model, q, v = robot_in_contact()
    sim = coulomb.Simulator(model)
    U = 0.1 * np.random.default_rng(2).normal(size=(30, model.nu))
    g = jax.grad(lambda U: (cj.rollout(sim, q, v, U)[1] ** 2).sum())(U)
    x = torch.tensor(U, requires_grad=True)
    ct.rollout(sim, q, v, x)[1].square().sum().backward()
    np.testing.assert_allclose(g, x.grad.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("stepper", ["bdf1", "bdf2"])
@pytest.mark.parametrize("build", [ball_joint, robot_in_contact])
def test_implicit_steppers(build, stepper):
    """Rollouts, where bdf2 looks two states back, against the adjoint; batches; chains of single steps, each a start of the method."""
    model, q, v = build()
    sim = coulomb.Simulator(model, stepper=stepper, timestep=2e-3)
    random = np.random.default_rng(6)
    name = next(name for name in model.parameters() if name.startswith("mass/"))
    mass = np.asarray(model.parameters()[name].value)
    W, w = random.normal(size=(9, model.nq)), random.normal(size=(9, model.nv))

    def loss(q, v, m):
        Q, V = cj.rollout(sim, q, v, parameters={name: m}, steps=8)
        return (Q * W).sum() + (V * w).sum()

    check(loss, q, v, mass)
    exact = jax.grad(loss, (1, 2))(q, v, mass)
    g = sim.rollout(q, v, steps=8).vjp(dV=w, wrt=[name])
    only = jax.grad(lambda v, m: (cj.rollout(sim, q, v, parameters={name: m}, steps=8)[1] * w).sum(), (0, 1))(v, mass)
    np.testing.assert_allclose(only[0], g.v0, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(only[1], g[name], rtol=1e-9, atol=1e-10)
    rows = jax.vmap(jax.grad(loss, (1, 2)), (None, 0, None))(q, np.stack([v, 1.01 * v]), mass)
    for k in (0, 1):
        np.testing.assert_allclose(rows[k][0], exact[k], rtol=1e-9, atol=1e-10)
    check(lambda v: jax.lax.scan(lambda x, _: (cj.step(sim, *x), None), (jnp.asarray(q), v), None, length=4)[0], v)


def test_vmap_and_jit():
    model, q, v = robot_in_contact()
    sim = coulomb.Simulator(model)
    random = np.random.default_rng(4)
    V = v + 0.02 * random.normal(size=(4, model.nv))
    U = 0.1 * random.normal(size=(4, 6, model.nu))

    def loss(v, U):
        return (cj.rollout(sim, q, v, U)[1][-1] ** 2).sum()

    single = [jax.grad(loss, (0, 1))(v, u) for v, u in zip(V, U)]
    for transform in (lambda f: f, jax.jit):
        both = transform(jax.vmap(jax.grad(loss, (0, 1))))(V, U)
        for k in (0, 1):
            np.testing.assert_allclose(both[k], np.stack([g[k] for g in single]), rtol=1e-10, atol=1e-13)
    stepped = jax.jit(jax.vmap(lambda v: cj.step(sim, q, v)))(V)  # q is the same for all
    batched = cj.step(sim, q, V)
    rows = [coulomb.Simulator(model).step(q, v) for v in V]
    for k in (0, 1):
        assert np.array_equal(stepped[k], batched[k]) and np.array_equal(stepped[k], [r[k] for r in rows])
    nested = jax.vmap(jax.vmap(lambda v, u: cj.step(sim, q, v, u)[1]))(V.reshape(2, 2, -1), U[:, 0].reshape(2, 2, -1))
    np.testing.assert_array_equal(nested.reshape(4, -1), cj.step(sim, q, V, U[:, 0])[1])


def test_batched_parameters():
    model, q, v = sliding_box()
    sim = coulomb.Simulator(model)
    masses = jnp.array([[1.0], [2.0], [4.0]])
    f = lambda m: cj.step(sim, q, v, tau=jnp.full(6, 0.1), parameters={"mass/box": m})[1]  # noqa: E731
    assert f(masses).shape == (3, 6)
    np.testing.assert_array_equal(f(masses), jax.vmap(f)(masses))
    check(f, masses)


def test_steps_inside_scan():
    model, q, v = sliding_box()
    sim = coulomb.Simulator(model)

    @jax.jit
    def last(v):
        return jax.lax.scan(lambda x, _: (cj.step(sim, *x), None), (jnp.asarray(q), v), None, length=5)[0][1]

    check(last, v)


def test_single_precision():
    model, q, v = robot_in_contact()
    sim = coulomb.Simulator(model)
    u = np.array([0.1, 0.2])
    loss = lambda q, v, u: cj.rollout(sim, q, v, jnp.stack([u, u]))[1].sum()  # noqa: E731
    exact = jax.grad(loss, (0, 1, 2))(q, v, u)
    small = [np.float32(a) for a in (q, v, u)]
    jax.config.update("jax_enable_x64", False)
    assert cj.step(sim, *small)[0].dtype == jnp.float32
    for a, b in zip(jax.jit(jax.grad(loss, (0, 1, 2)))(*small), exact):
        assert a.dtype == jnp.float32
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def test_a_rollout_of_no_steps():
    model, q, v = sliding_box()
    sim = coulomb.Simulator(model)
    Q, V = cj.rollout(sim, q, v, steps=0)
    assert Q.shape == (1, 7) and V.shape == (1, 6)
    np.testing.assert_array_equal(jax.grad(lambda v: cj.rollout(sim, q, v, steps=0)[1].sum())(v), np.ones(6))


@pytest.mark.parametrize("transformed", ["jit", "grad", "vmap", "parameter", "output"])
def test_errors_inside_transformations_are_short(transformed, caplog):
    """The reason and one line of where, not JAX's stack; and once, not in the log too."""
    model, q, v = sliding_box()
    sim = coulomb.Simulator(model)
    nan = np.where(np.arange(6) == 2, np.nan, v)
    call, reason = {
        "jit": (lambda: jax.jit(lambda x: cj.step(sim, q, x)[1])(nan), "v[2] is nan"),
        "grad": (lambda: jax.grad(lambda x: cj.rollout(sim, q, x, steps=2)[1].sum())(nan), "v[2] is nan"),
        "vmap": (lambda: jax.vmap(lambda x: cj.step(sim, q, x)[1])(np.stack([v, nan])), "V[1, 2] is nan"),
        "parameter": (lambda: jax.jit(lambda m: cj.step(sim, q, v, parameters={"mass/box": m})[1])(-1.0), "mass/box"),
        "output": (lambda: jax.jit(lambda x: cj.output(sim, "velocity/box", q, x))(nan), "v[2] = nan"),
    }[transformed]
    with pytest.raises(Exception) as raised:
        jax.block_until_ready(call())
    told = str(raised.value)
    assert reason in told.splitlines()[-1], told
    assert len(told) < 400 and told.count("File") <= 1, told
    assert not caplog.records


def test_errors_name_the_argument():
    model, q, v = sliding_box()
    sim = coulomb.Simulator(model)
    nan = v.copy()
    nan[2] = np.nan
    cases = [
        (lambda: cj.step(sim, q[:5], v), ValueError, r"q: expected shape \(\.\.\., 7\)|q: expected shape \(\.\.\., 7"),
        (lambda: cj.step(sim, np.stack([q, q]), np.stack([v, v, v])), ValueError, "leading axes do not broadcast: q"),
        (lambda: cj.step(sim, q, v, parameters={"mass/bx": 1.0}), ValueError, "unknown 'mass/bx'; there are mass/box"),
        (lambda: cj.step(sim, q, v.astype(complex)), TypeError, "v: expected float64 or float32"),
        (lambda: cj.step(model, q, v), TypeError, "sim: expected a coulomb.Simulator"),
        (lambda: cj.step(sim, q, None), TypeError, "v: got None"),
        (lambda: cj.rollout(sim, q, v), ValueError, "steps: needed"),
        (lambda: cj.step(sim, q, nan), ValueError, r"^v\[2\] is nan, expected a finite number$"),
        (lambda: cj.rollout(sim, np.stack([q, q]), np.stack([v, nan]), steps=2), ValueError, r"^v0\[1, 2\] is nan"),
        (
            lambda: cj.step(sim, q, v, parameters={"mass/box": np.inf}),
            ValueError,
            r"^parameters\['mass/box'\].* is inf",
        ),
        (lambda: jax.jit(lambda x: cj.step(sim, q, x)[1])(nan).block_until_ready(), Exception, r"v\[2\] is nan"),
    ]
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()

    loss = lambda v: cj.rollout(sim, q, v, steps=2)[1].sum()  # noqa: E731
    with pytest.raises(NotImplementedError, match="first derivatives only"):
        jax.hessian(loss)(v)


def test_outputs():
    model, q, v = robot_in_contact()
    sim = coulomb.Simulator(model)
    names = [f"{kind}/{model.body_names[-1]}" for kind in ("position", "orientation", "velocity")]
    parameter = next(name for name in model.parameters() if name.startswith("joint_placement"))
    value = model.parameters()[parameter].value
    check(lambda q, v, x: cj.output(sim, names, q, v, {parameter: x}), q, v, value)
    both = jax.jit(jax.vmap(lambda q: cj.output(sim, names, q, v)))(jnp.stack([q, q]))
    assert both.shape == (2, 10) and np.array_equal(both[1], model.output(names, q, v))
    gradient = jax.jit(jax.grad(lambda q: cj.output(sim, names, *cj.step(sim, q, v)).sum()))(q)
    assert np.isfinite(gradient).all()
    with pytest.raises(ValueError, match="place/hand"):
        cj.output(sim, "place/hand", q, v)


def test_status():
    model, q, v = robot_in_contact()
    good, bad = coulomb.Simulator(model), coulomb.Simulator(model, solver="pgs", max_iterations=1)
    for sim, converged in ((good, True), (bad, False)):
        q1, v1, status = jax.jit(lambda q, sim=sim: cj.step(sim, q, v, return_status=True))(jnp.stack([q, q]))
        assert status.dtype == bool and status.tolist() == [converged] * 2
        status = cj.rollout(sim, q, v, steps=3, return_status=True)[2]
        assert status.shape == (3,) and bool(status.all()) == converged
        gradient, status = jax.grad(
            lambda q, sim=sim: (lambda r: (r[1].sum(), r[2]))(cj.rollout(sim, q, v, steps=3, return_status=True)),
            has_aux=True,
        )(q)
        assert np.isfinite(gradient).all() and bool(status.all()) == converged


OUTPUTS = ["contact_force/trunk", "position/hand", "orientation/hand", "actuator_force/servo"]


def pushed(steps=None):
    model, q, v = robot_in_contact()
    random = np.random.default_rng(0)
    shapes = (model.nu,), (model.nv,), (model.num_bodies, 6)
    sizes = 0.1, 0.01, 0.02
    more = [s * random.normal(size=shape if steps is None else (steps, *shape)) for s, shape in zip(sizes, shapes)]
    return model, q, v, *more


@pytest.mark.parametrize("steps", [None, 4])
@pytest.mark.parametrize("options", [{}, {"stepper": "bdf2"}], ids=str)
def test_wrenches_and_forces_agree_with_torch(options, steps):
    """Of a step and of a rollout: values to the bit, gradients of a function of all results to rounding, forward as reverse."""
    torch = pytest.importorskip("torch")
    import coulomb.torch as ct

    model, q, v, u, tau, fext = pushed(steps)
    sim = coulomb.Simulator(model, tolerance=1e-14, **options)
    mass = np.asarray(model.parameters()["mass/hand"].value)
    arguments = q, v, u, tau, fext, mass

    def ours(q, v, u, tau, fext, mass):
        parameters = {"mass/hand": mass}
        if steps is None:
            return cj.step(sim, q, v, u, tau, parameters, fext=fext, outputs=OUTPUTS)
        return cj.rollout(sim, q, v, u, parameters, tau=tau, fext=fext, outputs=OUTPUTS)

    def theirs(q, v, u, tau, fext, mass):
        parameters = {"mass/hand": mass}
        if steps is None:
            return ct.step(sim, q, v, u, tau, parameters, fext=fext, outputs=OUTPUTS)
        return ct.rollout(sim, q, v, u, parameters, tau=tau, fext=fext, outputs=OUTPUTS)

    results = ours(*arguments)
    tensors = [torch.tensor(a, requires_grad=True) for a in arguments]
    expected = theirs(*tensors)
    assert all(np.array_equal(a, b.detach()) for a, b in zip(results, expected))
    weights = [np.random.default_rng(1).normal(size=np.shape(a)) for a in results]

    def loss(*arguments):
        return sum((w * a).sum() for w, a in zip(weights, ours(*arguments)))

    sum((torch.tensor(w) * a).sum() for w, a in zip(weights, expected)).backward()
    gradients = jax.grad(loss, argnums=range(6))(*arguments)
    for ours_, theirs_ in zip(gradients, tensors):
        scale = 1e-9 + np.abs(theirs_.grad.numpy()).max()
        assert np.abs(np.asarray(ours_) - theirs_.grad.numpy()).max() < 1e-9 * scale
    direction = [np.random.default_rng(2).normal(size=np.shape(a)) for a in arguments]
    forward = jax.jvp(loss, arguments, tuple(direction))[1]
    assert np.isclose(forward, sum((g * d).sum() for g, d in zip(gradients, direction)), rtol=1e-10)


def test_wrenches_inside_vmap_and_jit():
    model, q, v, U, tau, fext = pushed(3)
    sim = coulomb.Simulator(model)
    many = jnp.stack([fext, 2 * fext])

    @jax.jit
    def loss(wrenches):
        Y = cj.rollout(sim, q, v, U, fext=wrenches, outputs="contact_force/trunk")[2]
        return (Y**2).sum()

    values, gradients = jax.vmap(jax.value_and_grad(loss))(many)
    for i in range(2):
        value, gradient = jax.value_and_grad(loss)(many[i])
        assert np.isclose(values[i], value, rtol=1e-14)
        assert np.allclose(gradients[i], gradient, rtol=1e-12, atol=1e-9 * np.abs(gradient).max())
