"""Spatial tendons: lengths, rates and forces against MuJoCo, derivatives of steps, sensors and forces against differences, reverse mode
against forward mode, with every stepper, and closed forms."""

import pickle

import numpy as np
import pytest

import coulomb
from coulomb.mjcf_export import to_mjcf
from tests.gradient.step_options import OPTIONS
from tests.spatial_tendon_scenes import ATWOOD, ROPE, WINDING, random_robot

PATHS = {
    "straight": (None, None),
    "around a sphere": ("sphere", None),
    "around a cylinder": ("cylinder", None),
    "past a sphere": ("sphere", "outside"),
    "past a cylinder": ("cylinder", "outside"),
    "within a sphere": ("sphere", "inside"),
    "within a cylinder": ("cylinder", "inside"),
}
ROOTS = ["hinge", "free", "ball"]
LAWS = {
    "actuators": "",
    "limit": 'limited="true" range="{low} {high}"',
    "spring": 'stiffness="30" springlength="{middle}" damping=".5"',
    "slack spring": 'stiffness="30" springlength="{middle} {high}" damping=".3"',
    "dry friction": 'frictionloss=".3"',
}
FLOOR = '<geom name="floor" type="plane" size="2 2 .1" friction=".8"/>'


def random_state(model, rng, spread=0.7):
    q = model.integrate(np.array(model.neutral()[0]), spread * rng.normal(size=model.nv))
    return q, rng.normal(size=model.nv)


def length(model, name, q):
    return float(model.output(f"tendon_length/{name}", q)[0])


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_lengths_rates_and_forces_are_mujocos(path):
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(0)
    wrapped = 0
    for trial in range(60):
        text = random_robot(rng, *path, root=ROOTS[trial % 3])
        theirs = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(theirs)
        model = coulomb.load(text)
        for _ in range(5):
            q, v = random_state(model, rng)
            u = rng.normal(size=model.nu)
            data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
            mujoco.mj_forward(theirs, data)
            wrapped += data.ten_wrapnum[0] > 2

            # MuJoCo looks for the point where a path touches from within to 1e-6 of an angle.
            tolerance = 1e-5 if path[1] == "inside" else 1e-11
            names = ["tendon_length/t", "tendon_length/p", "tendon_velocity/t", "tendon_velocity/p"]
            wanted = np.r_[data.ten_length, data.ten_velocity]
            assert model.output(names, q, v) == pytest.approx(wanted, abs=tolerance, rel=tolerance)
            assert model.actuator_forces(q, v, u) == pytest.approx(data.qfrc_actuator, abs=100 * tolerance)
    assert wrapped > 2 or path[0] is None


def names_of(model):
    kinds = ("tendon_", "actuator_", "mass/", "timestep", "gravity")
    return ["q", "v", "u", "tau", *(n for n in model.parameters() if n.startswith(kinds))]


