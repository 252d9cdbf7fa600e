"""Islands of one step that go by different rules, as where one of them meets a joint limit or is divided: each part of the derivative is
that of the rule which moved it."""

import numpy as np
import pytest

import coulomb

# Two pendulums, whose limits are met at different times, and a ball that rolls and slides over the ground: three islands.
INERTIA = '<inertial pos=".02 0 -.2" mass=".4" diaginertia=".004 .005 .002"/>'
LIMIT = 'limited="true" range="-25 25" damping=".01"'
SCENE = f"""<mujoco><worldbody><geom name="ground" type="plane" size="5 5 .1" friction=".05"/>
<body name="a0" pos="0 0 2"><joint name="a0" axis="0 1 .2" {LIMIT}/>{INERTIA}
 <body name="a1" pos="0 0 -.4"><joint name="a1" axis="0 1 .2" {LIMIT}/>{INERTIA}</body></body>
<body name="ball" pos="1 0 .0995"><freejoint/><geom name="ball" type="sphere" size=".1" mass=".5" friction=".1"/></body>
<body name="b0" pos="2 0 2"><joint name="b0" type="ball"/>{INERTIA}
 <body name="b1" pos="0 0 -.4"><joint name="b1" axis="0 1 .2" {LIMIT}/>{INERTIA}</body></body>
</worldbody><actuator><motor joint="a0"/><motor joint="a1"/><motor joint="b1"/></actuator></mujoco>"""
PENDULUMS = np.r_[0:2, 8:12]
A, BALL, B = slice(0, 2), slice(2, 8), slice(8, 12)
OPTIONS = dict(stepper="bdf2", timestep=2e-3, limit_stiffness=300.0, contact_stiffness=2e3, contact_damping=1e3)
NAMES = [
    "mass/a1",
    "com/b1",
    "joint_placement/a1",
    "joint_limits/a1",
    "friction/ball",
    "size/ball",
    "mass/ball",
    "gravity",
    "timestep",
    "contact_stiffness",
]


def start():
    model = coulomb.load(SCENE).with_parameters({"contact_stiffness": [2e3]})
    q, v = np.array(model.neutral()[0]), np.zeros(model.nv)
    q[:2], q[-1] = (0.3, 0.2), 0.3
    v[A], v[BALL], v[B] = (3.0, -2.0), (0.6, 0, 0, 0, 1, 2), (0.5, 1.0, 0.3, 5.0)
    return model, q, v


def relative(a, b):
    return np.abs(a - b).max() / max(np.abs(b).max(), 1e-300)


