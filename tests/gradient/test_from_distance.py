"""gradient="from_distance": a gap has the share exp(-gap/l) of the derivative of the contact that it would be. Against closed forms, against the
exact derivative on the other side of the gap's closing, forward against reverse, and where it must change nothing."""

import numpy as np
import pytest

import coulomb
from scenes import contacts

H = 2e-3
LENGTH = 0.05
FINGER, BOX = 1.5, 0.5  # kg


def finger_and_box(gap):
    """A finger (sphere) before a box, both free along x alone, 1.5 and .5 kg."""
    return coulomb.load(
        f"""<mujoco><option gravity="0 0 0"/><worldbody>
        <body name="finger" pos="{-gap - 0.2} 0 0"><joint type="slide" axis="1 0 0"/><geom name="finger" size=".1" mass="{FINGER}"/></body>
        <body name="box"><joint type="slide" axis="1 0 0"/><geom name="box" type="box" size=".1 .1 .1" mass="{BOX}"/></body>
        </worldbody></mujoco>"""
    )


def simulator(model, **options):
    options = {"gradient": "from_distance", "gradient_scale": LENGTH, "timestep": H, **options}
    return coulomb.Simulator(model, **options)


@pytest.mark.parametrize("gap", [1e-4, 0.01, 0.05, 0.2])
@pytest.mark.parametrize("speed", [0.0, 0.03, -2.0])
def test_one_gap_has_its_share_of_a_contact(gap, speed):
    sim = simulator(finger_and_box(gap))
    q, v = sim.model.neutral()
    v[0] = speed
    q1, v1 = sim.step(q, v)
    assert np.array_equal(v1, v)  # nothing was touched
    d = sim.derivatives()

    # A plastic impact keeps the momentum; the gap asks for -dgap/h.
    share = np.exp(-(gap - H * speed) / LENGTH)
    contact = np.array([-1.0, 1.0]) / (1 / FINGER + 1 / BOX)  # J' / (J M^-1 J'), J = (-1, 1)
    contact /= [FINGER, BOX]
    J = np.array([-1.0, 1.0])
    dv_dv = np.eye(2) - share * np.outer(contact, J)
    dv_dq = -share * np.outer(contact, J) / H
    assert np.allclose(d.dv_dv, dv_dv, rtol=0, atol=1e-12)
    assert np.allclose(d.dv_dq, dv_dq, rtol=0, atol=1e-12 / H)
    assert np.allclose(d.dq_dv, H * dv_dv, rtol=0, atol=1e-14)
    assert np.allclose(d.dq_dq, np.eye(2) + H * dv_dq, rtol=0, atol=1e-12)
    assert np.allclose(d.dv_dtau, dv_dv @ np.diag([H / FINGER, H / BOX]), rtol=0, atol=1e-14)


@pytest.mark.parametrize("masses", [(1.0, 1e4), (1e4, 1.0)])
def test_gaps_of_light_and_heavy_bodies_are_their_own(masses):
    """Two balls above a floor that nothing else joins: each derivative is that of its ball alone, whatever the other weighs."""

    def balls(chosen):
        bodies = "".join(
            f'<body pos="{k} 0 .13"><joint type="slide" axis="0 0 1"/><geom size=".1" mass="{mass}"/></body>'
            for k, mass in chosen
        )
        gravity = '<option gravity="0 0 0"/>'
        model = coulomb.load(
            f'<mujoco>{gravity}<worldbody><geom type="plane" size="9 9 1"/>{bodies}</worldbody></mujoco>'
        )
        sim = simulator(model)
        sim.step(*model.neutral())
        return sim.derivatives()

    both = balls(enumerate(masses))
    for k, mass in enumerate(masses):
        alone = balls([(k, mass)])
        assert alone.dv_dv[0, 0] < 0.9
        assert both.dv_dv[k, k] == pytest.approx(alone.dv_dv[0, 0], rel=1e-12)
        assert both.dv_dq[k, k] == pytest.approx(alone.dv_dq[0, 0], rel=1e-12)
        assert both.dv_dv[k, 1 - k] == 0


def test_at_the_closing_it_is_the_exact_one_of_the_other_side():
    """Of a body in contact with others, with a rotation: what is about to close has the derivative of what has just closed."""
    found = []
    for edge in (1e-7, -1e-7):
        model = coulomb.load(
            """<mujoco><worldbody><geom type="plane" size="1 1 1" friction="0"/>
            <body name="a" pos="0 0 .0999"><freejoint/><geom name="a" type="box" size=".1 .1 .1" mass="1" friction="0"/></body>
            <body name="b" pos=".3 0 .2"><joint type="slide" axis="1 0 0"/><geom name="b" size=".1" mass="2" friction="0"/></body>
            </worldbody></mujoco>"""
        )
        sim = simulator(model, gradient="from_distance")
        q, v = model.neutral()
        q[-1] = 0.0
        # The speed at which the gap of .1 m closes at the end of the step, and a little more or less.
        v[-1] = -(0.1 - edge) / H
        sim.step(q, v)
        found.append((sim.contacts, np.array(sim.derivatives().dv_dv), np.array(sim.derivatives().dv_dq)))
    hit = [
        any({c.geometry_a, c.geometry_b} == {"a", "b"} and np.abs(c.impulse).any() for c in list_)
        for list_, *_ in found
    ]
    assert hit == [False, True]
    # By velocities; by positions but for the turning of J, which is felt at 50 m/s.
    for near, touching, tolerance in zip(found[0][1:], found[1][1:], (1e-5, 1e-3)):
        assert np.abs(near - touching).max() < tolerance * np.abs(touching).max()


