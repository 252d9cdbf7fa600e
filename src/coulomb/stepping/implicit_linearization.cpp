#include "coulomb/stepping/implicit_linearization.hpp"
#include "coulomb/stepping/wrench_cotangent.hpp"

#include <algorithm>

#include "coulomb/model/configuration.hpp"
#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

// Rotation blocks of rows (count x ld): row := row B^T, with B = J_r^-1(sign xi).
void times_inverse_right_jacobian(const Model& model, const double* xi, double sign, double* rows, int ld, int count) {
  for_each_rotation(model, [&](int at) {
    const double vector[3] = {sign * xi[at], sign * xi[at + 1], sign * xi[at + 2]};
    double B[9];
    inverse_right_jacobian(vector, B);
    for (int r = 0; r < count; ++r) {
      double* x = rows + std::size_t(r) * ld + at;
      rotate(B, x, x);
    }
  });
}

// Rotation blocks: rows += scale u x x_row.
void add_cross_rows(const Model& model, double scale, const double* u, const double* x, int ld, int count,
                    double* rows) {
  for_each_rotation(model, [&](int at) {
    const double scaled[3] = {scale * u[at], scale * u[at + 1], scale * u[at + 2]};
    for (int r = 0; r < count; ++r) add_cross3(scaled, x + std::size_t(r) * ld + at, rows + std::size_t(r) * ld + at);
  });
}

void add_scaled(const std::vector<double>& x, double scale, std::size_t count, std::vector<double>& to) {
  for (std::size_t i = 0; i < count; ++i) to[i] += scale * x[i];
}

void set_identity(std::vector<double>& rows, int first, int nv, int ld) {
  for (int d = 0; d < nv; ++d) rows[std::size_t(first + d) * ld + d] = 1;
}

}  // namespace

ImplicitLinearization::ImplicitLinearization(const Model& model) : model_(&model), fext_at_(model) {}
ImplicitLinearization::~ImplicitLinearization() = default;

void ImplicitLinearization::Columns::resize(int columns, int ld, bool previous) {
  count = columns;
  const std::size_t size = std::size_t(columns) * ld;
  dq.assign(size, 0.0), dv.assign(size, 0.0), force.assign(size, 0.0), dh.assign(columns, 0.0);
  previous_dq.assign(previous ? size : 0, 0.0), previous_dv.assign(previous ? size : 0, 0.0);
}

void ImplicitLinearization::prepare(const Model& model, const StepOptions& options, StepRecord& record,
                                    const StepMemory&) {
  model_ = &model, options_ = &options, record_ = &record;
  extra_ = &implicit_extra(model, record);
  have_jacobian_ = false;
  for (int i = 0; i < extra_->count; ++i) {
    if (static_cast<int>(stages_.size()) <= i) stages_.push_back(std::make_unique<Stage>(model));
    Stage& s = *stages_[i];
    s.inverted = s.evaluated = false;
    if (extra_->kept) {
      extra_->kept->restore(s.equation, s.factor);
      continue;
    }
    evaluate(i);
    linearize_stage(model, extra_->stages[i], s.equation, s.factor);
  }
}

void ImplicitLinearization::evaluate(int i) {
  Stage& s = *stages_[i];
  if (s.evaluated) return;
  s.evaluated = true;
  ImplicitStage& stage = extra_->stages[i];
  s.equation.begin(*model_, *options_, {record_->u.data(), record_->tau.data(), &record_->fext}, stage);
  s.equation.evaluate(*model_, *options_, stage);
  s.equation.prepare(*model_, stage);
  s.equation.prepare_base(*model_, stage);
}

// The matrices of forward mode.
void ImplicitLinearization::invert(int i) {
  Stage& s = *stages_[i];
  if (s.inverted) return;
  s.inverted = true;
  const Model& model = *model_;
  const ImplicitStage& stage = solution(i);
  const DynamicsWorkspace& inertia = s.equation.inertial();
  const int nv = model.nv, ld = inertia.ld;
  const std::size_t square = std::size_t(nv) * ld;
  s.P_T.resize(square), s.N_T.resize(square), s.Q_T.resize(square);
  s.factor.inverse_transposed(s.P_T.data());
  multiply(Product::set, rows_of(s.equation.R_q_T.data(), nv, nv, ld), s.P_T.data(), s.N_T.data(), ld, ld, product_);
  product_rows_.assign(square, 0.0);
  for (int d = 0; d < nv; ++d) {
    const int start = model.dof_row[d];
    for (int k = 0; k <= model.dof_depth[d]; ++k) {
      const int j = model.dof_path[start + k];
      product_rows_[std::size_t(d) * ld + j] = product_rows_[std::size_t(j) * ld + d] =
          inertia.mass[start + k] / stage.c;
    }
  }
  if (stage.explicit_dynamics) {
    s.B_T.resize(square);
    multiply(Product::set, rows_of(s.equation.base_q_T.data(), nv, nv, ld), s.P_T.data(), s.B_T.data(), ld, ld,
             product_);
    for (std::size_t k = 0; k < square; ++k) product_rows_[k] -= s.equation.base_v_T[k];
  }
  multiply(Product::set, rows_of(product_rows_.data(), nv, nv, ld), s.P_T.data(), s.Q_T.data(), ld, ld, product_);
  s.time.resize(nv);
  s.equation.times_mass(model, s.equation.time_acceleration.data(), s.time.data());
  for (double& x : s.time) x /= stage.c;
  s.factor.solve(s.time.data());
}

