#include "coulomb/stepping/step_average.hpp"

#include <algorithm>
#include <stdexcept>

#include "coulomb/model/configuration.hpp"
#include "coulomb/random.hpp"
#include "coulomb/stepping/semi_implicit.hpp"

namespace coulomb {
namespace {

constexpr int num_compliances = 4;
constexpr double compliance[num_compliances] = {2e-5, 4e-5, 8e-5, 16e-5};
constexpr double to_zero[num_compliances] = {64.0 / 21, -8.0 / 3, 2.0 / 3, -1.0 / 21};  // of a cubic through them

void add(double a, const std::vector<double>& x, std::vector<double>& y) {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] += a * x[i];
}

}  // namespace

void StepAverage::reserve(const Model& model, int levels) {
  while (static_cast<int>(levels_.size()) < levels) levels_.emplace_back(model);
}

bool StepAverage::prepare_limit(const Model& model, const StepOptions& options, const StepRecord& record,
                                const std::vector<int>& islands) {
  reserve(model, num_compliances);
  used_ = num_compliances;
  for (int i = 0; i < num_compliances; ++i) {
    StepRecord& r = levels_[i].record;
    r = record;
    for (int index : islands) {
      Island& island = r.islands.pool[index];
      island.factor.valid = false;
      if (!solver_.solve_compliant(island.problem, compliance[i], island.solution)) return false;
      island.solution.lambda_0.clear();
    }
    r.islands.gather_solution(r.rows, r.solution);
    if (r.solution.modes != record.solution.modes || r.solution.facets != record.solution.facets) return false;
    advance(model, options.constraints.timestep, r);
    levels_[i].linearization.prepare_exact(model, options, r);
    levels_[i].weight = to_zero[i];
  }
  return true;
}

bool StepAverage::prepare_samples(const Model& model, const StepOptions& options, const StepRecord& record,
                                  const StepMemory& memory) {
  reserve(model, options.gradient.samples);
  StepOptions sampled = options;
  sampled.collision.frozen_cache = true;
  StepMemory copy = memory;
  NormalNumbers normal(options.gradient.seed);
  std::vector<double> shift(model.nv);
  used_ = 0;
  for (int s = 0; s < options.gradient.samples; ++s) {
    StepRecord& r = levels_[used_].record;
    for (double& x : shift) x = options.gradient.scale * normal();
    integrate(model, record.q.data(), shift.data(), r.q.data());
    for (int d = 0; d < model.nv; ++d) r.v[d] = record.v[d] + options.gradient.scale * normal();
    r.u = record.u, r.tau = record.tau, r.fext = record.fext;
    semi_implicit_step(model, sampled, solver_, copy, r);
    if (!r.valid || r.solution.status == SolveStatus::failed) continue;
    levels_[used_++].linearization.prepare_exact(model, options, r);
  }
  for (int s = 0; s < used_; ++s) levels_[s].weight = 1.0 / used_;
  return used_ > 0;
}

void StepAverage::jacobian(StepDerivatives& out) {
  for (auto* v : {&out.A_T, &out.B_T, &out.B_tau_T}) std::fill(v->begin(), v->end(), 0.0);
  for (int i = 0; i < used_; ++i) {
    const StepDerivatives& J = levels_[i].linearization.jacobian();
    const double w = levels_[i].weight;
    add(w, J.A_T, out.A_T), add(w, J.B_T, out.B_T), add(w, J.B_tau_T, out.B_tau_T);
  }
}

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
