"""Joint limits with a stiffness and a dashpot: where they hold, how they move, their derivatives, and what is refused."""

import pickle

import numpy as np
import pytest

import coulomb

# A slide that hangs on its upper limit (gravity pulls along +z), a pendulum, a ball joint and a coupled pair, with an actuator.
SLIDE = """<mujoco><option gravity="0 0 9.81"/><worldbody><body><joint name="j" type="slide" axis="0 0 1" range="-1 0"/>
  <geom size=".1" mass="2"/></body></worldbody></mujoco>"""
ARM = """<mujoco><compiler angle="radian"/><option timestep="0.002"/><worldbody>
  <geom name="floor" type="plane" size="2 2 .1" friction=".7"/>
  <body pos="0 0 .6"><joint name="ball" type="ball" range="0 .4" armature=".01" damping=".02"/>
    <geom type="capsule" fromto="0 0 0 .25 .02 0" size=".03" mass=".6"/>
    <body pos=".25 .02 0"><joint name="hinge" axis="0 1 .1" range="-.3 .5" damping=".01"/>
      <geom type="capsule" fromto="0 0 0 .2 0 0" size=".025" mass=".4"/>
      <body pos=".2 0 0"><joint name="slide" type="slide" axis="1 0 0" range="-.01 .02" damping=".1"/>
        <geom type="sphere" size=".04" mass=".3"/></body>
      <body pos=".1 0 0"><joint name="finger" axis="0 0 1" range="-.2 .2"/>
        <geom type="sphere" size=".02" pos="0 .1 0" mass=".1"/></body></body></body>
  </worldbody><equality><joint joint1="finger" joint2="hinge" polycoef="0 .5 0 0 0"/></equality>
  <actuator><motor joint="hinge"/></actuator></mujoco>"""
STIFFNESS = {"ball": 40.0, "hinge": 25.0, "slide": 2e3, "finger": 5.0}
DASHPOT = {"ball": 0.5, "hinge": 0.2, "slide": 8.0}


def arm():
    return coulomb.load(ARM, limit_stiffness=STIFFNESS, limit_dashpot=DASHPOT)


def state(model, seed=0):
    """Beyond every limit a little, and moving."""
    rng = np.random.default_rng(seed)
    q = model.integrate(model.neutral()[0], np.array([0.1, 0.4, 0.15, 0.52, 0.022, 0.21]))
    return q, 0.5 * rng.normal(size=model.nv)


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
@pytest.mark.parametrize("h", [1e-3, 1e-2])
def test_rest_is_force_over_stiffness_at_every_time_step(contact, h):
    model = coulomb.load(SLIDE, limit_stiffness=1e3, limit_dashpot=60.0)
    sim = coulomb.Simulator(model, contact=contact, timestep=h)
    q, v = np.zeros(1), np.zeros(1)
    for _ in range(round(3 / h)):
        q, v = sim.step(q, v)
    assert q[0] == pytest.approx(2 * 9.81 / 1e3, rel=1e-9) and abs(v[0]) < 1e-9
    assert sim.status.converged


@pytest.mark.parametrize("contact", ["ncp", "lcp"])
def test_it_swings_as_a_damped_spring_does(contact):
    """m x'' + d x' + k x = m g while the limit is reached, with an error that falls with the time step."""
    m, k, d, g = 2.0, 1e3, 6.0, 9.81
    model = coulomb.load(SLIDE, limit_stiffness=k, limit_dashpot=d)
    a, w = d / (2 * m), np.sqrt(k / m - (d / (2 * m)) ** 2)
    t = 0.05
    x0, x_end = m * g / k, None
    B = -a * x0 / w
    exact = x0 + np.exp(-a * t) * (-x0 * np.cos(w * t) + B * np.sin(w * t))
    errors = []
    for h in (1e-3, 5e-4, 2.5e-4):
        sim = coulomb.Simulator(model, contact=contact, timestep=h)
        q, v = np.zeros(1), np.zeros(1)
        for _ in range(round(t / h)):
            q, v = sim.step(q, v)
        x_end = q[0]
        errors.append(abs(x_end - exact))
    assert errors[0] < 0.05 * x0
    assert 1.7 < errors[0] / errors[1] < 2.3 and 1.7 < errors[1] / errors[2] < 2.3


