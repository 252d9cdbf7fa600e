"""Torque-free spin of free and ball joints: every derivative of a step against Richardson differences, with Taylor remainders.

The spins turn by half a radian in a step and more, so that what the step adds to the explicit gyroscopic torque is as large as that.
"""

import functools

import numpy as np
import pytest

import coulomb

TOLERANCE = 1e-8

FREE = """<mujoco><option gravity="0 0 -9.81" timestep="0.01"/><worldbody>
  <body name="hammer" pos="0 0 1"><freejoint/><inertial pos="{com}" mass="1.3" fullinertia=".012 .016 .021 .001 -.002 .002"/></body>
  </worldbody></mujoco>"""

BALL = """<mujoco><option timestep="0.01"/><worldbody>
  <body name="top" pos="0 0 1" euler="10 20 30"><joint name="pivot" type="ball" pos=".01 .02 -.1" damping="{damping}" armature="{armature}"/>
    <inertial pos=".02 0 .1" mass="1.3" fullinertia=".012 .016 .021 .001 -.002 .002"/></body></worldbody></mujoco>"""

TREE = """<mujoco><option gravity="0 0 -9.81" timestep="0.01"/><worldbody>
  <body name="trunk" pos="0 0 1"><freejoint/><inertial pos=".02 .01 -.03" mass="2" fullinertia=".012 .016 .021 .001 -.002 .002"/>
    <body name="arm" pos=".2 .1 0" euler="0 10 20"><joint name="shoulder" axis="0 1 .2" armature=".01" damping=".3"/>
      <inertial pos=".1 0 .02" mass=".5" diaginertia=".002 .003 .0015"/>
      <body name="hand" pos=".2 0 0" euler="5 0 0"><joint name="slide" type="slide" axis="1 0 .3"/><joint name="wrist" type="ball" armature=".001"/>
        <inertial pos="0 .03 .02" mass=".3" diaginertia=".0010 .0013 .0009"/>
        <body name="tip" pos="0 .1 0"><joint name="finger" axis="0 0 1"/>
          <inertial pos=".03 0 0" mass=".1" diaginertia=".0002 .0001 .00015"/></body></body></body></body></worldbody></mujoco>"""


def from_mjcf(text):
    scene = coulomb.Scene()
    scene.add_mjcf(text)
    return scene.build()


def free(com):
    return from_mjcf(FREE.format(com=com))


def ball(damping=0, armature=0):
    return from_mjcf(BALL.format(damping=damping, armature=armature))


def landing():
    """A box with its corner a millimetre in the ground, and a ball that rolls."""
    scene = coulomb.Scene(timestep=0.01)
    scene.add_ground(friction=0.4, restitution=0.3)
    turn = np.array([0.9, 0.3, 0.2, 0.1]) / np.linalg.norm([0.9, 0.3, 0.2, 0.1])
    half = (0.15, 0.1, 0.05)
    scene.add_box(
        2 * np.array(half), mass=1.0, position=(0, 0, depth_of_corner(turn, half) - 1e-3), quaternion=turn, name="box"
    )
    scene.add_sphere(0.1, mass=0.5, position=(1, 0, 0.0985), name="ball")
    return scene.build()


def depth_of_corner(turn, half):
    w, x, y, z = turn
    return np.abs([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]) @ half


SPINS = {
    "free": (lambda: free("0 0 0"), (0, 0, 0, 40, -30, 25)),
    "free off its centre": (lambda: free(".1 -.05 .2"), (1, 2, 3, 40, -30, 25)),
    "several turns": (lambda: free(".1 -.05 .2"), (1, 2, 3, 500, -900, 400)),
    "ball": (ball, (40, -30, 25)),
    "damped ball with armature": (lambda: ball(0.5, 0.02), (40, -30, 25)),
    "tree": (lambda: from_mjcf(TREE), (1, 2, 3, 25, -20, 15, 3, 1, 10, -15, 20, 4)),
    "landing": (landing, (1, 0.5, -2, 20, -30, 15, 0.5, 0.2, -0.5, 10, 30, 20)),
}
LAWS = {"ncp": {}, "lcp": {"contact": "lcp"}, "penalty": {"contact": "penalty"}, "explicit": {"gyroscopic": "explicit"}}


