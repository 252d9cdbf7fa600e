"""Outputs (frames, joints, subtrees, sensors): derivatives at a state, of a step and along a rollout, by q, v, u, tau and parameters,
against Richardson differences; reverse against forward."""

import numpy as np
import pytest

import coulomb
from scenes.contacts import CONTACT_SCENES

BODY = """
  <option timestep="0.004"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" friction="0.6"/>
    <body name="base" pos="0 0 .0995"><freejoint name="root"/>
      <geom name="trunk" type="box" size=".2 .1 .1" mass="2" pos=".01 0 0" euler="0 0 10"/>
      <site name="imu" pos="0.02 0.03 -0.05" quat="0.5 0.5 -0.5 0.5"/>
      <site name="sole" pos="0 0 -.1" type="box" size=".3 .3 .02"/>
      <body name="arm" pos=".2 0 .1" euler="0 10 20"><joint name="shoulder" axis="0 1 0" stiffness="5" limited="true" range="-40 20" armature=".01"/>
        <geom name="upper" type="capsule" fromto="0 0 0 .2 0 0" size=".03" mass=".3"/>
        <body name="hand" pos=".2 0 0" euler="5 0 0"><joint name="wrist" type="ball" limited="true" range="0 30"/>
          <geom name="palm" type="ellipsoid" size=".05 .04 .06" mass=".2" pos="0 .01 .02" euler="20 0 0"/>
          <site name="tip" pos="0.05 0.06 0.07" euler="5 -20 70"/></body></body></body>
  </worldbody>
  <actuator><motor name="pull" joint="shoulder" gear="3"/><position name="servo" joint="shoulder" kp="10" kv=".3"/>
    <position name="turn" joint="wrist" kp="4" gear="0 1 0.5"/><motor name="push" jointinparent="wrist" gear="-1 0.5 2"/></actuator>"""


def frame_sensors():
    out = ""
    references = ["", 'reftype="site" refname="imu"', 'reftype="geom" refname="upper"', 'reftype="body" refname="base"']
    for kind in "framepos framequat framexaxis frameyaxis framezaxis framelinvel frameangvel".split():
        for kind_of, name in (("site", "tip"), ("geom", "palm"), ("body", "hand"), ("xbody", "arm")):
            out += "".join(f'<{kind} objtype="{kind_of}" objname="{name}" {reference}/>' for reference in references)
    return out


STATES = (
    frame_sensors()
    + '<velocimeter site="tip"/><gyro site="tip"/><framelinvel objtype="site" objname="tip" cutoff=".2"/>'
    + '<jointpos joint="shoulder"/><jointvel joint="shoulder"/><ballquat joint="wrist"/><ballangvel joint="wrist"/>'
    + "".join(
        f'<subtreecom body="{b}"/><subtreelinvel body="{b}"/><subtreeangmom body="{b}"/>'
        for b in ("base", "arm", "hand")
    )
    + '<e_potential/><e_kinetic/><normal geom1="palm" geom2="floor" cutoff="9"/><fromto geom1="palm" geom2="floor" cutoff="9"/>'
    + "".join(f'<actuatorpos actuator="{a}"/><actuatorvel actuator="{a}"/>' for a in ("servo", "turn", "push"))
    + "".join(f'<jointlimitpos joint="{j}"/><jointlimitvel joint="{j}"/>' for j in ("shoulder", "wrist"))
)
FORCES = '<touch site="sole"/><jointlimitfrc joint="shoulder"/><jointactuatorfrc joint="shoulder"/>' + "".join(
    f'<actuatorfrc actuator="{a}"/>' for a in ("pull", "servo", "turn", "push")
)
MOVING = {"mass", "com", "inertia", "joint_placement", "geometry_placement", "joint_limits"}
MOVING |= {"gravity", "joint_stiffness", "armature"}  # of energies
MOVING |= {"size"}  # of normals and segments
KINDS = (
    "position orientation velocity angular_velocity joint_position joint_velocity subtree_com subtree_velocity sensor "
    "subtree_angular_momentum potential_energy kinetic_energy"
)


def model_of(sensors):
    return coulomb.load(f"<mujoco>{BODY}<sensor>{sensors}</sensor></mujoco>")


def state(model, random, spread=0.3):
    q = model.integrate(model.neutral()[0], spread * random.normal(size=model.nv))
    return q, random.normal(size=model.nv), random.normal(size=model.nu)


