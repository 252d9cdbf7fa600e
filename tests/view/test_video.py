"""save_video: as many pictures as there were, at the pace of the motion; and errors."""

import sys

import numpy as np
import pytest

import coulomb
from coulomb.__main__ import main

ffmpeg = pytest.importorskip("imageio_ffmpeg")


@pytest.fixture(scope="module")
def ball():
    """A ball in flight over the ground, at 200 steps a second."""
    scene = coulomb.Scene(timestep=5e-3)
    scene.add_ground()
    scene.add_sphere(0.2, mass=1.0, position=(0, 0, 1), name="ball")
    model = scene.build()
    q, v = model.neutral()
    return model, coulomb.Simulator(model).rollout(q, v, steps=100)


def read(path):
    """(frames, seconds, rate, the pictures)."""
    reader = ffmpeg.read_frames(str(path))
    meta = next(reader)
    width, height = meta["size"]
    pictures = [np.frombuffer(data, np.uint8).reshape(height, width, 3) for data in reader]
    return len(pictures), len(pictures) / meta["fps"], meta["fps"], pictures


def test_a_rollout_lasts_as_long_as_it_did(ball, tmp_path):
    """0.5 s at 30 pictures a second: the first state, and fifteen more."""
    model, rollout = ball
    renderer = coulomb.Renderer(model, 160, 120)
    path = tmp_path / "fall.mp4"
    assert coulomb.save_video(path, rollout, renderer, progress=False) == str(path)
    count, _, rate, pictures = read(path)
    assert (count, rate) == (16, 30)

    # And they are those pictures, as far as the compression lets them: the ball falls.
    for k in (0, 15):
        drawn = renderer.render(rollout.q[round(k / 30 / 5e-3)]).astype(int)
        assert np.abs(pictures[k] - drawn).mean() < 3
    assert np.abs(pictures[0].astype(int) - pictures[15]).mean() > 3


@pytest.mark.parametrize("speed, fps, count, rate", [(0.5, 30, 31, 30), (2.0, 30, 8, 30), (0.1, 30, 101, 20)])
def test_slow_and_fast(ball, tmp_path, speed, fps, count, rate):
    """At a tenth of the pace 200 steps a second are 20: all of them are shown."""
    model, rollout = ball
    coulomb.save_video(tmp_path / "a.mp4", rollout, model, speed=speed, fps=fps, progress=False)
    assert read(tmp_path / "a.mp4")[0:3:2] == (count, rate)


def test_pictures_of_any_size(tmp_path):
    pictures = np.zeros((10, 33, 47, 3), np.uint8)
    pictures[5:, :, :, 0] = 200
    coulomb.save_video(tmp_path / "a.mp4", pictures, fps=25, progress=False)
    count, _, rate, found = read(tmp_path / "a.mp4")
    assert (count, rate) == (10, 25) and found[0].shape == (34, 48, 3)
    assert found[2].max() < 30 and found[8][..., 0].mean() > 150
    coulomb.save_video(tmp_path / "b.mp4", pictures, timestep=0.1, progress=False)
    assert read(tmp_path / "b.mp4")[0:3:2] == (10, 10)


def test_contacts_and_environments_are_drawn(ball, tmp_path):
    model, rollout = ball
    q, v = model.neutral()
    q[2] = 0.2 - 1e-6
    sim = coulomb.Simulator(model)
    run = coulomb.view.recorded_steps(sim, q, v, 10)
    Q = run.q
    renderer = coulomb.Renderer(model, 160, 120)
    pictures = {}
    for name, motion in (("with", run), ("without", Q)):
        coulomb.save_video(tmp_path / f"{name}.mp4", motion, renderer, progress=False)
        pictures[name] = read(tmp_path / f"{name}.mp4")[3]
    assert np.abs(pictures["with"][1].astype(int) - pictures["without"][1]).max() > 40
    coulomb.save_video(tmp_path / "two.mp4", np.stack([Q, Q]), coulomb.Renderer(model, 160, 120), progress=False)
    assert read(tmp_path / "two.mp4")[0] == len(pictures["with"])


def test_progress_is_told(ball, tmp_path, capsys):
    model, rollout = ball
    coulomb.save_video(tmp_path / "a.mp4", rollout, model)
    assert "16" in capsys.readouterr().err
    coulomb.save_video(tmp_path / "a.mp4", rollout, model, progress=False)
    assert capsys.readouterr().err == ""


def test_bad_input_is_named(ball, tmp_path, monkeypatch):
    model, rollout = ball
    with pytest.raises(ValueError, match="path: got '.*run.avi', expected a name that ends in .mp4"):
        coulomb.save_video(tmp_path / "run.avi", rollout, model)
    with pytest.raises(FileNotFoundError, match="path: the folder .* does not exist"):
        coulomb.save_video(tmp_path / "none" / "run.mp4", rollout, model)
    path = tmp_path / "run.mp4"
    with pytest.raises(ValueError, match="motion: got .*states need a renderer="):
        coulomb.save_video(path, rollout)
    with pytest.raises(ValueError, match="motion: got ndarray of shape"):
        coulomb.save_video(path, np.zeros((2, 8, 8, 3)))
    with pytest.raises(ValueError, match="motion: got shape"):
        coulomb.save_video(path, np.zeros((3, 2)), model)
    with pytest.raises(ValueError, match="speed: got 0"):
        coulomb.save_video(path, rollout, model, speed=0)
    with pytest.raises(ValueError, match="fps: got nan"):
        coulomb.save_video(path, rollout, model, fps=float("nan"))
    with pytest.raises(ValueError, match="timestep: got -1"):
        coulomb.save_video(path, np.zeros((2, 8, 8, 3), np.uint8), timestep=-1)
    assert not path.exists()

    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ImportError, match=r"pip install 'coulomb\[video\]'"):
        coulomb.save_video(path, rollout, model)


BALL = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 1"><freejoint/>
  <geom size=".1"/></body></worldbody></mujoco>"""


def test_the_command_writes_a_video(tmp_path, capsys):
    (tmp_path / "ball.xml").write_text(BALL)
    video = tmp_path / "run.mp4"
    command = ["simulate", str(tmp_path / "ball.xml"), "--duration", "0.5", "--video", str(video), "--size", "160x120"]
    assert main(command) == 0
    assert str(video) in capsys.readouterr().out
    count, seconds, _, pictures = read(video)
    assert seconds == pytest.approx(0.5, abs=0.05) and pictures[0].shape == (120, 160, 3)
    assert main([*command, "--speed", "0.25"]) == 0
    assert read(video)[1] == pytest.approx(2.0, abs=0.1)


def test_the_command_says_what_is_wrong(tmp_path, capsys, monkeypatch):
    (tmp_path / "ball.xml").write_text(BALL)
    command = ["simulate", str(tmp_path / "ball.xml")]
    assert main([*command, "--video", str(tmp_path / "run.gif")]) == 2
    assert "--video: got" in capsys.readouterr().err
    assert main([*command, "--speed", "2"]) == 2
    assert "apply to videos only; add --video" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*command, "--video", "a.mp4", "--size", "640"])
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    assert main([*command, "--video", str(tmp_path / "run.mp4")]) == 2
    assert "coulomb[video]" in capsys.readouterr().err
