"""Split, penalty and implicit steps: what moves a tree depends on that tree and what it touches alone, whatever else the scene holds."""

import numpy as np
import pytest

import coulomb

FAR = 40.0  # m

# Name: MJCF of the bodies at x, their velocities, and what else the file has of them.
BOX = '<geom type="box" size=".1 .15 .2" mass="1"/>'
BODIES = {
    "resting": ('<body name="{n}" pos="{x} 0 .2"><freejoint/>' + BOX + "</body>", [0] * 6, {}),
    "sliding": (
        '<body name="{n}" pos="{x} 0 .05"><freejoint/><geom type="box" size=".2 .3 .05" mass="1"/></body>',
        [1, 0.5, 0, 0, 0, 0],
        {},
    ),
    "thrown": ('<body name="{n}" pos="{x} 0 30"><freejoint/>' + BOX + "</body>", [1, 0, 2, 20, 25, 10], {}),
    "rolling": (
        '<body name="{n}" pos="{x} 0 .1"><freejoint/><geom type="sphere" size=".1" mass="1"/></body>',
        [1, 0, 0, 0, 3, 4],
        {},
    ),
    "sprung": (
        '<body name="{n}" pos="{x} 0 5"><joint name="{n}" type="slide" axis="0 0 1" stiffness="10000"/>'
        + BOX
        + "</body>",
        [1],
        {},
    ),
    "articulated": (
        '<body name="{n}" pos="{x} 0 9"><joint type="ball"/><geom type="capsule" size=".05" fromto="0 0 0 0 0 -1" mass="1"/>'
        '<body pos="0 0 -1"><joint type="hinge" axis="0 1 0"/>'
        '<geom type="capsule" size=".05" fromto="0 0 0 .5 0 -1" mass="1"/></body></body>',
        [1, 2, 3, -2],
        {},
    ),
    "at a limit": (
        '<body name="{n}" pos="{x} 0 5"><joint name="{n}" type="hinge" axis="0 1 0" limited="true" range="0 1"/>'
        '<geom type="box" size=".1 .1 .1" pos="-.5 0 0" mass="1"/></body>',
        [0],
        {},
    ),
    "dry friction": (
        '<body name="{n}" pos="{x} 0 5"><joint name="{n}" type="hinge" axis="0 1 0" frictionloss=".3"/>'
        '<geom type="box" size=".1 .1 .1" pos="-.5 0 0" mass="1"/></body>',
        [2],
        {},
    ),
    "damped": (
        '<body name="{n}" pos="{x} 0 5"><joint name="{n}" type="hinge" axis="0 1 0" damping=".3"/>'
        '<geom type="box" size=".1 .1 .1" pos="-.5 0 0" mass="1"/></body>',
        [2],
        {},
    ),
    "linkage": (
        '<body name="{n}" pos="{x} 0 5"><joint name="{n}" type="hinge" axis="0 1 0"/>'
        '<geom type="capsule" size=".03" fromto="0 0 0 1 0 0" mass="1"/></body>'
        '<body name="{n}2" pos="{x} 1 5"><joint name="{n}2" type="hinge" axis="0 1 0"/>'
        '<geom type="capsule" size=".03" fromto="0 0 0 1 0 0" mass="1"/></body>',
        [1, 1],
        {"equality": '<joint joint1="{n}" joint2="{n}2"/>'},
    ),
    "driven": (
        '<body name="{n}" pos="{x} 0 5"><joint name="{n}" type="hinge" axis="0 1 0"/>'
        '<geom type="box" size=".1 .1 .1" pos="-.5 0 0" mass="1"/></body>',
        [2],
        {"actuator": '<motor joint="{n}"/>'},
    ),
}


