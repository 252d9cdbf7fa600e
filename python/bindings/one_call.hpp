// One call at a time: what refuses a second thread, a progress= callback and a signal handler while a call is running.
//
// Loops release the GIL, so that other Python code runs beside them. A simulator that it called would be changed under the loop's hands.
#pragma once

#include <atomic>
#include <stdexcept>
#include <utility>

#include "coulomb/simulator.hpp"

namespace coulomb::python {

/// The simulator that Python holds, and whether a call is running.
struct SimulatorObject : Simulator {
  using Simulator::Simulator;
  static constexpr const char* busy_text =
      "Simulator: another call is running, in another thread or around this one (progress=, a signal handler); use one "
      "simulator per thread";
  std::atomic<bool> busy{false};
};

/// While it lives no other call may use the object. RuntimeError if one does already.
template <class Object>
class Idle {
 public:
  explicit Idle(Object& object) : object_(object) {
    if (object.busy.exchange(true)) throw std::runtime_error(Object::busy_text);
  }
  ~Idle() { object_.busy = false; }
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;

 private:
  Object& object_;
};

/// A function of a simulator as one of the object that Python holds, refused while another call is running.
template <class Result, class... Arguments>
auto exclusive(Result (*function)(Simulator&, Arguments...)) {
  return [function](SimulatorObject& self, Arguments... arguments) -> Result {
    const Idle idle(self);
    return function(self, std::forward<Arguments>(arguments)...);
  };
}

/// Derivatives ask the simulator they came from: ours alone while this lives, and still at their step. RuntimeError otherwise.
class Origin {
 public:
  /// what: the question, for messages.
  Origin(const StepDerivatives& derivatives, const char* what);
  Simulator& simulator() { return object_; }

 private:
  SimulatorObject& object_;
  Idle<SimulatorObject> idle_;
};

}  // namespace coulomb::python
