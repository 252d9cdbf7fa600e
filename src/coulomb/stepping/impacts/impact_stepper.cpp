#include "coulomb/stepping/impacts/impact_stepper.hpp"

#include "coulomb/stepping/impacts/impact_gradient.hpp"
#include "coulomb/stepping/impacts/impact_step.hpp"

namespace coulomb {

bool ImpactStepper::fits(const StepOptions& options) const {
  return options.constraints.contact != ContactLaw::penalty && options.impacts.enabled;
}

/// Those of its phases: a bounce is in them already, and steps from states nearby have other phases.
bool ImpactStepper::has_gradient(GradientMode mode) const {
  return mode != GradientMode::smoothed_step && mode != GradientMode::approximate_bounce &&
         mode != GradientMode::from_distance;
}

bool ImpactStepper::step(const Model& model, const StepOptions& options, StepWorkspace& workspace, StepMemory& memory,
                         StepRecord& record) const {
  return impact_step(model, options, workspace, memory, record);
}

std::unique_ptr<StepGradient> ImpactStepper::make_gradient(const Model& model, const StepOptions& options) const {
  return std::make_unique<ImpactGradient>(model, options.gradient.mode);
}

/// Forces within a split step are many.
const char* ImpactStepper::untold(StepForce force) const {
  return force == StepForce::motion ? nullptr : "not available with continuous_collision=True";
}

}  // namespace coulomb
