"""Distance, normal and point of contacts against Coal (GJK and EPA) and, where MuJoCo's routine is exact, against MuJoCo."""

import coal
import mujoco
import numpy as np
import pytest
from pairs import HULL, SIZES, contacts, deepest, poses, two_bodies

KINDS = list(SIZES)
PAIRS = [(a, b) for i, a in enumerate(KINDS) for b in [*KINDS[: i + 1], "half_space"]]


def shape(kind):
    size = SIZES.get(kind)
    if kind == "half_space":
        return coal.Halfspace(np.array([0.0, 0, 1]), 0.0)
    if kind == "mesh":
        points = coal.StdVec_Vec3s()
        for p in HULL:
            points.append(p)
        return coal.Convex.convexHull(points, True, "Qt")
    return {
        "sphere": coal.Sphere,
        "capsule": coal.Capsule,
        "cylinder": coal.Cylinder,
        "box": coal.Box,
        "ellipsoid": coal.Ellipsoid,
    }[kind](*size)


class Coal:
    """Signed distance of the two shapes at a configuration."""

    def __init__(self, model, kinds):
        self.model, self.shapes = model, [shape(k) for k in kinds]
        self.request = coal.DistanceRequest()
        self.request.enable_signed_distance = True
        self.request.gjk_tolerance = self.request.epa_tolerance = 1e-10
        self.request.gjk_max_iterations = self.request.epa_max_iterations = 1000

    def __call__(self, q):
        positions, rotations = self.model.geometry_placements(q)
        ids = [self.model.geometry_names.index(name) for name in "ab"]
        places = [coal.Transform3s(rotations[i], positions[i]) for i in ids]
        result = coal.DistanceResult()
        self.distance = coal.distance(self.shapes[0], places[0], self.shapes[1], places[1], self.request, result)
        self.normal = -result.normal  # Coal's is from the first to the second
        self.points = result.getNearestPoint1(), result.getNearestPoint2()
        return self.distance


FLAT = {"box", "mesh"}
EXACT = {"sphere", "capsule", "half_space"} | FLAT


def tolerances(a, b):
    """(m, rad, m). Coal stops at a gap of 1e-10 relative. Where it expands a polytope on a curved surface, a distance that is off by e
    leaves the normal off by about sqrt(2 e / R): 5e-4 for e = 1e-8, R = 0.1 m; between faces, edges and balls there is no such loss."""
    return (
        (1e-9, 1e-8, 1e-8)
        if {a, b} <= EXACT or b == "half_space" or "sphere" in (a, b) and "ellipsoid" not in (a, b)
        else (1e-8, 2e-3, 5e-6)
    )


def face_normals(kind, rotation):
    if kind == "box":
        return np.concatenate([rotation.T, -rotation.T])
    hull = shape(kind)
    corners = [
        np.array([hull.point(t[i]) for i in range(3)]) for t in (hull.polygons(k) for k in range(hull.num_polygons))
    ]
    normals = np.array([np.cross(c[1] - c[0], c[2] - c[0]) for c in corners])
    return normals / np.linalg.norm(normals, axis=1)[:, None] @ rotation.T


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=["-".join(p) for p in PAIRS])
def test_deepest_contact(a, b):
    model = two_bodies(a, b)
    reference = Coal(model, (a, b))
    near, turned, along = tolerances(a, b)
    for q in poses(model, reference, 12, seed=1):
        reference(q)
        distance, normal, point, count = deepest(model, q)
        angle = np.linalg.norm(normal - reference.normal)
        if angle > turned and {a, b} <= FLAT:
            # nearly parallel to a face: that face carries the normal, by choice (contact_motion would blow up like 1 / angle)
            _, rotations = model.geometry_placements(q)
            faces = np.concatenate(
                [face_normals(k, rotations[model.geometry_names.index(name)]) for k, name in ((a, "a"), (b, "b"))]
            )
            assert angle < 0.0505
            assert np.min(np.linalg.norm(np.abs(faces @ normal)[:, None] - 1, axis=1)) < 1e-9
            near, along = abs(reference.distance) * angle**2, 3 * abs(reference.distance) * angle
        else:
            assert angle < turned
            near, _, along = tolerances(a, b)
        assert abs(distance - reference.distance) < near
        assert np.linalg.norm(point - sum(reference.points) / 2) < along


GEOM = {
    "sphere": 'type="sphere" size="0.1"',
    "capsule": 'type="capsule" size="0.06 0.1"',
    "cylinder": 'type="cylinder" size="0.08 0.11"',
    "box": 'type="box" size="0.1 0.075 0.125"',
    "ellipsoid": 'type="ellipsoid" size="0.12 0.08 0.1"',
    "half_space": 'type="plane" size="1 1 1"',
}
PRIMITIVE = [
    ("sphere", "sphere"),
    ("capsule", "sphere"),
    ("capsule", "capsule"),
    ("box", "sphere"),
    ("cylinder", "sphere"),
    *((kind, "half_space") for kind in KINDS if kind != "mesh"),
]


class Mujoco:
    """The same from MuJoCo, whose routines for these pairs are closed formulas."""

    def __init__(self, a, b):
        body = '<body><freejoint/><geom name="{}" {}/></body>'
        other = f'<geom name="b" {GEOM[b]}/>' if b == "half_space" else body.format("b", GEOM[b])
        self.model = mujoco.MjModel.from_xml_string(
            f"<mujoco><worldbody>{body.format('a', GEOM[a])}{other}</worldbody></mujoco>"
        )
        self.data = mujoco.MjData(self.model)
        self.ids = [self.model.geom(name).id for name in "ab"]

    def __call__(self, q):
        self.data.qpos[:] = q
        mujoco.mj_kinematics(self.model, self.data)
        line = np.zeros(6)
        distance = mujoco.mj_geomDistance(self.model, self.data, *self.ids, 1.0, line)
        self.point = (line[:3] + line[3:]) / 2
        return distance


@pytest.mark.parametrize(("a", "b"), PRIMITIVE, ids=["-".join(p) for p in PRIMITIVE])
def test_distance_and_point_of_mujoco(a, b):
    model = two_bodies(a, b)
    reference = Mujoco(a, b)
    for q in poses(model, reference, 12, seed=2):
        wanted = reference(q)
        distance, _, point, _ = deepest(model, q)
        assert abs(distance - wanted) < 1e-12
        assert np.linalg.norm(point - reference.point) < 1e-8


def test_nothing_is_reported_beyond_the_margin():
    model = two_bodies("box", "mesh")
    reference = Coal(model, ("box", "mesh"))
    for q in poses(model, reference, 20, seed=3):
        assert (len(contacts(model, q)) > 0) == (reference(q) < 0.01)
    q, _ = model.neutral()
    q[0] = 1.0
    assert contacts(model, q) == []
