"""The tasks that are not MuJoCo's: masses, starts, rewards at states whose reward is known, and that they can be done at all."""

import numpy as np
import pytest
from envs_here import HERE

import coulomb
import coulomb.envs  # noqa: F401
from coulomb.envs import IDS, State, VectorEnv
from coulomb.envs.arrays import rotation_matrix
from coulomb.envs.tasks import task_of
from coulomb.envs.tasks.diff_hopper import DiffHopper

TURN = np.array([np.cos(np.pi / 4), 0, 0, np.sin(np.pi / 4)])  # by 90 degrees, to the left


def make(name, num_envs=1, **options):
    return VectorEnv(num_envs, task=IDS[f"coulomb/{name}"][0], **options)


def task(name):
    return task_of(IDS[f"coulomb/{name}"][0], {})


def at(task, q, v, action=None, goal=()):
    """A State of one row."""
    action = np.zeros(len(task.action_low)) if action is None else action
    return State(*(np.array(part, float)[None] for part in (q, v, action, goal)), {})


def rewarded(task, state, before=None):
    return task.reward(before or state, state)[0][0]


def starts(task, number=300):
    random = np.random.default_rng(0)
    return [np.array(part) for part in zip(*(task.draw(random) for _ in range(number)))]


def test_cart_pole():
    """The facts of DiffRL's: a cart of 50 kg, a pole of 2.5 kg and 1 m, 60 Hz, 1000 N; the reward is zero where the pole stands."""
    t = task("CartPoleSwingUp-v0")
    model = t.model
    assert model.body_mass[1:] == pytest.approx([50, 2.5]) and model.body_com[2] == pytest.approx([0, 0, 0.5])
    assert t.control_timestep == pytest.approx(1 / 60)
    assert model.actuator_forces(*model.neutral(), [1.0]) == pytest.approx([1000, 0])

    assert rewarded(t, at(t, [0, 0], [0, 0])) == 0
    assert rewarded(t, at(t, [0, 2 * np.pi + 0.5], [0, 0])) == pytest.approx(-0.25)
    assert rewarded(t, at(t, [2, -3], [1, 4])) == pytest.approx(-9 - 0.1 * 16 - 0.05 * 4 - 0.1 * 1)
    assert t.observe(at(t, [1, 0.3], [2, 3]))[0] == pytest.approx([1, 2, np.sin(0.3), np.cos(0.3), 3])

    q, v, _ = starts(t)
    assert np.abs(q - [0, -np.pi]).max() <= np.pi / 2 and np.abs(q - [0, -np.pi]).max() > 1.4
    assert 0.2 < np.abs(v).max() <= 0.25

    # A pole that hangs stays; one that nearly stands falls as linear theory says, with a cart that gives way:
    # angle cosh(w t), w^2 = (M + m) m g l / ((M + m) I - m^2 l^2), I about the hinge. First-order steps: to 2 %.
    envs = make("CartPoleSwingUp-v0", 2)
    envs.reset(seed=0)
    envs.set_state(np.array([[0, 1e-3], [0, np.pi]]), np.zeros((2, 2)))
    for _ in range(30):
        observation, *_ = envs.step(np.zeros((2, 1)))
    inertia = 2.5 * ((0.025**2 + 0.5**2) / 3 + 0.5**2)
    rate = np.sqrt(52.5 * 2.5 * 9.81 * 0.5 / (52.5 * inertia - (2.5 * 0.5) ** 2))
    assert observation[0, 2] == pytest.approx(1e-3 * np.cosh(rate * 0.5), rel=0.02)
    assert observation[1, 3] == pytest.approx(-1, abs=1e-9)


def test_diff_hopper():
    """15.8 kg, rotors of 1; the reward is continuous where height begins to be missed, and its slope jumps from 400 d to 1."""
    t = task("DiffHopper-v0")
    assert t.model.body_mass.sum() == pytest.approx(15.8, abs=0.05)
    assert np.array_equal(t.model.dof_armature, np.ones(6)) and t.model.dof_damping.tolist() == [10, 10, 10, 12, 12, 12]
    assert t.model.pair_friction == pytest.approx(0.9)

    assert rewarded(t, at(t, np.zeros(6), np.zeros(6))) == pytest.approx(0.3 + 1)
    assert rewarded(t, at(t, [5, -0.3, np.pi / 6, 0, 0, 0], [2, 0, 0, 0, 0, 0])) == pytest.approx(2)
    assert rewarded(t, at(t, [0, -0.4, 0, 0, 0, 0], np.zeros(6))) == pytest.approx(1 - 200 * 0.01)
    assert rewarded(t, at(t, np.zeros(6), np.zeros(6), [1, -1, 0.5])) == pytest.approx(1.3 - 0.1 * 2.25)
    ends = [bool(t.terminated(at(t, [0, z, 0, 0, 0, 0], np.zeros(6)))[0]) for z in (-0.44, -0.46)]
    assert ends == [False, True]
    q, v, _ = starts(t)
    assert 0.049 < np.abs(q).max() <= 0.05 and 0.049 < np.abs(v).max() <= 0.05


