"""Friction and restitution of pairs of geometries: what they are, their derivatives, and what is refused."""

import numpy as np
import pytest

import coulomb

NAMES = ["pair_friction/table:box", "friction/table", "friction/box"]
BOUNCE = ["pair_restitution/table:ball", "restitution/table", "restitution/ball"]


def sliding(friction=0.3, contact="ncp", **options):
    """A box that slides and turns on a table; the pair's friction is below that of either."""
    scene = coulomb.Scene(timestep=0.002)
    scene.add_ground(friction=0.6, name="table")
    scene.add_box((0.2, 0.2, 0.1), mass=1.0, position=(0, 0, 0.05), friction=0.5, name="box")
    scene.set_contact("box", "table", friction=friction)
    sim = coulomb.Simulator(scene.build(), contact=contact, **options)
    q, v = sim.model.neutral()
    v[:6] = 0.7, -0.4, 0, 0, 0, 2.0
    return sim, q, v


def bouncing(restitution=0.4, **options):
    scene = coulomb.Scene(timestep=0.002)
    scene.add_ground(restitution=0.9, name="table")
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.0999), restitution=0.8, name="ball")
    scene.set_contact("table", "ball", restitution=restitution)
    sim = coulomb.Simulator(scene.build(), **options)
    q, v = sim.model.neutral()
    v[:3] = 0.3, 0, -1.0
    return sim, q, v


def test_a_pair_has_its_own_friction():
    sim, q, v = sliding(friction=0.3)
    assert sim.model.pair_friction == pytest.approx([0.3])
    assert sim.model.parameters()["pair_friction/table:box"].value == 0.3
    v[5] = 0
    _, v1 = sim.step(q, v)
    lost = np.hypot(*v[:2]) - np.hypot(*v1[:2])
    assert lost == pytest.approx(0.3 * 9.81 * 0.002, rel=1e-9)


def test_a_pair_has_its_own_restitution():
    sim, q, v = bouncing(restitution=0.4)
    _, v1 = sim.step(q, v)
    assert v1[2] == pytest.approx(0.4, rel=1e-12)


@pytest.mark.parametrize("contact", ["ncp", "lcp", "penalty"])
def test_friction_is_felt_by_the_pair_alone(contact):
    stiff = {"contact_stiffness": 1e5} if contact == "penalty" else {}
    sim, q, v = sliding(contact=contact, **stiff)
    q[2] -= 1e-4 if contact == "penalty" else 0
    sim.step(q, v)
    d = sim.derivatives(wrt=NAMES)
    assert np.abs(d[NAMES[0]][6:]).max() > 1e-3
    assert not d["friction/table"].any() and not d["friction/box"].any()
    assert coulomb.check_gradients(sim, q, v, wrt=NAMES).passed


def test_sticking_contacts_do_not_feel_it():
    sim, q, v = sliding(friction=0.8)
    v[:6] = 0.01, 0, 0, 0, 0, 0
    sim.step(q, v)
    assert not sim.derivatives(wrt=NAMES[:1])[NAMES[0]].any()


@pytest.mark.parametrize("continuous", [False, True])
def test_restitution_is_felt_by_the_pair_alone(continuous):
    sim, q, v = bouncing(continuous_collision=continuous)
    q[2] += 2e-4 if continuous else 0.0
    sim.step(q, v)
    d = sim.derivatives(wrt=BOUNCE)
    assert d[BOUNCE[0]][8, 0] == pytest.approx(1.0, rel=2e-2)
    assert not d["restitution/table"].any() and not d["restitution/ball"].any()
    assert coulomb.check_gradients(sim, q, v, wrt=BOUNCE).passed


