"""Servos act as their files mean them, whatever their gains: velocity gains are implicit, as joint damping is.

MuJoCo's implicitfast has the same step where nothing touches; where it diverges or has another one, closed forms stand in.
"""

import numpy as np
import pytest

import coulomb

HINGE = """<mujoco><option timestep="{h}" gravity="0 0 0" integrator="{integrator}"/><worldbody><body>
  <joint name="j" type="{kind}" axis="0 0 1" damping="{damping}" stiffness="{stiffness}" {joint}/>
  <inertial pos="0 0 0" mass="{inertia}" diaginertia="{inertia} {inertia} {inertia}"/></body></worldbody>
  <actuator>{actuators}</actuator></mujoco>"""


def hinge(
    actuators, h=2e-3, kind="hinge", inertia=1e-3, damping=0.0, stiffness=0.0, joint="", integrator="implicitfast"
):
    return HINGE.format(**locals())


def theirs(xml, q, v, u):
    """(q, v) of MuJoCo's step."""
    mujoco = pytest.importorskip("mujoco")
    m = mujoco.MjModel.from_xml_string(xml)
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:], d.ctrl[:] = q, v, u
    mujoco.mj_step(m, d)
    return d.qpos.copy(), d.qvel.copy()


def run(model, q, v, u, steps, **options):
    sim = coulomb.Simulator(model, **options)
    for _ in range(steps):
        q, v = sim.step(q, v, u)
    assert sim.status.converged
    return q, v


def test_a_stiff_servo_goes_where_it_is_told():
    """h kv / I = 20: an overdamped servo approaches its target at kp/kv = 1/s, so that a tenth of a second takes it to 1 - exp(-.1)."""
    model = coulomb.load(hinge('<position joint="j" kp="10" kv="10"/>'))
    q, _ = run(model, [0.0], [0.0], [1.0], 50)
    assert q[0] == pytest.approx(1 - np.exp(-0.1), rel=2e-2)
    assert run(model, [0.0], [0.0], [1.0], 500)[0][0] == pytest.approx(1 - np.exp(-1), rel=2e-3)
    sim = coulomb.Simulator(model, joint_forces="explicit")
    q, v = np.zeros(1), np.zeros(1)
    for _ in range(50):
        q, v = sim.step(q, v, [1.0])
    assert abs(q[0]) > 1e9  # MuJoCo's Euler, for comparison


@pytest.mark.parametrize("ratio", [1e-2, 0.5, 1.9, 2.1, 20.0, 1e3])
@pytest.mark.parametrize("servo", ['<position joint="j" kp="1" kv="{}"/>', '<velocity joint="j" kv="{}"/>'])
def test_stable_for_any_gain(ratio, servo):
    """Speed only falls; the explicit servo turns it round from h kv / I = 1 on, and grows from 2 on."""
    inertia, h = 1e-3, 2e-3
    model = coulomb.load(hinge(servo.format(ratio * inertia / h), inertia=inertia, h=h))
    sim = coulomb.Simulator(model)
    q, v = np.zeros(1), np.array([3.0])
    for _ in range(20):
        q, v_new = sim.step(q, v, [0.0])
        assert -0.1 < v_new[0] < max(v[0], 0)
        v = v_new


GENERAL = '<general joint="j" gear="1.5" gainprm="{}" biastype="affine" gaintype="affine" biasprm="{}" {}/>'
ACTUATORS = {
    "position": '<position joint="j" kp="30" kv="4" gear="2"/>',
    "velocity": '<velocity joint="j" kv="3"/>',
    "dampratio": '<position joint="j" kp="30" dampratio="1"/>',
    "damper": '<damper joint="j" kv="4" ctrlrange="0 1"/>',
    "by the control": GENERAL.format("1 .5 -3", ".1 -2 -1", "ctrlrange='.1 2' ctrllimited='true'"),
    "force clamped": GENERAL.format("20", "0 -20 -4", "forcerange='-2 3' forcelimited='true'"),
    "two": '<position joint="j" kp="30" kv="4"/><velocity joint="j" kv="2" gear="-.5"/>',
}


