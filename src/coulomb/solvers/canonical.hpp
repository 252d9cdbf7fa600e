// CanonicalChoice: among the impulses that solve the same constraint problem, the limit of a vanishing compliance.
//
// With the same physical compliance eps W on every row (ScaledProblem::set_compliance) the solution is unique; its limit x, eps -> 0,
// satisfies, besides A x + B g = 0,
//   L^T B W lambda = 0,   L: left null space of A = B G C + Q (T4)
// (first-order term of the expansion in eps). Where nothing slides, or what slides takes no part in the redundancy (G C N = 0, N the
// right null space), the velocity does not depend on the choice, and the compliant solution polished by Newton steps will do. Where
// redundant contacts slide the next velocity depends on it: the condition is then solved to rounding, or the compliance's own error
// (1e-9 and noise) would drown finite differences of the step.
//
// The null spaces come from one elimination with complete pivoting. It orders rows and columns so that A = [A11 A12; A21 A22] with A11
// regular and as large as the rank, and every later point only factorises A11:
//   N = [-A11^-1 A12; 1],  L^T = [-A21 A11^-1, 1].
#pragma once

#include <vector>

#include "coulomb/solvers/newton.hpp"
#include "coulomb/solvers/solution_factor.hpp"

namespace coulomb {

class CanonicalChoice {
 public:
  /// A has pivots below `least`: more than one solution. Where nothing slides, `at_rest` says whether to look.
  bool deficient(const ScaledProblem& problem, const Iterate& iterate, bool at_rest, double least);
  /// After deficient() said no: a Newton step with its factorisation. False: there is none, or the residual stays above `tolerance`.
  bool polish(const ScaledProblem& problem, double tolerance, Iterate& iterate);
  /// Hands that factorisation over, if it is one of the iterate's own modes and directions.
  void hand_over(const ScaledProblem& problem, const Iterate& iterate, SolutionFactor& factor);
  /// Moves a solution within its set onto the condition, by Broyden steps along the null space of A. True: found (or nothing to do:
  /// the velocity does not depend on the choice). False leaves the iterate as it was.
  bool centre(const ScaledProblem& problem, double tolerance, Iterate& iterate);
  bool moved =
      false;  ///< by the last call: a Newton step, which amplifies rounding along the null space, would undo it

 private:
  bool find_modes(const ScaledProblem& problem, const Iterate& at);             ///< true: something slides
  bool linearise(const ScaledProblem& problem, const Iterate& at, bool first);  ///< labels as at the start, else false
  bool factorise();                                                             ///< A11
  void null_space();                                                            ///< the upper part of N
  bool moves_velocity(const ScaledProblem& problem);
  double condition();                                            ///< F = L^T (B W lambda), its norm
  void slopes(const ScaledProblem& problem);                     ///< of the condition along N, to start with
  bool direction();                                              ///< y = -M^-1 F
  bool move(const ScaledProblem& problem, const Iterate& from);  ///< to next_
  bool descend(const ScaledProblem& problem);                    ///< steps until the condition is at rest
  void learn(double length2);                                    ///< Broyden's update of M
  double entry(int i, int j) const;                              ///< of A, in the order of the pivots
  double weighted(const ScaledProblem& problem, int i, const double* lambda) const;  ///< row i of B W lambda

  ReducedSystem system_;
  bool factorised_ = false;  ///< by deficient(), with pivots that ProblemLinearization accepts
  Iterate current_, next_;
  std::vector<BlockMode> modes_;
  std::vector<Mode> labels_;
  std::vector<int> facets_;
  std::vector<int> rows_, columns_, pivot_, slopes_pivot_;
  std::vector<double> factor_, N_, lambda_rows_, F_, F_before_, M_, M_factor_, y_, x_, work_;
  int rank_ = 0, nullity_ = 0, ld_ = 0, ld_null_ = 0;
};

}  // namespace coulomb