def gripper(**options):
    """Arms that are about to touch a box on the ground: several near gaps, of a body that rests on acting contacts."""
    model, q, v = contacts.arm_pushes_box(np.random.default_rng(0))
    return simulator(model, **options), q, v


def test_forward_and_reverse_are_transposes_with_parameters_and_wrenches():
    sim, q, v = gripper(gradient_scale=0.3)
    random = np.random.default_rng(1)
    v = v + 0.1 * random.normal(size=v.shape)
    u = random.normal(size=sim.model.nu)
    # Apart: what touched does not any more, but is near.
    q = sim.model.integrate(q, 0.05 * random.normal(size=v.shape))
    sim.step(q, v, u)
    exact = coulomb.Simulator(sim.model, timestep=H)
    exact.step(q, v, u)
    names = [name for name in sim.model.parameters() if name.split("/")[0] in ("mass", "size", "gravity", "friction")]
    d, e = sim.derivatives(wrt=names), exact.derivatives(wrt=names)
    assert np.abs(d.A - e.A).max() > 1e-3 * np.abs(e.A).max()  # it does change something
    for _ in range(3):
        dq1, dv1 = random.normal(size=(2, sim.model.nv))
        g = sim.vjp(dq1, dv1, wrt=[*names, "fext"])
        w = np.concatenate([dq1, dv1])
        for found, expected in [(np.r_[g.q, g.v], w @ d.A), (g.u, w @ d.B), (g.tau, w @ d.B_tau)]:
            assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()
        for name in names:
            assert np.abs(g[name] - w @ d[name]).max() < 1e-9 * max(1e-3, np.abs(w @ d[name]).max()), name
        t = random.normal(size=2 * sim.model.nv)
        moved = np.concatenate(sim.jvp(t[: sim.model.nv], t[sim.model.nv :]))
        assert np.abs(moved - d.A @ t).max() < 1e-9 * np.abs(d.A @ t).max()

    # Wrenches are joint forces J' f: the power of a force is that of its joint forces.
    assert np.isfinite(g["fext"]).all() and np.abs(g["fext"]).max() > 0


def test_what_touches_and_what_is_far_keep_the_exact_derivative_to_the_bit():
    sim, q, v = gripper(gradient_scale=1e-4)
    exact = coulomb.Simulator(sim.model, timestep=H)
    for _ in range(20):
        sim.step(q, v)
        exact.step(q, v)
        assert np.array_equal(sim.derivatives().A, exact.derivatives().A)
        q, v = exact.step(q, v)
        exact.reset()
        sim.reset()


def test_rollouts_batches_and_recalled_steps_have_it_too():
    model = finger_and_box(0.02)
    q, v = model.neutral()
    v[0] = 0.5
    sim = simulator(model)
    U = np.zeros((60, 0))
    dQ = np.zeros((61, 2))
    dQ[-1, 1] = 1.0
    g = [sim.rollout(q, v, U, keep_factors=keep).vjp(dQ, 0 * dQ) for keep in (True, False)]
    assert np.array_equal(g[0].v0, g[1].v0)
    chained = np.zeros(4)
    chained[1] = 1.0
    states = [(q, v)]
    for _ in range(60):
        states.append(sim.step(*states[-1]))
    sim.reset()
    matrices = []
    for state in states[:-1]:
        sim.step(*state)
        matrices.append(np.array(sim.derivatives().A))
    for A in matrices[::-1]:
        chained = chained @ A
    assert np.allclose(g[0].v0, chained[2:], rtol=1e-9)
    batch = coulomb.BatchSimulator(model, 2, 1, H, gradient="from_distance", gradient_scale=LENGTH)
    r = batch.rollout(np.tile(q, (2, 1)), np.tile(v, (2, 1)), steps=60)
    assert np.array_equal(r.vjp(np.tile(dQ, (2, 1, 1)), np.zeros((2, 61, 2))).v0[1], g[0].v0)