def robot_with(law, path, root, seed, **more):
    """A random robot at a state where its tendon's law acts."""
    model = coulomb.load(random_robot(np.random.default_rng(seed), *path, root=root))
    rng = np.random.default_rng(seed + 1000)
    q, v = random_state(model, rng, 0.5)
    now = length(model, "t", q)
    parts = more | {"tendon": LAWS.get(law, "").format(low=now + 1e-4, middle=now - 0.03, high=now + 0.5)}
    if seed % 2:
        parts["pulley"] = 'damping=".2"'
    if law == "equality":
        tie = '<equality><tendon tendon1="t" tendon2="p" polycoef="{} .5 .2 0 0"/></equality>'
        tied = coulomb.load(random_robot(np.random.default_rng(seed), *path, root=root, equality=tie.format(0)))
        e = tied.equalities[0]
        x = length(model, "p", q) - e.ref_b
        parts["equality"] = tie.format(now - e.ref_a - 0.5 * x - 0.2 * x * x - 1e-4)
    model = coulomb.load(random_robot(np.random.default_rng(seed), *path, root=root, **parts))
    return model, q, v, rng


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("law", [*LAWS, "equality"])
def test_steps(law, options):
    smooth = 0
    for seed, path in enumerate(PATHS.values()):
        # An equality of both tendons, whose dofs are 16 together at most.
        root = "hinge" if law == "equality" else ROOTS[seed % 3]
        model, q, v, rng = robot_with(law, path, root, seed)
        sim = coulomb.Simulator(model, timestep=2e-3, **options)
        for _ in range(2):
            u, tau = rng.normal(size=model.nu), 0.1 * rng.normal(size=model.nv)
            check = coulomb.check_gradients(sim, q, v, u, tau, wrt=names_of(model), tolerance=2e-6)
            assert check.passed and check.converged, (seed, check.errors, check.changed)
            smooth += check.smooth
            q, v = sim.step(q, v, u, tau=tau)
            J = sim.derivatives()
            y = rng.normal(size=2 * model.nv)
            back = sim.vjp(y[: model.nv], y[model.nv :])
            for got, block in zip((np.r_[back.q, back.v], back.u, back.tau), (J.A, J.B, J.B_tau), strict=True):
                assert got == pytest.approx(y @ block, rel=1e-8, abs=1e-8 * max(1e-3, np.abs(block).max()))
    assert smooth > 0


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_outputs(path):
    rng = np.random.default_rng(4)
    names = ["tendon_length/t", "tendon_velocity/t", "tendon_velocity/p"]
    for trial in range(9):
        model = coulomb.load(random_robot(rng, *path, root=ROOTS[trial % 3]))
        q, v = random_state(model, rng)
        h = 1e-6
        for by in "qv":
            J = model.output_jacobian(names, q, v, by)
            for k, e in enumerate(h * np.eye(model.nv)):
                ends = [
                    model.output(names, model.integrate(q, s * e) if by == "q" else q, v + s * e if by == "v" else v)
                    for s in (1, -1)
                ]
                assert J[:, k] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6, abs=3e-8)


@pytest.mark.parametrize("options", [{}, {"stepper": "bdf1", "contact": "penalty"}], ids=["semi_implicit", "bdf1"])
def test_forces_of_actuators(options):
    rng = np.random.default_rng(5)
    names = ["actuator_force/m", "actuator_force/g", "sensor/sensor3"]
    model = coulomb.load(random_robot(rng, "cylinder", "outside"))
    sim = coulomb.Simulator(model, timestep=2e-3, **options)
    q, v = random_state(model, rng)
    state = {"q": q, "v": v, "u": rng.normal(size=model.nu)}
    sim.step(**state)
    J = sim.derivatives()
    slopes = {by: J.output(names, by) for by in "qvu"}
    for by, analytic in slopes.items():
        for k, e in enumerate(1e-6 * np.eye(analytic.shape[1])):
            ends = []
            for s in (1, -1):
                moved = dict(state)
                moved[by] = model.integrate(q, s * e) if by == "q" else state[by] + s * e
                sim.step(**moved)
                ends.append(sim.output(names))
            assert analytic[:, k] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-5)


