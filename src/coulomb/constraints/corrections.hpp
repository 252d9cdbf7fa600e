// Bounds the share of position errors that the constraints of an island correct in a step (docs/theory.md (K1) to
// (K4)). Near a pose where rows are almost linearly dependent, only large motions satisfy them. An island with an
// equality therefore demands no more than
//
//   beta' = G x,   (G + eps S) x = beta,   eps the least for which   x . beta <= kappa (sum of beta_i^2 / W_i + N_0)
//
// over the rows of its equalities and violated limits. These rows have the compliance sqrt(eps / kappa) S; without it,
// rows that are almost linearly dependent could carry any impulse. The motion Mh^-1 J^T x reaches beta' and has the
// energy x . G x < x . beta.
//
// In an island without an equality every tree demands no more of its smooth contacts with fixed bodies, whose x has one
// sign (least_motion.hpp). These rows stay rigid, and each tree has its own eps.
#pragma once

#include <cstdint>
#include <vector>

#include "coulomb/constraints/least_motion.hpp"

namespace coulomb {

struct ConstraintRows;
struct Island;
struct Islands;

/// What one island asks for. Square matrices are n x ld.
struct IslandCorrection {
  bool bounded = false;   ///< beta' differs from beta
  bool at_kink = false;   ///< beta' has another derivative on the other side of this state
  int n = 0, ld = 0;      ///< rows of the bound; rounded up to 8
  double compliance = 0;  ///< of the rows, in S
  std::vector<CorrectedRow> rows;
  std::vector<double> beta, G, x;
  std::vector<int> out_of_reach;  ///< blocks of the island that keep at least half of their error

  std::size_t bytes() const;
};

/// The same of all islands, and what it is computed with; storage grows only.
struct Corrections {
  std::vector<IslandCorrection> of_island;  ///< by index into Islands::pool
  bool any = false;                         ///< is one of them bounded?
  bool at_kink = false;                     ///< or at the border of it?
  double compliance = 0;                    ///< the largest of those with rows out of reach
  std::vector<std::uint64_t> out_of_reach;  ///< keys of these rows' blocks

  // Of one island.
  std::vector<double> factor, work, Y;
  std::vector<CorrectedRow> one_sided;  ///< tree by tree
  std::vector<double> impulses;         ///< x, tree by tree

  // Of one tree of it: its one-sided rows with beta, their motion, and what is asked of them.
  std::vector<CorrectedRow> candidates;
  std::vector<double> errors;
  LeastMotion least;
  IslandCorrection of_tree;

  void clear();
  std::size_t bytes() const;
};

/// beta' and the compliance in the problems of the islands, which have beta. After assemble_problems.
void bound_corrections(const ConstraintRows& rows, Islands& islands, Corrections& corrections);

/// beta' and the compliance of an island that is bounded, as linear functions of the changes of beta and of G x: dbeta' = by_error dbeta +
/// by_rows (dG x), both n x ld, and d compliance = compliance_by_error . dbeta + compliance_by_rows . (dG x).
struct CorrectionSlopes {
  std::vector<double> by_error, by_rows;
  std::vector<double> compliance_by_error, compliance_by_rows;
  std::vector<double> factor, inverse, work;
};
void correction_slopes(const IslandCorrection& correction, CorrectionSlopes& out);

}  // namespace coulomb
