#include "coulomb/stepping/implicit_linearization.hpp"
#include "coulomb/stepping/wrench_cotangent.hpp"

#include <algorithm>

#include "coulomb/model/configuration.hpp"
#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

/// Rotation blocks of rows (count x ld): row := row B^T, with B = J_r^-1(sign xi).
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

/// Rotation blocks: rows += scale u x x_row.
void add_cross_rows(const Model& model, double scale, const double* u, const double* x, int ld, int count,
                    double* rows) {
  for_each_rotation(model, [&](int at) {
    const double scaled[3] = {scale * u[at], scale * u[at + 1], scale * u[at + 2]};
    for (int r = 0; r < count; ++r)
      add_cross3(scaled, x + std::size_t(r) * ld + at, rows + std::size_t(r) * ld + at);
  });
}

/// to += scale x.
void add_scaled(const std::vector<double>& x, double scale, std::size_t count, std::vector<double>& to) {
  for (std::size_t i = 0; i < count; ++i)
    to[i] += scale * x[i];
}

/// Rows first .. first + nv.
void set_identity(std::vector<double>& rows, int first, int nv, int ld) {
  for (int d = 0; d < nv; ++d)
    rows[std::size_t(first + d) * ld + d] = 1;
}

}  // namespace

ImplicitLinearization::ImplicitLinearization(const Model& model) : model_(&model), fext_at_(model) {}
ImplicitLinearization::~ImplicitLinearization() = default;

void ImplicitLinearization::Columns::resize(int columns, int ld, bool previous) {
  count = columns;
  const std::size_t size = std::size_t(columns) * ld;
  dq.assign(size, 0.0);
  dv.assign(size, 0.0);
  force.assign(size, 0.0);
  dh.assign(columns, 0.0);
  previous_dq.assign(previous ? size : 0, 0.0);
  previous_dv.assign(previous ? size : 0, 0.0);
}

