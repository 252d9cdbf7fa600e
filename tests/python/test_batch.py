"""coulomb.BatchSimulator: the bits of single simulators for any number of threads, masks, parameters, refusals, trouble."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import coulomb
from scenes import contacts, robots

N = 7
SCENES = [contacts.stack, contacts.arm_pushes_box, contacts.bounce, contacts.meshes, contacts.equalities]


@pytest.fixture(scope="module")
def box():
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.1), name="box")
    return scene.build()


def states(model, q, v, n=N, speed=0.3, seed=0):
    random = np.random.default_rng(seed)
    return np.tile(q, (n, 1)), np.tile(v, (n, 1)) + speed * random.normal(size=(n, model.nv))


def neutral(model, n=N, speed=0.3):
    return states(model, *model.neutral(), n, speed)


def run(batch, Q, V, U=None, steps=20):
    for _ in range(steps):
        Q, V = batch.step(Q, V, U)
    return Q, V


def everything(source, wrt, dq, dv):
    """All that one step's derivatives give, of a batch or of a simulator."""
    d, g = source.derivatives(wrt), source.vjp(dq, dv, wrt)
    blocks = [d.dq_dq, d.dq_dv, d.dv_dq, d.dv_dv, d.dq_du, d.dv_du, d.dq_dtau, d.dv_dtau]
    columns = [x[name] for x in (d, g) for name in wrt]
    return [d.A, d.B, d.B_tau, *blocks, g.q, g.v, g.u, g.tau, *columns, *source.jvp(dq, dv, dtau=dv)]


@pytest.mark.parametrize("build", SCENES, ids=lambda f: f.__name__)
def test_the_bits_of_single_simulators(build):
    random = np.random.default_rng(0)
    model, q, v = build(random)
    Q0, V0 = states(model, q, v)
    U, tau = random.normal(size=(N, model.nu)), 0.1 * random.normal(size=(N, model.nv))
    fext = random.normal(size=(N, len(model.body_names), 6))
    dq, dv = random.normal(size=(2, N, model.nv))
    wrt = ["gravity", "timestep", next(name for name in model.parameters() if name.startswith("mass/"))]
    single = [coulomb.Simulator(model, timestep=2e-3, tolerance=1e-9) for _ in range(N)]
    expected_q, expected_v = Q0.copy(), V0.copy()
    for i, sim in enumerate(single):
        for _ in range(20):
            expected_q[i], expected_v[i] = sim.step(expected_q[i], expected_v[i], U[i], tau[i], fext[i])
    for threads in (1, 2, 4, 8):
        batch = coulomb.BatchSimulator(model, num_envs=N, num_threads=threads, timestep=2e-3, tolerance=1e-9)
        assert batch.num_threads == threads and batch.num_envs == N and batch.timestep == 2e-3
        Q, V = Q0, V0
        for _ in range(20):
            Q, V = batch.step(Q, V, U, tau, fext)
        assert np.array_equal(Q, expected_q) and np.array_equal(V, expected_v)
        mine = everything(batch, wrt, dq, dv)
        for i, sim in enumerate(single):
            for a, b in zip(mine, everything(sim, wrt, dq[i], dv[i])):
                assert a.shape == (N, *b.shape)
                assert np.array_equal(a[i], b)
            status = sim.status
            assert batch.status.converged[i] == status.converged and batch.status.reason[i] == status.reason
            assert batch.status.iterations[i] == status.iterations and batch.status.residual[i] == status.residual
            assert [repr(c) for c in batch.contacts(i)] == [repr(c) for c in sim.contacts]


@pytest.mark.parametrize("name", ["hopper", "go1"])
def test_robots_from_recorded_states(name):
    model, Q, V = robots.load(name)
    sim = coulomb.Simulator(model)
    batch = coulomb.BatchSimulator(model, num_envs=len(Q), num_threads=2)
    Q1, V1 = batch.step(Q, V)
    for i in range(len(Q)):
        sim.reset()
        q, v = sim.step(Q[i], V[i])
        assert np.array_equal(q, Q1[i]) and np.array_equal(v, V1[i])


