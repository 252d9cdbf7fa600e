"""Renderer: pictures of a model without a display, a graphics card or anything but this package."""

from __future__ import annotations

import numpy as np

from .._core import Rasteriser
from ..pictures import MODE_COLOURS
from . import cameras
from .bodies import GROUND, extent, placements, side_by_side, triangles_of
from .meshes import SIDES, cone, is_closed, primitive, simplified, smoothed
from .motion import MODES, by_mode, configurations, number
from .poses import matrices
from .visuals import checked, collision_shapes, visuals_of

# How fine a mesh is drawn: where the whole model fills the picture, a face of it has so many pixels.
PIXELS_PER_FACE = 48
FEWEST_FACES = 400
SHADOW_FACES = 300  # of one mesh: only the outline is seen
SMALL = 0.25  # of the model's size: what is smaller is round with half as many sides
SUN = (3.0, -2.0, 6.0)  # towards it
SKY = ((0.93, 0.945, 0.96), (0.56, 0.67, 0.82))
SQUARES = (0.80, 0.815, 0.84), (0.69, 0.71, 0.745)
ARROW_COLOURS = {mode: tuple(c / 255 for c in bytes.fromhex(colour[1:])) for mode, colour in MODE_COLOURS.items()}


class Renderer:
    """Draws configurations of a model as arrays of pixels: by the processor alone, in some milliseconds, the same bits every time.

        renderer = coulomb.Renderer(model)
        rgb = renderer.render(q)                             # uint8 (480, 640, 3), of a camera that sees the whole model
        renderer.orbit(azimuth=90, elevation=-20, distance=3, track="base")
        rgb = renderer.render(q, contacts=sim.contacts, contact_time=sim.timestep)

    width, height: pixels, 1 to 8192. visuals: "files", what the robots' files have (Model.visuals); "collision"; or a list of
    coulomb.view.Visual. field_of_view: degrees, from the lower to the upper edge. num_threads: 0: all cores; the picture is the same.

    ValueError: names argument and value. FileNotFoundError, ValueError: names a mesh that is missing or broken, and its link.
    """

    def __init__(self, model, width=640, height=480, *, visuals="files", field_of_view=40.0, num_threads=1):
        self.model = model
        if isinstance(visuals, str) and visuals not in ("files", "collision"):
            raise ValueError(f"visuals: got {visuals!r}, expected 'files', 'collision' or a list of Visuals")
        self._field_of_view = number("field_of_view", field_of_view, least=-np.inf)
        if not 0 < self._field_of_view < 180:
            raise ValueError(f"field_of_view: got {field_of_view}, expected degrees between 0 and 180")
        self._rasteriser = Rasteriser(width, height, num_threads)
        self.width, self.height = int(width), int(height)
        self._focal = 0.5 * self.height / np.tan(np.radians(0.5 * self._field_of_view))

        if visuals == "files":
            self._visuals = visuals_of(model)
        else:
            self._visuals = collision_shapes(model) if visuals == "collision" else checked(model, visuals)
        low, high = extent(self._visuals, *placements(model, [model.neutral()[0]]))
        self._low, self._high = low, high
        self._size = max(float(np.max(high - low)), 1e-3)
        self._add_surfaces()
        self._camera = None  # until somebody places it, or the first picture does

    def __repr__(self):
        return f"<Renderer {self.width} x {self.height}, {len(self._surfaces)} shapes>"

    # --- the camera ---------------------------------------------------------------------------------------------------------------

    def look(self, position, target):
        """Puts the camera at `position`, (3,) m, looking at `target`. ValueError: the two are one point."""
        self._camera = cameras.looking(position, target)

    def orbit(self, azimuth=cameras.AZIMUTH, elevation=cameras.ELEVATION, distance=None, target=(0, 0, 0), track=None):
        """Puts the camera on a sphere around `target`, as MuJoCo's free camera.

        azimuth: degrees, of the direction that it looks in, from x to y. elevation: degrees, negative looks down. distance: m;
        None: from where the whole model is seen. target: (3,) m. track: name of a body: the target is seen from its origin, and
        the camera follows it.
        """
        azimuth, elevation = number("azimuth", azimuth, least=-np.inf), number("elevation", elevation, least=-np.inf)
        target = cameras.three("target", target)
        body = None
        if track is not None:
            if track not in self.model.body_names:
                raise ValueError(f"track: no body {track!r}; there are {list(self.model.body_names)}")
            body = self.model.body_names.index(track)
        if distance is None:
            origin = 0.0 if body is None else self.model.body_placements(self.model.neutral()[0])[0][body]
            distance = self._fitted(_corners(self._low, self._high), origin + target, azimuth, elevation)
        distance = number("distance", distance)
        self._camera = cameras.Orbit(azimuth, elevation, distance, target, body)

    def fit(self, q):
        """Puts the camera where it sees the model at all of q: (nq,), a motion (T, nq), or (n, T, nq) of n environments side by side."""
        low, high = self._reach(configurations(self.model, q, "q"))
        self.orbit(distance=self._distance_to(low, high), target=(low + high) / 2)

    def follow(self, q):
        """As fit, for a motion; where it goes so far that the model would be small, the camera follows the first body that moves."""
        Q = configurations(self.model, q, "q")
        (low, high), (first_low, first_high) = self._reach(Q), self._reach(Q[:, :1])
        if np.max(high - low) < 4 * np.max(first_high - first_low) or not len(self.model.dof_body):
            self.fit(Q)
            return
        body = int(self.model.dof_body[0])
        origin = self.model.body_placements(Q[0, 0])[0][body]
        target = (first_low + first_high) / 2 - origin
        self._camera = cameras.Orbit(
            cameras.AZIMUTH, cameras.ELEVATION, self._distance_to(first_low, first_high), target, body
        )

    @property
    def is_placed(self):
        """Whether the camera is somewhere, or the next picture will place it."""
        return self._camera is not None

    def _reach(self, Q):
        """Corners of where the model goes in the motions Q (n, T, nq)."""
        offsets = self._offsets(len(Q))
        corners = []
        for i in _spread(len(Q), 16):
            few = Q[i, _spread(Q.shape[1], 9)]
            corners.append(np.array(extent(self._visuals, *placements(self.model, few))) + offsets[i])
        return np.min(corners, axis=(0, 1)), np.max(corners, axis=(0, 1))

    def _distance_to(self, low, high):
        return self._fitted(_corners(low, high), (low + high) / 2, cameras.AZIMUTH, cameras.ELEVATION)

    def place(self, position, axes, distance=None):
        """Puts the camera at `position`, (3,) m, with the rows right, up and forward of `axes`, (3, 3). distance: m, to what matters."""
        position = cameras.three("position", position)
        axes = np.asarray(axes, dtype=float)
        if axes.shape != (3, 3) or not np.abs(axes @ axes.T - np.eye(3)).max() < 1e-6:
            raise ValueError(f"axes: got {axes.tolist()}, expected an orthonormal matrix (3, 3)")
        distance = 3 * self._size if distance is None else number("distance", distance)
        self._camera = cameras.Fixed(cameras.Place(position, axes), distance)

    def _fitted(self, points, target, azimuth, elevation):
        axes = cameras.axes_of(azimuth, elevation)
        return cameras.fitted_distance(points, target, axes, self._focal, self.width, self.height)

    # --- pictures -----------------------------------------------------------------------------------------------------------------

    def render(self, q, contacts=None, contact_time=None, force_scale=None):
        """A picture, uint8 (height, width, 3), of q (nq,), or of n environments (n, nq) side by side.

        contacts: Contacts of the last step, or n lists of them: their forces are drawn as arrows, coloured by mode. contact_time:
        s that their impulses last (default: the model's time step). force_scale: m for each N (default: the weight of all bodies
        is as long as the model is large). The first picture places the camera, if nothing did before.

        ValueError: names argument, shape and value.
        """
        Q = self._states(q)
        forces = None
        if contacts is not None:
            lists = contacts if np.ndim(q) == 2 else [contacts]
            if len(lists) != len(Q):
                raise ValueError(
                    f"contacts: got {len(lists)} lists, expected one for each of the {len(Q)} environments"
                )
            seconds = self.model.timestep if contact_time is None else contact_time
            seconds = number("contact_time", seconds)
            forces = [by_mode(of_one, seconds) for of_one in lists]
        return self.draw(Q, forces, force_scale)[0]

    def depth(self, q):
        """float32 (height, width), m along the camera's axis to what is seen at q, (nq,) or (n, nq); infinity in the sky."""
        return self.draw(self._states(q), with_depth=True)[1]

    def draw(self, Q, forces=None, force_scale=None, with_depth=False):
        """(picture, depth or None) of checked states Q (n, nq). forces: of each environment, mode -> (points (k, 3), forces (k, 3))."""
        offsets = self._offsets(len(Q))
        positions, turns = placements(self.model, Q)
        positions = positions + offsets[:, None]
        rows = [self._shapes(positions, turns)]
        for of_one, offset in zip(forces or (), offsets):
            rows.append(self._arrows(of_one, offset, force_scale))
        if self._camera is None:
            self.fit(Q[:, None])
        position, axes = self._camera.at(positions[0])
        nearest = 0.01 * min(self._size, self._camera.distance)
        camera = np.concatenate([position, axes.reshape(-1), [self._focal, nearest]])
        fade = 10.0 * self._camera.distance
        floors = self._floors(positions[0], turns[0])
        return self._rasteriser.render(camera, SUN, SKY, fade, floors, np.concatenate(rows), with_depth)

    def _states(self, q):
        shape = np.shape(q)
        if len(shape) not in (1, 2) or shape[-1] != self.model.nq:
            raise ValueError(f"q: got shape {shape}, expected (nq,) or (n, nq) with nq = {self.model.nq}")
        return configurations(self.model, np.asarray(q, dtype=float)[..., None, :], "q")[:, 0]

    def _offsets(self, n):
        return side_by_side(n, self._high - self._low, None) if n > 1 else np.zeros((1, 3))

    # --- what is drawn ------------------------------------------------------------------------------------------------------------

    def _add_surfaces(self):
        """Shapes with the same triangles share a surface."""
        alike: dict = {}
        shown = [visual for visual in self._visuals if visual.kind != GROUND]
        surfaces, scales = [], []
        for visual in shown:
            vertices, faces, scale = triangles_of(visual)
            part = min(float(np.max(np.ptp(vertices * scale, axis=0))) / self._size, 1.0)
            if part < SMALL:
                vertices, faces, scale = triangles_of(visual, SIDES // 2)
            key = (vertices.tobytes(), faces.tobytes())
            if key not in alike:
                alike[key] = self._surface(np.asarray(vertices, dtype=float), np.asarray(faces, dtype=int), part)
            surfaces.append(alike[key])
            scales.append(scale)
        self._surfaces = np.array(surfaces, dtype=float)
        self._bodies = np.array([visual.body for visual in shown], dtype=int)
        self._positions = np.array([visual.position for visual in shown]).reshape(-1, 3)
        turns = matrices(np.array([visual.quaternion for visual in shown]).reshape(-1, 4))
        self._linear = turns * np.array(scales).reshape(-1, 1, 3)
        self._colours = np.clip(np.array([visual.rgba for visual in shown], dtype=float).reshape(-1, 4), 0, 1)
        self._grounds = [visual for visual in self._visuals if visual.kind == GROUND]
        self._shaft = self._surface(*primitive("cylinder", np.ones(3), SIDES // 2)[:2])
        self._head = self._surface(*cone())

    def _surface(self, vertices, faces, part=1.0):
        """part: its size, of the model's."""
        most = max(FEWEST_FACES, int(part * part * self.width * self.height / PIXELS_PER_FACE))
        joined = simplified(vertices, faces, most)
        fine_vertices, normals, fine = smoothed(*joined)
        coarse_vertices, coarse = simplified(vertices, faces, SHADOW_FACES)
        return self._rasteriser.add_surface(
            np.concatenate([fine_vertices, coarse_vertices]),
            np.concatenate([normals, np.tile([0.0, 0, 1], (len(coarse_vertices), 1))]),
            fine,
            is_closed(*joined),
            len(fine_vertices) + coarse,
        )

    def _shapes(self, positions, turns):
        R = turns[:, self._bodies]
        rows = np.empty((*R.shape[:2], 19))
        rows[..., 0] = self._surfaces
        rows[..., 1:10] = (R @ self._linear).reshape(*R.shape[:2], 9)
        rows[..., 10:13] = positions[:, self._bodies] + (R @ self._positions[..., None])[..., 0]
        rows[..., 13:17] = self._colours
        rows[..., 17:] = 1, 0
        return rows.reshape(-1, 19)

    def _floors(self, positions, turns):
        """The most level one first: on it shadows fall."""
        square = _round_length(0.4 * self._size)
        rows = []
        for visual in self._grounds:
            R = turns[visual.body] @ matrices(visual.quaternion)
            p = positions[visual.body] + turns[visual.body] @ visual.position
            rows.append(np.concatenate([p, R.T.reshape(-1), [square], *SQUARES]))
        rows.sort(key=lambda row: -row[11])
        return np.array(rows).reshape(-1, 19)

    def _arrows(self, forces, offset, force_scale):
        scale = self._size / self._weight() if force_scale is None else force_scale
        scale = number("force_scale", scale)
        rows = []
        for mode in MODES:
            points, vectors = forces[mode]
            rows.append(self._arrow_rows(points + offset, scale * vectors, ARROW_COLOURS[mode]))
        return np.concatenate(rows)

    def _weight(self):
        """N, of all bodies; 1 where nothing weighs anything."""
        weight = float(np.sum(self.model.body_mass) * np.linalg.norm(self.model.gravity))
        return weight if weight > 0 else 1.0

    def _arrow_rows(self, feet, arrows, colour):
        """(2 k, 19): shafts and heads of k arrows; those that are too short to be seen are left out."""
        lengths = np.linalg.norm(arrows, axis=1)
        seen = lengths > 0.01 * self._size
        feet, lengths = feet[seen], lengths[seen]
        along = arrows[seen] / lengths[:, None]
        aside = np.where(np.abs(along[:, :1]) < 0.6, [1.0, 0, 0], [0, 1.0, 0])
        across = np.cross(along, aside)
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        R = np.stack([across, np.cross(along, across), along], axis=2)

        head = np.minimum(0.09 * self._size, 0.5 * lengths)
        shaft = lengths - head
        wide = np.minimum(0.032 * self._size, 0.45 * head)
        thin = np.minimum(0.012 * self._size, 0.5 * wide)
        rows = np.empty((2, len(feet), 19))
        rows[0, :, 0], rows[1, :, 0] = self._shaft, self._head
        rows[0, :, 1:10] = (R * np.stack([thin, thin, 0.5 * shaft], axis=1)[:, None]).reshape(-1, 9)
        rows[1, :, 1:10] = (R * np.stack([wide, wide, head], axis=1)[:, None]).reshape(-1, 9)
        rows[0, :, 10:13] = feet + 0.5 * shaft[:, None] * along
        rows[1, :, 10:13] = feet + shaft[:, None] * along
        rows[..., 13:16] = colour
        rows[..., 16:] = 1, 0, 1  # solid, without a shadow, and seen although the body that is pushed is around it
        return rows.reshape(-1, 19)


def _corners(low, high):
    """(8, 3) of the box between two corners."""
    return np.array([(x, y, z) for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])


def _spread(n, most):
    """Some of n indices, the first and the last among them: at most `most`."""
    return np.unique(np.linspace(0, n - 1, most).astype(int))


def _round_length(length):
    """1, 2 or 5 of some power of ten, at most `length`."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(max(step * power for step in (1, 2, 5) if step * power <= length * (1 + 1e-9)))
