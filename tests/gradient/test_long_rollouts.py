"""Long trajectories: the memory and time that their derivatives take, progress and interruption."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import coulomb
from scenes.trajectories import quadruped

MEASURE = """
import resource
import numpy as np
import coulomb
from scenes.trajectories import quadruped

def megabytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6

steps, every = STEPS
model, q, v, U, h = quadruped(steps)
sim = coulomb.Simulator(model, timestep=h)
warm = sim.rollout(q, v, U[:50])
warm.vjp(wrt=["mass/trunk"])
before, seen = megabytes(), []
look = lambda done, total: seen.append(megabytes())
r = sim.rollout(q, v, U, **every, progress=look)
g = r.vjp(wrt=["mass/trunk"], progress=look)
print(max(seen + [megabytes()]) - before, r.memory / 1e6, r.converged)
"""


def measure(steps, **options):
    """(megabytes of a rollout and its vjp beyond what the process had, what the rollout says of itself)."""
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("no /proc")
    code = MEASURE.replace("STEPS", repr((steps, options)))
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    used, told, converged = out.stdout.split()
    assert converged == "True"
    return float(used), float(told)


def test_memory_of_a_hundred_thousand_steps():
    used, told = measure(100_000)
    gradient = 100_000 * (8 + 14) * 8 / 1e6  # of u and tau: the caller's
    print(f"\n100,000 steps: {used:.0f} MB in use, {told:.0f} MB told")
    assert used < 200
    assert 0.5 * told < used - gradient < 1.2 * told + 5


def needed(sim, q, v, U, budget):
    """Bytes that the refusal of too small a budget names."""
    with pytest.raises(ValueError, match="memory_budget") as refused:
        sim.rollout(q, v, U, memory_budget=budget)
    return int(re.search(r"need (?:about )?(\d+)$", str(refused.value))[1])


def test_the_budget_is_kept():
    """40,000 steps in what a refusal says that they need, little more than their states: it is kept."""
    model, q, v, U, h = quadruped(40_000)
    sim = coulomb.Simulator(model, timestep=h)
    states = needed(sim, q, v, U, 1)
    first = needed(sim, q, v, U, states)  # by the first step; contacts make checkpoints larger
    budget = needed(sim, q, v, U, first)
    assert states < first < budget < 1.25 * states
    free = measure(40_000)
    used, told = measure(40_000, memory_budget=budget)
    gradient = 40_000 * (8 + 14) * 8 / 1e6
    print(f"\n40,000 steps in {budget / 1e6:.1f} MB: {used:.1f} MB in use, {told:.1f} MB told; without a budget {free}")
    assert 1e6 * free[1] > 2 * budget
    assert 0.9 * budget < 1e6 * told <= budget
    assert used - gradient <= budget / 1e6 + 5  # the allocator's own, pages


def test_a_budget_is_kept_or_refused():
    """Also where later steps need more than the first: contacts come."""
    model, q, v, U, h = quadruped(4000)
    sim, told = coulomb.Simulator(model, timestep=h), []
    for budget in np.linspace(1.7e6, 3.3e6, 33):
        try:
            told.append(sim.rollout(q, v, U, memory_budget=budget).memory / budget)
        except ValueError as error:
            assert "memory_budget" in str(error)
    assert 10 < len(told) < 33 and max(told) <= 1 and min(told) > 0.7


def test_a_budget_that_the_states_alone_fill_is_refused():
    """At once: there is one checkpoint, of the first state, and nothing to thin out."""
    model, q, v, U, h = quadruped(1000)
    sim = coulomb.Simulator(model, timestep=h)
    states = needed(sim, q, v, U, 1)
    for spare in (0, 1, 100, 1000):
        assert needed(sim, q, v, U, states + spare) > states + spare


def test_a_vjp_costs_one_more_rollout_and_the_sweep():
    model, q, v, U, h = quadruped(1000)
    sim = coulomb.Simulator(model, timestep=h)

    def fastest(call, repeats=7):
        times = []
        for _ in range(repeats):
            start = time.process_time()
            out = call()
            times.append(time.process_time() - start)
        return min(times), out

    forward, r = fastest(lambda: sim.rollout(q, v, U))
    w = np.ones((2, r.steps + 1, model.nv))
    backward, _ = fastest(lambda: r.vjp(*w))
    spaced = sim.rollout(q, v, U, checkpoint_every=50)
    from_checkpoints, _ = fastest(lambda: spaced.vjp(*w))
    sim.step(q, v, U[0])
    sweep, _ = fastest(lambda: [(sim.step(r.q[t], r.v[t], U[t]), sim.vjp(w[0, 0], w[1, 0])) for t in range(r.steps)])
    print(f"\n{forward:.4f} s, vjp {backward:.4f} s, from checkpoints {from_checkpoints:.4f} s, by steps {sweep:.4f} s")
    assert backward <= 1.1 * sweep  # which is one step and one vjp each, and Python's calls
    assert from_checkpoints <= 1.5 * sweep  # records that do not fit into the cache


def test_progress():
    model, q, v, U, h = quadruped(20_000)
    seen = []
    r = coulomb.Simulator(model, timestep=h).rollout(q, v, U, progress=lambda *x: seen.append(x))
    assert (
        len(seen) >= 3
        and seen == sorted(set(seen))
        and seen[-1] == (20_000, 20_000)
        and all(t == 20_000 for _, t in seen)
    )
    seen.clear()
    r.vjp(progress=lambda *x: seen.append(x))
    assert len(seen) >= 3 and seen == sorted(set(seen)) and seen[-1] == (20_000, 20_000)
    with pytest.raises(ZeroDivisionError):
        r.vjp(progress=lambda done, total: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        coulomb.Simulator(model, timestep=h).rollout(q, v, U, progress=lambda done, total: 1 / 0)


def test_a_bar_without_tqdm(monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    model, q, v, U, h = quadruped(100)
    coulomb.Simulator(model, timestep=h).rollout(q, v, U, progress=True)
    assert capfd.readouterr().err.endswith("\r100 of 100 steps (100%)\n")


def test_a_bar_with_tqdm(monkeypatch):
    log = []

    class Tqdm:
        n = 0

        def __init__(self, total, unit):
            log.append(total)

        def update(self, count):
            self.n += count

        def close(self):
            log.append(("closed", self.n))

    module = type(sys)("tqdm.auto")
    module.tqdm = Tqdm
    monkeypatch.setitem(sys.modules, "tqdm", type(sys)("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    model, q, v, U, h = quadruped(100)
    r = coulomb.Simulator(model, timestep=h).rollout(q, v, U, progress=True)
    r.jvp(dq0=np.ones(model.nv), progress=True)
    assert log == [100, ("closed", 100)] * 2


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers")
@pytest.mark.parametrize("what", ["rollout", "vjp", "jvp", "jacobian"])
def test_keyboard_interrupt(what):
    steps = 200_000
    model, q, v, U, h = quadruped(steps)
    sim = coulomb.Simulator(model, timestep=h)
    r = None if what == "rollout" else sim.rollout(q, v, U)
    calls = {
        "rollout": lambda: sim.rollout(q, v, U),
        "vjp": lambda: r.vjp(),
        "jvp": lambda: r.jvp(),
        "jacobian": lambda: r.jacobian(["q0"], all_states=False),
    }
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            calls[what]()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert time.monotonic() - start < 1.5
    reference = coulomb.Simulator(model, timestep=h).rollout(q, v, U[:50])
    assert np.array_equal(sim.rollout(q, v, U[:50]).q, reference.q)


def test_other_threads_run_meanwhile():
    model, q, v, U, h = quadruped(20_000)
    sim = coulomb.Simulator(model, timestep=h)
    r = sim.rollout(q, v, U[:2000])
    results = []
    threads = [threading.Thread(target=lambda: results.append(r.vjp(*np.ones((2, 2001, 14))).q0)) for _ in range(3)]
    for thread in threads:
        thread.start()
    sim.rollout(q, v, U)
    for thread in threads:
        thread.join()
    assert len(results) == 3 and all(np.array_equal(x, results[0]) for x in results)
