// Replay: the records of the steps of a rollout, once more. Where the rollout kept what it takes (kept_steps.hpp), they are recalled from
// that and from the states, which are known; else steps are run again from the checkpoints, and not solved again where the stepper knows
// them by the states that they join.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "coulomb/rollout.hpp"
#include "coulomb/stepping/mocap.hpp"
#include "coulomb/stepping/step_gradient.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "coulomb/stepping/step_workspace.hpp"

namespace coulomb {

/// What it takes to look at steps; sized once from the model.
struct ReplayWorkspace {
  explicit ReplayWorkspace(const Rollout& rollout);
  struct Slot {
    int t = 0;
    bool kept = false;                   ///< to be recalled when it is looked at
    std::unique_ptr<StepRecord> record;  ///< of a step that was run
    std::unique_ptr<StepMemory> memory;  ///< after it, where the gradient asks for it
    bool overflowed = false;
  };

  std::shared_ptr<const Model> model;
  MocapModel mocap_model;  ///< as the step sees it that is looked at
  std::unique_ptr<StepGradient> gradient;
  std::vector<Slot> slots;
  std::unique_ptr<StepRecord> recalled;  ///< of steps that are recalled, one at a time
  StepMemory memory;                     ///< of steps that are run: after the last one
  StepWorkspace workspace;
};

/// Workspaces that wait for the next Replay of rollouts with the same options. Any thread may ask.
class ReplayWorkspaces {
 public:
  std::unique_ptr<ReplayWorkspace> take(const Rollout& rollout);
  void give_back(std::unique_ptr<ReplayWorkspace> workspace);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<ReplayWorkspace>> waiting_;
};

class Replay {
 public:
  /// records: how many steps can be looked at together.
  Replay(const Rollout& rollout, int records);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// Goes to step t, a multiple of checkpoints.every().
  void seek(int t);
  /// Makes the next step that of `slot`. Throws std::logic_error if it is run again and does not end where the rollout did, bit for bit.
  void step(int slot);
  /// The derivative of the step of that slot, by the gradient that the simulator was asked for; valid until the next call. Throws
  /// std::logic_error if its numbers overflowed: it has none.
  StepGradient& linearize(int slot);
  /// Valid until that of another slot is asked for.
  StepRecord& record(int slot);
  bool ambiguous() const { return workspace_->gradient->ambiguous(); }

 private:
  using Slot = ReplayWorkspace::Slot;
  const Model& model_of(int t);
  void begin_stretch();
  void restore_memory();
  void load(int t, StepRecord& record) const;
  void load_end(int t, StepRecord& record) const;
  void run(Slot& slot);

  const Rollout& rollout_;
  std::unique_ptr<ReplayWorkspace> workspace_;
  int t_ = 0;
  bool recalls_ = false;  // the steps of this stretch are kept
  int recalled_step_ = -1;
  bool memory_is_current_ = false;
};

}  // namespace coulomb
