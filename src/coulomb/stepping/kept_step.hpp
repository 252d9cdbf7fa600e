// KeptStep: what the derivative of a semi-implicit step needs and what is slow to find again: its contacts, its impulses with their modes
// and their factor, and the free velocity, on which rows depend. A rollout keeps it from the forward pass, as far as its memory budget
// goes; recall_semi_implicit_step (semi_implicit.hpp) evaluates the rest again, to the same bits.
#pragma once

#include <cstddef>
#include <memory>

#include "coulomb/stepping/step_options.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {

class KeptStep {
 public:
  KeptStep() = default;  ///< nothing
  /// Of a step that semi_implicit_step took. One block of memory, as long as it has to be.
  explicit KeptStep(const StepRecord& record);
  void restore(StepRecord& record) const;

  explicit operator bool() const { return bytes_ > 0; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<const std::byte[]> block_;  // shared by copies
  std::size_t bytes_ = 0;
};

/// Steps with these options can be recalled, and so can what their gradient needs. Not those of other steppers, nor where the gradient
/// goes back to the memory of the step or to the poses that collisions were found at.
bool can_recall(const StepOptions& options);

}  // namespace coulomb
