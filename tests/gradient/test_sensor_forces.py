"""Sensors of contacts and forces of tendons: against the impulses of the step, by differences, reverse against forward, along rollouts."""

import numpy as np
import pytest
from test_force_outputs import differences

import coulomb

DATA = 'data="found force torque dist pos normal tangent"'
# A stool of three feet that slides, under a force that leans, and an arm whose weight pulls its tendons to their limits.
SCENE = f"""<mujoco><option timestep="0.002" gravity="1.2 -.8 -9.6"/><worldbody>
  <geom name="floor" type="plane" size="5 5 .1" friction=".3"/>
  <body name="stool" pos="0 0 .1" euler="0 0 20"><freejoint/>
    <inertial pos=".01 .02 .05" mass="1.5" diaginertia=".01 .012 .02"/>
    <geom name="foot0" friction=".2" size=".03" pos=".2 0 -.07"/><geom name="foot1" friction=".2" size=".03" pos="-.1 .17 -.070003"/>
    <geom name="foot2" friction=".2" type="ellipsoid" size=".03 .04 .03" pos="-.1 -.17 -.069996"/>
    <site name="zone" size=".1" pos=".2 0 -.07"/></body>
  <body name="upper" pos="0 0 2"><joint name="j1" axis="0 1 0" damping=".05"/><geom name="u" type="capsule" fromto="0 0 0 .3 0 0" size=".02" contype="0" conaffinity="0"/>
    <site name="p" pos=".1 0 .15"/>
    <body name="lower" pos=".3 0 0"><joint name="j2" axis="0 1 .2" damping=".05"/><geom name="l" type="capsule" fromto="0 0 0 .3 0 0" size=".02" contype="0" conaffinity="0"/>
      <site name="r" pos=".15 0 .15"/></body></body>
  </worldbody>
  <tendon><fixed name="sum" limited="true" range="-.5 SUM"><joint joint="j1" coef="1"/><joint joint="j2" coef="-.5"/></fixed>
    <spatial name="cord" limited="true" range="0 CORD"><site site="p"/><site site="r"/></spatial></tendon>
  <actuator><motor name="m0" tendon="sum" gear="2"/><position name="m1" tendon="sum" kp="3"/><motor name="m2" tendon="cord"/></actuator>
  <sensor><tendonactuatorfrc name="pull0" tendon="sum"/><tendonactuatorfrc name="pull1" tendon="cord"/>
    <tendonlimitfrc name="limit0" tendon="sum"/><tendonlimitfrc name="limit1" tendon="cord"/>
    <contact name="feet" geom1="floor" subtree2="stool" num="4" {DATA}/>
    <contact name="turned" body1="stool" num="2" reduce="mindist" {DATA}/>
    <contact name="strong" geom2="foot1" num="1" reduce="maxforce" {DATA}/>
    <contact name="net" geom1="floor" body2="stool" reduce="netforce" {DATA}/>
    <contact name="away" body1="stool" reduce="netforce" {DATA}/>
    <contact name="zone" site="zone" {DATA}/></sensor></mujoco>"""
OPTIONS = {
    "ncp": dict(tolerance=1e-14),
    "lcp": dict(contact="lcp", tolerance=1e-14),
    "penalty": dict(contact="penalty", contact_stiffness=1e4, contact_damping=1e3, contact_friction_stiffness=50, tolerance=1e-13),
    "bdf1": dict(stepper="bdf1", contact_stiffness=1e4, contact_damping=1e3, contact_friction_stiffness=50, limit_stiffness=50, tolerance=1e-13),
}  # fmt: skip
PARAMETERS = [
    "mass/stool",
    "friction/floor",
    "geometry_placement/foot1",
    "size/foot2",
    "tendon_limits/sum",
    "actuator_gain/m0",
    "timestep",
]


