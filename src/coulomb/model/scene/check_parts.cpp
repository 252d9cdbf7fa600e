#include "coulomb/model/scene/check_parts.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/scene/topology.hpp"
#include "coulomb/model/tendon.hpp"

namespace coulomb {
namespace {

/// The last value of each enumeration.
constexpr JointType last_joint_type = JointType::hinge;
constexpr ShapeType last_shape_type = ShapeType::surface;
constexpr EqualityType last_equality_type = EqualityType::tendon;
constexpr SensorType last_sensor_type = SensorType::distance_segment;
constexpr ZoneType last_zone_type = ZoneType::box;

/// How many bytes the character at `at` has; 0 where none begins: UTF-8 has one way to write each, and none for halves of pairs.
int bytes_of_character(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    if (i >= text.size()) return 0u;
    return static_cast<unsigned char>(text[i]);
  };

  // The first byte says how many follow.
  const unsigned first = byte(at);
  if (first < 0x80) return 1;
  const int count = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;

  // Six bits of each byte that follows.
  unsigned character = first & (0x7fu >> count);
  for (int i = 1; i < count; ++i) {
    const unsigned next = byte(at + i);
    const bool follows = (next & 0xc0) == 0x80;
    if (!follows) return 0;
    character = character << 6 | (next & 0x3f);
  }

  // The first character that needs so many bytes.
  constexpr unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool half_of_a_pair = character >= 0xd800 && character < 0xe000;
  const bool first_byte_ok = first >= 0xc0 && first < 0xf8;
  const bool shortest = character >= least[count];
  const bool known = character < 0x110000 && !half_of_a_pair;
  return first_byte_ok && shortest && known ? count : 0;
}

/// Names are read by others, Python among them, which has no text that is not UTF-8.
void utf8(const std::string& what, const std::string& name) {
  bool good = true;
  std::ostringstream shown;
  for (std::size_t at = 0; at < name.size();) {
    const int count = bytes_of_character(name, at);
    const auto value = static_cast<unsigned char>(name[at]);
    if (count > 0)
      shown << name.substr(at, count);
    else
      shown << "\\x" << std::hex << static_cast<int>(value);
    good = good && count > 0;
    at += std::max(count, 1);
  }
  if (!good) {
    checks::fail(what, "'" + shown.str() + "' is not UTF-8");
  }
}

class Checker {
 public:
  Checker(const std::string& robot, const SceneParts& parts) : robot_("'" + robot + "': "), parts_(parts) {
    names();
    for (const JointPart& joint : parts.joints) {
      if (joint.type > last_joint_type) {
        const std::string what = robot_ + "joint '" + joint.name + "'";
        checks::fail(what + " type", "unknown value of its enumeration");
      }

      // How many coordinates the robot has.
      nq_ += joint_num_q(joint.type);
      nv_ += joint_num_v(joint.type);
    }
  }

  /// Before any of them is said in an error.
  void names() const {
    const auto of = [this](const char* kind, const auto& list, const auto& name) {
      int number = 0;
      for (const auto& part : list) {
        const std::string which = std::string(kind) + " number " + std::to_string(number);
        utf8(robot_ + which + " name", name(part));
        ++number;
      }
    };
    const auto own = [](const auto& part) -> const std::string& { return part.name; };
    of("body", parts_.bodies, own);
    of("joint", parts_.joints, own);
    of("geometry", parts_.geometries, own);
    of("tendon", parts_.tendons, own);
    of("actuator", parts_.actuators, own);
    of("equality", parts_.equalities, own);
    of("keyframe", parts_.keyframes, [](const auto& key) -> const std::string& { return key.values.name; });
    of("site", parts_.sites, own);
    of("sensor", parts_.sensors, own);
  }

