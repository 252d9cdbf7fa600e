"""A simulator serves one call at a time: others, from a second thread, from progress= or from a signal handler, are refused while it runs,
and the call that runs gives the bits it gives alone."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import coulomb

STEPS = 30


def boxes():
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    for i in range(2):
        scene.add_box((0.2, 0.2, 0.2), mass=1.0 + i, position=(0.03 * i, 0, 0.0999 + 0.1999 * i), name=f"box{i}")
    scene.add_box((1, 1, 1), position=(9, 9, 9), fixed=True, name="shelf")
    return scene.build()


@pytest.fixture(scope="module")
def model():
    return boxes()


@pytest.fixture
def sim(model):
    return coulomb.Simulator(model)


def start(model):
    q, v = model.neutral()
    v[:3] = 0.5, 0.2, 0.0
    return q, v


@pytest.fixture(scope="module")
def alone(model):
    return coulomb.Simulator(model).rollout(*start(model), steps=STEPS)


def set_memory(sim):
    sim.memory = coulomb.Simulator(sim.model).memory


# Everything that reads or changes what a rollout works on.
CALLS = {
    "step": lambda s: s.step(*s.model.neutral()),
    "rollout": lambda s: s.rollout(*s.model.neutral(), steps=3),
    "vjp": lambda s: s.vjp(np.zeros(12), np.zeros(12)),
    "jvp": lambda s: s.jvp(dq=np.zeros(12)),
    "derivatives": lambda s: s.derivatives(),
    "derivatives of parameters": lambda s: s.derivatives(wrt=["mass/box0"]),
    "sparse derivatives": lambda s: s.derivatives(sparse=True),
    "reset": lambda s: s.reset(),
    "move_body": lambda s: s.move_body("shelf", [9, 9, 9], [1, 0, 0, 0]),
    "mocap": lambda s: s.mocap,
    "memory": lambda s: s.memory,
    "set memory": set_memory,
    "freeze_memory": lambda s: s.freeze_memory(True),
    "output": lambda s: s.output("position/box0"),
    "status": lambda s: s.status,
    "contacts": lambda s: s.contacts,
    "impacts": lambda s: s.impacts,
    "check_gradients": lambda s: coulomb.check_gradients(s, *s.model.neutral()),
}
OF_DERIVATIVES = {
    "output": lambda d: d.output("position/box0", "q"),
    "dlambda": lambda d: d.dlambda("q"),
    "dpoint": lambda d: d.dpoint("q"),
    "dnormal": lambda d: d.dnormal("q"),
    "ddepth": lambda d: d.ddepth("q"),
}
CONSTANT = {"model", "timestep", "options"}


def refused(call):
    with pytest.raises(RuntimeError, match="Simulator: another call is running"):
        call()


def test_every_member_is_tried():
    tried = {name.split()[-1].replace("parameters", "derivatives") for name in CALLS} - {"check_gradients"}
    public = {name for name in dir(coulomb.Simulator) if not name.startswith("_")}
    assert tried == public - CONSTANT


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_what_progress_calls_is_refused(model, sim, alone, call):
    called = []

    def progress(done, total):
        refused(lambda: call(sim))
        assert sim.model.nq == model.nq and sim.timestep == sim.options["timestep"]
        called.append(done)

    r = sim.rollout(*start(model), steps=STEPS, progress=progress)
    assert called == [STEPS]
    assert np.array_equal(r.q, alone.q) and np.array_equal(r.v, alone.v)
    call(sim)  # free again


@pytest.mark.parametrize("call", OF_DERIVATIVES.values(), ids=OF_DERIVATIVES.keys())
def test_derivatives_do_not_ask_a_simulator_at_work(model, sim, call):
    sim.step(*start(model))
    d = sim.derivatives()
    call(d)
    sim.rollout(*start(model), steps=STEPS, progress=lambda done, total: refused(lambda: call(d)))
    with pytest.raises(RuntimeError, match=r"has stepped since these derivatives were taken \(step, rollout\)"):
        call(d)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_second_thread_is_refused(model, sim, alone, call):
    inside, go_on, found = threading.Event(), threading.Event(), []

    def progress(done, total):
        inside.set()
        assert go_on.wait(60)

    def work():
        found.append(sim.rollout(*start(model), steps=STEPS, progress=progress))

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(60)
    try:
        refused(lambda: call(sim))
    finally:
        go_on.set()
        thread.join()
    assert np.array_equal(found[0].q, alone.q)


def test_an_exception_of_progress_leaves_the_simulator_free(model, sim, alone):
    def progress(done, total):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        sim.rollout(*start(model), steps=STEPS, progress=progress)
    assert np.array_equal(sim.rollout(*start(model), steps=STEPS).q, alone.q)


def test_a_refused_argument_leaves_the_simulator_free(model, sim, alone):
    with pytest.raises(ValueError, match="q0"):
        sim.rollout(np.zeros(3), np.zeros(12), steps=2)
    assert np.array_equal(sim.rollout(*start(model), steps=STEPS).q, alone.q)


def test_an_argument_that_calls_back_is_refused(model, sim):
    """Conversion of an argument runs Python, too."""

    class Sly:
        def __array__(self, dtype=None, copy=None):
            sim.reset()
            return model.neutral()[0]

    with pytest.raises((RuntimeError, ValueError), match="another call is running"):
        sim.step(Sly(), np.zeros(12))
    sim.step(*start(model))


THREADS = """
import sys, threading
sys.path.insert(0, {folder!r})
import numpy as np
import coulomb
from test_one_call_at_a_time import boxes, start

