"""Every input and every parameter of a few small models, all at once and within seconds: columns of a step against differences, and reverse mode
against forward mode. The models have every kind of parameter at a value that acts and may move both ways; test_parameters.py looks at more states.
"""

import numpy as np
import pytest
from all_columns import assert_columns, assert_reverse

import coulomb
from scenes.armed_base import armed_base, put_beyond_its_limit

FINGER = """<body name="finger" pos="0 0 .1">
  <joint name="slide" type="slide" axis="1 0 .2" stiffness="30" damping=".4" armature=".02" frictionloss=".2"/>
  <geom name="nail" type="cylinder" size=".02 .03" mass=".1"/></body>"""
AT_THE_WRIST = """<motor name="twist" joint="wrist" gear=".3 .5 -.4"/>
  <position name="hold" joint="wrist" kp="2" kv=".1" gear=".2 -.6 .5"/>"""
ROBOT = armed_base((0.3, 0.2, -9.81), 0.0995, 0.15, servo_damping=0.3, finger=FINGER, actuators=AT_THE_WRIST)

# What is zero by default acts a little, otherwise in every element: at zero there is no difference to both sides.
ACTING = {
    "armature": 0.01,
    "joint_damping": 0.1,
    "joint_stiffness": 0.3,
    "joint_friction": 0.02,
    "restitution": 0.1,
    "compliance": 1e-3,
}


def acting(model, without=()):
    values = {}
    for number, (name, parameter) in enumerate(model.parameters().items()):
        kind = name.split("/")[0]
        if kind in ACTING and kind not in without:
            values[name] = np.where(parameter.value == 0, ACTING[kind] * (1 + 0.01 * number), parameter.value)
    return model.with_parameters(values)


SOFT = ("restitution", "compliance")  # springs have laws of their own


def robot(without=()):
    """A base that slides and turns, an arm that moves in all its joints against dry friction, damped and on springs."""
    model = acting(coulomb.load(ROBOT), without)
    q, v = model.neutral()
    q = model.integrate(q, 0.1 * np.sin(np.arange(model.nv) + 1.0) * (np.arange(model.nv) > 5))
    v = np.array([1.0, 0.3, -0.05, 0.02, -0.01, 0.4, 0.7, 0.4, -0.5, 0.3, 0.6])
    return model, q, v, np.array([0.4, 0.3, 0.5, -0.2])


def robot_at_a_limit(without=()):
    """Its shoulder is beyond the limit and goes on, faster than its springs pull it back within a step."""
    model, q, v, u = robot(without)
    v[6] = 6.0
    put_beyond_its_limit(model, q)
    return model, q, v, u


def bodies(without=(), speed=1.0, **material):
    """A wedge of a mesh that moves, a box and a capsule that slide on it, an egg and a cylinder on the box; nothing is aligned with the axes.

    Slow ones stick.
    """
    slope = np.arctan(0.1)
    wedge = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.4, 0.4) for z in (-0.2, 0.1 * x)])
    along, up = np.array([np.cos(slope), 0, np.sin(slope)]), np.array([-np.sin(slope), 0, np.cos(slope)])
    tilt, lying = (np.cos(slope / 2), 0, -np.sin(slope / 2), 0), (np.sqrt(0.5), np.sqrt(0.5), 0, 0)

    # The larger friction of two counts: that of what lies on top.
    scene = coulomb.Scene(gravity=(0.2, -0.1, -9.81), timestep=2e-3)
    scene.add_mesh(wedge, mass=5.0, name="wedge", friction=0.2, **material)
    at = {"position": 0.1 * along + 0.049 * up, "quaternion": tilt}
    scene.add_box((0.2, 0.3, 0.1), mass=1.0, name="box", friction=0.3, **at, **material)
    at = {"position": -0.3 * along + 0.0495 * up, "quaternion": lying}
    scene.add_capsule(0.05, 0.2, mass=0.5, name="pill", friction=0.4, **at, **material)
    scene.add_ellipsoid(
        (0.05, 0.06, 0.04), mass=0.3, name="egg", friction=0.5, position=0.06 * along + 0.1385 * up, **material
    )
    at = {"position": 0.15 * along + 0.148 * up, "quaternion": tilt}
    scene.add_cylinder(0.03, 0.1, mass=0.4, name="can", friction=0.6, **at, **material)
    scene.set_contact("box", "can", friction=0.25, **({} if "restitution" in without else {"restitution": 0.1}))
    model = acting(scene.build(), without)

    # Each moves its own way, down onto what it lies on.
    v = np.zeros(model.nv)
    for k, body in enumerate(v.reshape(-1, 6)):
        body[:3] = (0.3 + 0.2 * k) * along + (0.1 - 0.15 * k) * np.array([0, 1, 0]) - 0.15 * (k + 1) * up
        body[3:] = 0.02 * np.sin(np.arange(3) + k)
    return model, model.neutral()[0], speed * v, None


