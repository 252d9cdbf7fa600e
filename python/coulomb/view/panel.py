"""The controls beside the picture: time, play, speed; what is shown; joints."""

from __future__ import annotations

import numpy as np

SPEEDS = ("0.1x", "0.25x", "0.5x", "1x", "2x", "4x")


class TimePanel:
    """Time slider, play and pause, speed, loop. Changes call `changed` under the viewer's lock."""

    def __init__(self, gui, playback, lock, changed):
        self.playback = playback
        self.folder = gui.add_folder("Time")
        with self.folder:
            self.button = gui.add_button("Play")
            step = min(playback.frame_time, playback.duration) or 1e-3
            self.slider = gui.add_slider("time [s]", 0.0, max(playback.duration, step), step, 0.0)
            self.speed = gui.add_dropdown("speed", SPEEDS, initial_value="1x")
            self.loop = gui.add_checkbox("loop", playback.loop)

        @self.button.on_click
        def _(_):
            with lock:
                playback.pause() if playback.playing else playback.play()
                self.refresh()

        @self.slider.on_update
        def _(event):
            if event.client is None:  # we moved it
                return
            with lock:
                playback.pause()
                playback.seek(self.slider.value)
                changed()
                self.refresh(slider=False)

        @self.speed.on_update
        def _(_):
            with lock:
                playback.speed = float(self.speed.value.removesuffix("x"))

        @self.loop.on_update
        def _(_):
            with lock:
                playback.loop = self.loop.value

    def refresh(self, slider=True):
        """Shows where the clock is."""
        label = "Pause" if self.playback.playing else "Play"
        if self.button.label != label:
            self.button.label = label
        if slider:
            self.slider.value = self.playback.time

    def remove(self):
        self.folder.remove()


class ShownPanel:
    """A checkbox for each layer that there is: name -> object with show(visible), which is called under the viewer's lock."""

    def __init__(self, gui, layers, notes, lock):
        self.folder = gui.add_folder("Show")
        self.lock = lock
        self.boxes = {}
        with self.folder:
            for name, (layer, visible) in layers.items():
                self._add(gui, name, layer, visible)
            if notes:
                gui.add_markdown(notes)

    def _add(self, gui, name, layer, visible):
        box = gui.add_checkbox(name, visible)
        layer.show(visible)
        self.boxes[name] = box

        @box.on_update
        def _(_):
            with self.lock:
                layer.show(box.value)

    def remove(self):
        self.folder.remove()


class Followers:
    """Joints that an equality ties to another one, or to a value: q_a = ref_a + poly(q_b - ref_b). Loops of bodies are not closed."""

    def __init__(self, model):
        self.ties = [tie for tie in model.equalities if tie.type == "joint" and tie.active]
        self.index = model.joint_q
        self.joints = {int(tie.joint_a) for tie in self.ties}

    def set(self, Q):
        """Puts the followers of (n, nq) where their leaders want them, leaders that follow others included."""
        for _ in self.ties:
            for tie in self.ties:
                x = Q[:, self.index[tie.joint_b]] - tie.ref_b if tie.joint_b >= 0 else 0.0
                Q[:, self.index[tie.joint_a]] = tie.ref_a + np.polyval(tie.poly[::-1], x)


class JointPanel:
    """A slider for each hinge and slide that follows no other. moved(index in q, value)."""

    def __init__(self, gui, model, q, moved):
        self.folder = gui.add_folder("Joints")
        self.sliders = {}
        self.indices = {}
        following = Followers(model).joints
        with self.folder:
            for joint, (name, kind) in enumerate(zip(model.joint_names, model.joint_types)):
                if kind in ("hinge", "slide") and joint not in following:
                    self._add(gui, model, joint, name, kind, q, moved)
            if not self.sliders:
                gui.add_markdown("This model has no hinges and no slides.")

    def _add(self, gui, model, joint, name, kind, q, moved):
        """Within the limits, or a turn, or a metre, around where it is."""
        index = int(model.joint_q[joint])
        low, high = q[index] - (np.pi if kind == "hinge" else 1.0), q[index] + (np.pi if kind == "hinge" else 1.0)
        if model.joint_limited[joint]:
            low, high = float(model.joint_lower[joint]), float(model.joint_upper[joint])
        low, high = min(low, q[index]), max(high, q[index], low + 1e-6)
        unit = "rad" if kind == "hinge" else "m"
        slider = gui.add_slider(f"{name} [{unit}]", float(low), float(high), float(high - low) / 500, float(q[index]))
        self.sliders[name] = slider
        self.indices[name] = index

        @slider.on_update
        def _(event):
            if event.client is not None:  # somebody, not `follow`
                moved(index, slider.value)

    def follow(self, q):
        """Shows where the joints are."""
        for name, slider in self.sliders.items():
            value = float(np.clip(q[self.indices[name]], slider.min, slider.max))
            if value != slider.value:
                slider.value = value

    def remove(self):
        self.folder.remove()
