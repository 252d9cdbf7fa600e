"""Links behind fixed joints, frames of pin, names of second robots, joints and states by name, guesses for unknown names."""

import numpy as np
import pytest

import coulomb

ARM = """<robot name="arm">
  <link name="base"><inertial><mass value="1"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="upper"><inertial><origin xyz="0 0 .2"/><mass value="2"/>
    <inertia ixx=".03" iyy=".02" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="fore"><inertial><origin xyz=".1 0 .1"/><mass value="1"/>
    <inertia ixx=".02" iyy=".01" izz=".01" ixy=".001" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size=".05 .05 .3"/></geometry></collision></link>
  <link name="foot"><inertial><mass value=".2"/><inertia ixx=".001" iyy=".001" izz=".001" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><sphere radius=".04"/></geometry></collision></link>
  <link name="tool0"/><link name="imu_link"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <origin xyz="0 0 .1" rpy=".1 0 .3"/><limit lower="-2" upper="2" effort="20" velocity="5"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><axis xyz="1 0 0"/>
    <origin xyz="0 0 .4"/><limit lower="-1" upper="2.5" effort="10" velocity="5"/></joint>
  <joint name="ankle_fixed" type="fixed"><parent link="fore"/><child link="foot"/><origin xyz="0 .05 .3" rpy=".2 .3 0"/></joint>
  <joint name="flange" type="fixed"><parent link="foot"/><child link="tool0"/><origin xyz=".02 0 .05" rpy="0 0 1"/></joint>
  <joint name="imu_mount" type="fixed"><parent link="base"/><child link="imu_link"/><origin xyz="0 .1 0"/></joint>
</robot>"""

STATE = [0.4, -0.3], [0.7, 1.1]
KINDS = "position", "orientation", "velocity", "angular_velocity"


def two_arms():
    scene = coulomb.Scene()
    first = scene.add_urdf(ARM)
    second = scene.add_urdf(ARM, position=(1, 0, 0))
    return scene.build(), first, second


def test_every_link_is_a_frame():
    model = coulomb.load(ARM)
    assert [site.name for site in model.sites] == ["imu_link", "foot", "tool0"]
    links = "base", "upper", "fore", "foot", "tool0", "imu_link"
    assert {f"{kind}/{link}" for kind in KINDS for link in links} <= set(model.outputs())


def test_links_are_where_pinocchio_has_them():
    pin = pytest.importorskip("pinocchio")
    theirs = pin.buildModelFromXML(ARM)
    data, model = theirs.createData(), coulomb.load(ARM)
    q, v = map(np.array, STATE)
    pin.computeJointJacobians(theirs, data, q)
    pin.forwardKinematics(theirs, data, q, v)
    pin.updateFramePlacements(theirs, data)
    for link in ("foot", "tool0", "imu_link", "fore"):
        frame = theirs.getFrameId(link)
        placement = data.oMf[frame]
        assert np.allclose(model.output(f"position/{link}", q), placement.translation, rtol=0, atol=1e-14)
        x, y, z, w = pin.Quaternion(placement.rotation).coeffs()
        ours = model.output(f"orientation/{link}", q)
        assert abs(abs(ours @ [w, x, y, z]) - 1) < 1e-14
        twist = pin.getFrameVelocity(theirs, data, frame, pin.LOCAL_WORLD_ALIGNED)
        assert np.allclose(model.output(f"velocity/{link}", q, v), twist.linear, rtol=0, atol=1e-14)
        J = pin.getFrameJacobian(theirs, data, frame, pin.LOCAL_WORLD_ALIGNED)
        assert np.allclose(model.output_jacobian(f"position/{link}", q), J[:3], rtol=0, atol=1e-14)
        assert np.allclose(model.output_jacobian(f"angular_velocity/{link}", q, v, "v"), J[3:], rtol=0, atol=1e-14)


def test_a_welded_link_has_gradients_along_a_rollout():
    model = coulomb.load(ARM)
    sim = coulomb.Simulator(model)
    q, v = map(np.array, STATE)
    weights = np.array([0.3, -0.5, 0.8])

    def loss(moved):
        return weights @ sim.rollout(model.integrate(q, moved), v, steps=20).output("position/tool0")[-1]

    r = sim.rollout(q, v, steps=20)
    W = np.zeros((21, 3))
    W[-1] = weights
    numbers = [(loss(e) - loss(-e)) / 2e-5 for e in 1e-5 * np.eye(2)]
    assert np.allclose(r.vjp(outputs={"position/tool0": W}).q0, numbers, rtol=1e-8, atol=1e-10)