ARM = """<body pos="{x} 0 0" euler="{tilt} 10 0"><joint name="{name}" axis="0 1 .3" pos="0 0 .02" damping=".1"/>
  <geom name="{name}_tip" size=".1" pos="0 0 .4" mass=".6" friction="{friction}"/>
  <body pos=".05 0 .2"><joint name="{name}_elbow" type="ball" damping=".1"/><geom name="{name}_hand" size=".05" pos="0 .2 .1" mass=".2"/></body></body>"""


def arms(without=()):
    """Two arms whose tips slide on each other: each is the first body of a contact or the second, and either's joints may be moved."""
    both = ARM.format(x=0, tilt=5, name="left", friction=0.4) + ARM.format(x=0.1985, tilt=5, name="right", friction=0.5)
    model = acting(
        coulomb.load(f"<mujoco><option gravity='.5 1 -9.81'/><worldbody>{both}</worldbody></mujoco>"), without
    )
    q, _ = model.neutral()
    return model, q, np.array([0.6, 0.3, -0.2, 0.4, -0.7, 0.2, 0.5, -0.3]), None


def ledge(without=()):
    """A box and a mesh, each half over the edge of a larger box: outlines of two faces are the corners that carry them."""
    scene = coulomb.Scene(gravity=(0.2, -0.1, -9.81), timestep=2e-3)
    scene.add_box((0.6, 0.5, 0.2), mass=5.0, name="ledge", friction=0.2)
    scene.add_box((0.3, 0.2, 0.1), mass=1.0, position=(0.27, 0.05, 0.149), name="box", friction=0.3)
    corners = np.array([(x, y, z) for x in (-0.1, 0.1) for y in (-0.15, 0.15) for z in (-0.05, 0.05)])
    scene.add_mesh(corners, mass=1.0, position=(-0.28, 0.02, 0.149), name="brick", friction=0.4)
    model = acting(scene.build(), without)
    v = np.zeros(model.nv)
    for k, body in enumerate(v.reshape(-1, 6)):
        body[:] = [0.3 + 0.2 * k, 0.1 - 0.15 * k, -0.1 * (k + 1), 0.02, -0.01 * k, 0.03]
    return model, model.neutral()[0], v, None


