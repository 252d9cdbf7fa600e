// The derivatives of row velocities and forces with respect to q (docs/theory.md (G10), (G11)). contact_motion moves
// contact points and frames, kinematics everything else. Forward mode: sparse columns s and dense additions to r.
// Reverse mode: one sweep.
#pragma once

#include <vector>

#include "coulomb/collision/contact.hpp"
#include "coulomb/constraints/row_velocities.hpp"

namespace coulomb {

class SmoothedMotion;
struct ConstraintRows;
struct DofMatrix;
struct DynamicsWorkspace;
struct Model;
struct RowMatrix;

/// Row major, or six rows of six-vectors.
using Matrix6 = double[6][6];

/// Six-vectors of one block of BodyRows. For dof k of body A's path: s[row][k] = J_k . G_a[row] + psi_dot_k . e_a[row], likewise B.
struct BodyRowDerivative {
  Matrix6 G_a;  ///< on the columns J_k
  Matrix6 G_b;
  Matrix6 e_a;  ///< on the column rates psi_dot_k at the velocity of the row
  Matrix6 e_b;
};

/// Change of the wrenches on a pair of bodies per unit twist of either (about the trees' reference points), contacts summed.
struct PairWrenchDerivative {
  int body_a = 0;
  int body_b = 0;
  Matrix6 aa;  ///< on A by A; all of them already with the sign of each body
  Matrix6 ab;  ///< on A by B
  Matrix6 ba;
  Matrix6 bb;
};

/// Written by row_derivatives; storage only grows.
struct RowDerivatives {
  std::vector<BodyRowDerivative> blocks;       ///< one per BodyRows
  std::vector<PairWrenchDerivative> wrenches;  ///< one per pair of bodies in contact
  std::vector<ContactMotion> motions;          ///< one per contact

  // To find a pair: chains of `wrenches` by the later body; -1 ends one.
  std::vector<int> pair_of_body;
  std::vector<int> next_pair;
};

/// One evaluated state as its rows see it: made by who owns the record, which must stay as it is.
struct RowState {
  const Model& model;
  const DynamicsWorkspace& dynamics;  ///< Jacobian columns J_k at q
  const ConstraintRows& rows;         ///< contacts, equalities, limits, dry friction
  RowVelocities velocities;
  const double* v_plus;                        ///< nv; null where rows on joints are not asked for
  const double* lambda;                        ///< num_rows: impulses
  const std::vector<unsigned char>& inactive;  ///< num_blocks: not 0: no impulse, and its row derivative is not needed
  const double* fixed =
      nullptr;  ///< num_rows: a velocity along the rows of contacts that does not turn with them; null: none
  const double* v = nullptr;  ///< nv: before the step, needed by rows on joints that bounce
};

/// smoothed: how contacts move, instead of contact_motion.
void row_derivatives(const RowState& state, const std::vector<Contact>& contacts, RowDerivatives& out,
                     const SmoothedMotion* smoothed = nullptr);

/// s (zeroed by the caller for active rows): d(J v+ + beta)/dq at fixed v+.
void fill_row_columns(const RowState& state, const RowDerivatives& derivatives, const RowMatrix& s);

/// r_T[k][d] += d(J^T lambda)_d / dq_k of the moving contact points and frames, and of turning joint rows. After derivative_pairs.
void add_wrench_columns(const RowState& state, const RowDerivatives& derivatives, const DofMatrix& r_T);

/// Multipliers of one reverse product (docs/theory.md (L8)).
struct StepMultipliers {
  const double* y;  ///< nv: of the momentum balance
  const double* z;  ///< num_rows: of the rows
};

/// What the subtree of one dof has collected on the way to the root, as six-vectors on the motion of that dof.
struct SubtreeSum {
  double column[6];  ///< on the Jacobian column J_k
  double rate[6];    ///< on the column rate at v+
  double bounce[6];  ///< on the column rate at v: bouncing contacts
};

/// Written and read by row_derivatives_vjp; sized by its first call.
struct RowSweep {
  std::vector<SubtreeSum> sums;  ///< nv
  std::vector<double> twist_y;   ///< nv x 8: link twists at the velocity y
};

/// out_q (nv) += z . d(J v+ + beta)/dq + y . d(J^T lambda)/dq, the latter at fixed lambda and from moving contact points, frames and
/// turning joint rows alone: what fill_row_columns and add_wrench_columns give as columns, in O(nv + rows).
void row_derivatives_vjp(const RowState& state, const RowDerivatives& derivatives, const StepMultipliers& multipliers,
                         RowSweep& sweep, double* out_q);

}  // namespace coulomb
