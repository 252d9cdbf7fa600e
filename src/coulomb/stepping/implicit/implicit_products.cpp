// The reverse product of an implicit step, stage by stage: one transposed solve each (docs/theory.md (B6) to (B8)).
#include <algorithm>

#include "coulomb/configuration.hpp"
#include "coulomb/stepping/implicit/implicit_linearization.hpp"
#include "coulomb/stepping/implicit/implicit_rotations.hpp"
#include "coulomb/stepping/wrench_cotangent.hpp"

namespace coulomb {

/// dq1, dv1: cotangents of the stage's q+ and v+; dq1 null: zero (B6), (B7).
void ImplicitLinearization::reverse_stage(int i, const double* dq1, const double* dv1, StageCotangent& out) {
  const Stage& s = *stages_[i];
  const ImplicitStage& stage = solution(i);
  const Model& model = *model_;
  const int nv = model.nv;
  const int ld = s.equation.dynamics.ld;
  const double* w = stage.w.data();
  const auto dot_y = [&](const std::vector<double>& rows, int k) {
    double sum = 0;
    for (int d = 0; d < nv; ++d)
      sum += rows[std::size_t(k) * ld + d] * out.y[d];
    return sum;
  };

  // y = P^T (v+_bar + c (1 - [b]) J^T q+_bar)
  out.y.assign(nv, 0.0);
  if (dq1) {
    std::copy_n(dq1, nv, out.y.begin());
    integrate_jacobian_times(model, w, IntegrateArgument::w, true, out.y.data(), 1, 1);
    out.q = out.y;
    add_cross_rows(model, -1, stage.b.data(), out.q.data(), nv, 1, out.y.data());
  }
  for (int d = 0; d < nv; ++d)
    out.y[d] = dv1[d] + stage.c * out.y[d];
  s.factor.solve_transposed(out.y.data());

  // z = q+_bar - R_q^T y, which E takes to q.
  out.w_bar.resize(nv);
  for (int k = 0; k < nv; ++k)
    out.w_bar[k] = (dq1 ? dq1[k] : 0.0) - dot_y(s.equation.R_q_T, k);
  out.q = out.w_bar;
  integrate_jacobian_times(model, w, IntegrateArgument::q, true, out.q.data(), 1, 1);

  // m = R_a y / c
  out.v_bar.resize(nv);
  s.equation.times_mass(model, out.y.data(), out.v_bar.data());
  for (double& m : out.v_bar)
    m /= stage.c;

  // J^T (z - u x m), the cotangent of w_bar.
  if (!stage.explicit_dynamics)
    add_cross_rows(model, -1, stage.turned.data(), out.v_bar.data(), nv, 1, out.w_bar.data());
  integrate_jacobian_times(model, w, IntegrateArgument::w, true, out.w_bar.data(), 1, 1);

  // A longer stage moves further and has a smaller acceleration.
  out.c = 0;
  for (int d = 0; d < nv; ++d)
    out.c += (stage.w[d] - stage.w_bar[d]) / stage.c * out.w_bar[d] + s.equation.time_acceleration[d] * out.v_bar[d];
  for (std::size_t d = 0; d < s.equation.time_force.size(); ++d)
    out.c -= s.equation.time_force[d] * out.y[d];

  // E takes m to v_bar; explicit dynamics do not turn it, but depend on the base.
  if (!stage.explicit_dynamics) {
    integrate_jacobian_times(model, w, IntegrateArgument::q, true, out.v_bar.data(), 1, 1);
    return;
  }
  for (int k = 0; k < nv; ++k) {
    out.q[k] -= dot_y(s.equation.base_q_T, k);
    out.v_bar[k] -= dot_y(s.equation.base_v_T, k);
  }
}

/// v_bar holds -E(xi) v_before / 3, which turns with q and with q_before: (B8) transposed.
void ImplicitLinearization::add_turned_velocity(StepCotangent& out) {
  const Model& model = *model_;
  const int nv = model.nv;
  turn_.assign(nv, 0.0);
  add_cross_rows(model, 1.0 / 3, extra_->turned_previous_v.data(), first_.v_bar.data(), nv, 1, turn_.data());
  integrate_jacobian_times(model, xi_.data(), IntegrateArgument::q, true, out.previous_v.data(), 1, 1);
  for (int d = 0; d < nv; ++d)
    out.q[d] += turn_[d];
  integrate_jacobian_times(model, xi_.data(), IntegrateArgument::q, true, turn_.data(), 1, 1);
  for (int d = 0; d < nv; ++d)
    out.previous_q[d] -= turn_[d];
}

/// bdf2: from the cotangents of the stage, in first_, to those of both states.
void ImplicitLinearization::reverse_bdf2(const ImplicitStage& stage, StepCotangent& out) {
  const Model& model = *model_;
  const int nv = model.nv;

  // w_bar, and b, which moves with it.
  w_bar_bar_ = first_.w_bar;
  add_cross_rows(model, stage.c, stage.v_next.data(), first_.w_bar.data(), nv, 1, w_bar_bar_.data());

  // w_bar = xi / 3, xi = q (-) q_before, with J_r^-T(xi) = J_r^-1(-xi).
  xi_.resize(nv);
  for (int d = 0; d < nv; ++d)
    xi_[d] = 3 * stage.w_bar[d];
  out.previous_q = w_bar_bar_;
  out.previous_v = first_.v_bar;
  times_inverse_right_jacobian(model, xi_.data(), 1, out.previous_q.data(), nv, 1);
  times_inverse_right_jacobian(model, xi_.data(), -1, w_bar_bar_.data(), nv, 1);

  // v_bar = (4 v - E v_before) / 3.
  for (int d = 0; d < nv; ++d) {
    out.q[d] += w_bar_bar_[d] / 3;
    out.previous_q[d] /= -3;
    out.v[d] = 4.0 / 3 * first_.v_bar[d];
    out.previous_v[d] /= -3;
  }
  add_turned_velocity(out);
}

/// out.q, out.v: cotangents of the end on entry, of the start on return; returns that of the time step.
double ImplicitLinearization::reverse_run(const ImplicitRun& run, StepCotangent& out, const ParameterSet* set) {
  const Model& model = *model_;
  const int nv = model.nv;
  const double h = options_->constraints.timestep / run.parts;
  const double a = sdirk_alpha();
  const double fraction = stage_fraction(run.scheme) / run.parts;
  double dh = 0;

  const auto pass = [&](int i, const double* q1, const double* v1, StageCotangent& to) {
    reverse_stage(i, q1, v1, to);
    dh += fraction * to.c;

    // Forces, of the user and of the controls, have their product with y.
    const JointForces& forces = stages_[i]->equation.joint_forces;
    const ImplicitStage& stage = solution(i);
    for (int d = 0; d < nv; ++d)
      out.tau[d] += to.y[d];
    if (out.wants_fext) {
      kinematics(model, stage.explicit_dynamics ? stage.q.data() : stage.q_next.data(), fext_at_);
      add_wrench_cotangent(model, fext_at_, to.y.data(), out.fext);
    }
    for (int k = 0; k < model.nu; ++k) {
      const ActuatorDofs dofs = actuator_dofs(model, k);
      for (int j = 0; j < dofs.num; ++j)
        out.u[k] += forces.dtau_du[max_actuator_dofs * k + j] * to.y[dofs.dof[j]];
    }
    if (set && set->size() > 0) {
      add_stage_gradient(i, *set, to.y.data(), out.parameters);
    }
  };

  // From the end of each part to its start.
  for (int i = run.first + run.count - 1; i >= run.first; --i) {
    if (run.scheme != ImplicitScheme::sdirk2) {
      pass(i, out.q.data(), out.v.data(), first_);
      out.q = first_.q;
      out.v = first_.v_bar;
      if (run.scheme == ImplicitScheme::bdf1 && stages_[i]->start->any()) {
        dh += fraction * stages_[i]->start->add_cotangents(model, first_.v_bar.data(), out.q.data(), out.v.data());
        if (set && set->size() > 0) {
          add_shift_gradient(i, *set, first_.v_bar.data(), out.parameters);
        }
      }
      if (run.scheme == ImplicitScheme::bdf2) {
        reverse_bdf2(solution(i), out);
      }
      continue;
    }

    // The second stage starts from q as well, and from the first one's velocity v_a.
    pass(i--, out.q.data(), out.v.data(), second_);
    const std::vector<double>& v_a = solution(i).v_next;
    for (int d = 0; d < nv; ++d) {
      dh += (1 - a) / run.parts * v_a[d] * second_.w_bar[d];
      out.v[d] = (1 - a) / a * second_.v_bar[d] + (1 - a) * h * second_.w_bar[d];
    }
    pass(i, nullptr, out.v.data(), first_);
    for (int d = 0; d < nv; ++d) {
      out.q[d] = first_.q[d] + second_.q[d];
      out.v[d] = first_.v_bar[d] + (1 - (1 - a) / a) * second_.v_bar[d];
    }
  }
  return dh;
}

/// Every run from the cotangents of its trees.
double ImplicitLinearization::reverse_runs(const double* dq1, const double* dv1, StepCotangent& out,
                                           const ParameterSet* set) {
  const int nv = model_->nv;
  const bool previous = extra_->has(ImplicitScheme::bdf2);
  const auto add = [](const std::vector<double>& x, std::vector<double>& to) {
    for (std::size_t d = 0; d < x.size(); ++d)
      to[d] += x[d];
  };
  sum_.q.assign(nv, 0.0);
  sum_.v.assign(nv, 0.0);
  sum_.previous_q.assign(previous ? nv : 0, 0.0);
  sum_.previous_v.assign(previous ? nv : 0, 0.0);

  double dh = 0;
  for (const ImplicitRun& run : extra_->runs) {
    out.q.assign(nv, 0.0);
    out.v.assign(nv, 0.0);
    out.previous_q.clear();
    out.previous_v.clear();
    for_each_moved(run, [&](int first, int count) {
      std::copy_n(dq1 + first, count, &out.q[first]);
      std::copy_n(dv1 + first, count, &out.v[first]);
    });
    dh += reverse_run(run, out, set);
    add(out.q, sum_.q);
    add(out.v, sum_.v);
    add(out.previous_q, sum_.previous_q);
    add(out.previous_v, sum_.previous_v);
  }
  out.q = sum_.q;
  out.v = sum_.v;
  out.previous_q = sum_.previous_q;
  out.previous_v = sum_.previous_v;
  return dh;
}

void ImplicitLinearization::vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set) {
  const int nv = model_->nv;

  // The inputs are those of all stages.
  out.tau.assign(nv, 0.0);
  out.u.assign(model_->nu, 0.0);
  out.fext.assign(out.wants_fext ? std::size_t(6) * model_->num_bodies : 0, 0.0);
  out.previous_q.clear();
  out.previous_v.clear();
  out.parameters.assign(set ? set->size() : 0, 0.0);
  double dh = 0;
  if (extra_->runs.size() == 1) {
    out.q.assign(dq1, dq1 + nv);
    out.v.assign(dv1, dv1 + nv);
    dh = reverse_run(extra_->runs[0], out, set);
  } else {
    dh = reverse_runs(dq1, dv1, out, set);
  }

  if (!set) return;
  for (const ParameterSet::Item& item : set->items())
    if (is_timestep(item)) {
      out.parameters[item.first] += dh;
    }
}

}  // namespace coulomb
