// Sites, and what can be read off a model: frames, joints, actuators, centres of mass, touch. A sensor of an MJCF file and an output
// that a user names ("position/foot") are the same thing, a Sensor; docs/outputs.md has the list.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace coulomb {

struct Model;

/// A frame that rides on a body: at (pos, quat) in it; at a geometry, wherever its placement puts it; or at the centre of mass.
struct Frame {
  int body = 0;
  int geometry = -1;
  bool at_com = false;
  std::array<double, 3> pos{};
  std::array<double, 4> quat{1, 0, 0, 0};
};

enum class ZoneType : std::uint8_t { sphere, capsule, ellipsoid, cylinder, box };

/// A named frame with a volume, the zone of touch sensors. Links that a fixed joint welds to a body, and frames of `pin`, are sites too.
struct Site {
  std::string name;
  Frame frame;
  std::optional<std::vector<int>> geometries;  ///< of a welded link: its own (the body has them all); unset: not a link
  ZoneType zone = ZoneType::sphere;
  std::array<double, 3> size{0.005, 0.005, 0.005};  ///< as Model::geometry_size
};

/// Frame quantities are in world axes; with a reference frame, relative to it and in its axes. Forces and contacts of the last step
/// (is_force) come from `touch` to `equality_force` and from `tendon_actuator_force` to `frame_angular_acceleration`; the others are functions of a state (q, v).
enum class SensorType : std::uint8_t {
  position,
  orientation,  ///< quaternion; its tangent is in the frame's own axes
  x_axis,
  y_axis,
  z_axis,
  velocity,
  angular_velocity,
  velocimeter,  ///< the frame's velocity in its own axes
  gyro,         ///< the frame's angular velocity in its own axes
  joint_position,
  joint_velocity,
  subtree_com,
  subtree_velocity,  ///< of the centre of mass
  actuator_position,
  actuator_velocity,
  joint_limit_position,  ///< gap to a limit that is violated, or 0
  joint_limit_velocity,  ///< its rate
  touch,                 ///< sum of the normal forces on the site's body whose line meets the site's zone
  actuator_force,
  joint_actuator_force,
  joint_limit_force,
  contact_force,  ///< sum of the contact forces on a body, on a geometry (Frame::geometry) or on `geometries`, world axes
  joint_friction_force,  ///< of dry friction, per dof
  accelerometer,         ///< mean acceleration of the frame's origin in the step less gravity, in its own axes
  interaction_force,     ///< on the frame's body with all that hangs on it, from its parent, in the frame's axes
  interaction_torque,    ///< the same, about the frame's origin
  equality_force,  ///< of the rows: connect 3 (on body a, world axes), weld 6 (force and torque), joint and tendon 1 (on joint_a, along tendon_a)
  tendon_length,
  tendon_velocity,
  tendon_limit_position,  ///< as joint_limit_position
  tendon_limit_velocity,
  rangefinder,   ///< along the frame's z axis to the first geometry of another body, m; -1: there is none
  magnetometer,  ///< Sensor::field in the frame's own axes
  inside_site,   ///< 1 where the frame's origin is in the site's zone, else 0
  distance,      ///< signed, m: least of the geometries of one group to those of another, at most the cutoff
  tendon_actuator_force,
  tendon_limit_force,
  contact,                     ///< numbers of the contacts between two groups of geometries: ContactSelection
  frame_acceleration,          ///< as accelerometer, world axes
  frame_angular_acceleration,  ///< mean of the step, rad/s^2, world axes
  potential_energy,            ///< J, of weights and springs of the model
  kinetic_energy,              ///< J, of the model
  subtree_angular_momentum,    ///< about its centre of mass, world axes
  distance_normal,  ///< unit, world axes, from one group to the other where they are nearest; zero: they are farther apart than the cutoff
  distance_segment,  ///< the two nearest points, world axes; zero as well
};

/// Geometries that a sensor looks at.
struct GeometryGroup {
  enum class Of : std::uint8_t { all, geometry, body, subtree, none };
  Of of = Of::all;
  int index = -1;  ///< of the geometry, or of the body
};

/// Of more contacts than a sensor has room for: the first ones, the nearest, the strongest; or one wrench for all of them.
enum class ContactReduction : std::uint8_t { none, nearest, strongest, net };

/// Which contacts a sensor has, and what it tells of each: `num` times the fields in their order. Normals go from the first group to the second;
/// forces act on the second.
struct ContactSelection {
  /// Bits of `fields`.
  enum Field : std::uint32_t {
    found = 1,
    force = 2,
    torque = 4,
    distance = 8,
    position = 16,
    normal = 32,
    tangent = 64
  };
  std::array<GeometryGroup, 2> groups;
  ContactReduction reduction = ContactReduction::none;
  int num = 1;
  std::uint32_t fields = found;
};

struct Sensor {
  std::string name;
  SensorType type = SensorType::position;
  Frame frame;
  std::optional<Frame> reference;
  int index =
      -1;  ///< of the joint, the tendon, the actuator, the equality, the subtree's root body, the touch sensor's site

  /// contact_force: of these alone; unset: of the frame's geometry or body
  std::optional<std::vector<int>> geometries;

  double cutoff = 0;  ///< > 0: readings are clamped to +-cutoff (forces of contacts and limits: from above)

  /// contact: which, and what of them (index: the site that they lie in, or -1); distance: its groups.
  std::optional<ContactSelection> contacts;
  std::array<double, 3> field{};  ///< magnetometer: world axes, any unit
};

/// A function of the last step's impulses, contacts or joint forces, not of a state.
bool is_force(SensorType type);
/// Numbers of a reading, and of its tangent (orientations: 4 and 3).
int sensor_size(const Model& model, const Sensor& sensor);
int sensor_tangent_size(const Model& model, const Sensor& sensor);
const char* sensor_unit(const Model& model, const Sensor& sensor);

/// The output of that name: "kind/element", or "sensor/<name>" for one of Model::sensors. Throws std::invalid_argument.
Sensor find_output(const Model& model, const std::string& name);
/// The names of all outputs of states and of sensors, these last.
std::vector<std::string> output_names(const Model& model);
/// And of the forces of a step that something in the model can exert.
std::vector<std::string> force_output_names(const Model& model);

/// Some outputs in the caller's order, as one vector of readings and one of tangents.
class OutputSet {
 public:
  OutputSet() = default;
  OutputSet(const Model& model, const std::vector<std::string>& names);  ///< throws for unknown or repeated names

  struct Item {
    Sensor sensor;  ///< name: as asked for
    int first = 0;
    int size = 0;
    int first_tangent = 0;
    int tangent_size = 0;
  };
  const std::vector<Item>& items() const { return items_; }
  int size() const { return size_; }
  int tangent_size() const { return tangent_size_; }

 private:
  std::vector<Item> items_;
  int size_ = 0;
  int tangent_size_ = 0;
};

}  // namespace coulomb
