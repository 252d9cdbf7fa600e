"""Rigid-body dynamics and coordinates of robots from URDF files and `pin` objects, against Pinocchio.

With v_pin = T(q) v (Model.pinocchio_tangent), forces and matrices convert by

    M = T^T M_pin T,   tau = T^T tau_pin,   a_pin = T a + dT/dt v.

dT/dt v is not zero where Pinocchio's velocity is in axes that turn with the joint: linear part -w x v of a free or planar joint.
"""

import functools

import numpy as np
import pinocchio as pin
import pytest

import coulomb
from coulomb.demo import robot_path

ROBOTS = {
    "go1": "go1_description/urdf/go1.urdf",
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "talos_reduced": "talos_data/robots/talos_reduced.urdf",
    "talos_full": "talos_data/robots/talos_full_v2.urdf",
    "g1": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "anymal_b": "anymal_b_simple_description/robots/anymal.urdf",
    "anymal_c": "anymal_c_simple_description/urdf/anymal.urdf",
}


def floating(name):
    return not name.startswith("ur")


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request):
    """(pin.Model, coulomb.Model from the same URDF file)"""
    path, packages = robot_path(ROBOTS[request.param])
    roots = [pin.JointModelFreeFlyer()] if floating(request.param) else []
    scene = coulomb.Scene()
    scene.add_urdf(path, floating_base=floating(request.param), package_dirs=[packages])
    return pin.buildModelFromUrdf(str(path), *roots), scene.build()


def turning(theirs):
    """(first velocity index, number of linear entries) of the joints whose linear velocity is in turning axes."""
    kinds = {"JointModelFreeFlyer": 3, "JointModelPlanar": 2}
    return [(j.idx_v, kinds[j.shortname()]) for j in theirs.joints if j.shortname() in kinds]


def angular(v, first, linear):
    return v[first + 3 : first + 6] if linear == 3 else np.array([0, 0, v[first + 2]])


def drift(theirs, v):
    """dT/dt v, from v_pin."""
    out = np.zeros(theirs.nv)
    for i, n in turning(theirs):
        out[i : i + n] = -np.cross(angular(v, i, n), np.append(v[i : i + n], np.zeros(3 - n)))[:n]
    return out


def close(ours, theirs, tolerance=1e-11):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(1.0, np.abs(theirs).max()))


def random_states(model, seed, n=5):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        q = model.integrate(model.neutral()[0], rng.standard_normal(model.nv))
        yield q, rng.standard_normal(model.nv), rng.standard_normal(model.nv)


def compare(theirs, model, tolerance=1e-11):
    data, offsets, scale = theirs.createData(), [], 1.0
    near = functools.partial(close, tolerance=tolerance)
    for q, v, a in random_states(model, seed=1):
        q_pin, v_pin = model.to_pinocchio(q, v)
        T = model.pinocchio_tangent(q)
        near(T @ v, v_pin)
        pin.crba(theirs, data, q_pin)
        mass = np.triu(data.M) + np.triu(data.M, 1).T
        near(model.mass_matrix(q), T.T @ mass @ T)
        near(model.inverse_dynamics(q, v, a), T.T @ pin.rnea(theirs, data, q_pin, v_pin, T @ a + drift(theirs, v_pin)))
        near(model.bias(q, v), T.T @ pin.rnea(theirs, data, q_pin, v_pin, drift(theirs, v_pin)))
        kinetic, potential = model.energy(q, v)
        near(kinetic, v_pin @ mass @ v_pin / 2)
        scale = max(scale, abs(potential))
        offsets.append(potential - pin.computePotentialEnergy(theirs, data, q_pin))
    near(np.subtract(offsets, offsets[0]) / scale, np.zeros(len(offsets)))  # the zeros differ


def test_equation_of_motion(robot):
    compare(*robot)


