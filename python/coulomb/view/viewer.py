"""Viewer: a model, and what it did, in a browser."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np

from .._files import checked_path, write_whole
from . import server as servers
from .arrows import ContactArrows, GradientArrows, Paths
from .bodies import Bodies, extent, placements, side_by_side
from .motion import Motion, array, configurations, number
from .panel import Followers, JointPanel, ShownPanel, TimePanel
from .playback import Playback
from .visuals import checked, collision_shapes, sources_of, visuals_of

FRAMES_PER_SECOND = 30
GHOST_COLOUR = (0.15, 0.4, 1.0, 0.35)


class Viewer:
    """Shows a model in a browser, at ``viewer.url``; the page goes on while the program does, and may be closed and opened again.

        viewer = coulomb.Viewer(model)
        viewer.update(q)                                     # a configuration; sliders move its joints
        viewer.show(rollout)                                 # a motion, with a time slider
        viewer.record("run.html")                            # the same as a page of its own

    host: who may look: "127.0.0.1" this machine, "0.0.0.0" the network. port: 0 for any that is free. visuals: "files", what the
    robots' files have (Model.visuals); "collision"; or a list of coulomb.view.Visual. verbose: print the address.

    ImportError: viser is missing, pip install 'coulomb[view]'. OSError: names a host or a port that cannot be had. FileNotFoundError, ValueError:
    names a mesh that is missing or broken, and its link.
    """

    def __init__(self, model, host=servers.HOST, port=8080, *, visuals="files", verbose=True):
        self.model = model
        if isinstance(visuals, str) and visuals not in ("files", "collision"):
            raise ValueError(f"visuals: got {visuals!r}, expected 'files', 'collision' or a list of Visuals")
        self._collision = collision_shapes(model)
        if visuals == "files":
            self._visuals = visuals_of(model)
        else:
            self._visuals = self._collision if visuals == "collision" else checked(model, visuals)
        self._two_looks = bool(sources_of(model)) if visuals == "files" else visuals != "collision"

        # What is shown: the neutral configuration, until something else is.
        self._lock = threading.RLock()
        self._layers: dict = {}
        self._panels: list = []
        self._motion = None
        self._playback = None
        self._time_panel = None
        self._joints = None
        self._looks = False  # somebody has placed the camera
        self._closed = threading.Event()
        self.Q = configurations(model, model.neutral()[0], "q")[:, 0]

        self._followers = Followers(model)
        low, high = extent(self._visuals, *placements(model, self.Q))
        self._size = max(float(np.max(high - low)), 1e-3)

        # What fails from here on leaves no server behind.
        self.server = servers.start(host, port, "Coulomb")
        try:
            self.url = servers.url(host, self.server.get_port())
            servers.add_floors(self.server.scene, self._visuals, *placements(model, self.Q), self._size)
            servers.add_light(self.server.scene)
            self._set_up(1, 0.0)
            self._add_joints()
            self._draw()
        except BaseException:
            servers.stop(self.server)
            raise
        self._ticker = threading.Thread(target=self._run, name="coulomb-viewer", daemon=True)
        self._ticker.start()
        if verbose:
            print(f"Viewer: {self.url}", flush=True)

    def __repr__(self):
        return f"<Viewer {self.url}{', closed' if self._closed.is_set() else ''}>"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def playback(self):
        """The clock of the motion that is shown (play, pause, seek, speed, time, frame); None without one."""
        return self._playback

    def update(self, q):
        """Shows a configuration: q (nq,), or (n, nq) of n environments. A motion that was shown goes.

        ValueError: names shape or entry. RuntimeError: the viewer is closed.
        """
        self._still_open()
        q = array("q", q)
        if q.ndim not in (1, 2) or q.shape[-1] != self.model.nq:
            raise ValueError(f"q: got shape {q.shape}, expected (nq,) or (n, nq) with nq = {self.model.nq}")
        Q = configurations(self.model, q[..., None, :], "q")[:, 0]
        with self._lock:
            if self._motion is not None or len(Q) != len(self.Q):
                self._clear()
                self.Q = Q
                self._set_up(len(Q), None)
                if len(Q) == 1:
                    self._add_joints()
            self.Q = Q
            if self._joints is not None:
                self._joints.follow(Q[0])
            self._draw()

    def show(
        self,
        motion,
        *,
        timestep=None,
        contacts=None,
        contact_time=None,
        ghost=None,
        paths=(),
        gradient=None,
        spacing=None,
        force_scale=None,
        play=True,
    ):
        """Shows a motion: a Rollout, a BatchRollout, a Recording (``coulomb.view.recorded_steps``), or its q as (T, nq) or (n, T, nq).

        timestep: s from one frame to the next (default: the model's); of a Rollout and a Recording: of one step, whatever its substeps
        (default: its own). contacts: T (or T - 1) lists of Contacts, of the step that starts at each frame (default: those of a Recording);
        of n environments: n of these. contact_time: s that their impulses last (default: timestep). ghost: (nq,) or (T, nq), shown blue
        and transparent: a goal, another run. paths: names of bodies and sites whose ways are drawn. gradient: (T, nv) of
        dloss/dq, in the tangent space of Model.integrate: arrows at the bodies' origins, J_b(q) g. spacing: m between
        environments (default: side by side; 0: in one place). force_scale: m for each N (default: to fit). play: start at once.

        ValueError: names argument, shape and value, and shows what it showed. RuntimeError: the viewer is closed.
        """
        self._still_open()
        if spacing is not None:
            spacing = number("spacing", spacing, "metres", least=0.0)
        if force_scale is not None:
            force_scale = number("force_scale", force_scale, "metres for each N")
        found = Motion(self.model, motion, timestep)
        contacts = getattr(motion, "contacts", None) if contacts is None else contacts
        if contacts is not None:
            found.set_contacts(contacts, contact_time)
        if ghost is not None:
            found.set_ghost(ghost)
        if gradient is not None:
            found.set_gradient(gradient)
        found.set_paths(paths)

        with self._lock:
            self._clear()
            self._motion = found
            self.Q = found.Q[:, 0]
            self._set_up(found.num_environments, spacing, force_scale)
            self._playback = Playback(found.num_frames, found.frame_time)
            self._time_panel = TimePanel(self.server.gui, self._playback, self._lock, self._draw)
            self._panels.append(self._time_panel)
            if play:
                self._playback.play()
            self._time_panel.refresh()
            self._draw()

    def look(self, position, target):
        """Puts the camera of pages that are opened from now on, and of recordings, at `position`, (3,) m, looking at `target`."""
        self._still_open()
        self._looks = True
        self.server.initial_camera.position = np.asarray(position, dtype=float)
        self.server.initial_camera.look_at = np.asarray(target, dtype=float)
        for client in self.server.get_clients().values():
            client.camera.position = np.asarray(position, dtype=float)
            client.camera.look_at = np.asarray(target, dtype=float)

    def record(self, path, frames_per_second=FRAMES_PER_SECOND, start=0.0, stop=None):
        """Writes what is shown, from `start` to `stop` (s), as one page that needs no server: open it in a browser. Returns path.

        FileNotFoundError: names a folder that is not there. ValueError: frames_per_second, start, stop. RuntimeError: it is closed.
        """
        path = checked_path(path)
        page = self._recorded(frames_per_second, start, stop, lambda serializer: serializer.as_html())
        write_whole(path, page.encode("utf-8"))
        return path

    def notebook(self, height=480):
        """Shows what is shown in a cell of a notebook, as `record` would write it. Elsewhere: in the browser of the desktop."""
        self._recorded(FRAMES_PER_SECOND, 0.0, None, lambda serializer: serializer.show(height=height))

    def _still_open(self):
        if self._closed.is_set():
            raise RuntimeError("the viewer is closed; make another one: coulomb.Viewer(model)")

    def close(self):
        """Ends the server; open pages stay as they are. Again: nothing."""
        if not self._closed.is_set():
            self._closed.set()
            self._ticker.join(timeout=2)
            servers.stop(self.server)

    def wait(self):
        """Until close, or KeyboardInterrupt."""
        while not self._closed.wait(0.2):
            pass

    # --- what is drawn ------------------------------------------------------------------------------------------------------------

    def _set_up(self, n, spacing, force_scale=None):
        """Handles of everything that the motion has, for n environments, and the camera around them."""
        scene, motion = self.server.scene, self._motion
        visuals = self._visuals
        low, high = extent(visuals, *placements(self.model, self.Q[:1]))
        offsets = side_by_side(n, high - low, spacing)
        decimals = int(np.clip(4 - np.floor(np.log10(self._size)), 2, 8))
        self._offsets, self._decimals = offsets, decimals

        # The bodies, and layers that can be hidden: name -> (layer, visible at first).
        self._bodies = Bodies(scene, "/bodies", visuals, offsets, decimals)
        layers: dict = {"shapes": (self._bodies, True)}
        if self._two_looks:
            layers["collision shapes"] = (_Later(self._collision_bodies), False)
        self._ghosts = None
        notes = ""
        if motion is not None:
            if motion.ghost is not None:
                tinted = [replace(visual, rgba=GHOST_COLOUR) for visual in visuals]
                self._ghosts = Bodies(scene, "/ghost", tinted, offsets, decimals)
                layers["ghost"] = (self._ghosts, True)
            if motion.contacts:
                arrows = ContactArrows(scene, motion, offsets, 0.5 * self._size, force_scale)
                layers["contact forces"] = (arrows, True)
                notes = f"{_legend()}; {0.1 / arrows.per_newton:.3g} N are 0.1 m, the largest force is {arrows.largest:.3g} N"
            if motion.gradient is not None:
                layers["gradient"] = (GradientArrows(scene, motion, offsets, 0.5 * self._size), True)
            if motion.paths:
                layers["paths"] = (Paths(scene, motion, offsets, self._size), True)
        self._layers = {name: layer for name, (layer, _) in layers.items()}
        self._panels.append(ShownPanel(self.server.gui, layers, notes, self._lock))
        if not self._looks:
            if motion is not None:
                low, high = self._reach(low, high)
            servers.aim(self.server.initial_camera, low + offsets.min(0), high + offsets.max(0))

    def _reach(self, low, high):
        """Corners of where the first environment goes; of where it starts, if that is too far to be seen in one picture."""
        frames = np.linspace(0, self._motion.num_frames - 1, 9).astype(int)
        lowest, highest = extent(self._visuals, *placements(self.model, self._motion.Q[0, frames]))
        near = np.max(highest - lowest) < 6 * np.max(high - low)
        return (lowest, highest) if near else (low, high)

    def _add_joints(self):
        self._joints = JointPanel(self.server.gui, self.model, self.Q[0], self._joint_moved)
        self._panels.append(self._joints)

    def _collision_bodies(self):
        """Made when they are first asked for."""
        bodies = Bodies(self.server.scene, "/collision", self._collision, self._offsets, self._decimals, 0.6)
        with self._lock:
            bodies.place(*placements(self.model, self.Q))
        return bodies

    def _clear(self):
        for layer in self._layers.values():
            layer.remove()
        for panel in self._panels:
            panel.remove()
        self._layers, self._panels = {}, []
        self._motion = self._playback = self._time_panel = self._joints = None

    def _draw(self):
        """The configuration, or the frame of the motion, that is at hand."""
        frame = 0
        if self._motion is not None:
            frame = self._playback.frame
            self.Q = self._motion.Q[:, frame]
        with self.server.atomic():
            bodies = placements(self.model, self.Q)
            for layer in self._layers.values():
                if layer is self._ghosts:
                    layer.place(*placements(self.model, self._motion.ghosts(frame)))
                elif isinstance(layer, (Bodies, _Later)):
                    layer.place(*bodies)
                else:
                    layer.place(frame)

    def _run(self):
        """Moves the clock on, some thirty times a second, and draws where it is."""
        before, shown = time.monotonic(), None
        while not self._closed.wait(1 / FRAMES_PER_SECOND):
            now = time.monotonic()
            with self._lock:
                playback = self._playback
                if playback is not None:
                    frame = playback.advance(now - before)
                    if (playback, frame) != shown:  # a program may have moved the clock, too
                        self._draw()
                        self._time_panel.refresh()
                        shown = playback, frame
            before = now

    def _joint_moved(self, index, value):
        with self._lock:
            if self._motion is None:
                self.Q = self.Q.copy()
                self.Q[:, index] = value
                self._followers.set(self.Q)
                self._draw()

    def _recorded(self, frames_per_second, start, stop, write):
        """Result of write(serializer of viser) after all frames. It holds the lock: the clock stops and then continues."""
        self._still_open()
        pause = 1 / number("frames_per_second", frames_per_second)
        start = max(number("start", start, "seconds", least=-np.inf), 0.0)
        stop = np.inf if stop is None else number("stop", stop, "seconds", least=-np.inf)
        with self._lock:
            playback = self._playback
            if playback is None:
                return write(self.server.get_scene_serializer())
            times = np.arange(start, min(stop, playback.duration) + 1e-9, pause)
            if not len(times):
                raise ValueError(
                    f"start, stop: got {start:g}, {stop:g}: the motion of {playback.duration:g} s has none of it"
                )

            # The first frame is part of the scene; each of the others comes after a pause.
            before, playing, serializer = playback.time, playback.playing, None
            try:
                playback.pause()
                playback.seek(times[0])
                self._draw()
                serializer = self.server.get_scene_serializer()
                for at in times[1:]:
                    serializer.insert_sleep(pause)
                    playback.seek(at)
                    self._draw()
                serializer.insert_sleep(pause)
                return write(serializer)
            except BaseException:
                if serializer is not None:
                    servers.forget(serializer)
                raise
            finally:
                playback.seek(before)
                playback.playing = playing
                self._draw()


class _Later:
    """Bodies that are made when they are first shown."""

    def __init__(self, make):
        self.make, self.made = make, None

    def show(self, visible):
        if visible and self.made is None:
            self.made = self.make()
        if self.made is not None:
            self.made.show(visible)

    def place(self, positions, turns):
        if self.made is not None:
            self.made.place(positions, turns)

    def remove(self):
        if self.made is not None:
            self.made.remove()


def _legend():
    from ..pictures import MODE_COLOURS

    return "Contact forces: " + ", ".join(
        f'<span style="color:{c}">**{mode}**</span>' for mode, c in MODE_COLOURS.items()
    )