def test_contact_forces_of_a_link_are_those_of_its_own_geometries():
    """The foot stands on the ground, a block touches the link that carries it, which is the same body."""

    def model_with(**block):
        scene = coulomb.Scene()
        scene.add_ground()
        scene.add_urdf(ARM, floating_base=True, position=(0, 0, 0.849), quaternion=(0, 1, 0, 0))
        if block:
            scene.add_box((0.1, 0.1, 0.1), fixed=True, name="block", **block)
        return scene.build()

    alone = model_with()
    q, v = alone.neutral()
    placed = alone.output("position/fore", q), alone.output("orientation/fore", q)
    w, x, y, z = placed[1]
    axis = np.array([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)])
    model = model_with(position=placed[0] + 0.0745 * axis, quaternion=placed[1])
    q[2] += 0.0395 - alone.output("position/foot", q)[2]
    sim = coulomb.Simulator(model)
    sim.step(q, v)
    of_link = sim.output("contact_force/foot")
    assert np.abs(of_link).max() > 1 and np.array_equal(of_link, sim.output("contact_force/foot_0"))
    whole = sim.output("contact_force/fore")
    assert np.allclose(whole, of_link + sim.output("contact_force/fore_0"), rtol=1e-14, atol=1e-12)
    assert "contact_force/foot" in model.force_outputs() and "contact_force/tool0" not in model.force_outputs()
    with pytest.raises(ValueError, match=r"contact_force/tool0.*no geometry to be touched"):
        sim.output("contact_force/tool0")


def test_frames_of_pin_are_kept():
    pin = pytest.importorskip("pinocchio")
    theirs = pin.buildModelFromXML(ARM)
    placement = pin.SE3(pin.Quaternion(0.5, 0.5, -0.5, 0.5), np.array([0.1, 0.2, 0.3]))
    theirs.addFrame(pin.Frame("grip", theirs.getJointId("elbow"), 0, placement, pin.FrameType.OP_FRAME))
    scene = coulomb.Scene()
    scene.add_pinocchio(theirs)
    model = scene.build()
    names = {frame.name for frame in theirs.frames if frame.name != "universe"}
    assert names <= {site.name for site in model.sites} | set(model.body_names)
    data, q = theirs.createData(), np.array(STATE[0])
    pin.framesForwardKinematics(theirs, data, q)
    for name in names:
        expected = data.oMf[theirs.getFrameId(name)].translation
        assert np.allclose(model.output(f"position/{name}", q), expected, rtol=0, atol=1e-14)


def test_a_second_robot_has_one_name_everywhere():
    model, first, second = two_arms()
    assert (first.name, second.name) == ("arm", "arm_2")
    q, v = model.neutral()
    for element in (first, second):
        assert model.to_pinocchio(q, v, robot=element.name)[0].shape == (2,)
    assert "position/tool0_2" in model.outputs() and "joint_position/elbow_2" in model.outputs()
    moved = model.output("position/tool0_2", q) - model.output("position/tool0", q)
    assert np.allclose(moved, [1, 0, 0], rtol=0, atol=1e-15)


def test_the_second_ground_tells_its_own_name():
    scene = coulomb.Scene()
    assert [scene.add_ground().name, scene.add_ground(height=-1).name] == ["ground", "ground_2"]


def test_a_robots_name_is_taken_once():
    scene = coulomb.Scene()
    scene.add_urdf(ARM, name="left")
    with pytest.raises(ValueError, match=r"add_urdf name: 'left' is taken"):
        scene.add_urdf(ARM, name="left")
    assert scene.add_urdf(ARM, name="right").name == "right" and scene.build().num_joints == 4


