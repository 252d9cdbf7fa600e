// The reverse product (vjp) of one recorded step: sweeps over the tree, no matrix. Start reading at vjp.
//
// A semi-implicit step solves, with Mh = M + h D (+ h^2 K) and every block of rows held in the mode of the solution (docs/theory.md, (L4) to (L6)),
//
//   (a)  Mh v+ = rhs(q, v, tau) + J^T lambda     momentum balance
//   (b)  c = J v+ + beta + R lambda              row velocities; lambda follows c as the mode says
//   (c)  q+ = q (+) h v+                         integration on the configuration manifold
//
// The cotangents of (q+, v+) go through the transposed equations, last one first, docs/theory.md (L8):
//
//   (c')  w = v+_bar + h (d(+)/dw)^T q+_bar      cotangent of v+
//   (b')  z = -B^T A^-T C^T J Mh^-1 w            multipliers of the rows
//   (a')  y = Mh^-1 (w + J^T z)                  multipliers of the momentum balance
//
// Every input x then receives x_bar = y . r_x + z . s_x: derivatives of the right-hand sides of (a) and (b) at fixed v+, lambda.
#include <algorithm>
#include <stdexcept>

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/linalg/dense_kernels.hpp"
#include "coulomb/stepping/semi_implicit/step_linearization.hpp"
#include "coulomb/stepping/wrench_cotangent.hpp"

namespace coulomb {

void StepLinearization::add_fext_cotangent(const double* tau_bar, std::vector<double>& fext) {
  add_wrench_cotangent(*model_, record_->dynamics, tau_bar, fext);
}

/// dq1, dv1: cotangents of q+ and v+ (nv each). out: cotangents of q, v, tau (nv), u (nu) and of the scalars of `set` (null: none).
void StepLinearization::vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set) {
  const bool parameters = set && set->size() > 0;
  const double* y = adjoint_.y.data();
  const double* z = adjoint_.z.data();

  // From the next state back to the multipliers of the equations that it solves.
  std::fill(level_u_.begin(), level_u_.end(), 0.0);
  pull_back_integration(dq1, dv1, out);
  solve_multipliers();

  // The state moves the right-hand side of the momentum balance (y . r) and that of the rows (z . s).
  add_inverse_dynamics(out);
  add_joint_forces(out);
  row_derivatives_vjp(row_state(), rows_, {y, z}, row_sweep_, out.q.data());
  add_bounce_cotangent(z, out.v.data());

  // So do parameters.
  out.parameters.clear();
  if (parameters) parameter_gradient(*set, dq1, y, z, out.parameters);

  // Lower levels add how they differ.
  for (int level = 0; level < lower_; ++level)
    add_level_difference(level, z_lower_[level].data(), out, set);
  add_correction_cotangents(z, true, out.q.data(), set, out.parameters.data());
  if (parameters) judge_parameters(*set);

  // Forces and controls move nothing else; wrenches act as joint forces.
  store_forces_and_controls(out);
  out.fext.assign(out.wants_fext ? std::size_t(6) * model_->num_bodies : 0, 0.0);
  if (out.wants_fext) add_fext_cotangent(out.tau.data(), out.fext);
}

void StepLinearization::Adjoint::reserve(int nv, int rows) {
  for (auto* values : {&w, &y, &correction, &id_q, &id_v})
    make_room(*values, nv);
  for (auto* values : {&link_twist, &link_wrench})
    make_room(*values, 8 * std::size_t(nv));
  for (auto* values : {&row_velocity, &z})
    make_room(*values, std::size_t(rows) + 1);
}

/// (c'): out.q = (d(+)/dq)^T dq1, w = dv1 + h (d(+)/dw)^T dq1, both at the displacement h v+ of the step.
void StepLinearization::pull_back_integration(const double* dq1, const double* dv1, StepCotangent& out) {
  const Model& model = *model_;
  const int nv = model.nv;
  const double h = options_->constraints.timestep;

  // The integration is differentiated where the step applied it.
  for (int d = 0; d < nv; ++d)
    w_[d] = h * record_->v_next[d];

  // By its first argument it reaches q ...
  out.q.assign(dq1, dq1 + nv);
  integrate_jacobian_times(model, w_.data(), IntegrateArgument::q, true, out.q.data(), 1, 1);

  // ... and by its second one v+, h times.
  double* displacement_bar = adjoint_.w.data();
  std::copy_n(dq1, nv, displacement_bar);
  integrate_jacobian_times(model, w_.data(), IntegrateArgument::w, true, displacement_bar, 1, 1);
  for (int d = 0; d < nv; ++d)
    adjoint_.w[d] = dv1[d] + h * displacement_bar[d];
}

