"""Viewer: what is drawn where, motions, the panel, pages, and errors. No browser is needed: viser's handles say what was sent."""

import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import coulomb
from coulomb.__main__ import main
from coulomb.view import Visual, recorded_steps
from coulomb.view.poses import matrices, quaternions

pytest.importorskip("viser")

ARM = """<mujoco model="arm"><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="1 1 1"/>
  <body name="upper" pos="0 0 .6"><joint name="j" axis="0 1 0" damping=".1" range="-90 90"/><geom name="u" type="box" size=".15 .02 .03" pos=".15 0 0"/>
    <body name="lower" pos=".3 0 0"><joint axis="0 1 0"/><geom name="l" type="box" size=".1 .02 .03" pos=".1 0 0"/>
    <site name="tip" pos=".2 0 0"/></body></body></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def arm():
    return coulomb.load(ARM)


@pytest.fixture(scope="module")
def box():
    """A box that is pushed along the ground, with its contacts."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.1), name="box")
    model = scene.build()
    q, v = model.neutral()
    sim = coulomb.Simulator(model, timestep=1e-2)
    v[0] = 1.0
    return model, recorded_steps(sim, q, v, 60)


def drawn(bodies):
    """[(positions (k, 3), wxyz (k, 4))] of the groups of instances."""
    return [(g.handle.batched_positions, g.handle.batched_wxyzs) for g in bodies.groups]


