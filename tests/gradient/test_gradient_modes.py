"""Which gradient: the exact one, the better side at ties, and the two smoothed ones (docs/conventions.md)."""

import numpy as np
import pytest

import coulomb

H, MU, WEIGHT = 1e-2, 0.5, 9.81


def box():
    scene = coulomb.Scene()
    scene.add_ground(friction=MU)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.0999), friction=MU, name="box")
    return scene.build()


def pushed(force, **options):
    """A box at rest pushed along x; position correction off, so that sticking and sliding meet exactly at mu m g."""
    model = box()
    sim = coulomb.Simulator(model, timestep=H, baumgarte=0, **options)
    q, v = model.neutral()
    sim.step(q, v, tau=np.array([force, 0, 0, 0, 0, 0.0]))
    return sim


def slope_of_vjp(sim):
    return sim.vjp(np.zeros(6), np.eye(6)[0]).tau[0]


@pytest.mark.parametrize("force, slope", [(0.9 * MU * WEIGHT, 0.0), (1.1 * MU * WEIGHT, H)])
@pytest.mark.parametrize("gradient", ["exact", "complementarity_aware"])
def test_away_from_ties_both_are_exact(gradient, force, slope):
    assert slope_of_vjp(pushed(force, gradient=gradient)) == pytest.approx(slope, abs=1e-12)


def test_at_the_edge_of_sliding_the_aware_gradient_leaves_the_saddle():
    sim = pushed(MU * WEIGHT, gradient="exact")
    assert any(c.tie for c in sim.contacts)
    assert slope_of_vjp(sim) == pytest.approx(0, abs=1e-12)
    aware = pushed(MU * WEIGHT, gradient="complementarity_aware")
    assert slope_of_vjp(aware) == pytest.approx(H, rel=1e-9)
    assert np.abs(aware.derivatives().dv_dtau[0, 0]) < 1e-12  # the Jacobian stays that of the documented side


def test_what_counts_as_a_tie_is_an_option():
    for share, tie_margin, slope in ((1, 0.0, 0.0), (1, 1e-6, H), (0.999, 1e-6, 0.0), (0.999, 0.1, H)):
        sim = pushed(share * MU * WEIGHT, gradient="complementarity_aware", tie_margin=tie_margin)
        assert slope_of_vjp(sim) == pytest.approx(slope, rel=1e-9, abs=1e-12), (share, tie_margin)
        assert sim.options["tie_margin"] == tie_margin


def test_aware_gradient_of_a_body_at_the_border_of_touching():
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_ground(friction=0.0)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1), name="ball")
    model = scene.build()
    q, v = model.neutral()
    exact, aware = (coulomb.Simulator(model, timestep=H, gradient=g) for g in ("exact", "complementarity_aware"))
    for sim in (exact, aware):
        sim.step(q, v)
    w = np.eye(6)[2]
    assert exact.vjp(np.zeros(6), w).v[2] == pytest.approx(1)
    assert aware.vjp(np.zeros(6), w).v[2] == pytest.approx(1)  # touching would give 0: smaller


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
def test_aware_gradient_of_a_ball_does_not_see_a_box_elsewhere(contact):
    """Other sides of ties are chosen block by block, each by its own impulse and velocity."""

    def gradient(with_box, v_ball, w_ball):
        scene = coulomb.Scene()
        scene.add_ground(friction=MU)
        if with_box:
            scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(5, 0, 0.0999), friction=MU)
        scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.0999), friction=MU)
        model = scene.build()
        q, v = model.neutral()
        v[:3] = -0.5, 0.8, 0.1
        v[-6:] = 0.1 * v_ball * np.array([1, 1, 0, 0, 0, 0])
        sim = coulomb.Simulator(model, timestep=H, gradient="complementarity_aware", tie_margin=10.0, contact=contact)
        sim.step(q, v)
        g = sim.vjp(np.zeros(model.nv), np.r_[np.zeros(model.nv - 6), w_ball])
        return np.r_[g.q[-6:], g.v[-6:], g.tau[-6:]]

    for ball in np.random.default_rng(1).normal(size=(12, 2, 6)):
        assert gradient(True, *ball) == pytest.approx(gradient(False, *ball), rel=1e-9, abs=1e-12)


def test_smoothed_step_is_the_mean_and_repeats():
    options = dict(gradient="smoothed_step", gradient_scale=2e-2, gradient_samples=400)
    sim = pushed(MU * WEIGHT, **options)
    slope = sim.derivatives().dv_dtau[0, 0]
    assert 0.2 * H < slope < H  # some samples stick, some slide, some have left the ground
    assert slope_of_vjp(sim) == pytest.approx(slope, rel=1e-12)
    assert pushed(MU * WEIGHT, **options).derivatives().dv_dtau[0, 0] == slope
    assert pushed(MU * WEIGHT, gradient_seed=1, **options).derivatives().dv_dtau[0, 0] != slope


