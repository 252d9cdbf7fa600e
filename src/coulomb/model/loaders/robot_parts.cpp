// A described robot as bodies: one for each joint, its frame the joint's, with the joint's limits, damping, dry friction and effort. Links
// behind fixed joints are part of the body that carries them, and sites on it.
#include "coulomb/model/loaders/robot_parts.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <stdexcept>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/scene/actuator_laws.hpp"
#include "coulomb/model/scene/balanced_inertia.hpp"
#include "coulomb/model/scene/build_model.hpp"
#include "coulomb/model/shapes/convex_mesh.hpp"

namespace coulomb {
namespace {

/// Two directions across a unit vector that make a right-handed frame with it: those that follow the coordinate axis nearest to it in cyclic
/// order (x and y of z), turned the shortest way with that axis; the second one is reversed where the vector points against it.
std::array<Vec3, 2> across(const Vec3& axis) {
  int nearest = 2;
  for (int i = 0; i < 3; ++i)
    if (std::abs(axis[i]) > std::abs(axis[nearest])) nearest = i;
  const double sign = axis[nearest] < 0 ? -1.0 : 1.0;
  Vec3 from{0, 0, 0};
  from[nearest] = sign;

  // The shortest way from n to a takes u across n to u - (a.u) (n + a) / (1 + n.a).
  const auto turned = [&](int k, double length) {
    Vec3 u{0, 0, 0};
    u[k] = length;
    const double share = length * axis[k] / (1 + std::abs(axis[nearest]));
    for (int i = 0; i < 3; ++i)
      u[i] -= share * (from[i] + axis[i]);
    return u;
  };
  return {turned((nearest + 1) % 3, 1.0), turned((nearest + 2) % 3, sign)};
}

/// What one described joint is for us: a sequence of joints on one body.
struct JointShape {
  std::vector<std::pair<JointType, Vec3>> joints;
  PinocchioJoint::Kind kind = PinocchioJoint::Kind::scalar;
};

JointShape shape_of(const RobotJoint& joint, const std::string& what) {
  using Kind = PinocchioJoint::Kind;
  const Vec3 x{1, 0, 0};
  const Vec3 y{0, 1, 0};
  const Vec3 z{0, 0, 1};
  switch (joint.type) {
    case RobotJointType::hinge: return {{{JointType::hinge, joint.axis}}, Kind::scalar};
    case RobotJointType::continuous: return {{{JointType::hinge, joint.axis}}, Kind::continuous};
    case RobotJointType::slide: return {{{JointType::slide, joint.axis}}, Kind::scalar};
    case RobotJointType::ball: return {{{JointType::ball, z}}, Kind::ball};
    case RobotJointType::free: return {{{JointType::free, z}}, Kind::free};
    case RobotJointType::ball_zyx:
      return {{{JointType::hinge, z}, {JointType::hinge, y}, {JointType::hinge, x}}, Kind::scalar};
    case RobotJointType::translation:
      return {{{JointType::slide, x}, {JointType::slide, y}, {JointType::slide, z}}, Kind::scalar};
    case RobotJointType::planar: {
      const Vec3 normal = checks::unit_vector(what + " axis", joint.axis);
      const auto [first, second] = across(normal);
      return {{{JointType::slide, first}, {JointType::slide, second}, {JointType::hinge, normal}}, Kind::planar};
    }
  }
  return {};
}

/// Degrees of freedom.
int dofs_of(RobotJointType type) {
  switch (type) {
    case RobotJointType::hinge:
    case RobotJointType::continuous:
    case RobotJointType::slide: return 1;
    case RobotJointType::free: return 6;
    default: return 3;
  }
}

/// Indices lead to what is there, lists have an entry for each degree of freedom.
void check_description(const RobotDescription& robot) {
  const auto index = [](const std::string& what, int value, int first, std::size_t end) {
    if (value < first || value >= static_cast<int>(end)) {
      checks::fail(what,
                   std::to_string(value) + " is not in [" + std::to_string(first) + ", " + std::to_string(end) + ")");
    }
  };

  for (std::size_t j = 0; j < robot.joints.size(); ++j) {
    const RobotJoint& joint = robot.joints[j];
    const std::string what = robot.source + ": joint '" + joint.name + "'";
    index(what + " parent", joint.parent, -1, j);
    const auto dofs = static_cast<std::size_t>(dofs_of(joint.type));
    for (const auto& [name, list] : {std::pair{"lower", &joint.lower},
                                     {"upper", &joint.upper},
                                     {"damping", &joint.damping},
                                     {"armature", &joint.armature},
                                     {"dry_friction", &joint.dry_friction},
                                     {"effort", &joint.effort}})
      if (!list->empty() && list->size() != dofs)
        checks::fail(what + " " + name, "has " + std::to_string(list->size()) + " entries, the joint " +
                                            std::to_string(dofs) + " degrees of freedom");
    if (joint.lower.size() != joint.upper.size()) {
      checks::fail(what, "has lower limits without upper ones, or the other way round");
    }
  }

  // Frames and shapes hang on joints, shapes also on frames.
  const std::size_t joints = robot.joints.size();
  for (const RobotFrame& frame : robot.frames)
    index(robot.source + ": frame '" + frame.name + "' joint", frame.joint, -1, joints);
  for (const RobotShape& shape : robot.shapes) {
    const std::string what = robot.source + ": geometry '" + shape.name + "'";
    index(what + " joint", shape.joint, -1, joints);
    index(what + " frame", shape.frame, -1, robot.frames.size());
  }
  for (const auto& [a, b] : robot.pairs)
    for (const int shape : {a, b})
      index(robot.source + ": pair", shape, 0, robot.shapes.size());
}

class Translator {
 public:
  Translator(const RobotDescription& robot, const RobotOptions& options)
      : robot_(robot), options_(options), source_(robot.source), body_(robot.joints.size(), 0) {
    parts_.pinocchio_maps.push_back({options.name, robot.nq, robot.nv, {}});
  }