  void bodies() const {
    for (std::size_t b = 1; b < parts_.bodies.size(); ++b) {
      const BodyPart& body = parts_.bodies[b];
      const std::string what = robot_ + "body '" + body.name + "'";
      // Parents come first.
      index(what + " parent", body.parent, 0, static_cast<int>(b) - 1);
      placement(what, body.placement);

      // What it weighs.
      checks::not_negative(what + " mass", body.mass);
      checks::finite(what + " com", body.com.data(), 3);
      checks::finite(what + " inertia", body.inertia.data(), 6);
      for (const MediumEllipsoid& ellipsoid : body.medium_ellipsoids)
        medium_ellipsoid(what + " ellipsoid in the medium", ellipsoid);
    }
  }

  static void medium_ellipsoid(const std::string& what, const MediumEllipsoid& ellipsoid) {
    checks::finite(what + " pos", ellipsoid.pos.data(), 3);
    checks::unit_quaternion(what + " quat", ellipsoid.quat);
    for (const double semiaxis : ellipsoid.semiaxes)
      checks::positive(what + " semiaxes", semiaxis);
    checks::finite(what + " coefficients", ellipsoid.coefficients.data(), 5);
    checks::finite(what + " virtual_mass", ellipsoid.virtual_mass.data(), 3);
    checks::finite(what + " virtual_inertia", ellipsoid.virtual_inertia.data(), 3);
    checks::not_negative(what + " scale", ellipsoid.scale);
  }

  void joints() const {
    for (const JointPart& joint : parts_.joints) {
      const std::string what = robot_ + "joint '" + joint.name + "'";
      index(what + " body", joint.body, 1, last_body());
      checks::finite(what + " pos", joint.pos.data(), 3);
      if (is_scalar(joint)) {
        checks::unit_vector(what + " axis", joint.axis);
      }

      // How far it goes, what it takes, what pulls it.
      range(what + " limits", joint.limited, joint.lower, joint.upper);
      range(what + " actuator limits", true, joint.actuator_lower, joint.actuator_upper);
      checks::not_negative(what + " stiffness", joint.stiffness);

      // Its coordinates, with a rotation at their end where it has one.
      const int nq = joint_num_q(joint.type);
      for (const auto* q : {&joint.q_neutral, &joint.q_spring}) {
        checks::finite(what + " q", q->data(), nq);
        if (!is_scalar(joint)) {
          unit_quaternion(what + " q", q->data() + nq - 4);
        }
      }

      // Its dofs.
      for (int i = 0; i < joint_num_v(joint.type); ++i) {
        checks::not_negative(what + " damping", joint.damping[i]);
        checks::not_negative(what + " armature", joint.armature[i]);
        checks::not_negative(what + " dry_friction", joint.dry_friction[i]);
      }
    }
  }

  void geometries() const {
    for (const GeometryPart& geometry : parts_.geometries) {
      const std::string what = robot_ + "geometry '" + geometry.name + "'";
      if (geometry.type > last_shape_type) {
        checks::fail(what + " type", "unknown value of its enumeration");
      }
      // Where it is, and what it is made of.
      index(what + " body", geometry.body, 0, last_body());
      placement(what, geometry.placement);
      checks::material(what, geometry.friction, geometry.restitution, geometry.compliance);
      checks::further_friction(what, geometry.torsional_friction, geometry.rolling_friction);
      checks::penalty_material(what, geometry.penalty);
      checks::contact_points(what, geometry.contact_points);

      // Its shape.
      if (geometry.type == ShapeType::mesh) {
        const int last_mesh = static_cast<int>(parts_.meshes.size()) - 1;
        index(what + " mesh", geometry.mesh, 0, last_mesh);
        if (!parts_.meshes[geometry.mesh]) {
          checks::fail(what + " mesh", "is not there");
        }
      } else if (geometry.type == ShapeType::surface) {
        const int last_surface = static_cast<int>(parts_.surfaces.size()) - 1;
        index(what + " surface", geometry.mesh, 0, last_surface);
        if (!parts_.surfaces[geometry.mesh]) {
          checks::fail(what + " surface", "is not there");
        }
        if (!geometry.contact_points.empty()) {
          checks::fail(what + " contact_points", "a surface has none: give them to what touches it");
        }
      } else {
        sizes(what + " size", geometry.type, geometry.size);
      }
    }

    // Pairs of geometries, and pairs of bodies that are left out.
    for (const PairPart& pair : parts_.pairs) {
      for (const int g : {pair.a, pair.b})
        index(robot_ + "pair", g, 0, last_geometry());
      checks::material(robot_ + "pair", pair.friction, pair.restitution, 0);
      checks::further_friction(robot_ + "pair", pair.torsional_friction, pair.rolling_friction);
    }
    for (const auto& exclude : parts_.excludes) {
      for (int body : exclude)
        index(robot_ + "exclude", body, 0, last_body());
    }
  }