def test_joints_and_states_by_name():
    scene = coulomb.Scene()
    scene.add_box((0.1, 0.1, 0.1), name="box", position=(0, 0, 1))
    scene.add_urdf(ARM)
    model = scene.build()
    elbow = model.joint("elbow")
    assert (elbow.name, elbow.type, elbow.body, elbow.limits) == ("elbow", "hinge", "fore", (-1.0, 2.5))
    assert model.joint_names[elbow.index] == "elbow" and model.joint("box_joint").limits is None
    q, v = model.state(elbow=0.9)
    neutral = model.neutral()[0]
    assert q[elbow.q] == 0.9 and np.array_equal(np.delete(q, elbow.q), np.delete(neutral, elbow.q)) and not v.any()
    q, v = model.state(
        {"box_joint": [0, 0, 2, 2, 0, 0, 0]}, v={"box_joint": [1, 2, 3, 4, 5, 6], "elbow": -1}, shoulder=0.1
    )
    assert np.array_equal(q[model.joint("box_joint").q], [0, 0, 2, 1, 0, 0, 0]) and q[model.joint("shoulder").q] == 0.1
    assert np.array_equal(v[model.joint("box_joint").v], [1, 2, 3, 4, 5, 6]) and v[elbow.v] == -1
    written = np.round(model.integrate(neutral, 0.3 * np.ones(model.nv)), 5)  # as from a text file
    q = model.state(written)[0]
    assert abs(np.linalg.norm(q[3:7]) - 1) < 1e-15 and np.allclose(q, written, rtol=0, atol=2e-5)


def test_a_state_from_a_keyframe():
    xml = """<mujoco><worldbody><body><joint name="a"/><joint name="b" axis="1 0 0"/><geom size=".1" pos=".1 .2 .3"/></body></worldbody>
      <keyframe><key name="home" qpos=".1 .2" qvel="3 4"/></keyframe></mujoco>"""
    model = coulomb.load(xml)
    for keyframe in ("home", 0):
        q, v = model.state(keyframe=keyframe, b=0.5)
        assert np.array_equal(q, [0.1, 0.5]) and np.array_equal(v, [3, 4])
    with pytest.raises(ValueError, match=r"keyframe 'hone': no such keyframe: did you mean 'home'"):
        model.state(keyframe="hone")
    with pytest.raises(ValueError, match=r"keyframe: got 3, the model has 1"):
        model.state(keyframe=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, s: m.joint("elbw"), r"joint 'elbw': no such joint: did you mean 'elbow'\?"),
        (lambda m, s: m.state(elbo=1), r"did you mean 'elbow'"),
        (lambda m, s: m.state(v={"sholder": 1}), r"did you mean 'shoulder'"),
        (lambda m, s: m.state(elbow=[1, 2]), r"q of joint 'elbow': expected shape \(1,\), got \(2,\)"),
        (lambda m, s: m.state(elbow=float("nan")), r"q of joint 'elbow'.*nan"),
        (lambda m, s: m.output("position/tool", m.neutral()[0]), r"did you mean 'tool0'"),
        (lambda m, s: m.output("positon/tool0", m.neutral()[0]), r"did you mean 'position'"),
        (lambda m, s: m.with_parameters({"mass/for": 1}), r"did you mean 'mass/fore'"),
        (lambda m, s: m.with_parameters({"mas/fore": 1}), r"did you mean 'mass'"),
        (lambda m, s: s.set_contact("foot", contact_scale=2), r"did you mean 'foot_0'"),
        (lambda m, s: s.add_actuator("elbows"), r"add_actuator 'elbows': no such joint: did you mean 'elbow'"),
        (lambda m, s: m.to_pinocchio(*m.neutral(), robot="arms"), r"did you mean 'arm'"),
        (lambda m, s: coulomb.Simulator(m).output("contact_force/foot0"), r"did you mean 'foot_0'"),
    ],
)
def test_unknown_names_are_guessed(call, message):
    scene = coulomb.Scene()
    scene.add_urdf(ARM)
    with pytest.raises(ValueError, match=message):
        call(scene.build(), scene)


def test_a_quaternion_without_direction_is_refused():
    scene = coulomb.Scene()
    scene.add_sphere(0.1, name="ball")
    with pytest.raises(ValueError, match=r"q of joint 'ball_joint': a quaternion of norm 0.* is not a rotation"):
        scene.build().state(ball_joint=np.zeros(7))
