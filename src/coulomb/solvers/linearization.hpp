// ProblemLinearization: the derivative of a solved constraint problem (THEORY section 3, (T4)).
//
//   dlambda = K s,   K = -C A^+ B,   A = B G~ C + Q,   s = change of c at fixed lambda = dG lambda + dg + dR lambda
//
// with the modes of the result. Scaled variables inside; B and C as exposed here contain the scaling, so that
//   dlambda = -expand(solve_reduced(reduced_rows(s))).
// Full rank: Cholesky when nothing slides, else LU. Smallest pivot ratio below 1e-6: complete orthogonal decomposition with
// threshold 1e-9 and columns of C of length one, which gives the dlambda of least (scaled) norm.
//
// Which derivative at a tie: the modes are those of SolverResult. With a margin below 1e-8 of the problem's scale a block between
// separating and touching counts as separating, one between sticking and sliding as sticking, a box between its inside and a bound
// as inside, a pyramid between a side and a vertex as on the side: one-sided derivatives, always the same side. SolverResult::margin tells.
// A relaxed or infeasible result is differentiated as what was solved: its compliance is part of G~.
//
// Storage grows only. Matrices are row major; ld is the leading dimension of the caller's array, any value >= ncols.
#pragma once

#include <vector>

#include "coulomb/solvers/rank_revealing.hpp"
#include "coulomb/solvers/solution_factor.hpp"

namespace coulomb {

class ProblemLinearization {
 public:
  /// Copies what it needs; problem and result may change afterwards (the problem's block list must stay for dlambda_d...). A valid
  /// factor of this result is used as it is: then it and the problem must stay.
  void build(const ConstraintProblem& problem, const SolverResult& result, const SolutionFactor* factor = nullptr);

  int rows() const { return scaled_.n; }
  int reduced_size() const { return system_->size; }
  bool symmetric() const { return system_->symmetric && !deficient_; }  ///< nothing slides: B = C^T, A symmetric
  bool slides() const { return !system_->symmetric; }
  bool deficient() const { return deficient_; }  ///< impulses are not unique here: least-norm answer
  int rank() const { return deficient_ ? inverse_.rank : system_->size; }

  void solve(const double* s, double* dlambda, int ncols, int ld);  ///< n x ncols to n x ncols; may be the same array
  void solve_transposed(const double* w, double* z);                ///< z = K^T w: w . dlambda = z . s
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
  void solve_reduced(double* rhs, int ncols, int ld);                                   ///< A^+ rhs, in place
  void solve_reduced_transposed(double* rhs, int ncols, int ld);

 private:
  void choose_facet(int block, const SolverResult& result);
  void gather(bool of_b, const double* Y, double* out, int ncols, int ld) const;
  void scatter(bool of_b, const double* x, double* out, int ncols, int ld) const;
  void response(const double* p, double* out);  ///< out = p + K G~ p, p scaled

  void use(const ConstraintProblem& problem, const SolverResult& result, const SolutionFactor& factor);
  void factorise(const SolverResult& result);
  void load_matrix();  ///< G, where a factor came without

  ScaledProblem scaled_;
  ReducedSystem own_;
  const ReducedSystem* system_ = &own_;
  const ConstraintProblem* problem_ = nullptr;  ///< whose matrix is not loaded yet
  PseudoInverse inverse_;
  bool deficient_ = false;
  std::vector<BlockMode> modes_;
  std::vector<double> lambda_, c_, buffer_, direction_;
};

}  // namespace coulomb
