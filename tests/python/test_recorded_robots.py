"""Robots of the tests: a folder that is wrong is an error, a package that is missing a skip; neither removes tests unseen."""

import importlib.util
import unittest

import pytest

import coulomb.demo
from scenes import robots


@pytest.mark.parametrize("made", [False, True])
def test_a_wrong_folder_is_named(monkeypatch, tmp_path, made):
    folder = tmp_path / "models"
    if made:
        (folder / "robot").mkdir(parents=True)
        (folder / "robot" / "model.xml").write_text("<mujoco/>")
    monkeypatch.setenv("COULOMB_ROBOTS", str(folder))
    for call in (robots.names, lambda: robots.load("robot"), lambda: robots.in_mujoco("robot")):
        with pytest.raises(ValueError, match="COULOMB_ROBOTS: '.*models' holds no <robot>/states.npz"):
            call()

    (folder / "robot").mkdir(parents=True, exist_ok=True)
    (folder / "robot" / "states.npz").touch()
    assert robots.names() == ["robot"]


def test_a_missing_package_is_a_skip(monkeypatch):
    monkeypatch.delenv("COULOMB_ROBOTS", raising=False)

    def nowhere(path):
        raise RuntimeError("pip install example-robot-data")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(coulomb.demo, "robot_path", nowhere)
    assert issubclass(robots.Missing, unittest.SkipTest)  # which pytest reports as skipped
    for name, package in [("hopper", "gymnasium"), ("go1", "example-robot-data")]:
        for call in (robots.load, robots.in_mujoco):
            with pytest.raises(robots.Missing, match=f"^{name}: pip install {package}"):
                call(name)
