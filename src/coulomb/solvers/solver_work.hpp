// What a ConstraintSolver works with: the scaled problem, the methods, and the iterates of the levels.
#pragma once

#include <vector>

#include "coulomb/solvers/cancellation.hpp"
#include "coulomb/solvers/constraint_solver.hpp"
#include "coulomb/solvers/interior_point/interior_point.hpp"
#include "coulomb/solvers/newton/newton.hpp"
#include "coulomb/solvers/single_methods/block_dantzig.hpp"
#include "coulomb/solvers/single_methods/first_order.hpp"

namespace coulomb {

class ConstraintSolver::Work {
 public:
  void solve(const ConstraintProblem& problem, const SolverSettings& settings, const WarmStart* warm,
             SolverResult& result);

 private:
  static constexpr double good = 1e-6;             // an exact residual at which further proximal steps stop
  static constexpr double tolerable = 1e-4;        // one of heaps, before the last resorts; more is never called solved
  static constexpr double acceptable = 1e-5;       // one of the last resorts, and of the levels of larger compliances
  static constexpr double exact = 1e-13;           // a residual that no further step improves
  static constexpr double rounding = 1e-16;        // of scaled velocities: less is not worth another step
  static constexpr double sum_rounding = 2.5e-17;  // of sums, by product: 20 to 60 are known to 5e-16 to 1.3e-15
  static constexpr double persistent = 0.98;       // of what a row lacks: what proximal steps do not reduce
  static constexpr int most_searches = 6;          // the interior-point method, and so many paths but one

  void solve_from(const WarmStart* warm, const ConstraintProblem& problem, const SolverSettings& settings,
                  SolverResult& result);
  void solve_single_method(const SolverSettings& settings, const WarmStart* warm, SolverResult& result);
  void solve_levels(const ConstraintProblem& problem, const SolverSettings& settings, const WarmStart* warm,
                    SolverResult& result);
  void find_centre(const SolverSettings& settings, const WarmStart* warm);
  void leave_centre();
  bool solve_levels_with(const ConstraintProblem& problem, double compliance, int levels, const WarmStart* warm,
                         SolverResult& result);
  bool solve_level(const WarmStart* warm, Iterate& iterate, SolverResult& result);
  void newton_from_memory(const WarmStart* warm, Iterate& iterate, SolverResult& result);
  bool newton_near(Iterate& iterate, double rho, int max_iterations);
  bool interior(Iterate& iterate, double compliance);
  bool search(int number, Iterate& iterate, double compliance);
  bool sharpen(double compliance, const std::vector<double>* memory, const WarmStart* warm, bool usual);
  void sharpen_further(const ConstraintProblem& problem, SolverResult& result);
  enum class Verdict { unknown, solved, contradictory, jammed, badly_scaled };
  void find_contradictions(const ConstraintProblem& problem, const SolverSettings& settings, SolverResult& result);
  Verdict judge(const ConstraintProblem& problem, SolverResult& result);
  Verdict judge_further(const ConstraintProblem& problem, SolverResult& result);
  Verdict judge_growth(const ConstraintProblem& problem, SolverResult& result);
  Verdict look_from_above(const ConstraintProblem& problem, const WarmStart* warm, SolverResult& result);
  bool solve_from_above(const ConstraintProblem& problem, const SolverSettings& settings, SolverResult& result);
  bool is_persistent(const Block& block) const;
  bool any_persistent() const;
  bool works_against(const ConstraintProblem& problem, const std::vector<double>& d) const;
  void collect_largest(const std::vector<double>& impulses, std::vector<int>& blocks) const;
  void collect_unsolved(std::vector<int>& blocks) const;
  bool relax(SolverResult& result);
  void stay_relaxed(SolverResult& result);
  void find_exact_velocity();
  double exact_residual();
  bool is_heap() const { return scaled_.factored && scaled_.Y.tree_size().size() > 2; }
  double share_of_bounds(const ConstraintProblem& problem) const;
  double reachable(const Iterate& iterate, double tolerance) const;
  void load(const std::vector<double>& lambda, const WarmStart* warm, Iterate& iterate);
  void load_level_0(const WarmStart* warm, Iterate& iterate);
  void finish(const Iterate& first, const Iterate& last, SolverResult& result);

  ScaledProblem scaled_;
  NewtonSolver newton_;
  InteriorPoint interior_;
  AdmmSolver admm_;
  BlockDantzig dantzig_;
  BlockLemke lemke_;
  Cancellation cancellation_;
  Iterate first_, second_;              ///< levels 0 and 1
  Iterate last_, previous_, trial_;     ///< the last level; the one before it, with the velocities without compliance
  Iterate best_;                        ///< of several searches
  std::vector<double> exact_;           ///< velocities of last_ without compliance
  std::vector<double> centre_;          ///< of level 0, scaled; zero where it is not centred
  bool centred_ = false;                ///< a large heap that begins around the impulses of the step before
  double left_ = 0;                     ///< exact residual that the levels have left
  double floor_ = 0;                    ///< residuals below it are rounding, as far as that was seen
  int searches_ = 0;                    ///< of the interior-point method and its paths
  bool softened_ = false;               ///< a heap, with a larger compliance than asked
  bool looked_from_above_ = false;      ///< look_from_above() was here
  Verdict verdict_ = Verdict::unknown;  ///< of impulses that grow without end
  SolverResult unfinished_;             ///< of a single method, from memory
  bool from_memory_ = false;            ///< what is found depends on the step before
  bool relaxed_ = false;                ///< the iterates are those of the relaxed problem
  double tolerance_ = 1e-10;
  int iterations_ = 0;
};

}  // namespace coulomb
