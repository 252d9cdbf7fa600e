"""Random mechanisms: loops, servos and springs of all stiffnesses, limits in and out of reach, couplings, grippers, legs, jams.

Every function takes a numpy Generator and returns a Draft with the facts that are known of it.
"""

from __future__ import annotations

import math

import numpy as np

from .drafts import IDENTITY, Body, Draft, Joint, Servo, Shape, about, any_quaternion, build
from .loose_scenes import log_uniform, stand_beside

UP, ACROSS = np.array([0, 0, 1.0]), np.array([0, 1.0, 0])
EXPLICIT_SPRING = 0.3  # h omega at the start, up to which springs and position gains are drawn: they are explicit, and arms get lighter as they fold


def link(draft, name, start, end, joint, parent=None, mass=1.0):
    """A rod from start to end, on a joint at its start; it touches nothing."""
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    along = end - start
    length = np.linalg.norm(along)
    axis = np.cross(UP, along)
    q = about(axis, math.acos(np.clip(along[2] / length, -1, 1))) if np.linalg.norm(axis) > 1e-12 else IDENTITY
    shape = Shape("capsule", (0.02, 0.5 * length), (start + end) / 2, q, mass, touches=False, name=name)
    draft.bodies.append(Body(name, [shape], joint, parent, start))
    return draft.bodies[-1]


def loops(random):
    """Slider-cranks, four-bars and chains whose end is pinned, passive or driven; limits within reach and out of it."""
    draft = Draft(timestep=float(random.choice([1e-3, 2e-3])), horizon=1.0, loop=True)
    if random.random() < 0.5:
        draft.gravity = (0, 0, 0)
    kind = str(random.choice(["slider_crank", "four_bar", "chain"]))
    if kind == "slider_crank":
        crank, rod, angle = 0.2, 0.5, random.uniform(0.3, 2.8)
        pin = crank * np.array([math.cos(angle), 0, math.sin(angle)])
        end = np.array([pin[0] + math.sqrt(rod**2 - pin[2] ** 2), 0, 0])
        link(draft, "crank", (0, 0, 0), pin, Joint("hinge", ACROSS, (0, 0, 0), name="crank"))
        link(draft, "rod", pin, end, Joint("hinge", ACROSS, pin, name="rod"), "crank")
        slide = Joint("slide", (1, 0, 0), end, name="slide")
        draft.bodies.append(
            Body("block", [Shape("box", (0.05,) * 3, end, name="block", touches=False)], slide, None, end)
        )
        draft.connects.append(("rod", "block", end))
        reach = rod + crank - end[0]  # the largest coordinate of the slide
        if random.random() < 0.6:
            beyond = reach + float(random.choice([-0.02, -0.01, 1e-4, 1e-2, 0.1]))
            draft.bodies[-1].joint.limits = (
                (beyond, 1.0) if random.random() < 0.7 else (-1.0, min(beyond, reach) - 0.05)
            )
    elif kind == "four_bar":
        a, b = np.array([0, 0, 0.3]), np.array([0.5, 0, 0.3 + random.uniform(0, 0.2)])
        link(draft, "left", (0, 0, 0), a, Joint("hinge", ACROSS, (0, 0, 0), name="left"))
        link(draft, "bar", a, b, Joint("hinge", ACROSS, a, name="bar"), "left")
        link(draft, "right", (0.5, 0, 0), b, Joint("hinge", ACROSS, (0.5, 0, 0), name="right"))
        draft.connects.append(("bar", "right", b))
    else:
        last, parent = np.zeros(3), None
        for k in range(int(random.integers(2, 5))):
            turn = random.uniform(-0.8, 0.8)
            end = last + 0.25 * np.array([math.cos(turn), 0, math.sin(turn)])
            link(
                draft,
                f"link{k}",
                last,
                end,
                Joint("hinge", ACROSS, last, name=f"joint{k}", damping=float(random.choice([0, 0.02]))),
                parent,
            )
            last, parent = end, f"link{k}"
        if random.random() < 0.2:
            draft.welds.append((parent, None))
        else:
            draft.connects.append((parent, None, last))
    if random.random() < 0.4:
        draft.servos.append(Servo(draft.bodies[0].joint.name, "motor", u=random.normal()))
    if random.random() < 0.3:
        draft.bodies[0].joint.limits = (-random.uniform(0.05, 0.6), random.uniform(0.05, 0.6))
    draft.smooth = all(b.joint.limits is None for b in draft.bodies)
    draft.compare = 0.15 if draft.smooth and not draft.welds else 0.0
    return draft


