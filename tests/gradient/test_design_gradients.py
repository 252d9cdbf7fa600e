"""The gradient of a trajectory in contact by every kind of design parameter, in every stepper and contact law, against differences."""

import numpy as np
import pytest

import coulomb

STEPS, STEP = 200, 2.5e-4
LAWS = [
    ("ncp", "semi_implicit"),
    ("lcp", "semi_implicit"),
    ("penalty", "semi_implicit"),
    ("penalty", "bdf1"),
    ("penalty", "bdf2"),
]
EVERYWHERE = {"joint_placement", "geometry_placement", "size", "vertices", "mass", "com", "inertia", "joint_stiffness",
              "joint_damping", "armature", "actuator_gain", "friction"}  # fmt: skip
PENALTY = {"contact_points", "contact_scale", "contact_stiffness", "contact_damping", "contact_friction_stiffness"}

ARM = """<mujoco><worldbody><body name="upper" pos="-.18 0 .3545"><joint name="shoulder" axis="0 1 0" stiffness=".5" damping=".05"
      armature=".002"/><geom name="upper" type="capsule" fromto="0 0 0 .15 0 -.1" size=".02" mass=".3" friction=".3"/>
  <body name="lower" pos=".15 0 -.1"><joint name="elbow" axis="0 1 0" stiffness="1" damping=".05" armature=".001"/>
    <geom name="finger" type="sphere" pos=".02 .005 -.15" size=".03" mass=".2" friction=".4"/></body></body>
  </worldbody>
  <actuator><motor name="shoulder" joint="shoulder"/><motor name="elbow" joint="elbow"/></actuator></mujoco>"""


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
    stiffness = 2e3  # of springs in hard contact (docs/penalty.md), so that small changes of shapes open no contact
    model = scene.build().with_parameters({f"compliance/{n}": 1 / (STEP**2 * stiffness) for n in ("finger", "runner")})
    q, v = model.neutral()
    v[2] = 0.8
    return model, q, v, [("finger", "ground"), ("ground", "runner")]


def wedge():
    """An arm leans its finger on a wedge, which slides over the ground on three corners."""
    scene = coulomb.Scene()
    scene.add_ground(friction=0.2)
    scene.add_mjcf(ARM)
    corners = [(-0.1, -0.1, -0.03), (-0.1, 0.1, -0.03), (0.125, 0.0, -0.03), (-0.09, -0.01, 0.05), (0.09, 0.01, 0.04)]
    scene.add_mesh(corners, mass=0.6, position=(0.0, 0, 0.0299), friction=0.3, name="wedge")
    scene.set_contact("finger", contact_points=[(0.01, 0, -0.028), (0, 0.01, -0.028), (0, -0.01, -0.028)])
    scene.set_contact(
        "finger", contact_stiffness=2e3, contact_scale=0.9, contact_damping=5e3, contact_friction_stiffness=40.0
    )
    model = scene.build()
    q, v = model.neutral()
    v[-6:-3] = 0.8, 0, 0
    return model, q, v, [("finger", "wedge"), ("wedge", "ground")]


def slopes(f):
    """Central differences of fourth order: within the larger are kinks, the smaller drown in rounding."""
    return [(8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h) for h in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)]


@pytest.mark.parametrize(("law", "stepper"), LAWS)
def test_two_hundred_steps_by_every_kind(law, stepper):
    model, q, v, pairs = wedge() if law == "penalty" else sled()
    options = {"timestep": STEP, "stepper": stepper, "contact": law, "tolerance": 1e-13}
    if law == "penalty":
        options |= {"contact_damping": 4e5, "contact_friction_stiffness": 100.0}
    else:
        options |= {"baumgarte": 1.0, "max_correction_speed": 1e3}
    base = coulomb.Simulator(model, **options)
    model, options = base.model, base.options
    U = np.tile([0.2, -0.3], (STEPS, 1))
    before = base.rollout(q, v, U[:140])  # until everything touches
    q, v = before.q[-1], before.v[-1]
    r = base.rollout(q, v, U)
    assert r.converged
    touching = {frozenset((c.geometry_a, c.geometry_b)) for c in base.contacts if c.mode != "separating"}
    assert {frozenset(pair) for pair in pairs} <= touching
    random = np.random.default_rng(4)
    wq, wv = random.normal(size=(2, model.nv))
    dQ, dV = np.zeros((2, STEPS + 1, model.nv))
    dQ[-1], dV[-1] = wq, wv
    known = model.parameters()
    names = [n for n in known if n.split("/")[0] in EVERYWHERE | (PENALTY if law == "penalty" else set())]
    g = r.vjp(dQ, dV, wrt=names)

    def objective(name, values):
        end = coulomb.Simulator(model.with_parameters({name: values}), **options).rollout(q, v, U)
        return wq @ model.difference(r.q[-1], end.q[-1]) + wv @ (end.v[-1] - r.v[-1])

    total = max(np.abs(g[n] * known[n].value).max() for n in names)
    felt = set()
    for name in names:
        at = known[name].value
        if not at.any() or np.abs(g[name]).max() * np.abs(at).max() < 1e-6 * total:
            continue
        felt.add(name.split("/")[0])
        d = random.normal(size=at.size) * np.maximum(np.abs(at), 0.1 * np.abs(at).max())
        if name.startswith("inertia"):
            d = at * np.r_[1, 0.1 * random.normal(size=at.size - 1)]
        found, expected = slopes(lambda e, name=name, at=at, d=d: objective(name, at + e * d)), g[name] @ d
        assert min(abs(x - expected) for x in found) <= 1e-6 * abs(expected) + 1e-8 * total, (name, found, expected)
    assert felt == (
        EVERYWHERE - {"size"} | PENALTY if law == "penalty" else EVERYWHERE
    )  # points do not move with sizes