def conjugate_times(a, b):
    w, x, y, z = a * [1, -1, -1, -1]
    return np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]]) @ b


def tangent(model, names, base, value):
    """value (-) base: rotations by their rotation vector in the frame's own axes."""
    out, i, kinds = [], 0, model.outputs()
    for name in names:
        n, m = kinds[name].size, kinds[name].tangent_size
        a, b = base[i : i + n], value[i : i + n]
        i += n
        if n == m:
            out.append(b - a)
            continue
        d = conjugate_times(a[-4:], b[-4:])
        d = 2 * np.sign(d[0]) * d[1:]  # small
        out.append(np.r_[(b - a)[: n - 4], d])
    return np.concatenate(out)


def richardson(f, base, h):
    """f(size) -> tangent relative to the base."""
    plus, minus, half_plus, half_minus = (f(size) for size in (h, -h, h / 2, -h / 2))
    return (4 * (half_plus - half_minus) / h - (plus - minus) / (2 * h)) / 3


def assert_close(J, columns, what, tolerance=1e-7):
    numeric = np.array(columns).T
    assert J.shape == numeric.shape
    error = np.abs(J - numeric)
    scale = max(1.0, np.abs(numeric).max(initial=0))
    assert error.max(initial=0) <= tolerance * scale, (what, np.unravel_index(error.argmax(), error.shape), error.max())


@pytest.mark.parametrize("seed", range(3))
def test_at_a_state(seed):
    random = np.random.default_rng(seed)
    model = model_of(STATES)
    # Springs and rotors everywhere, for differences to both sides.
    springs = [n for n in model.parameters() if n.split("/")[0] in ("joint_stiffness", "armature")]
    model = model.with_parameters({n: np.array(model.parameters()[n].value) + 0.5 for n in springs})
    names = list(model.outputs())
    assert {name.split("/")[0] for name in names} == set(KINDS.split())
    q, v, _ = state(model, random, 0.6)
    q[model.joint_q[1]] = np.radians(random.choice([-60, 40]))  # beyond its limits
    base = model.output(names, q, v)
    assert model.output(f"sensor/{model.sensor_names[-4]}", q, v)[0] == pytest.approx(-np.radians(20))
    e = np.eye(model.nv)

    def by_q(k):
        return richardson(
            lambda h: tangent(model, names, base, model.output(names, model.integrate(q, h * e[k]), v)), base, 1e-4
        )

    def by_v(k):
        return richardson(lambda h: tangent(model, names, base, model.output(names, q, v + h * e[k])), base, 1e-3)

    assert_close(model.output_jacobian(names, q, v, "q"), [by_q(k) for k in range(model.nv)], "q")
    assert_close(model.output_jacobian(names, q, v, "v"), [by_v(k) for k in range(model.nv)], "v")
    felt = set()
    for parameter, info in model.parameters().items():
        J = model.output_jacobian(names, q, v, parameter)
        assert J.shape == (len(tangent(model, names, base, base)), info.size)
        if parameter.split("/")[0] not in MOVING:
            other = model.with_parameters({parameter: np.array(info.value) * 1.01 + 1e-4})
            assert not J.any() and np.array_equal(other.output(names, q, v), base), parameter
            continue
        columns = []
        for k in range(info.size):

            def moved(h, k=k, info=info, parameter=parameter):
                value = np.array(info.value)
                value[k] += h
                return tangent(model, names, base, model.with_parameters({parameter: value}).output(names, q, v))

            columns.append(richardson(moved, base, 1e-4 if parameter.split("/")[0] != "inertia" else 2e-5))
        assert_close(J, columns, parameter)
        felt |= {parameter.split("/")[0]} if J.any() else set()
    assert felt == MOVING


CORDS = """<mujoco><worldbody><site name="w" pos="0 .3 1"/>
  <body name="a" pos="0 0 1"><joint name="ball" type="ball" stiffness="3"/><geom type="box" size=".1 .2 .3" mass="2"/><site name="s" pos=".1 0 .2"/>
    <body name="b" pos=".3 0 0"><joint name="hinge" axis="1 2 0" stiffness="5" springref="20" armature=".3"/><joint name="slide" type="slide"/>
      <geom size=".1" pos=".1 0 0" mass=".5"/><site name="t" pos="0 .1 .1"/></body></body></worldbody>
  <tendon><fixed name="sum" stiffness="7" springlength="-.1 .1" armature=".4"><joint joint="hinge" coef="2"/><joint joint="slide" coef="-1"/></fixed>
    <spatial name="cord" stiffness="8" springlength=".2 .5" armature=".6"><site site="w"/><site site="s"/><site site="t"/></spatial></tendon></mujoco>"""


