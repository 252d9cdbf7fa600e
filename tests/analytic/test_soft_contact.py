"""contact_stiffness k and contact_dashpot d in the constraint problem, docs/theory.md (S9): a contact is a spring and a damper of the end of the
step, whatever the time step; against the linear oscillator, against penalty contact, and refused where it cannot hold."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import coulomb

G = 9.81
LAWS = [{"contact": "ncp"}, {"contact": "lcp"}]
METHODS = [
    *LAWS,
    {"contact": "ncp", "solver": "ac_lm"},
    {"contact": "ncp", "solver": "pgs", "max_iterations": 2000},
    {"contact": "ncp", "solver": "admm", "max_iterations": 20000},
    {"contact": "lcp", "solver": "dantzig"},
]


def ball(k, d=0.0, mass=2.0, height=0.0, gravity=(0, 0, -G), ground=None, **options):
    """A ball of radius .1 m at this height of its lowest point."""
    scene = coulomb.Scene(gravity=gravity)
    scene.add_ground(**(ground or {}))
    scene.add_sphere(
        0.1, mass=mass, position=(0, 0, 0.1 + height), contact_stiffness=k, contact_dashpot=d, name="ball", **options
    )
    return scene.build()


def run(sim, steps, v=None):
    """q (steps + 1, nq), v and the normal impulses of the first contact."""
    q, neutral = sim.model.neutral()
    v = neutral if v is None else np.array(v, float)
    Q, V, impulses = [q], [v], []
    for _ in range(steps):
        q, v = sim.step(q, v)
        assert sim.status.converged, sim.status
        Q.append(q)
        V.append(v)
        impulses.append(sum(abs(c.impulse[2]) for c in sim.contacts))
    return np.array(Q), np.array(V), np.array(impulses)


# Rest


@pytest.mark.parametrize("h", [1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("options", METHODS, ids=str)
def test_a_ball_rests_mg_over_k_deep_at_every_time_step(h, options):
    m, k = 2.0, 1e4
    model = ball(k, 2 * math.sqrt(k * m), m, height=-1e-3)
    Q, V, impulses = run(coulomb.Simulator(model, timestep=h, **options), round(0.6 / h))
    assert Q[-1][2] - 0.1 == pytest.approx(-m * G / k, rel=1e-6)
    assert impulses[-1] / h == pytest.approx(m * G, rel=1e-6)
    assert np.abs(V[-1]).max() < 1e-6


@pytest.mark.parametrize("h", [1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("options", LAWS, ids=str)
def test_rest_is_a_fixed_point_of_the_step(h, options):
    m, k = 2.0, 3e3
    model = ball(k, 5.0, m, height=-m * G / k)
    q, v = model.neutral()
    q1, v1 = coulomb.Simulator(model, timestep=h, **options).step(q, v)
    assert np.abs(q1 - q).max() < 1e-16 and np.abs(v1).max() < 1e-13


@pytest.mark.parametrize("options", LAWS, ids=str)
def test_a_box_rests_on_four_springs(options):
    m, k = 3.0, 2e4
    scene = coulomb.Scene()
    scene.add_ground()
    scene.add_box((0.2, 0.3, 0.2), mass=m, position=(0, 0, 0.1), contact_stiffness=k, contact_dashpot=200.0)
    Q, _, impulses = run(coulomb.Simulator(scene.build(), timestep=2e-3, **options), 500)
    assert Q[-1][2] - 0.1 == pytest.approx(-m * G / (4 * k), rel=1e-6)
    assert impulses[-1] / 2e-3 == pytest.approx(m * G, rel=1e-9)
    assert np.abs(Q[-1][:2]).max() < 1e-9


@pytest.mark.parametrize(
    "own, ground, total",
    [
        (1e4, {}, 1e4),
        (1e4, {"contact_stiffness": 3e4}, 7500.0),
        (1e4, {"contact_scale": 0.5}, 5e3),
        (1e4, {"contact_stiffness": 1e4, "contact_scale": 2.0}, 1e4),
    ],
)
def test_springs_are_in_series(own, ground, total):
    m = 2.0
    model = ball(own, 0.0, m, height=-m * G / total, ground=ground)
    q, v = model.neutral()
    q1, v1 = coulomb.Simulator(model).step(q, v)
    assert np.abs(q1 - q).max() < 1e-15 and np.abs(v1).max() < 1e-12


# Single steps in closed form


@pytest.mark.parametrize(
    "own, ground, d",
    [
        (7.0, {}, 7.0),
        (7.0, {"contact_stiffness": 1e4, "contact_dashpot": 14.0}, 14.0 / 3),
        (7.0, {"contact_stiffness": 1e4}, 0.0),  # a spring without a damper in series with one: nothing resists
        (0.0, {"contact_stiffness": 1e4, "contact_dashpot": 14.0}, 0.0),
    ],
)
@pytest.mark.parametrize("phi", [-3e-3, -1e-5, 0.0, 2e-5, 1e-3])
@pytest.mark.parametrize("speed", [-1.5, -0.01, 0.0, 0.4, 30.0])
@pytest.mark.parametrize("options", LAWS, ids=str)
def test_one_step_is_the_law(own, ground, d, phi, speed, options):
    """A free ball of mass m: v+ = v + lambda/m, lambda = max(0, -h k phi - (h^2 k + h d) v+), closed."""
    m, h = 2.0, 1e-3
    k = 1e4 if not ground else 5e3
    model = ball(1e4, own, m, height=phi, gravity=(0, 0, 0), ground=ground)
    sim = coulomb.Simulator(model, timestep=h, **options)
    q, v = model.neutral()
    v[2] = speed
    _, v1 = sim.step(q, v)
    z = h * h * k + h * d
    push = -h * k * phi if phi <= 0 else -z * phi / h
    impulse = max(0.0, (push - z * speed) / (1 + z / m))
    assert v1[2] == pytest.approx(speed + impulse / m, rel=1e-12, abs=1e-12)


def test_a_stiff_spring_is_rigid_contact():
    """k = 1e16 N/m corrects the whole error at once, as baumgarte=1 does; friction acts alike."""
    h = 1e-3
    found = []
    for soft in (True, False):
        scene = coulomb.Scene()
        scene.add_ground(friction=0.4, **({"contact_stiffness": 1e16} if soft else {}))
        scene.add_box((0.2, 0.3, 0.2), mass=3.0, position=(0, 0, 0.0999))
        options = {} if soft else {"baumgarte": 1.0, "max_correction_speed": 1e3}
        sim = coulomb.Simulator(scene.build(), timestep=h, **options)
        found.append(run(sim, 50, v=[1.0, 0, 0, 0, 0, 2.0])[:2])
    for soft, hard in zip(*found):
        assert np.abs(soft - hard).max() < 1e-8


def test_without_friction_it_is_penalty_contact():
    h, k = 1e-3, 2e4
    model = ball(k, 0.0, 1.0, height=0.02)
    rows, _, _ = run(coulomb.Simulator(model, timestep=h), 400)
    forces, _, _ = run(
        coulomb.Simulator(ball(k, None, 1.0, 0.02), timestep=h, contact="penalty", contact_damping=0.0), 400
    )
    assert rows[:, 2].min() < 0.099
    assert np.abs(rows - forces).max() < 1e-9


# The oscillator


def oscillation(m, k, d, x0, times):
    """m x'' = -m g - k x - d x' from rest at x0, about its rest at -m g / k."""
    rest, decay = -m * G / k, d / (2 * m)
    w = math.sqrt(k / m - decay**2)
    return rest + (x0 - rest) * np.exp(-decay * times) * (np.cos(w * times) + decay / w * np.sin(w * times))