def scene(names):
    bodies, equalities, actuators, v = "", "", "", []
    for k, name in enumerate(names):
        body, velocity, more = BODIES[name]
        bodies += body.format(n=f"body{k}", x=FAR * k)
        equalities += more.get("equality", "").format(n=f"body{k}")
        actuators += more.get("actuator", "").format(n=f"body{k}")
        v += velocity
    world = coulomb.Scene()
    world.add_mjcf(
        f'<mujoco><worldbody><geom type="plane" size="1 1 1" friction=".5"/>{bodies}</worldbody>'
        f"<equality>{equalities}</equality><actuator>{actuators}</actuator></mujoco>"
    )
    return world.build(), np.array(v, dtype=float)


def states(names, timestep, steps, **options):
    """Positions and velocities of the first body at every step; no step has an impact."""
    model, v = scene(names)
    first = scene(names[:1])[0]
    sim = coulomb.Simulator(model, timestep=timestep, **(options or {"continuous_collision": True}))
    q = model.neutral()[0]
    out = []
    for _ in range(steps):
        q, v = sim.step(q, v)
        assert sim.status.converged and not sim.impacts and "parts" not in sim.status.reason
        out.append(np.r_[q[: first.nq], v[: first.nv]])
    return np.array(out)


@pytest.mark.parametrize("timestep", [0.01, 0.001])
@pytest.mark.parametrize("name", BODIES)
def test_far_company_changes_no_bit(name, timestep):
    """Each body alone, beside each other, and beside all others at once."""
    steps = 40
    alone = states([name], timestep, steps)
    for company in [[other] for other in BODIES] + [list(BODIES)]:
        together = states([name, *company], timestep, steps)
        assert together.tobytes() == alone.tobytes(), company


@pytest.mark.parametrize("stepper", ["semi_implicit", "bdf1", "bdf2"])
@pytest.mark.parametrize("name", BODIES)
def test_far_company_changes_no_bit_of_penalty_contact(name, stepper):
    """Newton's method is of all bodies, but judges and searches every island by itself; and every island goes by its own rule, also where
    bdf2 meets a joint limit."""
    options = dict(contact="penalty", stepper=stepper)
    alone = states([name], 0.01, 40, **options)
    for company in [[other] for other in BODIES] + [list(BODIES)]:
        together = states([name, *company], 0.01, 40, **options)
        assert together.tobytes() == alone.tobytes(), company


SWINGS = """<body name="{n}" pos="{x} 0 5"><joint name="{n}" axis="0 1 0" limited="true" range="-30 30"/>
  <inertial pos="0 0 -.3" mass="1" diaginertia=".01 .01 .01"/>
  <body pos="0 0 -.6"><joint name="{n}b" axis="0 1 0" limited="true" range="-40 40"/>
    <inertial pos="0 0 -.3" mass="1" diaginertia=".01 .01 .01"/></body></body>"""
FALLS = '<body name="{n}" pos="{x} 0 .3"><freejoint/><geom type="box" size=".1 .15 .2" mass="1"/></body>'


def islands(kinds, first=0):
    """A model of double pendulums ("swings") and boxes ("falls"), the velocities of those, and the coordinates and dofs of each; at the
    places from `first` on."""
    bodies, v, parts = "", [], []
    q_at = v_at = 0
    for k, kind in enumerate(kinds):
        nq, nv = (2, 2) if kind.startswith("swings") else (7, 6)
        bodies += (SWINGS if nv == 2 else FALLS).format(n=f"b{k}", x=FAR * (first + k))
        v += {"swings": [4, -3], "swings late": [-3, 8], "falls": [0.5, 0.2, -1, 1, 2, 0.5]}[kind]
        parts.append((slice(q_at, q_at + nq), slice(v_at, v_at + nv)))
        q_at, v_at = q_at + nq, v_at + nv
    model = coulomb.load(
        f'<mujoco><worldbody><geom type="plane" size="1 1 1" friction=".5"/>{bodies}</worldbody></mujoco>'
    )
    return model, np.array(v, dtype=float), parts


KINDS = ["swings", "swings late", "falls"]


