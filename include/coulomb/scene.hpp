// Scene: the builder of Models. Verbs add bodies and whole robots; build() checks everything and returns an immutable Model.
// Start here, then scene_parts.hpp: what loaders of one's own append.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coulomb/model.hpp"
#include "coulomb/scene_parts.hpp"

namespace coulomb {

struct MujocoArrays;
struct RobotDescription;

/// Contacts are made below this distance (metres): wide enough that a body at rest on a surface, off by rounding, keeps its
/// contacts; far too small to be seen.
inline constexpr double default_contact_margin = 1e-6;

struct SceneOptions {
  std::optional<std::array<double, 3>> gravity;  ///< m/s^2; unset: (0, 0, -9.81) or what an MJCF file says
  std::optional<double> timestep;                ///< s; unset: 1e-3 or what an MJCF file says
  double contact_margin =
      default_contact_margin;  ///< m, >= 0: contacts are made below, and where the step closes the gap
};

struct GroundOptions {
  /// unset: the partner's; both unset: 1 and 0
  std::optional<double> friction;
  std::optional<double> restitution;

  double compliance = 0;                  ///< m/(N s): velocity per impulse
  PenaltyMaterial penalty;                ///< springs; its stiffness and dashpot for every contact
  double height = 0;                      ///< m: the plane passes through height * normal
  std::array<double, 3> normal{0, 0, 1};  ///< any length > 0
  std::string name = "ground";
  std::optional<double> torsional_friction;  ///< m, >= 0: torque about the normal over its force; unset: the partner's
  std::optional<double> rolling_friction;    ///< m, >= 0: torque against rolling over the normal force
};

/// Scenery of triangles, solid behind them; fixed to the world.
struct SurfaceOptions {
  std::array<double, 3> position{0, 0, 0};       ///< m, world: of the frame of the triangles
  std::array<double, 4> quaternion{1, 0, 0, 0};  ///< w x y z, unit to 1e-6

  /// unset: the partner's; both unset: 1 and 0; both set: the larger
  std::optional<double> friction;
  std::optional<double> restitution;

  double compliance = 0;                     ///< m/(N s)
  PenaltyMaterial penalty;                   ///< springs; its stiffness and dashpot for every contact
  std::string name;                          ///< default heightfield or triangle_mesh; a taken name is an error
  std::optional<double> torsional_friction;  ///< m, >= 0: torque about the normal over its force; unset: the partner's
  std::optional<double> rolling_friction;    ///< m, >= 0: torque against rolling over the normal force
};

using HeightFieldOptions = HeightField;  ///< as it was called

struct ShapeOptions {
  std::optional<double> mass;                    ///< kg; or
  std::optional<double> density;                 ///< kg/m^3 (default 1000)
  std::array<double, 3> position{0, 0, 0};       ///< m, world
  std::array<double, 4> quaternion{1, 0, 0, 0};  ///< w x y z, unit to 1e-6

  /// unset: the partner's; both unset: 1 and 0; both set: the larger
  std::optional<double> friction;
  std::optional<double> restitution;

  double compliance = 0;               ///< m/(N s); those of the two partners add
  PenaltyMaterial penalty;             ///< springs; its stiffness and dashpot for every contact
  std::vector<double> contact_points;  ///< 3 n, m, body frame: where penalty contact looks instead of the whole surface

  /// Ixx Ixy Iyy Ixz Iyz Izz about the centre of mass; default from shape and mass
  std::optional<std::array<double, 6>> inertia;

  bool fixed = false;  ///< scenery: no joint, no motion
  std::string name;    ///< of body and geometry; default box, box_2, ...; a taken name is an error
  std::optional<double> torsional_friction;  ///< m, >= 0: torque about the normal over its force; unset: the partner's
  std::optional<double> rolling_friction;    ///< m, >= 0: torque against rolling over the normal force
};

/// An actuator that a user asks for. length and speed are the joint's, times the gear:
///
///   motor      force = u
///   position   force = kp (u - length) - kd speed
///   velocity   force = kd (u - speed)
struct ActuatorOptions {
  std::string kind = "motor";  ///< "motor", "position" or "velocity"
  std::optional<double> kp;    ///< N/m or N m/rad, > 0; position only, and needed there
  std::optional<double> kd;    ///< N s/m or N m s/rad, >= 0; position (default 0) and velocity (needed)

  /// Force on each dof of the joint per unit of actuator force: 1, 3 or 6; empty: 1 (one dof only)
  std::vector<double> gear;