def test_small_smoothing_is_the_exact_gradient():
    exact = pushed(1.5 * MU * WEIGHT).derivatives().A
    for gradient in ("smoothed_step", "smoothed_collision"):
        smooth = pushed(1.5 * MU * WEIGHT, gradient=gradient, gradient_scale=1e-9).derivatives().A
        assert np.linalg.norm(smooth - exact) <= 1e-3 * np.linalg.norm(exact), gradient


def test_smoothed_collision_sees_the_other_corner():
    """An ellipsoid-like octahedron on one vertex: blurred, its point rolls over the neighbouring vertices."""
    octahedron = [(0.1, 0, 0), (-0.1, 0, 0), (0, 0.1, 0), (0, -0.1, 0), (0, 0, 0.1), (0, 0, -0.1)]
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    scene.add_mesh(octahedron, mass=1.0, position=(0, 0, 0.0999), name="gem")
    model = scene.build()
    q, v = model.neutral()
    q = model.integrate(q, np.array([0, 0, 0, 0, 0.5, 0]))
    q[2] = 0.0999 * np.cos(0.5)
    J = {}
    for gradient in ("exact", "smoothed_collision"):
        blur = {} if gradient == "exact" else {"gradient_scale": 3e-2, "gradient_samples": 100}
        sim = coulomb.Simulator(model, timestep=H, gradient=gradient, **blur)
        sim.step(q, v + np.array([0, 0, -0.5, 0, 0, 0]))
        J[gradient] = sim.derivatives().dv_dq
        assert np.isfinite(J[gradient]).all()
    assert np.linalg.norm(J["exact"] - J["smoothed_collision"]) > 1e-3 * np.linalg.norm(J["exact"])


def test_smoothed_collision_passes_from_corner_to_corner():
    """A ring of corners turned in place under a heavy rotor: half way between two corners neither has the say."""
    turn = 2 * np.pi * np.arange(12) / 12
    ring = [(0.1 * np.sin(t), 0, 0.1 * np.cos(t)) for t in turn] + [(0, 0.08, 0), (0, -0.08, 0)]
    scene = coulomb.Scene()
    scene.add_ground(friction=0.0)
    scene.add_mesh(ring, mass=1.0, position=(0, 0, 0.1 * np.cos(np.pi / 12) - 1e-4), friction=0.0, name="gem")
    model = scene.build()
    model = model.with_parameters({f"armature/{model.joint_names[0]}": [0, 0, 0, 10, 10, 10]})
    q, v = model.neutral()

    def slope(degrees, gradient):
        blur = {} if gradient == "exact" else {"gradient_scale": 5e-3, "gradient_samples": 400}
        sim = coulomb.Simulator(model, timestep=H, gradient=gradient, **blur)
        sim.step(model.integrate(q, np.radians(degrees) * np.eye(6)[4]), v)
        return sim.derivatives().dv_dq[2, 4]

    for side in (-1, 1):  # half a degree beside the switch at 15: a standard deviation is 2.9 degrees
        assert side * slope(15 + 0.5 * side, "exact") > 0.2
        assert abs(slope(15 + 0.5 * side, "smoothed_collision")) < 0.1
        assert slope(7.5 * side, "smoothed_collision") == pytest.approx(slope(7.5 * side, "exact"), rel=0.1)


@pytest.mark.parametrize(
    "option", [dict(gradient="best"), dict(gradient_samples=0), dict(gradient_scale=0.0), dict(tie_margin=-1.0)]
)
def test_options_are_refused_by_name(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        coulomb.Simulator(box(), **option)


@pytest.mark.parametrize("gradient", ["exact", "complementarity_aware", "smoothed_collision", "smoothed_step"])
def test_the_choice_changes_no_bit_of_the_motion(gradient):
    reference, sim = pushed(MU * WEIGHT), pushed(MU * WEIGHT, gradient=gradient)
    q, v = box().neutral()
    for _ in range(5):
        sim.derivatives()
        sim.vjp(np.zeros(6), np.eye(6)[0])
        a, b = reference.step(q, v), sim.step(q, v)
        assert np.array_equal(a[0], b[0]) and np.array_equal(a[1], b[1])
        q, v = a


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize("friction", [0.0, 0.5])
def test_a_wide_margin_lets_a_pressing_contact_part(contact, friction):
    """A loss that wants height: with every contact taken for a tie, friction or not, the gradient is that of a free body."""
    scene = coulomb.Scene()
    scene.add_ground(friction=friction)
    scene.add_sphere(0.1, mass=2.0, position=(0, 0, 0.1), friction=friction)
    model, h = scene.build(), 0.01
    options = {"timestep": h, "contact": contact, "gradient": "complementarity_aware"}
    q, v = model.neutral()
    up = np.array([0, 0, 1.0, 0, 0, 0])
    for margin, slope in ((1e-6, 0.0), (10.0, h / 2.0)):
        sim = coulomb.Simulator(model, tie_margin=margin, **options)
        sim.step(q, v)
        assert sim.vjp(0 * up, up).tau[2] == pytest.approx(slope, abs=1e-12)


def test_smoothed_normals_stay_unit():
    """An egg that leans against a box and the ground: the mean of turning normals moves across the normal, as a unit vector must."""
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_box((0.2, 0.3, 0.4), mass=1.0, quaternion=(0.9, 0.3, -0.1, np.sqrt(0.09)))
    scene.add_ellipsoid((0.1, 0.15, 0.2), mass=1.0, position=(0.19, 0.1, 0.05), quaternion=(0.8, 0, 0.6, 0))
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=H, gradient="smoothed_collision", gradient_scale=1e-2, gradient_samples=30)
    sim.step(*model.neutral())
    assert sim.contacts
    turning = sim.derivatives().dnormal("q").reshape(len(sim.contacts), 3, -1)
    for contact, dn in zip(sim.contacts, turning):
        assert np.abs(dn).max() > 0.1
        assert np.abs(contact.normal @ dn).max() < 1e-12 * np.abs(dn).max()


