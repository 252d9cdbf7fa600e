"""coulomb.torch: gradients against autograd's own differences, batches against single steps, types, errors."""

import numpy as np
import pytest
from autograd_differences import check_jacobian

import coulomb
from scenes.smooth import ball_joint, robot_in_contact, sliding_box

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
ct = pytest.importorskip("coulomb.torch")


def tensor(value, grad=True, dtype=torch.float64):
    return torch.tensor(np.asarray(value, dtype=float), dtype=dtype, requires_grad=grad)


def check(function, *arguments):
    """Of the arguments that require a gradient, rows by backward passes."""
    asked = [k for k, x in enumerate(arguments) if x.requires_grad]

    def flat(*values):
        given = [x.detach() for x in arguments]
        for k, x in zip(asked, values):
            given[k] = x
        out = function(*given)
        return torch.cat([x.reshape(-1) for x in (out if isinstance(out, tuple) else (out,))])

    inputs = tuple(arguments[k].detach() for k in asked)
    blocks = [b.reshape(b.shape[0], -1).numpy() for b in torch.autograd.functional.jacobian(flat, inputs)]
    values = [x.numpy() for x in inputs]
    check_jacobian(lambda *x: flat(*map(torch.tensor, x)).numpy(), [blocks], values)


@pytest.mark.parametrize("build", [sliding_box, ball_joint, robot_in_contact])
def test_step_by_every_input(build):
    model, q, v = build()
    sim = coulomb.Simulator(model)
    sim.step(q, v)
    assert any(c.mode != "separating" for c in sim.contacts) and coulomb.check_gradients(sim, q, v).smooth
    random = np.random.default_rng(0)
    u, tau = 0.1 * random.normal(size=model.nu), 0.01 * random.normal(size=model.nv)
    if model.nu:
        check(lambda *x: ct.step(sim, *x), *map(tensor, (q, v, u, tau)))
    else:
        check(lambda q, v, tau: ct.step(sim, q, v, tau=tau), *map(tensor, (q, v, tau)))


def test_quaternions_of_other_lengths():
    model, q, v = ball_joint()
    sim = coulomb.Simulator(model)
    check(lambda q: ct.step(sim, q, tensor(v, False)), tensor(1.7 * q))
    x = tensor(1.7 * q)
    ct.step(sim, x, tensor(v, False))[1].sum().backward()
    assert x.grad.norm() > 1e-3 and abs(x.grad.numpy() @ q) < 1e-12 * x.grad.norm()
    with pytest.raises(ValueError, match=r"q\[0:4\]: quaternion of norm 0"):
        ct.step(sim, tensor(0 * q), tensor(v))


def test_parameters():
    model, q, v = sliding_box()
    sim = coulomb.Simulator(model)
    names = "mass/box", "friction/ground", "com/box", "gravity"
    values = [tensor(model.parameters()[name].value) for name in names]

    def function(*values):
        return ct.step(sim, q, v, parameters=dict(zip(names, values)))

    check(function, *values)
    slope = torch.autograd.grad(function(*values)[1][0], values[1])[0]
    closed_form = -9.81 * 2e-3  # sliding along x and y, friction 0.8 (the larger of the two) at the ground's value
    assert slope.item() < 0.5 * closed_form


def test_friction_in_closed_form():
    scene = coulomb.Scene(timestep=1e-3)
    scene.add_ground(friction=0.5)
    scene.add_sphere(0.1, mass=2.0, position=(0, 0, 0.1 - 1e-6), name="ball")
    model = scene.build()
    q, v = model.neutral()
    v[0] = 3.0
    mu = tensor(0.5)
    v1 = ct.step(coulomb.Simulator(model), q, v, parameters={"friction/ground": mu})[1]
    v1[0].backward()
    normal = 9.81e-3 + 0.1 * 1e-6 / 1e-3  # m/s: gravity, and a tenth of the depth corrected in the step
    assert v1[0].item() == pytest.approx(3 - 0.5 * normal, abs=1e-12)
    assert mu.grad.item() == pytest.approx(-normal, rel=1e-10)


