"""Derivatives through contacts with contact_stiffness and contact_dashpot, docs/theory.md (S9), (P9): closed forms, differences of our own, Taylor
remainders along rollouts, reverse against forward; by state, inputs and parameters, while they stick, slide, close and come to touch."""

import numpy as np
import pytest
from differences import Step

import coulomb
from scenes.basics import about

LAWS = ["ncp", "lcp"]
MODES = ["complementarity_aware", "approximate_bounce", "smoothed_collision", "smoothed_step", "from_distance"]


def ball(k=1e4, d=20.0, mass=2.0, height=-1e-3, **ground):
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_ground(**ground)
    scene.add_sphere(0.1, mass=mass, position=(0, 0, 0.1 + height), contact_stiffness=k, contact_dashpot=d, name="ball")
    return scene.build()


# Closed forms


@pytest.mark.parametrize("h", [1e-4, 1e-2])
@pytest.mark.parametrize("phi, speed", [(-1e-3, 0.02), (-1e-3, -0.5), (5e-5, -0.8), (-1e-7, -1.0)])
def test_the_derivatives_of_one_row(h, phi, speed):
    """v+ = (v - h k phi / m) / (1 + z/m) closed, (v - z phi / (h m)) / (1 + z/m) open, z = h^2 k + h d."""
    m, k, d = 2.0, 1e4, 20.0
    sim = coulomb.Simulator(ball(k, d, m, phi, friction=0.0), timestep=h)
    q, v = sim.model.neutral()
    v[2] = speed
    _, v1 = sim.step(q, v)
    if phi > 0 and h * speed > -phi:
        return  # the step does not close it
    z, dz_dh = h * h * k + h * d, 2 * h * k + d
    share = 1 / (1 + z / m)
    open_ = phi > 0
    push = -z * phi / h if open_ else -h * k * phi
    expected = share * (speed + push / m)
    assert v1[2] == pytest.approx(expected, rel=1e-12)

    by_z = -expected / m  # of v+ at fixed push, over share
    dpush = {
        "contact_stiffness/ball": (h * h, -h * phi),
        "contact_dashpot/ball": (h, -phi if open_ else 0.0),
        "timestep": (dz_dh, -k * phi),
    }
    got = sim.derivatives(wrt=list(dpush))
    assert got.dv_dv[2, 2] == pytest.approx(share, rel=1e-10)
    assert got.dv_dq[2, 2] == pytest.approx(-share * (z / h if open_ else h * k) / m, rel=1e-10)
    for name, (dz, dp) in dpush.items():
        dv = share * (by_z * dz + dp / m)
        dq = h * dv + (expected if name == "timestep" else 0)
        assert got[name][[2, 8], 0] == pytest.approx([dq, dv], rel=1e-8, abs=1e-15), name
    assert not got.ambiguous

    # It has neither of these, and does not feel them.
    none = sim.derivatives(wrt=["compliance/ball", "restitution/ball"])
    assert not none["compliance/ball"].any() and not none["restitution/ball"].any()


@pytest.mark.parametrize("own, other", [(5.0, 20.0), (5.0, None), (0.0, 20.0), (5.0, 0.0), (0.0, 0.0)])
def test_numbers_in_series(own, other):
    """1/k = 1/k1 + 1/k2, and dashpots likewise; a number by differences, at zero from above."""
    ground = {} if other is None else {"contact_stiffness": 3e4, "contact_dashpot": other}
    model = ball(1e4, own, **ground)
    q, v = model.neutral()
    v[2] = -0.3
    sim = coulomb.Simulator(model)
    _, v1 = sim.step(q, v)
    names = [n for n in model.parameters() if n.split("/")[0] in ("contact_stiffness", "contact_dashpot") and "/" in n]
    assert len(names) == (2 if other is None else 4)
    d = sim.derivatives(wrt=names)
    for name in names:
        value = model.parameters()[name].value
        step = 1e-6 * max(value[0], 1.0)
        up = coulomb.Simulator(model.with_parameters({name: value + step})).step(q, v)[1]
        assert d[name][8, 0] == pytest.approx((up - v1)[2] / step, rel=1e-4, abs=1e-13), name


