"""Meshes that are not convex: how far their hull is from them, and convex parts in its place (CoACD, kept in the user's cache).

Shapes that collide are convex here, so a mesh becomes its hull: a cup is full. ``coulomb.load(..., decompose=True)`` cuts such meshes into parts.
"""

from __future__ import annotations

import contextlib
import hashlib
import numbers
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from . import _core
from ._mesh_files import read_pieces
from .progress import Bar

THRESHOLD = 0.05  # CoACD's own: how concave a part may be, of a mesh that fills the cube from -1 to 1
NEGLIGIBLE = 1e-3  # m: a hull so near to its mesh is as good
NEGLIGIBLE_SHARE = 0.02  # or so near, of the mesh's diagonal


def hull_distance(vertices, faces, hull=None, negligible: float = 0.0) -> float:
    """How far the surface of the convex hull is from the mesh at most, m: 0 for a convex mesh, about the depth of a cup.

    vertices: (n, 3) m. faces: (m, 3) indices. hull: (k, 3) those of the hull, where they are known. negligible: m, smaller distances count as 0
    and take little time. The hull is sampled at a thirtieth of its diagonal. ValueError: an index that is none, points in one plane.
    """
    return _core._hull_distance(np.asarray(vertices, dtype=float), np.asarray(faces, dtype=float), hull, negligible)


def is_nearly_convex(vertices, distance) -> bool:
    """Is a hull at this distance from the mesh as good as the mesh?"""
    return distance <= _negligible(vertices)


def _negligible(vertices):
    """The distance, m, at which a hull is as good as its mesh."""
    return max(NEGLIGIBLE, NEGLIGIBLE_SHARE * float(np.linalg.norm(np.ptp(vertices, axis=0))))


def convex_parts(vertices, faces, threshold: float = THRESHOLD) -> list[np.ndarray]:
    """A mesh as convex parts, each by its points (k, 3) m, in the order of CoACD.

    vertices: (n, 3) m. faces: (m, 3) indices. threshold: 0.01 (fine) to 1 (coarse), how concave parts may be. Takes seconds for a closed mesh and
    minutes for others, once: parts are kept in the user's cache by mesh, threshold and version of CoACD. Ctrl-C stops it.

    ImportError without CoACD; ValueError: a threshold out of range, a mesh that CoACD cannot cut.
    """
    try:
        import coacd  # noqa: F401
        from platformdirs import user_cache_path
    except ImportError as error:
        raise ImportError(
            "decompose needs the modules 'coacd' and 'platformdirs': pip install 'coulomb[decompose]'"
        ) from error
    from importlib.metadata import version

    threshold = _checked(threshold, "threshold")
    vertices, faces = np.ascontiguousarray(vertices, dtype=float), np.ascontiguousarray(faces, dtype=np.int32)
    hull_distance(vertices, faces)  # refuses indices that are none, and what is flat
    key = hashlib.sha256(
        vertices.tobytes() + faces.tobytes() + f"{threshold!r} {version('coacd')}".encode()
    ).hexdigest()
    kept = user_cache_path("coulomb") / "convex_parts" / f"{key}.npz"
    if kept.is_file():
        with contextlib.suppress(Exception), np.load(kept) as parts:  # a damaged file is made again
            return [parts[f"part{k}"] for k in range(len(parts.files))]

    parts = _run_coacd(vertices, faces, threshold)
    with contextlib.suppress(OSError):  # no cache: it takes as long next time
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=kept.parent, suffix=".npz", delete=False) as file:
            np.savez_compressed(file, **{f"part{k}": part for k, part in enumerate(parts)})
        os.replace(file.name, kept)
    return parts


def _checked(threshold, name):
    if isinstance(threshold, (bool, np.bool_)) or not isinstance(threshold, numbers.Real):
        raise TypeError(f"{name}: expected a number, got {type(threshold).__name__}")
    if not 0.01 <= threshold <= 1:
        raise ValueError(f"{name}: got {threshold}, expected 0.01 (fine) to 1 (coarse)")
    return float(threshold)


_SCRIPT = """
import sys, coacd, numpy as np
coacd.set_log_level("error")
given = np.load(sys.argv[1])
parts = coacd.run_coacd(coacd.Mesh(given["vertices"], given["faces"]), threshold=float(given["threshold"]), seed=0)
np.savez(sys.argv[2], **{f"part{k}": np.asarray(part[0], dtype=float) for k, part in enumerate(parts)})
"""


