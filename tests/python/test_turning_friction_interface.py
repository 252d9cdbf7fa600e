"""Torsional and rolling friction in the interface: arguments and what they refuse, laws without them, memory, batches, rollouts, files."""

import pickle

import numpy as np
import pytest

import coulomb

KEYS = ("torsional_friction", "rolling_friction")


def scene(**arguments):
    out = coulomb.Scene(timestep=2e-3)
    out.add_ground(friction=0.5, name="floor", **arguments)
    for k in range(3):
        out.add_sphere(0.1, mass=1.0 + k, position=(0.3 * k, 0, 0.1), name=f"ball{k}")
    out.add_capsule(0.05, 0.2, mass=0.5, position=(0, 0.5, 0.05), quaternion=(0.5**0.5, 0, 0.5**0.5, 0), name="pin")
    return out


def moving(model, seed=0):
    q, _ = model.neutral()
    random = np.random.default_rng(seed)
    return q, random.normal(size=model.nv) * np.tile([0.4, 0.4, 0, 4, 4, 4], 4)


def test_wherever_friction_is_given():
    values = dict(torsional_friction=0.02, rolling_friction=0.003)
    s = coulomb.Scene()
    s.add_ground(**values)
    s.add_box((0.1, 0.1, 0.1), **values)
    s.add_sphere(0.1, **values)
    s.add_capsule(0.1, 0.1, **values)
    s.add_cylinder(0.1, 0.1, **values)
    s.add_ellipsoid((0.1, 0.1, 0.1), **values)
    s.add_mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], **values)
    s.add_heightfield(np.zeros((3, 3)), 1.0, **values)
    s.add_triangle_mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], **values)
    s.add_sphere(0.2, name="late")
    s.set_contact("late", **values)
    m = s.build()
    assert m.geometry_torsional_friction == pytest.approx(0.02) and m.geometry_rolling_friction == pytest.approx(0.003)
    assert m.pair_torsional_friction == pytest.approx(0.02) and m.pair_rolling_friction == pytest.approx(0.003)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf])
def test_bad_values_are_refused_by_name(key, value):
    s = scene()
    before = pickle.dumps(s)
    calls = {
        "add_ground": lambda: s.add_ground(name="other", **{key: value}),
        "add_sphere": lambda: s.add_sphere(0.1, name="x", **{key: value}),
        "add_heightfield": lambda: s.add_heightfield(np.zeros((3, 3)), 1.0, **{key: value}),
        "set_contact": lambda: s.set_contact("ball0", **{key: value}),
        "set_contact 'ball0', 'floor'": lambda: s.set_contact("ball0", "floor", **{key: value}),
    }
    for what, call in calls.items():
        with pytest.raises(ValueError, match=rf"{what}.*{key}"):
            call()
    assert pickle.dumps(s) == before
    model = scene(**{key: 0.01}).build()
    with pytest.raises(ValueError, match=f"{key}/floor"):
        model.with_parameters({f"{key}/floor": value})


@pytest.mark.parametrize(
    "options",
    [dict(contact="penalty", contact_stiffness=1e4), dict(stepper="bdf1", contact_stiffness=1e4)],
    ids=["penalty", "bdf1"],
)
def test_other_laws_do_not_know_it(options):
    """To the bit: contacts keep the three rows of their force."""
    runs = []
    for arguments in ({}, dict(torsional_friction=0.05, rolling_friction=0.05)):
        model = scene(**arguments).build()
        sim = coulomb.Simulator(model, **options)
        q, v = moving(model)
        q[2::7] -= 1e-4
        for _ in range(5):
            q, v = sim.step(q, v)
        assert sim.contacts and not any(c.torque.any() for c in sim.contacts)
        runs.append(np.r_[q, v])
    assert np.array_equal(*runs)


def test_coefficients_of_zero_are_none():
    runs = []
    for arguments in ({}, dict(torsional_friction=0.0, rolling_friction=0.0)):
        model = scene(**arguments).build()
        q, v = moving(model)
        r = coulomb.Simulator(model).rollout(q, v, steps=20)
        runs.append(np.c_[r.q, r.v])
    assert np.array_equal(*runs)


def test_split_steps_have_it():
    """A ball that spins falls on the floor: while it bounces, and when it lies, it loses spin as in ordinary steps."""
    ends = []
    for split in (False, True):
        s = coulomb.Scene(timestep=1e-3)
        s.add_ground(torsional_friction=0.02)
        s.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1003), name="ball")
        model = s.build()
        sim = coulomb.Simulator(model, continuous_collision=split)
        q, v = model.neutral()
        v[5], v[2] = 10.0, -0.3
        for _ in range(100):
            q, v = sim.step(q, v)
        ends.append(v[5])
    lost = 0.02 * 1.0 * (9.81 * 0.1 + 0.3) / 0.004  # by all of the momentum that the floor takes
    assert 10 - np.array(ends) == pytest.approx(lost, rel=5e-3)