def test_stiff_limits_tend_to_rigid_ones():
    rigid = coulomb.load(ARM)
    q0 = rigid.integrate(rigid.neutral()[0], np.array([0.05, 0.1, 0.05, 0.4, 0.01, 0.2]))
    v0 = np.array([0.0, 2.0, 0.0, 1.0, 0.1, 0.5])
    ends = []
    for stiffness in (None, 1e4, 1e6, 1e8):
        sim = coulomb.Simulator(coulomb.load(ARM, limit_stiffness=stiffness), timestep=1e-3)
        q, v = q0, v0
        for _ in range(100):
            q, v = sim.step(q, v)
        ends.append(q)
    away = [np.abs(rigid.difference(ends[0], q)).max() for q in ends[1:]]
    assert away[2] < away[1] < away[0] and away[2] < 1e-3


def test_springs_gain_no_energy():
    """What bounces between soft limits without dashpots loses energy only."""
    model = coulomb.load(ARM, limit_stiffness=STIFFNESS)
    q, v = state(model)
    k = [STIFFNESS[n] for n in ("hinge", "slide", "finger")]
    lower, upper = model.joint_lower[1:], model.joint_upper[1:]

    def energy(q, v):
        beyond = np.maximum(0, np.maximum(lower - q[4:], q[4:] - upper))
        angle = 2 * np.arccos(min(1.0, abs(q[0]) / np.linalg.norm(q[:4])))
        return sum(model.energy(q, v)) + 0.5 * np.dot(k, beyond**2) + 0.5 * STIFFNESS["ball"] * max(0, angle - 0.4) ** 2

    sim = coulomb.Simulator(model, timestep=5e-4)
    start = energy(q, v)
    most = start
    for _ in range(2000):
        q, v = sim.step(q, v)
        most = max(most, energy(q, v))
    assert most < start + 0.02 * abs(start) and energy(q, v) < start


OPTIONS = {
    "ncp": {},
    "lcp": {"contact": "lcp"},
    "penalty": {"contact": "penalty"},
    "bdf1": {"stepper": "bdf1", "contact": "penalty"},
    "bdf2": {"stepper": "bdf2", "contact": "penalty"},
    "explicit": {"joint_forces": "explicit"},
}
NAMES = ("joint_limit", "mass/", "gravity", "timestep", "armature/ball")


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("dashpot", [DASHPOT, None], ids=["damped", "undamped"])
def test_derivatives(options, dashpot):
    model = coulomb.load(ARM, limit_stiffness=STIFFNESS, limit_dashpot=dashpot)
    sim = coulomb.Simulator(model, timestep=2e-3, **options)
    wrt = [n for n in model.parameters() if n.startswith(NAMES)]
    assert {"joint_limit_stiffness/hinge", "joint_limit_dashpot/slide", "joint_limits/ball"} <= set(wrt)
    if dashpot is None:
        wrt = [n for n in wrt if "dashpot" not in n]  # differences would make them negative
    else:
        wrt.remove("joint_limit_dashpot/finger")
    rng = np.random.default_rng(1)
    q, v = state(model)
    most = 0
    for _ in range(4):
        check = coulomb.check_gradients(sim, q, v, [0.2], wrt=["q", "v", "u", "tau", *wrt], tolerance=2e-6)
        assert check.passed and check.converged and check.compared > 0.8 * check.columns, (check.errors, check.changed)
        q, v = sim.step(q, v, [0.2])

        # Reverse mode.
        d = sim.derivatives(wrt=wrt)
        y = rng.normal(size=2 * model.nv)
        back = sim.vjp(y[: model.nv], y[model.nv :], wrt=wrt)
        for got, block in [(np.r_[back.q, back.v], d.A), (back.u, d.B), *((back[n], d[n]) for n in wrt)]:
            assert np.ravel(got) == pytest.approx(y @ block, rel=1e-9, abs=1e-9 * max(1e-3, np.abs(block).max()))
        most = max(most, np.abs(d["joint_limit_stiffness/hinge"]).max())
    assert most > 1e-7


@pytest.mark.parametrize("options", [{}, {"contact": "lcp"}], ids=["ncp", "lcp"])
def test_taylor_remainder(options):
    model = arm()
    sim = coulomb.Simulator(model, timestep=2e-3, **options)
    q, v = state(model)
    q1, v1 = sim.step(q, v, [0.2])
    A = sim.derivatives().A
    d = np.random.default_rng(3).normal(size=2 * model.nv)
    left = []
    for h in (1e-4, 1e-5):
        q2, v2 = sim.step(model.integrate(q, h * d[: model.nv]), v + h * d[model.nv :], [0.2])
        left.append(np.abs(np.r_[model.difference(q1, q2), v2 - v1] - h * A @ d).max())
    assert left[1] < 0.02 * left[0]


