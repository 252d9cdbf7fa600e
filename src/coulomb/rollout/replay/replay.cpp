#include "coulomb/rollout/replay/replay.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "coulomb/rollout/rollout_parts.hpp"
#include "coulomb/rollout/rows.hpp"
#include "coulomb/stepping/stepper.hpp"

namespace coulomb {
namespace {

constexpr double differentiable_size = 1e150;  // beyond, the squares in derivatives are not finite
constexpr std::size_t most_slots = 16;         // whose records wait for the next sweep

bool same_bits(const std::vector<double>& a, const double* b) {
  return std::memcmp(a.data(), b, a.size() * sizeof(double)) == 0;
}

}  // namespace

ReplayWorkspace::ReplayWorkspace(const Rollout& rollout)
    : model(rollout.model),
      gradient(rollout.parts->step_options.stepper->make_gradient(*model, rollout.parts->step_options)), memory(*model),
      workspace(*model) {}

std::unique_ptr<ReplayWorkspace> ReplayWorkspaces::take(const Rollout& rollout) {
  std::unique_ptr<ReplayWorkspace> out;
  {
    const std::lock_guard lock(mutex_);
    if (!waiting_.empty()) {
      out = std::move(waiting_.back());
      waiting_.pop_back();
    }
  }

  // One of another model would not do: records hold what collisions know of their model.
  if (out && out->model == rollout.model) return out;
  return std::make_unique<ReplayWorkspace>(rollout);
}

void ReplayWorkspaces::give_back(std::unique_ptr<ReplayWorkspace> workspace) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(workspace));
}

Replay::Replay(const Rollout& rollout, int records)
    : rollout_(rollout), workspace_(rollout.parts->workspaces->take(rollout)) {
  if (workspace_->slots.size() < std::size_t(records)) {
    workspace_->slots.resize(records);
  }
}

Replay::~Replay() {
  if (workspace_->slots.size() > most_slots) {
    workspace_->slots.resize(most_slots);
  }
  rollout_.parts->workspaces->give_back(std::move(workspace_));
}

/// The model in step t: its mocap bodies are where that step had them, until another step is asked for.
const Model& Replay::model_of(int t) {
  return workspace_->mocap_model.at(rollout_.model, mocap_in_step(rollout_, std::size_t(t)));
}

void Replay::seek(int t) {
  t_ = t;
  memory_is_current_ = false;
}

/// From one checkpoint to the next, steps are either all recalled or all run.
void Replay::begin_stretch() {
  recalls_ = rollout_.parts->kept.hold(t_, std::min(t_ + rollout_.parts->checkpoints.every(), rollout_.steps));
  if (recalls_)
    memory_is_current_ = false;
  else if (!memory_is_current_)
    restore_memory();
}

/// The simulator's memory before step t, from its checkpoint and the trajectory.
void Replay::restore_memory() {
  StepMemory& memory = workspace_->memory;
  memory_is_current_ = true;
  memory.forget_states();
  rollout_.parts->checkpoints.restore(t_, memory);

  // A method of two steps remembers the state before, too.
  if (t_ == 0 || !rollout_.parts->checkpoints.had_states(t_)) return;
  const StepSizes s(*rollout_.model);
  const auto take = [](const std::vector<double>& rows, std::size_t row, std::size_t width, std::vector<double>& to) {
    to.assign(rows.begin() + row * width, rows.begin() + (row + 1) * width);
  };
  const auto last = std::size_t(t_);
  take(rollout_.q, last - 1, s.nq, memory.previous_q);
  take(rollout_.v, last - 1, s.nv, memory.previous_v);
  take(rollout_.q, last, s.nq, memory.last_q);
  take(rollout_.v, last, s.nv, memory.last_v);
}

