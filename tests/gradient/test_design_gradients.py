"""The gradient of a trajectory in contact by every kind of design parameter, in every stepper and contact law, against differences.

To 1e-6 of each derivative itself, whatever its size: rollout_differences.py tells which differences are good enough for that.
"""

import numpy as np
import pytest
from rollout_differences import Trajectory

import coulomb

STEPS = 200
EVERYWHERE = {"joint_placement", "geometry_placement", "size", "vertices", "mass", "com", "inertia", "joint_stiffness",
              "joint_damping", "armature", "actuator_gain", "friction", "gravity"}  # fmt: skip
PENALTY = {"contact_points", "contact_scale", "contact_stiffness", "contact_damping", "contact_friction_stiffness"}
NOT_AT_ZERO = {"joint_stiffness", "joint_damping", "armature"}  # zero is the least they may be

ARM = """<mujoco><worldbody><body name="upper" pos="-.18 0 .3545"><joint name="shoulder" axis="0 1 0" stiffness=".5" damping=".05"
      armature=".002"/><geom name="upper" type="capsule" fromto="0 0 0 .15 0 -.1" size=".02" mass=".3" friction=".3"/>
  <body name="lower" pos=".15 0 -.1"><joint name="elbow" axis="0 1 0" stiffness="1" damping=".05" armature=".001"/>
    <geom name="finger" type="sphere" pos=".02 .005 -.15" size=".03" mass=".2" friction=".4"/></body></body>
  </worldbody>
  <actuator><motor name="shoulder" joint="shoulder"/><motor name="elbow" joint="elbow"/></actuator></mujoco>"""

CARGO = """<mujoco><worldbody>
  <body name="crate" pos="0 0 .1"><freejoint name="crate"/><geom name="crate" type="box" size=".15 .1 .1" mass="1" friction=".25"/>
    <body name="mast" pos="0 .02 .1"><joint name="mast" axis="0 1 0" stiffness="4" damping=".05" armature=".002"/>
      <geom name="mast" type="capsule" fromto="0 0 .02 .03 .01 .25" size=".02" mass=".3"/></body></body>
  <body name="tray" pos="0 1 .5"><joint name="tray" type="slide" axis="1 0 0" stiffness="40" damping="1" armature=".1"/>
    <geom name="tray" type="box" size=".2 .15 .02" mass=".8" friction=".9"/></body>
  </worldbody><actuator><motor name="mast" joint="mast"/><motor name="tray" joint="tray" gear="2"/></actuator></mujoco>"""


def sled():
    """An arm drags its finger over the ground, beside a sled on one corner of its runner: hard contacts that hold all the time."""
    corners = "-.1 -.05 .02 -.1 .05 .02 .1 0 .03 .01 0 -.05"
    scene = coulomb.Scene()
    scene.add_ground(friction=0.2)
    scene.add_mjcf(ARM.replace('pos="-.18 0 .3545"', 'pos="-.18 0 .2799"'))
    scene.add_mjcf(f"""<mujoco><asset><mesh name="runner" vertex="{corners}"/></asset><worldbody><body name="sled" pos="0 .5 .0499">
      <joint name="along" type="slide" axis="1 0 0"/><joint name="up" type="slide" axis="0 0 1"/>
      <joint name="pitch" axis="0 1 0" stiffness="3" damping=".1"/>
      <geom name="runner" type="mesh" mesh="runner" mass=".5" friction=".3"/></body></worldbody></mujoco>""")
    step, stiffness = (
        2.5e-4,
        2e3,
    )  # of springs in hard contact (docs/penalty.md): small changes of shapes open no contact
    model = scene.build().with_parameters({f"compliance/{n}": 1 / (step**2 * stiffness) for n in ("finger", "runner")})
    q, v = model.neutral()
    v[2] = 0.8
    return model, q, v, step, [("finger", "ground"), ("ground", "runner")]


def cargo():
    """Rigid contacts, twelve at a time: a crate with a mast slides on four corners, a stool slides and turns on three, a ball rolls, and
    a box rides on the four corners on which it sticks to a driven tray."""
    scene = coulomb.Scene(gravity=(0.4, 0.1, -9.8), contact_margin=1e-3)  # m: small changes of shapes lose no contact
    scene.add_ground(friction=0.2)
    scene.add_mjcf(CARGO)
    scene.add_box((0.1, 0.12, 0.08), mass=0.5, position=(0.02, 1.01, 0.56), friction=0.8, name="rider")
    corners = [(-0.1, -0.1, -0.03), (-0.1, 0.1, -0.03), (0.125, 0.0, -0.03), (-0.02, -0.01, 0.05), (0.04, 0.01, 0.04)]
    scene.add_mesh(corners, mass=0.6, position=(0.0, -1, 0.03), friction=0.3, name="stool")
    scene.add_sphere(0.06, mass=0.4, position=(0, -2, 0.06), friction=0.7, name="ball")
    model = scene.build()
    q, v = model.neutral()
    at = dict(zip(model.joint_names, model.joint_v))
    v[at["crate"] :][:3] = 2.2, 2.0, 0
    v[at["stool_joint"] :][:6] = 2.4, 2.2, 0, 0, 0, 2.0
    v[at["ball_joint"] :][:6] = 0.5, 0.1, 0, -0.1 / 0.06, 0.5 / 0.06, 0
    v[at["tray"]] = v[at["rider_joint"]] = 0.6
    pairs = [("crate", "ground"), ("ground", "stool"), ("ball", "ground"), ("rider", "tray")]
    return model, q, v, 2e-3, pairs


