"""The equation of motion, forces and places of what the MJCF loader reads, against MuJoCo on the same compiled model."""

import mujoco
import numpy as np
import pytest
from mjcf_scenes import ACTUATORS, CONTACTS, EQUALITIES, JOINTS, SHAPES, compiled, random_states

import coulomb
from scenes import robots

TOLERANCE = 1e-10  # relative to the largest entry; rounding, with condition numbers of the products, stays below 1e-13


def assert_close(ours, theirs, what):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape, what
    error = np.abs(ours - theirs).max(initial=0.0)
    assert error <= TOLERANCE * max(1.0, np.abs(theirs).max(initial=0.0)), f"{what}: {error:.3g}"


def compare_dynamics(theirs, data, model, states):
    for q, v, u in states:
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(theirs, data)
        mass = np.zeros((theirs.nv, theirs.nv))
        mujoco.mj_fullM(theirs, data, mass)
        assert_close(model.mass_matrix(q), mass, "mass matrix")
        assert_close(model.bias(q, v), data.qfrc_bias, "bias")
        a = np.sin(np.arange(model.nv))
        assert_close(model.inverse_dynamics(q, v, a), mass @ a + data.qfrc_bias, "inverse dynamics")
        assert_close(model.passive_forces(q, v), data.qfrc_passive, "passive forces")
        assert_close(model.actuator_forces(q, v, u), data.qfrc_actuator, "actuator forces")
        mujoco.mj_energyPos(theirs, data)
        mujoco.mj_energyVel(theirs, data)
        assert_close(model.energy(q, v), data.energy[::-1], "energy")
        positions, rotations = model.body_placements(q)
        assert_close(positions, data.xpos, "body positions")
        assert_close(rotations.reshape(-1, 9), data.xmat, "body rotations")
        compare_geometries(theirs, data, model, q)


def exported(theirs, model):
    """Whether MuJoCo's model was written by to_mjcf: geoms have the numbers of our geometries."""
    return {theirs.geom(g).name for g in range(theirs.ngeom)} == {f"g{i}" for i in range(model.num_geometries)}


def geoms_of(theirs, model):
    """MuJoCo's geom of each of our geometries."""
    if exported(theirs, model):
        return [theirs.geom(f"g{i}").id for i in range(model.num_geometries)]
    names = [theirs.geom(g).name for g in range(theirs.ngeom)]
    ids = [names.index(name) if name in names else None for name in model.geometry_names]
    if None in ids:  # unnamed geoms: the loader keeps their order and leaves out what cannot collide
        ids = [
            g
            for g in range(theirs.ngeom)
            if theirs.geom_contype[g] or theirs.geom_conaffinity[g] or theirs.geom_type[g] < 7
        ]
    assert len(ids) == model.num_geometries
    return ids


def compare_geometries(theirs, data, model, q):
    positions, rotations = model.geometry_placements(q)
    ids = geoms_of(theirs, model)
    their_positions, their_rotations = data.geom_xpos[ids], data.geom_xmat[ids].reshape(-1, 3, 3)

    # MuJoCo moves a mesh to its principal axes; our geometry of an exported model is where the mesh was before.
    meshes = theirs.geom_dataid[ids]
    for i in np.flatnonzero(meshes >= 0) if exported(theirs, model) else []:
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, theirs.mesh_quat[meshes[i]])
        their_rotations[i] = their_rotations[i] @ turn.reshape(3, 3).T
        their_positions[i] -= their_rotations[i] @ theirs.mesh_pos[meshes[i]]
    assert_close(positions, their_positions, "geometry positions")
    assert_close(rotations, their_rotations, "geometry rotations")


@pytest.mark.parametrize(
    "xml",
    [JOINTS, SHAPES, ACTUATORS, EQUALITIES.format(""), CONTACTS],
    ids=["joints", "shapes", "actuators", "equalities", "contacts"],
)
def test_equation_of_motion_of_every_feature(xml):
    theirs, data, model = compiled(xml)
    compare_dynamics(theirs, data, model, random_states(model, 20, seed=1))


