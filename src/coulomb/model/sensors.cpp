// Outputs by name: "kind/element", the element a body, a site or a geometry (in this order; "position/site/foot" says which), a joint,
// or the root body of a subtree.
#include "coulomb/model/sensors.hpp"

#include <algorithm>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/model.hpp"

namespace coulomb {
namespace {

struct Kind {
  const char* name;
  SensorType type;
};
constexpr Kind frame_kinds[] = {{"position", SensorType::position},
                                {"orientation", SensorType::orientation},
                                {"velocity", SensorType::velocity},
                                {"angular_velocity", SensorType::angular_velocity}};
constexpr Kind joint_kinds[] = {{"joint_position", SensorType::joint_position},
                                {"joint_velocity", SensorType::joint_velocity}};
constexpr Kind subtree_kinds[] = {{"subtree_com", SensorType::subtree_com},
                                  {"subtree_velocity", SensorType::subtree_velocity}};

template <std::size_t N>
const Kind* find_kind(const Kind (&kinds)[N], const std::string& name) {
  const auto it = std::find_if(kinds, kinds + N, [&](const Kind& k) { return name == k.name; });
  return it == kinds + N ? nullptr : it;
}

int index_of(const std::vector<std::string>& names, const std::string& name) {
  const auto it = std::find(names.begin(), names.end(), name);
  return it == names.end() ? -1 : static_cast<int>(it - names.begin());
}

Frame body_frame(int body) {
  Frame out;
  out.body = body;
  return out;
}

Frame geometry_frame(const Model& model, int geometry) {
  Frame out;
  out.body = model.geometry_body[geometry], out.geometry = geometry;
  return out;
}

std::optional<Frame> frame_of_kind(const Model& model, const std::string& kind, const std::string& name) {
  if (kind == "body" || kind.empty())
    if (const int b = index_of(model.body_names, name); b >= 0) return body_frame(b);
  if (kind == "site" || kind.empty())
    for (const Site& site : model.sites)
      if (site.name == name) return site.frame;
  if (kind == "geometry" || kind.empty())
    if (const int g = index_of(model.geometry_names, name); g >= 0) return geometry_frame(model, g);
  return std::nullopt;
}

/// A body, site or geometry of that name; else "body/...", "site/...", "geometry/...".
std::optional<Frame> find_frame(const Model& model, const std::string& element) {
  if (auto frame = frame_of_kind(model, "", element)) return frame;
  const std::size_t slash = element.find('/');
  if (slash == std::string::npos || slash == 0) return std::nullopt;
  return frame_of_kind(model, element.substr(0, slash), element.substr(slash + 1));
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < 12; ++i) out += (i ? ", " : "") + names[i];
  return names.size() > 12 ? out + ", ..." : out;
}

[[noreturn]] void no_element(const std::string& name, const char* what, const std::vector<std::string>& names) {
  checks::fail("output '" + name + "'", names.empty()
                                            ? std::string("this model has no ") + what
                                            : std::string("no such ") + what + "; the model has " + listed(names));
}

bool is_scalar(SensorType type) {
  return type >= SensorType::actuator_position && type != SensorType::contact_force;  // joints decide for themselves
}

int joint_position_size(const Model& model, int joint) {
  return model.joint_type[joint] == JointType::ball ? 4 : model.joint_type[joint] == JointType::free ? 7 : 1;
}
int joint_velocity_size(const Model& model, int joint) {
  return model.joint_type[joint] == JointType::ball ? 3 : model.joint_type[joint] == JointType::free ? 6 : 1;
}

/// Names of frames that find_frame resolves to this kind of element.
std::vector<std::string> frame_elements(const Model& model) {
  std::vector<std::string> out = model.body_names;
  const auto taken = [&](const std::string& name) { return std::find(out.begin(), out.end(), name) != out.end(); };
  for (const Site& site : model.sites) out.push_back(taken(site.name) ? "site/" + site.name : site.name);
  for (const std::string& name : model.geometry_names) out.push_back(taken(name) ? "geometry/" + name : name);
  return out;
}

}  // namespace

bool is_force(SensorType type) { return type >= SensorType::touch; }

