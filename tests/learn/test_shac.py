"""coulomb.learn: the gradient of a horizon against differences, ends and resets on the way, same bits for the same seed, for other numbers of
environments, after a checkpoint, and for processes that learn together; and that it learns."""

import copy
import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("gymnasium")

from coulomb.envs.tasks.diff_hopper import DiffHopper  # noqa: E402
from coulomb.envs.tasks.swing_up import CartPoleSwingUp  # noqa: E402
from coulomb.learn import log, probe, shac  # noqa: E402
from coulomb.learn.horizons import Horizon  # noqa: E402
from coulomb.learn.networks import Actor, ClipRows, Temperature  # noqa: E402
from coulomb.learn.worlds import RANDOMIZED, Worlds, randomized  # noqa: E402

SMALL = {
    "num_envs": 4,
    "horizon": 6,
    "epochs": 10,
    "actor_units": (16,),
    "critic_units": (16,),
    "evaluations": 2,
    "num_threads": 1,
}


def weights(run):
    return torch.cat([p.detach().flatten() for p in (*run.actor.parameters(), *run.critic.parameters())]).numpy()


def loss_at(config, move, epochs=0):
    """The loss of a horizon from the same start, with the policy's weights moved: a number, and its gradient where nothing is moved."""
    run = shac.Shac(config)
    run.actor.double()
    run.critic.double()
    run.target.double()
    run.normalizer.__class__ = DoubleNormalizer
    size = sum(p.numel() for p in run.actor.parameters())
    if move is not None:
        with torch.no_grad():
            for p, step in zip(
                run.actor.parameters(), torch.tensor(move).split([p.numel() for p in run.actor.parameters()])
            ):
                p += step.view_as(p)
    loss, _, of_actions = run._play()
    loss.backward()
    run.actor.differentiate(*of_actions)
    gradient = torch.cat([p.grad.flatten() for p in run.actor.parameters()]).numpy()
    return loss.item(), gradient, size, run


class DoubleNormalizer(shac.Normalizer):
    """In double precision, for differences."""

    def __call__(self, x):
        return (x - self.mean) / torch.sqrt(self.var + 1e-5)


@pytest.mark.parametrize("env, episode", [("CartPole", 240), ("Hopper", 1000), ("Hopper", 4)])
def test_the_gradient_of_a_horizon_is_its_difference(env, episode, monkeypatch):
    """Through observations, rewards, physics and the critic's value, with episodes that end on the way."""
    task = {"CartPole": CartPoleSwingUp, "Hopper": DiffHopper}[env]
    monkeypatch.setattr(task, "episode_length", episode)
    config = shac.Config(env=env, **SMALL, adjoint_clip=0)
    loss, gradient, size, run = loss_at(config, None)
    assert bool((run.worlds.elapsed < SMALL["horizon"]).all()) == (episode < SMALL["horizon"])
    d = np.random.default_rng(0).normal(size=size)
    d /= np.linalg.norm(d)
    h = 1e-6
    difference = (loss_at(config, h * d)[0] - loss_at(config, -h * d)[0]) / (2 * h)
    assert abs(difference - gradient @ d) < 1e-5 * max(abs(difference), np.linalg.norm(gradient) / size**0.5)


def test_a_clip_shortens_rows_to_so_many_medians_and_no_others():
    x = torch.zeros(5, 2, requires_grad=True)
    gradient = torch.tensor([[1.0, 0], [0, -2], [3, 4], [0, 0], [0, 100]])
    ClipRows.apply(x, 3.0).backward(gradient)  # the median norm is 2
    expected = gradient.clone()
    expected[4] *= 6 / 100
    assert torch.allclose(x.grad, expected) and torch.equal(x.grad[:4], gradient[:4])


def test_an_end_cuts_what_came_before():
    """The action before an episode's last one does not move what follows the reset."""
    worlds = Worlds(DiffHopper(), 2, seed=0, num_threads=1)
    worlds.elapsed[:] = [worlds.task.episode_length - 1, 0]
    action = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    step = worlds.step(action)
    assert step.ended.tolist() == [True, False] and not step.terminated.any()
    worlds.step(torch.zeros(2, 3)).reward.sum().backward(retain_graph=True)
    assert not action.grad[0].any() and action.grad[1].any()

    # The observation is that before the reset, and the reward still has its gradient.
    step.reward[0].backward()
    assert action.grad[0].any()
    assert not torch.equal(step.observation[0], worlds.observe()[0])


