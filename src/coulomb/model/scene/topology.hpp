// Fills every index array of a Model that follows from its bodies' parents and its joints.
#pragma once

#include <memory>

#include "coulomb/model.hpp"

namespace coulomb {

/// Reads num_bodies, body_parent, joint_type and joint_body; writes num_joints, nq, nv, num_trees, joint_q, joint_v, every
/// body_first_*, body_num_*, body_last_dof, body_subtree_end, body_tree, and every dof_* index array (damping, armature and
/// dry friction are resized to nv with zeros appended, never overwritten).
///
/// Bodies must be depth first (each body follows its parent's subtree so far) and joints sorted by body: MuJoCo's order.
/// A body without dofs of its own has body_first_dof = the dof that would come next and body_num_dofs = 0; a body fixed to
/// the world has body_tree = -1. A tree starts at each moving body whose ancestors are all fixed to the world.
/// Throws std::invalid_argument when the order is broken or a free joint's body is not a child of the world or not alone.
void finalize_topology(Model& model);

/// Model::moving_bodies and fixed_poses: after finalize_topology, and whenever a fixed body is placed elsewhere.
void find_fixed_poses(Model& model);
/// The same, written into `poses`, which the model holds from then on: nobody else may look at it.
void find_fixed_poses(Model& model, std::shared_ptr<FixedPoses> poses);

inline int joint_num_q(JointType type) { return type == JointType::free ? 7 : type == JointType::ball ? 4 : 1; }
inline int joint_num_v(JointType type) { return type == JointType::free ? 6 : type == JointType::ball ? 3 : 1; }

}  // namespace coulomb
