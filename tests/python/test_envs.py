"""coulomb.envs: vector environments are their rows, bit for bit, in every autoreset mode; bad actions, trouble, seeds, states."""

import pickle

import gymnasium
import numpy as np
import pytest
from envs_here import HERE
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import coulomb.envs
from coulomb.envs import IDS, State, Task, VectorEnv, check_vector_env
from coulomb.envs.checker import VectorCheckError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
LENGTH = 11  # control steps: episodes are over within a check


def make_vector(name, num_envs, mode, **options):
    return gymnasium.make_vec(name, num_envs=num_envs, autoreset_mode=mode, max_episode_steps=LENGTH, **options)


@pytest.mark.parametrize("name", HERE)
def test_gymnasium_finds_no_fault_with_single_environments(name):
    env = gymnasium.make(name)
    assert env.spec.max_episode_steps == IDS[name][1]
    check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.parametrize("name", HERE)
def test_rows_are_single_environments(name):
    """Against gymnasium's SyncVectorEnv of single ones: observations, rewards, flags, infos and masks, the same bits."""
    check_vector_env(
        lambda n, mode: make_vector(name, n, mode),
        lambda: gymnasium.make(name, max_episode_steps=LENGTH),
        num_envs=5,
        steps=2 * LENGTH + 3,
    )


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_threads(threads):
    one = VectorEnv(7, task=IDS["coulomb/HalfCheetah-v5"][0], num_threads=threads)
    other = VectorEnv(7, task=IDS["coulomb/HalfCheetah-v5"][0], num_threads=1)
    assert (one.reset(seed=1)[0] == other.reset(seed=1)[0]).all()
    one.action_space.seed(0)
    for _ in range(20):
        actions = one.action_space.sample()
        for mine, its in zip(one.step(actions)[:4], other.step(actions)[:4]):
            assert (mine == its).all()


# --- the checker finds what is wrong -------------------------------------------------------------------------------------------


class Same(VectorEnv):
    """Returns its own array of observations, again and again."""

    def step(self, actions):
        observation, *rest = super().step(actions)
        self._shared = getattr(self, "_shared", observation)
        self._shared[:] = observation
        return (self._shared, *rest)


class Masks(VectorEnv):
    """Says that every row says something."""

    def step(self, actions):
        *rest, infos = super().step(actions)
        return (*rest, {key: np.ones_like(value) if key[0] == "_" else value for key, value in infos.items()})


class Neighbours(VectorEnv):
    """A row that depends on the row beside it."""

    def step(self, actions):
        observation, *rest = super().step(actions)
        observation[1] += 1e-15 * observation[0]
        return (observation, *rest)


class Integers(VectorEnv):
    """Flags that are numbers."""

    def step(self, actions):
        observation, reward, terminated, truncated, infos = super().step(actions)
        return observation, reward, terminated.astype(int), truncated, infos


class Late(VectorEnv):
    """Truncates a step late."""

    def __init__(self, *args, max_episode_steps, **options):
        super().__init__(*args, max_episode_steps=max_episode_steps + 1, **options)


@pytest.mark.parametrize(
    "broken, message",
    [
        (Same, "used again"),
        (Masks, "infos"),
        (Neighbours, "row 1 is"),
        (Integers, "terminations are int"),
        (Late, "truncations"),
    ],
)
def test_the_checker_finds(broken, message):
    name = "coulomb/DiffHopper-v0"
    with pytest.raises(VectorCheckError, match=message):
        check_vector_env(
            lambda n, mode: broken(n, task=IDS[name][0], autoreset_mode=mode, max_episode_steps=LENGTH),
            lambda: gymnasium.make(name, max_episode_steps=LENGTH),
            steps=2 * LENGTH,
        )


# --- bad input and trouble ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", AutoresetMode)
def test_bad_actions_are_named_and_nothing_moves(mode):
    envs = make_vector("coulomb/Hopper-v5", 4, mode)
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"\[0, 1, 2, 3\] were never reset"):
        envs.step(envs.action_space.sample())
    envs.reset(seed=0)
    before = envs.state

    actions = np.zeros((4, 3))
    actions[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"actions\[2, 1\] is nan, expected a finite number"):
        envs.step(actions)
    with pytest.raises(ValueError, match=r"actions: expected shape \(4, 3\), got \(3, 4\)"):
        envs.step(np.zeros((3, 4)))
    with pytest.raises(ValueError, match="actions: expected numbers"):
        envs.step([["up", "down", "left"]] * 4)
    assert envs.state is before

    env = gymnasium.make("coulomb/Hopper-v5").unwrapped
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action\[1\] is inf"):
        env.step([0, np.inf, 0])
    with pytest.raises(ValueError, match=r"action: expected shape \(3,\), got \(2,\)"):
        env.step([0, 0])