@pytest.mark.parametrize("d", [0.0, 40.0])
def test_small_oscillations_converge_to_the_linear_oscillator(d):
    """The force stays positive; the error falls as h."""
    m, k, x0, T = 2.0, 1e4, -1e-3, 0.2
    errors = []
    for h in (4e-4, 2e-4, 1e-4):
        Q, _, _ = run(coulomb.Simulator(ball(k, d, m, height=x0), timestep=h), round(T / h))
        expected = oscillation(m, k, d, x0, h * np.arange(len(Q)))
        errors.append(np.abs(Q[:, 2] - 0.1 - expected).max())
    ratios = np.array(errors[:-1]) / errors[1:]
    assert errors[-1] < 0.1 * abs(x0 + m * G / k) + 1e-5
    assert ((ratios > 1.8) & (ratios < 2.2)).all(), (errors, ratios)


def test_an_undamped_bounce_has_the_depth_and_period_of_the_spring():
    """No gravity: half a period pi sqrt(m/k) in contact, depth v sqrt(m/k), and the same speed away, as h -> 0."""
    m, k, speed = 2.0, 1e4, 0.5
    errors = []
    for h in (2e-5, 1e-5):
        model = ball(k, 0.0, m, gravity=(0, 0, 0))
        steps = round(1.2 * math.pi * math.sqrt(m / k) / h)
        Q, V, impulses = run(coulomb.Simulator(model, timestep=h), steps, v=[0, 0, -speed, 0, 0, 0])
        depth, time, away = 0.1 - Q[:, 2].min(), h * np.count_nonzero(impulses), V[-1][2]
        expected = speed * math.sqrt(m / k), math.pi * math.sqrt(m / k), speed
        errors.append(np.abs(np.array([depth, time, away]) / expected - 1))
    assert (errors[1] < 3e-3).all(), errors
    assert (errors[0] / errors[1] > 1.6)[[0, 2]].all(), errors  # the time is known to a step


