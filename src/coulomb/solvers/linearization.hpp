// ProblemLinearization: the derivative of a solved constraint problem (THEORY section 3, (T4)).
//
//   dlambda = K s,   K = -C A^+ B,   A = B G~ C + Q,   s = change of c at fixed lambda = dG lambda + dg + dR lambda
//
// with the modes of the result. Scaled variables inside; B and C as exposed here contain the scaling, so that
//   dlambda = -expand(solve_reduced(reduced_rows(s))).
// The problem solved is the regularised one, sharpened by proximal steps (scaled_problem.hpp): A holds its compliance E and is regular
// everywhere. Every level contributes a round, with one factor for all (modes are those of level 0, they differ by O(epsilon)):
//   x_0 = A^-1 b,   x_k = A^-1 (b + B E C x_(k-1))
// which turns the compliance of what is determined into O(epsilon^2), and shares among redundant rows what is not. Levels with a smaller
// compliance (SolverResult::sharper_levels) follow, each with a factor of its own.
//
// Where redundant contacts slide that is not enough: the next velocity depends on how they share, which level 0 decides to first order in
// its own velocity. Then (two_levels) level 0 has a factor and right-hand sides s_0 of its own, taken at its impulses and velocities:
//   dlambda_0 = -C_0 A_0^-1 B_0 s_0,   dlambda = -C A^-1 B (s - E dlambda_0)
//
// Which derivative at a tie: the modes are those of SolverResult. With a margin below 1e-8 of the problem's scale a block between
// separating and touching counts as separating, one between sticking and sliding as sticking, a box between its inside and a bound
// as inside, a pyramid between a side and a vertex as on the side: one-sided derivatives, always the same side. SolverResult::margin tells.
// A relaxed result is differentiated as what was solved: its compliance is part of G~.
//
// Storage grows only. Matrices are row major; ld is the leading dimension of the caller's array, any value >= ncols.
#pragma once

#include <vector>

#include "coulomb/solvers/constraint_solver.hpp"

namespace coulomb {

class ProblemLinearization {
 public:
  /// The problem must stay as it is while this is used.
  void build(const ConstraintProblem& problem, const SolverResult& result);

  int rows() const { return scaled_.n; }
  int reduced_size() const { return last().size; }
  bool symmetric() const { return last().symmetric; }  ///< nothing slides: B = C^T, A symmetric
  bool slides() const { return !last().symmetric; }
  /// Level 0 counts by itself: s of the functions below is taken to be the same for both levels, which it is not in a step.
  bool two_levels() const { return two_levels_; }
  /// The compliance chose among impulses that are not unique: tr(B E C A^-1), the number of directions that it alone determines, is not 0.
  /// A solve with as many columns as unknowns.
  bool deficient();

  /// n x ncols to n x ncols; may be the same array. s_0: s of level 0 (at lambda_0), where it has two levels; null: the same.
  void solve(const double* s, double* dlambda, int ncols, int ld, const double* s_0 = nullptr);
  void solve_transposed(const double* w, double* z);  ///< z = K^T w: w . dlambda = z . s
  void solve_transposed(const double* w, double* z, int ncols, int ld);
  void operator_matrix(double* K, int ld);      ///< n x n
  void dlambda_dmu(int block, double* out);     ///< n: per unit of the cone's friction coefficient
  void dlambda_dmu(double* out, int ld);        ///< n x ld, column b: of block b; one solve for all
  void dlambda_dbound(int block, double* out);  ///< n: per unit of the box's bound

  // the pieces, for callers that exploit the structure of s
  void reduced_rows(const double* Y, double* BY, int ncols, int ld) const;              ///< n x ld to m x ld: B Y
  void expand(const double* x, double* Cx, int ncols, int ld) const;                    ///< m x ld to n x ld: C x
  void reduced_rows_transposed(const double* x, double* Btx, int ncols, int ld) const;  ///< m x ld to n x ld
  void expand_transposed(const double* Y, double* CtY, int ncols, int ld) const;        ///< n x ld to m x ld
  void solve_reduced(double* rhs, int ncols, int ld);                                   ///< all rounds, in place
  void solve_reduced_transposed(double* rhs, int ncols, int ld);

