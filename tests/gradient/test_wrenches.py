"""Wrenches on bodies (fext) as inputs: of a step, along a trajectory and of a batch, in reverse mode against differences, with every
stepper; and the joint forces they must equal.
"""

import numpy as np
import pytest

import coulomb
from scenes.smooth import ball_joint, robot_in_contact, sliding_box

OPTIONS = {
    "ncp": dict(),
    "lcp": dict(contact="lcp", friction_directions=4),
    "split": dict(continuous_collision=True),
    "penalty": dict(contact="penalty", contact_stiffness=1e4, contact_damping=1e2),
    "bdf1": dict(stepper="bdf1", contact_stiffness=1e4),
    "bdf2": dict(stepper="bdf2", contact_stiffness=1e4),
}
SCENES = {f.__name__: f for f in (sliding_box, ball_joint, robot_in_contact)}


def inputs(build, seed=0, steps=None):
    model, q, v = SCENES[build]()
    random = np.random.default_rng(seed)
    shape = (model.num_bodies, 6) if steps is None else (steps, model.num_bodies, 6)
    return model, q, v, 0.1 * random.normal(size=shape), random


def fourth_order(f, h):
    """Central difference of fourth order at 0."""
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


@pytest.mark.parametrize("build", SCENES)
@pytest.mark.parametrize("options", OPTIONS)
def test_a_step_against_differences(build, options):
    model, q, v, fext, random = inputs(build)
    sim = coulomb.Simulator(model, tolerance=1e-14, **OPTIONS[options])
    wq, wv = random.normal(size=(2, model.nv))

    def loss(wrench):
        sim.reset()
        q1, v1 = sim.step(q, v, fext=wrench)
        return wq @ model.difference(q, q1) + wv @ v1, q1

    _, q1 = loss(fext)
    dq1 = np.linalg.solve(tangent_of_difference(model, q, q1).T, wq)
    g = sim.vjp(dq1, wv, wrt=["fext"])
    assert g.fext.shape == (model.num_bodies, 6) and np.array_equal(g.fext, g["fext"]) and not g.fext[0].any()
    for body in range(1, model.num_bodies):
        for k in range(6):
            e = np.zeros_like(fext)
            e[body, k] = 1
            number = fourth_order(lambda s, e=e: loss(fext + s * e)[0], 1e-3)
            assert abs(g.fext[body, k] - number) < 1e-9 + 1e-7 * abs(number), (body, k)


@pytest.mark.parametrize("options", ["ncp", "lcp", "split", "bdf1", "bdf2"])
def test_parameters_of_bodies_that_are_pulled(options):
    """Wrenches act at centres of mass: where these are, and ten inertial parameters that they are the ratio of, turn the pull."""
    model, q, v, fext, random = inputs("robot_in_contact")
    fext = 50 * fext
    names = [f"{kind}/{body}" for kind in ("mass", "com", "inertia") for body in ("arm", "hand")]
    wv = random.normal(size=model.nv)

    def loss(changes):
        values = {name: model.parameters()[name].value + change for name, change in changes.items()}
        sim = coulomb.Simulator(model.with_parameters(values), tolerance=1e-14, **OPTIONS[options])
        return wv @ sim.step(q, v, fext=fext)[1]

    sim = coulomb.Simulator(model, tolerance=1e-14, **OPTIONS[options])
    sim.step(q, v, fext=fext)
    g = sim.vjp(np.zeros(model.nv), wv, wrt=names)
    d = sim.derivatives(wrt=names)
    for name in names:
        np.testing.assert_allclose(wv @ d[name][model.nv :], g[name], rtol=1e-9, atol=1e-12)
        for k, slope in enumerate(g[name]):
            e = np.eye(len(g[name]))[k]
            number = fourth_order(lambda s, name=name, e=e: loss({name: s * e}), 1e-5)
            assert abs(slope - number) < 1e-7 + 1e-6 * abs(number), (name, k)


def tangent_of_difference(model, q, q1):
    """D with difference(q, q1 (+) w) = difference(q, q1) + D w."""
    columns = []
    for e in np.eye(model.nv):
        f = lambda s, e=e: model.difference(q, model.integrate(q1, s * e))  # noqa: E731
        columns.append(fourth_order(f, 1e-3))
    return np.linalg.inv(np.array(columns).T)


@pytest.mark.parametrize("build", SCENES)
def test_it_is_the_motion_of_the_centre_of_mass(build):
    """f_bar = J tau_bar, with the Jacobian at the centre of mass."""
    model, q, v, fext, random = inputs(build)
    sim = coulomb.Simulator(model)
    sim.step(q, v, fext=fext)
    g = sim.vjp(*random.normal(size=(2, model.nv)), wrt=["fext", "gravity"])
    for body in range(1, model.num_bodies):
        J = model.point_jacobian(q, body, model.body_com[body])
        assert np.allclose(g.fext[body], J @ g.tau, rtol=1e-12, atol=1e-15)
    assert np.allclose(g["gravity"], model.body_mass @ g.fext[:, :3], rtol=1e-10, atol=1e-14)
    assert sim.vjp(np.zeros(model.nv), np.zeros(model.nv)).fext is None