def bound(force, lower, upper, limited):
    return int(limited and force > upper) - int(limited and force < lower)


def forces_of(model, q, s, u, joint=(-np.inf, np.inf)):
    """The torque of all actuators on the one joint at a speed, and who is at a bound: from the definition of an actuator."""
    torque, bounds = 0.0, []
    for a, u_k in zip(model.actuators, u):
        u_k = np.clip(u_k, *a.control_range) if a.control_limited else u_k
        gear, (g0, g1, g2), (b0, b1, b2) = a.gear[0], a.gain, a.bias
        length, speed = gear * q, gear * s
        force = (g0 + g1 * length + g2 * speed) * u_k + b0 + b1 * length + b2 * speed
        bounds.append(bound(force, *a.force_range, a.force_limited))
        torque += gear * (np.clip(force, *a.force_range) if a.force_limited else force)
    bounds.append(bound(torque, *joint, True))
    return np.clip(torque, *joint), bounds


JOINTS = {"free": ("", (-np.inf, np.inf)), "clamped": ("actuatorfrcrange='-3 2' actuatorfrclimited='true'", (-3, 2))}


@pytest.mark.parametrize("joint", JOINTS)
@pytest.mark.parametrize("kind", ["hinge", "slide"])
@pytest.mark.parametrize("actuators", ACTUATORS)
def test_one_joint_is_implicitfast(actuators, kind, joint):
    """Clamps of control, force and joint included: what is saturated at the end of the step has no gain. MuJoCo judges at the start: wherever
    that is the same it has the same step; elsewhere the force at the end, found by bisection, is within the bounds."""
    attributes, limits = JOINTS[joint]
    inertia, damping, stiffness, h = 5e-3, 0.1, 2.0, 2e-3
    xml = hinge(ACTUATORS[actuators], h, kind, inertia, damping, stiffness, attributes)
    model = coulomb.load(xml)
    sim, random = coulomb.Simulator(model), np.random.default_rng(0)
    same = 0
    for _ in range(40):
        q, v, u = random.normal(size=(3, 1)) * [[0.5], [1.0], [1.0]]
        u = np.resize(u, model.nu)
        q1, v1 = sim.step(q, v, u)
        if forces_of(model, q[0], v[0], u, limits)[1] == forces_of(model, q[0], v1[0], u, limits)[1]:
            same += 1
            q2, v2 = theirs(xml, q, v, u)
            assert np.abs(v1 - v2).max() < 1e-12 * max(1, np.abs(v2).max()) and np.abs(q1 - q2).max() < 1e-12

        def rest(s, q=q[0], v=v[0], u=u):
            return inertia * (s - v) - h * (forces_of(model, q, s, u, limits)[0] - stiffness * q - damping * s)

        assert rest(v1[0] - 1e-8) < 0 < rest(v1[0] + 1e-8)
    assert same > 10


CHAIN = """<mujoco><option timestep="0.002" integrator="{integrator}"/><default>
  <position kp="{kp}" kv="{kv}" {limits}/></default><worldbody>{bodies}</worldbody><actuator>{actuators}</actuator></mujoco>"""
# kg, kg m^2 and m of an arm of seven hinges, as industrial arms have them: the last link turns with 1e-3 kg m^2.
MASSES, LENGTHS = (5.8, 6.4, 4.0, 4.3, 3.4, 3.3, 1.2), (0.16, 0.2, 0.2, 0.2, 0.2, 0.22, 0.08)
INERTIAS = ("3.3e-2 3.3e-2 1.2e-2", "3e-2 3e-2 1.1e-2", "2.5e-2 2.4e-2 8e-3", "1.7e-2 1.6e-2 6e-3",
            "1e-2 8.7e-3 4.5e-3", "5e-3 4.7e-3 3.6e-3", "1e-3 1e-3 1e-3")  # fmt: skip


