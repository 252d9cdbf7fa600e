"""`StepDerivatives.ambiguous`: true where one-sided derivatives differ, false where the derivative is smooth; and what is returned where dry
friction is redundant with rows that ask for a motion. Closed forms: an equality or limit of error phi asks for the velocity -baumgarte phi / h,
an open gap for -phi / h at most.
"""

import numpy as np
import pytest

import coulomb
from scenes import random_scenes, robots
from scenes.contacts import ball_between_boxes

H = 2e-3
CORRECTION = -0.1 / H  # of an error per step: baumgarte / h
CLOSING = -1 / H


def hinges(joints, equality="", loss=()):
    """Separate hinges of moment of inertia 1 about y without gravity, with these attributes."""
    bodies = "".join(
        f'<body pos="{i} 0 0"><joint name="j{i}" axis="0 1 0" {attributes}/>'
        '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>'
        for i, attributes in enumerate(joints)
    )
    return coulomb.load(
        f'<mujoco><compiler angle="radian"/><option gravity="0 0 0" timestep="{H}"/><worldbody>{bodies}</worldbody>'
        f"<equality>{equality}</equality></mujoco>"
    )


def derivatives(model, q=None, tau=None, wrt=None, v=None, steps=2, **options):
    sim = coulomb.Simulator(model, **options)
    q = model.neutral()[0] if q is None else np.asarray(q, dtype=float)
    v = np.zeros(model.nv) if v is None else np.asarray(v, dtype=float)
    tau = np.zeros(model.nv) if tau is None else np.asarray(tau, dtype=float)
    for _ in range(steps):
        sim.step(q, v, tau=tau)
    assert sim.status.converged
    return sim, sim.derivatives(wrt=wrt) if wrt else sim.derivatives()


FRICTION = 'frictionloss="0.1"'
HOLDS = '<joint joint1="j0"/>'
EQUAL = '<joint joint1="j0" joint2="j1" polycoef="0 1 0 0 0"/>'


@pytest.mark.parametrize("tau", [0, 0.05, -0.09, 0.3])
def test_friction_beside_an_equality_yields(tau):
    model = hinges([FRICTION], HOLDS)
    sim, d = derivatives(model, tau=[tau])
    assert not d.ambiguous
    assert d.dv_dq == pytest.approx(CORRECTION, rel=1e-9)
    assert d.dv_dtau == pytest.approx(0, abs=1e-12)
    assert sim.vjp(np.zeros(1), np.ones(1)).q[0] == pytest.approx(CORRECTION, rel=1e-9)


@pytest.mark.parametrize(("strength", "wide"), [(10.0, False), (5000.0, True)])
def test_a_band_that_differences_see_is_flagged(strength, wide):
    """Both rows share what is asked, up to 2e-10 or 1e-7 rad from here. Beyond, the friction has given way: the derivative returned."""
    sim, d = derivatives(hinges([f'frictionloss="{strength}"'], HOLDS))
    assert d.ambiguous == wide
    assert sim.vjp(np.zeros(1), np.ones(1)).ambiguous == wide
    assert d.dv_dq == pytest.approx(CORRECTION, rel=1e-9)

    sim.freeze_memory(True)
    slopes = [sim.step([x], [0.0])[1][0] / x for x in (1e-8, -1e-8, 1e-6, -1e-6)]
    inside = 0.5 if wide else 1.0
    assert slopes == pytest.approx([inside * CORRECTION] * 2 + [CORRECTION] * 2, rel=1e-3)


@pytest.mark.parametrize(("strength", "wide"), [(35.0, False), (60.0, True)])
def test_a_band_is_wide_from_ten_nanometres(strength, wide):
    """Bands are as wide as the friction is strong: 10 nm at 43 N m here."""
    assert derivatives(hinges([f'frictionloss="{strength}"'], HOLDS))[1].ambiguous == wide


@pytest.mark.parametrize(("law", "seed"), [("boxed", 113), ("octagon", 112), ("split boxed", 126)])
def test_bands_that_end_near_by_are_flagged(law, seed):
    """Friction that redundant rows drag along: slopes change at 1e-8 to 1e-7 m or rad from here."""
    case = random_scenes.build(seed, law)
    sim = coulomb.Simulator(case.model, **case.options)
    if case.memory is not None:
        sim.memory = case.memory
    sim.step(case.q, case.v, case.u, tau=case.tau)
    assert sim.status.converged
    assert sim.derivatives().ambiguous


