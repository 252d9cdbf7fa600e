// The reverse product with the derivative of a step, by tree sweeps (KERNELS "Reverse").
//
//   w = dv+ + h (d(+)/dw)^T dq+,   z = A^-T C^T J Mh^-1 w,   y = Mh^-1 (w - J^T B^T z)
//   q: (d(+)/dq)^T dq+ + y^T r_q - (B^T z)^T s_q,   v: y^T r_v - (B^T z)^T s_v,   tau: h y
#include <algorithm>

#include "coulomb/dense_kernels.hpp"
#include "coulomb/model/configuration.hpp"
#include "coulomb/small_math.hpp"
#include "coulomb/stepping/step_linearization.hpp"

namespace coulomb {

void StepLinearization::vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set) {
  if (options_->gradient.mode == GradientMode::complementarity_aware) vjp_at_ties(dq1, dv1, out, set);
  else vjp_of_modes(dq1, dv1, out, set);
}

void StepLinearization::vjp_of_modes(const double* dq1, const double* dv1, StepCotangent& out,
                                     const ParameterSet* set) {
  if (use_average_) return vjp_from_jacobian(dq1, dv1, out, set);
  const Model& model = *model_;
  StepRecord& r = *record_;
  const int nv = model.nv, n = r.rows.num_rows;
  const double h = options_->constraints.timestep;
  out.q.assign(dq1, dq1 + nv);
  out.v.assign(nv, 0.0);
  out.tau.assign(dq1, dq1 + nv);
  out.u.assign(model.nu, 0.0);
  double *y = out.tau.data(), *step = scratch_.data(), *id_q = scratch_.data() + nv, *id_v = scratch_.data() + 2 * nv;
  for (int d = 0; d < nv; ++d) step[d] = h * r.v_next[d];
  integrate_jacobian_times(model, step, IntegrateArgument::q, true, out.q.data(), 1, 1);
  integrate_jacobian_times(model, step, IntegrateArgument::w, true, y, 1, 1);
  for (int d = 0; d < nv; ++d) w_[d] = dv1[d] + h * y[d];

  std::copy(w_.begin(), w_.end(), y);
  solve_mass(model, r.dynamics, y);
  double *row_values = lambda_bar_.data(), *z = lambda_bar_.data() + n, *twist = scratch_.data();
  if (n > 0) {
    link_twists(model, r.dynamics, y, twist);
    apply_rows(model, r.dynamics, r.rows, y, twist, row_values);
  }
  if (two_levels_) z_0_.assign(n, 0.0);
  if (row_cotangents(row_values, z, z_0_.data())) {
    double* correction = scratch_.data() + 16 * nv;
    std::fill_n(correction, nv, 0.0);
    apply_rows_transposed(model, r.dynamics, r.rows, z, twist, correction);
    solve_mass(model, r.dynamics, correction);
    for (int d = 0; d < nv; ++d) y[d] += correction[d];
  }
  if (two_levels_) {
    y_0_.assign(nv, 0.0);
    apply_rows_transposed(model, r.dynamics, r.rows, z_0_.data(), twist, y_0_.data());
    solve_mass(model, r.dynamics, y_0_.data());
  }

  inverse_dynamics_vjp(model, r.dynamics, y, id_q, id_v);
  multiply_mass(model, r.dynamics, y, out.v.data());
  add_spin_cotangents(out.v.data(), out);
  for (int d = 0; d < nv; ++d) {
    out.q[d] -= h * id_q[d];
    out.v[d] += r.implicit_damping[d] * y[d] - h * id_v[d];
  }
  for (int d = 0; d < nv; ++d) {
    const int joint = model.dof_joint[d], first = model.joint_v[joint], count = joint_num_dofs(model.joint_type[joint]);
    for (int j = 0; j < count; ++j) {
      out.q[first + j] += h * r.joint_forces.dtau_dq[6 * d + j] * y[d];
      out.v[first + j] += h * r.joint_forces.dtau_dv[6 * d + j] * y[d];
    }
  }
  row_derivatives_vjp(model, r.dynamics, r.rows, row_velocities(), r.v_next.data(), rows_, inactive_,
                      r.solution.lambda.data(), z, y, scratch_.data(), out.q.data());
  add_bounce_cotangent(z, out.v.data());
  out.parameters.clear();
  if (set && set->size() > 0) parameter_gradient(*set, dq1, y, z, out.parameters);
  if (two_levels_) add_level_difference(y_0_.data(), z_0_.data(), dq1, out, set);
  for (double& value : out.tau) value *= h;
  for (int k = 0; k < model.nu; ++k) {
    const int joint = model.actuators[k].joint, first = model.joint_v[joint];
    for (int j = 0; j < joint_num_dofs(model.joint_type[joint]); ++j)
      out.u[k] += r.joint_forces.dtau_du[6 * k + j] * out.tau[first + j];
  }
}

