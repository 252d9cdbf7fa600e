// build_model: SceneParts to Model. Bodies, joints and geometries are copied to flat arrays, index arrays follow
// (topology.hpp), then the pairs of geometries that may touch are listed with their combined materials.
#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/scene/balanced_inertia.hpp"
#include "coulomb/model/scene/build_model.hpp"
#include "coulomb/model/scene/file_softness.hpp"
#include "coulomb/model/scene/materials.hpp"
#include "coulomb/model/scene/neutral_inertia.hpp"
#include "coulomb/model/scene/topology.hpp"
#include "coulomb/model/shapes/triangle_surface.hpp"
#include "coulomb/model/tendon.hpp"

namespace coulomb {
namespace {

/// The material as it was given; pairs combine those.
GeometryMaterial material_of(const GeometryPart& g) {
  return {g.friction, g.restitution, g.compliance,         g.priority,
          g.condim,   g.penalty,     g.torsional_friction, g.rolling_friction};
}

/// Appends the first n values.
template <class Values>
void push(std::vector<double>& to, const Values& values, int n) {
  to.insert(to.end(), values.begin(), values.begin() + n);
}

/// The box that the medium sees: the file's, or that of the inertia about its principal axes.
MediumBox medium_box(const BodyPart& b) {
  if (!b.medium_ellipsoids.empty()) return {};
  if (b.medium_box) return *b.medium_box;
  MediumBox box;
  if (!(b.mass > 0)) return box;
  const PrincipalInertia principal = principal_inertia(b.inertia);
  box.pos = b.com;
  box.quat = principal.quat;
  box.size = box_of_inertia(b.mass, principal.moments);
  return box;
}

/// Ellipsoids of a medium, body by body.
void copy_ellipsoids(const SceneParts& parts, Model& m) {
  const auto has_some = [](const BodyPart& b) { return !b.medium_ellipsoids.empty(); };
  if (!parts.medium || std::none_of(parts.bodies.begin(), parts.bodies.end(), has_some)) return;
  for (const BodyPart& b : parts.bodies) {
    m.body_first_ellipsoid.push_back(static_cast<int>(m.medium_ellipsoids.size()));
    m.medium_ellipsoids.insert(m.medium_ellipsoids.end(), b.medium_ellipsoids.begin(), b.medium_ellipsoids.end());
  }
  m.body_first_ellipsoid.push_back(static_cast<int>(m.medium_ellipsoids.size()));
}

/// Masses and placements in the parent.
void copy_bodies(const SceneParts& parts, Model& m) {
  m.num_bodies = static_cast<int>(parts.bodies.size());
  for (const BodyPart& b : parts.bodies) {
    if (b.mocap) m.mocap_bodies.push_back(static_cast<int>(m.body_names.size()));
    m.body_names.push_back(b.name);
    m.body_parent.push_back(b.parent);
    push(m.body_pos, b.placement.pos, 3);
    push(m.body_quat, b.placement.quat, 4);
    m.body_mass.push_back(b.mass);
    push(m.body_com, b.com, 3);
    push(m.body_inertia, b.inertia, 6);
    m.body_gravity_compensation.push_back(b.gravity_compensation);
    m.has_gravity_compensation = m.has_gravity_compensation || b.gravity_compensation != 0;
    m.body_medium_box.push_back(parts.medium ? medium_box(b) : MediumBox{});
  }
  copy_ellipsoids(parts, m);
}

/// Joints with their coordinates and dofs, in order.
void copy_joints(const SceneParts& parts, Model& m) {
  for (const JointPart& j : parts.joints) {
    const int nq = joint_num_q(j.type);
    const int nv = joint_num_v(j.type);
    m.joint_names.push_back(j.name);
    m.joint_type.push_back(j.type);
    m.joint_body.push_back(j.body);
    push(m.joint_pos, j.pos, 3);
    push(m.joint_axis, j.axis, 3);
    m.joint_limited.push_back(j.limited);
    m.joint_lower.push_back(j.lower);
    m.joint_upper.push_back(j.upper);
    m.joint_limit_stiffness.push_back(j.limit_stiffness);
    m.joint_limit_dashpot.push_back(j.limit_dashpot);
    m.joint_limit_curve.emplace_back();
    m.joint_stiffness.push_back(j.stiffness);
    m.joint_actuator_lower.push_back(j.actuator_lower);
    m.joint_actuator_upper.push_back(j.actuator_upper);

    // Coordinates and dofs.
    push(m.q_neutral, j.q_neutral, nq);
    push(m.q_spring, j.q_spring, nq);
    push(m.dof_damping, j.damping, nv);
    push(m.dof_armature, j.armature, nv);
    push(m.dof_dry_friction, j.dry_friction, nv);
    m.dof_friction_spring.resize(m.dof_dry_friction.size());
  }
}

/// Shapes, materials with defaults filled in, points of penalty contact.
void copy_geometries(const SceneParts& parts, Model& m) {
  m.num_geometries = static_cast<int>(parts.geometries.size());
  m.meshes = parts.meshes;
  m.surfaces = parts.surfaces;
  m.contact_point_start.push_back(0);
  for (const GeometryPart& g : parts.geometries) {
    // Shape and placement.
    m.geometry_names.push_back(g.name);
    m.geometry_type.push_back(g.type);
    m.geometry_body.push_back(g.body);
    m.geometry_mesh.push_back(g.mesh);
    push(m.geometry_pos, g.placement.pos, 3);
    push(m.geometry_quat, g.placement.quat, 4);
    push(m.geometry_size, g.size, 3);

    // Material.
    m.geometry_materials.push_back(material_of(g));
    m.geometry_friction.push_back(g.condim == 1 ? 0.0 : g.friction.value_or(1.0));
    m.geometry_restitution.push_back(g.restitution.value_or(0.0));
    m.geometry_compliance.push_back(g.compliance);
    m.geometry_torsional_friction.push_back(g.torsional_friction.value_or(0.0));
    m.geometry_rolling_friction.push_back(g.rolling_friction.value_or(0.0));

    // Points, as a ragged array.
    push(m.contact_points, g.contact_points, static_cast<int>(g.contact_points.size()));
    m.contact_point_start.push_back(static_cast<int>(m.contact_points.size() / 3));
  }
}

/// Which bodies count as one for the collision filter: a body without joints belongs to its parent; a mocap body is its own.
std::vector<int> weld_groups(const SceneParts& parts) {
  std::vector<bool> has_joint(parts.bodies.size(), false);
  for (const JointPart& j : parts.joints)
    has_joint[j.body] = true;
  std::vector<int> group(parts.bodies.size(), 0);
  for (std::size_t b = 1; b < parts.bodies.size(); ++b)
    group[b] = has_joint[b] || parts.bodies[b].mocap ? static_cast<int>(b) : group[parts.bodies[b].parent];
  return group;
}

/// Which geometries may collide, by masks, groups and the kinematic tree.
class PairFilter {
 public:
  PairFilter(const SceneParts& parts, const Model& model) : parts_(parts), model_(model), group_(weld_groups(parts)) {
    for (const auto& e : parts.excludes)
      excluded_.insert(std::minmax(e[0], e[1]));
  }

