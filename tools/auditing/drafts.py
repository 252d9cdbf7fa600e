"""A scene described in the axes of the world, so that it can be built turned, mirrored, moved, in another order or beside others.

All poses, axes and anchors are those of the neutral pose, in world axes. A View is an isometry of the whole; `build` writes MJCF for it, and `motion`
reads states back into the axes of the description. Physics cannot tell views apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

import coulomb

IDENTITY = (1.0, 0.0, 0.0, 0.0)


def multiply(a, b):
    """Product of two quaternions (w, x, y, z)."""
    w, x = a[0], np.asarray(a[1:])
    s, y = b[0], np.asarray(b[1:])
    return np.array([w * s - x @ y, *(w * y + s * x + np.cross(x, y))])


def conjugate(q):
    return np.array([q[0], -q[1], -q[2], -q[3]])


def turn(quaternion, vector):
    """A vector rotated by a unit quaternion."""
    w, x = quaternion[0], np.asarray(quaternion[1:])
    t = 2 * np.cross(x, vector)
    return np.asarray(vector) + w * t + np.cross(x, t)


def about(axis, angle):
    """The quaternion of a rotation."""
    axis = np.asarray(axis, dtype=float)
    return np.array([math.cos(angle / 2), *(math.sin(angle / 2) * axis / np.linalg.norm(axis))])


def any_quaternion(random):
    q = random.normal(size=4)
    return q / np.linalg.norm(q)


@dataclass
class View:
    """An isometry: mirrored at x = 0 if asked, then turned, then moved. reverse: bodies in the reverse order."""

    mirror: bool = False
    quaternion: tuple = IDENTITY
    shift: tuple = (0.0, 0.0, 0.0)
    reverse: bool = False

    def vector(self, x):
        x = np.asarray(x, dtype=float)
        return turn(self.quaternion, x * [-1, 1, 1] if self.mirror else x)

    def axial(self, x):
        """Vectors of rotation: a mirror turns those about."""
        return -self.vector(x) if self.mirror else self.vector(x)

    def point(self, x):
        return self.vector(x) + self.shift

    def attitude(self, q):
        return multiply(self.quaternion, [q[0], q[1], -q[2], -q[3]] if self.mirror else q)

    def spin(self, w):
        """Of an angular velocity in the axes of a body."""
        return np.asarray(w, dtype=float) * ([1, -1, -1] if self.mirror else 1)

    def back(self, x):
        """The inverse of vector."""
        x = turn(conjugate(self.quaternion), x)
        return x * [-1, 1, 1] if self.mirror else x

    def point_back(self, x):
        return self.back(np.asarray(x) - self.shift)

    def attitude_back(self, q):
        q = multiply(conjugate(self.quaternion), q)
        return np.array([q[0], q[1], -q[2], -q[3]]) if self.mirror else q


@dataclass
class Shape:
    """size: as MJCF has it (radius and half-length, half-sides, semi-axes); of a mesh its vertices (n, 3); of a height field (half sides x and y, the
    largest height, shares of it (rows, columns), whose least is 0 and largest 1, and whose cells are flat, so that a mirror has the same triangles).
    touches: takes part in contact."""

    kind: str
    size: tuple
    position: tuple = (0.0, 0.0, 0.0)
    quaternion: tuple = IDENTITY
    mass: float = 1.0
    friction: float = 0.5
    touches: bool = True
    name: str = ""
    surface: dict = field(default_factory=dict)  # arguments of Scene.set_contact


@dataclass
class Joint:
    """dof (hinge, slide): q and v of the start are the neutral pose and `speed`. limits: of the coordinate, or None."""

    kind: str
    axis: tuple = (0.0, 0.0, 1.0)
    anchor: tuple = (0.0, 0.0, 0.0)
    limits: tuple | None = None
    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0
    armature: float = 0.0
    dry_friction: float = 0.0
    start: float = 0.0
    speed: float = 0.0
    name: str = ""


@dataclass
class Body:
    """A link; joint None: welded to its parent. Of a free body: velocity, linear in world axes, angular in its own, and shift, m in world axes by which
    it starts beside the neutral pose."""

    name: str
    shapes: list
    joint: Joint | None = None
    parent: str | None = None
    position: tuple = (0.0, 0.0, 0.0)
    quaternion: tuple = IDENTITY
    velocity: tuple = (0.0,) * 6
    shift: tuple = (0.0, 0.0, 0.0)


@dataclass
class Servo:
    """kind: "motor" (u: force), "position" or "velocity". force: its largest, or None."""

    joint: str
    kind: str = "position"
    kp: float = 0.0
    kv: float = 0.0
    force: float | None = None
    u: float = 0.0


@dataclass
class Draft:
    """A scene, and the facts that rules may ask for.

    untouched: bodies that never touch anything: they keep their momentum. smooth: nothing touches and no limit is met: steps converge at their order.
    compare: s, how long MuJoCo must agree; 0: the motion is chaotic. deepest: m, the deepest overlap that may remain at the end. horizon: s.
    """

    gravity: tuple = (0.0, 0.0, -9.81)
    fixed: list = field(default_factory=list)
    bodies: list = field(default_factory=list)
    connects: list = field(default_factory=list)  # (body a, body b or None, point)
    welds: list = field(default_factory=list)  # (body a, body b or None)
    couplings: list = field(default_factory=list)  # (joint, leader, slope)
    servos: list = field(default_factory=list)
    timestep: float = 2e-3
    horizon: float = 0.4
    untouched: list = field(default_factory=list)
    smooth: bool = False
    compare: float = 0.0
    deepest: float = 2e-3
    loop: bool = False  # equalities hold it together
    still: bool = False  # nothing moves
    isolated: bool = False  # free bodies without forces from outside: momentum is kept
    steady_contact: bool = False  # what touches keeps touching until it leaves for good
    probes: bool = False  # overlaps are looked for among all pairs, those too that the simulator leaves out
    jam: bool = False  # a step may have no solution
    twin: Draft | None = None  # a scene said otherwise that moves the same way
    twin_tolerance: float = 0.0
    urdf: str = ""  # a robot that is in the scene beside the bodies above
    plane_axis: tuple | None = None  # its link moves in the plane at a right angle to this axis, without friction

    def free(self, name, kind, size, mass=1.0, position=(0, 0, 0), quaternion=IDENTITY, velocity=(0,) * 6, **options):
        """A free body of one shape."""
        shape = Shape(kind, size, position, quaternion, mass, name=name, **options)
        joint = Joint("free", name=f"{name}_free")
        self.bodies.append(Body(name, [shape], joint, None, position, quaternion, tuple(velocity)))

    def plane(self, normal=(0, 0, 1), point=(0, 0, 0), friction=0.5, name=None):
        """A half-space."""
        n = np.asarray(normal, dtype=float) / np.linalg.norm(normal)
        axis = np.cross((0, 0, 1), n)
        sine = np.linalg.norm(axis)
        q = (
            IDENTITY
            if sine < 1e-12 and n[2] > 0
            else about(axis if sine > 1e-12 else (1, 0, 0), math.atan2(sine, n[2]))
        )
        self.fixed.append(
            Shape("plane", (5, 5, 0.1), point, q, friction=friction, name=name or f"plane{len(self.fixed)}")
        )

    def joints(self):
        """(body, joint) in the order of the description."""
        return [(body, body.joint) for body in self.bodies if body.joint is not None]


def _numbers(values):
    return " ".join(f"{float(x):.17g}" for x in np.atleast_1d(values))


class _Writer:
    """MJCF of a draft as a view shows it; prefix: of all names."""

    def __init__(self, draft, view, prefix=""):
        self.draft, self.view, self.prefix = draft, view, prefix
        self.places = {None: (np.zeros(3), np.array(IDENTITY))}
        for body in draft.bodies:
            self.places[body.name] = (view.point(body.position), view.attitude(body.quaternion))
        self.assets = []

    def local(self, parent, point):
        position, quaternion = self.places[parent]
        return turn(conjugate(quaternion), np.asarray(point) - position)

    def pose(self, parent, position, quaternion):
        """Attributes pos and quat, of a pose given in the world of the view."""
        q = multiply(conjugate(self.places[parent][1]), quaternion)
        return f'pos="{_numbers(self.local(parent, position))}" quat="{_numbers(q)}"'

    def geom(self, shape, parent):
        name, view = self.prefix + shape.name, self.view
        where = self.pose(parent, view.point(shape.position), view.attitude(shape.quaternion))
        if shape.kind == "mesh":
            vertices = np.asarray(shape.size) * ([-1, 1, 1] if view.mirror else 1)
            self.assets.append(f'<mesh name="{name}" inertia="convex" vertex="{_numbers(vertices.ravel())}"/>')
            size = f'mesh="{name}"'
        elif shape.kind == "hfield":
            half_x, half_y, top, shares = shape.size
            shares = np.asarray(shares)[::-1, :: -1 if view.mirror else 1]  # MJCF begins with the row at the largest y
            rows, columns = shares.shape
            self.assets.append(
                f'<hfield name="{name}" nrow="{rows}" ncol="{columns}" size="{_numbers([half_x, half_y, top, 0.5])}" '
                f'elevation="{_numbers(shares.ravel())}"/>'
            )
            size = f'hfield="{name}"'
        else:
            size = f'size="{_numbers(shape.size)}"'
        mass = "" if parent is None else f' mass="{_numbers(shape.mass)}"'
        silent = "" if shape.touches else ' contype="0" conaffinity="0"'
        return f'<geom name="{name}" type="{shape.kind}" {size} {where} friction="{_numbers(shape.friction)} 0 0"{mass}{silent}/>'

    def joint(self, joint, body):
        name = self.prefix + joint.name
        if joint.kind == "free":
            return f'<freejoint name="{name}"/>'
        inverse = conjugate(self.places[body][1])
        axis = turn(inverse, self.view.axial(joint.axis) if joint.kind == "hinge" else self.view.vector(joint.axis))
        where = f'type="{joint.kind}" pos="{_numbers(self.local(body, self.view.point(joint.anchor)))}"'
        if joint.kind != "ball":
            where += f' axis="{_numbers(axis)}" springref="{_numbers(joint.rest)}"'
        limits = "" if joint.limits is None else f'limited="true" range="{_numbers(joint.limits)}"'
        return (
            f'<joint name="{name}" {where} {limits} stiffness="{_numbers(joint.stiffness)}" damping="{_numbers(joint.damping)}" '
            f'armature="{_numbers(joint.armature)}" frictionloss="{_numbers(joint.dry_friction)}"/>'
        )

    def body(self, body):
        children = [b for b in self.draft.bodies if b.parent == body.name]
        position, quaternion = self.places[body.name]
        lines = [f'<body name="{self.prefix + body.name}" {self.pose(body.parent, position, quaternion)}>']
        lines += [self.joint(body.joint, body.name)] if body.joint is not None else []
        lines += [self.geom(shape, body.name) for shape in body.shapes]
        lines += [self.body(child) for child in self.ordered(children)]
        return "\n".join([*lines, "</body>"])

    def ordered(self, items):
        return items[::-1] if self.view.reverse else items

    def equality(self):
        lines = []
        for a, b, point in self.draft.connects:
            other = f'body2="{self.prefix + b}"' if b else ""
            anchor = _numbers(self.local(a, self.view.point(point)))
            lines.append(f'<connect body1="{self.prefix + a}" {other} anchor="{anchor}"/>')
        for a, b in self.draft.welds:
            other = f'body2="{self.prefix + b}"' if b else ""
            point = self.view.point(next(body.position for body in self.draft.bodies if body.name == a))
            lines.append(f'<weld body1="{self.prefix + a}" {other} anchor="{_numbers(self.local(b, point))}"/>')
        for joint, leader, slope in self.draft.couplings:
            lines.append(
                f'<joint joint1="{self.prefix + joint}" joint2="{self.prefix + leader}" polycoef="0 {_numbers(slope)} 0 0 0"/>'
            )
        return lines

    def actuators(self):
        lines = []
        for k, servo in enumerate(self.draft.servos):
            gains = {
                "motor": "",
                "position": f'kp="{_numbers(servo.kp)}" kv="{_numbers(servo.kv)}"',
                "velocity": f'kv="{_numbers(servo.kv)}"',
            }
            clamp = (
                f'forcelimited="true" forcerange="{_numbers(-servo.force)} {_numbers(servo.force)}"'
                if servo.force
                else ""
            )
            lines.append(
                f'<{servo.kind} name="{self.prefix}u{k}" joint="{self.prefix + servo.joint}" {gains[servo.kind]} {clamp}/>'
            )
        return lines

    def text(self, options=""):
        roots = [self.body(b) for b in self.ordered([b for b in self.draft.bodies if b.parent is None])]
        world = [self.geom(shape, None) for shape in self.draft.fixed]
        newline = "\n"
        return f"""<mujoco>
