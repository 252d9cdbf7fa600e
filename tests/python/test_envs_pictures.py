"""Frames of environments, where MuJoCo's renderer runs: of every task, of the state that was computed, as videos."""

import os
import subprocess
import sys

import pytest

# OpenGL is chosen when mujoco is imported, and not every machine has it: all of this is one process of its own.
PROGRAM = """
import sys
import gymnasium, numpy as np
import coulomb.envs

sys.path.append(sys.argv[2])
from envs_here import HERE

try:
    gymnasium.make("coulomb/DiffHopper-v0", render_mode="rgb_array").unwrapped.pictures._open()
except RuntimeError as error:
    assert "MUJOCO_GL" in str(error)
    print("no OpenGL:", error)
    sys.exit(77)

for name in HERE:
    env = gymnasium.make(name, render_mode="rgb_array", width=160, height=120)
    env.reset(seed=0)
    frame = env.render()
    assert frame.shape == (120, 160, 3) and frame.dtype == np.uint8 and frame.std() > 5, name
    start = env.unwrapped.state.q[0].copy()
    moved = start.copy()
    moved[-1] += 0.4
    env.unwrapped.set_state(moved, np.zeros(env.unwrapped.task.model.nv))
    assert (env.render() != frame).any(), name
    env.unwrapped.set_state(start, np.zeros(len(env.unwrapped.state.v[0])))
    assert (env.render() == frame).all(), name
    env.close()

envs = gymnasium.make_vec("coulomb/DiffHopper-v0", num_envs=3, render_mode="rgb_array", width=64, height=64)
envs.reset(seed=0)
frames = envs.render()
assert len(frames) == 3 and all(frame.shape == (64, 64, 3) for frame in frames) and (frames[0] != frames[1]).any()

deep = gymnasium.make("coulomb/Hopper-v5", render_mode="depth_array", width=64, height=64, camera_name="track")
deep.reset(seed=0)
depth = deep.render()
assert depth.shape == (64, 64) and abs(depth[32, 32] - 2.95) < 0.02  # the camera is 3 m from the axis of the torso

try:
    wrong = gymnasium.make("coulomb/Hopper-v5", render_mode="rgb_array", camera_name="front")
    wrong.reset()
    wrong.render()
except ValueError as error:
    assert "camera_name is 'front'" in str(error)
else:
    raise AssertionError("a camera that is not there")

from gymnasium.utils.env_checker import check_env

check_env(gymnasium.make("coulomb/DiffHopper-v0", render_mode="rgb_array").unwrapped)  # makes one for every render mode

try:
    import pygame
except ImportError:
    pass
else:
    window = gymnasium.make("coulomb/DiffHopper-v0", render_mode="human", width=64, height=64)
    window.reset(seed=0)
    window.step(np.zeros(3))
    window.close()

try:
    import moviepy
except ImportError:
    sys.exit(0)
import pathlib
video = gymnasium.wrappers.RecordVideo(
    gymnasium.make("coulomb/DiffHopper-v0", render_mode="rgb_array", width=64, height=64, max_episode_steps=5), sys.argv[1]
)
video.reset(seed=0)
for _ in range(6):
    if any(video.step(np.zeros(3))[2:4]):
        video.reset()
video.close()
assert list(pathlib.Path(sys.argv[1]).glob("*.mp4"))

if hasattr(gymnasium.wrappers.vector, "RecordVideo"):  # of all environments in one picture
    options = dict(num_envs=2, render_mode="rgb_array", width=64, height=64, max_episode_steps=5)
    together = gymnasium.wrappers.vector.RecordVideo(
        gymnasium.make_vec("coulomb/DiffHopper-v0", **options), sys.argv[1] + "/together", episode_trigger=lambda n: True
    )
    together.reset(seed=0)
    for _ in range(12):
        together.step(np.zeros((2, 3)))
    together.close()
    assert list(pathlib.Path(sys.argv[1] + "/together").glob("*.mp4"))
"""


def test_frames_and_videos(tmp_path):
    environment = {**os.environ, "MUJOCO_GL": os.environ.get("MUJOCO_GL", "egl"), "SDL_VIDEODRIVER": "dummy"}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(tmp_path), os.path.dirname(__file__)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stderr


def test_without_a_render_mode_there_is_no_frame():
    import gymnasium

    import coulomb.envs  # noqa: F401

    env = gymnasium.make("coulomb/DiffHopper-v0")
    env.reset(seed=0)
    assert env.unwrapped.render() is None
