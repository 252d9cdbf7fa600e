"""Forces of steps as outputs: contacts on bodies and geometries, touch sensors, joint limits, actuators. Of a step and along a
trajectory, with every stepper, against differences; and against what the forces must be."""

import numpy as np
import pytest

import coulomb
from scenes.smooth import ball_joint, robot_in_contact, sliding_box

IN = 'diaginertia=".002 .003 .004"'
# A finger of two links whose round tip presses on the ground beside a ball that it touches; its lower joint is beyond its limit.
FINGER = f"""<mujoco><option gravity="0 0 -9.81"/><worldbody><geom name="ground" type="plane" size="5 5 .1" friction=".6"/>
<body name="upper" pos="0 0 .40402"><joint name="j1" axis="0 1 0" damping=".05" stiffness=".5" armature=".01"/><inertial pos="0 0 -.1" mass=".3" {IN}/>
 <body name="lower" pos="0 0 -.2"><joint name="j2" axis="0 1 0" damping=".05" armature=".01" limited="true" range="-60 -35"/>
  <inertial pos="0 0 -.1" mass=".2" {IN}/><geom name="tip" type="sphere" size=".03" pos="0 0 -.2" mass="0" friction=".7"/>
  <site name="zone" type="sphere" size=".06" pos="0 0 -.2"/></body></body>
<body name="ball" pos=".00102 0 .0495"><freejoint/><geom name="ball" type="sphere" size=".05" mass=".2" friction=".5"/></body>
</worldbody><actuator><motor joint="j1"/><position name="servo" joint="j2" kp="2"/></actuator>
<sensor><touch name="touch" site="zone"/><jointlimitfrc name="limit" joint="j2"/><actuatorfrc name="servo" actuator="servo"/>
<jointactuatorfrc name="motor" joint="j1"/></sensor></mujoco>"""

NAMES = [
    "contact_force/ball",
    "contact_force/tip",
    "sensor/touch",
    "sensor/limit",
    "sensor/servo",
    "sensor/motor",
    "position/tip",
]
OPTIONS = {
    "penalty": dict(contact="penalty"),
    "bdf1": dict(stepper="bdf1"),
    "bdf2": dict(stepper="bdf2"),
}
SOFT = dict(
    timestep=2e-3, contact_stiffness=1e4, contact_damping=1e3, contact_friction_stiffness=50, limit_stiffness=20
)


def simulator(model, options):
    return coulomb.Simulator(model, tolerance=1e-13, **SOFT, **OPTIONS[options])


def start():
    model = coulomb.load(FINGER)
    q, v = np.array(model.neutral()[0]), np.zeros(model.nv)
    q[:2], v[2:] = (0.5, -0.6), [0.02, 0.05, -0.05, 0.1, 0.2, 0.1]
    return model, q, v, np.array([0.1, 0.2])


def size_of(model, name):
    return 3 if name.startswith("contact_force") else model.outputs()[name].tangent_size


def differences(f, x, h):
    columns = []
    for k in range(x.size):
        e = np.zeros(x.size)
        e[k] = h
        columns.append((8 * (f(x + e) - f(x - e)) - (f(x + 2 * e) - f(x - 2 * e))) / (12 * h))
    return np.array(columns).T


def values_of(model, names):
    return {name: np.asarray(model.parameters()[name].value, dtype=float) for name in names}


def slope(f, h):
    """Central difference of fourth order, of the length that the next one confirms best."""
    at, best = [], (np.inf, np.nan)
    for k in range(6):
        at.append(differences(lambda e: np.array([f(e[0])]), np.zeros(1), h / 5**k)[0, 0])
        if k > 0:
            best = min(best, (abs(at[-1] - at[-2]), at[-1]))
    return best[1]


PARAMETERS = ["mass/ball", "friction/tip", "joint_limits/j2", "joint_placement/j1", "size/ball", "actuator_gain/servo"]


