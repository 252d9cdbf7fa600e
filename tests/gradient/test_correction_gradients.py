"""Derivatives of steps whose position corrections are bounded (docs/theory/correction.md): by state, forces and parameters, against differences,
and reverse mode against forward mode. Kinks are flagged."""

import numpy as np
import pytest

import coulomb
from scenes.mechanisms import chain, random_mechanism, slider_crank, tied_hinges
from scenes.slots import slot

H = 2e-3


def stuck(model, steps, **options):
    """A state after some steps from zero, and its simulator."""
    sim = coulomb.Simulator(model, timestep=H, **options)
    q, v = model.q_neutral, np.zeros(model.nv)
    for _ in range(steps):
        q, v = sim.step(q, v)
    return q, v


def differences(f, n, size):
    """Columns of f's derivative at 0, of fourth order."""
    columns = []
    for i in range(n):
        at = [f(size * k * np.eye(n)[i]) for k in (1, -1, 2, -2)]
        columns.append((8 * (at[0] - at[1]) - (at[2] - at[3])) / (12 * size))
    return np.array(columns).T


def step_of(model, q, v, tau, **options):
    sim = coulomb.Simulator(model, timestep=H, **options)
    return np.concatenate(sim.step(q, v, tau=tau))


def compare(model, q, v, tau=None, names=(), size=1e-6, tolerance=1e-6, **options):
    """Every column against differences, and the products of both modes. Returns the status."""
    tau = np.zeros(model.nv) if tau is None else tau
    sim = coulomb.Simulator(model, timestep=H, **options)
    q1, v1 = sim.step(q, v, tau=tau)
    status, d = sim.status, sim.derivatives(wrt=list(names))
    assert not d.ambiguous

    def moved(dq=0, dv=0, dtau=0, other=model):
        out = step_of(other, model.integrate(q, dq + np.zeros(model.nv)), v + dv, tau + dtau, **options)
        return np.concatenate([model.difference(q1, out[: model.nq]), out[model.nq :] - v1])

    nv = model.nv
    blocks = [
        (d.A[:, :nv], differences(lambda x: moved(dq=x), nv, size)),
        (d.A[:, nv:], differences(lambda x: moved(dv=x), nv, size)),
        (d.B_tau, differences(lambda x: moved(dtau=x), nv, size / H)),
    ]
    for name in names:
        value = model.parameters()[name].value
        scale = size * (1 + np.abs(value).max())

        def changed(x, name=name, value=value):
            if name == "timestep":
                return moved_in_time(model, q, v, tau, q1, v1, value, x, **options)
            return moved(other=model.with_parameters({name: value + x.reshape(value.shape)}))

        blocks.append((d[name], differences(changed, value.size, scale)))
    for exact, found in blocks:
        np.testing.assert_allclose(exact, found, atol=tolerance * max(1.0, np.abs(found).max()))

    # The adjoint identity, of everything at once.
    rng = np.random.default_rng(1)
    dq1, dv1 = rng.normal(size=nv), rng.normal(size=nv)
    bar = sim.vjp(dq1, dv1, wrt=list(names))
    left = np.concatenate([dq1, dv1]) @ np.concatenate([exact for exact, _ in blocks], axis=1)
    right = np.concatenate([bar.q, bar.v, bar.tau] + [np.ravel(bar[name]) for name in names])
    np.testing.assert_allclose(left, right, atol=1e-9 * max(1.0, np.abs(left).max()))
    return status


def moved_in_time(model, q, v, tau, q1, v1, value, x, **options):
    sim = coulomb.Simulator(model, timestep=H + float(x[0]), **options)
    a, b = sim.step(q, v, tau=tau)
    return np.concatenate([model.difference(q1, a), b - v1])


@pytest.mark.parametrize("steps", [0, 100, 400])
@pytest.mark.parametrize("beyond", [0.01, 0.1])
def test_a_crank_against_a_limit_out_of_reach(beyond, steps):
    model = slider_crank(beyond, gravity=9.81)
    q, v = stuck(model, steps)
    model = model.with_parameters(
        {n: p.value + 0.01 for n, p in model.parameters().items() if n.split("/")[0] in ("armature", "joint_damping")}
    )
    kinds = "mass inertia com armature joint_damping joint_limits joint_placement gravity timestep".split()
    names = [name for name in model.parameters() if name.split("/")[0] in kinds]
    status = compare(model, q, v, 0.1 * np.ones(3), names)
    assert steps == 0 or not status.converged


def test_a_chain():
    model = chain(0.05, gravity=9.81)
    q, v = stuck(model, 300)
    assert not compare(model, q, v).converged


def acting(model, q, v):
    """Is the bound of this step in force? It is what takes the correction below what the errors ask for."""
    sim = coulomb.Simulator(model, timestep=H)
    sim.step(q, v)
    return "out of reach" in sim.status.reason


