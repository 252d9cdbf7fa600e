#include "coulomb/rollout/replay/kept_steps.hpp"

#include <algorithm>

#include "coulomb/stepping/implicit/implicit_step.hpp"
#include "coulomb/stepping/semi_implicit/kept_step.hpp"
#include "coulomb/stepping/steppers.hpp"

namespace coulomb {
namespace {

/// Bytes of one stage and of the pointer to it.
std::size_t size_of(const std::shared_ptr<const KeptStage>& stage) {
  return sizeof stage + (stage ? stage->bytes() : 0);
}

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
  // An implicit step is its stage.
  if (is_implicit(simulator.resolved_options())) {
    stages_.push_back(kept_stage(simulator.record()));
    bytes_ += size_of(stages_.back());
    return;
  }

  // Another one its contacts and impulses; of a step that overflowed only the place is kept.
  Step step;
  if (simulator.differentiable()) {
    step.bytes = kept_step_bytes(simulator.record());
    std::byte* to = room(step.bytes);
    keep_step(simulator.record(), to);
    step.begin = to;
  }
  steps_.push_back(step);
  bytes_ += sizeof step + step.bytes;
}

void KeptSteps::drop_last() {
  if (!stages_.empty()) {
    bytes_ -= size_of(stages_.back());
    stages_.pop_back();
    return;
  }

  // Memory is given back in the order opposite to that in which it was taken.
  const Step step = steps_.back();
  steps_.pop_back();
  bytes_ -= sizeof step + step.bytes;
  if (!step.begin) return;
  chunks_.back().used -= step.bytes;
  if (chunks_.back().used == 0) chunks_.pop_back();
}

bool KeptSteps::hold(int begin, int end) const {
  if (std::size_t(end) > steps_.size()) return false;
  return std::all_of(steps_.begin() + begin, steps_.begin() + end,
                     [](const Step& step) { return step.begin != nullptr; });
}

std::shared_ptr<const KeptStage> KeptSteps::stage(int t) const {
  return std::size_t(t) < stages_.size() ? stages_[t] : nullptr;
}

StepKeeper::StepKeeper(Simulator& simulator, bool keep)
    : simulator_(simulator),
      keeps_(keep && (is_implicit(simulator.resolved_options()) || can_recall(simulator.resolved_options()))) {
  // Implicit steps have factors, others are recalled from less.
  simulator.keep_factors(keeps_ && is_implicit(simulator.resolved_options()));
}

StepKeeper::~StepKeeper() { simulator_.keep_factors(false); }

void StepKeeper::stop() {
  keeps_ = false;
  simulator_.keep_factors(false);
}

}  // namespace coulomb
