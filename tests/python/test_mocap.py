"""Bodies that the caller moves: mocap bodies of MJCF, and scenery. What is welded to them follows, contacts feel where they are, and the
derivative with respect to their placement is exact."""

import pickle

import numpy as np
import pytest

import coulomb
from coulomb.mjcf_export import to_mjcf

HAND = """<mujoco><option timestep="0.002"/><worldbody>
<geom name="floor" type="plane" size="1 1 .1" friction=".3"/>
<body name="target" mocap="true" pos="0 0 .5"><geom size=".01" contype="0" conaffinity="0"/></body>
<body name="hand" pos="0 0 .5"><freejoint/><geom name="hand" type="box" size=".05 .05 .02" mass=".5"/>
  <body name="tool" pos="0 .02 -.05" euler="10 0 0"><geom name="tool" type="capsule" size=".01 .03" mass=".1"/></body></body>
<body name="paddle" mocap="true" pos=".3 0 .1"><geom name="paddle" type="box" size=".02 .1 .1" friction=".2"/></body>
<body name="puck" pos=".4 0 .031"><freejoint/><geom name="puck" type="box" size=".05 .04 .03" mass=".3" friction=".1"/></body>
</worldbody><equality><weld name="grip" body1="target" body2="hand"/></equality></mujoco>"""
UPRIGHT = [1.0, 0, 0, 0]


def poses(target=(0, 0, 0.5), paddle=(0.3, 0, 0.1), turned=UPRIGHT):
    return np.array([[*target, *turned], [*paddle, *UPRIGHT]])


def test_they_are_known():
    model = coulomb.load(HAND)
    assert [model.body_names[b] for b in model.mocap_bodies] == ["target", "paddle"]
    assert not any("mocap" in line for line in model.ignored)
    sim = coulomb.Simulator(model)
    assert sim.mocap == pytest.approx(poses())
    assert list(pickle.loads(pickle.dumps(model)).mocap_bodies) == list(model.mocap_bodies)
    again = coulomb.load(to_mjcf(model))
    assert len(again.mocap_bodies) == 2


def test_a_weld_follows():
    model = coulomb.load(HAND)
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    for i in range(600):
        angle = min(i, 400) * 1e-3
        q, v = sim.step(
            q,
            v,
            mocap=poses(
                (min(i, 400) * 5e-4, 0.1 * np.sin(angle), 0.5), turned=[np.cos(angle / 2), 0, 0, np.sin(angle / 2)]
            ),
        )
        assert sim.status.converged
    assert q[:3] == pytest.approx([0.2, 0.1 * np.sin(0.4), 0.5], abs=1e-9)
    assert q[3:7] == pytest.approx([np.cos(0.2), 0, 0, np.sin(0.2)], abs=1e-9)
    assert np.abs(v[:6]).max() < 1e-6
    assert sim.mocap[0, :3] == pytest.approx([0.2, 0.1 * np.sin(0.4), 0.5])


def test_it_pushes():
    model = coulomb.load(HAND)
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    for i in range(500):
        q, v = sim.step(q, v, mocap=poses(paddle=(0.3 + 2e-4 * i, 0, 0.1)))
        assert sim.status.converged
    assert q[7] > 0.3 + 2e-4 * 499 + 0.02 + 0.05 - 5e-3


def test_a_step_is_that_of_the_moved_model():
    model = coulomb.load(HAND)
    rng = np.random.default_rng(0)
    q, v = model.neutral()
    v = 0.1 * rng.normal(size=model.nv)
    where = poses((0.01, -0.02, 0.49), (0.335, 0.01, 0.1))
    moved = model.with_parameters(
        {"body_placement/target": [0.01, -0.02, 0.49, 0, 0, 0], "body_placement/paddle": [0.335, 0.01, 0.1, 0, 0, 0]}
    )
    expected = coulomb.Simulator(moved).step(q, v)
    sim = coulomb.Simulator(model)
    got = sim.step(q, v, mocap=where)
    assert (got[0] == expected[0]).all() and (got[1] == expected[1]).all()

    # It stays there, and the model that was given does not move.
    again = coulomb.Simulator(model)
    again.move_body("target", where[0, :3], where[0, 3:])
    again.move_body("paddle", where[1, :3], where[1, 3:])
    assert (again.step(q, v)[1] == expected[1]).all()
    assert model.body_pos[model.mocap_bodies[0]] == pytest.approx([0, 0, 0.5])
    assert (coulomb.Simulator(model).step(q, v)[1] != expected[1]).any()