  void tendons() const {
    for (const Tendon& tendon : parts_.tendons) {
      const std::string what = robot_ + "tendon '" + tendon.name + "'";
      if (tendon.joints.size() != tendon.coefficients.size()) {
        checks::fail(what + " coefficients", "expected one for each of its joints");
      }
      for (std::size_t i = 0; i < tendon.joints.size(); ++i) {
        scalar_joint(what + " joint", tendon.joints[i]);
        const auto first = tendon.joints.begin();
        if (std::find(first, first + static_cast<long>(i), tendon.joints[i]) != first + static_cast<long>(i))
          checks::fail(what + " joint", "'" + parts_.joints[tendon.joints[i]].name + "' is listed twice");
      }
      checks::finite(what + " coefficients", tendon.coefficients.data(), static_cast<int>(tendon.coefficients.size()));
      path(what, tendon);
      range(what + " limits", tendon.limited, tendon.lower, tendon.upper);
      range(what + " spring lengths", true, tendon.spring_lower, tendon.spring_upper);
      checks::not_negative(what + " stiffness", tendon.stiffness);
      checks::not_negative(what + " damping", tendon.damping);
      checks::not_negative(what + " dry_friction", tendon.dry_friction);
      checks::not_negative(what + " armature", tendon.armature);
      const bool wraps = std::any_of(tendon.path.begin(), tendon.path.end(), is_obstacle);
      if (tendon.armature > 0 && wraps)
        checks::fail(what + " armature", "got " + checks::text(tendon.armature) +
                                             " for a path around an obstacle, expected 0: only fixed tendons and "
                                             "straight paths have an armature");
      range(what + " force_range", tendon.force_limited, tendon.force_range[0], tendon.force_range[1]);
      if (tendon.force_limited && !(tendon.force_range[0] <= 0 && tendon.force_range[1] >= 0))
        checks::fail(what + " force_range", "got (" + checks::text(tendon.force_range[0]) + ", " +
                                                checks::text(tendon.force_range[1]) +
                                                "), expected one that holds zero");
      const int dofs = count_dofs(tendon);
      if (dofs > most_of_tendon)
        checks::fail(what, "it has " + std::to_string(dofs) + " degrees of freedom, at most " +
                               std::to_string(most_of_tendon) + " are supported");
      if (!tendon.limited && !has_own_forces(tendon)) continue;
      pulled(what + ": limits and springs", tendon);
      of_two_robots(what + ": limits and springs", "tendon '" + tendon.name + "' ties", joints_of(tendon));
      moved(what + ": limits and springs", tendon);
    }
  }