def test_parameters_of_every_environment(box):
    Q, V = neutral(box)
    masses, frictions = np.linspace(1, 2, N), np.linspace(0, 0.6, N)[:, None]
    batch = coulomb.BatchSimulator(box, N, 2, 2e-3, parameters={"mass/box": masses, "friction/ground": frictions})
    Q1, V1 = run(batch, Q, V)
    g = batch.vjp(V, V, wrt=["friction/ground", "mass/box"])
    for i in range(N):
        own = box.with_parameters({"mass/box": masses[i], "friction/ground": frictions[i]})
        sim = coulomb.Simulator(own, timestep=2e-3)
        q, v = Q[i], V[i]
        for _ in range(20):
            q, v = sim.step(q, v)
        assert np.array_equal(q, Q1[i]) and np.array_equal(v, V1[i])
        single = sim.vjp(V[i], V[i], wrt=["friction/ground", "mass/box"])
        assert np.array_equal(g["mass/box"][i], single["mass/box"])
        assert np.array_equal(g["friction/ground"][i], single["friction/ground"])
        assert batch.environment_model(i).parameters()["mass/box"].value == masses[i]
    assert not np.array_equal(Q1, run(coulomb.BatchSimulator(box, N, 1, 2e-3), Q, V)[0])


def test_parameters_can_be_set_later_and_for_some(box):
    Q, V = neutral(box)
    masses = np.linspace(1, 2, N)[:, None]
    mask = np.arange(N) % 2 == 0
    batch = coulomb.BatchSimulator(box, N, 2)
    batch.step(Q, V)
    batch.set_parameters({"mass/box": masses}, mask)
    batch.set_parameters({"gravity": np.tile([0, 0, -1.0], (N, 1))})
    with pytest.raises(RuntimeError, match="environment 0: no step"):
        batch.derivatives()
    expected = np.where(mask[:, None], masses, 1.0)
    both = coulomb.BatchSimulator(
        box, N, 2, parameters={"gravity": np.tile([0, 0, -1.0], (N, 1)), "mass/box": expected}
    )
    for a, b in zip(run(batch, Q, V), run(both, Q, V)):
        assert np.array_equal(a, b)


def test_a_time_step_per_environment(box):
    Q, V = neutral(box)
    steps = np.linspace(1e-3, 2e-3, N)
    Q1, _ = coulomb.BatchSimulator(box, N, parameters={"timestep": steps}).step(Q, V)
    for i in range(N):
        assert np.array_equal(coulomb.Simulator(box, timestep=steps[i]).step(Q[i], V[i])[0], Q1[i])


def test_masked_environments_stay_as_they_are(box):
    Q, V = neutral(box)
    mask = np.arange(N) % 3 != 0
    batch, every = coulomb.BatchSimulator(box, N, 2), coulomb.BatchSimulator(box, N, 2)
    Q_bad = Q.copy()
    Q_bad[~mask] = np.nan  # not looked at
    Q1, V1 = batch.step(Q_bad, V, mask=mask)
    Q2, V2 = every.step(Q, V)
    assert np.array_equal(Q1[mask], Q2[mask]) and np.array_equal(V1[mask], V2[mask])
    assert np.isnan(Q1[~mask]).all() and np.array_equal(V1[~mask], V[~mask])
    d = batch.derivatives(["mass/box"])
    assert np.array_equal(d.A[mask], every.derivatives().A[mask])
    assert np.array_equal(d.A[~mask], np.tile(np.eye(2 * box.nv), (np.sum(~mask), 1, 1)))
    assert not d.B_tau[~mask].any() and not d["mass/box"][~mask].any()
    g = batch.vjp(V, V1)
    assert np.array_equal(g.q[~mask], V[~mask]) and np.array_equal(g.v[~mask], V1[~mask]) and not g.tau[~mask].any()
    dq, dv = batch.jvp(dQ=V)
    assert np.array_equal(dq[~mask], V[~mask]) and not dv[~mask].any()


