// Every member of a Model, in the order of its declaration; of the structs in it: archived_structs.hpp.
#include "coulomb/model.hpp"

#include "coulomb/base/archive.hpp"
#include "coulomb/model/archived_structs.hpp"
#include "coulomb/model/scene/build_model.hpp"
#include "coulomb/model/scene/neutral_inertia.hpp"
#include "coulomb/model/scene/topology.hpp"
#include "coulomb/model/tendon.hpp"

namespace coulomb {

template <class Archive>
static void fields(Archive& archive, Model& x) {
  auto& [nq, nv, nu, num_bodies, num_joints, num_geometries, num_trees, gravity, timestep, body_names, body_parent,
         body_first_joint, body_num_joints, body_first_dof, body_num_dofs, body_last_dof, body_subtree_end, body_tree,
         tree_first_dof, moving_bodies, fixed_poses, body_pos, body_quat, body_mass, body_com, body_inertia,
         body_gravity_compensation, mocap_bodies, joint_names, joint_type, joint_body, joint_q, joint_v, joint_pos,
         joint_axis, joint_limited, joint_lower, joint_upper, joint_limit_stiffness, joint_limit_dashpot,
         joint_limit_curve, joint_stiffness, joint_actuator_lower, joint_actuator_upper, q_neutral, q_spring, dof_body,
         dof_joint, dof_parent, dof_depth, dof_subtree_end, dof_path, dof_row, dof_damping, dof_armature,
         dof_dry_friction, dof_friction_spring, geometry_names, geometry_type, geometry_body, geometry_mesh,
         geometry_pos, geometry_quat, geometry_size, geometry_friction, geometry_restitution, geometry_compliance,
         geometry_torsional_friction, geometry_rolling_friction, geometry_materials, meshes, surfaces,
         contact_point_start, contact_points, pair_a, pair_b, pair_friction, pair_restitution, pair_compliance,
         pair_torsional_friction, pair_rolling_friction, pair_overrides, pair_penalty, penalty, pair_margin,
         pair_weight, pair_torsional_weight, pair_rolling_weight, equality_weight, dof_weight, tendons, actuators,
         equalities, keyframes, sites, sensors, pinocchio_maps, ignored, deviations, medium, body_medium_box,
         medium_ellipsoids, body_first_ellipsoid, has_joint_springs, has_spring_curves, has_gravity_compensation] = x;
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
  if (archive.format() >= 5) archive(tendons);
  if (archive.format() >= 10) archive(medium_ellipsoids, body_first_ellipsoid);
  if (archive.format() >= 11)
    archive(dof_friction_spring);
  else
    dof_friction_spring.resize(static_cast<std::size_t>(nv));
  if (archive.format() >= 9)
    archive(joint_limit_curve, has_spring_curves);
  else
    joint_limit_curve.resize(static_cast<std::size_t>(num_joints));
  if (archive.format() >= 10) {
    archive(geometry_torsional_friction, geometry_rolling_friction, pair_torsional_friction, pair_rolling_friction,
            pair_torsional_weight, pair_rolling_weight);
  } else {
    // Before, contacts did not resist spinning and rolling; load_models fills the weights.
    for (auto* values : {&geometry_torsional_friction, &geometry_rolling_friction})
      values->assign(static_cast<std::size_t>(num_geometries), 0.0);
    for (auto* values : {&pair_torsional_friction, &pair_rolling_friction})
      values->assign(pair_a.size(), 0.0);
  }
  if (archive.format() >= 6) {
    archive(body_gravity_compensation, has_gravity_compensation, joint_limit_stiffness, joint_limit_dashpot);
    if (archive.format() >= 7)
      archive(surfaces, medium, body_medium_box, mocap_bodies);
    else
      body_medium_box.resize(static_cast<std::size_t>(num_bodies));
    return;
  }

  // Before, everything weighed and limits were rigid.
  body_gravity_compensation.assign(static_cast<std::size_t>(num_bodies), 0.0);
  joint_limit_stiffness.assign(static_cast<std::size_t>(num_joints), 0.0);
  joint_limit_dashpot.assign(static_cast<std::size_t>(num_joints), 0.0);
  body_medium_box.resize(static_cast<std::size_t>(num_bodies));
}

std::string save_models(const Models& models) { return saved("model", models); }

Models load_models(std::string_view bytes) {
  Models models = loaded<Models>("model", bytes);
  for (auto& model : models) {
    find_fixed_poses(const_cast<Model&>(*model));
    find_tendon_dofs(const_cast<Model&>(*model));
    if (model->pair_torsional_weight.size() != model->pair_a.size())
      set_turning_weights(NeutralInertia(*model), const_cast<Model&>(*model));
    for (Tendon& tendon : const_cast<Model&>(*model).tendons)
      if (!is_spatial(tendon)) tendon.weight = sum_of_joints_weight(*model, tendon);
  }
  return models;
}

}  // namespace coulomb
