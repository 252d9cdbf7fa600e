// Dantzig's pivoting (dantzig.hpp) as a method of ConstraintSolver: limits, boxes, equalities and pyramids that are boxed LCPs (four
// sides, circumscribed), row by row.
#pragma once

#include "coulomb/solvers/dantzig.hpp"
#include "coulomb/solvers/newton.hpp"

namespace coulomb {

class BlockDantzig {
 public:
  /// Whether every block is one that it can take.
  static bool suits(const ScaledProblem& problem);
  /// The classes of `iterate` first (last step's), then pivoting, then a search over classes of at most `budget` systems; last, pivoting
  /// on a slightly compliant problem, which has no degenerate pivots: its x, 1e-7 away, is a start for Newton's method. True: solved.
  bool solve(const ScaledProblem& problem, double tolerance, int budget, Iterate& iterate, int& iterations);

 private:
  BoxedLcp lcp_;
  LcpScale scale_;
  Dantzig dantzig_;
  std::vector<double> x_;
  std::vector<LcpClass> classes_;
};

}  // namespace coulomb
