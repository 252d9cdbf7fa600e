"""Contact forces, gradients and paths in the browser."""

from __future__ import annotations

import numpy as np

from ..pictures import MODE_COLOURS
from .motion import MODES, gradient_arrows

COLOURS = {mode: tuple(bytes.fromhex(colour[1:])) for mode, colour in MODE_COLOURS.items()}
GRADIENT_COLOUR = (150, 40, 160)
PATH_COLOURS = ((31, 90, 153), (217, 95, 2), (27, 120, 55), (123, 50, 148), (140, 109, 31), (178, 24, 43))


def _linear(colour):
    """sRGB 0..255 to what viser's arrows take it for: without this they are paler than dots and lines of the same colour."""
    c = np.asarray(colour) / 255
    return np.round(255 * np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)).astype(np.uint8)


class Arrows:
    """Arrows and a dot at each foot, of one colour. `per_unit` metres for each unit of the vectors, `longest` metres at most."""

    def __init__(self, scene, node, colour, size, per_unit, longest, dots=True):
        self.per_unit, self.longest, self.size = per_unit, longest, size
        none = np.zeros((0, 2, 3))
        self.arrows = scene.add_arrows(
            node, none, _linear(colour), shaft_radius=0.02 * size, head_radius=0.05 * size, head_length=0.1 * size
        )
        self.dots = None
        if dots:
            self.dots = scene.add_point_cloud(
                f"{node}_points", none[:, 0], colour, point_size=0.05 * size, point_shape="circle"
            )

    def place(self, points, vectors):
        """points, vectors: (k, 3); vectors of no visible length have no arrow."""
        lengths = self.per_unit * np.linalg.norm(vectors, axis=1)
        seen = lengths > 0.01 * self.size
        drawn = np.minimum(lengths, self.longest)[seen] / np.maximum(lengths[seen], 1e-300)
        tips = points[seen] + vectors[seen] * self.per_unit * drawn[:, None]
        self.arrows.points = np.stack([points[seen], tips], axis=1).astype(np.float32)
        if self.dots is not None:
            self.dots.points = points.astype(np.float32)

    def show(self, visible):
        self.arrows.visible = visible
        if self.dots is not None:
            self.dots.visible = visible

    def remove(self):
        self.arrows.remove()
        if self.dots is not None:
            self.dots.remove()


class ContactArrows:
    """The contact forces of a motion, one colour for each mode. Half of them are longer than half of `size`, none than all of it."""

    def __init__(self, scene, motion, offsets, size, force_scale=None):
        self.motion, self.offsets = motion, offsets
        norms = [
            np.linalg.norm(forces, axis=1) for frames in motion.contacts for f in frames for _, forces in f.values()
        ]
        norms = np.concatenate(norms) if norms else np.zeros(0)
        norms = norms[norms > 0]
        self.largest = float(norms.max(initial=0.0))
        usual = float(np.median(norms)) if len(norms) else 1.0
        self.per_newton = 0.5 * size / usual if force_scale is None else force_scale
        self.of_mode = {
            mode: Arrows(scene, f"/contacts/{mode}", COLOURS[mode], size, self.per_newton, size) for mode in MODES
        }

    def place(self, frame):
        for mode, arrows in self.of_mode.items():
            found = [frames[frame][mode] for frames in self.motion.contacts]
            points = np.concatenate([p + offset for (p, _), offset in zip(found, self.offsets)])
            arrows.place(points, np.concatenate([forces for _, forces in found]))

    def show(self, visible):
        for arrows in self.of_mode.values():
            arrows.show(visible)

    def remove(self):
        for arrows in self.of_mode.values():
            arrows.remove()


class GradientArrows:
    """At each body's origin, how a step along the gradient would move it; the longest of the motion is as long as `size`."""

    def __init__(self, scene, motion, offsets, size):
        self.motion, self.offsets = motion, offsets
        largest = 0.0
        for states, gradients in zip(motion.Q, motion.gradient):
            for q, gradient in zip(states, gradients):
                _, arrows = gradient_arrows(motion.model, q, gradient)
                largest = max(largest, float(np.linalg.norm(arrows, axis=1).max(initial=0)))
        per_unit = size / largest if largest > 0 else 1.0
        self.arrows = Arrows(scene, "/gradient", GRADIENT_COLOUR, size, per_unit, size, dots=False)

    def place(self, frame):
        pairs = [
            gradient_arrows(self.motion.model, states[frame], gradients[frame])
            for states, gradients in zip(self.motion.Q, self.motion.gradient)
        ]
        points = np.concatenate([p + offset for (p, _), offset in zip(pairs, self.offsets)])
        self.arrows.place(points, np.concatenate([arrows for _, arrows in pairs]))

    def show(self, visible):
        self.arrows.show(visible)

    def remove(self):
        self.arrows.remove()


class Paths:
    """Lines where points go during the whole motion."""

    def __init__(self, scene, motion, offsets, size):
        self.handles = []
        n = motion.num_environments
        for number, path in enumerate(motion.paths):
            line = path + offsets[number % n]
            self.handles.append(
                scene.add_line_segments(
                    f"/paths/{number}",
                    np.stack([line[:-1], line[1:]], axis=1),
                    PATH_COLOURS[(number // n) % len(PATH_COLOURS)],
                    thickness=0.006 * size,
                )
            )

    def place(self, frame):
        """They stay."""

    def show(self, visible):
        for handle in self.handles:
            handle.visible = visible

    def remove(self):
        for handle in self.handles:
            handle.remove()
