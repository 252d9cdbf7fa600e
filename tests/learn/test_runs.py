"""What a run is told and what it leaves: options that are named when they are wrong, checkpoints that fit or are refused, folders that are not
written over."""

import dataclasses
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("gymnasium")

from coulomb.learn import checkpoints, shac  # noqa: E402
from coulomb.learn.config import TASKS, Config  # noqa: E402

SMALL = {
    "env": "CartPole",
    "num_envs": 2,
    "horizon": 3,
    "epochs": 2,
    "actor_units": (8,),
    "critic_units": (8,),
    "critic_batches": 2,
    "evaluate_every": 1,
    "evaluations": 1,
    "num_threads": 1,
}


@pytest.mark.parametrize(
    "options, said",
    [
        ({"epochs": 0}, "epochs is 0, expected an integer of at least 1"),
        ({"num_envs": -4}, "num_envs is -4"),
        ({"horizon": 2.5}, "horizon is 2.5"),
        ({"seed": -1}, "seed is -1, expected an integer of at least 0"),
        ({"gamma": 1.01}, "gamma is 1.01, expected a number at least 0 and at most 1"),
        ({"td_lambda": float("nan")}, "td_lambda is nan"),
        ({"actor_lr": 0.0}, "actor_lr is 0.0, expected a number above 0"),
        ({"critic_lr": float("inf")}, "critic_lr is inf"),
        ({"max_norm": -1.0}, "max_norm is -1.0"),
        ({"betas": (0.7, 1.0)}, "betas is"),
        ({"betas": (0.7,)}, "betas is"),
        ({"critic_iterations": 0}, "critic_iterations is 0"),
        ({"critic_batches": 0}, "critic_batches is 0"),
        ({"critic_batches": 100}, "critic_batches is 100, but an epoch has 6 samples"),
        ({"target_alpha": 1.0}, "target_alpha is 1.0, expected a number at least 0 and below 1"),
        ({"actor_units": ()}, "actor_units is"),
        ({"critic_units": (8, 0)}, "critic_units is"),
        ({"log_std": 9.0}, "log_std is 9.0"),
        ({"adjoint_clip": -1.0}, "adjoint_clip is -1.0"),
        ({"evaluate_every": 0}, "evaluate_every is 0"),
        ({"evaluations": 0}, "evaluations is 0"),
        ({"num_threads": -1}, "num_threads is -1"),
        ({"contact_stiffness": -1.0}, "contact_stiffness is -1.0"),
        ({"logger": "wandb"}, "logger is 'wandb', expected 'tensorboard' or ''"),
        ({"longest_horizon": 64}, "horizon is 3, expected from 8 to longest_horizon, 64"),
        ({"horizon": 32, "longest_horizon": 16}, "horizon is 32, expected from 8 to longest_horizon, 16"),
    ],
    ids=str,
)
def test_an_option_out_of_its_range_is_named(options, said):
    with pytest.raises(ValueError) as error:
        Config(**{**SMALL, **options})
    assert said in str(error.value)


@pytest.mark.parametrize("env", ["Hoper", "no.such.module:Task", "coulomb.learn.shac:NoSuchTask"])
def test_an_environment_that_there_is_not_is_named_with_those_that_there_are(env):
    with pytest.raises(ValueError) as error:
        Config(env=env).task()
    assert f"env is '{env}'" in str(error.value) and all(name in str(error.value) for name in TASKS)


def test_a_floor_is_softened_where_there_is_one():
    assert Config(env="Hopper", contact_stiffness=2e4, contact_dashpot=1e3).task().model.num_bodies > 1
    with pytest.raises(ValueError, match="contact_stiffness is 20000.0, but CartPoleSwingUp has no floor"):
        Config(env="CartPole", contact_stiffness=2e4).task()
    with pytest.raises(ValueError, match="contact_dashpot"):  # of no spring: never dropped in silence
        Config(env="Hopper", contact_dashpot=1e3).task()


def test_gradients_and_contacts_that_there_are_not_are_named():
    for options, said in (({"gradient": "magic"}, "gradient"), ({"contact": "magic"}, "contact")):
        with pytest.raises(ValueError, match=f"{said}.*magic|magic.*{said}"):
            shac.Shac(Config(**{**SMALL, **options}))


