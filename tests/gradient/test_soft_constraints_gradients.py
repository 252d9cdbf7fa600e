"""Derivatives of equalities, tendon limits and dry friction that are as soft as an MJCF file says: by state, inputs and every parameter, on all
pieces of the impedance's curve; reverse against forward, and along rollouts."""

import numpy as np
import pytest
from all_columns import assert_reverse

import coulomb

pytest.importorskip("mujoco")

# Zero, or equal values of two geometries.
AT_A_KINK = ("compliance", "restitution", "friction", "armature", "joint_damping", "joint_stiffness")
CURVES = {
    "usual": ".9 .95 .001 .5 2",
    "wide": ".3 .9 .4 .3 3",
    "linear": ".5 .9 .3 .5 1",
    "constant": ".8 .8 .01 .5 2",
}

CHAIN = """<body pos="0 0 1"><joint name="hinge" axis="0 1 0" frictionloss="{loss}" {friction}/>
    <geom type="capsule" size=".03" fromto="0 0 0 .4 0 0" mass="1" contype="0" conaffinity="0"/><site name="start" pos=".1 .1 .05"/>
    <body name="elbow" pos=".4 0 0"><joint name="ball" type="ball"/>
      <geom type="box" size=".1 .05 .02" pos=".1 0 0" mass=".7" contype="0" conaffinity="0"/><site name="end" pos=".2 -.1 .1"/>
      <body name="hand" pos=".2 0 0"><joint name="slide" type="slide" axis="1 .2 0"/>
        <geom type="sphere" size=".05" mass=".4" contype="0" conaffinity="0"/></body></body></body>"""
FREE = """<body name="free" pos=".9 0 1"><freejoint/><geom type="box" size=".1 .07 .05" mass="1.5" contype="0" conaffinity="0"/></body>"""
PARTS = {
    "connect": '<equality><connect name="e" body1="hand" body2="free" anchor=".1 .05 0" {law}/></equality>',
    "connect to the world": '<equality><connect name="e" body1="hand" anchor=".1 .05 0" {law}/></equality>',
    "weld": '<equality><weld name="e" body1="hand" body2="free" {law}/></equality>',
    "weld of some weight": '<equality><weld name="e" body1="free" body2="elbow" torquescale=".3" {law}/></equality>',
    "joints": '<equality><joint name="e" joint1="slide" joint2="hinge" polycoef=".1 .5 -.7 .2 0" {law}/></equality>',
    "joint alone": '<equality><joint name="e" joint1="hinge" polycoef=".2 0 0 0 0" {law}/></equality>',
    "fixed tendons": """<tendon><fixed name="t"><joint joint="slide" coef="1"/><joint joint="hinge" coef=".5"/></fixed></tendon>
        <equality><tendon name="e" tendon1="t" {law}/></equality>""",
    "path": """<tendon><spatial name="t"><site site="start"/><site site="end"/></spatial></tendon>
        <equality><tendon name="e" tendon1="t" polycoef="-.1 0 0 0 0" {law}/></equality>""",
    "limit of a path": """<tendon><spatial name="t" range=".1 .2" {limit}><site site="start"/><site site="end"/></spatial></tendon>""",
    "limit of joints": """<tendon><fixed name="t" range=".3 .5" {limit}><joint joint="slide" coef="1"/><joint joint="hinge" coef=".5"/></fixed></tendon>""",
    "friction of a path": """<tendon><spatial name="t" frictionloss="{of_tendon}" {friction}><site site="start"/><site site="end"/></spatial></tendon>""",
}


def scene(part, curve="wide", reference=".04 .6", loss=0.0, of_tendon=0.0):
    numbers = f'solref{{0}}="{reference}" solimp{{0}}="{CURVES[curve]}"'
    text = f'<mujoco><option timestep="2e-3"/><worldbody>{CHAIN}{FREE}</worldbody>{PARTS.get(part, "")}</mujoco>'
    text = text.format(
        law=numbers.format(""),
        limit=numbers.format("limit"),
        friction=numbers.format("friction"),
        loss=loss,
        of_tendon=of_tendon,
    )
    model = coulomb.load(text, softness="file")
    random = np.random.default_rng(3)
    q = model.integrate(model.neutral()[0], random.normal(size=model.nv) * 0.15)
    return model, q, random.normal(size=model.nv) * 0.4


def names_of(model):
    def compared(name, parameter):
        kind = name.split("/")[0]
        on_a_path = kind in ("joint_placement", "body_placement")  # without a derivative where a tendon's path goes
        return kind not in AT_A_KINK and not on_a_path and not (kind == "joint_friction" and not parameter.value.all())

    return [name for name, parameter in model.parameters().items() if compared(name, parameter)]


