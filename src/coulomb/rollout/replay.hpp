// Replay: the records of the steps of a rollout, once more. Where the rollout kept what it takes (kept_steps.hpp), they are recalled from
// that and from the states, which are known; else steps are run again from the checkpoints. Implicit steps are not solved again either way:
// they are known by the states that they join.
#pragma once

#include <memory>
#include <vector>

#include "coulomb/rollout/rollout.hpp"

namespace coulomb {

class Replay {
 public:
  /// records: how many steps can be looked at together. matrices: Jacobians of steps are wanted, not only reverse products.
  Replay(const Rollout& rollout, int records, bool matrices);

  /// Goes to step t, a multiple of checkpoints.every().
  void seek(int t);
  /// Makes the next step that of `slot`. Throws std::logic_error if it is run again and does not end where the rollout did, bit for bit.
  void step(int slot);
  /// The derivative of the step of that slot, by the gradient that the simulator was asked for; valid until the next call. Throws std::logic_error if its numbers
  /// overflowed: it has none.
  StepGradient& linearize(int slot);
  /// Valid until that of another slot is asked for.
  StepRecord& record(int slot);
  bool ambiguous() const { return gradient_->ambiguous(); }

 private:
  struct Slot {
    int t = 0;
    bool kept = false;                   // to be recalled when it is looked at
    std::unique_ptr<StepRecord> record;  // of a step that was run
    std::unique_ptr<StepMemory> memory;  // after it, where the gradient asks for it
    bool overflowed = false;
  };
  void begin_stretch();
  void restore_memory();
  void load(int t, StepRecord& record) const;
  void load_end(int t, StepRecord& record) const;
  void run(Slot& slot);
  bool recall_implicit(StepRecord& record);

  const Rollout& rollout_;
  bool matrices_;
  std::vector<Slot> slots_;
  std::unique_ptr<StepGradient> gradient_;
  int t_ = 0;
  // steps that are recalled share one record
  bool recalls_ = false;
  std::unique_ptr<StepRecord> recalled_;
  int recalled_step_ = -1;
  // of steps that are run
  StepMemory memory_;  // after the last one
  bool memory_is_current_ = false;
  ConstraintSolver solver_;
};

}  // namespace coulomb
