"""contact='lcp': the law from sim.contacts alone, and its derivatives against the same references as the cone's.

The tests of the cone (test_step_gradients, test_parameters, test_seven_robots) are run again on simulators with friction pyramids; a
state is smooth only if no contact changes the side or vertex of its polygon either.
"""

import numpy as np
import pytest
import test_parameters
import test_rollout_gradients
import test_seven_robots
from differences import Tally, compare, signature

import coulomb
from scenes import robots
from scenes.contacts import CONTACT_SCENES
from scenes.trajectories import TRAJECTORIES
from scenes.wedges import polygon, solved_or_proved

Simulator = coulomb.Simulator
TOUCHING = [build for build in CONTACT_SCENES if build.__name__ not in ("joint_at_limit", "equalities")]


@pytest.fixture(params=[{}, {"friction_directions": 3, "friction_polygon": "inscribed"}], ids=["boxed", "hexagon"])
def lcp(request, monkeypatch):
    """Simulators with friction pyramids."""

    def simulator(model, *args, **options):
        return Simulator(model, *args, contact="lcp", **request.param, **options)

    monkeypatch.setattr(coulomb, "Simulator", simulator)
    simulator.law = str(request.param)
    return simulator


def violation(sim, bias=lambda c: 0.0):
    """Largest violation of the LCP's conditions, relative to the largest impulse and speed."""
    contacts, corners = sim.contacts, polygon(sim)
    if not contacts:
        return 0.0
    frames = [np.array(c.frame) for c in contacts]
    impulses = np.array([f @ c.impulse for f, c in zip(frames, contacts)])
    speeds = np.array([f @ c.velocity for f, c in zip(frames, contacts)])
    size, speed = max(np.abs(impulses).max(), 1e-12), max(np.abs(speeds).max(), 1e-2)
    worst = 0.0
    for c, impulse, velocity in zip(contacts, impulses, speeds):
        mu_n, w = c.friction * impulse[2], velocity[2] + bias(c)
        worst = max(worst, -impulse[2] / size, -w / speed, abs(impulse[2] * w) / size / speed)
        for a, b in zip(corners, np.roll(corners, -1, axis=0)):
            normal = np.array([b[1] - a[1], a[0] - b[0]]) / np.linalg.norm(b - a)
            worst = max(worst, normal @ (impulse[:2] - mu_n * a) / size)
        least = mu_n * (corners @ velocity[:2]).min()  # of slip . friction over the polygon
        worst = max(worst, abs(impulse[:2] @ velocity[:2] - least) / size / speed)
    return worst


@pytest.mark.parametrize("build", CONTACT_SCENES, ids=lambda f: f.__name__)
def test_scenes(lcp, build):
    tally = Tally()
    for seed in range(12):
        random = np.random.default_rng(seed)
        model, q, v = build(random)
        sim = coulomb.Simulator(model, timestep=2e-3)
        u = 0.3 * random.normal(size=model.nu)
        sim.step(q, v, u)
        w, x = random.normal(size=(2, model.nv)), random.normal(size=(2, model.nv))
        g, (dq1, dv1) = sim.vjp(*w), sim.jvp(dq=x[0], dv=x[1])
        scale = np.linalg.norm(w) * np.linalg.norm(x) * np.linalg.norm(sim.derivatives().A)
        assert abs(g.q @ x[0] + g.v @ x[1] - w[0] @ dq1 - w[1] @ dv1) <= 1e-10 * scale
        blocks = compare(sim, q, v, u)
        tally.add(blocks)
        assert blocks is None or blocks.agree, f"seed {seed}: {blocks.errors}"
    tally.assert_enough()


@pytest.mark.parametrize("build", [f for f in CONTACT_SCENES if f.__name__ != "bounce"], ids=lambda f: f.__name__)
def test_law_in_scenes(lcp, build):
    model, q, v = build(np.random.default_rng(2))
    sim = coulomb.Simulator(model, timestep=2e-3, baumgarte=0)
    for _ in range(5):
        q, v = sim.step(q, v)
        assert sim.status.converged, sim.status
        assert (
            violation(sim, lambda c: max(0.0, -c.depth) / sim.timestep) <= 1e-8
        )  # a stack keeps that of its compliance


@pytest.mark.parametrize("build", test_parameters.BUILDS, ids=lambda f: f.__name__)
def test_parameters_of_scenes(lcp, build):
    test_parameters.kinds_compared(build, lcp.law)


@pytest.mark.parametrize("build", test_parameters.BUILDS, ids=lambda f: f.__name__)
def test_reverse_is_forward_in_scenes(lcp, build):
    test_parameters.test_reverse_is_forward_in_scenes(build)


def test_every_kind_of_parameter_was_compared(lcp):
    compared = [test_parameters.kinds_compared(build, lcp.law) for build in test_parameters.BUILDS]
    assert set().union(*compared) == test_parameters.KINDS


@pytest.mark.parametrize("lcp", [{}], indirect=True, ids=["boxed"])
@pytest.mark.parametrize("name", robots.NAMES)
def test_robots(lcp, name, monkeypatch):
    """Every recorded state: the Jacobian to 1e-6."""
    monkeypatch.setattr(test_seven_robots, "contact_law_violation", lambda sim: 0.0)  # the cone's
    test_seven_robots.test_contact_law_and_jacobian_at_every_state(name)


