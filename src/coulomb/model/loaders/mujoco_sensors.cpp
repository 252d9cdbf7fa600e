// Compiled MuJoCo arrays to SceneParts: sites, and the sensors that are functions of a state or of the last step's forces. The others
// are listed in `ignored`.
#include <algorithm>
#include <optional>

#include "coulomb/model/loaders/mujoco_fields.hpp"

namespace coulomb {
namespace {

/// mjtObj
enum Object { object_body = 1, object_xbody = 2, object_geom = 5, object_site = 6 };

/// A type of MuJoCo and ours.
struct Translation {
  const char* mujoco;  ///< mjtSensor, in lower case: its numbers differ between versions
  SensorType type;
};
constexpr Translation translations[] = {{"framepos", SensorType::position},
                                        {"framequat", SensorType::orientation},
                                        {"framexaxis", SensorType::x_axis},
                                        {"frameyaxis", SensorType::y_axis},
                                        {"framezaxis", SensorType::z_axis},
                                        {"framelinvel", SensorType::velocity},
                                        {"frameangvel", SensorType::angular_velocity},
                                        {"velocimeter", SensorType::velocimeter},
                                        {"gyro", SensorType::gyro},
                                        {"jointpos", SensorType::joint_position},
                                        {"ballquat", SensorType::joint_position},
                                        {"jointvel", SensorType::joint_velocity},
                                        {"ballangvel", SensorType::joint_velocity},
                                        {"subtreecom", SensorType::subtree_com},
                                        {"subtreelinvel", SensorType::subtree_velocity},
                                        {"subtreeangmom", SensorType::subtree_angular_momentum},
                                        {"e_potential", SensorType::potential_energy},
                                        {"e_kinetic", SensorType::kinetic_energy},
                                        {"tendonpos", SensorType::tendon_length},
                                        {"tendonvel", SensorType::tendon_velocity},
                                        {"actuatorpos", SensorType::actuator_position},
                                        {"actuatorvel", SensorType::actuator_velocity},
                                        {"actuatorfrc", SensorType::actuator_force},
                                        {"jointactfrc", SensorType::joint_actuator_force},
                                        {"jointlimitpos", SensorType::joint_limit_position},
                                        {"jointlimitvel", SensorType::joint_limit_velocity},
                                        {"jointlimitfrc", SensorType::joint_limit_force},
                                        {"tendonactfrc", SensorType::tendon_actuator_force},
                                        {"tendonlimitpos", SensorType::tendon_limit_position},
                                        {"tendonlimitvel", SensorType::tendon_limit_velocity},
                                        {"tendonlimitfrc", SensorType::tendon_limit_force},
                                        {"rangefinder", SensorType::rangefinder},
                                        {"magnetometer", SensorType::magnetometer},
                                        {"insidesite", SensorType::inside_site},
                                        {"geomdist", SensorType::distance},
                                        {"geomnormal", SensorType::distance_normal},
                                        {"geomfromto", SensorType::distance_segment},
                                        {"contact", SensorType::contact},
                                        {"touch", SensorType::touch},
                                        {"accelerometer", SensorType::accelerometer},
                                        {"framelinacc", SensorType::frame_acceleration},
                                        {"frameangacc", SensorType::frame_angular_acceleration},
                                        {"force", SensorType::interaction_force},
                                        {"torque", SensorType::interaction_torque}};

/// Frame of a site.
Frame site_frame(const MujocoFields& f, int site) {
  Frame out;
  out.body = f.integer("site_bodyid", site);
  out.pos = f.row<3>("site_pos", site);
  out.quat = f.row<4>("site_quat", site);
  return out;
}

/// Frame of a geometry of the scene, or fixed to the body where the geometry was left out.
Frame geometry_frame(const MujocoFields& f, int geom, const SceneParts& parts) {
  Frame out;
  out.body = f.integer("geom_bodyid", geom);
  const std::string name = f.name("geom", geom);
  const auto it = std::find_if(parts.geometries.begin(), parts.geometries.end(),
                               [&](const GeometryPart& g) { return g.name == name && g.body == out.body; });
  if (it != parts.geometries.end()) {
    out.geometry = static_cast<int>(it - parts.geometries.begin());
  } else {
    // Left out: it was only looked at.
    out.pos = f.row<3>("geom_pos", geom);
    out.quat = f.row<4>("geom_quat", geom);
  }
  return out;
}

/// False for cameras and whatever else is no frame here.
bool translate_frame(const MujocoFields& f, int type, int id, const SceneParts& parts, Frame& out) {
  out = Frame{};
  switch (type) {
    case object_xbody: out.body = id; return true;
    case object_body:
      out.body = id;
      out.at_com = true;
      out.quat = f.row<4>("body_iquat", id);
      return true;
    case object_geom: out = geometry_frame(f, id, parts); return true;
    case object_site: out = site_frame(f, id); return true;
    default: return false;
  }
}

/// Is the sensor of a tendon?
bool is_of_tendon(SensorType type) {
  switch (type) {
    case SensorType::tendon_length:
    case SensorType::tendon_velocity:
    case SensorType::tendon_limit_position:
    case SensorType::tendon_limit_velocity:
    case SensorType::tendon_actuator_force:
    case SensorType::tendon_limit_force: return true;
    default: return false;
  }
}

/// What MuJoCo's object stands for; a geometry that was left out: nothing.
GeometryGroup group_of(const MujocoFields& f, int object, int id, const SceneParts& parts) {
  using Of = GeometryGroup::Of;
  switch (object) {
    case object_body: return {Of::body, id};
    case object_xbody: return {Of::subtree, id};
    case object_geom: {
      const int geometry = geometry_frame(f, id, parts).geometry;
      return {geometry < 0 ? Of::none : Of::geometry, geometry};
    }
    default: return {};
  }
}

/// Both groups, of the object and of the reference.
void translate_groups(const MujocoFields& f, int i, const SceneParts& parts, Sensor& out) {
  out.contacts.emplace();
  out.contacts->groups = {group_of(f, f.integer("sensor_objtype", i), f.integer("sensor_objid", i), parts),
                          group_of(f, f.integer("sensor_reftype", i), f.integer("sensor_refid", i), parts)};
}

/// A height field on the group's body, or the group itself: MuJoCo has no distances to it.
bool has_surface(const SceneParts& parts, const GeometryGroup& group) {
  for (std::size_t g = 0; g < parts.geometries.size(); ++g) {
    const GeometryPart& part = parts.geometries[g];
    const bool is_its =
        group.of == GeometryGroup::Of::geometry ? static_cast<int>(g) == group.index : part.body == group.index;
    if (is_its && part.type == ShapeType::surface) return true;
  }
  return false;
}

/// The i-th sensor's parameter k.
int parameter(const MujocoFields& f, int i, int k) { return f.integer("sensor_intprm", 3 * i + k, 0); }

/// False: some of its numbers are not known here.
bool translate_contact(const MujocoFields& f, int i, const SceneParts& parts, Sensor& out) {
  translate_groups(f, i, parts, out);
  ContactSelection& of = *out.contacts;
  of.fields = static_cast<std::uint32_t>(parameter(f, i, 0));
  of.reduction = static_cast<ContactReduction>(parameter(f, i, 1));
  of.num = parameter(f, i, 2);
  const bool in_site = f.integer("sensor_objtype", i) == object_site;
  out.index = in_site ? f.integer("sensor_objid", i) : -1;
  return of.fields < 2 * ContactSelection::tangent;
}

/// Sensors that look at geometries, at a zone or at a field; nothing for the others. False: it is not known here.
std::optional<bool> translate_special(const MujocoFields& f, int i, const SceneParts& parts, Sensor& out) {
  const int object = f.integer("sensor_objtype", i);
  const int id = f.integer("sensor_objid", i);
  switch (out.type) {
    case SensorType::contact: return translate_contact(f, i, parts, out);
    case SensorType::potential_energy:
    case SensorType::kinetic_energy: return true;
    case SensorType::distance:
    case SensorType::distance_normal:
    case SensorType::distance_segment:
      translate_groups(f, i, parts, out);
      return !has_surface(parts, out.contacts->groups[0]) && !has_surface(parts, out.contacts->groups[1]);
    case SensorType::magnetometer:
      out.field = f.row<3>("opt_magnetic", 0);
      return translate_frame(f, object, id, parts, out.frame);
    case SensorType::inside_site:
      out.index = f.integer("sensor_refid", i);
      return translate_frame(f, object, id, parts, out.frame);
    case SensorType::rangefinder: {
      // Its distance alone, and not through the pixels of a camera.
      constexpr int distance_alone = 1;
      const bool known = !f.has("sensor_intprm") || parameter(f, i, 0) == distance_alone;
      return known && object == object_site && translate_frame(f, object, id, parts, out.frame);
    }
    default: return std::nullopt;
  }
}

/// False: the sensor is of no type that is known here.
bool translate_sensor(const MujocoFields& f, int i, const SceneParts& parts, Sensor& out) {
  // Its type, by name: numbers differ between versions.
  const auto types = f.arrays().names.find("sensor_type");
  if (types == f.arrays().names.end() || static_cast<int>(types->second.size()) <= i) return false;
  const auto found = std::find_if(std::begin(translations), std::end(translations),
                                  [&](const Translation& t) { return types->second[i] == t.mujoco; });
  if (found == std::end(translations)) return false;
  const int object = f.integer("sensor_objtype", i);
  const int id = f.integer("sensor_objid", i);
  out.name = f.name("sensor", i);
  out.type = found->type;
  out.cutoff = f.real("sensor_cutoff", i, 0);

  if (const auto known = translate_special(f, i, parts, out)) return *known;

  // Sensors of forces take a frame alone.
  const bool is_load = out.type >= SensorType::accelerometer && out.type <= SensorType::interaction_torque;
  if (is_load || out.type == SensorType::frame_acceleration || out.type == SensorType::frame_angular_acceleration)
    return translate_frame(f, object, id, parts, out.frame);

  // Sensors of frames may be relative to another one; directions stay unit, so nothing cuts them off.
  if (out.type <= SensorType::gyro) {
    if (!translate_frame(f, object, id, parts, out.frame)) return false;
    if (out.type != SensorType::position && out.type <= SensorType::z_axis) {
      out.cutoff = 0;
    }
    const int reference = f.integer("sensor_refid", i, -1);
    if (reference < 0) return true;
    out.reference.emplace();
    return translate_frame(f, f.integer("sensor_reftype", i), reference, parts, *out.reference);
  }

  // All others belong to a joint, a tendon, an actuator or a body.
  out.index = id;
  if (is_of_tendon(out.type)) {
    out.index = tendon_index(f, id, "sensor '" + out.name + "'");
  }
  if (types->second[i] == "ballquat") {
    out.cutoff = 0;
  }
  return true;
}

bool is_load(const Sensor& sensor) {
  return sensor.type == SensorType::interaction_force || sensor.type == SensorType::interaction_torque;
}

/// Does a path over sites exert forces? That of a crank, whose pull MuJoCo's sensors do not take off either, does not count.
bool any_path_pulls(const SceneParts& parts) {
  const auto is_slider = [](const TendonPoint& p) { return p.kind == TendonPoint::Kind::slider; };
  for (std::size_t i = 0; i < parts.tendons.size(); ++i) {
    const Tendon& t = parts.tendons[i];
    if (t.path.empty() || std::any_of(t.path.begin(), t.path.end(), is_slider)) continue;
    const bool is_driven = std::any_of(parts.actuators.begin(), parts.actuators.end(),
                                       [&](const Actuator& a) { return a.tendon == static_cast<int>(i); });
    if (is_driven || t.limited || t.stiffness > 0 || t.damping > 0 || t.dry_friction > 0) return true;
  }
  return false;
}

}  // namespace

void translate_sensors(const MujocoFields& f, SceneParts& parts) {
  // Sites, with the zones in which touch sensors feel.
  for (int s = 0; s < f.count("nsite"); ++s) {
    Site site;
    site.name = f.name("site", s);
    site.frame = site_frame(f, s);
    const int type = f.integer("site_type", s, mj::sphere);
    site.zone = type == mj::capsule     ? ZoneType::capsule
                : type == mj::ellipsoid ? ZoneType::ellipsoid
                : type == mj::cylinder  ? ZoneType::cylinder
                : type == mj::box       ? ZoneType::box
                                        : ZoneType::sphere;
    if (f.has("site_size")) {
      site.size = f.row<3>("site_size", s);
    }
    parts.sites.push_back(site);
  }

  // Sensors, and which of them are not known here.
  std::string unsupported;
  int count = 0;
  int delayed = 0;
  for (int i = 0; i < f.count("nsensor"); ++i) {
    Sensor sensor;
    if (translate_sensor(f, i, parts, sensor)) {
      parts.sensors.push_back(sensor);
      delayed += f.real("sensor_delay", i, 0) != 0 || f.real("sensor_interval", 2 * i, 0) != 0;
      continue;
    }
    const auto types = f.arrays().names.find("sensor_type");
    const std::string type = types == f.arrays().names.end() || static_cast<int>(types->second.size()) <= i
                                 ? std::string("unknown")
                                 : types->second[i];
    ++count;
    if (unsupported.find(type) == std::string::npos) {
      unsupported += (unsupported.empty() ? "" : ", ") + type;
    }
  }

  // What is missing, in two lines.
  if (count > 0) {
    parts.ignored.push_back(std::to_string(count) + " sensors (" + unsupported + ")");
  }
  const auto loads = std::count_if(parts.sensors.begin(), parts.sensors.end(), is_load);
  if (loads > 0 && any_path_pulls(parts))
    parts.deviate("pull of spatial tendons on " + std::to_string(loads) +
                  " force and torque sensors: they do not take it off");
  if (delayed > 0)
    parts.ignored.push_back("delay or interval of " + std::to_string(delayed) + " sensors: they are read at once");
}

}  // namespace coulomb
