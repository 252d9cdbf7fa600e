"""Chains of boxes and tapered boxes, as fingers have: lengths and cross-sections are the design.

A ChainCage is a row of pieces along x. Each piece has a 14-handle box cage (8 corners, 6 middles of faces) in the frame of its
body, whose origin is where its first piece begins; neighbours share a cross-section. Lengths, widths (y) and heights (z) can
each have a scale, by name; pieces, also of several chains, that use the same name change together. All handles are
linear in the scales (designs.Scales).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .cage import BOX_CORNERS, FAN_TRIANGLES, Cage
from .checks import finite, positive
from .designs import Scales
from .parts import Link, Marker, Part


@dataclass(frozen=True)
class Piece:
    """A box from `start` to `end`, the full (width y, height z) of its two ends, metres.

    name: of its geometry. body: of several pieces of one body, in a row. length: m. The scales: names, or None where a
    number stays; start_scales, end_scales: of (width, height).
    """

    name: str
    body: str
    length: float
    start: tuple
    end: tuple
    length_scale: str | None = None
    start_scales: tuple = (None, None)
    end_scales: tuple = (None, None)

    @property
    def is_box(self):
        """It stays a box whatever the scales are."""
        return tuple(self.start) == tuple(self.end) and tuple(self.start_scales) == tuple(self.end_scales)


class ChainCage:
    """pieces: of Piece, in a row from the base to the tip. joints: {body: {attribute: value}} of MJCF's <joint>, such as
    {"p0": {"axis": "0 1 0", "damping": "0.1"}}; a body without is fixed to the one before. prefix: of the names of pieces,
    bodies and joints (not of scales) in the model. balls: {piece: radius, m}: a ball without mass on every handle of the piece,
    <piece>.0 to <piece>.13: contact that changes smoothly when the finger turns; `touch` of mjcf() is then theirs alone.

    The joint of a body has the name of the body. ValueError: names the piece and the value.
    """

    def __init__(self, pieces, joints, *, prefix="", balls=None):
        self.pieces = [replace(p, name=prefix + p.name, body=prefix + p.body) for p in pieces]
        self.joints = {prefix + body: dict(attributes) for body, attributes in joints.items()}
        self.bodies = list(dict.fromkeys(p.body for p in self.pieces))
        for what in ("name", "body"):
            seen = [getattr(p, what) for p in self.pieces]
            rows = [n for i, n in enumerate(seen) if i == 0 or n != seen[i - 1] or what == "name"]
            for i, name in enumerate(rows):
                if name in rows[:i]:
                    raise ValueError(f"pieces: {what} '{name}' appears twice")
        for body in self.joints:
            if body not in self.bodies:
                raise ValueError(f"joints: no piece has the body '{body}'")
        self.balls = {prefix + piece: radius for piece, radius in (balls or {}).items()}
        for piece, radius in self.balls.items():
            if piece not in [p.name for p in self.pieces]:
                raise ValueError(f"balls: no piece has the name '{piece}'")
            positive(f"balls['{piece}']", radius)
        for p in self.pieces:
            for what, values in (("length", [p.length]), ("start", p.start), ("end", p.end)):
                for k, value in enumerate(values):
                    positive(f"{what}[{k}] of piece '{p.name}'", value)
        self._cages = None

    @property
    def scale_names(self):
        """In the order of the pieces: length, width and height at the start, at the end."""
        found = [n for p in self.pieces for n in (p.length_scale, *p.start_scales, *p.end_scales)]
        return list(dict.fromkeys(n for n in found if n is not None))

    def slopes(self, names):
        """Per piece the handles' derivative (14, 3, n) by the scales `names`; the constant part is that of None, last."""
        index = {name: i for i, name in enumerate([*names, None])}
        for p in self.pieces:
            for name in (p.length_scale, *p.start_scales, *p.end_scales):
                if name not in index:
                    raise ValueError(f"names: the scale '{name}' of piece '{p.name}' is missing")
        out, body, reach = [], None, None
        for p in self.pieces:
            if p.body != body:
                body, reach = p.body, np.zeros(len(index))
            matrix = np.zeros((14, 3, len(index)))
            end = reach.copy()
            end[index[p.length_scale]] += p.length
            sides = np.zeros((2, 2, len(index)))  # (start or end, width or height): halves
            for k, (section, scales) in enumerate(((p.start, p.start_scales), (p.end, p.end_scales))):
                for axis in range(2):
                    sides[k, axis, index[scales[axis]]] = section[axis] / 2
            for i, (x, y, z) in enumerate(BOX_CORNERS.astype(int)):
                matrix[i] = (reach, end)[x], (2 * y - 1) * sides[x, 0], (2 * z - 1) * sides[x, 1]
            matrix[8, 0], matrix[9, 0], matrix[10:, 0] = reach, end, (reach + end) / 2
            for axis in range(2):
                middle = sides[:, axis].mean(axis=0)
                matrix[10 + 2 * axis, 1 + axis], matrix[11 + 2 * axis, 1 + axis] = -middle, middle
            out.append(matrix)
            reach = end
        return out

    @property
    def cages(self):
        """Cages of the pieces, in order."""
        if self._cages is None:
            rest = [matrix.sum(axis=2) for matrix in self.slopes(self.scale_names)]
            self._cages = [Cage(handles, FAN_TRIANGLES, name=p.name) for handles, p in zip(rest, self.pieces)]
        return self._cages

    def parts(self, density, contact_scale=False):
        """Parts of every piece and of its balls."""
        out = []
        for p, cage in zip(self.pieces, self.cages):
            out.append(Part(p.name, cage, density, contact_scale=contact_scale))
            out += [Part(f"{p.name}.{i}", cage) for i in range(14) if p.name in self.balls]
        return out

    def links(self):
        """The joints between bodies: each follows the end of the piece before."""
        return [
            Link(p.body, self.cages[i])
            for i, p in enumerate(self.pieces[1:])
            if p.body != self.pieces[i].body and p.body in self.joints
        ]

    def tip(self, name="tip"):
        """A Marker at the middle of the far end of the last piece."""
        return Marker(name, self.cages[-1], self.cages[-1].handles[9])

    def mjcf(self, density, *, position=(0, 0, 0), euler=(0, 0, 0), touch="", body=""):
        """(assets, bodies): MJCF of the chain at rest, for <asset> and <worldbody>. position, euler: of its first body,
        euler as the file's compiler reads it. touch: attributes of geoms that touch. body: elements for the first body.

        Neighbours share a face. Where the first body has no joint, exclude its pair with the second: MJCF's filter of parents
        takes a fixed body for the world.
        """
        assets, opened = [], []
        position, text = finite("position", position, (3,)), []
        for p, matrix in zip(self.pieces, self.slopes(self.scale_names)):
            handles = matrix.sum(axis=2)
            if not opened or p.body != opened[-1]:
                first = not opened
                turn = f' euler="{_numbers(euler)}"' if first else ""
                text.append(f'<body name="{p.body}" pos="{_numbers(position)}"{turn}>{body if first else ""}')
                opened.append(p.body)
                if p.body in self.joints:
                    attributes = "".join(f' {key}="{value}"' for key, value in self.joints[p.body].items())
                    text.append(f'<joint name="{p.body}"{attributes}/>')
            if p.is_box:
                middle, half = handles[:8].mean(axis=0), np.ptp(handles[:8], axis=0) / 2
                shape = f'type="box" pos="{_numbers(middle)}" size="{_numbers(half)}"'
            else:
                assets.append(f'<mesh name="{p.name}" vertex="{_numbers(handles[:8].ravel())}"/>')
                shape = f'type="mesh" mesh="{p.name}"'
            alone = (
                'contype="0" conaffinity="1073741824"' if self.balls else touch
            )  # touches nothing, but is no decoration
            text.append(f'<geom name="{p.name}" {shape} density="{density!r}" {alone}/>')
            for i in range(14) if p.name in self.balls else ():
                place = f'pos="{_numbers(handles[i])}" size="{self.balls[p.name]!r}"'
                text.append(f'<geom name="{p.name}.{i}" type="sphere" {place} mass="0" {touch}/>')
            position = handles[9]
        return "\n".join(assets), "\n".join(text) + "</body>" * len(opened)