def test_rollouts_batches_and_saved_models_know_them():
    model = pickle.loads(pickle.dumps(arm()))
    assert list(model.joint_limit_stiffness) == list(STIFFNESS.values())
    assert list(model.joint_limit_dashpot) == [*DASHPOT.values(), 0]
    rng = np.random.default_rng(4)
    U = rng.normal(size=(25, 1))
    q, v = state(model)
    sim = coulomb.Simulator(model, timestep=2e-3)
    r = sim.rollout(q, v, U)
    batch = coulomb.BatchSimulator(model, 2, timestep=2e-3)
    rb = batch.rollout(np.stack([q, q]), np.stack([v, v]), np.stack([U, U]))
    assert np.array_equal(rb.q[1], r.q) and np.array_equal(rb.v[0], r.v)

    # The gradient of the end with respect to a stiffness, against differences of whole rollouts.
    name = "joint_limit_stiffness/slide"
    y = rng.normal(size=model.nv)
    dV = np.zeros_like(r.v)
    dV[-1] = y
    got = r.vjp(dV=dV, wrt=[name])[name][0]
    ends = []
    for k in (STIFFNESS["slide"] + 0.1, STIFFNESS["slide"] - 0.1):
        changed = coulomb.Simulator(model.with_parameters({name: [k]}), timestep=2e-3)
        ends.append(changed.rollout(q, v, U).v[-1])
    assert got == pytest.approx(y @ (ends[0] - ends[1]) / 0.2, rel=2e-4, abs=1e-9)


def test_scene_sets_and_removes_them():
    scene = coulomb.Scene()
    scene.add_mjcf(ARM)
    scene.set_joint_limits("hinge", lower=-0.1, stiffness=30.0, dashpot=1.0)
    scene.set_joint_limits("slide", stiffness=500.0)
    scene.set_joint_limits("slide", stiffness=np.inf)
    model = scene.build()
    at = model.joint_names.index("hinge")
    assert model.joint_lower[at] == -0.1 and model.joint_upper[at] == 0.5
    assert model.joint_limit_stiffness[at] == 30 and model.joint_limit_dashpot[at] == 1
    assert model.joint_limit_stiffness[model.joint_names.index("slide")] == 0

    # A joint that has no limits gets one on one side.
    scene = coulomb.Scene()
    scene.add_mjcf("<mujoco><worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody></mujoco>")
    scene.set_joint_limits("j", upper=0.4, stiffness=10)
    model = scene.build()
    assert model.joint_limited[0] and model.joint_lower[0] == -np.inf and model.joint_upper[0] == 0.4


URDF = """<robot name="r"><link name="base"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<link name="arm"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="5" velocity="1"/></joint></robot>"""


def test_urdf_takes_one_number_for_all():
    model = coulomb.load(URDF, limit_stiffness=100, limit_dashpot=2)
    assert model.joint_limit_stiffness == pytest.approx([100]) and model.joint_limit_dashpot == pytest.approx([2])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.set_joint_limits("no", stiffness=1), "set_joint_limits 'no': no such joint"),
        (lambda s: s.set_joint_limits("hinge", stiffness=-1), "set_joint_limits 'hinge' stiffness: -1"),
        (lambda s: s.set_joint_limits("hinge", stiffness=0), "set_joint_limits 'hinge' stiffness: 0"),
        (lambda s: s.set_joint_limits("hinge", dashpot=2), "needs a stiffness"),
        (lambda s: s.set_joint_limits("hinge", stiffness=1, dashpot=-2), "dashpot: -2"),
        (lambda s: s.set_joint_limits("hinge", lower=1, upper=0), "lower 1 and upper 0"),
        (lambda s: s.set_joint_limits("ball", lower=0), "a ball has a largest angle only"),
        (lambda s: s.set_joint_limits("free", stiffness=1), "free joint has no limits"),
        (lambda s: s.add_mjcf(ARM, limit_stiffness={"knee": 1}), "limit_stiffness of 'knee'"),
        (lambda s: s.add_mjcf(ARM, limit_dashpot=1), "needs a stiffness"),
    ],
)
def test_what_no_limit_can_be_is_refused(call, words):
    scene = coulomb.Scene()
    scene.add_mjcf(ARM)
    scene.add_mjcf("<mujoco><worldbody><body><freejoint name='free'/><geom size='.1'/></body></worldbody></mujoco>")
    before = pickle.dumps(scene)
    with pytest.raises(ValueError, match=words):
        call(scene)
    assert pickle.dumps(scene) == before


def test_split_steps_refuse_them():
    with pytest.raises(ValueError, match="joint_limit_stiffness 40 of joint 'ball'.*rigid limits only"):
        coulomb.Simulator(arm(), continuous_collision=True)