def arm(kp=2000.0, kv=200.0, limits="", integrator="implicitfast"):
    bodies = ""
    for k in range(7):
        pos = f"0 0 {LENGTHS[k - 1] if k else 0.15}"
        bodies += f"""<body pos="{pos}"><joint name="j{k}" axis="{"0 0 1" if k % 2 == 0 else "0 1 0"}"/>
          <inertial pos="0 .02 {0.4 * LENGTHS[k]}" mass="{MASSES[k]}" diaginertia="{INERTIAS[k]}"/>"""
    actuators = "".join(f'<position joint="j{k}"/>' for k in range(7))
    bodies += "</body>" * 7
    return CHAIN.format(**locals())


def test_an_arm_with_stiff_servos_stands():
    """kp 2000, kv 200 on a wrist of 1e-3 kg m^2, h kv / I = 400: it sags by its weight over kp, step for step as in implicitfast."""
    mujoco = pytest.importorskip("mujoco")
    xml = arm()
    m = mujoco.MjModel.from_xml_string(xml)
    d = mujoco.MjData(m)
    model = coulomb.load(xml)
    pose = np.array([0.3, 0.8, 0.2, -1.2, 0.1, 1.0, 0.4])
    d.qpos[:] = d.ctrl[:] = pose
    sim = coulomb.Simulator(model)
    q, v = pose, np.zeros(7)
    fastest = 0.0
    for _ in range(500):
        mujoco.mj_step(m, d)
        q, v = sim.step(q, v, pose)
        fastest = max(fastest, np.abs(v).max())
        assert np.abs(v - d.qvel).max() < 1e-11 and np.abs(q - d.qpos).max() < 1e-11
    assert fastest < 0.3 and np.abs(q - pose).max() < 0.05

    # And goes where it is sent, in contact with itself or not, in an explicit step it does not stand at all.
    q, v = run(model, q, v, pose + 0.2, 2000)
    assert np.abs(v).max() < 1e-3
    explicit = coulomb.Simulator(model, joint_forces="explicit")
    q, v = pose, np.zeros(7)
    for _ in range(30):
        q, v = explicit.step(q, v, pose)
    assert np.abs(v).max() > 100


BALL = """<mujoco><option timestep="0.004" integrator="implicitfast" gravity="1 2 -9.81"/><worldbody>
  <body pos="0 0 1"><freejoint name="f"/><inertial pos="0 0 0" mass="2" diaginertia=".02 .03 .04"/>
   <body pos=".2 0 0"><joint name="b" type="ball" damping=".02"/><inertial pos=".1 .02 0" mass=".3" diaginertia="1e-3 2e-3 2.5e-3"/>
   <body pos=".2 .1 0"><joint name="h" axis="1 1 0"/><inertial pos=".1 0 0" mass=".1" diaginertia="1e-4 1e-4 1e-4"/></body></body></body>
  </worldbody><actuator>
  <general joint="f" gear="1 .2 .3 .1 .5 -.2" gainprm="2" biastype="affine" biasprm=".1 0 -300"/>
  <general joint="f" gear="0 .2 -.3 .4 0 .2" gaintype="affine" gainprm="0 0 -200"/>
  <general joint="b" gear=".3 .5 -.4" gainprm="5" biastype="affine" biasprm="0 -5 -3"/>
  <general joint="b" gear="-.6 .2 .1" gainprm="5" biastype="affine" biasprm="0 0 -8" forcerange="-6 6" forcelimited="true"/>
  <velocity joint="h" kv="2"/></actuator></mujoco>"""


def test_ball_and_free_joints_are_implicitfast():
    """Several dofs per actuator, several actuators per joint. A free body's own spin is explicit there, and the one clamp is judged at the start."""
    same = 0
    model = coulomb.load(BALL)
    sim, random = coulomb.Simulator(model, gyroscopic="explicit"), np.random.default_rng(3)
    for _ in range(40):
        q = model.integrate(model.neutral()[0], 0.5 * random.normal(size=model.nv))
        v, u = random.normal(size=model.nv), np.abs(random.normal(size=model.nu))
        q1, v1 = sim.step(q, v, u)
        q2, v2 = theirs(BALL, q, v, u)
        forces = [5 * u[3] - 8 * np.dot([-0.6, 0.2, 0.1], s[6:9]) for s in (v, v2)]
        if len({bound(force, -6, 6, True) for force in forces}) > 1:
            continue
        same += 1
        assert np.abs(v1 - v2).max() < 1e-12 * max(1, np.abs(v2).max())
        assert np.abs(model.difference(q2, q1)).max() < 1e-12
    assert same > 20


