#include "coulomb/stepping/steppers.hpp"

#include "coulomb/stepping/impact_step.hpp"
#include "coulomb/stepping/semi_implicit.hpp"
#include "coulomb/stepping/step_linearization.hpp"

namespace coulomb {

bool take_step(const Model& model, const StepOptions& options, ConstraintSolver& solver, StepMemory& memory,
               StepRecord& record) {
  if (options.impacts.enabled) return impact_step(model, options, solver, memory, record);
  return semi_implicit_step(model, options, solver, memory, record);
}

std::unique_ptr<StepGradient> make_step_gradient(const Model& model, const StepOptions&) {
  return std::make_unique<StepLinearization>(model);
}

}  // namespace coulomb