  SceneParts run(bool self_collision, FramesKept frames) {
    if (needs_base()) add_base();
    add_children(-1);
    add_geometries(self_collision);
    add_sites(frames);
    if (options_.actuators) set_motors(source_, options_.motors, parts_);
    return std::move(parts_);
  }

 private:
  /// A body for what is fixed to the world, unless that is nothing: a floating robot.
  bool needs_base() const {
    const auto hangs = [](const auto& thing) { return thing.joint < 0; };
    const auto is_fixed = [](const RobotJoint& joint) {
      return joint.parent < 0 && joint.type != RobotJointType::free;
    };
    return robot_.joints.empty() || robot_.base.mass != 0 ||
           std::any_of(robot_.joints.begin(), robot_.joints.end(), is_fixed) ||
           std::any_of(robot_.frames.begin(), robot_.frames.end(), hangs) ||
           std::any_of(robot_.shapes.begin(), robot_.shapes.end(), hangs);
  }

  void add_base() {
    BodyPart base;
    base.name = link_name(-1, "base");
    base.placement = {options_.position, options_.quaternion};
    fill_inertia(base, robot_.base);
    base_ = static_cast<int>(parts_.bodies.size());
    parts_.bodies.push_back(base);
  }

  /// The body of a joint, of the base for -1.
  int body_of(int joint) const { return joint < 0 ? base_ : body_[joint]; }

  /// The first link that is fixed to a joint, as the body's name.
  std::string link_name(int joint, const std::string& fallback) const {
    for (const RobotFrame& frame : robot_.frames)
      if (frame.is_link && frame.joint == joint) return frame.name;
    return fallback;
  }

  /// Every frame that has a name of its own: the first link of a body gives the body its name. Links come first.
  void add_sites(FramesKept kept) {
    std::set<std::string> taken{"universe"};
    for (const BodyPart& body : parts_.bodies)
      taken.insert(body.name);

    for (const bool links : {true, false}) {
      if (!links && kept == FramesKept::links) break;
      for (std::size_t i = 0; i < robot_.frames.size(); ++i) {
        const RobotFrame& frame = robot_.frames[i];
        if (frame.is_link != links || !taken.insert(frame.name).second) continue;
        add_site(frame, links ? std::optional(geometries_of(static_cast<int>(i))) : std::nullopt);
      }
    }
  }

  /// A site for a frame; geometries: those of a link.
  void add_site(const RobotFrame& frame, std::optional<std::vector<int>> geometries) {
    Site site;
    site.name = frame.name;
    site.frame.body = body_of(frame.joint);
    site.frame.pos = frame.placement.pos;
    site.frame.quat = frame.placement.quat;
    site.geometries = std::move(geometries);
    parts_.sites.push_back(std::move(site));
  }

  /// Geometries of a link; they have the numbers of its shapes.
  std::vector<int> geometries_of(int frame) const {
    std::vector<int> out;
    for (std::size_t g = 0; g < robot_.shapes.size(); ++g)
      if (robot_.shapes[g].frame == frame) {
        out.push_back(static_cast<int>(g));
      }
    return out;
  }