def test_rows_are_the_same_for_any_number_of_environments_and_threads():
    rewards = []
    for n, first, threads in ((6, 0, 1), (6, 0, 2), (3, 3, 1)):
        worlds = Worlds(DiffHopper(), n, seed=5, num_threads=threads, first=first)
        action = torch.sin(torch.arange(first, first + n)[:, None] + torch.arange(3.0))
        rewards.append(torch.stack([worlds.step(action).reward for _ in range(20)]).numpy())
    assert np.array_equal(rewards[0], rewards[1]) and np.array_equal(rewards[0][:, 3:], rewards[2])


def test_the_same_seed_gives_the_same_bits_and_so_does_a_checkpoint(tmp_path):
    torch.set_num_threads(1)
    config = shac.Config(env="Hopper", **{**SMALL, "horizon": 8}, entropy=True, longest_horizon=12)
    whole, parts = shac.Shac(config), shac.Shac(config)
    for _ in range(6):
        whole.epoch()
    for _ in range(3):
        parts.epoch()
    parts.save(tmp_path / "run.pt")
    resumed = shac.Shac(copy.deepcopy(config))
    resumed.load(tmp_path / "run.pt")
    for _ in range(3):
        resumed.epoch()
    assert np.array_equal(weights(shac.Shac.saved(tmp_path / "run.pt")), weights(parts))
    assert np.array_equal(weights(whole), weights(resumed))
    assert whole.samples == resumed.samples and np.array_equal(whole.returns, resumed.returns)
    assert not np.array_equal(weights(whole), weights(shac.Shac(shac.Config(env="Hopper", **{**SMALL, "seed": 1}))))


def test_a_run_that_is_gone_on_with_keeps_its_log_and_its_best(tmp_path):
    config = {**SMALL, "evaluate_every": 2, "output": str(tmp_path)}
    shac.train(shac.Config(env="CartPole", **{**config, "epochs": 4}), progress=False)
    before = [row["loss"] for row in log.read(tmp_path / "log.csv", 4)]
    run = shac.train(shac.Config(env="CartPole", **{**config, "epochs": 6}), resume=tmp_path, progress=False)
    after = log.read(tmp_path / "log.csv", 6)
    assert (
        [row["loss"] for row in after[:4]] == before
        and [row["epoch"] for row in after] == [1, 2, 3, 4, 5, 6]
        and run.epochs == 6
    )
    assert after[4]["seconds"] > after[3]["seconds"]


