"""What a viewer refuses by name, what it keeps when it does, and whose time step it believes."""

import os
import threading

import numpy as np
import pytest
from test_viewer import ARM, drawn, wait_until

import coulomb
from coulomb.view import Visual, recorded_steps
from coulomb.view import viewer as viewer_module
from coulomb.view.playback import Playback

pytest.importorskip("viser")
STEP = 1e-3  # of simulators; the models' own is ten times as long


@pytest.fixture(scope="module")
def arm():
    return coulomb.load(ARM)


@pytest.fixture(scope="module")
def box():
    """A box of 2 kg at rest on the ground."""
    scene = coulomb.Scene(timestep=10 * STEP)
    scene.add_ground(friction=0.5)
    scene.add_box((0.2, 0.2, 0.2), mass=2.0, position=(0, 0, 0.1), name="box")
    return scene.build()


def weight(viewer, scale):
    """What the arrows of contact forces add up to, N."""
    with viewer._lock:
        ends = [np.asarray(a.arrows.points) for a in viewer._layers["contact forces"].of_mode.values()]
    return sum((e[:, 1] - e[:, 0]).sum(0)[2] for e in ends) / scale


@pytest.mark.parametrize("substeps", [1, 5])
def test_rollouts_are_played_at_the_time_step_of_their_simulator(open_viewer, box, substeps):
    q, v = box.neutral()
    viewer = open_viewer(box)
    rollout = coulomb.Simulator(box, timestep=STEP).rollout(q, v, steps=100, substeps=substeps)
    batch = coulomb.BatchSimulator(box, 2, timestep=STEP)
    for motion in (rollout, batch.rollout(np.tile(q, (2, 1)), np.tile(v, (2, 1)), steps=100, substeps=substeps)):
        assert motion.timestep == STEP
        viewer.show(motion, play=False)
        assert viewer.playback.duration == pytest.approx(100 * substeps * STEP)
    assert coulomb.Simulator(box).rollout(q, v, steps=1).timestep == 10 * STEP


@pytest.mark.parametrize("every", [1, 3])
def test_a_recording_knows_its_times(open_viewer, box, every):
    """The ground carries the weight, however often states are kept; played slower, forces stay what they were."""
    viewer = open_viewer(box)
    recording = recorded_steps(coulomb.Simulator(box, timestep=STEP), *box.neutral(), 30, every=every)
    assert (recording.frame_time, recording.contact_time) == (pytest.approx(every * STEP), STEP)
    for options in ({}, {"timestep": 1.0}):
        viewer.show(recording, play=False, force_scale=1e-3, **options)
        assert viewer.playback.duration == pytest.approx(30 * options.get("timestep", STEP))
        assert weight(viewer, 1e-3) == pytest.approx(2.0 * 9.81, rel=1e-3)


def test_contacts_beside_a_rollout_are_of_one_step(open_viewer, box):
    viewer = open_viewer(box)
    q, v = box.neutral()
    sim = coulomb.Simulator(box, timestep=STEP)
    sim.step(q, v)
    contacts = [list(sim.contacts)] * 3
    viewer.show(sim.rollout(q, v, steps=3, substeps=5), contacts=contacts, play=False, force_scale=1e-3)
    assert weight(viewer, 1e-3) == pytest.approx(2.0 * 9.81, rel=1e-3)


BAD_PAGES = [
    ({"start": 5.0}, "start, stop: got 5, inf: the motion of 1 s has none of it"),
    ({"start": np.nan}, "start: got nan"),
    ({"stop": np.nan}, "stop: got nan"),
    ({"stop": "a"}, "stop: got 'a'"),
    ({"frames_per_second": "a"}, "frames_per_second: got 'a'"),
]


@pytest.mark.parametrize("options, message", BAD_PAGES, ids=[m[:22] for _, m in BAD_PAGES])
def test_a_page_that_is_refused_stops_nothing(open_viewer, arm, tmp_path, options, message):
    viewer = open_viewer(arm)
    viewer.show(np.zeros((11, 2)), timestep=0.1)
    with pytest.raises(ValueError, match=message):
        viewer.record(tmp_path / "run.html", **options)
    assert viewer.playback.playing and not os.listdir(tmp_path)