def test_rollouts_from_before_keep_their_model():
    model = coulomb.load(HAND)
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    rollout = sim.rollout(q, v, np.zeros((20, 0)))
    w = np.ones((2, 21, model.nv))
    before = rollout.vjp(*w).q0
    sim.move_body("paddle", [0.34, 0, 0.1], UPRIGHT)
    sim.step(q, v)
    assert (rollout.vjp(*w).q0 == before).all()
    assert sim.rollout(q, v, np.zeros((20, 0))).q[-1] != pytest.approx(rollout.q[-1])


@pytest.mark.parametrize(
    "options", [{}, {"contact": "lcp"}, {"contact": "penalty"}, {"stepper": "bdf1", "contact": "penalty"}]
)
def test_derivatives_by_placement(options):
    model = coulomb.load(HAND)
    sim = coulomb.Simulator(model, **options)
    rng = np.random.default_rng(1)
    names = ["body_placement/target", "body_placement/paddle", "body_placement/tool"]
    assert set(names) <= set(model.parameters())
    judged = 0
    for _ in range(6):
        q, v = model.neutral()
        q[7], q[9] = 0.3695, 0.02999
        q[:3] += 0.002 * rng.normal(size=3)
        v = np.r_[0.1 * rng.normal(size=6), -1, 0.3, 0, 0.1 * rng.normal(size=3)]
        check = coulomb.check_gradients(sim, q, v, wrt=["q", "v", *names], tolerance=5e-6)
        assert check.passed, (check.errors, check.changed)
        judged += len(check.changed) <= 12 and len(sim.contacts) > 0
    assert judged

    sim.step(q, v)
    J, w = sim.derivatives(wrt=names), rng.normal(size=2 * model.nv)
    back = sim.vjp(w[: model.nv], w[model.nv :], wrt=names)
    for name in names:
        assert back[name].ravel() == pytest.approx(w @ J[name], rel=1e-8, abs=1e-10)


def test_split_steps_know_where_it_is():
    model = coulomb.load(HAND)
    sim = coulomb.Simulator(model, continuous_collision=True)
    q, v = model.neutral()
    q[7] = 0.5
    v[6] = -2.0
    for _ in range(100):
        q, v = sim.step(q, v, mocap=poses(paddle=(0.35, 0, 0.1)))
        assert sim.status.converged
    assert q[7] > 0.35 + 0.02 + 0.05 - 1e-4


def test_errors_leave_everything_as_it_was():
    model = coulomb.load(HAND)
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    for call, why in (
        (lambda: sim.step(q, v, mocap=np.zeros((1, 7))), "mocap"),
        (lambda: sim.step(q, v, mocap=np.full((2, 7), np.nan)), "mocap"),
        (lambda: sim.step(q, v, mocap=poses(turned=[2, 0, 0, 0])), "'target' quaternion"),
        (lambda: sim.step(q * np.nan, v, mocap=poses((1, 1, 1))), "q"),
        (lambda: sim.move_body("targe", [0, 0, 0], UPRIGHT), "did you mean 'target'"),
        (lambda: sim.move_body("hand", [0, 0, 0], UPRIGHT), "'hand': has a joint"),
        (lambda: sim.move_body("tool", [0, 0, 0], UPRIGHT), "'tool': is placed in 'hand'"),
        (lambda: sim.move_body("paddle", [0, np.inf, 0], UPRIGHT), r"'paddle' position\[1\]"),
    ):
        with pytest.raises(ValueError, match=why):
            call()
        assert sim.mocap == pytest.approx(poses())
    sim.step(q, v)
    sim.move_body("paddle", [0.3, 0, 0.1], UPRIGHT)
    with pytest.raises(RuntimeError, match="no step was taken"):
        sim.derivatives()
