// pinocchio::Model to SceneParts: one body per joint, its frame the joint's; pin's limits, damping, dry friction and effort limits. Links
// behind fixed joints are part of the body that carries them, and sites on it.
#include "coulomb/model/loaders/pinocchio_parts.hpp"

#include <coal/BVH/BVH_model.h>
#include <coal/shape/convex.h>
#include <coal/shape/geometric_shapes.h>

#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/scene/actuator_laws.hpp"
#include "coulomb/model/scene/build_model.hpp"
#include "coulomb/model/shapes/convex_mesh.hpp"

namespace coulomb {
namespace {

/// Pinocchio's placement as ours.
Placement placement_of(const pinocchio::SE3& M) {
  double R[9];
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      R[3 * i + j] = M.rotation()(i, j);
  return {{M.translation()[0], M.translation()[1], M.translation()[2]}, quaternion_from_matrix(R)};
}

/// What one pin joint is for us: a sequence of joints on one body.
struct JointShape {
  std::vector<std::pair<JointType, Vec3>> joints;
  PinocchioJoint::Kind kind = PinocchioJoint::Kind::scalar;
};

/// Every joint of Pinocchio's by its name; throws for those that are not hinges, slides, balls, free or planar
/// joints.
JointShape shape_of(const pinocchio::JointModel& joint, const std::string& what) {
  using namespace pinocchio;
  using Kind = PinocchioJoint::Kind;
  const std::string type = joint.shortname();

  const Vec3 x{1, 0, 0};
  const Vec3 y{0, 1, 0};
  const Vec3 z{0, 0, 1};
  auto vec = [](const auto& v) { return Vec3{v[0], v[1], v[2]}; };
  auto aligned = [&](char c) { return c == 'X' ? x : c == 'Y' ? y : z; };

  // Joints of several dofs: a ball, a body that floats, or a stack of hinges and slides.
  if (type == "JointModelFreeFlyer") return {{{coulomb::JointType::free, z}}, Kind::free};
  if (type == "JointModelSpherical") return {{{coulomb::JointType::ball, z}}, Kind::ball};
  if (type == "JointModelSphericalZYX")
    return {{{coulomb::JointType::hinge, z}, {coulomb::JointType::hinge, y}, {coulomb::JointType::hinge, x}},
            Kind::scalar};
  if (type == "JointModelTranslation")
    return {{{coulomb::JointType::slide, x}, {coulomb::JointType::slide, y}, {coulomb::JointType::slide, z}},
            Kind::scalar};
  if (type == "JointModelPlanar")
    return {{{coulomb::JointType::slide, x}, {coulomb::JointType::slide, y}, {coulomb::JointType::hinge, z}},
            Kind::planar};
  if (type.size() == 12 && type.compare(0, 11, "JointModelR") == 0)
    return {{{coulomb::JointType::hinge, aligned(type[11])}}, Kind::scalar};
  if (type.size() == 12 && type.compare(0, 11, "JointModelP") == 0)
    return {{{coulomb::JointType::slide, aligned(type[11])}}, Kind::scalar};
  if (type.size() == 14 && type.compare(0, 13, "JointModelRUB") == 0)
    return {{{coulomb::JointType::hinge, aligned(type[13])}}, Kind::continuous};
  if (auto j = boost::get<JointModelRevoluteUnaligned>(&joint.toVariant()))
    return {{{coulomb::JointType::hinge, vec(j->axis)}}, Kind::scalar};
  if (auto j = boost::get<JointModelPrismaticUnaligned>(&joint.toVariant()))
    return {{{coulomb::JointType::slide, vec(j->axis)}}, Kind::scalar};
  if (auto j = boost::get<JointModelRevoluteUnboundedUnaligned>(&joint.toVariant()))
    return {{{coulomb::JointType::hinge, vec(j->axis)}}, Kind::continuous};
  throw std::invalid_argument(what + ": joint type " + type + " is not supported");
}

class Translator {
 public:
  Translator(const pinocchio::Model& model, const PinocchioOptions& options, std::string source)
      : m_(model), options_(options), source_(std::move(source)), body_(model.joints.size(), 0) {
    parts_.pinocchio_maps.push_back({options.name, model.nq, model.nv, {}});
  }

