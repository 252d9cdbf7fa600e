// The derivative of a step by named parameters: forward columns and the reverse product from the same sparse right-hand sides
// (parameters/right_hand_side.hpp).
//
//   dv+ = P r - W^T B s,   dq+ = h (d(+)/dw) dv+ + dh (d(+)/dw) v+            gradient = y . r + z . s + dh dq+ . (d(+)/dw) v+
#include <algorithm>

#include "coulomb/dense_kernels.hpp"
#include "coulomb/model/configuration.hpp"
#include "coulomb/stepping/step_average.hpp"
#include "coulomb/stepping/step_linearization.hpp"

namespace coulomb {

ParameterContext StepLinearization::parameter_context() const {
  const StepRecord& r = *record_;
  return {*model_,
          r.dynamics,
          options_->constraints,
          r.rows,
          r.collision.contacts,
          rows_,
          inactive_,
          {r.twist_next.data(), rate_next_.data(), r.twist.data(), r.dynamics.column_rate.data()},
          r.dynamics.body_twist.data(),
          body_twist_.data(),
          r.configuration(),
          r.v.data(),
          r.u.data(),
          r.v_next.data(),
          r.acceleration.data(),
          r.solution.lambda.data(),
          r.fext,
          r.solution.modes,
          r.joint_forces,
          nullptr,
          r.solution.facets.data()};
}

void StepLinearization::parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) {
  jacobian();  // P and W
  if (use_average_) return average_->parameter_columns(set, columns_T);
  const StepRecord& record = *record_;
  const int nv = model_->nv, ld = record.dynamics.ld, n = record.rows.num_rows, m = problem_.reduced_size(),
            count = set.size();
  const int width = padded(count);
  columns_T.assign(std::size_t(2) * nv * count, 0.0);
  parameter_r_.assign(std::size_t(count) * ld, 0.0);
  parameter_s_.assign(std::size_t(n) * width, 0.0);
  parameter_p_.assign(std::size_t(count) * n, 0.0);
  std::vector<double> dh(count, 0.0);
  const ParameterContext context = parameter_context();
  for (const ParameterSet::Item& item : set.items()) {
    if (static_cast<int>(sides_.size()) < item.element.size) sides_.resize(item.element.size);
    for (int k = 0; k < item.element.size; ++k) sides_[k].clear();
    item.kind->right_hand_sides(context, item.element, sides_.data());
    for (int k = 0; k < item.element.size; ++k) {
      const int column = item.first + k;
      expand(context, sides_[k], parameter_r_.data() + std::size_t(column) * ld, parameter_s_.data() + column, width);
      dh[column] = sides_[k].timestep;
      for (const auto& p : sides_[k].impulses) parameter_p_[std::size_t(column) * n + p.index] += p.value;
    }
  }
  std::vector<double> dv_T(std::size_t(count) * ld);
  multiply(Product::set, rows_of(parameter_r_.data(), count, nv, ld), P_T_.data(), dv_T.data(), ld, ld, product_);
  if (m > 0) {
    parameter_Bs_.resize(std::size_t(m) * width);
    problem_.reduced_rows(parameter_s_.data(), parameter_Bs_.data(), width, width);
    multiply(Product::subtract, transposed(parameter_Bs_.data(), count, m, width), W_.data(), dv_T.data(), ld, ld,
             product_);
  }
  const double h = options_->constraints.timestep;
  for (int d = 0; d < nv; ++d) w_[d] = h * record.v_next[d];
  for (int k = 0; k < count; ++k)
    for (int d = 0; d < nv; ++d) {
      columns_T[std::size_t(2) * nv * k + d] = h * dv_T[std::size_t(k) * ld + d] + dh[k] * record.v_next[d];
      columns_T[std::size_t(2) * nv * k + nv + d] = dv_T[std::size_t(k) * ld + d];
    }
  times_integrate_jacobian(*model_, w_.data(), IntegrateArgument::w, true, columns_T.data(), 2 * nv, count);
}

void StepLinearization::parameter_gradient(const ParameterSet& set, const double* dq1, const double* y, const double* z,
                                           std::vector<double>& out) {
  const ParameterContext context = parameter_context();
  std::vector<double> twist(8 * model_->nv + 8), moved(dq1, dq1 + model_->nv);
  link_twists(*model_, record_->dynamics, y, twist.data());
  out.assign(set.size(), 0.0);
  for (const ParameterSet::Item& item : set.items()) {
    if (static_cast<int>(sides_.size()) < item.element.size) sides_.resize(item.element.size);
    for (int k = 0; k < item.element.size; ++k) sides_[k].clear();
    item.kind->right_hand_sides(context, item.element, sides_.data());
    for (int k = 0; k < item.element.size; ++k) {
      double value = project(context, sides_[k], y, twist.data(), z);
      if (sides_[k].timestep != 0) {
        for (int d = 0; d < model_->nv; ++d) w_[d] = options_->constraints.timestep * record_->v_next[d];
        std::copy_n(dq1, model_->nv, moved.begin());
        integrate_jacobian_times(*model_, w_.data(), IntegrateArgument::w, true, moved.data(), 1, 1);
        for (int d = 0; d < model_->nv; ++d) value += sides_[k].timestep * moved[d] * record_->v_next[d];
      }
      out[item.first + k] = value;
    }
  }
}

}  // namespace coulomb
