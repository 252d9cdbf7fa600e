// The gradients that options.gradient can select instead of the exact one. Each one wraps the exact gradient of a
// stepper, changes some of its results and passes on the others. Smoothed collisions have no object of their own: they
// are part of the exact gradient, in the motion of contacts (collision/motion/smoothed_motion.hpp).
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "coulomb/stepping/gradients/gradient_options.hpp"
#include "coulomb/stepping/step_gradient.hpp"

namespace coulomb {

using MakeGradient = std::function<std::unique_ptr<StepGradient>(const Model&)>;

/// Of that mode. exact: makes exact gradients of the stepper's steps.
std::unique_ptr<StepGradient> with_mode(GradientMode mode, const Model& model, const MakeGradient& exact);

/// Such a function.
template <class Gradient>
std::unique_ptr<StepGradient> make_one(const Model& model) {
  return std::make_unique<Gradient>(model);
}

/// Passes everything on; jvp, which is a product of the Jacobian, by its own one.
class GradientDecorator : public StepGradient {
 public:
  explicit GradientDecorator(std::unique_ptr<StepGradient> exact) : exact_(std::move(exact)) {}

  void prepare(const Model& model, const StepOptions& options, StepRecord& record, const StepMemory& memory) override {
    exact_->prepare(model, options, record, memory);
  }
  const StepDerivatives& jacobian() override { return exact_->jacobian(); }
  std::shared_ptr<StepDerivatives> shared_jacobian() override { return exact_->shared_jacobian(); }
  std::shared_ptr<SparseStepDerivatives> sparse_jacobian() override { return exact_->sparse_jacobian(); }
  void parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) override {
    exact_->parameter_columns(set, columns_T);
  }
  void impulse_columns(StepInput input, std::vector<double>& out_T) override { exact_->impulse_columns(input, out_T); }
  void impulse_columns(const ParameterSet& set, std::vector<double>& out_T) override {
    exact_->impulse_columns(set, out_T);
  }
  bool impulse_cotangent(const double* lambda, const ParameterSet& set, double* dq1, double* dv1,
                         double* parameters) override {
    return exact_->impulse_cotangent(lambda, set, dq1, dv1, parameters);
  }
  void add_fext_cotangent(const double* tau_bar, std::vector<double>& fext) override {
    exact_->add_fext_cotangent(tau_bar, fext);
  }
  void restore_contacts() override { exact_->restore_contacts(); }
  void vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set = nullptr) override {
    exact_->vjp(dq1, dv1, out, set);
  }
  bool ambiguous() override { return exact_->ambiguous(); }
  bool reads_memory() const override { return exact_->reads_memory(); }

 protected:
  std::unique_ptr<StepGradient> exact_;
};

}  // namespace coulomb
