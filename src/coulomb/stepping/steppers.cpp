#include "coulomb/stepping/steppers.hpp"

#include "coulomb/stepping/gradients/impact_bounce.hpp"
#include "coulomb/stepping/impacts/impact_gradient.hpp"
#include "coulomb/stepping/impacts/impact_step.hpp"
#include "coulomb/stepping/implicit/implicit_linearization.hpp"
#include "coulomb/stepping/implicit/implicit_step.hpp"
#include "coulomb/stepping/semi_implicit/semi_implicit.hpp"
#include "coulomb/stepping/semi_implicit/step_linearization.hpp"

namespace coulomb {

/// Penalty contact is a stage whatever the stepper.
bool is_implicit(const StepOptions& options) {
  return options.stepper != StepperKind::semi_implicit || options.constraints.contact == ContactLaw::penalty;
}

bool take_step(const Model& model, const StepOptions& options, ConstraintSolver& solver, StepMemory& memory,
               StepRecord& record) {
  if (options.impacts.enabled) return impact_step(model, options, solver, memory, record);
  if (is_implicit(options)) return implicit_step(model, options, memory, record);
  return semi_implicit_step(model, options, solver, memory, record);
}

/// The gradient that fits the stepper; options.gradient may ask for another one of the same steps.
std::unique_ptr<StepGradient> make_step_gradient(const Model& model, const StepOptions& options) {
  if (is_implicit(options)) return std::make_unique<ImplicitLinearization>(model);
  if (options.impacts.enabled) return std::make_unique<ImpactGradient>(model);
  if (options.gradient.mode == GradientMode::approximate_bounce) return std::make_unique<BounceGradient>(model);
  return std::make_unique<StepLinearization>(model);
}

}  // namespace coulomb
