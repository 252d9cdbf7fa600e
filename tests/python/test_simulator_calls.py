"""Simulator: the order of calls, what outlives what, copies, and threads."""

import copy
import gc
import threading

import numpy as np
import pytest

import coulomb


def two_boxes():
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    for i in range(2):
        scene.add_box((0.2, 0.2, 0.2), mass=1.0 + i, position=(0.03 * i, 0, 0.0999 + 0.1999 * i), name=f"box{i}")
    return scene.build()


@pytest.fixture
def sim():
    return coulomb.Simulator(two_boxes())


DERIVATIVES = {
    "derivatives": lambda s: s.derivatives(),
    "vjp": lambda s: s.vjp(np.zeros(12), np.zeros(12)),
    "jvp": lambda s: s.jvp(dq=np.zeros(12)),
}


@pytest.mark.parametrize("call", DERIVATIVES.values(), ids=DERIVATIVES.keys())
def test_derivatives_need_a_step(sim, call):
    def refuses():
        with pytest.raises(RuntimeError, match="step"):
            call(sim)

    q, v = sim.model.neutral()
    refuses()
    sim.step(q, v)
    call(sim)
    sim.reset()
    refuses()
    assert sim.contacts == []
    sim.rollout(q, v, steps=0)
    refuses()
    sim.rollout(q, v, steps=2)
    call(sim)


def test_results_outlive_the_simulator_and_the_model():
    model = two_boxes()
    sim = coulomb.Simulator(model)
    sim.step(*model.neutral())
    d, contact, status, mass = sim.derivatives(), sim.contacts[0], sim.status, model.body_mass
    A, point, reason, kilograms = d.A.copy(), contact.point.copy(), status.reason, mass.copy()
    v = model.neutral()[1]
    sim.step(model.integrate(model.neutral()[0], v + 1), v)
    del model, sim
    gc.collect()
    assert np.array_equal(d.A, A) and np.array_equal(contact.point, point)
    assert status.reason == reason and np.array_equal(mass, kilograms)


def test_external_forces_are_those_of_generalised_forces(sim):
    """A world wrench at the centre of mass of a free body: force rows as they are, torque in body axes; the world's row does nothing."""
    q, v = sim.model.neutral()
    q[:3] += [0, 0, 5]  # nothing touches
    q[3:7] = np.array([0.3, -0.7, 0.5, 0.4]) / np.sqrt(0.99)
    fext = np.random.default_rng(0).normal(size=(3, 6))
    from scenes.frames import turn

    back = q[3:7] * np.array([1, -1, -1, -1])
    tau = np.concatenate([fext[1, :3], turn(back, fext[1, 3:]), fext[2]])
    sim.reset()
    _, by_fext = sim.step(q, v, fext=fext)
    sim.reset()
    _, by_tau = sim.step(q, v, tau=tau)
    assert by_fext == pytest.approx(by_tau, abs=1e-12)
    assert np.abs(by_fext[:6]).max() > 1e-4


def test_the_gradient_knows_external_forces(sim):
    """dv_dq under a wrench that is constant in world axes."""
    q, v = sim.model.neutral()
    q[:3] += [0, 0, 5]
    fext = np.zeros((3, 6))
    fext[1] = 1, 2, 3, 4, -5, 6
    sim.step(q, v, fext=fext)
    dv_dq = sim.derivatives().dv_dq.copy()
    for i, h in ((3, 1e-6), (4, 1e-6), (5, 1e-6)):
        step = np.zeros(12)
        step[i] = h
        after = [sim.step(sim.model.integrate(q, sign * step), v, fext=fext)[1] for sign in (1, -1)]
        assert dv_dq[:, i] == pytest.approx((after[0] - after[1]) / (2 * h), abs=1e-7)
    assert np.abs(dv_dq[3:6, 3:6]).max() > 1e-2


def test_a_model_is_its_own_copy(sim):
    assert copy.copy(sim.model) is sim.model and copy.deepcopy(sim.model) is sim.model
    assert copy.deepcopy({"model": sim.model})["model"] is sim.model


def test_what_cannot_be_copied_says_so(sim):
    with pytest.raises(TypeError, match="cannot pickle 'Rollout' object"):
        copy.deepcopy(sim.rollout(*sim.model.neutral(), steps=1))


def test_simulators_on_threads_share_a_model():
    model = two_boxes()
    q, v = model.neutral()
    v[0] = 0.5
    reference = coulomb.Simulator(model).rollout(q, v, steps=200)
    results, errors = {}, []

    def work(i):
        try:
            sim = coulomb.Simulator(model)
            if i % 2:
                results[i] = sim.rollout(q, v, steps=200).q[-1]
                return
            x, w = q, v
            for _ in range(200):
                x, w = sim.step(x, w)
                sim.derivatives()
            results[i] = x
        except Exception as error:  # noqa: BLE001 - a thread has nobody to raise to
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(results) == 6
    assert all(np.array_equal(x, reference.q[-1]) for x in results.values())


def test_a_rollout_under_controls():
    model = coulomb.load(
        "<mujoco><worldbody><body><joint name='j' axis='0 1 0'/><geom size='.1' pos='.3 0 0'/></body></worldbody>"
        "<actuator><motor joint='j'/></actuator></mujoco>"
    )
    sim = coulomb.Simulator(model)
    U = np.linspace(-1, 1, 30)[:, None]
    trajectory = sim.rollout([0.1], [0.2], U)
    q, v = np.array([0.1]), np.array([0.2])
    for k, u in enumerate(U):
        q, v = sim.step(q, v, u)
        assert np.array_equal(trajectory.q[k + 1], q) and np.array_equal(trajectory.v[k + 1], v)
    assert trajectory.steps == len(trajectory.status) == 30 and trajectory.converged
    with pytest.raises(ValueError, match="steps"):
        sim.rollout([0.1], [0.2])
    with pytest.raises(ValueError, match="steps"):
        sim.rollout([0.1], [0.2], U, steps=29)
    with pytest.raises(ValueError, match="U"):
        sim.rollout([0.1], [0.2], U.ravel())
