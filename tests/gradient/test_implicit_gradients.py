"""Derivatives of implicit steps and of steps with penalty contact: steps against differences, trajectories against differences and
adjoint against forward sensitivities, for every kind of parameter."""

import numpy as np
import pytest

import coulomb

IN = 'diaginertia=".002 .003 .004"'
CHAIN = f"""<mujoco><option gravity="0 0 -9.81"/><worldbody>
<body name="base"><freejoint name="f"/><inertial pos=".1 0 .05" mass="2" diaginertia=".02 .03 .04"/>
 <body name="b1" pos=".3 0 0"><joint name="ball" type="ball" damping=".3" stiffness="2" frictionloss=".1" armature=".01"/><inertial pos=".1 .02 0" mass="1" {IN}/>
  <body name="b2" pos=".2 0 0"><joint name="h" axis="0 1 0" damping=".1" stiffness="1" frictionloss=".2" limited="true" range="-20 20" armature=".01"/>
   <inertial pos=".1 .02 0" mass=".5" {IN}/>
   <body name="b3" pos=".2 0 .1"><joint name="s" type="slide" axis="0 .6 .8" limited="true" range="-.05 .05" stiffness="3" damping=".2" armature=".02" frictionloss=".1"/>
    <inertial pos=".1 .02 0" mass=".5" {IN}/></body></body></body>
 <body name="c1" pos="-.3 0 0"><joint name="h2" axis="1 0 0" stiffness="1" damping=".1" armature=".01" frictionloss=".1"/><inertial pos="0 .2 0" mass="1" {IN}/></body>
</body></worldbody>%s
<actuator><motor joint="h" gear="2"/><position joint="h2" kp="5"/></actuator></mujoco>"""

# A two-link finger with a round tip on the ground, beside a ball that it touches; a box on points that slides under a capsule.
TOUCHING = f"""<mujoco><option gravity="0 0 -9.81"/><worldbody><geom name="ground" type="plane" size="5 5 .1" friction=".6"/>
<body name="upper" pos="0 0 .42"><joint name="j1" axis="0 1 0" damping=".05" stiffness=".5" armature=".01" frictionloss=".05"/><inertial pos="0 0 -.1" mass=".3" {IN}/>
 <body name="lower" pos="0 0 -.2"><joint name="j2" axis="0 1 0" damping=".05" stiffness=".4" armature=".01" frictionloss=".05" limited="true" range="-40 40"/>
  <inertial pos="0 0 -.1" mass=".2" {IN}/><geom name="tip" type="sphere" size=".03" pos="0 0 -.2" mass="0" friction=".7"/></body></body>
<body name="ball" pos=".075 0 .05"><freejoint/><geom name="ball" type="sphere" size=".05" mass=".2" friction=".5"/></body>
<body name="box" pos="0 .6 .1"><freejoint/><geom name="box" type="box" size=".1 .15 .1" mass=".5" friction=".4"/></body>
</worldbody><actuator><motor joint="j1"/><position joint="j2" kp="2"/></actuator></mujoco>"""


def q0_of(model):
    return np.array(model.neutral()[0])


def relative(a, b):
    return np.abs(a - b).max() / max(np.abs(b).max(), 1e-300)


def chain(equality=""):
    return coulomb.load(CHAIN % equality)


EQUALITIES = [
    "",
    '<equality><connect body1="b3" body2="c1" anchor="0 0 .1"/></equality>',
    '<equality><weld body1="b3" body2="c1"/><joint joint1="h" joint2="s" polycoef="0.1 2 .3 0 0"/></equality>',
]


@pytest.mark.parametrize("stepper", ["bdf1", "bdf2"])
@pytest.mark.parametrize("equality", EQUALITIES, ids=["open", "connect", "weld and joint"])
def test_steps_of_a_chain(stepper, equality):
    rng = np.random.default_rng(3)
    model = chain(equality)
    sim = coulomb.Simulator(model, stepper=stepper, timestep=2e-3, equality_stiffness=1e4, equality_damping=1e2)
    q, v = model.integrate(q0_of(model), 0.3 * rng.normal(size=model.nv)), rng.normal(size=model.nv)
    wrt = ["q", "v", "u", "tau", *(n for n in model.parameters() if not frozen_at_zero(model, n))]
    for _ in range(3):  # SDIRK2 first, then BDF2
        u, tau = rng.normal(size=model.nu), rng.normal(size=model.nv)
        check = coulomb.check_gradients(sim, q, v, u, tau=tau, wrt=wrt, tolerance=2e-6)
        assert check.passed, check
        assert check.compared >= check.columns - 4
        q, v = sim.step(q, v, u, tau=tau)
        check_products(sim, rng)


