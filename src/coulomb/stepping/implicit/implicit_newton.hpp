// Newton's method for one implicit stage (implicit_equation.hpp): analytic matrix, LU, line search by the natural monotonicity test
// [Deuflhard2004] (a step must shorten the next Newton correction with the same matrix; it does not depend on the units of the
// equations), and corrections with an old matrix while they converge fast.
//
// A stage is solved when every residual is below the tolerance times the sizes of its own terms, or below what rounding of the
// state and of the forces makes of it: an estimate, so up to a hundred times that is taken where no correction makes it less; or more, up to 1e-6 of
// the terms, where the correction that is left is below 1e-8 of the velocity that the forces make in the stage (springs of 1e8 N/m and
// more, whose lengths are rounding).
#pragma once

#include <vector>

#include "coulomb/stepping/implicit/implicit_equation.hpp"
#include "coulomb/stepping/implicit/implicit_factor.hpp"
#include "coulomb/stepping/implicit/implicit_kept.hpp"

namespace coulomb {

struct NewtonOutcome {
  bool converged = false;
  int iterations = 0;
  int evaluations = 0;  ///< of the residual, in search of shorter corrections
  double residual = 0;  ///< largest, relative to its terms
};

class ImplicitNewton {
 public:
  explicit ImplicitNewton(const Model& model);

  /// stage.v_next: the first guess, then the solution, or the best iterate. `equation` is left evaluated there.
  /// patience: evaluations in which neither the residual nor the correction falls to half, after which it gives up.
  NewtonOutcome solve(const Model& model, const StepOptions& options, const StageInputs& inputs, ImplicitStage& stage,
                      int patience);

  /// What derivatives need of the stage solved last; views of `equation` and of the factor, until the next one is solved.
  StageViews linearized(const Model& model, const ImplicitStage& stage);

  ImplicitEquation equation;

 private:
  bool linearize(const Model& model, const StepOptions& options, const ImplicitStage& stage);
  double ratio() const;  ///< of the largest residual to what is allowed
  double length(const Model& model, const std::vector<double>& x);
  /// The correction step_, and the residual that is left (ratio).
  bool is_rounding(const Model& model, const StepOptions& options, double at);
  void correction(std::vector<double>& x) const;
  bool search(const Model& model, const StepOptions& options, ImplicitStage& stage, double before, double& contraction);
  void polish(const Model& model, const StepOptions& options, ImplicitStage& stage);

  ImplicitFactor factor_;
  double reach_ = 0;  // velocity that the forces make in the stage, as `length`
  int evaluations_ = 0;
  std::vector<double> allowed_, step_, next_step_, from_, best_, work_;
};

}  // namespace coulomb