  /// Mass, centre and inertia of a body, checked.
  void fill_inertia(BodyPart& body, const RobotInertia& Y) {
    body.mass = Y.mass;
    body.com = Y.com;
    body.inertia = Y.inertia;
    drop_rounding(body);
    const std::string link = source_ + ": link '" + body.name + "'";
    if (options_.balance_inertia && !is_rigid_inertia(body.inertia)) {
      checks::finite(link + " inertia", body.inertia.data(), 6);
      body.inertia = balanced_inertia(body.inertia);
      parts_.deviate(link + ": no rigid body has its inertia; the nearest one that one has is used");
    }
    check_inertia(link, body.mass, body.com, body.inertia, "; balance_inertia=True takes the nearest one that does");
  }

  /// Moving inertias between frames leaves traces of either sign where there is none: zero, if not one body's and far below the
  /// others of the robot.
  void drop_rounding(BodyPart& body) {
    double largest = 0;
    for (double x : body.inertia)
      largest = std::max(largest, std::abs(x));

    // The robot's largest, of a body about its joint.
    double scale = 0;
    const auto measure = [&](const RobotInertia& Y) {
      scale = std::max(scale, Y.inertia[0] + Y.inertia[2] + Y.inertia[5] + Y.mass * dot3(Y.com.data(), Y.com.data()));
    };
    measure(robot_.base);
    for (const RobotJoint& joint : robot_.joints)
      measure(joint.inertia);
    if (!(largest <= 1e-15 * scale)) return;

    // An inertia that is a body's is kept, however small.
    bool of_a_body = true;
    try {
      check_inertia(body.name, body.mass, body.com, body.inertia);
    } catch (const std::invalid_argument&) {
      of_a_body = false;
    }
    if (of_a_body) return;

    parts_.ignored.push_back(source_ + ": link '" + body.name + "': inertia of " + checks::text(largest) +
                             " kg m^2, which is rounding: it is zero");
    body.inertia = {0, 0, 0, 0, 0, 0};
  }

  /// Depth first, as the bodies of a scene are sorted.
  void add_children(int parent) {
    for (int j = parent + 1; j < static_cast<int>(robot_.joints.size()); ++j)
      if (robot_.joints[j].parent == parent) {
        add_joint(j);
        add_children(j);
      }
  }

  /// A body with what one joint of the robot is here, and where their coordinates lie there and here.
  void add_joint(int j) {
    const RobotJoint& joint = robot_.joints[j];
    const std::string what = source_ + ": joint '" + joint.name + "'";
    const JointShape shape = shape_of(joint, what);
    const bool free = joint.type == RobotJointType::free;
    if (free && joint.parent >= 0) {
      throw std::invalid_argument(what + ": a free joint below the root is not supported");
    }

    // The body, at its neutral pose. Only a free base is moved by the options: other bodies move with it.
    BodyPart body;
    body.name = link_name(j, joint.name);
    body.parent = free ? 0 : body_of(joint.parent);
    body.placement = joint.placement;
    if (free) {
      body.placement = compose({options_.position, options_.quaternion}, body.placement);
    }
    fill_inertia(body, joint.inertia);
    body_[j] = static_cast<int>(parts_.bodies.size());
    parts_.bodies.push_back(body);

    // A composite of hinges and slides is as many joints here, each with its entry in the map.
    auto& map = parts_.pinocchio_maps[0].joints;
    const int n = static_cast<int>(shape.joints.size());
    if (shape.kind != PinocchioJoint::Kind::scalar || n == 1)
      map.push_back({shape.kind, joint.q, joint.v, nq_, nv_, joint.placement.pos, joint.placement.quat});
    for (int i = 0; i < n; ++i) {
      if (shape.kind == PinocchioJoint::Kind::scalar && n > 1)
        map.push_back({shape.kind, joint.q + i, joint.v + i, nq_, nv_, {0, 0, 0}, {1, 0, 0, 0}});
      add_single(j, n > 1 ? joint.name + "_" + std::to_string(i) : joint.name, shape, i, what);
    }
  }

