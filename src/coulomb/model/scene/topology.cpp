// Derived indices of the kinematic tree: bodies depth first, dofs numbered along them, packed root paths (see topology.hpp).
#include "coulomb/model/scene/topology.hpp"
#include "coulomb/base/small_math.hpp"

#include <memory>
#include <stdexcept>
#include <string>

namespace coulomb {
namespace {

[[noreturn]] void fail(const char* array, int index, const std::string& why) {
  throw std::invalid_argument(std::string("model: ") + array + "[" + std::to_string(index) + "]: " + why);
}

/// The tree of bodies is there and depth first.
void check_bodies(const Model& m) {
  if (m.num_bodies < 1)
    throw std::invalid_argument("model: num_bodies = " + std::to_string(m.num_bodies) + ", needs the world body");
  if (static_cast<int>(m.body_parent.size()) != m.num_bodies)
    throw std::invalid_argument("model: body_parent has " + std::to_string(m.body_parent.size()) + " entries for " +
                                std::to_string(m.num_bodies) + " bodies");
  if (m.body_parent[0] != -1)
    fail("body_parent", 0, "the world's parent is -1, not " + std::to_string(m.body_parent[0]));
  for (int b = 1; b < m.num_bodies; ++b) {
    const int parent = m.body_parent[b];
    if (parent < 0 || parent >= b) {
      fail("body_parent", b, std::to_string(parent) + " is not an earlier body");
    }

    // Depth first: the parent is the previous body or one of its ancestors.
    int a = b - 1;
    while (a > parent)
      a = m.body_parent[a];
    if (a != parent) {
      fail("body_parent", b, std::to_string(parent) + " breaks the depth-first order of bodies");
    }
  }
}

/// Coordinates and dofs along the joints.
void number_joints(Model& m) {
  m.num_joints = static_cast<int>(m.joint_type.size());
  if (m.joint_body.size() != m.joint_type.size())
    throw std::invalid_argument("model: joint_body has " + std::to_string(m.joint_body.size()) + " entries for " +
                                std::to_string(m.num_joints) + " joints");
  m.joint_q.assign(m.num_joints, 0);
  m.joint_v.assign(m.num_joints, 0);
  m.body_first_joint.assign(m.num_bodies, 0);
  m.body_num_joints.assign(m.num_bodies, 0);
  m.body_num_dofs.assign(m.num_bodies, 0);
  m.nq = m.nv = 0;

  // Joints are sorted by body, so that a body's coordinates are contiguous.
  for (int j = 0; j < m.num_joints; ++j) {
    const int b = m.joint_body[j];
    if (b < 1 || b >= m.num_bodies) {
      fail("joint_body", j, std::to_string(b) + " is not a body that can move");
    }
    if (j > 0 && b < m.joint_body[j - 1]) {
      fail("joint_body", j, "joints are not sorted by body");
    }
    m.joint_q[j] = m.nq;
    m.joint_v[j] = m.nv;
    m.nq += joint_num_q(m.joint_type[j]);
    m.nv += joint_num_v(m.joint_type[j]);
    ++m.body_num_joints[b];
    m.body_num_dofs[b] += joint_num_v(m.joint_type[j]);
  }

  // A free joint leaves the body's frame to its coordinates alone.
  for (int j = 0; j < m.num_joints; ++j) {
    const int b = m.joint_body[j];
    if (m.joint_type[j] != JointType::free) continue;
    if (m.body_parent[b] != 0) {
      fail("joint_type", j, "a free joint's body must be a child of the world");
    }
    if (m.body_num_joints[b] != 1) {
      fail("joint_type", j, "a free joint must be its body's only joint");
    }
  }
}

/// First and last joints and dofs of bodies, trees, ends of subtrees.
void number_bodies(Model& m) {
  const int nb = m.num_bodies;
  m.body_first_dof.assign(nb, 0);
  m.body_last_dof.assign(nb, -1);
  m.body_tree.assign(nb, -1);
  m.body_subtree_end.assign(nb, 0);
  m.num_trees = 0;
  m.tree_first_dof.clear();
  int joint = 0;
  int dof = 0;
  for (int b = 0; b < nb; ++b) {
    const int parent = m.body_parent[b];

    // Numbers run along the bodies.
    m.body_first_joint[b] = joint;
    m.body_first_dof[b] = dof;
    joint += m.body_num_joints[b];
    dof += m.body_num_dofs[b];

    // A body without dofs moves with its parent; the first that moves starts a tree.
    if (b > 0) {
      m.body_last_dof[b] = m.body_num_dofs[b] > 0 ? dof - 1 : m.body_last_dof[parent];
      m.body_tree[b] = m.body_tree[parent];
      if (m.body_tree[b] < 0 && m.body_num_dofs[b] > 0) {
        m.body_tree[b] = m.num_trees++;
        m.tree_first_dof.push_back(m.body_first_dof[b]);
      }
    }
    m.body_subtree_end[b] = b + 1;
  }
  m.tree_first_dof.push_back(dof);

  // Subtrees are contiguous: from the leaves up, a parent's ends where its last child's does.
  for (int b = nb - 1; b > 0; --b) {
    int& end = m.body_subtree_end[m.body_parent[b]];
    if (m.body_subtree_end[b] > end) {
      end = m.body_subtree_end[b];
    }
  }
}

/// Parents, depths and root paths of dofs.
void number_dofs(Model& m) {
  m.dof_body.assign(m.nv, 0);
  m.dof_joint.assign(m.nv, 0);
  m.dof_parent.assign(m.nv, -1);
  m.dof_depth.assign(m.nv, 0);
  m.dof_subtree_end.assign(m.nv, 0);
  m.dof_row.assign(m.nv + 1, 0);
  m.dof_path.clear();
  for (int j = 0; j < m.num_joints; ++j)
    for (int i = 0; i < joint_num_v(m.joint_type[j]); ++i) {
      // A dof hangs on the one before it in its body, else on the last one of the parent.
      const int d = m.joint_v[j] + i;
      const int b = m.joint_body[j];
      m.dof_body[d] = b;
      m.dof_joint[d] = j;
      m.dof_parent[d] = d > m.body_first_dof[b] ? d - 1 : m.body_last_dof[m.body_parent[b]];
      const int end = m.body_subtree_end[b];
      m.dof_subtree_end[d] = end < m.num_bodies ? m.body_first_dof[end] : m.nv;

      // Its root path is that of its parent and itself.
      const int p = m.dof_parent[d];
      m.dof_row[d] = static_cast<int>(m.dof_path.size());
      if (p >= 0) {
        m.dof_depth[d] = m.dof_depth[p] + 1;
        for (int k = m.dof_row[p]; k < m.dof_row[p] + m.dof_depth[d]; ++k)
          m.dof_path.push_back(int(m.dof_path[k]));
      }
      m.dof_path.push_back(d);
    }
  m.dof_row[m.nv] = static_cast<int>(m.dof_path.size());
  m.dof_damping.resize(m.nv, 0.0);
  m.dof_armature.resize(m.nv, 0.0);
  m.dof_dry_friction.resize(m.nv, 0.0);
}

}  // namespace

void find_fixed_poses(Model& model) { find_fixed_poses(model, std::make_shared<FixedPoses>()); }

void find_fixed_poses(Model& model, std::shared_ptr<FixedPoses> poses) {
  model.moving_bodies.clear();
  poses->bodies.clear();
  poses->position.clear();
  poses->quaternion.clear();
  poses->rotation.clear();
  const auto place_of = [&](int body) {
    return std::lower_bound(poses->bodies.begin(), poses->bodies.end(), body) - poses->bodies.begin();
  };
  for (int b = 0; b < model.num_bodies; ++b) {
    if (model.body_tree[b] >= 0) {
      model.moving_bodies.push_back(b);
      continue;
    }
    poses->bodies.push_back(b);

    // A fixed body is placed in its parent, which is fixed, too.
    double position[3] = {0, 0, 0};
    double quaternion[4] = {1, 0, 0, 0};
    double rotation[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    if (b > 0) {
      const auto parent = place_of(model.body_parent[b]);
      rotate(&poses->rotation[9 * parent], &model.body_pos[3 * b], position);
      add3(position, &poses->position[3 * parent], position);
      quaternion_multiply(&poses->quaternion[4 * parent], &model.body_quat[4 * b], quaternion);
      quaternion_to_matrix(quaternion, rotation);
    }
    poses->position.insert(poses->position.end(), position, position + 3);
    poses->quaternion.insert(poses->quaternion.end(), quaternion, quaternion + 4);
    poses->rotation.insert(poses->rotation.end(), rotation, rotation + 9);
  }
  model.fixed_poses = std::move(poses);
}

void finalize_topology(Model& model) {
  check_bodies(model);
  number_joints(model);
  number_bodies(model);
  number_dofs(model);
  find_fixed_poses(model);

  // Springs are rare: steps skip them at once.
  model.has_joint_springs = false;
  for (double k : model.joint_stiffness)
    model.has_joint_springs |= k != 0.0;
}

}  // namespace coulomb
