"""save_video: a motion, or pictures, as an .mp4 file."""

from __future__ import annotations

import os

import numpy as np

from ..progress import Bar
from .meshes import need
from .motion import Motion, number
from .recording import Recording
from .renderer import Renderer

FRAMES_PER_SECOND = 30


def save_video(
    path,
    motion,
    renderer=None,
    *,
    timestep=None,
    speed=1.0,
    fps=FRAMES_PER_SECOND,
    contacts=None,
    contact_time=None,
    progress=True,
):
    """Writes a motion as a video, by default at the pace at which it happened. Returns path.

        coulomb.save_video("run.mp4", sim.rollout(q, v, steps=500), coulomb.Renderer(model))

    path: of an .mp4 file. motion: a Rollout, a BatchRollout, a Recording (with its contact forces), or its q, (T, nq) or (n, T, nq), which `renderer` draws: a Renderer, or a
    Model for one of its own; or pictures, uint8 (T, height, width, 3), without a renderer. timestep: s from one state or picture to
    the next (default: the model's; of pictures: 1 / fps). speed: 0.5 is slow motion. fps: pictures a second at most; states between are
    left out. contacts, contact_time: as Viewer.show takes them. progress: a bar.

    ImportError: imageio-ffmpeg is missing, pip install 'coulomb[video]'. FileNotFoundError: the folder is not there. ValueError: names
    argument and value.
    """
    path = os.fspath(path)
    check_path("path", path)
    ffmpeg = need("imageio_ffmpeg")
    speed, fps = number("speed", speed), number("fps", fps)
    if renderer is None:
        pictures, frame_time = _checked_pictures(motion), 1 / fps if timestep is None else timestep
        frame_time = number("timestep", frame_time, "seconds")
        shown, rate = _shown(len(pictures), frame_time / speed, fps)
        _write(ffmpeg, path, (pictures[k] for k in shown), len(shown), rate, progress)
        return path

    if not isinstance(renderer, Renderer):
        renderer = Renderer(renderer)
    found = Motion(renderer.model, motion, timestep)
    if contacts is None and isinstance(motion, Recording):
        contacts = motion.contacts
    if contacts is not None:
        found.set_contacts(contacts, contact_time)
    if not renderer.is_placed:
        renderer.follow(found.Q)
    shown, rate = _shown(found.num_frames, found.frame_time / speed, fps)

    def drawn(k):
        forces = [frames[k] for frames in found.contacts] or None
        return renderer.draw(found.Q[:, k], forces)[0]

    _write(ffmpeg, path, map(drawn, shown), len(shown), rate, progress)
    return path


def check_path(name, path):
    """ValueError: does not end in .mp4. FileNotFoundError: the folder is not there."""
    if os.path.splitext(path)[1].lower() != ".mp4":
        raise ValueError(f"{name}: got {path!r}, expected a name that ends in .mp4")
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise FileNotFoundError(
            f"{name}: the folder {os.path.dirname(path)!r} does not exist, so {path!r} cannot be written"
        )


def _checked_pictures(pictures):
    shape = np.shape(pictures)
    if (
        hasattr(pictures, "q")
        or len(shape) != 4
        or shape[3:] != (3,)
        or 0 in shape
        or np.asarray(pictures).dtype != np.uint8
    ):
        raise ValueError(
            f"motion: got {type(pictures).__name__} of shape {shape}, expected pictures, uint8 (T, height, width, 3); "
            "states need a renderer=, or the model"
        )
    return np.asarray(pictures)


def _shown(count, seconds, fps):
    """Which of `count` pictures, `seconds` apart, are shown, and how many a second: all, or fps of them."""
    if seconds * fps >= 1 - 1e-9:
        return list(range(count)), 1 / seconds
    times = np.arange(int(np.floor((count - 1) * seconds * fps + 1e-9)) + 1) / fps
    return [int(k) for k in np.floor(times / seconds + 0.5)], fps


def _write(ffmpeg, path, pictures, count, rate, progress):
    bar = Bar("frame") if progress else None
    writer = None
    try:
        for done, picture in enumerate(pictures, 1):
            picture = _even(picture)
            if writer is None:
                size = picture.shape[1], picture.shape[0]
                writer = ffmpeg.write_frames(path, size, fps=rate, codec="libx264", quality=8, macro_block_size=2)
                writer.send(None)
            writer.send(np.ascontiguousarray(picture))
            if bar is not None:
                bar(done, count)
    finally:
        if writer is not None:
            writer.close()
        if bar is not None:
            bar.close()


def _even(picture):
    """Videos have even sizes: the last row or column once more."""
    rows, columns = picture.shape[0] % 2, picture.shape[1] % 2
    return np.pad(picture, ((0, rows), (0, columns), (0, 0)), mode="edge") if rows or columns else picture