def test_energies_of_tendons():
    """Their derivatives, and that the potential energy is that of the weights and springs."""
    model, random = coulomb.load(CORDS), np.random.default_rng(0)
    names, e = ["potential_energy", "kinetic_energy"], np.eye(model.nv)
    parameters = [
        "tendon_stiffness/sum",
        "tendon_stiffness/cord",
        "tendon_armature/sum",
        "tendon_armature/cord",
        "gravity",
        "armature/hinge",
    ]
    felt = np.zeros((2, len(parameters)), dtype=bool)
    for _ in range(4):
        q, v, _ = state(model, random, 0.5)
        base = model.output(names, q, v)

        def by_q(k, q=q, v=v, base=base):
            return richardson(lambda h: model.output(names, model.integrate(q, h * e[k]), v) - base, base, 1e-4)

        assert_close(model.output_jacobian(names, q, v, "q"), [by_q(k) for k in range(model.nv)], "q")
        by_v = model.output_jacobian(names, q, v, "v")
        assert by_v == pytest.approx(np.array([np.zeros(model.nv), model.mass_matrix(q) @ v]), abs=1e-12)
        for i, parameter in enumerate(parameters):
            J, value = model.output_jacobian(names, q, v, parameter), np.array(model.parameters()[parameter].value)
            for k in range(J.shape[1]):
                unit = np.eye(J.shape[1])[k].reshape(value.shape)
                moved = model.with_parameters({parameter: value + 0.5 * unit}).output(names, q, v)
                assert moved - base == pytest.approx(0.5 * J[:, k], abs=1e-12)  # both are linear in it
            felt[:, i] |= J.any(axis=1)

        # Generalised forces are what the energies say.
        gravity, spring = (
            model.output_jacobian("potential_energy", q, v, "q")[0],
            model.passive_forces(q, 0 * v) - model.bias(q, 0 * v),
        )
        assert gravity == pytest.approx(-spring, abs=1e-10)
    assert np.array_equal(felt, [[1, 1, 0, 0, 1, 0], [0, 0, 1, 1, 0, 1]])


def test_a_joint_exactly_at_its_limit_is_not_beyond_it():
    model = coulomb.load(
        "<mujoco><worldbody><body><joint name='j' type='hinge' axis='0 1 0' range='-60 40'/><geom size='.1' pos='1 0 0'/></body></worldbody>"
        "<sensor><jointlimitpos joint='j'/><jointlimitvel joint='j'/></sensor></mujoco>"
    )
    for end in (model.joint_lower[0], model.joint_upper[0]):
        inside = 1.0 if end < 0 else -1.0
        names = list(model.outputs())[-2:]
        assert np.array_equal(model.output(names, [end], [0.3]), [0, 0])
        assert not model.output_jacobian(names, [end], [0.3], "q").any()
        assert model.output(names, [end - 1e-9 * inside], [0.3]) == pytest.approx([-1e-9, 0.3 * inside], rel=1e-6)
        assert np.array_equal(model.output(names, [end + 1e-9 * inside], [0.3]), [0, 0])