  void actuators() const {
    for (const Actuator& actuator : parts_.actuators) {
      const std::string what = robot_ + "actuator '" + actuator.name + "'";
      // The joint that it drives, by which law.
      if (actuator.body >= 0) {
        const bool relative = actuator.reference_body >= 0;
        index(what + " body", actuator.body, relative ? 0 : 1, last_body());
        index(what + " reference_body", actuator.reference_body, -1, last_body());
        index(what + " joint of an actuator of a body", actuator.joint, -1, -1);
        index(what + " tendon of an actuator of a body", actuator.tendon, -1, -1);
        checks::finite(what + " site_pos", actuator.site_pos.data(), 3);
        unit_quaternion(what + " site_quat", actuator.site_quat.data());
        checks::finite(what + " reference_pos", actuator.reference_pos.data(), 3);
        unit_quaternion(what + " reference_quat", actuator.reference_quat.data());
        pushed(what, actuator);
      } else if (actuator.tendon < 0) {
        index(what + " joint", actuator.joint, 0, last_joint());
      } else {
        index(what + " tendon", actuator.tendon, 0, last_tendon());
        index(what + " joint of an actuator of a tendon", actuator.joint, -1, -1);
        pulled(what, parts_.tendons[actuator.tendon]);
        if (parts_.tendons[actuator.tendon].force_limited && actuator.gear[0] == 0)
          checks::fail(what + " gear", "got 0, expected another number: the force of its tendon is limited");
      }
      checks::finite(what + " gear", actuator.gear.data(), 6);
      checks::finite(what + " gain", actuator.gain.data(), 3);
      checks::finite(what + " bias", actuator.bias.data(), 3);
      muscle(what + " muscle ", actuator.muscle);
      if (actuator.activation == ActivationType::muscle) {
        checks::positive(what + " muscle activation_time", actuator.muscle.activation_time);
        checks::positive(what + " muscle deactivation_time", actuator.muscle.deactivation_time);
        checks::not_negative(what + " muscle smoothing", actuator.muscle.smoothing);
      }
      if (actuator.activation > ActivationType::muscle) checks::fail(what + " activation", "it is none of the kinds");
      if (actuator.activation == ActivationType::filter || actuator.activation == ActivationType::filter_exact)
        checks::positive(what + " time_constant", actuator.time_constant);

      // Within which bounds.
      range(what + " control_range", actuator.control_limited, actuator.control_range[0], actuator.control_range[1]);
      range(what + " activation_range", actuator.activation_limited, actuator.activation_range[0],
            actuator.activation_range[1]);
      range(what + " force_range", actuator.force_limited, actuator.force_range[0], actuator.force_range[1]);
    }
  }

  /// Curves of muscles divide by these differences.
  void muscle(const std::string& what, const Muscle& m) const {
    if (!m.pulls && !m.resists) return;
    checks::positive(what + "peak_force", m.peak_force);
    range(what + "length_range", true, m.length_range[0], m.length_range[1]);
    range(what + "range", true, m.range[0], m.range[1]);
    checks::positive(what + "length_range[1] - length_range[0]", m.length_range[1] - m.length_range[0]);
    checks::positive(what + "range[1] - range[0]", m.range[1] - m.range[0]);
    checks::finite(what + "shortest", &m.shortest, 1);
    checks::positive(what + "1 - shortest", 1 - m.shortest);
    checks::positive(what + "longest - 1", m.longest - 1);
    checks::positive(what + "fastest", m.fastest);
    checks::not_negative(what + "passive", m.passive);
    checks::positive(what + "stretched - 1", m.stretched - 1);
  }