def frozen_at_zero(model, name):
    """Parameters at the edge of what they may be, without a two-sided difference; and those of hard contact, which mean nothing here."""
    kind = name.split("/")[0]
    if kind in ("restitution", "compliance"):
        return True
    edge = ("joint_stiffness", "joint_damping", "joint_friction", "armature", "contact_damping")
    return kind in edge and bool(np.any(np.asarray(model.parameters()[name].value) == 0))


def check_products(sim, rng):
    """vjp and jvp against the Jacobian of the last step."""
    model = sim.model
    names = list(model.parameters())
    d = sim.derivatives(wrt=names)
    a, b = rng.normal(size=(2, model.nv))
    w, g = np.r_[a, b], sim.vjp(a, b, wrt=names)
    assert relative(np.r_[g.q, g.v], w @ d.A) < 1e-10
    assert relative(g.tau, w @ d.B_tau) < 1e-10
    if model.nu:
        assert relative(g.u, w @ d.B) < 1e-10
    for name in names:
        assert np.abs(g[name] - w @ d[name]).max() <= 1e-10 * (np.abs(d[name]).max() + 1e-9), name


@pytest.mark.parametrize("stepper", ["bdf1", "bdf2"])
def test_parts_of_a_step_are_differentiated_in_composition(stepper):
    model = chain()
    rng = np.random.default_rng(5)
    sim = coulomb.Simulator(model, stepper=stepper, timestep=2e-2, newton_iterations=3)
    q, v = q0_of(model), 4 * rng.normal(size=model.nv)
    sim.step(q, v)
    assert "parts" in sim.status.reason
    wrt = ["q", "v", "u", "tau", "mass/b1", "joint_placement/h", "timestep", "gravity"]
    check = coulomb.check_gradients(sim, q, v, wrt=wrt, tolerance=2e-6)
    assert check.passed, check
    sim.step(q, v)
    check_products(sim, rng)


STEPPERS = ["semi_implicit", "bdf1", "bdf2"]


@pytest.mark.parametrize("stepper", STEPPERS)
def test_steps_with_external_wrenches(stepper):
    model = chain()
    rng = np.random.default_rng(6)
    sim = coulomb.Simulator(model, stepper=stepper, contact="penalty", timestep=2e-3)
    q, v, fext = q0_of(model), rng.normal(size=model.nv), 3 * rng.normal(size=(len(model.body_names), 6))
    sim.step(q, v, fext=fext)
    d, h = sim.derivatives(), 1e-5
    for k in range(2 * model.nv):
        e = np.zeros(2 * model.nv)
        e[k] = h
        ends = []
        for sign in (1, -1):
            sim.reset()
            ends.append(sim.step(model.integrate(q, sign * e[: model.nv]), v + sign * e[model.nv :], fext=fext))
        column = np.r_[model.difference(ends[1][0], ends[0][0]), ends[0][1] - ends[1][1]] / (2 * h)
        assert d.A[:, k] == pytest.approx(column, abs=1e-6 * (1 + np.abs(column).max())), k


def touching():
    """Box and ball begin as deep as they rest: contacts that begin are kinks, and differences across kinks tell nothing."""
    model = coulomb.load(TOUCHING)
    q = q0_of(model)
    q[4], q[11] = 0.05 - 0.2 * 9.81 / 1e4, 0.1 - 0.5 * 9.81 / 4e4
    v = np.zeros(model.nv)
    v[2:8] = [-0.3, 0.2, 0, 0, 0, 1]
    v[8:14] = [0.5, 0.3, 0, 0, 0, 0.5]
    return model, q, v


