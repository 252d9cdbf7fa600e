// rollout: many steps in a row, states kept. The simulator forgets its last step first, so that a rollout depends on
// its arguments alone. What is kept beside the states (checkpoints.hpp) is enough to run any part of it again, with the
// same bits: derivatives of a trajectory (rollout_derivatives.hpp) need nothing from the simulator that made it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "coulomb/rollout/replay/checkpoints.hpp"
#include "coulomb/rollout/replay/kept_steps.hpp"
#include "coulomb/stepping/simulator.hpp"

namespace coulomb {

struct RolloutInput {
  const double* q0 = nullptr;   ///< nq
  const double* v0 = nullptr;   ///< nv
  const double* u = nullptr;    ///< steps x nu; null: zero
  const double* tau = nullptr;  ///< steps x nv extra joint forces; null: zero
  int steps = 0;
  const double* fext = nullptr;  ///< steps x num_bodies x 6, as Simulator::step; null: zero
};

struct RolloutOptions {
  /// Steps between checkpoints of the memory; 0: as often as the budget allows.
  int checkpoint_every = 0;
  /// Bytes of the rollout and of its backward sweep; 0: the states and 64 MB. Contacts that come later may pass a tight one: bytes() tells.
  std::size_t memory_budget = 0;
  /// And what else the reverse sweep needs of steps, in what the budget leaves (default: 64 MB).
  bool keep_factors = true;
};

/// Called after every step of a long loop with (done, total). It may throw: the loop is then left.
using Progress = std::function<void(int done, int total)>;

class ReplayWorkspaces;  // replay.hpp

struct Rollout {
  int steps = 0;
  std::vector<double> q;           ///< (steps + 1) x nq
  std::vector<double> v;           ///< (steps + 1) x nv
  std::vector<StepStatus> status;  ///< one per step
  bool converged = true;           ///< every step did

  // What derivatives need.
  std::shared_ptr<const Model> model;
  StepOptions step_options;
  std::vector<double> u;     ///< steps x nu, a copy of what was given, as tau and fext; empty: zero
  std::vector<double> tau;   ///< steps x nv
  std::vector<double> fext;  ///< steps x num_bodies x 6
  Checkpoints checkpoints;
  KeptSteps kept;
  std::shared_ptr<ReplayWorkspaces> workspaces;  ///< of the derivatives; copies share them

  std::size_t bytes() const;  ///< of all this
};

/// Throws std::invalid_argument naming argument, element and value, with the simulator as it was; a state that stops
/// being finite on the way is named with its step.
Rollout rollout(Simulator& simulator, const RolloutInput& input, const RolloutOptions& options = {},
                const Progress& progress = {});
/// q0: nq, v0: nv, u: steps x nu (null: zero).
Rollout rollout(Simulator& simulator, const double* q0, const double* v0, const double* u, int steps);

/// Throws std::invalid_argument "fext[t, b, k] is nan, ..."; x: steps x bodies x 6 or null.
void check_finite_wrenches(const double* x, int steps, int bodies);
/// Throws std::invalid_argument "name[i, k] is nan, ..." for entries of x (rows x columns) that are not finite; null is
/// fine.
void check_finite_rows(const char* name, const double* x, int rows, int columns);

}  // namespace coulomb
