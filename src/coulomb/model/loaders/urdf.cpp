// URDF to a RobotDescription through urdfdom, the format's own parser, which trusts the text: urdf_check looks at it first.
#include "coulomb/model/loaders/urdf.hpp"

#include <console_bridge/console.h>
#include <tinyxml2.h>
#include <urdf_model/model.h>
#include <urdf_parser/urdf_parser.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/loaders/is_file.hpp"
#include "coulomb/model/loaders/mesh_files.hpp"
#include "coulomb/model/loaders/robot_parts.hpp"
#include "coulomb/model/loaders/urdf_check.hpp"
#include "coulomb/model/shapes/convex_mesh.hpp"
#include "coulomb/model/shapes/shape_inertia.hpp"

namespace coulomb {
namespace {

// m: of spheres of radius 0, which some files write for points; far below what contacts let in, and a sphere to all the rest
constexpr double radius_of_points = 1e-6;

using tinyxml2::XMLElement;

// --- reading the text ---

/// The file's text.
std::string load(const std::string& path) {
  if (!is_file(path)) {
    throw std::invalid_argument("URDF: no such file: '" + shortened(path) + "'");
  }
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Keeps what urdfdom has to say, which else goes to stderr. console_bridge has one listener for the whole process.
class Messages : public console_bridge::OutputHandler {
 public:
  Messages() : lock_(mutex()), before_(console_bridge::getOutputHandler()) { console_bridge::useOutputHandler(this); }
  ~Messages() override { console_bridge::useOutputHandler(before_); }

  void log(const std::string& text, console_bridge::LogLevel level, const char*, int) override {
    if (level >= console_bridge::CONSOLE_BRIDGE_LOG_ERROR) {
      errors += (errors.empty() ? "" : "; ") + text;
    }
  }

  std::string errors;

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  std::lock_guard<std::mutex> lock_;
  console_bridge::OutputHandler* before_;
};

urdf::ModelInterfaceSharedPtr parse(const std::string& text, const std::string& source) {
  Messages messages;
  std::string why;
  try {
    if (auto model = urdf::parseURDF(text); model && model->getRoot()) return model;
  } catch (const std::exception& error) {
    why = error.what();
  }
  checks::fail(source, "urdfdom cannot read it: " + (why.empty() ? messages.errors : why));
}

/// Elements of a kind, anywhere below.
std::vector<const XMLElement*> all_below(const XMLElement& element, const char* tag) {
  std::vector<const XMLElement*> found;
  for (const XMLElement* child = element.FirstChildElement(); child != nullptr; child = child->NextSiblingElement()) {
    if (child->Name() == std::string(tag)) {
      found.push_back(child);
    }
    const auto deeper = all_below(*child, tag);
    found.insert(found.end(), deeper.begin(), deeper.end());
  }
  return found;
}

// --- urdfdom's tree as a description ---

Placement placement_of(const urdf::Pose& pose) {
  Placement placement;
  placement.pos = {pose.position.x, pose.position.y, pose.position.z};
  pose.rotation.getQuaternion(placement.quat[1], placement.quat[2], placement.quat[3], placement.quat[0]);
  return placement;
}

/// Adds a solid to the inertia of all that moves with a joint. own: its inertia about its centre, Ixx Ixy Iyy Ixz Iyz Izz; centre: its
/// place and axes in the joint's frame. (parallel axes)
void add_inertia(double solid_mass, const std::array<double, 6>& own, const Placement& centre, RobotInertia& to) {
  // The solid's, in the axes of the joint.
  double R[9];
  double turned[9];
  double I[9];
  quaternion_to_matrix(centre.quat.data(), R);
  const double of_link[9] = {own[0], own[1], own[3], own[1], own[2], own[4], own[3], own[4], own[5]};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      turned[3 * i + j] = 0;
      for (int k = 0; k < 3; ++k)
        turned[3 * i + j] += R[3 * i + k] * of_link[3 * k + j];
    }
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      I[3 * i + j] = 0;
      for (int k = 0; k < 3; ++k)
        I[3 * i + j] += turned[3 * i + k] * R[3 * j + k];
    }

