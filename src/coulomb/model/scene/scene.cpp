// The verbs of Scene: each checks its arguments, makes a SceneParts of its own and appends it, so that an error changes nothing.
#include "coulomb/scene.hpp"

#include <algorithm>
#include <utility>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/loaders/mjcf.hpp"
#include "coulomb/model/loaders/mujoco_arrays.hpp"
#include "coulomb/model/loaders/robot_parts.hpp"
#include "coulomb/model/loaders/urdf.hpp"
#include "coulomb/model/name_hints.hpp"
#include "coulomb/model/placement.hpp"
#include "coulomb/model/scene/actuator_laws.hpp"
#include "coulomb/model/scene/build_model.hpp"
#include "coulomb/model/scene/check_parts.hpp"
#include "coulomb/model/scene/limit_springs.hpp"
#include "coulomb/model/scene/materials.hpp"
#include "coulomb/model/scene/name_pool.hpp"
#include "coulomb/model/shapes/convex_mesh.hpp"
#include "coulomb/model/shapes/shape_inertia.hpp"
#include "coulomb/model/shapes/triangle_surface.hpp"

namespace coulomb {
namespace {

/// Elements are known by their names; a keyframe's lies with its values.
inline std::string& name_of(KeyframePart& part) { return part.values.name; }
template <class Part>
std::string& name_of(Part& part) {
  return part.name;
}

/// Names of elements, for messages.
template <class Part>
std::vector<std::string> names_in(const std::vector<Part>& parts) {
  std::vector<std::string> out;
  for (const Part& part : parts)
    out.push_back(part.name);
  return out;
}

/// Appends with names made unique; `first` skips the world body.
template <class Part>
void append_named(std::vector<Part>& to, std::vector<Part>& from, NamePool& names, std::size_t first = 0) {
  for (std::size_t i = first; i < from.size(); ++i) {
    name_of(from[i]) = names.free(name_of(from[i]));
    names.add(name_of(from[i]));
    to.push_back(std::move(from[i]));
  }
}

/// Frames and elements of sites and sensors, moved behind what is already there.
void shift_sensors(SceneParts& p, const SceneParts& base, int bodies, int joints, int geometries) {
  const auto shift = [&](Frame& frame) {
    if (frame.body > 0) frame.body += bodies;
    if (frame.geometry >= 0) frame.geometry += geometries;
  };
  for (Site& site : p.sites) {
    shift(site.frame);
    if (!site.geometries) continue;
    for (int& geometry : *site.geometries)
      geometry += geometries;
  }

  // A sensor's index means a body, a site, an actuator, a tendon or a joint.
  for (Sensor& s : p.sensors) {
    shift(s.frame);
    if (s.reference) shift(*s.reference);
    switch (s.type) {
      case SensorType::subtree_com:
      case SensorType::subtree_angular_momentum:
      case SensorType::subtree_velocity: s.index += s.index > 0 ? bodies : 0; break;
      case SensorType::touch: s.index += static_cast<int>(base.sites.size()); break;
      case SensorType::actuator_position:
      case SensorType::actuator_velocity:
      case SensorType::actuator_force: s.index += static_cast<int>(base.actuators.size()); break;
      case SensorType::inside_site: s.index += static_cast<int>(base.sites.size()); break;
      case SensorType::contact: s.index += s.index >= 0 ? static_cast<int>(base.sites.size()) : 0; break;
      case SensorType::tendon_length:
      case SensorType::tendon_velocity:
      case SensorType::tendon_limit_position:
      case SensorType::tendon_limit_velocity:
      case SensorType::tendon_actuator_force:
      case SensorType::tendon_limit_force: s.index += static_cast<int>(base.tendons.size()); break;
      default: s.index += joints;
    }

    // Its groups mean a geometry or a body.
    if (!s.contacts) continue;
    for (GeometryGroup& group : s.contacts->groups) {
      if (group.of == GeometryGroup::Of::geometry) group.index += geometries;
      const bool of_body = group.of == GeometryGroup::Of::body || group.of == GeometryGroup::Of::subtree;
      if (of_body && group.index > 0) group.index += bodies;
    }
  }
}

/// What a file says of the medium, for all of the scene; two files must not say different things.
std::optional<Medium> merged_medium(const std::optional<Medium>& known, const std::optional<Medium>& own,
                                    const std::string& name) {
  if (!known || !own) return known ? known : own;
  if (known->density != own->density || known->viscosity != own->viscosity || known->wind != own->wind)
    throw std::invalid_argument(
        "'" + name + "': its medium (density " + checks::text(own->density) + ", viscosity " +
        checks::text(own->viscosity) +
        ", or the wind) is not that of what was added before; a scene has one: change the file, "
        "or add it with use_options=False");
  return known;
}

/// Indices of what is about to be appended, moved behind what is already there.
void shift_indices(SceneParts& p, const SceneParts& base) {
  // How far each kind of index moves; -1 and the world stay what they are.
  const int bodies = static_cast<int>(base.bodies.size()) - 1;
  const int joints = static_cast<int>(base.joints.size());
  const int geometries = static_cast<int>(base.geometries.size());
  const int meshes = static_cast<int>(base.meshes.size());
  const int surfaces = static_cast<int>(base.surfaces.size());
  auto body = [bodies](int b) { return b > 0 ? b + bodies : b; };
  auto joint = [joints](int j) { return j >= 0 ? j + joints : j; };
  const int tendons = static_cast<int>(base.tendons.size());
  auto tendon = [tendons](int t) { return t >= 0 ? t + tendons : t; };

  // Coordinates of keyframes and maps move by those of all joints.
  int nq = 0;
  int nv = 0;
  for (const JointPart& j : base.joints) {
    nq += j.type == JointType::free ? 7 : j.type == JointType::ball ? 4 : 1;
    nv += j.type == JointType::free ? 6 : j.type == JointType::ball ? 3 : 1;
  }

  // Bodies, joints, geometries, and what refers to them.
  for (BodyPart& b : p.bodies)
    b.parent = body(b.parent);
  for (JointPart& j : p.joints)
    j.body = body(j.body);
  for (GeometryPart& g : p.geometries) {
    g.body = body(g.body);
    if (g.mesh >= 0) g.mesh += g.type == ShapeType::surface ? surfaces : meshes;
    if (g.no_collision_group >= 0) {
      g.no_collision_group += base.num_collision_groups;
    }
  }
  for (PairPart& pair : p.pairs) {
    pair.a += geometries;
    pair.b += geometries;
  }
  for (auto& exclude : p.excludes)
    exclude = {body(exclude[0]), body(exclude[1])};
  for (Tendon& t : p.tendons) {
    for (int& j : t.joints)
      j = joint(j);
    for (TendonPoint& point : t.path) {
      point.body = body(point.body);
      point.side_body = body(point.side_body);
    }
  }
  for (Actuator& a : p.actuators) {
    a.joint = joint(a.joint);
    a.tendon = tendon(a.tendon);
    a.body = body(a.body);
    a.reference_body = body(a.reference_body);
  }
  for (Equality& e : p.equalities) {
    e.body_a = body(e.body_a);
    e.body_b = body(e.body_b);
    e.joint_a = joint(e.joint_a);
    e.joint_b = joint(e.joint_b);
    e.tendon_a = tendon(e.tendon_a);
    e.tendon_b = tendon(e.tendon_b);
  }

  // Keyframes and maps to Pinocchio.
  for (KeyframePart& k : p.keyframes) {
    k.first_q += nq;
    k.first_v += nv;
    k.first_u += static_cast<int>(base.actuators.size());
  }
  for (PinocchioMap& map : p.pinocchio_maps)
    for (PinocchioJoint& j : map.joints) {
      j.q += nq;
      j.v += nv;
    }
  shift_sensors(p, base, bodies, joints, geometries);
}

/// An option of the scene that several files may set, if to one value.
template <class T>
void merge_option(std::optional<T>& mine, const std::optional<T>& theirs, const char* what, const std::string& name) {
  if (!theirs) return;
  if (mine && *mine != *theirs)
    throw std::invalid_argument(std::string(what) + " of '" + name +
                                "' differs from that of a file added before: set Scene's own " + what +
                                " or use_options = false");
  mine = theirs;
}

}  // namespace

Scene::Scene(const SceneOptions& options) : options_(options), names_(std::make_unique<Names>()) {
  if (options.gravity) {
    checks::finite("Scene: gravity", options.gravity->data(), 3);
  }
  if (options.timestep) {
    checks::positive("Scene: timestep", *options.timestep);
  }
  checks::not_negative("Scene: contact_margin", options.contact_margin);
  names_->bodies.add(parts_.bodies[0].name);
  names_->shapes.add(parts_.bodies[0].name);
}

Scene::~Scene() = default;
Scene::Scene(Scene&& other) noexcept = default;
Scene& Scene::operator=(Scene&& other) noexcept = default;

Scene::Scene(const Scene& other)
    : options_(other.options_), parts_(other.parts_), names_(std::make_unique<Names>(*other.names_)) {}

Scene& Scene::operator=(const Scene& other) { return *this = Scene(other); }

SceneElement Scene::append(SceneParts parts, const std::string& name) {
  // What may be refused comes first: an error changes nothing.
  check_parts(name, parts);
  std::optional<Vec3> gravity = parts_.gravity;
  std::optional<double> timestep = parts_.timestep;
  const std::optional<Medium> medium = merged_medium(parts_.medium, parts.medium, name);
  if (!options_.gravity) {
    merge_option(gravity, parts.gravity, "gravity", name);
  }
  if (!options_.timestep) {
    merge_option(timestep, parts.timestep, "timestep", name);
  }
  parts_.gravity = gravity;
  parts_.timestep = timestep;
  parts_.medium = medium;

  // What the caller gets to know the new elements by.
  SceneElement element;
  element.name = name;
  element.first_body = static_cast<int>(parts_.bodies.size());
  element.first_joint = static_cast<int>(parts_.joints.size());
  element.first_geometry = static_cast<int>(parts_.geometries.size());
  element.num_bodies = static_cast<int>(parts.bodies.size()) - 1;
  element.num_joints = static_cast<int>(parts.joints.size());
  element.num_geometries = static_cast<int>(parts.geometries.size());

  // Elements go behind those that are there, under names of their own.
  shift_indices(parts, parts_);
  append_named(parts_.bodies, parts.bodies, names_->bodies, 1);
  append_named(parts_.joints, parts.joints, names_->joints);
  append_named(parts_.geometries, parts.geometries, names_->geometries);
  append_named(parts_.tendons, parts.tendons, names_->tendons);
  append_named(parts_.actuators, parts.actuators, names_->actuators);
  append_named(parts_.equalities, parts.equalities, names_->equalities);
  append_named(parts_.keyframes, parts.keyframes, names_->keyframes);
  append_named(parts_.sites, parts.sites, names_->sites);
  append_named(parts_.sensors, parts.sensors, names_->sensors);
  append_named(parts_.pinocchio_maps, parts.pinocchio_maps, names_->pinocchio_maps);

  // A body and its geometry may have one name; the next shape may not take it.
  for (std::size_t b = element.first_body; b < parts_.bodies.size(); ++b)
    names_->shapes.add(parts_.bodies[b].name);
  for (std::size_t g = element.first_geometry; g < parts_.geometries.size(); ++g)
    names_->shapes.add(parts_.geometries[g].name);

  // All else has no name.
  auto add = [](auto& to, auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  add(parts_.meshes, parts.meshes);
  add(parts_.surfaces, parts.surfaces);
  add(parts_.pairs, parts.pairs);
  add(parts_.excludes, parts.excludes);
  add(parts_.ignored, parts.ignored);
  add(parts_.deviations, parts.deviations);
  parts_.num_collision_groups += parts.num_collision_groups;
  parts_.filter_parent_child = parts_.filter_parent_child && parts.filter_parent_child;
  return element;
}

void Scene::add_deviation(const std::string& line) { parts_.deviate(line); }

/// Who is given a coefficient has contacts with the rows for it.
static void set_further_friction(const std::optional<double>& torsional, const std::optional<double>& rolling,
                                 GeometryPart& g) {
  if (torsional) {
    g.torsional_friction = torsional;
    g.condim = std::max(g.condim, least_torsional_condim);
  }
  if (rolling) {
    g.rolling_friction = rolling;
    g.condim = std::max(g.condim, rolling_condim);
  }
}

SceneElement Scene::add_ground(const GroundOptions& options) {
  // Everything is checked before anything changes.
  const std::string what = "add_ground '" + options.name + "'";
  checks::material(what, options.friction, options.restitution, options.compliance);
  checks::further_friction(what, options.torsional_friction, options.rolling_friction);
  checks::penalty_material(what, options.penalty);
  checks::finite(what + " height", &options.height, 1);
  const Vec3 normal = checks::unit_vector(what + " normal", options.normal);
  const bool default_name = options.name == "ground" || options.name.empty();
  if (!default_name && names_->geometries.has(options.name))
    throw std::invalid_argument("add_ground: name '" + options.name + "' is taken by another geometry");

  // One geometry of the world: the half-space below a plane.
  SceneParts parts;
  GeometryPart g;
  g.name = options.name.empty() ? "ground" : options.name;
  g.type = ShapeType::half_space;
  g.placement = {{options.height * normal[0], options.height * normal[1], options.height * normal[2]},
                 quaternion_z_to(normal)};
  g.friction = options.friction;
  g.restitution = options.restitution;
  g.compliance = options.compliance;
  g.penalty = options.penalty;
  set_further_friction(options.torsional_friction, options.rolling_friction, g);
  parts.geometries.push_back(g);
  SceneElement element = append(std::move(parts), g.name);
  element.name = parts_.geometries[element.first_geometry].name;
  return element;
}

SceneElement Scene::add_surface(const std::string& what, std::shared_ptr<const TriangleSurface> surface,
                                const char* kind, const SurfaceOptions& options) {
  SceneParts parts;
  GeometryPart g;
  g.name = options.name.empty() ? names_->geometries.free(kind) : options.name;
  g.type = ShapeType::surface;
  g.mesh = 0;
  g.placement = {options.position, checks::unit_quaternion(what + " quaternion", options.quaternion)};
  g.friction = options.friction;
  g.restitution = options.restitution;
  g.compliance = options.compliance;
  g.penalty = options.penalty;
  set_further_friction(options.torsional_friction, options.rolling_friction, g);
  parts.surfaces.push_back(std::move(surface));
  parts.geometries.push_back(g);
  SceneElement element = append(std::move(parts), g.name);
  element.name = parts_.geometries[element.first_geometry].name;
  return element;
}

/// Throws what is wrong with everything but the triangles.
void Scene::check_surface(const std::string& what, const SurfaceOptions& options) const {
  checks::finite(what + " position", options.position.data(), 3);
  checks::unit_quaternion(what + " quaternion", options.quaternion);
  checks::material(what, options.friction, options.restitution, options.compliance);
  checks::further_friction(what, options.torsional_friction, options.rolling_friction);
  checks::penalty_material(what, options.penalty);
  if (!options.name.empty() && names_->geometries.has(options.name))
    throw std::invalid_argument(what + ": name '" + options.name + "' is taken by another geometry");
}

SceneElement Scene::add_heightfield(const HeightField& field, const SurfaceOptions& options) {
  const std::string what = "add_heightfield" + (options.name.empty() ? "" : " '" + options.name + "'");
  check_surface(what, options);
  if (static_cast<long>(field.heights.size()) != static_cast<long>(field.rows) * field.columns)
    throw std::invalid_argument(what + " heights: " + std::to_string(field.heights.size()) + " numbers, expected " +
                                std::to_string(field.rows) + " x " + std::to_string(field.columns));
  return add_surface(what, make_height_field(field, what), "heightfield", options);
}

SceneElement Scene::add_triangle_mesh(const std::vector<double>& vertices, const std::vector<int>& triangles,
                                      const SurfaceOptions& options) {
  const std::string what = "add_triangle_mesh" + (options.name.empty() ? "" : " '" + options.name + "'");
  check_surface(what, options);
  return add_surface(what, make_triangle_surface(vertices, triangles, what), "triangle_mesh", options);
}

SceneElement Scene::add_shape(ShapeType type, const std::array<double, 3>& size, std::shared_ptr<const ConvexMesh> mesh,
                              const char* kind, const ShapeOptions& options) {
  // Everything is checked before anything changes.
  const std::string what = std::string("add_") + kind + (options.name.empty() ? "" : " '" + options.name + "'");
  checks::finite(what + " position", options.position.data(), 3);
  const Quat quaternion = checks::unit_quaternion(what + " quaternion", options.quaternion);
  checks::material(what, options.friction, options.restitution, options.compliance);
  checks::further_friction(what, options.torsional_friction, options.rolling_friction);
  checks::penalty_material(what, options.penalty);
  checks::contact_points(what, options.contact_points);
  if (options.mass && options.density)
    throw std::invalid_argument(what + ": mass and density are both given, one is enough");
  if (options.mass) {
    checks::positive(what + " mass", *options.mass);
  }
  if (options.density) {
    checks::positive(what + " density", *options.density);
  }
  if (!options.name.empty() && names_->shapes.has(options.name))
    throw std::invalid_argument(what + ": name '" + options.name + "' is taken by another element");

  // A body with the inertia of the solid, scaled to the mass that is asked for.
  SceneParts parts;
  BodyPart body;
  body.name = options.name.empty() ? names_->shapes.free(kind) : options.name;
  body.placement = {options.position, quaternion};
  const MassProperties solid = solid_properties(type, size, mesh.get());
  body.mass = options.mass ? *options.mass : options.density.value_or(1000.0) * solid.mass;
  body.com = solid.com;
  for (int i = 0; i < 6; ++i)
    body.inertia[i] = options.inertia ? (*options.inertia)[i] : solid.inertia[i] * (body.mass / solid.mass);
  check_inertia(what, body.mass, body.com, body.inertia);
  parts.bodies.push_back(body);

  // It moves freely, from where it is placed, unless it is fixed.
  if (!options.fixed) {
    JointPart joint;
    joint.name = body.name + "_joint";
    joint.type = JointType::free;
    joint.body = 1;
    for (int i = 0; i < 3; ++i)
      joint.q_neutral[i] = options.position[i];
    for (int i = 0; i < 4; ++i)
      joint.q_neutral[3 + i] = quaternion[i];
    joint.q_spring = joint.q_neutral;
    parts.joints.push_back(joint);
  }

  // Its geometry.
  GeometryPart g;
  g.name = body.name;
  g.type = type;
  g.body = 1;
  g.size = size;
  g.friction = options.friction;
  g.restitution = options.restitution;
  g.compliance = options.compliance;
  g.penalty = options.penalty;
  set_further_friction(options.torsional_friction, options.rolling_friction, g);
  g.contact_points = options.contact_points;
  if (mesh) {
    g.mesh = 0;
    parts.meshes.push_back(std::move(mesh));
  }
  parts.geometries.push_back(g);
  return append(std::move(parts), body.name);
}

SceneElement Scene::add_box(const std::array<double, 3>& size, const ShapeOptions& options) {
  for (int i = 0; i < 3; ++i)
    checks::positive("add_box '" + options.name + "' size[" + std::to_string(i) + "]", size[i]);
  return add_shape(ShapeType::box, {size[0] / 2, size[1] / 2, size[2] / 2}, nullptr, "box", options);
}

SceneElement Scene::add_sphere(double radius, const ShapeOptions& options) {
  checks::positive("add_sphere '" + options.name + "' radius", radius);
  return add_shape(ShapeType::sphere, {radius, 0, 0}, nullptr, "sphere", options);
}

SceneElement Scene::add_capsule(double radius, double length, const ShapeOptions& options) {
  checks::positive("add_capsule '" + options.name + "' radius", radius);
  checks::positive("add_capsule '" + options.name + "' length", length);
  return add_shape(ShapeType::capsule, {radius, length / 2, 0}, nullptr, "capsule", options);
}

SceneElement Scene::add_cylinder(double radius, double length, const ShapeOptions& options) {
  checks::positive("add_cylinder '" + options.name + "' radius", radius);
  checks::positive("add_cylinder '" + options.name + "' length", length);
  return add_shape(ShapeType::cylinder, {radius, length / 2, 0}, nullptr, "cylinder", options);
}

SceneElement Scene::add_ellipsoid(const std::array<double, 3>& semi_axes, const ShapeOptions& options) {
  for (int i = 0; i < 3; ++i)
    checks::positive("add_ellipsoid '" + options.name + "' semi_axes[" + std::to_string(i) + "]", semi_axes[i]);
  return add_shape(ShapeType::ellipsoid, semi_axes, nullptr, "ellipsoid", options);
}

SceneElement Scene::add_mesh(const std::vector<double>& vertices, const ShapeOptions& options) {
  const std::string what = "add_mesh '" + options.name + "' vertices";
  if (vertices.size() % 3 != 0 || vertices.size() < 12)
    throw std::invalid_argument(what + ": " + std::to_string(vertices.size()) +
                                " coordinates; at least four points of three are needed");
  checks::finite(what, vertices.data(), static_cast<int>(vertices.size()));
  return add_shape(ShapeType::mesh, {0, 0, 0}, make_convex_hull(vertices, options.name.empty() ? "mesh" : options.name),
                   "mesh", options);
}

SceneElement Scene::add_mujoco_arrays(const MujocoArrays& arrays, const MjcfOptions& options) {
  check_robot_name("add_mjcf", options.name);
  SceneParts parts = translate_mujoco_arrays(arrays, options.file_softness);
  if (!options.use_options) {
    parts.gravity.reset();
    parts.timestep.reset();
    parts.medium.reset();
  }
  set_limit_springs("add_mjcf", options.limits, parts);
  return append_robot(std::move(parts), options.name.empty() ? arrays.name : options.name);
}

SceneElement Scene::add_mjcf(const std::string& path_or_xml, const MjcfOptions& options) {
  return add_mujoco_arrays(read_mjcf(path_or_xml), options);
}

SceneElement Scene::add_urdf(const std::string& path_or_xml, const UrdfOptions& options) {
  check_robot_name("add_urdf", options.name);
  std::string name = options.name;
  SceneParts parts = read_urdf(path_or_xml, options, name);
  set_limit_springs("add_urdf", options.limits, parts);
  return append_robot(std::move(parts), name);
}

SceneElement Scene::add_robot(const RobotDescription& robot, const RobotOptions& options) {
  check_robot_name(robot.source, options.name);

  // Options first, then the robot.
  RobotOptions checked = options;
  checks::finite(robot.source + " position", options.position.data(), 3);
  checked.quaternion = checks::unit_quaternion(robot.source + " quaternion", options.quaternion);
  checks::material(robot.source, options.friction, options.restitution, options.compliance);
  if (checked.name.empty()) {
    checked.name = robot.name;
  }

  SceneParts parts = robot_parts(robot, checked, false, FramesKept::all);
  if (!robot.shapes.empty() && robot.pairs.empty())
    parts.ignored.push_back(robot.source + ": no collision pairs, so no self-collision");
  return append_robot(std::move(parts), checked.name);
}

void Scene::check_robot_name(const std::string& verb, const std::string& name) const {
  if (!name.empty() && names_->robots.has(name))
    checks::fail(verb + " name", "'" + name + "' is taken by a robot added before");
}

SceneElement Scene::append_robot(SceneParts parts, const std::string& name) {
  // The scene's name for it is also the one of its coordinates in Pinocchio.
  const std::string own = names_->robots.free(name);
  for (PinocchioMap& map : parts.pinocchio_maps)
    if (map.name == name) map.name = own;

  SceneElement element = append(std::move(parts), own);
  names_->robots.add(own);
  return element;
}

std::string Scene::add_actuator(const std::string& joint, const ActuatorOptions& options) {
  const std::string what = "add_actuator '" + joint + "'";
  const int on = joint_named(what, joint);
  if (!options.name.empty() && names_->actuators.has(options.name))
    checks::fail(what + " name", "'" + options.name + "' is taken by another actuator");

  // Everything was fine: the actuator joins the scene.
  Actuator actuator = make_actuator(what, parts_.joints, on, options);
  actuator.name = names_->actuators.free(actuator.name);
  names_->actuators.add(actuator.name);
  parts_.actuators.push_back(actuator);
  return actuator.name;
}

void Scene::set_joint_limits(const std::string& joint, const JointLimitOptions& options) {
  const std::string what = "set_joint_limits '" + joint + "'";
  JointPart& part = parts_.joints[joint_named(what, joint)];
  part = with_limits(what, part, options);
}

int Scene::joint_named(const std::string& what, const std::string& joint) const {
  const auto at = std::find_if(parts_.joints.begin(), parts_.joints.end(),
                               [&](const JointPart& part) { return part.name == joint; });
  if (at == parts_.joints.end()) {
    checks::fail(what, no_such("joint", joint, names_in(parts_.joints), "the scene"));
  }
  return static_cast<int>(at - parts_.joints.begin());
}

int Scene::geometry_named(const std::string& what, const std::string& geometry) const {
  const auto at = std::find_if(parts_.geometries.begin(), parts_.geometries.end(),
                               [&](const GeometryPart& g) { return g.name == geometry; });
  if (at == parts_.geometries.end())
    checks::fail(what, no_such("geometry", geometry, names_in(parts_.geometries), "the scene"));
  return static_cast<int>(at - parts_.geometries.begin());
}

void Scene::set_contact(const std::string& geometry, const ContactOptions& options) {
  const std::string what = "set_contact '" + geometry + "'";
  GeometryPart& part = parts_.geometries[geometry_named(what, geometry)];

  // What is given changes; what is not stays. The result is checked before the scene has it.
  PenaltyMaterial m = part.penalty;
  if (options.stiffness) m.stiffness = options.stiffness;
  if (options.damping) m.damping = options.damping;
  if (options.friction_stiffness) m.friction_stiffness = options.friction_stiffness;
  if (options.scale) m.scale = *options.scale;
  if (options.dashpot) m.dashpot = options.dashpot;
  checks::penalty_material(what, m);
  checks::surface(what, options.friction, options.restitution);
  checks::further_friction(what, options.torsional_friction, options.rolling_friction);
  if (options.points) {
    checks::contact_points(what, *options.points);
  }
  if (options.points && !options.points->empty() && is_ground(part.type))
    throw std::invalid_argument(what +
                                " contact_points: a half-space or surface has none, those of other shapes touch it");

  // Everything was fine.
  part.penalty = m;
  if (options.friction) part.friction = options.friction;
  if (options.restitution) part.restitution = options.restitution;
  set_further_friction(options.torsional_friction, options.rolling_friction, part);
  if (options.points) part.contact_points = *options.points;
}

void Scene::set_contact(const std::string& a, const std::string& b, const PairOptions& options) {
  // Two geometries that can meet.
  const std::string what = "set_contact '" + a + "', '" + b + "'";
  const int of_a = geometry_named(what, a);
  const int of_b = geometry_named(what, b);
  if (parts_.geometries[of_a].body == parts_.geometries[of_b].body)
    checks::fail(what, "both are of body '" + parts_.bodies[parts_.geometries[of_a].body].name +
                           "' and never touch: name geometries of two bodies");
  checks::surface(what, options.friction, options.restitution);
  checks::further_friction(what, options.torsional_friction, options.rolling_friction);

  // A pair that has values already keeps those that are not given; of several entries the last counts.
  const auto is_this = [&](const PairPart& p) { return std::minmax(p.a, p.b) == std::minmax(of_a, of_b); };
  const auto known = std::find_if(parts_.pairs.rbegin(), parts_.pairs.rend(), is_this);
  PairPart pair = known == parts_.pairs.rend() ? PairPart{of_a, of_b, {}, {}, {}, {}, {}, {}} : *known;
  if (options.friction) pair.friction = options.friction;
  if (options.restitution) pair.restitution = options.restitution;
  if (options.torsional_friction) pair.torsional_friction = options.torsional_friction;
  if (options.rolling_friction) pair.rolling_friction = options.rolling_friction;

  // A pair that is named has a value of its own: that of the two as they are, if none is given. It is never left out then.
  if (!pair.friction && !pair.restitution && !pair.torsional_friction && !pair.rolling_friction) {
    const auto material_of = [&](int geometry) {
      const GeometryPart& g = parts_.geometries[geometry];
      return GeometryMaterial{g.friction, g.restitution, g.compliance, g.priority, g.condim, g.penalty, {}, {}};
    };
    pair.friction = combine_materials(material_of(of_a), material_of(of_b)).friction;
  }
  if (known == parts_.pairs.rend())
    parts_.pairs.push_back(pair);
  else
    *known = pair;
}

std::shared_ptr<const Model> Scene::build() const {
  // The scene's own options come before those of its files, and defaults last.
  const Vec3 gravity = options_.gravity ? *options_.gravity : parts_.gravity.value_or(Vec3{0, 0, -9.81});
  const double timestep = options_.timestep ? *options_.timestep : parts_.timestep.value_or(1e-3);
  return build_model(parts_, gravity, timestep, options_.contact_margin);
}

}  // namespace coulomb