NCP = {"tolerance": 1e-13}
PENALTY = dict(contact="penalty", contact_stiffness=1e4, contact_damping=1e2)
SPRINGS = {"contact_stiffness": 1e4}
CASES = {
    "robot": (robot, NCP),
    "arms": (arms, NCP),
    "arms, pyramid": (arms, dict(contact="lcp", friction_directions=4)),
    "arms, penalty": (lambda: arms(SOFT), PENALTY),
    "ledge": (ledge, NCP),
    "ledge, penalty": (lambda: ledge(SOFT), PENALTY),
    "ledge, corrected as fast as it may be": (lambda: ledge(SOFT), dict(max_correction_speed=0.01, **NCP)),
    "robot, pyramid": (robot, dict(contact="lcp", friction_directions=6)),
    "robot, penalty": (lambda: robot(SOFT), PENALTY),
    "robot, bdf1": (lambda: robot(SOFT), dict(stepper="bdf1", **SPRINGS)),
    "robot, bdf2": (lambda: robot(SOFT), dict(stepper="bdf2", **SPRINGS)),
    "robot, split": (robot, dict(continuous_collision=True)),
    "robot at a limit": (robot_at_a_limit, NCP),
    "robot at a limit, bdf2": (lambda: robot_at_a_limit(SOFT), dict(stepper="bdf2", **SPRINGS)),
    "bodies": (bodies, NCP),
    "bodies, pyramid": (bodies, dict(contact="lcp", friction_directions=4)),
    "bodies, penalty": (lambda: bodies(SOFT), PENALTY),
    "bodies that stick": (lambda: bodies(speed=1e-3), NCP),
    "bodies that stick, pyramid": (lambda: bodies(speed=1e-3), dict(contact="lcp", friction_directions=4)),
    "bodies that stick, penalty": (lambda: bodies(SOFT, speed=1e-3), PENALTY),
    "bodies that stick, bdf2": (lambda: bodies(SOFT, speed=1e-3), dict(stepper="bdf2", **SPRINGS)),
    "bodies on springs": (lambda: bodies(SOFT, contact_stiffness=2e4, contact_dashpot=50.0), NCP),
}


@pytest.mark.parametrize("case", CASES)
def test_columns_against_differences(case):
    make, options = CASES[case]
    model, q, v, u = make()
    sim = coulomb.Simulator(model, **options)
    assert_columns(sim, q, v, u, list(model.parameters()))


@pytest.mark.parametrize("case", CASES)
def test_reverse_is_forward(case):
    make, options = CASES[case]
    model, q, v, u = make()
    sim = coulomb.Simulator(model, **options)
    assert_reverse(sim, q, v, u, list(model.parameters()))


def test_every_kind_acts():
    """Or the comparisons above are of zeros. Those of springs, and of contact points, are of other laws."""
    acts = set()
    for make, options in CASES.values():
        model, q, v, u = make()
        sim = coulomb.Simulator(model, **options)
        sim.step(q, v, u)
        names = list(model.parameters())
        derivatives = sim.derivatives(wrt=names)
        law = options.get("contact", options.get("stepper", "ncp"))
        acts |= {(law, name.split("/")[0]) for name in names if np.abs(derivatives[name]).max() > 1e-9}
    kinds = {kind for _, kind in acts}
    everywhere = {
        "mass",
        "com",
        "inertia",
        "friction",
        "geometry_placement",
        "joint_placement",
        "size",
        "joint_stiffness",
        "joint_damping",
    }
    everywhere |= {
        "armature",
        "joint_friction",
        "joint_limits",
        "gravity",
        "timestep",
        "actuator_gain",
        "actuator_kp",
        "actuator_kd",
    }
    assert {kind for law, kind in acts if law == "ncp"} >= everywhere | {
        "restitution",
        "compliance",
        "pair_friction",
        "pair_restitution",
    }
    assert {kind for law, kind in acts if law == "bdf2"} >= everywhere
    assert kinds >= {
        "vertices",
        "contact_stiffness",
        "contact_damping",
        "contact_dashpot",
        "contact_friction_stiffness",
        "contact_scale",
    }


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
def test_friction_of_zero(contact):
    """It can only grow: against the sliding velocity at the point, where both bodies move and spin. Differences to one side, of second order."""
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_sphere(0.1, mass=1.0, name="ball", friction=0)
    scene.add_box((0.4, 0.3, 0.2), mass=2.0, position=(0.05, -0.08, -0.1999), name="box", friction=0)
    model = scene.build()
    q, _ = model.neutral()
    v = np.array([0.3, -0.2, -1.0, 2.0, 3.0, 1.0, -0.1, 0.4, 0.5, 0.7, -0.6, 1.5])
    options = dict(contact=contact, friction_directions=4, baumgarte=0) if contact == "lcp" else dict(baumgarte=0)

    def end(friction):
        sim = coulomb.Simulator(model.with_parameters({"friction/ball": friction}), tolerance=1e-14, **options)
        return sim.step(q, v)[1], sim

    _, sim = end(0.0)
    slope = sim.derivatives(wrt=["friction/ball"])["friction/ball"][12:, 0]
    h = 1e-4
    number = (4 * end(h)[0] - 3 * end(0.0)[0] - end(2 * h)[0]) / (2 * h)
    assert np.abs(slope).max() > 0.1
    np.testing.assert_allclose(slope, number, atol=1e-5)


