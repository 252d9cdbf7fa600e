"""Actuators with an activation: the same activations and motion as in MuJoCo, and derivatives through them."""

import pickle

import numpy as np
import pytest

import coulomb
from coulomb.mjcf_export import to_mjcf

mujoco = pytest.importorskip("mujoco")

ARM = """<mujoco><compiler angle="radian"/><option timestep="0.002" integrator="Euler"><flag contact="disable" eulerdamp="disable"/></option><worldbody>
  <body><joint name="a" axis="0 1 0" armature=".05"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" mass="1"/>
   <body pos=".3 0 0"><joint name="b" axis="0 1 .2" armature=".05"/><geom type="capsule" size=".03" fromto="0 0 0 .2 0 0" mass=".5"/></body></body>
</worldbody><actuator>
  <motor name="motor" joint="a" ctrlrange="-1 1" ctrllimited="true"/>
  <general name="filter" joint="a" dyntype="filter" dynprm=".03" gainprm="2" ctrlrange="-1 1" ctrllimited="true"/>
  <general name="exact" joint="b" dyntype="filterexact" dynprm=".001" gainprm="1.5"/>
  <general name="early" joint="b" dyntype="filter" dynprm=".01" actearly="true"/>
  <general name="integrator" joint="a" dyntype="integrator" actlimited="true" actrange="-.01 .02"/>
  <intvelocity name="servo" joint="b" kp="8" actrange="-1 1"/>
  <cylinder name="cylinder" joint="a" timeconst=".02" area=".5" bias="0 -1 -.1"/>
</actuator></mujoco>"""


def controls(rng, steps, size):
    return 1.5 * np.sin(np.outer(np.arange(steps), rng.uniform(0.01, 0.2, size)) + rng.uniform(0, 6, size))


def test_activations_and_motion_are_mujocos():
    theirs = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(theirs)
    model = coulomb.load(ARM)
    sim = coulomb.Simulator(model, joint_forces="explicit")
    activations = coulomb.Activations(model)
    assert activations.size == 6 and [a.activation for a in model.actuators][:3] == ["none", "filter", "filter_exact"]
    a, q, v = activations.initial, np.zeros(2), np.zeros(2)
    for u in controls(np.random.default_rng(0), 400, model.nu):
        data.ctrl[:] = u
        mujoco.mj_step(theirs, data)
        acting, a = activations.step(a, u)
        q, v = sim.step(q, v, acting)
        assert a[1:] == pytest.approx(data.act, abs=1e-12)
        assert q == pytest.approx(data.qpos, abs=1e-9)
        assert v == pytest.approx(data.qvel, abs=1e-8)
    assert np.abs(q).max() > 0.1


def test_loaders_say_what_u_is():
    (line,) = [line for line in coulomb.load(ARM).deviations if "activations" in line]
    assert line == "activations of 6 actuators: their u is what acts, the activation; coulomb.Activations moves it on"


def loss(model, activations, a, U, q, v):
    sim = coulomb.Simulator(model)
    acting, states = activations.run(a, U)
    rollout = sim.rollout(q, v, acting)
    return rollout, states, rollout.q[-1].sum() + 0.3 * rollout.v[-1].sum() + states[-1].sum()


def test_gradients_through_activations():
    rng = np.random.default_rng(1)
    model = coulomb.load(ARM)
    activations = coulomb.Activations(model)
    a, U, q, v = 0.005 * rng.normal(size=7), 0.5 * controls(rng, 30, 7), rng.normal(size=2), rng.normal(size=2)
    rollout, states, _ = loss(model, activations, a, U, q, v)
    w = np.zeros((2, 31, 2))
    w[0, -1], w[1, -1] = 1, 0.3
    by_a, by_U = activations.run_vjp(states, U, rollout.vjp(*w).u, np.ones(7))
    for _ in range(3):
        da, dU = rng.normal(size=a.shape), rng.normal(size=U.shape)
        ends = [loss(model, activations, a + s * 1e-6 * da, U + s * 1e-6 * dU, q, v)[2] for s in (1, -1)]
        assert by_a @ da + np.sum(by_U * dU) == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)