  /// Joint number i of those that stand for one of the robot's.
  void add_single(int j, const std::string& name, const JointShape& shape, int i, const std::string& what) {
    const RobotJoint& joint = robot_.joints[j];

    // Its axis and kind.
    JointPart part;
    part.name = name;
    part.type = shape.joints[i].first;
    part.axis = checks::unit_vector(what + " axis", shape.joints[i].second);
    part.body = body_[j];
    const bool scalar = part.type == JointType::hinge || part.type == JointType::slide;
    const bool free = part.type == JointType::free;

    // The neutral configuration: zero, the identity, or where a free base is placed.
    const int nv = scalar ? 1 : free ? 6 : 3;
    if (!scalar) {
      part.q_neutral[free ? 3 : 0] = 1;
    }
    if (free) {
      const Placement& p = parts_.bodies[part.body].placement;
      std::copy(p.pos.begin(), p.pos.end(), part.q_neutral.begin());
      std::copy(p.quat.begin(), p.quat.end(), part.q_neutral.begin() + 3);
    }
    part.q_spring = part.q_neutral;

    // Limits, damping, armature, friction.
    if (scalar && shape.kind == PinocchioJoint::Kind::scalar && !joint.lower.empty()) {
      set_limits(part, joint.lower[i], joint.upper[i], what);
    }
    const auto fill = [&](std::array<double, 6>& to, const std::vector<double>& from, const char* property) {
      for (int k = 0; k < nv && !from.empty(); ++k) {
        to[k] = from[i + k];
        checks::not_negative(what + " " + property, to[k]);
      }
    };
    fill(part.damping, joint.damping, "damping");
    fill(part.armature, joint.armature, "armature");
    fill(part.dry_friction, joint.dry_friction, "friction");

    // A motor for every joint with one dof, then the joint itself.
    if (scalar && options_.actuators && joint.type != RobotJointType::planar)
      add_motor(name, joint.effort.empty() ? 0.0 : joint.effort[i]);
    parts_.joints.push_back(part);
    nq_ += scalar ? 1 : free ? 7 : 4;
    nv_ += nv;
  }

  /// Limits beyond 1e20 are none.
  void set_limits(JointPart& part, double lower, double upper, const std::string& what) {
    if (std::isnan(lower) || std::isnan(upper) || lower > upper)
      throw std::invalid_argument(what + " limits: (" + checks::text(lower) + ", " + checks::text(upper) +
                                  ") is not an interval");
    part.limited = std::abs(lower) < 1e20 || std::abs(upper) < 1e20;
    part.lower = lower;
    part.upper = upper;
  }

  /// A motor, limited by the joint's effort where it has any.
  void add_motor(const std::string& name, double effort) {
    Actuator motor;
    motor.name = name;
    motor.joint = static_cast<int>(parts_.joints.size());
    motor.control_limited = effort > 0 && effort < 1e20;
    if (motor.control_limited) motor.control_range = {-effort, effort};
    parts_.actuators.push_back(motor);
  }

  /// Geometries with their shapes and masks, and the pairs that are listed.
  void add_geometries(bool self_collision) {
    // Without self-collision all geometries are in one group, which does not collide.
    if (!self_collision) parts_.num_collision_groups = 1;
    for (const RobotShape& shape : robot_.shapes) {
      GeometryPart part;
      part.name = shape.name;
      part.body = body_of(shape.joint);
      part.placement = shape.placement;
      part.friction = options_.friction;
      part.restitution = options_.restitution;
      part.compliance = options_.compliance;
      if (!self_collision) part.no_collision_group = 0;
      if (!shape.collides) part.contype = part.conaffinity = 0;
      set_shape(part, shape);
      parts_.geometries.push_back(part);
    }
    for (const auto& [a, b] : robot_.pairs)
      if (robot_.shapes[a].collides && robot_.shapes[b].collides) {
        parts_.pairs.push_back({a, b, {}, {}});
      }
  }

  /// Kind and size of a geometry; a mesh is the hull of its points.
  void set_shape(GeometryPart& part, const RobotShape& shape) {
    part.type = shape.type;
    part.size = shape.size;
    if (shape.type == ShapeType::mesh) {
      part.mesh = static_cast<int>(parts_.meshes.size());
      parts_.meshes.push_back(make_convex_hull(shape.points, part.name));
    }

    // Sizes that the shape has are positive.
    const int used = part.type == ShapeType::sphere                                        ? 1
                     : part.type == ShapeType::mesh || part.type == ShapeType::half_space  ? 0
                     : part.type == ShapeType::capsule || part.type == ShapeType::cylinder ? 2
                                                                                           : 3;
    for (int i = 0; i < used; ++i)
      checks::positive(source_ + ": geometry '" + part.name + "' size", part.size[i]);
  }

  const RobotDescription& robot_;
  const RobotOptions& options_;
  std::string source_;
  std::vector<int> body_;
  int base_ = 0;
  SceneParts parts_;
  int nq_ = 0;
  int nv_ = 0;
};

}  // namespace

SceneParts robot_parts(const RobotDescription& robot, const RobotOptions& options, bool self_collision,
                       FramesKept frames) {
  check_description(robot);
  return Translator(robot, options).run(self_collision, frames);
}

}  // namespace coulomb