void ImplicitLinearization::prepare(const Model& model, const StepOptions& options, StepRecord& record,
                                    const StepMemory&) {
  model_ = &model;
  options_ = &options;
  record_ = &record;
  extra_ = &implicit_extra(model, record);
  have_jacobian_ = false;
  for (int i = 0; i < extra_->count; ++i) {
    if (int(stages_.size()) <= i) stages_.push_back(std::make_unique<Stage>(model));
    Stage& s = *stages_[i];
    s.inverted = s.evaluated = false;

    // What was kept of the step needs no evaluation.
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

  // The equation and what its derivatives share, at the solution.
  s.equation.begin(*model_, *options_, {record_->u.data(), record_->tau.data(), &record_->fext}, stage);
  s.equation.evaluate(*model_, *options_, stage);
  s.equation.prepare(*model_, stage);
  s.equation.prepare_base(*model_, stage);
}

/// The matrices of forward mode.
void ImplicitLinearization::invert(int i) {
  Stage& s = *stages_[i];
  if (s.inverted) return;
  s.inverted = true;
  const Model& model = *model_;
  const ImplicitStage& stage = solution(i);
  const DynamicsWorkspace& inertia = s.equation.inertial();
  const int nv = model.nv;
  const int ld = inertia.ld;
  const std::size_t square = std::size_t(nv) * ld;
  const auto times_P = [&](const std::vector<double>& rows, std::vector<double>& out) {
    out.resize(square);
    multiply(Product::set, rows_of(rows.data(), nv, nv, ld), s.P_T.data(), out.data(), ld, ld, product_);
  };

  // P and P R_q.
  s.P_T.resize(square);
  s.factor.inverse_transposed(s.P_T.data());
  times_P(s.equation.R_q_T, s.N_T);

  // R_a / c, from the packed inertia.
  inertia_rows_.assign(square, 0.0);
  for (int d = 0; d < nv; ++d) {
    const int start = model.dof_row[d];
    for (int k = 0; k <= model.dof_depth[d]; ++k) {
      const int j = model.dof_path[start + k];
      const double mass = inertia.mass[start + k] / stage.c;
      inertia_rows_[std::size_t(d) * ld + j] = mass;
      inertia_rows_[std::size_t(j) * ld + d] = mass;
    }
  }

  // What explicit dynamics have at the base.
  if (stage.explicit_dynamics) {
    times_P(s.equation.base_q_T, s.B_T);
    for (std::size_t k = 0; k < square; ++k)
      inertia_rows_[k] -= s.equation.base_v_T[k];
  }
  times_P(inertia_rows_, s.Q_T);

  // A longer step.
  s.time.resize(nv);
  s.equation.times_mass(model, s.equation.time_acceleration.data(), s.time.data());
  for (double& x : s.time)
    x /= stage.c;
  s.factor.solve(s.time.data());
}

void ImplicitLinearization::forward_stage(int i, const StageColumns& in) {
  invert(i);
  const Stage& s = *stages_[i];
  const ImplicitStage& stage = solution(i);
  const Model& model = *model_;
  const int count = in.count;
  const int nv = model.nv;
  const int ld = s.equation.dynamics.ld;
  const std::size_t size = std::size_t(count) * ld;
  const double* w = stage.w.data();

  // K = J (dw_bar + (w - w_bar) / c dc)
  for (int k = 0; in.dh && k < count; ++k)
    for (int d = 0; d < nv; ++d)
      D_[std::size_t(k) * ld + d] += in.fraction * in.dh[k] * (stage.w[d] - stage.w_bar[d]) / stage.c;
  times_integrate_jacobian(model, w, IntegrateArgument::w, true, D_.data(), ld, count);

  // E dv_bar + [u] K
  turned_.assign(in.v_bar, in.v_bar + size);
  if (!stage.explicit_dynamics) {
    times_integrate_jacobian(model, w, IntegrateArgument::q, true, turned_.data(), ld, count);
    add_cross_rows(model, 1, stage.turned.data(), D_.data(), ld, count, turned_.data());
  }

  // D = E dq + K
  E_dq_.assign(in.base_dq, in.base_dq + size);
  times_integrate_jacobian(model, w, IntegrateArgument::q, true, E_dq_.data(), ld, count);
  add_scaled(E_dq_, 1, size, D_);

  // dv+, with what was multiplied by P beforehand.
  stage_v_.resize(size);
  const auto add = [&](Product product, const double* rows, const std::vector<double>& matrix_T) {
    multiply(product, rows_of(rows, count, nv, ld), matrix_T.data(), stage_v_.data(), ld, ld, product_);
  };
  add(Product::set, turned_.data(), s.Q_T);
  add(Product::subtract, D_.data(), s.N_T);
  add(Product::add, in.force, s.P_T);
  if (stage.explicit_dynamics) add(Product::subtract, in.base_dq, s.B_T);
  for (int k = 0; in.dh && k < count; ++k)
    for (int d = 0; d < nv; ++d)
      stage_v_[std::size_t(k) * ld + d] += in.fraction * in.dh[k] * s.time[d];

  // dq+ = D + c J (dv+ + b x dv+)
  stage_q_ = stage_v_;
  add_cross_rows(model, 1, stage.b.data(), stage_v_.data(), ld, count, stage_q_.data());
  times_integrate_jacobian(model, w, IntegrateArgument::w, true, stage_q_.data(), ld, count);
  for (std::size_t k = 0; k < size; ++k)
    stage_q_[k] = D_[k] + stage.c * stage_q_[k];
}

/// bdf2: dw_bar + db x c v+ in D_, dv_bar in v_bar_ (B8).
void ImplicitLinearization::start_bdf2_columns(const ImplicitStage& stage, const Columns& in) {
  const Model& model = *model_;
  const int count = in.count;
  const int ld = stages_[0]->equation.dynamics.ld;
  const std::size_t size = std::size_t(count) * ld;
  xi_ = stage.w_bar;
  for (double& x : xi_)
    x *= 3;

  // w_bar = xi / 3, xi = q (-) q_before
  D_ = in.dq;
  before_dq_ = in.previous_dq;
  times_inverse_right_jacobian(model, xi_.data(), 1, D_.data(), ld, count);
  times_inverse_right_jacobian(model, xi_.data(), -1, before_dq_.data(), ld, count);
  for (std::size_t k = 0; k < size; ++k)
    D_[k] = (D_[k] - before_dq_[k]) / 3;

  // b is w_bar.
  db_ = D_;
  add_cross_rows(model, -stage.c, stage.v_next.data(), db_.data(), ld, count, D_.data());

  // v_bar = (4 v - E v_before) / 3, with d(E v_before) = E dv_before + u x (dq - E dq_before)
  before_dv_ = in.previous_dv;
  times_integrate_jacobian(model, xi_.data(), IntegrateArgument::q, true, before_dv_.data(), ld, count);
  for (std::size_t k = 0; k < size; ++k)
    v_bar_[k] = (4 * in.dv[k] - before_dv_[k]) / 3;
  before_E_dq_ = in.previous_dq;
  times_integrate_jacobian(model, xi_.data(), IntegrateArgument::q, true, before_E_dq_.data(), ld, count);
  const std::vector<double>& u = extra_->turned_previous_v;
  add_cross_rows(model, -1.0 / 3, u.data(), in.dq.data(), ld, count, v_bar_.data());
  add_cross_rows(model, 1.0 / 3, u.data(), before_E_dq_.data(), ld, count, v_bar_.data());
}

/// sdirk2: dw_bar and dv_bar of the second stage, from the columns of the first in stage_v_.
void ImplicitLinearization::start_second_columns(const ImplicitStage& first, const Columns& in, const double* dh) {
  const int ld = stages_[0]->equation.dynamics.ld;
  const std::size_t size = std::size_t(in.count) * ld;
  const double h = options_->constraints.timestep / extra_->parts;
  const double a = sdirk_alpha();
  for (std::size_t k = 0; k < size; ++k) {
    v_bar_[k] = in.dv[k] + (1 - a) / a * (stage_v_[k] - in.dv[k]);
    D_[k] = (1 - a) * h * stage_v_[k];
  }

  // w_bar has the time step, too.
  for (int k = 0; dh && k < in.count; ++k)
    for (int d = 0; d < model_->nv; ++d)
      D_[std::size_t(k) * ld + d] += (1 - a) * dh[k] / extra_->parts * first.v_next[d];
}

/// Columns of (q, v) and of the state before, to those of the next state. forces(stage, rows): r of every column.
template <class Forces>
void ImplicitLinearization::forward(Columns& columns, Forces forces) {
  const ImplicitExtra& extra = *extra_;
  const int ld = stages_[0]->equation.dynamics.ld;
  const std::size_t size = std::size_t(columns.count) * ld;
  const double fraction = stage_fraction(extra.scheme) / extra.parts;
  const bool timed = std::any_of(columns.dh.begin(), columns.dh.end(), [](double x) { return x != 0; });
  const double* dh = timed ? columns.dh.data() : nullptr;
  const auto pass = [&](int i) {
    forces(i, columns.force.data());
    forward_stage(i, {columns.count, columns.dq.data(), v_bar_.data(), columns.force.data(), dh, fraction});
  };

  // Part by part; the end of one is the start of the next.
  for (int i = 0; i < extra.count; ++i) {
    const ImplicitStage& stage = solution(i);
    D_.assign(size, 0.0);
    v_bar_ = columns.dv;
    if (extra.scheme == ImplicitScheme::bdf2) start_bdf2_columns(stage, columns);
    pass(i);
    if (extra.scheme == ImplicitScheme::sdirk2) {
      start_second_columns(stage, columns, dh);
      pass(++i);
    }
    std::swap(columns.dq, stage_q_);
    std::swap(columns.dv, stage_v_);
  }
}

/// Rows (nu x ld): how the controls push at the end of a stage.
void ImplicitLinearization::control_forces(int i, double* rows) const {
  const JointForces& forces = stages_[i]->equation.joint_forces;
  const int ld = stages_[i]->equation.dynamics.ld;
  for (int k = 0; k < model_->nu; ++k) {
    const int joint = model_->actuators[k].joint;
    const int first = model_->joint_v[joint];
    for (int j = 0; j < joint_num_dofs(model_->joint_type[joint]); ++j)
      rows[std::size_t(k) * ld + first + j] = forces.dtau_du[6 * k + j];
  }
}

/// Columns of all inputs: q, v, tau, u, and the state before.
void ImplicitLinearization::input_columns() {
  const int nv = model_->nv;
  const int ld = stages_[0]->equation.dynamics.ld;
  const bool previous = extra_->scheme == ImplicitScheme::bdf2;
  const int first_u = 3 * nv;
  const int first_previous = first_u + model_->nu;
  Columns& c = columns_;
  c.resize(first_previous + (previous ? 2 * nv : 0), ld, previous);

  // The identity of each; controls push as the joints say.
  set_identity(c.dq, 0, nv, ld);
  set_identity(c.dv, nv, nv, ld);
  set_identity(c.force, 2 * nv, nv, ld);
  if (previous) {
    set_identity(c.previous_dq, first_previous, nv, ld);
    set_identity(c.previous_dv, first_previous + nv, nv, ld);
  }
  forward(c, [&](int i, double* rows) { control_forces(i, rows + std::size_t(first_u) * ld); });
}

/// Columns [first, first + count) as rows of 2 nv, (dq1, dv1).
void ImplicitLinearization::store_columns(int first, int count, std::vector<double>& to) const {
  const std::size_t nv = model_->nv;
  const std::size_t ld = stages_[0]->equation.dynamics.ld;
  to.resize(2 * nv * count);
  for (int k = 0; k < count; ++k) {
    const std::size_t from = (first + k) * ld;
    std::copy_n(&columns_.dq[from], nv, &to[2 * nv * k]);
    std::copy_n(&columns_.dv[from], nv, &to[2 * nv * k + nv]);
  }
}

const StepDerivatives& ImplicitLinearization::jacobian() {
  if (have_jacobian_) return *derivatives_;
  have_jacobian_ = true;
  StepDerivatives& out = writable_derivatives(*model_);
  const int nv = model_->nv;
  const int nu = model_->nu;
  if (nv == 0) return out;

  // Columns become rows of the transposed matrices.
  input_columns();
  store_columns(0, 2 * nv, out.A_T);
  store_columns(2 * nv, nv, out.B_tau_T);
  if (nu > 0) store_columns(3 * nv, nu, out.B_T);
  out.A_previous_T.clear();
  if (extra_->scheme == ImplicitScheme::bdf2) store_columns(3 * nv + nu, 2 * nv, out.A_previous_T);
  return out;
}

void ImplicitLinearization::parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) {
  const int ld = stages_[0]->equation.dynamics.ld;
  Columns& c = columns_;
  c.resize(set.size(), ld, extra_->scheme == ImplicitScheme::bdf2);
  for (const ParameterSet::Item& item : set.items())
    if (is_timestep(item)) c.dh[item.first] = 1;
  forward(c, [&](int i, double* rows) { parameter_forces(i, set, rows); });
  store_columns(0, set.size(), columns_T);
}

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