/// What step t starts from.
void Replay::load(int t, StepRecord& r) const {
  const StepSizes s(*rollout_.model);
  const auto row = std::size_t(t);
  std::copy_n(&rollout_.q[row * s.nq], s.nq, r.q.begin());
  std::copy_n(&rollout_.v[row * s.nv], s.nv, r.v.begin());

  // Inputs that were not given are zero.
  const auto take = [row](const std::vector<double>& rows, std::size_t width, std::vector<double>& to) {
    if (rows.empty())
      std::fill(to.begin(), to.end(), 0.0);
    else
      std::copy_n(&rows[row * width], width, to.begin());
  };
  take(rollout_.u, s.nu, r.u);
  take(rollout_.tau, s.nv, r.tau);
  r.fext.resize(rollout_.fext.empty() ? 0 : s.fext);
  take(rollout_.fext, r.fext.size(), r.fext);
}

/// And where it ends.
void Replay::load_end(int t, StepRecord& r) const {
  const StepSizes s(*rollout_.model);
  const auto next = std::size_t(t) + 1;
  std::copy_n(&rollout_.q[next * s.nq], s.nq, r.q_next.begin());
  std::copy_n(&rollout_.v[next * s.nv], s.nv, r.v_next.begin());
}

void Replay::step(int slot) {
  if (t_ % rollout_.parts->checkpoints.every() == 0) {
    begin_stretch();
  }
  // A kept step costs nothing before it is looked at.
  Slot& s = workspace_->slots[slot];
  s.t = t_;
  s.kept = recalls_;
  if (!recalls_) run(s);
  ++t_;
}

void Replay::run(Slot& slot) {
  const Model& model = model_of(t_);
  if (!slot.record) {
    slot.record = std::make_unique<StepRecord>(model);
  }
  StepRecord& r = *slot.record;
  load(t_, r);
  load_end(t_, r);

  // The step once more, without a solve where it can be.
  const StepOptions& options = rollout_.parts->step_options;
  slot.overflowed = !options.stepper->step_again(model, options, workspace_->workspace, workspace_->memory,
                                                 rollout_.parts->kept.step(t_), r);

  // Derivatives of another trajectory than the one that was returned would be silently wrong.
  const StepSizes s(model);
  const auto next = std::size_t(t_) + 1;
  const bool same_q = same_bits(r.q_next, &rollout_.q[next * s.nq]);
  const bool same_v = same_bits(r.v_next, &rollout_.v[next * s.nv]);
  if (!same_q || !same_v)
    throw std::logic_error("rollout: step " + std::to_string(t_) +
                           " run again gives other bits than it did; a defect of the library");

  // A gradient that takes the step again from states nearby starts from the same memory.
  if (workspace_->gradient->reads_memory()) {
    slot.memory = std::make_unique<StepMemory>(workspace_->memory);
  }
}

StepRecord& Replay::record(int slot) {
  const Slot& s = workspace_->slots[slot];
  if (!s.kept) return *s.record;

  // Of kept steps one record is enough: the last one that was asked for.
  auto& recalled = workspace_->recalled;
  if (!recalled) {
    recalled = std::make_unique<StepRecord>(*rollout_.model);
  }
  if (recalled_step_ == s.t) return *recalled;
  recalled_step_ = s.t;
  load(s.t, *recalled);
  load_end(s.t, *recalled);
  const StepOptions& options = rollout_.parts->step_options;
  options.stepper->recall(model_of(s.t), options, rollout_.parts->kept.step(s.t), *recalled);
  return *recalled;
}

StepGradient& Replay::linearize(int slot) {
  const Slot& s = workspace_->slots[slot];
  StepRecord& r = record(slot);

  // As Simulator::differentiable: a step whose numbers overflowed has no derivative.
  const auto small = [](double x) { return std::abs(x) < differentiable_size; };
  bool differentiable = s.kept || !s.overflowed;
  for (const auto* x : {&r.q, &r.v, &r.v_next})
    differentiable &= std::all_of(x->begin(), x->end(), small);
  if (!differentiable)
    throw std::logic_error("derivatives: the numbers of step " + std::to_string(s.t) +
                           " exceed double precision, so it has no derivative");

  // The gradient reads the record as long as it is used.
  workspace_->gradient->prepare(model_of(s.t), rollout_.parts->step_options, r,
                                s.memory ? *s.memory : workspace_->memory);
  return *workspace_->gradient;
}

}  // namespace coulomb
