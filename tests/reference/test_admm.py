"""The friction problem of a step, solved by us and by Pinocchio's ADMM: the velocities agree.

The problem is rebuilt here from Pinocchio's Jacobians at the contacts that the step reports,

    c = J v+ = G lambda + g,   G = J M^-1 J^T,   g = J (v - h M^-1 b) + max(Phi, 0) / h   (docs/theory.md (S1), (C4))

so that it also shows which problem the step solved. No position correction, restitution, joint limits or dampers.

Chains of contacts that slide (piles) give the Coulomb problem several solutions with different velocities: there, both answers are
checked against the law itself instead of against each other.
"""

import numpy as np
import pinocchio as pin
import pytest

import coulomb
from coulomb.demo import STANDING, robot_path
from coulomb.kinematics import lowest_point

H = 1e-3


def without_joint_forces(model):
    """No dampers, no dry friction, no limits."""
    model.damping[:] = model.upperDryFrictionLimit[:] = model.lowerDryFrictionLimit[:] = 0
    model.lowerPositionLimit[model.idx_qs[2] if model.njoints > 2 else 0 :] = -1e30
    model.upperPositionLimit[model.idx_qs[2] if model.njoints > 2 else 0 :] = 1e30
    return model


def robot(file, joints):
    """(pin.Model, coulomb.Model, q): standing, pressed 0.1 mm into the ground."""
    path, packages = robot_path(file)
    theirs, geometry = pin.buildModelsFromUrdf(
        str(path), str(packages), pin.JointModelFreeFlyer(), geometry_types=pin.GeometryType.COLLISION
    )
    model = scene_of(without_joint_forces(theirs), geometry)
    q, _ = model.neutral()
    q[7:] = joints
    q[2] -= lowest_point(model, q) + 1e-4
    return theirs, model, q


def pile(shape, inertia, places):
    """Bodies of 1, 3, 5 ... kg at these (x, z), 0.2 m high each."""
    theirs, geometry = pin.Model(), pin.GeometryModel()
    for i, _ in enumerate(places):
        joint = theirs.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), f"body{i}")
        theirs.appendBodyToJoint(joint, inertia(1.0 + 2 * i), pin.SE3.Identity())
        geometry.addGeometryObject(pin.GeometryObject(f"body{i}", joint, pin.SE3.Identity(), shape))
    geometry.addAllCollisionPairs()
    model = scene_of(theirs, geometry)
    q, _ = model.neutral()
    for i, (x, z) in enumerate(places):
        q[7 * i], q[7 * i + 2] = x, z
    return theirs, model, q


def boxes():
    """A wall, overlapping by 0.1 mm."""
    layers = [(0, 0), (0.25, 0), (0.5, 0), (0.12, 1), (0.37, 1)]
    places = [(x, 0.1 + 0.2 * layer - 1e-4 * (layer + 1)) for x, layer in layers]
    return pile(pin.coal.Box(0.2, 0.2, 0.2), lambda mass: pin.Inertia.FromBox(mass, 0.2, 0.2, 0.2), places)


def balls():
    """A pyramid of three layers, overlapping by about 0.1 mm."""
    step, rise = 0.1999, 0.1731
    places = [(step * (i + layer / 2), 0.0999 + rise * layer) for layer in range(3) for i in range(3 - layer)]
    return pile(pin.coal.Sphere(0.1), lambda mass: pin.Inertia.FromSphere(mass, 0.1), places)


def scene_of(theirs, geometry):
    scene = coulomb.Scene()
    scene.add_ground(friction=0.6)
    scene.add_pinocchio(theirs, geometry)
    return scene.build()


PILES = ("balls", "boxes")
SCENES = {
    "go1": lambda: robot("go1_description/urdf/go1.urdf", STANDING),
    "anymal": lambda: robot(
        "anymal_b_simple_description/robots/anymal.urdf", [0, 0.6, -1.2, 0, -0.6, 1.2, 0, 0.6, -1.2, 0, -0.6, 1.2]
    ),
    "balls": balls,
    "boxes": boxes,
}


def tangents(normal):
    first = np.cross(normal, [1.0, 0, 0] if abs(normal[0]) < 0.7 else [0, 1.0, 0])
    first /= np.linalg.norm(first)
    return first, np.cross(normal, first)


def joint_of(theirs, body):
    if theirs.existBodyName(body):
        return theirs.frames[theirs.getBodyId(body)].parentJoint
    return theirs.getJointId(body) if theirs.existJointName(body) else 0


