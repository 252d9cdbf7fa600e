// Replay: runs steps of a rollout again, from its checkpoints, into records of its own. Implicit steps are not solved again: they are
// known by the states that they join.
#pragma once

#include <memory>
#include <vector>

#include "coulomb/rollout/rollout.hpp"

namespace coulomb {

class Replay {
 public:
  /// records: how many steps can be looked at together.
  Replay(const Rollout& rollout, int records);

  /// Goes to step t, a multiple of checkpoints.every().
  void seek(int t);
  /// Runs the next step into record `slot`. Throws std::logic_error if it does not end where the rollout did, bit for
  /// bit.
  void step(int slot);
  /// The derivative of the step in that record, by the gradient that the simulator was asked for; valid until the next call. Throws std::logic_error if its numbers
  /// overflowed: it has none.
  StepGradient& linearize(int slot);
  StepRecord& record(int slot) { return slots_[slot]->record; }
  bool ambiguous() const { return gradient_->ambiguous(); }

 private:
  bool recall(StepRecord& record);

  const Rollout& rollout_;
  StepMemory memory_;  // after the step run last
  ConstraintSolver solver_;
  struct Slot {
    explicit Slot(const Model& model) : record(model) {}
    StepRecord record;
    std::unique_ptr<StepMemory> memory;  // after the step, where the gradient asks for it
    int t = 0;
    bool overflowed = false;
  };
  std::vector<std::unique_ptr<Slot>> slots_;
  std::unique_ptr<StepGradient> gradient_;
  int t_ = 0;
};

}  // namespace coulomb