def test_batch_is_every_row_by_itself():
    model, q, v = robot_in_contact()
    sim = coulomb.Simulator(model)
    random = np.random.default_rng(3)
    V = v + 0.05 * random.normal(size=(2, 3, model.nv))
    Q, damping = tensor(q), tensor(np.full((3, 3), 0.2) + np.arange(3)[:, None])
    ball = next(name for name, p in model.parameters().items() if name.startswith("joint_damping") and p.size == 3)
    V = tensor(V)
    q1, v1 = ct.step(sim, Q, V, parameters={ball: damping})
    assert q1.shape == (2, 3, model.nq) and v1.shape == (2, 3, model.nv)
    weights = torch.tensor(random.normal(size=v1.shape))
    gq, gv, gd = torch.autograd.grad((v1 * weights).sum(), (Q, V, damping))
    sum_q, sum_d = torch.zeros_like(gq), torch.zeros_like(gd)
    for i in range(2):
        for j in range(3):
            single = [tensor(q), V[i, j].detach().requires_grad_(), damping[j].detach().requires_grad_()]
            a, b = ct.step(sim, *single[:2], parameters={ball: single[2]})
            assert torch.equal(a, q1[i, j]) and torch.equal(b, v1[i, j])
            g = torch.autograd.grad((b * weights[i, j]).sum(), single)
            assert torch.equal(g[1], gv[i, j])
            sum_q += g[0]
            sum_d[j] += g[2]
    torch.testing.assert_close(gq, sum_q, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gd, sum_d, rtol=1e-12, atol=1e-12)


def test_batch_gradcheck():
    model, q, v = sliding_box()
    sim = coulomb.Simulator(model)
    V = tensor(v + 0.1 * np.arange(3)[:, None])
    check(lambda q, v, m: ct.step(sim, q, v, parameters={"mass/box": m}), tensor(q), V, tensor([[1.0], [2.0], [3.0]]))


def test_step_is_that_of_a_fresh_simulator_and_leaves_the_one_given():
    model, q, v = robot_in_contact()
    sim, fresh = coulomb.Simulator(model), coulomb.Simulator(model)
    before = sim.step(q, v)
    contacts = [c.impulse.tolist() for c in sim.contacts]
    q1, v1 = ct.step(sim, 1.0 * before[0], 1.1 * before[1])
    assert contacts == [c.impulse.tolist() for c in sim.contacts]
    expected = fresh.step(before[0], 1.1 * before[1])
    assert np.array_equal(q1.numpy(), expected[0]) and np.array_equal(v1.numpy(), expected[1])


def test_backward_long_after_the_step():
    """Other steps in between, of the same simulator and over the limit of what is remembered; inputs changed in
    place.
    """
    model, q, v = sliding_box()
    sim = coulomb.Simulator(model)
    x = tensor(v)
    y = x.clone()
    masses = [tensor(m) for m in np.linspace(1, 2, 25)]
    losses = [ct.step(sim, q, y, parameters={"mass/box": m, "restitution/box": 0.1})[1].square().sum() for m in masses]
    at_once = [
        torch.autograd.grad(
            ct.step(sim, q, x, parameters={"mass/box": m, "restitution/box": 0.1})[1].square().sum(), (x, m)
        )
        for m in masses
    ]
    with torch.no_grad():
        y += 1.0
    for loss, m, expected in zip(losses, masses, at_once):
        got = torch.autograd.grad(loss, (x, m))
        assert all(torch.equal(a, b) for a, b in zip(got, expected))


def test_single_precision():
    model, q, v = robot_in_contact()
    sim = coulomb.Simulator(model)
    out = {}
    for dtype in (torch.float64, torch.float32):
        x = [tensor(a, dtype=dtype) for a in (q, v, np.array([0.1, 0.2]))]
        q1, v1 = ct.step(sim, *x)
        assert q1.dtype == v1.dtype == dtype
        out[dtype] = torch.autograd.grad(v1.sum() + q1.sum(), x)
        assert all(g.dtype == dtype for g in out[dtype])
    for a, b in zip(*out.values()):
        torch.testing.assert_close(b.double(), a, rtol=1e-3, atol=1e-3)
    q1, _ = ct.step(sim, tensor(q, dtype=torch.float32), tensor(v))
    assert q1.dtype == torch.float64


@pytest.mark.parametrize("build", [sliding_box, ball_joint, robot_in_contact])
def test_rollout(build):
    model, q, v = build()
    sim = coulomb.Simulator(model)
    random = np.random.default_rng(5)
    U = 0.1 * random.normal(size=(6, model.nu))
    expected = sim.rollout(q, v, U)
    Q, V = ct.rollout(sim, q, v, U)
    assert np.array_equal(Q.numpy(), expected.q) and np.array_equal(V.numpy(), expected.v)
    name = next(name for name in model.parameters() if name.startswith("mass/"))
    mass = tensor(model.parameters()[name].value)
    if model.nu:
        check(lambda q, v, U, m: ct.rollout(sim, q, v, U, parameters={name: m}), tensor(q), tensor(v), tensor(U), mass)
    else:
        check(lambda q, v, m: ct.rollout(sim, q, v, parameters={name: m}, steps=6), tensor(q), tensor(v), mass)


