#include "one_call.hpp"

#include <string>

namespace coulomb::python {

namespace {

// All simulators that Python knows are SimulatorObjects, and only they hand out derivatives.
SimulatorObject& object_of(const StepDerivatives& derivatives, const char* what) {
  Simulator* simulator = derivatives.origin ? derivatives.origin->simulator : nullptr;
  if (simulator == nullptr) throw std::logic_error(std::string(what) + ": the simulator of these derivatives is gone");
  return static_cast<SimulatorObject&>(*simulator);
}

}  // namespace

Origin::Origin(const StepDerivatives& derivatives, const char* what)
    : object_(object_of(derivatives, what)), idle_(object_) {
  if (object_.step_count() == derivatives.step) return;
  throw std::logic_error(
      std::string(what) +
      ": the simulator has stepped since these derivatives were taken (step, rollout); ask before, or let "
      "another simulator step");
}

}  // namespace coulomb::python