def test_what_drives_itself_stays_explicit():
    """A gain against damping makes M + h D indefinite at h k = I: the step must not know."""
    model = coulomb.load(hinge(GENERAL.format("1", "0 0 .5", "").replace("1.5", "1"), inertia=1e-3, h=2e-3))
    q, v = run(model, [0.0], [1.0], [0.0], 1)
    assert v[0] == pytest.approx(1 + 2e-3 * 0.5 / 1e-3, rel=1e-12)
    both = coulomb.load(
        hinge(GENERAL.format("1", "0 0 .5", "").replace("1.5", "1") + '<velocity joint="j" kv="3"/>', damping=0.2)
    )
    q, v = run(both, [0.0], [1.0], [0.0, 0.0], 1)
    assert v[0] == pytest.approx((1e-3 + 2e-3 * 0.5 + 0) / (1e-3 + 2e-3 * 3.2) * 1 + 0, rel=1e-12)


@pytest.mark.parametrize("rule", ["implicit_velocity", "implicit", "explicit"])
def test_converges_with_first_order(rule):
    """Against the closed form of a damped spring that a servo and a joint make together."""
    inertia, kp, kv, k, c, T = 0.01, 4.0, 0.02, 2.0, 0.01, 0.2
    w2, z = (kp + k) / inertia, (kv + c) / inertia / 2
    w = np.sqrt(w2 - z**2)
    target = kp / (kp + k)
    exact = target - target * np.exp(-z * T) * (np.cos(w * T) + z / w * np.sin(w * T))
    errors = []
    for h in (1e-3, 5e-4, 2.5e-4):
        model = coulomb.load(
            hinge(f'<position joint="j" kp="{kp}" kv="{kv}"/>', inertia=inertia, damping=c, stiffness=k, h=h)
        )
        q, _ = run(model, [0.0], [0.0], [1.0], round(T / h), joint_forces=rule)
        errors.append(abs(q[0] - exact))
    assert errors[0] < 0.05
    assert 1.8 < errors[0] / errors[1] < 2.2 and 1.8 < errors[1] / errors[2] < 2.2


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("kind", ["hinge", "slide", "ball"])
def test_implicit_positions_are_stable_for_any_stiffness(kind, scale):
    """A joint spring and a position servo of h^2 K / I up to 4e3, from afar: energy only falls."""
    gear = 'gear=".6 0 .8"' if kind == "ball" else ""
    servo = f'<position joint="j" kp="{scale}" {gear}/>'
    model = coulomb.load(hinge(servo, kind=kind, stiffness=scale, inertia=1e-3))
    sim = coulomb.Simulator(model, joint_forces="implicit")
    q, v = model.integrate(model.neutral()[0], np.full(model.nv, 0.3)), np.zeros(model.nv)

    def energy():
        angle = model.difference(model.neutral()[0], q)
        along = angle @ [0.6, 0, 0.8] if kind == "ball" else angle[0]
        return 0.5e-3 * v @ v + 0.5 * scale * (angle @ angle + along**2)

    before = start = energy()
    for _ in range(300):
        q, v = sim.step(q, v, [0.0])
        assert energy() < before * (1 + 1e-9) + 1e-300
        before = energy()
    assert before < 0.2 * start


# The table of docs/conventions.md: amplitude beside the exact one, less 1, and phase, degrees, at 3 Hz.
RESPONSE = {"explicit": (-0.005, 1.0), "implicit_velocity": (0.005, -1.0), "implicit": (-0.080, -2.4)}