def state(name):
    build, v = SPINS[name]
    model = build()
    random = np.random.default_rng(3)
    q, _ = model.neutral()
    size = 0 if name == "landing" else 0.3
    return model, model.integrate(q, size * random.normal(size=model.nv)), np.array(v, dtype=float)


def change(model, options, q, v, base, tau=None):
    """(q1, v1) less base, in the tangent space."""
    q1, v1 = coulomb.Simulator(model, tolerance=1e-14, **options).step(q, v, tau=tau)
    return np.r_[model.difference(base[0], q1), v1 - base[1]]


def difference(f, h, one_sided=False):
    """f'(0) to the fourth order, f(0) = 0; one-sided: from positive arguments."""
    if one_sided:
        return (48 * f(h) - 36 * f(2 * h) + 16 * f(3 * h) - 3 * f(4 * h)) / (12 * h)
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def best_error(f, column, sizes, one_sided=False):
    """The larger size truncates, the smaller one rounds."""
    return min(np.abs(difference(f, h, one_sided) - column).max() for h in sizes)


def parameter_change(model, options, q, v, base, name, value, k, h):
    value = np.array(value, dtype=float)
    value[k] += h
    if name == "timestep":
        options = {**options, "timestep": value[0]}
    return change(model.with_parameters({name: value}), options, q, v, base)


def parameters(model):
    kinds = ("mass", "com", "inertia", "armature", "joint_damping", "joint_placement", "timestep", "gravity")
    return {n: p.value for n, p in model.parameters().items() if n.split("/")[0] in kinds}


def step(name, law):
    model, q, v = state(name)
    options = LAWS[law]
    sim = coulomb.Simulator(model, tolerance=1e-14, **options)
    base = sim.step(q, v)
    assert sim.status.converged
    assert sim.status.reason == "solved"
    return model, q, v, options, sim, base


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", SPINS)
def test_columns_by_the_state_and_forces(name, law):
    model, q, v, options, sim, base = step(name, law)
    d = sim.derivatives()
    nv = model.nv
    f = functools.partial(change, model, options)
    for columns, sizes, moved in (
        (d.A[:, :nv], (1e-3, 1e-4, 1e-5), lambda x: f(model.integrate(q, x), v, base)),
        (d.A[:, nv:], (1e-1, 1e-2, 1e-3), lambda x: f(q, v + x, base)),
        (d.B_tau, (1, 1e-1, 1e-2), lambda x: f(q, v, base, x)),
    ):
        for k, unit in enumerate(np.eye(nv)):
            error = best_error(lambda h: moved(h * unit), columns[:, k], sizes)  # noqa: B023
            assert error <= TOLERANCE * np.linalg.norm(columns), k


def size_of(kind, value, k):
    """Of a parameter's k-th number, for differences."""
    if kind == "inertia":
        return 0.1 * value[0] if k == 0 else 1e-2 if k < 4 else 0.1 * np.min(value[[4, 6, 9]])
    sizes = {"timestep": 1e-2, "com": 0.1, "joint_placement": 0.1, "armature": 1e-3}
    return sizes.get(kind, max(np.abs(value).max(), 1e-2))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", SPINS)