  std::optional<std::array<double, 2>> control_range;  ///< u is clamped to it
  std::optional<std::array<double, 2>> force_range;    ///< and the force before the gear to this
  std::string name;                                    ///< default: the joint's
};

/// A gain of every motor of a robot: one for all, or by the name of the joint.
struct JointGains {
  std::optional<double> all;
  std::map<std::string, double> of_joint;
  bool given() const { return all || !of_joint.empty(); }
};

/// Joint limits of a robot's file as springs with a stiffness (N/m or N m/rad, > 0) and a dashpot that acts while a limit is reached
/// (N s/m or N m s/rad). Unset: rigid.
struct LimitSprings {
  JointGains stiffness;
  JointGains dashpot;
};

/// The limits of one joint; unset: as it was. A joint without limits has none on a side that is not given.
struct JointLimitOptions {
  std::optional<double> lower;      ///< m or rad; not of a ball
  std::optional<double> upper;      ///< m or rad; of a ball the largest angle
  std::optional<double> stiffness;  ///< N/m or N m/rad, > 0, or infinity: rigid
  std::optional<double> dashpot;    ///< N s/m or N m s/rad, >= 0, with a stiffness
};

/// How the motors of a robot's file are modelled.
struct MotorOptions {
  std::string kind = "motor";
  JointGains kp;
  JointGains kd;
};

struct UrdfOptions {
  bool floating_base = false;
  std::array<double, 3> position{0, 0, 0};  ///< of the base, world
  std::array<double, 4> quaternion{1, 0, 0, 0};
  std::vector<std::string> package_dirs;  ///< where package:// is looked up; the URDF's own folders are tried too
  std::optional<double> friction;
  std::optional<double> restitution;
  double compliance = 0;
  bool self_collision = true;  ///< links that are not neighbours collide
  bool actuators = true;       ///< one motor per joint dof that no mimic couples, its force <= effort limit
  MotorOptions motors;         ///< what kind of motors
  LimitSprings limits;
  bool balance_inertia = false;        ///< inertias that no body can have become the nearest ones that one can
  std::optional<double> link_density;  ///< kg/m^3: links without mass have that of their collision shapes; unset: none
  bool ignore_mimic = false;  ///< mimic joints are independent; default: coupled to their leader by an equality

  /// Points (3 n, m) of a mesh file; `what` it is, for messages. Unset: read by Assimp, where the library was built with it
  std::function<std::vector<double>(const std::string& path, const std::string& what)> read_mesh;

  /// The same, times the scale of its axes, cut into convex pieces, each by its points; where it is set, read_mesh is not asked.
  std::function<std::vector<std::vector<double>>(const std::string& path, const std::array<double, 3>& scale,
                                                 const std::string& what)>
      read_pieces;

  std::string name;  ///< default: the robot's name in the file, made unique; a taken name is an error
};

struct MjcfOptions {
  bool use_options = true;  ///< take gravity and time step from the file
  std::string name;         ///< default: the model's name in the file, made unique; a taken name is an error
  LimitSprings limits;
  bool file_softness = false;  ///< contacts and joint limits are as soft as the file says (solref, solimp); else rigid
};

/// Options for robots that come as a RobotDescription.
struct RobotOptions {
  std::array<double, 3> position{0, 0, 0};  ///< of a fixed base, or the neutral place of a free one
  std::array<double, 4> quaternion{1, 0, 0, 0};
  std::optional<double> friction;
  std::optional<double> restitution;
  double compliance = 0;
  bool actuators = true;
  MotorOptions motors;
  bool balance_inertia = false;
  std::string name;
};

/// How a geometry gives way, its surface, and where penalty contact looks on it; unset: as it was.
struct ContactOptions {
  /// as in PenaltyMaterial
  std::optional<double> stiffness;
  std::optional<double> damping;
  std::optional<double> friction_stiffness;
  std::optional<double> scale;
  std::optional<double> dashpot;

  std::optional<std::vector<double>> points;  ///< 3 n, m, geometry frame

  /// of two that are set the larger counts
  std::optional<double> friction;
  std::optional<double> restitution;
  std::optional<double> torsional_friction;
  std::optional<double> rolling_friction;
};

/// Contact properties of two geometries together, which override those of their surfaces; unset: unchanged.
struct PairOptions {
  std::optional<double> friction;
  std::optional<double> restitution;
  std::optional<double> torsional_friction;
  std::optional<double> rolling_friction;
};

/// The elements that a call added: indices into the Model that build() will return.
struct SceneElement {
  std::string name;
  int first_body = 0;
  int num_bodies = 0;
  int first_joint = 0;
  int num_joints = 0;
  int first_geometry = 0;
  int num_geometries = 0;
};

/// Every verb throws std::invalid_argument (naming argument, element and value) and then leaves the scene as it was.
class Scene {
 public:
  explicit Scene(const SceneOptions& options = {});
  ~Scene();
  Scene(const Scene& other);
  Scene(Scene&& other) noexcept;
  Scene& operator=(const Scene& other);
  Scene& operator=(Scene&& other) noexcept;

