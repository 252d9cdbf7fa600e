"""The v5 environments against Gymnasium's own over MuJoCo: spaces, keywords, starts; observation, reward and end at the same states."""

import inspect

import gymnasium
import mujoco
import numpy as np
import pytest

from coulomb.envs import State

pytest.importorskip("imageio", reason="Gymnasium's own need it: pip install 'gymnasium[mujoco]'")
from gymnasium.envs.mujoco import (  # noqa: E402
    ant_v5,
    half_cheetah_v5,
    hopper_v5,
    humanoid_v5,
    walker2d_v5,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
CLASSES = {
    "HalfCheetah-v5": half_cheetah_v5.HalfCheetahEnv,
    "Hopper-v5": hopper_v5.HopperEnv,
    "Walker2d-v5": walker2d_v5.Walker2dEnv,
    "Ant-v5": ant_v5.AntEnv,
    "Humanoid-v5": humanoid_v5.HumanoidEnv,
}
# Each keyword away from its default, where that changes what is seen.
OPTIONS = {
    "HalfCheetah-v5": dict(forward_reward_weight=2.0, ctrl_cost_weight=0.3, frame_skip=2, reset_noise_scale=0.2),
    "Hopper-v5": dict(healthy_reward=3.0, healthy_z_range=(0.9, 1.4), healthy_state_range=(-2.0, 2.0)),
    "Walker2d-v5": dict(healthy_angle_range=(-0.05, 0.05), terminate_when_unhealthy=False),
    "Ant-v5": dict(contact_cost_weight=0.1, contact_force_range=(-5.0, 7.0), main_body="aux_3"),
    "Humanoid-v5": dict(include_cinert_in_observation=False, contact_cost_range=(0.1, 0.2), contact_cost_weight=1e-4),
}
MORE = {
    "Ant-v5": dict(include_cfrc_ext_in_observation=False, exclude_current_positions_from_observation=False),
    "Humanoid-v5": dict(include_cvel_in_observation=False, include_qfrc_actuator_in_observation=False),
}
CASES = [
    *((name, {}) for name in CLASSES),
    *OPTIONS.items(),
    *MORE.items(),
    *((name, dict(exclude_current_positions_from_observation=False)) for name in CLASSES),
]


def both(name, options):
    theirs = gymnasium.make(name, **options)
    ours = gymnasium.make(f"coulomb/{name}", **options)
    return theirs, ours


def random_states(ours, number, seed=0):
    """Around the start, and farther away, with quaternions of unit length."""
    model = ours.unwrapped.task.model
    random = np.random.default_rng(seed)
    for k in range(number):
        dq = random.normal(size=model.nv) * 0.1 * (k + 1) / number
        yield model.integrate(np.array(model.q_neutral), dq), random.normal(size=model.nv) * 12 * k / number


def state_of_mujoco(env, task, action):
    """What the task reads, all of it from MuJoCo's data, as late as MuJoCo has it."""
    model, data = env.unwrapped.model, env.unwrapped.data
    bodies = np.arange(1, model.nbody)
    spins, velocities = np.zeros((2, len(bodies), 3))
    for row, body in enumerate(bodies):
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, int(body), velocity, 0)
        spins[row], velocities[row] = velocity[:3], velocity[3:]

    com = data.subtree_com[1]
    wrenches = data.cfrc_ext.copy()
    wrenches[:, :3] += np.cross(com, wrenches[:, 3:])
    readings = {
        "com": com,
        "force_com": com,
        "force_com_velocity": np.zeros(3),
        "positions": data.xpos[1:],
        "orientations": data.xquat[1:],
        "spins": spins,
        "velocities": velocities,
        "contact_wrenches": wrenches,
    }
    if "main_body" in task.readings:
        readings["main_body"] = data.body(task.readings["main_body"][0].split("/")[1]).xpos
    rows = {key: np.array(value, float).reshape(1, -1) for key, value in readings.items()}
    rows["contact_wrenches"] = wrenches[None]
    return State(
        data.qpos[None].copy(), data.qvel[None].copy(), np.asarray(action, float)[None], np.zeros((1, 0)), rows
    )


@pytest.mark.parametrize("name", CLASSES)
def test_keywords_and_their_defaults(name):
    task = gymnasium.make(f"coulomb/{name}").unwrapped.task
    theirs = inspect.signature(CLASSES[name].__init__).parameters
    ours = inspect.signature(type(task).__init__).parameters
    of_the_renderer = {"default_camera_config", "kwargs", "self"}
    assert {k: p.default for k, p in theirs.items() if k not in of_the_renderer} == {
        k: p.default for k, p in ours.items() if k != "self"
    }


@pytest.mark.parametrize("name, options", CASES)
def test_spaces_starts_and_rates(name, options):
    theirs, ours = both(name, options)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert ours.unwrapped.dt == theirs.unwrapped.dt
    assert ours.spec.max_episode_steps == theirs.spec.max_episode_steps
    assert ours.spec.reward_threshold == theirs.spec.reward_threshold

    # The same seeds start in the same states; MuJoCo leaves quaternions as they were drawn.
    for seed in range(3):
        theirs.reset(seed=seed)
        ours.reset(seed=seed)
        data, state = theirs.unwrapped.data, ours.unwrapped.state
        assert np.array_equal(ours.unwrapped.task.model.normalize(data.qpos), state.q[0])
        assert np.array_equal(data.qvel, state.v[0])