  // Both about the common centre: the distance d of the two centres weighs with the reduced mass.
  const double mass = to.mass + solid_mass;
  const double reduced = mass > 0 ? to.mass * solid_mass / mass : 0.0;
  double d[3];
  sub3(centre.pos.data(), to.com.data(), d);
  const double dd = dot3(d, d);
  constexpr int rows[6] = {0, 0, 1, 0, 1, 2};
  constexpr int columns[6] = {0, 1, 1, 2, 2, 2};
  for (int e = 0; e < 6; ++e) {
    const int i = rows[e];
    const int j = columns[e];
    to.inertia[e] += I[3 * i + j] + reduced * ((i == j ? dd : 0.0) - d[i] * d[j]);
  }
  for (int i = 0; i < 3 && mass > 0; ++i)
    to.com[i] += solid_mass / mass * d[i];
  to.mass = mass;
}

class Reader {
 public:
  /// densities: kg/m^3, of the links whose shapes give them their inertia.
  Reader(const urdf::ModelInterface& model, const XMLElement& xml, const std::string& source,
         const UrdfOptions& options, std::vector<std::string> folders, const std::map<std::string, double>& densities)
      : options_(options), folders_(std::move(folders)), densities_(densities) {
    robot_.name = model.getName();
    robot_.source = source;
    find_capsules(xml);

    // The root stands, or floats.
    int root = -1;
    if (options.floating_base) {
      RobotJoint free;
      free.name = "root_joint";
      free.type = RobotJointType::free;
      root = append(free, 7, 6);
    }
    add_link(*model.getRoot(), root, {});
  }

  RobotDescription robot() { return std::move(robot_); }
  /// What moves otherwise than the file may want.
  std::vector<std::string> deviations;

 private:
  /// <collision_checking><capsule name="x"/>: the cylinder x of that link is to be taken for a capsule, an extension of Pinocchio's.
  void find_capsules(const XMLElement& xml) {
    for (const XMLElement* checking : all_below(xml, "collision_checking"))
      for (const XMLElement* capsule : all_below(*checking, "capsule")) {
        const auto* link = checking->Parent()->ToElement();
        const char* link_name = link == nullptr ? nullptr : link->Attribute("name");
        const char* name = capsule->Attribute("name");
        if (link_name != nullptr && name != nullptr) {
          capsules_.emplace(link_name, name);
        }
      }
  }

  /// The joint's number.
  int append(RobotJoint joint, int nq, int nv) {
    joint.q = robot_.nq;
    joint.v = robot_.nv;
    robot_.nq += nq;
    robot_.nv += nv;
    robot_.joints.push_back(std::move(joint));
    return static_cast<int>(robot_.joints.size()) - 1;
  }

  /// A link that rides on a joint, `placement` in the joint's frame; then what hangs on the link, in the order of the joints' names.
  void add_link(const urdf::Link& link, int joint, const Placement& placement) {
    const int frame = static_cast<int>(robot_.frames.size());
    robot_.frames.push_back({link.name, joint, placement, true});
    if (link.inertial) {
      const urdf::Inertial& own = *link.inertial;
      const std::array<double, 6> inertia{own.ixx, own.ixy, own.iyy, own.ixz, own.iyz, own.izz};
      add_inertia(own.mass, inertia, compose(placement, placement_of(own.origin)), inertia_of(joint));
    }
    add_shapes(link, joint, frame);
    if (const auto density = densities_.find(link.name); density != densities_.end())
      add_solid_shapes(density->second, frame, inertia_of(joint));

    // A fixed joint's child rides along; other joints carry it.
    for (const urdf::JointSharedPtr& next : link.child_joints) {
      const auto child = std::find_if(link.child_links.begin(), link.child_links.end(),
                                      [&](const auto& candidate) { return candidate->name == next->child_link_name; });
      const Placement there = compose(placement, placement_of(next->parent_to_joint_origin_transform));
      if (next->type == urdf::Joint::FIXED)
        add_link(**child, joint, there);
      else
        add_link(**child, add_joint(*next, joint, there), {});
    }
  }

