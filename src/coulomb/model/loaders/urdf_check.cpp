// The checks of urdf_check.hpp on the XML tree.
#include "coulomb/model/loaders/urdf_check.hpp"

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>

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

using Element = boost::property_tree::ptree;

/// Empty where it is missing.
std::string attribute(const Element& element, const std::string& name) { return element.get("<xmlattr>." + name, ""); }

/// `n` finite numbers in an attribute; none at all only if it may be left out.
void check_numbers(const Element& element, const std::string& name, int n, bool needed, const std::string& what) {
  const auto text = element.get_optional<std::string>("<xmlattr>." + name);
  if (!text) {
    if (needed) checks::fail(what, "has no attribute " + name);
    return;
  }

  // As many words as numbers, each of them one to its end.
  std::istringstream words(*text);
  int count = 0;
  for (std::string word; words >> word; ++count) {
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (*end != 0 || !std::isfinite(value))
      checks::fail(what + " " + name, "'" + word + "' in \"" + *text + "\" is no finite number");
  }
  if (count != n)
    checks::fail(what + " " + name,
                 "\"" + *text + "\" holds " + std::to_string(count) + " numbers, expected " + std::to_string(n));
}

/// Position and angles, both optional.
void check_origin(const Element& parent, const std::string& what) {
  const auto origin = parent.get_child_optional("origin");
  if (!origin) return;
  check_numbers(*origin, "xyz", 3, false, what + " origin");
  check_numbers(*origin, "rpy", 3, false, what + " origin");
}

/// Mass and inertia are there and are numbers.
void check_inertial(const Element& inertial, const std::string& what) {
  check_origin(inertial, what);
  const auto mass = inertial.get_child_optional("mass");
  const auto inertia = inertial.get_child_optional("inertia");
  if (!mass) checks::fail(what, "has no <mass>");
  if (!inertia) checks::fail(what, "has no <inertia>");
  check_numbers(*mass, "value", 1, true, what + " mass");
  for (const char* entry : {"ixx", "ixy", "ixz", "iyy", "iyz", "izz"})
    check_numbers(*inertia, entry, 1, true, what + " inertia");
}

/// One shape with its sizes.
void check_collision(const Element& collision, const std::string& what) {
  check_origin(collision, what);
  const auto geometry = collision.get_child_optional("geometry");
  if (!geometry) checks::fail(what, "has no <geometry>");

  // The parser reads the first shape.
  for (const auto& [shape, values] : *geometry) {
    if (shape == "<xmlattr>" || shape == "<xmlcomment>") continue;
    const std::string name = what + " <" + shape + ">";
    if (shape == "box")
      check_numbers(values, "size", 3, true, name);
    else if (shape == "sphere")
      check_numbers(values, "radius", 1, true, name);
    else if (shape == "cylinder" || shape == "capsule") {
      check_numbers(values, "radius", 1, true, name);
      check_numbers(values, "length", 1, true, name);
    } else if (shape == "mesh") {
      if (attribute(values, "filename").empty()) checks::fail(name, "has no filename");
      check_numbers(values, "scale", 3, false, name);
    } else {
      checks::fail(name, "is no shape of URDF; expected box, sphere, cylinder, capsule or mesh");
    }
    return;
  }
  checks::fail(what + " <geometry>", "is empty");
}

/// What is inside of a link.
void check_link(const Element& link, const std::string& what) {
  for (const auto& [tag, child] : link) {
    if (tag == "inertial") check_inertial(child, what + " inertial");
    if (tag == "collision") check_collision(child, what + " collision");
  }
}

/// What is inside of a joint.
void check_joint(const Element& joint, const std::string& what) {
  check_origin(joint, what);
  if (const auto axis = joint.get_child_optional("axis")) check_numbers(*axis, "xyz", 3, false, what + " axis");
  if (const auto limit = joint.get_child_optional("limit"))
    for (const char* name : {"lower", "upper", "effort", "velocity"})
      check_numbers(*limit, name, 1, false, what + " limit");
  if (const auto dynamics = joint.get_child_optional("dynamics"))
    for (const char* name : {"damping", "friction"})
      check_numbers(*dynamics, name, 1, false, what + " dynamics");
}

/// Where the tag that opens at `at` ends: the first '>' outside quotes.
std::size_t tag_end(const std::string& xml, std::size_t at) {
  char quote = 0;
  for (; at < xml.size(); ++at) {
    if (quote != 0)
      quote = xml[at] == quote ? char(0) : quote;
    else if (xml[at] == '"' || xml[at] == '\'')
      quote = xml[at];
    else if (xml[at] == '>')
      return at;
  }
  return std::string::npos;
}