# Differences


def scene_of(seed, law_of_motion):
    """Bodies of all shapes on a soft ground and on one another; springs of one side and of both."""
    random = np.random.default_rng(seed)
    scene = coulomb.Scene()
    mu = {"stick": 1.5, "slide": 0.2}[law_of_motion]
    scene.add_ground(friction=mu, contact_stiffness=10 ** random.uniform(3, 5), contact_dashpot=random.uniform(0, 100))
    k = lambda: {"contact_stiffness": 10 ** random.uniform(3, 6), "contact_dashpot": random.uniform(0, 100)}  # noqa: E731
    deep = lambda: random.uniform(1e-4, 2e-3)  # noqa: E731
    scene.add_box((0.2, 0.3, 0.2), mass=2.0, position=(0, 0, 0.1 - deep()), **k(), name="box")
    scene.add_sphere(0.1, mass=1.0, position=(0.02, 0, 0.3 - 2e-3 - deep()), **k(), name="ball")
    scene.add_capsule(0.05, 0.3, mass=1.0, position=(1, 0, 0.05 - deep()), quaternion=about("y", 1.57), name="rod")
    scene.add_cylinder(0.1, 0.2, mass=1.5, position=(2, 0, 0.1 - deep()), **k(), name="can")
    model = scene.build()
    q, v = model.neutral()
    v = v + 0.02 * random.normal(size=model.nv)
    if law_of_motion == "slide":
        v[::6] += 1.0 * random.choice([-1, 1], size=len(v[::6]))
    return model, q, v


NAMES = ["contact_stiffness/ground", "contact_stiffness/ball", "contact_dashpot/ground", "contact_dashpot/box", "contact_scale/can",
    "timestep", "friction/ground", "mass/ball", "size/ball", "geometry_placement/box", "gravity"]  # fmt: skip


def is_right(analytic, numeric, error, least=0.0):
    """To 1e-5 of the largest entry of a column (or `least`) and what differences do not know, which must be little."""
    scale = np.maximum(np.abs(numeric).max(0), least)
    assert (scale > 0).all() and (error <= 1e-3 * scale).all()
    return (np.abs(analytic - numeric) <= 1e-5 * scale + 3 * error).all()


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize("motion", ["stick", "slide"])
def test_differences_in_random_scenes(motion, contact):
    """By state, forces and parameters; scenes in which differences meet another mode of some contact are left out, most are not."""
    compared = 0
    for seed in range(6):
        model, q, v = scene_of(seed, motion)
        sim = coulomb.Simulator(model, timestep=10 ** np.random.default_rng(seed).uniform(-3.5, -2), contact=contact)
        step = Step(sim, q, v, np.zeros(0))
        assert step.converged and not step.ambiguous
        assert {"stick": "sticking", "slide": "sliding"}[motion] in {c.mode for c in sim.contacts}
        columns = sim.derivatives(wrt=NAMES)

        numeric, error = step.jacobian()
        if numeric is None:
            continue
        assert is_right(step.analytic, numeric, error, 1e-6), seed
        for name in NAMES:
            value = np.array([sim.timestep]) if name == "timestep" else np.array(model.parameters()[name].value)
            unit = np.maximum(np.abs(value), 0 if name == "timestep" else 1e-2)
            numeric, error = step.parameter_columns(name, value, unit)
            if numeric is None:
                continue
            assert is_right(columns[name], numeric, error), (seed, name)
            compared += 1
    assert compared >= 3 * len(NAMES), compared


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize("motion", ["stick", "slide"])
def test_reverse_is_forward(motion, contact):
    for seed in range(6):
        model, q, v = scene_of(seed, motion)
        sim = coulomb.Simulator(model, contact=contact)
        sim.step(q, v)
        w = np.random.default_rng(seed).normal(size=(2, model.nv))
        d, g = sim.derivatives(wrt=NAMES), sim.vjp(*w, wrt=NAMES)
        assert np.abs(np.r_[g.q, g.v] - w.ravel() @ d.A).max() < 1e-11 * np.linalg.norm(w) * np.linalg.norm(d.A)
        for name in NAMES:
            assert np.abs(g[name] - w.ravel() @ d[name]).max() <= 1e-10 * np.linalg.norm(w) * np.linalg.norm(d[name])