def test_tensorboard_gets_what_the_log_has(tmp_path, monkeypatch):
    """Every epoch once, at its samples; also of a run that lost two epochs and was gone on with from its checkpoint."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    config = {**SMALL, "evaluate_every": 2, "output": str(tmp_path), "logger": "tensorboard"}
    monkeypatch.setattr(CartPoleSwingUp, "episode_length", 8)  # so that episodes with noise end
    shac.train(shac.Config(env="CartPole", **{**config, "epochs": 4}), progress=False)
    checkpoint = (tmp_path / "checkpoint.pt").read_bytes()
    for _ in range(2):
        (tmp_path / "checkpoint.pt").write_bytes(checkpoint)
        shac.train(shac.Config(env="CartPole", **{**config, "epochs": 6}), resume=tmp_path, progress=False)

    read = accumulator.EventAccumulator(str(tmp_path))
    read.Reload()
    rows = log.read(tmp_path / "log.csv", 6)
    assert len(rows) == 6 and sum("return" in row for row in rows) == 3
    assert {"return", "training_return", "loss", "gradient_norm"} <= set(read.Tags()["scalars"])
    for name in read.Tags()["scalars"]:
        expected = [(row["samples"], row[name]) for row in rows if np.isfinite(row.get(name, np.nan))]
        assert [event.step for event in read.Scalars(name)] == [samples for samples, _ in expected]
        assert np.allclose([event.value for event in read.Scalars(name)], [value for _, value in expected], rtol=1e-6)


def test_logs_that_there_are_not_are_named(monkeypatch):
    with pytest.raises(ValueError, match="logger is 'wandb', expected 'tensorboard'"):
        log.Events("wandb", None)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ImportError, match="pip install tensorboard"):
        log.Events("tensorboard", None)


def test_actions_that_are_not_finite_are_named_and_nothing_moves():
    worlds = Worlds(DiffHopper(), 3, seed=0, num_threads=1)
    before = worlds.state.q
    with pytest.raises(ValueError, match=r"U\[1, 2\] is nan"):
        worlds.step(torch.tensor([[0.0, 0, 0], [0, 0, float("nan")], [0, 0, 0]]))
    assert worlds.state.q is before


def test_one_environment_that_overflows_begins_anew_and_the_others_go_on():
    worlds = Worlds(DiffHopper(), 3, seed=0, num_threads=1)
    v = worlds.state.v.clone()
    v[1] = 1e200
    worlds.state = worlds.state._replace(v=v)
    action = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    step = worlds.step(action)
    assert step.ended.tolist() == [False, True, False] and worlds.unsolved == 1
    assert torch.isfinite(worlds.observe()).all()
    step.reward[[0, 2]].sum().backward()
    assert torch.isfinite(action.grad).all() and not action.grad[1].any()

    # Nothing of it is learned from.
    assert (
        step.reward[1] == 0
        and step.overflowed[1]
        and not step.terminated[1]
        and torch.equal(step.observation[1], worlds.observe()[1])
    )


def played(run, overflow_at=None):
    """A horizon: its loss, rewards (h, n), what the critic learns from; row 1 overflows in the step of that number."""
    step, rewards = run.worlds.step, []

    def watched(action):
        if len(rewards) == overflow_at:
            run.worlds.state.v.data[1] = 1e200
        found = step(action)
        rewards.append(found.reward.detach())
        return found

    run.worlds.step = watched
    loss, data, _ = run._play()
    run.worlds.step = step
    return loss.item(), torch.stack(rewards), data


@pytest.mark.parametrize("when", [1, 3])
def test_nothing_is_learned_from_an_overflow(when, monkeypatch):
    """The row is one whose horizon ended before it, and the loss has no value of what would follow."""
    noise = torch.randn(when + 1, 4, 3, generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(torch, "randn", lambda *size, generator: noise[: size[0]])
    config = shac.Config(env="Hopper", **{**SMALL, "horizon": when + 1}, gamma=0.5)
    whole, shorter, broken = (shac.Shac(c) for c in (config, dataclasses.replace(config, horizon=when), config))
    for run in (whole, shorter, broken):
        run.target[-1].bias.data += 100.0  # a value that cannot be overlooked
    whole_loss, rewards, (observations, targets, _) = played(whole)
    _, _, (_, shorter_targets, _) = played(shorter)
    loss, _, (kept, kept_targets, _) = played(broken, overflow_at=when)
    assert broken.worlds.unsolved == 1

    # Of the critic's samples one is missing; its row's targets are those of a horizon that ended before.
    others = [t * 4 + row for t in range(when + 1) for row in (0, 2, 3)]
    before = [t * 4 + 1 for t in range(when)]
    kept_of = {sample: i for i, sample in enumerate(i for i in range(4 * (when + 1)) if i != 4 * when + 1)}
    assert len(kept) == len(kept_of)
    for samples, expected in ((others, targets[others]), (before, shorter_targets[before])):
        rows = [kept_of[i] for i in samples]
        assert torch.equal(kept[rows], observations[samples])
        assert torch.allclose(kept_targets[rows], expected)

    # Of the loss its last reward is missing, and the value after it.
    end = whole.worlds.state
    seen = shac.Normalizer(observations.shape[1])(whole.task.observe(end))
    value = whole.target(seen).squeeze(-1)[1].item()
    missing = 0.5**when * (rewards[when, 1].item() + 0.5 * value)
    assert loss == pytest.approx(whole_loss + missing / (4 * (when + 1)), abs=1e-5 * missing)

    # And an epoch after it is one like others.
    assert np.isfinite(list(broken.epoch().values())).all()
    assert broken.normalizer.var.max() < 1e4


def test_the_policy_feels_that_falling_is_bad(monkeypatch):
    """The critic learns that nothing follows a fall, and its slope there moves the policy, even where nothing is earned."""
    monkeypatch.setattr(DiffHopper, "reward", lambda self, before, after: (0 * after.v[:, 0], {}))
    run = shac.Shac(shac.Config(env="Hopper", **{**SMALL, "horizon": 1}))
    q = run.worlds.state.q.clone()
    q[:, 1] = -0.8  # far below the height where episodes end
    run.worlds.state = run.worlds.state._replace(q=q)
    loss, (observations, targets, fallen), of_actions = run._play()
    assert len(fallen) == 4 and not targets.any()
    loss.backward()
    run.actor.differentiate(*of_actions)
    assert all(weight.grad.any() for weight in run.actor.mean.parameters())

    for _ in range(300):
        run._fit_critic(observations, targets + 1, fallen)
    assert run.critic(fallen).abs().max() < 0.1 < 0.9 < run.critic(observations).min()


def test_surprise_is_minus_the_logarithm_of_the_density_of_actions():
    """By the change of variables, its derivative by differences; and its mean is the entropy."""
    actor = shac.Shac(shac.Config(env="Hopper", **SMALL)).actor.double()
    actor.middle, actor.reach = torch.zeros(3).double(), torch.ones(3).double()
    observation = torch.randn(1, 11, dtype=torch.float64).expand(1000, 11)
    noise = torch.randn(1000, 3, dtype=torch.float64)
    with torch.no_grad():
        actions = actor(observation, noise)
        h = 1e-6
        slope = (actor(observation, noise + h) - actor(observation, noise - h)) / (2 * h)
        normal = torch.distributions.Normal(0.0, 1.0).log_prob(noise)
        expected = -(normal - slope.log()).sum(1)
        assert torch.allclose(actor.surprise(actions, noise), expected, atol=1e-4)


def test_entropy_is_worth_more_where_there_is_too_little():
    low, high = Temperature(4), Temperature(4)
    for _ in range(10):
        low.learn(torch.full((8,), -5.0))
        high.learn(torch.full((8,), 1.0))
    assert low.log.item() > 0 > high.log.item() and low.goal == -2
    assert low.bonus(torch.zeros(1)).item() == pytest.approx(np.exp(low.log.item()) / 2)


def test_a_horizon_shrinks_where_gradients_grow_and_stays_within_its_bounds():
    steep, flat, fixed = Horizon(32, 64), Horizon(32, 64), Horizon(32)
    for _ in range(1000):
        steep.adapt([1.0, 10.0, 1e3])  # the last step first
        flat.adapt([1.0, 1.0, 1.0])
        fixed.adapt([1.0, 10.0, 1e3])
        if _ == 0:
            assert steep.exact == pytest.approx(32 - 0.2 * np.log(1e2)) and flat.exact > 32
    assert (steep.steps, flat.steps, fixed.steps) == (8, 64, 32)
    flat.adapt([0.0, 0.0])  # nothing was felt: nothing is learned from it
    assert flat.steps == 64
    with pytest.raises(ValueError, match="longest_horizon: 4, expected"):
        Horizon(32, 4)


def test_the_cosine_of_halves_tells_signal_from_noise():
    """Actions whose gradient is the same in all environments, or random in each; and one environment has no second half."""
    torch.manual_seed(0)
    actor = Actor(CartPoleSwingUp(), 5, (16,), -1.0)
    observations, noise = torch.randn(20, 64, 5), torch.randn(20, 64, 1)

    def cosine(slopes, n=64):
        actions = [torch.zeros(n, 1, requires_grad=True) for _ in range(20)]
        for action, slope in zip(actions, slopes):
            action.grad = slope[:n]
        actor.zero_grad()
        return actor.differentiate(observations[:, :n], noise[:, :n], actions)

    assert cosine(torch.ones(20, 64, 1)) > 0.95
    assert np.mean([abs(cosine(torch.randn(20, 64, 1))) for _ in range(10)]) < 0.6
    assert cosine(torch.ones(20, 64, 1), n=1) == 0


def test_the_probe_says_what_is_signal(capsys):
    """A cart that is pushed along earns by every push alike; the table has a row for every case, floors and limits where a task has them."""
    config = shac.Config(env="Hopper", num_envs=16, num_threads=1)
    task = config.task()
    task.reward = lambda before, after: (after.action.sum(1) + 0 * after.v[:, 0], {})
    found = probe.signal(task, config, horizon=4, clip=0.0)
    assert found.ratio > 20 and found.cosine > 0.9 and found.median <= found.largest and found.ends == 0
    task.reward = lambda before, after: (after.action.sum(1) * torch.tensor([1.0, -1.0] * 8) + 0 * after.v[:, 0], {})
    assert probe.signal(task, config, horizon=4, clip=0.0).ratio < 3

    probe.main(["--env", "Hopper", "--num_envs", "4", "--horizon", "8", "--num_threads", "1"])
    lines = capsys.readouterr().out.splitlines()
    names = {line[:26].strip() for line in lines[2:-1]}
    assert names == {"as configured", *probe.VARIANTS}
    with pytest.raises(SystemExit, match="env is 'Hoper'"):
        probe.main(["--env", "Hoper"])


def test_environments_that_differ():
    """Friction and springs by one factor per environment and kind, whatever the number of rows; what is not soft has no factor."""
    task = shac.Config(env="LightAnt").task()
    drawn = randomized(task.model, 3, range(6), 0.3)
    kinds = {name.split("/")[0] for name in drawn}
    assert {"friction", "contact_stiffness", "contact_dashpot", "joint_limit_stiffness"} <= kinds <= set(RANDOMIZED)
    some = randomized(task.model, 3, range(2, 4), 0.3)
    assert all((drawn[name][2:4] == some[name]).all() for name in drawn)
    stiffness = drawn["joint_limit_stiffness/hip_1"][:, 0] / 1e3
    assert stiffness == pytest.approx(drawn["joint_limit_stiffness/ankle_2"][:, 0] / 1e3)
    assert len(set(stiffness)) == 6 and 0.2 < np.abs(np.log(stiffness)).max() < 1.2

    # The same actions end elsewhere: where the floor is softer, feet are deeper.
    worlds = Worlds(shac.Config(env="LightAnt").task(noise=0), 6, seed=0, num_threads=1, options={"parameters": drawn})
    assert (worlds.state.q[1:] == worlds.state.q[0]).all()
    for _ in range(30):
        worlds.step(torch.zeros(6, 8))
    assert len({tuple(q) for q in worlds.state.q.tolist()}) == 6


@pytest.mark.parametrize(
    "options",
    [
        {"gradient": "complementarity_aware"},
        {"gradient": "from_distance"},
        {"contact": "penalty"},
        {"adjoint_clip": 0},
        {"randomization": 0.3, "contact_stiffness": 2e4, "contact_dashpot": 1e3},
        {"entropy": True},
        {"horizon": 8, "longest_horizon": 12},
    ],
    ids=str,
)
def test_other_gradients_contacts_and_clips_learn_by_the_same_file(options):
    run = shac.Shac(shac.Config(env="Hopper", **{**SMALL, **options}))
    for _ in range(2):
        assert np.isfinite(run.epoch()["gradient_norm"])


def test_it_learns_the_cart_pole(tmp_path):
    """A short run: not solved, but far better than doing nothing, which earns -1780, and than actions at random."""
    config = shac.Config(
        **{**shac.PRESETS["CartPole"], "env": "CartPole", "epochs": 120, "evaluate_every": 60, "output": str(tmp_path)}
    )
    run = shac.train(config, progress=False)
    assert run.evaluate().mean() > -1200
    assert {"log.csv", "checkpoint.pt", "best.pt"} <= {path.name for path in tmp_path.iterdir()}


def test_it_is_a_command():
    small = ["--epochs", "2", "--num_envs", "4", "--horizon", "4", "--evaluations", "2", "--actor_units", "8", "8"]
    out = subprocess.run(
        [sys.executable, "-m", "coulomb.learn.shac", "--env", "CartPole", *small], capture_output=True, text=True
    )
    assert out.returncode == 0 and "CartPole, seed 0: return" in out.stdout, out.stderr


def test_two_processes_learn_as_one_and_to_the_same_bits_every_time(tmp_path):
    script = tmp_path / "two.py"
    script.write_text(
        "import sys, torch, numpy as np\n"
        "from coulomb.learn import ranks, shac\n"
        "torch.set_num_threads(1)\n"
        f"run = shac.Shac(shac.Config(env='Hopper', **{SMALL}))\n"
        "[run.epoch() for _ in range(3)]\n"
        "flat = torch.cat([p.detach().flatten() for p in (*run.actor.parameters(), *run.critic.parameters())]).numpy()\n"
        "np.save(sys.argv[1] + f'{run.rank}.npy', np.append(flat, run.samples))\n"
        "ranks.finish()\n"
    )
    found = []
    for attempt in range(2):
        out = tmp_path / f"run{attempt}_"
        # Standalone: torchrun itself opens a free port and keeps it. One that is probed here could be taken meanwhile.
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        run = subprocess.run(
            [*torchrun, str(script), str(out)],
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert run.returncode == 0, run.stderr
        found.append([np.load(f"{out}{rank}.npy") for rank in range(2)])
    assert np.array_equal(found[0][0], found[0][1]) and np.array_equal(found[0][0], found[1][0])
    assert found[0][0][-1] == 2 * 3 * SMALL["num_envs"] * SMALL["horizon"]
