// Every member of a Scene and of its parts, in the order of its declaration, as in archived_structs.hpp.
#include "coulomb/scene.hpp"

#include <algorithm>
#include <vector>

#include "coulomb/base/archive.hpp"
#include "coulomb/model/archived_structs.hpp"
#include "coulomb/model/scene/name_pool.hpp"

namespace coulomb {

template <class Archive>
static void fields(Archive& archive, Placement& x) {
  auto& [pos, quat] = x;
  archive(pos, quat);
}

template <class Archive>
static void fields(Archive& archive, BodyPart& x) {
  auto& [name, parent, placement, mass, com, inertia, mocap, gravity_compensation, medium_box, medium_ellipsoids] = x;
  archive(name, parent, placement, mass, com, inertia, mocap);
  if (archive.format() >= 6) archive(gravity_compensation);
  if (archive.format() >= 7) archive(medium_box);
  if (archive.format() >= 10) archive(medium_ellipsoids);
}

template <class Archive>
static void fields(Archive& archive, ContactSoftness& x) {
  auto& [law, mix, margin, condim, pyramids, impedance_ratio] = x;
  archive(law, mix, margin, condim, pyramids, impedance_ratio);
}

template <class Archive>
static void fields(Archive& archive, JointPart& x) {
  auto& [name, type, body, pos, axis, limited, lower, upper, limit_stiffness, limit_dashpot, limit_softness, stiffness,
         actuator_lower, actuator_upper, q_neutral, q_spring, damping, armature, dry_friction, friction_softness] = x;
  archive(name, type, body, pos, axis, limited, lower, upper, stiffness, actuator_lower, actuator_upper, q_neutral,
          q_spring, damping, armature, dry_friction);
  if (archive.format() >= 6) archive(limit_stiffness, limit_dashpot);
  if (archive.format() >= 9) archive(limit_softness);
  if (archive.format() >= 11) archive(friction_softness);
}

template <class Archive>
static void fields(Archive& archive, GeometryPart& x) {
  auto& [name, type, body, mesh, placement, size, friction, restitution, compliance, penalty, softness, contact_points,
         contype, conaffinity, priority, condim, torsional_friction, rolling_friction, no_collision_group] = x;
  archive(name, type, body, mesh, placement, size, friction, restitution, compliance, penalty, contact_points, contype,
          conaffinity, priority, condim, no_collision_group);
  if (archive.format() >= 9) archive(softness);
  if (archive.format() >= 10) archive(torsional_friction, rolling_friction);
}

template <class Archive>
static void fields(Archive& archive, PairPart& x) {
  auto& [a, b, friction, restitution, softness, torsional_friction, rolling_friction, condim] = x;
  archive(a, b, friction, restitution);
  if (archive.format() >= 9) archive(softness);
  if (archive.format() >= 10) archive(torsional_friction, rolling_friction, condim);
}

template <class Archive>
static void fields(Archive& archive, KeyframePart& x) {
  auto& [values, first_q, first_v, first_u] = x;
  archive(values, first_q, first_v, first_u);
}

template <class Archive>
static void fields(Archive& archive, SceneParts& x) {
  auto& [bodies, joints, geometries, meshes, surfaces, pairs, excludes, tendons, actuators, equalities, keyframes,
         sites, sensors, pinocchio_maps, ignored, deviations, num_collision_groups, filter_parent_child, gravity,
         timestep, medium] = x;
  archive(bodies, joints, geometries, meshes, pairs, excludes, actuators, equalities, keyframes, sites, sensors,
          pinocchio_maps, ignored, deviations, num_collision_groups, filter_parent_child, gravity, timestep);
  if (archive.format() >= 5) archive(tendons);
  if (archive.format() >= 7) archive(surfaces, medium);
}

template <class Archive>
static void fields(Archive& archive, SceneOptions& x) {
  auto& [gravity, timestep, contact_margin] = x;
  archive(gravity, timestep, contact_margin);
}

// In the order of the alphabet, so that the same scene is the same bytes.
template <class Archive>
void fields(Archive& archive, NamePool& x) {
  std::vector<std::string> names(x.taken_.begin(), x.taken_.end());
  std::sort(names.begin(), names.end());
  archive(names);
  x.taken_ = {names.begin(), names.end()};
}

template <class Archive>
void fields(Archive& archive, Scene& x) {
  auto& [bodies, joints, geometries, tendons, actuators, equalities, keyframes, sites, sensors, pinocchio_maps, shapes,
         robots] = *x.names_;
  archive(x.options_, x.parts_, bodies, joints, geometries, actuators, equalities, keyframes, sites, sensors,
          pinocchio_maps, shapes, robots);
  if (archive.format() >= 5) archive(tendons);
}

std::string save_scene(const Scene& scene) { return saved("scene", scene); }

Scene load_scene(std::string_view bytes) { return loaded<Scene>("scene", bytes); }

}  // namespace coulomb
