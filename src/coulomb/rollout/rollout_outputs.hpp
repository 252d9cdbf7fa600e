// Outputs along a trajectory: readings at every state, and reverse products that start from them. Their cotangents become cotangents of
// the states, and direct ones of the parameters that move frames:
//
//   dX_t += (dy_t/dx_t)^T w_t,   dtheta += sum_t (dy_t/dtheta)^T w_t
//
// Row t of a force is that of the step that ends in state t; row 0 is zero. Forces are read and gone back through when their steps are run
// again (stepping/force_outputs.hpp).
#pragma once

#include "coulomb/parameters/state_outputs.hpp"
#include "coulomb/rollout/rollout_derivatives.hpp"

namespace coulomb {

/// (steps + 1) x outputs.size(). Throws std::logic_error for forces that the steps do not tell.
std::vector<double> read_outputs(const Rollout& rollout, const OutputSet& outputs);

/// vjp of the states (dq, dv as there) and of outputs: (steps + 1) x tangent_size cotangents. Throws as vjp.
RolloutCotangent vjp(const Rollout& rollout, const double* dq, const double* dv, const OutputSet& outputs,
                     const double* doutputs, const std::vector<std::string>& parameters = {},
                     const Progress& progress = {}, bool wants_fext = false);

}  // namespace coulomb
