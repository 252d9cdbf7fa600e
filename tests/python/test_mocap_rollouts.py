"""Poses of mocap bodies along rollouts, batches and control steps: the bits of single steps, and exact derivatives by the pose of every
step."""

import copy
import pickle

import numpy as np
import pytest
from test_mocap import HAND

import coulomb
from coulomb._poses import _rotation_vectors

STEPS = 12
OPTIONS = [
    {},
    {"contact": "lcp"},
    {"contact": "penalty"},
    {"stepper": "bdf1", "contact": "penalty"},
    {"stepper": "bdf2", "contact": "penalty"},
    {"continuous_collision": True},
]


def quaternion(r):
    """Of rotation vectors (..., 3)."""
    angle = np.linalg.norm(r, axis=-1, keepdims=True)
    return np.concatenate([np.cos(angle / 2), np.sinc(angle / 2 / np.pi) * r / 2], axis=-1)


def moved(poses, tangent):
    """Poses along a tangent (..., 6): position and rotation vector."""
    r = _rotation_vectors(poses[..., 3:])
    return np.concatenate([poses[..., :3] + tangent[..., :3], quaternion(r + tangent[..., 3:])], axis=-1)


def case(seed=0, steps=STEPS):
    """A hand on a weld whose target moves and turns, and a paddle that pushes a puck. (model, q, v, poses)."""
    model = coulomb.load(HAND)
    rng = np.random.default_rng(seed)
    q, v = model.neutral()
    q[7], q[9] = 0.3697, 0.02999
    v = 0.1 * rng.normal(size=model.nv)
    v[6:] = [-0.3, 0.1, 0, 0, 0, 0]
    t = np.arange(steps)[:, None]
    target = np.concatenate(
        [[[0, 0, 0.5]] + t * [[1e-3, -5e-4, 2e-4]], quaternion([[0.3, 0.2, -0.4]] + t * 0.01)], axis=1
    )
    paddle = np.concatenate([[[0.3, 0, 0.08]] + t * [[4e-4, 1e-4, 0]], quaternion([[0, 0, 0.02]] + t * 1e-3)], axis=1)
    return model, q, v, np.stack([target, paddle], axis=1)


BALL = """<mujoco><option timestep="0.005"/><worldbody><geom name="floor" type="plane" size="1 1 .1" friction=".3"/>
<body name="target" mocap="true" pos="0 0 .5"><geom size=".01" contype="0" conaffinity="0"/></body>
<body name="hand" pos="0 0 .5"><freejoint/><geom name="hand" type="box" size=".05 .04 .02" mass=".5"/></body>
<body name="paddle" mocap="true" pos=".5 0 .1"><geom name="paddle" type="box" size=".02 .3 .3" friction=".2"/></body>
<body name="ball" pos=".55 0 .03"><freejoint/><geom name="ball" size=".03" mass=".3" friction=".1"/></body>
</worldbody><equality><weld body1="target" body2="hand"/></equality></mujoco>"""


def ball_case(steps):
    """As case, with a ball in the place of the puck: one contact point for each face, so that forces are well determined."""
    model = coulomb.load(BALL)
    q, v = model.neutral()
    q[7], q[9], v[6] = 0.5495, 0.02999, -0.2
    t = np.arange(steps)[:, None]
    target = np.concatenate(
        [[[0, 0, 0.5]] + t * [[1e-3, -5e-4, 2e-4]], quaternion([[0.03, 0.02, -0.04]] + t * 0.01)], axis=1
    )
    paddle = np.concatenate([[[0.5, 0, 0.08]] + t * [[1e-3, 1e-4, 0]], quaternion([[0, 0.05, 0.1]] + t * 1e-3)], axis=1)
    return model, q, v, np.stack([target, paddle], axis=1)


@pytest.mark.parametrize("options", OPTIONS)
def test_a_rollout_is_its_steps(options):
    model, q, v, poses = case()
    rollout = coulomb.Simulator(model, **options).rollout(q, v, mocap=poses)
    sim = coulomb.Simulator(model, **options)
    pushed = False
    for t in range(STEPS):
        q, v = sim.step(q, v, mocap=poses[t])
        pushed |= any("paddle" in (c.geometry_a, c.geometry_b) and c.mode != "separating" for c in sim.contacts)
        assert (rollout.q[t + 1] == q).all() and (rollout.v[t + 1] == v).all()
    assert rollout.steps == STEPS and rollout.converged
    assert pushed


