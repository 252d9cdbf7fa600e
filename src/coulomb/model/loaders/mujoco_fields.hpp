// Checked access to MujocoArrays for the translation units that read them.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/loaders/mujoco_arrays.hpp"

namespace coulomb {

class MujocoFields {
 public:
  MujocoFields(const MujocoArrays& arrays, bool soft) : arrays_(arrays), soft_(soft) {}

  int count(const std::string& key) const { return integer(key, 0, 0); }
  bool has(const std::string& key) const { return arrays_.reals.count(key) || arrays_.integers.count(key); }
  /// Element of a real array; fallback when the field does not exist in this MuJoCo version.
  double real(const std::string& key, int index, double fallback) const {
    return get(arrays_.reals, key, index, fallback);
  }
  int integer(const std::string& key, int index, int fallback) const {
    return get(arrays_.integers, key, index, fallback);
  }
  /// N entries of a row of a field that must exist.
  template <std::size_t N>
  std::array<double, N> row(const std::string& key, int index) const {
    const auto it = arrays_.reals.find(key);
    if (index < 0 || it == arrays_.reals.end() || it->second.size() < N * (static_cast<std::size_t>(index) + 1))
      throw std::invalid_argument("MuJoCo arrays: field '" + key + "' is missing or has no row " +
                                  std::to_string(index));
    std::array<double, N> out;
    std::copy_n(it->second.begin() + static_cast<long>(N) * index, N, out.begin());
    checks::finite("MuJoCo arrays: " + key + "[" + std::to_string(index) + "]", out.data(), N);
    return out;
  }
  double real(const std::string& key, int index) const { return row<1>(key, index)[0]; }
  int integer(const std::string& key, int index) const {
    const auto it = arrays_.integers.find(key);
    if (it == arrays_.integers.end() || static_cast<int>(it->second.size()) <= index || index < 0)
      throw std::invalid_argument("MuJoCo arrays: field '" + key + "' is missing or has no entry " +
                                  std::to_string(index));
    return it->second[index];
  }
  /// The same, of an element that is there: low .. high. what: as an error calls it.
  int index(const std::string& key, int i, int low, int high, const std::string& what) const {
    const int at = integer(key, i);
    if (at < low || at > high)
      throw std::invalid_argument("MuJoCo arrays: " + what + ": index " + std::to_string(at) + " is not within " +
                                  std::to_string(low) + " .. " + std::to_string(high));
    return at;
  }
  /// How many elements there are.
  int number(const std::string& key) const {
    const int n = count(key);
    if (n < 0) throw std::invalid_argument("MuJoCo arrays: " + key + " is " + std::to_string(n));
    return n;
  }
  bool any_nonzero(const std::string& key) const {
    const auto it = arrays_.reals.find(key);
    return it != arrays_.reals.end() &&
           std::any_of(it->second.begin(), it->second.end(), [](double x) { return x != 0; });
  }
  /// An element's name, or kind and index if it has none.
  std::string name(const std::string& kind, int index) const {
    const auto it = arrays_.names.find(kind);
    if (it != arrays_.names.end() && index >= 0 && index < static_cast<int>(it->second.size()) &&
        !it->second[index].empty())
      return it->second[index];
    return kind + std::to_string(index);
  }
  const MujocoArrays& arrays() const { return arrays_; }
  /// Contacts, limits, equalities and dry friction are as soft as the file says.
  bool soft() const { return soft_; }

 private:
  template <class Map, class T>
  static T get(const Map& map, const std::string& key, int index, T fallback) {
    const auto it = map.find(key);
    if (it == map.end() || index < 0 || index >= static_cast<int>(it->second.size())) return fallback;
    return it->second[index];
  }
  const MujocoArrays& arrays_;
  bool soft_;
};

[[noreturn]] inline void refuse(const std::string& element, const std::string& why) {
  throw std::invalid_argument("MJCF: " + element + ": " + why);
}

// The parts of the translation, in the order they run.
void translate_bodies_and_joints(const MujocoFields& f, SceneParts& parts);
void translate_geometries(const MujocoFields& f, SceneParts& parts);
/// solref and solimp of an element of a kind: "geom", "pair", "jnt", "dof", "eq", "tendon", whose fields end with `of`.
Softness softness_of(const MujocoFields& f, const std::string& kind, int index, const std::string& of = "");

/// 1/kg: MuJoCo's weight of a body that moves along slides alone, each along an axis of its inertia, which is 1/mass whatever their number and
/// armature. 0: as of other bodies.
double own_mobility(const MujocoFields& f, int body);
void translate_tendons(const MujocoFields& f, SceneParts& parts);
/// Index into parts.tendons of MuJoCo's tendon t; `what` needs it.
int tendon_index(const MujocoFields& f, int t, const std::string& what);
void translate_actuators(const MujocoFields& f, SceneParts& parts);
void translate_equalities(const MujocoFields& f, SceneParts& parts);
void translate_sensors(const MujocoFields& f, SceneParts& parts);
/// Refuses what would change the motion and lists what does not.
void report_unsupported(const MujocoFields& f, SceneParts& parts);

// mjModel's enumerations (stable since MuJoCo 3), spelled out here because this code sees no MuJoCo header
namespace mj {
enum Geom {
  plane = 0,
  height_field = 1,
  sphere = 2,
  capsule = 3,
  ellipsoid = 4,
  cylinder = 5,
  box = 6,
  mesh = 7,
  sdf = 8
};
enum Disable {
  disable_constraint = 1 << 0,
  disable_equality = 1 << 1,
  disable_friction_loss = 1 << 2,
  disable_limit = 1 << 3,
  disable_contact = 1 << 4,
  disable_spring = 1 << 5,
  disable_damper = 1 << 6,
  disable_gravity = 1 << 7,
  disable_clamp_control = 1 << 8,
  disable_filter_parent = 1 << 10,
  disable_actuation = 1 << 11,
  disable_safe_reference = 1 << 12,
  disable_euler_damping = 1 << 15
};
enum Enable {
  enable_override = 1 << 0,
  enable_sleep = 1 << 4,
  enable_exact_diagonal = 1 << 5,
  enable_barrier = 1 << 6,
  enable_speculative = 1 << 7
};
}  // namespace mj

}  // namespace coulomb
