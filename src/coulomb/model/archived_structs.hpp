// What archives of models and of scenes have in common: every member of the structs that they are made of, in the order of its declaration.
// The bindings count them: a struct that gains a member does not compile here until it is listed (raise archive_format then).
#pragma once

#include "coulomb/model.hpp"

namespace coulomb {

template <class Archive>
void fields(Archive& archive, Frame& x) {
  auto& [body, geometry, at_com, pos, quat] = x;
  archive(body, geometry, at_com, pos, quat);
}

template <class Archive>
void fields(Archive& archive, Site& x) {
  auto& [name, frame, geometries, zone, size] = x;
  archive(name, frame, geometries, zone, size);
}

template <class Archive>
void fields(Archive& archive, GeometryGroup& x) {
  auto& [of, index] = x;
  archive(of, index);
}

template <class Archive>
void fields(Archive& archive, ContactSelection& x) {
  auto& [groups, reduction, num, fields] = x;
  archive(groups, reduction, num, fields);
}

template <class Archive>
void fields(Archive& archive, Sensor& x) {
  auto& [name, type, frame, reference, index, geometries, cutoff, contacts, field] = x;
  archive(name, type, frame, reference, index, geometries, cutoff);
  if (archive.format() >= 9) archive(contacts, field);
}

template <class Archive>
void fields(Archive& archive, PenaltyMaterial& x) {
  auto& [stiffness, damping, friction_stiffness, scale, dashpot] = x;
  archive(stiffness, damping, friction_stiffness, scale);
  if (archive.format() >= 4) archive(dashpot);
}

template <class Archive>
void fields(Archive& archive, PenaltyDefaults& x) {
  auto& [stiffness, damping, friction_stiffness] = x;
  archive(stiffness, damping, friction_stiffness);
}

template <class Archive>
void fields(Archive& archive, GeometryMaterial& x) {
  auto& [friction, restitution, compliance, priority, condim, penalty, torsional_friction, rolling_friction] = x;
  archive(friction, restitution, compliance, priority, condim, penalty);
  if (archive.format() >= 10) archive(torsional_friction, rolling_friction);
}

template <class Archive>
void fields(Archive& archive, Softness& x) {
  auto& [reference, impedance, least_time, mobility, angular_mobility] = x;
  archive(reference, impedance, least_time);
  if (archive.format() >= 10) archive(mobility);
  if (archive.format() >= 11) archive(angular_mobility);
}

template <class Archive>
void fields(Archive& archive, SpringCurve& x) {
  auto& [inertia, start, end, full_depth, midpoint, power] = x;
  archive(inertia, start, end, full_depth, midpoint, power);
}

template <class Archive>
void fields(Archive& archive, RowSpring& x) {
  auto& [stiffness, dashpot, curve] = x;
  archive(stiffness, dashpot, curve);
}

template <class Archive>
void fields(Archive& archive, PairSpring& x) {
  auto& [stiffness, dashpot, margin, curve] = x;
  archive(stiffness, dashpot, margin, curve);
}

template <class Archive>
void fields(Archive& archive, PairOverride& x) {
  auto& [friction, restitution, spring, torsional_friction, rolling_friction, condim] = x;
  archive(friction, restitution);
  if (archive.format() >= 9) archive(spring);
  if (archive.format() >= 10) archive(torsional_friction, rolling_friction, condim);
}

template <class Archive>
void fields(Archive& archive, PairPenalty& x) {
  auto& [stiffness, damping, friction_stiffness, scale, damping_owner, friction_stiffness_owner, dashpot, margin,
         curve] = x;
  archive(stiffness, damping, friction_stiffness, scale, damping_owner, friction_stiffness_owner);
  if (archive.format() >= 4) archive(dashpot);
  if (archive.format() >= 9) archive(margin, curve);
}

template <class Archive>
void fields(Archive& archive, ConvexMesh& x) {
  auto& [vertices, face_start, face_vertices, face_normals, face_offsets, neighbour_start, neighbours, face_neighbour,
         vertex_face_start, vertex_faces, support_start, support_vertices, center, aabb_center, aabb_half, name] = x;
  archive(vertices, face_start, face_vertices, face_normals, face_offsets, neighbour_start, neighbours, face_neighbour,
          vertex_face_start, vertex_faces, support_start, support_vertices, center, aabb_center, aabb_half, name);
}

template <class Archive>
void fields(Archive& archive, TriangleSurface& x) {
  auto& [vertices, triangles, normals, across, features, ring_start, ring, node_box, node_second, node_count,
         node_plane, leaf_triangles, rows, columns, aabb_center, aabb_half, name] = x;
  archive(vertices, triangles, normals, across, features, ring_start, ring, node_box, node_second, node_count,
          node_plane, leaf_triangles, rows, columns, aabb_center, aabb_half, name);
}

template <class Archive>
void fields(Archive& archive, Muscle& x) {
  auto& [pulls, resists, peak_force, length_range, range, shortest, longest, fastest, passive, stretched,
         activation_time, deactivation_time, smoothing] = x;
  archive(pulls, resists, peak_force, length_range, range, shortest, longest, fastest, passive, stretched,
          activation_time, deactivation_time, smoothing);
}

template <class Archive>
void fields(Archive& archive, Actuator& x) {
  auto& [name, joint, tendon, body, site_pos, site_quat, reference_body, reference_pos, reference_quat, gear,
         in_parent_frame, gain, bias, control_limited, force_limited, control_range, force_range, activation,
         time_constant, acts_early, activation_limited, activation_range, muscle] = x;
  archive(name, joint, gear, in_parent_frame, gain, bias, control_limited, force_limited, control_range, force_range);
  if (archive.format() >= 5) archive(tendon);
  if (archive.format() >= 7) archive(body, site_pos, site_quat);
  if (archive.format() >= 8) archive(activation, time_constant, acts_early, activation_limited, activation_range);
  if (archive.format() >= 9) archive(reference_body, reference_pos, reference_quat, muscle);
}

template <class Archive>
void fields(Archive& archive, Medium& x) {
  auto& [density, viscosity, wind] = x;
  archive(density, viscosity, wind);
}

template <class Archive>
void fields(Archive& archive, MediumBox& x) {
  auto& [pos, quat, size] = x;
  archive(pos, quat, size);
}

template <class Archive>
void fields(Archive& archive, MediumEllipsoid& x) {
  auto& [pos, quat, semiaxes, coefficients, virtual_mass, virtual_inertia, scale] = x;
  archive(pos, quat, semiaxes, coefficients, virtual_mass, virtual_inertia, scale);
}

template <class Archive>
void fields(Archive& archive, TendonPoint& x) {
  auto& [kind, body, pos, quat, radius, side_body, side_pos, divisor] = x;
  archive(kind, body, pos, quat, radius, side_body, side_pos, divisor);
}

template <class Archive>
void fields(Archive& archive, Tendon& x) {
  auto& [name, joints, coefficients, path, dofs, weight, limited, lower, upper, stiffness, spring_lower, spring_upper,
         damping, dry_friction, armature, limit_softness, friction_softness, limit_spring, friction_spring,
         force_limited, force_range] = x;
  archive(name, joints, coefficients, limited, lower, upper);
  if (archive.format() >= 7) archive(stiffness, spring_lower, spring_upper, damping, dry_friction);
  if (archive.format() >= 8) archive(path, weight);
  if (archive.format() >= 9) archive(armature, force_limited, force_range);
  if (archive.format() >= 11) archive(limit_softness, friction_softness, limit_spring, friction_spring);
}

template <class Archive>
void fields(Archive& archive, Equality& x) {
  auto& [name, type, body_a, body_b, joint_a, joint_b, tendon_a, tendon_b, pos_a, pos_b, quat_a, quat_b, torque_scale,
         poly, ref_a, ref_b, active, softness, spring, angular_share] = x;
  archive(name, type, body_a, body_b, joint_a, joint_b, pos_a, pos_b, quat_a, quat_b, torque_scale, poly, ref_a, ref_b,
          active);
  if (archive.format() >= 5) archive(tendon_a, tendon_b);
  if (archive.format() >= 11) archive(softness, spring, angular_share);
}

template <class Archive>
void fields(Archive& archive, Keyframe& x) {
  auto& [name, q, v, u] = x;
  archive(name, q, v, u);
}

template <class Archive>
void fields(Archive& archive, PinocchioJoint& x) {
  auto& [kind, pin_q, pin_v, q, v, base_pos, base_quat] = x;
  archive(kind, pin_q, pin_v, q, v, base_pos, base_quat);
}

template <class Archive>
void fields(Archive& archive, PinocchioMap& x) {
  auto& [name, nq, nv, joints] = x;
  archive(name, nq, nv, joints);
}

}  // namespace coulomb