def test_friction_beside_two_equalities_and_in_another_joint():
    d = derivatives(hinges([FRICTION, FRICTION], HOLDS + EQUAL))[1]
    assert not d.ambiguous
    assert np.allclose(d.dv_dq, CORRECTION * np.array([[1, 0], [1, 0]]) + CORRECTION * np.array([[0, 0], [-1, 1]]))


def test_the_weaker_of_two_frictions_yields():
    d = derivatives(hinges([FRICTION, 'frictionloss="0.2"'], EQUAL))[1]
    assert not d.ambiguous
    assert np.allclose(d.dv_dq, CORRECTION * np.array([[1, -1], [0, 0]]), atol=1e-7)


def test_which_friction_yields_may_depend_on_the_direction():
    """Joint 1 is near its bound on one side: it yields there, joint 0 on the other."""
    d = derivatives(hinges([FRICTION, 'frictionloss="0.2"'], EQUAL), tau=[0, 0.19])[1]
    assert d.ambiguous


def test_which_two_of_three_frictions_yield_depends_on_the_direction():
    """Three joints that two equalities couple, with friction each and without load: opposite directions make the same two of them yield, others
    do not. What one side says of a sum of two directions is not the sum of what it says of each."""
    model = hinges([FRICTION] * 3, EQUAL + '<joint joint1="j1" joint2="j2" polycoef="0 1 0 0 0"/>')
    sim, d = derivatives(model)
    assert d.ambiguous
    sim.freeze_memory(True)

    def slope(direction):
        return sim.step(1e-6 * np.array(direction), np.zeros(3))[1] / 1e-6

    assert slope([1, 0, 0]) == pytest.approx(-slope([-1, 0, 0]), rel=1e-6, abs=1e-6)
    off = slope([1, 1, 0]) - slope([1, 0, 0]) - slope([0, 1, 0])
    assert np.abs(off).max() > 0.1 * abs(CORRECTION)


def test_friction_that_a_lever_holds_is_not_redundant():
    """What the equality asks of the ball, a mass on a lever of 200 : 1 follows while friction holds: no row gives way. Only the compliance of the rows lets
    the ball move too, by some thousandths."""
    model = coulomb.load(
        f'<mujoco><option timestep="{H}"/><worldbody><geom type="plane" size="1 1 1" friction="0.5 0 0" condim="3"/>'
        '<body pos="0 0 .1"><joint name="j0" type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>'
        '<joint type="slide" axis="0 0 1"/><geom type="sphere" size=".1" mass="1" friction="0.5 0 0" condim="3"/></body>'
        '<body pos="3 0 0"><joint name="mass" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
        '</body></worldbody><equality><joint joint1="j0" joint2="mass" polycoef="0 .005 0 0 0"/></equality></mujoco>'
    )
    q, rest = np.array([0, 0, -1e-5, 0]), np.zeros(4)
    sim, d = derivatives(model, q=q)
    assert not d.ambiguous
    assert d.dv_dq[3, 0] == pytest.approx(-CORRECTION / 0.005, rel=1e-2)

    # Beyond a nanometre friction would slip.
    sim.freeze_memory(True)
    here = sim.step(q, rest)[1]
    for h in (2e-10, -2e-10):
        slope = (sim.step(q + h * np.eye(4)[0], rest)[1] - here) / h
        assert slope[[0, 3]] == pytest.approx(d.dv_dq[[0, 3], 0], rel=1e-3)


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
def test_one_of_two_points_that_bear_together_is_ambiguous_alone(contact):
    """Two balls of one body on the ground: the state moves both, a parameter of one takes the load off the other, or to it alone."""
    ball = 'type="sphere" size=".1" mass="1"'
    model = coulomb.load(
        f'<mujoco><option timestep="{H}"/><worldbody><geom type="plane" size="1 1 1"/><body name="pair" pos="0 0 {0.1 - 1e-5}">'
        f'<joint type="slide" axis="0 0 1"/><geom name="one" {ball}/><geom name="other" {ball}/></body></worldbody></mujoco>'
    )
    sim, d = derivatives(model, contact=contact)
    assert len(sim.contacts) == 2 and not d.ambiguous
    for name, kink in [("size/one", True), ("size/other", True), ("mass/pair", False), ("timestep", False)]:
        assert sim.derivatives(wrt=[name]).ambiguous == kink, name
        assert sim.vjp(np.zeros(1), np.ones(1), wrt=[name]).ambiguous == kink, name


