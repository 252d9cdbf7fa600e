// Tendons: fixed ones, sums of joints, and spatial ones, whose paths run over points of bodies and around obstacles.
#pragma once

#include "coulomb/model.hpp"

namespace coulomb {

inline bool is_spatial(const Tendon& tendon) { return !tendon.path.empty(); }

/// Does it exert a force, or has it an inertia, whatever its limits?
inline bool has_own_forces(const Tendon& tendon) {
  return tendon.stiffness > 0 || tendon.damping > 0 || tendon.dry_friction > 0 || tendon.armature > 0;
}

/// How far a length is beyond the lengths of the tendon's spring: negative where it is too short.
inline double tendon_stretch(const Tendon& tendon, double length) {
  if (length < tendon.spring_lower) return length - tendon.spring_lower;
  return length > tendon.spring_upper ? length - tendon.spring_upper : 0;
}

/// Two points of a path, and what lies between them.
struct TendonPiece {
  const TendonPoint* a;
  const TendonPoint* b;
  const TendonPoint* around;  ///< an obstacle; null: none
  double share;               ///< 1 / divisor of the pulley before it
};

/// Does a path lead around it?
inline bool is_obstacle(const TendonPoint& point) {
  using Kind = TendonPoint::Kind;
  return point.kind == Kind::sphere || point.kind == Kind::cylinder || point.kind == Kind::slider;
}

/// Calls visit(piece) along the path of a spatial tendon. A pulley begins another branch.
template <class Visit>
void for_each_piece(const Tendon& tendon, Visit visit) {
  using Kind = TendonPoint::Kind;
  const TendonPoint* from = nullptr;
  const TendonPoint* around = nullptr;
  double share = 1;
  for (const TendonPoint& point : tendon.path) {
    if (is_obstacle(point)) {
      around = &point;
      continue;
    }
    const bool pulley = point.kind == Kind::pulley;
    if (pulley) share = 1 / point.divisor;
    if (from && !pulley) visit(TendonPiece{from, &point, around, share});
    from = pulley ? nullptr : &point;
    around = nullptr;
  }
}

/// Does a dof move a body?
bool dof_moves_body(const Model& model, int dof, int body);

/// The first spatial tendon of which the bodies from `first` on to before `end`, a subtree, carry a part: moved by themselves they change its
/// length. -1: none.
int tendon_of_subtree(const Model& model, int first, int end);

/// Sets Tendon::dofs of all tendons: of fixed ones the dofs of their joints, in their order; of spatial ones, in increasing order, those that
/// move some but not all of the bodies of a piece of the path. After the topology.
void find_tendon_dofs(Model& model);

/// The weight of a fixed tendon's rows: of its joints as if each moved alone.
double sum_of_joints_weight(const Model& model, const Tendon& tendon);

}  // namespace coulomb
