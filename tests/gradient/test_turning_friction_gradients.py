"""Derivatives of steps with torsional and rolling friction: by state, forces and parameters, in every mode, forward against reverse."""

import numpy as np
import pytest

import coulomb

SLOW, FAST = 0.02, 1.0
LAWS = ["ncp", "lcp"]


def one_body(shape, torsional=0.02, rolling=0.01, friction=0.6, **options):
    """A body that touches a slope."""
    scene = coulomb.Scene(timestep=2e-3)
    scene.add_ground(
        friction=friction, normal=(0.2, -0.1, 1), name="floor", torsional_friction=torsional, rolling_friction=rolling
    )
    surface = dict(name="body", mass=0.8, friction=0.3, position=(0.1, -0.2, 0.0))
    if shape == "sphere":
        scene.add_sphere(0.1, **surface)
    elif shape == "capsule":
        scene.add_capsule(0.07, 0.2, quaternion=(0.9, 0.3, 0.2, np.sqrt(1 - 0.94)), **surface)
    elif shape == "ellipsoid":
        scene.add_ellipsoid((0.1, 0.07, 0.12), quaternion=(0.9, 0.3, 0.2, np.sqrt(1 - 0.94)), **surface)
    else:
        scene.add_box((0.2, 0.15, 0.1), quaternion=(0.9, 0.3, 0.2, np.sqrt(1 - 0.94)), **surface)
    sim = coulomb.Simulator(scene.build(), **options)
    q, v = sim.model.neutral()

    # A little into the slope: from deep inside upward.
    for _ in range(20):
        sim.step(q, np.zeros(6))
        q[2] += max(c.depth for c in sim.contacts) - 1e-5
    sim.reset()
    return sim, q, v


def turned(quaternion, x):
    w, *u = quaternion
    return x + 2 * np.cross(u, np.cross(u, x) + w * x)


def thrown(sim, q, speed, random):
    """A velocity at which the first contact approaches by .2 of it."""
    sim.step(q, np.zeros(6))
    contact = sim.contacts[0]
    sim.reset()
    v = speed * random.normal(size=6) * (1, 1, 1, 5, 5, 5)
    outward = contact.normal if contact.geometry_a == "body" else -contact.normal
    at_point = v[:3] + np.cross(turned(q[3:], v[3:]), contact.point - q[:3])
    v[:3] -= outward * (outward @ at_point + 0.2 * speed)
    return v


def names_of(model, *kinds):
    return [name for name in model.parameters() if name.split("/")[0] in kinds]


FRICTIONS = ("friction", "torsional_friction", "rolling_friction")


@pytest.mark.parametrize("speed", [0, SLOW, FAST])
@pytest.mark.parametrize(("torsional", "rolling"), [(0.02, 0.01), (0.03, None), (None, 0.02)])
@pytest.mark.parametrize("shape", ["sphere", "capsule", "ellipsoid", "box"])
@pytest.mark.parametrize("contact", LAWS)
def test_one_contact(contact, shape, torsional, rolling, speed):
    """Sticking at rest on the slope, sliding, spinning and rolling when it is thrown."""
    modes = set()
    for seed in range(3):
        random = np.random.default_rng(seed)
        sim, q, v = one_body(shape, torsional, rolling, contact=contact)
        v = thrown(sim, q, speed, random)
        wrt = ["q", "v", "tau", *names_of(sim.model, *FRICTIONS, "size", "geometry_placement", "mass")]
        for kind, value in (("torsional_friction", torsional), ("rolling_friction", rolling)):
            assert (f"{kind}/floor" in wrt) == (value is not None)
        check = coulomb.check_gradients(sim, q, v, wrt=wrt)
        assert check.passed, (shape, seed, check)
        sim.step(q, v)
        own = {c.mode for c in sim.contacts}
        modes |= own
        if own == {"sliding"} and speed == FAST:
            d = sim.derivatives(wrt=names_of(sim.model, *FRICTIONS))
            for name in names_of(sim.model, *FRICTIONS):
                acts = contact == "ncp"  # each part of a pyramid may stick by itself
                assert name.endswith("body") or not acts or np.abs(d[name]).max() > 1e-5, (seed, name)
    assert "sliding" in modes or speed != FAST
    assert modes & {"sticking", "sliding"}