  void equalities() const {
    for (const Equality& equality : parts_.equalities) {
      const std::string what = robot_ + "equality '" + equality.name + "'";
      if (equality.type > last_equality_type) {
        checks::fail(what + " type", "unknown value of its enumeration");
      }

      // Of joints: a polynomial.
      if (equality.type == EqualityType::joint) {
        scalar_joint(what + " joint_a", equality.joint_a);
        if (equality.joint_b != -1) {
          scalar_joint(what + " joint_b", equality.joint_b);
        }
        checks::finite(what + " poly", equality.poly.data(), 5);
        checks::finite(what + " ref_a", &equality.ref_a, 1);
        checks::finite(what + " ref_b", &equality.ref_b, 1);
        continue;
      }

      if (equality.type == EqualityType::tendon) {
        index(what + " tendon_a", equality.tendon_a, 0, last_tendon());
        index(what + " tendon_b", equality.tendon_b, -1, last_tendon());
        const Tendon& first = parts_.tendons[equality.tendon_a];
        pulled(what, first);
        moved(what, first);
        std::vector<int> joints = joints_of(first);
        if (equality.tendon_b >= 0) {
          const Tendon& second = parts_.tendons[equality.tendon_b];
          pulled(what, second);
          for (int joint : joints_of(second))
            if (std::find(joints.begin(), joints.end(), joint) == joints.end()) joints.push_back(joint);
        }
        of_two_robots(what, "its tendons tie", joints);
        const int count = count_dofs(joints);
        if (count > most_in_row)
          checks::fail(what, "its tendons have " + std::to_string(count) + " degrees of freedom together, at most " +
                                 std::to_string(most_in_row) + " are supported");
        checks::finite(what + " poly", equality.poly.data(), 5);
        checks::finite(what + " ref_a", &equality.ref_a, 1);
        checks::finite(what + " ref_b", &equality.ref_b, 1);
        continue;
      }

      // Of bodies: a frame on each.
      index(what + " body_a", equality.body_a, 0, last_body());
      index(what + " body_b", equality.body_b, 0, last_body());
      checks::finite(what + " pos_a", equality.pos_a.data(), 3);
      checks::finite(what + " pos_b", equality.pos_b.data(), 3);
      unit_quaternion(what + " quat_a", equality.quat_a.data());
      unit_quaternion(what + " quat_b", equality.quat_b.data());
      checks::not_negative(what + " torque_scale", equality.torque_scale);
    }
  }

  void keyframes() const {
    const int nu = static_cast<int>(parts_.actuators.size());
    for (const KeyframePart& key : parts_.keyframes) {
      const std::string what = robot_ + "keyframe '" + key.values.name + "'";
      values(what + " q", key.first_q, key.values.q, nq_);
      values(what + " v", key.first_v, key.values.v, nv_);
      values(what + " u", key.first_u, key.values.u, nu);
    }
  }

  void sites_and_sensors() const {
    for (const Site& site : parts_.sites) {
      const std::string what = robot_ + "site '" + site.name + "'";
      if (site.zone > last_zone_type) {
        checks::fail(what + " zone", "unknown value of its enumeration");
      }
      frame(what, site.frame);
      geometries_of(what, site.geometries);
      checks::finite(what + " size", site.size.data(), 3);
    }
    for (const Sensor& sensor : parts_.sensors) {
      const std::string what = robot_ + "sensor '" + sensor.name + "'";
      if (sensor.type > last_sensor_type) {
        checks::fail(what + " type", "unknown value of its enumeration");
      }
      frame(what, sensor.frame);
      if (sensor.reference) {
        frame(what + " reference", *sensor.reference);
      }
      geometries_of(what, sensor.geometries);
      checks::finite(what + " cutoff", &sensor.cutoff, 1);
      index(what + " index", sensor.index, -1, last_of(sensor.type));
      checks::finite(what + " field", sensor.field.data(), 3);
      contacts_of(what, sensor);
    }
  }

  /// Groups, numbers and fields of contacts, or the groups of a distance.
  void contacts_of(const std::string& what, const Sensor& sensor) const {
    const bool of_distance = sensor.type == SensorType::distance || sensor.type == SensorType::distance_normal ||
                             sensor.type == SensorType::distance_segment;
    const bool has_groups = sensor.type == SensorType::contact || of_distance;
    if (has_groups && !sensor.contacts) checks::fail(what + " contacts", "are missing: say which groups it looks at");
    if (!sensor.contacts) return;
    const ContactSelection& of = *sensor.contacts;
    for (const GeometryGroup& group : of.groups) {
      const bool of_geometry = group.of == GeometryGroup::Of::geometry;
      const bool of_body = group.of == GeometryGroup::Of::body || group.of == GeometryGroup::Of::subtree;
      if (group.of > GeometryGroup::Of::none) checks::fail(what + " group", "unknown value of its enumeration");
      if (of_geometry) index(what + " group", group.index, 0, last_geometry());
      if (of_body) index(what + " group", group.index, 0, last_body());
    }
    if (of.reduction > ContactReduction::net) checks::fail(what + " reduction", "unknown value of its enumeration");
    constexpr int most = 1000;
    if (of.num < 1 || of.num > most)
      checks::fail(what + " num", std::to_string(of.num) + " is not in 1 .. " + std::to_string(most));
    constexpr std::uint32_t all_fields = 2 * ContactSelection::tangent - 1;
    if (of.fields == 0 || of.fields > all_fields)
      checks::fail(what + " fields", std::to_string(of.fields) + " has no field, or one that is not known");
  }