def test_actions_of_environments_that_are_reset_are_not_looked_at():
    envs = make_vector("coulomb/Hopper-v5", 2, AutoresetMode.NEXT_STEP)
    envs.reset(seed=0)
    for _ in range(LENGTH):
        *_, truncated, _ = envs.step(np.zeros((2, 3)))
    assert truncated.all()
    _, reward, _, truncated, infos = envs.step(np.full((2, 3), np.nan))
    assert not truncated.any() and (reward == 0).all() and set(infos) & {"x_velocity"} == set()


@pytest.mark.parametrize("mode", AutoresetMode)
def test_one_environment_overflows_and_the_others_go_on(mode):
    envs = make_vector("coulomb/HalfCheetah-v5", 3, mode)
    peers = make_vector("coulomb/HalfCheetah-v5", 3, mode)
    for each in (envs, peers):
        each.reset(seed=0)
    rows = np.array([False, True, False])
    envs.set_state(envs.state.q, np.full_like(envs.state.v, 1e200), rows)

    actions = np.zeros((3, 6))
    observation, reward, terminated, truncated, infos = envs.step(actions)
    expected = peers.step(actions)
    final = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
    assert truncated.tolist() == [False, True, False] and not terminated.any() and reward[1] == 0
    assert "overflow" in final["failure"][1] and final["_failure"].tolist() == [False, True, False]
    assert (observation[~rows] == expected[0][~rows]).all() and (reward[~rows] == expected[1][~rows]).all()
    assert np.isfinite(observation).all()

    # It starts again as one whose time is over.
    if mode is AutoresetMode.DISABLED:
        with pytest.raises(gymnasium.error.ResetNeeded, match=r"episodes of environments \[1\] are over"):
            envs.step(actions)
        envs.reset(options={"reset_mask": rows})
    observation, _, _, truncated, infos = envs.step(actions)
    assert np.abs(observation).max() < 1e3 and not truncated.any() and "failure" not in infos


def test_options_of_a_reset():
    envs = make_vector("coulomb/Hopper-v5", 3, AutoresetMode.DISABLED)
    first, _ = envs.reset(seed=0)
    q = np.tile([1.0, 1.3, 0, 0, 0, 0], (3, 1))
    rows = np.array([False, True, False])
    second, infos = envs.reset(options={"reset_mask": rows, "q": q, "v": np.zeros((3, 6))})
    assert (second[[0, 2]] == first[[0, 2]]).all() and (second[1, :2] == [1.3, 0]).all()
    assert infos["_x_position"].tolist() == [False, True, False] and infos["x_position"][1] == 1.0

    for mask in ([True, False, False], np.zeros(3, bool), np.ones(2, bool), np.ones(3)):
        with pytest.raises(ValueError, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})
    q[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"options\['q'\]\[1, 2\] is nan"):
        envs.reset(options={"q": q})
    with pytest.raises(ValueError, match="seed: expected one number, or 3"):
        envs.reset(seed=[1, 2])
    with pytest.raises(ValueError, match="options: 'mask' is not known"):
        envs.reset(options={"mask": rows})


def test_set_state():
    envs = make_vector("coulomb/Hopper-v5", 3, AutoresetMode.DISABLED)
    env = gymnasium.make("coulomb/Hopper-v5").unwrapped
    first, _ = envs.reset(seed=0)
    env.reset(seed=0)
    q, v = np.tile([1.0, 1.3, 0, 0, 0, 0], (3, 1)), np.full((3, 6), 0.5)
    rows = np.array([False, True, False])
    second = envs.set_state(q, v, rows)
    assert (second[[0, 2]] == first[[0, 2]]).all() and (second[1] == env.set_state(q[1], v[1])).all()
    assert (envs.step(np.zeros((3, 3)))[0][1] == env.step(np.zeros(3))[0]).all()

    q[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"q\[1, 2\] is nan"):
        envs.set_state(q, v)
    with pytest.raises(ValueError, match=r"v: expected shape \(6,\), got \(5,\)"):
        env.set_state(q[0], np.zeros(5))


