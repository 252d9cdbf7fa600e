// URDF to SceneParts through Pinocchio's parser, which trusts the text: urdf_check looks at it first.
#include "coulomb/model/loaders/urdf.hpp"

#include <pinocchio/parsers/urdf.hpp>

#include <boost/property_tree/xml_parser.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/loaders/is_file.hpp"
#include "coulomb/model/loaders/pinocchio_parts.hpp"
#include "coulomb/model/loaders/urdf_check.hpp"

namespace coulomb {
namespace {

/// Opening tags of that name.
int count_tag(const std::string& xml, const std::string& tag) {
  int n = 0;
  for (auto at = xml.find("<" + tag); at != std::string::npos; at = xml.find("<" + tag, at + 1)) {
    const auto next = at + 1 + tag.size();
    n += next < xml.size() && std::string(" \t\r\n/>").find(xml[next]) != std::string::npos;
  }
  return n;
}

/// Comments may hold anything, tags too.
std::string without_comments(std::string xml) {
  for (auto at = xml.find("<!--"); at != std::string::npos; at = xml.find("<!--", at)) {
    const auto end = xml.find("-->", at);
    xml.erase(at, end == std::string::npos ? std::string::npos : end + 3 - at);
  }
  return xml;
}

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

/// The user's folders, then every folder above the file: package://name/... is usually found in one of them.
std::vector<std::string> package_folders(const std::string& path, bool is_xml, std::vector<std::string> folders) {
  if (is_xml) return folders;
  auto folder = std::filesystem::absolute(path).parent_path();
  for (int i = 0; i < 6 && folder.has_relative_path(); ++i, folder = folder.parent_path())
    folders.push_back(folder.string());
  return folders;
}

/// q_joint = offset + multiplier q_leader.
struct Mimic {
  std::string joint;
  std::string leader;
  double multiplier = 1;
  double offset = 0;
};

/// The <mimic> elements of the joints that move; those of fixed joints say nothing.
std::vector<Mimic> mimics(const std::string& xml, const std::string& source) {
  std::vector<Mimic> out;
  if (count_tag(xml, "mimic") == 0) return out;
  boost::property_tree::ptree tree;
  try {
    std::istringstream stream(xml);
    boost::property_tree::read_xml(stream, tree);
    for (const auto& [tag, joint] : tree.get_child("robot")) {
      // Mimics of joints that move.
      const auto mimic = joint.get_child_optional("mimic");
      if (tag != "joint" || !mimic || joint.get("<xmlattr>.type", "") == "fixed") continue;
      out.push_back({joint.get<std::string>("<xmlattr>.name"), mimic->get<std::string>("<xmlattr>.joint"), 1, 0});
      if (mimic->get_optional<std::string>("<xmlattr>.multiplier"))
        out.back().multiplier = mimic->get<double>("<xmlattr>.multiplier");
      if (mimic->get_optional<std::string>("<xmlattr>.offset"))
        out.back().offset = mimic->get<double>("<xmlattr>.offset");
    }
  } catch (const std::exception& error) {
    throw std::invalid_argument(source + ": <mimic>" + (out.empty() ? "" : " of joint '" + out.back().joint + "'") +
                                ": " + error.what());
  }
  return out;
}

/// q = offset + multiplier * q_leader as an equality instead of a motor, for each mimic joint.
void couple(const std::vector<Mimic>& mimics, const std::string& source, SceneParts& parts) {
  const auto find = [&](const std::string& name, const std::string& what) {
    const auto at =
        std::find_if(parts.joints.begin(), parts.joints.end(), [&](const JointPart& j) { return j.name == name; });
    if (at == parts.joints.end() || (at->type != JointType::hinge && at->type != JointType::slide))
      throw std::invalid_argument(what + ": '" + name + "' is no joint with one degree of freedom");
    return static_cast<int>(at - parts.joints.begin());
  };

  for (const Mimic& mimic : mimics) {
    const std::string what = source + ": <mimic> of joint '" + mimic.joint + "'";
    checks::finite(what + " multiplier", &mimic.multiplier, 1);
    checks::finite(what + " offset", &mimic.offset, 1);
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
void list_ignored(const std::string& xml, const std::string& source, SceneParts& parts) {
  for (const char* tag : {"transmission", "gazebo", "sensor", "safety_controller", "calibration"})
    if (const int n = count_tag(xml, tag); n > 0)
      parts.ignored.push_back(source + ": " + std::to_string(n) + " <" + tag + "> elements");
  if (xml.find("velocity=") != std::string::npos)
    parts.deviate(source + ": joint velocity limits: joints may move faster");
}

}  // namespace

SceneParts read_urdf(const std::string& path_or_xml, const UrdfOptions& options, std::string& name) {
  // A file or a string, of one robot.
  const auto first = path_or_xml.find_first_not_of(" \t\r\n");
  const bool is_xml = first != std::string::npos && path_or_xml[first] == '<';
  const std::string source = is_xml ? "URDF string" : "URDF '" + path_or_xml + "'";
  const std::string xml = without_comments(is_xml ? path_or_xml : load(path_or_xml));
  if (count_tag(xml, "robot") != 1 || xml.find("</robot") == std::string::npos)
    throw std::invalid_argument(source + ": needs exactly one complete <robot> element");
  if (xml.find("<!DOCTYPE") != std::string::npos)
    throw std::invalid_argument(source + ": DOCTYPE declarations are not accepted");

  // The parser trusts the text: it is looked at first.
  check_urdf(xml, source);
  const std::vector<Mimic> followers = mimics(xml, source);

  // Options that the loader of Pinocchio's models shares.
  PinocchioOptions common;
  checks::finite("add_urdf position", options.position.data(), 3);
  common.quaternion = checks::unit_quaternion("add_urdf quaternion", options.quaternion);
  checks::material("add_urdf", options.friction, options.restitution, options.compliance);
  common.position = options.position;
  common.friction = options.friction;
  common.restitution = options.restitution;
  common.compliance = options.compliance;
  common.actuators = options.actuators;
  common.motors = options.motors;

  // Pinocchio reads model and shapes.
  pinocchio::Model model;
  pinocchio::GeometryModel geometry;
  try {
    if (options.floating_base)
      pinocchio::urdf::buildModelFromXML(xml, pinocchio::JointModelFreeFlyer(), model);
    else
      pinocchio::urdf::buildModelFromXML(xml, model);
    std::istringstream stream(xml);
    pinocchio::urdf::buildGeom(model, stream, pinocchio::COLLISION, geometry,
                               package_folders(path_or_xml, is_xml, options.package_dirs));
  } catch (const std::exception& error) {
    throw std::invalid_argument(source + ": " + error.what());
  }
  if (name.empty()) name = model.name;
  common.name = name;
  SceneParts parts = pinocchio_parts(model, &geometry, common, options.self_collision, FramesKept::links, source);

  // What is left out.
  list_ignored(xml, source, parts);
  if (!options.ignore_mimic)
    couple(followers, source, parts);
  else if (!followers.empty())
    parts.deviate(source + ": " + std::to_string(followers.size()) + " <mimic> elements: their joints are independent");
  if (!options.self_collision) parts.deviate(source + ": self-collision is off");
  return parts;
}

}  // namespace coulomb
