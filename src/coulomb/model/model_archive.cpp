// Every member of every struct, in the order of its declaration. The bindings count them: a struct that gains a member does not
// compile here until it is listed (raise archive_format then).
// until it is listed (raise archive_format then).
#include "coulomb/model/model_archive.hpp"

#include "coulomb/archive.hpp"

namespace coulomb {

template <class Archive>
static void fields(Archive& archive, Frame& x) {
  auto& [body, geometry, at_com, pos, quat] = x;
  archive(body, geometry, at_com, pos, quat);
}

template <class Archive>
static void fields(Archive& archive, Site& x) {
  auto& [name, frame, geometries, zone, size] = x;
  archive(name, frame, geometries, zone, size);
}

template <class Archive>
static void fields(Archive& archive, Sensor& x) {
  auto& [name, type, frame, reference, index, geometries, cutoff] = x;
  archive(name, type, frame, reference, index, geometries, cutoff);
}

template <class Archive>
static void fields(Archive& archive, PenaltyMaterial& x) {
  auto& [stiffness, damping, friction_stiffness, scale] = x;
  archive(stiffness, damping, friction_stiffness, scale);
}

template <class Archive>
static void fields(Archive& archive, PenaltyDefaults& x) {
  auto& [stiffness, damping, friction_stiffness] = x;
  archive(stiffness, damping, friction_stiffness);
}

template <class Archive>
static void fields(Archive& archive, GeometryMaterial& x) {
  auto& [friction, restitution, compliance, priority, condim, penalty] = x;
  archive(friction, restitution, compliance, priority, condim, penalty);
}

template <class Archive>
static void fields(Archive& archive, PairOverride& x) {
  auto& [friction, restitution] = x;
  archive(friction, restitution);
}

template <class Archive>
static void fields(Archive& archive, PairPenalty& x) {
  auto& [stiffness, damping, friction_stiffness, scale, damping_owner, friction_stiffness_owner] = x;
  archive(stiffness, damping, friction_stiffness, scale, damping_owner, friction_stiffness_owner);
}

template <class Archive>
static void fields(Archive& archive, ConvexMesh& x) {
  auto& [vertices, face_start, face_vertices, face_normals, face_offsets, neighbour_start, neighbours, face_neighbour,
         vertex_face_start, vertex_faces, support_start, support_vertices, center, aabb_center, aabb_half, name] = x;
  archive(vertices, face_start, face_vertices, face_normals, face_offsets, neighbour_start, neighbours, face_neighbour,
          vertex_face_start, vertex_faces, support_start, support_vertices, center, aabb_center, aabb_half, name);
}

template <class Archive>
static void fields(Archive& archive, Actuator& x) {
  auto& [name, joint, gear, in_parent_frame, gain, bias, control_limited, force_limited, control_range, force_range] =
      x;
  archive(name, joint, gear, in_parent_frame, gain, bias, control_limited, force_limited, control_range, force_range);
}

template <class Archive>
static void fields(Archive& archive, Equality& x) {
  auto& [name, type, body_a, body_b, joint_a, joint_b, pos_a, pos_b, quat_a, quat_b, torque_scale, poly, ref_a, ref_b,
         active] = x;
  archive(name, type, body_a, body_b, joint_a, joint_b, pos_a, pos_b, quat_a, quat_b, torque_scale, poly, ref_a, ref_b,
          active);
}

template <class Archive>
static void fields(Archive& archive, Keyframe& x) {
  auto& [name, q, v, u] = x;
  archive(name, q, v, u);
}

template <class Archive>
static void fields(Archive& archive, PinocchioJoint& x) {
  auto& [kind, pin_q, pin_v, q, v, base_pos, base_quat] = x;
  archive(kind, pin_q, pin_v, q, v, base_pos, base_quat);
}

template <class Archive>
static void fields(Archive& archive, PinocchioMap& x) {
  auto& [name, nq, nv, joints] = x;
  archive(name, nq, nv, joints);
}

template <class Archive>
static void fields(Archive& archive, Model& x) {
  auto& [nq, nv, nu, num_bodies, num_joints, num_geometries, num_trees, gravity, timestep, body_names, body_parent,
         body_first_joint, body_num_joints, body_first_dof, body_num_dofs, body_last_dof, body_subtree_end, body_tree,
         tree_first_dof, body_pos, body_quat, body_mass, body_com, body_inertia, joint_names, joint_type, joint_body,
         joint_q, joint_v, joint_pos, joint_axis, joint_limited, joint_lower, joint_upper, joint_stiffness,
         joint_actuator_lower, joint_actuator_upper, q_neutral, q_spring, dof_body, dof_joint, dof_parent, dof_depth,
         dof_subtree_end, dof_path, dof_row, dof_damping, dof_armature, dof_dry_friction, geometry_names, geometry_type,
         geometry_body, geometry_mesh, geometry_pos, geometry_quat, geometry_size, geometry_friction,
         geometry_restitution, geometry_compliance, geometry_materials, meshes, contact_point_start, contact_points,
         pair_a, pair_b, pair_friction, pair_restitution, pair_compliance, pair_overrides, pair_penalty, penalty,
         pair_margin, pair_weight, equality_weight, dof_weight, actuators, equalities, keyframes, sites, sensors,
         pinocchio_maps, ignored, deviations, has_joint_springs] = x;
  archive(nq, nv, nu, num_bodies, num_joints, num_geometries, num_trees, gravity, timestep, body_names, body_parent,
          body_first_joint, body_num_joints, body_first_dof, body_num_dofs, body_last_dof, body_subtree_end, body_tree,
          tree_first_dof, body_pos, body_quat, body_mass, body_com, body_inertia, joint_names, joint_type, joint_body,
          joint_q, joint_v, joint_pos, joint_axis, joint_limited, joint_lower, joint_upper, joint_stiffness,
          joint_actuator_lower, joint_actuator_upper, q_neutral, q_spring, dof_body, dof_joint, dof_parent, dof_depth,
          dof_subtree_end, dof_path, dof_row, dof_damping, dof_armature, dof_dry_friction, geometry_names,
          geometry_type, geometry_body, geometry_mesh, geometry_pos, geometry_quat, geometry_size, geometry_friction,
          geometry_restitution, geometry_compliance, geometry_materials, meshes, contact_point_start, contact_points,
          pair_a, pair_b, pair_friction, pair_restitution, pair_compliance, pair_overrides, pair_penalty, penalty,
          pair_margin, pair_weight, equality_weight, dof_weight, actuators, equalities, keyframes, sites, sensors,
          pinocchio_maps, ignored, deviations, has_joint_springs);
}

std::string save_models(const Models& models) {
  // The archive reads and writes through the same visits, which need members that can be written.
  Models copy = models;
  ArchiveWriter archive;
  archive(copy);
  return sealed("model", archive.bytes());
}

Models load_models(std::string_view bytes) {
  ArchiveReader archive(unsealed("model", bytes));
  Models out;
  archive(out);
  archive.finish();
  return out;
}

}  // namespace coulomb