def scales_of(chains, names=None):
    """The design Scales of one or several chains. names: their scales, in the order of x; default: as the chains come."""
    if names is None:
        names = list(dict.fromkeys(name for chain in chains for name in chain.scale_names))
    cages = [cage for chain in chains for cage in chain.cages]
    matrix = np.concatenate([m[:, :, :-1] for chain in chains for m in chain.slopes(names)])
    return Scales(cages, matrix, names)


def finger_pieces(
    lengths=(0.05, 0.04, 0.03), *, width=0.02, height=0.02, palm=0.02, knuckle=0.02, joint=0.01, tip=0.015, taper=0.7
):
    """The pieces of a finger palm - knuckle - joint - phalanx - joint - phalanx - joint - phalanx - tip with nine scales: width
    at the second and third joint, width and height between last phalanx and tip and at the end of the tip, three lengths.

    Bodies: palm, knuckle, p0, p1, p2. lengths: of the three phalanges, m. width, height: of palm, knuckle and joints.
    palm, knuckle, joint, tip: lengths of those pieces. taper: end of the tip relative to width and height.
    """
    full, end = (width, height), (taper * width, taper * height)
    middle = ((width + end[0]) / 2, (height + end[1]) / 2)
    free, second, third = (None, None), ("joint 1 width", None), ("joint 2 width", None)
    neck, top = ("neck width", "neck height"), ("tip width", "tip height")
    return [
        Piece("palm", "palm", palm, full, full),
        Piece("knuckle", "knuckle", knuckle, full, full),
        Piece("j0", "p0", joint, full, full),
        Piece("phalanx0", "p0", lengths[0], full, full, "length 0", free, second),
        Piece("j1", "p1", joint, full, full, None, second, second),
        Piece("phalanx1", "p1", lengths[1], full, full, "length 1", second, third),
        Piece("j2", "p2", joint, full, full, None, third, third),
        Piece("phalanx2", "p2", lengths[2], full, middle, "length 2", third, neck),
        Piece("tip", "p2", tip, middle, end, None, neck, top),
    ]


def _numbers(values):
    return " ".join(repr(float(v)) for v in values)