def two_bodies(seed, **options):
    """A sphere and a box that touch in the air, both moving, with a third that only one of them touches."""
    random = np.random.default_rng(seed)
    scene = coulomb.Scene(timestep=1e-3, gravity=(0, 0, 0))
    scene.add_box((0.4, 0.3, 0.2), mass=2.0, position=(0, 0, -0.1), name="box", friction=0.4, torsional_friction=0.01)
    scene.add_sphere(0.1, mass=1.0, position=(0.05, 0.02, 0.0999), name="ball", friction=0.7, rolling_friction=0.02)
    scene.add_capsule(
        0.05,
        0.2,
        mass=0.5,
        position=(-0.12, 0.05, 0.0499),
        quaternion=(np.sqrt(0.5), 0, np.sqrt(0.5), 0),
        name="pin",
        friction=0.5,
        torsional_friction=0.03,
        rolling_friction=0.005,
    )
    sim = coulomb.Simulator(scene.build(), baumgarte=0.1, **options)
    q, v = sim.model.neutral()
    v = random.normal(size=18) * np.tile([0.3, 0.3, 0.1, 2, 2, 2], 3)
    v[2] += 0.5
    v[8] -= 0.5
    v[14] -= 0.5
    return sim, q, v


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize("seed", range(4))
def test_two_moving_bodies(seed, contact):
    sim, q, v = two_bodies(seed, contact=contact)
    wrt = ["q", "v", "tau", *names_of(sim.model, *FRICTIONS, "size", "geometry_placement")]
    check = coulomb.check_gradients(sim, q, v, wrt=wrt)
    assert check.passed, check
    sim.step(q, v)
    assert any(np.abs(c.torque).max() > 1e-3 for c in sim.contacts)


def arm(seed, **options):
    """Two links on a ball joint and a hinge, whose tip presses on the floor and turns on it."""
    text = """<mujoco><option timestep="0.002"/><default><geom condim="6" friction=".5 .02 .01"/></default><worldbody>
      <geom name="floor" type="plane" size="2 2 .1"/>
      <body pos="0 0 .5"><joint type="ball"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1" contype="0" conaffinity="0"/>
      <body pos=".3 0 0"><joint type="hinge" axis="0 1 0"/><geom name="tip" type="capsule" fromto="0 0 0 .1 0 -.45" size=".05" mass="1"/>
      </body></body></worldbody></mujoco>"""
    scene = coulomb.Scene()
    scene.add_mjcf(text)
    model = scene.build()
    sim = coulomb.Simulator(model, **options)
    random = np.random.default_rng(seed)
    q, v = model.neutral()
    v = random.normal(size=model.nv) * (0.3 if seed % 2 else 2.0)
    q = model.integrate(q, np.array([0, 1e-5, 0, 1e-5]))

    # Downward at the tip.
    sim.step(q, v)
    if not any(c.impulse.any() for c in sim.contacts):
        v = -v
    sim.reset()
    return sim, q, v


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize("seed", range(4))
def test_a_robot(seed, contact):
    sim, q, v = arm(seed, contact=contact)
    sim.step(q, v)
    assert any(c.torque.any() for c in sim.contacts)

    # Where the polygon holds, sliding friction does nothing: what compliance leaves is all that differences see.
    kinds = [*FRICTIONS, "joint_placement", "size"]
    if contact == "lcp" and all(c.facet < 0 for c in sim.contacts):
        names = names_of(sim.model, "friction")
        d = sim.derivatives(wrt=names)
        assert all(np.abs(d[name]).max() < 1e-7 for name in names)
        kinds.remove("friction")
    sim.reset()
    check = coulomb.check_gradients(sim, q, v, wrt=["q", "v", "tau", *names_of(sim.model, *kinds)])
    assert check.passed, check