def test_it_never_pulls():
    """A strong damper lets go of what leaves faster than the spring follows: the flight is that of a force max(0, -k x - d v)."""
    m, k, d, speed = 1.0, 1e3, 60.0, 1.0
    h = 2e-5
    Q, V, impulses = run(
        coulomb.Simulator(ball(k, d, m, gravity=(0, 0, 0)), timestep=h), 10000, v=[0, 0, -speed, 0, 0, 0]
    )
    assert (impulses >= 0).all()

    def motion(_, y):
        return [y[1], max(0.0, -k * y[0] - d * y[1]) * (y[0] < 0) / m]

    exact = solve_ivp(motion, (0, 0.2), [0, -speed], rtol=1e-9, atol=1e-12, max_step=1e-4, t_eval=h * np.arange(10001))
    assert np.abs(Q[:, 2] - 0.1 - exact.y[0]).max() < 2e-3 * np.abs(exact.y[0]).max()
    closed = (Q[:-1, 2] < 0.1) & (V[1:, 2] > 0)
    assert (impulses[closed] == 0).any()  # it lets go while it is still deep


# Friction


@pytest.mark.parametrize("mu, sticks", [(0.5, True), (0.1, False)])
def test_friction_on_a_slope(mu, sticks):
    """tan 15 deg = .268. The normal force is that of rest, so a block that slides is accelerated by g (sin - mu cos)."""
    m, k, slope, h, T = 2.0, 5e4, math.radians(15), 1e-3, 0.5
    depth = m * G * math.cos(slope) / (4 * k)
    scene = coulomb.Scene(gravity=(G * math.sin(slope), 0, -G * math.cos(slope)))
    scene.add_ground(friction=mu)
    scene.add_box((0.4, 0.4, 0.02), mass=m, position=(0, 0, 0.01 - depth), contact_stiffness=k, contact_dashpot=100.0)
    Q, V, _ = run(coulomb.Simulator(scene.build(), timestep=h), round(T / h))
    if sticks:
        assert np.abs(V[-1]).max() < 1e-4 and abs(Q[-1][0]) < 1e-4
    else:
        assert V[-1][0] == pytest.approx(G * (math.sin(slope) - mu * math.cos(slope)) * T, rel=1e-4)