def test_bad_options_are_refused():
    with pytest.raises(TypeError, match="ctrl_cost"):
        gymnasium.make_vec("coulomb/Hopper-v5", num_envs=2, ctrl_cost=1)
    with pytest.raises(ValueError, match="frame_skip is 0"):
        gymnasium.make("coulomb/Hopper-v5", frame_skip=0)
    with pytest.raises(ValueError, match="render_mode is 'ansi'"):
        VectorEnv(1, task=IDS["coulomb/Hopper-v5"][0], render_mode="ansi")
    with pytest.raises(ValueError, match="autoreset_mode is 'Never', expected one of"):
        VectorEnv(1, task=IDS["coulomb/Hopper-v5"][0], autoreset_mode="Never")
    with pytest.raises(ValueError, match="max_episode_steps is 0"):
        VectorEnv(1, task=IDS["coulomb/Hopper-v5"][0], max_episode_steps=0)
    with pytest.raises(ValueError, match="num_envs"):
        VectorEnv(0, task=IDS["coulomb/Hopper-v5"][0])
    with pytest.raises(TypeError, match="'module:Class'"):
        VectorEnv(1, task="Hopper")
    with pytest.raises(ValueError, match="tolerance"):
        VectorEnv(1, task=IDS["coulomb/Hopper-v5"][0], simulator_options={"tolerance": 7})


def test_copies_go_on_alike():
    """Pickled in the middle of episodes, for other processes."""
    envs = make_vector("coulomb/Ant-v5", 3, AutoresetMode.SAME_STEP)
    envs.reset(seed=0)
    envs.action_space.seed(0)
    for _ in range(LENGTH // 2):
        envs.step(envs.action_space.sample())
    twin = pickle.loads(pickle.dumps(envs))
    for _ in range(LENGTH):
        actions = envs.action_space.sample()
        for mine, its in zip(envs.step(actions)[:4], twin.step(actions)[:4]):
            assert (mine == its).all()


# --- a task of one's own ---------------------------------------------------------------------------------------------------------


class Fall(Task):
    """A ball that falls until it is below its goal."""

    goal_size = 1
    readings = {"height": ["position/ball"], "spin": ["angular_velocity/ball", "velocity/ball"]}

    def __init__(self):
        scene = coulomb.Scene()
        scene.add_sphere(0.1, mass=1.0, name="ball", position=(0, 0, 2))
        super().__init__(scene.build(), timestep=1e-2, frame_skip=5)

    def draw(self, random):
        return *self.model.neutral(), random.uniform(0, 1, size=1)

    def observe(self, state):
        return np.concatenate([state.goal, state.readings["height"], state.readings["spin"]], axis=-1)

    def reward(self, before, after):
        return before.readings["height"][:, 2] - after.readings["height"][:, 2], {}

    def terminated(self, state):
        return state.readings["height"][:, 2] < state.goal[:, 0]


def test_a_task_of_ones_own():
    """Semi-implicit fall: z = z0 - g h^2 k (k + 1) / 2 after k steps; the reward is how far, the goal is when it ends."""
    envs = VectorEnv(4, task=Fall(), autoreset_mode="SameStep")
    observation, _ = envs.reset(seed=0)
    goals = observation[:, 0]
    assert observation.shape == (4, 10) and len(set(goals)) == 4 and isinstance(envs.state, State)

    over = {}
    for step in range(1, 20):
        _, reward, terminated, _, infos = envs.step(np.zeros((4, 0)))
        fall = 9.81e-4 * np.array([5 * step * (5 * step + 1), 5 * (step - 1) * (5 * step - 4)]) / 2
        for row in set(np.flatnonzero(terminated)) - set(over):
            assert infos["final_obs"][row][3] == pytest.approx(2 - fall[0], abs=1e-12)
            over[row] = 2 - fall[0], 2 - fall[1]
        running = [row for row in range(4) if row not in over]
        assert reward[running] == pytest.approx(fall[0] - fall[1], abs=1e-12)
    assert sorted(over) == [0, 1, 2, 3]
    assert all(over[row][0] < goals[row] <= over[row][1] for row in over)
