#include "coulomb/stepping/implicit/implicit_stepper.hpp"

#include "coulomb/stepping/implicit/implicit_linearization.hpp"

namespace coulomb {

ContactLaw ImplicitStepper::usual_contact() const {
  return has_explicit_dynamics() ? ContactLaw::cone : ContactLaw::penalty;
}

/// Where nothing can touch, implicit steppers go by any law.
bool ImplicitStepper::fits(const StepOptions& options) const {
  return !has_explicit_dynamics() || options.constraints.contact == ContactLaw::penalty;
}

bool ImplicitStepper::step(const Model& model, const StepOptions& options, StepWorkspace&, StepMemory& memory,
                           StepRecord& record) const {
  return implicit_step(model, scheme_, options, memory, record);
}

std::unique_ptr<StepGradient> ImplicitStepper::make_gradient(const Model& model, const StepOptions&) const {
  return std::make_unique<ImplicitLinearization>(model);
}

const char* ImplicitStepper::untold(StepForce force) const {
  if (force != StepForce::balance) return nullptr;
  return "not available with implicit steppers and penalty contact, whose forces are those of the end of the step";
}

std::size_t ImplicitStepper::kept_bytes(const StepRecord& record) const { return kept_stage_bytes(record); }

void ImplicitStepper::keep(const StepRecord& record, std::byte* to) const { keep_stage(record, to); }

void ImplicitStepper::recall(const Model& model, const StepOptions& options, const std::byte* kept,
                             StepRecord& record) const {
  recall_implicit_step(model, options, kept, record);
}

/// A step of one stage is known by its ends.
bool ImplicitStepper::step_again(const Model& model, const StepOptions& options, StepWorkspace& workspace,
                                 StepMemory& memory, const std::byte* kept, StepRecord& record) const {
  return follow_implicit_step(model, scheme_, options, memory, kept, record) ||
         step(model, options, workspace, memory, record);
}

}  // namespace coulomb