def test_forces_of_actuators_on_three_axes():
    """Their readings by the state and the controls, against differences: all three dofs of the joint count."""
    model, q, v, u = robot()
    sim = coulomb.Simulator(model, tolerance=1e-14)
    names = [name for name in model.force_outputs() if name.split("/")[0] == "actuator_force"]
    assert {"actuator_force/hold", "actuator_force/twist"} <= set(names)
    sim.step(q, v, u)
    d = sim.derivatives()
    other = coulomb.Simulator(model, tolerance=1e-14)

    def read(name, q=q, v=v, u=u):
        other.step(q, v, u)
        return other.output(name)

    for name in names:
        jacobians = {wrt: d.output(name, wrt) for wrt in ("q", "v", "u")}
        h = 1e-6
        by_q = [
            (read(name, q=model.integrate(q, h * e)) - read(name, q=model.integrate(q, -h * e))) / (2 * h)
            for e in np.eye(model.nv)
        ]
        by_v = [(read(name, v=v + h * e) - read(name, v=v - h * e)) / (2 * h) for e in np.eye(model.nv)]
        by_u = [(read(name, u=u + h * e) - read(name, u=u - h * e)) / (2 * h) for e in np.eye(model.nu)]
        for wrt, columns in (("q", by_q), ("v", by_v), ("u", by_u)):
            np.testing.assert_allclose(jacobians[wrt], np.transpose(columns), atol=1e-7, err_msg=f"{name} by {wrt}")


def test_a_stiffness_of_zero_is_refused():
    model, *_ = bodies(SOFT, contact_stiffness=2e4)
    names = [name for name in model.parameters() if name.startswith("contact_stiffness/")]
    assert names
    for name in [*names, "contact_stiffness"]:
        if name in model.parameters():
            with pytest.raises(ValueError, match="must be positive"):
                model.with_parameters({name: 0.0})


def test_forces_of_redundant_contacts_that_stick():
    """The force of the ground on each body by the velocities, in forward mode and from impulses one by one, against differences."""
    model, q, v, _ = bodies(speed=1e-3)
    sim, other = (coulomb.Simulator(model, **NCP) for _ in range(2))
    for each in (sim, other):
        each.step(q, v)
    other.freeze_memory(True)
    d = sim.derivatives()
    impulses = d.dlambda("v")
    assert np.abs(impulses).max() < 100

    h = 1e-6
    for k in range(0, model.nv, 5):
        ends = []
        for sign in (1, -1):
            other.step(q, v + sign * h * np.eye(model.nv)[k])
            ends.append(sum((c.impulse for c in other.contacts if "wedge" in (c.body_a, c.body_b)), np.zeros(3)))
        on_wedge = [i for i, c in enumerate(sim.contacts) if "wedge" in (c.body_a, c.body_b)]
        own = impulses.reshape(len(sim.contacts), 3, -1)
        total = sum(sim.contacts[i].frame.T @ own[i, :, k] for i in on_wedge)
        np.testing.assert_allclose(total, (ends[0] - ends[1]) / (2 * h), atol=1e-5)