def check(model, q, v, contact="ncp", placements=False):
    sim = coulomb.Simulator(model, contact=contact)
    names = names_of(model)
    if placements:
        names += [name for name in model.parameters() if name.split("/")[0] in ("joint_placement", "body_placement")]
    found = coulomb.check_gradients(sim, q, v, None, wrt=["q", "v", "tau", *names])
    assert found.passed and found.compared > 0.9 * found.columns, str(found)
    assert_reverse(sim, q, v, None, names)
    return sim


@pytest.mark.parametrize("part", [part for part in PARTS if not part.startswith("friction")])
@pytest.mark.parametrize("curve", CURVES)
def test_equalities_and_limits(part, curve):
    model, q, v = scene(part, curve)
    kinds = {name.split("/")[0] for name in names_of(model)}
    prefix = "tendon_limit" if part.startswith("limit") else "equality"
    assert {f"{prefix}_{number}" for number in ("stiffness", "dashpot", "inertia")} <= kinds
    check(model, q, v, placements="path" not in part)


@pytest.mark.parametrize("part", ["weld", "joints", "limit of a path"])
def test_direct_reference_in_lcp(part):
    model, q, v = scene(part, reference="-900 -30")
    check(model, q, v, contact="lcp")


@pytest.mark.parametrize("loss", [0.05, 50.0], ids=["slides", "holds"])
@pytest.mark.parametrize("part", ["", "friction of a path", "weld"])
def test_dry_friction(part, loss):
    model, q, v = scene(part, reference=".4 .6", loss=loss, of_tendon=loss)
    kinds = {name.split("/")[0] for name in names_of(model)}
    assert {"joint_friction_dashpot", "joint_friction_inertia"} <= kinds
    assert ("tendon_friction_dashpot" in kinds) == (part == "friction of a path")
    sim = check(model, q, v)
    sim.step(q, v)
    names = [name for name in model.parameters() if name.startswith("joint_friction_")]
    derivatives = sim.derivatives(wrt=[*names, "joint_friction/hinge"])
    felt = {name: np.abs(derivatives[name]).max() > 0 for name in names}
    assert set(felt.values()) == {loss > 1}
    assert (np.abs(derivatives["joint_friction/hinge"]).max() > 0) == (loss < 1)


def test_an_error_of_zero_is_a_kink_of_a_linear_curve():
    """|r| has two slopes there; a power of two has one."""
    for curve, kink in (("linear", True), ("wide", False)):
        model, q, v = scene("joint alone", curve)
        sim = coulomb.Simulator(model)
        q[0] = model.neutral()[0][0] + 0.2
        sim.step(q, v)
        assert sim.derivatives().ambiguous == kink
        q[0] += 1e-5
        sim.step(q, v)
        assert not sim.derivatives().ambiguous


@pytest.mark.parametrize("part", ["weld", "connect", "joints", "limit of a path", "friction of a path"])
def test_rollouts(part):
    """Taylor remainders by the start and by the numbers of the law."""
    model, q0, v0 = scene(part, reference=".1 .5", loss=3.0, of_tendon=0.3)
    names = [n for n in model.parameters() if n.split("_")[0] in ("equality", "tendon") and n.split("/")[0].count("_")]
    names = [n for n in names if n.split("/")[0].split("_")[-1] in ("stiffness", "dashpot", "inertia")]
    assert names
    random = np.random.default_rng(1)
    dv = random.normal(size=model.nv)
    share = dict(zip(names, random.normal(size=len(names)), strict=True))

    def rollout(epsilon):
        values = {name: model.parameters()[name].value * (1 + epsilon * x) for name, x in share.items()}
        sim = coulomb.Simulator(model.with_parameters(values))
        return sim.rollout(q0, v0 + epsilon * dv, steps=40)

    base = rollout(0.0)
    W = np.zeros((2, 41, model.nv))
    W[:, -1] = random.normal(size=(2, model.nv))
    g = base.vjp(W[0], W[1], wrt=names)
    slope = g.v0 @ dv + sum(float(g[n][0]) * x * float(model.parameters()[n].value[0]) for n, x in share.items())

    def loss(r):
        return W[0][-1] @ model.difference(base.q[-1], r.q[-1]) + W[1][-1] @ (r.v[-1] - base.v[-1])

    sizes = np.array([4e-5, 2e-5, 1e-5])
    rest = np.array([abs(loss(rollout(e)) - e * slope) for e in sizes])
    orders = np.log2(rest[:-1] / rest[1:])
    assert (orders > 1.7).all() and (orders < 2.4).all(), (rest, orders)