def paths(kinds, first=0, timestep=0.01, steps=80, **options):
    """Of each island, (q, v) after every step; and whether some step was divided."""
    model, v, parts = islands(kinds, first)
    sim = coulomb.Simulator(model, timestep=timestep, stepper="bdf2", **options)
    q, out, divided = model.neutral()[0], [[] for _ in kinds], False
    for _ in range(steps):
        q, v = sim.step(q, v)
        divided = divided or "parts" in sim.status.reason
        for path, (of_q, of_v) in zip(out, parts, strict=True):
            path.append(np.r_[q[of_q], v[of_v]])
    return [np.array(path) for path in out], divided


@pytest.mark.parametrize("options", [{}, {"limit_damping": 0.0, "limit_stiffness": 1e5}], ids=["soft", "stiff"])
@pytest.mark.parametrize("company", [KINDS, KINDS[::-1], ["falls", "swings", "swings"]], ids=str)
def test_limits_that_are_met_far_away(company, options):
    """bdf2 takes steps over limits by bdf1, of that island alone."""
    together, divided = paths(company, **options)
    assert not divided
    for k, (kind, path) in enumerate(zip(company, together, strict=True)):
        (alone,), _ = paths([kind], k, **options)
        assert path.tobytes() == alone.tobytes(), kind
        if kind != "falls":
            pushed = np.abs(alone[:, :2]) > np.radians([30, 40])
            assert (pushed[1:] != pushed[:-1]).sum() >= 2  # not vacuous


@pytest.mark.parametrize("company", [KINDS, KINDS[::-1]], ids=str)
def test_steps_that_are_divided_far_away(company):
    """So few iterations that islands are taken in parts, some of them at their best iterate, at different steps."""
    options = dict(timestep=0.02, newton_iterations=4, limit_stiffness=1e5)
    alone = [paths([kind], k, **options) for k, kind in enumerate(company)]
    together, divided = paths(company, **options)
    assert divided and any(one for _, one in alone)
    for kind, path, ((expected,), _) in zip(company, together, alone, strict=True):
        assert path.tobytes() == expected.tobytes(), kind


def test_a_state_that_is_set_starts_what_it_is_of():
    """bdf2 starts anew for a body that the user has moved; others go on."""
    model, v, parts = islands(["falls", "falls"])
    moved, plain = (coulomb.Simulator(model, timestep=0.01, stepper="bdf2") for _ in range(2))
    q = model.neutral()[0]
    for _ in range(3):
        q, v = moved.step(q, v)
        plain.memory = moved.memory
    other = np.array(v)
    other[6:] += 0.1
    ends = [np.r_[sim.step(q, w)] for sim, w in ((plain, v), (moved, other))]
    (of_q, of_v), _ = parts
    assert ends[0][of_q].tobytes() == ends[1][of_q].tobytes()
    assert ends[0][model.nq :][of_v].tobytes() == ends[1][model.nq :][of_v].tobytes()
    before = moved.derivatives().A_previous
    assert before[:6].any() and not before[6:12].any() and not before[18:].any()


def carts(gap):
    """A cart that runs against the end of its rail, and one with so much room before it."""
    world = coulomb.Scene(gravity=(0, 0, 0))
    world.add_mjcf(
        '<mujoco><worldbody><body name="a"><joint name="a" type="slide" axis="1 0 0" limited="true" range="-1 .1"/>'
        '<geom name="a" type="sphere" size=".1" mass="1"/></body>'
        f'<body name="b" pos="{0.2 + gap!r} 0 0"><joint name="b" type="slide" axis="1 0 0"/>'
        '<geom name="b" type="sphere" size=".1" mass="2"/></body></worldbody></mujoco>'
    )
    return world.build()