def start(options="ncp"):
    """The feet touch, and the arm comes to both of its limits in the step; where they are springs, it is beyond them."""
    soft = options in ("penalty", "bdf1")
    arm = [0.5, 0.3]
    free = coulomb.load(SCENE.replace("SUM", "9").replace("CORD", "9"))
    q = np.array(free.neutral()[0])
    q[7:] = arm
    beyond = 0.01 if soft else -2e-4
    lengths = [free.output(f"tendon_length/{name}", q)[0] - beyond for name in ("sum", "cord")]
    model = coulomb.load(SCENE.replace("SUM", str(lengths[0])).replace("CORD", str(lengths[1])))
    q[2] -= 1e-3 if soft else 1e-5
    v = np.zeros(model.nv)
    v[:2], v[5] = [1.0, 0.3], 0.4
    if not soft:
        v[6:] = [2.0, 1.5]
    u = np.array([0.3, 0.1, 0.5])
    sim = coulomb.Simulator(model, **OPTIONS[options])
    if not soft:
        sim.step(q, v, u)  # its memory
    return model, sim, q, v, u


def names_of(model):
    return [f"sensor/{name}" for name in model.sensor_names]


@pytest.mark.parametrize("options", OPTIONS)
def test_readings_are_those_of_the_contacts(options):
    model, sim, q, v, u = start(options)
    sim.step(q, v, u)
    h = 0.002
    contacts = [c for c in sim.contacts if np.any(c.impulse) or c.depth >= 0]
    assert len(contacts) == 3
    rows = sim.output("sensor/feet").reshape(4, 17)
    assert (rows[:3, 0] == 3).all() and not rows[3].any()
    total, moment = np.zeros(3), np.zeros(3)
    weights, points, forces = [], [], []
    for c, row in zip(contacts, rows[:3]):
        # From the floor to the foot; the force acts on the foot.
        on_foot = 1.0 if c.geometry_a != "floor" else -1.0
        normal = on_foot * np.array(c.normal)
        force = on_foot * np.array(c.impulse) / h
        frame = np.array([row[11:14], row[14:17], np.cross(row[11:14], row[14:17])])
        assert np.abs(frame @ frame.T - np.eye(3)).max() <= 1e-14
        assert row[11:14] == pytest.approx(normal, abs=1e-14) and row[8:11] == pytest.approx(c.point, abs=1e-14)
        assert row[7] == pytest.approx(-c.depth, abs=1e-16) and not row[4:7].any()
        assert row[1:4] == pytest.approx(frame @ force, rel=1e-9, abs=1e-9)
        assert row[1] > 0
        total += force
        weights.append(np.linalg.norm(force))
        points.append(c.point)
        forces.append(force)
    centre = np.average(points, axis=0, weights=weights)
    moment = sum(np.cross(p - centre, f) for p, f in zip(points, forces))
    net = sim.output("sensor/net")
    assert (
        net[0] == 3
        and net[1:4] == pytest.approx(total, rel=1e-9, abs=1e-9)
        and net[4:7] == pytest.approx(moment, rel=1e-9, abs=1e-9)
    )
    assert net[8:11] == pytest.approx(centre) and net[[7, 11, 12, 13, 14, 15, 16]] == pytest.approx(
        [0, 1, 0, 0, 0, 1, 0]
    )
    assert net[1:4] == pytest.approx(sim.output("contact_force/stool"), rel=1e-9)
    away = sim.output("sensor/away")
    assert away[1:7] == pytest.approx(-net[1:7], abs=1e-9) and away[8:11] == pytest.approx(net[8:11])

    # Seen from the stool, nearest first; and the one of the zone.
    turned = sim.output("sensor/turned").reshape(2, 17)
    assert turned[0, 7] <= turned[1, 7] and turned[0, 7] == rows[:3, 7].min()
    first = rows[rows[:3, 7].argmin()]
    assert turned[0, 11:17] == pytest.approx(-first[11:17]) and turned[0, 1:4] == pytest.approx(first[1:4] * [1, 1, -1])
    zone = sim.output("sensor/zone")
    assert zone[0] == 1 and zone[1:] == pytest.approx(
        rows[np.argmin(np.linalg.norm(rows[:3, 8:11] - zone[8:11], axis=1)), 1:]
    )
    strong = sim.output("sensor/strong")
    assert strong[0] == 1 and any(strong[1:] == pytest.approx(row[1:]) for row in rows[:3])

    # Tendons: the sum of both actuators; limits hold against them.
    length = model.output("tendon_length/sum", q)[0]
    assert sim.output("sensor/pull0")[0] == pytest.approx(0.3 + 3 * (0.1 - 2 * 0 - length), abs=0.02)
    assert sim.output("sensor/pull1")[0] == 0.5
    assert sim.output("sensor/limit0")[0] > 0 and sim.output("sensor/limit1")[0] > 0
    assert np.array_equal(sim.output("tendon_limit_force/cord"), sim.output("sensor/limit1"))
    assert np.array_equal(sim.output("tendon_actuator_force/sum"), sim.output("sensor/pull0"))