  void pinocchio_maps() const {
    for (const PinocchioMap& map : parts_.pinocchio_maps) {
      for (const PinocchioJoint& joint : map.joints) {
        const std::string what = robot_ + "coordinates of Pinocchio";
        index(what + " q", joint.q, 0, nq_ - 1);
        index(what + " v", joint.v, 0, nv_ - 1);
        index(what + " pin_q", joint.pin_q, 0, map.nq - 1);
        index(what + " pin_v", joint.pin_v, 0, map.nv - 1);
      }
    }
  }

 private:
  /// Rows of constraints, and forces of actuators, have so many dofs (DofRow::max_dofs, ActuatorDofs).
  static constexpr int most_in_row = 16;
  static constexpr int most_of_tendon = 64;  ///< that exerts no force (TendonState)

  /// The root of a body's tree: the last body with a joint on the way to the world.
  int root(int body) const {
    int out = body;
    for (int b = body; b > 0; b = parts_.bodies[b].parent)
      if (has_joint(b)) out = b;
    return out;
  }
  bool has_joint(int body) const {
    return std::any_of(parts_.joints.begin(), parts_.joints.end(),
                       [body](const JointPart& joint) { return joint.body == body; });
  }

  /// A body that an actuator pushes moves, against that which it pushes off, by not too many dofs.
  void pushed(const std::string& what, const Actuator& actuator) const {
    const int off = actuator.reference_body;
    std::vector<int> joints;
    for (int j = 0; j <= last_joint(); ++j)
      if (carries(parts_.joints[j], actuator.body) != (off >= 0 && carries(parts_.joints[j], off))) joints.push_back(j);
    const int dofs = count_dofs(joints);
    if (dofs < 1 || dofs > most_in_row)
      checks::fail(what, "body '" + parts_.bodies[actuator.body].name + "' is moved by " + std::to_string(dofs) +
                             " degrees of freedom; with 1 .. " + std::to_string(most_in_row) + " it is supported");
  }

  /// A path runs over points, two at least on each of its branches, and around obstacles between two of them.
  void path(const std::string& what, const Tendon& tendon) const {
    using Kind = TendonPoint::Kind;
    if (!is_spatial(tendon)) return;
    if (!tendon.joints.empty()) checks::fail(what, "it has a path, expected no joints");
    int points = 0;
    bool around = false;
    const auto end_branch = [&] {
      if (points < 2 || around)
        checks::fail(what + " path", "a branch needs two points at least, and one behind each obstacle");
    };
    for (std::size_t i = 0; i < tendon.path.size(); ++i) {
      const TendonPoint& point = tendon.path[i];
      const std::string where = what + " path[" + std::to_string(i) + "]";
      if (point.kind > Kind::slider) checks::fail(where + " kind", "it is none of the kinds");
      if (point.kind == Kind::pulley) {
        checks::positive(where + " divisor", point.divisor);
        if (i > 0) end_branch();
        points = 0;
        continue;
      }
      index(where + " body", point.body, 0, last_body());
      checks::finite(where + " pos", point.pos.data(), 3);
      if (point.kind == Kind::site) {
        ++points;
        around = false;
        continue;
      }
      if (points == 0 || around) checks::fail(where, "an obstacle needs a point before it");
      around = true;
      unit_quaternion(where + " quat", point.quat.data());
      checks::positive(where + " radius", point.radius);
      index(where + " side_body", point.side_body, -1, last_body());
      checks::finite(where + " side_pos", point.side_pos.data(), 3);
    }
    end_branch();
  }