def test_limits_move_by_their_parameter():
    """A limit that is pressed, violated, closed or a little open: the friction beside it has yielded."""
    model = hinges([FRICTION + ' limited="true" range="-1 0"'])
    for q, slope in [(0, CORRECTION), (1e-4, CORRECTION), (-5e-7, CORRECTION), (-3e-6, CLOSING * 3.9 / 3)]:
        sim, d = derivatives(model, q=[q], tau=[1.0], wrt=["joint_limits/j0"])
        assert not d.ambiguous
        assert d.dv_dq == pytest.approx(slope, rel=1e-9)
        assert d["joint_limits/j0"][1, 1] == pytest.approx(-slope, rel=1e-9)


def test_a_limit_that_an_equality_holds_at_zero_is_smooth():
    model = hinges([FRICTION + ' limited="true" range="-1 0"'], HOLDS)
    for tau in (0.0, 0.3, 1.0, -1.0):
        d = derivatives(model, tau=[tau])[1]
        assert not d.ambiguous, tau
        assert d.dv_dq == pytest.approx(CORRECTION, rel=1e-9)


def test_friction_that_holds_alone_at_a_limit():
    """Open side: nothing moves; violated side: the limit does."""
    d = derivatives(hinges([FRICTION + ' limited="true" range="-1 0"']), tau=[0.05])[1]
    assert d.ambiguous
    assert not derivatives(hinges([FRICTION + ' limited="true" range="-1 1"']), tau=[0.05])[1].ambiguous


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
def test_contact_friction_beside_an_equality_yields(contact):
    """A ball on the ground, its centre tied to where it is in x and y (slides): friction of the ground gives way to both."""
    model = tied_ball('<joint joint1="j0"/><joint joint1="j1"/>')
    d = derivatives(model, q=[0, 0, -1e-5], contact=contact)[1]
    assert not d.ambiguous
    assert np.allclose(d.dv_dq, CORRECTION * np.eye(3), rtol=0, atol=1e-6)


def tied_ball(equalities):
    """A ball on the ground, on slides along x, y and z, with equalities of its joints j0 (x) and j1 (y)."""
    return coulomb.load(
        f'<mujoco><option timestep="{H}"/><worldbody><geom type="plane" size="1 1 1" friction="0.5 0 0" condim="3"/>'
        '<body pos="0 0 .1"><joint name="j0" type="slide" axis="1 0 0"/><joint name="j1" type="slide" axis="0 1 0"/>'
        '<joint name="j2" type="slide" axis="0 0 1"/><geom type="sphere" size=".1" mass="1" friction="0.5 0 0" condim="3"/>'
        f"</body></worldbody><equality>{equalities}</equality></mujoco>"
    )


def is_right(sim, d, q, tau):
    """dv/dq along x and y is what differences of a micrometre to both sides say, to a hundredth of what an equality asks."""
    sim.freeze_memory(True)
    rest = np.zeros(3)
    here = sim.step(q, rest, tau=tau)[1]
    for k, h in [(0, 1e-6), (0, -1e-6), (1, 1e-6), (1, -1e-6)]:
        slope = (sim.step(q + h * np.eye(3)[k], rest, tau=tau)[1] - here) / h
        if np.abs(slope - d.dv_dq[:, k]).max() > 1e-2 * abs(CORRECTION):
            return False
    return True


SHARED = {
    "x": '<joint joint1="j0"/>',
    "x and y": '<joint joint1="j0"/><joint joint1="j1"/>',
    "along a line": '<joint joint1="j0" joint2="j1" polycoef="0 .6 0 0 0"/>',
}