@pytest.mark.parametrize("stepper", STEPPERS)
def test_steps_in_penalty_contact(stepper):
    model, q, v = touching()
    sim = coulomb.Simulator(model, stepper=stepper, contact="penalty", timestep=2e-3, contact_stiffness=1e4)
    rng = np.random.default_rng(8)
    names = [n for n in model.parameters() if not frozen_at_zero(model, n)]
    for k in range(60):
        u = np.array([0.1, 0.3])
        if k in (0, 1, 25, 59):
            check = coulomb.check_gradients(sim, q, v, u, wrt=["q", "v", "u", "tau", *names], tolerance=3e-6)
            assert check.passed, check
            assert check.compared >= 0.9 * check.columns, check
            sim.step(q, v, u)
            check_products(sim, rng)
            check_impulses(sim, model, q, v, u)
        q, v = sim.step(q, v, u)
    assert len(sim.contacts) > 3


def check_impulses(sim, model, q, v, u):
    """dlambda by v against differences; on the ground, where a contact's tangents stay."""
    memory, h = sim.memory, 1e-6
    sim.freeze_memory(True)
    sim.step(q, v, u)
    columns = sim.derivatives().dlambda("v")
    on_ground = np.repeat(["ground" in (c.geometry_a, c.geometry_b) for c in sim.contacts], 3)
    assert on_ground.any()
    for k in (0, 4, 9):
        e = np.zeros(model.nv)
        e[k] = h
        ends = []
        for sign in (1, -1):
            sim.step(q, v + sign * e, u)
            ends.append(np.concatenate([c.frame @ c.impulse for c in sim.contacts]))
        if len(ends[0]) == len(ends[1]) == len(on_ground):
            found = (ends[0] - ends[1]) / (2 * h)
            assert columns[on_ground, k] == pytest.approx(found[on_ground], abs=1e-5 * (1e-3 + np.abs(found).max())), k
    sim.freeze_memory(False)
    sim.memory = memory
    sim.step(q, v, u)


STEPS = 200


def loss(model, base, trajectory, dQ, dV):
    """Linear in the tangent vectors from the base trajectory."""
    return sum(model.difference(base.q[t], trajectory.q[t]) @ dQ[t] + trajectory.v[t] @ dV[t] for t in range(STEPS + 1))


def difference(f, h):
    """Central difference of fourth order, at the step that the next one confirms best: longer ones may cross a kink, shorter ones drown."""
    at, best = [], (np.inf, np.nan)
    for k in range(7):
        e = h / 6**k
        at.append((8 * (f(e) - f(-e)) - (f(2 * e) - f(-2 * e))) / (12 * e))
        if k > 0:
            best = min(best, (abs(at[-1] - at[-2]), at[-1]))
        if best[0] <= 1e-7 * abs(best[1]):
            break
    return best[1]


@pytest.mark.parametrize("stepper", STEPPERS)
def test_trajectories_in_penalty_contact(stepper):
    """200 steps in contact: every kind of parameter, initial state and controls against differences; adjoint against forward."""
    model, q, v = touching()
    options = dict(stepper=stepper, contact="penalty", timestep=2e-3, contact_stiffness=1e4, contact_damping=1e4)
    rng = np.random.default_rng(11)
    U = 0.1 * rng.normal(size=(STEPS, model.nu)).cumsum(axis=0) * 0.2
    dQ, dV = rng.normal(size=(2, STEPS + 1, model.nv))
    run = lambda m=model, q=q, v=v, U=U, **more: coulomb.Simulator(m, **{**options, **more}).rollout(q, v, U)  # noqa: E731
    base = run()
    assert base.converged
    names = [n for n in model.parameters() if not frozen_at_zero(model, n)]
    g = base.vjp(dQ, dV, wrt=names)
    J = base.jacobian(["q0", "v0", "u", *names])
    W = np.concatenate([dQ, dV], axis=1)
    for name, columns in J.items():
        forward = np.einsum("ti,ti...->...", W, columns).ravel()
        adjoint = np.ravel(g.q0 if name == "q0" else g.v0 if name == "v0" else g.u if name == "u" else g[name])
        assert relative(adjoint, forward) < 1e-10, name

    value = lambda trajectory: loss(model, base, trajectory, dQ, dV)  # noqa: E731
    scale = abs(difference(lambda e: value(run(v=v + e)), 1e-5))

    def check(name, exact, f, h):
        found = difference(f, h)
        assert exact == pytest.approx(found, abs=1e-6 * abs(found) + 1e-8 * scale), name

    d = rng.normal(size=model.nv)
    check("q0", g.q0 @ d, lambda e: value(run(q=model.integrate(q, e * d))), 1e-5)
    check("v0", g.v0 @ d, lambda e: value(run(v=v + e * d)), 1e-4)
    d = rng.normal(size=U.shape)
    check("u", np.sum(g.u * d), lambda e: value(run(U=U + e * d)), 1e-3)
    # The last element of each. Gains of servos have tests of their own; one of zero cannot be lowered, as differences would have it.
    kinds = {name.split("/")[0]: name for name in names if not name.startswith("actuator_k")}
    assert {"mass", "com", "inertia", "joint_placement", "geometry_placement", "size", "friction"} <= kinds.keys()
    assert {"joint_stiffness", "joint_damping", "joint_friction", "joint_limits", "contact_scale"} <= kinds.keys()
    for name in kinds.values():
        at = np.array([options[name]]) if name in options else np.asarray(model.parameters()[name].value, dtype=float)
        d = rng.normal(size=at.shape) * np.maximum(np.abs(at), 1e-2 * np.abs(at).max() + 1e-4)
        if name.startswith("inertia"):
            d = at  # stays a body
        h = 5e-5 if name != "timestep" else 1e-5

        def moved(e, name=name, at=at, d=d):
            more = {name: at[0] + e * d[0]} if name in options else {}  # which overrides the model's
            return value(run(model.with_parameters({name: at + e * d}), **more))

        check(name, g[name] @ d, moved, h)


