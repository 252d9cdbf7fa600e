// Converts the options of a user (SimulatorOptions) to those that steps read (StepOptions). Checks names, ranges and
// combinations; an invalid option is refused before a simulator exists.
#pragma once

#include <memory>
#include <string>

#include "coulomb/simulator.hpp"
#include "coulomb/stepping/step_options.hpp"

namespace coulomb {

/// Throws std::invalid_argument that names option, value and what is expected.
StepOptions step_options(const Model& model, const SimulatorOptions& options);

/// The model with the options' numbers of penalty contact, so that parameters() lists them and with_parameters() changes them; the options
/// are left without.
std::shared_ptr<const Model> with_penalty_options(std::shared_ptr<const Model> model, SimulatorOptions& options);

/// As users call it.
const char* contact_name(ContactLaw law);
/// In as many digits as a message needs.
std::string number_text(double value);

}  // namespace coulomb
