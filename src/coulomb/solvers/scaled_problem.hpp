// ScaledProblem: the constraint problem in the variables in which tolerances mean something.
//
// Per block s = tr(G~_ii) / size (the largest of all where it is below 1e-14 of it: rows of zeros), one scalar a block so that a cone stays the same cone;
// lambda^ = sqrt(s) lambda / ref, c^ = c / (sqrt(s) ref), G^ = D G~ D with D = 1 / sqrt(s), and ref = max ||g_i|| / sqrt(s_i), to which
// a speculative block contributes only if its g_N < 0. Residual, the maximum over the blocks of
//   cone      ||lambda - P_K(lambda - c - [0, 0, mu ||c_T||])||      P_K: projection on the friction cone
//   pyramid   ||lambda - (P(lambda_T - c_T), max(0, lambda_N - c_N))||   P: projection on the polygon of size mu max(0, lambda_N - c_N)
//   limit     |lambda - max(0, lambda - c)|
//   box       |lambda - clamp(lambda - c, -bound, bound)|
//   equality  ||c||                                                  all in scaled variables: relative to ref
// Zero exactly at the solutions of the nonlinear complementarity problem (Simple eq. 10; THEORY 2).
#pragma once

#include <vector>

#include "coulomb/solvers/constraint_problem.hpp"

namespace coulomb {

/// Mode of a block at an iterate; for a sliding cone also the direction n of its friction impulse and k = 1 / (1 + alpha), for a
/// sliding pyramid the feature of the polygon and its point n (a side's foot point or a vertex; lambda_T = mu lambda_N n + along the side).
struct BlockMode {
  Mode mode = Mode::separating;
  int facet = -1;
  double nx = 1, ny = 0, k = 1;
};

class ScaledProblem {
 public:
  void assign(const ConstraintProblem& problem);
  /// Only the scaling, as an earlier assign() found it: no matrix, no g, no bounds.
  void assign_scaling(const ConstraintProblem& problem, const double* inverse_root, double ref);
  void set_shift(double shift);  ///< adds to the whole scaled diagonal
  /// Adds the same physical compliance to every row: unlike a scaled shift it does not vary with the state, and needs no derivative.
  void set_compliance(double compliance);
  void velocity(const double* lambda, double* c) const;  ///< c = G lambda + g, all scaled
  double residual(const double* lambda, const double* c) const;
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
  double typical = 1;        ///< size of G: the power of two next to the geometric mean of the extreme block traces
  std::vector<double> G, g;  ///< scaled; ld x n, n
  std::vector<double> inverse_root;  ///< n: 1 / sqrt(s) of the row's block
  std::vector<double> bound;         ///< per block, scaled (boxes)

 private:
  double block_residual(int block, const double* lambda, const double* c) const;
  std::vector<double> diagonal_;
};

/// Projection of (x, y, z) on the cone ||(x, y)|| <= mu z.
void project_cone(double mu, double* point);

}  // namespace coulomb