  // Where there are two levels, the pieces of each (0, 1). Both have m reduced rows.
  void reduced_rows(int level, const double* Y, double* BY, int ncols, int ld) const;
  void expand_transposed(int level, const double* Y, double* CtY, int ncols, int ld) const;
  void solve_level(int level, double* rhs, int ncols, int ld) { systems_[level].solve(scaled_, rhs, ncols, ld); }
  void solve_level_transposed(int level, double* rhs, int ncols, int ld) {
    systems_[level].solve_transposed(scaled_, rhs, ncols, ld);
  }
  void pass_down(const double* x, double* out, int ncols, int ld);  ///< m x ld: C_0^T E B^T x
  void pass_up(const double* x, double* out, int ncols, int ld);    ///< m x ld: B E C_0 x
  /// x: C^T w to what all levels above 0 make of it (A^-T each); lowest: of level 1, which passes it down.
  void solve_upper_transposed(double* x, double* lowest, int ncols, int ld);
  /// x: b + pass_up of level 0, to the last level's; b: B s.
  void solve_upper(double* x, const double* b, int ncols, int ld);
  /// z (of s) and z_0 (of s_0) with w . dlambda = z . s + z_0 . s_0.
  void solve_transposed(const double* w, double* z, double* z_0);

 private:
  const ReducedSystem& last() const { return systems_[1]; }
  void weigh_rows(double* rows, int ncols, int ld) const;
  void build_level(int level, const SolverResult& result, bool regularised);
  void build_sharper_levels(const SolverResult& result);
  bool redundant();
  void choose_facet(int block, const SolverResult& result);
  void gather(const ReducedSystem& system, bool of_b, const double* Y, double* out, int ncols, int ld) const;
  void scatter(const ReducedSystem& system, bool of_b, const double* x, double* out, int ncols, int ld) const;
  /// out: the change of lambda where it is changed by p directly (n, scaled) and everything else follows.
  void response(const double* p, double* out);
  void response(const double* p_0, const double* p, double* out);
  void friction_direction(int block, const double* lambda, double* p) const;

  void choose_modes(const SolverResult& result);
  void round_weights();
  void repeat(double* x, int ncols, int ld, bool transposed);
  void add_round(const double* x, double* to, int ncols, int ld, bool transposed, double weight = 1) const;
  void sharpen(double* x, const double* b, int ncols, int ld);
  double* sharpen_transposed(double* x, int ncols, int ld);
  void add_rows(const double* rows, double* to, int ncols, int ld) const;

  ScaledProblem scaled_;
  ReducedSystem systems_[2];  ///< of level 0, where it counts by itself; of the last level
  bool two_levels_ = false;
  int levels_ = 0;
  int sharper_levels_ = 0;
  double compliance_ = 0;               ///< of the usual levels
  std::vector<ReducedSystem> sharper_;  ///< of the levels with smaller compliances; as many as there ever were
  std::vector<BlockMode> modes_;
  std::vector<double> lambda_, lambda_0_, c_, buffer_, direction_, direction_0_;
  std::vector<double> rows_;                        ///< n x columns
  std::vector<double> lowest_;                      ///< reduced rows x columns: of level 1
  std::vector<double> sum_;                         ///< reduced rows x columns: of the levels with smaller compliances
  std::vector<double> first_round_, second_round_;  ///< reduced rows x columns: b of the rounds, and of the next one
  struct RoundWeight {
    int row = 0, column = 0;
    double value = 0;
  };
  std::vector<RoundWeight> round_weights_;  ///< B E C, a few entries a row
};

}  // namespace coulomb