@pytest.mark.parametrize("directions", [None, 2, 4, 6])
@pytest.mark.parametrize("equalities", SHARED)
def test_friction_that_is_loaded_beside_equalities_is_flagged_or_right(equalities, directions):
    """Friction that holds the ball gives way to what an equality asks. What it held across that goes to another place on the border of the cone or
    of its polygon: where the ball slips then, there is no one slope, and only there."""
    options = {} if directions is None else {"contact": "lcp", "friction_directions": directions}
    found = []
    for tau in [(0, 0), (3, 1), (-3, 1), (0.5, -4), (1, 1), (-2, -3), (2, 2.5), (0, 3), (0, -4)]:
        q = np.array([0, 0, -1e-5])
        sim, d = derivatives(tied_ball(SHARED[equalities]), q=q, tau=[*tau, 0], **options)
        assert {c.mode for c in sim.contacts} == {"sticking"}
        found.append(is_right(sim, d, q, [*tau, 0]))
        assert d.ambiguous != found[-1], (tau, d.dv_dq / CORRECTION)
    assert found[0] and (
        all(found) if equalities == "x and y" or (equalities, directions) == ("x", 2) else not all(found)
    )


@pytest.mark.parametrize("directions", [2, 4])
def test_friction_that_slides_on_a_side_beside_an_equality_is_flagged_or_right(directions):
    """A pyramid's friction that slides along y may take any place on its side: along x it shares with the equality, in a band of 1e-10 m only."""
    q, tau = np.array([0, 0, -1e-5]), [1.0, 6.0, 0]
    options = {"contact": "lcp", "friction_directions": directions}
    sim, d = derivatives(tied_ball(SHARED["x"]), q=q, tau=tau, **options)
    assert {c.mode for c in sim.contacts} == {"sliding"}
    assert d.ambiguous != is_right(sim, d, q, tau), d.dv_dq / CORRECTION


def box(depth=1e-5, friction=0.5, **options):
    scene = coulomb.Scene(timestep=H)
    scene.add_ground(friction=friction)
    scene.add_box((0.2, 0.3, 0.1), mass=1.0, position=(0, 0, 0.05 - depth), name="box", **options)
    return scene.build()


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
def test_boxes_on_four_corners_are_smooth(contact):
    """At rest, pushed below what friction holds, sliding, spinning; at several sizes of what is redundant."""
    for v, tau in [
        (np.zeros(6), np.zeros(6)),
        (np.zeros(6), np.array([2.0, 1, 0, 0, 0, 0])),
        (np.array([1.0, 0.3, 0, 0, 0, 0.1]), np.zeros(6)),
        (np.array([0.2, 0, 0, 0, 0, 3.0]), np.zeros(6)),
        (np.array([0, 0, 0, 0, 0, 3.0]), np.zeros(6)),
    ]:
        sim, d = derivatives(box(), v=v, tau=tau, wrt=["friction/box", "mass/box", "size/box"], contact=contact)
        assert len(sim.contacts) == 4
        assert not d.ambiguous, (v, tau)


def table(load=0.0):
    """A plate on four feet, one of them a little apart from the others' plane, with a push."""
    feet = "".join(
        f'<geom type="sphere" size=".02" pos="{x} {y} -.1" mass=".01" friction=".6 0 0" condim="3"/>'
        for x in (-0.2, 0.2)
        for y in (-0.3, 0.3)
    )
    return coulomb.load(
        f'<mujoco><option timestep="{H}"/><worldbody><geom type="plane" size="1 1 1" friction=".6 0 0" condim="3"/>'
        f'<body pos="0 0 {0.12 - 1e-5}"><freejoint/><geom type="box" size=".2 .3 .02" mass="2" contype="0" conaffinity="0"/>'
        f"{feet}</body></worldbody></mujoco>"
    )


@pytest.mark.parametrize("torque", [(0, 0), (1.3, 0.7), (5.0, 3.0), (2.5, 1.7)])
def test_tables_are_smooth(torque):
    """Feet that stick, carry little, lift or slip by micrometres: the motion has one derivative."""
    tau = np.r_[1.0, 0.5, 0, torque, 0]
    sim, d = derivatives(table(), tau=tau)
    assert len(sim.contacts) == 4
    assert not d.ambiguous