def test_random_mechanisms():
    """Connections, welds and ties that start violated, at rest and in motion; at kinks nothing is compared."""
    compared = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        model, q = random_mechanism(rng)
        v = rng.normal(size=model.nv) * (seed % 2)
        sim = coulomb.Simulator(model, timestep=H)
        sim.step(q, v)
        if sim.derivatives().ambiguous or not acting(model, q, v):
            continue
        compare(model, q, v, tolerance=3e-6)
        compared += 1
    assert compared > 10


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize("steps", [120, 200])
def test_levels_of_a_solution(steps, contact):
    """A box lies on a table that the slide carries: contacts, which levels solve, in the island of the corrections."""
    model = slider_crank(0.05, gravity=9.81, loaded=True)
    q, v = stuck(model, steps, contact=contact)
    sim = coulomb.Simulator(model, timestep=H, contact=contact)
    sim.step(q, v)
    assert any(c.impulse @ c.normal > 0 for c in sim.contacts)

    # Smaller differences: those of a body that lies would reach the next change of slope, at a gap of 1e-6 m.
    kinds = "mass inertia joint_limits gravity timestep".split()
    names = [name for name in model.parameters() if name.split("/")[0] in kinds]
    status = compare(model, q, v, names=names, size=1e-7, contact=contact)
    assert "out of reach" in status.reason


def test_where_damping_begins_the_derivative_is_ambiguous():
    """A limit moves the first hinge, and with it the second, whose inertia grows until that is more than the bound allows."""
    model = tied_hinges(".01 1", "-1 1")
    wanted = 0.1 * 0.01 / H

    def at(armature):
        sim = coulomb.Simulator(model.with_parameters({"armature/hinge1": np.array([armature])}), timestep=H)
        _, v = sim.step(np.zeros(2), np.zeros(2))
        return v[0] > wanted * (1 - 1e-9), sim.derivatives().ambiguous

    low, high = 0.0, 1e4
    assert at(low) == (True, False) and at(high) == (False, False)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if at(middle)[0] else (low, middle)
    assert at(low) == (True, True) and at(high) == (False, True)
    assert at(low * (1 - 1e-6)) == (True, False) and at(high * (1 + 1e-6)) == (False, False)


