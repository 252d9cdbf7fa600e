"""A batch serves one call at a time, whoever asks: a signal handler, a forked process; and PyTorch's backward can be stopped."""

import multiprocessing
import os
import signal
import threading
import time

import numpy as np
import pytest
from test_one_call_at_a_time import boxes, start

import coulomb

N = 4
posix = pytest.mark.skipif(os.name != "posix", reason="signals to oneself")


@pytest.fixture(scope="module")
def model():
    return boxes()


def states(model):
    q, v = start(model)
    return np.tile(q, (N, 1)), v + 0.1 * np.arange(N)[:, None]


def rolled(model, threads=1):
    return coulomb.BatchSimulator(model, N, threads).rollout(*states(model), steps=20).q


class Signalled:
    """Runs a call that a signal interrupts after a while."""

    def __init__(self, handler):
        self.handler = handler

    def __enter__(self):
        self.before = signal.signal(signal.SIGUSR1, self.handler)
        main = threading.main_thread().ident
        self.timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGUSR1))
        self.timer.start()

    def __exit__(self, *_):
        self.timer.join()
        signal.signal(signal.SIGUSR1, self.before)


@posix
def test_a_handler_cannot_use_the_batch_at_work(model):
    batch, asked = coulomb.BatchSimulator(model, N, 2), []

    def handler(number, frame):
        for call in (lambda: batch.step(*states(model)), batch.reset, lambda: batch.status, lambda: batch.memory):
            with pytest.raises(RuntimeError, match="another call is running"):
                call()
            asked.append(1)
        raise KeyboardInterrupt

    began = time.monotonic()
    with Signalled(handler), pytest.raises(KeyboardInterrupt):
        batch.rollout(*states(model), steps=1_000_000, derivatives=False)
    assert time.monotonic() - began < 60
    assert len(asked) == 4
    assert np.array_equal(batch.rollout(*states(model), steps=20).q, rolled(model))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_during_a_rollout(model):
    """The child's copy of the batch is at work for ever and says so; a new one works."""
    batch, expected = coulomb.BatchSimulator(model, N, 2), rolled(model)
    thread = threading.Thread(target=lambda: batch.rollout(*states(model), steps=20_000, derivatives=False))
    thread.start()
    for _ in range(1000):
        try:
            batch.status  # noqa: B018
        except RuntimeError:
            break
        time.sleep(1e-3)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with pytest.raises(RuntimeError, match="another call is running"):
                batch.step(*states(model))
            code = 0 if np.array_equal(rolled(model, threads=2), expected) else 2
        finally:
            os._exit(code)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    thread.join()
    assert ended == 0


def work(batch, Q, V):
    return batch.rollout(Q, V, steps=20).q


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_batches_go_to_other_processes(model, method):
    batch = coulomb.BatchSimulator(model, N, 2)
    with multiprocessing.get_context(method).Pool(1) as pool:
        found = pool.apply(work, (batch, *states(model)))
    assert np.array_equal(found, rolled(model))


@posix
def test_torch_stops_forward_and_backward(model):
    torch = pytest.importorskip("torch")
    import coulomb.torch as ct

    sim = coulomb.Simulator(model)
    q, v = (torch.tensor(x) for x in start(model))
    v.requires_grad_()
    ct.rollout(sim, q, v, steps=5)[1].sum().backward()  # PyTorch imports much of itself here

    def handler(number, frame):
        raise KeyboardInterrupt

    for what in ("forward", "backward"):
        began = time.monotonic()
        with Signalled(handler), pytest.raises(KeyboardInterrupt):
            while True:
                V = ct.rollout(sim, q, v, steps=300)[1]
                if what == "backward":
                    V.sum().backward()
        assert time.monotonic() - began < 60
    v.grad = None
    ct.rollout(sim, q, v, steps=5)[1][-1].sum().backward()
    again = v.grad.clone()
    v.grad = None
    ct.rollout(coulomb.Simulator(model), q, v, steps=5)[1][-1].sum().backward()
    assert torch.equal(again, v.grad)