model = boxes()
sim, expected = coulomb.Simulator(model), coulomb.Simulator(model).rollout(*start(model), steps=3000).q
right, refused = [], []

def work():
    for _ in range(4):
        try:
            right.append(np.array_equal(sim.rollout(*start(model), steps=3000).q, expected))
        except RuntimeError as error:
            assert "another call is running" in str(error)
            refused.append(1)

threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
assert right and all(right) and len(right) + len(refused) == 12, (right, refused)
print("refused", len(refused))
"""


def test_threads_on_one_simulator_neither_crash_nor_change_it():
    folder = os.path.dirname(__file__)
    done = subprocess.run(
        [sys.executable, "-c", THREADS.format(folder=folder)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused") and not done.stdout.startswith("refused 0")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_during_a_rollout(model, sim, alone):
    """The child has a simulator that is at work for ever: it says so, and others work."""
    inside, go_on = threading.Event(), threading.Event()

    def progress(done, total):
        inside.set()
        assert go_on.wait(60)

    thread = threading.Thread(target=lambda: sim.rollout(*start(model), steps=STEPS, progress=progress))
    thread.start()
    assert inside.wait(60)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            refused(lambda: sim.step(*start(model)))
            other = coulomb.Simulator(model).rollout(*start(model), steps=STEPS)
            code = 0 if np.array_equal(other.q, alone.q) else 2
        finally:
            os._exit(code)
    go_on.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(os.name != "posix", reason="signals to oneself")
@pytest.mark.parametrize("what", ["Ctrl-C", "a call of the simulator"])
def test_signals_during_a_rollout(model, sim, alone, what):
    """A handler may stop a rollout; it cannot use the simulator. Afterwards the simulator is free and gives the bits it gave."""
    asked = []

    def handler(number, frame):
        if what == "Ctrl-C":
            raise KeyboardInterrupt
        refused(lambda: sim.step(*start(model)))
        asked.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, handler)
    main = threading.main_thread().ident
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGUSR1))
    try:
        timer.start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            sim.rollout(*start(model), steps=1_000_000, keep_factors=False)
        assert time.monotonic() - began < 30
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)
    assert what == "Ctrl-C" or asked
    assert np.array_equal(sim.rollout(*start(model), steps=STEPS).q, alone.q)
