// AverageGradient: the mean of the derivatives of steps from random states around the given one
// (GradientMode::smoothed_step). If none of these steps has a solution, it is the exact gradient, and ambiguous.
#pragma once

#include <memory>
#include <vector>

#include "coulomb/step_memory.hpp"
#include "coulomb/stepping/gradients/gradient_modes.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "coulomb/stepping/step_workspace.hpp"

namespace coulomb {

class AverageGradient final : public GradientDecorator {
 public:
  AverageGradient(const Model& model, MakeGradient exact) : GradientDecorator(exact(model)), make_(std::move(exact)) {}

  /// memory: what the step started from.
  void prepare(const Model& model, const StepOptions& options, StepRecord& record, const StepMemory& memory) override;
  bool reads_memory() const override { return true; }
  const StepDerivatives& jacobian() override;
  std::shared_ptr<StepDerivatives> shared_jacobian() override { return jacobian(), derivatives_; }
  std::shared_ptr<SparseStepDerivatives> sparse_jacobian() override { return StepGradient::sparse_jacobian(); }
  void parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) override;
  void impulse_columns(StepInput input, std::vector<double>& out_T) override;
  void impulse_columns(const ParameterSet& set, std::vector<double>& out_T) override;
  void vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set = nullptr) override;
  void add_fext_cotangent(const double* tau_bar, std::vector<double>& fext) override;
  bool ambiguous() override { return used_ == 0; }

 private:
  struct Sample {
    StepRecord record;
    std::unique_ptr<StepGradient> gradient;
  };
  void take_samples(const StepOptions& options, const StepRecord& record, const StepMemory& memory);
  void reserve(int samples);
  double weight() const { return 1.0 / used_; }
  template <class Columns>
  void accumulate(std::vector<double>& out, Columns columns);

  MakeGradient make_;
  const Model* model_ = nullptr;
  std::vector<Sample> samples_;
  int used_ = 0;  // samples whose step has a solution
  std::unique_ptr<StepWorkspace> workspace_;
  std::vector<double> columns_T_;
  bool have_jacobian_ = false;
};

}  // namespace coulomb