def test_a_soft_floor_is_a_spring_of_that_stiffness():
    """Lying on its side, the hopper is carried by depths that add up to its weight over the stiffness; and how deep is no matter of the step."""
    depths = []
    for frame_skip in (4, 16):
        soft = DiffHopper(frame_skip, noise=0.0, terminate=False, contact_stiffness=2e4, contact_dashpot=1e3)
        sim = coulomb.Simulator(soft.model, timestep=soft.timestep, **soft.options)
        q, v, _ = soft.draw(np.random.default_rng(0))
        q[1:3] = -1.0, 1.5
        for _ in range(60 * 5 * frame_skip):
            q, v = sim.step(q, v, np.zeros(3))
        depths.append(sum(contact.depth for contact in sim.contacts))
    weight = 9.81 * soft.model.body_mass.sum()
    assert depths == pytest.approx([weight / 2e4] * 2, rel=1e-3)


def test_diff_half_cheetah():
    t = task("DiffHalfCheetah-v0")
    assert t.model.dof_armature == pytest.approx(0.1) and t.model.pair_friction == pytest.approx(1)
    assert t.model.dof_damping == pytest.approx(10 + np.array([0, 0, 0, 6, 4.5, 3, 4.5, 3, 1.5]))
    assert rewarded(t, at(t, np.zeros(9), np.arange(9) + 2.0, np.ones(6))) == pytest.approx(2 - 0.6)
    q, v, _ = starts(t)
    assert np.abs(q - [0, -0.2, *[0] * 7]).max() <= 0.1 and 0.24 < np.abs(v).max() <= 0.25


@pytest.mark.parametrize("name, joints, size", [("DiffAnt-v0", 8, 37), ("DiffHumanoid-v0", 21, 76)])
def test_runners(name, joints, size):
    """What they observe, where: height, quaternion, velocities in world axes, joints, how upright, how far they look ahead."""
    t = task(name)
    assert len(t.action_low) == joints and t.model.num_pairs == t.model.num_geometries - 1  # only the ground is touched
    q = np.concatenate([[0, 0, 1], TURN, 0.1 * np.arange(joints)])
    v = np.concatenate([[1, 2, 3], [4, 5, 6], np.arange(joints)])
    action = np.linspace(-1, 1, joints)
    seen = t.observe(at(t, q, v, action))[0]
    assert len(seen) == size
    expected = [1, *TURN, 1, 2, 3, -5, 4, 6, *q[7:], *(0.1 * v[6:]), 1, 0, *action]
    assert seen == pytest.approx(expected, abs=1e-12)

    # It looks at the target: from the side, and from the start.
    aside = at(t, [t.target, -7, 1, *TURN, *q[7:]], v)
    ahead = at(t, [0, 0, 1, 1, 0, 0, 0, *q[7:]], v)
    for state in (aside, ahead):
        _, heading = t.cosines(state, rotation_matrix(state.q[:, 3:7]))
        assert heading == pytest.approx(1)

    q, v, _ = starts(t)
    angles = 2 * np.arccos(q[:, 3])
    assert np.abs(q[:, :3] - [0, 0, t.start_height]).max() <= 0.1 and 6 < np.rad2deg(angles).max() <= 7.5
    assert 0.19 < np.abs(q[:, 7:] - t.start_joints()).max() <= 0.2 and 0.24 < np.abs(v).max() <= 0.25
    assert np.linalg.norm(q[:, 3:7], axis=1) == pytest.approx(1)