@pytest.mark.parametrize("options", OPTIONS)
def test_of_a_step(options):
    model, q, v, u = start()
    sim = simulator(model, options)
    for _ in range(2):  # of bdf2: its start, then one that looks two states back
        memory = sim.memory
        sim.step(q, v, u)
        y, d = sim.output(NAMES), sim.derivatives(wrt=PARAMETERS)
        assert sim.status.converged
        assert np.all(np.abs(y[:3]) > 1e-3) and y[6] > 0.1 and y[7] > 0.01 and y[8] != 0 and y[9] == pytest.approx(0.1)

        def at(q=q, v=v, u=u, model=model, memory=memory, **more):
            other = simulator(model, options)
            other.memory = memory
            if options == "bdf2":
                other.freeze_memory(True)  # else a moved state would start anew
            other.step(q, v, u, **more)
            return other.output(NAMES)

        zero, tau = np.zeros(model.nv), np.zeros(model.nv)
        moved = {
            "q": differences(lambda w, q=q: at(q=model.integrate(q, w)), zero, 1e-6),
            "v": differences(lambda v: at(v=v), v, 1e-5),
            "u": differences(lambda u: at(u=u), u, 1e-3),
            "tau": differences(lambda tau: at(tau=tau), tau, 1e-3),
        }
        for name, value in values_of(model, PARAMETERS).items():

            def change(x, name=name, value=value):
                return at(model=model.with_parameters({name: x.reshape(value.shape)}))

            h = 1e-6 * max(1.0, np.abs(value).max())
            moved[name] = differences(change, value.ravel(), h)
        w = np.random.default_rng(3).normal(size=y.size)
        first = 0
        outputs = {}
        for name in NAMES:
            size = size_of(model, name)
            outputs[name] = w[first : first + size]
            first += size
        g = sim.vjp(outputs=outputs, wrt=PARAMETERS)
        for name, J in moved.items():
            found = np.vstack([d.output(n, name) for n in NAMES])
            scale = 1e-6 * np.abs(J).max(axis=1, keepdims=True) + 1e-7 * np.abs(J).max()
            assert np.all(np.abs(found - J) <= 10 * scale), (name, np.abs(found - J).max(axis=1), np.abs(J).max(axis=1))
            back = getattr(g, name) if name in ("q", "v", "u", "tau") else g[name]
            assert back == pytest.approx(w @ found, rel=1e-9, abs=1e-9 * np.abs(w @ found).max())
        q, v = sim.step(q, v, u)


@pytest.mark.parametrize("options", OPTIONS)
def test_along_a_trajectory(options):
    model, q, v, u = start()
    steps = 30
    U = np.tile(u, (steps, 1)) + 0.02 * np.random.default_rng(1).normal(size=(steps, model.nu))
    rng = np.random.default_rng(2)
    sizes = {name: size_of(model, name) for name in NAMES}
    W = {name: rng.normal(size=(steps + 1, size)) for name, size in sizes.items()}

    def loss(q=q, v=v, U=U, model=model):
        r = simulator(model, options).rollout(q, v, U, checkpoint_every=7)
        return sum(np.sum(W[name] * r.output(name)) for name in NAMES)

    r = simulator(model, options).rollout(q, v, U, checkpoint_every=7)
    assert r.converged
    sim, x = simulator(model, options), (q, v)
    for t in range(steps):  # readings are those of single steps
        x = sim.step(*x, U[t])
        for name in NAMES:
            assert np.array_equal(r.output(name)[t + 1], sim.output(name))
    g = r.vjp(outputs=W, wrt=PARAMETERS)
    again = simulator(model, options).rollout(q, v, U, checkpoint_every=1).vjp(outputs=W, wrt=PARAMETERS)
    assert np.array_equal(g.q0, again.q0) and np.array_equal(g["mass/ball"], again["mass/ball"])
    random = np.random.default_rng(4)
    d = random.normal(size=model.nv)
    cases = {
        "q0": (g.q0 @ d, lambda e: loss(q=model.integrate(q, e * d)), 1e-5),
        "v0": (g.v0 @ d, lambda e: loss(v=v + e * d), 1e-4),
    }
    dU = random.normal(size=U.shape)
    cases["u"] = (np.sum(g.u * dU), lambda e: loss(U=U + e * dU), 1e-3)
    for name, value in values_of(model, PARAMETERS).items():
        dx = random.normal(size=value.shape) * max(1e-2, np.abs(value).max())
        cases[name] = (
            np.sum(g[name].reshape(value.shape) * dx),
            lambda e, name=name, value=value, dx=dx: loss(model=model.with_parameters({name: value + e * dx})),
            1e-4,
        )
    for name, (exact, f, h) in cases.items():
        found = slope(f, h)
        assert exact == pytest.approx(found, rel=1e-6), name


