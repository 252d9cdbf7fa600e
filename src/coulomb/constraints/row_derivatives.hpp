// How the rows' velocities and forces change with q (docs/theory.md (G10), (G11)): contact points and frames move
// by contact_motion, everything else by kinematics. Forward: sparse columns s and dense additions to r. Reverse: one sweep.
#pragma once

#include <vector>

#include "coulomb/collision/smoothed_motion.hpp"
#include "coulomb/constraints/islands.hpp"

namespace coulomb {

/// Six-vectors of one block of BodyRows. For dof k of body A's path: s[row][k] = J_k . G_a[row] + psi_dot_k . e_a[row], likewise B.
struct BodyRowDerivative {
  double G_a[6][6], G_b[6][6];  ///< on the columns J_k
  double e_a[6][6], e_b[6][6];  ///< on the column rates psi_dot_k at the velocity of the row
};

/// Change of the wrenches on a pair of bodies per unit twist of either (about the trees' reference points), contacts summed.
struct PairWrenchDerivative {
  int body_a = 0, body_b = 0;
  double aa[6][6], ab[6][6], ba[6][6], bb[6][6];  ///< [on][by], row major; already with the sign of each body
};

struct RowDerivatives {
  std::vector<BodyRowDerivative> blocks;       ///< one per BodyRows
  std::vector<PairWrenchDerivative> wrenches;  ///< one per pair of bodies in contact
  std::vector<ContactMotion> motions;          ///< one per contact
  std::vector<int> pair_of_body, next_pair;    ///< to find a pair: chains of `wrenches` by the later body; -1 ends one
};

/// The velocities that rows see: link twists and column rates at v+ (all rows) and at v (bouncing normal rows).
struct RowVelocities {
  const double *twist_plus, *rate_plus;  ///< nv x 8
  const double *twist, *rate;            ///< nv x 8
};

/// lambda: impulses of all rows. separating[block] != 0: the block carries no impulse and its row derivative is not needed.
/// smoothed: how contacts move, instead of contact_motion.
void row_derivatives(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows,
                     const std::vector<Contact>& contacts, const RowVelocities& velocities, const double* lambda,
                     const std::vector<unsigned char>& inactive, RowDerivatives& out,
                     const SmoothedMotion* smoothed = nullptr);

/// s (zeroed by the caller for active rows): d(J v+ + beta)/dq at fixed v+.
void fill_row_columns(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows,
                      const RowVelocities& velocities, const double* v_plus, const RowDerivatives& derivatives,
                      const std::vector<unsigned char>& inactive, const RowMatrix& s);

/// r_T[k][d] += d(J^T lambda)_d / dq_k of the moving contact points and frames, and of turning joint rows. After derivative_pairs.
void add_wrench_columns(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows,
                        const RowDerivatives& derivatives, const double* lambda, const DofMatrix& r_T);

/// Reverse of both: out_q[k] += sum_rows z s[row][k] + sum_d y_d (added wrench columns)[k][d]. scratch: 4 x nv x 8.
void row_derivatives_vjp(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows,
                         const RowVelocities& velocities, const double* v_plus, const RowDerivatives& derivatives,
                         const std::vector<unsigned char>& inactive, const double* lambda, const double* z,
                         const double* y, double* scratch, double* out_q);

}  // namespace coulomb