def resting(seed):
    random = np.random.default_rng(seed)
    model = model_of(STATES + FORCES)
    q, v, u = state(model, random, 0.0)
    u[0], v = 1.0, 0.05 * v
    v[0] += 1.0
    q[model.joint_q[1]], v[6] = np.radians(20) + 1e-4, 3.0
    q[model.joint_q[2] : model.joint_q[2] + 4] = [np.cos(0.3), 0, np.sin(0.3), 0]
    return model, q, v, u


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize("seed", range(3))
def test_of_a_step(seed, contact):
    model, q, v, u = resting(seed)
    options = dict(contact=contact, tolerance=1e-14)
    sim = coulomb.Simulator(model, **options)
    tau = np.zeros(model.nv)
    sim.step(q, v, u)
    memory = sim.memory
    sim.freeze_memory(True)
    sim.step(q, v, u, tau=tau)
    names = [n for n in model.outputs() if n.startswith("sensor/")] + [
        "position/hand",
        "orientation/palm",
        "velocity/tip",
    ]
    base, modes = sim.output(names), [c.mode for c in sim.contacts]
    readings = {n: sim.output(n) for n in names}
    forces = dict(zip(model.sensor_names[-7:], base[len(base) - 10 - 7 : len(base) - 10]))
    assert all(value != 0 for value in forces.values()), forces
    assert np.array_equal(np.concatenate([readings[n] for n in names]), base)
    parameters = ["mass/base", "friction/trunk", "joint_placement/shoulder", "geometry_placement/palm", "actuator_gain/servo", "timestep",
                  "com/hand", "joint_limits/shoulder", "armature/shoulder", "geometry_placement/trunk", "size/trunk"]  # fmt: skip
    d = sim.derivatives(wrt=parameters)
    J = {wrt: d.output(names, wrt) for wrt in ("q", "v", "u", "tau", *parameters)}
    w = np.random.default_rng(seed).normal(size=J["q"].shape[0])
    dx = np.random.default_rng(seed + 9).normal(size=(2, model.nv))
    g0, g = sim.vjp(*dx, wrt=parameters), sim.vjp(*dx, wrt=parameters, outputs=split(model, names, w))
    for wrt, matrix in J.items():
        forward = w @ matrix
        reverse = g[wrt] - g0[wrt] if wrt in parameters else getattr(g, wrt) - getattr(g0, wrt)
        assert np.abs(reverse - forward).max() <= 1e-11 * max(1, np.abs(forward).max(), np.abs(g0.q).max()), wrt

    def moved(wrt, k, h):
        args = {"q": q, "v": v, "u": u, "tau": tau}
        e = np.zeros(model.parameters()[wrt].size if wrt in parameters else len(u) if wrt == "u" else model.nv)
        e[k] = h
        used = sim
        if wrt in parameters:
            value = np.array(model.parameters()[wrt].value) + e
            used = coulomb.Simulator(model.with_parameters({wrt: value}), **options)
            used.memory = memory
            used.freeze_memory(True)
        else:
            args[wrt] = model.integrate(q, e) if wrt == "q" else args[wrt] + e
        used.step(args["q"], args["v"], args["u"], tau=args["tau"])
        assert [c.mode for c in used.contacts] == modes, (wrt, k)
        return tangent(model, names, base, used.output(names))

    for wrt, matrix in J.items():
        h = {"u": 1e-3, "tau": 1e-3, "timestep": 1e-6, "armature/shoulder": 1e-4}.get(wrt, 3e-6)
        columns = np.array(
            [richardson(lambda s, wrt=wrt, k=k: moved(wrt, k, s), base, h) for k in range(matrix.shape[1])]
        ).T
        scale = np.maximum(np.abs(matrix).max(axis=1), 1)
        error = np.abs(matrix - columns).max(axis=1) / scale
        assert error.max() <= 2e-6, (wrt, int(error.argmax()), error.max())


def split(model, names, w):
    """A stacked cotangent as the dict that vjp takes."""
    out, i, kinds = {}, 0, model.outputs()
    for name in names:
        out[name] = w[..., i : i + kinds[name].tangent_size]
        i += kinds[name].tangent_size
    return out


def test_vjp_of_impulses():
    for build in CONTACT_SCENES:
        model, q, v = build(np.random.default_rng(2))
        sim = coulomb.Simulator(model)
        sim.step(q, v, np.zeros(model.nu))
        d = sim.derivatives()
        w = np.random.default_rng(3).normal(size=3 * len(sim.contacts))
        name = next(iter(model.parameters()))
        g = sim.vjp(wrt=[name], dlambda=w)
        for wrt, reverse in (("q", g.q), ("v", g.v), ("u", g.u), ("tau", g.tau), (name, g[name])):
            forward = w @ d.dlambda(wrt)
            assert np.abs(reverse - forward).max(initial=0) <= 1e-11 * max(1, np.abs(forward).max(initial=0))