@pytest.mark.parametrize("lcp", [{}], indirect=True, ids=["boxed"])
@pytest.mark.parametrize("name", robots.NAMES)
def test_forward_and_reverse_mode_on_robots(lcp, name):
    test_seven_robots.test_forward_and_reverse_mode_at_every_state(name)


@pytest.mark.parametrize("lcp", [{}], indirect=True, ids=["boxed"])
@pytest.mark.parametrize("name", robots.NAMES)
def test_reverse_is_forward_by_parameters_of_robots(lcp, name):
    test_parameters.test_reverse_is_forward_on_robots(name)


@pytest.mark.parametrize("lcp", [{}], indirect=True, ids=["boxed"])
@pytest.mark.parametrize("name", robots.NAMES)
def test_law_on_robots(lcp, name):
    """To 1e-9, and beyond by no more than the status says that compliance left, in at most a tenth of the states."""
    model, qs, vs = robots.load(name)
    sim = coulomb.Simulator(model, baumgarte=0)
    violations = []
    for k, (q, v) in enumerate(zip(qs, vs)):
        sim.reset()
        sim.step(q, v)
        assert solved_or_proved(sim, q), f"state {k}: {sim.status}"
        violations.append(violation(sim, lambda c: max(0.0, -c.depth) / sim.timestep))
        if sim.status.converged:
            assert violations[-1] <= test_seven_robots.law_to(sim), f"state {k}: {violations[-1]}, {sim.status}"
    assert np.max(violations) <= test_seven_robots.MISFIT
    assert np.quantile(violations, 0.9) <= test_seven_robots.LAW


@pytest.mark.parametrize("lcp", [{}], indirect=True, ids=["boxed"])
@pytest.mark.parametrize("name", robots.NAMES)
def test_parameters_of_robots(lcp, name):
    test_parameters.test_robots(name)


@pytest.mark.parametrize("lcp", [{"gyroscopic": "explicit"}], indirect=True, ids=["boxed"])
@pytest.mark.parametrize("build", TRAJECTORIES, ids=lambda f: f.__name__)
def test_rollouts(lcp, build):
    """Contacts that begin, slide, stick and end on the way: differences of the whole rollout, forward against reverse.

    Explicit: otherwise the quadruped's foot is 1e-9 m from distance 0 in step 196, the kink of the bias there (docs/conventions.md).
    """
    test_rollout_gradients.test_derivatives_against_differences(build)


def test_batches_have_the_bits_of_single_simulators(lcp):
    model, q, v = CONTACT_SCENES[0](np.random.default_rng(4))
    options = dict(contact="lcp", timestep=2e-3)
    batch = coulomb.BatchSimulator(model, num_envs=3, num_threads=2, **options)
    Q, V = np.tile(q, (3, 1)), v * np.array([[1.0], [0.5], [-1.0]])
    Q1, V1 = batch.step(Q, V)
    g = batch.vjp(np.ones_like(V), V, wrt=["friction/box"])
    for i in range(3):
        sim = Simulator(model, **options)
        q1, v1 = sim.step(Q[i], V[i])
        assert np.array_equal(q1, Q1[i]) and np.array_equal(v1, V1[i])
        one = sim.vjp(np.ones_like(v), V[i], wrt=["friction/box"])
        assert np.array_equal(one.v, g.v[i]) and np.array_equal(one["friction/box"], g["friction/box"][i])


@pytest.mark.parametrize("build", TOUCHING, ids=lambda f: f.__name__)
def test_impulses(lcp, build):
    """d(impulse) along the frame's rows, which turn with the contact, against differences: to 1e-6, or as well as those of two sizes agree
    with one another, which has to be better than 1e-4."""
    compared = 0
    for seed in range(6):
        random = np.random.default_rng(seed)
        model, q, v = build(random)
        sim = coulomb.Simulator(model, timestep=2e-3)
        sim.step(q, v)
        sim.freeze_memory(True)
        sim.step(q, v)
        base, d = signature(sim), sim.derivatives()
        if d.ambiguous or not sim.contacts or min(c.margin for c in sim.contacts) < 1e-4:
            continue
        analytic, numeric, smooth = d.dlambda("v"), ([], []), True
        rank = np.linalg.matrix_rank(analytic)
        for k in range(model.nv):
            columns = []
            for h in (2e-4, -2e-4, 1e-4, -1e-4):
                sim.step(q, v + h * np.eye(model.nv)[k])
                smooth = smooth and signature(sim) == base
                columns.append(np.concatenate([c.frame @ c.impulse for c in sim.contacts]) if smooth else None)
            if not smooth:
                break
            numeric[0].append((columns[0] - columns[1]) / 4e-4)
            numeric[1].append((columns[2] - columns[3]) / 2e-4)
        if not smooth or rank == 0:
            continue
        compared += 1
        coarse, fine = (np.array(columns).T for columns in numeric)
        size, unknown = np.linalg.norm(fine), np.linalg.norm(fine - coarse)
        assert unknown <= 1e-4 * size, f"seed {seed}: {unknown / size}"
        off = np.linalg.norm(analytic - (4 * fine - coarse) / 3)
        assert off <= max(1e-6 * size, unknown), f"seed {seed}: {off / size}, unknown {unknown / size}"
    assert compared >= 1
