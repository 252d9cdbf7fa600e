#include "coulomb/stepping/steppers.hpp"

#include <algorithm>

#include "coulomb/stepping/impacts/impact_stepper.hpp"
#include "coulomb/stepping/implicit/implicit_stepper.hpp"
#include "coulomb/stepping/semi_implicit/semi_implicit_stepper.hpp"

namespace coulomb {
namespace {

/// In the order in which users are told of them. A new stepper is one more line.
const Stepper* const steppers[] = {
    &semi_implicit_stepper,  //
    &impact_stepper,         //
    &penalty_stepper,        //
    &bdf1_stepper,           //
    &bdf2_stepper,           //
};

}  // namespace

std::vector<std::string> stepper_names() {
  std::vector<std::string> names;
  for (const Stepper* s : steppers)
    if (std::find(names.begin(), names.end(), s->name()) == names.end()) {
      names.emplace_back(s->name());
    }
  return names;
}

const Stepper* stepper_named(const std::string& name) {
  for (const Stepper* s : steppers)
    if (s->name() == name) return s;
  return nullptr;
}

const Stepper& fitting_stepper(const std::string& name, const StepOptions& options) {
  for (const Stepper* s : steppers)
    if (s->name() == name && s->fits(options)) return *s;
  return *stepper_named(name);
}

}  // namespace coulomb