def test_memory_and_reset(box):
    Q, V = run(coulomb.BatchSimulator(box, N, 2), *neutral(box))
    batch = coulomb.BatchSimulator(box, N, 2)
    Q, V = run(batch, Q, V)
    memory = batch.memory
    first = run(batch, Q, V)
    batch.memory = memory
    for a, b in zip(first, run(batch, Q, V)):
        assert np.array_equal(a, b)
    batch.reset()
    with pytest.raises(RuntimeError, match="environment 0: no step"):
        batch.vjp(V, V)
    for a, b in zip(run(batch, Q, V), run(coulomb.BatchSimulator(box, N, 1), Q, V)):
        assert np.array_equal(a, b)
    with pytest.raises(ValueError, match="memory: of 7 environments, expected 2"):
        coulomb.BatchSimulator(box, 2).memory = memory


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["Q", "V", "U", "tau", "fext"])
def test_bad_values_are_named_and_nothing_moves(name, value):
    model, q, v = contacts.arm_pushes_box(np.random.default_rng(0))
    Q, V = states(model, q, v)
    batch, other = (coulomb.BatchSimulator(model, N, 2) for _ in range(2))
    good = {
        "Q": Q, "V": V, "U": np.zeros((N, model.nu)), "tau": np.zeros((N, model.nv)),
        "fext": np.zeros((N, len(model.body_names), 6)),
    }  # fmt: skip
    batch.step(**good), other.step(**good)
    bad = {k: x.copy() for k, x in good.items()}
    place = (5, 1, 2) if name == "fext" else (5, 1)
    bad[name][place] = value
    named = rf"{name}\[{', '.join(map(str, place))}\] is {value}, expected a finite number"
    with pytest.raises(ValueError, match=named):
        batch.step(**bad)
    for a, b in zip(batch.step(**good), other.step(**good)):
        assert np.array_equal(a, b)


def test_what_else_is_refused(box):
    Q, V = neutral(box)
    batch = coulomb.BatchSimulator(box, N, 2)
    with pytest.raises(RuntimeError, match="environment 0: no step"):
        batch.derivatives()
    with pytest.raises(ValueError, match=r"Q\[3\]\[3:7\]: quaternion of norm 2"):
        batch.step(np.where(np.arange(N)[:, None] == 3, Q * [1, 1, 1, 2, 0, 0, 0], Q), V)
    with pytest.raises(ValueError, match=r"Q: expected shape \(7, 7\), got \(6, 7\)"):
        batch.step(Q[:-1], V)
    with pytest.raises(ValueError, match=r"mask\[2\] is 2"):
        batch.step(Q, V, mask=np.arange(N))
    with pytest.raises(ValueError, match="mask: expected shape"):
        batch.step(Q, V, mask=[True])
    batch.step(Q, V)
    bad = V.copy()
    bad[6, 5] = np.nan
    for call in (lambda: batch.vjp(V, bad), lambda: batch.jvp(dV=bad)):
        with pytest.raises(ValueError, match=r"dV1?\[6, 5\] is nan"):
            call()
    for call in (lambda: batch.derivatives(["mass/ball"]), lambda: batch.vjp(V, V, wrt=["mass/ball"])):
        with pytest.raises(ValueError, match="mass/ball"):
            call()
    with pytest.raises(KeyError, match="mass/box"):
        batch.derivatives()["mass/box"]
    with pytest.raises(IndexError, match="environment: got 7"):
        batch.contacts(7)
    for masses, named in (
        (np.where(np.arange(N) == 4, -1.0, 1.0), "environment 4: parameter 'mass/box'"),
        (np.where(np.arange(N) == 4, np.nan, 1.0), r"parameter 'mass/box'\[4, 0\] is nan"),
        (np.ones(N - 1), r"parameter 'mass/box': expected shape \(7, any\), got \(6, 1\)"),
        (np.ones((N, 2)), "environment 0: parameter 'mass/box'"),
        ("text", "parameter 'mass/box'"),
    ):
        for call in (
            lambda x=masses: batch.set_parameters({"mass/box": x}),
            lambda x=masses: coulomb.BatchSimulator(box, N, parameters={"mass/box": x}),
        ):
            with pytest.raises((ValueError, TypeError), match=named):
                call()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("num_envs", 0),
        ("num_envs", -3),
        ("num_threads", -1),
        ("num_threads", 10**6),
        ("timestep", 0),
        ("timestep", -1.0),
    ]
    + [("timestep", np.nan), ("tolerance", -1), ("solver", "magic"), ("contact", "magic")],
)
def test_options_are_those_of_a_simulator(box, option, value):
    with pytest.raises(ValueError, match=option):
        coulomb.BatchSimulator(box, **{"num_envs": 3, option: value})
    with pytest.raises(TypeError):
        coulomb.BatchSimulator(box, num_envs=3, magic=1)


