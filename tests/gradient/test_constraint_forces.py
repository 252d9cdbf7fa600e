"""Forces of joint limits, dry friction and equalities by name: what they must be, and their derivatives, with every stepper."""

import numpy as np
import pytest

import coulomb

IN = 'diaginertia=".002 .003 .004"'
# A chain of two links whose tip hangs on a string of a connection, a slide coupled to a hinge, a welded flap, a joint beyond its limit and
# two with dry friction: one slips, one holds.
MACHINE = f"""<mujoco><option gravity="0 0 -9.81" timestep="0.002"/><worldbody>
<body name="upper" pos="0 0 1"><joint name="j1" axis="0 1 0" damping=".05" armature=".01" frictionloss=".02"/>
 <inertial pos="0 0 -.1" mass=".3" {IN}/>
 <body name="lower" pos="0 0 -.2"><joint name="j2" axis="0 1 0" damping=".05" armature=".01" limited="true" range="-60 -35"/>
  <inertial pos="0 .01 -.1" mass=".2" {IN}/></body></body>
<body name="hung" pos=".3 0 .5"><freejoint name="free"/><inertial pos="0 0 -.05" mass=".4" {IN}/></body>
<body name="flap" pos=".6 .1 .5"><joint name="turn" type="ball" frictionloss="5"/><inertial pos=".1 0 0" mass=".25" {IN}/></body>
<body name="lid" pos=".9 0 .5"><freejoint name="loose"/><inertial pos="0 .02 0" mass=".35" {IN}/></body>
<body name="cart" pos="0 1 0"><joint name="s" type="slide" axis="1 0 .2"/><inertial pos="0 0 0" mass=".5" {IN}/>
 <body name="wheel"><joint name="w" axis="0 1 0"/><inertial pos=".05 0 0" mass=".1" {IN}/></body></body>
</worldbody>
<equality><connect name="string" body1="hung" body2="upper" anchor="0 0 .1"/>
 <weld name="glue" body1="lid" body2="upper" torquescale="1"/>
 <joint name="gear" joint1="w" joint2="s" polycoef="0 2 .3 0 0"/></equality>
<actuator><motor joint="j1"/><motor joint="s"/></actuator></mujoco>"""
NAMES = [
    "joint_limit_force/j2",
    "joint_friction_force/j1",
    "joint_friction_force/turn",
    "equality_force/string",
    "equality_force/glue",
    "equality_force/gear",
    "actuator_force/actuator0",
]
PARAMETERS = ["mass/hung", "mass/lid", "joint_friction/j1", "joint_friction/turn", "joint_limits/j2", "joint_placement/j1",
              "joint_placement/j2", "com/lid", "gravity", "actuator_gain/actuator0"]  # fmt: skip
# Impulses are solved to 1e-14 beside the largest of them and divided by the time step: steps of differences are as long as the terms of
# fifth order allow.
STEPS = dict(actuator_gain=1e-1, gravity=1e-1, joint_friction=2e-3, mass=1e-3, joint_limits=1e-3, joint_placement=1e-3)
SOFT = dict(
    limit_stiffness=20, limit_damping=0.5, equality_stiffness=200, equality_damping=3, dry_friction_velocity=0.05
)
OPTIONS = {
    "semi_implicit": dict(),
    "penalty": dict(contact="penalty", **SOFT),
    "bdf1": dict(stepper="bdf1", **SOFT),
    "bdf2": dict(stepper="bdf2", **SOFT),
}


def start(seed=0):
    model = coulomb.load(MACHINE)
    q, v = model.state(j1=0.5, j2=-0.6, v=dict(j1=0.4, j2=-0.1))
    random = np.random.default_rng(seed)
    q = model.integrate(q, 1e-3 * random.normal(size=model.nv))
    return model, q, v + 1e-2 * random.normal(size=model.nv), 0.1 * random.normal(size=model.nu)


def simulator(model, options):
    return coulomb.Simulator(model, tolerance=1e-14, **OPTIONS[options])