void ImplicitLinearization::vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set) {
  const ImplicitExtra& extra = *extra_;
  const Model& model = *model_;
  const int nv = model.nv;
  const int nu = model.nu;
  const double h = options_->constraints.timestep / extra.parts;
  const double a = sdirk_alpha();
  const double fraction = stage_fraction(extra.scheme) / extra.parts;
  double dh = 0;

  // (q, v) go from the end of each part to its start; the inputs are those of all stages.
  out.q.assign(dq1, dq1 + nv);
  out.v.assign(dv1, dv1 + nv);
  out.tau.assign(nv, 0.0);
  out.u.assign(nu, 0.0);
  out.fext.assign(out.wants_fext ? std::size_t(6) * model.num_bodies : 0, 0.0);
  out.previous_q.clear();
  out.previous_v.clear();
  out.parameters.assign(set ? set->size() : 0, 0.0);

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
    for (int k = 0; k < nu; ++k) {
      const int joint = model.actuators[k].joint;
      const int first = model.joint_v[joint];
      for (int j = 0; j < joint_num_dofs(model.joint_type[joint]); ++j)
        out.u[k] += forces.dtau_du[6 * k + j] * to.y[first + j];
    }
    if (set && set->size() > 0) add_stage_gradient(i, *set, to.y.data(), out.parameters);
  };

  for (int i = extra.count - 1; i >= 0; --i) {
    if (extra.scheme != ImplicitScheme::sdirk2) {
      pass(i, out.q.data(), out.v.data(), first_);
      out.q = first_.q;
      out.v = first_.v_bar;
      if (extra.scheme == ImplicitScheme::bdf2) reverse_bdf2(solution(i), out);
      continue;
    }

    // The second stage starts from q as well, and from the first one's velocity v_a.
    pass(i--, out.q.data(), out.v.data(), second_);
    const std::vector<double>& v_a = solution(i).v_next;
    for (int d = 0; d < nv; ++d) {
      dh += (1 - a) / extra.parts * v_a[d] * second_.w_bar[d];
      out.v[d] = (1 - a) / a * second_.v_bar[d] + (1 - a) * h * second_.w_bar[d];
    }
    pass(i, nullptr, out.v.data(), first_);
    for (int d = 0; d < nv; ++d) {
      out.q[d] = first_.q[d] + second_.q[d];
      out.v[d] = first_.v_bar[d] + (1 - (1 - a) / a) * second_.v_bar[d];
    }
  }

  if (!set) return;
  for (const ParameterSet::Item& item : set->items())
    if (is_timestep(item)) out.parameters[item.first] += dh;
}

}  // namespace coulomb
