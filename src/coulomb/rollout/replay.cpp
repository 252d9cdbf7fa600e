#include "coulomb/rollout/replay.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "coulomb/stepping/implicit_step.hpp"

namespace coulomb {
namespace {

constexpr double differentiable_size = 1e150;  // beyond, the squares in derivatives are not finite

}  // namespace

Replay::Replay(const Rollout& rollout, int records)
    : rollout_(rollout), memory_(*rollout.model), slots_(records),
      gradient_(make_step_gradient(*rollout.model, rollout.step_options)) {}

void Replay::seek(int t) {
  t_ = t;
  rollout_.checkpoints.restore(t, memory_);
  for (auto* x : {&memory_.previous_q, &memory_.previous_v, &memory_.last_q, &memory_.last_v}) x->clear();
  if (t == 0 || !rollout_.checkpoints.had_states(t)) return;
  const auto nq = std::size_t(rollout_.model->nq), nv = std::size_t(rollout_.model->nv), last = std::size_t(t);
  const auto take = [](const std::vector<double>& rows, std::size_t row, std::size_t width, std::vector<double>& to) {
    to.assign(rows.begin() + row * width, rows.begin() + (row + 1) * width);
  };
  take(rollout_.q, last - 1, nq, memory_.previous_q), take(rollout_.v, last - 1, nv, memory_.previous_v);
  take(rollout_.q, last, nq, memory_.last_q), take(rollout_.v, last, nv, memory_.last_v);
}

// An implicit step of one stage is known by its ends: what its derivative needs is evaluated there, nothing is solved.
bool Replay::recall(StepRecord& r) {
  const StepOptions& options = rollout_.step_options;
  if (!is_implicit(options)) return false;
  const auto nq = std::size_t(rollout_.model->nq), nv = std::size_t(rollout_.model->nv), next = std::size_t(t_) + 1;
  std::copy_n(&rollout_.q[next * nq], nq, r.q_next.begin());
  std::copy_n(&rollout_.v[next * nv], nv, r.v_next.begin());
  const bool kept = std::size_t(t_) < rollout_.kept.stages.size();
  return recall_implicit_step(*rollout_.model, options, memory_, kept ? rollout_.kept.stages[t_] : nullptr, r);
}

void Replay::step(int slot) {
  const Model& model = *rollout_.model;
  const auto nq = std::size_t(model.nq), nv = std::size_t(model.nv), nu = std::size_t(model.nu), t = std::size_t(t_);
  if (!slots_[slot]) slots_[slot] = std::make_unique<Slot>(model);
  StepRecord& r = slots_[slot]->record;
  std::copy_n(&rollout_.q[t * nq], nq, r.q.begin());
  std::copy_n(&rollout_.v[t * nv], nv, r.v.begin());
  if (!rollout_.u.empty()) std::copy_n(&rollout_.u[t * nu], nu, r.u.begin());
  if (!rollout_.tau.empty()) std::copy_n(&rollout_.tau[t * nv], nv, r.tau.begin());
  slots_[slot]->t = t_;
  slots_[slot]->overflowed = !recall(r) && !take_step(model, rollout_.step_options, solver_, memory_, r);
  if (std::memcmp(r.q_next.data(), &rollout_.q[(t + 1) * nq], nq * sizeof(double)) != 0 ||
      std::memcmp(r.v_next.data(), &rollout_.v[(t + 1) * nv], nv * sizeof(double)) != 0)
    throw std::logic_error("rollout: step " + std::to_string(t_) +
                           " run again gives other bits than it did; a defect of the library");
  if (rollout_.step_options.gradient.mode == GradientMode::smoothed_step)
    slots_[slot]->memory = std::make_unique<StepMemory>(memory_);
  ++t_;
}

StepGradient& Replay::linearize(int slot) {
  StepRecord& r = slots_[slot]->record;
  const auto small = [](double x) { return std::abs(x) < differentiable_size; };
  bool differentiable = !slots_[slot]->overflowed;
  for (const auto* x : {&r.q, &r.v, &r.v_next}) differentiable &= std::all_of(x->begin(), x->end(), small);
  if (!differentiable)
    throw std::logic_error("derivatives: the numbers of step " + std::to_string(slots_[slot]->t) +
                           " exceed double precision, it has none");
  gradient_->prepare(*rollout_.model, rollout_.step_options, r, slots_[slot]->memory ? *slots_[slot]->memory : memory_);
  return *gradient_;
}

}  // namespace coulomb