def differences(f, size, h):
    columns = []
    for e in np.eye(size):
        columns.append((8 * (f(h * e) - f(-h * e)) - (f(2 * h * e) - f(-2 * h * e))) / (12 * h))
    return np.array(columns).T


def test_they_are_listed():
    model = start()[0]
    listed = model.force_outputs()
    assert set(NAMES) <= set(listed)
    sizes = [listed[name].size for name in NAMES]
    assert sizes == [1, 1, 3, 3, 6, 1, 1] and listed["equality_force/glue"].unit == "N, N m"


def test_what_hangs_weighs():
    """At rest a connection and a weld carry the weight, a limit and dry friction the torque of gravity."""
    xml = f"""<mujoco><option timestep="0.002"/><worldbody>
      <body name="ball" pos="0 0 1"><freejoint/><inertial pos="0 0 0" mass=".4" {IN}/></body>
      <body name="lid" pos="1 0 1"><freejoint/><inertial pos=".1 0 0" mass=".3" {IN}/></body>
      <body pos="0 1 1"><joint name="stop" axis="0 1 0" range="0 90"/><inertial pos="-.2 0 0" mass=".5" {IN}/></body>
      <body pos="0 2 1"><joint name="stuck" axis="0 1 0" frictionloss="9"/><inertial pos=".2 0 0" mass=".5" {IN}/></body>
      </worldbody><equality><connect name="string" body1="ball" anchor="0 0 .2"/><weld name="glue" body1="lid"/></equality></mujoco>"""
    model = coulomb.load(xml)
    sim = coulomb.Simulator(model)
    r = sim.rollout(*model.neutral(), steps=3)
    g = 9.81
    # the weld's anchor, about which its torque is, is the origin of the world; a compliance of 3e-6 relative to the rows' mobility is all that is missing
    assert np.allclose(r.output("equality_force/string")[-1], [0, 0, 0.4 * g], rtol=1e-5, atol=1e-6)
    assert np.allclose(r.output("equality_force/glue")[-1], [0, 0, 0.3 * g, 0, -1.1 * 0.3 * g, 0], rtol=1e-5, atol=1e-5)
    assert np.allclose(sum(r.output("joint_limit_force/stop")[-1]), 0.2 * 0.5 * g, rtol=1e-5)
    assert np.allclose(r.output("joint_friction_force/stuck")[-1], -0.2 * 0.5 * g, rtol=1e-5)
    assert not r.output("equality_force/string")[0].any()  # of no step


@pytest.mark.parametrize("options", ["semi_implicit", "penalty", "bdf1"])
def test_the_momentum_balance_knows_them(options):
    """The forces, put in as joint forces instead of their causes, give the same step."""
    model, q, v, u = start()
    sim = simulator(model, options)
    q1, v1 = sim.step(q, v, u)
    where = q1 if options != "semi_implicit" else q  # where its springs act
    forces = {name: sim.output(name) for name in NAMES}
    assert all(np.abs(forces[name]).max() > 1e-3 for name in NAMES)
    tau = np.zeros(model.nv)
    tau[model.joint("j2").v] += -forces["joint_limit_force/j2"]  # its upper limit: it pushes back
    for name in ("j1", "turn"):
        tau[model.joint(name).v] += forces[f"joint_friction_force/{name}"]
    for equality in model.equalities:
        force = forces[f"equality_force/{equality.name}"]
        if equality.type == "joint":
            x = where[model.joint_q[equality.joint_b]]
            tau[model.joint_v[equality.joint_a]] += force[0]
            tau[model.joint_v[equality.joint_b]] -= force[0] * (2 + 0.6 * x)
            continue
        for body, point, sign in ((equality.body_a, equality.pos_a, 1), (equality.body_b, equality.pos_b, -1)):
            J = model.point_jacobian(where, body, point)
            tau += sign * J[: force.size].T @ force
    free = coulomb.load(
        MACHINE.replace('frictionloss=".02"', "").replace('frictionloss="5"', "").replace('limited="true"', 'limited="false"')
        .split("<equality>")[0] + MACHINE.split("</equality>")[1]
    )  # fmt: skip
    alone = simulator(free, options)
    v2 = alone.step(q, v, u, tau=tau)[1]
    assert np.allclose(v1, v2, rtol=0, atol=1e-10)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("wrt", ["q", "v", "u", "tau"])