def test_batches_torch_and_jax():
    rng = np.random.default_rng(2)
    activations = coulomb.Activations(coulomb.load(ARM), 1e-3)
    a, u = rng.normal(size=(3, 7)), rng.normal(size=(3, 7))
    wanted = activations.step(a, u)
    for k in range(3):
        for one, all_ in zip(activations.step(a[k], u[k]), wanted, strict=True):
            assert (one == all_[k]).all()

    torch = pytest.importorskip("torch")
    at, ut = torch.tensor(a, requires_grad=True), torch.tensor(u, requires_grad=True)
    acting, after = activations.step(at, ut)
    assert acting.detach().numpy() == pytest.approx(wanted[0]) and after.detach().numpy() == pytest.approx(wanted[1])
    (2 * acting.sum() + 3 * after.sum()).backward()
    by_a, by_u = activations.vjp(a, u, np.full((3, 7), 2.0), np.full((3, 7), 3.0))
    assert at.grad.numpy() == pytest.approx(by_a) and ut.grad.numpy() == pytest.approx(by_u)
    assert activations.step(activations.initial, ut)[0].shape == (3, 7)

    jax = pytest.importorskip("jax")
    by_u_there = jax.grad(lambda u: activations.step(jax.numpy.asarray(a), u)[1].sum())(jax.numpy.asarray(u))
    assert np.asarray(by_u_there) == pytest.approx(activations.vjp(a, u, 0 * a, np.ones((3, 7)))[1], abs=1e-6)


def test_bounds_are_those_of_what_acts():
    """A servo that integrates its control: its activation has bounds of its own, and those are the bounds of plans."""
    from coulomb.activations import acting_range

    model = coulomb.load(ARM.replace('actrange="-1 1"', 'actrange="-3 3" ctrlrange="-1 1" ctrllimited="true"'))
    ranges = {a.name: acting_range(a) for a in model.actuators}
    assert ranges["servo"] == (-3, 3) and ranges["filter"] == (-1, 1) and ranges["integrator"] == (-0.01, 0.02)
    assert ranges["exact"] == (-np.inf, np.inf)


def test_a_range_of_the_control_does_not_clamp_what_acts():
    """Placement of a joint below a site actuator whose force grows with its speed."""
    text = """<mujoco><worldbody><body><joint axis="0 1 0"/><geom size=".1"/><body pos=".3 0 0"><joint name="k" axis="0 1 0"/><geom size=".1"/>
      <site name="s" pos=".1 0 0"/></body></body></worldbody><actuator><general site="s" gear="1 0 0 0 0 0" dyntype="filter" dynprm=".1"
      ctrlrange="-1 1" ctrllimited="true" gaintype="affine" gainprm="1 0 2"/></actuator></mujoco>"""
    model = coulomb.load(text)
    sim = coulomb.Simulator(model)
    check = coulomb.check_gradients(sim, [0.3, 0.2], [0.5, 1.0], [5.0], wrt=["q", "v", "u", "joint_placement/k"])
    assert check.passed and check.smooth, check.errors


def test_saved_and_written_activations_are_read_again():
    model = coulomb.load(ARM)
    rng = np.random.default_rng(3)
    a, u = rng.normal(size=7), rng.normal(size=7)
    for again in (pickle.loads(pickle.dumps(model)), coulomb.load(to_mjcf(model))):
        for here, there in zip(
            coulomb.Activations(again).step(a, u), coulomb.Activations(model).step(a, u), strict=True
        ):
            assert here == pytest.approx(there, rel=1e-14)


def test_bad_arguments():
    model = coulomb.load(ARM)
    activations = coulomb.Activations(model)
    with pytest.raises(TypeError, match="model: expected a coulomb.Model"):
        coulomb.Activations("arm.xml")
    with pytest.raises(ValueError, match="timestep: got -1"):
        coulomb.Activations(model, -1)
    with pytest.raises(ValueError, match=r"u: got shape \(3,\), expected \(\.\.\., 7\)"):
        activations.step(activations.initial, [1, 2, 3])
    for bad in (np.zeros((2, 7)), np.zeros(3)):
        with pytest.raises(ValueError, match="activation: got shape"):
            activations.run(bad, np.zeros((4, 7)))
    with pytest.raises(ValueError, match=r"U: got shape \(7,\), expected \(T, 7\)"):
        activations.run(activations.initial, np.zeros(7))
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="u: expected floats, got torch.int64"):
        activations.step(activations.initial, torch.ones(7, dtype=torch.int64))
    with pytest.raises(ValueError, match="actuator 'x'.*time_constant"):
        coulomb.load(ARM.replace('name="filter"', 'name="x"').replace('dynprm=".03"', 'dynprm="0"'))