def arm(draft, random, count, limits=False):
    """An arm of links that hangs on the world."""
    last, parent = np.array([0, 0, 1.0]), None
    for k in range(count):
        direction = random.normal(size=3) * [1, 0.3, 1]
        end = last + 0.25 * direction / np.linalg.norm(direction)
        axis = ACROSS if random.random() < 0.7 else random.normal(size=3)
        axis = np.asarray(axis) / np.linalg.norm(axis)
        joint = Joint(
            "hinge",
            axis,
            last,
            name=f"joint{k}",
            damping=float(random.choice([0, 0, 0.05])),
            armature=float(random.choice([0, 1e-3, 0.1])),
        )
        if limits:
            joint.limits = (-random.uniform(0.1, 2), random.uniform(0.1, 2))
        link(draft, f"link{k}", last, end, joint, parent, log_uniform(random, 0.1, 2))
        last, parent = end, f"link{k}"


def lightest(draft):
    """The least inertia of a joint with all others free, in the start: what explicit gains have to be small against."""
    built = build(draft)
    return 1 / np.linalg.eigvalsh(np.linalg.inv(built.model.mass_matrix(built.q))).max()


def servos(random):
    """Arms with position and velocity servos, from soft to stiff, damped by any gain, clamped or not."""
    draft = Draft(timestep=float(random.choice([1e-3, 2e-3])), horizon=0.6)
    arm(draft, random, int(random.integers(1, 4)), limits=random.random() < 0.3)
    h, least = draft.timestep, lightest(draft)
    kp = least * (EXPLICIT_SPRING * log_uniform(random, 0.01, 1) / h) ** 2
    for body in draft.bodies:
        kv = float(random.choice([0, 0.1, 1, 1, 1])) * least / h * log_uniform(random, 0.01, 100)
        kind = "velocity" if random.random() < 0.15 and kv > 0 else "position"
        force = log_uniform(random, 1, 100) if random.random() < 0.3 else None
        draft.servos.append(Servo(body.joint.name, kind, kp, kv, force, random.normal() * 0.5))
    draft.compare = 0.2 if all(b.joint.limits is None for b in draft.bodies) else 0.0
    return draft


def springs(random):
    """Chains of springs and dampers, and in half of the scenes a box that stands on the ground beside them."""
    draft = Draft(timestep=float(random.choice([1e-3, 2e-3, 1e-2])), horizon=1.0, smooth=True)
    arm(draft, random, int(random.integers(1, 4)))
    if random.random() < 0.4:
        at = (1.5, 0, 1)
        joint = Joint("slide", UP, at, name="bob", start=0.05)
        draft.bodies.append(Body("bob", [Shape("sphere", (0.05,), at, name="bob", touches=False)], joint, None, at))
    omega = EXPLICIT_SPRING * log_uniform(random, 0.05, 1) / draft.timestep
    stiffness = lightest(draft) * omega**2
    for body in draft.bodies:
        body.joint.stiffness, body.joint.rest = stiffness, random.normal() * 0.2 if body.joint.kind == "hinge" else 0.0
    stand_beside(draft, random, 3)
    return draft