def test_limits_efforts_and_links(robot):
    theirs, model = robot
    first = 6 if "JointModelFreeFlyer" in theirs.joints[1].shortname() else 0
    hinges = [j for j in range(model.num_joints) if model.joint_types[j] != "free"]
    ids = [theirs.getJointId(model.joint_names[j]) for j in hinges]
    assert sorted(ids) == list(range(2 if first else 1, theirs.njoints))
    for j, i in zip(hinges, ids):
        if model.joint_limited[j]:
            assert model.joint_lower[j] == theirs.lowerPositionLimit[theirs.joints[i].idx_q]
            assert model.joint_upper[j] == theirs.upperPositionLimit[theirs.joints[i].idx_q]
        d = theirs.joints[i].idx_v
        assert model.dof_damping[model.joint_v[j]] == theirs.damping[d]
        assert model.dof_dry_friction[model.joint_v[j]] == theirs.upperDryFrictionLimit[d]
    followers = {e.joint_a for e in model.equalities}  # mimic joints
    assert [motor.joint for motor in model.actuators] == [j for j in hinges if j not in followers]
    assert sum(model.body_mass) == pytest.approx(pin.computeTotalMass(theirs) + theirs.inertias[0].mass * (first == 0))


def cross(x):
    return pin.skew(np.asarray(x))


def converted_derivatives(theirs, model, q, v, a):
    """dtau_dq, dtau_dv of ours from Pinocchio's, for a robot with at most a free joint at its root (docs of this file, differentiated)."""
    data = theirs.createData()
    q_pin, v_pin = model.to_pinocchio(q, v)
    T = model.pinocchio_tangent(q)
    a_pin = T @ a + drift(theirs, v_pin)
    Rq, Rv, Ra = (np.array(x) for x in pin.computeRNEADerivatives(theirs, data, q_pin, v_pin, a_pin))
    Ra = np.triu(Ra) + np.triu(Ra, 1).T
    tau = pin.rnea(theirs, data, q_pin, v_pin, a_pin)
    n = theirs.nv
    dv_dq, da_dq, da_dv, dT_tau = (np.zeros((n, n)) for _ in range(4))
    for i, _ in turning(theirs):
        lin, ang = slice(i, i + 3), slice(i + 3, i + 6)
        R, w, u = T[lin, lin].T, cross(v_pin[ang]), cross(v_pin[lin])
        dv_dq[lin, ang] = u
        da_dq[lin, ang] = cross((T @ a)[lin]) - w @ u
        da_dv[lin, lin] = -w @ R.T
        da_dv[lin, ang] = u
        dT_tau[lin, ang] = -R @ cross(tau[lin])
    return dT_tau + T.T @ (Rq @ T + Rv @ dv_dq + Ra @ da_dq), T.T @ (Rv @ T + Ra @ da_dv), T.T @ Ra @ T


def test_inverse_dynamics_derivatives(robot):
    theirs, model = robot
    for q, v, a in random_states(model, seed=2):
        ours = model.inverse_dynamics_derivatives(q, v, a)
        for mine, converted in zip(ours, converted_derivatives(theirs, model, q, v, a)):
            close(mine, converted, 1e-10)


def test_coordinates_there_and_back(robot):
    theirs, model = robot
    rng = np.random.default_rng(3)
    for q, v, _ in random_states(model, seed=3):
        q_pin, v_pin = model.to_pinocchio(q, v)
        assert q_pin.shape == (theirs.nq,) and v_pin.shape == (theirs.nv,)
        back, v_back = model.from_pinocchio(q_pin, v_pin)
        close(model.difference(q, back), np.zeros(model.nv))
        close(v_back, v)
        # the tangent map: integrating there and here is the same to second order
        dq = 1e-6 * rng.standard_normal(model.nv)
        there = pin.integrate(theirs, q_pin, model.pinocchio_tangent(q) @ dq)
        here, _ = model.to_pinocchio(model.integrate(q, dq), v)
        assert np.abs(pin.difference(theirs, there, here)).max() < 1e-10