def robot(name):
    """(mujoco.MjModel, mujoco.MjData, coulomb.Model)"""
    model, _, _ = robots.load(name)
    theirs = robots.in_mujoco(name)
    return theirs, mujoco.MjData(theirs), model


@pytest.mark.parametrize("name", robots.NAMES)
def test_equation_of_motion_of_robots(name):
    theirs, data, model = robot(name)
    compare_dynamics(theirs, data, model, random_states(model, 5, seed=2))


@pytest.mark.parametrize(
    "flag", ["spring", "damper", "gravity", "clampctrl", "actuation", "frictionloss", "limit", "contact", "equality"]
)
def test_option_flags(flag):
    """Each flag switches off the same thing here and there."""
    for xml in (JOINTS, ACTUATORS):
        theirs, data, model = compiled(
            xml.replace("<worldbody>", f'<option><flag {flag}="disable"/></option><worldbody>', 1)
        )
        compare_dynamics(theirs, data, model, random_states(model, 2, seed=3))
        if flag == "limit":
            assert not np.any(model.joint_limited)
        if flag == "frictionloss":
            assert not np.any(model.dof_dry_friction)
        if flag == "contact":
            assert model.num_pairs == 0


def test_options_limits_and_joint_friction():
    theirs, _, model = compiled(JOINTS)
    assert_close(model.gravity, theirs.opt.gravity, "gravity")
    assert model.timestep == theirs.opt.timestep
    assert model.joint_names[: theirs.njnt] == [theirs.joint(j).name for j in range(theirs.njnt)]
    limited = theirs.jnt_limited.astype(bool)
    assert limited.sum() == 3
    np.testing.assert_array_equal(np.asarray(model.joint_limited, bool), limited)
    assert_close(np.asarray(model.joint_lower)[limited], theirs.jnt_range[limited, 0], "lower limits")
    assert_close(np.asarray(model.joint_upper)[limited], theirs.jnt_range[limited, 1], "upper limits")
    assert_close(model.dof_dry_friction, theirs.dof_frictionloss, "friction loss")
    assert_close(model.dof_armature, theirs.dof_armature, "armature")


def test_keyframes():
    theirs, _, model = compiled(ACTUATORS)
    (key,) = model.keyframes
    assert key.name == "home"
    assert_close(key.q, theirs.key_qpos[0], "q")
    assert_close(key.v, theirs.key_qvel[0], "v")
    assert_close(key.u, theirs.key_ctrl[0], "u")


def test_collision_pairs_and_their_friction():
    """The pairs that may touch: masks, excludes, parent filter, explicit pairs; friction by MuJoCo's rules of priority and maximum."""
    _, _, model = compiled(CONTACTS)
    names = model.geometry_names
    pairs = {frozenset((names[a], names[b])): mu for a, b, mu in zip(model.pair_a, model.pair_b, model.pair_friction)}
    expected = {
        ("floor", "a1"): 0.9,
        ("floor", "b1"): 0.2,
        ("floor", "c1"): 1.0,
        ("floor", "e2"): 0.4,
        ("floor", "e1"): 0.11,
        ("a1", "b1"): 0.6,
        ("a2", "d1"): 1.0,
        ("a1", "e2"): 0.9,
        ("b1", "e2"): 0.2,
        ("c1", "e2"): 1.0,
    }
    assert pairs == {frozenset(k): pytest.approx(v) for k, v in expected.items()}


@pytest.mark.parametrize("name", robots.NAMES)
def test_a_penetrating_pair_of_mujoco_is_a_pair_of_ours(name):
    """Whatever MuJoCo finds in contact at random states may touch here too, with the same friction."""
    theirs, data, model = robot(name)
    ours = {g: i for i, g in enumerate(geoms_of(theirs, model))}
    pairs = {frozenset((int(a), int(b))): mu for a, b, mu in zip(model.pair_a, model.pair_b, model.pair_friction)}
    found = 0
    for q, _, _ in random_states(model, 10, seed=4, spread=0.4):
        data.qpos[:] = q
        mujoco.mj_fwdPosition(theirs, data)
        for c in data.contact:
            key = frozenset((ours[int(c.geom1)], ours[int(c.geom2)]))
            assert pairs[key] == pytest.approx(c.friction[0] if c.dim > 1 else 0.0)
            found += 1
    assert found > 0


