// The reverse product with the derivative of a step, by tree sweeps (docs/theory.md (L8)).
//
//   w = dv+ + h (d(+)/dw)^T dq+,   z = A^-T C^T J Mh^-1 w,   y = Mh^-1 (w - J^T B^T z)
//   q: (d(+)/dq)^T dq+ + y^T r_q - (B^T z)^T s_q,   v: y^T r_v - (B^T z)^T s_v,   tau: h y
#include <algorithm>
#include <stdexcept>

#include "coulomb/dense_kernels.hpp"
#include "coulomb/model/configuration.hpp"
#include "coulomb/small_math.hpp"
#include "coulomb/stepping/step_linearization.hpp"
#include "coulomb/stepping/wrench_cotangent.hpp"

namespace coulomb {
void StepLinearization::vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set) {
  const bool wants_fext = out.wants_fext;
  if (options_->gradient.mode == GradientMode::complementarity_aware) vjp_at_ties(dq1, dv1, out, set);
  else vjp_of_modes(dq1, dv1, out, set);

  out.wants_fext = wants_fext;
  out.fext.assign(wants_fext ? std::size_t(6) * model_->num_bodies : 0, 0.0);
  if (wants_fext) add_fext_cotangent(out.tau.data(), out.fext);
}

void StepLinearization::add_fext_cotangent(const double* tau_bar, std::vector<double>& fext) {
  if (use_average_)
    throw std::logic_error("fext: gradient='smoothed_step' averages over configurations, it has none by wrenches");
  add_wrench_cotangent(*model_, record_->dynamics, tau_bar, fext);
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
  for (int level = 0; level < lower_; ++level) z_lower_[level].assign(n, 0.0);
  if (row_cotangents(row_values, z)) {
    double* correction = scratch_.data() + 16 * nv;
    std::fill_n(correction, nv, 0.0);
    apply_rows_transposed(model, r.dynamics, r.rows, z, twist, correction);
    solve_mass(model, r.dynamics, correction);
    for (int d = 0; d < nv; ++d) y[d] += correction[d];
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
  row_derivatives_vjp(row_state(), rows_, {y, z}, row_sweep_, out.q.data());
  add_bounce_cotangent(z, out.v.data());
  out.parameters.clear();
  if (set && set->size() > 0) parameter_gradient(*set, dq1, y, z, out.parameters);
  for (int level = 0; level < lower_; ++level) add_level_difference(level, z_lower_[level].data(), out, set);
  if (set && set->size() > 0) judge_parameters(*set);
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

// z = -B^T A^-T C^T J Mh^-1 w from J Mh^-1 w, island by island, and in z_lower_ what of it belongs to lower levels. False: no row carries
// an impulse that may change; z = 0.
bool StepLinearization::row_cotangents(const double* row_values, double* z) {
  bool any = false;
  std::fill_n(z, record_->rows.num_rows, 0.0);
  for (int index : record_->islands.order) {
    if (reduced_size(index) == 0) continue;
    any = true;
    const std::vector<int>& rows = island(index).rows;
    const std::size_t n = rows.size();
    if (local_.size() < 2 * n) local_.resize(2 * n);
    for (std::size_t i = 0; i < n; ++i) local_[i] = row_values[rows[i]];
    double* own = local_.data() + n;
    const int lower = lower_levels(index);
    if (lower == 0) {
      islands_[index].problem.solve_transposed(local_.data(), own);
      for (std::size_t i = 0; i < n; ++i) z[rows[i]] = own[i];
      continue;
    }

    make_room(own_z_lower_, lower * n);
    for (int level = 0; level < lower; ++level) own_z_pointers_[level] = own_z_lower_.data() + level * n;
    islands_[index].problem.solve_transposed(local_.data(), own, own_z_pointers_.data());
    for (std::size_t i = 0; i < n; ++i) z[rows[i]] = own[i];
    for (int level = 0; level < lower; ++level)
      for (std::size_t i = 0; i < n; ++i) {
        z[rows[i]] += own_z_pointers_[level][i];
        z_lower_[level][rows[i]] = own_z_pointers_[level][i];
      }
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
