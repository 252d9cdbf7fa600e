"""Contacts and impulses that a rollout of semi-implicit steps keeps for its derivatives: the bits of steps that are run again, within the
memory budget."""

import os
import resource

import numpy as np
import pytest

import coulomb
from scenes import contacts, heaps
from scenes.trajectories import TRAJECTORIES, arm_falls, quadruped, thrown_box

STEPS = 60
OPTIONS = {
    "exact": {},
    "lcp": {"contact": "lcp", "friction_directions": 4},
    "at ties": {"gradient": "complementarity_aware"},
    "bounces": {"gradient": "approximate_bounce"},
    "cold": {"warm_start": False},
}
RUN_AGAIN = {
    "split": {"continuous_collision": True},
    "smoothed step": {"gradient": "smoothed_step", "gradient_samples": 4},
    "smoothed collision": {"gradient": "smoothed_collision", "gradient_samples": 4},
}


def squeezed():
    """A box in a gap that is too narrow: both walls would have it moved, which contradicts. A ball on top, another one beside."""
    scene = coulomb.Scene(gravity=(0, 0, -9.81))
    scene.add_ground(friction=0.5)
    for x in (-0.199, 0.199):
        scene.add_box((0.2, 0.5, 0.5), fixed=True, position=(x, 0, 0.25), friction=0.4)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.0999), friction=0.6, name="stuck")
    scene.add_sphere(0.05, mass=0.3, position=(0.01, 0.02, 0.26), friction=0.5)
    scene.add_sphere(0.05, mass=0.3, position=(0.6, 0, 0.06), friction=0.5)
    model = scene.build()
    q, v = model.neutral()
    return model, q, v, np.zeros((STEPS, 0)), 2e-3


def still(build):
    def out():
        model, q, v = build(np.random.default_rng(0))
        return model, q, v, 0.1 * np.random.default_rng(1).normal(size=(STEPS, model.nu)), 2e-3

    out.__name__ = build.__name__
    return out


SCENES = [*TRAJECTORIES, *map(still, contacts.CONTACT_SCENES), squeezed]
scenes = pytest.mark.parametrize("build", SCENES, ids=lambda f: f.__name__)


def simulator(build, **options):
    model, q, v, U, h = build()
    model = model.with_parameters({"timestep": [h]})
    return coulomb.Simulator(model, **options), q, v, U


def rollouts(build, first=0, options=(), **keep):
    """With steps kept, and without."""
    sim, q, v, U = simulator(build, **dict(options))
    return [sim.rollout(q, v, U[first : first + STEPS], keep_factors=kept, **keep) for kept in (True, False)]


def some_parameters(model):
    """One of each kind."""
    names = {}
    for name in model.parameters():
        names.setdefault(name.split("/")[0], name)
    return list(names.values())


def gradients(r, wrt=(), outputs=None):
    dQ, dV = np.random.default_rng(2).normal(size=(2, r.steps + 1, r.model.nv))
    g = r.vjp(dQ, dV, wrt=list(wrt), outputs=outputs)
    return [g.q0, g.v0, g.u, g.tau, np.array(g.ambiguous), *(g[name] for name in wrt)]


def same(a, b):
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@scenes
def test_same_bits_with_and_without(build, options):
    kept, not_kept = rollouts(build, options=options)
    assert np.array_equal(kept.q, not_kept.q) and np.array_equal(kept.v, not_kept.v)
    assert kept.memory > not_kept.memory + STEPS * 8 * kept.model.nv
    wrt = some_parameters(kept.model)
    expected = gradients(not_kept, wrt)
    assert np.any(expected[0])
    assert same(gradients(kept, wrt), expected)
    without = gradients(not_kept)  # how many steps are ambiguous may depend on the parameters asked for
    assert same(gradients(kept), without) and same(without[:4], expected[:4])
    tangent = dict(dq0=np.ones(kept.model.nv), dU=np.ones((STEPS, kept.model.nu)))
    assert same(kept.jvp(**tangent), not_kept.jvp(**tangent))
    a, b = (r.jacobian(wrt=["q0", "v0", wrt[0]], all_states=False) for r in (kept, not_kept))
    assert same(list(a.values()), list(b.values()))