// (M y) . dDelta by the state; momentum: M y, in out.v.
void StepLinearization::add_spin_cotangents(const double* momentum, StepCotangent& out) {
  for (const SpinDerivative& spin : spins_) {
    double own[6];
    for (int i = 0; i < 3; ++i) {
      own[i] = spin.linear < 0 ? 0.0 : momentum[spin.linear + i];
      own[3 + i] = momentum[spin.dof + i];
    }
    const auto add_to = [&](std::vector<double>& cotangent) {
      return [&](int k, const double* change) { cotangent[k] += dot6(own, change); };
    };
    visit_spin_columns(*model_, record_->dynamics, spin, add_to(out.v), add_to(out.q));
  }
}

// The right-hand sides of level 0 and of the last one, both with the multipliers of level 0: what belongs to the first was counted with the
// second.
void StepLinearization::add_level_difference(const double* y_0, const double* z_0, const double* dq1,
                                             StepCotangent& out, const ParameterSet* set) {
  (void)dq1;
  const Model& model = *model_;
  StepRecord& r = *record_;
  const int nv = model.nv;
  const int n = r.rows.num_rows;
  const double h = options_->constraints.timestep;
  std::vector<double> y(nv);
  std::vector<double> z(n);
  std::vector<double> id_q(nv);
  std::vector<double> id_v(nv);
  std::vector<double> parameters;
  const std::vector<double> still(nv, 0.0);
  const auto add = [&](double sign) {
    for (int d = 0; d < nv; ++d) y[d] = sign * y_0[d];
    for (int i = 0; i < n; ++i) z[i] = sign * z_0[i];
    inverse_dynamics_vjp(model, r.dynamics, y.data(), id_q.data(), id_v.data());
    for (int d = 0; d < nv; ++d) out.q[d] -= h * id_q[d];
    row_derivatives_vjp(model, r.dynamics, r.rows, row_velocities(), r.v_next.data(), rows_, inactive_,
                        r.solution.lambda.data(), z.data(), y.data(), scratch_.data(), out.q.data());
    if (!set || set->size() == 0) return;
    parameter_gradient(*set, still.data(), y.data(), z.data(), parameters);
    for (std::size_t k = 0; k < parameters.size(); ++k) out.parameters[k] += parameters[k];
  };
  add(-1);
  exchange_levels();
  add(1);
  exchange_levels();
}

// z = -B^T A^-T C^T J Mh^-1 w from J Mh^-1 w, island by island; z_0 what of it belongs to level 0 by itself (untouched where no island
// has two levels). False: no row carries an impulse that may change; z = 0.
bool StepLinearization::row_cotangents(const double* row_values, double* z, double* z_0) {
  bool any = false;
  std::fill_n(z, record_->rows.num_rows, 0.0);
  for (int index : record_->islands.order) {
    if (reduced_size(index) == 0) continue;
    any = true;
    const std::vector<int>& rows = island(index).rows;
    const std::size_t n = rows.size();
    if (local_.size() < 3 * n) local_.resize(3 * n);
    for (std::size_t i = 0; i < n; ++i) local_[i] = row_values[rows[i]];
    double* own = local_.data() + n;
    double* own_0 = local_.data() + 2 * n;
    if (islands_[index].problem.two_levels()) {
      islands_[index].problem.solve_transposed(local_.data(), own, own_0);
      for (std::size_t i = 0; i < n; ++i) {
        z[rows[i]] = own[i] + own_0[i];
        z_0[rows[i]] = own_0[i];
      }
      continue;
    }
    islands_[index].problem.solve_transposed(local_.data(), own);
    for (std::size_t i = 0; i < n; ++i) z[rows[i]] = own[i];
  }
  return any;
}

// out += sum over bouncing rows of z e J_n^T.
void StepLinearization::add_bounce_cotangent(const double* z, double* out) {
  bool clear = false;
  for (const BodyRows& b : record_->rows.body_rows) {
    if (b.restitution == 0 || inactive_[b.block]) continue;
    if (!clear) std::fill(w_.begin(), w_.end(), 0.0), clear = true;
    bounce_row(b, RowMatrix(w_.data(), 0));  // leading dimension 0: whatever the row, it lies there
    for (int body : {b.body_a, b.body_b}) {  // dofs that move both are taken, and cleared, once
      const int last = model_->body_last_dof[body];
      if (last < 0) continue;
      const int* path = model_->dof_path.data() + model_->dof_row[last];
      for (int k = 0; k <= model_->dof_depth[last]; ++k) {
        out[path[k]] += z[b.row + 2] * w_[path[k]];
        w_[path[k]] = 0;
      }
    }
  }
}

}  // namespace coulomb