@pytest.mark.parametrize("options", OPTIONS)
def test_a_rollout_against_differences_along_a_direction(options):
    """The Taylor remainder of the loss along a random direction falls with the square of the step."""
    steps = 12
    model, q, v, fext, random = inputs("robot_in_contact", steps=steps)
    sim = coulomb.Simulator(model, tolerance=1e-14, **OPTIONS[options])
    W = random.normal(size=(2, steps + 1, model.nv))
    outputs = {"position/hand": random.normal(size=(steps + 1, 3))}

    def loss(wrenches):
        r = sim.rollout(q, v, steps=steps, fext=wrenches)
        return (W[1] * r.v).sum() + (outputs["position/hand"] * r.output("position/hand")).sum()

    r = sim.rollout(q, v, steps=steps, fext=fext)
    g = r.vjp(None, W[1], ["fext"], outputs=outputs)
    assert g.fext.shape == (steps, model.num_bodies, 6) and np.array_equal(g["fext"], g.fext)
    direction = random.normal(size=fext.shape)
    slope = (g.fext * direction).sum()
    assert abs(fourth_order(lambda s: loss(fext + s * direction), 1e-3) / slope - 1) < 1e-6
    sizes = np.array([4e-2, 2e-2, 1e-2]) if options != "split" else np.array([4e-3, 2e-3, 1e-3])
    remainders = [abs(loss(fext + s * direction) - loss(fext) - s * slope) for s in sizes]
    assert remainders[0] > 1e-12 and np.polyfit(np.log(sizes), np.log(remainders), 1)[0] > 1.8


@pytest.mark.parametrize("keep", [True, False])
def test_kept_steps_and_steps_run_again_agree(keep):
    model, q, v, fext, random = inputs("robot_in_contact", steps=9)
    W = random.normal(size=(2, 10, model.nv))
    found = [
        coulomb.Simulator(model).rollout(q, v, steps=9, fext=fext, keep_factors=k).vjp(*W, ["fext"]).fext
        for k in (True, keep)
    ]
    assert np.array_equal(*found)


def test_a_batch_is_every_row_by_itself():
    steps, n = 7, 3
    model, q, v, _, random = inputs("robot_in_contact")
    Q, V = np.tile(q, (n, 1)), np.tile(v, (n, 1))
    fext = 0.1 * random.normal(size=(n, steps, model.num_bodies, 6))
    W = random.normal(size=(2, n, steps + 1, model.nv))
    of_tip = random.normal(size=(n, steps + 1, 3))
    batch = coulomb.BatchSimulator(model, n)
    r = batch.rollout(Q, V, fext=fext)
    g = r.vjp(*W, wrt=["fext"], outputs={"contact_force/trunk": of_tip})
    singles = [coulomb.Simulator(model).rollout(q, v, fext=f) for f in fext]
    assert np.array_equal(r.v, [s.v for s in singles])
    for i, single in enumerate(singles):
        alone = single.vjp(W[0, i], W[1, i], ["fext"], outputs={"contact_force/trunk": of_tip[i]})
        assert np.array_equal(g.fext[i], alone.fext) and np.array_equal(g["fext"], g.fext)
    batch.reset()  # the rollout left the memory of its last step
    batch.step(Q, V, None, None, fext[:, 0])
    g = batch.vjp(W[0, :, 0], W[1, :, 0], wrt=["fext"])
    sim = coulomb.Simulator(model)
    sim.step(q, v, fext=fext[1, 0])
    assert np.array_equal(g.fext[1], sim.vjp(W[0, 1, 0], W[1, 1, 0], ["fext"]).fext)
    assert batch.vjp(W[0, :, 0], W[1, :, 0]).fext is None and r.vjp(*W).fext is None


def test_forces_feel_wrenches():
    """The contact force of a block that is pushed down, along a rollout."""
    model, q, v, fext, random = inputs("robot_in_contact", steps=5)
    sim = coulomb.Simulator(model, tolerance=1e-14)
    w = random.normal(size=(6, 3))

    def loss(wrenches):
        return (w * sim.rollout(q, v, fext=wrenches).output("contact_force/trunk")).sum()

    g = sim.rollout(q, v, fext=fext).vjp(wrt=["fext"], outputs={"contact_force/trunk": w})
    direction = random.normal(size=fext.shape)
    number = fourth_order(lambda s: loss(fext + s * direction), 1e-3)
    assert abs((g.fext * direction).sum() / number - 1) < 1e-6


def test_wrong_ones_are_named():
    model, q, v, fext, _ = inputs("sliding_box", steps=4)
    sim, batch = coulomb.Simulator(model), coulomb.BatchSimulator(model, 2)
    bad = fext.copy()
    bad[2, 1, 3] = np.nan
    with pytest.raises(ValueError, match=r"fext\[2, 1, 3\] is nan"):
        sim.rollout(q, v, fext=bad)
    with pytest.raises(ValueError, match=r"environment 1: fext\[2, 1, 3\] is nan"):
        batch.rollout(np.stack([q, q]), np.stack([v, v]), fext=np.stack([fext, bad]))
    with pytest.raises(ValueError, match=r"fext: expected shape \(\?|fext: expected shape"):
        sim.rollout(q, v, fext=fext[:, :1])
    with pytest.raises(ValueError, match="steps: got 3, but fext has 4 rows"):
        sim.rollout(q, v, steps=3, fext=fext)
    smoothed = coulomb.Simulator(model, gradient="smoothed_step", gradient_samples=2)
    smoothed.step(q, v)
    with pytest.raises(RuntimeError, match="smoothed_step"):
        smoothed.vjp(np.zeros(6), np.zeros(6), ["fext"])


def test_forces_by_wrenches_are_not_changed_by_the_bounce():
    # It changes positions by the state alone.
    model, q, v = sliding_box()
    output = next(o for o in model.force_outputs() if o.startswith("contact_force"))
    gradients = []
    for mode in ("exact", "approximate_bounce"):
        sim = coulomb.Simulator(model, gradient=mode)
        sim.step(q, v)
        assert sim.output(output).any()
        gradients.append(sim.vjp(wrt=["fext"], outputs={output: np.ones(3)}).fext)
    assert gradients[0].any() and np.array_equal(*gradients)
