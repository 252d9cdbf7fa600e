"""Every URDF of example-robot-data means what Pinocchio and Coal read in it: bodies, inertias, joints, places of links and shapes.

What Coulomb refuses is listed, with its reason: a robot that joins or leaves the list is looked at.
"""

import functools
import pathlib
import re

import numpy as np
import pinocchio as pin
import pytest

import coulomb
from coulomb.demo import robot_path
from tests.reference.test_pinocchio import close, compare, random_states

FOLDER = pathlib.Path(robot_path("go1_description/urdf/go1.urdf")[0]).parents[2]
FILES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.urdf"))
PACKAGES = robot_path("go1_description/urdf/go1.urdf")[1]

NOTHING_TO_MOVE = "mass or inertia that it moves is 0"
NO_INERTIA = "inertia"
REFUSED = {
    "alex_description/urdf/alex_psyonic_hands.urdf": "<mimic> of joint",
    "bluevolta_description/urdf/bluevolta_bravo7_gripper.urdf": NOTHING_TO_MOVE,
    "bravo7_description/urdf/bravo7_gripper.urdf": NOTHING_TO_MOVE,
    "falcon_description/urdf/falcon.urdf": "joint 'top_pr",
    "falcon_description/urdf/falcon_bravo7_gripper.urdf": NOTHING_TO_MOVE,
    "romeo_description/urdf/romeo.urdf": NOTHING_TO_MOVE,
    "romeo_description/urdf/romeo_laas_small.urdf": NO_INERTIA,
    "romeo_description/urdf/romeo_small.urdf": NO_INERTIA,
    "ur_description/urdf/ur3.urdf": "has no link",
}


@functools.lru_cache(maxsize=1)
def text_of(file):
    """Without what can be seen or touched: files of meshes take minutes."""
    text = (FOLDER / file).read_text(errors="replace")
    for tag in ("collision", "visual"):
        text = re.sub(rf"<{tag}\b[^>]*/>|<{tag}\b.*?</{tag}>", "", text, flags=re.DOTALL)
    return text


def test_there_are_robots():
    assert len(FILES) >= 70 and REFUSED.keys() <= set(FILES)


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("file", FILES)
def test_equation_of_motion(file, floating):
    scene = coulomb.Scene()
    if file in REFUSED:
        with pytest.raises(ValueError, match=re.escape(REFUSED[file])):
            scene.add_urdf(text_of(file), floating_base=floating)
            scene.build()
        return
    scene.add_urdf(text_of(file), floating_base=floating)
    model = scene.build()
    roots = [pin.JointModelFreeFlyer()] if floating else []
    theirs = pin.buildModelFromXML(text_of(file), *roots)
    assert model.nv == theirs.nv
    if model.nv > 0:
        compare(theirs, model, tolerance=1e-12)
    links(theirs, model)


def links(theirs, model):
    """Places of all links, bodies or sites, in the world."""
    data = theirs.createData()
    for q, v, _ in random_states(model, seed=3, n=2):
        pin.framesForwardKinematics(theirs, data, model.to_pinocchio(q, v)[0])
        positions, rotations = model.body_placements(q)
        sites = {site.name: site for site in model.sites}
        for frame, place in zip(theirs.frames, data.oMf):
            if frame.type != pin.FrameType.BODY or frame.name == "universe":
                continue
            if frame.name in sites:
                site = sites[frame.name]
                R = rotations[site.body]
                close(positions[site.body] + R @ site.position, place.translation, 1e-12)
            else:
                body = model.body_names.index({"world": "world_2"}.get(frame.name, frame.name))
                close(positions[body], place.translation, 1e-12)
                close(rotations[body], place.rotation, 1e-12)


@pytest.mark.parametrize(
    "file",
    [
        "go1_description/urdf/go1.urdf",  # primitives
        "panda_description/urdf/panda_collision.urdf",
        "simple_humanoid_description/urdf/simple_humanoid.urdf",  # STL; a cylinder to be taken for a capsule
        "kinova_description/robots/kinova.urdf",  # DAE
        "anymal_b_simple_description/robots/anymal.urdf",
        "solo_description/robots/solo12.urdf",  # STL
        "double_pendulum_description/urdf/double_pendulum.urdf",
    ],
)
def test_shapes(file):
    """Kinds, sizes and places; of meshes, the box around them, which their files give to seven digits."""
    path = str(FOLDER / file)
    scene = coulomb.Scene()
    scene.add_urdf(path, package_dirs=[PACKAGES])
    model = scene.build()
    theirs, geometry = pin.buildModelsFromUrdf(path, str(PACKAGES), geometry_types=pin.GeometryType.COLLISION)
    assert model.num_geometries == len(geometry.geometryObjects) > 0
    q, v = model.neutral()
    data, places = theirs.createData(), geometry.createData()
    pin.updateGeometryPlacements(theirs, data, geometry, places, model.to_pinocchio(q, v)[0])
    positions, rotations = model.geometry_placements(q)
    for g, thing in enumerate(geometry.geometryObjects):
        at = model.geometry_names.index(thing.name)
        close(positions[at], places.oMg[g].translation, 1e-12)
        close(rotations[at], places.oMg[g].rotation, 1e-12)
        kind, size = model.geometry_types[at], model.geometry_size[at]
        shape = thing.geometry
        if kind == "mesh":
            vertices, points = (
                model.mesh_vertices(int(model.geometry_mesh[at])),
                np.asarray(shape.vertices() if hasattr(shape, "vertices") else shape.points()),
            )
            extent = np.ptp(points, axis=0).max()
            np.testing.assert_allclose(vertices.min(0), points.min(0), rtol=0, atol=1e-6 * extent)
            np.testing.assert_allclose(vertices.max(0), points.max(0), rtol=0, atol=1e-6 * extent)
        elif kind == "box":
            assert np.array_equal(size, shape.halfSide)
        elif kind == "sphere":
            assert size[0] == shape.radius
        else:
            assert kind == type(shape).__name__.lower() and tuple(size[:2]) == (shape.radius, shape.halfLength)
