// How the materials of two geometries combine into those of their contact.
#pragma once

#include "coulomb/model.hpp"

namespace coulomb {

// MuJoCo's condim of contacts: rows of sliding only; of torsional friction, too; and of rolling.
inline constexpr int sliding_condim = 3;
inline constexpr int least_torsional_condim = 4;
inline constexpr int rolling_condim = 6;

struct PairMaterial {
  double friction = 1;
  double restitution = 0;
  double compliance = 0;
  Owner friction_owner = Owner::none;
  Owner restitution_owner = Owner::none;
  double torsional_friction = 0;
  double rolling_friction = 0;
  Owner torsional_friction_owner = Owner::none;
  Owner rolling_friction_owner = Owner::none;
};

/// A spring of the pair's own takes the place of those of the geometries.
PairPenalty combine_penalty(const PenaltyMaterial& a, const PenaltyMaterial& b, const PairOverride& own = {});

inline bool owns(Owner owner, bool is_a, bool is_b) {
  return (is_a && owner == Owner::a) || (is_b && owner == Owner::b) || ((is_a || is_b) && owner == Owner::either);
}

/// Both set: the larger (a's when equal); one set: that one; none: friction 1, restitution 0. A higher priority decides alone.
/// Compliances add. Torsional friction acts where the larger condim is 4 or more, rolling friction where it is 6.
PairMaterial combine_materials(const GeometryMaterial& a, const GeometryMaterial& b, const PairOverride& own = {});

}  // namespace coulomb
