"""A learned policy as a function, played from the command line; a run that is watched, interrupted and continued."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("gymnasium")

from coulomb.learn import log, shac  # noqa: E402
from coulomb.learn.play import play  # noqa: E402
from coulomb.learn.policy import Policy  # noqa: E402
from coulomb.learn.worlds import Worlds, returns_of  # noqa: E402

SMALL = {
    "env": "CartPole",
    "num_envs": 4,
    "horizon": 4,
    "epochs": 3,
    "actor_units": (8,),
    "critic_units": (8,),
    "critic_batches": 2,
    "evaluate_every": 2,
    "evaluations": 2,
    "num_threads": 1,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return folder, shac.train(shac.Config(**SMALL, output=str(folder)), progress=False)


def test_a_policy_acts_as_its_run_did(run):
    folder, trained = run
    policy = Policy.load(folder / "checkpoint.pt")
    observations = Worlds(policy.task, 5, seed=3).observe().numpy()
    expected = trained.actor(trained.normalizer(torch.from_numpy(observations))).detach().double().numpy()
    assert np.array_equal(policy(observations), expected)
    assert policy(observations[2]) == pytest.approx(expected[2], rel=1e-6)

    # A folder is its best policy, and where none was measured its last one.
    assert Policy.load(folder)(observations).shape == expected.shape
    with pytest.raises(ValueError, match="nowhere: no such checkpoint"):
        Policy.load(folder.parent / "nowhere")


def test_what_a_policy_refuses_is_named(run):
    policy = Policy.load(run[0])
    size = len(policy.normalizer.mean)
    with pytest.raises(ValueError, match=rf"observation: got shape \(3,\), expected \({size},\)"):
        policy(np.zeros(3))
    with pytest.raises(ValueError, match=r"observation\[1, 2\]: nan"):
        observations = np.zeros((2, size))
        observations[1, 2] = np.nan
        policy(observations)


def test_an_episode_is_the_one_that_the_policy_earns(run):
    policy = Policy.load(run[0])
    episode = play(policy, seed=0)
    length = policy.task.episode_length
    assert episode.q.shape == (length + 1, 2) and episode.rewards.shape == (length,) and episode.ended == "time is up"

    # The same start in tensors, by the same actions.
    worlds = Worlds(policy.task, 1, seed=0)
    worlds.simulation.start(np.ones(1, bool), episode.q[:1], episode.v[:1], worlds.simulation.state.goal)
    worlds.state = worlds.state._replace(q=torch.from_numpy(episode.q[:1]), v=torch.from_numpy(episode.v[:1]))
    expected = returns_of(lambda observation: torch.from_numpy(policy(observation.numpy())), worlds)
    assert episode.rewards.sum() == pytest.approx(expected[0], rel=1e-9)
    assert len(play(policy, seed=0, seconds=0.5).rewards) == 30


def command(*arguments):
    return [sys.executable, "-m", *map(str, arguments)]


def test_it_is_played_from_the_command_line(run, tmp_path):
    video = tmp_path / "run.mp4"
    out = subprocess.run(
        command("coulomb.learn.play", run[0], "--seconds", 0.2, "--video", video), capture_output=True, text=True
    )
    assert out.returncode == 0 and "CartPole: return" in out.stdout, out.stderr
    assert video.stat().st_size > 1000
    for arguments, said in (
        ([tmp_path], "no such checkpoint"),
        ([run[0], "--video", tmp_path / "no" / "run.mp4"], "--video: the folder"),
        ([run[0], "--seed", -1], "--seed: must be at least 0, got -1"),
    ):
        out = subprocess.run(command("coulomb.learn.play", *arguments), capture_output=True, text=True)
        assert out.returncode == 1 and said in out.stderr and "Traceback" not in out.stderr


def test_the_log_grows_every_epoch(tmp_path, monkeypatch):
    seen = []
    epoch = shac.Shac.epoch

    def watched(run):
        seen.append(len(log.read(tmp_path / "log.csv", 10)))
        return epoch(run)

    monkeypatch.setattr(shac.Shac, "epoch", watched)
    shac.train(shac.Config(**SMALL, output=str(tmp_path)), progress=False)
    assert seen == [0, 1, 2] and len(log.read(tmp_path / "log.csv", 10)) == 3


def test_a_checkpoint_is_written_when_a_minute_has_passed(tmp_path, monkeypatch):
    monkeypatch.setattr(shac, "CHECKPOINT_SECONDS", 0)
    saved = []
    monkeypatch.setattr(shac.Shac, "save", lambda run, path: saved.append((run.epochs, path.name)))
    shac.train(shac.Config(**{**SMALL, "evaluate_every": 3}, output=str(tmp_path)), progress=False)
    assert [epochs for epochs, name in saved if name == "checkpoint.pt"] == [1, 2, 3]


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_an_interrupted_run_loses_nothing_and_continues(tmp_path):
    options = ["--env", "CartPole", "--num_envs", "4", "--horizon", "4", "--evaluate_every", "100000", "--seed", "2"]
    folder = tmp_path / "run"
    train = command("coulomb.learn.shac", *options, "--epochs", "100000", "--output", folder)
    # A shell may start tests with a SIGINT that is ignored, and children would inherit that.
    heard = {"preexec_fn": partial(signal.signal, signal.SIGINT, signal.SIG_DFL)}
    process = subprocess.Popen(train, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **heard)
    try:
        deadline = time.monotonic() + 120
        while not (folder / "log.csv").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130 and f"continue with --resume {folder}" in errors and "Traceback" not in errors

    # The last epoch of the log is that of the checkpoint.
    done = len(log.read(folder / "log.csv", 100_000))
    out = subprocess.run(
        command("coulomb.learn.shac", "--resume", folder, "--epochs", done + 2), capture_output=True, text=True
    )
    assert out.returncode == 0, out.stderr
    assert [row["epoch"] for row in log.read(folder / "log.csv", 100_000)] == list(range(1, done + 3))