def test_it_finds_a_contact_that_the_exact_gradient_does_not_know_of():
    """Throw the finger so that the box is at .3 m after half a second; at first it falls short of the box."""
    model = finger_and_box(0.1)
    q, v = model.neutral()
    ends = {}
    for gradient in ("exact", "from_distance"):
        options = {} if gradient == "exact" else {"gradient_scale": LENGTH}
        sim = coulomb.Simulator(model, timestep=H, gradient=gradient, **options)
        speed = 0.1
        for _ in range(60):
            r = sim.rollout(q, np.array([speed, 0.0]), steps=250)
            miss = r.q[-1, 1] - 0.3
            dQ = np.zeros((251, 2))
            dQ[-1, 1] = 2 * miss
            slope = r.vjp(dQ, np.zeros((251, 2))).v0[0]
            speed -= np.clip(0.5 * slope, -0.2, 0.2)
        ends[gradient] = abs(miss)
    assert ends["exact"] == 0.3 and ends["from_distance"] < 1e-3


@pytest.mark.parametrize(
    "options", [{"contact": "penalty"}, {"stepper": "bdf1"}, {"continuous_collision": True}], ids=str
)
def test_steps_that_do_not_have_it_refuse_by_name(options):
    with pytest.raises(ValueError, match="from_distance"):
        coulomb.Simulator(finger_and_box(0.1), gradient="from_distance", **options)


def test_the_scale_belongs_to_gradients_that_have_one():
    with pytest.raises(ValueError, match="gradient_scale.*from_distance"):
        coulomb.Simulator(finger_and_box(0.1), gradient_scale=0.1)


def under_a_lid(gap, lids=1, friction=0.8):
    """A box that rests on the ground, and lids over it so near that they count, which cannot be reached: the ground holds it from behind."""
    spheres = "".join(
        f'<geom type="sphere" size=".1" pos="{0.15 * k} 0 {0.3 + gap}" friction="{friction}"/>' for k in range(lids)
    )
    model = coulomb.load(
        f"""<mujoco><worldbody><geom type="plane" size="9 9 1" friction="{friction}"/>{spheres}
        <body pos="0 0 .1"><freejoint/><geom type="box" size=".3 .3 .1" mass="1" friction="{friction}"/></body></worldbody></mujoco>"""
    )
    return model


@pytest.mark.parametrize("lids", [1, 3])
@pytest.mark.parametrize("gap", [1e-6, 1e-4, 0.01])
def test_a_gap_that_contacts_hold_from_behind_changes_nothing(gap, lids):
    model = under_a_lid(gap, lids)
    sims = [simulator(model), coulomb.Simulator(model, timestep=H)]
    for sim in sims:
        q, v = model.neutral()
        for _ in range(3):
            q, v = sim.step(q, v)
    assert sims[0].status.converged and any(np.abs(c.impulse).any() for c in sims[0].contacts)
    near, exact = (sim.derivatives(wrt=["gravity"]) for sim in sims)
    for found, expected in ((near.A, exact.A), (near.B_tau, exact.B_tau), (near["gravity"], exact["gravity"])):
        np.testing.assert_array_equal(found, expected)
    ones = np.ones(model.nv)
    np.testing.assert_array_equal(sims[0].vjp(ones, ones).q, sims[1].vjp(ones, ones).q)


@pytest.mark.parametrize("seed", range(8))
def test_random_stands_have_finite_derivatives(seed):
    """Bodies that lean on the ground, on walls and on one another, some of them wedged, with spheres all around that are nearly touched."""
    random = np.random.default_rng(seed)
    scene = coulomb.Scene(timestep=H)
    scene.add_ground(friction=0.9)
    for side in (-1, 1):
        scene.add_box(
            (0.2, 2, 2),
            fixed=True,
            position=(side * (0.2 + 10.0 ** random.uniform(-7, -3)), 0, 0),
            friction=0.9,
            name=f"wall{side}",
        )
    for k in range(3):
        scene.add_box((0.2, 0.2, 0.1), mass=1.0, position=(0, 0, 0.05 + 0.1 * k), friction=0.9, name=f"box{k}")
    for k in range(6):
        gap = 10.0 ** random.uniform(-7, -1.5)
        place = (
            (0.1 * random.normal(), 0.1 + 0.05 + gap, 0.1 + 0.03 * random.normal())
            if k % 2
            else (0.05 * random.normal(), 0, 0.35 + gap)
        )
        scene.add_sphere(0.05, fixed=True, position=place, friction=0.9, name=f"near{k}")
    model = scene.build()
    for scale in (1e-3, 1e-2, 0.3):
        sim = simulator(model, gradient_scale=scale)
        exact = coulomb.Simulator(model, timestep=H)
        q, v = model.neutral()
        for _ in range(5):
            sim.step(q, v)
            exact.reset()
            exact.step(q, v)
            A, reference = sim.derivatives().A, exact.derivatives().A
            assert np.isfinite(A).all() and np.abs(A).max() < 1e6 * max(1, np.abs(reference).max())
            w = random.normal(size=2 * model.nv)
            g = sim.vjp(w[: model.nv], w[model.nv :])
            assert np.abs(np.r_[g.q, g.v] - w @ A).max() < 1e-7 * np.abs(A).max()
            q, v = sim.step(q, v)