CONNECT = [
    '<connect body1="q" body2="r" anchor="0.1 0.02 0.03"/>',
    '<connect site1="sw" site2="ss"/>',
    '<connect body1="s" anchor="0.1 0.2 0"/>',
]
JOINT = [
    '<joint joint1="t1" joint2="u1" polycoef="0.1 0.7 0.3 -0.2 0.5"/>',
    '<joint joint1="w1" polycoef="0.2 0 0 0 0"/>',
]
WELD = [
    '<weld body1="q" body2="r" relpose="0.2 0.1 0 0.8 0.6 0 0" torquescale="0.7"/>',
    '<weld site1="sw" site2="ss"/>',
    '<weld body1="s" torquescale="2"/>',
    '<weld body1="r" body2="s" anchor="0.1 0.2 0.3"/>',
]


def corrected(xml, spread, seed):
    """From rest without gravity, over one step: MuJoCo's J v+ and its -(share / h) times MuJoCo's residual; they agree if the rows do."""
    theirs, data, model = compiled(xml)
    h, share = 1e-3, 0.2
    sim = coulomb.Simulator(
        model, gyroscopic="explicit", timestep=h, baumgarte=share, max_correction_speed=1e6, tolerance=1e-13
    )
    for q, _, _ in random_states(model, 5, seed, spread):
        data.qpos[:], data.qvel[:] = q, 0
        mujoco.mj_forward(theirs, data)
        rows = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        J = np.zeros((data.nefc, model.nv))
        if mujoco.mj_isSparse(theirs):
            mujoco.mju_sparse2dense(J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
        else:
            J = data.efc_J.reshape(data.nefc, model.nv).copy()
        _, v1 = sim.step(q, np.zeros(model.nv))
        assert sim.status.converged, sim.status
        yield J[rows] @ v1, -share / h * data.efc_pos[rows]


@pytest.mark.parametrize("element", CONNECT + JOINT)
def test_equality_residual_and_jacobian(element):
    for moved, wanted in corrected(EQUALITIES.format(element), 0.3, seed=5):
        assert len(wanted) > 0
        np.testing.assert_allclose(moved, wanted, rtol=0, atol=1e-8 * max(1, np.abs(wanted).max()))


@pytest.mark.parametrize("element", WELD)
def test_weld_residual_and_jacobian(element):
    """Their rotation rows are sin(angle / 2), ours sin(angle): equal to first order, so compared near a closed weld."""
    theirs, data, model = compiled(EQUALITIES.format(element))
    size = 1e-5
    q, _ = model.neutral()  # closed by steps that each remove the whole error, to first order
    sim = coulomb.Simulator(
        model, gyroscopic="explicit", timestep=1e-3, baumgarte=1.0, max_correction_speed=1e6, tolerance=1e-13
    )
    for _ in range(40):
        q, _ = sim.step(q, np.zeros(model.nv))
    rng = np.random.default_rng(6)
    sim = coulomb.Simulator(
        model, gyroscopic="explicit", timestep=1e-3, baumgarte=0.2, max_correction_speed=1e6, tolerance=1e-13
    )
    data.qpos[:] = q
    mujoco.mj_forward(theirs, data)
    assert np.abs(data.efc_pos[:6]).max() < 1e-9
    for _ in range(5):
        near = model.integrate(q, size * rng.standard_normal(model.nv))
        data.qpos[:], data.qvel[:] = near, 0
        mujoco.mj_forward(theirs, data)
        J = data.efc_J.reshape(data.nefc, model.nv)[:6]
        _, v1 = sim.step(near, np.zeros(model.nv))
        wanted = -0.2 / 1e-3 * data.efc_pos[:6]
        np.testing.assert_allclose(J @ v1, wanted, rtol=0, atol=30 * size * np.abs(wanted).max())