// D: dw_bar on entry. dh, or null: change of the time step per column; the stage's c is `fraction` of it.
void ImplicitLinearization::forward_stage(int i, int count, const double* base_dq, const double* v_bar,
                                          const double* force, const double* dh, double fraction,
                                          std::vector<double>& D, std::vector<double>& dq, std::vector<double>& dv) {
  invert(i);
  const Stage& s = *stages_[i];
  const ImplicitStage& stage = solution(i);
  const Model& model = *model_;
  const int nv = model.nv, ld = s.equation.dynamics.ld;
  const std::size_t size = std::size_t(count) * ld;
  for (int k = 0; dh && k < count; ++k)
    for (int d = 0; d < nv; ++d)
      D[std::size_t(k) * ld + d] += fraction * dh[k] * (stage.w[d] - stage.w_bar[d]) / stage.c;
  times_integrate_jacobian(model, stage.w.data(), IntegrateArgument::w, true, D.data(), ld, count);
  turned_.assign(v_bar, v_bar + size);
  if (!stage.explicit_dynamics) {
    times_integrate_jacobian(model, stage.w.data(), IntegrateArgument::q, true, turned_.data(), ld, count);
    add_cross_rows(model, 1, stage.turned.data(), D.data(), ld, count, turned_.data());
  }
  E_.assign(base_dq, base_dq + size);
  times_integrate_jacobian(model, stage.w.data(), IntegrateArgument::q, true, E_.data(), ld, count);
  add_scaled(E_, 1, size, D);
  dv.resize(size);
  multiply(Product::set, rows_of(turned_.data(), count, nv, ld), s.Q_T.data(), dv.data(), ld, ld, product_);
  multiply(Product::subtract, rows_of(D.data(), count, nv, ld), s.N_T.data(), dv.data(), ld, ld, product_);
  multiply(Product::add, rows_of(force, count, nv, ld), s.P_T.data(), dv.data(), ld, ld, product_);
  if (stage.explicit_dynamics)
    multiply(Product::subtract, rows_of(base_dq, count, nv, ld), s.B_T.data(), dv.data(), ld, ld, product_);
  for (int k = 0; dh && k < count; ++k)
    for (int d = 0; d < nv; ++d) dv[std::size_t(k) * ld + d] += fraction * dh[k] * s.time[d];
  dq = dv;
  add_cross_rows(model, 1, stage.b.data(), dv.data(), ld, count, dq.data());
  times_integrate_jacobian(model, stage.w.data(), IntegrateArgument::w, true, dq.data(), ld, count);
  for (std::size_t k = 0; k < size; ++k) dq[k] = D[k] + stage.c * dq[k];
}

