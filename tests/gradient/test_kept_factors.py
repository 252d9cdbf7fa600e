"""Factors that a rollout of implicit steps keeps for its backward sweep: the same bits as without them, within the memory budget."""

import numpy as np
import pytest

import coulomb

STEPS = 40
CASES = [("bdf1", {}), ("bdf2", {}), ("semi_implicit", {"contact": "penalty"})]
NAMES = [
    "mass/b1",
    "friction/ball",
    "contact_stiffness",
    "size/ball",
    "joint_placement/l1",
    "gravity",
    "timestep",
]


def rope(links):
    """A chain of boxes on hinges, the first of them free, whose end drags a ball over the ground."""
    bodies = '<geom name="ball" type="sphere" size=".06" mass=".2" pos=".1 0 -.04" friction=".1"/>'
    for k in reversed(range(links)):
        joint = "<freejoint/>" if k == 0 else f'<joint name="l{k}" axis="0 1 .3" damping=".02" stiffness=".5"/>'
        bodies = f"""<body name="b{k}" pos="{0 if k == 0 else 0.1} 0 {0.0999 if k == 0 else 0}">{joint}
          <geom name="g{k}" type="box" size=".04 .02 .02" mass=".1" contype="0" conaffinity="0"/>{bodies}</body>"""
    motors = "".join(f'<motor joint="l{k}"/>' for k in range(1, links))
    return coulomb.load(f"""<mujoco><worldbody><geom name="ground" type="plane" size="1 1 .1" friction=".05"/>{bodies}</worldbody>
      <actuator>{motors}</actuator></mujoco>""").with_parameters({"contact_stiffness": [3e3]})


def run(model, stepper="bdf2", steps=STEPS, simulator=None, **options):
    sim = coulomb.Simulator(model, stepper=stepper, timestep=2e-3, **(simulator or {}))
    q, v = model.neutral()
    v[0] = 0.3
    U = 0.05 * np.random.default_rng(0).normal(size=(steps, model.nu))
    r = sim.rollout(q, v, U, **options)
    assert r.converged and len(sim.contacts) > 0
    return r


def gradients(r, names=NAMES, forces=None):
    dQ, dV = np.random.default_rng(1).normal(size=(2, len(r.q), r.model.nv))
    g = r.vjp(dQ, dV, wrt=names, outputs=forces and {forces: np.ones((len(r.q), 3))})
    return [g.q0, g.v0, g.u, g.tau, *(g[name] for name in names)]


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize(("stepper", "simulator"), CASES)
@pytest.mark.parametrize("links", [4, 50], ids=["dense", "sparse"])
def test_same_bits_with_and_without(links, stepper, simulator):
    model = rope(links)
    kept, not_kept = (run(model, stepper, simulator=simulator, keep_factors=keep) for keep in (True, False))
    assert np.array_equal(kept.q, not_kept.q) and np.array_equal(kept.v, not_kept.v)
    least = (STEPS - 1) * 2 * model.nv**2 * 8  # LU and R_q of every step but the start of bdf2
    assert kept.memory - not_kept.memory > least
    assert all(np.any(x) for x in gradients(kept))
    for names in (NAMES, [], ["timestep"]):
        assert same(gradients(kept, names), gradients(not_kept, names))
    last = f"contact_force/b{links - 1}"
    assert same(gradients(kept, forces=last), gradients(not_kept, forces=last))
    assert not same(gradients(kept, forces=last), gradients(kept))
    assert np.array_equal(kept.output(last), not_kept.output(last))
    tangent = {"dq0": np.ones(model.nv), "dU": np.ones((STEPS, model.nu)), "dparameters": {"mass/b1": [1.0]}}
    assert same(kept.jvp(**tangent), not_kept.jvp(**tangent))
    for name, J in kept.jacobian(wrt=["q0", "v0", "mass/b1"], all_states=False).items():
        assert np.array_equal(J, not_kept.jacobian(wrt=[name], all_states=False)[name])


@pytest.mark.parametrize("stepper", ["bdf1", "bdf2"])
def test_the_budget_holds(stepper):
    """What does not fit is evaluated again; nothing changes but the memory."""
    model = rope(8)
    free, none = run(model, stepper), run(model, stepper, keep_factors=False)
    expected = gradients(none)
    assert same(gradients(free), expected)
    for part in (0.1, 0.5, 0.9):
        budget = none.memory + part * (free.memory - none.memory)
        some = run(model, stepper, memory_budget=budget)
        assert 0.8 * budget < some.memory <= budget
        assert same(gradients(some), expected)
    for every in (7, STEPS):
        assert same(gradients(run(model, stepper, checkpoint_every=every)), expected)