int sensor_size(const Model& model, const Sensor& sensor) {
  if (sensor.type == SensorType::joint_position) return joint_position_size(model, sensor.index);
  if (sensor.type == SensorType::orientation) return 4;
  return sensor_tangent_size(model, sensor);
}

int sensor_tangent_size(const Model& model, const Sensor& sensor) {
  if (sensor.type == SensorType::joint_position || sensor.type == SensorType::joint_velocity)
    return joint_velocity_size(model, sensor.index);
  return is_scalar(sensor.type) ? 1 : 3;
}

const char* sensor_unit(const Model& model, const Sensor& sensor) {
  const bool joint_kind = sensor.type == SensorType::joint_position || sensor.type == SensorType::joint_velocity;
  const JointType joint = joint_kind ? model.joint_type[sensor.index] : JointType::hinge;
  switch (sensor.type) {
    case SensorType::position:
    case SensorType::subtree_com: return "m";
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
    case SensorType::touch: return "N";
    case SensorType::actuator_position:
    case SensorType::joint_limit_position: return "m or rad";
    case SensorType::actuator_velocity:
    case SensorType::joint_limit_velocity: return "m/s or rad/s";
    case SensorType::actuator_force:
    case SensorType::joint_actuator_force:
    case SensorType::joint_limit_force: return "N or N m";
  }
  return "";
}

Sensor find_output(const Model& model, const std::string& name) {
  const std::size_t slash = name.find('/');
  const std::string kind = name.substr(0, slash), element = slash == std::string::npos ? "" : name.substr(slash + 1);
  Sensor out;
  if (kind == "sensor") {
    std::vector<std::string> names;
    for (const Sensor& s : model.sensors) {
      names.push_back(s.name);
      if (s.name != element) continue;
      out = s;
      out.name = name;
      return out;
    }
    no_element(name, "sensor", names);
  }
  out.name = name;
  if (const Kind* k = find_kind(frame_kinds, kind)) {
    const auto frame = find_frame(model, element);
    if (!frame) no_element(name, "body, site or geometry", frame_elements(model));
    out.type = k->type, out.frame = *frame;
    return out;
  }
  if (kind == "contact_force") {
    const auto frame = find_frame(model, element);
    if (!frame) no_element(name, "body or geometry", frame_elements(model));
    out.type = SensorType::contact_force, out.frame = *frame;
    return out;
  }
  if (const Kind* k = find_kind(joint_kinds, kind)) {
    out.type = k->type, out.index = index_of(model.joint_names, element);
    if (out.index < 0) no_element(name, "joint", model.joint_names);
    return out;
  }
  if (const Kind* k = find_kind(subtree_kinds, kind)) {
    out.type = k->type, out.index = index_of(model.body_names, element);
    if (out.index < 0) no_element(name, "body", model.body_names);
    return out;
  }
  checks::fail("output '" + name + "'",
               "unknown kind '" + kind +
                   "'; kinds are position, orientation, velocity, angular_velocity, joint_position, joint_velocity, "
                   "subtree_com, subtree_velocity, contact_force, sensor");
}

std::vector<std::string> output_names(const Model& model) {
  std::vector<std::string> out;
  const auto add = [&](const auto& kinds, const std::vector<std::string>& elements) {
    for (const Kind& kind : kinds)
      for (const std::string& element : elements) out.push_back(std::string(kind.name) + "/" + element);
  };
  add(frame_kinds, frame_elements(model));
  add(joint_kinds, model.joint_names);
  add(subtree_kinds, model.body_names);
  for (const Sensor& s : model.sensors) out.push_back("sensor/" + s.name);
  return out;
}

OutputSet::OutputSet(const Model& model, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::any_of(items_.begin(), items_.end(), [&](const Item& i) { return i.sensor.name == name; }))
      checks::fail("output '" + name + "'", "is listed twice");
    Item item{find_output(model, name), size_, 0, tangent_size_, 0};
    item.size = sensor_size(model, item.sensor), item.tangent_size = sensor_tangent_size(model, item.sensor);
    size_ += item.size, tangent_size_ += item.tangent_size;
    items_.push_back(std::move(item));
  }
}

}  // namespace coulomb