  /// Does a joint move a body?
  bool carries(const JointPart& joint, int body) const {
    for (int b = body; b > 0; b = parts_.bodies[b].parent)
      if (joint.body == b) return true;
    return false;
  }

  /// The joints that a tendon's length depends on: of a path those that move some but not all bodies of a piece.
  std::vector<int> joints_of(const Tendon& tendon) const {
    if (!is_spatial(tendon)) return tendon.joints;
    std::vector<int> out;
    for (int j = 0; j <= last_joint(); ++j) {
      bool changes = false;
      for_each_piece(tendon, [&](const TendonPiece& piece) {
        const bool moves_a = carries(parts_.joints[j], piece.a->body);
        const bool moves_b = carries(parts_.joints[j], piece.b->body);
        const bool moves_obstacle = piece.around ? carries(parts_.joints[j], piece.around->body) : moves_a;
        changes = changes || moves_a != moves_b || moves_a != moves_obstacle;
      });
      if (changes) out.push_back(j);
    }
    return out;
  }

  int count_dofs(const Tendon& tendon) const { return count_dofs(joints_of(tendon)); }
  int count_dofs(const std::vector<int>& joints) const {
    int count = 0;
    for (int j : joints)
      count += joint_num_v(parts_.joints[j].type);
    return count;
  }

  /// A tendon that exerts a force has some degrees of freedom, not too many.
  void pulled(const std::string& what, const Tendon& tendon) const {
    const int dofs = count_dofs(tendon);
    if (dofs < 1 || dofs > most_in_row)
      checks::fail(what, "tendon '" + tendon.name + "' has " + std::to_string(dofs) +
                             " degrees of freedom; with 1 .. " + std::to_string(most_in_row) + " it is supported");
  }

  /// Joints that a row ties are of two robots at most.
  void of_two_robots(const std::string& what, const std::string& ties, const std::vector<int>& joints) const {
    std::vector<int> roots;
    for (int j : joints) {
      const int of_joint = root(parts_.joints[j].body);
      if (std::find(roots.begin(), roots.end(), of_joint) != roots.end()) continue;
      roots.push_back(of_joint);
      if (roots.size() > 2)
        checks::fail(what, ties + " joints of more than two robots ('" + parts_.joints[joints[0]].name + "' and '" +
                               parts_.joints[j].name + "'), which is not supported");
    }
  }

  /// A row of zeros could not hold a length.
  static void moved(const std::string& what, const Tendon& tendon) {
    if (is_spatial(tendon)) return;
    const auto moves = [](double c) { return c != 0; };
    if (std::none_of(tendon.coefficients.begin(), tendon.coefficients.end(), moves))
      checks::fail(what, "all coefficients of tendon '" + tendon.name + "' are zero: nothing could change its length");
  }

  static bool is_scalar(const JointPart& joint) { return joint_num_q(joint.type) == 1; }
  int last_body() const { return static_cast<int>(parts_.bodies.size()) - 1; }
  int last_tendon() const { return static_cast<int>(parts_.tendons.size()) - 1; }
  int last_joint() const { return static_cast<int>(parts_.joints.size()) - 1; }
  int last_geometry() const { return static_cast<int>(parts_.geometries.size()) - 1; }

  static void index(const std::string& what, int value, int first, int last) {
    if (value >= first && value <= last) return;
    const std::string got = "index " + std::to_string(value);
    if (last < first) {
      checks::fail(what, got + ", but there is none to choose");
    }
    const std::string expected = std::to_string(first) + " .. " + std::to_string(last);
    checks::fail(what, got + " is not within " + expected);
  }

