"""Nimble's World of a MuJoCo model: the same bodies, inertias, joints, shapes and friction, through its Python API.
`nimble_race.py` times it beside Coulomb.

What Nimble cannot be given, or does not survive, is taken from the model of both engines (`common_model`): armature, springs, damping and
friction in joints, contacts within one robot (its filter of pairs is not open to Python), cylinders (they become capsules), and limits of
joints: in nimblephysics 0.10.52.1 Jacobians of a step with both a joint at its limit and a contact end the process. The floor's plane is a
box, and what is z-up becomes y-up.
"""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

import mujoco
import numpy as np

try:  # the compiled module alone: the package around it wants PyTorch and a web server
    import nimblephysics_libs._nimblephysics as nimble
except ImportError:
    nimble = None

FLOOR = 20.0  # m, side of the box in a plane's place
INSTALL = "make bench-nimble installs it where PyPI has a wheel (Linux x86-64: Python 3.8 to 3.12; NumPy 1)"
GEOM, JOINT = mujoco.mjtGeom, mujoco.mjtJoint


def common_model(mj):
    """A copy of the model without what one of the engines has not."""
    mj = copy.deepcopy(mj)
    mj.dof_armature[:] = 0
    mj.jnt_limited[:] = 0
    mj.dof_frictionloss[:] = 0
    mj.dof_damping[:] = 0
    mj.jnt_stiffness[:] = 0
    mj.geom_condim[:] = 3
    mj.geom_type[mj.geom_type == GEOM.mjGEOM_CYLINDER] = GEOM.mjGEOM_CAPSULE
    collides = (mj.geom_contype != 0) | (mj.geom_conaffinity != 0)
    trees = _tree_of_geometries(mj)
    mj.geom_contype[:] = np.where(collides, 1 << trees, 0)
    mj.geom_conaffinity[:] = np.where(collides, ((1 << (trees.max() + 1)) - 1) & ~(1 << trees), 0)
    return mj


def _tree_of_geometries(mj):
    """0: the world; k: the k-th body that moves on it, with all that hangs from that."""
    roots = [mj.body_rootid[b] if mj.body_weldid[b] else 0 for b in mj.geom_bodyid]
    return np.unique([0, *roots], return_inverse=True)[1][1:].astype(np.int32)


def _matrix(quaternion):
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, quaternion)
    return R.reshape(3, 3)


Y_UP = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # Nimble's tangents are singular where a normal is along z