def limits(random):
    """Pendulums that swing against their limits, some of which they start beyond."""
    draft = Draft(timestep=2e-3, horizon=1.5, deepest=1e-3)
    arm(draft, random, int(random.integers(1, 4)), limits=True)
    for body in draft.bodies:
        joint = body.joint
        joint.speed = random.normal() * 2
        if random.random() < 0.3:
            joint.start = float(joint.limits[1] + log_uniform(random, 1e-4, 0.3))
            joint.speed = 0.0
        if random.random() < 0.2:
            joint.dry_friction = log_uniform(random, 0.01, 1)

    # A press that lies on its limit, a little above the ground.
    if random.random() < 0.4:
        at = np.array([2.0, 0, 0.05 + log_uniform(random, 1e-4, 2e-2)])
        draft.plane(point=(0, 0, 0))
        joint = Joint("slide", UP, at, (0.0, 1.0), name="press")
        draft.bodies.append(Body("press", [Shape("box", (0.05,) * 3, at, name="press")], joint, None, at))
    return draft


def planar_joints(random):
    """A link of a URDF file on a planar joint about any axis."""
    axis = random.normal(size=3) if random.random() < 0.7 else np.eye(3)[random.integers(3)]
    axis = axis / np.linalg.norm(axis)
    words = " ".join(f"{x:.17g}" for x in axis)
    urdf = f"""<robot name="r"><link name="base"/><link name="puck"><inertial><mass value="1"/>
<inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="plane" type="planar"><parent link="base"/><child link="puck"/><axis xyz="{words}"/></joint></robot>"""
    return Draft(timestep=2e-3, horizon=0.3, urdf=urdf, plane_axis=tuple(axis))


def couplings(random):
    """Joints that follow others by a ratio, driven or not; the leader's limit may contradict the follower's."""
    draft = Draft(timestep=2e-3, horizon=0.8, loop=True)
    count = int(random.integers(2, 4))
    for k in range(count):
        at = np.array([0.5 * k, 0, 1])
        link(
            draft,
            f"link{k}",
            at,
            at + [0, 0, -0.25],
            Joint("hinge", ACROSS, at, name=f"joint{k}"),
            mass=log_uniform(random, 0.2, 2),
        )
        if k:
            draft.couplings.append((f"joint{k}", f"joint{k - 1}", float(random.choice([1, -1, 2, 0.5]))))
    draft.smooth = random.random() < 0.6
    if draft.smooth:
        draft.bodies[0].joint.speed = 0.0
        draft.servos.append(Servo("joint0", "motor", u=0.5 * random.normal()))
        draft.compare = 0.3
    else:
        draft.bodies[0].joint.limits = (-0.1, random.uniform(0.05, 0.5))
        draft.bodies[1].joint.limits = (-0.1, random.uniform(0.05, 0.5))
        draft.servos.append(Servo("joint0", "motor", u=3 * random.normal()))
    return draft


def grippers(random):
    """Two fingers on slides squeeze an object that hangs between them or stands on the ground; servos or motors of any force."""
    draft = Draft(timestep=float(random.choice([1e-3, 2e-3])), horizon=0.6, deepest=1e-5)
    draft.plane(friction=0.8)
    kind = str(random.choice(["box", "sphere", "cylinder"]))
    half, friction = random.uniform(0.02, 0.04), float(random.choice([0.5, 1, 2]))
    size = {"sphere": (half,), "cylinder": (half, half)}.get(kind, (half,) * 3)
    z = half if random.random() < 0.5 else 0.3
    draft.free("object", kind, size, log_uniform(random, 0.05, 1), (0, 0, z), IDENTITY, friction=friction)
    gap, force = float(random.choice([0, 1e-3, 0.02])), log_uniform(random, 1, 300)
    for side, name in ((1, "left"), (-1, "right")):
        at = (side * (half + gap + 0.01), 0, max(z, 0.025))
        joint = Joint("slide", (-side, 0, 0), at, name=name, damping=float(random.choice([0, 5])))
        pad = Shape("box", (0.01, 0.02, 0.02), at, mass=0.2, friction=friction, name=name)
        draft.bodies.append(Body(name, [pad], joint, None, at))
        if random.random() < 0.5:
            draft.servos.append(Servo(name, "motor", u=force))
        else:
            kp = 0.2 * (EXPLICIT_SPRING * log_uniform(random, 0.1, 1) / draft.timestep) ** 2
            draft.servos.append(
                Servo(name, "position", kp, 0.2 * log_uniform(random, 0.1, 50) / draft.timestep, force, 0.05)
            )
    return draft