def test_the_scenes_have_what_they_should():
    """Modes of contacts, and constraints that contradict one another."""
    assert any(status.relaxation > 0 for status in rollouts(squeezed)[0].status)
    modes = set()
    for build in SCENES:
        sim, q, v, U = simulator(build)
        for u in U[:STEPS]:
            q, v = sim.step(q, v, u)
            modes |= {contact.mode for contact in sim.contacts}
    assert {"separating", "sticking", "sliding"} <= modes


@pytest.mark.parametrize(("build", "body"), [(quadruped, "fr_shank"), (squeezed, "stuck")])
def test_forces_of_contacts(build, body):
    kept, not_kept = rollouts(build)
    name = f"contact_force/{body}"
    assert np.any(kept.output(name)) and np.array_equal(kept.output(name), not_kept.output(name))
    weights = {name: np.ones((STEPS + 1, 3))}
    wrt = some_parameters(kept.model)
    expected = gradients(not_kept, wrt, weights)
    assert same(gradients(kept, wrt, weights), expected)
    assert not same(gradients(kept, wrt), expected)


@pytest.mark.parametrize("options", RUN_AGAIN.values(), ids=RUN_AGAIN)
def test_steps_that_are_run_again(options):
    """Those of other steppers, and gradients that look at more than the step."""
    kept, not_kept = rollouts(thrown_box, first=20, options=options)
    assert kept.memory == not_kept.memory
    assert same(gradients(kept), gradients(not_kept))


def test_a_heap_that_is_run_again():
    """What a heap remembers of its compliance is part of a checkpoint, too: without it step 8 had other bits."""
    model = coulomb.load(heaps.pile(50))
    sim = coulomb.Simulator(model, timestep=5e-3)
    q, v = model.neutral()
    for _ in range(140):
        q, v = sim.step(q, v)
    kept = sim.rollout(q, v, steps=16)
    run_again = sim.rollout(q, v, steps=16, checkpoint_every=8, keep_factors=False)
    assert same(gradients(kept), gradients(run_again))


@pytest.mark.parametrize("every", [None, 1, 7, 64])
def test_the_budget_holds(every):
    """What does not fit is run again; nothing changes but the memory."""
    free, none = rollouts(quadruped, **({"checkpoint_every": every} if every else {}))
    wrt = ["mass/trunk", "friction/ground"]
    expected = gradients(none, wrt)
    assert same(gradients(free, wrt), expected)
    if every:
        return
    sim, q, v, U = simulator(quadruped)
    for part in (0.1, 0.5, 0.9):
        budget = none.memory + part * (free.memory - none.memory)
        some = sim.rollout(q, v, U[:STEPS], memory_budget=budget)
        assert 0.8 * budget < some.memory <= budget
        for _ in range(2):
            assert same(gradients(some, wrt), expected)
        assert same(list(some.jvp(dv0=v + 1)), list(none.jvp(dv0=v + 1)))
        assert np.array_equal(some.output("position/trunk"), none.output("position/trunk"))


def test_a_step_that_overflowed_has_no_derivative():
    model, q, v, U, h = arm_falls()
    tau = np.zeros((STEPS, model.nv))
    tau[20] = 1e308
    sim = coulomb.Simulator(model, timestep=h)
    for keep in (True, False):
        r = sim.rollout(q, v, U[:STEPS], tau=tau, keep_factors=keep)
        with pytest.raises(RuntimeError, match="step 2[01]"):
            r.vjp(dV=np.ones((STEPS + 1, model.nv)))


def batch_rollout(model, **options):
    n = 6
    random = np.random.default_rng(3)
    q, v = model.neutral()
    q[2] -= 0.033
    q[7:] = np.tile([0.7, -1.4], 4)
    batch = coulomb.BatchSimulator(model, n, 2, timestep=2e-3)
    V0 = v + 0.2 * random.normal(size=(n, model.nv))
    U = np.tile([0.7, -1.4], 4) + 0.1 * random.normal(size=(n, STEPS, model.nu))
    return batch.rollout(np.tile(q, (n, 1)), V0, U, **options)