  SceneParts run(const pinocchio::GeometryModel* geometry, bool self_collision, FramesKept frames) {
    // A body for what is fixed to a fixed base; a floating base needs none.
    BodyPart base;
    base.name = link_name(0, "base");
    base.placement = {options_.position, options_.quaternion};
    fill_inertia(base, m_.inertias[0]);

    const bool floating = m_.joints.size() > 1 && m_.joints[1].shortname() == "JointModelFreeFlyer";
    if (!floating) {
      parts_.bodies.push_back(base);
      body_[0] = 1;
    }
    add_children(0);
    if (geometry) add_geometries(*geometry, self_collision);
    add_sites(geometry, frames);
    if (options_.actuators) set_motors(source_, options_.motors, parts_);
    return std::move(parts_);
  }

 private:
  /// The first link that is fixed to a joint, as the body's name.
  std::string link_name(pinocchio::JointIndex joint, const std::string& fallback) const {
    for (const auto& frame : m_.frames)
      if (frame.type == pinocchio::BODY && frame.parentJoint == joint && frame.name != "universe") return frame.name;
    return fallback;
  }

  /// Every frame that has a name of its own: the first link of a body gives the body its name. Links come first.
  void add_sites(const pinocchio::GeometryModel* geometry, FramesKept kept) {
    std::set<std::string> taken{"universe"};
    for (const BodyPart& body : parts_.bodies)
      taken.insert(body.name);

    for (const bool links : {true, false}) {
      if (!links && kept == FramesKept::links) break;
      for (std::size_t i = 0; i < m_.frames.size(); ++i) {
        const pinocchio::Frame& frame = m_.frames[i];
        if ((frame.type == pinocchio::BODY) != links || !taken.insert(frame.name).second) continue;
        add_site(frame, links ? std::optional(geometries_of(i, geometry)) : std::nullopt);
      }
    }
  }

  /// A site for a frame; geometries: those of a link.
  void add_site(const pinocchio::Frame& frame, std::optional<std::vector<int>> geometries) {
    const Placement placement = placement_of(frame.placement);
    Site site;
    site.name = frame.name;
    site.frame.body = body_[frame.parentJoint];
    site.frame.pos = placement.pos;
    site.frame.quat = placement.quat;
    site.geometries = std::move(geometries);
    parts_.sites.push_back(std::move(site));
  }

  /// Geometries that hang on a frame; the parser makes them in the order of the scene.
  static std::vector<int> geometries_of(std::size_t frame, const pinocchio::GeometryModel* geometry) {
    std::vector<int> out;
    for (std::size_t g = 0; geometry && g < geometry->geometryObjects.size(); ++g)
      if (geometry->geometryObjects[g].parentFrame == frame) {
        out.push_back(static_cast<int>(g));
      }
    return out;
  }

  /// Mass, centre and inertia of a body, checked.
  void fill_inertia(BodyPart& body, const pinocchio::Inertia& Y) {
    body.mass = Y.mass();
    for (int i = 0; i < 3; ++i)
      body.com[i] = Y.lever()[i];
    const auto I = Y.inertia().matrix();
    body.inertia = {I(0, 0), I(0, 1), I(1, 1), I(0, 2), I(1, 2), I(2, 2)};
    drop_rounding(body);
    check_inertia(source_ + ": link '" + body.name + "'", body.mass, body.com, body.inertia);
  }