def test_trouble_of_one_environment_is_its_own(box):
    Q, V = neutral(box)
    V[2] = 1e200  # squares leave the range of double
    batch, well = coulomb.BatchSimulator(box, N, 2), coulomb.BatchSimulator(box, N, 2)
    Q1, V1 = run(batch, Q, V)
    Q2, V2 = run(well, *neutral(box))
    others = np.arange(N) != 2
    assert np.array_equal(Q1[others], Q2[others]) and np.array_equal(V1[others], V2[others])
    assert np.array_equal(Q1[2], Q[2]) and np.array_equal(V1[2], V[2])
    status = batch.status
    assert not status and not status.converged[2] and status.converged[others].all()
    assert "overflow" in status.reason[2] and status.reason[3] == "solved"
    d, g = batch.derivatives(["mass/box"]), batch.vjp(Q2[:, :6], V2, ["mass/box"])
    tangents = batch.jvp(dQ=V2)
    for x in (d.A, d["mass/box"], g.q, g.v, g.tau, g["mass/box"], *tangents):
        assert np.isfinite(x).all() and not x[2].any()
    assert list(np.flatnonzero(~d.valid)) == [2] and list(np.flatnonzero(~g.valid)) == [2]
    assert np.array_equal(d.A[others], well.derivatives().A[others])
    V1[2] = 0  # and can be brought back
    batch.step(Q1, V1)
    assert batch.status


def test_a_second_thread_is_refused_not_mixed_in(box):
    batch = coulomb.BatchSimulator(box, 2000, 2)
    Q, V = neutral(box, 2000)
    refused, stop = [], threading.Event()

    def other():
        while not stop.is_set():
            try:
                batch.reset()
            except RuntimeError as error:
                refused.append(str(error))
                return

    thread = threading.Thread(target=other)
    thread.start()
    try:
        for _ in range(100):
            try:
                batch.step(Q, V)
            except RuntimeError as error:
                refused.append(str(error))
            if refused:
                break
    finally:
        stop.set()
        thread.join()
    assert refused and "another call is running" in refused[0]


def test_works_in_a_forked_process(box):
    """Threads do not survive a fork: the child's batch gets new ones."""
    Q, V = neutral(box)
    batch = coulomb.BatchSimulator(box, N, 3)
    run(batch, Q, V)
    batch.reset()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            mine = run(batch, Q, V)
            batch.reset()
            code = 0 if np.array_equal(mine[0], run(coulomb.BatchSimulator(box, N, 1), Q, V)[0]) else 2
            del batch
        finally:
            os._exit(code)
    for _ in range(600):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0
    assert np.array_equal(run(batch, Q, V)[0], run(coulomb.BatchSimulator(box, N, 1), Q, V)[0])


DONE = np.array([True, False, False, True, False, False, True])


