"""Position correction never drives the motion (docs/theory/correction.md): mechanisms whose errors cannot be removed stand, and say so;
the others close. Its energy is bounded, vanishes with the error, and is lost.
"""

import numpy as np
import pytest

import coulomb
from scenes.mechanisms import chain, link, mechanism, random_mechanism, slider_crank, tied_hinges
from scenes.slots import slot

H = 2e-3
KAPPA = 10


def passive(model, seconds, q=None, v=None, **options):
    """(q, v), kinetic energies, largest speed and reasons of the steps that were not solved."""
    sim = coulomb.Simulator(model, timestep=H, **options)
    q = model.q_neutral if q is None else q
    v = np.zeros(model.nv) if v is None else v
    energies, fastest, reasons = [], 0.0, []
    for _ in range(round(seconds / H)):
        q, v = sim.step(q, v)
        energies.append(0.5 * v @ model.mass_matrix(q) @ v)
        fastest = max(fastest, np.abs(v).max())
        reasons.append("" if sim.status.converged else sim.status.reason)
        assert np.isfinite(q).all() and np.isfinite(v).all()
    return (q, v), np.array(energies), fastest, reasons


def opening(model, q, index=0):
    """Distance of the points of a connection or weld."""
    equality = model.equalities[index]
    positions, rotations = model.body_placements(q)
    ends = [
        positions[body] + rotations[body] @ local
        for body, local in ((equality.body_a, equality.pos_a), (equality.body_b, equality.pos_b))
    ]
    return np.linalg.norm(ends[0] - ends[1])


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("reach", [-0.01, 1e-4, 0.01, 0.1])
def test_a_slider_whose_limit_the_crank_does_not_reach(reach, split):
    """The limit asks the slide to go this much further than its crank lets it; it starts in the middle."""
    model = slider_crank(reach)
    (q, v), energies, fastest, reasons = passive(model, 3, continuous_collision=split)
    assert fastest < 60 and energies.max() < 10 and energies[-1] < 1e-3 * energies.max()
    assert np.abs(v).max() < 0.3
    assert opening(model, q) < max(1e-5, 0.05 * reach)
    if reach < 0:
        assert reasons[-1] == "" and q[2] > 0.2 + reach - 1e-6
    elif reach > 1e-3:
        assert reasons[-1].startswith("relaxed: position correction out of reach: ")
        assert "joint slide at its lower limit" in reasons[-1]


@pytest.mark.parametrize("links", [2, 3, 5])
def test_a_chain_that_is_too_short(links):
    model = chain(0.05, links)
    (q, v), energies, fastest, reasons = passive(model, 3)
    assert energies.max() < 50 and energies[-1] < 1e-3
    assert opening(model, q) < 5e-3
    assert reasons[-1].startswith("relaxed: position correction out of reach: ")


@pytest.mark.parametrize("slope", [1.0, -2.5])
@pytest.mark.parametrize("gravity", [0.0, 9.81])
def test_mimics_whose_limits_exclude_one_another(slope, gravity):
    """Both ranges are on the wrong side: the hinges stop between them, and do not swing."""
    model = tied_hinges(".2 1", "-1 -.2" if slope > 0 else ".2 1", slope, gravity)
    (q, v), energies, fastest, reasons = passive(model, 3)
    assert fastest < 3 and np.abs(v).max() < 1e-3 and energies[-1] < 1e-5
    assert reasons[0].startswith("relaxed: ") and reasons[-1].startswith("relaxed: ")
    for name in ("hinge0", "hinge1"):
        assert name in reasons[-1]


def test_a_joint_equality_asks_no_faster_than_limits_do():
    """q0 is to be 0.8 rad further: at 1 rad/s, then by a tenth of the rest per step. At the corner both slopes are possible."""
    model = mechanism(link("arm", (0, 0, 0), "0 1 0", (0, 0, -0.3)), '<joint joint1="arm" polycoef=".8 0 0 0 0"/>')
    (q, v), _, fastest, reasons = passive(model, 3)
    assert fastest == pytest.approx(1, rel=1e-9) and not any(reasons)
    assert q[0] == pytest.approx(0.8, abs=1e-6)

    sim = coulomb.Simulator(model, timestep=H)
    corner = 0.8 - 1.0 * H / 0.1
    slopes = []
    for at in (corner - 1e-3, corner + 1e-3, corner):
        sim.step(np.array([at]), np.zeros(1))
        d = sim.derivatives()
        slopes.append(d.A[1, 0])
        assert d.ambiguous == (at == corner)
    assert slopes[0] == pytest.approx(0, abs=1e-9) and slopes[1] == pytest.approx(-0.1 / H, rel=1e-9)


