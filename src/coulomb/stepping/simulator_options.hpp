// From the options that a user gives (SimulatorOptions) to those that steps read (StepOptions): names, ranges, and what does not go
// together. All of it is refused before a simulator exists.
#pragma once

#include <string>

#include "coulomb/stepping/simulator.hpp"

namespace coulomb {

/// Throws std::invalid_argument that names option, value and what is expected.
StepOptions step_options(const Model& model, const SimulatorOptions& options);

/// As users call it.
const char* contact_name(ContactLaw law);
/// In as many digits as a message needs.
std::string number_text(double value);

}  // namespace coulomb