@pytest.mark.parametrize("options", OPTIONS)
def test_of_a_batch(options):
    """Every environment has the forces and the gradients of a simulator of its own."""
    model, q, v, u = start()
    mass = np.array([[0.5], [0.7]]) * values_of(model, ["mass/ball"])["mass/ball"]
    sims = [simulator(model.with_parameters({"mass/ball": m}), options) for m in mass]
    batch = coulomb.BatchSimulator(
        model, 2, parameters={"mass/ball": mass}, tolerance=1e-13, **SOFT, **OPTIONS[options]
    )
    steps, rng = 8, np.random.default_rng(6)
    Q, V, U = (np.stack([x, x]) for x in (q, v, np.tile(u, (steps, 1))))
    W = {name: rng.normal(size=(2, steps + 1, size_of(model, name))) for name in NAMES}
    r = batch.rollout(Q, V, U)
    readings, g = r.output(NAMES), r.vjp(outputs=W, wrt=PARAMETERS)
    batch.step(Q, V, U[:, 0])
    one = batch.vjp(outputs={name: w[:, 1] for name, w in W.items()}, wrt=PARAMETERS)
    for i, sim in enumerate(sims):
        alone = sim.rollout(q, v, U[i])
        assert np.array_equal(readings[i], alone.output(NAMES))
        expected = alone.vjp(outputs={name: w[i] for name, w in W.items()}, wrt=PARAMETERS)
        assert np.array_equal(g.q0[i], expected.q0) and np.array_equal(g.u[i], expected.u)
        assert all(np.array_equal(g[name][i], expected[name]) for name in PARAMETERS)
        sim.reset()
        sim.step(q, v, u)
        expected = sim.vjp(outputs={name: w[i, 1] for name, w in W.items()}, wrt=PARAMETERS)
        assert np.array_equal(one.q[i], expected.q) and all(np.array_equal(one[n][i], expected[n]) for n in PARAMETERS)


def test_numbers_of_contact_in_a_batch():
    """Given as options, or per environment as parameters, then and later, which comes first."""
    model, q, v, _ = start()
    Q, V, given = np.stack([q, q]), np.stack([v, v]), {"contact": "penalty", "contact_stiffness": 1e4}

    def forces(batch):
        batch.step(Q, V)
        return batch.output("contact_force/ball")[:, 2]

    def expected(k):
        sim = coulomb.Simulator(model, contact="penalty", contact_stiffness=k)
        sim.step(q, v)
        return sim.output("contact_force/ball")[2]

    batch = coulomb.BatchSimulator(model, 2, **given)
    assert forces(batch).tolist() == 2 * [expected(1e4)] and expected(1e4) != expected(1e5)
    batch.set_parameters({"contact_stiffness": np.array([[2e4], [3e4]])})
    assert forces(batch).tolist() == [expected(2e4), expected(3e4)]
    values = {"contact_stiffness": np.array([[5e3], [6e3]])}
    assert forces(coulomb.BatchSimulator(model, 2, parameters=values, **given)).tolist() == [
        expected(5e3),
        expected(6e3),
    ]