def test_passive_forces_are_the_slope_of_the_energy():
    rng = np.random.default_rng(6)
    for seed, path in enumerate(PATHS.values()):
        model, q, _, _ = robot_with("spring", path, ROOTS[seed % 3], 2 * seed)
        still = np.zeros(model.nv)
        force = model.passive_forces(q, still)
        weight = model.bias(q, still)
        d = rng.normal(size=model.nv)
        ends = [model.energy(model.integrate(q, s * 1e-6 * d), still) for s in (1, -1)]
        slope = sum(ends[0]) - sum(ends[1])
        assert (weight - force) @ d == pytest.approx(slope / 2e-6, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("law", ["limit", "spring", "dry friction"])
@pytest.mark.parametrize("floor", ["", FLOOR], ids=["in space", "on a floor"])
def test_a_rope_between_two_bodies(law, floor):
    """Two robots, one row: momentum stays, gradients are right, also where the bodies touch the floor."""
    gravity = -9.81 if floor else 0
    rope = {
        "limit": 'limited="true" range="0 .45"',
        "spring": 'stiffness="200" springlength="0 .42" damping="2"',
        "dry friction": 'frictionloss="1"',
    }[law]
    model = coulomb.load(ROPE.format(gravity=gravity, floor=floor, tendon=rope))
    sim = coulomb.Simulator(model, timestep=2e-3)
    rng = np.random.default_rng(7)
    q = np.array(model.neutral()[0])
    if floor:
        q[2], q[9] = 0.0499, 0.0799
    v = rng.normal(size=12) * 0.3
    v[0], v[6] = -1.5, 1.5
    masses = np.array([1, 0.5])
    touched = 0
    for _ in range(12):
        check = coulomb.check_gradients(sim, q, v, wrt=names_of(model), tolerance=2e-6)
        assert check.passed and check.converged, (check.errors, check.changed)
        before = masses @ v.reshape(2, 6)[:, :3]
        q, v = sim.step(q, v)
        assert sim.status.converged
        touched += any(c.mode != "separating" for c in sim.contacts)
        y = rng.normal(size=24)
        back = sim.vjp(y[:12], y[12:])
        assert np.r_[back.q, back.v] == pytest.approx(y @ sim.derivatives().A, rel=1e-8, abs=1e-8)
        if not floor:
            assert masses @ v.reshape(2, 6)[:, :3] == pytest.approx(before, abs=1e-12)
    assert (touched > 3) == bool(floor)


@pytest.mark.parametrize("law", ["limit", "spring"])
@pytest.mark.parametrize("stepper", ["bdf1", "bdf2"])
def test_a_rope_with_implicit_steps(law, stepper):
    rope = {"limit": 'limited="true" range="0 .45"', "spring": 'stiffness="200" springlength="0 .42" damping="2"'}[law]
    model = coulomb.load(ROPE.format(gravity=0, floor="", tendon=rope))
    sim = coulomb.Simulator(model, timestep=2e-3, stepper=stepper, contact="penalty")
    q, v = np.array(model.neutral()[0]), np.zeros(12)
    v[0], v[6], v[4], v[9] = -1, 1, 0.3, 0.5
    for _ in range(4):
        check = coulomb.check_gradients(sim, q, v, wrt=names_of(model), tolerance=2e-6)
        assert check.passed and check.converged, (check.errors, check.changed)
        q, v = sim.step(q, v)
    assert np.r_[v[0] + 0.5 * v[6]] == pytest.approx(-0.5, abs=1e-8)


@pytest.mark.parametrize("strand", [False, True], ids=["one strand", "two strands"])
@pytest.mark.parametrize("stepper", ["semi_implicit", "bdf1"])
def test_atwoods_machine(strand, stepper):
    """Accelerations of two weights on a rope: (b - a) g / (a + b); with two strands at weight a, (2 b - a) g / (a + 4 b)."""
    second = '<pulley divisor="1"/><site site="end"/><site site="a"/>' if strand else ""
    a, b, g = 2.0, 1.4, 9.81
    model = coulomb.load(ATWOOD.format(a=a, b=b, strand=second))
    rigid = stepper == "semi_implicit"
    sim = coulomb.Simulator(model, stepper=stepper, **({} if rigid else {"contact": "penalty"}))
    q, v = np.array(model.neutral()[0]), np.zeros(2)
    start = length(model, "rope", q)
    for _ in range(100):
        q, v = sim.step(q, v)

    # With bdf1 the equality is a spring, which stretches by the rope's force.
    wanted = (2 * b - a) * g / (a + 4 * b) if strand else (b - a) * g / (a + b)
    tolerance = 1e-9 if rigid else 1e-2
    assert v[0] == pytest.approx(0.1 * wanted, rel=tolerance)
    assert v[1] == pytest.approx((-2 if strand else -1) * v[0], rel=tolerance)
    assert length(model, "rope", q) == pytest.approx(start, abs=1e-12 if rigid else 1e-4)


@pytest.mark.parametrize("stepper", ["semi_implicit", "bdf1"])
def test_two_ropes_between_the_same_bodies(stepper):
    """An equality of two tendons, each of both robots."""
    text = ROPE.format(gravity=0, floor="", tendon="").replace(
        "</tendon>", '<spatial name="other"><site site="a"/><site site="c"/></spatial></tendon>'
    )
    text = text.replace(
        '<site name="b" pos="-.05 0 .05"/>', '<site name="b" pos="-.05 0 .05"/><site name="c" pos="0 .06 0"/>'
    )
    text = text.replace(
        "</mujoco>", '<equality><tendon tendon1="rope" tendon2="other" polycoef="0 .8 .1 0 0"/></equality></mujoco>'
    )
    model = coulomb.load(text)
    sim = coulomb.Simulator(
        model, timestep=2e-3, stepper=stepper, **({} if stepper == "semi_implicit" else {"contact": "penalty"})
    )
    q, v = np.array(model.neutral()[0]), 0.3 * np.random.default_rng(9).normal(size=12)
    momentum = v[:3] + 0.5 * v[6:9]
    for _ in range(5):
        check = coulomb.check_gradients(sim, q, v, tolerance=2e-6)
        assert check.passed and check.converged, (check.errors, check.changed)
        q, v = sim.step(q, v)
    assert v[:3] + 0.5 * v[6:9] == pytest.approx(momentum, abs=1e-8)


def test_a_pulley_divides():
    text = ATWOOD.format(a=2, b=1, strand="").replace(
        '<site site="a"/><site', '<pulley divisor="2"/><site site="a"/><site'
    )
    whole, half = coulomb.load(ATWOOD.format(a=2, b=1, strand="")), coulomb.load(text)
    q = np.array([0.1, -0.3])
    assert length(half, "rope", q) == pytest.approx(0.5 * length(whole, "rope", q), rel=1e-14)


def test_a_rope_winds_off_a_drum_without_loss():
    """A weight on a rope swings freely: the rope neither slips nor stretches, so energy stays, better with finer steps."""
    drift = []
    for timestep in (2e-3, 1e-3):
        free = coulomb.load(WINDING.format(timestep=timestep, tendon=""))
        now = length(free, "rope", np.zeros(2))
        model = coulomb.load(WINDING.format(timestep=timestep, tendon=f'limited="true" range="0 {now!r}"'))
        sim = coulomb.Simulator(model)
        q, v = np.zeros(2), np.array([1.5, 0.0])
        wound = []
        start = sum(model.energy(q, v))
        for _ in range(round(0.6 / timestep)):
            q, v = sim.step(q, v)
            assert sim.status.converged
            wound.append(length(model, "rope", q) - now)
        assert max(wound) < 2e-4
        drift.append(abs(sum(model.energy(q, v)) - start))
    assert drift[0] < 0.02 and drift[1] < 0.7 * drift[0]


def test_where_a_wrap_begins_is_a_kink():
    """A straight line that touches the top of the drum: the curvature of the length jumps there."""
    text = WINDING.format(timestep=1e-3, tendon='stiffness="100" springlength=".1"')
    model = coulomb.load(text)
    sim = coulomb.Simulator(model)
    for height, is_kink in ((0.2, True), (0.2 + 1e-4, False), (0.2 - 1e-4, False)):
        q = np.array([0.1, height + 0.6])
        sim.step(q, np.zeros(2))
        assert sim.derivatives().ambiguous == is_kink


@pytest.mark.parametrize("shape", ["sphere", "cylinder"])
def test_a_path_that_begins_on_an_obstacle_wraps(shape):
    """Rounding puts such a point inside or outside; the length is that of a point just outside, and the step has finite derivatives."""
    text = """<mujoco><worldbody><geom name="o" type="{}" size=".1 .2" contype="0" conaffinity="0"/><site name="a" pos="{}"/>
      <body pos="0 0 -.3"><joint axis="0 1 0"/><geom size=".02" mass=".1" pos=".1 0 0" contype="0" conaffinity="0"/><site name="b" pos="{}"/></body>
      </worldbody><tendon><spatial name="t" stiffness="3"><site site="a"/><geom geom="o"/><site site="b"/></spatial></tendon></mujoco>"""
    rng = np.random.default_rng(0)
    numbers = lambda x: " ".join(repr(float(y)) for y in x)  # noqa: E731
    for _ in range(60):
        direction = rng.normal(size=3)
        direction[2] *= shape == "sphere"
        point = 0.1 * direction / np.linalg.norm(direction)
        end = numbers(0.3 * rng.normal(size=3))
        on, outside = (coulomb.load(text.format(shape, numbers(scale * point), end)) for scale in (1, 1 + 1e-7))
        assert length(on, "t", np.zeros(1)) == pytest.approx(length(outside, "t", np.zeros(1)), abs=1e-6)
        sim = coulomb.Simulator(on)
        sim.step(np.zeros(1), np.zeros(1))
        assert np.isfinite(sim.derivatives().A).all()


def test_points_that_coincide_are_a_kink():
    model = coulomb.load(ROPE.format(gravity=0, floor="", tendon='stiffness="10" springlength=".1"'))
    q = np.array(model.neutral()[0])
    q[7:10] = q[:3] + [0.1, 0.02, 0.03] - np.array([-0.05, 0, 0.05])
    sim = coulomb.Simulator(model)
    q1, v1 = sim.step(q, np.zeros(12))
    assert np.isfinite(q1).all() and np.isfinite(v1).all()
    assert sim.derivatives().ambiguous
    assert np.isfinite(sim.derivatives().A).all()


def test_saved_and_written_paths_are_read_again():
    rng = np.random.default_rng(8)
    for path in PATHS.values():
        model = coulomb.load(random_robot(rng, *path, tendon='stiffness="3" springlength=".2"'))
        q, v = random_state(model, rng)
        u = rng.normal(size=model.nu)
        for again in (pickle.loads(pickle.dumps(model)), coulomb.load(to_mjcf(model))):
            assert [t.dofs for t in again.tendons] == [t.dofs for t in model.tendons]
            names = (
                ["tendon_length/" + t.name for t in again.tendons],
                ["tendon_length/" + t.name for t in model.tendons],
            )
            assert again.output(names[0], q) == pytest.approx(model.output(names[1], q), rel=1e-13)
            assert again.actuator_forces(q, v, u) == pytest.approx(model.actuator_forces(q, v, u), abs=1e-12)
            assert again.passive_forces(q, v) == pytest.approx(model.passive_forces(q, v), abs=1e-12)
    point = model.tendons[0].path[1]
    assert (point.kind, point.radius, point.side_body >= 0) == ("cylinder", 0.05, True)


def test_batches_and_rollouts():
    model, q, v, rng = robot_with("spring", PATHS["around a cylinder"], "hinge", 3)
    U = rng.normal(size=(20, model.nu))
    batch = coulomb.BatchSimulator(model, 3, num_threads=2, timestep=1e-3)
    alone = coulomb.Simulator(model, timestep=1e-3)
    Q, V, qa, va = np.tile(q, (3, 1)), np.tile(v, (3, 1)), q, v
    for u in U:
        Q, V = batch.step(Q, V, np.tile(u, (3, 1)))
        qa, va = alone.step(qa, va, u)
    assert (Q == qa).all() and (V == va).all()

    rollout = coulomb.Simulator(model, timestep=1e-3).rollout(q, v, U)
    w = np.zeros((2, 21, model.nv))
    w[:, -1] = rng.normal(size=(2, model.nv))
    gradient = rollout.vjp(*w)
    dU = rng.normal(size=U.shape)
    ends = [coulomb.Simulator(model, timestep=1e-3).rollout(q, v, U + s * 1e-6 * dU) for s in (1, -1)]
    by = [w[0, -1] @ model.difference(rollout.q[-1], e.q[-1]) + w[1, -1] @ e.v[-1] for e in ends]
    assert np.sum(gradient.u * dU) == pytest.approx((by[0] - by[1]) / 2e-6, rel=2e-5)


def test_placements_that_change_a_path_have_no_derivative():
    text = ROPE.format(gravity=0, floor="", tendon='stiffness="10" springlength=".1"')
    anchored = text.replace(
        '<body name="a"', '<body name="post" pos="0 0 2"><site name="top"/></body><body name="a"'
    ).replace('<site site="a"/><site site="b"/>', '<site site="top"/><site site="b"/>')
    model = coulomb.load(anchored)
    sim = coulomb.Simulator(model)
    sim.step(model.neutral()[0], np.zeros(12))
    with pytest.raises(ValueError, match="'body_placement/post': it changes the path of tendon 'rope'"):
        sim.derivatives(wrt=["body_placement/post"])
    with pytest.raises(ValueError, match="it changes the path of tendon 'rope'"):
        model.output_jacobian("tendon_length/rope", model.neutral()[0], np.zeros(12), "body_placement/post")
    moved = model.with_parameters({"body_placement/post": np.array([0, 0, 3.0, 0, 0, 0])})
    assert length(moved, "rope", model.neutral()[0]) > length(model, "rope", model.neutral()[0]) + 0.9


@pytest.mark.parametrize("kind", ["fixed", "spatial"])
def test_long_tendons_without_a_force_are_read(kind):
    joints = "".join(f'<joint joint="j{i}" coef="1"/>' for i in range(17))
    path = '<site site="w"/><site site="s"/>'
    chain = "".join(f'<body pos=".1 0 0"><joint name="j{i}" axis="0 1 0"/><geom size=".02"/>' for i in range(17))
    text = (
        f'<mujoco><worldbody><site name="w" pos="0 0 1"/>{chain}<site name="s"/>{"</body>" * 17}</worldbody>'
        f'<tendon><{kind} name="t">{joints if kind == "fixed" else path}</{kind}></tendon></mujoco>'
    )
    model = coulomb.load(text)
    q = 0.1 * np.random.default_rng(0).normal(size=17)
    if kind == "fixed":
        assert length(model, "t", q) == pytest.approx(q.sum())
    J = model.output_jacobian("tendon_length/t", q, np.zeros(17), "q")[0]
    for k, e in enumerate(1e-6 * np.eye(17)):
        assert J[k] == pytest.approx((length(model, "t", q + e) - length(model, "t", q - e)) / 2e-6, abs=1e-8)


LONG = "".join(f'<body pos=".1 0 0"><joint axis="0 {i % 2} {1 - i % 2}"/><geom size=".02"/>' for i in range(17))
REFUSED = {
    "seventeen dofs": (
        f'<mujoco><worldbody><site name="w" pos="0 0 1"/>{LONG}<site name="s"/>{"</body>" * 17}</worldbody>'
        '<tendon><spatial name="t" stiffness="1"><site site="w"/><site site="s"/></spatial></tendon></mujoco>',
        "tendon 't' has 17 degrees of freedom; with 1 .. 16 it is supported",
    ),
    "nothing that moves": (
        '<mujoco><worldbody><site name="a"/><site name="b" pos="1 0 0"/><body><joint/><geom size=".1"/></body></worldbody>'
        '<tendon><spatial name="t" stiffness="1"><site site="a"/><site site="b"/></spatial></tendon></mujoco>',
        "tendon 't' has 0 degrees of freedom",
    ),
}


@pytest.mark.parametrize(("document", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(document, message):
    with pytest.raises(ValueError, match=message):
        coulomb.load(document)


STRETCHED = """<mujoco><option timestep=".002"/><worldbody><site name="w"/>
  <body><joint axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/><site name="m" pos=".3 0 0"/>
   <body pos=".3 0 0"><joint axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/><site name="s" pos=".3 0 0"/></body></body>
</worldbody><tendon><spatial name="t" {tendon}><site site="w"/><site site="{end}"/></spatial></tendon>{equality}</mujoco>"""
TIE = '<equality><tendon tendon1="t" polycoef="{} 0 0 0 0"/></equality>'
# With how many of 100 steps say that a correction is out of reach.
CHAINS = {
    "one link, limit": (dict(tendon='limited="true" range="0 .29"', end="m", equality=""), 100, 100),
    "one link, equality": (dict(tendon="", end="m", equality=TIE.format(-0.01)), 100, 100),
    "two links, limit": (dict(tendon='limited="true" range=".61 2"', end="s", equality=""), 51, 100),
    "two links, limit far away": (dict(tendon='limited="true" range="0 .5"', end="s", equality=""), 1, 50),
    "one link that is as long": (dict(tendon="", end="m", equality=TIE.format(0)), 0, 0),
    "two links that are as long": (dict(tendon="", end="s", equality=TIE.format(0)), 0, 0),
    "two links at their limit": (dict(tendon='limited="true" range="0 .6"', end="s", equality=""), 0, 0),
}


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize(("parts", "least", "most"), CHAINS.values(), ids=CHAINS.keys())
def test_a_stretched_path_asks_for_no_large_motion(parts, least, most, contact):
    """Along a chain that is straight nothing, or only a large motion, changes the length: bounds that are out of reach are said to be, and
    others are met without a kick (27,000 rad/s before)."""
    model = coulomb.load(STRETCHED.format(**parts))
    sim = coulomb.Simulator(model, contact=contact)
    q, v = np.zeros(2), np.zeros(2)
    told = fastest = 0
    for _ in range(100):
        q, v = sim.step(q, v)
        told += "position correction out of reach" in sim.status.reason
        fastest = max(fastest, np.abs(v).max())
        assert np.isfinite(sim.derivatives().A).all()
    assert fastest < 50
    assert least <= told <= most


@pytest.mark.parametrize("law", list(LAWS)[1:])
def test_no_law_gains_energy(law):
    for seed, path in enumerate([*PATHS.values()][:3]):
        model, q, v, _ = robot_with(law, path, ROOTS[seed], seed, bias="0 0 0")
        sim = coulomb.Simulator(model)
        start = sum(model.energy(q, v))
        for _ in range(200):
            q, v = sim.step(q, v)
            assert sum(model.energy(q, v)) < start + 1e-3
