"""Frames of environments: of every task, of the state that was computed, from the file's cameras, as videos."""

import gymnasium
import numpy as np
import pytest
from envs_here import HERE
from gymnasium.utils.env_checker import check_env

import coulomb.envs


@pytest.mark.parametrize("name", HERE)
def test_a_frame_shows_the_state(name):
    env = gymnasium.make(name, render_mode="rgb_array", width=160, height=120)
    env.reset(seed=0)
    frame = env.render()
    assert frame.shape == (120, 160, 3) and frame.dtype == np.uint8 and frame.std() > 5
    start = env.unwrapped.state.q[0].copy()
    moved = start.copy()
    moved[-1] += 0.4
    env.unwrapped.set_state(moved, np.zeros(env.unwrapped.task.model.nv))
    assert (env.render() != frame).any()
    env.unwrapped.set_state(start, np.zeros(len(env.unwrapped.state.v[0])))
    assert (env.render() == frame).all()
    env.close()


def test_every_environment_of_a_vector_has_its_frame():
    envs = gymnasium.make_vec("coulomb/DiffHopper-v0", num_envs=3, render_mode="rgb_array", width=64, height=64)
    envs.reset(seed=0)
    frames = envs.render()
    assert len(frames) == 3 and all(frame.shape == (64, 64, 3) for frame in frames)
    assert (frames[0] != frames[1]).any()
    envs.close()


def test_depth_from_a_camera_of_the_file():
    deep = gymnasium.make("coulomb/Hopper-v5", render_mode="depth_array", width=64, height=64, camera_name="track")
    deep.reset(seed=0)
    depth = deep.render()
    assert depth.shape == (64, 64)
    assert abs(depth[32, 32] - 2.95) < 0.02  # the camera is 3 m from the axis of the torso, whose radius is 0.05 m


def test_cameras_by_number_name_and_configuration():
    """`track` is the file's first camera; a configuration is MuJoCo's free camera."""

    def frame(**camera):
        env = gymnasium.make("coulomb/Hopper-v5", render_mode="rgb_array", width=64, height=64, **camera)
        env.reset(seed=0)
        return env.render()

    default = frame()
    assert (frame(camera_id=0) == default).all() and (frame(camera_name="track") == default).all()
    free = frame(default_camera_config={"distance": 6.0, "trackbodyid": 1})
    assert (free != default).any() and free.std() > 5


def test_a_camera_that_is_not_there_is_named():
    def opened(name, **camera):
        env = gymnasium.make(name, render_mode="rgb_array", **camera)
        env.reset()
        env.render()

    with pytest.raises(ValueError, match="camera_name is 'front'"):
        opened("coulomb/Hopper-v5", camera_name="front")
    with pytest.raises(ValueError, match="camera_id is 7"):
        opened("coulomb/Hopper-v5", camera_id=7)
    with pytest.raises(ValueError, match="default_camera_config has 'zoom'"):
        opened("coulomb/Hopper-v5", default_camera_config={"zoom": 2})
    with pytest.raises(ValueError, match="trackbodyid is 99"):
        opened("coulomb/Hopper-v5", default_camera_config={"trackbodyid": 99})


def test_a_task_without_an_mjcf_has_no_cameras_by_name():
    from coulomb.envs.rendering import Camera, Pictures
    from coulomb.envs.task import Task

    scene = coulomb.Scene()
    scene.add_ground()
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.3))
    task = Task(scene.build(), 1e-2, 2)
    q, v = task.model.neutral()
    pictures = Pictures(task, "rgb_array", Camera(64, 48, None, None, None))
    assert pictures.frame(q, v).shape == (48, 64, 3)
    with pytest.raises(ValueError, match="camera_name is 'track'"):
        Pictures(task, "rgb_array", Camera(64, 48, "track", None, None)).frame(q, v)


def test_gymnasiums_checker_makes_one_of_every_mode():
    check_env(gymnasium.make("coulomb/DiffHopper-v0", render_mode="rgb_array").unwrapped)


def test_videos_of_one_environment(tmp_path):
    pytest.importorskip("moviepy")
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    options = dict(render_mode="rgb_array", width=64, height=64, max_episode_steps=5)
    video = gymnasium.wrappers.RecordVideo(gymnasium.make("coulomb/DiffHopper-v0", **options), str(tmp_path))
    video.reset(seed=0)
    for _ in range(6):
        if any(video.step(np.zeros(3))[2:4]):
            video.reset()
    video.close()
    first = sorted(tmp_path.glob("*.mp4"))[0]
    assert ffmpeg.count_frames_and_secs(str(first))[0] in (5, 6)  # the start and five steps; moviepy may drop the last


def test_videos_of_a_vector(tmp_path):
    pytest.importorskip("moviepy")
    options = dict(num_envs=2, render_mode="rgb_array", width=64, height=64, max_episode_steps=5)
    together = gymnasium.wrappers.vector.RecordVideo(
        gymnasium.make_vec("coulomb/DiffHopper-v0", **options), str(tmp_path), episode_trigger=lambda n: True
    )
    together.reset(seed=0)
    for _ in range(12):
        together.step(np.zeros((2, 3)))
    together.close()
    assert list(tmp_path.glob("*.mp4"))


def test_a_window_is_gymnasiums_own(monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    window = gymnasium.make("coulomb/DiffHopper-v0", render_mode="human", width=64, height=64)
    window.reset(seed=0)
    window.step(np.zeros(3))
    window.close()


def test_without_a_render_mode_there_is_no_frame():
    env = gymnasium.make("coulomb/DiffHopper-v0")
    env.reset(seed=0)
    assert env.unwrapped.render() is None