def hands(random):
    """A hand that floats, welded to the world where it is not yet, with two fingers that follow each other; an object in reach in some scenes."""
    draft = Draft(timestep=float(random.choice([1e-3, 2e-3])), horizon=0.8, deepest=1e-3)
    height, beside = 0.5, random.normal(size=3) * log_uniform(random, 1e-4, 0.1) * (random.random() < 0.7)
    palm = Shape(
        "box", (0.06, 0.03, 0.02), (0, 0, height), mass=log_uniform(random, 0.3, 3), name="palm", touches=False
    )
    draft.bodies.append(
        Body("palm", [palm], Joint("free", name="palm_free"), None, (0, 0, height), shift=tuple(beside))
    )
    draft.welds.append(("palm", None))
    for side, name in ((1, "left"), (-1, "right")):
        at = (0.04 * side, 0, height - 0.07)
        joint = Joint("slide", (-side, 0, 0), at, (-0.01, 0.035), name=name, damping=float(random.choice([0, 10])))
        pad = Shape("box", (0.005, 0.02, 0.04), at, mass=0.1, friction=1.0, name=name)
        draft.bodies.append(Body(name, [pad], joint, "palm", at))
    if random.random() < 0.5:
        draft.couplings.append(("right", "left", 1.0))
    force = log_uniform(random, 0.5, 50)
    if random.random() < 0.5:
        draft.servos.append(Servo("left", "motor", u=force))
    else:
        kp = 0.1 * (EXPLICIT_SPRING * log_uniform(random, 0.1, 1) / draft.timestep) ** 2
        draft.servos.append(
            Servo("left", "position", kp, 0.1 * log_uniform(random, 0.1, 50) / draft.timestep, force, 0.03)
        )
    if random.random() < 0.6:
        draft.plane(friction=0.8)
        stand = Shape("box", (0.02, 0.02, 0.5 * (height - 0.12)), (0, 0, 0.5 * (height - 0.12)), name="stand")
        draft.fixed.append(stand)
        draft.free(
            "object", "box", (0.02, 0.02, 0.04), log_uniform(random, 0.05, 0.5), (0, 0, height - 0.08), friction=1.0
        )
    return draft


def legs(random):
    """A trunk on legs with servos, set down on the ground."""
    draft = Draft(timestep=2e-3, horizon=0.6, deepest=1e-4)
    draft.plane(friction=0.8)
    height, drop = 0.4, float(random.choice([0, 0.05]))
    trunk = Shape("box", (0.25, 0.12, 0.05), (0, 0, height + drop), mass=5.0, name="trunk")
    draft.bodies.append(Body("trunk", [trunk], Joint("free", name="trunk_free"), None, (0, 0, height + drop)))
    for k, (x, y) in enumerate(((1, 1), (1, -1), (-1, 1), (-1, -1))[:: int(random.choice([1, 3]))]):
        hip = np.array([0.22 * x, 0.15 * y, height + drop])
        bend = 0.12 * float(random.choice([-1, 1]))
        knee, foot = hip + [bend, 0, -0.19], hip + [0, 0, -0.38]
        link(draft, f"thigh{k}", hip, knee, Joint("hinge", ACROSS, hip, name=f"hip{k}"), "trunk", 0.5)
        shin = link(draft, f"shin{k}", knee, foot, Joint("hinge", ACROSS, knee, name=f"knee{k}"), f"thigh{k}", 0.3)
        flat = k == 0 or draft.bodies[3].shapes[-1].kind == "box"
        kind, size = ("box", (0.05, 0.03, 0.02)) if flat and random.random() < 0.8 else ("sphere", (0.02,))
        shin.shapes.append(Shape(kind, size, foot, mass=0.05, friction=0.8, name=f"foot{k}"))
    kp, kv = log_uniform(random, 20, 200), log_uniform(random, 0.5, 30)
    for body in draft.bodies[1:]:
        draft.servos.append(
            Servo(body.joint.name, "position", kp, kv, log_uniform(random, 10, 100), 0.2 * random.normal())
        )
    return draft