def test_three_feet_stick_and_one_slides():
    """A plate that moves in its plane and up; the fourth foot hangs on a slider of its own."""
    foot = 'type="sphere" size=".02" friction=".6 0 0" condim="3"'
    feet = "".join(f'<geom {foot} pos="{x} {y} -.1" mass=".01"/>' for x, y in [(-0.2, -0.3), (-0.2, 0.3), (0.2, -0.3)])
    model = coulomb.load(
        f'<mujoco><option timestep="{H}"/><worldbody><geom type="plane" size="1 1 1" friction=".6 0 0" condim="3"/>'
        f'<body pos="0 0 {0.12 - 1e-5}"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>'
        '<joint type="slide" axis="0 0 1"/><joint type="hinge" axis="0 0 1"/>'
        f'<geom type="box" size=".2 .3 .02" mass="2" contype="0" conaffinity="0"/>{feet}'
        f'<body pos=".2 .3 -.1"><joint type="slide" axis="1 .3 0"/><geom {foot} mass=".3"/></body></body></worldbody></mujoco>'
    )
    sim, d = derivatives(model, v=[0, 0, 0, 0, 0.5], tau=[0.3, 0.1, 0, 0.1, 0])
    assert sorted(c.mode for c in sim.contacts) == ["sliding", "sticking", "sticking", "sticking"]
    assert not d.ambiguous
    assert abs(d.dv_dv[4, 4]) > 0.1


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
def test_contacts_that_ask_slightly_different_motions_are_smooth(contact):
    """Boxes that lean on each other: redundant contacts agree to first order of the gaps, not of velocities; friction takes that up."""
    model, q, v = ball_between_boxes(np.random.default_rng(0))
    sim = coulomb.Simulator(model, timestep=H, contact=contact)
    for _ in range(28):
        q, v = sim.step(q, v)
    assert {c.mode for c in sim.contacts} == {"sticking"}
    assert not sim.derivatives().ambiguous


def test_kinks_are_flagged():
    # a body that lies has one slope on both sides; gaps of 1e-6 and 4e-6 m have two
    for depth in (0, 1e-9, -1e-9):
        d = derivatives(box(depth=depth))[1]
        assert not d.ambiguous and d.dv_dq[2, 2] == pytest.approx(CORRECTION, rel=1e-6)
    for depth in (-1e-6, -4e-6):
        assert derivatives(box(depth=depth), v=[0, 0, -0.1, 0, 0, 0])[1].ambiguous
        assert not derivatives(box(depth=1.1 * depth), v=[0, 0, -0.1, 0, 0, 0])[1].ambiguous

    # without correction an open gap is closed, and a penetration stays
    assert derivatives(box(depth=0), baumgarte=0.0)[1].ambiguous
    assert not derivatives(box(depth=1e-9), baumgarte=0.0)[1].ambiguous

    # where the correction begins, and where it is as fast as it may
    assert derivatives(box(depth=1e-3), slop=1e-3)[1].ambiguous
    assert not derivatives(box(depth=1e-3), slop=1.1e-3)[1].ambiguous
    assert derivatives(box(depth=1e-3), max_correction_speed=0.1 * 1e-3 / H)[1].ambiguous
    assert not derivatives(box(depth=1e-3), max_correction_speed=0.11 * 1e-3 / H)[1].ambiguous


def sphere(depth, **options):
    scene = coulomb.Scene(timestep=H)
    scene.add_ground(friction=0.5)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1 - depth), name="ball", **options)
    return scene.build()


def test_jumps_are_flagged():
    """An approach at the threshold bounces or does not."""
    model = sphere(1e-5, restitution=0.5)
    assert derivatives(model, v=[0, 0, -0.01, 0, 0, 0], steps=1)[1].ambiguous
    assert not derivatives(model, v=[0, 0, -0.0101, 0, 0, 0], steps=1)[1].ambiguous


def test_ties_are_flagged_where_the_motion_feels_them():
    # friction that holds just so: h tau = b exactly
    model = hinges([FRICTION])
    assert derivatives(model, tau=[0.1])[1].ambiguous
    assert not derivatives(model, tau=[0.1 * (1 + 1e-4)])[1].ambiguous
    assert not derivatives(model, tau=[0.1 * (1 - 1e-4)])[1].ambiguous
    # an equality holds what the friction would
    assert not derivatives(hinges([FRICTION], HOLDS), tau=[0.1])[1].ambiguous
    # all corners at the limit of sliding, together
    push = np.array([0.5 * 9.81, 0, 0, 0, 0, 0])
    weight = np.array([0, 0, 0, 0, 0.05 * 0.5 * 9.81, 0])  # equal loads of the corners
    model = box(depth=0)
    assert derivatives(model, tau=push - weight, baumgarte=1.0)[1].ambiguous
    assert not derivatives(model, tau=0.99 * (push - weight), baumgarte=1.0)[1].ambiguous
    # touching without load or velocity
    scene = coulomb.Scene(gravity=(0, 0, 0), timestep=H)
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0))
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 0.2))
    assert derivatives(scene.build())[1].ambiguous