@pytest.mark.parametrize("build", [sliding_box, ball_joint, robot_in_contact])
def test_of_hard_contact(build):
    model, q, v = build()
    sim = coulomb.Simulator(model, timestep=2e-3, tolerance=1e-13)
    name = {"sliding_box": "contact_force/box", "ball_joint": "contact_force/arm"}.get(
        build.__name__, "contact_force/base"
    )
    rng = np.random.default_rng(5)
    U = 0.1 * rng.normal(size=(6, model.nu))
    W = rng.normal(size=(7, 3))
    mass = next(n for n in model.parameters() if n.startswith("mass/"))
    r = sim.rollout(q, v, U)
    y = r.output(name)
    assert r.converged and np.all(y[1:, 2] > 0.1)
    g = r.vjp(outputs={name: W}, wrt=[mass, "gravity"])
    value = np.asarray(model.parameters()[mass].value)

    def loss(m=model, q=q, v=v):
        return np.sum(W * coulomb.Simulator(m, timestep=2e-3, tolerance=1e-13).rollout(q, v, U).output(name))

    d = rng.normal(size=model.nv)
    assert g.q0 @ d == pytest.approx(slope(lambda e: loss(q=model.integrate(q, e * d)), 1e-5), rel=1e-5)
    assert g.v0 @ d == pytest.approx(slope(lambda e: loss(v=v + e * d), 1e-4), rel=1e-6)
    assert g[mass] @ value == pytest.approx(
        slope(lambda e: loss(m=model.with_parameters({mass: (1 + e) * value})), 1e-3), rel=1e-6
    )
    sim.step(q, v, U[0])
    d, w = sim.derivatives(), rng.normal(size=3)
    g = sim.vjp(outputs={name: w})
    for wrt in ("q", "v", "u", "tau"):
        assert getattr(g, wrt) == pytest.approx(w @ d.output(name, wrt), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("options", [*OPTIONS, "hard"])
def test_a_ball_at_rest_is_carried(options):
    scene = coulomb.Scene(gravity=(0, 0, -9.81))
    scene.add_ground()
    scene.add_sphere(0.1, mass=2.0, position=(0, 0, 0.1), name="ball")
    model = scene.build()
    sim = coulomb.Simulator(model, timestep=2e-3, **OPTIONS.get(options, {}))
    r = sim.rollout(model.neutral()[0], np.zeros(model.nv), steps=1500)
    assert r.output("contact_force/ball")[-1] == pytest.approx([0, 0, 2 * 9.81], abs=1e-6)
    assert r.output("contact_force/ground")[-1] == pytest.approx([0, 0, -2 * 9.81], abs=1e-6)
    assert not r.output("contact_force/ball")[0].any()
    with pytest.raises(ValueError, match="contact_force/balls"):
        sim.output("contact_force/balls")
    with pytest.raises(ValueError, match="force of a step"):
        model.output("contact_force/ball", *model.neutral())


def test_penalty_forces_by_parameters_of_the_law():
    """The depth of a ball at rest: contact stiffness and scale leave its force, and nothing else, as it is."""
    scene = coulomb.Scene(gravity=(0, 0, -9.81))
    scene.add_ground()
    scene.add_sphere(0.1, mass=2.0, position=(0, 0, 0.1), name="ball", contact_stiffness=1e4, contact_damping=1e4)
    model = scene.build()
    r = coulomb.Simulator(model, stepper="bdf1", timestep=5e-3).rollout(*model.neutral(), steps=400)
    W = np.zeros((401, 3))
    W[-1, 2] = 1
    g = r.vjp(outputs={"contact_force/ball": W}, wrt=["contact_stiffness/ball", "contact_scale/ball", "mass/ball"])
    assert g["mass/ball"] == pytest.approx([9.81], rel=1e-6)
    assert abs(g["contact_stiffness/ball"][0]) * 1e4 < 1e-5 and abs(g["contact_scale/ball"][0]) < 1e-5
    W[-1, 2], W[1, 2] = 0, 1
    g = r.vjp(outputs={"contact_force/ball": W}, wrt=["contact_scale/ball"])
    f = lambda s: (  # noqa: E731
        coulomb.Simulator(model.with_parameters({"contact_scale/ball": [s]}), stepper="bdf1", timestep=5e-3)
        .rollout(*model.neutral(), steps=1)
        .output("contact_force/ball")[1, 2]
    )
    assert g["contact_scale/ball"][0] == pytest.approx((f(1 + 1e-5) - f(1 - 1e-5)) / 2e-5, rel=1e-6)


@pytest.mark.parametrize("options", OPTIONS)
def test_where_contacts_are(options):
    """Points, normals and depths are those of the next state."""
    model, q, v, u = start()
    sim = simulator(model, options)
    sim.step(q, v, u)
    n = len(sim.contacts)
    assert n == 3
    d = sim.derivatives(wrt=["size/ball", "joint_placement/j1"])
    found = {
        wrt: np.vstack([d.dpoint(wrt), d.dnormal(wrt), d.ddepth(wrt)])
        for wrt in ("q", "v", "u", "size/ball", "joint_placement/j1")
    }

    def at(q=q, v=v, u=u, model=model):
        other = simulator(model, options)
        other.step(q, v, u)
        return np.concatenate([np.ravel([getattr(c, x) for c in other.contacts]) for x in ("point", "normal", "depth")])

    moved = {
        "q": differences(lambda w: at(q=model.integrate(q, w)), np.zeros(model.nv), 1e-6),
        "v": differences(lambda v: at(v=v), v, 1e-5),
        "u": differences(lambda u: at(u=u), u, 1e-3),
    }
    for name, value in values_of(model, ["size/ball", "joint_placement/j1"]).items():
        moved[name] = differences(
            lambda x, name=name, value=value: at(model=model.with_parameters({name: x.reshape(value.shape)})),
            value.ravel(),
            1e-6,
        )
    for name, J in moved.items():
        assert np.abs(found[name] - J).max() <= 1e-6 * np.abs(J).max() + 1e-9, name


def test_flat_sides_that_share_their_springs():
    """A turned box on another: the reverse product of shares (collision/penalty/contact_share.hpp) against forward."""
    scene = coulomb.Scene(gravity=(0, 0, -9.81))
    scene.add_ground()
    scene.add_box((0.3, 0.3, 0.1), mass=1.0, position=(0, 0, 0.049), name="low")
    scene.add_box((0.2, 0.2, 0.1), mass=1.0, position=(0.08, 0.03, 0.147), name="top")
    model = scene.build()
    sim = coulomb.Simulator(model, **SOFT, stepper="bdf1")
    rng = np.random.default_rng(1)
    q = model.integrate(model.neutral()[0], np.r_[np.zeros(9), 0.002, 0.003, 0.5])
    sim.step(q, 0.05 * rng.normal(size=model.nv))
    assert sim.status.converged and len(sim.contacts) > 8
    names, wrt = ["contact_force/top", "contact_force/low"], ["mass/top", "size/top", "friction/low"]
    w, d = rng.normal(size=6), sim.derivatives(wrt=wrt)
    assert np.abs(sim.output(names)).min() > 1e-3
    g = sim.vjp(outputs=dict(zip(names, w.reshape(2, 3))), wrt=wrt)
    for name in ("q", "v", "tau", *wrt):
        forward = w @ d.output(names, name)
        back = getattr(g, name) if name in ("q", "v", "tau") else g[name]
        assert back == pytest.approx(forward, rel=1e-9, abs=1e-9 * np.abs(forward).max()), name
