// rollout: many steps in a row, states kept. The simulator forgets its last step first, so that a rollout depends on its arguments alone.
#pragma once

#include <vector>

#include "coulomb/stepping/simulator.hpp"

namespace coulomb {

struct Rollout {
  int steps = 0;
  std::vector<double> q, v;            ///< (steps + 1) x nq, (steps + 1) x nv
  std::vector<StepStatus> status;      ///< one per step
  bool converged = true;               ///< every step did
};

/// q0: nq, v0: nv, U: steps x nu (null: zero). Throws std::invalid_argument naming argument, element and value, before anything
/// changes.
Rollout rollout(Simulator& simulator, const double* q0, const double* v0, const double* U, int steps);

}  // namespace coulomb