# Rollouts


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("contact", LAWS)
def test_the_taylor_remainder_of_a_bounce_is_of_second_order(contact, keep):
    """A box that falls on its corner, bounces, slides and spins: the loss along a direction in (v0, k, d, friction, h)."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.3)
    scene.add_box((0.2, 0.3, 0.2), mass=1.0, position=(0, 0, 0.15), quaternion=about("y", 0.4), contact_stiffness=2e4,
        contact_dashpot=5.0, name="box")  # fmt: skip
    model = scene.build()
    names = ["contact_stiffness/box", "contact_dashpot/box", "friction/ground", "mass/box"]
    q, v = model.neutral()
    v[0], v[2], v[4] = 1.0, -1.0, 0.5
    steps, h = 120, 1e-3
    random = np.random.default_rng(3)
    W = random.normal(size=(2, steps + 1, model.nv))
    W[:, :-1] = 0
    dv = 0.1 * random.normal(size=model.nv)
    dp = {name: 0.1 * random.normal() * model.parameters()[name].value for name in names}
    options = {} if keep else {"memory_budget": 90000}

    def rollout(epsilon):
        changed = model.with_parameters({name: model.parameters()[name].value + epsilon * dp[name] for name in names})
        return coulomb.Simulator(changed, timestep=h, contact=contact).rollout(
            q, v + epsilon * dv, steps=steps, **options
        )

    base = rollout(0.0)
    g = base.vjp(W[0], W[1], wrt=names)
    slope = g.v0 @ dv + sum(float(g[n][0]) * float(dp[n][0]) for n in names)
    assert base.q[:, 2].min() < 0.14 and base.v[:, 2].max() > 0.1  # it was down, and went up

    def loss(r):
        return W[0][-1] @ model.difference(base.q[-1], r.q[-1]) + W[1][-1] @ r.v[-1]

    sizes = np.array([4e-4, 2e-4, 1e-4, 5e-5])
    rest = np.array([abs(loss(rollout(e)) - loss(base) - e * slope) for e in sizes])
    orders = np.log2(rest[:-1] / rest[1:])
    assert (orders > 1.8).all() and (orders < 2.3).all(), (rest, orders)


def test_batches_have_stiffness_per_environment():
    model, q, v = scene_of(0, "slide")
    name = "contact_stiffness/ground"
    values = np.array([[3e3], [4e4], [5e5]])
    batch = coulomb.BatchSimulator(model, 3)
    batch.set_parameters({name: values})
    Q, V = batch.step(np.stack([q] * 3), np.stack([v] * 3))
    w = np.random.default_rng(0).normal(size=(2, model.nv))
    g = batch.vjp(np.stack([w[0]] * 3), np.stack([w[1]] * 3), wrt=[name])
    for i in range(3):
        sim = coulomb.Simulator(model.with_parameters({name: values[i]}))
        q1, v1 = sim.step(q, v)
        assert np.array_equal(q1, Q[i]) and np.array_equal(v1, V[i])
        assert np.array_equal(sim.vjp(*w, wrt=[name])[name], np.ravel(g[name][i]))


def test_impulses_have_their_derivative_by_stiffness():
    """At rest the force is m g whatever k; one step from a fixed depth it is what the closed form says."""
    m, k, d, h, phi = 2.0, 1e4, 20.0, 1e-3, -1e-3
    sim = coulomb.Simulator(ball(k, d, m, phi), timestep=h)
    sim.step(*sim.model.neutral())
    z = h * h * k + h * d
    impulse = -h * k * phi / (1 + z / m)
    got = sim.derivatives(wrt=["contact_stiffness/ball"]).dlambda("contact_stiffness/ball")[2, 0]
    assert abs(sim.contacts[0].impulse[2]) == pytest.approx(impulse, rel=1e-12)
    assert abs(got) == pytest.approx(abs(impulse / k - impulse * h * h / (m + z)), rel=1e-8)


# Kinks and other gradients


@pytest.mark.parametrize("d, kink", [(20.0, True), (0.0, False)])
def test_the_dashpot_has_a_kink_at_touch(d, kink):
    """At distance 0 the damper comes in: two slopes of the bias, the closed one is returned and the flag is set."""
    k, m, h = 1e4, 2.0, 1e-3
    slopes = []
    for phi in (-1e-9, 0.0, 1e-9):
        sim = coulomb.Simulator(ball(k, d, m, 0.0, friction=0.0), timestep=h)
        q, v = sim.model.neutral()
        q[2], v[2] = 0.1 + phi, -0.5
        sim.step(q, v)
        got = sim.derivatives()
        assert got.ambiguous == (kink and phi == 0)
        assert sim.vjp(np.zeros(6), np.ones(6)).ambiguous == (kink and phi == 0)
        slopes.append(got.dv_dq[2, 2])
    assert slopes[1] == pytest.approx(slopes[0], rel=1e-9)
    assert (abs(slopes[2] - slopes[0]) > 0.1 * abs(slopes[0])) == kink


@pytest.mark.parametrize("mode", MODES)
def test_other_gradients_act_on_soft_contact(mode):
    """Away from ties, gaps and corners all of them are the exact one, to the scale of their averages."""
    model, q, v = scene_of(1, "slide")
    w = np.random.default_rng(0).normal(size=(2, model.nv))
    found = []
    for gradient in ("exact", mode):
        options = {"gradient_samples": 4, "gradient_scale": 1e-9} if mode.startswith("smoothed") else {}
        options = {} if gradient == "exact" else {"gradient": gradient, **options}
        sim = coulomb.Simulator(model, **options)
        sim.step(q, v)
        g = sim.vjp(*w, wrt=["contact_stiffness/ground", "contact_dashpot/ground"])
        found.append(np.r_[g.q, g.v, g["contact_stiffness/ground"], g["contact_dashpot/ground"]])
    scale = np.abs(found[0]) + 1e-6 * np.abs(found[0]).max()
    assert (np.abs(found[1] - found[0]) < 1e-3 * scale).all()


@pytest.mark.parametrize("soft", [{"contact_stiffness": 1e4, "contact_dashpot": 20.0}, {"compliance": 30.0}])
def test_from_distance_is_the_soft_contact_that_is_about_to_close(soft):
    """On this side of the closing the share 1 of what the exact gradient is on the other."""
    h, found = 2e-3, []
    for beyond, options in ((1e-7, {"gradient": "from_distance", "gradient_scale": 0.05}), (-1e-7, {})):
        scene = coulomb.Scene(gravity=(0, 0, 0))
        scene.add_ground(friction=0.0)
        scene.add_sphere(0.1, mass=2.0, position=(0, 0, 0.101), **soft)
        sim = coulomb.Simulator(scene.build(), timestep=h, **options)
        q, v = sim.model.neutral()
        v[2] = -(1e-3 - beyond) / h
        sim.step(q, v)
        found.append(np.array(sim.derivatives().A))
    assert np.abs(found[0] - found[1]).max() < 1e-4 * np.abs(found[1]).max()
    assert found[1][8, 8] > 0.1  # far from rigid