def test_a_page_that_is_interrupted_leaves_the_old_one(open_viewer, arm, tmp_path, monkeypatch):
    """And the motion where it was."""
    viewer = open_viewer(arm)
    Q = np.random.default_rng(0).normal(size=(11, 2))
    viewer.show(Q, timestep=0.1, play=False)
    viewer.playback.seek(0.4)
    (tmp_path / "run.html").write_text("old")

    def interrupted(*_):
        raise KeyboardInterrupt

    for stage in ("replace", "write"):
        with monkeypatch.context() as patch:
            if stage == "replace":
                patch.setattr(os, "replace", interrupted)
            else:
                patch.setattr("viser.infra.StateSerializer.as_html", interrupted)
            with pytest.raises(KeyboardInterrupt):
                viewer.record(tmp_path / "run.html")
        assert os.listdir(tmp_path) == ["run.html"] and (tmp_path / "run.html").read_text() == "old"
        assert np.array_equal(viewer.Q, Q[4:5])
        assert not viewer.server._websock_server._record_handles  # nothing is recorded any longer


@pytest.mark.parametrize("speed", [-1, 0, np.nan, np.inf, "a", None])
def test_a_clock_refuses_speeds(speed):
    clock = Playback(11, 0.1)
    with pytest.raises(ValueError, match="speed: got"):
        clock.speed = speed
    assert clock.speed == 1.0


@pytest.mark.parametrize("time", [np.nan, np.inf, "a", None])
def test_a_clock_refuses_times(time):
    clock = Playback(11, 0.1)
    clock.seek(0.3)
    with pytest.raises(ValueError, match="time: got"):
        clock.seek(time)
    with pytest.raises(ValueError, match="time: got"):
        clock.time = time
    assert clock.frame == 3
    clock.time = -1.0
    assert clock.time == 0.0 and clock.frame == 0


def test_a_viewer_that_fails_leaves_no_server(arm, monkeypatch):
    before = set(threading.enumerate())

    def broken(*_):
        raise RuntimeError("broken")

    monkeypatch.setattr(viewer_module.servers, "add_light", broken)
    with pytest.raises(RuntimeError, match="broken"):
        coulomb.Viewer(arm, port=0, verbose=False)
    wait_until(lambda: not set(threading.enumerate()) - before)


def shape(**fields):
    return Visual(**{"name": "hat", "body": 1, "kind": "box", "size": (0.1, 0.1, 0.1), **fields})


TRIANGLE = np.eye(3)
BAD_SHAPES = [
    (shape(size=(1, 1)), r"\.size: got \(1, 1\), expected \(3,\)"),
    (shape(size=(1, 0, 1)), r"\.size: got .*of a box the first 3 are > 0"),
    (shape(kind="sphere", size=(np.nan, 0, 0)), r"\.size: got .*finite"),
    (shape(position=(0, 0)), r"\.position: got"),
    (shape(quaternion=np.zeros(4)), r"\.quaternion: got .*not a rotation"),
    (shape(quaternion="a"), r"\.quaternion: got 'a'"),
    (shape(rgba=(1, 0, 0)), r"\.rgba: got \(1, 0, 0\), expected \(4,\)"),
    (shape(rgba=(255, 0, 0, 1)), r"\.rgba: got .*from 0 to 1"),
    (shape(kind="mesh"), r"\.vertices: got None"),
    (shape(kind="mesh", vertices=TRIANGLE), r"\.faces: got None"),
    (shape(kind="mesh", vertices=TRIANGLE, faces=[(0, 1, 3)]), r"\.faces: not all are indices of its 3"),
    (shape(body="box"), r": body 'box' is none"),
]


@pytest.mark.parametrize("visual, message", BAD_SHAPES, ids=[m[:20] for _, m in BAD_SHAPES])
def test_bad_shapes_are_named(arm, visual, message):
    before = set(threading.enumerate())
    with pytest.raises(ValueError, match=r"visuals\[1\]" + message):
        coulomb.Viewer(arm, port=0, visuals=[shape(), visual], verbose=False)
    assert set(threading.enumerate()) == before


def test_good_shapes_may_be_tuples(open_viewer, arm):
    mesh = shape(kind="mesh", vertices=TRIANGLE.tolist(), faces=[(0, 1, 2)])
    assert len(open_viewer(arm, visuals=[shape(), mesh, shape(kind="half_space", size=(0, 0, 0))])._bodies.groups) == 2
    with pytest.raises(TypeError, match="visuals: got None"):
        coulomb.Viewer(arm, port=0, visuals=None)