@pytest.mark.parametrize("options", OPTIONS)
def test_derivatives_of_a_step(options):
    model, sim, q, v, u = start(options)
    names = names_of(model)
    memory = sim.memory
    if options in ("ncp", "lcp"):
        sim.freeze_memory(True)
    parameters = [p for p in PARAMETERS if options in ("ncp", "lcp") or p != "timestep"]
    sim.step(q, v, u)
    assert sim.status.converged
    base, d = sim.output(names), sim.derivatives(wrt=parameters)
    modes = [c.mode for c in sim.contacts]

    def at(q=q, v=v, u=u, model=model, **more):
        other = coulomb.Simulator(model, **OPTIONS[options])
        other.memory = memory
        other.freeze_memory(options in ("ncp", "lcp"))
        other.step(q, v, u, **more)
        assert [c.mode for c in other.contacts] == modes
        return other.output(names)

    zero, tau = np.zeros(model.nv), np.zeros(model.nv)
    moved = {
        "q": differences(lambda w: at(q=model.integrate(q, w)), zero, 1e-6),
        "v": differences(lambda v: at(v=v), v, 1e-5),
        "u": differences(lambda u: at(u=u), u, 1e-3),
        "tau": differences(lambda tau: at(tau=tau), tau, 1e-3),
    }
    for name in parameters:
        value = np.asarray(model.parameters()[name].value, dtype=float)
        moved[name] = differences(
            lambda x, name=name, value=value: at(model=model.with_parameters({name: x.reshape(value.shape)})),
            value.ravel(),
            (1e-4 if name.startswith("actuator") else 1e-6) * max(1e-1, np.abs(value).max()),
        )
    w = np.random.default_rng(3).normal(size=base.size)
    outputs, first = {}, 0
    for name in names:
        size = model.outputs()[name].tangent_size
        outputs[name] = w[first : first + size]
        first += size
    g = sim.vjp(outputs=outputs, wrt=parameters)
    found_any = np.zeros(base.size)
    for name, J in moved.items():
        found = d.output(names, name)
        found_any = np.maximum(found_any, np.abs(found).max(axis=1))
        scale = np.maximum(np.abs(J).max(axis=1, keepdims=True), 1e-2 * np.abs(J).max() + 1e-2)
        error = np.abs(found - J) / scale
        assert error.max() <= 2e-5, (name, np.unravel_index(error.argmax(), error.shape), error.max())
        back = getattr(g, name) if name in ("q", "v", "u", "tau") else g[name]
        assert back == pytest.approx(w @ found, rel=1e-9, abs=1e-9 * np.abs(w @ found).max())

    # All that can move was felt.
    slots = {name: found_any[model_slice(model, names, name)] for name in names}
    assert all((slots[f"sensor/{name}"] > 0).all() for name in ("pull0", "limit0", "limit1"))
    feet = slots["sensor/feet"].reshape(4, 17)
    assert (feet[:3, [1, 2, 3, 7, 8, 9, 10]] > 0).all() and not feet[:, [0, 4, 5, 6]].any() and not feet[3].any()
    assert (slots["sensor/net"][[1, 2, 3, 4, 5, 6, 8, 9, 10]] > 0).all()


def model_slice(model, names, name):
    first = sum(model.outputs()[n].tangent_size for n in names[: names.index(name)])
    return slice(first, first + model.outputs()[name].tangent_size)


