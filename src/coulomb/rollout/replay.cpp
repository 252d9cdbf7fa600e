#include "coulomb/rollout/replay.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

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
  slots_[slot]->overflowed = !take_step(model, rollout_.step_options, solver_, memory_, r);
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
  gradient_->prepare(*rollout_.model, rollout_.step_options, r,
                     slots_[slot]->memory ? *slots_[slot]->memory : memory_);
  return *gradient_;
}

void Replay::vjp(int slot, const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet& set) {
  linearize(slot).vjp(dq1, dv1, out, &set);
}

}  // namespace coulomb