/// (b'), (a')
void StepLinearization::solve_multipliers() {
  const Model& model = *model_;
  const DynamicsWorkspace& dynamics = record_->dynamics;
  const ConstraintRows& rows = record_->rows;
  const int nv = model.nv;
  double* y = adjoint_.y.data();

  // Without rows the momentum balance answers alone.
  std::copy_n(adjoint_.w.data(), nv, y);
  solve_mass(model, dynamics, y);

  // The rows see that answer as a velocity; the transposed contact problem turns it into z.
  if (rows.num_rows > 0) {
    link_twists(model, dynamics, y, adjoint_.link_twist.data());
    apply_rows(model, dynamics, rows, y, adjoint_.link_twist.data(), adjoint_.row_velocity.data());
  }
  for (int level = 0; level < lower_; ++level)
    z_lower_[level].assign(rows.num_rows, 0.0);
  if (!row_cotangents(adjoint_.row_velocity.data(), adjoint_.z.data())) return;

  // z acts back on the bodies as impulses do.
  double* correction = adjoint_.correction.data();
  std::fill_n(correction, nv, 0.0);
  apply_rows_transposed(model, dynamics, rows, adjoint_.z.data(), adjoint_.link_wrench.data(), correction);
  solve_mass(model, dynamics, correction);
  for (int d = 0; d < nv; ++d)
    y[d] += correction[d];
}

/// y . r of inertia, damping and spins: out.v = (M + h D)^T y + ..., out.q -= h y . dID'/dq.
void StepLinearization::add_inverse_dynamics(StepCotangent& out) {
  const Model& model = *model_;
  StepRecord& r = *record_;
  const double h = options_->constraints.timestep;
  const double* y = adjoint_.y.data();
  inverse_dynamics_vjp(model, r.dynamics, y, adjoint_.id_q.data(), adjoint_.id_v.data());

  // What spins sees M y alone, so it comes before the rest is added to it.
  out.v.assign(model.nv, 0.0);
  multiply_mass(model, r.dynamics, y, out.v.data());
  add_spin_cotangents(out.v.data(), out);
  for (int d = 0; d < model.nv; ++d) {
    out.q[d] -= h * adjoint_.id_q[d];
    out.v[d] += h * (model.dof_damping[d] * y[d] - adjoint_.id_v[d]);
  }
}

/// y . r of springs, dampers and actuators, which the state of their joint moves; what they feel of v+ is no part of it.
void StepLinearization::add_joint_forces(StepCotangent& out) const {
  const Model& model = *model_;
  const JointForces& forces = record_->joint_forces;
  const double h = options_->constraints.timestep;
  for (int d = 0; d < model.nv; ++d) {
    const int joint = model.dof_joint[d];
    const int first = model.joint_v[joint];
    const int count = joint_num_dofs(model.joint_type[joint]);
    for (int j = 0; j < count; ++j) {
      out.q[first + j] += h * forces.dtau_dq[6 * d + j] * adjoint_.y[d];
      out.v[first + j] += h * forces.dtau_dv[6 * d + j] * adjoint_.y[d];
    }
  }
  for (const CoupledSlope& slope : forces.coupled_slopes) {
    out.q[slope.column] += h * slope.dq * adjoint_.y[slope.row];
    out.v[slope.column] += h * slope.dv * adjoint_.y[slope.row];
  }
}