/// Tags close in the order they open, not too deep: the XML reader recurses and compares no names. Comments are gone already.
void check_nesting(const std::string& xml, const std::string& source) {
  constexpr std::size_t deepest = 100;
  std::vector<std::string> open;
  const auto refuse = [&](const std::string& what, std::size_t place) {
    checks::fail(source, what + " in line " +
                             std::to_string(1 + std::count(xml.begin(), xml.begin() + static_cast<long>(place), '\n')));
  };

  // Every tag has an end, and closes what was opened last.
  for (auto at = xml.find('<'); at != std::string::npos; at = xml.find('<', at)) {
    const bool data = xml.compare(at, 9, "<![CDATA[") == 0;
    const std::size_t end = data ? xml.find("]]>", at) : tag_end(xml, at);
    if (end == std::string::npos) {
      refuse("not well-formed XML: a tag without end", at);
    }
    const char kind = xml[at + 1];
    const std::size_t first = at + (kind == '/' ? 2 : 1);
    const std::string name = xml.substr(first, xml.find_first_of(" \t\r\n/>", first) - first);
    at = end;

    // Data, declarations and instructions do not nest.
    if (data || kind == '?' || kind == '!') continue;
    if (kind != '/') {
      if (xml[end - 1] != '/') open.push_back(name);
      if (open.size() > deepest) {
        refuse("elements nested deeper than " + std::to_string(deepest), at);
      }
      continue;
    }
    if (open.empty() || open.back() != name)
      refuse("not well-formed XML: </" + name + "> closes " + (open.empty() ? "nothing" : "<" + open.back() + ">"), at);
    open.pop_back();
  }
  if (!open.empty()) {
    checks::fail(source, "not well-formed XML: <" + open.back() + "> is never closed");
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
  const std::string parent = joint.get("parent.<xmlattr>.link", "");
  const std::string child = joint.get("child.<xmlattr>.link", "");
  for (const auto& [role, link] : {std::pair<std::string, std::string>{"parent", parent}, {"child", child}})
    if (!tree.known.count(link)) {
      checks::fail(what + " " + role, "'" + link + "' is no link");
    }
  if (parent == child) checks::fail(what, "joins link '" + child + "' to itself");

  // A link hangs on one joint.
  if (!tree.joint_of.emplace(child, name).second)
    checks::fail(what, "link '" + child + "' is the child of joint '" + tree.joint_of[child] + "' already");
  tree.parent_of[child] = parent;
}

/// One root, no cycle.
void check_tree(const Tree& tree, const std::string& source) {
  // The first names, for a message.
  const auto list = [](const std::vector<std::string>& names) {
    std::string out;
    for (std::size_t i = 0; i < names.size() && i < 5; ++i)
      out += (i ? ", '" : "'") + names[i] + "'";
    return out + (names.size() > 5 ? ", ..." : "");
  };
  if (tree.links.empty()) checks::fail(source, "has no link");
  std::vector<std::string> roots;
  std::vector<std::string> cyclic;

  // From every link up; who takes more steps than there are links walks in a circle.
  for (const std::string& link : tree.links) {
    if (!tree.parent_of.count(link)) roots.push_back(link);
    std::string at = link;
    std::size_t steps = 0;
    for (auto up = tree.parent_of.find(at); up != tree.parent_of.end() && steps <= tree.links.size(); ++steps)
      up = tree.parent_of.find(at = up->second);
    if (steps > tree.links.size()) cyclic.push_back(link);
  }
  if (!cyclic.empty()) checks::fail(source, "links " + list(cyclic) + " hang in a cycle; links must form a tree");
  if (roots.size() != 1)
    checks::fail(source, "has " + std::to_string(roots.size()) + " root links (" + list(roots) + "); expected one");
}

}  // namespace

void check_urdf(const std::string& xml, const std::string& source) {
  // The XML itself.
  check_nesting(xml, source);
  Element document;
  try {
    std::istringstream stream(xml);
    boost::property_tree::read_xml(stream, document, boost::property_tree::xml_parser::no_comments);
  } catch (const boost::property_tree::xml_parser_error& error) {
    checks::fail(source, "not well-formed XML: " + error.message() + " in line " + std::to_string(error.line()));
  }
  const auto robot = document.get_child_optional("robot");
  if (!robot) checks::fail(source, "needs a <robot> element at the top");

  // Links first: joints may name any of them.
  Tree tree;
  std::set<std::string> joints;
  for (const auto& [tag, link] : *robot) {
    if (tag != "link") continue;
    const std::string name = attribute(link, "name");
    if (name.empty()) {
      checks::fail(source, "link number " + std::to_string(tree.links.size() + 1) + " has no name");
    }
    if (!tree.known.insert(name).second) {
      checks::fail(source + ": link '" + name + "'", "is there twice");
    }
    tree.links.push_back(name);
    check_link(link, source + ": link '" + name + "'");
  }

  // Joints, and the tree that they make.
  for (const auto& [tag, joint] : *robot) {
    if (tag != "joint") continue;
    const std::string name = attribute(joint, "name");
    const std::string what = source + ": joint '" + name + "'";
    if (name.empty()) {
      checks::fail(source, "joint number " + std::to_string(joints.size() + 1) + " has no name");
    }
    if (!joints.insert(name).second) checks::fail(what, "is there twice");
    check_joint(joint, what);
    add_joint(joint, name, what, tree);
  }
  check_tree(tree, source);
}

}  // namespace coulomb