def test_a_weld_holds_against_a_limit():
    """The limit asks for 0.1 m that a weld does not give: a hundredth of it is what the weld gives way."""
    cart = '<body name="cart"><joint name="rail" type="slide" axis="1 0 0" limited="true" range=".1 1"/><geom size=".1" mass="1"/></body>'
    model = mechanism(cart, '<weld name="hook" body1="cart"/>')
    (q, v), _, fastest, reasons = passive(model, 3)
    assert 0 < q[0] < 2e-3 and fastest < 1 and np.abs(v).max() < 1e-6
    assert reasons[-1] == "relaxed: position correction out of reach: weld hook, joint rail at its lower limit"


@pytest.mark.parametrize("timestep", [5e-4, 2e-3, 1e-2])
@pytest.mark.parametrize("apart", [1e-8, 1e-7, 2e-7, 3e-7, 5e-7, 1e-6, 2e-6, 1e-5, 1e-3])
def test_equalities_that_contradict_each_other_are_told_however_little(apart, timestep):
    """One asks for 0, the other for so much: the hinge goes half way, and stays."""
    equalities = "".join(f'<joint joint1="arm" polycoef="{at} 0 0 0 0"/>' for at in (0, apart))
    model = mechanism(link("arm", (0, 0, 0), "0 1 0", (0, 0, -0.3)), equalities)
    sim = coulomb.Simulator(model, timestep=timestep)
    q, v = model.neutral()
    for _ in range(300):
        q, v = sim.step(q, v)
    assert q[0] == pytest.approx(apart / 2, rel=1e-6)
    assert sim.status.reason.startswith("relaxed: ") and not sim.status.converged
    assert sim.status.contradictions == ["equality equality0", "equality equality1"]


@pytest.mark.parametrize("error", [1e-4, 1e-2, 0.1])
def test_a_loop_that_starts_open_closes(error):
    model = slider_crank(-0.4)
    q = np.zeros(model.nq) + error * np.array([1.0, -0.5, 0.3])
    (q, v), energies, fastest, reasons = passive(model, 3, q)
    assert opening(model, q) < 1e-6 and reasons[-1] == ""
    assert energies[-1] <= energies.max() < 100 * error and np.abs(np.diff(energies[-500:])).max() < 1e-9


def reach_of(model, row):
    """W of a joint row: its mobility in the neutral pose."""
    return row @ np.linalg.solve(model.mass_matrix(model.neutral()[0]), row)


@pytest.mark.parametrize("angle", [0.3, 0.1, 1e-2, 1e-3, 1e-5])
def test_energy_is_bounded_and_vanishes_with_the_error_squared(angle):
    """A crank almost stretched, at rest, and a limit that its slide is to reach beyond: whatever the pose, ten times the limit's own energy."""
    model = slider_crank(0.1)
    q = stretched(angle)
    own = reach_of(model, np.array([0.0, 0.0, 1.0]))
    energies = []
    for error in (0.01, 0.005):
        limited = model.with_parameters({"joint_limits/slide": np.array([q[2] + error, 9.0])})
        sim = coulomb.Simulator(limited, timestep=H)
        _, v = sim.step(q, np.zeros(3))
        energies.append(0.5 * v @ model.mass_matrix(q) @ v)
        wanted = min(0.1 * error / H, 1.0)
        assert energies[-1] <= 0.5 * KAPPA * wanted**2 / own * (1 + 1e-4) + KAPPA * 1e-4
    assert energies[1] == pytest.approx(energies[0] / 4, rel=2e-2)


def stretched(angle, crank=0.2, rod=0.5):
    """The slider-crank with its crank at this angle from the line of its slide: q."""
    start = np.arccos(0.5 * crank / rod)
    rod_at_start = -np.arcsin(crank * np.sin(start) / rod)
    rod_now = -np.arcsin(crank * np.sin(angle) / rod)
    slide = crank * np.cos(angle) + rod * np.cos(rod_now) - rod
    turn = start - angle  # about y, from z to x
    return np.array([turn, rod_at_start - rod_now - turn, slide])


def test_where_an_equality_is_far_away_nothing_changes():
    """Contacts alone, and limits alone: no bit differs from a scene without the loop beside them."""
    boxes = "".join(
        f'<body pos="{i} 5 {0.1 - depth}"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body>'
        for i, depth in enumerate((1e-3, 1e-2, 3e-2))
    )
    floor = '<geom type="plane" size="1 1 1"/>'
    alone = mechanism(floor + boxes, "", 9.81)
    loop = link("arm", (0, -5, 3), "0 1 0", (0, 0, -0.3), attributes='limited="true" range=".5 1"')
    beside = mechanism(floor + boxes + loop, '<joint joint1="arm"/>', 9.81)
    q, v = alone.neutral()
    p, w = beside.neutral()
    sims = [coulomb.Simulator(m, timestep=H) for m in (alone, beside)]
    for _ in range(200):
        q, v = sims[0].step(q, v)
        p, w = sims[1].step(p, w)
        np.testing.assert_array_equal(q, p[: alone.nq])
    for body in range(3):
        assert q[7 * body + 2] > 0.1 - 1e-6


