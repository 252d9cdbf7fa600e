// First-order solvers: projected block Gauss-Seidel and ADMM. Fallbacks of the Newton method, and methods of their own.
#pragma once

#include <vector>

#include "coulomb/solvers/newton/newton.hpp"

namespace coulomb {

/// The exact solution of one cone block alone: impulse l with c = G l + b, G the rows of the block (row stride ld).
void solve_local_cone(const double* G, int ld, const double* b, const Block& block, double* l);

/// The same of a pyramid's first three rows.
void solve_local_pyramid(const double* G, int ld, const double* b, const Block& block, double* l);

/// `sweeps` symmetric sweeps of projected Gauss-Seidel, from iterate.lambda; evaluates the result. True: residual <= tolerance.
bool sweep_pgs(const ScaledProblem& problem, int sweeps, double tolerance, Iterate& iterate, int& iterations);

/// ADMM with adaptive penalty on the convex problem whose linear term s = mu ||z_T|| (De Saxce) is updated at every iteration.
class AdmmSolver {
 public:
  void start(const ScaledProblem& problem, const Iterate& from);
  /// More iterations; `iterate` (the projected impulses, evaluated) is set at the end. True: residual <= tolerance.
  bool run(const ScaledProblem& problem, int count, double tolerance, Iterate& iterate, int& iterations);

 private:
  bool factorise(const ScaledProblem& problem);

  double rho_ = 1;
  int since_update_ = 0;
  std::vector<double> factor_, work_, x_, y_, z_, y_old_;
};

}  // namespace coulomb