def test_acceleration_in_flight(robot):
    """(v1 - v) / h of a step without contact is Pinocchio's forward dynamics; joint dampers, friction and limits taken off."""
    theirs = robot[0].copy()
    theirs.damping[:] = theirs.upperDryFrictionLimit[:] = theirs.lowerDryFrictionLimit[:] = 0
    for j in range(1, theirs.njoints):
        if theirs.joints[j].nq == 1:
            i = theirs.joints[j].idx_q
            theirs.lowerPositionLimit[i], theirs.upperPositionLimit[i] = -1e30, 1e30
    scene = coulomb.Scene()
    scene.add_pinocchio(theirs, actuators=False)
    model = scene.build()
    data = theirs.createData()
    sim = coulomb.Simulator(model, timestep=1e-3, gyroscopic="explicit")
    for q, v, tau in random_states(model, seed=4):
        T = model.pinocchio_tangent(q)
        q_pin, v_pin = model.to_pinocchio(q, v)
        _, v1 = sim.step(q, v, tau=tau)
        expected = pin.aba(theirs, data, q_pin, v_pin, np.linalg.solve(T.T, tau))
        close(T @ ((v1 - v) / sim.timestep) + drift(theirs, v_pin), expected, 1e-8)


def random_inertia(rng):
    x = rng.uniform(0.5, 1.5, 3)
    R = pin.exp3(rng.standard_normal(3))
    return pin.Inertia(
        rng.uniform(0.5, 2),
        0.2 * rng.standard_normal(3),
        R @ np.diag([x[1] + x[2], x[0] + x[2], x[0] + x[1]]) @ R.T * 0.05,
    )


def unit(*v):
    return np.array(v) / np.linalg.norm(v)


JOINTS = [
    pin.JointModelFreeFlyer(), pin.JointModelRX(), pin.JointModelRY(), pin.JointModelRZ(), pin.JointModelRevoluteUnaligned(unit(1, 2, 3)),
    pin.JointModelPX(), pin.JointModelPY(), pin.JointModelPZ(), pin.JointModelPrismaticUnaligned(unit(1, -2, 3)), pin.JointModelSpherical(),
    pin.JointModelSphericalZYX(), pin.JointModelTranslation(), pin.JointModelPlanar(), pin.JointModelRUBX(), pin.JointModelRUBY(),
    pin.JointModelRUBZ(),
]  # fmt: skip


def every_joint(seed=5):
    """A tree with every joint type that add_pinocchio accepts, branches included, armature everywhere."""
    rng = np.random.default_rng(seed)
    model = pin.Model()
    model.name = "zoo"
    path = [0]  # depth first, as Pinocchio needs it
    for k, joint in enumerate(JOINTS):
        del path[max(2, len(path) - int(rng.integers(0, 3))) :]
        parent = path[-1]
        placement = pin.SE3(pin.exp3(rng.standard_normal(3)), 0.3 * rng.standard_normal(3)) if k else pin.SE3.Identity()
        i = model.addJoint(parent, joint, placement, f"joint{k}")
        model.appendBodyToJoint(i, random_inertia(rng), pin.SE3.Identity())
        path.append(i)
    model.armature[:] = rng.uniform(0, 0.1, model.nv)
    for i, n in turning(model):  # a rotor inertia in turning axes would feel dT/dt v; ours is in world axes
        model.armature[i : i + n] = 0
    return model


def test_every_joint_type():
    theirs = every_joint()
    scene = coulomb.Scene()
    scene.add_pinocchio(theirs)
    compare(theirs, scene.build())


def test_turned_base():
    """position and quaternion: the world of a fixed base, only the neutral place of a free one."""
    place = dict(position=(0.3, -0.2, 0.7), quaternion=(0.8, 0.0, 0.6, 0.0))
    theirs = every_joint()
    scene = coulomb.Scene()
    scene.add_pinocchio(theirs, **place)
    model = scene.build()
    compare(theirs, model)
    np.testing.assert_allclose(model.neutral()[0][:7], [*place["position"], *place["quaternion"]], atol=1e-15)
    path, _ = robot_path(ROBOTS["ur5"])
    theirs = pin.buildModelFromUrdf(str(path))
    scene = coulomb.Scene()
    scene.add_pinocchio(theirs, **place)
    theirs.gravity.linear = pin.Quaternion(0.8, 0.0, 0.6, 0.0).matrix().T @ theirs.gravity.linear
    compare(theirs, scene.build())