def test_diff_ant():
    t = task("DiffAnt-v0")
    assert t.start_joints().tolist() == [0, 1, 0, -1, 0, -1, 0, 1]
    assert (t.model.joint_lower[1:] < t.start_joints()).all() and (t.start_joints() < t.model.joint_upper[1:]).all()
    assert t.model.dof_armature[6:] == pytest.approx(0.05) and t.model.pair_friction == pytest.approx(0.75)

    q, v = [0, 0, 0.5, 1, 0, 0, 0, *t.start_joints()], np.zeros(14)
    assert rewarded(t, at(t, q, v)) == pytest.approx(0.1 + 1 + 0.23)
    ends = [bool(t.terminated(at(t, [0, 0, z, *q[3:]], v))[0]) for z in (0.28, 0.26)]
    assert ends == [False, True]

    # Its feet are the same by a quarter turn, and carry it.
    pose, _ = t.model.geometry_placements(q)
    ankles = pose[[t.model.geometry_names.index(f"ankle_{n}") for n in range(1, 5)]]
    assert np.ptp(ankles[:, 2]) < 1e-12 and np.ptp(np.linalg.norm(ankles[:, :2], axis=1)) < 1e-12
    assert ankles[0, 2] < 0.3
    envs = make("DiffAnt-v0", 8)
    envs.reset(seed=0)
    for _ in range(200):
        *_, terminated, _, _ = envs.step(np.zeros((8, 8)))
        assert not terminated.any()


def test_rotation_matrices_of_tensors():
    """The bits of arrays; gradients as autograd of the formula has them, also of numbers that are no unit quaternion."""
    torch = pytest.importorskip("torch")
    from coulomb._rotations import entries

    numbers = np.random.default_rng(0).normal(size=(5, 4))
    weights = torch.from_numpy(np.random.default_rng(1).normal(size=(5, 3, 3)))
    leaf, expected = (torch.tensor(numbers, requires_grad=True) for _ in range(2))
    R = rotation_matrix(leaf)
    assert (R.detach().numpy() == rotation_matrix(numbers)).all()
    (R * weights).sum().backward()
    (torch.stack(entries(*expected.T), -1).reshape(5, 3, 3) * weights).sum().backward()
    torch.testing.assert_close(leaf.grad, expected.grad, rtol=1e-14, atol=1e-14)
    assert torch.autograd.gradcheck(rotation_matrix, leaf)
    assert torch.autograd.gradcheck(rotation_matrix, torch.tensor(numbers.reshape(5, 1, 4), requires_grad=True))


def test_light_ant():
    """DiffAnt of a quarter of its mass, on a soft floor."""
    light, heavy = task("LightAnt-v0"), task("DiffAnt-v0")
    assert light.model.body_mass == pytest.approx(heavy.model.body_mass / 4)
    assert light.model.body_mass.sum() == pytest.approx(45.5, abs=0.5)
    assert light.model.parameters()["contact_stiffness/floor"].value == pytest.approx([4e4])
    assert "contact_stiffness/floor" not in heavy.model.parameters()


def test_light_hopper():
    """DiffHopper with a twentieth of its armature, on a soft floor."""
    light, heavy = task("LightHopper-v0"), task("DiffHopper-v0")
    assert light.model.body_mass == pytest.approx(heavy.model.body_mass)
    assert light.model.dof_armature == pytest.approx(heavy.model.dof_armature / 20)
    assert light.model.parameters()["contact_stiffness/floor"].value == pytest.approx([2e4])


@pytest.mark.parametrize(
    "name", ["DiffHopper", "LightHopper", "DiffHalfCheetah", "DiffAnt", "LightAnt", "DiffHumanoid"]
)
def test_limits_are_springs_that_can_be_made_rigid(name):
    """1e3 N m/rad as in DiffRL, whose limits' damping of 10 N m s/rad acts within them too."""
    t = task(f"{name}-v0")
    limited = np.array(t.model.joint_limited, bool)
    assert limited.any() and t.model.joint_limit_stiffness[limited] == pytest.approx(1e3)
    assert t.model.dof_damping[-limited.sum() :].min() >= 10
    rigid = task_of(IDS[f"coulomb/{name}-v0"][0], {"limit_stiffness": None})
    assert not rigid.model.joint_limit_stiffness.any()


@pytest.mark.parametrize("name", ["DiffHopper", "Go1Walk"])
def test_floors_are_rigid_or_have_a_stiffness(name):
    kind = IDS[f"coulomb/{name}-v0"][0]
    if f"coulomb/{name}-v0" not in HERE:
        pytest.skip("pip install 'coulomb[demo]'")
    soft = task_of(kind, {"contact_stiffness": 1e4, "contact_dashpot": 300})
    rigid = task_of(kind, {"contact_stiffness": None, "contact_dashpot": 0.0})
    kinds = [{parameter.split("/")[0] for parameter in t.model.parameters()} for t in (soft, rigid)]
    assert "contact_dashpot" in kinds[0] and "contact_dashpot" not in kinds[1]
    with pytest.raises(ValueError, match="contact_dashpot is 300, but the floor is rigid"):
        task_of(kind, {"contact_dashpot": 300})