@pytest.mark.parametrize("contact", LAWS)
@pytest.mark.parametrize("make", [lambda seed, **options: one_body("box", **options), two_bodies, arm])
def test_reverse_is_forward(make, contact):
    for seed in range(3):
        random = np.random.default_rng(seed)
        sim, q, v = make(seed, contact=contact)
        nv = sim.model.nv
        v = v + 0.1 * random.normal(size=nv)
        names = names_of(sim.model, *FRICTIONS)
        sim.step(q, v)
        d = sim.derivatives(wrt=names)
        dq1, dv1 = random.normal(size=(2, nv))
        w = np.r_[dq1, dv1]
        g = sim.vjp(dq1, dv1, wrt=names)
        np.testing.assert_allclose(np.r_[g.q, g.v], w @ d.A, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(g.tau, w @ d.B_tau, rtol=1e-9, atol=1e-10)
        for name in names:
            np.testing.assert_allclose(g[name], w @ d[name], rtol=1e-8, atol=1e-9)
        x = random.normal(size=2 * nv)
        forward = np.concatenate(sim.jvp(dq=x[:nv], dv=x[nv:]))
        np.testing.assert_allclose(forward, d.A @ x, rtol=1e-9, atol=1e-10)


def test_pairs_of_their_own():
    scene = coulomb.Scene(timestep=2e-3)
    scene.add_ground(name="floor")
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1), name="ball", torsional_friction=0.5, rolling_friction=0.5)
    scene.set_contact("ball", "floor", friction=0.4, torsional_friction=0.02, rolling_friction=0.01)
    model = scene.build()
    assert model.pair_torsional_friction == pytest.approx([0.02]) and model.pair_rolling_friction == pytest.approx(
        [0.01]
    )
    sim = coulomb.Simulator(model)
    q, _ = model.neutral()
    v = np.array([0.4, -0.3, 0, 2.0, 3.0, 4.0])
    names = [f"pair_{kind}/floor:ball" for kind in FRICTIONS]
    check = coulomb.check_gradients(sim, q, v, wrt=["q", "v", *names])
    assert check.passed, check
    sim.step(q, v)
    d = sim.derivatives(wrt=[*names, "torsional_friction/ball", "friction/ball"])
    for name in names:
        assert np.abs(d[name]).max() > 1e-4
    assert not d["torsional_friction/ball"].any() and not d["friction/ball"].any()


def test_zero_has_no_derivative():
    scene = coulomb.Scene()
    scene.add_ground(name="floor")
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1), name="ball", torsional_friction=0.0)
    sim = coulomb.Simulator(scene.build())
    q, v = sim.model.neutral()
    sim.step(q, v)
    with pytest.raises(ValueError, match=r"torsional_friction/ball.*0"):
        sim.derivatives(wrt=["torsional_friction/ball"])
    changed = sim.model.with_parameters({"torsional_friction/ball": 0.02})
    assert changed.pair_torsional_friction == pytest.approx([0.02])
    v[5] = 10.0
    assert coulomb.Simulator(changed).step(q, v)[1][5] == pytest.approx(10 - 0.02 * 9.81 * 1e-3 / 0.004, rel=1e-9)


def test_taylor_remainders_fall_as_squares():
    """All three coefficients through a rollout that slides, spins and rolls."""
    sim, q, _ = one_body("sphere")
    model = sim.model
    v = thrown(sim, q, 2.0, np.random.default_rng(4))
    names = [f"{kind}/floor" for kind in FRICTIONS]
    direction = np.array([0.3, 0.01, -0.005])
    values = np.array([float(np.ravel(model.parameters()[name].value)[0]) for name in names])
    weight = np.linspace(1, 2, 6)

    def end(s):
        changed = model.with_parameters(dict(zip(names, values + s * direction)))
        r = coulomb.Simulator(changed, baumgarte=0).rollout(q, v, steps=20)
        return r, weight @ r.v[-1]

    r, here = end(0.0)
    dV = np.zeros((21, 6))
    dV[-1] = weight
    g = r.vjp(np.zeros((21, 6)), dV, wrt=names)
    slope = sum(g[name][0] * d for name, d in zip(names, direction))
    remainders = [abs(end(s)[1] - here - s * slope) for s in (1e-1, 5e-2, 2.5e-2)]
    assert abs(slope) > 0.01
    assert all(3.4 < a / b < 4.6 for a, b in zip(remainders, remainders[1:])), (slope, remainders)