def test_split_steps_have_its_derivatives():
    s = coulomb.Scene(timestep=1e-3)
    s.add_ground(friction=0.4, torsional_friction=0.02, rolling_friction=0.01, restitution=0.5)
    s.add_sphere(0.1, mass=1.0, position=(0, 0, 0.1003), name="ball")
    sim = coulomb.Simulator(s.build(), continuous_collision=True)
    q, v = sim.model.neutral()
    v[:] = 0.3, -0.2, -1.0, 2.0, 3.0, 9.0
    names = ["friction/ground", *(f"{key}/ground" for key in KEYS)]
    check = coulomb.check_gradients(sim, q, v, wrt=["q", "v", *names])
    assert check.passed, check
    sim.step(q, v)
    assert sim.impacts
    assert all(np.abs(sim.derivatives(wrt=names)[name]).max() > 1e-4 for name in names)


def test_a_saved_simulation_goes_on_with_the_same_bits():
    model = scene(torsional_friction=0.02, rolling_friction=0.01).build()
    sim = coulomb.Simulator(model)
    q, v = moving(model)
    for _ in range(10):
        q, v = sim.step(q, v)
    again = coulomb.Simulator(pickle.loads(pickle.dumps(model)))
    again.memory = pickle.loads(pickle.dumps(sim.memory))
    for _ in range(10):
        a, b = sim.step(q, v), again.step(q, v)
        assert all(np.array_equal(x, y) for x, y in zip(a, b))
        q, v = a
    assert sim.status.iterations <= 20


def test_a_batch_is_many_simulators():
    model = scene(torsional_friction=0.02, rolling_friction=0.01).build()
    starts = [moving(model, seed) for seed in range(4)]
    Q, V = (np.array(x) for x in zip(*starts))
    for threads in (1, 2):
        batch = coulomb.BatchSimulator(model, num_envs=4, num_threads=threads)
        q1, v1 = batch.step(Q, V)
        for k in range(4):
            a, b = coulomb.Simulator(model).step(Q[k], V[k])
            assert np.array_equal(q1[k], a) and np.array_equal(v1[k], b)


def test_rollouts_go_back_through_their_steps():
    model = scene(torsional_friction=0.02, rolling_friction=0.01).build()
    q, v = moving(model)
    names = ["friction/floor", *(f"{key}/floor" for key in KEYS)]
    steps, nv = 8, model.nv
    sim = coulomb.Simulator(model)
    r = sim.rollout(q, v, steps=steps)
    random = np.random.default_rng(1)
    dQ, dV = random.normal(size=(2, steps + 1, nv))
    g = r.vjp(dQ, dV, wrt=names)

    # By hand.
    other = coulomb.Simulator(model)
    state, derivatives = (q, v), []
    for k in range(steps):
        state = other.step(*state)
        assert np.array_equal(state[0], r.q[k + 1]) and np.array_equal(state[1], r.v[k + 1])
        d = other.derivatives(wrt=names)
        derivatives.append((np.array(d.A), {name: np.array(d[name]) for name in names}))
    w, of_names = np.r_[dQ[-1], dV[-1]], dict.fromkeys(names, 0.0)
    for k in reversed(range(steps)):
        A, columns = derivatives[k]
        for name in names:
            of_names[name] += (w @ columns[name])[0]
        w = w @ A + np.r_[dQ[k], dV[k]]
    np.testing.assert_allclose(np.r_[g.q0, g.v0], w, rtol=1e-8, atol=1e-8 * np.abs(w).max())
    for name in names:
        assert g[name][0] == pytest.approx(of_names[name], rel=1e-8)


def test_torch_gives_the_same():
    torch = pytest.importorskip("torch")
    from coulomb.torch import step

    model = scene(torsional_friction=0.02, rolling_friction=0.01).build()
    q, v = moving(model)
    sim = coulomb.Simulator(model)
    V = torch.tensor(v, requires_grad=True)
    q1, v1 = step(sim, torch.tensor(q), V)
    v1.sum().backward()
    other = coulomb.Simulator(model)
    other.step(q, v)
    g = other.vjp(np.zeros(model.nv), np.ones(model.nv))
    np.testing.assert_allclose(V.grad.numpy(), g.v, rtol=1e-10, atol=1e-12)


def test_mjcf_of_a_model_has_it():
    """Written and read again: every pair has its coefficients."""
    pytest.importorskip("mujoco")
    from coulomb.mjcf_export import to_mjcf

    s = coulomb.Scene()
    s.add_ground(friction=0.5, torsional_friction=0.02)
    s.add_mjcf("""<mujoco><worldbody><body pos="0 0 1"><freejoint/><geom size=".1" friction=".4 .03 .02"/></body>
      <body pos="0 0 2"><freejoint/><geom size=".1" friction=".6 .01 .01"/></body>
      <body pos="0 0 3"><freejoint/><geom size=".1" friction=".6 .05 .03" condim="6"/></body></worldbody></mujoco>""")
    model = s.build()
    again = coulomb.load(to_mjcf(model))
    for name in ("pair_a", "pair_b", "pair_friction", "pair_torsional_friction", "pair_rolling_friction"):
        assert getattr(again, name) == pytest.approx(getattr(model, name)), name
    assert len(set(model.pair_torsional_friction)) == 4 and len(set(model.pair_rolling_friction)) == 2


def test_contacts_show_their_torque():
    """Where there is one."""
    for arguments, shown in (({}, False), (dict(torsional_friction=0.05), True)):
        model = scene(**arguments).build()
        sim = coulomb.Simulator(model)
        sim.step(*moving(model))
        assert any("torque" in repr(contact) for contact in sim.contacts) == shown
