// How the materials of two geometries combine into those of their contact.
#pragma once

#include "coulomb/model.hpp"

namespace coulomb {

struct PairMaterial {
  double friction = 1;
  double restitution = 0;
  double compliance = 0;
  Owner friction_owner = Owner::none;
  Owner restitution_owner = Owner::none;
};

/// A spring of the pair's own takes the place of those of the geometries.
PairPenalty combine_penalty(const PenaltyMaterial& a, const PenaltyMaterial& b, const PairOverride& own = {});

inline bool owns(Owner owner, bool is_a, bool is_b) {
  return (is_a && owner == Owner::a) || (is_b && owner == Owner::b) || ((is_a || is_b) && owner == Owner::either);
}

/// Both set: the larger (a's when equal); one set: that one; none: friction 1, restitution 0. A higher priority decides alone.
/// Compliances add.
PairMaterial combine_materials(const GeometryMaterial& a, const GeometryMaterial& b, const PairOverride& own = {});

}  // namespace coulomb
