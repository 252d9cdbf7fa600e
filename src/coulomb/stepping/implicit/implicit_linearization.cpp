// Forward mode: columns of all inputs through the stages (docs/theory.md (B5), (B8)). The reverse product is in implicit_products.cpp.
#include "coulomb/stepping/implicit/implicit_linearization.hpp"

#include <algorithm>

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/stepping/implicit/implicit_rotations.hpp"

namespace coulomb {
namespace {

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
  shift.assign(size, 0.0);
  dh.assign(columns, 0.0);
  previous_dq.assign(previous ? size : 0, 0.0);
  previous_dv.assign(previous ? size : 0, 0.0);
}

void ImplicitLinearization::prepare(const Model& model, const StepOptions& options, StepRecord& record,
                                    const StepMemory&) {
  model_ = &model;
  options_ = &options;
  record_ = &record;
  extra_ = &implicit_extra(record);
  have_jacobian_ = false;
  for (int i = 0; i <= last_stage(); ++i) {
    if (int(stages_.size()) <= i) {
      stages_.push_back(std::make_unique<Stage>(model));
    }
    stages_[i]->inverted = stages_[i]->evaluated = false;
  }

  // What bdf1 starts from depends on where it starts; bdf2 takes some steps by it.
  for (const ImplicitRun& run : extra_->runs)
    for (int i = run.first; i < run.first + run.count; ++i) {
      Stage& s = *stages_[i];
      if (run.scheme != ImplicitScheme::semi_implicit && !s.start) {
        s.start = std::make_unique<SpinningStart>(model);
      }
      if (run.scheme == ImplicitScheme::bdf1) {
        const double* v = i == run.first ? record.v.data() : solution(i - 1).v_next.data();
        s.start->differentiate(model, solution(i).q.data(), v, solution(i).c);
      }
    }

  for (int i = 0; i < extra_->count; ++i) {
    Stage& s = *stages_[i];

    // What was kept of the step needs no evaluation.
    if (extra_->recalled) {
      extra_->recalled->restore(s.equation, s.factor);
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
  const ImplicitStage& stage = solution(i);

  // The equation and what its derivatives share, at the solution.
  s.equation.begin(*model_, *options_, {record_->u.data(), record_->tau.data(), &record_->fext}, stage);
  if (i < extra_->count)
    s.equation.evaluate(*model_, *options_, extra_->stages[i]);
  else
    s.equation.evaluate_end(*model_, *options_, stage);
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
  for (std::size_t d = 0; d < s.equation.time_force.size(); ++d)
    s.time[d] -= s.equation.time_force[d];
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
  if (stage.explicit_dynamics) {
    add(Product::subtract, in.base_dq, s.B_T);
  }
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
void ImplicitLinearization::start_second_columns(const ImplicitStage& first, const Columns& in, int parts,
                                                 const double* dh) {
  const int ld = stages_[0]->equation.dynamics.ld;
  const std::size_t size = std::size_t(in.count) * ld;
  const double h = options_->constraints.timestep / parts;
  const double a = sdirk_alpha();
  for (std::size_t k = 0; k < size; ++k) {
    v_bar_[k] = in.dv[k] + (1 - a) / a * (stage_v_[k] - in.dv[k]);
    D_[k] = (1 - a) * h * stage_v_[k];
  }

  // w_bar has the time step, too.
  for (int k = 0; dh && k < in.count; ++k)
    for (int d = 0; d < model_->nv; ++d)
      D_[std::size_t(k) * ld + d] += (1 - a) * dh[k] / parts * first.v_next[d];
}

/// Columns of (q, v) and of the state before, to those of the next state. forces(stage, rows): r of every column; shifts(stage, rows): what
/// else moves Delta.
template <class Forces, class Shifts>
void ImplicitLinearization::forward(Columns& columns, Forces forces, Shifts shifts) {
  if (extra_->runs.size() == 1) return forward_run(extra_->runs[0], columns, forces, shifts);

  // Every run from the start, its trees at the end.
  const auto ld = std::size_t(stages_[0]->equation.dynamics.ld);
  start_dq_ = end_dq_ = columns.dq;
  start_dv_ = end_dv_ = columns.dv;
  for (const ImplicitRun& run : extra_->runs) {
    columns.dq = start_dq_;
    columns.dv = start_dv_;
    forward_run(run, columns, forces, shifts);
    for_each_moved(run, [&](int first, int count) {
      for (int k = 0; k < columns.count; ++k) {
        std::copy_n(&columns.dq[k * ld + first], count, &end_dq_[k * ld + first]);
        std::copy_n(&columns.dv[k * ld + first], count, &end_dv_[k * ld + first]);
      }
    });
  }
  columns.dq = end_dq_;
  columns.dv = end_dv_;
}

template <class Forces, class Shifts>
void ImplicitLinearization::forward_run(const ImplicitRun& run, Columns& columns, Forces forces, Shifts shifts) {
  const int ld = stages_[0]->equation.dynamics.ld;
  const std::size_t size = std::size_t(columns.count) * ld;
  const double fraction = stage_fraction(run.scheme) / run.parts;
  const bool timed = std::any_of(columns.dh.begin(), columns.dh.end(), [](double x) { return x != 0; });
  const double* dh = timed ? columns.dh.data() : nullptr;
  const auto pass = [&](int i) {
    forces(i, columns.force.data());
    forward_stage(i, {columns.count, columns.dq.data(), v_bar_.data(), columns.force.data(), dh, fraction});
  };

  // Part by part; the end of one is the start of the next.
  for (int i = run.first; i < run.first + run.count; ++i) {
    const ImplicitStage& stage = solution(i);
    D_.assign(size, 0.0);
    v_bar_ = columns.dv;
    if (run.scheme == ImplicitScheme::bdf2) {
      start_bdf2_columns(stage, columns);
    }
    if (run.scheme == ImplicitScheme::bdf1 && stages_[i]->start->any()) {
      stages_[i]->start->add_columns(*model_, {columns.dq.data(), columns.dv.data(), dh, fraction, columns.count, ld},
                                     v_bar_.data());
      shifts(i, columns.shift.data());
      add_scaled(columns.shift, 1, size, v_bar_);
    }
    pass(i);
    if (run.scheme == ImplicitScheme::sdirk2) {
      start_second_columns(stage, columns, run.parts, dh);
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
    const ActuatorDofs dofs = actuator_dofs(*model_, k);
    for (int j = 0; j < dofs.num; ++j)
      rows[std::size_t(k) * ld + dofs.dof[j]] = forces.dtau_du[max_actuator_dofs * k + j];
  }
}

/// Columns of all inputs: q, v, tau, u, and the state before.
void ImplicitLinearization::input_columns() {
  const int nv = model_->nv;
  const int ld = stages_[0]->equation.dynamics.ld;
  const bool previous = extra_->has(ImplicitScheme::bdf2);
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
  forward(c, [&](int i, double* rows) { control_forces(i, rows + std::size_t(first_u) * ld); }, [](int, double*) {});
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
  if (nu > 0) {
    store_columns(3 * nv, nu, out.B_T);
  }
  out.A_previous_T.clear();
  if (extra_->has(ImplicitScheme::bdf2)) {
    store_columns(3 * nv + nu, 2 * nv, out.A_previous_T);
  }
  return out;
}

void ImplicitLinearization::parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) {
  const int ld = stages_[0]->equation.dynamics.ld;
  Columns& c = columns_;
  c.resize(set.size(), ld, extra_->has(ImplicitScheme::bdf2));
  for (const ParameterSet::Item& item : set.items())
    if (is_timestep(item)) {
      c.dh[item.first] = 1;
    }
  forward(
      c, [&](int i, double* rows) { parameter_forces(i, set, rows); },
      [&](int i, double* rows) { parameter_shifts(i, set, rows); });
  store_columns(0, set.size(), columns_T);
}

}  // namespace coulomb
