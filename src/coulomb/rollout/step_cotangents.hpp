// What a reverse sweep starts from in the steps of a rollout, beside its states.
#pragma once

#include "coulomb/rollout.hpp"

namespace coulomb {

/// Forces, of rollout_outputs.cpp.
class StepCotangents {
 public:
  virtual ~StepCotangents() = default;
  /// Before step t is gone back through: adds to the cotangents of the state it ends in, out.q0 and out.v0, and to `parameters`, those of
  /// sweep_parameters.
  virtual void before(int t, StepGradient& gradient, const StepRecord& record, RolloutCotangent& out,
                      std::vector<double>& parameters) = 0;
  /// And then: adds to its inputs' cotangents.
  virtual void after(int t, StepGradient& gradient, StepCotangent& inputs) = 0;
};

/// What a reverse sweep is asked for: the parameters, and behind them those of the mocap bodies' poses if they are wanted.
ParameterSet sweep_parameters(const Model& model, const std::vector<std::string>& parameters, WantedCotangents wanted);

}  // namespace coulomb
