"""A Model as an MJCF string: to run the same robot in MuJoCo, for comparisons of speed. Primitives, joints, motors and limits; what MuJoCo
does differently (soft contact) stays MuJoCo's. Rotors' inertia, dry friction and damping included; meshes by their vertices."""

from __future__ import annotations

import numpy as np

_GEOM = {
    "half_space": "plane",
    "sphere": "sphere",
    "capsule": "capsule",
    "cylinder": "cylinder",
    "box": "box",
    "ellipsoid": "ellipsoid",
    "mesh": "mesh",
    "surface": "hfield",
}


def _numbers(values):
    return " ".join(f"{float(x):.17g}" for x in np.atleast_1d(values))


def _geom(model, index):
    kind = model.geometry_types[index]
    size = "1 1 0.1" if kind == "half_space" else _numbers(model.geometry_size[index])
    size = {"mesh": f'mesh="m{index}"', "surface": f'hfield="h{index}"'}.get(kind, f'size="{size}"')
    lift = np.array([0.0, 0.0, _lowest(model, index)]) if kind == "surface" else np.zeros(3)
    return (
        f'<geom name="g{index}" type="{_GEOM[kind]}" {size} pos="{_numbers(model.geometry_pos[index] + _turned(model.geometry_quat[index], lift))}" quat="{_numbers(model.geometry_quat[index])}" '
        f"{_friction(model, index)}/>"
    )


def _friction(model, index):
    """Of condim 4 or 6 if all pairs of the geometry have torsional or rolling friction: then each pair has the rows that it has here."""
    pairs = np.flatnonzero((model.pair_a == index) | (model.pair_b == index))
    rows = np.where(model.pair_rolling_friction > 0, 6, np.where(model.pair_torsional_friction > 0, 4, 3))[pairs]
    kinds = (model.geometry_friction, model.geometry_torsional_friction, model.geometry_rolling_friction)
    condim = "" if not rows.size or rows.min() == 3 else f' condim="{rows.min()}"'
    return f'friction="{_numbers([values[index] for values in kinds])}"{condim}'


def _turned(quaternion, vector):
    w, axis = quaternion[0], quaternion[1:]
    return vector + 2 * np.cross(axis, np.cross(axis, vector) + w * vector)


def _lowest(model, index):
    surface = model.geometry_mesh[index]
    rows, columns = model.heightfield_shape(surface)
    return float(model.surface_vertices(surface)[: rows * columns, 2].min())


def _field(model, index):
    """A height field: MuJoCo's heights begin at 0, and its frame is as much higher here."""
    surface = model.geometry_mesh[index]
    rows, columns = model.heightfield_shape(surface)
    if rows == 0:
        raise ValueError(
            f"to_mjcf: geometry {model.geometry_names[index]!r} is a triangle mesh; MuJoCo has height fields and convex shapes only"
        )
    vertices = np.asarray(model.surface_vertices(surface))
    heights = vertices[: rows * columns, 2] - _lowest(model, index)
    base = _lowest(model, index) - vertices[-1, 2]
    size = [vertices[:, 0].max(), vertices[:, 1].max(), max(heights.max(), 1e-9), base]
    # MuJoCo reads images from the top row down.
    shares = (heights / size[2]).reshape(rows, columns)[::-1]
    return f'<hfield name="h{index}" nrow="{rows}" ncol="{columns}" size="{_numbers(size)}" elevation="{_numbers(shares.ravel())}"/>'


def _joint(model, joint):
    kind, dof = model.joint_types[joint], model.joint_v[joint]
    if kind == "free":
        return f'<freejoint name="j{joint}"/>'
    limits = ""
    if model.joint_limited[joint]:
        limits = f'limited="true" range="{_numbers([model.joint_lower[joint], model.joint_upper[joint]])}"'
    axis = "" if kind == "ball" else f'axis="{_numbers(model.joint_axis[joint])}"'
    return (
        f'<joint name="j{joint}" type="{kind}" pos="{_numbers(model.joint_pos[joint])}" {axis} {limits} '
        f'damping="{_numbers(model.dof_damping[dof])}" armature="{_numbers(model.dof_armature[dof])}" '
        f'frictionloss="{_numbers(model.dof_dry_friction[dof])}" stiffness="{_numbers(model.joint_stiffness[joint])}"/>'
    )