@pytest.mark.skipif(robots.missing("hopper") is not None, reason="no gymnasium")
@pytest.mark.parametrize(("end", "kink"), [(0, True), (20, False)])
def test_a_hopper_that_stands_with_two_joints_at_their_limits(end, kink):
    """Thigh and leg may bend from -150 degrees to 0, where the hopper stands: the limits hold or do not, to either side. Ending elsewhere, they
    leave a smooth step."""
    text = robots.gymnasium_text("hopper")
    assert text.count('range="-150 0"') == 2
    model = coulomb.load(text.replace('range="-150 0"', f'range="-150 {end}"'))
    sim = coulomb.Simulator(model)
    q, v = model.neutral()[0], np.zeros(model.nv)
    for _ in range(100):
        q, v = sim.step(q, v)
    sim.freeze_memory(True)
    v1 = sim.step(q, v)[1]
    d = sim.derivatives()
    assert d.ambiguous == kink

    # One-sided slopes, relative to the Jacobian.
    def slope(size):
        ends = [sim.step(model.integrate(q, size * e), v)[1] for e in np.eye(model.nv)]
        return np.array([(end - v1) / size for end in ends]).T

    off = [np.linalg.norm(slope(size) - d.dv_dq) / np.linalg.norm(d.dv_dq) for size in (1e-8, -1e-8)]
    assert min(off) > 0.1 if kink else max(off) < 1e-7


def test_geometry_without_derivative_is_flagged():
    scene = coulomb.Scene(timestep=H)
    scene.add_sphere(0.1, fixed=True)
    scene.add_sphere(0.1, mass=1.0)  # the same centre
    sim, d = derivatives(scene.build(), max_correction_speed=0.1)
    assert [c.frozen for c in sim.contacts] == [True]
    assert d.ambiguous


def stack(upper, shift=0.0):
    """Boxes whose faces are parallel exactly; the upper one of this width lies 0.1 mm in the lower one of 0.2 m."""
    scene = coulomb.Scene(timestep=H)
    scene.add_ground(friction=0.5)
    scene.add_box((0.2, 0.2, 0.1), mass=1.0, position=(0, 0, 0.05))
    scene.add_box((upper, upper, 0.1), mass=2.0, position=(shift, 0.01, 0.15 - 1e-4))
    return scene.build()


@pytest.mark.parametrize(
    ("upper", "shift", "kink"), [(0.2, 0.03, True), (0.1, 0.08, True), (0.1, 0.0, False), (0.3, 0.0, False)]
)
def test_parallel_faces_have_two_normals_unless_one_holds_the_other(upper, shift, kink):
    """As they tilt, the face whose plane the other's corners stand on carries the normal: either, or always the larger one."""
    model = stack(upper, shift)
    sim = coulomb.Simulator(model, patches=False)
    q, v = model.neutral()
    v[:] = 0.3 * np.random.default_rng(3).normal(size=12)
    v1 = sim.step(q, v)[1]
    d = sim.derivatives()
    assert d.ambiguous == kink
    errors = []
    for e in np.random.default_rng(0).normal(size=(8, 12)) * np.tile([0, 0, 0, 1, 1, 0], 2):
        for h in (1e-8, -1e-8):
            errors.append(np.max(np.abs((sim.step(model.integrate(q, h * e), v)[1] - v1) / h - d.dv_dq @ e)))
    assert (max(errors) > 1e-3 * np.max(np.abs(d.dv_dq))) == kink

    # The face of the step before stays the one that counts.
    sim = coulomb.Simulator(model)
    sim.step(q, v)
    sim.step(q, v)
    assert not sim.derivatives().ambiguous


def test_rollouts_count_them():
    model = hinges([FRICTION])
    tau = np.array([[0.05], [0.1], [0.05], [0.1]])
    rollout = coulomb.Simulator(model).rollout(*model.neutral(), tau=tau)
    weights = np.ones((5, 1))
    assert rollout.vjp(weights, weights).ambiguous == 2