def test_two_robots_have_two_maps():
    path, _ = robot_path(ROBOTS["ur5"])
    ur5, zoo = pin.buildModelFromUrdf(str(path)), every_joint()
    scene = coulomb.Scene()
    scene.add_sphere(0.1, mass=1.0, position=(0, 0, 5))
    scene.add_pinocchio(ur5, name="arm")
    scene.add_pinocchio(zoo)
    model = scene.build()
    q, v, _ = next(random_states(model, seed=6))
    whole = model.mass_matrix(q)
    for name, theirs in (("arm", ur5), ("zoo", zoo)):
        T = model.pinocchio_tangent(q, robot=name)
        q_pin, v_pin = model.to_pinocchio(q, v, robot=name)
        data = theirs.createData()
        pin.crba(theirs, data, q_pin)
        own = np.flatnonzero(np.abs(T).max(axis=0) > 0)
        assert len(own) == theirs.nv
        close(whole[np.ix_(own, own)], (T.T @ (np.triu(data.M) + np.triu(data.M, 1).T) @ T)[np.ix_(own, own)])
    with pytest.raises(ValueError, match="robot: got None, expected one of .*'arm', 'zoo'"):
        model.to_pinocchio(q, v)


@pytest.mark.parametrize("joint", [pin.JointModelHX(0.3), pin.JointModelUniversal(unit(1, 0, 0), unit(0, 1, 0))])
def test_unsupported_joints_are_named(joint):
    theirs = pin.Model()
    theirs.appendBodyToJoint(
        theirs.addJoint(0, joint, pin.SE3.Identity(), "odd"), pin.Inertia.Random(), pin.SE3.Identity()
    )
    with pytest.raises(ValueError, match="'odd': joint type JointModel.* is not supported"):
        coulomb.Scene().add_pinocchio(theirs)


def test_geometry_model_of_pin():
    """Shapes, their places and the collision pairs come over."""
    path, packages = robot_path(ROBOTS["go1"])
    theirs, geometry = pin.buildModelsFromUrdf(
        str(path), str(packages), pin.JointModelFreeFlyer(), geometry_types=pin.GeometryType.COLLISION
    )
    geometry.addAllCollisionPairs()
    scene = coulomb.Scene()
    scene.add_pinocchio(theirs, geometry)
    model = scene.build()
    assert model.num_geometries == len(geometry.geometryObjects)
    assert model.num_pairs == len(geometry.collisionPairs)
    data, places = theirs.createData(), geometry.createData()
    for q, v, _ in random_states(model, seed=7):
        pin.updateGeometryPlacements(theirs, data, geometry, places, model.to_pinocchio(q, v)[0])
        positions, rotations = model.geometry_placements(q)
        order = [model.geometry_names.index(g.name) for g in geometry.geometryObjects]
        close(positions[order], np.array([M.translation for M in places.oMg]))
        close(rotations[order], np.array([M.rotation for M in places.oMg]))


def test_other_shapes_of_pin():
    """A half-space is ours; a shape switched off touches nothing; a rounded shape is refused by name."""
    theirs, geometry = pin.Model(), pin.GeometryModel()
    for k in range(2):
        joint = theirs.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), f"ball{k}")
        theirs.appendBodyToJoint(joint, pin.Inertia.FromSphere(1.0, 0.1), pin.SE3.Identity())
        geometry.addGeometryObject(pin.GeometryObject(f"ball{k}", joint, pin.SE3.Identity(), pin.coal.Sphere(0.1)))
    normal = unit(0.1, 0.2, 1.0)
    geometry.addGeometryObject(pin.GeometryObject("slope", 0, pin.SE3.Identity(), pin.coal.Halfspace(normal, 0.3)))
    geometry.geometryObjects[1].disableCollision = True
    geometry.addAllCollisionPairs()
    scene = coulomb.Scene(gravity=(0, 0, 0))
    scene.add_pinocchio(theirs, geometry)
    model = scene.build()
    q, v = model.neutral()
    q[0:3] = 0.399 * normal
    q[7:10] = 0.35 * normal
    sim = coulomb.Simulator(model, timestep=1e-3, gyroscopic="explicit")
    sim.step(q, v)
    (contact,) = sim.contacts
    assert {contact.geometry_a, contact.geometry_b} == {"ball0", "slope"}
    assert contact.depth == pytest.approx(1e-3, abs=1e-12)
    np.testing.assert_allclose(np.abs(contact.normal @ normal), 1)
    geometry.geometryObjects[0].geometry.setSweptSphereRadius(0.01)
    with pytest.raises(ValueError, match="geometry 'ball0': a swept-sphere radius .0.01. is not supported"):
        coulomb.Scene().add_pinocchio(theirs, geometry)