BAD_OPTIONS = [
    ({"spacing": "x"}, "spacing: got 'x'"),
    ({"spacing": np.nan}, "spacing: got nan"),
    ({"spacing": -1}, "spacing: got -1"),
    ({"force_scale": -1}, "force_scale: got -1"),
    ({"force_scale": "a"}, "force_scale: got 'a'"),
    ({"contacts": 5}, "contacts: got 5, expected a list"),
    ({"contacts": [5, 5, 5]}, r"contacts\[0\]: got 5, expected a list of Contacts"),
    ({"contacts": [[], [3], []]}, r"contacts\[1\]: got \[3\], expected a list of Contacts"),
    ({"timestep": "a"}, "timestep: got 'a'"),
    ({"contacts": [[]] * 3, "contact_time": "a"}, "contact_time: got 'a'"),
    ({"gradient": "a"}, "gradient: got 'a'"),
    ({"ghost": "a"}, "ghost: got 'a'"),
    ({"paths": 5}, "paths: got 5"),
    ({"motion": "a"}, "motion: got 'a'"),
]


@pytest.mark.parametrize("options, message", BAD_OPTIONS, ids=[m[:22] for _, m in BAD_OPTIONS])
def test_what_was_shown_stays(open_viewer, arm, options, message):
    viewer = open_viewer(arm)
    viewer.show(np.zeros((2, 2)), play=False)
    before, layers = viewer.playback, viewer._layers
    with pytest.raises(ValueError, match=message):
        viewer.show(**{"motion": np.zeros((3, 2)), **options})
    assert viewer.playback is before and viewer._layers is layers and len(drawn(viewer._bodies)) == 1
    with pytest.raises(ValueError, match="q: got 'a'"):
        viewer.update("a")


def test_hosts_and_ports(open_viewer, arm):
    for host in ("nonsense.invalid", "192.0.2.1"):
        with pytest.raises(OSError, match=f"host: '{host}' is not an address of this machine"):
            coulomb.Viewer(arm, host, 0)
    for host in (None, ""):
        with pytest.raises(ValueError, match="host: got"):
            coulomb.Viewer(arm, host, 0)
    for port in ("8080", 1.0, True, None):
        with pytest.raises(ValueError, match="port: got"):
            coulomb.Viewer(arm, port=port)
    assert open_viewer(arm, port=np.int64(0)).url.startswith("http://127.0.0.1:")


def test_addresses_for_a_browser():
    url = viewer_module.servers.url
    assert url("::1", 80) == "http://[::1]:80" and url("10.0.0.1", 80) == "http://10.0.0.1:80"
    assert url("0.0.0.0", 80) == url("::", 80) == "http://localhost:80"


def test_a_closed_viewer_says_so(arm, tmp_path):
    viewer = coulomb.Viewer(arm, port=0, verbose=False)
    viewer.close()
    calls = {
        "update": lambda: viewer.update([0, 0]),
        "show": lambda: viewer.show(np.zeros((2, 2))),
        "record": lambda: viewer.record(tmp_path / "run.html"),
        "notebook": viewer.notebook,
        "look": lambda: viewer.look((1, 1, 1), (0, 0, 0)),
    }
    for call in calls.values():
        with pytest.raises(RuntimeError, match="the viewer is closed"):
            call()
    assert not os.listdir(tmp_path)


MIMIC = """<mujoco><worldbody><body name="a"><joint name="lead" axis="0 1 0"/><geom type="box" size=".1 .02 .02"/>
    <body name="b" pos=".2 0 0"><joint name="follow" axis="0 1 0"/><geom type="box" size=".1 .02 .02"/>
      <body name="c" pos=".2 0 0"><joint name="last" axis="0 1 0"/><geom type="box" size=".1 .02 .02"/></body></body></body></worldbody>
  <equality><joint joint1="last" joint2="follow" polycoef="0 1 1 0 0"/>
    <joint joint1="follow" joint2="lead" polycoef=".1 -2 0 0 0"/></equality></mujoco>"""


def test_joints_that_follow_have_no_slider(open_viewer):
    """They go where their leader wants them, a follower's follower too: x, y = 0.1 - 2 x, y + y^2."""
    viewer = open_viewer(coulomb.load(MIMIC))
    assert list(viewer._joints.sliders) == ["lead"]
    viewer._joint_moved(0, 0.3)
    assert viewer.Q[0] == pytest.approx([0.3, -0.5, -0.5 + 0.25])


def test_boxes_wait_for_the_frame_that_is_drawn(open_viewer, arm):
    """Nothing is hidden while the viewer's lock is held."""
    viewer = open_viewer(arm)
    boxes = next(p for p in viewer._panels if hasattr(p, "boxes")).boxes
    handle = viewer._bodies.groups[0].handle
    with viewer._lock:
        setter = threading.Thread(target=lambda: setattr(boxes["shapes"], "value", False))
        setter.start()
        setter.join(timeout=0.3)
        assert handle.visible
    setter.join(timeout=5)
    wait_until(lambda: not handle.visible)