def test_along_a_rollout():
    model, q, v, u = resting(0)
    sim = coulomb.Simulator(model)
    U = np.tile(0.3 * u, (12, 1))
    r = sim.rollout(q, v, U)
    names = ["position/tip", "orientation/hand", "subtree_velocity/base", "sensor/sensor3"]
    assert np.array_equal(r.output(names)[5], model.output(names, r.q[5], r.v[5]))
    width = sum(model.outputs()[n].tangent_size for n in names)
    random = np.random.default_rng(1)
    W, dX = random.normal(size=(13, width)), random.normal(size=(2, 13, model.nv))
    wrt = ["joint_placement/shoulder", "mass/base", "com/hand"]
    g, g0 = r.vjp(*dX, wrt=wrt, outputs=split(model, names, W)), r.vjp(*dX, wrt=wrt)
    J = r.jacobian(["q0", "v0", "u", *wrt])
    for name in ("q0", "v0", "u", *wrt):
        expected = 0
        for t in range(13):
            C = np.hstack([model.output_jacobian(names, r.q[t], r.v[t], x) for x in "qv"])
            expected = expected + W[t] @ C @ J[name][t]
            if name in wrt:
                expected = expected + W[t] @ model.output_jacobian(names, r.q[t], r.v[t], name)
        found = (g[name] - g0[name]).ravel()
        assert np.abs(found - expected).max() <= 1e-10 * max(1, np.abs(expected).max(), np.abs(g0[name]).max()), name
    only = r.vjp(outputs={"position/tip": W[:, :3]})
    assert np.abs(only.q0).max() > 0
    names = ["sensor/" + model.sensor_names[-7], "contact_force/base"]
    forces = r.output(names)
    sim.reset()
    for t in range(12):
        sim.step(r.q[t], r.v[t], U[t])
        assert np.array_equal(forces[t + 1], sim.output(names))
    assert not forces[0].any() and forces[1:].any(axis=0).all()


def test_points_of_bodies():
    model, q, v, _ = resting(1)
    body = model.body_names.index("hand")
    J = model.point_jacobian(q, body, [0, 0, 0])
    twist = model.body_velocities(q, v)
    assert np.abs(J @ v - twist[body]).max() < 1e-12
    assert np.abs(model.output("velocity/hand", q, v) - twist[body][:3]).max() < 1e-14
    tip = [s for s in model.sites if s.name == "tip"][0]
    J = model.point_jacobian(q, tip.body, tip.position)
    assert np.abs(J[:3] - model.output_jacobian("position/tip", q)).max() < 1e-12
    with pytest.raises(IndexError, match="99"):
        model.point_jacobian(q, 99, [0, 0, 0])


