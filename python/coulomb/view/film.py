"""``coulomb simulate MODEL --video FILE``: states of a motion, kept as often as they are shown."""

from __future__ import annotations

import numpy as np

from .meshes import need
from .renderer import Renderer
from .video import FRAMES_PER_SECOND, check_path, save_video


def check_video(options):
    """Bad options, and a package that is missing, are found before the model is read."""
    check_path("--video", options.video)
    need("imageio_ffmpeg")


class Film:
    """Takes a state every few steps of a simulation, and writes them as --video says."""

    def __init__(self, model, timestep, options):
        self._path, self._speed = options.video, options.speed or 1.0
        visuals = "collision" if options.collision else "files"
        self._renderer = Renderer(model, *(options.size or (640, 480)), visuals=visuals)
        self._every = max(1, int(self._speed / (FRAMES_PER_SECOND * timestep) + 1e-9))
        self._timestep = timestep
        self._states, self._contacts = [], []

    def take(self, step, q, contacts):
        """q before the step of that number, and the contacts of the step."""
        if step % self._every == 0:
            self._states.append(np.array(q))
            self._contacts.append(list(contacts))

    def save(self):
        """The path of the video."""
        return save_video(
            self._path,
            np.array(self._states),
            self._renderer,
            timestep=self._every * self._timestep,
            speed=self._speed,
            contacts=self._contacts,
            contact_time=self._timestep,
        )