// Columns of (q, v) and of the state before, to those of the next state. forces(stage, rows): r of every column.
template <class Forces>
void ImplicitLinearization::forward(Columns& columns, Forces forces) {
  const ImplicitExtra& extra = *extra_;
  const int count = columns.count, ld = stages_[0]->equation.dynamics.ld;
  const std::size_t size = std::size_t(count) * ld;
  const double h = options_->constraints.timestep / extra.parts, a = sdirk_alpha();
  const double fraction = stage_fraction(extra.scheme) / extra.parts;
  const bool timed = std::any_of(columns.dh.begin(), columns.dh.end(), [](double x) { return x != 0; });
  const double* dh = timed ? columns.dh.data() : nullptr;
  for (int i = 0; i < extra.count;) {
    const ImplicitStage& stage = solution(i);
    D_.assign(size, 0.0);
    v_bar_ = columns.dv;
    if (extra.scheme == ImplicitScheme::bdf2) {
      std::vector<double>& xi = xi_;
      xi = stage.w_bar;
      for (double& x : xi) x *= 3;
      D_ = columns.dq, E_ = columns.previous_dq;
      times_inverse_right_jacobian(*model_, xi.data(), 1, D_.data(), ld, count);
      times_inverse_right_jacobian(*model_, xi.data(), -1, E_.data(), ld, count);
      for (std::size_t k = 0; k < size; ++k) D_[k] = (D_[k] - E_[k]) / 3;
      E_ = D_;  // db = dw_bar
      add_cross_rows(*model_, -stage.c, stage.v_next.data(), E_.data(), ld, count, D_.data());
      E_ = columns.previous_dv;
      times_integrate_jacobian(*model_, xi.data(), IntegrateArgument::q, true, E_.data(), ld, count);
      for (std::size_t k = 0; k < size; ++k) v_bar_[k] = (4 * columns.dv[k] - E_[k]) / 3;
      E_ = columns.previous_dq;  // d(E v_before) = E dv_before + u x (dq - E dq_before)
      times_integrate_jacobian(*model_, xi.data(), IntegrateArgument::q, true, E_.data(), ld, count);
      const std::vector<double>& u = extra.turned_previous_v;
      add_cross_rows(*model_, -1.0 / 3, u.data(), columns.dq.data(), ld, count, v_bar_.data());
      add_cross_rows(*model_, 1.0 / 3, u.data(), E_.data(), ld, count, v_bar_.data());
    }
    forces(i, columns.force.data());
    forward_stage(i++, count, columns.dq.data(), v_bar_.data(), columns.force.data(), dh, fraction, D_, stage_q_,
                  stage_v_);
    if (extra.scheme == ImplicitScheme::sdirk2) {
      const std::vector<double>& v_a = stage.v_next;
      for (std::size_t k = 0; k < size; ++k) {
        v_bar_[k] = columns.dv[k] + (1 - a) / a * (stage_v_[k] - columns.dv[k]);
        D_[k] = (1 - a) * h * stage_v_[k];
      }
      for (int k = 0; dh && k < count; ++k)
        for (int d = 0; d < model_->nv; ++d) D_[std::size_t(k) * ld + d] += (1 - a) * dh[k] / extra.parts * v_a[d];
      forces(i, columns.force.data());
      forward_stage(i++, count, columns.dq.data(), v_bar_.data(), columns.force.data(), dh, fraction, D_, stage_q_,
                    stage_v_);
    }
    std::swap(columns.dq, stage_q_), std::swap(columns.dv, stage_v_);
  }
}

// Rows (nu x ld): how the controls push at the end of a stage.
void ImplicitLinearization::control_forces(int i, double* rows) const {
  const JointForces& forces = stages_[i]->equation.joint_forces;
  const int ld = stages_[i]->equation.dynamics.ld;
  for (int k = 0; k < model_->nu; ++k) {
    const int joint = model_->actuators[k].joint, first = model_->joint_v[joint];
    for (int j = 0; j < joint_num_dofs(model_->joint_type[joint]); ++j)
      rows[std::size_t(k) * ld + first + j] = forces.dtau_du[6 * k + j];
  }
}

// Columns of all inputs: q, v, tau, u, and the state before.
void ImplicitLinearization::input_columns() {
  const int nv = model_->nv, ld = stages_[0]->equation.dynamics.ld;
  const bool previous = extra_->scheme == ImplicitScheme::bdf2;
  const int first_u = 3 * nv, first_previous = first_u + model_->nu;
  Columns& c = columns_;
  c.resize(first_previous + (previous ? 2 * nv : 0), ld, previous);
  set_identity(c.dq, 0, nv, ld), set_identity(c.dv, nv, nv, ld), set_identity(c.force, 2 * nv, nv, ld);
  if (previous) {
    set_identity(c.previous_dq, first_previous, nv, ld);
    set_identity(c.previous_dv, first_previous + nv, nv, ld);
  }
  forward(c, [&](int i, double* rows) { control_forces(i, rows + std::size_t(first_u) * ld); });
}