class Peer:
    """A World, and the way from (q, v) of the MuJoCo model to Nimble's."""

    def __init__(self, mj, restitution=0.0):
        self.mj, self.data = mj, mujoco.MjData(mj)
        mujoco.mj_kinematics(mj, self.data)  # at qpos0: where the bodies are that are welded to each other
        self.world = nimble.simulation.World()
        self.turn = np.eye(4)
        if mj.opt.gravity[2]:
            self.turn[:3, :3] = Y_UP
        self.world.setGravity(self.turn[:3, :3] @ mj.opt.gravity)
        self.world.setTimeStep(mj.opt.timestep)
        self.world.setPenetrationCorrectionEnabled(False)
        self.dofs = []  # (MuJoCo's, Nimble's, sign) of every joint but free ones
        self.free = []  # (first of q, first of v, Nimble's first, body) of those
        self._files = tempfile.TemporaryDirectory()
        self._restitution = restitution
        self._nodes, self._body_of = {}, {}  # of MuJoCo's body; the way back by name
        self._skeletons, self._joints_of = [], []
        self._add_world()
        for body in range(1, mj.nbody):
            if mj.body_weldid[body] == body:
                self._add_body(body)
        first = 0
        for skeleton in self._skeletons:
            skeleton.disableSelfCollisionCheck()
            self.world.addSkeleton(skeleton)
        for skeleton, joints in zip(self._skeletons, self._joints_of):
            for joint, entries in joints:
                start = first + joint.getIndexInSkeleton(0)
                if entries is None:
                    root = joint.getChildBodyNode()
                    k = mj.body_jntadr[self._body_of[root.getName()]]
                    self.free.append((mj.jnt_qposadr[k], mj.jnt_dofadr[k], start, root))
                else:
                    self.dofs += [(k, start + entry, sign) for k, entry, sign in entries]
            first += skeleton.getNumDofs()

    # --- construction -------------------------------------------------------------------------------------------------------------

    def _pose(self, body):
        """In Nimble's world."""
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = self.data.xmat[body].reshape(3, 3), self.data.xpos[body]
        return self.turn @ pose

    def _frame(self, body):
        """The frame that a node's joints and shapes are given in: of the body, of Nimble's world for the world."""
        return self._pose(body) if body else np.eye(4)

    def _add_world(self):
        ground = nimble.dynamics.Skeleton("world")
        _, node = ground.createWeldJointAndBodyNodePair()
        node.setName("world")
        ground.setMobile(False)
        self._shapes(node, 0)
        self._skeletons.append(ground)
        self._joints_of.append([])

    def _add_body(self, body):
        mj = self.mj
        parent = mj.body_weldid[mj.body_parentid[body]]
        if parent == 0:
            skeleton = nimble.dynamics.Skeleton(f"tree{body}")
            self._skeletons.append(skeleton)
            self._joints_of.append([])
            parent_node = None
        else:
            parent_node = self._nodes[parent]
            skeleton = parent_node.getSkeleton()
        tree = len(self._skeletons) - 1
        joint, node, entries = self._joint(skeleton, parent_node, body)
        joint.setName(f"joint{body}")
        node.setName(f"body{body}")
        self._nodes[body], self._body_of[f"body{body}"] = node, body
        self._joints_of[tree].append((joint, entries))
        anchor = np.eye(4)
        start = np.eye(4) if entries is None else np.linalg.solve(self._frame(parent), self._pose(body))
        if entries is not None:
            anchor[:3, 3] = mj.jnt_pos[mj.body_jntadr[body] + mj.body_jntnum[body] - 1]
        joint.setTransformFromParentBodyNode(nimble.math.Isometry3(start @ anchor))
        joint.setTransformFromChildBodyNode(nimble.math.Isometry3(anchor))
        self._inertia(node, body)
        self._shapes(node, body)

    def _joint(self, skeleton, parent, body):
        """(joint, node, [(dof, entry in the joint, sign)], None for a free joint)"""
        mj = self.mj
        joints = range(mj.body_jntadr[body], mj.body_jntadr[body] + mj.body_jntnum[body])
        kinds = tuple(int(mj.jnt_type[j]) for j in joints)
        axes = [mj.jnt_axis[j].copy() for j in joints]
        dofs = [int(mj.jnt_dofadr[j]) for j in joints]
        S, H = int(JOINT.mjJNT_SLIDE), int(JOINT.mjJNT_HINGE)
        plain = [(dof, k, 1.0) for k, dof in enumerate(dofs)]
        if kinds == (int(JOINT.mjJNT_FREE),):
            return *skeleton.createFreeJointAndBodyNodePair(parent), None
        if kinds == (H,):
            joint, node = skeleton.createRevoluteJointAndBodyNodePair(parent)
            joint.setAxis(axes[0])
            return joint, node, plain
        if kinds == (S,):
            joint, node = skeleton.createPrismaticJointAndBodyNodePair(parent)
            joint.setAxis(axes[0])
            return joint, node, plain
        if kinds == (S, S):
            joint, node = skeleton.createTranslationalJoint2DAndBodyNodePair(parent)
            joint.setArbitraryPlane(*axes)
            return joint, node, plain
        if kinds == (S, S, H):
            joint, node = skeleton.createPlanarJointAndBodyNodePair(parent)
            joint.setArbitraryPlane(*axes[:2])
            return joint, node, [*plain[:2], (dofs[2], 2, float(np.cross(*axes[:2]) @ axes[2]))]
        if kinds == (H, H):
            joint, node = skeleton.createUniversalJointAndBodyNodePair(parent)
            joint.setAxis1(axes[0])
            joint.setAxis2(axes[1])
            return joint, node, plain
        if kinds == (H, H, H) and np.allclose(np.abs(axes), [[1, 0, 0], [0, 0, 1], [0, 1, 0]]):
            joint, node = skeleton.createEulerJointAndBodyNodePair(parent)
            joint.setAxisOrder(nimble.dynamics.AxisOrder.XZY, False)
            return joint, node, [(dof, k, float(axes[k].sum())) for k, dof in enumerate(dofs)]
        raise NotImplementedError(f"{mj.body(body).name}: joints {kinds} about {axes}")

    def _inertia(self, node, body):
        """Of the body and all that are welded to it, about their common centre of mass, along the body's axes."""
        mj = self.mj
        members = [b for b in range(1, mj.nbody) if mj.body_weldid[b] == body]
        mass = sum(mj.body_mass[b] for b in members)
        inverse = np.linalg.inv(self._pose(body))
        centres = {b: (inverse @ np.r_[self._pose(b) @ np.r_[mj.body_ipos[b], 1]])[:3] for b in members}
        com = sum(mj.body_mass[b] * centres[b] for b in members) / mass
        moment = np.zeros((3, 3))
        for b in members:
            R = (inverse @ self._pose(b))[:3, :3] @ _matrix(mj.body_iquat[b])
            r = centres[b] - com
            moment += R @ np.diag(mj.body_inertia[b]) @ R.T + mj.body_mass[b] * (r @ r * np.eye(3) - np.outer(r, r))
        node.setInertia(nimble.dynamics.Inertia(mass, com, moment))

    def _shapes(self, node, body):
        mj = self.mj
        frictions = []
        for g in range(mj.ngeom):
            owner = mj.geom_bodyid[g]
            if mj.body_weldid[owner] != body or not mj.geom_contype[g]:
                continue
            shape, pose = self._shape(g), np.eye(4)
            pose[:3, :3], pose[:3, 3] = _matrix(mj.geom_quat[g]), mj.geom_pos[g]
            pose = np.linalg.solve(self._frame(body), self._pose(owner) @ pose)
            if mj.geom_type[g] == GEOM.mjGEOM_PLANE:
                pose[:3, 3] -= FLOOR / 2 * pose[:3, 2]
            shape_node = node.createShapeNode(shape, f"geom{g}")
            shape_node.setRelativeTransform(nimble.math.Isometry3(pose))
            shape_node.createCollisionAspect()
            shape_node.createDynamicsAspect()
            frictions.append(self._friction(g))
        if frictions:
            node.setFrictionCoeff(max(frictions))
            node.setRestitutionCoeff(self._restitution)

    def _friction(self, g):
        """MuJoCo takes the larger of two coefficients, Nimble the smaller one: the floor's goes into those of the others."""
        mj = self.mj
        fixed = mj.body_weldid[mj.geom_bodyid] == 0
        return 1e3 if fixed[g] else max([mj.geom_friction[g, 0], *mj.geom_friction[fixed, 0]])

    def _shape(self, g):
        mj, dynamics = self.mj, nimble.dynamics
        size, kind = mj.geom_size[g], mj.geom_type[g]
        if kind == GEOM.mjGEOM_PLANE:
            return dynamics.BoxShape(np.full(3, FLOOR))
        if kind == GEOM.mjGEOM_BOX:
            return dynamics.BoxShape(2 * size)
        if kind == GEOM.mjGEOM_SPHERE:
            return dynamics.SphereShape(size[0])
        if kind == GEOM.mjGEOM_CAPSULE:
            return dynamics.CapsuleShape(size[0], 2 * size[1])
        if kind == GEOM.mjGEOM_MESH:
            return self._mesh(mj.geom_dataid[g])
        raise NotImplementedError(f"geom {g}: {GEOM(kind).name}")

    def _mesh(self, mesh):
        """The convex hull, by a file: Nimble reads meshes from nowhere else."""
        from scipy.spatial import ConvexHull

        mj = self.mj
        first, count = mj.mesh_vertadr[mesh], mj.mesh_vertnum[mesh]
        points = mj.mesh_vert[first : first + count].astype(float)
        hull = ConvexHull(points)
        number = {vertex: k + 1 for k, vertex in enumerate(hull.vertices)}
        lines = ["v " + " ".join(f"{x:.9g}" for x in points[k]) for k in hull.vertices]
        for face, outward in zip(hull.simplices, hull.equations[:, :3]):
            a, b, c = face
            if np.cross(points[b] - points[a], points[c] - points[a]) @ outward < 0:
                b, c = c, b
            lines.append(f"f {number[a]} {number[b]} {number[c]}")
        path = Path(self._files.name) / f"mesh{mesh}.obj"
        path.write_text("\n".join(lines) + "\n")
        return nimble.utils.UniversalLoader.loadMeshShape(str(path))

    # --- states -------------------------------------------------------------------------------------------------------------------

    def place(self, q, v, memory=None):
        """The MuJoCo model's (q, v), and the impulses to start from."""
        self.world.setPositions(self._positions(q))
        self.world.setVelocities(self.velocity_map() @ v)
        self.world.setCachedLCPSolution(np.zeros(0) if memory is None else memory)

    def _positions(self, q):
        x = np.zeros(self.world.getNumDofs())
        for dof, k, sign in self.dofs:
            a = self.mj.jnt_qposadr[self.mj.dof_jntid[dof]]
            x[k] = sign * (q[a] - self.mj.qpos0[a])
        for a, _, k, _ in self.free:
            rotation, place = self.turn[:3, :3] @ _matrix(q[a + 3 : a + 7]), self.turn[:3, :3] @ q[a : a + 3]
            x[k : k + 6] = nimble.dynamics.FreeJoint.convertToPositions(nimble.math.Isometry3(rotation, place))
        return x

    def velocity_map(self):
        """T of velocities = T v, v the MuJoCo model's, at the world's positions."""
        T = np.zeros((self.world.getNumDofs(), self.mj.nv))
        for dof, k, sign in self.dofs:
            T[k, dof] = sign
        for _, d, k, root in self.free:
            J = root.getSkeleton().getWorldJacobian(root)[:, :6]  # angular, linear, world axes
            twist = np.zeros((6, 6))
            twist[:3, 3:], twist[3:, :3] = root.getWorldTransform().rotation(), self.turn[:3, :3]
            T[k : k + 6, d : d + 6] = np.linalg.solve(J, twist)
        return T

    def velocities(self):
        """v of the MuJoCo model."""
        return np.linalg.solve(self.velocity_map(), self.world.getVelocities())

    def mass_matrix(self):
        T = self.velocity_map()
        return T.T @ self.world.getMassMatrix() @ T

    def contacts(self):
        """Those of the last step that entered its LCP: neither apart nor deeper than the depth beyond which Nimble forgets them."""
        deepest = self.world.getContactClippingDepth()
        return [c for c in self.world.getLastCollisionResult().getContacts() if 0 <= c.penetrationDepth <= deepest]

    # --- what is timed ------------------------------------------------------------------------------------------------------------

    def step(self):
        """The step that its gradients belong to; `world.step()` solves the LCP in another way, with other results."""
        return nimble.neural.forwardPass(self.world)

    def jacobians(self):
        """The step, and the five of the paper: of the next q and v by q and v, of the next v by forces."""
        world, snapshot = self.world, nimble.neural.forwardPass(self.world)
        return (
            snapshot.getPosPosJacobian(world),
            snapshot.getVelPosJacobian(world),
            snapshot.getPosVelJacobian(world),
            snapshot.getVelVelJacobian(world),
            snapshot.getControlForceVelJacobian(world),
        )