@pytest.mark.parametrize("k", [1e-160, 1e-6, 1.0, 1e7, 1e15, 1e155])
@pytest.mark.parametrize("d", [0.0, 1e-6, 1e8])
def test_any_stiffness_has_a_step_and_its_derivatives(k, d):
    m, h, depth = 2.0, 1e-3, 1e-3
    sim = coulomb.Simulator(ball(k, d, m, height=-depth), timestep=h)
    q, v = sim.model.neutral()
    names = ["contact_stiffness/ball", "contact_dashpot/ball", "contact_scale/ball", "timestep"]
    sim.step(q, v)
    by = sim.derivatives(wrt=names)

    # The one degree of freedom by hand: m v+ = -m g h - h (k (-depth + h v+) + d v+), and with a = m + h^2 k + h d the implicit function's
    # derivatives, written so that nothing cancels or leaves double precision.
    a = m + h * h * k + h * d
    v_next = -G * h * (m / a) + depth * h * (k / a)
    expected = {
        "contact_stiffness/ball": h / a * ((depth * (m + h * d) + G * h * h * m) / a),
        "contact_dashpot/ball": -v_next * (h / a),
        "contact_scale/ball": (m / a) * (h * (G * h * (h * (k / a) + d / a) + depth * (k / a))),
        "timestep": -G * (m / a) + depth * (k / a) - v_next * ((2 * h * k + d) / a),
    }
    for name in names:
        got = np.ravel(by[name])[by.A.shape[0] // 2 + 2]
        rounding = 1e-14 * G if name == "timestep" else 0  # what holds the ball up is less gravity
        assert got == pytest.approx(expected[name], rel=1e-9, abs=rounding), name

    for _ in range(20):
        q, v = sim.step(q, v)
        assert sim.status.converged
    assert np.isfinite(q).all() and np.abs(v).max() < 3


@pytest.mark.parametrize("k", [1e-310, 5e-324])
def test_a_spring_too_soft_for_its_compliance_to_be_written_is_refused(k):
    words = f"contact_stiffness {k:.12g} {PAIR}.*exceeds double precision at timestep 0.001"
    with pytest.raises(ValueError, match=words.replace("+", r"\+")):
        coulomb.Simulator(ball(k, 0.0))
    coulomb.Simulator(ball(k, 1.0))  # the dashpot carries


# What is refused, by name


PAIR = "of 'ground' and 'ball'"


@pytest.mark.parametrize(
    "ground, own, options, words",
    [
        ({}, {}, {"continuous_collision": True}, f"contact_stiffness 10000 {PAIR}: steps split at impacts"),
        ({"restitution": 0.5}, {}, {}, f"contact_stiffness 10000 with restitution 0.5 {PAIR}.*set restitution 0"),
        ({"compliance": 1e-3}, {}, {}, f"contact_stiffness 10000 with compliance 0.001 {PAIR}.*set compliance 0"),
        ({"contact_scale": 0.0}, {}, {}, f"contact_stiffness 10000 with contact_scale 0 {PAIR}"),
        ({"contact_damping": 3.0}, {}, {}, f"contact_damping 3 {PAIR}.*contact_dashpot"),
        ({}, {"contact_dashpot": 4.0}, {"contact": "penalty"}, f"contact_dashpot {PAIR}.*contact_damping"),
        ({}, {"contact_dashpot": 4.0}, {"stepper": "bdf2"}, f"contact_dashpot {PAIR}.*contact_damping"),
    ],
)
def test_what_would_be_ignored_is_refused(ground, own, options, words):
    scene = coulomb.Scene()
    scene.add_ground(**ground)
    scene.add_sphere(0.1, contact_stiffness=1e4, name="ball", **own)
    with pytest.raises(ValueError, match=words):
        coulomb.Simulator(scene.build(), **options)
    with pytest.raises(ValueError, match=words):
        coulomb.BatchSimulator(scene.build(), 2, **options)


def test_penalty_contact_may_have_the_simulators_own_damper():
    model = ball(1e4, 20.0)
    own = coulomb.Simulator(ball(1e4, 20.0, contact_damping=50.0), contact="penalty")
    shared = coulomb.Simulator(model, contact="penalty", contact_damping=50.0)
    q, v = model.neutral()
    q[2] -= 1e-3
    v[2] = -1.0
    np.testing.assert_array_equal(shared.step(q, v)[1], own.step(q, v)[1])
    coulomb.BatchSimulator(model, 2, contact="penalty", contact_damping=50.0)
    with pytest.raises(ValueError, match="or the simulator another one than the usual 100000"):
        coulomb.Simulator(model, contact="penalty")


def test_parameters_that_would_be_ignored_are_refused():
    model = ball(1e4, 3.0)
    for name, value in (("restitution/ground", 0.4), ("compliance/ball", 0.1), ("contact_scale/ball", 0.0)):
        with pytest.raises(ValueError, match=f"{name.split('/')[0]}.*{PAIR}"):
            coulomb.Simulator(model.with_parameters({name: [value]}))
        batch = coulomb.BatchSimulator(model, 2)
        with pytest.raises(ValueError, match=f"environment 1.*{name.split('/')[0]}.*{PAIR}"):
            batch.set_parameters({name: np.array([model.parameters()[name].value, [value]])})
        assert batch.environment_model(1).parameters()[name].value == model.parameters()[name].value


@pytest.mark.parametrize("verb", ["add_ground", "add_sphere", "set_contact"])
def test_a_dashpot_needs_a_spring(verb):
    scene = coulomb.Scene()
    scene.add_sphere(0.1, name="ball")
    arguments = {"add_ground": [], "add_sphere": [0.1], "set_contact": ["ball"]}[verb]
    with pytest.raises(ValueError, match=f"{verb}.*contact_dashpot: 5 needs a contact_stiffness"):
        getattr(scene, verb)(*arguments, contact_dashpot=5.0)
    with pytest.raises(ValueError, match=f"{verb}.*contact_dashpot: -1 must be non-negative"):
        getattr(scene, verb)(*arguments, contact_stiffness=1.0, contact_dashpot=-1.0)
    scene.set_contact("ball", contact_stiffness=1e3)
    scene.set_contact("ball", contact_dashpot=5.0)
    known = scene.build().parameters()
    assert known["contact_stiffness/ball"].value == [1e3] and known["contact_dashpot/ball"].value == [5.0]
    assert known["contact_dashpot/ball"].unit == "N s/m"


def test_a_rigid_geometry_has_no_stiffness_to_differentiate_by():
    scene = coulomb.Scene()
    scene.add_ground()
    scene.add_sphere(0.1, position=(0, 0, 0.0999), contact_stiffness=1e4, name="ball")
    sim = coulomb.Simulator(scene.build())
    sim.step(*sim.model.neutral())
    for name in ("contact_stiffness/ground", "contact_dashpot/ball"):
        with pytest.raises(ValueError, match=f"parameter '{name}'"):
            sim.derivatives(wrt=[name])


def test_loaded_robots_are_softened_by_set_contact():
    scene = coulomb.Scene()
    scene.add_ground()
    scene.add_mjcf(
        "<mujoco><worldbody><body pos='0 0 .1'><freejoint/><geom name='foot' size='.1' mass='2'/></body></worldbody></mujoco>"
    )
    scene.set_contact("foot", contact_stiffness=1e4, contact_dashpot=100.0)
    Q, _, _ = run(coulomb.Simulator(scene.build(), timestep=2e-3), 500)
    assert Q[-1][2] - 0.1 == pytest.approx(-2 * G / 1e4, rel=1e-6)
