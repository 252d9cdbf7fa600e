// Penalty contact: the force that a spring, a damper and friction make at every penetrating contact, and its derivatives
// (docs/theory.md (B10) to (B12); [Xu2021, eqs. 12 to 14]). With the distance d < 0 and the relative velocity c = J v = (c_T, c_N) at
// the contact:
//
//   f_N = max(0, s (-k_n d + k_d c_N d)),   f_T = -min(k_t s |c_T|, mu f_N) c_T / |c_T|,   Q = J^T f
//
// s: the scale of the pair, times the contact's share of a flat side (collision/penalty/contact_share.hpp), which turns with the bodies.
//
// The contacts of (q, v) are detected here, at every call and without memory, so that Q is a function of (q, v) alone. They are
// BodyRows like those of hard contact (t1, t2, n), and row_derivatives gives their motion. Their normal row is set up so that its
// derivative is df_N itself, d(J v)_N and dd weighed by the law, and a 3 x 2 law turns (dc_T, df_N) into df.
#pragma once

#include <vector>

#include "coulomb/collision/detect.hpp"
#include "coulomb/collision/penalty/contact_points.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/row_derivatives.hpp"

namespace coulomb {

struct BodyForces;

/// The law of one contact, linearised: df_T = T dc_T + N df_N; and by its share, df = share_slope d(share).
struct PenaltyLaw {
  double T[2][2];
  double N[2];
  double share_slope[3];
};

/// One evaluation at (q, v). Storage only grows.
struct PenaltyForces {
  explicit PenaltyForces(const Model& model);

  // Written by penalty_forces.
  CollisionWorkspace collision;      ///< .contacts, all with distance < 0
  std::vector<ContactShare> shares;  ///< one per contact: what its force is multiplied by
  ConstraintRows rows;               ///< three per contact in body_rows, no bias and no compliance
  std::vector<double> force;         ///< 3 per contact: (t1, t2, n), newtons, on body A
  /// Per contact: separating (pulled apart faster than the spring pushes: no force), sticking (the viscous branch of friction), sliding.
  std::vector<Mode> modes;
  std::vector<unsigned char> inactive;  ///< separating
  std::vector<PenaltyLaw> laws;
  std::vector<double> twist;  ///< nv x 8: link twists at v

  // Written by penalty_row_derivatives.
  RowDerivatives derivatives;

  // Of penalty_forces alone.
  std::vector<double> velocity;  ///< 3 per contact: c = J v
  std::vector<double> wrench;    ///< nv x 8
};

/// Q (nv) += J^T f. dynamics: after kinematics at q and velocities at v. left_out: by tree, those that touch nothing; or null.
void penalty_forces(const Model& model, const DynamicsWorkspace& dynamics, const double* v,
                    const unsigned char* left_out, PenaltyForces& out, double* Q);

/// The same forces as wrenches at material points, for prepare_derivatives: ID' then holds their part of dQ/dq at forces and points
/// fixed in the world, penalty_derivatives the rest.
void add_penalty_body_forces(const Model& model, const DynamicsWorkspace& dynamics, const PenaltyForces& forces,
                             BodyForces& out);

/// How points, normals and depths move. After penalty_forces at the same (q, v) and prepare_derivatives.
void penalty_row_derivatives(const Model& model, const DynamicsWorkspace& dynamics, PenaltyForces& forces);
/// dQ_dq_T[k][d] += dQ_d/dq_k less what ID' holds (above), dQ_dv_T[k][d] += dQ_d/dv_k; rows of ld. After penalty_row_derivatives and
/// derivative_pairs.
void penalty_derivatives(const Model& model, const DynamicsWorkspace& dynamics, const PenaltyForces& forces,
                         double* dQ_dq_T, double* dQ_dv_T, int ld);

/// The evaluation as its rows see it, at the velocity v (nv).
RowState row_state(const Model& model, const DynamicsWorkspace& dynamics, const PenaltyForces& forces, const double* v);

}  // namespace coulomb
