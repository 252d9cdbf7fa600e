// Outputs along a trajectory: readings at every state, and reverse products that start from them. Their cotangents become cotangents of
// the states, and direct ones of the parameters that move frames:
//
//   dX_t += (dy_t/dx_t)^T w_t,   dtheta += sum_t (dy_t/dtheta)^T w_t
//
// Row t of a force is that of the step that ends in state t; row 0 is zero. Forces are read and gone back through when their steps are run
// again (stepping/outputs/force_outputs.hpp).
#pragma once

#include "coulomb/parameters/state_outputs.hpp"
#include "coulomb/rollout/rollout_derivatives.hpp"

namespace coulomb {

/// (steps + 1) x outputs.size(). Throws std::logic_error for forces that the steps do not tell.
std::vector<double> read_outputs(const Rollout& rollout, const OutputSet& outputs);

/// What a reverse product starts from at every state of a trajectory: given by the caller; null: zero.
struct TrajectoryCotangent {
  const double* dq = nullptr;          ///< (steps + 1) x nv
  const double* dv = nullptr;          ///< (steps + 1) x nv
  const OutputSet* outputs = nullptr;  ///< what doutputs belong to; null: no outputs
  const double* doutputs = nullptr;    ///< (steps + 1) x outputs->tangent_size()
};

/// vjp of the states and of outputs, which must be there. Throws as vjp of the states (rollout_derivatives.hpp).
RolloutCotangent vjp(const Rollout& rollout, const TrajectoryCotangent& from,
                     const std::vector<std::string>& parameters = {}, const Progress& progress = {},
                     bool wants_fext = false);

}  // namespace coulomb