def test_batches():
    model = quadruped()[0]
    wrt = ["mass/trunk", "friction/ground", "size/fl_foot"]
    dQ, dV = np.random.default_rng(4).normal(size=(2, 6, STEPS + 1, model.nv))
    W = {"contact_force/fl_foot": np.ones((6, STEPS + 1, 3))}

    def result(r):
        g, f = r.vjp(dQ, dV, wrt), r.vjp(dQ, dV, outputs=W)
        assert g.valid.all()
        return [g.q0, g.v0, g.u, g.tau, *(g[name] for name in wrt), f.q0, f.u, *r.jvp(dV0=dV[:, 0])]

    none = batch_rollout(model, keep_factors=False)
    expected, free = result(none), batch_rollout(model)
    assert free.memory > none.memory + 1000 * 6 * STEPS
    assert same(result(free), expected)
    for part in (0.2, 0.7):
        some = batch_rollout(model, memory_budget=part * (free.memory - none.memory))
        assert none.memory < some.memory <= none.memory + part * (free.memory - none.memory)
        assert same(result(some), expected)
    assert batch_rollout(model, derivatives=False).memory < 1000
    with pytest.raises(ValueError, match="memory_budget: got 0"):
        batch_rollout(model, memory_budget=0)


def test_batches_of_implicit_steps_keep_their_factors():
    model = quadruped()[0]
    q, v = model.neutral()
    batch = coulomb.BatchSimulator(model, 3, 1, timestep=2e-3, stepper="bdf1")
    Q0, V0 = np.tile(q, (3, 1)), np.tile(v, (3, 1))
    kept, not_kept = (batch.rollout(Q0, V0, steps=STEPS, keep_factors=keep) for keep in (True, False))
    assert kept.memory > not_kept.memory + 3 * STEPS * model.nv**2 * 8
    a, b = (r.vjp(dV=np.ones((3, STEPS + 1, model.nv))) for r in (kept, not_kept))
    assert same([a.q0, a.v0, a.u], [b.q0, b.v0, b.u])


def test_environments_with_models_of_their_own():
    """Workspaces go from one environment's sweep to the next's only where the model is the same."""
    model = quadruped()[0]
    n, radii = 4, np.array([[0.02], [0.03], [0.02], [0.025]])
    q, v = model.neutral()
    q[2] -= 0.028
    q[7:] = np.tile([0.7, -1.4], 4)
    V0 = np.tile(v, (n, 1))
    dV = np.ones((n, STEPS + 1, model.nv))
    results = []
    for keep in (True, False):
        batch = coulomb.BatchSimulator(model, n, 1, timestep=2e-3, parameters={"size/fl_foot": radii})
        r = batch.rollout(np.tile(q, (n, 1)), V0, steps=STEPS, keep_factors=keep)
        g = r.vjp(dV=dV, wrt=["size/fl_foot"])
        results.append([g.q0, g.v0, g.u, g["size/fl_foot"]])
    assert same(*results)
    for i in range(n):
        sim = coulomb.Simulator(model.with_parameters({"size/fl_foot": radii[i]}), timestep=2e-3)
        g = sim.rollout(q, v, steps=STEPS).vjp(dV=dV[i], wrt=["size/fl_foot"])
        assert same([x[i] for x in results[0]], [g.q0, g.v0, g.u, g["size/fl_foot"]])


def test_nothing_is_left_behind():
    """Rollouts and gradients again and again take no more memory."""
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("no /proc")
    model = quadruped()[0]

    def megabytes():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / 1e6

    def run(times):
        for _ in range(times):
            r = batch_rollout(model)
            r.vjp(dV=np.ones((6, STEPS + 1, model.nv)))
        return r.memory / 1e6

    # The heap of a large process takes a while to settle; what leaks grows on and on.
    run(10)
    grown = []
    while len(grown) < 10 and not (grown and grown[-1] < 1):
        before = megabytes()
        one = run(60)
        assert one > 0.3
        grown.append((megabytes() - before) / one)
    assert grown[-1] < 1, f"in rollouts, by sixty: {grown}"
