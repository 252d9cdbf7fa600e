#include "coulomb/stepping/gradients/step_average.hpp"

#include <algorithm>
#include <stdexcept>

#include "coulomb/base/random.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/stepping/step_options.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "coulomb/stepping/stepper.hpp"

namespace coulomb {
namespace {

/// y += a x.
void add(double a, const std::vector<double>& x, std::vector<double>& y) {
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] += a * x[i];
}

}  // namespace

/// Storage stays.
void AverageGradient::reserve(int samples) {
  if (!workspace_) workspace_ = std::make_unique<StepWorkspace>(*model_);
  while (int(samples_.size()) < samples)
    samples_.push_back({StepRecord(*model_), make_(*model_)});
}

void AverageGradient::prepare(const Model& model, const StepOptions& options, StepRecord& record,
                              const StepMemory& memory) {
  model_ = &model;
  have_jacobian_ = false;
  exact_->prepare(model, options, record, memory);
  take_samples(options, record, memory);
}

/// Steps from states nearby, with the same inputs; those that fail are left out.
void AverageGradient::take_samples(const StepOptions& options, const StepRecord& record, const StepMemory& memory) {
  const Model& model = *model_;
  const GradientOptions& wanted = options.gradient;
  reserve(wanted.samples);

  // Samples start from the same memory and leave none.
  StepOptions sampled = options;
  sampled.collision.frozen_cache = true;
  StepMemory copy = memory;
  NormalNumbers normal(wanted.seed);
  std::vector<double> shift(model.nv);
  used_ = 0;

  for (int s = 0; s < wanted.samples; ++s) {
    StepRecord& r = samples_[used_].record;
    for (double& x : shift)
      x = wanted.scale * normal();
    integrate(model, record.q.data(), shift.data(), r.q.data());
    for (int d = 0; d < model.nv; ++d)
      r.v[d] = record.v[d] + wanted.scale * normal();
    r.u = record.u;
    r.tau = record.tau;
    r.fext = record.fext;

    options.stepper->step(model, sampled, *workspace_, copy, r);
    if (!r.valid || r.solution.status == SolveStatus::failed) continue;
    samples_[used_++].gradient->prepare(model, options, r, copy);
  }
}

/// The mean of the samples' matrices.
const StepDerivatives& AverageGradient::jacobian() {
  if (have_jacobian_) return *derivatives_;
  have_jacobian_ = true;
  if (used_ == 0) {
    derivatives_ = exact_->shared_jacobian();
    derivatives_->ambiguous = true;
    return *derivatives_;
  }

  StepDerivatives& out = writable_derivatives(*model_);
  out.ambiguous = false;
  for (auto* v : {&out.A_T, &out.B_T, &out.B_tau_T})
    std::fill(v->begin(), v->end(), 0.0);
  for (int i = 0; i < used_; ++i) {
    const StepDerivatives& J = samples_[i].gradient->jacobian();
    add(weight(), J.A_T, out.A_T);
    add(weight(), J.B_T, out.B_T);
    add(weight(), J.B_tau_T, out.B_tau_T);
  }
  return out;
}

/// columns(gradient, out) of every sample, weighted.
template <class Columns>
void AverageGradient::accumulate(std::vector<double>& out, Columns columns) {
  if (used_ == 0) return columns(*exact_, out);
  for (int i = 0; i < used_; ++i) {
    columns(*samples_[i].gradient, columns_T_);
    if (i == 0) {
      out.assign(columns_T_.size(), 0.0);
    }
    if (columns_T_.size() != out.size()) {
      throw std::logic_error("dlambda: the contacts of the averaged steps differ");
    }
    add(weight(), columns_T_, out);
  }
}

void AverageGradient::parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) {
  accumulate(columns_T, [&](StepGradient& g, std::vector<double>& out) { g.parameter_columns(set, out); });
}

void AverageGradient::impulse_columns(StepInput input, std::vector<double>& out_T) {
  accumulate(out_T, [&](StepGradient& g, std::vector<double>& out) { g.impulse_columns(input, out); });
}

void AverageGradient::impulse_columns(const ParameterSet& set, std::vector<double>& out_T) {
  accumulate(out_T, [&](StepGradient& g, std::vector<double>& out) { g.impulse_columns(set, out); });
}

void AverageGradient::vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set) {
  if (used_ == 0) return exact_->vjp(dq1, dv1, out, set);
  vjp_from_jacobian(dq1, dv1, out, set);
  out.fext.clear();
  if (out.wants_fext) {
    add_fext_cotangent(out.tau.data(), out.fext);
  }
}

void AverageGradient::add_fext_cotangent(const double* tau_bar, std::vector<double>& fext) {
  if (used_ == 0) return exact_->add_fext_cotangent(tau_bar, fext);
  throw std::logic_error("fext: gradient='smoothed_step' has no derivative with respect to fext; use gradient='exact'");
}

}  // namespace coulomb