def test_bodies_stay_at_the_last_pose():
    model, q, v, poses = case()
    sim = coulomb.Simulator(model)
    sim.rollout(q, v, mocap=poses)
    assert sim.mocap == pytest.approx(poses[-1], abs=1e-15)
    still = sim.rollout(q, v, steps=3)
    again = sim.rollout(q, v, mocap=np.repeat(sim.mocap[None], 3, axis=0))
    assert (still.q == again.q).all()
    w = np.ones((2, 4, model.nv))
    assert (still.vjp(*w).q0 == again.vjp(*w).q0).all()


@pytest.mark.parametrize("options", OPTIONS)
def test_derivatives_by_the_poses(options):
    model, q, v, poses = case()
    sim = coulomb.Simulator(model, **options)
    rng = np.random.default_rng(1)
    rollout = sim.rollout(q, v, mocap=poses)
    dQ, dV = rng.normal(size=(2, STEPS + 1, model.nv))
    dQ[0] = dV[0] = 0
    back = rollout.vjp(dQ, dV, wrt=["mocap", "mass/puck"])
    g = back.mocap
    assert g.shape == (STEPS, 2, 6) and (back["mocap"] == g).all()
    assert back.parameters == ["mass/puck"]
    assert back["mass/puck"] == pytest.approx(rollout.vjp(dQ, dV, wrt=["mass/puck"])["mass/puck"], rel=1e-12)

    def value(poses):
        r = sim.rollout(q, v, mocap=poses)
        return sum(w @ model.difference(base, q1) + u @ v1 for w, u, base, q1, v1 in zip(dQ, dV, rollout.q, r.q, r.v))

    # Central differences along directions that turn and shift, of each body and step.
    eps = 1e-6
    directions = [rng.normal(size=(STEPS, 2, 6)) * scale for scale in (1, 1)]
    for t in (0, 3, STEPS - 1):
        for body in range(2):
            one = np.zeros((STEPS, 2, 6))
            one[t, body] = rng.normal(size=6)
            directions.append(one)
    scale = np.abs(g).sum()
    judged = 0
    for d in directions:
        found = [(value(moved(poses, s * eps * d)) - value(moved(poses, -s * eps * d))) / (2 * s * eps) for s in (1, 3)]
        if abs(found[0] - found[1]) < 1e-7 * scale:
            judged += 1
            assert found[0] == pytest.approx((g * d).sum(), abs=1e-6 * scale)
    assert judged > len(directions) / 2

    # Forward products and the dense matrix are the transposes.
    for d in directions[:3]:
        tq, tv = rollout.jvp(dmocap=d)
        assert (tq * dQ).sum() + (tv * dV).sum() == pytest.approx((g * d).sum(), abs=1e-9 * scale)
    J = rollout.jacobian(["mocap"])["mocap"]
    assert J.shape == (STEPS + 1, 2 * model.nv, STEPS * 12)
    W = np.concatenate([dQ, dV], axis=1)
    assert np.einsum("ti,tik->k", W, J) == pytest.approx(g.ravel(), abs=1e-9 * scale)
    last = rollout.jacobian(["mocap"], all_states=False)["mocap"]
    assert (last == J[-1]).all()

    # Step by step, and one shift of all poses.
    names = ["body_placement/target", "body_placement/paddle"]
    steps = rollout.linearize(wrt=names)
    if "bdf2" not in options.values():
        assert J[-1][:, -12:] == pytest.approx(np.concatenate([steps[n][-1] for n in names], axis=1), abs=1e-12 * scale)
    shift = rollout.vjp(dQ, dV, wrt=names)
    assert np.array([shift[n] for n in names]) == pytest.approx(g.sum(axis=0), abs=1e-9 * scale)