/// tau_bar = h y, and what controls push of it.
void StepLinearization::store_forces_and_controls(StepCotangent& out) const {
  const Model& model = *model_;
  const JointForces& forces = record_->joint_forces;
  const double h = options_->constraints.timestep;
  out.tau.resize(model.nv);
  for (int d = 0; d < model.nv; ++d)
    out.tau[d] = adjoint_.y[d] * h;

  out.u.assign(model.nu, 0.0);
  for (int k = 0; k < model.nu; ++k) {
    const ActuatorDofs dofs = actuator_dofs(model, k);
    for (int j = 0; j < dofs.num; ++j)
      out.u[k] += forces.dtau_du[max_actuator_dofs * k + j] * out.tau[dofs.dof[j]];
  }
  for (std::size_t k = 0; k < level_u_.size(); ++k)
    out.u[k] += level_u_[k];
}

/// (M y) . dDelta by the state; momentum: M y, in out.v.
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

/// z = -B^T A^-T C^T J Mh^-1 w from J Mh^-1 w, island by island, and in z_lower_ what of it belongs to lower levels. False: no row carries
/// an impulse that may change; z = 0.
bool StepLinearization::row_cotangents(const double* row_values, double* z) {
  bool any = false;
  std::fill_n(z, record_->rows.num_rows, 0.0);
  for (int index : record_->islands.order) {
    if (reduced_size(index) == 0) continue;
    any = true;

    // Its own rows, one behind the other.
    const std::vector<int>& rows = island(index).rows;
    const std::size_t n = rows.size();
    if (local_.size() < 2 * n) local_.resize(2 * n);
    for (std::size_t i = 0; i < n; ++i)
      local_[i] = row_values[rows[i]];
    double* own = local_.data() + n;
    const int lower = lower_levels(index);
    if (lower == 0) {
      islands_[index].problem.solve_transposed(local_.data(), own);
      for (std::size_t i = 0; i < n; ++i)
        z[rows[i]] = own[i];
      continue;
    }

    // The levels of one island have multipliers of their own.
    make_room(own_z_lower_, lower * n);
    for (int level = 0; level < lower; ++level)
      own_z_pointers_[level] = own_z_lower_.data() + level * n;
    islands_[index].problem.solve_transposed(local_.data(), own, own_z_pointers_.data());
    for (std::size_t i = 0; i < n; ++i)
      z[rows[i]] = own[i];
    for (int level = 0; level < lower; ++level)
      for (std::size_t i = 0; i < n; ++i) {
        z[rows[i]] += own_z_pointers_[level][i];
        z_lower_[level][rows[i]] = own_z_pointers_[level][i];
      }
  }
  return any;
}

/// out += sum over rows that keep a share e of their velocity of z e J^T, and the same of rows whose bias keeps a tendon going.
void StepLinearization::add_bounce_cotangent(const double* z, double* out) {
  for (const DofRow& d : record_->rows.dof_rows)
    for (int j = 0; d.slopes >= 0 && j < d.num; ++j)
      out[d.dof[j]] += z[d.row] * record_->rows.dbias_dv(d, j);

  for (const BodyRows& b : record_->rows.body_rows) {
    if (b.restitution == 0 || inactive_[b.block]) continue;
    for (const double sign : {1.0, -1.0}) {
      const int body = sign > 0 ? b.body_a : b.body_b;
      const int last = model_->body_last_dof[body];
      if (last < 0) continue;
      double r[3];
      relative_point(*model_, record_->dynamics, body, sign > 0 ? b.point_a : b.point_b, r);

      // Their sum as a covector on the twist, along the body's root path.
      double sum[6] = {0, 0, 0, 0, 0, 0};
      for (int i = b.first_kept(); i < b.end_kept(); ++i) {
        double e[6];
        b.covector(i, r, e);
        for (int j = 0; j < 6; ++j)
          sum[j] += sign * b.restitution * z[b.row + i] * e[j];
      }
      const int* path = model_->dof_path.data() + model_->dof_row[last];
      for (int k = 0; k <= model_->dof_depth[last]; ++k)
        out[path[k]] += dot6(record_->dynamics.columns.data() + 8 * path[k], sum);
    }
  }

  for (const DofRow& d : record_->rows.dof_rows) {
    if (d.bounce == 0 || inactive_[d.block]) continue;
    for (int j = 0; j < d.num; ++j)
      out[d.dof[j]] += z[d.row] * d.bounce * d.coefficient[j];
  }
}

}  // namespace coulomb