@pytest.mark.parametrize("seed", range(40))
def test_random_mechanisms_lose_what_corrections_give(seed):
    """Loops of random links that start violated come to rest or glide on; no joint is thrown, and no energy comes back."""
    model, q = random_mechanism(np.random.default_rng(seed))
    (q, v), energies, fastest, reasons = passive(model, 2, q)
    assert energies.max() < 50
    assert energies[-1] <= energies[:500].max() * (1 + 1e-6)


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize(("walls", "balls"), [(2, 1), (3, 1), (2, 3)])
def test_bodies_between_smooth_walls_are_not_shot_out(walls, balls, split, contact):
    """The errors of two walls that almost face each other ask for 1 / sin(angle) of what each takes by itself."""
    overlap = 1e-3
    wanted = 0.1 * overlap / H
    for angle in (0.5, 0.1, 1e-2, 1e-3, 1e-5, 0.0):
        model = slot(angle, overlap, walls=walls, balls=balls, gravity=0)
        sim = coulomb.Simulator(model, timestep=H, contact=contact, continuous_collision=split)
        q, v = sim.step(model.q_neutral, np.zeros(model.nv))
        weights = 1 / (1 + np.arange(balls))  # of unit impulses: 1 / mass
        bound = 0.5 * KAPPA * wanted**2 * (walls * np.sum(1 / weights) + np.sum(2 / (weights[1:] + weights[:-1])))
        assert 0.5 * v @ model.mass_matrix(q) @ v <= bound, angle

        # What is slow beside its error says so; away from the border the way out is free.
        if angle >= 0.5:
            assert sim.status.converged
        elif angle <= 1e-2:
            assert sim.status.reason.startswith("relaxed: position correction out of reach: "), angle


def test_a_wedge_carries_its_load_while_it_is_corrected():
    """A ball in a slot of .01 rad without friction: rigid walls hold it, and let it out slowly until it lies free of them."""
    model = slot(0.01, 1e-4)
    (q, v), energies, fastest, reasons = passive(model, 20)
    assert fastest < 0.01 and energies.max() < 1e-4
    assert reasons[0].startswith("relaxed: position correction out of reach: wall0 on body0, wall1 on body0")
    assert 0.5 * 1e-4 / 0.01 < q[2] < 1.001 * 1e-4 / 0.01


def test_rough_walls_hold_what_they_squeeze():
    """With friction the bound is not in force: what is squeezed between parallel walls stays, and the status has the reason."""
    for angle in (0.0, 1e-3, 1e-2):
        model = slot(angle, 1e-4, friction=0.3)
        (q, _), _, fastest, reasons = passive(model, 1)
        assert fastest < 1e-2 and abs(q[2]) < 1e-2
        assert reasons[-1].startswith("relaxed: ") and "out of reach" not in reasons[-1]


def test_corrections_of_wedges_are_continuous():
    """The speed that a slot gives a ball, over its angle and over the overlap: no steps, also where the bound begins."""

    def speed(angle, overlap):
        model = slot(angle, overlap, gravity=0)
        sim = coulomb.Simulator(model, timestep=H)
        return sim.step(model.q_neutral, np.zeros(model.nv))[1][2]

    by_angle = np.array([speed(a, 1e-3) for a in np.linspace(0.1, 0.6, 201)])
    assert np.abs(np.diff(by_angle)).max() < 0.05 * by_angle.max()
    by_overlap = np.array([speed(0.01, d) for d in np.linspace(1e-4, 1e-3, 101)])
    np.testing.assert_allclose(by_overlap, by_overlap[-1] * np.linspace(0.1, 1, 101), rtol=1e-6)


def test_a_smooth_heap_is_solved():
    """Contacts of bodies with each other ask for what their errors do, however many there are: the bound is for walls."""
    rng = np.random.default_rng(0)
    scene = coulomb.Scene()
    scene.add_ground(friction=0.0)
    for side in np.pi / 2 * np.arange(4):
        position = [0.25 * np.cos(side), 0.25 * np.sin(side), 0.5]
        turn = [np.cos(side / 2), 0, 0, np.sin(side / 2)]
        scene.add_box([0.05, 1, 1], position=position, quaternion=turn, fixed=True, friction=0.0)
    for i in range(30):
        x, y = rng.uniform(-0.15, 0.15, size=2)
        scene.add_sphere(0.05, mass=0.5, friction=0.01, position=[x, y, 0.06 + 0.11 * i])
    _, _, _, reasons = passive(scene.build(), 1)
    assert not any("out of reach" in reason for reason in reasons)
