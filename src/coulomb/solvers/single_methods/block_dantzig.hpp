// Dantzig's pivoting (dantzig.hpp) as a method of ConstraintSolver: limits, boxes, equalities and pyramids that are boxed LCPs (four
// sides, circumscribed), row by row.
#pragma once

#include "coulomb/solvers/lcp/dantzig.hpp"
#include "coulomb/solvers/single_methods/block_lemke.hpp"

namespace coulomb {

class BlockDantzig {
 public:
  /// Whether every block is one that it can take.
  static bool suits(const ScaledProblem& problem);
  /// The classes of `iterate` first (last step's), then pivoting; where that loops, Lemke's walk. True: solved.
  bool solve(const ScaledProblem& problem, double tolerance, Iterate& iterate, int& iterations);

 private:
  BoxedLcp lcp_;
  LcpScale scale_;
  Dantzig dantzig_;
  BlockLemke lemke_;
  std::vector<double> x_;
  std::vector<LcpClass> classes_;
};

}  // namespace coulomb