@pytest.mark.parametrize("rule", RESPONSE)
def test_the_frequency_response_of_a_servo(rule):
    kp, kv, inertia, h, w = 4.0, 0.08, 0.01, 2e-3, 2 * np.pi * 3
    model = coulomb.load(hinge(f'<position joint="j" kp="{kp}" kv="{kv}"/>', inertia=inertia, h=h))
    sim = coulomb.Simulator(model, joint_forces=rule)
    q, v, angles = np.zeros(1), np.zeros(1), []
    t = h * np.arange(2500)
    for each in t:
        angles.append(q[0])
        q, v = sim.step(q, v, [np.sin(w * each)])

    # Of five whole periods at the end, less what the sine itself has: -1j.
    last = slice(-round(5 / 3 / h), None)
    found = 2j * np.mean(np.array(angles)[last] * np.exp(-1j * w * t[last]))
    ratio = found / (kp / (kp - inertia * w**2 + 1j * kv * w))
    amplitude, phase = RESPONSE[rule]
    assert abs(ratio) - 1 == pytest.approx(amplitude, abs=3e-3)
    assert np.degrees(np.angle(ratio)) == pytest.approx(phase, abs=0.3)


def test_the_saturated_push_with_their_force_alone():
    """One step of a servo whose force, or whose joint's, is at its bound: h F / I, to rounding."""
    force = 'forcerange="-2 2" forcelimited="true"'
    for clamp, joint in ((force, ""), ("", 'actuatorfrcrange="-2 2" actuatorfrclimited="true"')):
        model = coulomb.load(hinge(f'<position joint="j" kp="1000" kv="100" {clamp}/>', joint=joint))
        q, v = run(model, [0.0], [0.0], [1.0], 1)
        assert v[0] == pytest.approx(2e-3 * 2 / 1e-3, rel=1e-13)


def test_a_grip_is_no_stronger_than_the_servo():
    """A finger with a clamped servo presses on a wall with that force, whatever its gains."""
    xml = """<mujoco><option timestep="0.002" gravity="0 0 0"/><worldbody><geom type="box" size=".1 .1 .1" pos=".2 0 0"/>
      <body><joint name="j" type="slide" axis="1 0 0"/><geom name="finger" type="sphere" size=".0999" mass=".1"/></body></worldbody>
      <actuator><position name="grip" joint="j" kp="1e4" kv="1e3" forcerange="-3 3" forcelimited="true"/></actuator></mujoco>"""
    model = coulomb.load(xml)
    sim = coulomb.Simulator(model)
    q, v = np.zeros(1), np.zeros(1)
    for _ in range(20):
        q, v = sim.step(q, v, [0.05])
    assert sim.output("actuator_force/grip")[0] == pytest.approx(3.0, rel=1e-12)
    assert np.linalg.norm(sim.contacts[0].impulse) == pytest.approx(3.0 * 2e-3, rel=1e-6)


def test_readings_are_mujocos():
    """A servo's reading is its force at the state that the step starts from, whatever is implicit."""
    model = coulomb.load(hinge('<position name="s" joint="j" kp="10" kv="7"/>', joint=""))
    for rule in ("implicit_velocity", "explicit", "implicit"):
        sim = coulomb.Simulator(model, joint_forces=rule)
        sim.step([0.2], [0.5], [1.0])
        assert sim.output("actuator_force/s")[0] == pytest.approx(10 * 0.8 - 7 * 0.5, rel=1e-13)


@pytest.mark.parametrize("options", [{}, {"contact": "lcp"}, {"continuous_collision": True}, {"contact": "penalty"}])
def test_every_semi_implicit_stepper_has_the_same_servos(options):
    xml = arm(kp=500, kv=200)
    model = coulomb.load(xml)
    pose = np.array([0.3, 0.8, 0.2, -1.2, 0.1, 1.0, 0.4])
    for rule in ("implicit_velocity", "implicit"):
        q, v = coulomb.Simulator(model, joint_forces=rule).step(pose, 0.1 * pose, 0.5 * pose)
        q2, v2 = coulomb.Simulator(model, joint_forces=rule, **options).step(pose, 0.1 * pose, 0.5 * pose)
        tolerance = 2e-4 if "continuous_collision" in options else 1e-9
        assert np.abs(v - v2).max() < tolerance * np.abs(v - 0.1 * pose).max() + tolerance