def test_rollout_of_a_batch():
    model, q, v = robot_in_contact()
    sim = coulomb.Simulator(model)
    random = np.random.default_rng(7)
    U = tensor(0.1 * random.normal(size=(3, 5, model.nu)))
    v0 = tensor(v)
    Q, V = ct.rollout(sim, tensor(q, False), v0, U)
    assert Q.shape == (3, 6, model.nq)
    gU, gv = torch.autograd.grad(V.square().sum() + Q.sum(), (U, v0))
    total = torch.zeros_like(gv)
    for i in range(3):
        row, start = tensor(U[i].detach()), tensor(v)
        a, b = ct.rollout(sim, tensor(q, False), start, row)
        assert torch.equal(a, Q[i]) and torch.equal(b, V[i])
        g = torch.autograd.grad(b.square().sum() + a.sum(), (row, start))
        assert torch.equal(g[0], gU[i])
        total += g[1]
    torch.testing.assert_close(gv, total, rtol=1e-12, atol=1e-12)


def test_rollout_against_chained_steps():
    """Without kept manifold points a rollout is a chain of steps, and so is its gradient."""
    model, q, v = ball_joint()
    sim = coulomb.Simulator(model)
    a = tensor(v)
    Q, V = ct.rollout(sim, q, a, steps=8)
    b = tensor(v)
    x, y = torch.tensor(q), b
    for _ in range(8):
        x, y = ct.step(sim, x, y)
    torch.testing.assert_close(V[-1], y, rtol=1e-9, atol=1e-9)
    (g,), (h,) = torch.autograd.grad(Q[-1].sum() + V[-1].sum(), a), torch.autograd.grad(x.sum() + y.sum(), b)
    torch.testing.assert_close(g, h, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("stepper", ["bdf1", "bdf2"])
@pytest.mark.parametrize("build", [ball_joint, robot_in_contact])
def test_implicit_steppers(build, stepper):
    """Rollouts, where bdf2 looks two states back; and chains of single steps, each a start of the method."""
    model, q, v = build()
    sim = coulomb.Simulator(model, stepper=stepper, timestep=2e-3, contact_stiffness=1e4, tolerance=1e-13)
    random = np.random.default_rng(8)
    U = 0.1 * random.normal(size=(5, model.nu))
    name = next(name for name in model.parameters() if name.startswith("mass/"))
    mass = tensor(model.parameters()[name].value)
    controls = (tensor(U),) if model.nu else ()

    def rollout(q, v, m, *U):
        return ct.rollout(sim, q, v, *U, parameters={name: m}, steps=5)

    def chain(q, v, m, *U):
        for t in range(5):
            q, v = ct.step(sim, q, v, *(u[t] for u in U), parameters={name: m})
        return q, v

    for function in (rollout, chain):
        check(function, tensor(q), tensor(v), mass, *controls)
    with torch.no_grad():
        (_, V), (_, y) = (f(torch.tensor(q), torch.tensor(v), mass, *controls) for f in (rollout, chain))
    assert sim.rollout(q, v, U if model.nu else None, steps=5).converged
    assert torch.equal(V[-1], y) == (stepper == "bdf1")


def test_options_of_the_simulator_are_kept():
    model, q, v = sliding_box()
    usual = coulomb.Simulator(model).step(q, v)[1]
    for options in ({"baumgarte": 0.5}, {"timestep": 5e-3}, {"solver": "pgs", "tolerance": 1e-6}):
        sim = coulomb.Simulator(model, **options)
        v1 = ct.step(sim, q, v, parameters={"mass/box": 1.5})[1].numpy()
        assert np.array_equal(v1, sim.step(q, v)[1]) and not np.array_equal(v1, usual)
        batch = ct.step(sim, np.stack([q, q]), v)[1].numpy()
        assert np.array_equal(batch, [v1, v1])


def test_timestep_is_a_parameter():
    model, q, v = sliding_box()
    sim = coulomb.Simulator(model)
    check(lambda h: ct.step(sim, q, v, parameters={"timestep": h}), tensor(3e-3))


def test_errors_name_the_argument():
    model, q, v = sliding_box()
    sim = coulomb.Simulator(model)
    nan = v.copy()
    nan[2] = np.nan
    cases = [
        (lambda: ct.step(sim, q[:5], v), ValueError, r"q: expected shape \(\.\.\., 7\), got \(5,\)"),
        (lambda: ct.step(sim, q, nan), ValueError, r"v\[2\] is nan"),
        (lambda: ct.step(sim, q, np.stack([v, nan])), ValueError, r"(?i)v\[(1, )?2\] is nan"),
        (lambda: ct.step(sim, np.stack([q, q]), np.stack([v, v, v])), ValueError, "leading axes do not broadcast: q"),
        (lambda: ct.step(sim, torch.tensor(q).half(), v), TypeError, "q: expected float64 or float32"),
        (lambda: ct.step(sim, q, v, parameters={"mass/bx": 1.0}), ValueError, "unknown 'mass/bx'; there are mass/box"),
        (lambda: ct.step(sim, q, v, parameters={"mass/box": [1.0, 2.0]}), ValueError, "mass/box.*expected shape"),
        (lambda: ct.step(sim, q, v, parameters={"mass/box": -1.0}), ValueError, "mass/box"),
        (lambda: ct.step(model, q, v), TypeError, "sim: expected a coulomb.Simulator, got Model"),
        (lambda: ct.step(sim, q, None), TypeError, "v: got None"),
        (lambda: ct.step(sim, np.zeros((0, 7)), v), ValueError, "empty batch"),
        (lambda: ct.rollout(sim, q, v), ValueError, "steps: needed"),
        (lambda: ct.rollout(sim, q, v, steps=-1), ValueError, "steps: got -1"),
    ]
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()
    x = tensor(v)
    with pytest.raises(ValueError, match="nan"):
        (ct.step(sim, q, x)[1] * float("nan")).sum().backward()


def second_order():
    """Functions of one vector x (differentiated twice below), one per entry point of coulomb.torch."""
    model, q, v = sliding_box()
    sim = coulomb.Simulator(model)
    q, mass = torch.tensor(q), torch.tensor([1.5], dtype=torch.float64)
    return torch.tensor(v), {
        "step by v": lambda x: (coulomb.torch.step(sim, q, x)[1] ** 2).sum(),
        "step by tau": lambda x: (coulomb.torch.step(sim, q, torch.tensor(v), tau=x)[1] ** 2).sum(),
        "step by a parameter": lambda x: (
            coulomb.torch.step(sim, q, torch.tensor(v), parameters={"mass/box": mass * (1 + x[:1] ** 2)})[1] ** 2
        ).sum(),
        "rollout": lambda x: (coulomb.torch.rollout(sim, q, x, steps=3)[1][-1] ** 2).sum(),
        "output": lambda x: (coulomb.torch.output(sim, "velocity/box", q, x) ** 2).sum(),
        "output of a step": lambda x: (
            coulomb.torch.output(sim, "position/box", *coulomb.torch.step(sim, q, x)) ** 2
        ).sum(),
    }


FUNCTIONS = list(second_order()[1])
ONLY_FIRST = "has first derivatives only"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives_are_refused(name):
    """However they are asked for: none is silently zero, alone or beside terms that have one."""
    v, functions = second_order()
    f = functions[name]

    def gradient(x, other=False):
        loss = f(x) + (x**3).sum() if other else f(x)
        return torch.autograd.grad(loss, x, create_graph=True)[0]

    with pytest.raises(RuntimeError, match=ONLY_FIRST):
        torch.autograd.functional.hessian(f, v)
    for other in (False, True):
        x = v.clone().requires_grad_()
        with pytest.raises(RuntimeError, match=ONLY_FIRST):
            torch.autograd.grad((gradient(x, other) ** 2).sum(), x)
        with pytest.raises(RuntimeError, match=ONLY_FIRST):
            (f(x) + 0.1 * (gradient(x, other) ** 2).sum()).backward()
    x = v.clone().requires_grad_()
    with pytest.raises(RuntimeError, match=ONLY_FIRST):
        torch.autograd.functional.vhp(f, v, torch.ones_like(v))
    with pytest.raises(RuntimeError, match=ONLY_FIRST):
        torch.autograd.functional.hvp(f, v, torch.ones_like(v))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_derivatives_with_a_graph(name):
    """create_graph=True changes no bit of the gradient, nor does detaching it in a loss; what does not need a second derivative works."""
    v, functions = second_order()
    f = functions[name]
    x = v.clone().requires_grad_()
    plain = torch.autograd.grad(f(x), x)[0]
    connected = torch.autograd.grad(f(x), x, create_graph=True)[0]
    assert torch.equal(plain, connected.detach()) and plain.abs().max() > 0
    weight = torch.ones_like(x).requires_grad_()
    assert torch.equal(torch.autograd.grad((connected * weight).sum(), weight)[0], plain)
    loss = f(x) + (connected.detach() ** 2).sum()
    assert torch.equal(torch.autograd.grad(loss, x)[0], plain)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_transforms_say_what_to_do(name):
    v, functions = second_order()
    f = functions[name]
    for transform in (torch.func.grad, torch.func.jacrev, torch.func.jacfwd, torch.func.hessian):
        with pytest.raises(RuntimeError, match="coulomb.torch.*leading axes are the batch"):
            transform(f)(v)
    with pytest.raises(RuntimeError, match="coulomb.torch.*leading axes are the batch"):
        torch.func.vmap(f)(v.expand(3, -1))
    with pytest.raises(RuntimeError, match="coulomb.torch.*leading axes are the batch"):
        torch.autograd.functional.jacobian(f, v, vectorize=True)
    assert torch.autograd.functional.jacobian(f, v).abs().max() > 0


def test_outputs():
    model, q, v = robot_in_contact()
    sim = coulomb.Simulator(model)
    names = [f"{kind}/{model.body_names[-1]}" for kind in ("position", "orientation", "velocity")]
    parameter = next(name for name in model.parameters() if name.startswith("joint_placement"))
    value = model.parameters()[parameter].value
    check(lambda q, v, x: ct.output(sim, names, q, v, {parameter: x}), *map(tensor, (1.0 * q, v, value)))
    both = ct.output(sim, names, tensor(np.stack([q, q])), tensor(v))
    assert both.shape == (2, 10) and np.array_equal(both.detach()[1].numpy(), model.output(names, q, v))
    assert (
        ct.output(sim, "position/geometry/" + model.geometry_names[0], tensor(q, dtype=torch.float32)).dtype
        == torch.float32
    )
    with pytest.raises(ValueError, match="place/hand"):
        ct.output(sim, "place/hand", q, v)


def test_status():
    model, q, v = robot_in_contact()
    good, bad = coulomb.Simulator(model), coulomb.Simulator(model, solver="pgs", max_iterations=1)
    for sim, converged in ((good, True), (bad, False)):
        x = tensor(np.stack([q, q]))
        q1, v1, status = ct.step(sim, x, v, return_status=True)
        assert status.dtype == torch.bool and status.tolist() == [converged] * 2 and not status.requires_grad
        v1.sum().backward()
        Q, V, status = ct.rollout(sim, x, v, steps=3, return_status=True)
        assert status.shape == (2, 3) and status.all().item() == converged
        (Q.sum() + V.sum()).backward()
        assert torch.isfinite(x.grad).all()


SOFT = dict(contact_stiffness=1e4, contact_damping=1e2, contact_friction_stiffness=50)
OUTPUTS = ["contact_force/trunk", "position/hand", "orientation/hand", "actuator_force/servo"]


def pushed(seed=0, steps=None):
    """A robot in contact and random inputs of a step, or of a rollout: model, q, v, u, tau, fext."""
    model, q, v = robot_in_contact()
    random = np.random.default_rng(seed)
    shapes = (model.nu,), (model.nv,), (model.num_bodies, 6)
    sizes = 0.1, 0.01, 0.02
    more = [s * random.normal(size=shape if steps is None else (steps, *shape)) for s, shape in zip(sizes, shapes)]
    return model, q, v, *more


@pytest.mark.parametrize("stepper", ["semi_implicit", "bdf1", "bdf2"])
def test_wrenches_and_forces_of_a_step(stepper):
    model, q, v, u, tau, fext = pushed()
    sim = coulomb.Simulator(model, tolerance=1e-14, stepper=stepper, **(SOFT if "bdf" in stepper else {}))
    q1, v1, y = ct.step(sim, *map(tensor, (q, v, u, tau)), fext=tensor(fext), outputs=OUTPUTS)
    expected = sim.step(q, v, u, tau, fext)
    assert np.array_equal(v1.detach(), expected[1]) and np.array_equal(y.detach(), sim.output(OUTPUTS))

    def function(q, v, u, tau, fext):
        return ct.step(sim, q, v, u, tau, fext=fext, outputs=OUTPUTS)

    # forces are impulses over a time step of 2 ms: rounding of the solution is 500 times larger there
    eps = 1e-5 if stepper == "semi_implicit" else 1e-6
    assert torch.autograd.gradcheck(function, tuple(map(tensor, (q, v, u, tau, fext))), eps=eps, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("stepper", ["semi_implicit", "bdf2"])
def test_joint_forces_wrenches_and_forces_along_a_rollout(stepper):
    steps = 4
    model, q, v, U, tau, fext = pushed(1, steps)
    sim = coulomb.Simulator(model, tolerance=1e-14, stepper=stepper, **(SOFT if "bdf" in stepper else {}))
    Q, V, Y = ct.rollout(sim, *map(tensor, (q, v, U)), tau=tensor(tau), fext=tensor(fext), outputs=OUTPUTS)
    r = sim.rollout(q, v, U, tau=tau, fext=fext)
    assert np.array_equal(V.detach(), r.v) and np.array_equal(Y.detach(), r.output(OUTPUTS))
    assert not Y[0, :3].any() and Y[0, 3:].any()  # a force belongs to the step before; the first state has none
    mass = tensor(model.parameters()["mass/hand"].value)

    def function(q, v, U, tau, fext, mass):
        parameters = {"mass/hand": mass}
        return ct.rollout(sim, q, v, U, parameters, tau=tau, fext=fext, outputs=OUTPUTS)

    arguments = *map(tensor, (q, v, U, tau, fext)), mass
    eps = 1e-5 if stepper == "semi_implicit" else 1e-6
    assert torch.autograd.gradcheck(function, arguments, eps=eps, atol=2e-5, rtol=1e-4)


def test_wrenches_of_a_batch_broadcast():
    steps = 3
    model, q, v, U, tau, fext = pushed(2, steps)
    sim = coulomb.Simulator(model)
    many = np.stack([fext, 2 * fext, 0 * fext])
    x = tensor(many)
    Q, V, Y, converged = ct.rollout(sim, q, v, fext=x, tau=tau, outputs="contact_force/trunk", return_status=True)
    assert Q.shape == (3, steps + 1, model.nq) and Y.shape == (3, steps + 1, 3) and converged.shape == (3, steps)
    Y.square().sum().backward()
    for i in range(3):
        alone = tensor(many[i])
        y = ct.rollout(sim, q, v, fext=alone, tau=tau, outputs="contact_force/trunk")[2]
        y.square().sum().backward()
        assert np.array_equal(y.detach(), Y[i].detach()) and np.array_equal(alone.grad, x.grad[i])


def test_a_throw_by_its_push():
    """The velocity that a push gives in free flight, and its gradient, in closed form."""
    scene = coulomb.Scene(gravity=(0, 0, 0), timestep=1e-2)
    scene.add_sphere(0.1, mass=2, name="ball")
    model = scene.build()
    sim = coulomb.Simulator(model)
    tau, fext = tensor(np.zeros((5, 6))), tensor(np.zeros((5, 2, 6)))
    V = ct.rollout(sim, *map(tensor, model.neutral()), tau=tau, fext=fext)[1]
    V[-1, 0].backward()
    assert torch.allclose(tau.grad[:, 0], torch.full((5,), 0.005, dtype=torch.float64), rtol=1e-13)
    assert torch.allclose(fext.grad[:, 1, 0], tau.grad[:, 0], rtol=1e-13) and not fext.grad[:, 0].any()


def test_wrong_inputs_of_rollouts_are_named():
    model, q, v, U, tau, fext = pushed(3, 4)
    sim = coulomb.Simulator(model)
    cases = [
        (lambda: ct.rollout(sim, q, v, U, tau=tau[:3]), "steps: got 4, but tau has 3 rows"),
        (lambda: ct.rollout(sim, q, v, fext=fext[0]), r"fext: expected shape \(..., T, 4, 6\), got \(4, 6\)"),
        (lambda: ct.rollout(sim, q, v, U, tau=tau[:, :2]), r"tau: expected shape \(..., 4, 10\), got \(4, 2\)"),
        (lambda: ct.rollout(sim, q, v, U, outputs="contact_force/trnk"), "did you mean 'trunk'"),
        (lambda: ct.output(sim, "contact_force/trunk", q), "is a force of a step"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()
    nan = fext.copy()
    nan[1, 2, 0] = np.nan
    with pytest.raises(ValueError, match=r"fext\[1, 2, 0\] is nan"):
        ct.rollout(sim, q, v, U, fext=nan)