def test_a_rollout_recalls_what_was_bounded():
    """Its reverse product against differences of the whole, through steps that are kept and evaluated again."""
    model = slider_crank(0.05, gravity=9.81)
    q, v = stuck(model, 80)

    def end(x):
        rollout = coulomb.Simulator(model, timestep=H).rollout(model.integrate(q, x[:3]), v + x[3:], steps=20)
        return rollout, np.concatenate([rollout.q[-1], rollout.v[-1]])

    rollout, _ = end(np.zeros(6))
    assert not rollout.converged
    numeric = differences(lambda x: end(x)[1], 6, 1e-7)
    bar = np.random.default_rng(0).normal(size=6)
    q_bar, v_bar = np.zeros_like(rollout.q), np.zeros_like(rollout.v)
    q_bar[-1], v_bar[-1] = bar[:3], bar[3:]
    gradient = rollout.vjp(q_bar, v_bar)
    wanted = bar @ numeric
    np.testing.assert_allclose(np.r_[gradient.q0, gradient.v0], wanted, atol=1e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize("box", [False, True])
@pytest.mark.parametrize(("walls", "balls"), [(2, 1), (3, 1), (2, 3)])
def test_smooth_walls_that_almost_face_each_other(walls, balls, box, contact):
    """One-sided rows: the walls of a slot or a funnel, overlapping by different amounts."""
    if box and (walls, balls) != (2, 1):
        return
    compared = 0
    for seed, angle in enumerate([0.03, 0.1, 0.15]):
        rng = np.random.default_rng(seed)
        model = slot(angle, 1e-3, walls=walls, balls=balls, box=box, friction=0.01)
        small = np.tile([2e-4, 2e-4, 2e-4, 1e-3, 1e-3, 1e-3], balls)
        q = model.integrate(model.q_neutral, small * rng.normal(size=model.nv))
        v = 1e-3 * rng.normal(size=model.nv)
        sim = coulomb.Simulator(model, timestep=H, contact=contact)
        sim.step(q, v)
        assert "out of reach" in sim.status.reason
        if sim.derivatives().ambiguous:
            continue
        kinds = "mass inertia com size geometry_placement friction gravity timestep".split()
        names = [name for name in model.parameters() if name.split("/")[0] in kinds]
        compare(model, q, v, names=names, size=1e-7, tolerance=3e-6, contact=contact)
        compared += 1
    assert compared > 0


def test_where_the_bound_of_smooth_walls_begins_the_derivative_is_ambiguous():
    """The steeper the walls of a slot, the less moves the ball; the bound begins where its speed is not what one wall asks for."""
    overlap = 1e-3

    def at(angle):
        model = slot(angle, overlap, gravity=0)
        sim = coulomb.Simulator(model, timestep=H)
        _, v = sim.step(model.q_neutral, np.zeros(6))
        free = 0.1 * overlap / H / np.sin(angle)
        return v[2] > free * (1 - 1e-12), sim.derivatives().ambiguous

    low, high = 0.1, 0.6
    assert at(low) == (False, False) and at(high) == (True, False)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if at(middle)[0] else (middle, high)
    assert at(high)[1] and at(low)[1]
    assert at(low - 1e-6) == (False, False) and at(high + 1e-6) == (True, False)


def test_where_a_wall_joins_the_correction_the_derivative_is_ambiguous():
    """A third wall below: its part in the correction begins where the others move the ball into it as fast as it may come."""
    found = 0
    model = slot(0.03, 1e-3, walls=3, gravity=0)

    def at(x):
        q = model.q_neutral.copy()
        q[0] = x
        sim = coulomb.Simulator(model, timestep=H)
        _, v = sim.step(q, np.zeros(6))
        return v, sim.derivatives()

    # Along x the slope of v has corners: between samples of another slope there is one, found by bisection, and flagged.
    places = np.linspace(-4e-3, 4e-3, 81)
    slopes = [at(x)[1].A[6:9, 0] for x in places]
    for a, b, s, t in zip(places[:-1], places[1:], slopes[:-1], slopes[1:]):
        low, high, s_low, s_high = a, b, s, t
        for _ in range(60):
            middle = 0.5 * (low + high)
            s_middle = at(middle)[1].A[6:9, 0]
            if np.abs(s_middle - s_low).max() > np.abs(s_middle - s_high).max():
                high, s_high = middle, s_middle
            else:
                low, s_low = middle, s_middle
        if np.abs(s_high - s_low).max() > 1e-3 * np.abs(slopes).max():
            found += 1
            assert at(low)[1].ambiguous or at(high)[1].ambiguous
    assert found > 0


# Two branches that two cords pull together, far beyond their limits: the correction depends on what acts at the end of the step.
BRANCHES = """<mujoco><option timestep="0.002"/><worldbody><body><freejoint/><geom size=".05" mass="1"/><site name="a" pos=".02 -.09 .02"/>
  <body pos=".12 0 0"><joint name="slide" type="slide" axis="1 .2 .3"/><geom size=".04" mass=".5"/><site name="c" pos=".1 -.2 .1"/></body>
  <body pos="0 .1 0"><joint name="arm" axis="0 .4 1"/><geom type="box" size=".05 .04 .03" pos=".02 .03 0" mass=".7"/><site name="d" pos="-.08 0 .13"/></body>
  </body></worldbody><tendon><spatial range="-1 .05" limited="true"><site site="d"/><site site="a"/><site site="c"/></spatial>
  <fixed range="-1 -.3" limited="true"><joint joint="slide" coef=".9"/><joint joint="arm" coef=".2"/></fixed></tendon>
  <actuator>{actuators}</actuator></mujoco>"""
AT_THE_END = {
    "velocity": '<velocity name="x" joint="arm" kv=".3"/>',
    "position": '<position name="x" joint="arm" kp="3" kv=".2"/>',
    "damper": '<damper name="x" joint="arm" kv=".5" ctrlrange="0 2"/><motor joint="arm"/>',
    "gain of the speed": '<general name="x" joint="arm" gaintype="affine" gainprm="1 .3 -.4" biastype="affine" biasprm=".1 -2 -.3"/>',
}  # fmt: skip


@pytest.mark.parametrize("rule", ["implicit_velocity", "implicit"])
@pytest.mark.parametrize("seed", [4, 5])
@pytest.mark.parametrize("actuators", AT_THE_END.values(), ids=AT_THE_END.keys())
def test_forces_at_the_end_of_the_step(actuators, seed, rule):
    """By state, controls and gains of servos, whose damping is in the mass matrix that bounds the correction."""
    model = coulomb.load(BRANCHES.format(actuators=actuators))
    sim = coulomb.Simulator(model, joint_forces=rule)
    rng = np.random.default_rng(seed)
    names = [n for n in model.parameters() if n.startswith("actuator_")]
    q = model.integrate(model.neutral()[0], 0.2 * rng.normal(size=model.nv))
    v, u = rng.normal(size=model.nv), rng.uniform(0.3, 1, size=model.nu)
    check = coulomb.check_gradients(sim, q, v, u, wrt=["q", "v", "u", "tau", *names], tolerance=1e-6)
    assert check.passed and check.compared > 0.9 * check.columns, str(check)

    sim.step(q, v, u)
    d, w = sim.derivatives(wrt=names), rng.normal(size=2 * model.nv)
    g = sim.vjp(w[: model.nv], w[model.nv :], wrt=names)
    columns = {"u": d.B, "tau": d.B_tau, **{name: d[name] for name in names}}
    assert np.r_[g.q, g.v] == pytest.approx(w @ d.A, rel=1e-9, abs=1e-9)
    for name, matrix in columns.items():
        found = g[name] if name in names else getattr(g, name)
        assert found == pytest.approx(w @ matrix, rel=1e-9, abs=1e-9), name
