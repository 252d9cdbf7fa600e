// How the materials of two geometries combine into those of their contact.
#pragma once

#include <optional>

namespace coulomb {

/// What penalty contact asks of one geometry (constraints/penalty/penalty_contact.hpp). Unset values are the partner's.
struct PenaltyMaterial {
  std::optional<double> stiffness;           ///< k_n, N/m, > 0
  std::optional<double> damping;             ///< k_d, N s/m^2
  std::optional<double> friction_stiffness;  ///< k_t, N s/m
  double scale = 1;                          ///< s: of all of the geometry's contact forces
};

/// What a pair has that neither of its geometries sets.
struct PenaltyDefaults {
  double stiffness = 1e5;           ///< k_n, N/m, > 0
  double damping = 1e5;             ///< k_d, N s/m^2, >= 0: at 1 m/s as strong as the spring
  double friction_stiffness = 1e4;  ///< k_t, N s/m, >= 0
};

/// Surface of one geometry. Unset values are the partner's; priority and condim as in MuJoCo (condim 1: frictionless).
struct GeometryMaterial {
  std::optional<double> friction;
  std::optional<double> restitution;
  double compliance = 0;
  int priority = 0;
  int condim = 3;
  PenaltyMaterial penalty;
};

/// A pair's own values, where it has them (MJCF <pair>).
struct PairOverride {
  std::optional<double> friction;
  std::optional<double> restitution;
};

/// Whose value the pair has. none: the pair's own, or frictionless; either: the default, until one of the two is given a value.
enum class Owner : unsigned char { none, a, b, either };

struct PairMaterial {
  double friction = 1;
  double restitution = 0;
  double compliance = 0;
  Owner friction_owner = Owner::none;
  Owner restitution_owner = Owner::none;
};

/// Two springs in series: the softer counts more, and an unset stiffness is rigid. The larger damping and friction stiffness count,
/// scales multiply. Unset: set by neither.
struct PairPenalty {
  std::optional<double> stiffness;
  std::optional<double> damping;
  std::optional<double> friction_stiffness;
  double scale = 1;
  Owner damping_owner = Owner::none;
  Owner friction_stiffness_owner = Owner::none;
};

PairPenalty combine_penalty(const PenaltyMaterial& a, const PenaltyMaterial& b);

inline bool owns(Owner owner, bool is_a, bool is_b) {
  return (is_a && owner == Owner::a) || (is_b && owner == Owner::b) || ((is_a || is_b) && owner == Owner::either);
}

/// Both set: the larger (a's when equal); one set: that one; none: friction 1, restitution 0. A higher priority decides alone.
/// Compliances add.
PairMaterial combine_materials(const GeometryMaterial& a, const GeometryMaterial& b, const PairOverride& own = {});

}  // namespace coulomb
