"""python -m coulomb: simulate, check, and what it says about bad input."""

import csv
import subprocess
import sys

import numpy as np
import pytest

from coulomb import gradients
from coulomb.__main__ import main

ARM = """<mujoco model="arm"><option timestep="0.002"/><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 .3"><joint name="j" axis="0 1 0" damping=".1"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".04"/>
    <body pos=".3 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto=".1 0 0 .3 0 0" size=".04"/></body></body></worldbody>
  <actuator><motor joint="j"/></actuator><keyframe><key qpos="0.2 0.3"/></keyframe></mujoco>"""
INERTIAL = "<inertial><mass value='1'/><inertia ixx='.01' ixy='0' ixz='0' iyy='.01' iyz='0' izz='.01'/></inertial>"
SHAPE = "<collision><geometry><box size='.2 .2 .1'/></geometry></collision>"
JOINT = (
    "<joint name='{0}{1}' type='revolute'><parent link='{0}'/><child link='{1}'/><origin xyz='.2 0 .2'/><axis xyz='0 1 0'/>"
    "<limit lower='-1' upper='1' effort='9' velocity='9'/>{2}</joint>"
)
URDF = (
    "<robot name='r'>"
    + "".join(f"<link name='{c}'>{INERTIAL}{SHAPE}</link>" for c in "abc")
    + JOINT.format("a", "b", "")
)
PLAIN = URDF + JOINT.format("b", "c", "") + "</robot>"
MIMIC = URDF + JOINT.format("b", "c", "<mimic joint='ab'/>") + "</robot>"


@pytest.fixture
def files(tmp_path):
    for name, text in (("arm.xml", ARM), ("robot.urdf", PLAIN), ("mimic.urdf", MIMIC), ("broken.xml", "<mujoco>")):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_simulate_writes_every_state(files, capsys):
    assert main(["simulate", str(files / "arm.xml"), "--duration", "0.1", "--output", str(files / "out.csv")]) == 0
    rows = list(csv.reader(open(files / "out.csv")))
    assert rows[0] == ["time", "q.j", "q.joint1", "v.j", "v.joint1", "contacts", "residual", "status"]
    assert len(rows) == 51
    assert float(rows[-1][0]) == pytest.approx(0.1) and np.isfinite([float(x) for x in rows[-1][:7]]).all()
    assert "2 degrees of freedom" in capsys.readouterr().out


def test_columns_of_free_and_ball_joints(tmp_path):
    """One header per number, in the order of q and v."""
    (tmp_path / "kite.xml").write_text(
        "<mujoco><worldbody><body><freejoint name='root'/><geom size='.1'/><body pos='0 0 1'><joint name='tail' type='ball'/>"
        "<geom size='.1'/></body></body></worldbody></mujoco>"
    )
    output = str(tmp_path / "out.csv")
    assert main(["simulate", str(tmp_path / "kite.xml"), "--duration", "0.01", "--output", output]) == 0
    header, first = list(csv.reader(open(output)))[:2]
    assert len(header) == len(first)
    assert header[1:8] == ["q.root.x", "q.root.y", "q.root.z", "q.root.qw", "q.root.qx", "q.root.qy", "q.root.qz"]
    assert header[8:12] == ["q.tail.qw", "q.tail.qx", "q.tail.qy", "q.tail.qz"]
    assert header[12:18] == ["v.root.vx", "v.root.vy", "v.root.vz", "v.root.wx", "v.root.wy", "v.root.wz"]
    assert header[18:21] == ["v.tail.wx", "v.tail.wy", "v.tail.wz"]
    assert float(first[4]) == 1 and float(first[14]) < 0


def test_simulate_draws_a_picture(files):
    pytest.importorskip("matplotlib")
    assert main(["simulate", str(files / "robot.urdf"), "--duration", "0.02", "--output", str(files / "out.png")]) == 0
    assert (files / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["out.png", "out.csv"])
def test_a_folder_that_is_not_there_is_not_made(files, capsys, name):
    output = files / "none" / name
    assert main(["simulate", str(files / "arm.xml"), "--duration", "0.1", "--output", str(output)]) == 2
    assert "--output" in (said := capsys.readouterr().err) and "does not exist" in said
    assert not output.parent.exists()