@pytest.mark.parametrize("stepper", ["bdf1", "bdf2"])
@pytest.mark.parametrize("every", [1, 7, 60])
def test_checkpoints_change_nothing(stepper, every):
    model, q, v = touching()
    sim = coulomb.Simulator(model, stepper=stepper, timestep=2e-3)
    rng = np.random.default_rng(2)
    U, (dQ, dV) = 0.1 * rng.normal(size=(60, model.nu)), rng.normal(size=(2, 61, model.nv))
    one = sim.rollout(q, v, U, checkpoint_every=1).vjp(dQ, dV, wrt=["mass/ball"])
    other = sim.rollout(q, v, U, checkpoint_every=every).vjp(dQ, dV, wrt=["mass/ball"])
    for x in ("q0", "v0", "u"):
        assert np.array_equal(getattr(one, x), getattr(other, x))
    assert np.array_equal(one["mass/ball"], other["mass/ball"])


def test_penalty_without_contact_is_the_semi_implicit_step():
    """Away from limits and dry friction: the same step, and the same derivatives by everything."""
    model = chain()
    model = model.with_parameters(
        {f"joint_friction/{j}": np.zeros(n) for j, n in (("ball", 3), ("h", 1), ("s", 1), ("h2", 1))}
    )
    rng = np.random.default_rng(12)
    v, tau, fext = rng.normal(size=model.nv), rng.normal(size=model.nv), rng.normal(size=(len(model.body_names), 6))
    hard, soft = coulomb.Simulator(model), coulomb.Simulator(model, contact="penalty")
    ends = [sim.step(q0_of(model), v, tau=tau, fext=fext) for sim in (hard, soft)]
    assert all(np.abs(a - b).max() < 1e-14 for a, b in zip(*ends))
    names = [n for n in model.parameters() if not n.startswith("joint_friction")]
    a, b = (sim.derivatives(wrt=names) for sim in (hard, soft))
    assert relative(b.A, a.A) < 1e-12 and relative(b.B_tau, a.B_tau) < 1e-12 and relative(b.B, a.B) < 1e-12
    for name in names:
        assert np.abs(a[name] - b[name]).max() <= 1e-11 * (1 + np.abs(a[name]).max()), name


