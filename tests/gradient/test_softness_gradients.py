"""Derivatives of contacts and limits that are as soft as an MJCF file says: depths on both pieces of the impedance's curve, margins, hinges,
slides and balls at their limits, by state, inputs and every parameter; reverse against forward, and along rollouts."""

import numpy as np
import pytest
from all_columns import assert_columns, assert_reverse

import coulomb

pytest.importorskip("mujoco")

# Zero, or equal values of two geometries.
AT_A_KINK = ("compliance", "restitution", "friction", "armature", "joint_friction", "joint_damping", "joint_stiffness")
SOFT = '<default><geom solref=".03 .7" solimp="{solimp}" margin="{margin}"/></default>'
CURVES = {
    "usual": ".9 .95 .001 .5 2",
    "from zero": "0 .8 .01 .3 3",
    "linear": ".5 .9 .004 .5 1",
    "constant": ".8 .8 .01 .5 2",
}


def bodies(curve, margin=0.0, depth=5e-4, mu=0.4):
    """A ball, a box and a capsule pressed into the ground and one another, moving."""
    lift = 2 * margin - depth
    text = f"""<mujoco><option timestep="2e-3"/>{SOFT.format(solimp=CURVES[curve], margin=margin)}
      <worldbody><geom name="floor" type="plane" size="5 5 1" friction="{mu}"/>
      <body pos="0 0 {0.1 + lift}"><freejoint/><geom name="ball" size=".1" mass="1" friction="{mu}"/></body>
      <body pos=".5 0 {0.1 + lift}" quat="1 .001 .002 0"><freejoint/>
        <geom name="box" type="box" size=".2 .1 .1" mass="2" friction="{mu}" solref="-900 -30"/></body>
      <body pos=".5 0 {0.25 + 2 * lift}" quat="1 1 0 0"><freejoint/>
        <geom name="rod" type="capsule" size=".05 .1" mass="1" friction="{mu}"/></body>
      </worldbody></mujoco>"""
    model = coulomb.load(text, softness="file")
    v = np.zeros(model.nv)
    for k, of_body in enumerate(v.reshape(-1, 6)):
        of_body[:] = [0.3 - 0.2 * k, 0.1 * k, -0.1 - 0.05 * k, 0.2, -0.1 * k, 0.3]
    return model, model.neutral()[0], v


def arm(solimp=".5 .9 .05 .5 2"):
    """Hinge, ball and slide, all beyond their limits."""
    soft = f'solreflimit=".04 .6" solimplimit="{solimp}"'
    text = f"""<mujoco><option timestep="2e-3"/><worldbody><body>
      <joint name="hinge" axis="0 1 0" range="-20 20" {soft}/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" mass="1"/>
      <body pos=".3 0 0"><joint name="ball" type="ball" range="0 20" {soft} margin=".01"/>
        <geom type="box" size=".1 .05 .02" pos=".1 0 0" mass=".7"/>
        <body pos=".2 0 0"><joint name="slide" type="slide" axis="1 .2 0" range="-.1 .1" {soft}/>
          <geom type="sphere" size=".05" mass=".4"/></body></body></body>
      </worldbody><actuator><motor joint="hinge"/></actuator></mujoco>"""
    model = coulomb.load(text, softness="file")
    angle = np.array([0.2, 0.25, 0.1])
    half = np.linalg.norm(angle) / 2
    q = np.r_[0.37, np.cos(half), np.sin(half) * angle / (2 * half), 0.12]
    return model, q, np.array([0.5, -0.3, 0.4, 0.2, -0.3])


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("margin", [0, 0.01])
def test_contacts(contact, curve, margin):
    model, q, v = bodies(curve, margin)
    sim = coulomb.Simulator(model, contact=contact)
    names = [name for name in model.parameters() if name.split("/")[0] not in AT_A_KINK]
    assert {"pair_stiffness", "pair_dashpot", "pair_inertia"} <= {name.split("/")[0] for name in names}
    assert_columns(sim, q, v, None, names)
    assert_reverse(sim, q, v, None, names)