  /// Moving inertias between frames leaves traces of either sign where there is none: zero, if not one body's and far below the
  /// others of the robot.
  void drop_rounding(BodyPart& body) {
    double largest = 0;
    double scale = 0;
    for (double x : body.inertia)
      largest = std::max(largest, std::abs(x));
    for (const auto& Y : m_.inertias)
      scale = std::max(scale, Y.inertia().matrix().trace() + Y.mass() * Y.lever().squaredNorm());
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
  void add_children(pinocchio::JointIndex parent) {
    for (pinocchio::JointIndex j = 1; j < m_.joints.size(); ++j)
      if (m_.parents[j] == parent) {
        add_joint(j);
        add_children(j);
      }
  }

  /// A body with the joints of one of Pinocchio's, and where their coordinates lie there and here.
  void add_joint(pinocchio::JointIndex j) {
    const std::string what = source_ + ": joint '" + m_.names[j] + "'";
    const JointShape shape = shape_of(m_.joints[j], what);
    const bool free = shape.kind == PinocchioJoint::Kind::free;
    if (free && m_.parents[j] != 0)
      throw std::invalid_argument(what + ": a free joint below the root is not supported");

    // The body, at its neutral pose. Only a free base is moved by the options: other bodies move with it.
    BodyPart body;
    body.name = link_name(j, m_.names[j]);
    body.parent = free ? 0 : body_[m_.parents[j]];
    body.placement = placement_of(m_.jointPlacements[j]);
    const Placement pin_base = body.placement;
    if (free) {
      body.placement = compose({options_.position, options_.quaternion}, body.placement);
    }
    fill_inertia(body, m_.inertias[j]);
    body_[j] = static_cast<int>(parts_.bodies.size());
    parts_.bodies.push_back(body);

    // A composite of hinges and slides is as many joints here, each with its entry in the map.
    auto& map = parts_.pinocchio_maps[0].joints;
    const int pin_q = m_.idx_qs[j];
    const int pin_v = m_.idx_vs[j];
    const int n = static_cast<int>(shape.joints.size());
    if (shape.kind != PinocchioJoint::Kind::scalar || n == 1)
      map.push_back({shape.kind, pin_q, pin_v, nq_, nv_, pin_base.pos, pin_base.quat});
    for (int i = 0; i < n; ++i) {
      if (shape.kind == PinocchioJoint::Kind::scalar && n > 1)
        map.push_back({shape.kind, pin_q + i, pin_v + i, nq_, nv_, {0, 0, 0}, {1, 0, 0, 0}});
      add_single(j, n > 1 ? m_.names[j] + "_" + std::to_string(i) : m_.names[j], shape, i, what);
    }
  }

  /// Joint number i of those that stand for one of Pinocchio's.
  void add_single(pinocchio::JointIndex j, const std::string& name, const JointShape& shape, int i,
                  const std::string& what) {
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
    const int q = m_.idx_qs[j] + i;
    const int v = m_.idx_vs[j] + i;
    if (!scalar) part.q_neutral[free ? 3 : 0] = 1;
    if (free) {
      const Placement& p = parts_.bodies[part.body].placement;
      std::copy(p.pos.begin(), p.pos.end(), part.q_neutral.begin());
      std::copy(p.quat.begin(), p.quat.end(), part.q_neutral.begin() + 3);
    }
    part.q_spring = part.q_neutral;

    // Limits, damping, armature, friction.
    const bool bounded = scalar && shape.kind == PinocchioJoint::Kind::scalar;
    if (bounded) {
      set_limits(part, m_.lowerPositionLimit[q], m_.upperPositionLimit[q], what);
    }
    for (int k = 0; k < nv; ++k) {
      part.damping[k] = m_.damping[v + k];
      part.armature[k] = m_.armature[v + k];
      part.dry_friction[k] = m_.upperDryFrictionLimit[v + k];
      checks::not_negative(what + " damping", part.damping[k]);
      checks::not_negative(what + " armature", part.armature[k]);
      checks::not_negative(what + " friction", part.dry_friction[k]);
    }

    // A motor for every joint with one dof, then the joint itself.
    if (scalar && options_.actuators && m_.joints[j].shortname() != "JointModelPlanar")
      add_motor(name, m_.upperEffortLimit[v]);
    parts_.joints.push_back(part);
    nq_ += scalar ? 1 : free ? 7 : 4;
    nv_ += nv;
  }

  /// Limits beyond 1e20 are none.
  void set_limits(JointPart& part, double lower, double upper, const std::string& what) {
    if (std::isnan(lower) || std::isnan(upper) || lower > upper)
      throw std::invalid_argument(what + " limits: (" + checks::text(lower) + ", " + checks::text(upper) +
                                  ") is no interval");
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

  /// Geometries with their shapes and masks, and the pairs that Pinocchio lists.
  void add_geometries(const pinocchio::GeometryModel& geometry, bool self_collision) {
    // Without self-collision all geometries are in one group, which does not collide.
    if (!self_collision) parts_.num_collision_groups = 1;
    for (const auto& object : geometry.geometryObjects) {
      GeometryPart part;
      part.name = object.name;
      part.body = body_[object.parentJoint];
      part.placement = placement_of(object.placement);
      part.friction = options_.friction;
      part.restitution = options_.restitution;
      part.compliance = options_.compliance;
      if (!self_collision) part.no_collision_group = 0;
      if (object.disableCollision) part.contype = part.conaffinity = 0;
      set_shape(part, *object.geometry);
      parts_.geometries.push_back(part);
    }
    for (const auto& pair : geometry.collisionPairs)
      if (!geometry.geometryObjects[pair.first].disableCollision &&
          !geometry.geometryObjects[pair.second].disableCollision)
        parts_.pairs.push_back({static_cast<int>(pair.first), static_cast<int>(pair.second), {}, {}});
  }

  /// Shape and size of a geometry, from Coal's object.
  void set_shape(GeometryPart& part, const coal::CollisionGeometry& g) {
    // Meshes and convex shapes are taken by their points: their hull.
    auto points = [&](const std::vector<coal::Vec3s>& from, std::size_t n) {
      std::vector<double> out;
      for (std::size_t i = 0; i < n; ++i)
        out.insert(out.end(), {from[i][0], from[i][1], from[i][2]});
      part.type = ShapeType::mesh;
      part.mesh = static_cast<int>(parts_.meshes.size());
      parts_.meshes.push_back(make_convex_hull(out, part.name));
    };
    if (auto s = dynamic_cast<const coal::ShapeBase*>(&g); s && s->getSweptSphereRadius() != 0)
      throw std::invalid_argument(source_ + ": geometry '" + part.name + "': a swept-sphere radius (" +
                                  checks::text(s->getSweptSphereRadius()) + ") is not supported");

    // Coal's shape is known by its type.
    if (auto s = dynamic_cast<const coal::Halfspace*>(&g)) {
      part.type = ShapeType::half_space;
      part.placement = compose(part.placement, {{s->d * s->n[0], s->d * s->n[1], s->d * s->n[2]},
                                                quaternion_z_to({s->n[0], s->n[1], s->n[2]})});
    } else if (auto s = dynamic_cast<const coal::Sphere*>(&g)) {
      part.type = ShapeType::sphere;
      part.size = {s->radius, 0, 0};
    } else if (auto s = dynamic_cast<const coal::Box*>(&g)) {
      part.type = ShapeType::box;
      part.size = {s->halfSide[0], s->halfSide[1], s->halfSide[2]};
    } else if (auto s = dynamic_cast<const coal::Capsule*>(&g)) {
      part.type = ShapeType::capsule;
      part.size = {s->radius, s->halfLength, 0};
    } else if (auto s = dynamic_cast<const coal::Cylinder*>(&g)) {
      part.type = ShapeType::cylinder;
      part.size = {s->radius, s->halfLength, 0};
    } else if (auto s = dynamic_cast<const coal::Ellipsoid*>(&g)) {
      part.type = ShapeType::ellipsoid;
      part.size = {s->radii[0], s->radii[1], s->radii[2]};
    } else if (auto s = dynamic_cast<const coal::ConvexBase*>(&g))
      points(*s->points, s->num_points);
    else if (auto s = dynamic_cast<const coal::BVHModelBase*>(&g))
      points(*s->vertices, s->num_vertices);
    else
      throw std::invalid_argument(source_ + ": geometry '" + part.name +
                                  "': this shape cannot collide; use primitives or a convex decomposition");

    // Sizes that the shape has are positive.
    const int used = part.type == ShapeType::sphere                                        ? 1
                     : part.type == ShapeType::mesh || part.type == ShapeType::half_space  ? 0
                     : part.type == ShapeType::capsule || part.type == ShapeType::cylinder ? 2
                                                                                           : 3;
    for (int i = 0; i < used; ++i)
      checks::positive(source_ + ": geometry '" + part.name + "' size", part.size[i]);
  }

  const pinocchio::Model& m_;
  const PinocchioOptions& options_;
  std::string source_;
  std::vector<int> body_;
  SceneParts parts_;
  int nq_ = 0;
  int nv_ = 0;
};

}  // namespace

SceneParts pinocchio_parts(const pinocchio::Model& model, const pinocchio::GeometryModel* geometry,
                           const PinocchioOptions& options, bool self_collision, FramesKept frames,
                           const std::string& source) {
  return Translator(model, options, source).run(geometry, self_collision, frames);
}

}  // namespace coulomb