def test_islands_of_different_rules_that_touch_are_one():
    """The first cart meets its limit and then starts anew, while the second goes on from two states. Where they touch at the end of that step
    both start anew: the step that a new simulator takes. The forces between them are equal."""
    options = dict(timestep=0.01, stepper="bdf2", limit_stiffness=1e3, limit_damping=0.0, contact_damping=0.0)
    start = np.array([3.0, -0.01])

    # Where the first alone is when it has met its limit, and after the next step.
    sim, q, v, path = coulomb.Simulator(carts(1.0), **options), np.zeros(2), start, [0.0]
    while path[-1] <= 0.1:
        q, v = sim.step(q, v)
        path.append(float(q[0]))
    ahead, _ = sim.step(q, v)
    assert ahead[0] > q[0] + 0.01

    # Apart until then, and half of that way deep after the next step, were there no contact.
    model = carts(float((q[0] - q[1] + ahead[0] - ahead[1]) / 2))
    sim = coulomb.Simulator(model, **options)
    q, v = np.zeros(2), start
    for _ in path[1:]:
        q, v = sim.step(q, v)
        assert not sim.contacts
    before = sim.memory
    q1, v1 = sim.step(q, v)
    assert len(sim.contacts) == 1 and sim.status.reason == "solved"
    fresh = coulomb.Simulator(model, **options)
    assert [x.tobytes() for x in fresh.step(q, v)] == [q1.tobytes(), v1.tobytes()]
    assert sim.derivatives().A_previous is None

    # Without the contact the second would have gone on.
    apart = coulomb.Simulator(carts(1.0), **options)
    apart.memory = before
    apart.step(q, v)
    assert apart.derivatives().A_previous[1].any() and not apart.derivatives().A_previous[0].any()

    # And the derivative is that of the one rule.
    sim.memory = before
    check = coulomb.check_gradients(sim, q, v, wrt=["q", "v", "tau"], tolerance=2e-6)
    assert check.passed and check.compared == check.columns, check


def pressed(company):
    """Two boxes .1 mm apart, and a row of balls far away."""
    world = coulomb.Scene(gravity=(0, 0, 0))
    for k in range(2):
        world.add_box((0.1, 0.1, 0.1), mass=1.0 + k, position=(0.1001 * k, 0, 0), name=f"box{k}")
    for k in range(company):
        world.add_sphere(0.1, mass=1.0, position=(0, 0, FAR + 0.199 * k))
    return world.build()


@pytest.mark.parametrize("stepper", ["semi_implicit", "bdf1", "bdf2"])
def test_islands_that_touch_within_a_step_are_solved_as_one(stepper):
    """At the first guess, at rest, boxes are apart; forces press them together within the step, and neither moves through the other."""
    alone = None
    for company in (0, 3):
        model = pressed(company)
        sim = coulomb.Simulator(model, timestep=0.01, contact="penalty", stepper=stepper)
        tau = np.zeros(model.nv)
        tau[0], tau[6] = 50.0, -50.0
        q, v = sim.step(*model.neutral(), tau=tau)
        assert sim.status.converged and "parts" not in sim.status.reason
        # Equal faces: four corners, each on the border of the other face and so listed twice, with half of its force.
        touching = [c for c in sim.contacts if "box1" in (c.geometry_a, c.geometry_b)]
        assert len(touching) == 8 and len({tuple(np.round(c.point, 9)) for c in touching}) == 4
        assert abs(v[0] + 2 * v[6]) < 1e-12  # the forces are equal and opposite
        assert 0.0995 < q[7] - q[0] < 0.1
        ends = np.r_[q[:14], v[:12]].tobytes()
        assert alone in (None, ends)
        alone = ends


LEGGED = """<body pos="0 0 .33"><freejoint/><geom type="box" size=".2 .1 .05" mass="2"/>
  <body pos=".15 0 -.05"><joint type="hinge" axis="0 1 0" stiffness="20"/>
    <geom type="capsule" size=".03" fromto="0 0 0 .05 0 -.2" mass=".3"/></body>
  <body pos="-.15 0 -.05"><joint type="hinge" axis="0 1 0" stiffness="20"/>
    <geom type="capsule" size=".03" fromto="0 0 0 .05 0 -.2" mass=".3"/></body></body>"""


