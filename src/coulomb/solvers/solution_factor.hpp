// SolutionFactor: the matrix of a solution's modes, factorised without damping at the solution itself. Where the solver had to look for
// redundancy it has this already, and ProblemLinearization need not do it again.
#pragma once

#include <vector>

#include "coulomb/solvers/reduced_system.hpp"

namespace coulomb {

struct SolutionFactor {
  bool valid = false;
  ReducedSystem system;  ///< with columns of length one
  std::vector<BlockMode> modes;
  std::vector<double> inverse_root;  ///< the scaling of the problem
  double ref = 1;
};

}  // namespace coulomb