@pytest.mark.parametrize("options", OPTIONS)
def test_along_a_rollout(options):
    """Readings are those of the steps, and reverse mode is the differences, along a random direction of the start and of the controls."""
    model, _, q, v, u = start(options)
    names, steps = names_of(model), 6
    random = np.random.default_rng(4)
    U = np.tile(u, (steps, 1)) + 0.02 * random.normal(size=(steps, model.nu))
    sim = coulomb.Simulator(model, **OPTIONS[options])
    r = sim.rollout(q, v, U)
    other = coulomb.Simulator(model, **OPTIONS[options])
    x = (q, v)
    for t in range(steps):
        x = other.step(*x, U[t])
        for name in names:
            assert r.output(name)[t + 1] == pytest.approx(other.output(name), rel=1e-9, abs=1e-9)

    # Of forces of tendons and of the net wrench, which no choice of an order disturbs.
    looked_at = ["sensor/pull0", "sensor/limit0", "sensor/limit1", "sensor/net"]
    W = {name: random.normal(size=(steps + 1, model.outputs()[name].tangent_size)) for name in looked_at}
    for name in looked_at:
        W[name][0] = 0
    g = r.vjp(outputs=W, wrt=["mass/stool"])
    dU, dm = random.normal(size=U.shape), 0.3

    def value(h):
        moved = model.with_parameters({"mass/stool": np.array([1.5 + h * dm])})
        y = coulomb.Simulator(moved, **OPTIONS[options]).rollout(q, v, U + h * dU)
        return sum(np.sum(W[name] * y.output(name)) for name in looked_at)

    found = np.sum(np.asarray(g.u) * dU) + float(np.asarray(g["mass/stool"]).ravel()[0]) * dm
    at = [differences(lambda e: np.array([value(e[0])]), np.zeros(1), h)[0, 0] for h in (1e-4, 2e-5, 4e-6)]
    assert min(abs(a - found) for a in at) <= 1e-5 * max(1, abs(found)), (found, at)


def test_a_cutoff_clamps_each_component_by_itself():
    """An accelerometer on a sphere at rest in the air: 9.81 upwards is cut off, the other axes are not."""
    model = coulomb.load("""<mujoco><worldbody><body><joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide"/>
      <geom size=".1" mass="2"/><site name="s"/></body></worldbody><sensor><accelerometer name="a" site="s" cutoff="5"/></sensor></mujoco>""")
    sim = coulomb.Simulator(model)
    sim.step(*model.neutral(), tau=[3, 2 * 9.81])
    assert sim.output("sensor/a") == pytest.approx([1.5, 0, 5])
    J = sim.derivatives().output("sensor/a", "tau")
    assert J == pytest.approx(np.array([[0.5, 0], [0, 0], [0, 0]]), abs=1e-9)
    sim.step(*model.neutral(), tau=[20, 0])
    assert sim.output("sensor/a") == pytest.approx([5, 0, 0], abs=1e-9)
    J = sim.derivatives().output("sensor/a", "tau")
    assert J == pytest.approx(np.array([[0, 0], [0, 0], [0, 0.5]]), abs=1e-9)


def test_of_a_batch():
    model, _, q, v, u = start()
    names = names_of(model)
    random = np.random.default_rng(5)
    V = v + 0.01 * random.normal(size=(3, model.nv))
    batch = coulomb.BatchSimulator(model, num_envs=3, tolerance=1e-14)
    batch.step(np.tile(q, (3, 1)), V, np.tile(u, (3, 1)))
    W = {name: random.normal(size=(3, model.outputs()[name].tangent_size)) for name in names}
    g = batch.vjp(outputs=W)
    for i in range(3):
        sim = coulomb.Simulator(model, tolerance=1e-14)
        sim.step(q, V[i], u)
        for name in names:
            assert batch.output(name)[i] == pytest.approx(sim.output(name), rel=1e-9, abs=1e-9)
        own = sim.vjp(outputs={name: W[name][i] for name in names})
        assert np.asarray(g.v)[i] == pytest.approx(own.v, rel=1e-7, abs=1e-7 * np.abs(own.v).max())