def _body(model, body, children):
    xx, xy, yy, xz, yz, zz = model.body_inertia[body]
    mocap = ' mocap="true"' if body in model.mocap_bodies else ""
    lines = [
        f'<body name="b{body}" pos="{_numbers(model.body_pos[body])}" quat="{_numbers(model.body_quat[body])}" '
        f'gravcomp="{_numbers(model.body_gravity_compensation[body])}"{mocap}>'
    ]
    if model.body_mass[body] > 0:
        lines.append(
            f'<inertial pos="{_numbers(model.body_com[body])}" mass="{_numbers(model.body_mass[body])}" '
            f'fullinertia="{_numbers([xx, yy, zz, xy, xz, yz])}"/>'
        )
    lines += [_joint(model, joint) for joint in np.flatnonzero(model.joint_body == body)]
    lines += [_geom(model, index) for index in np.flatnonzero(model.geometry_body == body)]
    lines += _actuator_marks(model, body) + _path_marks(model, body) + _ellipsoids(model, body)
    lines += [_body(model, child, children) for child in children[body]]
    return "\n".join([*lines, "</body>"])


def _actuator_marks(model, body):
    """Sites at which actuators push a body, or off which they push another one."""
    lines = []
    for i, a in enumerate(model.actuators):
        if a.body == body:
            lines.append(f'<site name="a{i}" pos="{_numbers(a.site_pos)}" quat="{_numbers(a.site_quat)}"/>')
        if a.reference_body == body:
            lines.append(f'<site name="a{i}r" pos="{_numbers(a.reference_pos)}" quat="{_numbers(a.reference_quat)}"/>')
    return lines


def _ellipsoids(model, body):
    """What the medium sees in place of a body: geoms without mass that nothing touches. Their added mass is that of their semi-axes."""
    for e in model.body_ellipsoids(body):
        if e.scale != 1:
            raise ValueError(
                f"to_mjcf: an ellipsoid of body {model.body_names[body]!r} has scale {e.scale}; MJCF files can only say 0 or 1"
            )
    return [
        f'<geom type="ellipsoid" size="{_numbers(e.semiaxes)}" pos="{_numbers(e.pos)}" quat="{_numbers(e.quat)}" mass="0" '
        f'contype="0" conaffinity="0" fluidshape="ellipsoid" fluidcoef="{_numbers(e.coefficients)}"/>'
        for e in model.body_ellipsoids(body)
    ]


def _path_marks(model, body):
    """What paths of tendons need on a body: points, obstacles that nothing touches, points that say on which side."""
    lines = []
    for t, tendon in enumerate(model.tendons):
        for k, point in enumerate(tendon.path):
            if point.kind in ("site", "slider") and point.body == body:
                lines.append(f'<site name="t{t}_{k}" pos="{_numbers(point.pos)}" quat="{_numbers(point.quat)}"/>')
            if point.kind in ("sphere", "cylinder") and point.body == body:
                size = [point.radius] if point.kind == "sphere" else [point.radius, 1]
                lines.append(
                    f'<geom name="t{t}_{k}" type="{point.kind}" size="{_numbers(size)}" pos="{_numbers(point.pos)}" quat="{_numbers(point.quat)}" '
                    'mass="0" contype="0" conaffinity="0"/>'
                )
            if point.side_body == body:
                lines.append(f'<site name="t{t}_{k}s" pos="{_numbers(point.side_pos)}"/>')
    return lines


def _is_crank(tendon):
    return any(point.kind == "slider" for point in tendon.path)


def _muscle_law(actuator):
    """Gain, bias and activation of a muscle, in MJCF."""
    m = actuator.muscle
    curves = _numbers([*m.range, m.peak_force, 1, m.shortest, m.longest, m.fastest, m.passive, m.stretched])
    law = f'lengthrange="{_numbers(m.length_range)}"'
    law += f' gaintype="muscle" gainprm="{curves}"' if m.pulls else f' gainprm="{_numbers(actuator.gain)}"'
    if m.resists:
        return law + f' biastype="muscle" biasprm="{curves}"'
    return law + (f' biastype="affine" biasprm="{_numbers(actuator.bias)}"' if actuator.bias.any() else "")


def _drives(i, actuator, model):
    """What an actuator acts on, in MJCF."""
    if actuator.joint >= 0:
        return f'joint="j{actuator.joint}"'
    if actuator.body >= 0:
        return f'site="a{i}"' + (f' refsite="a{i}r"' if actuator.reference_body >= 0 else "")
    t = actuator.tendon
    if _is_crank(model.tendons[t]):
        return f'cranksite="t{t}_0" slidersite="t{t}_1" cranklength="{model.tendons[t].path[1].radius:.17g}"'
    return f'tendon="t{t}"'


def _path(t, tendon):
    elements = []
    for k, point in enumerate(tendon.path):
        if point.kind == "pulley":
            elements.append(f'<pulley divisor="{point.divisor:.17g}"/>')
        elif point.kind == "site":
            elements.append(f'<site site="t{t}_{k}"/>')
        else:
            side = f' sidesite="t{t}_{k}s"' if point.side_body >= 0 else ""
            elements.append(f'<geom geom="t{t}_{k}"{side}/>')
    return "".join(elements)