<compiler angle="radian" autolimits="false" balanceinertia="false" boundmass="0" boundinertia="0"/>
<option timestep="{_numbers(self.draft.timestep)}" gravity="{_numbers(self.view.vector(self.draft.gravity))}" {options}/>
<asset>{newline.join(self.assets)}</asset>
<worldbody>
{newline.join(world + roots)}
</worldbody>
<equality>{newline.join(self.equality())}</equality>
<actuator>{newline.join(self.actuators())}</actuator>
</mujoco>"""


def to_mjcf(draft, view=None, options=""):
    """The scene as an MJCF string."""
    return _Writer(draft, view or View(), "").text(options)


@dataclass
class Built:
    """A draft as a model, in a view: the state it starts in, its controls, and where its joints are in q and v."""

    draft: Draft
    view: View
    model: object
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    prefix: str = ""

    def motion(self, q, v):
        """(positions and attitudes, velocities) of joints in the order and the axes of the description: vectors."""
        places, speeds = [], []
        for _, joint in self.draft.joints():
            j = self.model.joint_names.index(self.prefix + joint.name)
            a, d = self.model.joint_q[j], self.model.joint_v[j]
            if joint.kind == "free":
                places += [self.view.point_back(q[a : a + 3]), self.view.attitude_back(q[a + 3 : a + 7])]
                speeds += [self.view.back(v[d : d + 3]), self.view.spin(v[d + 3 : d + 6])]
            elif joint.kind == "ball":
                places.append(self.view.spin(q[a + 1 : a + 4]) * (1 if q[a] >= 0 else -1))
                speeds.append(self.view.spin(v[d : d + 3]))
            else:
                places.append([q[a]])
                speeds.append([v[d]])
        return tuple(np.concatenate([np.zeros(0), *(np.ravel(x) for x in rows)]) for rows in (places, speeds))

    def bits(self, q, v):
        """What this draft's joints have of a state, as it is: for comparisons to the bit."""
        parts = [np.zeros(0)]
        for _, joint in self.draft.joints():
            j = self.model.joint_names.index(self.prefix + joint.name)
            widths = {"free": (7, 6), "ball": (4, 3)}.get(joint.kind, (1, 1))
            parts += [q[self.model.joint_q[j] :][: widths[0]], v[self.model.joint_v[j] :][: widths[1]]]
        return np.concatenate(parts)

    def state_of(self, q, v, other):
        """A state of `other`, another view of the same draft, as one of this model."""
        q1, v1 = self.q.copy(), self.v.copy()
        for _, joint in self.draft.joints():
            i = other.model.joint_names.index(other.prefix + joint.name)
            j = self.model.joint_names.index(self.prefix + joint.name)
            a, d, b, e = other.model.joint_q[i], other.model.joint_v[i], self.model.joint_q[j], self.model.joint_v[j]
            if joint.kind == "free":
                q1[b : b + 3] = self.view.point(other.view.point_back(q[a : a + 3]))
                q1[b + 3 : b + 7] = self.view.attitude(other.view.attitude_back(q[a + 3 : a + 7]))
                v1[e : e + 3] = self.view.vector(other.view.back(v[d : d + 3]))
                v1[e + 3 : e + 6] = self.view.spin(other.view.spin(v[d + 3 : d + 6]))
            elif joint.kind == "ball":
                q1[b] = q[a]
                q1[b + 1 : b + 4] = self.view.spin(other.view.spin(q[a + 1 : a + 4]))
                v1[e : e + 3] = self.view.spin(other.view.spin(v[d : d + 3]))
            else:
                q1[b], v1[e] = q[a], v[d]
        return self.model.normalize(q1), v1


