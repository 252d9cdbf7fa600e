// StepAverage: the mean of the derivatives of the steps from states drawn around the one at hand (GradientMode::smoothed_step).
#pragma once

#include "coulomb/solvers/constraint_solver.hpp"
#include "coulomb/step_memory.hpp"
#include "coulomb/stepping/semi_implicit/step_linearization.hpp"

namespace coulomb {

class StepAverage {
 public:
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
