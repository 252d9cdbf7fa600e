#include "coulomb/rollout/kept_steps.hpp"

#include <algorithm>

#include "coulomb/stepping/implicit_step.hpp"
#include "coulomb/stepping/steppers.hpp"

namespace coulomb {
namespace {

std::size_t size_of(const std::shared_ptr<const KeptStage>& stage) {
  return sizeof stage + (stage ? stage->bytes() : 0);
}

std::size_t size_of(const KeptStep& step) { return sizeof step + step.bytes(); }

}  // namespace

void KeptSteps::add(const Simulator& simulator) {
  if (is_implicit(simulator.resolved_options())) {
    stages_.push_back(kept_stage(simulator.record()));
    bytes_ += size_of(stages_.back());
  } else {
    steps_.push_back(simulator.differentiable() ? KeptStep(simulator.record()) : KeptStep());
    bytes_ += size_of(steps_.back());
  }
}

void KeptSteps::drop_last() {
  if (!stages_.empty()) {
    bytes_ -= size_of(stages_.back());
    stages_.pop_back();
  } else {
    bytes_ -= size_of(steps_.back());
    steps_.pop_back();
  }
}

bool KeptSteps::hold(int begin, int end) const {
  if (static_cast<std::size_t>(end) > steps_.size()) return false;
  return std::all_of(steps_.begin() + begin, steps_.begin() + end, [](const KeptStep& step) { return bool(step); });
}

std::shared_ptr<const KeptStage> KeptSteps::stage(int t) const {
  return static_cast<std::size_t>(t) < stages_.size() ? stages_[static_cast<std::size_t>(t)] : nullptr;
}

StepKeeper::StepKeeper(Simulator& simulator, bool keep)
    : simulator_(simulator),
      keeps_(keep && (is_implicit(simulator.resolved_options()) || can_recall(simulator.resolved_options()))) {
  simulator.keep_factors(keeps_ && is_implicit(simulator.resolved_options()));
}

StepKeeper::~StepKeeper() { simulator_.keep_factors(false); }

void StepKeeper::stop() {
  keeps_ = false;
  simulator_.keep_factors(false);
}

}  // namespace coulomb