def jams(random):
    """A ball on two slides between two planes with friction: often no impulse solves it, and then the status has to say so."""
    draft = Draft(gravity=(0, 0, 0), timestep=2e-3, horizon=0.05, deepest=1.0, jam=True)
    axes = [x / np.linalg.norm(x) for x in random.normal(size=(2, 3))]
    friction, depth, r = random.uniform(0.2, 1.5), log_uniform(random, 1e-5, 5e-3), 0.1
    for n in random.normal(size=(2, 3)):
        n = n / np.linalg.norm(n)
        draft.plane(n, -(r - depth) * n, friction=friction)
    carrier = Joint("slide", axes[0], (0, 0, 0), name="first", armature=0.0)
    draft.bodies.append(Body("carrier", [Shape("sphere", (0.01,), mass=1e-3, touches=False, name="carrier")], carrier))
    draft.bodies.append(
        Body(
            "ball",
            [Shape("sphere", (r,), friction=friction, name="ball")],
            Joint("slide", axes[1], name="second"),
            "carrier",
        )
    )
    if random.random() < 0.5:
        carrier.speed = random.normal()
    return draft


def fingers(random):
    """Fingers of one robot that overlap in the pose they are described in, and that joints open and close."""
    draft = Draft(gravity=(0, 0, 0), timestep=2e-3, horizon=0.8, deepest=1e-3, probes=True)
    palm = Shape("box", (0.1, 0.05, 0.02), (0, 0, 0), mass=1.0, name="palm")
    draft.bodies.append(Body("palm", [palm], Joint("slide", UP, name="palm", damping=1.0)))
    overlap = float(random.choice([0, 1e-5, 1e-3, 5e-3]))
    for side, name in ((1, "left"), (-1, "right")):
        at = (side * (0.02 - overlap / 2), 0, 0.1)
        finger = Shape("box", (0.02, 0.02, 0.05), at, mass=0.2, friction=0.5, name=name)
        joint = Joint("slide", (side, 0, 0), at, (-0.015, 0.05), name=name, start=0.03)
        draft.bodies.append(Body(name, [finger], joint, "palm", at))
        draft.servos.append(Servo(name, "motor", u=-random.uniform(0.5, 3)))
    return draft


def pendulums(random):
    """Trees of hinges, slides and balls that swing freely: nothing touches."""
    draft = Draft(timestep=float(random.choice([1e-3, 2e-3])), horizon=0.6, smooth=True)
    arm(draft, random, int(random.integers(1, 4)))
    for body in draft.bodies:
        body.joint.speed = random.normal()
    if random.random() < 0.4:
        hang = draft.bodies[-1]
        at = np.asarray(hang.shapes[0].position)
        size = random.uniform(0.03, 0.1, 3)
        ball = Shape("box", size, at + [0, 0, -0.15], any_quaternion(random), 0.5, touches=False, name="bob")
        draft.bodies.append(
            Body(
                "bob",
                [ball],
                Joint("ball", anchor=at, name="bob"),
                hang.name,
                at,
                velocity=(0, 0, 0, *random.normal(size=3) * 5),
            )
        )
    draft.compare = 0.2
    return draft
