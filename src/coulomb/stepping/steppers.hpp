// The steppers: one function that takes a step and one object that differentiates it, chosen by StepOptions. Simulator, rollouts and
// averages see nothing else, so that a stepper is one file pair and a line in steppers.cpp.
#pragma once

#include <memory>

#include "coulomb/stepping/step_gradient.hpp"

namespace coulomb {

class ConstraintSolver;

/// One step of record.(q, v, u, tau, fext), already checked; fills the rest of the record and updates the memory. False: numbers
/// overflowed. The state is then as it was (q_next = q, v_next = v), without constraints, and the memory is empty.
bool take_step(const Model& model, const StepOptions& options, ConstraintSolver& solver, StepMemory& memory,
               StepRecord& record);

/// Implicit steppers, and penalty contact (implicit_step.hpp).
bool is_implicit(const StepOptions& options);

std::unique_ptr<StepGradient> make_step_gradient(const Model& model, const StepOptions& options);

}  // namespace coulomb
