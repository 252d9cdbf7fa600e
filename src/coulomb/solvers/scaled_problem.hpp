// ScaledProblem: the constraint problem in scaled variables, in which a tolerance is meaningful.
//
// Each block has one scale s, so that a cone remains the same cone: s = tr(G~_ii) / size. Blocks below 1e-14 of the
// largest s (rows of zeros) use the largest. With D = 1 / sqrt(s): lambda^ = sqrt(s) lambda / ref, c^ = c / (sqrt(s)
// ref), G^ = D G~ D and ref = max ||g_i|| / sqrt(s_i). A speculative block contributes to ref only if its g_N < 0;
// other blocks contribute at least least_velocity / sqrt(s_i). The residual is the maximum over the blocks of
//
//   cone      ||lambda - P_K(lambda - c - [0, 0, mu ||c_T||])||      P_K: projection on the friction cone
//   pyramid   ||lambda - (P(lambda_T - c_T), max(0, lambda_N - c_N))||
//             P: projection on the polygon of size mu max(0, lambda_N - c_N)
//   limit     |lambda - max(0, lambda - c)|
//   box       |lambda - clamp(lambda - c, -bound, bound)|
//   equality  ||c||
//
// in scaled variables, so it is relative to ref. It is zero exactly at the solutions of the nonlinear complementarity
// problem: docs/theory.md (C8).
//
// The solvers solve this problem with a small compliance E on its diagonal, E_i = epsilon W_i / s; proximal steps
// remove its effect:
//   level 0   c = (G + E) x_0 + g - E x_c      x_c: zero, or in large heaps the impulses of the step before
//   level k   c = (G + E) x_k + g - E x_(k-1)
// set_level() selects the level to solve.
//
// G is dense, or Y Y^T with Y sparse by trees (ConstraintProblem); `factored` is true for the latter.
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "coulomb/solvers/constraint_problem.hpp"
#include "coulomb/solvers/sparse_rows.hpp"

namespace coulomb {

/// Mode of a block at an iterate; for a sliding cone also the direction n of its friction impulse (of all its tangents) and
/// k = 1 / (1 + alpha), for a sliding pyramid its facet and the point n of it (friction_pyramid.hpp; lambda_T = mu lambda_N n +
/// along the side + what sticks).
struct BlockMode {
  Mode mode = Mode::separating;
  int facet = -1;
  std::array<double, max_tangents> n = {1, 0, 0, 0, 0};
  double k = 1;
  int loose = 0;  ///< sticking contact: directions in which it slips all the same: 1: along n, 2: both
};

class ScaledProblem {
 public:
  void assign(const ConstraintProblem& problem);
  /// Only the scaling, as an earlier assign() found it: no matrix, no g, no bounds.
  void assign_scaling(const ConstraintProblem& problem, const double* inverse_root, double ref);
  /// The compliance E of relative size epsilon; 0: the problem as it was given.
  void set_compliance(double epsilon);
  /// Level 0 around zero (previous = null) or around a centre; or the next one after `previous` (n).
  void set_level(const double* previous);
  void velocity(const double* lambda, double* c) const;  ///< c of the level at hand, all scaled
  /// c of the problem without E.
  void exact_velocity(const double* lambda, double* c) const;
  void add_product(const double* lambda, double* c) const;  ///< c += (G + E) lambda
  double residual(const double* lambda, const double* c) const;
  double block_residual(int block, const double* lambda, const double* c) const;
  void project(double* lambda) const;  ///< on the set of admissible impulses, block by block
  void to_scaled(const double* lambda, double* scaled) const;
  void from_scaled(const double* scaled, const double* scaled_c, double* lambda, double* c) const;
  BlockMode mode(int block, const double* lambda, const double* c) const;
  /// Distance of z = lambda - c to the border of the mode; sets `mode` to the label that SolverResult reports (ties below 1e-8
  /// go to separating before sticking before sliding, and inside before a bound).
  double margin(int block, const double* lambda, const double* c, Mode& mode, int* facet = nullptr) const;
  void set_facet(int block, int facet, BlockMode& mode) const;  ///< a sliding pyramid's

  int n = 0, ld = 0, num_blocks = 0;
  const Block* blocks = nullptr;  ///< of the problem assigned last
  bool has_pyramids = false;
  double ref = 1;
  /// Weight of velocities beside impulses where modes and residuals are read off z = lambda - rho c; any > 0 has the same solutions.
  double rho = 1;
  bool factored = false;             ///< G = Y Y^T + diag(rigid); else dense
  std::vector<double> G;             ///< dense: scaled, E included; ld x n
  SparseRows Y;                      ///< factored: scaled
  std::vector<double> rigid;         ///< n: scaled R
  std::vector<double> E;             ///< n: see above
  std::vector<double> g;             ///< n: of the level at hand
  std::vector<double> inverse_root;  ///< n: 1 / sqrt(s) of the row's block
  std::vector<double> bound;         ///< per block, scaled (boxes)

 private:
  void find_scaling(const ConstraintProblem& problem);
  void scale_velocities(const ConstraintProblem& problem);
  void scale_matrices(const ConstraintProblem& problem);
  BlockMode cone_mode(const Block& block, const double* lambda, const double* v) const;
  std::vector<double> diagonal_;   ///< dense: of G without E
  std::vector<double> weight_;     ///< n: W / s
  std::vector<double> given_g_;    ///< n: of level 0
  mutable std::vector<double> w_;  ///< Y^T lambda
};

/// Projection of a block's impulse on its cone ||lambda_T|| <= mu lambda_N.
void project_cone(const Block& block, double* impulse);

/// Length of the tangential part of a contact's rows (t1, t2, n, further tangents).
template <class Size>
double tangential_norm(Size size, const double* rows) {
  double sum = rows[0] * rows[0] + rows[1] * rows[1];
  for (int i = 3; i < size; ++i)
    sum += rows[i] * rows[i];
  return std::sqrt(sum);
}
inline double tangential_norm(const Block& block, const double* rows) { return tangential_norm(block.size, rows); }

/// out = the tangents of a contact's rows, divided by `length`.
inline void tangential_direction(const Block& block, const double* rows, double length,
                                 std::array<double, max_tangents>& out) {
  out[0] = rows[0] / length;
  out[1] = rows[1] / length;
  for (int i = 3; i < block.size; ++i)
    out[i - 1] = rows[i] / length;
}

}  // namespace coulomb