const StepDerivatives& ImplicitLinearization::jacobian() {
  if (have_jacobian_) return *derivatives_;
  have_jacobian_ = true;
  StepDerivatives& out = writable_derivatives(*model_);
  const int nv = model_->nv, nu = model_->nu, ld = stages_[0]->equation.dynamics.ld;
  if (nv == 0) return out;
  input_columns();
  const Columns& c = columns_;
  const auto store = [&](int first, int count, std::vector<double>& to) {
    to.resize(std::size_t(2) * nv * count);
    for (int k = 0; k < count; ++k) {
      std::copy_n(&c.dq[std::size_t(first + k) * ld], nv, &to[std::size_t(2) * nv * k]);
      std::copy_n(&c.dv[std::size_t(first + k) * ld], nv, &to[std::size_t(2) * nv * k + nv]);
    }
  };
  store(0, 2 * nv, out.A_T), store(2 * nv, nv, out.B_tau_T);
  if (nu > 0) store(3 * nv, nu, out.B_T);
  out.A_previous_T.clear();
  if (extra_->scheme == ImplicitScheme::bdf2) store(3 * nv + nu, 2 * nv, out.A_previous_T);
  return out;
}

void ImplicitLinearization::parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) {
  const int nv = model_->nv, ld = stages_[0]->equation.dynamics.ld;
  Columns& c = columns_;
  c.resize(set.size(), ld, extra_->scheme == ImplicitScheme::bdf2);
  for (const ParameterSet::Item& item : set.items())
    if (is_timestep(item)) c.dh[item.first] = 1;
  forward(c, [&](int i, double* rows) { parameter_forces(i, set, rows); });
  columns_T.assign(std::size_t(2) * nv * set.size(), 0.0);
  for (int k = 0; k < set.size(); ++k) {
    std::copy_n(&c.dq[std::size_t(k) * ld], nv, &columns_T[std::size_t(2) * nv * k]);
    std::copy_n(&c.dv[std::size_t(k) * ld], nv, &columns_T[std::size_t(2) * nv * k + nv]);
  }
}

// dq1, dv1: cotangents of the stage's q+ and v+; dq1 null: zero.
void ImplicitLinearization::reverse_stage(int i, const double* dq1, const double* dv1, StageCotangent& out) {
  const Stage& s = *stages_[i];
  const ImplicitStage& stage = solution(i);
  const Model& model = *model_;
  const int nv = model.nv, ld = s.equation.dynamics.ld;
  const double* w = stage.w.data();
  out.y.assign(nv, 0.0), out.w_bar.resize(nv), out.v_bar.resize(nv);
  if (dq1) {
    std::copy_n(dq1, nv, out.y.begin());
    integrate_jacobian_times(model, w, IntegrateArgument::w, true, out.y.data(), 1, 1);
    out.q = out.y;
    add_cross_rows(model, -1, stage.b.data(), out.q.data(), nv, 1, out.y.data());
  }
  for (int d = 0; d < nv; ++d) out.y[d] = dv1[d] + stage.c * out.y[d];
  s.factor.solve_transposed(out.y.data());
  const auto dot = [&](const std::vector<double>& rows, int k) {
    double sum = 0;
    for (int d = 0; d < nv; ++d) sum += rows[std::size_t(k) * ld + d] * out.y[d];
    return sum;
  };
  for (int k = 0; k < nv; ++k) out.w_bar[k] = (dq1 ? dq1[k] : 0.0) - dot(s.equation.R_q_T, k);  // z
  out.q = out.w_bar;
  integrate_jacobian_times(model, w, IntegrateArgument::q, true, out.q.data(), 1, 1);
  s.equation.times_mass(model, out.y.data(), out.v_bar.data());
  for (double& m : out.v_bar) m /= stage.c;
  if (!stage.explicit_dynamics)
    add_cross_rows(model, -1, stage.turned.data(), out.v_bar.data(), nv, 1, out.w_bar.data());
  integrate_jacobian_times(model, w, IntegrateArgument::w, true, out.w_bar.data(), 1, 1);
  out.c = 0;
  for (int d = 0; d < nv; ++d)
    out.c += (stage.w[d] - stage.w_bar[d]) / stage.c * out.w_bar[d] + s.equation.time_acceleration[d] * out.v_bar[d];
  if (!stage.explicit_dynamics) {
    integrate_jacobian_times(model, w, IntegrateArgument::q, true, out.v_bar.data(), 1, 1);
    return;
  }
  for (int k = 0; k < nv; ++k) out.q[k] -= dot(s.equation.base_q_T, k), out.v_bar[k] -= dot(s.equation.base_v_T, k);
}