def test_long_trajectories_stay_within_the_default():
    model = rope(50)
    r = run(model, "bdf1", steps=1000)
    states = r.q.nbytes + r.v.nbytes
    assert 50 << 20 < r.memory - states < 66 << 20


def test_the_simulator_is_left_alone():
    """Its last step has the derivatives that it has without; later steps keep nothing."""
    model = rope(4)
    sims = [coulomb.Simulator(model, stepper="bdf1", timestep=2e-3) for _ in range(2)]
    q, v = model.neutral()
    for sim, keep in zip(sims, (True, False), strict=True):
        sim.rollout(q, v, steps=20, keep_factors=keep)
    for _ in range(2):
        a, b = (sim.derivatives(wrt=NAMES) for sim in sims)
        assert np.array_equal(a.A, b.A) and np.array_equal(a.B, b.B)
        assert all(np.array_equal(a[name], b[name]) for name in NAMES)
        a, b = (sim.vjp(v + 1, v + 2, wrt=NAMES) for sim in sims)
        assert np.array_equal(a.q, b.q) and all(np.array_equal(a[name], b[name]) for name in NAMES)
        for sim in sims:
            sim.step(q, v)


def test_steps_over_a_limit():
    """Those of bdf2 are steps of bdf1, and the next starts anew: the same bits from kept factors and from steps followed again, and the
    derivative is that of differences."""
    hinges = [f'<joint name="j{k}" axis="0 1 .2" limited="true" range="-25 25" damping=".01"/>' for k in range(2)]
    inertia = '<inertial pos=".02 0 -.2" mass=".4" diaginertia=".004 .005 .002"/>'
    model = coulomb.load(
        f"<mujoco><worldbody><body name='b0'>{hinges[0]}{inertia}<body name='b1' pos='0 0 -.4'>{hinges[1]}{inertia}</body></body>"
        "</worldbody><actuator><motor joint='j0'/><motor joint='j1'/></actuator></mujoco>"
    )
    q0, v0 = np.array([0.3, 0.2]), np.array([3.0, -2.0])

    def rollout(q=q0, v=v0, keep=True, every=0, mass=0.4):
        options = {"checkpoint_every": every} if every else {}
        changed = model.with_parameters({"mass/b1": [mass]})
        sim = coulomb.Simulator(changed, stepper="bdf2", timestep=2e-3, limit_stiffness=300.0)
        return sim.rollout(q, v, np.zeros((150, model.nu)), keep_factors=keep, **options)

    r = rollout()
    pushed = np.abs(r.q) > np.radians(25)
    assert r.converged and (pushed[1:] != pushed[:-1]).sum() >= 4

    # The last state alone, so that the sweep goes over all limits that were met.
    dQ, dV = np.zeros((2, *r.v.shape))
    dQ[-1], dV[-1] = np.random.default_rng(1).normal(size=(2, model.nv))
    g = r.vjp(dQ, dV, wrt=["mass/b1"])
    for other in (rollout(keep=False), rollout(keep=False, every=7), rollout(every=11)):
        h = other.vjp(dQ, dV, wrt=["mass/b1"])
        assert same([g.q0, g.v0, g.u, g["mass/b1"]], [h.q0, h.v0, h.u, h["mass/b1"]])

    # Differences, fourth order.
    def loss(**change):
        end = rollout(**change)
        return dQ[-1] @ end.q[-1] + dV[-1] @ end.v[-1]

    def slope(change, step=2e-6):
        near, far = (loss(**change(step * k)) - loss(**change(-step * k)) for k in (1, 2))
        return (8 * near - far) / (12 * step)

    for d, e in enumerate(np.eye(2)):
        assert g.q0[d] == pytest.approx(slope(lambda x, e=e: {"q": q0 + x * e}), rel=1e-5, abs=1e-5)
        assert g.v0[d] == pytest.approx(slope(lambda x, e=e: {"v": v0 + x * e}), rel=1e-5, abs=1e-5)
    assert g["mass/b1"][0] == pytest.approx(slope(lambda x: {"mass": 0.4 + x}), rel=1e-5, abs=1e-5)

    # Forward mode: the same number.
    tangent = r.jvp(dq0=v0, dv0=q0)
    assert g.q0 @ v0 + g.v0 @ q0 == pytest.approx(dQ[-1] @ tangent[0][-1] + dV[-1] @ tangent[1][-1], rel=1e-10)
