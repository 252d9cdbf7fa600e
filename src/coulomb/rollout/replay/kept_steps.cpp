#include "coulomb/rollout/replay/kept_steps.hpp"

#include <algorithm>

#include "coulomb/stepping/step_options.hpp"
#include "coulomb/stepping/stepper.hpp"

namespace coulomb {
namespace {

/// Small: large chunks fragment the heap of a long process.
constexpr std::size_t chunk_size = std::size_t(1) << 15;

}  // namespace

std::byte* KeptSteps::room(std::size_t bytes) {
  if (chunks_.empty() || chunks_.back().size - chunks_.back().used < bytes) {
    const std::size_t size = std::max(bytes, chunk_size);
    chunks_.push_back({std::shared_ptr<std::byte[]>(new std::byte[size]), size, 0});
  }

  Chunk& chunk = chunks_.back();
  std::byte* out = chunk.begin.get() + chunk.used;
  chunk.used += bytes;
  return out;
}

void KeptSteps::add(const Simulator& simulator) {
  const Stepper& stepper = *simulator.resolved_options().stepper;
  const StepRecord& record = simulator.record();

  // Of a step that overflowed, or that cannot be kept, there is only the place.
  Step step;
  if (simulator.differentiable()) {
    step.bytes = stepper.kept_bytes(record);
  }
  if (step.bytes > 0) {
    std::byte* to = room(step.bytes);
    stepper.keep(record, to);
    step.begin = to;
  }
  steps_.push_back(step);
  bytes_ += sizeof step + step.bytes;
}

void KeptSteps::drop_last() {
  // Memory is given back in the order opposite to that in which it was taken.
  const Step step = steps_.back();
  steps_.pop_back();
  bytes_ -= sizeof step + step.bytes;
  if (!step.begin) return;
  chunks_.back().used -= step.bytes;
  if (chunks_.back().used == 0) {
    chunks_.pop_back();
  }
}

bool KeptSteps::hold(int begin, int end) const {
  if (std::size_t(end) > steps_.size()) return false;
  return std::all_of(steps_.begin() + begin, steps_.begin() + end,
                     [](const Step& step) { return step.begin != nullptr; });
}

const std::byte* KeptSteps::step(int t) const { return std::size_t(t) < steps_.size() ? steps_[t].begin : nullptr; }

StepKeeper::StepKeeper(Simulator& simulator, bool keep)
    : simulator_(simulator),
      keeps_(keep && simulator.resolved_options().stepper->keeps_steps(simulator.resolved_options())) {
  simulator.keep_steps(keeps_);
}

StepKeeper::~StepKeeper() { simulator_.keep_steps(false); }

void StepKeeper::stop() {
  keeps_ = false;
  simulator_.keep_steps(false);
}

}  // namespace coulomb