def wait_until(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def test_shapes_are_where_the_model_says(open_viewer, arm):
    """Boxes share their triangles: one group. Its instances are the model's own geometry placements, to what is sent: 10 um."""
    viewer = open_viewer(arm)
    q = np.array([0.3, -0.7])
    viewer.update(q)
    ((positions, wxyz),) = drawn(viewer._bodies)
    expected, turns = arm.geometry_placements(q)
    assert positions == pytest.approx(expected[1:], abs=2e-5)
    assert matrices(wxyz) == pytest.approx(turns[1:], abs=3e-4)
    assert viewer._bodies.groups[0].handle.batched_scales == pytest.approx(arm.geometry_size[1:])


def test_environments_stand_side_by_side(open_viewer, arm):
    viewer = open_viewer(arm)
    Q = np.random.default_rng(0).normal(size=(5, 7, 2))
    viewer.show(Q, play=False, spacing=2.0)
    viewer.playback.seek(3 * arm.timestep)
    corners = [(i // 3 * 2.0, i % 3 * 2.0, 0.0) for i in range(5)]
    expected = np.concatenate([arm.geometry_placements(Q[i, 3])[0][1:] + corners[i] for i in range(5)])
    wait_until(lambda: np.allclose(drawn(viewer._bodies)[0][0], expected, atol=2e-5))


def test_the_floor_is_where_the_half_space_is(open_viewer):
    scene = coulomb.Scene()
    scene.add_ground(height=0.5, normal=(0, 1, 1))
    viewer = open_viewer(scene.build())
    floor = viewer.server.scene.get_handle_by_name("/floor/0")
    assert np.array(floor.position) @ [0, 1, 1] / np.sqrt(2) == pytest.approx(0.5)
    assert matrices(np.array(floor.wxyz))[:, 2] == pytest.approx(np.array([0, 1, 1]) / np.sqrt(2))


def test_colours_and_transparency(open_viewer):
    urdf = """<robot name="r"><link name="a"><visual><geometry><box size="1 1 1"/></geometry><material name="m"><color rgba="1 0 0 1"/></material>
      </visual><visual><geometry><sphere radius=".7"/></geometry><material name="n"><color rgba="0 0 1 .25"/></material></visual></link></robot>"""
    viewer = open_viewer(coulomb.load(urdf))
    solid, clear = viewer._bodies.groups
    assert np.array_equal(solid.handle.batched_colors, [[255, 0, 0]]) and solid.handle.opacity is None
    assert np.array_equal(clear.handle.batched_colors, [[0, 0, 255]]) and clear.handle.opacity == 0.25


def test_contact_forces_by_mode(open_viewer, box):
    """While it slides, m g is shared by arrows of the mode sliding that lean back by the friction; at rest, by sticking ones."""
    model, recording = box
    viewer = open_viewer(model)
    viewer.show(recording, play=False, force_scale=0.01)
    arrows = viewer._layers["contact forces"].of_mode

    def force(mode):
        ends = np.asarray(arrows[mode].arrows.points)
        return (ends[:, 1] - ends[:, 0]).sum(0) / 0.01

    def seen(sliding, sticking):
        with viewer._lock:  # between two frames
            return [len(arrows[mode].arrows.points) for mode in ("sliding", "sticking")] == [sliding, sticking]

    wait_until(lambda: seen(4, 0))
    assert force("sliding") == pytest.approx([-0.5 * 9.81, 0, 9.81], rel=1e-3, abs=1e-3)
    viewer.playback.seek(viewer.playback.duration)
    wait_until(lambda: seen(0, 4))
    assert force("sticking") == pytest.approx([0, 0, 9.81], rel=1e-3, abs=1e-3)


def test_ghosts_paths_and_gradients(open_viewer, arm):
    """A ghost at its own pose; a path through the tip; arrows J(q) g at the bodies' origins, the longest half the model's size."""
    viewer = open_viewer(arm)
    Q = np.stack([np.linspace(0, 1, 11), np.linspace(0, -1, 11)], axis=1)
    gradient = np.tile([0.0, 2.0], (11, 1))
    viewer.show(Q, ghost=[0.5, 0.5], paths=["tip"], gradient=gradient, play=False)
    ((positions, _),) = drawn(viewer._ghosts)
    assert positions == pytest.approx(arm.geometry_placements([0.5, 0.5])[0][1:], abs=2e-5)
    assert viewer._ghosts.groups[0].handle.opacity == pytest.approx(0.35)

    line = np.asarray(viewer._layers["paths"].handles[0].points)
    tip = [arm.body_placements(q)[0][2] + arm.body_placements(q)[1][2] @ [0.2, 0, 0] for q in Q]
    assert line[:, 0] == pytest.approx(np.array(tip[:-1]), abs=1e-6) and line[:, 1] == pytest.approx(
        np.array(tip[1:]), abs=1e-6
    )

    # The second joint turns the lower link about its own origin, which stays: no arrow. The first moves that origin along -z at q = 0.
    assert len(viewer._layers["gradient"].arrows.arrows.points) == 0
    viewer.show(Q, gradient=np.tile([2.0, 0.0], (11, 1)), play=False)
    ((foot, head),) = np.asarray(viewer._layers["gradient"].arrows.arrows.points)
    assert foot == pytest.approx(arm.body_placements(Q[0])[0][2], abs=1e-6)
    assert head - foot == pytest.approx([0, 0, -0.5 * viewer._size], abs=1e-6)


def test_a_rollout_plays_at_the_pace_of_its_steps(open_viewer, arm):
    sim = coulomb.Simulator(arm)
    viewer = open_viewer(arm)
    viewer.show(sim.rollout(*arm.neutral(), steps=50, substeps=10), play=False)
    assert viewer.playback.num_frames == 51 and viewer.playback.duration == pytest.approx(50 * 10 * arm.timestep)
    viewer.playback.speed = 2.0
    viewer.playback.play()
    wait_until(lambda: viewer.playback.time > 0.2)
    assert viewer._time_panel.slider.value > 0
    viewer.playback.pause()


def test_batches_and_updates_of_many(open_viewer, arm):
    batch = coulomb.BatchSimulator(arm, 3)
    Q, V = np.zeros((3, 2)), np.zeros((3, 2))
    viewer = open_viewer(arm)
    viewer.show(batch.rollout(Q, V, steps=5), play=False)
    assert len(drawn(viewer._bodies)[0][0]) == 6
    viewer.update(np.zeros((2, 2)))
    assert len(drawn(viewer._bodies)[0][0]) == 4 and viewer.playback is None


def test_joint_sliders(open_viewer, arm):
    """One for each hinge, within its limits, where the joint is; moving one moves the model (test_browser.py: in a page)."""
    viewer = open_viewer(arm)
    sliders = viewer._joints.sliders
    assert list(sliders) == ["j", "joint1"]
    assert (sliders["j"].min, sliders["j"].max) == pytest.approx((-np.pi / 2, np.pi / 2))
    viewer.update([0.25, -0.5])
    assert (sliders["j"].value, sliders["joint1"].value) == pytest.approx((0.25, -0.5))
    viewer._joint_moved(0, 0.5)
    assert drawn(viewer._bodies)[0][0] == pytest.approx(arm.geometry_placements([0.5, -0.5])[0][1:], abs=2e-5)
    viewer.show(np.zeros((3, 2)), play=False)
    assert viewer._joints is None


def test_the_camera_sees_the_whole_motion(open_viewer, box):
    """From the box at the start to where it stops; a motion that is a hundred times as long as the box is seen from its start."""
    model, recording = box
    Q = recording.q
    viewer = open_viewer(model)
    viewer.show(Q, play=False)
    assert viewer.server.initial_camera.look_at[0] == pytest.approx(0.5 * (Q[0, 0] + Q[-1, 0]), abs=1e-3)
    far = Q.copy()
    far[:, 0] *= 100
    viewer.show(far, play=False)
    assert viewer.server.initial_camera.look_at[0] == pytest.approx(Q[0, 0], abs=1e-3)


def test_shapes_can_be_hidden_and_those_that_collide_shown(open_viewer, arm):
    viewer = open_viewer(arm)
    boxes = next(p for p in viewer._panels if hasattr(p, "boxes")).boxes
    assert list(boxes) == ["shapes", "collision shapes"]
    boxes["shapes"].value = False
    boxes["collision shapes"].value = True
    wait_until(lambda: not viewer._bodies.groups[0].handle.visible)
    wait_until(lambda: viewer._layers["collision shapes"].made is not None)
    assert [g.handle.visible for g in viewer._layers["collision shapes"].made.groups] == [True]


def test_a_page_of_a_motion(open_viewer, box, tmp_path):
    """It holds what viser needs to show it, is small, and the viewer goes on as before, and shows what it showed."""
    model, recording = box
    viewer = open_viewer(model)
    viewer.show(recording, play=False)
    viewer.playback.seek(0.2)
    path = viewer.record(tmp_path / "run.html")
    page = open(path, encoding="utf-8").read()
    assert "__VISER_EMBED_DATA__=" in page and page.rstrip().endswith("</html>")
    assert len(page) < 1.5e6 and viewer.playback.time == pytest.approx(0.2) and not viewer.playback.playing
    assert np.array_equal(viewer.Q, recording.q[20:21])
    ((positions, _),) = drawn(viewer._bodies)
    assert positions[0] == pytest.approx(recording.q[20, :3], abs=2e-5)
    assert 'src="http' not in page  # self-contained


def test_a_camera_that_was_placed_stays(open_viewer, arm):
    viewer = open_viewer(arm)
    viewer.look((1, 2, 3), (0, 0, 1))
    viewer.show(np.zeros((2, 2)), play=False)
    assert viewer.server.initial_camera.position == pytest.approx([1, 2, 3])
    assert viewer.server.initial_camera.look_at == pytest.approx([0, 0, 1])


def test_a_model_without_shapes(open_viewer):
    empty = coulomb.load(
        "<mujoco><worldbody><body><joint/><inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/></body></worldbody></mujoco>"
    )
    viewer = open_viewer(empty)
    viewer.show(np.zeros((3, 1)), play=False)
    assert viewer._bodies.groups == []


def test_what_rests_is_not_sent_again(open_viewer, arm):
    """The same arrays stay in the handles."""
    viewer = open_viewer(arm)
    viewer.update([0.1, 0.2])
    before = viewer._bodies.groups[0].handle.batched_positions
    viewer.update([0.1, 0.2 + 1e-9])
    assert viewer._bodies.groups[0].handle.batched_positions is before


BAD = [
    ({"motion": np.zeros((3, 5))}, "motion: got shape .3, 5."),
    ({"motion": np.zeros((0, 2))}, "motion: got shape"),
    ({"motion": np.array([[0.0, 0], [0, np.nan]])}, r"motion: not finite: environment 0, frame 1, q\[1\]"),
    ({"timestep": 0.0}, "timestep: got 0.0"),
    ({"contacts": [[]]}, "contacts: got 1 frames, expected 4"),
    ({"contacts": [[]] * 3, "contact_time": -1.0}, "contact_time: got -1.0"),
    ({"gradient": np.zeros((4, 3))}, r"gradient: got shape \(4, 3\), expected \(4, 2\)"),
    ({"gradient": np.full((4, 2), np.inf)}, r"gradient: not finite at \(0, 0, 0\)"),
    ({"ghost": np.zeros((2, 2))}, r"ghost: got shape \(2, 2\)"),
    ({"paths": ["hand"]}, "paths: no body or site 'hand'"),
]


@pytest.mark.parametrize("options, message", BAD, ids=[m[:24] for _, m in BAD])
def test_bad_input_is_named_and_changes_nothing(open_viewer, arm, options, message):
    viewer = open_viewer(arm)
    viewer.show(np.zeros((2, 2)), play=False)
    before = viewer.playback
    with pytest.raises(ValueError, match=message):
        viewer.show(**{"motion": np.zeros((4, 2)), **options})
    assert viewer.playback is before and len(drawn(viewer._bodies)[0][0]) == 2


def test_bad_options_of_a_viewer(arm, open_viewer, tmp_path):
    with pytest.raises(ValueError, match="visuals: got 'pretty'"):
        coulomb.Viewer(arm, visuals="pretty")
    with pytest.raises(ValueError, match=r"visuals\[0\]: body 7 is none of the model's 3 bodies"):
        coulomb.Viewer(arm, visuals=[Visual("hat", 7, "sphere")])
    with pytest.raises(ValueError, match=r"visuals\[0\]: kind 'cone'"):
        coulomb.Viewer(arm, visuals=[Visual("hat", 1, "cone")])
    with pytest.raises(TypeError, match=r"visuals\[0\]: got str"):
        coulomb.Viewer(arm, visuals=["hat"])
    with pytest.raises(ValueError, match="port: got 70000"):
        coulomb.Viewer(arm, port=70000)
    viewer = open_viewer(arm)
    with pytest.raises(ValueError, match=r"q: got shape \(3,\)"):
        viewer.update([0, 0, 0])
    with pytest.raises(FileNotFoundError, match="does not exist"):
        viewer.record(tmp_path / "missing" / "run.html")
    with pytest.raises(ValueError, match="frames_per_second: got 0"):
        viewer.record(tmp_path / "run.html", frames_per_second=0)


def test_a_port_that_is_taken_is_named(arm):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"port: {port} of 127.0.0.1 cannot be taken"):
            coulomb.Viewer(arm, port=port)


def test_without_viser_the_extra_is_named(arm, monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(ImportError, match=r"pip install 'coulomb\[view\]'"):
        coulomb.Viewer(arm)


def test_closing_twice_and_threads(arm):
    """Neither the clock's nor viser's threads are left, and the port is free again."""
    before = set(threading.enumerate())
    with coulomb.Viewer(arm, port=0, verbose=False) as viewer:
        assert any(thread.name == "coulomb-viewer" for thread in threading.enumerate())
        assert len(set(threading.enumerate()) - before) >= 2
        assert repr(viewer).startswith("<Viewer http://127.0.0.1:")
        port = viewer.server.get_port()
    viewer.close()
    wait_until(lambda: not set(threading.enumerate()) - before)
    coulomb.Viewer(arm, port=port, verbose=False).close()


def test_importing_coulomb_does_not_import_viser():
    code = "import sys, coulomb; coulomb.Viewer; sys.exit('viser' in sys.modules or 'trimesh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_command_writes_a_page(tmp_path, capsys):
    (tmp_path / "arm.xml").write_text(ARM)
    page = tmp_path / "arm.html"
    assert main(["view", str(tmp_path / "arm.xml"), "--duration", "0.2", "--html", str(page)]) == 0
    assert page.stat().st_size > 1e5 and str(page) in capsys.readouterr().out


def test_the_command_views_a_saved_model(tmp_path, arm):
    arm.save(tmp_path / "arm.coulomb")
    assert main(["view", str(tmp_path / "arm.coulomb"), "--html", str(tmp_path / "arm.html")]) == 0


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nothing.xml"], "no such file: 'nothing.xml'"),
        (["broken.xml"], "broken.xml"),
        (["leg.urdf", "--html", "leg.html"], "no mesh 'leg.stl'"),
        (["arm.coulomb", "--fixed-base"], "as it was built"),
        (["leg.urdf", "--html", "no/leg.html"], "the folder 'no' does not exist"),
    ],
)
def test_the_command_names_what_is_wrong(tmp_path, monkeypatch, capsys, arm, arguments, message):
    monkeypatch.chdir(tmp_path)
    inertial = "<inertial><mass value='1'/><inertia ixx='.1' ixy='0' ixz='0' iyy='.1' iyz='0' izz='.1'/></inertial>"
    (tmp_path / "leg.urdf").write_text(
        f"<robot name='r'><link name='leg'>{inertial}<visual><geometry><mesh filename='leg.stl'/></geometry></visual></link></robot>"
    )
    (tmp_path / "broken.xml").write_text("<mujoco><worldbody>")
    arm.save(tmp_path / "arm.coulomb")
    assert main(["view", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_turns_that_are_sent_have_length_one():
    q = quaternions(matrices(np.random.default_rng(3).normal(size=(50, 4))))
    assert np.linalg.norm(q, axis=1) == pytest.approx(1)