  static void unit_quaternion(const std::string& what, const double* q) {
    checks::unit_quaternion(what, {q[0], q[1], q[2], q[3]});
  }

  static void placement(const std::string& what, const Placement& placement) {
    checks::finite(what + " pos", placement.pos.data(), 3);
    unit_quaternion(what + " quat", placement.quat.data());
  }

  /// Infinite ends are ends too.
  static void range(const std::string& what, bool counts, double lower, double upper) {
    if (!counts || lower <= upper) return;
    const std::string ends = checks::text(lower) + ", " + checks::text(upper);
    checks::fail(what, "(" + ends + ") is not a range");
  }

  static void sizes(const std::string& what, ShapeType type, const Vec3& size) {
    int count = 3;
    if (type == ShapeType::half_space) count = 0;
    if (type == ShapeType::sphere) count = 1;
    if (type == ShapeType::capsule || type == ShapeType::cylinder) {
      count = 2;
    }
    for (int i = 0; i < count; ++i) {
      const bool may_be_zero = type == ShapeType::capsule && i == 1;  // a capsule of no length is a ball
      may_be_zero ? checks::not_negative(what, size[i]) : checks::positive(what, size[i]);
    }
  }

  void scalar_joint(const std::string& what, int joint) const {
    index(what, joint, 0, last_joint());
    if (!is_scalar(parts_.joints[joint])) {
      checks::fail(what, "is neither a hinge nor a slide");
    }
  }

  static void values(const std::string& what, int first, const std::vector<double>& values, int count) {
    const int size = static_cast<int>(values.size());
    if (first < 0 || first > count - size) {
      const std::string entries = std::to_string(first) + " .. " + std::to_string(first + size - 1);
      checks::fail(what, "entries " + entries + ", but there are " + std::to_string(count));
    }
    checks::finite(what, values.data(), size);
  }

  void frame(const std::string& what, const Frame& frame) const {
    index(what + " body", frame.body, 0, last_body());
    index(what + " geometry", frame.geometry, -1, last_geometry());
    checks::finite(what + " pos", frame.pos.data(), 3);
    unit_quaternion(what + " quat", frame.quat.data());
  }

  void geometries_of(const std::string& what, const std::optional<std::vector<int>>& geometries) const {
    if (!geometries) return;
    for (int g : *geometries)
      index(what + " geometries", g, 0, last_geometry());
  }

  /// Of what a sensor's index counts.
  int last_of(SensorType type) const {
    switch (type) {
      case SensorType::subtree_com:
      case SensorType::subtree_angular_momentum:
      case SensorType::subtree_velocity: return last_body();
      case SensorType::actuator_position:
      case SensorType::actuator_velocity:
      case SensorType::actuator_force: return static_cast<int>(parts_.actuators.size()) - 1;
      case SensorType::tendon_length:
      case SensorType::tendon_velocity:
      case SensorType::tendon_limit_position:
      case SensorType::tendon_limit_velocity:
      case SensorType::tendon_actuator_force:
      case SensorType::tendon_limit_force: return last_tendon();
      case SensorType::contact:
      case SensorType::inside_site:
      case SensorType::touch: return static_cast<int>(parts_.sites.size()) - 1;
      case SensorType::equality_force: return static_cast<int>(parts_.equalities.size()) - 1;
      default: return last_joint();
    }
  }

  std::string robot_;
  const SceneParts& parts_;
  int nq_ = 0;
  int nv_ = 0;
};

}  // namespace

void check_parts(const std::string& robot, const SceneParts& parts) {
  utf8("name of the robot", robot);
  if (parts.bodies.empty()) {
    checks::fail("'" + robot + "'", "has no bodies; the first one is the world");
  }
  const Checker checker(robot, parts);
  checker.bodies();
  checker.joints();
  checker.geometries();
  checker.tendons();
  checker.actuators();
  checker.equalities();
  checker.keyframes();
  checker.sites_and_sensors();
  checker.pinocchio_maps();
}

}  // namespace coulomb
