"""Every example and command runs in its quick mode, asserts its own outcome, and leaves the pictures it names."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from coulomb.demo import robot_path

ROOT = Path(__file__).resolve().parents[2]
MJCF = """<mujoco model="two_boxes"><option timestep="0.002"/><worldbody><geom type="plane" size="1 1 1"/>
<body name="box" pos="0 0 0.2"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body name="rod" pos="1 0 0.5"><joint name="hinge" type="hinge" axis="0 1 0" damping=".1"/>
<geom type="capsule" size=".02 .1" fromto="0 0 0 .3 0 0"/></body></worldbody>
<actuator><motor joint="hinge" ctrlrange="-1 1" ctrllimited="true"/></actuator></mujoco>"""


def run(arguments, folder, expect=0):
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    outcome = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert outcome.returncode == expect, f"exit code {outcome.returncode}\n{outcome.stdout}\n{outcome.stderr}"
    return outcome.stdout if expect == 0 else outcome.stderr


@pytest.fixture
def model_file(tmp_path):
    path = tmp_path / "two_boxes.xml"
    path.write_text(MJCF)
    return path


NEEDS = {
    "papers/nimble/cartpole.py": "casadi",
    "papers/nimble/double_pendulum.py": "casadi",
    "applications/ray_rollouts.py": "ray",
    "applications/slurm_sweep.py": "submitit",
    "applications/torch_throw.py": "torch",
    "first_steps/08_batches_and_torch.py": "torch",
    "glue/casadi_push.py": "casadi",
    "glue/crocoddyl_hop.py": "crocoddyl",
}
PICTURES = {  # one, if not said
    "papers/simple/cube_estimation.py": 4,  # sliding and thrown, velocity and impulse
}
EXAMPLES = ROOT / "examples"
FIRST_STEPS = sorted(path.relative_to(EXAMPLES).as_posix() for path in (EXAMPLES / "first_steps").glob("*.py"))
PROGRAMS = sorted(
    path.relative_to(EXAMPLES).as_posix()
    for folder in ("papers", "applications", "glue")
    for path in (EXAMPLES / folder).rglob("*.py")
    if not path.stem.endswith("_common")
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_example(name, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{name} needs {NEEDS[name]}")
    run([EXAMPLES / name, "--quick", "--output", tmp_path / "plots"], tmp_path)
    assert len(list((tmp_path / "plots").glob("*.png"))) == PICTURES.get(name, 1)


@pytest.mark.parametrize(
    "options, picture",
    [
        (["--speed", "1", "--yaw_rate", "0.8"], "mpc_go1_turn_1.png"),
        (["--trot"], "mpc_go1_trot.png"),
        (["--step", "0.05"], "mpc_go1_step.png"),
    ],
)
def test_go1_walks_otherwise(options, picture, tmp_path):
    run([EXAMPLES / "applications" / "mpc_go1.py", "--quick", *options, "--output", tmp_path], tmp_path)
    assert [path.name for path in tmp_path.glob("*.png")] == [picture]


@pytest.mark.parametrize("name", FIRST_STEPS)
def test_first_step(name, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    text = (EXAMPLES / name).read_text()
    assert text.count("\n") <= 40 and "assert " in text
    assert run([EXAMPLES / name], tmp_path).strip(), "says nothing"


def test_the_page_lists_every_program():
    page = (EXAMPLES / "README.md").read_text()
    missing = [name for name in (*FIRST_STEPS, *PROGRAMS) if f"`{name}`" not in page]
    assert len(FIRST_STEPS) == 8 and len(PROGRAMS) == 31 and not missing


def test_demo(tmp_path):
    text = run(["-m", "coulomb", "demo", "--quick", "--output", tmp_path / "demo"], tmp_path)
    assert "it stands" in text and "agree to 1e-6" in text and "DISAGREE" not in text
    pictures = sorted(path.name for path in (tmp_path / "demo").iterdir())
    assert pictures == ["go1_sliding.png", "go1_standing.png", "jacobian_error.png"]
    for name in pictures:
        assert name in text


def test_simulate_writes_every_state(model_file, tmp_path):
    text = run(["-m", "coulomb", "simulate", model_file, "--duration", "0.5", "--output", "states.csv"], tmp_path)
    assert "0 of 250 steps were not solved" in text
    with open(tmp_path / "states.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 250
    assert float(rows[-1]["time"]) == pytest.approx(0.5)
    height = next(name for name in rows[-1] if name.startswith("q.") and name.endswith(".z"))
    assert float(rows[-1][height]) == pytest.approx(0.1, abs=1e-6)  # the box has come to rest on the plane


def test_simulate_draws_the_last_state(model_file, tmp_path):
    run(["-m", "coulomb", "simulate", model_file, "--duration", "0.3", "--output", "state.png"], tmp_path)
    assert (tmp_path / "state.png").read_bytes().startswith(b"\x89PNG")


def test_check_passes_on_right_gradients(tmp_path):
    path, packages = robot_path("go1_description/urdf/go1.urdf")
    text = run(["-m", "coulomb", "check", path, "--package-dir", packages, "--states", "5", "--seed", "3"], tmp_path)
    assert "0 states failed" in text
    contacts = [int(line.split()[1]) for line in text.splitlines() if " of 66" in line]
    assert len(contacts) == 5 and min(contacts) > 0  # the states are in contact


@pytest.mark.parametrize(
    "arguments, named",
    [
        (["simulate", "no_such.xml"], "no_such.xml"),
        (["simulate", "two_boxes.xml", "--timestep", "-1"], "'-1'"),
        (["simulate", "two_boxes.xml", "--timestep", "abc"], "abc"),
        (["simulate", "two_boxes.xml", "--output", "states.txt"], "states.txt"),
        (["simulate", "two_boxes.xml", "--keyframe", "3"], "--keyframe"),
        (["simulate", "two_boxes.xml", "--fixed-base"], "--fixed-base"),
        (["check", "two_boxes.xml", "--states", "0"], "'0'"),
    ],
)
def test_bad_arguments_are_named(arguments, named, model_file, tmp_path):
    message = run(["-m", "coulomb", *arguments], tmp_path, expect=2)
    assert named in message and "Traceback" not in message