def test_the_aware_gradient_does_not_ask_for_the_sign():
    """At the edge of sliding, the cotangent's sign turns the gradient round and chooses nothing."""
    sim = pushed(MU * WEIGHT, gradient="complementarity_aware")
    for sign in (1, -1):
        assert sim.vjp(np.zeros(6), sign * np.eye(6)[0]).tau[0] == pytest.approx(sign * H, rel=1e-9)


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
def test_a_tie_is_its_own_bodys(contact):
    """A ball that touches and neither presses nor parts, beside balls that leave, press and slide: the gradient of the first is that of it alone."""
    ways = {"leaves": (0, 0, 1.0), "presses": (0, 0, -1.0), "slides": (1.0, 0, -0.1)}

    def gradient(others):
        scene = coulomb.Scene(gravity=(0, 0, 0))
        scene.add_ground(friction=MU)
        for k, name in enumerate([*others, "ball"]):
            height = 0.1 if name == "ball" else 0.0999
            scene.add_sphere(0.1, mass=1.0, position=(k, 0, height), friction=MU, name=name)
        model = scene.build()
        q, v = model.neutral()
        for k, name in enumerate(others):
            v[6 * k : 6 * k + 3] = ways[name]
        sim = coulomb.Simulator(model, timestep=H, gradient="complementarity_aware", contact=contact)
        sim.step(q, v)
        return [sim.vjp(np.zeros(model.nv), np.r_[np.zeros(6 * len(others)), w]).v[-6:] for w in np.eye(6)]

    alone = gradient([])
    for others in (["leaves"], ["presses"], ["slides"], list(ways)):
        np.testing.assert_allclose(gradient(others), alone, atol=1e-12)


def test_smoothed_steps_blur_velocities_too():
    """A slide with dry friction at rest, in samples of speeds of 1 m/s: nearly all of them slide, and keep what they have."""
    model = coulomb.load(
        "<mujoco><option gravity='0 0 0'/><worldbody><body><joint type='slide' axis='1 0 0' frictionloss='2'/><geom size='.1' mass='1'/></body>"
        "</worldbody></mujoco>"
    )
    for gradient, low, high in (("exact", -1e-12, 1e-12), ("smoothed_step", 0.9, 1.0)):
        options = {} if gradient == "exact" else {"gradient_scale": 1.0, "gradient_samples": 300}
        sim = coulomb.Simulator(model, timestep=H, gradient=gradient, **options)
        sim.step([0.0], [0.0])
        assert low <= sim.derivatives().dv_dv[0, 0] <= high


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
def test_a_tie_between_holding_and_sliding_is_its_own_bodys(contact):
    """A block on slides that is pushed as hard as friction holds, beside one that slides across."""
    block = (
        "<body pos='{} 0 .0999'><joint type='slide' axis='1 0 0'/><joint type='slide' axis='0 1 0'/><joint type='slide' axis='0 0 1'/>"
        f"<geom type='sphere' size='.1' mass='1' friction='{MU}' condim='3'/></body>"
    )
    floor = f"<geom type='plane' size='9 9 1' friction='{MU}' condim='3'/>"

    def gradient(others):
        bodies = "".join(block.format(k) for k in range(others + 1))
        model = coulomb.load(f"<mujoco><worldbody>{floor}{bodies}</worldbody></mujoco>")
        q, v = model.neutral()
        tau = np.zeros(model.nv)
        v[: 3 * others] = np.tile([0.5, -1, 0], others)
        tau[-3] = MU * WEIGHT
        options = {"gradient": "complementarity_aware", "contact": contact, "baumgarte": 0}
        sim = coulomb.Simulator(model, timestep=H, **options)
        sim.step(q, v, tau=tau)
        assert sim.contacts[-1].tie
        return [sim.vjp(np.zeros(model.nv), np.r_[np.zeros(3 * others), w]).tau[-3:] for w in np.eye(3)]

    alone = gradient(0)
    assert alone[0][0] == pytest.approx(H, rel=1e-9)
    for others in (1, 2):
        np.testing.assert_allclose(gradient(others), alone, atol=1e-12)