CONTINUOUS = """<robot name="c"><link name="base"/>
  <link name="a"><inertial><mass value="1"/><origin xyz="0.1 0.2 0.3"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.15" iyz="0" izz="0.2"/></inertial></link>
  <link name="b"><inertial><mass value="1"/><origin xyz="0 0.2 0.3"/><inertia ixx="0.1" ixy="0.01" ixz="0" iyy="0.15" iyz="0" izz="0.2"/></inertial></link>
  <joint name="j" type="continuous"><parent link="base"/><child link="a"/><axis xyz="3 2 1"/></joint>
  <joint name="k" type="planar"><parent link="a"/><child link="b"/><origin xyz="1 0 0" rpy="0.1 0.2 0.3"/><axis xyz="0 0 1"/></joint></robot>"""


def test_continuous_joint_about_an_oblique_axis():
    scene = coulomb.Scene()
    scene.add_urdf(CONTINUOUS)
    compare(pin.buildModelFromXML(CONTINUOUS), scene.build())


MIMIC = """<robot name="gripper"><link name="base"/>
  <link name="a"><inertial><mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <link name="b"><inertial><mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <joint name="leader" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="5" velocity="1"/></joint>
  <joint name="follower" type="{}"><parent link="base"/><child link="b"/><axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="5" velocity="1"/>
    <mimic joint="{}" multiplier="-0.5" offset="0.2"/></joint></robot>"""


def test_mimic_joints_follow_their_leader():
    model = coulomb.load(MIMIC.format("revolute", "leader"))
    sim = coulomb.Simulator(model, timestep=1e-3, gyroscopic="explicit", baumgarte=1.0, max_correction_speed=1e6)
    leader, follower = (model.joint_names.index(name) for name in ("leader", "follower"))
    q, v = model.neutral()
    q[follower] = 0.2
    for _ in range(50):
        q, v = sim.step(q, v, [1.0])
        assert q[follower] == pytest.approx(0.2 - 0.5 * q[leader], abs=1e-12)
    assert v[leader] == pytest.approx(0.05 / (0.1 * (1 + 0.5**2)))  # t tau / (I + 0.5^2 I)


def test_mimic_joints_are_equalities_and_have_no_motor():
    model = coulomb.load(MIMIC.format("revolute", "leader"))
    leader, follower = (model.joint_names.index(name) for name in ("leader", "follower"))
    assert [motor.joint for motor in model.actuators] == [leader] and model.nu == 1
    (mimic,) = model.equalities
    assert (mimic.name, mimic.type, mimic.joint_a, mimic.joint_b) == ("follower_mimic", "joint", follower, leader)
    assert mimic.active and np.array_equal(mimic.poly, [0.2, -0.5, 0, 0, 0])
    with pytest.raises(AttributeError):
        model.equalities = []
    with pytest.raises(AttributeError):
        mimic.joint_a = 0


def test_mimic_can_be_ignored_and_bad_leaders_are_named():
    scene = coulomb.Scene()
    scene.add_urdf(MIMIC.format("revolute", "leader"), ignore_mimic=True)
    model = scene.build()
    assert any("1 <mimic> elements: their joints are independent" in line for line in model.ignored)
    names = model.joint_names
    _, v = coulomb.Simulator(model, timestep=1e-3).step(*model.neutral(), [float(name == "leader") for name in names])
    assert v[names.index("follower")] == 0 and v[names.index("leader")] > 0
    with pytest.raises(ValueError, match="<mimic> of joint 'follower': 'nobody' is not a joint"):
        coulomb.load(MIMIC.format("revolute", "nobody"))
    assert not coulomb.load(MIMIC.format("fixed", "leader")).ignored[1:]  # a fixed joint follows nobody