CARRIED = """<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="2 2 .1" friction=".5"/>
<body name="base" mocap="true" pos="0 0 .6"><geom size=".05" contype="0" conaffinity="0"/>
  <body name="tool" pos=".1 0 0"><geom name="stick" type="capsule" size=".02 .1"/></body>
  <body name="upper" pos="0 0 -.1"><joint name="shoulder" axis="0 1 0"/><geom type="capsule" size=".03" fromto="0 0 0 0 .1 -.3" mass="1"/>
    <body pos="0 .1 -.3"><joint name="elbow" axis="1 0 .2"/><geom type="capsule" size=".02" fromto="0 0 0 .1 0 -.2" mass=".5"/></body></body></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("options", OPTIONS)
def test_what_they_carry(options):
    """An arm and a tool on a mocap body."""
    model = coulomb.load(CARRIED)
    sim = coulomb.Simulator(model, **options)
    rng = np.random.default_rng(12)
    q, v = np.array([0.3, 0.4]), np.array([0.2, -0.1])
    t = np.arange(10)[:, None]
    poses = np.concatenate(
        [[[0, 0, 0.6]] + t * [[1e-3, 2e-3, -1e-3]], quaternion([[0.1, 0.2, 0.3]] + 0.01 * t)], axis=1
    )
    poses = poses[:, None]
    w = rng.normal(size=(2, 11, 2))
    names = ["position/tool", "orientation/upper"]
    rollout = sim.rollout(q, v, mocap=poses)
    weights = {"position/tool": rng.normal(size=(11, 3))}
    g = rollout.vjp(*w, wrt=["mocap"], outputs=weights).mocap

    def value(poses):
        r = sim.rollout(q, v, mocap=poses)
        return (r.q * w[0]).sum() + (r.v * w[1]).sum() + (r.output("position/tool") * weights["position/tool"]).sum()

    for _ in range(2):
        d = rng.normal(size=g.shape)
        difference = (value(moved(poses, 1e-6 * d)) - value(moved(poses, -1e-6 * d))) / 2e-6
        assert (g * d).sum() == pytest.approx(difference, rel=1e-6, abs=1e-6)
    x = q, v
    again = coulomb.Simulator(model, **options)
    for pose, row in zip(poses, rollout.output(names)[1:]):
        x = again.step(*x, mocap=pose)
        assert row == pytest.approx(again.output(names), abs=1e-12)


@pytest.mark.parametrize("gradient", ["smoothed_collision", "smoothed_step", "from_distance", "complementarity_aware"])
def test_other_gradients(gradient):
    model, q, v, poses = ball_case(6)
    rng = np.random.default_rng(13)
    w, d = rng.normal(size=(2, 7, model.nv)), rng.normal(size=(6, 2, 6))
    found = []
    for more in ({}, {"keep_factors": False, "checkpoint_every": 4}):
        rollout = coulomb.Simulator(model, gradient=gradient).rollout(q, v, mocap=poses, **more)
        found.append(rollout.vjp(*w, wrt=["mocap"]).mocap)
    assert (found[0] == found[1]).all()
    tq, tv = rollout.jvp(dmocap=d)
    assert (tq * w[0]).sum() + (tv * w[1]).sum() == pytest.approx((found[0] * d).sum(), rel=1e-9)

    # The last step is that of a simulator.
    sim, x = coulomb.Simulator(model, gradient=gradient), (q, v)
    for pose in poses:
        x = sim.step(*x, mocap=pose)
    names = ["body_placement/target", "body_placement/paddle"]
    own = sim.vjp(w[0, -1], w[1, -1], names)
    assert np.array([own[name] for name in names]) == pytest.approx(found[0][-1], rel=1e-12, abs=1e-12)


def test_replays_bring_the_poses_back():
    model, q, v, poses = case(steps=30)
    results = []
    for more in ({}, {"keep_factors": False}, {"checkpoint_every": 7, "keep_factors": False}, {"checkpoint_every": 1}):
        sim = coulomb.Simulator(model)
        rollout = sim.rollout(q, v, mocap=poses, **more)
        sim.step(q, v, mocap=poses[4])  # the rollout does not look at it any more
        w = np.random.default_rng(2).normal(size=(2, 31, model.nv))
        results.append(rollout.vjp(*w, wrt=["mocap"]))
    for other in results[1:]:
        assert (other.mocap == results[0].mocap).all() and (other.q0 == results[0].q0).all()


def test_held_poses():
    model, q, v, poses = case(steps=4)
    sim = coulomb.Simulator(model)
    held = sim.rollout(q, v, mocap=poses, substeps=3)
    every = sim.rollout(q, v, mocap=np.repeat(poses, 3, axis=0))
    assert (held.q == every.q[::3]).all()
    w = np.random.default_rng(3).normal(size=(2, 5, model.nv))
    spread = np.zeros((2, 13, model.nv))
    spread[:, ::3] = w
    g = held.vjp(*w, wrt=["mocap"]).mocap
    assert g == pytest.approx(every.vjp(*spread, wrt=["mocap"]).mocap.reshape(4, 3, 2, 6).sum(axis=1), abs=1e-12)
    d = np.random.default_rng(4).normal(size=g.shape)
    tq, tv = held.jvp(dmocap=d)
    assert (tq * w[0]).sum() + (tv * w[1]).sum() == pytest.approx((g * d).sum(), rel=1e-9)
    J = held.jacobian(["mocap"])["mocap"]
    assert np.einsum("ti,tik->k", np.concatenate([*w], axis=1), J) == pytest.approx(g.ravel(), rel=1e-9, abs=1e-12)


def test_outputs_see_where_bodies_are():
    model, q, v, poses = ball_case(STEPS)
    names = ["position/target", "orientation/paddle", "contact_force/ball", "position/hand"]
    sim = coulomb.Simulator(model)
    rollout = sim.rollout(q, v, mocap=poses)
    again = coulomb.Simulator(model)
    x = q, v
    for t in range(STEPS):
        x = again.step(*x, mocap=poses[t])
        assert rollout.output(names)[t + 1] == pytest.approx(again.output(names), abs=1e-12)
    assert (rollout.output(names[:2])[0] == rollout.output(names[:2])[1]).all()

    rng = np.random.default_rng(5)
    weights = {
        "position/target": rng.normal(size=(STEPS + 1, 3)),
        "contact_force/ball": rng.normal(size=(STEPS + 1, 3)),
    }
    g = rollout.vjp(outputs=weights, wrt=["mocap"]).mocap
    states = rollout.vjp(outputs={"position/target": weights["position/target"]}, wrt=["mocap"]).mocap
    of_steps = weights["position/target"][1:].copy()
    of_steps[0] += weights["position/target"][0]
    assert states[:, 0, :3] == pytest.approx(of_steps, abs=1e-9)

    def value(poses):
        r = sim.rollout(q, v, mocap=poses)
        return sum((w * r.output(name)).sum() for name, w in weights.items())

    judged = 0
    for _ in range(6):
        d = rng.normal(size=g.shape)
        found = [(value(moved(poses, e * d)) - value(moved(poses, -e * d))) / (2 * e) for e in (1e-7, 3e-7)]
        if found[0] == pytest.approx(found[1], rel=1e-6):
            judged += 1
            assert found[0] == pytest.approx((g * d).sum(), rel=1e-5)
    assert judged


@pytest.mark.parametrize("threads", [1, 3])
def test_batches_have_the_bits_of_single_ones(threads):
    model, q, v, _ = case()
    n = 5
    poses = np.stack([case(seed)[3] + np.r_[1e-4 * seed, np.zeros(6)] for seed in range(n)])
    rng = np.random.default_rng(6)
    Q, V = np.tile(q, (n, 1)), np.tile(v, (n, 1)) + 0.01 * rng.normal(size=(n, model.nv))
    batch = coulomb.BatchSimulator(model, n, threads)
    W = rng.normal(size=(2, n, STEPS + 1, model.nv))
    for more in ({}, {"memory_budget": 1.0}):
        rollout = batch.rollout(Q, V, mocap=poses, **more)
        back = rollout.vjp(*W, wrt=["mocap"])
        d = rng.normal(size=(n, STEPS, 2, 6))
        tq, tv, valid = rollout.jvp(dmocap=d)
        assert valid.all() and back.valid.all() and back["mocap"] is back.mocap
        for i in range(n):
            one = coulomb.Simulator(model).rollout(Q[i], V[i], mocap=poses[i])
            assert (rollout.q[i] == one.q).all() and (rollout.v[i] == one.v).all()
            assert (back.mocap[i] == one.vjp(W[0, i], W[1, i], wrt=["mocap"]).mocap).all()
            assert (tv[i] == one.jvp(dmocap=d[i])[1]).all()
    assert batch.mocap == pytest.approx(poses[:, -1], abs=1e-15)

    names = ["position/target", "orientation/paddle", "position/hand"]
    plain = batch.rollout(Q, V, mocap=poses[:, ::2], substeps=2, derivatives=False)
    full = batch.rollout(Q, V, mocap=poses[:, ::2], substeps=2)
    assert (plain.q == full.q).all() and (plain.output(names) == full.output(names)).all()

    # Steps, and a mask: the others' rows are not looked at, and their bodies stay.
    batch = coulomb.BatchSimulator(model, n, threads)
    sims = [coulomb.Simulator(model) for _ in range(n)]
    x = Q, V
    for t in range(3):
        x1 = batch.step(*x, mocap=poses[:, t])
        for i in range(n):
            one = sims[i].step(x[0][i], x[1][i], mocap=poses[i, t])
            assert (x1[1][i] == one[1]).all()
        x = x1
    g = batch.vjp(W[0, :, 0], W[1, :, 0], ["body_placement/target"])
    assert (
        g["body_placement/target"][2]
        == sims[2].vjp(W[0, 2, 0], W[1, 2, 0], ["body_placement/target"])["body_placement/target"]
    ).all()
    mask = np.array([True, False, True, True, False])
    before = batch.mocap
    unseen = np.where(mask[:, None, None], poses[:, 5], np.nan)
    batch.step(*x, mask=mask, mocap=unseen)
    assert batch.mocap[~mask] == pytest.approx(before[~mask], abs=0)
    assert batch.mocap[mask] == pytest.approx(poses[mask, 5], abs=1e-15)

    # The same for all.
    alike, written = (coulomb.BatchSimulator(model, n, threads) for _ in range(2))
    assert (alike.step(Q, V, mocap=poses[0, 0])[1] == written.step(Q, V, mocap=np.stack([poses[0, 0]] * n))[1]).all()
    assert (
        alike.rollout(Q, V, mocap=poses[0]).q[1] == coulomb.Simulator(model).rollout(Q[1], V[1], mocap=poses[0]).q
    ).all()


def test_control_steps():
    model, q, v, poses = case()
    n, rng = 3, np.random.default_rng(7)
    batch = coulomb.BatchSimulator(model, n, 2)
    Q, V = np.tile(q, (n, 1)), np.tile(v, (n, 1))
    mocap = np.stack([poses[1], poses[2], poses[3]])
    records = []
    for t in range(3):
        Q, V, record = batch.control_step(Q, V, mocap=mocap + np.r_[1e-3 * t, np.zeros(6)], substeps=2)
        records.append(record)
    w = rng.normal(size=(2, n, model.nv))
    g = records[1].vjp(*w, wrt=["mocap"])
    assert g.mocap.shape == (n, 2, 6)
    d = rng.normal(size=g.mocap.shape)
    tq, tv = records[1].jvp(dmocap=d)
    assert (tq * w[0]).sum() + (tv * w[1]).sum() == pytest.approx((g.mocap * d).sum(), rel=1e-9)
    J = records[1].jacobian(["body_placement/target", "body_placement/paddle"])
    forward = sum(
        np.einsum("nik,nk->ni", J[f"body_placement/{b}"], d[:, k]) for k, b in enumerate(("target", "paddle"))
    )
    assert forward == pytest.approx(np.concatenate([tq, tv], axis=1), abs=1e-9)

    # The same steps one by one.
    sim = coulomb.Simulator(model)
    x = q, v
    for t in range(3):
        for _ in range(2):
            x = sim.step(*x, mocap=mocap[1] + np.r_[1e-3 * t, np.zeros(6)])
    assert (x[0] == Q[1]).all() and (x[1] == V[1]).all()


def test_copies_of_batches_know_the_poses():
    model, q, v, poses = case()
    batch = coulomb.BatchSimulator(model, 2, 1)
    Q, V = np.tile(q, (2, 1)), np.tile(v, (2, 1))
    Q, V = batch.step(Q, V, mocap=poses[[3, 5]])
    copies = [pickle.loads(pickle.dumps(batch)), copy.deepcopy(batch)]
    expected = batch.step(Q, V)[1]
    for other in copies:
        assert (other.step(Q, V)[1] == expected).all()


def test_what_moves_them_back():
    model, q, v, poses = case()
    batch = coulomb.BatchSimulator(model, 2, 1)
    home = batch.mocap
    batch.step(np.tile(q, (2, 1)), np.tile(v, (2, 1)), mocap=poses[[3, 5]])
    moved_there = batch.mocap
    batch.reset()
    assert (batch.mocap == moved_there).all()
    batch.set_parameters({"mass/puck": np.full((2, 1), 0.4)}, mask=[True, False])
    assert (batch.mocap[0] == home[0]).all() and (batch.mocap[1] == moved_there[1]).all()


def test_poses_of_the_model_change_nothing():
    model, q, v, _ = case()
    home = np.repeat(coulomb.Simulator(model).mocap[None], STEPS, axis=0)
    sim = coulomb.Simulator(model)
    with_poses, without = sim.rollout(q, v, mocap=home), coulomb.Simulator(model).rollout(q, v, steps=STEPS)
    assert (with_poses.q == without.q).all()
    assert sim.model is not None and sim.mocap == pytest.approx(home[0], abs=0)
    w = np.ones((2, STEPS + 1, model.nv))
    a, b = with_poses.vjp(*w, wrt=["mass/puck"]), without.vjp(*w, wrt=["mass/puck"])
    assert (a.q0 == b.q0).all() and (a["mass/puck"] == b["mass/puck"]).all() and a.mocap is None
    # Where no poses were given, the gradient is by those that the model has.
    assert (without.vjp(*w, wrt=["mocap"]).mocap == with_poses.vjp(*w, wrt=["mocap"]).mocap).all()


def test_models_without_mocap_bodies():
    model = coulomb.load("<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>")
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    rollout = sim.rollout(q, v, mocap=np.zeros((3, 0, 7)))
    assert rollout.vjp(np.ones((4, 6)), np.ones((4, 6)), wrt=["mocap"]).mocap.shape == (3, 0, 6)
    with pytest.raises(ValueError, match="mocap"):
        sim.rollout(q, v, mocap=np.zeros((3, 1, 7)))


def test_errors_leave_everything_as_it_was():
    model, q, v, poses = case(steps=4)
    sim, batch = coulomb.Simulator(model), coulomb.BatchSimulator(model, 2, 1)
    Q, V = np.tile(q, (2, 1)), np.tile(v, (2, 1))
    nan, long = poses.copy(), poses.copy()
    nan[2, 1, 4] = np.nan
    long[3, 0, 3:] *= 2
    home, rollout = sim.mocap, sim.rollout(q, v, steps=2)
    both = np.stack([poses, poses])
    for call, why in (
        (lambda: sim.rollout(q, v, mocap=nan), r"mocap\[2, 1, 4\] is nan"),
        (lambda: sim.rollout(q, v, mocap=nan, substeps=2), r"mocap\[2, 1, 4\] is nan"),
        (lambda: sim.rollout(q, v, mocap=long), r"mocap\[3, 0\]: body 'target' quaternion: .* has norm 2"),
        (lambda: sim.rollout(q, v, mocap=poses[:, :1]), "mocap"),
        (lambda: sim.rollout(q, v, mocap=poses, steps=3), "mocap has 4 rows"),
        (lambda: sim.rollout(q, v, mocap=poses, tau=np.zeros((3, model.nv))), "mocap has 4 rows"),
        (lambda: batch.rollout(Q, V, mocap=np.stack([poses, nan])), r"mocap\[1, 2, 1, 4\] is nan"),
        (lambda: batch.rollout(Q, V, mocap=np.stack([poses, long])), r"mocap\[1, 3, 0\]: body 'target'"),
        (lambda: batch.step(Q, V, mocap=np.stack([poses[0], nan[2]])), r"mocap\[1, 1, 4\] is nan"),
        (lambda: batch.control_step(Q, V, mocap=np.stack([poses[0], nan[2]])), r"mocap\[1, 1, 4\] is nan"),
        (lambda: batch.step(Q, V, mocap=both), "mocap"),
        (lambda: rollout.jvp(dmocap=np.full((2, 2, 6), np.inf)), r"dmocap\[0, 0, 0\] is inf"),
        (lambda: rollout.vjp(wrt=["mocap", "body_placement/target"]), "beside 'mocap'"),
    ):
        with pytest.raises(ValueError, match=why):
            call()
        assert (sim.mocap == home).all() and (batch.mocap == home).all()


# --- frameworks ----------------------------------------------------------------------------------------------------


def rows(n=2):
    model, q, v, poses = ball_case(3)
    rng = np.random.default_rng(8)
    return model, np.tile(q, (n, 1)), np.tile(v, (n, 1)) + 0.01 * rng.normal(size=(n, model.nv)), np.stack([poses] * n)


def test_numbers_and_tangents_of_poses():
    from coulomb import _poses

    rng = np.random.default_rng(9)
    for r in (rng.normal(size=3), 1e-9 * rng.normal(size=3), 1e-4 * rng.normal(size=3), 3.1 * np.array([0.6, 0, 0.8])):
        x = np.r_[rng.normal(size=3), 1.7 * quaternion(r)][None]
        for sign in (1, -1):
            x[0, 3:] *= sign
            unit, lengths = _poses.normalized(x)
            P = _poses.projections(unit, lengths)[0]
            for _ in range(3):
                dx = 1e-6 * rng.normal(size=7)
                ends = [_rotation_vectors(_poses.normalized(x + s * dx)[0][0, 3:]) for s in (1, -1)]
                assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(P[3:] @ dx / 1e-6, abs=1e-6)


def test_torch():
    torch = pytest.importorskip("torch")
    import coulomb.torch

    model, q, v, poses = rows()
    poses = poses * np.r_[1, 1, 1, [1.3] * 4]
    sim = coulomb.Simulator(model)
    Q, V, M = (torch.tensor(x, requires_grad=True) for x in (q, v, poses))
    ones = coulomb.Simulator(model)
    unit = ball_case(3)[3]
    found = coulomb.torch.rollout(sim, Q, V, mocap=M)[1].detach().numpy()
    assert found[0] == pytest.approx(ones.rollout(q[0], v[0], mocap=unit).v, abs=1e-9)
    assert (sim.mocap == coulomb.Simulator(model).mocap).all()

    check = dict(eps=1e-6, atol=1e-5, rtol=1e-4, nondet_tol=0)
    assert torch.autograd.gradcheck(
        lambda m: coulomb.torch.step(sim, Q[:1], V[:1], mocap=m)[1] * 1e-2, M[:1, 1], **check
    )
    assert torch.autograd.gradcheck(lambda m: coulomb.torch.rollout(sim, Q[:1], V[:1], mocap=m)[0], M[:1], **check)
    y = coulomb.torch.step(sim, Q, V, mocap=M[:, 1], outputs="position/target")[2]
    (g,) = torch.autograd.grad(y.sum(), M)
    assert g[:, 1, 0, :3].numpy() == pytest.approx(1, abs=1e-9)

    # A control step is that of the batch, and its gradient by held poses the sum.
    batch = coulomb.BatchSimulator(model, 2, 1)
    Q1, V1 = coulomb.torch.control_step(batch, Q, V, mocap=M[:, 0], substeps=3)
    held = coulomb.torch.rollout(sim, Q, V, mocap=M[:, :1], substeps=3)
    assert (Q1 == held[0][:, -1]).all()
    a, b = (torch.autograd.grad(x.sum(), M)[0] for x in (V1, held[1][:, -1]))
    assert a.numpy() == pytest.approx(b.numpy(), rel=1e-9, abs=1e-12)

    # Without poses bodies are where the model has them, whatever came before.
    without = coulomb.torch.step(sim, Q, V)[1]
    assert (without[0].detach().numpy() == coulomb.Simulator(model).step(q[0], v[0])[1]).all()
    with pytest.raises(ValueError, match="mocap gives the pose"):
        coulomb.torch.step(sim, Q, V, mocap=M[:, 0], parameters={"body_placement/target": torch.zeros(6)})
    with pytest.raises(ValueError, match="norm 0"):
        coulomb.torch.step(sim, Q, V, mocap=0 * M[:, 0])
    with pytest.raises(ValueError, match="mocap: expected shape"):
        coulomb.torch.step(sim, Q, V, mocap=M[:, 0, :1])


def test_jax():
    jax = pytest.importorskip("jax")
    torch = pytest.importorskip("torch")
    import coulomb.jax
    import coulomb.torch

    jax.config.update("jax_enable_x64", True)
    model, q, v, poses = rows()
    sim = coulomb.Simulator(model)
    w = np.random.default_rng(10).normal(size=(2, 4, model.nv))

    def value(m):
        return (coulomb.jax.rollout(sim, q, v, mocap=m)[1] * w).sum()

    g = jax.grad(value)(poses)
    M = torch.tensor(poses, requires_grad=True)
    (coulomb.torch.rollout(sim, torch.tensor(q), torch.tensor(v), mocap=M)[1] * torch.tensor(w)).sum().backward()
    scale = np.abs(M.grad.numpy()).max()
    assert np.asarray(g) == pytest.approx(M.grad.numpy(), abs=1e-9 * scale)

    d = np.random.default_rng(11).normal(size=poses.shape)
    assert jax.jvp(value, (poses,), (d,))[1] == pytest.approx((np.asarray(g) * d).sum(), rel=1e-9)
    one = jax.jit(jax.grad(lambda m: coulomb.jax.step(sim, q, v, mocap=m, outputs="position/target")[2].sum()))
    assert np.asarray(one(poses[:, 0]))[:, 0, :3] == pytest.approx(1, abs=1e-9)
    last = coulomb.jax.control_step(sim, q, v, mocap=poses[:, 0], substeps=3)[1]
    assert np.asarray(last) == pytest.approx(
        np.asarray(coulomb.jax.rollout(sim, q, v, mocap=poses[:, :1], substeps=3)[1][:, -1])
    )


@pytest.mark.parametrize("stepper", ["semi_implicit", "bdf2"])
def test_jax_readings_of_the_first_state(stepper):
    """They see the bodies where the first step has them: in the value, in the value beside a gradient, and in the gradient."""
    jax = pytest.importorskip("jax")
    torch = pytest.importorskip("torch")
    import coulomb.jax
    import coulomb.torch

    jax.config.update("jax_enable_x64", True)
    model, q, v, poses = rows()
    sim = coulomb.Simulator(model, stepper=stepper)
    names = ["position/target", "orientation/paddle", "position/hand"]
    w = np.random.default_rng(14).normal(size=(2, 4, 10))

    def value(q, m):
        return (coulomb.jax.rollout(sim, q, v, mocap=m, outputs=names)[2] * w).sum()

    found, (by_q, by_m) = jax.value_and_grad(value, (0, 1))(q, poses)
    assert float(found) == pytest.approx(float(value(q, poses)), rel=1e-12)
    Q, M = torch.tensor(q, requires_grad=True), torch.tensor(poses, requires_grad=True)
    (coulomb.torch.rollout(sim, Q, torch.tensor(v), mocap=M, outputs=names)[2] * torch.tensor(w)).sum().backward()
    assert np.asarray(by_m) == pytest.approx(M.grad.numpy(), rel=1e-9, abs=1e-9)
    assert np.asarray(by_q) == pytest.approx(Q.grad.numpy(), rel=1e-9, abs=1e-9)