  RobotInertia& inertia_of(int joint) { return joint < 0 ? robot_.base : robot_.joints[joint].inertia; }

  /// The inertia of a link's shapes, of this density.
  void add_solid_shapes(double density, int frame, RobotInertia& to) {
    for (const RobotShape& shape : robot_.shapes) {
      if (shape.frame != frame) continue;
      std::shared_ptr<const ConvexMesh> hull;
      if (shape.type == ShapeType::mesh) hull = make_convex_hull(shape.points, shape.name);
      const MassProperties solid = solid_properties(shape.type, shape.size, hull.get());
      std::array<double, 6> inertia = solid.inertia;
      for (double& entry : inertia)
        entry *= density;
      add_inertia(density * solid.mass, inertia, compose(shape.placement, {solid.com, {1, 0, 0, 0}}), to);
    }
  }

  int add_joint(const urdf::Joint& from, int parent, const Placement& placement) {
    RobotJoint joint;
    joint.name = from.name;
    joint.parent = parent;
    joint.placement = placement;
    joint.axis = {from.axis.x, from.axis.y, from.axis.z};

    // Joints of several degrees of freedom have neither limits nor losses.
    if (from.type == urdf::Joint::FLOATING) {
      joint.type = RobotJointType::free;
      return append(joint, 7, 6);
    }
    if (from.type == urdf::Joint::PLANAR) {
      joint.type = RobotJointType::planar;
      const bool is_z = joint.axis[0] == 0 && joint.axis[1] == 0 && joint.axis[2] > 0;
      if (!is_z)
        deviations.push_back(
            "planar joint '" + from.name +
            "': moves across its axis; Pinocchio ignores that and moves it in the x-y plane of its frame");
      return append(joint, 4, 3);
    }

    // One degree of freedom.
    if (from.limits) {
      joint.effort = {from.limits->effort};
    }
    if (from.dynamics) {
      joint.damping = {from.dynamics->damping};
      joint.dry_friction = {from.dynamics->friction};
    }
    if (from.type == urdf::Joint::CONTINUOUS) {
      joint.type = RobotJointType::continuous;
      return append(joint, 2, 1);
    }
    joint.type = from.type == urdf::Joint::PRISMATIC ? RobotJointType::slide : RobotJointType::hinge;
    if (from.limits) {
      joint.lower = {from.limits->lower};
      joint.upper = {from.limits->upper};
    }
    return append(joint, 1, 1);
  }

  void add_shapes(const urdf::Link& link, int joint, int frame) {
    for (std::size_t i = 0; i < link.collision_array.size(); ++i) {
      const urdf::Collision& collision = *link.collision_array[i];
      RobotShape shape;
      shape.name = link.name + "_" + std::to_string(i);
      shape.joint = joint;
      shape.frame = frame;
      shape.placement = compose(robot_.frames[frame].placement, placement_of(collision.origin));
      set_shape(*collision.geometry, robot_.source + ": link '" + link.name + "' collision <mesh>", shape);
      if (shape.type == ShapeType::cylinder && capsules_.count({link.name, collision.name}))
        shape.type = ShapeType::capsule;
      push_pieces(shape);
    }
  }

  /// A shape as it is, or one for each piece that its mesh was cut into: names end with _part0 and so on.
  void push_pieces(const RobotShape& shape) {
    if (pieces_.size() < 2) {
      robot_.shapes.push_back(shape);
      return;
    }
    for (std::size_t k = 0; k < pieces_.size(); ++k) {
      RobotShape piece = shape;
      piece.name += "_part" + std::to_string(k);
      piece.points = pieces_[k];
      robot_.shapes.push_back(std::move(piece));
    }
  }