def test_columns_by_parameters(name, law):
    model, q, v, options, sim, base = step(name, law)
    values = parameters(model)
    d = sim.derivatives(wrt=list(values))
    for parameter, value in values.items():
        kind = parameter.split("/")[0]
        columns = d[parameter]
        for k in range(len(value)):
            unit = size_of(kind, value, k)
            floor = 1e-2 * np.linalg.norm(base[1]) / unit  # of what a change of that size may do
            f = functools.partial(parameter_change, model, options, q, v, base, parameter, value, k)
            one_sided = kind in ("armature", "joint_damping") and value[k] == 0
            error = best_error(f, columns[:, k], unit * np.array([1e-3, 1e-4, 1e-5]), one_sided)
            assert error <= TOLERANCE * max(np.linalg.norm(columns), floor), (
                parameter,
                k,
                error / max(np.linalg.norm(columns), floor),
            )


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", SPINS)
def test_reverse_is_the_transpose_and_sparse_the_same(name, law):
    model, q, v, options, sim, base = step(name, law)
    values = list(parameters(model))
    d = sim.derivatives(wrt=values)
    w = np.random.default_rng(4).normal(size=2 * model.nv)
    g = sim.vjp(w[: model.nv], w[model.nv :], wrt=values)
    scale = np.linalg.norm(w) * np.linalg.norm(d.A)
    assert np.r_[g.q, g.v] == pytest.approx(d.A.T @ w, abs=1e-12 * scale)
    assert g.tau == pytest.approx(d.B_tau.T @ w, abs=1e-12 * scale)
    for parameter in values:
        column = d[parameter]
        limit = 1e-11 * np.linalg.norm(w) * max(np.linalg.norm(column), 1e-3 * scale)
        assert np.abs(g[parameter] - w @ column).max() <= limit, parameter
    assert sim.derivatives(sparse=True).A.toarray() == pytest.approx(d.A, abs=1e-14 * np.linalg.norm(d.A))


@pytest.mark.parametrize("name", SPINS)
def test_taylor_remainder(name):
    """x(q + h a, v + h b) - x - h J (a, b) is h^2 times a constant."""
    model, q, v, options, sim, base = step(name, "ncp")
    A = sim.derivatives().A.copy()
    random = np.random.default_rng(5)
    direction = random.normal(size=2 * model.nv)
    a, b = direction[: model.nv], direction[model.nv :]
    remainders = []
    for h in (1e-3, 5e-4, 2.5e-4, 1.25e-4):
        moved = change(model, options, model.integrate(q, h * a), v + h * b, base)
        remainders.append(np.linalg.norm(moved - h * A @ direction))
    assert np.array(remainders[:-1]) / remainders[1:] == pytest.approx(4, rel=0.1)


@pytest.mark.parametrize("law", LAWS)
def test_rollouts_and_batches(law):
    """A trajectory's derivatives are the product of its steps', steps kept or run again; batches step to the same bits."""
    model, q, v = state("landing")
    sim = coulomb.Simulator(model, **LAWS[law])
    product = np.eye(2 * model.nv)
    states = [(q, v)]
    for _ in range(6):
        states.append(sim.step(*states[-1]))
        product = sim.derivatives().A @ product
    w = np.random.default_rng(6).normal(size=(2, model.nv))
    expected = w.ravel() @ product

    for keep in (True, False):
        r = coulomb.Simulator(model, **LAWS[law]).rollout(q, v, steps=6, keep_factors=keep)
        assert np.array_equal(r.q[-1], states[-1][0])
        assert np.array_equal(r.v[-1], states[-1][1])
        dQ, dV = np.zeros((2, 7, model.nv))
        dQ[-1], dV[-1] = w
        g = r.vjp(dQ, dV)
        assert np.r_[g.q0, g.v0] == pytest.approx(expected, abs=1e-10 * np.linalg.norm(product))

    batch = coulomb.BatchSimulator(model, 2, **LAWS[law])
    Q1, V1 = batch.step(np.stack([q, q]), np.stack([v, 0.5 * v]))
    assert np.array_equal(Q1[0], states[1][0])
    assert np.array_equal(V1[0], states[1][1])
    one = coulomb.Simulator(model, **LAWS[law])
    one.step(q, v)
    assert np.array_equal(batch.derivatives().A[0], one.derivatives().A)
