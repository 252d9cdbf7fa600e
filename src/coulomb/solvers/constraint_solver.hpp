// ConstraintSolver: problem in, impulses, modes and residual out. Holds the workspace; storage only grows, so that solving
// problems of sizes seen before allocates nothing. One solver per thread; the result depends on the arguments alone.
//
// Statuses: solved (residual <= tolerance, or up to ten times that where redundant contacts contradict each other by rounding and no
// step gets lower), relaxed (solved after adding the compliance result.relaxation to the diagonal),
// infeasible (impulses would have to be infinite; the relaxed solution at result.relaxation is returned), max_iterations (a single
// method ran out of its budget), failed (best iterate). Bad numbers in the problem, and impulses or velocities that a double cannot
// hold, give `failed` with zero impulses, never NaN.
#pragma once

#include "coulomb/solvers/block_dantzig.hpp"
#include "coulomb/solvers/block_lemke.hpp"
#include "coulomb/solvers/canonical.hpp"
#include "coulomb/solvers/first_order.hpp"

namespace coulomb {

class ConstraintSolver {
 public:
  /// warm: aligned with problem.blocks, or null for a cold start. factor: where not null, gets the factorisation at the solution if
  /// there is one (factor->valid).
  void solve(const ConstraintProblem& problem, const SolverSettings& settings, const WarmStart* warm,
             SolverResult& result, SolutionFactor* factor = nullptr);

  /// The problem with a compliance on every row (relative to the size of G), from a solution without; false: not found.
  bool solve_compliant(const ConstraintProblem& problem, double compliance, SolverResult& result);

 private:
  void start(const SolverSettings& settings, const WarmStart* warm);
  bool run_method(const SolverSettings& settings, const WarmStart* warm, SolverResult& result);
  bool climb(const SolverSettings& settings, const WarmStart* warm, SolverResult& result);
  bool climb_on(const SolverSettings& settings, SolverResult& result);
  bool accept_stalled();
  bool sweep_and_solve(int sweeps, int max_iterations);
  bool newton(Iterate& iterate, double kappa, double delta_max, int max_iterations);
  BlockLemke::End pivot();
  bool admm(const Iterate& from, int budget, int first_milestone);
  bool homotopy();
  bool is_infeasible();
  void relax(SolverResult& result, bool infeasible);
  bool surely_redundant() const;
  double exact_residual() const;
  void polish_best();
  void refine(bool choose, SolverResult& result, SolutionFactor* factor);
  void choose_canonical(SolverResult& result);
  bool approach(double compliance);
  void finish(SolverResult& result);
  void keep_if_better(const Iterate& candidate);

  ScaledProblem scaled_;
  NewtonSolver newton_;
  AdmmSolver admm_;
  BlockDantzig dantzig_;
  BlockLemke lemke_;
  CanonicalChoice canonical_;
  Iterate start_, best_, trial_;
  double tolerance_ = 1e-10;
  int iterations_ = 0;
};

}  // namespace coulomb
