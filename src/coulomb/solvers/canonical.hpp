// CanonicalChoice: among the impulses that solve the same constraint problem, the limit of a vanishing compliance.
//
// With the same physical compliance eps W on every row (ScaledProblem::set_compliance) the solution is unique; its limit x, eps -> 0, satisfies, besides A x + B g = 0,
//   L^T B W lambda = 0,   L: left null space of A = B G C + Q (T4)
// (first-order term of the expansion in eps). Where nothing slides A is symmetric and the velocity does not depend on the choice, so
// the compliant solution polished by Newton steps will do. Where redundant contacts slide the next velocity depends on it: the
// condition is then solved to rounding, or the compliance's own error (1e-9 and noise) would drown finite differences of the step.
#pragma once

#include <vector>

#include "coulomb/solvers/newton.hpp"
#include "coulomb/solvers/rank_revealing.hpp"

namespace coulomb {

class CanonicalChoice {
 public:
  /// Something slides and A is singular: more than one solution.
  bool deficient(const ScaledProblem& problem, const Iterate& iterate);
  /// Moves a solution within its set onto the condition, by Broyden steps along the null space of A. True: found (or nothing to do:
  /// nothing slides, full rank). False leaves the iterate as it was.
  bool centre(const ScaledProblem& problem, double tolerance, Iterate& iterate);

 private:
  bool find_modes(const ScaledProblem& problem, const Iterate& at);    ///< true: something slides
  bool linearise(const ScaledProblem& problem, const Iterate& at);   ///< modes as at the start, else false
  void null_basis(bool left, std::vector<double>& basis);
  double condition();                                                ///< L0^T (I - A A^+) B W lambda, its norm
  void slopes(const ScaledProblem& problem);                                                     ///< of the condition along the null space, to start with
  bool move(const ScaledProblem& problem, const Iterate& from);      ///< to next_

  ReducedSystem system_;
  PseudoInverse inverse_, slopes_inverse_;
  Iterate current_, next_;
  std::vector<BlockMode> modes_;
  std::vector<Mode> labels_;
  std::vector<double> lambda_rows_, right_, left_, F_, F_before_, M_, y_, x_, work_;
  int nullity_ = 0;
};

}  // namespace coulomb
