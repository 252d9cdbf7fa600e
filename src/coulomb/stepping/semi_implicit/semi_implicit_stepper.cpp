#include "coulomb/stepping/semi_implicit/semi_implicit_stepper.hpp"

#include "coulomb/stepping/gradients/gradient_modes.hpp"
#include "coulomb/stepping/semi_implicit/kept_step.hpp"
#include "coulomb/stepping/semi_implicit/semi_implicit.hpp"
#include "coulomb/stepping/semi_implicit/step_linearization.hpp"

namespace coulomb {

bool SemiImplicitStepper::fits(const StepOptions& options) const {
  return options.constraints.contact != ContactLaw::penalty && !options.impacts.enabled;
}

bool SemiImplicitStepper::step(const Model& model, const StepOptions& options, StepWorkspace& workspace,
                               StepMemory& memory, StepRecord& record) const {
  return semi_implicit_step(model, options, workspace, memory, record);
}

std::unique_ptr<StepGradient> SemiImplicitStepper::make_gradient(const Model& model, const StepOptions& options) const {
  return with_mode(options.gradient.mode, model, make_one<StepLinearization>);
}

/// Averages take other steps, from the memory of this one; smoothed contacts are looked for again, at the poses that they were found at.
bool SemiImplicitStepper::keeps_steps(const StepOptions& options) const {
  const GradientMode mode = options.gradient.mode;
  return mode != GradientMode::smoothed_step && mode != GradientMode::smoothed_collision;
}

std::size_t SemiImplicitStepper::kept_bytes(const StepRecord& record) const { return kept_step_bytes(record); }

void SemiImplicitStepper::keep(const StepRecord& record, std::byte* to) const { keep_step(record, to); }

void SemiImplicitStepper::recall(const Model& model, const StepOptions& options, const std::byte* kept,
                                 StepRecord& record) const {
  recall_semi_implicit_step(model, options, kept, record);
}

}  // namespace coulomb
