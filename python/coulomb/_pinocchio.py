"""Objects of the ``pin`` package as a description of a robot, which Scene takes. Pinocchio is needed here alone, by who has it."""

from __future__ import annotations

import numpy as np

from . import _core

# Pinocchio's joints with one degree of freedom along an axis of the frame: JointModelRX, JointModelRUBZ, ...
AXES = {"X": (1, 0, 0), "Y": (0, 1, 0), "Z": (0, 0, 1)}
ALIGNED = {"R": "hinge", "P": "slide", "RUB": "continuous"}
ALONG_AN_AXIS = {
    "RevoluteUnaligned": "hinge",
    "PrismaticUnaligned": "slide",
    "RevoluteUnboundedUnaligned": "continuous",
}
SEVERAL_DOFS = {
    "FreeFlyer": "free",
    "Spherical": "ball",
    "SphericalZYX": "ball_zyx",
    "Translation": "translation",
    "Planar": "planar",
}


def describe(model, geometry_model):
    """The description of a ``pin.Model`` and its collision ``pin.GeometryModel`` (or None).

    TypeError: what is neither. ValueError: names the joint or geometry that is not supported.
    """
    import pinocchio

    for name, thing, kind in (("model", model, "Model"), ("geometry_model", geometry_model, "GeometryModel")):
        if not isinstance(thing, getattr(pinocchio, kind)) and (name == "model" or thing is not None):
            raise TypeError(f"{name}: expected a pinocchio.{kind}, got {type(thing).__name__}")

    source = f"pin model '{model.name}'"
    robot = _core._RobotDescription(model.name, source, model.nq, model.nv)
    base = model.inertias[0]
    robot.set_base(base.mass, base.lever, base.inertia)
    for j in range(1, model.njoints):
        _add_joint(robot, model, j, source)
    for frame in model.frames:
        if frame.name == "universe" and frame.parentJoint == 0:
            continue  # the world, which has its name already
        is_link = frame.type == pinocchio.FrameType.BODY
        place = frame.placement
        robot.add_frame(frame.name, frame.parentJoint - 1, place.translation, place.rotation, is_link)
    if geometry_model is not None:
        _add_shapes(robot, model, geometry_model, source)
    return robot


def _kind(joint, what):
    """(type, axis) of a joint here."""
    name = joint.shortname().removeprefix("JointModel")
    if name in SEVERAL_DOFS:
        return SEVERAL_DOFS[name], AXES["Z"]
    if name in ALONG_AN_AXIS:
        return ALONG_AN_AXIS[name], joint.extract().axis
    if name[:-1] in ALIGNED and name[-1] in AXES:
        return ALIGNED[name[:-1]], AXES[name[-1]]
    raise ValueError(f"{what}: joint type {joint.shortname()} is not supported")


def _add_joint(robot, model, j, source):
    """Joint number j of the model, with what moves with it."""
    joint, place, inertia = model.joints[j], model.jointPlacements[j], model.inertias[j]
    kind, axis = _kind(joint, f"{source}: joint '{model.names[j]}'")
    robot.add_joint(
        model.names[j],
        kind,
        model.parents[j] - 1,
        place.translation,
        place.rotation,
        axis,
        inertia.mass,
        inertia.lever,
        inertia.inertia,
        joint.idx_q,
        joint.idx_v,
    )

    # Limits of joints whose coordinates are as many as their velocities, and are numbers by themselves.
    v = slice(joint.idx_v, joint.idx_v + joint.nv)
    if joint.nq == joint.nv:
        q = slice(joint.idx_q, joint.idx_q + joint.nq)
        robot.set_limits(model.lowerPositionLimit[q], model.upperPositionLimit[q])
    robot.set_losses(model.damping[v], model.armature[v], model.upperDryFrictionLimit[v], model.upperEffortLimit[v])


def _add_shapes(robot, model, geometry_model, source):
    frames = [k for k, f in enumerate(model.frames) if not (f.name == "universe" and f.parentJoint == 0)]
    number = {frame: i for i, frame in enumerate(frames)}
    for thing in geometry_model.geometryObjects:
        shape = thing.geometry
        what = f"{source}: geometry '{thing.name}'"
        radius = shape.getSweptSphereRadius() if hasattr(shape, "getSweptSphereRadius") else 0
        if radius:
            raise ValueError(f"{what}: a swept-sphere radius ({radius:g}) is not supported")
        kind, size, points = _shape(shape, what)
        place = thing.placement
        robot.add_shape(
            thing.name,
            thing.parentJoint - 1,
            number.get(thing.parentFrame, -1),
            place.translation,
            place.rotation,
            kind,
            size,
            points,
            not thing.disableCollision,
        )
        if kind == "half_space":
            robot.turn_last_shape(shape.n, shape.d)
    for pair in geometry_model.collisionPairs:
        robot.add_pair(pair.first, pair.second)


def _shape(shape, what):
    """(type, size (3,), points (n, 3)) of one of Coal's shapes; meshes and convex shapes by their points."""
    kind = type(shape).__name__
    none = np.zeros((0, 3))
    if kind == "Halfspace":
        return "half_space", (0, 0, 0), none
    if kind == "Sphere":
        return "sphere", (shape.radius, 0, 0), none
    if kind == "Box":
        return "box", shape.halfSide, none
    if kind in ("Capsule", "Cylinder"):
        return kind.lower(), (shape.radius, shape.halfLength, 0), none
    if kind == "Ellipsoid":
        return "ellipsoid", shape.radii, none
    if hasattr(shape, "vertices"):
        return "mesh", (0, 0, 0), np.asarray(shape.vertices()).reshape(-1, 3)
    if hasattr(shape, "points"):
        return "mesh", (0, 0, 0), np.asarray(shape.points()).reshape(-1, 3)
    raise ValueError(f"{what}: this shape cannot collide; use primitives or a convex decomposition")