  /// Two half-spaces or surfaces, two bodies that nothing moves, and one body do not.
  bool can_move_apart(const GeometryPart& a, const GeometryPart& b) const {
    if (is_ground(a.type) && is_ground(b.type)) return false;
    if (model_.body_tree[a.body] < 0 && model_.body_tree[b.body] < 0) return false;
    return group_[a.body] != group_[b.body];
  }

  /// The same, and nothing keeps them from colliding.
  bool operator()(const GeometryPart& a, const GeometryPart& b) const {
    if (!can_move_apart(a, b)) return false;
    if (!((a.contype & b.conaffinity) || (b.contype & a.conaffinity))) return false;
    if (a.no_collision_group >= 0 && a.no_collision_group == b.no_collision_group) return false;

    // MuJoCo's rules: a moving body and its parent do not collide, nor do those that are excluded.
    const int ga = group_[a.body];
    const int gb = group_[b.body];
    if (parts_.filter_parent_child && ga != 0 && gb != 0 && (parent_group(ga) == gb || parent_group(gb) == ga))
      return false;
    return !excluded_.count(std::minmax(a.body, b.body));
  }

 private:
  int parent_group(int group) const { return group_[parts_.bodies[group].parent]; }
  const SceneParts& parts_;
  const Model& model_;
  std::vector<int> group_;
  std::set<std::pair<int, int>> excluded_;
};

/// Appends a pair with its combined material.
void add_pair(int a, int b, const PairOverride& own, double margin, Model& m) {
  const GeometryMaterial& of_a = m.geometry_materials[a];
  const GeometryMaterial& of_b = m.geometry_materials[b];
  const PairMaterial material = combine_materials(of_a, of_b, own);
  m.pair_a.push_back(a);
  m.pair_b.push_back(b);
  m.pair_overrides.push_back(own);
  m.pair_friction.push_back(material.friction);
  m.pair_restitution.push_back(material.restitution);
  m.pair_compliance.push_back(material.compliance);
  m.pair_torsional_friction.push_back(material.torsional_friction);
  m.pair_rolling_friction.push_back(material.rolling_friction);
  m.pair_penalty.push_back(combine_penalty(of_a.penalty, of_b.penalty, own));
  m.pair_margin.push_back(margin);
}

/// Ascending by (a, b): those that the masks let collide, and those that the scene lists.
void list_pairs(const SceneParts& parts, double margin, Model& m) {
  // What the scene lists collides whatever its masks say; the later entry of a pair counts.
  const PairFilter may_collide(parts, m);
  std::map<std::pair<int, int>, PairOverride> listed;
  for (const PairPart& p : parts.pairs) {
    const std::pair<int, int> key = std::minmax(p.a, p.b);
    if (may_collide.can_move_apart(parts.geometries[key.first], parts.geometries[key.second]))
      listed[key] = {p.friction, p.restitution, std::nullopt, p.torsional_friction, p.rolling_friction, p.condim};
  }

  // The list is sorted as the loop runs.
  auto next = listed.cbegin();
  for (int a = 0; a < m.num_geometries; ++a)
    for (int b = a + 1; b < m.num_geometries; ++b) {
      if (next != listed.cend() && next->first == std::pair(a, b)) {
        add_pair(a, b, next->second, margin, m);
        ++next;
      } else if (may_collide(parts.geometries[a], parts.geometries[b])) {
        add_pair(a, b, {}, margin, m);
      }
    }
}

/// Keyframes of a part of the scene are neutral in all others.
void copy_keyframes(const SceneParts& parts, Model& m) {
  for (const KeyframePart& k : parts.keyframes) {
    Keyframe full{k.values.name, m.q_neutral, std::vector<double>(m.nv, 0.0), std::vector<double>(m.nu, 0.0)};
    std::copy(k.values.q.begin(), k.values.q.end(), full.q.begin() + k.first_q);
    std::copy(k.values.v.begin(), k.values.v.end(), full.v.begin() + k.first_v);
    std::copy(k.values.u.begin(), k.values.u.end(), full.u.begin() + k.first_u);
    m.keyframes.push_back(std::move(full));
  }
}

/// Without a robot read by Pinocchio: the model Pinocchio would have with the same joints, in our order.
PinocchioMap default_map(const Model& m) {
  PinocchioMap map{"model", m.nq, m.nv, {}};
  for (int j = 0; j < m.num_joints; ++j) {
    using Kind = PinocchioJoint::Kind;
    const Kind kind = m.joint_type[j] == JointType::free   ? Kind::free
                      : m.joint_type[j] == JointType::ball ? Kind::ball
                                                           : Kind::scalar;
    map.joints.push_back({kind, m.joint_q[j], m.joint_v[j], m.joint_q[j], m.joint_v[j], {0, 0, 0}, {1, 0, 0, 0}});
  }
  return map;
}

}  // namespace

std::shared_ptr<const Model> build_model(const SceneParts& parts, const Vec3& gravity, double timestep,
                                         double contact_margin) {
  auto model = std::make_shared<Model>();
  Model& m = *model;

  // Bodies, joints, geometries, and the indices between them.
  m.gravity = gravity;
  m.timestep = timestep;
  m.medium = parts.medium.value_or(Medium{});
  copy_bodies(parts, m);
  copy_joints(parts, m);
  copy_geometries(parts, m);
  finalize_topology(m);

  // Elements that need no arrays of their own.
  m.tendons = parts.tendons;
  find_tendon_dofs(m);
  m.actuators = parts.actuators;
  m.nu = static_cast<int>(m.actuators.size());
  m.equalities = parts.equalities;
  m.sites = parts.sites;
  m.sensors = parts.sensors;
  m.ignored = parts.ignored;
  m.deviations = parts.deviations;
  copy_keyframes(parts, m);
  m.pinocchio_maps = parts.pinocchio_maps;
  if (m.pinocchio_maps.empty()) {
    m.pinocchio_maps.push_back(default_map(m));
  }

  // What moves has to be a rigid body, and M positive definite.
  for (int b = 1; b < m.num_bodies; ++b)
    if (m.body_tree[b] >= 0)
      check_inertia("body '" + m.body_names[b] + "'", parts.bodies[b].mass, parts.bodies[b].com,
                    parts.bodies[b].inertia);
  const NeutralInertia neutral(m);
  check_mass_matrix(m, neutral);

  // Pairs, and the weights of all rows.
  list_pairs(parts, contact_margin, m);
  set_constraint_weights(neutral, m);
  set_file_softness(parts, neutral, m);
  return model;
}

}  // namespace coulomb
