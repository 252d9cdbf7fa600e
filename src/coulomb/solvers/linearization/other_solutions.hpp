// OtherSolutions: has a solved problem another solution, at which bodies move otherwise? Coulomb's law is not monotone, so where
// friction wedges, the start of the search decides, and with it the memory of the step before: docs/theory.md (C17).
#pragma once

#include <cstdint>
#include <vector>

#include "coulomb/solvers/newton/newton.hpp"

namespace coulomb {

class OtherSolutions {
 public:
  /// Proves for some problems that all solutions move alike: docs/theory.md (C17). lambda, velocity: scaled, of the problem without compliance.
  static bool is_unique(const ScaledProblem& problem, const double* lambda, const double* velocity);
  /// problem: with its compliance, at level 0; lambda: its solution, scaled. groups: per block, equal for contacts that part together; -1 for
  /// what is no contact. Newton's method from no impulses, from all contacts sticking, from those that press sticking and no others, and
  /// from all sticking but one group. True is a proof; false is none.
  bool exist(const ScaledProblem& problem, const double* lambda, const std::vector<int>& groups);

 private:
  bool finds_another(const ScaledProblem& problem, bool from_modes);

  NewtonSolver newton_;
  Iterate solution_, other_;
  std::vector<std::uint8_t> known_;  ///< per block: starts with its mode in modes_
  std::vector<Mode> modes_;
};

}  // namespace coulomb
