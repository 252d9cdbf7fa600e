#include "coulomb/model/scene/materials.hpp"

#include <algorithm>

namespace coulomb {
namespace {

/// The larger value decides and owns what it decides; without any, the default stays.
void combine(const std::optional<double>& a, const std::optional<double>& b, double& value, Owner& owner) {
  if (a && (!b || *a >= *b)) {
    value = *a;
    owner = Owner::a;
  } else if (b) {
    value = *b;
    owner = Owner::b;
  }
}

/// The same where there is no default.
void take_larger(const std::optional<double>& a, const std::optional<double>& b, std::optional<double>& value,
                 Owner& owner) {
  double larger = 0;
  combine(a, b, larger, owner);
  if (owner != Owner::none) value = larger;
}

/// Only what is soft has a dashpot; one of zero beside another spring resists nothing.
double dashpots_in_series(const PenaltyMaterial& a, const PenaltyMaterial& b) {
  const double of_a = a.dashpot.value_or(0);
  const double of_b = b.dashpot.value_or(0);
  if (!(a.stiffness && b.stiffness)) return a.stiffness ? of_a : b.stiffness ? of_b : 0;
  return of_a > 0 && of_b > 0 ? 1 / (1 / of_a + 1 / of_b) : 0;
}

}  // namespace

PairPenalty combine_penalty(const PenaltyMaterial& a, const PenaltyMaterial& b, const PairOverride& own) {
  PairPenalty out;

  // Springs of both sides act in series.
  if (a.stiffness && b.stiffness)
    out.stiffness = 1 / (1 / *a.stiffness + 1 / *b.stiffness);
  else
    out.stiffness = a.stiffness ? a.stiffness : b.stiffness;
  out.dashpot = dashpots_in_series(a, b);

  take_larger(a.damping, b.damping, out.damping, out.damping_owner);
  take_larger(a.friction_stiffness, b.friction_stiffness, out.friction_stiffness, out.friction_stiffness_owner);
  out.scale = a.scale * b.scale;
  if (!own.spring) return out;

  // What the pair itself says comes last.
  out.stiffness = own.spring->stiffness;
  out.dashpot = own.spring->dashpot;
  out.margin = own.spring->margin;
  out.curve = own.spring->curve;
  return out;
}

PairMaterial combine_materials(const GeometryMaterial& a, const GeometryMaterial& b, const PairOverride& own) {
  // By themselves: the larger friction and restitution, the sum of compliances, the richer contact.
  PairMaterial out;
  out.friction_owner = out.restitution_owner = Owner::either;
  combine(a.friction, b.friction, out.friction, out.friction_owner);
  combine(a.restitution, b.restitution, out.restitution, out.restitution_owner);
  combine(a.torsional_friction, b.torsional_friction, out.torsional_friction, out.torsional_friction_owner);
  combine(a.rolling_friction, b.rolling_friction, out.rolling_friction, out.rolling_friction_owner);
  out.compliance = a.compliance + b.compliance;
  int condim = std::max(a.condim, b.condim);

  // A geometry of higher priority decides for both (MuJoCo's rule).
  if (a.priority != b.priority) {
    const Owner chief = a.priority > b.priority ? Owner::a : Owner::b;
    const GeometryMaterial& m = chief == Owner::a ? a : b;
    condim = m.condim;
    if (m.friction) {
      out.friction = *m.friction;
      out.friction_owner = chief;
    }
    if (m.restitution) {
      out.restitution = *m.restitution;
      out.restitution_owner = chief;
    }
    if (m.torsional_friction) {
      out.torsional_friction = *m.torsional_friction;
      out.torsional_friction_owner = chief;
    }
    if (m.rolling_friction) {
      out.rolling_friction = *m.rolling_friction;
      out.rolling_friction_owner = chief;
    }
  }
  condim = own.condim.value_or(condim);

  // Without tangential rows there is no friction.
  if (condim == 1) {
    out.friction = 0;
    out.friction_owner = Owner::none;
  }

  // Nor is there more of it than the contact has rows for.
  if (condim < least_torsional_condim) {
    out.torsional_friction = 0;
    out.torsional_friction_owner = Owner::none;
  }
  if (condim < rolling_condim) {
    out.rolling_friction = 0;
    out.rolling_friction_owner = Owner::none;
  }

  // What the pair itself says comes last.
  if (own.friction) {
    out.friction = *own.friction;
    out.friction_owner = Owner::none;
  }
  if (own.restitution) {
    out.restitution = *own.restitution;
    out.restitution_owner = Owner::none;
  }
  if (own.torsional_friction) {
    out.torsional_friction = *own.torsional_friction;
    out.torsional_friction_owner = Owner::none;
  }
  if (own.rolling_friction) {
    out.rolling_friction = *own.rolling_friction;
    out.rolling_friction_owner = Owner::none;
  }
  return out;
}

}  // namespace coulomb