def test_an_output_that_has_a_run_is_not_written_over(tmp_path):
    config = Config(**SMALL, output=str(tmp_path))
    shac.train(config, progress=False)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match="where a run is already"):
        shac.train(dataclasses.replace(config, seed=1), progress=False)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before

    # From elsewhere neither: only its own run goes on there.
    shac.train(dataclasses.replace(config, output=str(tmp_path / "other")), progress=False)
    with pytest.raises(ValueError, match="where a run is already"):
        shac.train(dataclasses.replace(config, epochs=3), resume=tmp_path / "other", progress=False)


def test_a_run_goes_on_with_the_options_that_it_had(tmp_path):
    shac.train(Config(**SMALL, output=str(tmp_path)), progress=False)
    for name, value in (("seed", 1), ("horizon", 4), ("actor_lr", 1e-4), ("env", "Hopper")):
        with pytest.raises(ValueError) as error:
            shac.train(Config(**{**SMALL, "epochs": 4, name: value}), resume=tmp_path, progress=False)
        assert f"{name} is {value!r}, but the run of" in str(error.value)

    # Of the command line only what may change has to be said again.
    command = [sys.executable, "-m", "coulomb.learn.shac", "--resume", str(tmp_path)]
    out = subprocess.run([*command, "--epochs", "3"], capture_output=True, text=True)
    assert out.returncode == 0 and "CartPole, seed 0: return" in out.stdout, out.stderr
    assert checkpoints.read(tmp_path / "checkpoint.pt")[0] == Config(**{**SMALL, "epochs": 3}, output=str(tmp_path))
    out = subprocess.run([*command, "--horizon", "4"], capture_output=True, text=True)
    assert out.returncode == 1 and "horizon is 4" in out.stderr and "Traceback" not in out.stderr


def test_processes_write_into_folders_of_their_own_and_one_of_them_logs(tmp_path):
    pytest.importorskip("tensorboard")
    out = tmp_path / "run"
    words = [f"--{key}={value}" for key, value in SMALL.items() if not isinstance(value, tuple)]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*torchrun, "-m", "coulomb.learn.shac", *words, "--output", str(out), "--logger", "tensorboard"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("CartPole, seed 0: return") == 1
    found = [sorted(path.name.split(".")[0] for path in (out / f"rank{rank}").iterdir()) for rank in (0, 1)]
    assert found == [["best", "checkpoint", "events", "log"], ["best", "checkpoint", "log"]]


def test_files_that_are_no_checkpoints_are_named(tmp_path):
    shac.train(Config(**SMALL, output=str(tmp_path)), progress=False)
    good = tmp_path / "checkpoint.pt"
    (tmp_path / "half.pt").write_bytes(good.read_bytes()[:1000])
    (tmp_path / "text.pt").write_text("no checkpoint")
    torch.save({"format": 1}, tmp_path / "older.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    for name, said in (
        ("none.pt", "no such checkpoint"),
        ("half.pt", "damaged"),
        ("text.pt", "damaged"),
        ("older.pt", "its format is 1, expected 2"),
        ("list.pt", "its format is None"),
    ):
        with pytest.raises(ValueError) as error:
            shac.Shac.saved(tmp_path / name)
        assert name in str(error.value) and said in str(error.value)


def test_a_checkpoint_is_whole_or_the_one_before(tmp_path, monkeypatch):
    run = shac.Shac(Config(**SMALL))
    run.save(tmp_path / "run.pt")
    before = (tmp_path / "run.pt").read_bytes()

    def interrupted(contents, path):
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.save(tmp_path / "run.pt")
    assert (tmp_path / "run.pt").read_bytes() == before


def test_an_actor_of_actions_without_bounds_is_refused():
    run = shac.Shac(Config(**SMALL))
    run.task.action_high[0] = float("inf")
    with pytest.raises(ValueError, match="action 0 of its task is from -1.0 to inf, expected finite bounds"):
        shac.Actor(run.task, 5, (8,), -1.0)
