// Checkpoints: what a trajectory keeps of the simulator's memory, so that any stretch of it can be run again with the
// same bits. States are stored anyway; a step depends on the state, its inputs and StepMemory, and the memory is kept
// every `every` steps.
//
// Backward, a stretch of `every` steps whose steps were not kept (kept_steps.hpp) is run once more with one record per step. Memory in
// use: T / every checkpoints and `every` records; `every` is the caller's, or starts at 1 and doubles whenever the budget would be passed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "coulomb/step_memory.hpp"

namespace coulomb {

struct StepRecord;

class Checkpoints {
 public:
  Checkpoints() = default;
  /// every > 0: kept so. every = 0: as often as `budget` bytes allow for checkpoints and records.
  Checkpoints(int every, std::size_t budget) : every_(every > 0 ? every : 1), adaptive_(every <= 0), budget_(budget) {}

  /// The memory before step t (ascending from 0). record_bytes: the size of one record, as known so far.
  void store(int t, const StepMemory& memory, std::size_t record_bytes);
  /// The memory before step t, a multiple of every().
  void restore(int t, StepMemory& memory) const;
  /// Whether that memory had the states before, for multistep methods; they are in the trajectory, not here.
  bool had_states(int t) const { return checkpoints_[t / every_].had_states; }

  int every() const { return every_; }
  std::size_t bytes() const { return bytes_; }
  /// Of the records that a backward sweep keeps at once.
  std::size_t sweep_bytes(int steps) const;
  /// Bytes that T steps need at the best spacing, going by the largest checkpoint and record so far.
  std::size_t least_bytes(int steps) const;

 private:
  /// An impulse of `size` numbers at each of three levels, which follow each other in Checkpoint::values; behind them those trees that a
  /// multistep method has forgotten (most memories have forgotten none).
  struct PackedImpulse {
    std::uint64_t key = 0;
    Mode mode = Mode::separating;
    int size = 0;
    double compliance = 0;
  };
  struct Checkpoint {
    CollisionCache collision;
    std::vector<PackedImpulse> impulses;
    std::vector<double> values;
    bool had_states = false;
    std::size_t bytes() const;
  };
  static Checkpoint pack(const StepMemory& memory);
  void thin();

  int every_ = 1;
  bool adaptive_ = true;
  std::size_t budget_ = 0;        ///< bytes for checkpoints and the records of a sweep
  std::size_t bytes_ = 0;         ///< of all checkpoints
  std::size_t largest_ = 0;       ///< bytes of the largest checkpoint
  std::size_t record_bytes_ = 0;  ///< of the largest record so far
  std::vector<Checkpoint> checkpoints_;
};

/// Bytes that a record holds: its large arrays.
std::size_t record_bytes(const StepRecord& record);

}  // namespace coulomb
