// How the materials of two geometries combine into those of their contact.
#pragma once

#include <optional>

namespace coulomb {

/// Surface of one geometry. Unset values are the partner's; priority and condim as in MuJoCo (condim 1: frictionless).
struct GeometryMaterial {
  std::optional<double> friction, restitution;
  double compliance = 0;
  int priority = 0, condim = 3;
};

/// A pair's own values, where it has them (MJCF <pair>).
struct PairOverride {
  std::optional<double> friction, restitution;
};

enum class Owner : unsigned char { none, a, b };  ///< whose value the pair has; none: a default, or the pair's own

struct PairMaterial {
  double friction = 1, restitution = 0, compliance = 0;
  Owner friction_owner = Owner::none, restitution_owner = Owner::none;
};

/// Both set: the larger (a's when equal); one set: that one; none: friction 1, restitution 0. A higher priority decides alone.
/// Compliances add.
PairMaterial combine_materials(const GeometryMaterial& a, const GeometryMaterial& b, const PairOverride& own = {});

}  // namespace coulomb