def test_taylor_remainders_fall_as_squares():
    """Friction and restitution of one pair through a rollout with an impact and sliding: the remainder of the first order is of the second."""
    scene = coulomb.Scene(timestep=0.002)
    scene.add_ground(name="table")
    scene.add_box((0.2, 0.2, 0.1), mass=1.0, position=(0, 0, 0.05), name="box")
    scene.set_contact("table", "box", friction=0.3, restitution=0.4)
    model = scene.build()
    names = ["pair_friction/table:box", "pair_restitution/table:box"]
    direction = np.array([0.7, -0.4])
    q, v = model.neutral()
    v[:6] = 0.9, -0.3, -0.8, 0.2, 0.1, 1.0
    weight = np.linspace(1, 2, 12)

    def end(s):
        changed = model.with_parameters({name: x + s * d for name, x, d in zip(names, (0.3, 0.4), direction)})
        r = coulomb.Simulator(changed).rollout(q, v, steps=12)
        return r, weight @ np.r_[model.difference(q, r.q[-1]), r.v[-1]]

    r, here = end(0.0)
    dQ, dV = np.zeros((13, 6)), np.zeros((13, 6))
    dV[-1] = weight[6:]
    dQ[-1] = weight[:6] @ differences(model, q, r.q[-1])
    g = r.vjp(dQ, dV, wrt=names)
    slope = sum(g[name][0] * d for name, d in zip(names, direction))
    remainders = [abs(end(s)[1] - here - s * slope) for s in (1e-2, 5e-3, 2.5e-3)]
    assert abs(slope) > 0.1
    assert all(3.4 < a / b < 4.6 for a, b in zip(remainders, remainders[1:])), remainders


def differences(model, q, q1, h=1e-6):
    """d difference(q, q1 (+) w)/dw at w = 0."""
    sides = [[model.difference(q, model.integrate(q1, s * h * e)) for s in (1, -1)] for e in np.eye(6)]
    return np.stack([(a - b) / (2 * h) for a, b in sides], axis=1)


@pytest.mark.parametrize("make, names", [(sliding, NAMES), (bouncing, BOUNCE)])
def test_forward_and_reverse_mode_agree(make, names):
    sim, q, v = make()
    sim.step(q, v)
    d = sim.derivatives(wrt=names)
    random = np.random.default_rng(0)
    dq1, dv1 = random.normal(size=(2, 6))
    g = sim.vjp(dq1, dv1, wrt=names)
    for name in names:
        assert g[name] == pytest.approx(np.r_[dq1, dv1] @ d[name], rel=1e-12, abs=1e-14)


def test_values_are_set_one_by_one():
    scene = coulomb.Scene()
    scene.add_ground(name="table")
    scene.add_sphere(0.1, mass=1.0, name="ball")
    scene.set_contact("ball", friction=0.4, restitution=0.2)
    scene.set_contact("ball", friction=0.5)
    assert scene.build().pair_friction == pytest.approx([0.5])
    assert scene.build().pair_restitution == pytest.approx([0.2])
    scene.set_contact("ball", "table", friction=0.1)
    scene.set_contact("table", "ball", restitution=0.6)
    assert scene.build().pair_friction == pytest.approx([0.1])
    assert scene.build().pair_restitution == pytest.approx([0.6])
    changed = scene.build().with_parameters({"pair_friction/table:ball": 0.7, "friction/ball": 0.9})
    assert changed.pair_friction == pytest.approx([0.7])


def test_what_is_wrong_is_named():
    scene = coulomb.Scene()
    scene.add_ground(name="table")
    scene.add_sphere(0.1, mass=1.0, name="ball")
    for arguments, options, message in (
        (("ball", "tabel"), {"friction": 0.1}, "set_contact 'ball', 'tabel'.*did you mean 'table'"),
        (("ball", "ball"), {"friction": 0.1}, "both are of body 'ball' and never touch"),
        (("ball", "table"), {"friction": -0.1}, "friction: -0.1"),
        (("ball", "table"), {"restitution": 1.5}, "restitution: 1.5 is outside"),
        (("ball",), {"restitution": np.nan}, "restitution: nan is outside"),
        (("ball", "table"), {"contact_stiffness": 1e4}, "contact_stiffness: belongs to one geometry"),
    ):
        with pytest.raises(ValueError, match=message):
            scene.set_contact(*arguments, **options)
    scene.set_contact("ball", "table", friction=0.3)
    model = scene.build()
    with pytest.raises(ValueError, match="pair_friction/table:ball.*-1"):
        model.with_parameters({"pair_friction/table:ball": -1.0})
    with pytest.raises(ValueError, match="did you mean 'pair_friction/table:ball'"):
        model.with_parameters({"pair_friction/ball:table": 0.1})
    assert "pair_restitution/table:ball" not in model.parameters()