def wedge():
    """An arm leans its finger on a wedge, which slides over the ground on three corners; a ball rolls on a sliding block."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.2)
    scene.add_mjcf(ARM)
    corners = [(-0.1, -0.1, -0.03), (-0.1, 0.1, -0.03), (0.125, 0.0, -0.03), (-0.09, -0.01, 0.05), (0.09, 0.01, 0.04)]
    scene.add_mesh(corners, mass=0.6, position=(0.0, 0, 0.0299), friction=0.3, name="wedge")
    scene.set_contact("finger", contact_points=[(0.01, 0, -0.028), (0, 0.01, -0.028), (0, -0.01, -0.028)])
    scene.set_contact(
        "finger", contact_stiffness=2e3, contact_scale=0.9, contact_damping=5e3, contact_friction_stiffness=40.0
    )
    scene.add_box((0.3, 0.2, 0.1), mass=0.8, position=(0, 1, 0.04997), friction=0.25, name="block")
    scene.add_sphere(0.06, mass=0.4, position=(0.02, 1.01, 0.15991), friction=0.5, name="ball")
    model = scene.build()
    q, v = model.neutral()
    at = dict(zip(model.joint_names, model.joint_v))
    v[at["wedge_joint"] :][:3] = 0.8, 0, 0
    v[at["block_joint"] :][:3] = 0.9, 0.2, 0
    return model, q, v, 2.5e-4, [("finger", "wedge"), ("wedge", "ground"), ("block", "ground"), ("ball", "block")]


CASES = [
    (sled, "ncp", "semi_implicit"),
    (sled, "lcp", "semi_implicit"),
    (cargo, "ncp", "semi_implicit"),
    (cargo, "lcp", "semi_implicit"),
    (wedge, "penalty", "semi_implicit"),
    (wedge, "penalty", "bdf1"),
    (wedge, "penalty", "bdf2"),
]
# Turns that are kinks themselves, left out of the directions. A body that sticks on four corners of another and is tilted has no motion that
# closes all gaps and slides nowhere: differences see steps that were relaxed. A finger that sticks may push across its planar arm as hard
# as friction lets it, which moves nothing until the arm is turned out of its plane: then it does, to one side or the other.
UPRIGHT, IN_PLANE = np.array([1, 1, 1, 0, 0, 1]), np.array([1, 1, 1, 0, 1, 0])
SLED = [("joint", "shoulder"), ("joint", "elbow"), ("joint", "along"), ("geometry", "finger"), ("geometry", "ground")]
MASKS = {
    cargo: dict.fromkeys(["geometry_placement/tray", "geometry_placement/rider", "joint_placement/tray"], UPRIGHT),
    sled: {f"{kind}_placement/{n}": IN_PLANE for kind, n in SLED},
    wedge: {},
}


def trajectory_of(build, law, stepper):
    """200 steps, all of them with the pairs in contact."""
    model, q, v, step, pairs = build()
    options = {"timestep": step, "stepper": stepper, "contact": law, "tolerance": 1e-13}
    if law == "penalty":
        options |= {"contact_damping": 4e5, "contact_friction_stiffness": 100.0}
    else:
        options |= {"baumgarte": 1.0, "max_correction_speed": 1e3}
    base = coulomb.Simulator(model, **options)
    U = np.tile([0.2, -0.3], (STEPS, 1))
    before = base.rollout(q, v, U[:140])  # until everything touches
    trajectory = Trajectory(base.model, before.q[-1], before.v[-1], U, **base.options)
    for contacts in trajectory.contacts:
        touching = {frozenset(c[:2]) for c in contacts if c[2] != "separating"}
        assert {frozenset(pair) for pair in pairs} <= touching
    return trajectory


@pytest.mark.parametrize(("build", "law", "stepper"), CASES, ids=lambda x: getattr(x, "__name__", x))
def test_two_hundred_steps_by_every_kind(build, law, stepper):
    trajectory = trajectory_of(build, law, stepper)
    trajectory.masks = MASKS[build]
    random = np.random.default_rng(4)
    known = trajectory.model.parameters()
    wanted = EVERYWHERE | (PENALTY if law == "penalty" else set())
    names = [n for n in known if n.split("/")[0] in wanted]
    names = [n for n in names if n.split("/")[0] not in NOT_AT_ZERO or known[n].value.all()]
    g = trajectory.gradient(random.normal(size=2 * trajectory.model.nv), names)
    best, untold = {}, []
    for name in [n for n in names if g[n].any()]:
        kind = name.split("/")[0]
        error = trajectory.compare_one([name], random, tries=3)
        if error is None:
            untold.append(name)
        else:
            best[kind] = min(error, best.get(kind, 1.0))
    print(build.__name__, law, stepper, {kind: f"{error:.0e}" for kind, error in best.items()}, "untold:", untold)
    assert set(best) == wanted
    assert len(untold) <= 3  # such as where the weight of a rider lies that sticks and stays flat