  /// A line of Model::deviations and Model::ignored: what was changed on the way here.
  void add_deviation(const std::string& line);

  SceneElement add_ground(const GroundOptions& options = {});
  SceneElement add_box(const std::array<double, 3>& size, const ShapeOptions& options = {});  ///< full side lengths
  SceneElement add_sphere(double radius, const ShapeOptions& options = {});
  SceneElement add_capsule(double radius, double length,
                           const ShapeOptions& options = {});  ///< length between the cap centres, along z
  SceneElement add_cylinder(double radius, double length, const ShapeOptions& options = {});  ///< along z
  SceneElement add_ellipsoid(const std::array<double, 3>& semi_axes, const ShapeOptions& options = {});
  /// Convex hull of the points (3 n coordinates); the body frame is the frame of the points.
  SceneElement add_mesh(const std::vector<double>& vertices, const ShapeOptions& options = {});

  /// Ground by its heights.
  SceneElement add_heightfield(const HeightField& field, const SurfaceOptions& options = {});
  /// Scenery of triangles, convex or not. vertices: 3 n, m; triangles: 3 m indices, counter-clockwise seen from outside. An edge has two
  /// triangles at most.
  SceneElement add_triangle_mesh(const std::vector<double>& vertices, const std::vector<int>& triangles,
                                 const SurfaceOptions& options = {});

  SceneElement add_urdf(const std::string& path_or_xml, const UrdfOptions& options = {});
  SceneElement add_mjcf(const std::string& path_or_xml, const MjcfOptions& options = {});
  SceneElement add_mujoco_arrays(const MujocoArrays& arrays, const MjcfOptions& options = {});
  /// A robot of another program: Python passes objects of the `pin` package this way. Links that are not listed as pairs do
  /// not collide with one another; frames are Model.sites.
  SceneElement add_robot(const RobotDescription& robot, const RobotOptions& options = {});

  /// Drives a joint added before, a loaded robot's too, by its name. Returns the actuator's name; u has its place last.
  std::string add_actuator(const std::string& joint, const ActuatorOptions& options = {});

  /// For a hinge, slide or ball added before, a loaded robot's too, by its name.
  void set_joint_limits(const std::string& joint, const JointLimitOptions& options);

  /// For a geometry added before, a loaded robot's too, by its name.
  void set_contact(const std::string& geometry, const ContactOptions& options);

  /// For two geometries of different bodies, which then touch whatever their masks say.
  void set_contact(const std::string& a, const std::string& b, const PairOptions& options);

  /// Joins what a loader read; loaders of one's own enter here.
  SceneElement append(SceneParts parts, const std::string& name);

  std::shared_ptr<const Model> build() const;

  /// The elements added so far.
  const SceneParts& parts() const { return parts_; }

 private:
  template <class Archive>
  friend void fields(Archive& archive, Scene& scene);  // scene_archive.cpp

  SceneElement add_shape(ShapeType type, const std::array<double, 3>& size, std::shared_ptr<const ConvexMesh> mesh,
                         const char* kind, const ShapeOptions& options);

  SceneElement add_surface(const std::string& what, std::shared_ptr<const TriangleSurface> surface, const char* kind,
                           const SurfaceOptions& options);
  void check_surface(const std::string& what, const SurfaceOptions& options) const;

  /// Its index; throws, after `what`, if there is none.
  int joint_named(const std::string& what, const std::string& joint) const;
  int geometry_named(const std::string& what, const std::string& geometry) const;
  /// Throws if the name that was asked for is that of a robot added before.
  void check_robot_name(const std::string& verb, const std::string& name) const;
  /// append, under a name of its own among robots.
  SceneElement append_robot(SceneParts parts, const std::string& name);

  struct Names;  // that are taken
  SceneOptions options_;
  SceneParts parts_;
  std::unique_ptr<Names> names_;
};

/// Scenes as bytes: what was added so far, with the names that are taken. A scene that is read again builds the same model, and goes on.
std::string save_scene(const Scene& scene);
/// Throws std::invalid_argument for bytes that save_scene did not write: "scene: ...".
Scene load_scene(std::string_view bytes);

}  // namespace coulomb