@pytest.mark.parametrize("depth", [2e-5, 3e-4, 2e-3])
def test_depths(depth):
    """On the first piece of the curve, on the second, and beyond."""
    model, q, v = bodies("usual", depth=depth)
    sim = coulomb.Simulator(model)
    sim.step(q, v)
    names = [name for name in model.parameters() if name.startswith("pair_")]
    derivatives = sim.derivatives(wrt=names)
    assert all(np.abs(derivatives[name]).max() > 0 for name in names if "floor:" in name and "rod" not in name)
    assert_columns(sim, q, v, None, names)


@pytest.mark.parametrize("solimp", [".5 .9 .05 .5 2", "0 .8 .3 .4 3", ".8 .8 .01 .5 2"])
def test_limits(solimp):
    model, q, v = arm(solimp)
    sim = coulomb.Simulator(model)
    names = [name for name in model.parameters() if name.split("/")[0] not in AT_A_KINK]
    assert {
        f"joint_limit_{kind}/{joint}" for kind in ("stiffness", "dashpot") for joint in ("hinge", "ball", "slide")
    } <= set(names)
    check = coulomb.check_gradients(sim, q, v, np.array([0.5]), wrt=["q", "v", "u", "tau", *names])
    assert check.passed and check.compared > 0.9 * check.columns, str(check)
    assert_reverse(sim, q, v, np.array([0.5]), names)


@pytest.mark.parametrize("solref", ["-4000 -80", "-4000 0"], ids=["dashpot", "mass alone"])
def test_touch_is_a_kink(solref):
    """At distance 0 the dashpot and the mass come in: two slopes of the bias, the closed one is returned and the flag is set."""
    text = f"""<mujoco><option timestep="1e-3"/><worldbody><geom type="plane" size="5 5 1" condim="1" solref="{solref}"/>
      <body pos="0 0 .1"><freejoint/><geom size=".1" mass="2" condim="1" solref="{solref}"/></body></worldbody></mujoco>"""
    sim = coulomb.Simulator(coulomb.load(text, softness="file"))
    q, v = sim.model.neutral()
    v[2] = -0.5
    slopes = []
    for gap in (-1e-9, 0.0, 1e-9):
        q[2] = 0.1 + gap
        sim.step(q, v)
        found = sim.derivatives()
        assert found.ambiguous == (gap == 0)
        slopes.append(found.dv_dq[2, 2])
    assert slopes[1] == pytest.approx(slopes[0], rel=1e-5) and slopes[2] != pytest.approx(slopes[0], rel=1e-3)


@pytest.mark.parametrize("keep", [True, False])
def test_a_rollout_that_lands(keep):
    """Taylor remainders by the start and by the pair's spring; steps recalled and run again."""
    text = """<mujoco><option timestep="1e-3"/><worldbody><geom name="floor" type="plane" size="5 5 1"/>
      <body pos="0 0 .102"><freejoint/><geom name="ball" size=".1" mass="2"/></body></worldbody></mujoco>"""
    model = coulomb.load(text, softness="file")
    names = [f"pair_{kind}/floor:ball" for kind in ("stiffness", "dashpot", "inertia")]
    q0, _ = model.neutral()
    v0 = np.array([0.4, 0, -0.4, 0, 0, 0.0])
    random = np.random.default_rng(1)
    dv = random.normal(size=model.nv)
    share = dict(zip(names, random.normal(size=3), strict=True))
    options = {} if keep else {"memory_budget": 110000}

    def rollout(epsilon):
        values = {name: model.parameters()[name].value * (1 + epsilon * x) for name, x in share.items()}
        sim = coulomb.Simulator(model.with_parameters(values))
        return sim.rollout(q0, v0 + epsilon * dv, steps=120, **options)

    base = rollout(0.0)
    assert base.q[:, 2].min() < 0.099
    W = np.zeros((2, 121, model.nv))
    W[:, -1] = random.normal(size=(2, model.nv))
    g = base.vjp(W[0], W[1], wrt=names)
    slope = g.v0 @ dv + sum(float(g[n][0]) * x * float(model.parameters()[n].value[0]) for n, x in share.items())

    def loss(r):
        return W[0][-1] @ model.difference(base.q[-1], r.q[-1]) + W[1][-1] @ (r.v[-1] - base.v[-1])

    sizes = np.array([4e-4, 2e-4, 1e-4])
    rest = np.array([abs(loss(rollout(e)) - e * slope) for e in sizes])
    orders = np.log2(rest[:-1] / rest[1:])
    assert (orders > 1.7).all() and (orders < 2.4).all(), (rest, orders)