def test_the_state_before():
    """A_previous by a rollout of two steps: d x2/d x0 = A1 A0 + A_previous."""
    model = chain()
    rng = np.random.default_rng(9)
    sim = coulomb.Simulator(model, stepper="bdf2", timestep=4e-3)
    q0, v0 = q0_of(model), rng.normal(size=model.nv)
    q1, v1 = sim.step(q0, v0)
    first = sim.derivatives()
    assert first.A_previous is None
    sim.step(q1, v1)
    second = sim.derivatives()
    J = sim.rollout(q0, v0, steps=2).jacobian(["q0", "v0"], False)
    total = second.A @ first.A + second.A_previous
    assert relative(total, np.hstack([J["q0"], J["v0"]])) < 1e-12
    assert np.abs(second.A_previous).max() > 0.1
    a, b = rng.normal(size=(2, model.nv))
    g = sim.vjp(a, b)
    assert relative(np.r_[g.previous_q, g.previous_v], np.r_[a, b] @ second.A_previous) < 1e-10
    sim.step(q0, v0)  # starts anew
    g = sim.vjp(a, b)
    assert g.previous_q is None and g.previous_v is None


def test_the_state_before_in_a_batch():
    """Of two environments one goes on from where it ended, the other starts."""
    model = chain()
    rng = np.random.default_rng(9)
    n, nv = 2, model.nv
    Q, V = np.tile(q0_of(model), (n, 1)), rng.normal(size=(n, nv))
    batch = coulomb.BatchSimulator(model, n, stepper="bdf2", timestep=4e-3)
    Q1, V1 = batch.step(Q, V)
    assert not batch.derivatives().A_previous.any()
    V1[1] += 1e-3
    batch.step(Q1, V1)
    a, b = rng.normal(size=(2, n, nv))
    d, g = batch.derivatives(), batch.vjp(a, b)
    sim = coulomb.Simulator(model, stepper="bdf2", timestep=4e-3)
    sim.step(Q[0], V[0])
    sim.step(Q1[0], V1[0])
    assert np.array_equal(d.A_previous[0], sim.derivatives().A_previous)
    assert np.array_equal(g.previous_q[0], sim.vjp(a[0], b[0]).previous_q)
    assert np.array_equal(g.previous_v[0], sim.vjp(a[0], b[0]).previous_v)
    assert not d.A_previous[1].any() and not g.previous_q[1].any() and not g.previous_v[1].any()
    other = coulomb.BatchSimulator(model, n, stepper="bdf1")
    other.step(Q, V)
    assert other.derivatives().A_previous is None and other.vjp(a, b).previous_q is None


def test_last_state_alone():
    model = chain()
    rng = np.random.default_rng(1)
    trajectory = coulomb.Simulator(model, stepper="bdf2", timestep=4e-3).rollout(
        q0_of(model), rng.normal(size=model.nv), steps=20
    )
    wrt = ["q0", "v0", "u", "tau", "mass/b1", "joint_placement/h"]
    every, last = trajectory.jacobian(wrt), trajectory.jacobian(wrt, False)
    for name in wrt:
        assert np.array_equal(every[name][-1], last[name].reshape(every[name][-1].shape))


def test_batches_differentiate_as_single_simulators():
    model, q, v = touching()
    n, steps = 3, 40
    rng = np.random.default_rng(4)
    Q0, V0 = np.tile(q, (n, 1)), v + 0.1 * rng.normal(size=(n, model.nv))
    U = 0.1 * rng.normal(size=(n, steps, model.nu))
    dQ, dV = rng.normal(size=(2, n, steps + 1, model.nv))
    batch = coulomb.BatchSimulator(model, num_envs=n, num_threads=2, stepper="bdf2", timestep=2e-3)
    g = batch.rollout(Q0, V0, U).vjp(dQ, dV)
    for i in range(n):
        single = coulomb.Simulator(model, stepper="bdf2", timestep=2e-3).rollout(Q0[i], V0[i], U[i]).vjp(dQ[i], dV[i])
        assert np.array_equal(g.q0[i], single.q0) and np.array_equal(g.u[i], single.u)


def test_torch_steps_and_rollouts():
    torch = pytest.importorskip("torch")
    import coulomb.torch as ct

    model, q, v = touching()
    sim = coulomb.Simulator(model, stepper="bdf1", timestep=2e-3)
    to = lambda x: torch.tensor(x, dtype=torch.float64, requires_grad=True)  # noqa: E731
    tq, tv, tu = to(q), to(v), to(np.zeros(model.nu))
    q1, v1 = ct.step(sim, tq, tv, tu)
    v1.sum().backward()
    sim.step(q, v)
    assert tv.grad.numpy() == pytest.approx(sim.vjp(np.zeros(model.nv), np.ones(model.nv)).v, rel=1e-12)