def test_diff_humanoid():
    t = task("DiffHumanoid-v0")
    gears = [actuator.gear[0] for actuator in t.model.actuators]
    legs, arms = [200, 200, 600, 400, 100, 100], [100, 100, 200]
    assert gears == pytest.approx(0.35 * np.array([200] * 3 + legs * 2 + arms * 2))
    assert [actuator.joint for actuator in t.model.actuators] == list(range(1, 22))

    # The two sides mirror each other: in the pose of the file, and with joints of both sides bent alike.
    for angle in (0.0, 0.3):
        q = t.model.neutral()[0]
        q[7:] = angle
        q[7], q[9] = 0, 0  # the abdomen about z and x
        place, _ = t.model.geometry_placements(q)
        names = t.model.geometry_names
        for name in names:
            if name.startswith("right"):
                left, right = (place[names.index(n)] for n in (name.replace("right", "left"), name))
                if angle and "arm" in name or "hand" in name:
                    continue  # shoulders turn about axes with limits of the other sign
                assert left == pytest.approx(right * [1, -1, 1], abs=1e-3), name

    q, v = [0, 0, 0.84, 1, 0, 0, 0, *[0] * 21], np.zeros(27)
    assert rewarded(t, at(t, q, v, np.ones(21))) == pytest.approx(0.1 + 1 - 0.002 * 21)
    assert rewarded(t, at(t, [0, 0, 0.94, *q[3:]], v)) == pytest.approx(0.1 + 1 + 1)
    assert rewarded(t, at(t, [0, 0, 0.74, *q[3:]], v)) == pytest.approx(0.1 + 1 - 2)


@pytest.mark.skipif("coulomb/Go1Walk-v0" not in HERE, reason="pip install 'coulomb[demo]'")
def test_go1():
    t = task("Go1Walk-v0")
    stand = t.model.neutral()[0]
    stand[2], stand[7:] = 0.3, np.array([0.0, 0.8, -1.6] * 4)

    # Turned to the left and moving to the left is moving ahead; the best reward is 1.5.
    stand[3:7] = TURN
    v = np.zeros(18)
    v[1] = 0.6
    state = at(t, stand, v, goal=[0.6, 0, 0])
    seen = t.observe(state)[0]
    assert seen[:12] == pytest.approx([0.6, 0, 0, 0, 0, 0, 0, 0, -1, 0.6, 0, 0], abs=1e-12)
    assert rewarded(t, state) == pytest.approx(1.5)
    assert rewarded(t, at(t, stand, v, goal=[0, 0, 0])) == pytest.approx(np.exp(-4 * 0.36) + 0.5)
    assert not t.terminated(state)[0]
    for change in ({2: 0.17}, {3: np.cos(0.6), 4: np.sin(0.6), 5: 0, 6: 0}):
        fallen = stand.copy()
        for index, value in change.items():
            fallen[index] = value
        assert t.terminated(at(t, fallen, v, goal=[0, 0, 0]))[0]

    # The servos' targets are around the standing pose, and hold it: nobody falls in four seconds.
    assert t.control(np.zeros((1, 12)))[0] == pytest.approx(stand[7:])
    envs = make("Go1Stand-v0", 8)
    envs.reset(seed=0)
    for _ in range(200):
        _, reward, terminated, _, _ = envs.step(np.zeros((8, 12)))
        assert not terminated.any()
    assert (reward > 1.4).all()


def test_push():
    """The finger behind the T takes it along; a T that lies right ends the episode."""
    t = task("PushT-v0")
    envs = make("PushT-v0", 2, autoreset_mode="Disabled")
    q = np.array([[0, 0, 0.02, 1, 0, 0, 0, 0, -0.2], [0, 0, 0.02, *TURN, 0.2, 0]])
    goal = np.array([[0, 0.1, 0], [-0.1, 0, np.pi / 2]])
    envs.reset(seed=0, options={"q": q, "v": np.zeros((2, 8)), "goal": goal})
    first = -0.1 - 0.1 * 0.2
    assert rewarded(t, at(t, q[0], np.zeros(8), goal=goal[0])) == pytest.approx(first)
    assert rewarded(t, at(t, q[1], np.zeros(8), goal=goal[1])) == pytest.approx(first)

    over = np.zeros(2, bool)
    for _ in range(12):
        _, _, over, _, infos = envs.step(np.array([[0, 0.4], [-0.4, 0]]))
        if over.any():
            break
    assert over.all() and infos["is_success"].all()
    assert envs.state.q[:, 2] == pytest.approx(0.02, abs=1e-6)
    assert np.abs(envs.state.q[:, :2] - goal[:, :2]).max() < 0.02
