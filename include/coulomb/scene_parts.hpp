// What every loader hands to the Scene: bodies, joints, geometries and the rest as lists of small structs, indices local to the list
// (body 0 is the world). The Scene appends lists to one another and flattens the whole into a Model.
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coulomb/model.hpp"

namespace coulomb {

using Vec3 = std::array<double, 3>;
using Quat = std::array<double, 4>;  ///< w x y z

struct Placement {
  Vec3 pos{0, 0, 0};
  Quat quat{1, 0, 0, 0};
};

struct BodyPart {
  std::string name;
  int parent = 0;
  Placement placement;  ///< in the parent's frame at zero joint motion
  double mass = 0;
  Vec3 com{0, 0, 0};
  std::array<double, 6> inertia{};      ///< Ixx Ixy Iyy Ixz Iyz Izz about the com, body axes
  bool mocap = false;                   ///< fixed, but no part of the world for the parent-child filter (MuJoCo)
  double gravity_compensation = 0;      ///< share of its weight that is taken away
  std::optional<MediumBox> medium_box;  ///< unset: that of its inertia
  std::vector<MediumEllipsoid> medium_ellipsoids;  ///< any: the medium sees them instead
};

struct JointPart {
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  std::string name;
  JointType type = JointType::hinge;
  int body = 0;
  Vec3 pos{0, 0, 0};
  Vec3 axis{0, 0, 1};
  bool limited = false;
  double lower = 0;
  double upper = 0;
  double limit_stiffness = 0;
  double limit_dashpot = 0;
  std::optional<Softness> limit_softness;  ///< in place of both
  double stiffness = 0;
  double actuator_lower = -infinity;
  double actuator_upper = infinity;

  /// first 1, 4 or 7 entries
  std::array<double, 7> q_neutral{};
  std::array<double, 7> q_spring{};

  /// first 1, 3 or 6 entries
  std::array<double, 6> damping{};
  std::array<double, 6> armature{};
  std::array<double, 6> dry_friction{};
  std::optional<Softness> friction_softness;
};

struct GeometryPart {
  std::string name;
  ShapeType type = ShapeType::sphere;
  int body = 0;
  int mesh = -1;  ///< of meshes or, for a surface, of surfaces
  Placement placement;
  Vec3 size{0, 0, 0};

  /// unset: the partner's
  std::optional<double> friction;
  std::optional<double> restitution;

  double compliance = 0;
  PenaltyMaterial penalty;
  std::optional<ContactSoftness> softness;  ///< unset: the partner's; a stiffness of either geometry comes first
  std::vector<double> contact_points;       ///< 3 n, geometry frame
  unsigned contype = 1;
  unsigned conaffinity = 1;

  /// MuJoCo's meaning; condim 1: frictionless; 4, 6: the further coefficients (m) act, too
  int priority = 0;
  int condim = 3;
  std::optional<double> torsional_friction;
  std::optional<double> rolling_friction;

  int no_collision_group =
      -1;  ///< geometries of one group >= 0 do not collide with one another (explicit pairs still do)
};

struct PairPart {
  /// geometries; collide whatever their masks say
  int a = 0;
  int b = 0;

  /// unset: combined from the geometries
  std::optional<double> friction;
  std::optional<double> restitution;
  std::optional<ContactSoftness> softness;
  std::optional<double> torsional_friction;
  std::optional<double> rolling_friction;
  std::optional<int> condim;  ///< unset: as the geometries have it
};

struct KeyframePart {
  Keyframe values;  ///< of the joints and actuators from these indices on
  int first_q = 0;
  int first_v = 0;
  int first_u = 0;
};

struct SceneParts {
  SceneParts() : bodies(1) {
    bodies[0].name = "world";
    bodies[0].parent = -1;
  }
  std::vector<BodyPart> bodies;
  std::vector<JointPart> joints;  ///< sorted by body
  std::vector<GeometryPart> geometries;
  std::vector<std::shared_ptr<const ConvexMesh>> meshes;
  std::vector<std::shared_ptr<const TriangleSurface>> surfaces;
  std::vector<PairPart> pairs;
  std::vector<std::array<int, 2>> excludes;  ///< bodies
  std::vector<Tendon> tendons;
  std::vector<Actuator> actuators;
  std::vector<Equality> equalities;
  std::vector<KeyframePart> keyframes;
  std::vector<Site> sites;
  std::vector<Sensor> sensors;
  std::vector<PinocchioMap> pinocchio_maps;

  /// Model's; a deviation is in both
  std::vector<std::string> ignored;
  std::vector<std::string> deviations;

  void deviate(const std::string& line) {
    ignored.push_back(line);
    deviations.push_back(line);
  }
  int num_collision_groups = 0;
  bool filter_parent_child = true;
  // options that the file itself sets
  std::optional<Vec3> gravity;
  std::optional<double> timestep;
  std::optional<Medium> medium;
};

}  // namespace coulomb
