// KeptSteps: what a rollout keeps of its steps for the backward sweep, the first ones, as many as there is room for: bytes that the stepper
// writes and reads (stepping/stepper.hpp).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "coulomb/simulator.hpp"

namespace coulomb {

/// Filled by one thread, then constant.
class KeptSteps {
 public:
  /// The last step of the simulator, behind those that are here.
  void add(const Simulator& simulator);
  void drop_last();

  int count() const { return static_cast<int>(steps_.size()); }
  std::size_t bytes() const { return bytes_; }
  /// Can all the steps of [begin, end) be recalled by what is kept of them?
  bool hold(int begin, int end) const;
  /// Null: it is not kept.
  const std::byte* step(int t) const;

 private:
  /// Memory for steps, one behind the other; copies share it.
  struct Chunk {
    std::shared_ptr<std::byte[]> begin;
    std::size_t size = 0;
    std::size_t used = 0;
  };
  struct Step {
    const std::byte* begin = nullptr;
    std::size_t bytes = 0;
  };
  std::byte* room(std::size_t bytes);

  std::vector<Step> steps_;
  std::vector<Chunk> chunks_;
  std::size_t bytes_ = 0;  // in use: the end of the last chunk was never touched
};

/// Fills KeptSteps as a simulator takes steps, which know of it as long as this lives.
class StepKeeper {
 public:
  StepKeeper(Simulator& simulator, bool keep);
  ~StepKeeper();
  StepKeeper(const StepKeeper&) = delete;
  StepKeeper& operator=(const StepKeeper&) = delete;

  /// Keeps the last step, then gives back the latest until everything fits(); from then on nothing more is kept.
  template <class Fits>
  void take(KeptSteps& kept, Fits&& fits) {
    if (keeps_) kept.add(simulator_);
    while (kept.count() > 0 && !fits()) {
      kept.drop_last();
      stop();
    }
  }

 private:
  void stop();

  Simulator& simulator_;
  bool keeps_;
};

}  // namespace coulomb