def test_the_option_is_checked():
    model = coulomb.load(hinge('<position joint="j" kp="10" kv="10"/>'))
    assert coulomb.Simulator(model).options["joint_forces"] == "implicit_velocity"
    with pytest.raises(ValueError, match='joint_forces: got "euler", expected "implicit_velocity"'):
        coulomb.Simulator(model, joint_forces="euler")
    with pytest.raises(ValueError, match='joint_forces: has no influence here, stepper "bdf1"'):
        coulomb.Simulator(model, joint_forces="implicit", stepper="bdf1")


def test_at_its_bound_a_step_has_two_slopes():
    """h F/I is the speed with which the bound leaves; the force at the end is there at kp u - kv h F/I = F. Only gains are lost beyond it."""
    for kv, at in ((1.0, 1.5), (0.0, 0.5)):
        clamp = 'forcerange="-2 2" forcelimited="true"'
        model = coulomb.load(hinge(f'<position joint="j" kp="4" kv="{kv}" {clamp}/>'))
        sim = coulomb.Simulator(model)
        sim.step([0.0], [0.0], [at])
        assert sim.derivatives().ambiguous == (kv > 0)
        for u in (at - 1e-3, at + 1e-3):
            sim.step([0.0], [0.0], [u])
            assert not sim.derivatives().ambiguous


@pytest.mark.parametrize("rule", ["implicit_velocity", "implicit"])
def test_a_step_does_not_jump_where_a_servo_saturates(rule):
    """h kv/I = 20: judged at the start, the speed would jump by h F/I (1 - 1/21) there."""
    clamp = 'forcerange="-2 2" forcelimited="true"'
    model = coulomb.load(hinge(f'<position joint="j" kp="40" kv="10" {clamp}/>'))
    sim = coulomb.Simulator(model, joint_forces=rule)
    controls = np.linspace(-2, 2, 4001)
    speeds = np.array([sim.step([0.1], [0.3], [u])[1][0] for u in controls])
    slope = 2e-3 * 40 / 1e-3  # of the explicit servo, the steepest that there is
    assert np.all(np.diff(speeds) >= 0) and np.diff(speeds).max() < slope * 1e-3
    assert speeds[-1] == pytest.approx(0.3 + 2e-3 * 2 / 1e-3, rel=1e-12)  # saturated there


def test_an_impact_does_not_lend_a_servo_strength():
    """A finger at rest at its target is hit: its implicit gain would hold with k_v v. What it gives at the end is within its bounds."""
    for clamp, joint in (("forcerange='-3 3'", ""), ("", "actuatorfrcrange='-3 3'")):
        model = coulomb.load(f"""<mujoco><option timestep="0.002" gravity="0 0 0"/><worldbody>
          <body><joint name="j" type="slide" axis="1 0 0" {joint}/><geom name="finger" type="sphere" size=".1" mass=".1"/></body>
          <body pos="-.2 0 0"><joint name="b" type="slide" axis="1 0 0"/><geom name="ball" type="sphere" size=".1" mass=".4"/></body>
          </worldbody><actuator><position joint="j" kp="1e4" kv="1e3" {clamp}/></actuator></mujoco>""")
        sim = coulomb.Simulator(model)
        q, v = sim.step([0.0, 0.0], [0.0, 2.0], [0.0])
        assert sim.contacts
        momentum = 0.4 * 2.0 - 2e-3 * 3  # the finger's servo takes h F away, no more
        assert v == pytest.approx(momentum / 0.5, rel=1e-8)
        assert sim.status.converged


WRIST = """<mujoco><option timestep="{h}" integrator="implicitfast"/><compiler autolimits="true"/><default>
  <default class="strong"><position kp="2000" kv="100" forcerange="-100 100"/></default>
  <default class="weak"><position kp="500" kv="50" forcerange="-50 50"/></default></default><worldbody>{bodies}</worldbody>
  <actuator>{actuators}</actuator></mujoco>"""


