// What a rollout keeps of its steps, for derivatives.
#pragma once

#include <memory>

#include "coulomb/rollout.hpp"
#include "coulomb/rollout/replay/checkpoints.hpp"
#include "coulomb/rollout/replay/kept_steps.hpp"
#include "coulomb/stepping/step_options.hpp"

namespace coulomb {

class ReplayWorkspaces;  // replay.hpp

/// Filled by the loop that takes the steps, then constant.
struct Rollout::Parts {
  StepOptions step_options;
  Checkpoints checkpoints;
  KeptSteps kept;
  std::shared_ptr<ReplayWorkspaces> workspaces;  ///< of the derivatives, lent in turn
};

}  // namespace coulomb