def rules(derivatives):
    """Which islands have gone on from two states."""
    before = derivatives.A_previous
    return tuple(before is not None and bool(before[:, : before.shape[1] // 2][i].any()) for i in (A, BALL, B))


def check_products(sim, rng):
    """vjp against the Jacobian, both by the state before as well, and impulses."""
    model = sim.model
    d = sim.derivatives(wrt=NAMES)
    a, b = rng.normal(size=(2, model.nv))
    w, g = np.r_[a, b], sim.vjp(a, b, wrt=NAMES)
    assert relative(np.r_[g.q, g.v], w @ d.A) < 1e-10
    assert relative(g.tau, w @ d.B_tau) < 1e-10
    assert relative(g.u, w @ d.B) < 1e-10
    if d.A_previous is not None:
        assert relative(np.r_[g.previous_q, g.previous_v], w @ d.A_previous) < 1e-10
    for name in NAMES:
        assert np.abs(g[name] - w @ d[name]).max() <= 1e-10 * (np.abs(d[name]).max() + 1e-9), name


def test_steps_of_several_rules():
    """Along 100 steps, at those in which the islands differ: against differences, and the products against the Jacobian."""
    model, q, v = start()
    sim = coulomb.Simulator(model, **OPTIONS)
    rng = np.random.default_rng(1)
    seen = set()
    for k in range(100):
        u, tau = 0.1 * rng.normal(size=model.nu), 0.1 * rng.normal(size=model.nv)
        memory = sim.memory
        q1, v1 = sim.step(q, v, u, tau=tau)
        assert sim.status.converged and "parts" not in sim.status.reason
        now = rules(sim.derivatives())
        if k > 0 and not all(now):
            sim.memory = memory
            wrt = ["q", "v", "u", "tau", *NAMES]
            check = coulomb.check_gradients(sim, q, v, u, tau=tau, wrt=wrt, tolerance=2e-6)
            assert check.passed, check
            assert check.compared >= check.columns - 2
            seen.add(now)
        sim.memory = memory
        q, v = sim.step(q, v, u, tau=tau)
        assert np.array_equal(q, q1) and np.array_equal(v, v1)
        check_products(sim, rng)
    assert seen >= {(False, True, True), (True, True, False)}


def test_what_is_divided_does_not_divide_others():
    """Newton's method has too few iterations for the pendulums; the ball goes on by bdf2."""
    model, q, v = start()
    v[PENDULUMS] *= 8
    sim = coulomb.Simulator(model, **{**OPTIONS, "timestep": 1e-2}, newton_iterations=5)
    wrt = ["q", "v", "u", "tau", *(name for name in NAMES if name != "timestep")]
    rng = np.random.default_rng(1)
    seen = 0
    for _ in range(20):
        memory = sim.memory
        q1, v1 = sim.step(q, v)
        if sim.status.converged and "parts" in sim.status.reason and rules(sim.derivatives())[1]:
            sim.memory = memory
            check = coulomb.check_gradients(sim, q, v, wrt=wrt, tolerance=2e-6)
            assert check.passed, check
            seen += 1
            sim.memory = memory
            sim.step(q, v)
            check_products(sim, rng)
        q, v = q1, v1
    assert seen >= 2


def rollout(model, q, v, U, timestep=OPTIONS["timestep"], **options):
    return coulomb.Simulator(model, **{**OPTIONS, "timestep": timestep}).rollout(q, v, U, **options)


def test_trajectories_over_limits():
    """Forward against reverse, and against differences, through steps of all kinds."""
    model, q, v = start()
    rng = np.random.default_rng(3)
    steps = 100
    U = 0.1 * rng.normal(size=(steps, model.nu))
    base = rollout(model, q, v, U)
    pushed = np.abs(base.q[:, [0, 1, -1]]) > np.radians(25)
    assert base.converged and ((pushed[1:] != pushed[:-1]).sum(axis=0) > 0).sum() >= 2

    # The last state alone, so that the sweep goes over all limits that were met.
    dQ, dV = np.zeros((2, steps + 1, model.nv))
    dQ[-1], dV[-1] = rng.normal(size=(2, model.nv))
    g = base.vjp(dQ, dV, wrt=NAMES)
    J = base.jacobian(["q0", "v0", "u", *NAMES], all_states=False)
    w = np.r_[dQ[-1], dV[-1]]
    for name, columns in J.items():
        adjoint = g.q0 if name == "q0" else g.v0 if name == "v0" else g.u if name == "u" else g[name]
        forward = np.tensordot(w, np.reshape(columns, (len(w), -1)), 1)
        assert relative(np.ravel(adjoint), forward) < 1e-9, name
    tangent = base.jvp(dq0=v, dv0=np.ones(model.nv))
    assert g.q0 @ v + g.v0.sum() == pytest.approx(w @ np.r_[tangent[0][-1], tangent[1][-1]], rel=1e-9)

    # The same bits from steps that are run again.
    for options in ({"keep_factors": False}, {"checkpoint_every": 7}, {"checkpoint_every": 11, "keep_factors": False}):
        other = rollout(model, q, v, U, **options).vjp(dQ, dV, wrt=NAMES)
        for x in ("q0", "v0", "u", "tau"):
            assert np.array_equal(getattr(g, x), getattr(other, x)), (options, x)
        assert all(np.array_equal(g[name], other[name]) for name in NAMES)

    # Differences of fourth order.
    def loss(model=model, q=q, v=v, **options):
        end = rollout(model, q, v, U, **options)
        return model.difference(base.q[-1], end.q[-1]) @ dQ[-1] + end.v[-1] @ dV[-1]

    def slope(f, h):
        return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)

    for dofs in (A, BALL, B):
        d = np.zeros(model.nv)
        d[dofs] = rng.normal(size=d[dofs].shape)
        assert g.v0 @ d == pytest.approx(slope(lambda x, d=d: loss(v=v + x * d), 1e-6), rel=1e-5)
        assert g.q0 @ d == pytest.approx(slope(lambda x, d=d: loss(q=model.integrate(q, x * d)), 1e-6), rel=1e-5)
    for name in ("mass/a1", "com/b1", "friction/ball", "gravity"):
        at = np.asarray(model.parameters()[name].value, dtype=float)
        moved = lambda x, name=name, at=at: loss(model.with_parameters({name: at * (1 + x)}))  # noqa: E731
        assert g[name] @ at == pytest.approx(slope(moved, 1e-6), rel=1e-5), name
    h = OPTIONS["timestep"]
    assert g["timestep"][0] * h == pytest.approx(slope(lambda x: loss(timestep=h * (1 + x)), 1e-6), rel=1e-5)


def test_contact_forces_of_steps_of_several_rules():
    """The impulse of the ball's contact is of the end of the step, in which all islands are; forward and reverse, by state and parameters."""
    model, q, v = start()
    sim = coulomb.Simulator(model, **OPTIONS)
    rng = np.random.default_rng(2)
    seen = 0
    for _ in range(100):
        q, v = sim.step(q, v)
        now = rules(sim.derivatives())
        if all(now) or not now[1]:
            continue
        seen += 1
        d = sim.derivatives(wrt=NAMES)
        w = rng.normal(size=3)
        g = sim.vjp(np.zeros(model.nv), np.zeros(model.nv), dlambda=w, wrt=NAMES)
        assert relative(g.q, w @ d.dlambda("q")) < 1e-10
        assert relative(g.v, w @ d.dlambda("v")) < 1e-10
        assert np.abs(d.dlambda("v")[:, PENDULUMS]).max() == 0 < np.abs(d.dlambda("v")[:, BALL]).max()
        for name in NAMES:
            assert g[name] == pytest.approx(w @ d.dlambda(name), rel=1e-10, abs=1e-12), name
    assert seen > 3