def wrist(h):
    """A light arm of seven hinges, strong for its last links: h kv/I = 100 at the hand."""
    bodies = actuators = ""
    for k, (m, i) in enumerate(
        zip((1.4, 1.2, 1.2, 0.9, 0.7, 0.7, 0.5), (5e-3, 1e-2, 1e-2, 8e-3, 1.6e-3, 1.6e-3, 6e-4))
    ):
        bodies += f"""<body pos="0 0 {0.2 if k else 0.15}"><joint name="j{k}" axis="{"0 0 1" if k % 2 == 0 else "0 1 0"}"/>
          <inertial pos="0 .01 .07" mass="{m}" diaginertia="{i} {i} {i / 3}"/>"""
        actuators += f'<position class="{"strong" if k < 4 else "weak"}" joint="j{k}"/>'
    return WRIST.format(h=h, bodies=bodies + "</body>" * 7, actuators=actuators)


def test_an_arm_with_saturated_servos_goes_where_it_is_sent():
    """Sent .6 rad away all servos saturate. Judged at the start of the step, the wrist shakes at 200 rad/s; it should move as with a step of a
    twentieth."""
    pose = np.array([0.3, 0.8, 0.2, -1.2, 0.1, 1.0, 0.4])
    target = pose + 0.6 * np.sin(np.arange(7) + 1.0)
    ends = []
    for h in (2e-3, 1e-4):
        sim = coulomb.Simulator(coulomb.load(wrist(h)))
        q, v = pose, np.zeros(7)
        fastest, path = 0.0, []
        for k in range(round(1 / h)):
            q, v = sim.step(q, v, target)
            fastest = max(fastest, np.abs(v).max())
            if (k + 1) % round(2e-3 / h) == 0:
                path.append(q)
        assert fastest < 20
        ends.append(np.array(path))
    assert np.abs(ends[0] - ends[1]).max() < 0.05
    assert np.abs(ends[0][-1] - ends[1][-1]).max() < 1e-4 and np.abs(ends[0][-1] - target).max() < 0.05


def test_coupled_servos_obey_their_bounds():
    """Arms thrown about at random, most of their servos reach or leave a bound within the step: M a + b is what all of them give at its end."""
    random = np.random.default_rng(0)
    changes = 0
    for limits in ('forcelimited="true" forcerange="-20 20"', 'forcelimited="true" forcerange="-1 4"'):
        model = coulomb.load(arm(limits=limits))
        low, high = model.actuators[0].force_range
        for h in (5e-4, 2e-3, 2e-2):
            sim = coulomb.Simulator(model, timestep=h)
            for scale in 10 ** random.uniform(-1, 1.5, size=30):
                q, v = random.normal(size=7), scale * random.normal(size=7)
                u = q + 0.1 * scale * random.normal(size=7)
                _, v1 = sim.step(q, v, u)
                start, end = (2000 * (u - q) - 200 * s for s in (v, v1))
                given, needed = np.clip(end, low, high), model.inverse_dynamics(q, v, (v1 - v) / h)
                assert np.abs(given - needed).max() < 1e-9 * (1 + np.abs(needed).max() + np.abs(end).max())
                changes += np.sum(np.clip(start, low, high) != np.clip(end, low, high))
    assert changes > 100


@pytest.mark.parametrize(("options", "close"), [({"continuous_collision": True}, 0.05), ({"contact": "penalty"}, 1e-6)])
def test_every_semi_implicit_stepper_has_the_same_clamps(options, close):
    """Split steps take positions half way, which at 3 rad/s shows."""
    model = coulomb.load(wrist(2e-3))
    pose = np.array([0.3, 0.8, 0.2, -1.2, 0.1, 1.0, 0.4])
    random = np.random.default_rng(4)
    for _ in range(30):
        v, u = 3 * random.normal(size=7), pose + 0.5 * random.normal(size=7)
        _, v1 = coulomb.Simulator(model, gyroscopic="explicit").step(pose, v, u)
        _, v2 = coulomb.Simulator(model, gyroscopic="explicit", **options).step(pose, v, u)
        assert np.abs(v1 - v2).max() < close * (1 + np.abs(v1 - v).max())
