// AC-LM: the semismooth Newton method [Alart1991] in contact space, with a proximal term tied to the residual: docs/theory.md (C10).
#pragma once

#include <cstdint>
#include <vector>

#include "coulomb/solvers/newton/reduced_system.hpp"

namespace coulomb {

/// Scaled impulses, their velocities and residual. Storage grows only.
struct Iterate {
  std::vector<double> lambda, c;
  double residual = 0;
  void resize(int ld);
  void evaluate(const ScaledProblem& problem);  ///< c and residual of lambda
  void judge(const ScaledProblem& problem);     ///< residual of lambda and c
  void copy(const Iterate& from, int ld);
  void clear(const ScaledProblem& problem);  ///< lambda = 0, evaluated
};

struct NewtonOptions {
  double tolerance = 1e-10;
  double start_tolerance = 1;  ///< where it is below `tolerance`: what a start must have to be taken without a step
  double kappa = 1;            ///< delta = clamp(kappa * residual, least_damping, delta_max)
  double delta_max = 0.03;
  double least_damping = 1e-9;  ///< 0 where a compliance keeps the matrix regular
  int max_iterations = 12;
  bool undamped_first = false;          ///< delta = least_damping in the first step (warm start)
  const std::uint8_t* known = nullptr;  ///< per block: take `modes` in the first step
  const Mode* modes = nullptr;
  double stall_below = 0;  ///< below this residual, stop as soon as a step does not halve it
  int reuse_steps =
      0;  ///< so many steps, while they halve the residual, are taken with the last factorisation as it is and not counted
  bool only_reuse = false;  ///< and no others
};

class NewtonSolver {
 public:
  /// From `iterate` (evaluated); leaves the best iterate there. True: residual <= tolerance. Adds to `iterations`.
  bool solve(const ScaledProblem& problem, const NewtonOptions& options, Iterate& iterate, int& iterations);
  bool has_factor() const { return factorised_; }                    ///< of the last solve's last step
  void forget_factor() { factorised_ = false, reuse_pays_ = true; }  ///< a new problem
  double first_residual = 0;                                         ///< after the first step of the last solve
  bool first_held = false;  ///< and it is one of the modes it was taken with (options.known), piecewise linear ones

 private:
  void recall(const ScaledProblem& problem, int block, Mode remembered);
  bool holds(const ScaledProblem& problem, const Iterate& at) const;
  void choose_modes(const ScaledProblem& problem, const NewtonOptions& options, bool first);
  bool step(const ScaledProblem& problem, double delta, bool reuse);
  bool same_labels(const ScaledProblem& problem) const;  ///< as the last factorisation has

  ReducedSystem system_;
  bool factorised_ = false;
  bool reuse_pays_ = true;
  Iterate current_, next_;
  std::vector<BlockMode> modes_, factor_modes_;
};

}  // namespace coulomb
