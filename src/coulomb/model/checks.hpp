// The checks that loaders and verbs share. Each throws std::invalid_argument naming argument and value.
#pragma once

#include <cmath>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "coulomb/model.hpp"
#include "coulomb/model/placement.hpp"

namespace coulomb::checks {

inline std::string text(double value) {
  std::ostringstream out;
  out.precision(12);
  out << value;
  return out.str();
}

[[noreturn]] inline void fail(const std::string& what, const std::string& why) {
  throw std::invalid_argument(what + ": " + why);
}

inline void finite(const std::string& what, const double* values, int n) {
  for (int i = 0; i < n; ++i)
    if (!std::isfinite(values[i]))
      fail(what + (n > 1 ? "[" + std::to_string(i) + "]" : ""), text(values[i]) + " is not finite");
}
inline void positive(const std::string& what, double value) {
  if (!(value > 0) || !std::isfinite(value)) fail(what, text(value) + " must be positive and finite");
}
inline void not_negative(const std::string& what, double value) {
  if (!(value >= 0) || !std::isfinite(value)) fail(what, text(value) + " must be non-negative and finite");
}
/// Unit to 1e-6, then normalised.
inline Quat unit_quaternion(const std::string& what, const Quat& q) {
  finite(what, q.data(), 4);
  const double n = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  if (std::abs(n - 1) > 1e-6)
    fail(what, "(" + text(q[0]) + ", " + text(q[1]) + ", " + text(q[2]) + ", " + text(q[3]) + ") has norm " + text(n) +
                   ", not 1");
  if (std::abs(n - 1) < 4e-16) return q;  // keep the bits of what is already unit
  return {q[0] / n, q[1] / n, q[2] / n, q[3] / n};
}
inline Vec3 unit_vector(const std::string& what, const Vec3& v) {
  finite(what, v.data(), 3);
  const double n = norm3(v.data());
  if (!(n > 1e-12) || !std::isfinite(n)) fail(what, "has length " + text(n) + ", a direction is needed");
  return {v[0] / n, v[1] / n, v[2] / n};
}
inline void surface(const std::string& what, const std::optional<double>& friction,
                    const std::optional<double>& restitution) {
  if (friction) not_negative(what + " friction", *friction);
  if (restitution && !(*restitution >= 0 && *restitution <= 1))
    fail(what + " restitution", text(*restitution) + " is outside [0, 1]");
}
inline void material(const std::string& what, const std::optional<double>& friction,
                     const std::optional<double>& restitution, double compliance) {
  surface(what, friction, restitution);
  not_negative(what + " compliance", compliance);
}
/// Beyond sliding.
inline void further_friction(const std::string& what, const std::optional<double>& torsional,
                             const std::optional<double>& rolling) {
  if (torsional) not_negative(what + " torsional_friction", *torsional);
  if (rolling) not_negative(what + " rolling_friction", *rolling);
}
inline void penalty_material(const std::string& what, const PenaltyMaterial& m) {
  if (m.stiffness) positive(what + " contact_stiffness", *m.stiffness);
  if (m.damping) not_negative(what + " contact_damping", *m.damping);
  if (m.friction_stiffness) not_negative(what + " contact_friction_stiffness", *m.friction_stiffness);
  not_negative(what + " contact_scale", m.scale);
  if (!m.dashpot) return;
  not_negative(what + " contact_dashpot", *m.dashpot);
  if (!m.stiffness)
    fail(what + " contact_dashpot", text(*m.dashpot) + " needs a contact_stiffness: a rigid contact does not move");
}
inline void contact_points(const std::string& what, const std::vector<double>& points) {
  if (points.size() % 3 != 0)
    fail(what + " contact_points", "got " + std::to_string(points.size()) + " coordinates, a point has three");
  finite(what + " contact_points", points.data(), static_cast<int>(points.size()));
}

}  // namespace coulomb::checks