def jacobian(theirs, data, contacts, T):
    """Rows (t1, t2, n) per contact: velocity of A relative to B at the point."""
    rows = []
    for c in contacts:
        relative = np.zeros((3, theirs.nv))
        for body, sign in ((c.body_a, 1), (c.body_b, -1)):
            joint = joint_of(theirs, body)
            if joint:
                J = pin.getJointJacobian(theirs, data, joint, pin.LOCAL_WORLD_ALIGNED)
                relative += sign * (J[:3] - pin.skew(c.point - data.oMi[joint].translation) @ J[3:])
        rows.append(np.stack([*tangents(c.normal), c.normal]) @ relative @ T)
    return np.concatenate(rows)


def problem(theirs, model, sim, q, v):
    """G, g, J, v_free of the step that sim made from (q, v)."""
    data, T = theirs.createData(), model.pinocchio_tangent(q)
    pin.computeJointJacobians(theirs, data, model.to_pinocchio(q, v)[0])
    J = jacobian(theirs, data, sim.contacts, T)
    mass = model.mass_matrix(q)
    free = v - H * np.linalg.solve(mass, model.bias(q, v))
    g = J @ free
    g[2::3] += [max(-c.depth, 0) / H for c in sim.contacts]
    return J @ np.linalg.solve(mass, J.T), g, J, free


def admm(theirs, G, g, friction):
    models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for mu in friction:
        contact = pin.PointContactConstraintModel(theirs, 1, pin.SE3.Identity())
        contact.setFriction(mu)
        models.append(pin.ConstraintModel(contact))
        datas.append(models[len(models) - 1].createData())
    settings, result = pin.ADMMSolverSettings(), pin.ADMMSolverResult()
    settings.absolute_feasibility_tol = settings.absolute_complementarity_tol = 1e-11
    settings.relative_feasibility_tol = settings.relative_complementarity_tol = 0
    settings.max_iterations = 5000
    settings.solve_ncp = True
    solver = pin.ADMMConstraintSolver(len(g))
    solver.solve(pin.DelassusOperatorDense(np.array(G)), np.array(g), models, datas, settings, result)
    return np.array(result.retrieveConstraintImpulses())


def violation(G, g, friction, impulse):
    """How far (N s, m/s, J) an impulse is from Coulomb's law: in the cone, corrected velocity in the dual cone, orthogonal."""
    worst = 0.0
    for mu, force, velocity in zip(friction, impulse.reshape(-1, 3), (G @ impulse + g).reshape(-1, 3)):
        lifted = velocity + [0, 0, mu * np.hypot(*velocity[:2])]
        outside = (np.hypot(*force[:2]) - mu * force[2], mu * np.hypot(*lifted[:2]) - lifted[2], -force[2], -lifted[2])
        worst = max(worst, *outside, abs(force @ lifted))
    return worst


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("speed", [0.0, 0.3, 2.0])
def test_velocities_agree(name, speed):
    theirs, model, q = SCENES[name]()
    rng = np.random.default_rng(1)
    sim = coulomb.Simulator(model, gyroscopic="explicit", timestep=H, baumgarte=0.0, tolerance=1e-12)
    touching = 0
    for _ in range(3):
        v = speed * rng.standard_normal(model.nv)
        _, v1 = sim.step(q, v)
        assert sim.status.converged
        G, g, J, free = problem(theirs, model, sim, q, v)
        friction = [c.friction for c in sim.contacts]
        impulse = np.concatenate([np.stack([*tangents(c.normal), c.normal]) @ c.impulse for c in sim.contacts])
        np.testing.assert_allclose(free + np.linalg.solve(model.mass_matrix(q), J.T @ impulse), v1, rtol=0, atol=1e-9)
        scale = max(np.abs(free).max(), 1e-2)
        assert (
            violation(G, g, friction, impulse) < 1e-6 * scale
        )  # what the compliance leaves of nearly redundant contacts
        other = admm(theirs, G, g, friction)
        assert violation(G, g, friction, other) < 1e-6 * scale
        if name not in PILES or speed == 0:
            np.testing.assert_allclose(G @ other + g, J @ v1, rtol=0, atol=1e-6 * scale)
        touching += sum(np.linalg.norm(impulse.reshape(-1, 3), axis=1) > 0)
    assert touching >= 4