def test_derivatives_by_inputs(options, wrt):
    model, q, v, u = start()
    sim = simulator(model, options)
    tau = np.zeros(model.nv)
    sim.step(q, v, u, tau)
    d = sim.derivatives()
    analytic = np.vstack([d.output(name, wrt) for name in NAMES])
    assert np.array_equal(analytic, d.output(NAMES, wrt))

    def forces(e):
        sim.reset()
        moved = {"q": q, "v": v, "u": u, "tau": tau}
        moved[wrt] = model.integrate(q, e) if wrt == "q" else moved[wrt] + e
        sim.step(*moved.values())
        return sim.output(NAMES)

    numbers = differences(forces, model.nu if wrt == "u" else model.nv, {"q": 1e-5, "v": 1e-4, "u": 1.0}.get(wrt, 1e-1))
    scale = np.abs(numbers).max(axis=1, keepdims=True) + 1e-3
    assert np.abs((analytic - numbers) / scale).max() < 2e-7


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", PARAMETERS)
def test_derivatives_by_parameters(options, name):
    model, q, v, u = start()
    sim = simulator(model, options)
    sim.step(q, v, u)
    analytic = sim.derivatives(wrt=[name]).output(NAMES, name)
    value = np.asarray(model.parameters()[name].value, dtype=float)

    def forces(e):
        changed = simulator(model.with_parameters({name: value + e}), options)
        changed.step(q, v, u)
        return changed.output(NAMES)

    numbers = differences(forces, value.size, STEPS.get(name.split("/")[0], 1e-4))
    scale = np.abs(numbers).max(axis=1, keepdims=True) + 1e-2
    assert np.abs((analytic - numbers) / scale).max() < 1e-6


@pytest.mark.parametrize("options", OPTIONS)
def test_along_a_rollout_and_in_a_batch(options):
    model, q, v, u = start()
    steps, random = 6, np.random.default_rng(1)
    sim = simulator(model, options)
    U = np.tile(u, (steps, 1))
    sizes = model.force_outputs()
    outputs = {name: random.normal(size=(steps + 1, sizes[name].tangent_size)) for name in NAMES}
    direction = random.normal(size=model.nv)

    def loss(s):
        r = sim.rollout(q, v + s * direction, U)
        return sum((r.output(name) * w).sum() for name, w in outputs.items())

    g = sim.rollout(q, v, U).vjp(outputs=outputs)
    h = 1e-5
    number = (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h)
    assert abs(g.v0 @ direction / number - 1) < 1e-6
    batch = coulomb.BatchSimulator(model, 2, tolerance=1e-14, **OPTIONS[options])
    r = batch.rollout(np.stack([q, q]), np.stack([v, v]), np.stack([U, U]))
    single = sim.rollout(q, v, U)
    for name in NAMES:
        assert np.array_equal(r.output(name)[1], single.output(name))
    of_batch = r.vjp(outputs={name: np.stack([w, w]) for name, w in outputs.items()})
    assert np.array_equal(of_batch.v0[1], g.v0)
    batch.reset()
    batch.step(np.stack([q, q]), np.stack([v, v]), np.stack([u, u]))
    sim.reset()
    sim.step(q, v, u)
    assert np.array_equal(batch.output(NAMES)[0], sim.output(NAMES))


def test_steps_that_do_not_tell():
    model, q, v, u = start()
    sim = coulomb.Simulator(model, continuous_collision=True)
    sim.step(q, v, u)
    for name in NAMES[:-1]:
        with pytest.raises(RuntimeError, match=f"{name}.*continuous_collision"):
            sim.output(name)