@pytest.fixture
def touch():
    """A box that touches: readings of states and of forces."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.0999), name="box")
    return scene.build()


READINGS = ["position/box", "velocity/box", "contact_force/box"]


def stepped(model, threads=2):
    """A batch after two steps, and the states that they ended in."""
    Q, V = neutral(model)
    batch = coulomb.BatchSimulator(model, N, threads)
    Q, V = batch.step(*batch.step(Q, V))
    return batch, Q, V


@pytest.mark.parametrize("threads", [1, 3])
def test_after_a_partial_reset_the_others_are_as_before(touch, threads):
    batch, Q, V = stepped(touch, threads=threads)
    wrt = ["mass/box", "friction/ground"]
    w = np.random.default_rng(1).normal(size=(2, N, touch.nv))
    output, before = batch.output(READINGS), everything(batch, wrt, *w)
    batch.reset(DONE)
    assert np.array_equal(batch.output(READINGS)[~DONE], output[~DONE]) and np.isnan(batch.output(READINGS)[DONE]).all()
    for x, y in zip(everything(batch, wrt, *w), before):
        assert np.array_equal(x[~DONE], y[~DONE]) and not x[DONE].any()
        assert y[DONE].any() or not y.any()
    assert np.array_equal(batch.derivatives().valid, ~DONE) and np.array_equal(batch.vjp(*w).valid, ~DONE)
    weights = {"position/box": np.ones((N, 3)), "contact_force/box": np.ones((N, 3))}
    g = batch.vjp(outputs=weights)
    assert np.array_equal(g.valid, ~DONE) and not g.q[DONE].any() and g.q[~DONE].any()

    # The first step afterwards is that of a fresh simulator for those, and goes on for the others.
    Q1, V1 = batch.step(Q, V)
    assert np.isfinite(batch.output(READINGS)).all() and batch.derivatives().valid.all()
    fresh = coulomb.BatchSimulator(touch, N, 1).step(Q, V)
    assert np.array_equal(Q1[DONE], fresh[0][DONE]) and np.array_equal(V1[DONE], fresh[1][DONE])


def test_a_reset_to_states_has_readings_there(touch):
    batch, Q, V = stepped(touch)
    after = batch.output(READINGS)
    Q_new, V_new = neutral(touch, speed=2.0)
    Q_new[:, 2] += 0.5
    Q_new[~DONE] = np.nan  # rows of the others are not looked at
    batch.reset(DONE, Q_new, V_new)
    found = batch.output(READINGS)
    assert np.array_equal(found[~DONE], after[~DONE])
    for i in np.flatnonzero(DONE):
        expected = touch.output(["position/box", "velocity/box"], Q_new[i], V_new[i])
        assert np.array_equal(found[i, :6], expected) and not found[i, 6:].any()
    assert np.array_equal(batch.derivatives().valid, ~DONE)

    # Left out of the next step they stay there: the derivative is the identity, that of a reading the reading's.
    Q_all = np.where(DONE[:, None], Q_new, Q)
    batch.step(Q_all, np.where(DONE[:, None], V_new, V), mask=~DONE)
    assert np.array_equal(batch.output(READINGS)[DONE], found[DONE])
    d = batch.derivatives()
    assert d.valid.all() and np.array_equal(d.A[0], np.eye(2 * touch.nv))
    w = np.random.default_rng(2).normal(size=(N, 3))
    g = batch.vjp(outputs={"position/box": w})
    assert np.array_equal(g.q[0], w[0] @ touch.output_jacobian("position/box", Q_new[0], V_new[0], "q"))
    batch.step(Q_all, np.where(DONE[:, None], V_new, V))
    assert np.abs(batch.output(READINGS)[DONE] - found[DONE]).max() > 0


def test_left_out_without_a_state_has_no_readings(touch):
    batch, Q, V = stepped(touch)
    batch.reset(DONE)
    batch.step(Q, V, mask=~DONE)
    assert np.isnan(batch.output(READINGS)[DONE]).all() and batch.derivatives().valid.all()
    g = batch.vjp(V, V, outputs={"position/box": np.ones((N, 3))})
    assert np.array_equal(g.valid, ~DONE) and not g.q[DONE].any()
    assert batch.vjp(V, V).valid.all()


def test_new_parameters_and_rollouts_forget_the_start(touch):
    batch, Q, V = stepped(touch)
    batch.reset(DONE, Q, V)
    batch.set_parameters({"mass/box": np.ones((N, 1))}, DONE)
    assert np.isnan(batch.output(READINGS)[DONE]).all()
    batch.reset(None, Q, V)
    batch.rollout(Q, V, steps=2)
    assert batch.derivatives().valid.all() and np.isfinite(batch.output(READINGS)).all()


def test_what_a_reset_refuses(touch):
    batch, Q, V = stepped(touch)
    before = batch.output(READINGS)
    bad = Q.copy()
    bad[3, 0] = np.nan
    for arguments, words in (
        ((DONE, bad, V), r"Q\[3, 0\] is nan"),
        ((DONE, Q, None), "V: None"),
        ((DONE, None, V), "Q: None"),
        ((DONE, Q[:2], V), "Q: expected shape"),
        ((DONE, 2 * Q, V), r"Q\[0\]\[3:7\]: quaternion"),
        ((DONE[:2],), "mask: expected shape"),
    ):
        with pytest.raises(ValueError, match=words):
            batch.reset(*arguments)
    assert np.array_equal(batch.output(READINGS), before) and batch.derivatives().valid.all()
    batch.reset()
    for call in (lambda: batch.output(READINGS), batch.derivatives, lambda: batch.vjp(V, V), lambda: batch.jvp(V)):
        with pytest.raises(RuntimeError, match="no step was taken yet, nor by any other environment"):
            call()
    batch.reset(DONE, Q, V)
    assert np.isfinite(batch.output(READINGS)[DONE]).all()
