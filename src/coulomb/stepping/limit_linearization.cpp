#include "coulomb/stepping/limit_linearization.hpp"

#include <algorithm>

namespace coulomb {
namespace {

constexpr int num_levels = 4;
constexpr double compliance[num_levels] = {2e-5, 4e-5, 8e-5, 16e-5};
constexpr double weight[num_levels] = {64.0 / 21, -8.0 / 3, 2.0 / 3, -1.0 / 21};   // of a cubic through them, at zero

void add(double a, const std::vector<double>& x, std::vector<double>& y) {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] += a * x[i];
}

}  // namespace

LimitLinearization::LimitLinearization(const Model& model) : levels_(num_levels, Level(model)) {}

bool LimitLinearization::prepare(const Model& model, const StepOptions& options, const StepRecord& record) {
  for (int i = 0; i < num_levels; ++i) {
    StepRecord& r = levels_[i].record;
    r = record;
    if (!solver_.solve_compliant(r.problem, compliance[i], r.solution) || r.solution.modes != record.solution.modes) return false;
    advance(model, options.constraints.timestep, r);
    levels_[i].linearization.prepare(model, options, r);
  }
  return true;
}

void LimitLinearization::jacobian(StepDerivatives& out) {
  for (auto* v : {&out.A_T, &out.B_T, &out.B_tau_T}) std::fill(v->begin(), v->end(), 0.0);
  for (int i = 0; i < num_levels; ++i) {
    const StepDerivatives& J = levels_[i].linearization.jacobian();
    add(weight[i], J.A_T, out.A_T), add(weight[i], J.B_T, out.B_T), add(weight[i], J.B_tau_T, out.B_tau_T);
  }
}

void LimitLinearization::parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) {
  for (int i = 0; i < num_levels; ++i) {
    levels_[i].linearization.parameter_columns(set, columns_T_);
    if (i == 0) columns_T.assign(columns_T_.size(), 0.0);
    add(weight[i], columns_T_, columns_T);
  }
}

}  // namespace coulomb