  /// Kind and size; of a mesh its points. `what`: opens messages about a mesh.
  void set_shape(const urdf::Geometry& geometry, const std::string& what, RobotShape& shape) {
    pieces_.clear();
    if (const auto* sphere = dynamic_cast<const urdf::Sphere*>(&geometry)) {
      shape.type = ShapeType::sphere;
      shape.size = {sphere->radius, 0, 0};
      if (sphere->radius == 0) {
        shape.size[0] = radius_of_points;
        deviations.push_back("sphere '" + shape.name + "' of radius 0: a point contact; its radius is " +
                             checks::text(radius_of_points) + " m");
      }
    } else if (const auto* box = dynamic_cast<const urdf::Box*>(&geometry)) {
      shape.type = ShapeType::box;
      shape.size = {box->dim.x / 2, box->dim.y / 2, box->dim.z / 2};
    } else if (const auto* cylinder = dynamic_cast<const urdf::Cylinder*>(&geometry)) {
      shape.type = ShapeType::cylinder;
      shape.size = {cylinder->radius, cylinder->length / 2, 0};
    } else if (const auto* capsule = dynamic_cast<const urdf::Capsule*>(&geometry)) {
      shape.type = ShapeType::capsule;
      shape.size = {capsule->radius, capsule->length / 2, 0};
    } else if (const auto* mesh = dynamic_cast<const urdf::Mesh*>(&geometry)) {
      shape.type = ShapeType::mesh;
      const std::array<double, 3> scale{mesh->scale.x, mesh->scale.y, mesh->scale.z};
      std::string other_folder;
      const std::string path = find_mesh(mesh->filename, folders_, what, &other_folder);
      if (!other_folder.empty() && other_folders_.insert(other_folder).second)
        deviations.push_back("no package of '" + shortened(mesh->filename) + "' was found: its files are read from '" +
                             shortened(other_folder) + "'");
      pieces_ = pieces_of(path, scale, what);
      shape.points = pieces_[0];
    } else {
      checks::fail(robot_.source + ": geometry '" + shape.name + "'",
                   "this shape is not supported; use a box, sphere, cylinder, capsule or mesh");
    }
  }

  /// A file's pieces at some scale by their points, one at least; read once.
  const std::vector<std::vector<double>>& pieces_of(const std::string& path, const std::array<double, 3>& scale,
                                                    const std::string& what) {
    const auto [at, is_new] = files_.try_emplace({path, scale});
    if (!is_new) return at->second;
    if (options_.read_pieces) {
      at->second = options_.read_pieces(path, scale, what);
      if (at->second.empty()) checks::fail(what, "'" + path + "' has no pieces");
      return at->second;
    }
    at->second = {options_.read_mesh ? options_.read_mesh(path, what) : read_mesh_points(path, what)};
    std::vector<double>& points = at->second[0];
    for (std::size_t k = 0; k < points.size(); ++k)
      points[k] *= scale[k % 3];
    return at->second;
  }

