// Stepper: a way to compute a step, with all properties of it that the rest of the library uses. Simulator, rollouts,
// batches and outputs use steps through this interface alone; the stepper is chosen when StepOptions are made
// (steppers.hpp).
//
// A stepper is constant and has no state: one object serves all simulators. StepRecord holds the results of a step,
// StepMemory the data for the next step, StepOptions the options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "coulomb/stepping/step_gradient.hpp"
#include "coulomb/stepping/step_options.hpp"

namespace coulomb {

struct StepWorkspace;

/// A state that a step evaluates something at.
enum class StepPoint : std::uint8_t { start, end };

/// Forces that outputs may ask a step for.
enum class StepForce : std::uint8_t {
  motion,      ///< actuators and accelerations: functions of the states that a step joins
  constraint,  ///< contacts, limits, dry friction, equalities
  balance      ///< what joints carry: all forces at the acceleration of the step
};

class Stepper {
 public:
  /// As users call it. Steppers of one name differ in what they fit.
  virtual const char* name() const = 0;
  /// The law of contact that simulators with this name have where users leave it open.
  virtual ContactLaw usual_contact() const { return ContactLaw::cone; }
  /// May it take steps with this law of contact, split at impacts or not?
  virtual bool fits(const StepOptions& options) const = 0;
  /// Constraints are springs, which Newton's method solves for; else the impulses of a constraint problem.
  virtual bool has_springs() const { return false; }
  virtual bool splits_at_impacts() const { return false; }
  virtual bool has_gradient(GradientMode mode) const = 0;

  /// One step of record.(q, v, u, tau, fext), already checked; fills the rest of the record and updates the memory. False: numbers
  /// overflowed. The state is then as it was (q_next = q, v_next = v), without constraints, and the memory is empty.
  virtual bool step(const Model& model, const StepOptions& options, StepWorkspace& workspace, StepMemory& memory,
                    StepRecord& record) const = 0;
  /// The derivative of its steps that options.gradient asks for.
  virtual std::unique_ptr<StepGradient> make_gradient(const Model& model, const StepOptions& options) const = 0;

  /// States that a step starts from: its own, and the one before it with methods of two steps.
  virtual int num_states() const { return 1; }
  /// Where contacts (and the springs of constraints) are found.
  virtual StepPoint contacts_at() const { return StepPoint::start; }
  /// Where inertia is evaluated, and where actuators act.
  virtual StepPoint dynamics_at() const { return StepPoint::start; }
  /// Why its steps do not tell such forces; null: they do.
  virtual const char* untold(StepForce /*force*/) const { return nullptr; }

  // What a rollout may keep of a step for the way back. With options.keep_steps, a step leaves in its record what `keep` writes.

  virtual bool keeps_steps(const StepOptions& /*options*/) const { return false; }
  /// Of the step that was just taken, a multiple of eight; 0: it cannot be kept.
  virtual std::size_t kept_bytes(const StepRecord& /*record*/) const { return 0; }
  /// Into that many bytes, aligned for double.
  virtual void keep(const StepRecord& /*record*/, std::byte* /*to*/) const {}
  /// The kept step from record.(q, v, u, tau, fext) to record.(q_next, v_next): fills the record as far as gradients read it, to the same
  /// bits, without looking for contacts and without solving. The bytes must stay as long as the record is used.
  virtual void recall(const Model& /*model*/, const StepOptions& /*options*/, const std::byte* /*kept*/,
                      StepRecord& /*record*/) const {}
  /// As `step`, for a step that is known to end in record.(q_next, v_next): without solving, where the ends tell enough. kept: of that
  /// step, or null.
  virtual bool step_again(const Model& model, const StepOptions& options, StepWorkspace& workspace, StepMemory& memory,
                          const std::byte* /*kept*/, StepRecord& record) const {
    return step(model, options, workspace, memory, record);
  }
  /// Are contacts in the records of steps that were not solved again? Else the gradient puts them there: StepGradient::restore_contacts.
  virtual bool recalls_contacts() const { return true; }

 protected:
  ~Stepper() = default;
};

}  // namespace coulomb
