"""A learning task in MuJoCo with the springs of its floor and joint limits (benchmarks/learning.py): the same motion, control step by step."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("gymnasium")
mujoco = pytest.importorskip("mujoco")

import coulomb  # noqa: E402
from coulomb.envs.tasks.light_hopper import LightHopper  # noqa: E402

STEPS = 128  # per control step


@pytest.fixture
def learning(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    return pytest.importorskip("learning")


def largest_difference(learning):
    """m/s or rad/s, at the ends of control steps that both simulators begin in the same state; and how many of them slid."""
    task = LightHopper(frame_skip=STEPS)
    model = learning.model_of_mujoco(task, "same springs")
    data = mujoco.MjData(model)
    sim = coulomb.Simulator(task.model, timestep=task.timestep, **task.options)
    q, v, _ = task.draw(np.random.default_rng(1))
    v[0] = 2.0
    largest, slid = 0.0, 0
    for k in range(45):
        u = task.control(0.8 * np.sin(0.3 * k + np.arange(3))[None])[0]
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_step(model, data, STEPS)
        modes = set()
        for _ in range(STEPS):
            q, v = sim.step(q, v, u)
            modes |= {contact.mode for contact in sim.contacts}
        largest = max(largest, np.abs(v - data.qvel).max())
        slid += "sliding" in modes
    return largest, slid


def test_a_hopper_that_slides_moves_as_in_mujoco(learning, monkeypatch):
    largest, slid = largest_difference(learning)
    assert slid >= 5 and largest < 0.2

    # A larger impedance adds to the normal force as it slides.
    monkeypatch.setattr(learning, "IMPEDANCE", 1e-2)
    assert largest_difference(learning)[0] > 2 * largest