def test_pictures_hold_the_whole_scene(tmp_path, monkeypatch):
    """Every corner of every geometry, and both ends of the arrows, lie inside the picture: also of what is flat or tall, and from
    all sides."""
    pytest.importorskip("matplotlib")
    import coulomb
    from coulomb import pictures

    seen = []

    def watched(figure, axes, points):
        fill(figure, axes, points)
        seen.append(places(figure, axes, points))

    fill = pictures._fill
    monkeypatch.setattr(pictures, "_fill", watched)
    for size in ((2, 2, 0.1), (0.1, 0.1, 2), (1, 1, 1)):
        scene = coulomb.Scene()
        scene.add_ground()
        scene.add_box(size, position=(0, 0, size[2] / 2 - 1e-3))
        model = scene.build()
        sim = coulomb.Simulator(model)
        q, v = model.neutral()
        sim.step(q, v)
        for view in ((14, -60), (60, 20)):
            path = tmp_path / "picture.png"
            pictures.scene_picture(model, q, sim.contacts, sim.timestep, path, view=view)
            assert np.abs(seen[-1] - 0.5).max() <= 0.5
            assert np.abs(seen[-1] - 0.5).max() > 0.25  # and it is not lost in it


def places(figure, axes, points):
    """Where points of the scene are in the axes, (0, 0) to (1, 1)."""
    from mpl_toolkits.mplot3d import proj3d

    figure.canvas.draw()
    x, y, _ = proj3d.proj_transform(*points.T, axes.get_proj())
    return axes.transAxes.inverted().transform(axes.transData.transform(np.stack([x, y], axis=1)))


@pytest.mark.parametrize("name", ["arm.xml", "robot.urdf"])
def test_check_agrees(files, capsys, name):
    assert main(["check", str(files / name), "--states", "3"]) == 0
    assert "0 states failed" in capsys.readouterr().out


def test_check_sees_a_wrong_derivative(files, monkeypatch, capsys):
    right = gradients._analytic
    monkeypatch.setattr(gradients, "_analytic", lambda *arguments: right(*arguments) * (1 + 1e-5))
    assert main(["check", str(files / "robot.urdf"), "--states", "2"]) == 1
    assert "2 states failed" in capsys.readouterr().out


@pytest.mark.parametrize("coupled", [True, False])
def test_mimic_joints(files, coupled):
    """A joint with <mimic> follows its leader, unless that is to be ignored."""
    out = files / "out.csv"
    options = ["--fixed-base", "--no-ground", "--duration", "0.05", "--output", str(out)] + ["--ignore-mimic"] * (
        not coupled
    )
    assert main(["simulate", str(files / "mimic.urdf"), *options]) == 0
    last = {name: value for name, value in zip(*np.array(list(csv.reader(open(out))))[[0, -1]])}
    leader, follower = float(last["q.ab"]), float(last["q.bc"])
    assert leader != 0 and (abs(follower - leader) < 1e-12) == coupled


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["simulate", "no_such.urdf"], "no_such.urdf"),
        (["simulate", "broken.xml"], "broken.xml"),
        (["check", "broken.xml"], "broken.xml"),
        (["simulate", "arm.xml", "--fixed-base"], "--fixed-base"),
        (["simulate", "arm.xml", "--ignore-mimic"], "--ignore-mimic"),
        (["simulate", "arm.xml", "--keyframe", "7"], "--keyframe"),
        (["simulate", "arm.xml", "--output", "out.gif"], "--output"),
        (["simulate", "arm.xml", "--timestep", "5"], "timestep"),
        (["simulate", "robot.urdf", "--height", "nan"], "position"),
    ],
)
def test_bad_input(files, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(files)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert words in captured.err and "Traceback" not in captured.err


@pytest.mark.parametrize(
    "arguments", [["fly"], ["simulate"], ["check", "arm.xml", "--states", "0"], ["simulate", "x", "--duration", "nan"]]
)
def test_wrong_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2 and "usage" in capsys.readouterr().err


def test_the_module_runs(files):
    run = subprocess.run([sys.executable, "-m", "coulomb", "--version"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and run.stdout.strip()[0].isdigit()
