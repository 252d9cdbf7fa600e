// A robot as other programs describe one: joints, what moves with them, frames and shapes. The URDF loader fills it, Python fills it from
// objects of the `pin` package, loaders of one's own may; Scene::add_robot takes it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "coulomb/scene_parts.hpp"

namespace coulomb {

/// hinge, slide: with limits; continuous: a hinge without; ball_zyx: three hinges in a row, about z, y, x; translation: slides along x, y, z;
/// planar: two slides across the axis (x and y of z, y and z of x, z and x of y), then a hinge about it; free: on the world only.
enum class RobotJointType : std::uint8_t { hinge, continuous, slide, ball, ball_zyx, translation, planar, free };

/// Mass and inertia of everything that moves with a joint, in the joint's frame.
struct RobotInertia {
  double mass = 0;
  Vec3 com{0, 0, 0};
  std::array<double, 6> inertia{};  ///< Ixx Ixy Iyy Ixz Iyz Izz about the com
};

struct RobotJoint {
  std::string name;
  RobotJointType type = RobotJointType::hinge;
  int parent = -1;      ///< a joint before this one; -1: the world
  Placement placement;  ///< in the parent joint's frame, at zero motion
  Vec3 axis{0, 0, 1};   ///< of hinge, continuous, slide and planar
  RobotInertia inertia;

  /// where its coordinates begin in the other program's q and v
  int q = 0;
  int v = 0;

  /// one entry a degree of freedom; empty: none
  std::vector<double> lower;
  std::vector<double> upper;
  std::vector<double> damping;
  std::vector<double> armature;
  std::vector<double> dry_friction;
  std::vector<double> effort;  ///< the largest force or torque of its motor
};

/// A named place on what moves with a joint. The first link of a joint gives the body its name; other frames become sites.
struct RobotFrame {
  std::string name;
  int joint = -1;  ///< -1: the world
  Placement placement;
  bool is_link = true;
};

struct RobotShape {
  std::string name;
  int joint = -1;  ///< -1: the world
  int frame = -1;  ///< the link that it belongs to
  Placement placement;
  ShapeType type = ShapeType::sphere;
  Vec3 size{0, 0, 0};
  std::vector<double> points;  ///< 3 n, m: of a mesh, which becomes their hull
  bool collides = true;
};

struct RobotDescription {
  std::string name;
  std::string source;  ///< opens error messages: "URDF 'robot.urdf'"

  /// sizes of the other program's vectors
  int nq = 0;
  int nv = 0;

  RobotInertia base;  ///< of what is fixed to the world
  std::vector<RobotJoint> joints;
  std::vector<RobotFrame> frames;
  std::vector<RobotShape> shapes;
  std::vector<std::pair<int, int>> pairs;  ///< of shapes that touch
};

}  // namespace coulomb