def test_names_and_errors():
    model, q, v, u = resting(0)
    sim = coulomb.Simulator(model)
    with pytest.raises(RuntimeError, match="no step"):
        sim.output("position/hand")
    sim.step(q, v, u)
    assert np.array_equal(model.output("position/geometry/palm", q), model.output("position/palm", q))
    assert np.array_equal(model.output("position/site/tip", q), model.output("position/tip", q))
    for call, message in [
        (lambda: model.output("place/hand", q), "unknown kind 'place'"),
        (lambda: model.output("position/foot", q), "position/foot.*no such body, site or geometry"),
        (lambda: model.output("joint_position/hand", q), "no such joint"),
        (lambda: model.output("sensor/none", q), "no such sensor"),
        (lambda: model.output(["position/hand", "position/hand"], q), "twice"),
        (lambda: model.output("sensor/" + model.sensor_names[-1], q), "is a force of a step"),
        (lambda: model.output("position/hand", q[:-1]), "q"),
        (lambda: model.output("position/hand", q, v * np.nan), r"v\[0\] = nan"),
        (lambda: model.output_jacobian("position/hand", q, wrt="mass/none"), "mass/none"),
        (lambda: sim.vjp(outputs={"position/hand": np.zeros(4)}), r"outputs\['position/hand'\]"),
        (lambda: sim.vjp(outputs={"position/hand": [0, np.nan, 0]}), r"outputs\['position/hand'\]\[1\] is nan"),
        (lambda: sim.vjp(dlambda=np.zeros(1)), "dlambda"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="outputs"):
        sim.vjp(outputs=["position/hand"])


def test_of_a_batch():
    model, q, v, u = resting(0)
    names = ["position/tip", "sensor/" + model.sensor_names[-7], "sensor/" + model.sensor_names[-1]]
    heavier = np.array([[2.0], [3.0]])
    batch = coulomb.BatchSimulator(model, 2, parameters={"mass/base": heavier})
    with pytest.raises(RuntimeError, match="no step"):
        batch.output(names)
    batch.step(np.stack([q, q]), np.stack([v, v]), np.stack([u, u]))
    readings = batch.output(names)
    for i in range(2):
        sim = coulomb.Simulator(model.with_parameters({"mass/base": heavier[i]}))
        sim.step(q, v, u)
        assert np.array_equal(readings[i], sim.output(names))
    assert np.abs(readings[0] - readings[1]).max() > 1
    several, random = ["position/tip", "orientation/hand", "subtree_com/base", *names[1:]], np.random.default_rng(0)
    wrt = ["mass/base", "joint_placement/shoulder"]
    size = sum(model.outputs()[name].tangent_size for name in several)
    w = random.normal(size=(2, size))
    g = batch.vjp(wrt=wrt, outputs=split(model, several, w))
    dx = random.normal(size=(2, 2, model.nv))
    both, added = batch.vjp(*dx, wrt), batch.vjp(*dx, wrt, outputs=split(model, several, w))
    assert np.abs(added.q - both.q - g.q).max() <= 1e-12 * np.abs(added.q).max()
    r = batch.rollout(np.stack([q, q]), np.stack([v, v]), np.stack([np.tile(u, (5, 1))] * 2))
    W = random.normal(size=(2, 6, size))
    G = r.vjp(wrt=wrt, outputs=split(model, several, W))
    for i in range(2):
        sim = coulomb.Simulator(model.with_parameters({"mass/base": heavier[i]}))
        sim.step(q, v, u)
        single = sim.vjp(wrt=wrt, outputs=split(model, several, w[i]))
        assert np.array_equal(g.q[i], single.q) and all(np.array_equal(g[name][i], single[name]) for name in wrt)
        alone = sim.rollout(q, v, np.tile(u, (5, 1)))
        assert np.array_equal(r.output(several)[i], alone.output(several))
        single = alone.vjp(wrt=wrt, outputs=split(model, several, W[i]))
        assert np.array_equal(G.q0[i], single.q0) and all(np.array_equal(G[name][i], single[name]) for name in wrt)
    kept_nothing = batch.rollout(np.stack([q, q]), np.stack([v, v]), steps=2, derivatives=False)
    with pytest.raises(ValueError, match="is a force of a step"):
        kept_nothing.output(names)
    assert np.array_equal(kept_nothing.output(names[:1])[:, 0], r.output(names[:1])[:, 0])
    with pytest.raises(ValueError, match=r"outputs\['position/tip'\]"):
        batch.vjp(outputs={"position/tip": np.zeros(3)})


@pytest.mark.parametrize(
    "options", [dict(stepper="bdf1"), dict(stepper="bdf2"), dict(continuous_collision=True)], ids=str
)
def test_of_other_steppers(options):
    """States by the chain rule, whatever made them; what needs the rows of a constraint problem says so."""
    text = """<mujoco><worldbody><body pos="0 0 1"><joint name="j" axis="0 1 0" limited="true" range="-40 40"/>
      <geom size=".1" pos=".3 0 0" contype="0" conaffinity="0"/><site name="s" pos=".3 0 0"/></body></worldbody>
      <sensor><touch name="t" site="s"/><jointlimitfrc name="l" joint="j"/></sensor></mujoco>"""
    model = coulomb.load(text)
    sim = coulomb.Simulator(model, **options)
    q, v = sim.step(np.array([0.3]), np.array([1.0]))
    d = sim.derivatives()
    C = np.hstack([model.output_jacobian("velocity/s", q, v, x) for x in "qv"])
    J = np.hstack([d.output("velocity/s", x) for x in "qv"])
    assert np.abs(J - C @ d.A).max() <= 1e-12 * np.abs(J).max() and np.abs(J).max() > 0.1
    w = np.array([1.0, 2.0, 3.0])
    g = sim.vjp(outputs={"velocity/s": w})
    assert np.abs(np.r_[g.q, g.v] - w @ J).max() <= 1e-12 * np.abs(J).max()
    batch = coulomb.BatchSimulator(model, 1, **options)
    batch.step(q[None], v[None])
    weight, states = {"sensor/t": np.ones((1, 1))}, {"sensor/t": np.ones((1, 3, 1))}
    rolled = batch.rollout(q[None], v[None], steps=2)
    for call in (
        lambda: sim.output("sensor/t"),
        lambda: sim.output("sensor/l"),
        lambda: d.dpoint("q"),
        lambda: batch.vjp(outputs=weight).q,
        lambda: rolled.output("sensor/t")[:, 0],
        lambda: rolled.vjp(outputs=states).q0,
    ):
        if "stepper" in options:
            assert np.asarray(call()).size <= 1  # tests/gradient/test_force_outputs.py has their derivatives
            continue
        with pytest.raises(RuntimeError, match="continuous_collision"):
            call()
