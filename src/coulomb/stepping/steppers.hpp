// The list of steppers, by the names that users select.
#pragma once

#include <string>
#include <vector>

#include "coulomb/stepping/stepper.hpp"

namespace coulomb {

/// Each name once.
std::vector<std::string> stepper_names();
/// The first one of that name; null: there is none.
const Stepper* stepper_named(const std::string& name);
/// The one of that name, which must exist, that fits the options; if none does, the first.
const Stepper& fitting_stepper(const std::string& name, const StepOptions& options);

}  // namespace coulomb