def _run_coacd(vertices, faces, threshold):
    """In a process of its own, which Ctrl-C ends."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = os.path.join(folder, "mesh.npz"), os.path.join(folder, "parts.npz")
        np.savez(given, vertices=vertices, faces=faces, threshold=threshold)
        done = subprocess.run([sys.executable, "-c", _SCRIPT, given, made], capture_output=True, text=True, check=False)
        if done.returncode != 0 or not os.path.isfile(made):
            last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise ValueError(
                f"CoACD cannot cut this mesh of {len(vertices)} vertices and {len(faces)} triangles: {last}"
            )
        with np.load(made) as parts:
            found = [parts[f"part{k}"] for k in range(len(parts.files))]
    if not found:
        raise ValueError(f"CoACD found no parts of this mesh of {len(vertices)} vertices and {len(faces)} triangles")
    return found


def _measured(vertices, faces, hull, is_cut):
    """The vertices that a mesh uses, and how far its hull is from it. None: it is flat, or no mesh at all; who makes the hull says so."""
    is_used = np.zeros(len(vertices), dtype=bool)
    is_used[faces] = True
    used = vertices[is_used]
    try:
        # Where nothing is cut, nobody asks for a negligible distance.
        return used, hull_distance(vertices, faces, hull, 0.0 if is_cut else _negligible(used))
    except ValueError:
        return used, None


class Hulls:
    """What hulls of the meshes of a file add to them: measured as they are read, cut where a threshold is given."""

    def __init__(self, threshold=None):
        self.threshold = threshold
        self._labels = {}  # by what is meant, a file at a scale, or a mesh: how it is listed
        self.measured = {}  # by name, m: how far the hull is from the mesh; without a threshold 0 where that is negligible
        self.distances = {}  # the same of those that are not nearly convex and stay as their hull
        self.parts = {}  # by name, how many

    def label(self, name, key):
        """The name, with a number where something else is listed by it."""
        if key not in self._labels:
            taken = set(self._labels.values())
            count = 1
            while (label := name if count == 1 else f"{name} ({count})") in taken:
                count += 1
            self._labels[key] = label
        return self._labels[key]

    def pieces(self, name, vertices, faces, hull=None):
        """The points of the convex shapes that stand for a mesh: its own, or those of its parts."""
        used, distance = _measured(vertices, faces, hull, self.threshold is not None)
        if self.keep(name, used, distance) or self.threshold is None:
            return [used]
        parts = convex_parts(vertices, faces, self.threshold)
        self.parts[name] = len(parts)
        if len(parts) == 1:
            self.distances[name] = distance
        return parts

    def keep(self, name, used, distance):
        """Keeps how far the hull of a mesh is from it (None: it has no hull). Is the hull as good as the mesh?"""
        if distance is None:
            return True
        self.measured[name] = distance
        if is_nearly_convex(used, distance):
            return True
        if self.threshold is None:
            self.distances[name] = distance
        return False

    def stays_whole(self, name):
        """Its parts are not used after all."""
        if self.parts.pop(name, 1) > 1:
            self.distances[name] = self.measured[name]

    def deviation(self):
        """A line for Model.deviations, or None."""
        if not self.distances:
            return None
        worst = sorted(self.distances, key=self.distances.get, reverse=True)
        names = ", ".join(f"{name} {1e3 * self.distances[name]:.0f} mm" for name in worst[:3])
        more = f" and {len(worst) - 3} more" if len(worst) > 3 else ""
        return f"convex hulls in the place of {len(worst)} meshes, beyond them by up to: {names}{more}; decompose=True cuts them into parts"


def threshold_of(decompose):
    """None, or CoACD's threshold, of the argument decompose: a bool or the threshold."""
    if decompose is None or isinstance(decompose, (bool, np.bool_)):
        return THRESHOLD if decompose else None
    if not isinstance(decompose, numbers.Real):
        raise TypeError(f"decompose: expected a bool or a threshold, got {type(decompose).__name__}")
    return _checked(decompose, "decompose")


def read_file(path, what, hulls, scale=(1.0, 1.0, 1.0)):
    """The pieces of a mesh file, for a URDF's collision mesh. ValueError: `what` it is, and what is wrong."""
    vertices, faces, first = [], [], 0
    for points, triangles, _ in read_pieces(path, what):
        vertices.append(points)
        faces.append(np.asarray(triangles) + first)
        first += len(points)
    name = hulls.label(Path(path).name, (path, tuple(scale)))
    return hulls.pieces(name, np.concatenate(vertices) * scale, np.concatenate(faces))


def colliding_meshes(model):
    """Of a compiled MjModel: (geom, mesh) of the geoms that may touch something."""
    import mujoco

    paired = _paired(model)
    for geom in range(model.ngeom):
        is_mesh = model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH
        if is_mesh and (model.geom_contype[geom] or model.geom_conaffinity[geom] or geom in paired):
            yield geom, int(model.geom_dataid[geom])


def _paired(model):
    """The geoms that <pair> names."""
    return {int(g) for g in (*model.pair_geom1, *model.pair_geom2)}


