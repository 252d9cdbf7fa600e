#include "coulomb/stepping/gradients/step_average.hpp"

#include <algorithm>
#include <stdexcept>

#include "coulomb/base/random.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/stepping/semi_implicit/semi_implicit.hpp"

namespace coulomb {
namespace {

/// y += a x.
void add(double a, const std::vector<double>& x, std::vector<double>& y) {
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] += a * x[i];
}

}  // namespace

/// Storage stays.
void StepAverage::reserve(const Model& model, int levels) {
  while (int(levels_.size()) < levels)
    levels_.emplace_back(model);
}

bool StepAverage::prepare_samples(const Model& model, const StepOptions& options, const StepRecord& record,
                                  const StepMemory& memory) {
  reserve(model, options.gradient.samples);

  // Samples start from the same memory and leave none.
  StepOptions sampled = options;
  sampled.collision.frozen_cache = true;
  StepMemory copy = memory;
  NormalNumbers normal(options.gradient.seed);
  std::vector<double> shift(model.nv);
  used_ = 0;

  // Steps from states nearby, with the same inputs; those that fail are left out.
  for (int s = 0; s < options.gradient.samples; ++s) {
    StepRecord& r = levels_[used_].record;
    for (double& x : shift)
      x = options.gradient.scale * normal();
    integrate(model, record.q.data(), shift.data(), r.q.data());
    for (int d = 0; d < model.nv; ++d)
      r.v[d] = record.v[d] + options.gradient.scale * normal();
    r.u = record.u;
    r.tau = record.tau;
    r.fext = record.fext;
    semi_implicit_step(model, sampled, solver_, copy, r);
    if (!r.valid || r.solution.status == SolveStatus::failed) continue;
    levels_[used_++].linearization.prepare_exact(model, options, r);
  }

  // The mean of those that are left.
  for (int s = 0; s < used_; ++s)
    levels_[s].weight = 1.0 / used_;
  return used_ > 0;
}

/// The weighted sum of the samples' matrices.
void StepAverage::jacobian(StepDerivatives& out) {
  for (auto* v : {&out.A_T, &out.B_T, &out.B_tau_T})
    std::fill(v->begin(), v->end(), 0.0);
  for (int i = 0; i < used_; ++i) {
    const StepDerivatives& J = levels_[i].linearization.jacobian();
    const double w = levels_[i].weight;
    add(w, J.A_T, out.A_T);
    add(w, J.B_T, out.B_T);
    add(w, J.B_tau_T, out.B_tau_T);
  }
}

/// columns(linearization, out) of every sample, weighted.
template <class Columns>
void StepAverage::accumulate(std::vector<double>& out, Columns columns) {
  for (int i = 0; i < used_; ++i) {
    columns(levels_[i].linearization, columns_T_);
    if (i == 0) out.assign(columns_T_.size(), 0.0);
    if (columns_T_.size() != out.size()) throw std::logic_error("dlambda: the contacts of the averaged steps differ");
    add(levels_[i].weight, columns_T_, out);
  }
}

void StepAverage::parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) {
  accumulate(columns_T, [&](StepLinearization& l, std::vector<double>& out) { l.parameter_columns(set, out); });
}

void StepAverage::impulse_columns(StepInput input, std::vector<double>& out_T) {
  accumulate(out_T, [&](StepLinearization& l, std::vector<double>& out) { l.impulse_columns(input, out); });
}

void StepAverage::impulse_columns(const ParameterSet& set, std::vector<double>& out_T) {
  accumulate(out_T, [&](StepLinearization& l, std::vector<double>& out) { l.impulse_columns(set, out); });
}

}  // namespace coulomb
