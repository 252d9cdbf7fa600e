// Checks that the stepper supports the contact materials of the model. A material that it would ignore is refused
// before a simulator exists.
#pragma once

namespace coulomb {

struct Model;
struct StepOptions;

/// Throws std::invalid_argument that names the pair, its value and what to do, for springs and dashpots of contact that these steps do not
/// know, or not beside what else the pair has.
void check_soft_contacts(const Model& model, const StepOptions& options);
/// The same of joint limits.
void check_soft_limits(const Model& model, const StepOptions& options);

}  // namespace coulomb