// v_bar holds -E(xi) v_before / 3, which turns with q and with q_before.
void ImplicitLinearization::add_turned_velocity(const std::vector<double>& xi, StageCotangent& stage,
                                                StepCotangent& out) {
  const int nv = model_->nv;
  std::vector<double>& turn = stage.w_bar;  // done with: u x v_bar / 3
  std::fill(turn.begin(), turn.end(), 0.0);
  add_cross_rows(*model_, 1.0 / 3, extra_->turned_previous_v.data(), stage.v_bar.data(), nv, 1, turn.data());
  integrate_jacobian_times(*model_, xi.data(), IntegrateArgument::q, true, out.previous_v.data(), 1, 1);
  for (int d = 0; d < nv; ++d) out.q[d] += turn[d];
  integrate_jacobian_times(*model_, xi.data(), IntegrateArgument::q, true, turn.data(), 1, 1);
  for (int d = 0; d < nv; ++d) out.previous_q[d] -= turn[d];
}

void ImplicitLinearization::vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set) {
  const ImplicitExtra& extra = *extra_;
  const int nv = model_->nv, nu = model_->nu;
  const double h = options_->constraints.timestep / extra.parts, a = sdirk_alpha();
  const double fraction = stage_fraction(extra.scheme) / extra.parts;
  double dh = 0;
  out.q.assign(dq1, dq1 + nv), out.v.assign(dv1, dv1 + nv);
  out.tau.assign(nv, 0.0), out.u.assign(nu, 0.0);
  out.fext.assign(out.wants_fext ? std::size_t(6) * model_->num_bodies : 0, 0.0);
  out.previous_q.clear(), out.previous_v.clear();
  out.parameters.assign(set ? set->size() : 0, 0.0);
  const auto stage = [&](int i, const double* q1, const double* v1, StageCotangent& to) {
    reverse_stage(i, q1, v1, to);
    dh += fraction * to.c;
    const JointForces& forces = stages_[i]->equation.joint_forces;
    for (int d = 0; d < nv; ++d) out.tau[d] += to.y[d];
    if (out.wants_fext) {
      kinematics(*model_, solution(i).explicit_dynamics ? solution(i).q.data() : solution(i).q_next.data(), fext_at_);
      add_wrench_cotangent(*model_, fext_at_, to.y.data(), out.fext);
    }
    for (int k = 0; k < nu; ++k) {
      const int joint = model_->actuators[k].joint, first = model_->joint_v[joint];
      for (int j = 0; j < joint_num_dofs(model_->joint_type[joint]); ++j)
        out.u[k] += forces.dtau_du[6 * k + j] * to.y[first + j];
    }
    if (set && set->size() > 0) add_stage_gradient(i, *set, to.y.data(), out.parameters);
  };
  for (int i = extra.count - 1; i >= 0; --i) {
    if (extra.scheme == ImplicitScheme::sdirk2) {
      stage(i--, out.q.data(), out.v.data(), second_);
      const std::vector<double>& v_a = solution(i).v_next;
      for (int d = 0; d < nv; ++d) {
        dh += (1 - a) / extra.parts * v_a[d] * second_.w_bar[d];
        out.v[d] = (1 - a) / a * second_.v_bar[d] + (1 - a) * h * second_.w_bar[d];
      }
      stage(i, nullptr, out.v.data(), first_);
      for (int d = 0; d < nv; ++d) {
        out.q[d] = first_.q[d] + second_.q[d];
        out.v[d] = first_.v_bar[d] + (1 - (1 - a) / a) * second_.v_bar[d];
      }
      continue;
    }
    stage(i, out.q.data(), out.v.data(), first_);
    out.q = first_.q, out.v = first_.v_bar;
    if (extra.scheme != ImplicitScheme::bdf2) continue;
    second_.w_bar = first_.w_bar;  // b moves with w_bar
    add_cross_rows(*model_, solution(i).c, solution(i).v_next.data(), second_.w_bar.data(), nv, 1, first_.w_bar.data());
    std::vector<double>& xi = first_.y;  // done with
    for (int d = 0; d < nv; ++d) xi[d] = 3 * solution(i).w_bar[d];
    out.previous_q = first_.w_bar, out.previous_v = first_.v_bar;
    // J_r^-T(xi) = J_r^-1(-xi)
    times_inverse_right_jacobian(*model_, xi.data(), 1, out.previous_q.data(), nv, 1);
    times_inverse_right_jacobian(*model_, xi.data(), -1, first_.w_bar.data(), nv, 1);
    for (int d = 0; d < nv; ++d) {
      out.q[d] += first_.w_bar[d] / 3, out.previous_q[d] /= -3;
      out.v[d] = 4.0 / 3 * first_.v_bar[d], out.previous_v[d] /= -3;
    }
    add_turned_velocity(xi, first_, out);
  }
  if (!set) return;
  for (const ParameterSet::Item& item : set->items())
    if (is_timestep(item)) out.parameters[item.first] += dh;
}

}  // namespace coulomb