def build(draft, view=None, company=None, first=False, soft=None):
    """The draft as a model. company: a draft that stands in the same scene, in the same view, before this one if `first`.

    soft: arguments of Scene.set_contact for every geometry that touches.
    """
    view = view or View()
    scene = coulomb.Scene(gravity=view.vector(draft.gravity), timestep=draft.timestep)
    parts = [(draft, view, "")]
    if company is not None:
        parts.insert(0 if first else 1, (company, replace(view, mirror=False, reverse=False), "far_"))
    controls = []
    for part, seen, prefix in parts:
        scene.add_mjcf(_Writer(part, seen, prefix).text(), use_options=False)
        if part.urdf:
            scene.add_urdf(part.urdf, actuators=False)
        controls += [servo.u for servo in part.servos]
        for shape in [*part.fixed, *(s for b in part.bodies for s in b.shapes)]:
            surface = {**shape.surface, **(soft or {})}
            if surface and shape.touches:
                scene.set_contact(prefix + shape.name, **surface)
    model = scene.build()
    q, v = model.neutral()
    for part, seen, prefix in parts:
        _start(part, seen, prefix, model, q, v)
    return Built(draft, view, model, model.normalize(q), v, np.array(controls))


def _start(draft, view, prefix, model, q, v):
    """Velocities and coordinates that the description starts with."""
    for body, joint in draft.joints():
        j = model.joint_names.index(prefix + joint.name)
        a, d = model.joint_q[j], model.joint_v[j]
        if joint.kind == "free":
            q[a : a + 3] += view.vector(body.shift)
            v[d : d + 3], v[d + 3 : d + 6] = view.vector(body.velocity[:3]), view.spin(body.velocity[3:])
        elif joint.kind == "ball":
            v[d : d + 3] = view.spin(body.velocity[3:])
        else:
            q[a], v[d] = joint.start, joint.speed