def steps_of_legs(company, timestep, steps):
    """Motion of a body that falls on two legs, and how many impacts it has."""
    body, velocity, _ = BODIES[company] if company else ("", [], {})
    scene = coulomb.Scene()
    scene.add_mjcf(
        f'<mujoco><worldbody><geom type="plane" size="1 1 1" friction=".5"/>{LEGGED}'
        f"{body.format(n='far', x=FAR)}</worldbody></mujoco>"
    )
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=timestep, continuous_collision=True)
    q, v = model.neutral()[0], np.array([0.3, 0.1, 0, 0.2, 0.5, 0.1, 0, 0, *velocity], dtype=float)
    out, impacts = [], 0
    for _ in range(steps):
        q, v = sim.step(q, v)
        impacts += len(sim.impacts)
        out.append(np.r_[q[:9], v[:8]])
    return np.array(out), impacts


@pytest.mark.parametrize("timestep", [0.01, 0.002])
def test_far_company_without_impacts_changes_no_bit_of_what_has_some(timestep):
    """Company at rest and in flight."""
    steps = round(0.3 / timestep)
    alone, impacts = steps_of_legs(None, timestep, steps)
    assert impacts >= 3
    for company in ("resting", "sprung", "thrown", "articulated"):
        together, as_many = steps_of_legs(company, timestep, steps)
        assert as_many == impacts
        assert together.tobytes() == alone.tobytes(), company


@pytest.mark.parametrize("company", ["resting", "at a limit", "linkage", "dry friction"])
@pytest.mark.parametrize("timestep", [0.01, 0.001])
def test_a_spring_beside_what_is_held_keeps_its_amplitude(company, timestep):
    """100 rad/s; explicit positions would multiply the amplitude by 1e17 in 2 s."""
    z = states(["sprung", company], timestep, round(2 / timestep))[:, 0]
    rest = -9.81 / 1e4
    away = np.abs(z - rest)
    quarter = len(away) // 4
    assert away[-quarter:].max() == pytest.approx(away[:quarter].max(), rel=0.01)
    assert away.max() < 1.2 * np.hypot(0.01, rest)  # Verlet: over cos(asin(omega h / 2))


def test_a_thrown_box_beside_what_rests_keeps_its_energy():
    inertia = np.array([0.15**2 + 0.2**2, 0.1**2 + 0.2**2, 0.1**2 + 0.15**2]) / 3
    for timestep in [0.01, 0.005, 0.001]:
        path = states(["thrown", "resting"], timestep, round(1 / timestep))
        w = path[:, 10:13]
        energy = (w**2 * inertia).sum(axis=1) / 2
        start = (np.array([20, 25, 10]) ** 2 * inertia).sum() / 2
        assert np.abs(energy - start).max() < 1e-11 * start


@pytest.mark.parametrize("spin", [[20, 25, 10], [3, 1, 2], [0.2, 0.1, 0.3]])
def test_a_smaller_step_is_more_exact_in_flight(spin):
    """Fast or slow, beside what rests: the rotation after .4 s converges at the second order."""
    model = scene(["thrown", "resting"])[0]
    start = np.r_[[1, 0, 2], spin, np.zeros(6)]

    def end(timestep):
        sim = coulomb.Simulator(model, timestep=timestep, continuous_collision=True)
        q, v = model.neutral()[0], start
        for _ in range(round(0.4 / timestep)):
            q, v = sim.step(q, v)
        return q

    exact = end(2e-4)
    errors = [np.linalg.norm(model.difference(exact, end(h))[3:6]) for h in (0.01, 0.005, 0.0025)]
    ratios = np.array(errors[:-1]) / errors[1:]
    assert (ratios > 3.5).all(), errors
