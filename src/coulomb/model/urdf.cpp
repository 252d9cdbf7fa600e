// URDF to SceneParts through Pinocchio's parser: checks the text first, because the parser trusts it.
#include "coulomb/model/urdf.hpp"

#include <pinocchio/parsers/urdf.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/pinocchio_parts.hpp"

namespace coulomb {
namespace {

int count_tag(const std::string& xml, const std::string& tag) {
  int n = 0;
  for (auto at = xml.find("<" + tag); at != std::string::npos; at = xml.find("<" + tag, at + 1)) {
    const auto next = at + 1 + tag.size();
    n += next < xml.size() && std::string(" \t\r\n/>").find(xml[next]) != std::string::npos;
  }
  return n;
}

std::string without_comments(std::string xml) {
  for (auto at = xml.find("<!--"); at != std::string::npos; at = xml.find("<!--", at)) {
    const auto end = xml.find("-->", at);
    xml.erase(at, end == std::string::npos ? std::string::npos : end + 3 - at);
  }
  return xml;
}

std::string load(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) throw std::invalid_argument("URDF: no such file: '" + path + "'");
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The user's folders, then every folder above the file: package://name/... is usually found in one of them.
std::vector<std::string> package_folders(const std::string& path, bool is_xml, std::vector<std::string> folders) {
  if (is_xml) return folders;
  auto folder = std::filesystem::absolute(path).parent_path();
  for (int i = 0; i < 6 && folder.has_relative_path(); ++i, folder = folder.parent_path()) folders.push_back(folder.string());
  return folders;
}

void list_ignored(const std::string& xml, const std::string& source, SceneParts& parts) {
  for (const char* tag : {"transmission", "gazebo", "sensor", "visual", "safety_controller", "calibration"})
    if (const int n = count_tag(xml, tag); n > 0) parts.ignored.push_back(source + ": " + std::to_string(n) + " <" + tag + "> elements");
  if (xml.find("velocity=") != std::string::npos) parts.ignored.push_back(source + ": joint velocity limits");
}

}  // namespace

SceneParts read_urdf(const std::string& path_or_xml, const UrdfOptions& options, std::string& name) {
  const auto first = path_or_xml.find_first_not_of(" \t\r\n");
  const bool is_xml = first != std::string::npos && path_or_xml[first] == '<';
  const std::string source = is_xml ? "URDF string" : "URDF '" + path_or_xml + "'";
  const std::string xml = without_comments(is_xml ? path_or_xml : load(path_or_xml));
  if (count_tag(xml, "robot") != 1 || xml.find("</robot") == std::string::npos)
    throw std::invalid_argument(source + ": needs exactly one complete <robot> element");
  if (xml.find("<!DOCTYPE") != std::string::npos) throw std::invalid_argument(source + ": DOCTYPE declarations are not accepted");
  const int mimic = count_tag(xml, "mimic");
  if (mimic > 0 && !options.ignore_mimic)
    throw std::invalid_argument(source + ": " + std::to_string(mimic) + " <mimic> joints would move on their own; pass ignore_mimic = true to accept that");
  PinocchioOptions common;
  checks::finite("add_urdf position", options.position.data(), 3);
  common.quaternion = checks::unit_quaternion("add_urdf quaternion", options.quaternion);
  checks::material("add_urdf", options.friction, options.restitution, options.compliance);
  common.position = options.position, common.friction = options.friction, common.restitution = options.restitution;
  common.compliance = options.compliance, common.actuators = options.actuators;
  pinocchio::Model model;
  pinocchio::GeometryModel geometry;
  try {
    if (options.floating_base)
      pinocchio::urdf::buildModelFromXML(xml, pinocchio::JointModelFreeFlyer(), model);
    else
      pinocchio::urdf::buildModelFromXML(xml, model);
    std::istringstream stream(xml);
    pinocchio::urdf::buildGeom(model, stream, pinocchio::COLLISION, geometry, package_folders(path_or_xml, is_xml, options.package_dirs));
  } catch (const std::exception& error) {
    throw std::invalid_argument(source + ": " + error.what());
  }
  if (name.empty()) name = model.name;
  common.name = name;
  SceneParts parts = pinocchio_parts(model, &geometry, common, options.self_collision, source);
  list_ignored(xml, source, parts);
  if (mimic > 0) parts.ignored.push_back(source + ": " + std::to_string(mimic) + " <mimic> elements: their joints are independent");
  if (!options.self_collision) parts.ignored.push_back(source + ": self-collision is off");
  return parts;
}

}  // namespace coulomb
