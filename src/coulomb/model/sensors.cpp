// Outputs by name: "kind/element", the element a body, a site or a geometry (in this order; "position/site/foot" says which), a joint,
// a tendon, an actuator, an equality, or the root body of a subtree.
#include "coulomb/sensors.hpp"

#include <algorithm>

#include "coulomb/model.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/model/name_hints.hpp"

namespace coulomb {
namespace {

/// A kind of output and what its name stands for.
struct Kind {
  const char* name;
  SensorType type;
};
constexpr Kind frame_kinds[] = {{"position", SensorType::position},
                                {"orientation", SensorType::orientation},
                                {"velocity", SensorType::velocity},
                                {"angular_velocity", SensorType::angular_velocity}};
/// Not listed by output_names, for they say nothing new, or look at all geometries.
constexpr Kind unlisted_frame_kinds[] = {
    {"velocimeter", SensorType::velocimeter}, {"gyro", SensorType::gyro}, {"rangefinder", SensorType::rangefinder}};
constexpr Kind frame_force_kinds[] = {{"accelerometer", SensorType::accelerometer},
                                      {"force", SensorType::interaction_force},
                                      {"torque", SensorType::interaction_torque}};
constexpr Kind joint_kinds[] = {{"joint_position", SensorType::joint_position},
                                {"joint_velocity", SensorType::joint_velocity}};
constexpr Kind tendon_kinds[] = {{"tendon_length", SensorType::tendon_length},
                                 {"tendon_velocity", SensorType::tendon_velocity}};
constexpr Kind tendon_force_kinds[] = {{"tendon_actuator_force", SensorType::tendon_actuator_force},
                                       {"tendon_limit_force", SensorType::tendon_limit_force}};
constexpr Kind joint_force_kinds[] = {{"joint_limit_force", SensorType::joint_limit_force},
                                      {"joint_friction_force", SensorType::joint_friction_force}};
constexpr Kind subtree_kinds[] = {{"subtree_com", SensorType::subtree_com},
                                  {"subtree_velocity", SensorType::subtree_velocity},
                                  {"subtree_angular_momentum", SensorType::subtree_angular_momentum}};
constexpr Kind model_kinds[] = {{"potential_energy", SensorType::potential_energy},
                                {"kinetic_energy", SensorType::kinetic_energy}};

/// The kind of that name, or null.
template <std::size_t N>
const Kind* find_kind(const Kind (&kinds)[N], const std::string& name) {
  const auto it = std::find_if(kinds, kinds + N, [&](const Kind& k) { return name == k.name; });
  return it == kinds + N ? nullptr : it;
}

/// The place of a name, or -1.
int index_of(const std::vector<std::string>& names, const std::string& name) {
  const auto it = std::find(names.begin(), names.end(), name);
  return it == names.end() ? -1 : static_cast<int>(it - names.begin());
}

/// The frame of a body.
Frame body_frame(int body) {
  Frame out;
  out.body = body;
  return out;
}

/// The frame of a geometry, which its parameters move.
Frame geometry_frame(const Model& model, int geometry) {
  Frame out;
  out.body = model.geometry_body[geometry];
  out.geometry = geometry;
  return out;
}

/// kind: "body", "site", "geometry", or empty for the first that has the name.
std::optional<Frame> frame_of_kind(const Model& model, const std::string& kind, const std::string& name) {
  if (kind == "body" || kind.empty())
    if (const int b = index_of(model.body_names, name); b >= 0) return body_frame(b);
  if (kind == "site" || kind.empty())
    for (const Site& site : model.sites)
      if (site.name == name) return site.frame;
  if (kind == "geometry" || kind.empty())
    if (const int g = index_of(model.geometry_names, name); g >= 0) {
      return geometry_frame(model, g);
    }
  return std::nullopt;
}

/// A body, site or geometry of that name; else "body/...", "site/...", "geometry/...".
std::optional<Frame> find_frame(const Model& model, const std::string& element) {
  if (auto frame = frame_of_kind(model, "", element)) return frame;
  const std::size_t slash = element.find('/');
  if (slash == std::string::npos || slash == 0) return std::nullopt;
  return frame_of_kind(model, element.substr(0, slash), element.substr(slash + 1));
}

/// Throws, with names that are alike.
[[noreturn]] void no_element(const std::string& output, const char* what, const std::string& element,
                             const std::vector<std::string>& names) {
  checks::fail("output '" + output + "'", no_such(what, element, names));
}

/// Names of elements.
template <class Element>
std::vector<std::string> names_of(const std::vector<Element>& elements) {
  std::vector<std::string> out;
  for (const Element& element : elements)
    out.push_back(element.name);
  return out;
}

/// The place of the element in `names`; throws if it has none.
int find_element(const std::string& output, const char* what, const std::string& element,
                 const std::vector<std::string>& names) {
  const int index = index_of(names, element);
  if (index < 0) no_element(output, what, element, names);
  return index;
}

/// Rows that an equality constrains.
int equality_size(const Equality& equality) {
  return equality.type == EqualityType::weld ? 6 : equality.type == EqualityType::connect ? 3 : 1;
}

/// Of outputs that do not depend on a joint's or an equality's kind.
bool is_scalar(SensorType type) {
  if (type == SensorType::potential_energy || type == SensorType::kinetic_energy) return true;
  if (type >= SensorType::actuator_position && type <= SensorType::joint_limit_force) return true;
  return type >= SensorType::tendon_length && type <= SensorType::tendon_limit_force &&
         type != SensorType::magnetometer;
}

/// Numbers that a contact sensor tells.
int contact_size(const ContactSelection& of) {
  using Field = ContactSelection::Field;
  int size = 0;
  for (std::uint32_t field = Field::found; field <= Field::tangent; field *= 2)
    if (of.fields & field) size += field == Field::found || field == Field::distance ? 1 : 3;
  return of.num * size;
}

/// Coordinates and dofs of a joint.
int joint_position_size(const Model& model, int joint) {
  return model.joint_type[joint] == JointType::ball ? 4 : model.joint_type[joint] == JointType::free ? 7 : 1;
}
int joint_velocity_size(const Model& model, int joint) {
  return model.joint_type[joint] == JointType::ball ? 3 : model.joint_type[joint] == JointType::free ? 6 : 1;
}

/// Names of frames that find_frame resolves to this kind of element.
std::vector<std::string> frame_elements(const Model& model) {
  // A frame whose name is taken by an earlier element is told by its kind.
  std::vector<std::string> out = model.body_names;
  const auto taken = [&](const std::string& name) { return std::find(out.begin(), out.end(), name) != out.end(); };
  for (const Site& site : model.sites)
    out.push_back(taken(site.name) ? "site/" + site.name : site.name);
  for (const std::string& name : model.geometry_names)
    out.push_back(taken(name) ? "geometry/" + name : name);
  return out;
}

/// The site that find_frame takes the element for, or null.
const Site* find_site(const Model& model, const std::string& element) {
  // Bodies go before sites of the same name.
  const bool said = element.rfind("site/", 0) == 0;
  if (!said && index_of(model.body_names, element) >= 0) return nullptr;
  const std::string name = said ? element.substr(5) : element;
  const auto it =
      std::find_if(model.sites.begin(), model.sites.end(), [&](const Site& site) { return site.name == name; });
  return it == model.sites.end() ? nullptr : &*it;
}

/// Of a body, a geometry, or a welded link: then of the link's own geometries.
void find_contact_force(const Model& model, const std::string& element, Sensor& out) {
  const auto frame = find_frame(model, element);
  if (!frame) {
    no_element(out.name, "body or geometry", element, frame_elements(model));
  }
  out.type = SensorType::contact_force;
  out.frame = *frame;

  const Site* site = find_site(model, element);

  // A link without geometries would always read zero.
  if (!site || !site->geometries) return;
  if (site->geometries->empty()) {
    checks::fail("output '" + out.name + "'", "this link has no geometry to be touched");
  }
  out.geometries = site->geometries;
}

}  // namespace

bool is_force(SensorType type) {
  if (type >= SensorType::touch && type <= SensorType::equality_force) return true;
  return type >= SensorType::tendon_actuator_force && type <= SensorType::frame_angular_acceleration;
}

int sensor_size(const Model& model, const Sensor& sensor) {
  if (sensor.type == SensorType::joint_position) {
    return joint_position_size(model, sensor.index);
  }
  if (sensor.type == SensorType::orientation) return 4;
  return sensor_tangent_size(model, sensor);
}

int sensor_tangent_size(const Model& model, const Sensor& sensor) {
  switch (sensor.type) {
    case SensorType::joint_position:
    case SensorType::joint_velocity:
    case SensorType::joint_friction_force: return joint_velocity_size(model, sensor.index);
    case SensorType::equality_force: return equality_size(model.equalities[sensor.index]);
    case SensorType::contact: return sensor.contacts ? contact_size(*sensor.contacts) : 0;
    case SensorType::distance_segment: return 6;
    default: return is_scalar(sensor.type) ? 1 : 3;
  }
}

const char* sensor_unit(const Model& model, const Sensor& sensor) {
  // A joint's unit depends on its type.
  const bool joint_kind = sensor.type == SensorType::joint_position || sensor.type == SensorType::joint_velocity;
  const JointType joint = joint_kind ? model.joint_type[sensor.index] : JointType::hinge;
  switch (sensor.type) {
    case SensorType::position:
    case SensorType::rangefinder:
    case SensorType::distance:
    case SensorType::distance_segment:
    case SensorType::subtree_com: return "m";
    case SensorType::distance_normal:
    case SensorType::inside_site:
    case SensorType::orientation:
    case SensorType::x_axis:
    case SensorType::y_axis:
    case SensorType::z_axis: return "1";
    case SensorType::velocity:
    case SensorType::velocimeter:
    case SensorType::subtree_velocity: return "m/s";
    case SensorType::angular_velocity:
    case SensorType::gyro: return "rad/s";
    case SensorType::joint_position:
      return joint == JointType::slide  ? "m"
             : joint == JointType::ball ? "1"
             : joint == JointType::free ? "m, 1"
                                        : "rad";
    case SensorType::joint_velocity:
      return joint == JointType::slide ? "m/s" : joint == JointType::free ? "m/s, rad/s" : "rad/s";
    case SensorType::contact_force:
    case SensorType::interaction_force:
    case SensorType::touch: return "N";
    case SensorType::interaction_torque: return "N m";
    case SensorType::frame_acceleration:
    case SensorType::accelerometer: return "m/s^2";
    case SensorType::frame_angular_acceleration: return "rad/s^2";
    case SensorType::potential_energy:
    case SensorType::kinetic_energy: return "J";
    case SensorType::subtree_angular_momentum: return "kg m^2/s";
    case SensorType::actuator_position:
    case SensorType::tendon_length:
    case SensorType::tendon_limit_position:
    case SensorType::joint_limit_position: return "m or rad";
    case SensorType::actuator_velocity:
    case SensorType::tendon_velocity:
    case SensorType::tendon_limit_velocity:
    case SensorType::joint_limit_velocity: return "m/s or rad/s";
    case SensorType::actuator_force:
    case SensorType::joint_actuator_force:
    case SensorType::joint_limit_force:
    case SensorType::tendon_actuator_force:
    case SensorType::tendon_limit_force:
    case SensorType::joint_friction_force: return "N or N m";
    case SensorType::magnetometer: return "that of the field";
    case SensorType::contact: return "1, N, N m, m";
    case SensorType::equality_force: {
      const EqualityType equality = model.equalities[sensor.index].type;
      return equality == EqualityType::connect ? "N" : equality == EqualityType::weld ? "N, N m" : "N or N m";
    }
  }
  return "";
}

Sensor find_output(const Model& model, const std::string& name) {
  // Split at the first slash: kind and element.
  const std::size_t slash = name.find('/');
  const std::string kind = name.substr(0, slash);
  const std::string element = slash == std::string::npos ? "" : name.substr(slash + 1);
  Sensor out;

  // A sensor of the file.
  if (kind == "sensor") {
    out = model.sensors[find_element(name, "sensor", element, names_of(model.sensors))];
    out.name = name;
    return out;
  }

  // Of a frame.
  out.name = name;
  const Kind* of_frame = find_kind(frame_kinds, kind);
  if (!of_frame) of_frame = find_kind(unlisted_frame_kinds, kind);
  if (!of_frame) of_frame = find_kind(frame_force_kinds, kind);
  if (of_frame) {
    const auto frame = find_frame(model, element);
    if (!frame) {
      no_element(name, "body, site or geometry", element, frame_elements(model));
    }
    out.type = of_frame->type;
    out.frame = *frame;
    return out;
  }

  // Forces of contacts.
  if (kind == "contact_force") {
    find_contact_force(model, element, out);
    return out;
  }

  // Of a joint.
  const Kind* of_joint = find_kind(joint_kinds, kind);
  if (!of_joint) of_joint = find_kind(joint_force_kinds, kind);
  if (of_joint) {
    out.type = of_joint->type;
    out.index = find_element(name, "joint", element, model.joint_names);
    return out;
  }

  // Of a tendon.
  const Kind* of_tendon = find_kind(tendon_kinds, kind);
  if (!of_tendon) of_tendon = find_kind(tendon_force_kinds, kind);
  if (of_tendon) {
    out.type = of_tendon->type;
    out.index = find_element(name, "tendon", element, names_of(model.tendons));
    return out;
  }

  // Of the model, a subtree, an actuator, an equality.
  if (const Kind* k = find_kind(model_kinds, name)) {
    out.type = k->type;
    return out;
  }
  if (const Kind* k = find_kind(subtree_kinds, kind)) {
    out.type = k->type;
    out.index = find_element(name, "body", element, model.body_names);
    return out;
  }
  if (kind == "actuator_force") {
    out.type = SensorType::actuator_force;
    out.index = find_element(name, "actuator", element, names_of(model.actuators));
    return out;
  }
  if (kind == "equality_force") {
    out.type = SensorType::equality_force;
    out.index = find_element(name, "equality", element, names_of(model.equalities));
    return out;
  }

  // None of these: the message lists all kinds.
  static const std::vector<std::string> kinds{"position",
                                              "orientation",
                                              "velocity",
                                              "angular_velocity",
                                              "joint_position",
                                              "joint_velocity",
                                              "tendon_length",
                                              "tendon_velocity",
                                              "subtree_com",
                                              "subtree_velocity",
                                              "subtree_angular_momentum",
                                              "potential_energy",
                                              "kinetic_energy",
                                              "contact_force",
                                              "joint_limit_force",
                                              "joint_friction_force",
                                              "equality_force",
                                              "actuator_force",
                                              "tendon_actuator_force",
                                              "tendon_limit_force",
                                              "velocimeter",
                                              "gyro",
                                              "rangefinder",
                                              "accelerometer",
                                              "force",
                                              "torque",
                                              "sensor"};
  std::string listed;
  for (const std::string& known : kinds)
    listed += (listed.empty() ? "" : ", ") + known;
  const std::vector<std::string> guess = similar_names(kind, kinds);
  checks::fail("output '" + name + "'", "unknown kind '" + kind + "'" +
                                            (guess.empty() ? "" : ", did you mean '" + guess[0] + "'?") +
                                            "; kinds are " + listed);
}

std::vector<std::string> output_names(const Model& model) {
  std::vector<std::string> out;

  // Every kind with every element that it may have.
  const auto add = [&](const auto& kinds, const std::vector<std::string>& elements) {
    for (const Kind& kind : kinds)
      for (const std::string& element : elements)
        out.push_back(std::string(kind.name) + "/" + element);
  };
  add(frame_kinds, frame_elements(model));
  add(joint_kinds, model.joint_names);
  add(tendon_kinds, names_of(model.tendons));
  add(subtree_kinds, model.body_names);
  for (const Kind& kind : model_kinds)
    out.emplace_back(kind.name);
  for (const Sensor& s : model.sensors)
    out.push_back("sensor/" + s.name);
  return out;
}

std::vector<std::string> force_output_names(const Model& model) {
  std::vector<std::string> out;
  const auto add = [&](const char* kind, const std::string& element) {
    out.push_back(std::string(kind) + "/" + element);
  };

  // Contacts: bodies that carry geometries, welded links that do, and every geometry; as find_frame resolves them.
  for (const std::string& element : frame_elements(model)) {
    const auto frame = find_frame(model, element);
    const Site* site = find_site(model, element);
    if (site && (!site->geometries || site->geometries->empty())) continue;
    const auto& of_geometries = model.geometry_body;
    if (std::find(of_geometries.begin(), of_geometries.end(), frame->body) != of_geometries.end())
      add("contact_force", element);
  }

  // What a sensor on any frame of a moving body feels.
  for (const Kind& kind : frame_force_kinds)
    for (const std::string& element : frame_elements(model))
      if (model.body_tree[find_frame(model, element)->body] >= 0) {
        add(kind.name, element);
      }

  // Joints that have limits or dry friction, equalities, actuators.
  for (int j = 0; j < model.num_joints; ++j)
    if (model.joint_limited[j]) {
      add("joint_limit_force", model.joint_names[j]);
    }
  for (int j = 0; j < model.num_joints; ++j) {
    const auto first = model.dof_dry_friction.begin() + model.joint_v[j];
    if (std::any_of(first, first + joint_velocity_size(model, j), [](double f) { return f > 0; }))
      add("joint_friction_force", model.joint_names[j]);
  }
  for (const Equality& e : model.equalities)
    add("equality_force", e.name);
  for (const Actuator& a : model.actuators)
    add("actuator_force", a.name);

  // Tendons that actuators pull, or that have limits.
  for (int t = 0; t < static_cast<int>(model.tendons.size()); ++t) {
    const Tendon& tendon = model.tendons[t];
    const bool is_pulled =
        std::any_of(model.actuators.begin(), model.actuators.end(), [&](const Actuator& a) { return a.tendon == t; });
    if (is_pulled) add("tendon_actuator_force", tendon.name);
    if (tendon.limited) add("tendon_limit_force", tendon.name);
  }
  return out;
}

OutputSet::OutputSet(const Model& model, const std::vector<std::string>& names) {
  // Readings lie one after the other, once as values and once in the tangent space.
  for (const std::string& name : names) {
    if (std::any_of(items_.begin(), items_.end(), [&](const Item& i) { return i.sensor.name == name; }))
      checks::fail("output '" + name + "'", "is listed twice");
    Item item{find_output(model, name), size_, 0, tangent_size_, 0};
    item.size = sensor_size(model, item.sensor);
    item.tangent_size = sensor_tangent_size(model, item.sensor);
    size_ += item.size;
    tangent_size_ += item.tangent_size;
    items_.push_back(std::move(item));
  }
}

}  // namespace coulomb
