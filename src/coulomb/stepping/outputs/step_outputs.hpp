// Functions shared by outputs of steps (coulomb/outputs.hpp) and outputs of batches and rollouts.
#pragma once

#include <vector>

#include "coulomb/outputs.hpp"
#include "coulomb/parameters/state_outputs.hpp"

namespace coulomb {

/// read_outputs of the last step into outputs.size() numbers; `at` may have been made for another model of the same structure.
void read_outputs(const Simulator& simulator, const OutputSet& outputs, StateOutputs& at, double* readings);

/// lambda . dlambda/dx (rows as record.rows) for every input, and the parameters of set (or null), added to out.
void add_impulse_cotangent(StepGradient& gradient, const std::vector<double>& lambda, const ParameterSet* set,
                           StepCotangent& out);

}  // namespace coulomb