def to_mjcf(model, timestep=None):
    """An MJCF string that describes the Model to MuJoCo; bodies that never touch here do not there. Equalities are not written, nor
    is how contacts give way (contact_stiffness, contact_dashpot, compliance) or bounce: MuJoCo's own contact takes their place.

    q, v and u mean the same in both; names are b, j, g, m, t and the number here of the body, joint, geometry or its mesh,
    tendon."""
    children = {body: [] for body in range(model.num_bodies)}
    for body in range(1, model.num_bodies):
        children[int(model.body_parent[body])].append(body)
    touching = {
        tuple(sorted((int(model.geometry_body[a]), int(model.geometry_body[b]))))
        for a, b in zip(model.pair_a, model.pair_b)
    }
    excludes = [
        f'<exclude body1="b{a}" body2="b{b}"/>'
        for a in range(1, model.num_bodies)
        for b in range(a + 1, model.num_bodies)
        if (a, b) not in touching
    ]
    motors = []
    for i, a in enumerate(model.actuators):
        limits = f'ctrllimited="true" ctrlrange="{_numbers(a.control_range)}"' if a.control_limited else ""
        if a.force_limited:
            limits += f' forcelimited="true" forcerange="{_numbers(a.force_range)}"'
        muscle = a.muscle.pulls or a.muscle.resists
        law = (
            _muscle_law(a)
            if muscle
            else f'gaintype="{"affine" if a.gain[1:].any() else "fixed"}" gainprm="{_numbers(a.gain)}"'
        )
        if a.bias.any() and not muscle:
            law += f' biastype="affine" biasprm="{_numbers(a.bias)}"'
        if a.activation != "none":
            m = a.muscle
            times = (
                [m.activation_time, m.deactivation_time, m.smoothing]
                if a.activation == "muscle"
                else [a.time_constant or 1]
            )
            law += f' dyntype="{a.activation.replace("_", "")}" dynprm="{_numbers(times)}" actearly="{str(a.acts_early).lower()}"'
            if a.activation_limited:
                law += f' actlimited="true" actrange="{_numbers(a.activation_range)}"'
        motors.append(f'<general {_drives(i, a, model)} gear="{_numbers(a.gear)}" {law} {limits}/>')
    tendons = []
    for i, t in enumerate(model.tendons):
        if _is_crank(t):
            continue
        limits = f'limited="true" range="{_numbers([t.lower, t.upper])}"' if t.limited else ""
        limits += (
            f' stiffness="{t.stiffness:.17g}" springlength="{_numbers([t.spring_lower, t.spring_upper])}" damping="{t.damping:.17g}" '
            f'frictionloss="{t.dry_friction:.17g}" armature="{t.armature:.17g}"'
        )
        if t.force_limited:
            limits += f' actuatorfrclimited="true" actuatorfrcrange="{_numbers(t.force_range)}"'
        if t.path:
            tendons.append(f'<spatial name="t{i}" {limits}>{_path(i, t)}</spatial>')
            continue
        joints = "".join(f'<joint joint="j{j}" coef="{c:.17g}"/>' for j, c in zip(t.joints, t.coefficients))
        tendons.append(f'<fixed name="t{i}" {limits}>{joints}</fixed>')
    meshes = [
        f'<mesh name="m{i}" inertia="convex" vertex="{_numbers(model.mesh_vertices(m).ravel())}"/>'
        for i, m in enumerate(model.geometry_mesh)
        if model.geometry_types[i] == "mesh"
    ]
    meshes += [_field(model, i) for i, kind in enumerate(model.geometry_types) if kind == "surface"]
    world = [_geom(model, index) for index in np.flatnonzero(model.geometry_body == 0)]
    world += _actuator_marks(model, 0) + _path_marks(model, 0)
    world += [_body(model, child, children) for child in children[0]]
    newline = "\n"
    return f"""<mujoco>
<compiler angle="radian" autolimits="false" balanceinertia="false" boundmass="0" boundinertia="0"/>
<option timestep="{timestep or model.timestep:.17g}" gravity="{_numbers(model.gravity)}" density="{model.density:.17g}" viscosity="{model.viscosity:.17g}" wind="{_numbers(model.wind)}"/>
<asset>
{newline.join(meshes)}
</asset>
<worldbody>
{newline.join(world)}
</worldbody>
<contact>
{newline.join(excludes)}
</contact>
<tendon>
{newline.join(tendons)}
</tendon>
<actuator>
{newline.join(motors)}
</actuator>
</mujoco>"""