  const UrdfOptions& options_;
  std::vector<std::string> folders_;
  const std::map<std::string, double>& densities_;
  std::set<std::string> other_folders_;  ///< of packages by another name
  std::map<std::pair<std::string, std::array<double, 3>>, std::vector<std::vector<double>>> files_;
  std::vector<std::vector<double>> pieces_;                 ///< of the mesh of the shape at hand
  std::set<std::pair<std::string, std::string>> capsules_;  ///< link, cylinder
  RobotDescription robot_;
};

// --- what urdfdom does not read ---

/// Sets what urdfdom insists on: limits without effort or velocity have none, and an <inertial> without mass goes. densities: of the links whose
/// shapes have to give it. True: the document has changed.
bool complete(XMLElement& robot, const UrdfOptions& options, std::map<std::string, double>& densities,
              std::vector<std::string>& deviations) {
  bool changed = false;
  int limits = 0;
  for (XMLElement* joint = robot.FirstChildElement("joint"); joint; joint = joint->NextSiblingElement("joint")) {
    XMLElement* limit = joint->FirstChildElement("limit");
    if (!limit) continue;
    bool lacks = false;
    for (const char* name : {"effort", "velocity"}) {
      if (limit->Attribute(name)) continue;
      limit->SetAttribute(name, "0");
      lacks = true;
    }
    limits += lacks;
  }
  if (limits > 0)
    deviations.push_back("<limit> of " + std::to_string(limits) + " joints without effort or velocity: no bound");

  // Links without an inertia, or with one that lacks its mass, have that of their shapes.
  std::vector<std::string> of_shapes;
  for (XMLElement* link = robot.FirstChildElement("link"); link; link = link->NextSiblingElement("link")) {
    XMLElement* inertial = link->FirstChildElement("inertial");
    if (inertial && inertial->FirstChildElement("mass")) continue;
    const XMLElement* own = inertial ? inertial->FirstChildElement("density") : nullptr;
    const double density = own ? own->DoubleAttribute("value") : options.link_density.value_or(0.0);
    if (inertial) {
      link->DeleteChild(inertial);
      changed = true;
    }
    if (density == 0 || !link->FirstChildElement("collision")) continue;
    densities[link->Attribute("name")] = density;
    of_shapes.push_back(link->Attribute("name"));
  }
  if (!of_shapes.empty()) {
    const std::string more = of_shapes.size() > 1 ? " and " + std::to_string(of_shapes.size() - 1) + " more" : "";
    deviations.push_back("mass and inertia of link '" + of_shapes[0] + "'" + more + ": computed from collision shapes");
  }
  return changed || limits > 0;
}

// --- what is not in urdfdom's tree, or not for the description ---

/// q_joint = offset + multiplier q_leader.
struct Mimic {
  std::string joint;
  std::string leader;
  double multiplier = 1;
  double offset = 0;
};

/// The <mimic> elements of the joints that move; those of fixed joints say nothing.
std::vector<Mimic> mimics(const XMLElement& robot, const std::string& source) {
  std::vector<Mimic> out;
  for (const XMLElement* joint = robot.FirstChildElement("joint"); joint != nullptr;
       joint = joint->NextSiblingElement("joint")) {
    const XMLElement* mimic = joint->FirstChildElement("mimic");
    if (mimic == nullptr || joint->Attribute("type", "fixed") != nullptr) continue;

    // Its leader, and numbers that may be left out.
    Mimic found;
    found.joint = joint->Attribute("name");
    const std::string what = source + ": <mimic> of joint '" + found.joint + "'";
    if (mimic->Attribute("joint") == nullptr) {
      checks::fail(what, "has no attribute joint");
    }
    found.leader = mimic->Attribute("joint");
    const auto read = [&](const char* name, double& value) {
      if (mimic->QueryDoubleAttribute(name, &value) == tinyxml2::XML_WRONG_ATTRIBUTE_TYPE)
        checks::fail(what + " " + name, std::string("'") + mimic->Attribute(name) + "' is not a number");
      checks::finite(what + " " + name, &value, 1);
    };
    read("multiplier", found.multiplier);
    read("offset", found.offset);
    out.push_back(found);
  }
  return out;
}

/// q = offset + multiplier * q_leader as an equality instead of a motor, for each mimic joint.
void couple(const std::vector<Mimic>& mimics, const std::string& source, SceneParts& parts) {
  const auto find = [&](const std::string& name, const std::string& what) {
    const auto at =
        std::find_if(parts.joints.begin(), parts.joints.end(), [&](const JointPart& j) { return j.name == name; });
    if (at == parts.joints.end() || (at->type != JointType::hinge && at->type != JointType::slide))
      throw std::invalid_argument(what + ": '" + name + "' is not a joint with one degree of freedom");
    return static_cast<int>(at - parts.joints.begin());
  };

  for (const Mimic& mimic : mimics) {
    const std::string what = source + ": <mimic> of joint '" + mimic.joint + "'";
    Equality equality;
    equality.name = mimic.joint + "_mimic";
    equality.type = EqualityType::joint;
    equality.joint_a = find(mimic.joint, what);
    equality.joint_b = find(mimic.leader, what);
    equality.poly = {mimic.offset, mimic.multiplier, 0, 0, 0};
    parts.equalities.push_back(equality);

    // The leader's motor moves both: a follower has none of its own.
    const auto driven = [&](const Actuator& motor) { return motor.joint == equality.joint_a; };
    parts.actuators.erase(std::remove_if(parts.actuators.begin(), parts.actuators.end(), driven),
                          parts.actuators.end());
  }
}

/// Elements that have no part here.
void list_ignored(const XMLElement& robot, const std::string& source, SceneParts& parts) {
  for (const char* tag : {"transmission", "gazebo", "sensor", "safety_controller", "calibration"})
    if (const auto n = all_below(robot, tag).size(); n > 0)
      parts.ignored.push_back(source + ": " + std::to_string(n) + " <" + tag + "> elements");
  const auto limits = all_below(robot, "limit");
  if (std::any_of(limits.begin(), limits.end(), [](const auto* limit) { return limit->Attribute("velocity"); }))
    parts.deviate(source + ": joint velocity limits: joints may move faster");
}

}  // namespace

