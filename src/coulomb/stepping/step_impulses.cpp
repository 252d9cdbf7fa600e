// The derivative of the impulses of a step (THEORY T4): dlambda = -C A^+ (B s + B J Mh^-1 r) + p, p the direct change of a law
// (friction: lambda_N n per unit of mu). Components along the rows: a contact's two tangents and normal, which move with the contact and do
// not spin about the normal. Where impulses are not unique: the limit (StepAverage) where something slides, else of least norm.
#include <algorithm>
#include <stdexcept>

#include "coulomb/dense_kernels.hpp"
#include "coulomb/stepping/step_average.hpp"
#include "coulomb/stepping/step_linearization.hpp"

namespace coulomb {

// r_T: count x ld; s: rows x width, or null. out_T: count x rows.
void StepLinearization::impulses_of(const double* r_T, const double* s, int count, int width, double* out_T) {
  const StepRecord& record = *record_;
  const int nv = model_->nv, ld = record.dynamics.ld, n = record.rows.num_rows, m = problem_.reduced_size();
  std::fill_n(out_T, std::size_t(count) * n, 0.0);
  if (m == 0) return;
  std::vector<double> x(std::size_t(m) * width, 0.0), lambda(std::size_t(n) * width);
  if (s) problem_.reduced_rows(s, x.data(), width, width);
  for (int i = 0; i < m; ++i)
    for (int k = 0; k < count; ++k) {
      const double *row = BYM_.data() + std::size_t(i) * ld, *r = r_T + std::size_t(k) * ld;
      double sum = 0;
      for (int d = 0; d < nv; ++d) sum += row[d] * r[d];
      x[std::size_t(i) * width + k] += sum;
    }
  problem_.solve_reduced(x.data(), width, width);
  problem_.expand(x.data(), lambda.data(), width, width);
  for (int k = 0; k < count; ++k)
    for (int i = 0; i < n; ++i) out_T[std::size_t(k) * n + i] = -lambda[std::size_t(i) * width + k];
}

void StepLinearization::impulse_columns(StepInput input, std::vector<double>& out_T) {
  jacobian();
  if (use_average_) return average_->impulse_columns(input, out_T);
  const Model& model = *model_;
  StepRecord& r = *record_;
  const int nv = model.nv, ld = r.dynamics.ld, n = r.rows.num_rows, count = input == StepInput::u ? model.nu : nv;
  const double h = options_->constraints.timestep;
  out_T.resize(std::size_t(count) * n);
  if (input == StepInput::q || input == StepInput::v) {
    std::vector<double> s(std::size_t(n) * ld, 0.0);
    if (input == StepInput::q)
      fill_row_columns(model, r.dynamics, r.rows, row_velocities(), r.v_next.data(), rows_, inactive_, s.data(), ld);
    for (const BodyRows& b : r.rows.body_rows)
      if (input == StepInput::v && b.restitution != 0 && !inactive_[b.block])
        bounce_row(b, s.data() + std::size_t(b.row + 2) * ld);
    return impulses_of((input == StepInput::q ? r_q_ : r_v_).data(), s.data(), nv, ld, out_T.data());
  }
  std::vector<double> r_T(std::size_t(count) * ld, 0.0);
  for (int k = 0; k < count; ++k) {
    if (input == StepInput::tau) {
      r_T[std::size_t(k) * ld + k] = h;
      continue;
    }
    const int joint = model.actuators[k].joint, first = model.joint_v[joint];
    for (int j = 0; j < joint_num_dofs(model.joint_type[joint]); ++j)
      r_T[std::size_t(k) * ld + first + j] = h * r.joint_forces.dtau_du[6 * k + j];
  }
  impulses_of(r_T.data(), nullptr, count, padded(count), out_T.data());
}

void StepLinearization::impulse_columns(const ParameterSet& set, std::vector<double>& out_T) {
  std::vector<double> columns_T;
  parameter_columns(set, columns_T);  // leaves r and s
  if (use_average_) return average_->impulse_columns(set, out_T);
  const int n = record_->rows.num_rows, count = set.size();
  out_T.resize(std::size_t(count) * n);
  impulses_of(parameter_r_.data(), parameter_s_.data(), count, padded(count), out_T.data());
  for (int k = 0; k < count; ++k)
    for (int i = 0; i < n; ++i) out_T[std::size_t(k) * n + i] += parameter_p_[std::size_t(k) * n + i];
}

}  // namespace coulomb