def mesh_of(model, mesh):
    """Its name, vertices and faces, in the frame of the compiled mesh, and the faces of its hull (None: not known)."""
    first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
    face, faces = model.mesh_faceadr[mesh], model.mesh_facenum[mesh]
    return (
        model.mesh(mesh).name,
        np.array(model.mesh_vert[first : first + count], dtype=float),
        np.array(model.mesh_face[face : face + faces]),
        _hull_faces(model, mesh),
    )


def _hull_faces(model, mesh):
    """Out of MuJoCo's graph: counts of vertices and faces, then where each vertex's edges begin, which vertex it is, edges, and the faces."""
    first = model.mesh_graphadr[mesh]
    if first < 0:
        return None
    vertices, faces = model.mesh_graph[first : first + 2]
    begin = first + 2 + 3 * vertices + 3 * faces
    return np.array(model.mesh_graph[begin : begin + 3 * faces], dtype=float).reshape(-1, 3)


def measure(model):
    """Hulls of a compiled MjModel."""
    hulls = Hulls()
    meshes = [mesh_of(model, mesh) for mesh in sorted({mesh for _, mesh in colliding_meshes(model)})]
    with ThreadPoolExecutor() as threads:
        measured = threads.map(lambda mesh: _measured(*mesh[1:], is_cut=False), meshes)
        for (name, *_), (used, distance) in zip(meshes, measured, strict=True):
            hulls.keep(name, used, distance)
    return hulls


def cut_mjcf(path_or_xml, threshold):
    """The compiled MjModel of an MJCF file or string whose colliding meshes are cut into parts, and its Hulls.

    Parts lie where their mesh does and have its material; the mesh itself keeps its mass and touches nothing.
    """
    import mujoco

    is_xml = path_or_xml.lstrip().startswith("<")
    spec = mujoco.MjSpec.from_string(path_or_xml) if is_xml else mujoco.MjSpec.from_file(path_or_xml)
    model = spec.compile()
    hulls, parts = Hulls(threshold), _MjcfParts(spec, model)
    paired = _paired(model)
    chosen = sorted(colliding_meshes(model))
    pieces, bar = {}, Bar(unit="mesh")
    for k, (geom, mesh) in enumerate(chosen):
        if mesh not in pieces:
            pieces[mesh] = hulls.pieces(*mesh_of(model, mesh))
            bar(k + 1, len(chosen))
        if len(pieces[mesh]) < 2:
            continue

        # What the loader refuses it still has to see.
        refused = any(
            np.any(getattr(model, f"geom_{what}", np.zeros(model.ngeom))[geom]) for what in ("surfacevel", "adhesion")
        )
        if geom in paired:
            hulls.stays_whole(model.mesh(mesh).name)
        elif not refused:
            parts.put(geom, mesh, pieces[mesh])
    bar.close()
    try:
        return spec.compile(), hulls
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise ValueError(
            f"MJCF {'string' if is_xml else repr(path_or_xml)}: its meshes cut into parts: {error}"
        ) from error


class _MjcfParts:
    """Puts parts of meshes into an MjSpec, whatever its defaults say and its names are."""

    def __init__(self, spec, model):
        self._spec, self._model = spec, model
        self._geoms = {g.id: g for g in spec.geoms}
        self._taken = {"mesh": {m.name for m in spec.meshes}, "geom": {g.name for g in spec.geoms}}
        self._meshes = {}  # by mesh: names of its parts

    def _free(self, kind, name):
        while name in self._taken[kind]:
            name += "_"
        self._taken[kind].add(name)
        return name

    def _meshes_of(self, mesh, pieces):
        import mujoco

        if mesh not in self._meshes:
            self._meshes[mesh] = []
            for i, points in enumerate(pieces):
                name = self._free("mesh", f"{self._model.mesh(mesh).name}_part{i}")
                self._spec.add_mesh(
                    name=name,
                    uservert=points.ravel(),
                    scale=[1, 1, 1],
                    refpos=[0, 0, 0],
                    refquat=[1, 0, 0, 0],
                    inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX,
                    maxhullvert=-1,
                )
                self._meshes[mesh].append(name)
        return self._meshes[mesh]

    def put(self, geom, mesh, pieces):
        """In the place of a geom, which then touches nothing and keeps its mass."""
        import mujoco

        whole = self._geoms[geom]
        for i, name in enumerate(self._meshes_of(mesh, pieces)):
            part = whole.parent.add_geom(
                name=self._free("geom", f"{whole.name or f'geom{geom}'}_part{i}"),
                type=mujoco.mjtGeom.mjGEOM_MESH,
                meshname=name,
                pos=self._model.geom_pos[geom],
                quat=self._model.geom_quat[geom],
                mass=0,
                group=3,
            )
            part.alt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
            for value in "contype conaffinity condim friction priority solref solimp solmix margin gap".split():
                setattr(part, value, getattr(whole, value))
        whole.contype = whole.conaffinity = 0
