// LimitLinearization: the derivative of a step whose next velocity depends on the choice among non-unique impulses (redundant
// contacts that slide). The choice is the limit of a vanishing compliance eps (solvers/canonical.hpp), and so is its derivative:
//   J = sum_i w_i J(2^i eps) + O(eps^4),  i = 0..3,
// J(eps) the exact derivative of the step solved with compliance eps, w the weights of extrapolation to zero. Such steps are rare;
// they cost four linearisations, in reverse mode too (cancellation would separate the two modes by more than rounding).
#pragma once

#include "coulomb/stepping/step_linearization.hpp"

namespace coulomb {

class LimitLinearization {
 public:
  explicit LimitLinearization(const Model& model);
  /// False: a compliant problem has other modes, or no solution; the limit is not smooth here.
  bool prepare(const Model& model, const StepOptions& options, const StepRecord& record);
  void jacobian(StepDerivatives& out);
  void parameter_columns(const ParameterSet& set, std::vector<double>& columns_T);

 private:
  struct Level {
    explicit Level(const Model& model) : record(model), linearization(model) {}
    StepRecord record;
    StepLinearization linearization;
  };
  std::vector<Level> levels_;
  ConstraintSolver solver_;
  std::vector<double> columns_T_;
};

}  // namespace coulomb