SceneParts read_urdf(const std::string& path_or_xml, const UrdfOptions& options, std::string& name) {
  // A file or a string, of one robot. The parser trusts the text: it is looked at first.
  const auto first = path_or_xml.find_first_not_of(" \t\r\n");
  const bool is_xml = first != std::string::npos && path_or_xml[first] == '<';
  const std::string source = is_xml ? "URDF string" : "URDF '" + path_or_xml + "'";
  const std::string text = is_xml ? path_or_xml : load(path_or_xml);
  tinyxml2::XMLDocument document;
  const XMLElement& xml = parse_robot(text, source, document);
  if (options.link_density) checks::positive("add_urdf link_density", *options.link_density);
  check_urdf(xml, source, options.link_density.has_value());
  const std::vector<Mimic> followers = mimics(xml, source);

  // Options that robots of other sources have too.
  RobotOptions common;
  checks::finite("add_urdf position", options.position.data(), 3);
  common.quaternion = checks::unit_quaternion("add_urdf quaternion", options.quaternion);
  checks::material("add_urdf", options.friction, options.restitution, options.compliance);
  common.position = options.position;
  common.friction = options.friction;
  common.restitution = options.restitution;
  common.compliance = options.compliance;
  common.actuators = options.actuators;
  common.motors = options.motors;
  common.balance_inertia = options.balance_inertia;

  // What urdfdom insists on.
  std::map<std::string, double> densities;
  std::vector<std::string> completed;
  tinyxml2::XMLPrinter printer;
  tinyxml2::XMLDocument copy;
  copy.Parse(text.c_str(), text.size());
  const bool changed = complete(*copy.RootElement(), options, densities, completed);
  if (changed) copy.Print(&printer);

  // The robot.
  Reader reader(*parse(changed ? printer.CStr() : text, source), xml, source, options,
                package_folders(is_xml ? "" : path_or_xml, options.package_dirs), densities);
  const RobotDescription robot = reader.robot();
  if (name.empty()) name = robot.name;
  common.name = name;
  SceneParts parts = robot_parts(robot, common, options.self_collision, FramesKept::links);

  // What is left out.
  list_ignored(xml, source, parts);
  for (const auto* lines : {&completed, &reader.deviations})
    for (const std::string& line : *lines)
      parts.deviate(source + ": " + line);
  if (!options.ignore_mimic)
    couple(followers, source, parts);
  else if (!followers.empty())
    parts.deviate(source + ": " + std::to_string(followers.size()) + " <mimic> elements: their joints are independent");
  if (!options.self_collision) {
    parts.deviate(source + ": self-collision is off");
  }
  return parts;
}

}  // namespace coulomb