@pytest.mark.parametrize("name, options", CASES)
def test_observation_at_the_same_state(name, options):
    theirs, ours = both(name, options)
    for q, v in random_states(ours, 20):
        theirs.reset(seed=0)
        ours.reset(seed=0)
        theirs.unwrapped.set_state(q, v)
        expected = theirs.unwrapped._get_obs()
        assert ours.unwrapped.set_state(q, v) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name, options", CASES)
def test_reward_observation_and_end_of_steps_that_mujoco_took(name, options):
    """Every number of a step, from MuJoCo's own states, contact forces included."""
    theirs, ours = both(name, options)
    task = ours.unwrapped.task
    theirs.action_space.seed(0)
    ended, touched = 0, 0
    for q, v in random_states(ours, 12):
        theirs.reset(seed=0)
        theirs.unwrapped.set_state(q, v)
        for _ in range(12):
            before = state_of_mujoco(theirs, task, theirs.unwrapped.data.ctrl)
            action = theirs.action_space.sample() * 1.2
            observation, reward, terminated, _, info = theirs.unwrapped.step(action)
            after = state_of_mujoco(theirs, task, action)

            mine, terms = task.reward(before, after)
            infos = {**task.info(after), **task.step_info(before, after), **terms}
            assert mine[0] == pytest.approx(reward, rel=1e-6, abs=1e-6)  # MuJoCo's control cost is float32
            assert set(infos) == set(info)
            for key, value in info.items():
                if key.startswith("tendon"):  # MuJoCo's are of an inner stage of its step; below
                    continue
                assert infos[key][0] == pytest.approx(value, rel=1e-6, abs=1e-6), key
            assert task.observe(after)[0] == pytest.approx(observation, rel=1e-9, abs=1e-7)
            assert bool(task.terminated(after)[0]) == terminated
            ended += terminated
            touched += np.abs(theirs.unwrapped.data.cfrc_ext).max() > 1
    if "Ant" in name or "Humanoid" in name:
        assert touched > 20
    if name in ("Hopper-v5", "Humanoid-v5"):
        assert ended > 5


def test_tendons_of_the_humanoid():
    theirs, ours = both("Humanoid-v5", {})
    theirs.reset(seed=0)
    for q, v in random_states(ours, 10):
        theirs.unwrapped.set_state(q, v)
        ours.unwrapped.set_state(q, v)
        info = ours.unwrapped.task.info(ours.unwrapped.state)
        assert info["tendon_length"][0] == pytest.approx(theirs.unwrapped.data.ten_length, abs=1e-12)
        assert info["tendon_velocity"][0] == pytest.approx(theirs.unwrapped.data.ten_velocity, abs=1e-12)


def test_the_ant_bends_its_ankles_as_fast_as_mujocos():
    """It starts half a radian outside of their limits; after 0.2 s both are within. At the usual 1 rad/s 0.3 rad would be left."""
    theirs, ours = both("Ant-v5", {})
    model = ours.unwrapped.task.model
    for seed in range(5):
        theirs.reset(seed=seed)
        ours.reset(seed=seed)
        theirs.action_space.seed(seed)
        for _ in range(4):
            action = 0.3 * theirs.action_space.sample()
            theirs.step(action)
            ours.step(action)
        for joints in (theirs.unwrapped.data.qpos[7:], ours.unwrapped.state.q[0, 7:]):
            outside = np.maximum(model.joint_lower[1:] - joints, joints - model.joint_upper[1:])
            assert outside.max() < 0.1


STOOL = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom type="plane" size="5 5 1" friction="1e-4"/>
    <body name="seat" pos=".3 -.2 .4">
      <freejoint/> <geom type="box" size=".2 .1 .05" pos=".05 .02 0" contype="0" conaffinity="0"/>
      <body name="a" pos=".3 0 0"> <joint axis="0 0 1" range="-1e-3 1e-3" limited="true"/> <geom size=".05" pos="0 0 -.35" friction="1e-4"/> </body>
      <body name="b" pos="-.2 .2 0"> <joint axis="0 0 1" range="-1e-3 1e-3" limited="true"/> <geom size=".05" pos="0 0 -.35" friction="1e-4"/> </body>
      <body name="c" pos="-.2 -.3 0"> <joint axis="0 0 1" range="-1e-3 1e-3" limited="true"/> <geom size=".05" pos="0 0 -.35" friction="1e-4"/> </body>
    </body>
  </worldbody>
  <actuator> <motor joint="{joint}" ctrllimited="true" ctrlrange="-1 1"/> </actuator>
</mujoco>"""


def test_contact_forces_of_a_stool(tmp_path):
    """Three feet share the weight in one way only, so that rigid and soft contact agree: cfrc_ext of each, force and torque."""
    path = tmp_path / "stool.xml"
    path.write_text(STOOL.replace('<joint axis="0 0 1"', '<joint name="swivel" axis="0 0 1"', 1).format(joint="swivel"))
    options = dict(xml_file=str(path), contact_force_range=(-1e3, 1e3), terminate_when_unhealthy=False, frame_skip=10)
    theirs, ours = both("Ant-v5", {**options, "reset_noise_scale": 0.0})
    for env in (theirs, ours):
        env.reset(seed=0)
        for _ in range(100):
            observation, *_ = env.step(np.zeros(1))
    expected = theirs.unwrapped.data.cfrc_ext[1:]
    found = observation[-expected.size :].reshape(expected.shape)
    weight = theirs.unwrapped.model.body_subtreemass[1] * 9.81
    assert expected[:, 5].sum() == pytest.approx(weight, rel=1e-3) and (expected[1:, 5] > 0.1 * weight).all()
    assert np.abs(expected[1:, :2]).min() > 0.1  # there is a torque to be seen
    assert found == pytest.approx(expected, abs=5e-3 * weight)
