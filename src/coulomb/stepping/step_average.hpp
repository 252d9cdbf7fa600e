// StepAverage: a weighted sum of the derivatives of several steps near the one at hand. Two of them:
//
// Limit, for a next velocity that depends on the choice among non-unique impulses (redundant contacts that slide). The choice is the
// limit of a vanishing compliance eps (solvers/canonical.hpp), and so is its derivative:
//   J = sum_i w_i J(2^i eps) + O(eps^4),  i = 0..3,
// J(eps) the exact derivative of the step solved with compliance eps, w the weights of extrapolation to zero. Such steps are rare;
// they cost four linearisations, in reverse mode too (cancellation would separate the two modes by more than rounding).
//
// Smoothing (GradientMode::smoothed_step): the mean over states drawn around this one.
#pragma once

#include "coulomb/stepping/step_linearization.hpp"

namespace coulomb {

class StepAverage {
 public:
  /// False: a compliant problem has other modes, or no solution; the limit is not smooth here.
  /// islands: those whose impulses are not unique, as indices into the record's pool; the others stay as they are.
  bool prepare_limit(const Model& model, const StepOptions& options, const StepRecord& record,
                     const std::vector<int>& islands);
  /// memory: what the step started from. Samples whose step has no solution are left out; false: all of them.
  bool prepare_samples(const Model& model, const StepOptions& options, const StepRecord& record,
                       const StepMemory& memory);
  void jacobian(StepDerivatives& out);
  void parameter_columns(const ParameterSet& set, std::vector<double>& columns_T);
  void impulse_columns(StepInput input, std::vector<double>& out_T);
  void impulse_columns(const ParameterSet& set, std::vector<double>& out_T);

 private:
  struct Level {
    explicit Level(const Model& model) : record(model), linearization(model) {}
    StepRecord record;
    StepLinearization linearization;
    double weight = 0;
  };
  void reserve(const Model& model, int levels);
  template <class Columns>
  void accumulate(std::vector<double>& out, Columns columns);

  std::vector<Level> levels_;
  int used_ = 0;
  ConstraintSolver solver_;
  std::vector<double> columns_T_;
};

}  // namespace coulomb
