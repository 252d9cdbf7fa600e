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
  double *row_values = lambda_bar_.data(), *z = lambda_bar_.data() + n;
  if (problem_.reduced_size() > 0) {
    double *twist = scratch_.data(), *correction = scratch_.data() + 16 * nv;
    link_twists(model, r.dynamics, y, twist);
    apply_rows(model, r.dynamics, r.rows, y, twist, row_values);
    problem_.solve_transposed(row_values, z);  // = -B^T A^-T C^T J Mh^-1 w
    std::fill_n(correction, nv, 0.0);
    apply_rows_transposed(model, r.dynamics, r.rows, z, twist, correction);
    solve_mass(model, r.dynamics, correction);
    for (int d = 0; d < nv; ++d) y[d] += correction[d];
  } else {
    std::fill_n(z, n, 0.0);
  }

  inverse_dynamics_vjp(model, r.dynamics, y, id_q, id_v);
  multiply_mass(model, r.dynamics, y, out.v.data());
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
  for (double& value : out.tau) value *= h;
  for (int k = 0; k < model.nu; ++k) {
    const int joint = model.actuators[k].joint, first = model.joint_v[joint];
    for (int j = 0; j < joint_num_dofs(model.joint_type[joint]); ++j)
      out.u[k] += r.joint_forces.dtau_du[6 * k + j] * out.tau[first + j];
  }
}

// out += sum over bouncing rows of z e J_n^T.
void StepLinearization::add_bounce_cotangent(const double* z, double* out) {
  for (const BodyRows& b : record_->rows.body_rows) {
    if (b.restitution == 0 || inactive_[b.block]) continue;
    std::fill(w_.begin(), w_.end(), 0.0);
    bounce_row(b, w_.data());
    for (int d = 0; d < model_->nv; ++d) out[d] += z[b.row + 2] * w_[d];
  }
}

}  // namespace coulomb
