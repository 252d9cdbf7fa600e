// ConstraintSolver: problem in, impulses, modes and residual out. Holds the workspace; storage only grows, so that solving
// problems of sizes seen before allocates nothing. One solver per thread; the result depends on the arguments alone.
//
// The automatic method solves the problem with a small compliance, which always has a solution, and sharpens it by proximal steps
// (scaled_problem.hpp, "levels"). Each level is solved by Newton's method from the memory of the same level or, where that fails, by an
// interior-point method from no start at all.
//
// Statuses: solved (residual <= tolerance), relaxed (constraints contradict one another, or are too badly scaled to tell: what is solved
// has the larger compliance result.relaxation, and result.contradictory or result.badly_scaled names the blocks), max_iterations (a single method ran out of its budget), failed (best
// iterate). Bad numbers in the problem, and impulses or velocities that a double cannot hold, give `failed` with zero impulses, never NaN.
#pragma once

#include <memory>

#include "coulomb/solvers/constraint_problem.hpp"

namespace coulomb {

class ConstraintSolver {
 public:
  ConstraintSolver();
  ~ConstraintSolver();
  ConstraintSolver(ConstraintSolver&& other) noexcept;
  ConstraintSolver& operator=(ConstraintSolver&& other) noexcept;

  /// warm: aligned with problem.blocks, or null for a cold start.
  void solve(const ConstraintProblem& problem, const SolverSettings& settings, const WarmStart* warm,
             SolverResult& result);

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace coulomb
