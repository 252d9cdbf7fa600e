// The checks of urdf_check.hpp on the XML tree. TinyXML-2 reads it, as in urdfdom: what is looked at is what the parser sees.
#include "coulomb/model/loaders/urdf_check.hpp"

#include <tinyxml2.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "coulomb/model/checks.hpp"

namespace coulomb {
namespace {

using Element = tinyxml2::XMLElement;

/// Empty where it is missing.
std::string attribute(const Element& element, const char* name) {
  const char* text = element.Attribute(name);
  return text == nullptr ? "" : text;
}

/// `n` finite numbers in an attribute; none at all only if it may be left out.
void check_numbers(const Element& element, const char* name, int n, bool needed, const std::string& what) {
  if (element.Attribute(name) == nullptr) {
    if (needed) {
      checks::fail(what, std::string("has no attribute ") + name);
    }
    return;
  }
  const std::string text = attribute(element, name);

  // As many words as numbers, each of them one to its end.
  std::istringstream words(text);
  int count = 0;
  for (std::string word; words >> word; ++count) {
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    const bool is_number = *end == 0 && std::isfinite(value);
    if (is_number) continue;
    checks::fail(what + " " + name, "'" + word + "' in \"" + text + "\" is not a finite number");
  }
  if (count != n) {
    const std::string got = "\"" + text + "\" holds " + std::to_string(count) + " numbers";
    checks::fail(what + " " + name, got + ", expected " + std::to_string(n));
  }
}

/// Position and angles, both optional.
void check_origin(const Element& parent, const std::string& what) {
  const Element* origin = parent.FirstChildElement("origin");
  if (!origin) return;
  check_numbers(*origin, "xyz", 3, false, what + " origin");
  check_numbers(*origin, "rpy", 3, false, what + " origin");
}

/// Mass and inertia are there and are numbers; or a density of the shapes is.
void check_inertial(const Element& inertial, const std::string& what, bool mass_of_shapes) {
  check_origin(inertial, what);
  const Element* mass = inertial.FirstChildElement("mass");
  const Element* inertia = inertial.FirstChildElement("inertia");
  if (const Element* density = inertial.FirstChildElement("density"); density && !mass) {
    check_numbers(*density, "value", 1, true, what + " density");
    checks::positive(what + " density", density->DoubleAttribute("value"));
    return;
  }
  if (!mass) {
    if (mass_of_shapes) return;
    checks::fail(what, "has no <mass>; link_density=1000 (kg/m^3) computes it from the link's collision shapes");
  }
  if (!inertia) {
    checks::fail(what, "has no <inertia>");
  }
  check_numbers(*mass, "value", 1, true, what + " mass");
  for (const char* entry : {"ixx", "ixy", "ixz", "iyy", "iyz", "izz"})
    check_numbers(*inertia, entry, 1, true, what + " inertia");
}

/// One shape with its sizes.
void check_collision(const Element& collision, const std::string& what) {
  check_origin(collision, what);
  const Element* geometry = collision.FirstChildElement("geometry");
  if (geometry == nullptr) {
    checks::fail(what, "has no <geometry>");
  }

  // The parser reads the first shape.
  const Element* values = geometry->FirstChildElement();
  if (values == nullptr) {
    checks::fail(what + " <geometry>", "is empty");
  }
  const std::string shape = values->Name();
  const std::string name = what + " <" + shape + ">";
  if (shape == "box") {
    check_numbers(*values, "size", 3, true, name);
  } else if (shape == "sphere") {
    check_numbers(*values, "radius", 1, true, name);
  } else if (shape == "cylinder" || shape == "capsule") {
    check_numbers(*values, "radius", 1, true, name);
    check_numbers(*values, "length", 1, true, name);
  } else if (shape == "mesh") {
    if (attribute(*values, "filename").empty()) {
      checks::fail(name, "has no filename");
    }
    check_numbers(*values, "scale", 3, false, name);
  } else {
    checks::fail(name, "is not a URDF shape; expected box, sphere, cylinder, capsule or mesh");
  }
}

/// Children of a kind, in their order.
std::vector<const Element*> children(const Element& parent, const char* tag) {
  std::vector<const Element*> out;
  const Element* child = parent.FirstChildElement(tag);
  for (; child != nullptr; child = child->NextSiblingElement(tag))
    out.push_back(child);
  return out;
}

/// What is inside of a link.
void check_link(const Element& link, const std::string& what, bool mass_of_shapes) {
  for (const Element* inertial : children(link, "inertial"))
    check_inertial(*inertial, what + " inertial", mass_of_shapes);
  for (const Element* collision : children(link, "collision"))
    check_collision(*collision, what + " collision");
}

/// What is inside of a joint.
void check_joint(const Element& joint, const std::string& what) {
  check_origin(joint, what);

  // Numbers, where they are given.
  if (const Element* axis = joint.FirstChildElement("axis")) {
    check_numbers(*axis, "xyz", 3, false, what + " axis");
  }
  const Element* limit = joint.FirstChildElement("limit");
  if (limit != nullptr) {
    for (const char* name : {"lower", "upper", "effort", "velocity"})
      check_numbers(*limit, name, 1, false, what + " limit");
  }
  const Element* dynamics = joint.FirstChildElement("dynamics");
  if (dynamics != nullptr) {
    for (const char* name : {"damping", "friction"})
      check_numbers(*dynamics, name, 1, false, what + " dynamics");
  }

  // Its kind, and what kinds need.
  static const std::set<std::string> kinds{"revolute", "continuous", "prismatic", "fixed", "floating", "planar"};
  const std::string kind = attribute(joint, "type");
  if (!kinds.count(kind)) {
    checks::fail(what + " type", "'" + kind +
                                     "' is not a URDF joint type; expected revolute, continuous, prismatic, fixed, "
                                     "floating or planar");
  }
  const bool needs_limit = kind == "revolute" || kind == "prismatic";
  if (limit == nullptr && needs_limit) {
    checks::fail(what, "is " + kind + " and has no <limit>");
  }
}

/// Links, and by which joint each hangs on which link.
struct Tree {
  std::vector<std::string> links;
  std::set<std::string> known;
  std::map<std::string, std::string> joint_of;
  std::map<std::string, std::string> parent_of;
};

/// Joins two links of the tree.
void add_joint(const Element& joint, const std::string& name, const std::string& what, Tree& tree) {
  const auto link_of = [&](const char* role) {
    const Element* element = joint.FirstChildElement(role);
    return element == nullptr ? std::string() : attribute(*element, "link");
  };
  const std::string parent = link_of("parent");
  const std::string child = link_of("child");
  const std::pair<const char*, std::string> ends[] = {{"parent", parent}, {"child", child}};
  for (const auto& [role, link] : ends) {
    if (tree.known.count(link)) continue;
    checks::fail(what + " " + role, "'" + link + "' is not a link");
  }
  if (parent == child) {
    checks::fail(what, "joins link '" + child + "' to itself");
  }

  // A link hangs on one joint.
  const bool is_first = tree.joint_of.emplace(child, name).second;
  if (!is_first) {
    const std::string other = "'" + tree.joint_of[child] + "'";
    checks::fail(what, "link '" + child + "' is the child of joint " + other + " already");
  }
  tree.parent_of[child] = parent;
}

/// One root, no cycle.
void check_tree(const Tree& tree, const std::string& source) {
  // The first names, for a message.
  const auto list = [](const std::vector<std::string>& names) {
    std::string out;
    for (std::size_t i = 0; i < names.size() && i < 5; ++i) {
      const char* separator = i ? ", '" : "'";
      out += separator + names[i] + "'";
    }
    const char* end = names.size() > 5 ? ", ..." : "";
    return out + end;
  };
  if (tree.links.empty()) {
    checks::fail(source, "has no link");
  }
  std::vector<std::string> roots;
  std::vector<std::string> cyclic;

  // From every link up; who takes more steps than there are links walks in a circle.
  for (const std::string& link : tree.links) {
    if (!tree.parent_of.count(link)) {
      roots.push_back(link);
    }
    std::string at = link;
    std::size_t steps = 0;
    for (auto up = tree.parent_of.find(at); up != tree.parent_of.end() && steps <= tree.links.size(); ++steps)
      up = tree.parent_of.find(at = up->second);
    if (steps > tree.links.size()) {
      cyclic.push_back(link);
    }
  }
  if (!cyclic.empty()) {
    checks::fail(source, "links " + list(cyclic) + " hang in a cycle; links must form a tree");
  }
  if (roots.size() != 1)
    checks::fail(source, "has " + std::to_string(roots.size()) + " root links (" + list(roots) + "); expected one");
}

}  // namespace

const Element& parse_robot(const std::string& text, const std::string& source, tinyxml2::XMLDocument& document) {
  // The XML itself.
  if (document.Parse(text.c_str(), text.size()) != tinyxml2::XML_SUCCESS) {
    const std::string line = std::to_string(document.ErrorLineNum());
    switch (document.ErrorID()) {
      case tinyxml2::XML_ERROR_MISMATCHED_ELEMENT:
        checks::fail(source, "not well-formed XML: an element that begins in line " + line +
                                 " is closed by another name, or never");
      case tinyxml2::XML_ELEMENT_DEPTH_EXCEEDED: checks::fail(source, "elements nested too deep in line " + line);
      case tinyxml2::XML_ERROR_EMPTY_DOCUMENT: checks::fail(source, "is empty");
      default: checks::fail(source, std::string("not well-formed XML: ") + document.ErrorName() + " in line " + line);
    }
  }

  // One robot, and nothing that would be read into it from elsewhere.
  const Element* robot = document.RootElement();
  if (robot == nullptr || robot->NextSiblingElement() != nullptr || std::string(robot->Name()) != "robot" ||
      robot->FirstChildElement("robot") != nullptr)
    checks::fail(source, "needs exactly one complete <robot> element");
  for (const tinyxml2::XMLNode* node = document.FirstChild(); node != nullptr; node = node->NextSibling())
    if (node->ToUnknown() != nullptr) {
      checks::fail(source, "DOCTYPE declarations are not accepted");
    }
  return *robot;
}

void check_urdf(const Element& robot, const std::string& source, bool mass_of_shapes) {
  // Links first: joints may name any of them.
  Tree tree;
  std::set<std::string> joints;
  for (const Element* link : children(robot, "link")) {
    const std::string name = attribute(*link, "name");
    if (name.empty()) {
      checks::fail(source, "link number " + std::to_string(tree.links.size() + 1) + " has no name");
    }
    if (!tree.known.insert(name).second) {
      checks::fail(source + ": link '" + name + "'", "appears twice");
    }
    tree.links.push_back(name);
    check_link(*link, source + ": link '" + name + "'", mass_of_shapes);
  }

  // Joints, and the tree that they make.
  for (const Element* joint : children(robot, "joint")) {
    const std::string name = attribute(*joint, "name");
    const std::string what = source + ": joint '" + name + "'";
    if (name.empty()) {
      checks::fail(source, "joint number " + std::to_string(joints.size() + 1) + " has no name");
    }
    if (!joints.insert(name).second) {
      checks::fail(what, "appears twice");
    }
    check_joint(*joint, what);
    add_joint(*joint, name, what, tree);
  }
  check_tree(tree, source);
}

}  // namespace coulomb
