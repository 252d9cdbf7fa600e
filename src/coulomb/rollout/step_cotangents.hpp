// What a reverse sweep starts from in the steps of a rollout, beside its states.
#pragma once

#include "coulomb/rollout.hpp"

namespace coulomb {

/// Forces, of rollout_outputs.cpp.
class StepCotangents {
 public:
  virtual ~StepCotangents() = default;
  /// Before step t is gone back through: adds to the cotangents of the state it ends in, out.q0 and out.v0, and to out.parameters.
  virtual void before(int t, StepGradient& gradient, const StepRecord& record, RolloutCotangent& out) = 0;
  /// And then: adds to its inputs' cotangents.
  virtual void after(int t, StepGradient& gradient, StepCotangent& inputs) = 0;
};

}  // namespace coulomb
