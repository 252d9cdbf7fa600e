#include "coulomb/stepping/impact_gradient.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "coulomb/model/configuration.hpp"
#include "coulomb/solvers/dense.hpp"

namespace coulomb {
namespace {

bool is_event(PhaseEnd end) { return end == PhaseEnd::pair || end == PhaseEnd::limit; }

}  // namespace

ImpactGradient::ImpactGradient(const Model& model)
    : model_(&model), w_(model.nv), u_(model.nv), bar_(model.nv), zero_(model.nv) {}

void ImpactGradient::Tangents::reset(int columns, int ld) {
  count = columns;
  for (auto* x : {&q, &v}) x->assign(std::size_t(columns) * ld, 0.0);
  for (auto* x : {&rest, &step}) x->assign(columns, 0.0);
  lag.clear();
}

void ImpactGradient::prepare(const Model& model, const StepOptions& options, StepRecord& record, const StepMemory&) {
  model_ = &model, step_ = &record, phases_ = &phases_of(record);
  h_ = options.constraints.timestep, ld_ = record.dynamics.ld;
  have_jacobian_ = false;
  const int count = phases_->count;
  while (static_cast<int>(linear_.size()) < count) linear_.push_back(std::make_unique<StepLinearization>(model));
  if (static_cast<int>(gaps_.size()) < count) gaps_.resize(count), starts_.resize(count);
  for (int i = 0; i < count; ++i) linear_[i]->prepare_exact(model, phases_->options(i), phases_->record(i, record));
  for (int i = 0; i + 1 < count; ++i)  // what follows an impact starts where it is
    if (is_event(phase(i).end)) {
      const int events = num_events(i);
      if (static_cast<int>(gaps_[i].size()) < events) gaps_[i].resize(events);
      for (int k = 0; k < events; ++k)
        gaps_[i][k].build(model, k == 0 ? phase(i).gap : phase(i).others[k - 1], this->record(i + 1),
                          phases_->smooth.constraints);
      if (phase(i).from_start)
        starts_[i].build(model, ClosingGap{phase(i).sank_from}, start_of(i), phases_->smooth.constraints);
    }
}

/// Where a phase starts: its record, or, where that is of half way, a record of its own.
const StepRecord& ImpactGradient::start_of(int i) {
  const ImpactPhase& p = phase(i);
  const StepRecord& r = record(i);
  if (!p.midpoint) return r;
  while (static_cast<int>(start_records_.size()) <= i) start_records_.emplace_back();
  if (!start_records_[i]) start_records_[i] = std::make_unique<StepRecord>(*model_);
  StepRecord& start = *start_records_[i];
  start.q = p.q, start.v = p.v, start.u = r.u, start.fext = r.fext, start.joint_forces = r.joint_forces;
  kinematics(*model_, start.q.data(), start.dynamics);
  velocities(*model_, start.v.data(), start.dynamics);
  return start;
}

bool ImpactGradient::ambiguous() {
  for (int i = 0; i < phases_->count; ++i)
    if (linear_[i]->ambiguous()) return true;
  return false;
}

int ImpactGradient::last_smooth() const {
  int i = phases_->count - 1;
  while (phase(i).end == PhaseEnd::instant) --i;
  return i;
}

/// w = T v + T^2/2 a, and q'(T) in the tangent space at its end.
void ImpactGradient::path_velocity(int i, std::vector<double>& w, std::vector<double>& velocity) const {
  const ImpactPhase& p = phase(i);
  const double *a = record(i).acceleration.data(), T = p.duration;
  for (int d = 0; d < model_->nv; ++d) {
    w[d] = T * (p.v[d] + 0.5 * T * a[d]);
    velocity[d] = p.v[d] + T * a[d];
  }
  integrate_jacobian_times(*model_, w.data(), IntegrateArgument::w, false, velocity.data(), 1, 1);
}

/// rate_ of the phase's events.
void ImpactGradient::event_rates(int i, const double* velocity) {
  rate_.assign(num_events(i), 0.0), time_.assign(num_events(i), 0.0);
  if (!is_event(phase(i).end)) return;
  for (int k = 0; k < num_events(i); ++k) {
    double rate = 0, size = 0;
    const std::vector<double>& J = gaps_[i][k].row();
    for (int d = 0; d < model_->nv; ++d) rate += J[d] * velocity[d], size += std::abs(J[d] * velocity[d]);
    const bool fixed = (k == 0 && (phase(i).grazing || phase(i).fixed_time)) || !(-rate > 1e-12 * size);
    rate_[k] = fixed ? 0.0 : rate;
  }
}

// --- forward

double ImpactGradient::planned(const ImpactPhase& p, const Tangents& t, int k) {
  return p.share > 0 ? p.share * t.step[k] : t.rest[k];
}

/// dq where the phase's problem was evaluated.
void ImpactGradient::evaluated_at(int i, const Tangents& t, std::vector<double>& q_T) const {
  q_T = t.q;
  const ImpactPhase& p = phase(i);
  if (!p.midpoint) return;
  const int nv = model_->nv;
  const double half = 0.5 * p.planned;
  for (int d = 0; d < nv; ++d) w_[d] = half * p.v[d];
  times_integrate_jacobian(*model_, w_.data(), IntegrateArgument::q, true, q_T.data(), ld_, t.count);
  moved_.assign(t.v.size(), 0.0);
  for (int k = 0; k < t.count; ++k)
    for (int d = 0; d < nv; ++d)
      moved_[std::size_t(k) * ld_ + d] = half * t.v[std::size_t(k) * ld_ + d] + 0.5 * planned(p, t, k) * p.v[d];
  times_integrate_jacobian(*model_, w_.data(), IntegrateArgument::w, true, moved_.data(), ld_, t.count);
  for (std::size_t k = 0; k < moved_.size(); ++k) q_T[k] += moved_[k];
}

template <class Direct>
void ImpactGradient::follow(int i, const Direct& direct, Tangents& t) {
  const int nv = model_->nv;
  const StepDerivatives& J = linear_[i]->jacobian();
  for (auto* x : {&by_q_, &by_v_}) x->assign(std::size_t(nv) * ld_, 0.0);
  for (int k = 0; k < nv; ++k) {
    std::copy_n(J.A_T.data() + std::size_t(2) * nv * k + nv, nv, by_q_.data() + std::size_t(k) * ld_);
    std::copy_n(J.A_T.data() + std::size_t(2) * nv * (nv + k) + nv, nv, by_v_.data() + std::size_t(k) * ld_);
  }
  evaluated_at(i, t, q_T_);
  dv_T_.resize(t.v.size());
  multiply(Product::set, rows_of(q_T_.data(), t.count, nv, ld_), by_q_.data(), dv_T_.data(), ld_, ld_, product_);
  const ImpactPhase& p = phase(i);
  const std::vector<double>& v_T = p.midpoint_velocity ? moved_ : t.v;
  if (p.midpoint_velocity) {
    moved_ = t.v;
    for (int k = 0; k < t.count; ++k)
      for (int d = 0; d < nv; ++d)
        moved_[std::size_t(k) * ld_ + d] += 0.5 * planned(p, t, k) * record(i).acceleration[d];
  }
  multiply(Product::add, rows_of(v_T.data(), t.count, nv, ld_), by_v_.data(), dv_T_.data(), ld_, ld_, product_);
  gap_columns_.assign(std::size_t(num_events(i)) * t.count, 0.0);
  direct(i, dv_T_.data(), gap_columns_);
  if (p.end == PhaseEnd::instant) {
    t.v = dv_T_;
    catch_up(i, t);
  } else {
    follow_path(i, gap_columns_, t);
  }
}

/// After an impact. Bodies that wait for the rest of the step do not move on.
void ImpactGradient::catch_up(int i, Tangents& t) const {
  if (t.lag.empty()) return;
  const int events = num_events(i - 1);
  for (int k = 0; k < t.count && i + 1 < phases_->count; ++k)
    for (int d = 0; d < model_->nv; ++d) {
      const double lag = t.lag[std::size_t(k) * events + event_of(i - 1, d)];
      t.q[std::size_t(k) * ld_ + d] += record(i).v_next[d] * lag;
      t.v[std::size_t(k) * ld_ + d] += record(i + 1).acceleration[d] * lag;
    }
  t.lag.clear();
}

/// LU of h + t_p/2 (1 - V).
void ImpactGradient::factor_midpoint(int i, bool transposed) {
  const int nv = model_->nv, ld = dense::padded(nv);
  const double half = 0.5 * phase(i).planned;
  const std::vector<double>& A_T = linear_[i]->jacobian().A_T;
  midpoint_.assign(std::size_t(nv) * ld, 0.0), pivot_scratch_.resize(ld), pivots_.resize(nv);
  for (int k = 0; k < nv; ++k)
    for (int d = 0; d < nv; ++d)  // V_dk
      midpoint_[transposed ? std::size_t(k) * ld + d : std::size_t(d) * ld + k] =
          (d == k ? h_ + half : 0.0) - half * A_T[std::size_t(2) * nv * (nv + k) + nv + d];
  dense::lu(midpoint_.data(), nv, ld, pivots_.data(), pivot_scratch_.data());
}

/// From the velocities dv_T_ of the phase's problem to its end.
void ImpactGradient::follow_path(int i, const std::vector<double>& gap, Tangents& t) {
  const ImpactPhase& p = phase(i);
  const int nv = model_->nv;
  const double *a = record(i).acceleration.data(), T = p.duration;
  path_velocity(i, w_, u_);
  const int events = num_events(i);
  event_rates(i, u_.data());
  if (events > 1) t.lag.assign(std::size_t(t.count) * events, 0.0);
  if (p.midpoint_velocity) factor_midpoint(i, false);
  at_start_.assign(t.count, 0.0);
  for (int k = 0; k < t.count && p.from_start; ++k)
    for (int d = 0; d < nv; ++d) at_start_[k] += starts_[i].row()[d] * t.q[std::size_t(k) * ld_ + d];
  for (int k = 0; k < t.count; ++k) {  // dv_T_ becomes da, q_T_ the tangent of the path
    double *da = dv_T_.data() + std::size_t(k) * ld_, *dw = q_T_.data() + std::size_t(k) * ld_;
    const double *v = t.v.data() + std::size_t(k) * ld_,
                 *from = p.midpoint_velocity ? moved_.data() + std::size_t(k) * ld_ : v;
    for (int d = 0; d < nv; ++d) da[d] -= from[d] + a[d] * p.length * t.step[k];
    if (p.midpoint_velocity) dense::lu_solve(midpoint_.data(), nv, dense::padded(nv), pivots_.data(), da);
    else
      for (int d = 0; d < nv; ++d) da[d] /= p.length * h_;
    for (int d = 0; d < nv; ++d) dw[d] = T * (v[d] + 0.5 * T * da[d]);
  }
  times_integrate_jacobian(*model_, w_.data(), IntegrateArgument::w, true, q_T_.data(), ld_, t.count);
  times_integrate_jacobian(*model_, w_.data(), IntegrateArgument::q, true, t.q.data(), ld_, t.count);
  for (int k = 0; k < t.count; ++k) {
    double *q = t.q.data() + std::size_t(k) * ld_, *v = t.v.data() + std::size_t(k) * ld_;
    const double *da = dv_T_.data() + std::size_t(k) * ld_, *dw = q_T_.data() + std::size_t(k) * ld_;
    for (int d = 0; d < nv; ++d) q[d] += dw[d];
    time_[0] = p.end == PhaseEnd::whole || p.end == PhaseEnd::part ? planned(p, t, k) : 0.0;
    for (int e = 0; e < events; ++e) {
      if (rate_[e] == 0) continue;
      double change = gap[std::size_t(e) * t.count + k] - (e == 0 ? at_start_[k] : 0.0);
      const std::vector<double>& row = gaps_[i][e].row();
      for (int d = 0; d < nv; ++d) change += row[d] * q[d];
      time_[e] = -change / rate_[e];
    }
    for (int d = 0; d < nv; ++d) {
      const double dT = time_[event_of(i, d)];
      q[d] += u_[d] * dT;
      v[d] += T * da[d] + a[d] * dT;
    }
    t.rest[k] -= time_[0];
    for (int e = 1; e < events; ++e) t.lag[std::size_t(k) * events + e] = time_[0] - time_[e];
  }
}

void ImpactGradient::start_by_state(Tangents& t) const {
  const int nv = model_->nv;
  for (int d = 0; d < nv; ++d) {
    t.q[std::size_t(d) * ld_ + d] = 1;
    t.v[std::size_t(nv + d) * ld_ + d] = 1;
  }
}

/// Adds the velocity columns by u and tau from row first_u and first_tau on (negative: not wanted). Forces do nothing in an impact.
void ImpactGradient::input_columns(int i, double* dv_T, int first_u, int first_tau) {
  if (phase(i).end == PhaseEnd::instant) return;
  const int nv = model_->nv;
  const StepDerivatives& J = linear_[i]->jacobian();
  const auto add = [&](const std::vector<double>& columns_T, int count, int first) {
    for (int k = 0; k < count && first >= 0; ++k)
      for (int d = 0; d < nv; ++d)
        dv_T[std::size_t(first + k) * ld_ + d] += columns_T[std::size_t(2) * nv * k + nv + d];
  };
  add(J.B_T, model_->nu, first_u);
  add(J.B_tau_T, nv, first_tau);
}

const StepDerivatives& ImpactGradient::jacobian() {
  if (have_jacobian_) return *derivatives_;
  const int nv = model_->nv, nu = model_->nu;
  StepDerivatives& out = writable_derivatives(*model_);
  tangents_.reset(3 * nv + nu, ld_);
  start_by_state(tangents_);
  const auto direct = [&](int i, double* dv_T, std::vector<double>&) { input_columns(i, dv_T, 2 * nv, 2 * nv + nu); };
  for (int i = 0; i < phases_->count; ++i) follow(i, direct, tangents_);
  const auto store = [&](int first, int count, std::vector<double>& columns_T) {
    for (int k = 0; k < count; ++k) {
      std::copy_n(tangents_.q.data() + std::size_t(first + k) * ld_, nv, columns_T.data() + std::size_t(2) * nv * k);
      std::copy_n(tangents_.v.data() + std::size_t(first + k) * ld_, nv,
                  columns_T.data() + std::size_t(2) * nv * k + nv);
    }
  };
  store(0, 2 * nv, out.A_T);
  store(2 * nv, nu, out.B_T);
  store(2 * nv + nu, nv, out.B_tau_T);
  out.ambiguous = ambiguous();
  have_jacobian_ = true;
  return out;
}

int ImpactGradient::timestep_column(const ParameterSet& set) {
  for (const ParameterSet::Item& item : set.items())
    if (std::strcmp(item.kind->name(), "timestep") == 0) return item.first;
  return -1;
}

/// Adds the velocity columns of parameters, and gets how the gap moves with them.
void ImpactGradient::theta_columns(int i, const ParameterSet& set, double* dv_T, std::vector<double>& gap) {
  const int nv = model_->nv;
  linear_[i]->parameter_columns(set, columns_);
  const int of_length = timestep_column(set);
  const double length = phase(i).end == PhaseEnd::instant ? 0.0 : phase(i).length;  // an instant has none
  for (int k = 0; k < set.size(); ++k)
    for (int d = 0; d < nv; ++d)
      dv_T[std::size_t(k) * ld_ + d] += (k == of_length ? length : 1.0) * columns_[std::size_t(2) * nv * k + nv + d];
  if (!is_event(phase(i).end)) return;
  for (int e = 0; e < num_events(i); ++e) {
    gaps_[i][e].parameters(set, columns_);
    std::copy(columns_.begin(), columns_.end(), gap.begin() + std::ptrdiff_t(e) * set.size());
  }
  if (!phase(i).from_start) return;
  starts_[i].parameters(set, columns_);
  for (int k = 0; k < set.size(); ++k) gap[k] -= columns_[k];
}

void ImpactGradient::parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) {
  const int nv = model_->nv, h = timestep_column(set);
  tangents_.reset(set.size(), ld_);
  if (h >= 0) tangents_.rest[h] = tangents_.step[h] = 1;
  const auto direct = [&](int i, double* dv_T, std::vector<double>& gap) { theta_columns(i, set, dv_T, gap); };
  for (int i = 0; i < phases_->count; ++i) follow(i, direct, tangents_);
  columns_T.resize(std::size_t(2) * nv * set.size());
  for (int k = 0; k < set.size(); ++k) {
    std::copy_n(tangents_.q.data() + std::size_t(k) * ld_, nv, columns_T.data() + std::size_t(2) * nv * k);
    std::copy_n(tangents_.v.data() + std::size_t(k) * ld_, nv, columns_T.data() + std::size_t(2) * nv * k + nv);
  }
}

/// out_T (count x rows) += what the phase's impulses change through its state.
void ImpactGradient::impulses(const Tangents& t, int i, std::vector<double>& out_T) {
  const int nv = model_->nv, n = record(i).rows.num_rows;
  evaluated_at(i, t, q_T_);
  for (const bool by_q : {true, false}) {
    linear_[i]->impulse_columns(by_q ? StepInput::q : StepInput::v, columns_);
    const std::vector<double>& x = by_q ? q_T_ : t.v;
    for (int k = 0; k < t.count; ++k)
      for (int d = 0; d < nv; ++d)
        for (int r = 0; r < n; ++r)
          out_T[std::size_t(k) * n + r] += x[std::size_t(k) * ld_ + d] * columns_[std::size_t(d) * n + r];
  }
}

void ImpactGradient::impulse_columns(StepInput input, std::vector<double>& out_T) {
  const int nv = model_->nv, last = last_smooth(), n = record(last).rows.num_rows;
  const int count = input == StepInput::u ? model_->nu : nv;
  const bool of_state = input == StepInput::q || input == StepInput::v;
  Tangents t;
  t.reset(of_state ? 2 * nv : count, ld_);
  if (of_state) start_by_state(t);
  const auto direct = [&](int i, double* dv_T, std::vector<double>&) {
    input_columns(i, dv_T, input == StepInput::u ? 0 : -1, input == StepInput::tau ? 0 : -1);
  };
  for (int i = 0; i < last; ++i) follow(i, direct, t);
  const auto of_whole_step = [&](std::vector<double>& columns) {
    for (double& x : columns) x /= phase(last).length;
  };
  if (of_state) {
    std::vector<double> all(std::size_t(2) * nv * n, 0.0);
    impulses(t, last, all);
    of_whole_step(all);
    const auto first = all.begin() + (input == StepInput::v ? std::ptrdiff_t(nv) * n : 0);
    out_T.assign(first, first + std::ptrdiff_t(nv) * n);
    return;
  }
  linear_[last]->impulse_columns(input, out_T);
  impulses(t, last, out_T);
  of_whole_step(out_T);
}

void ImpactGradient::impulse_columns(const ParameterSet& set, std::vector<double>& out_T) {
  const int last = last_smooth(), h = timestep_column(set);
  Tangents t;
  t.reset(set.size(), ld_);
  if (h >= 0) t.rest[h] = t.step[h] = 1;
  const auto direct = [&](int i, double* dv_T, std::vector<double>& gap) { theta_columns(i, set, dv_T, gap); };
  for (int i = 0; i < last; ++i) follow(i, direct, t);
  linear_[last]->impulse_columns(set, out_T);
  const int n = record(last).rows.num_rows;
  for (int r = 0; r < n && h >= 0; ++r) out_T[std::size_t(h) * n + r] *= phase(last).length;
  impulses(t, last, out_T);
  for (double& x : out_T) x /= phase(last).length;
}

// --- reverse

/// bar: cotangents of the phase's end in q and v, afterwards of its start; u, tau and parameters collect.
void ImpactGradient::smooth_vjp(int i, StepCotangent& bar, const ParameterSet* set, double& rest, double& step) {
  const ImpactPhase& p = phase(i);
  const int nv = model_->nv;
  const double *a = record(i).acceleration.data(), T = p.duration;
  path_velocity(i, w_, u_);
  event_rates(i, u_.data());
  for (int d = 0; d < nv; ++d) time_[event_of(i, d)] += bar.q[d] * u_[d] + bar.v[d] * a[d];
  if (p.end == PhaseEnd::whole) rest = time_[0];
  if (p.end == PhaseEnd::part) step += p.share * (time_[0] - rest);
  time_[0] -= rest;
  for (int e = 1; e < num_events(i); ++e) time_[0] += lag_bar_[e], time_[e] -= lag_bar_[e];
  double of_start = 0;
  for (int e = 0; e < num_events(i); ++e) {
    if (rate_[e] == 0) continue;
    const double weight = -time_[e] / rate_[e];
    if (e == 0 && p.from_start) of_start = -weight;
    for (int d = 0; d < nv; ++d) bar.q[d] += weight * gaps_[i][e].row()[d];
    if (!set || set->size() == 0 || weight == 0) continue;
    gaps_[i][e].parameters(*set, gap_columns_);
    for (int k = 0; k < set->size(); ++k) bar.parameters[k] += weight * gap_columns_[k];
  }
  if (of_start != 0 && set && set->size() > 0) {
    starts_[i].parameters(*set, gap_columns_);
    for (int k = 0; k < set->size(); ++k) bar.parameters[k] += of_start * gap_columns_[k];
  }
  std::copy(bar.q.begin(), bar.q.end(), bar_.begin());
  integrate_jacobian_times(*model_, w_.data(), IntegrateArgument::w, true, bar_.data(), 1, 1);
  integrate_jacobian_times(*model_, w_.data(), IntegrateArgument::q, true, bar.q.data(), 1, 1);
  for (int d = 0; d < nv; ++d) {  // bar_ becomes the cotangent of v+
    const double of_a = T * (0.5 * T * bar_[d] + bar.v[d]);
    bar.v[d] += T * bar_[d];
    bar_[d] = p.midpoint_velocity ? of_a : of_a / (p.length * h_);
  }
  if (p.midpoint_velocity) {
    factor_midpoint(i, true);
    dense::lu_solve(midpoint_.data(), nv, dense::padded(nv), pivots_.data(), bar_.data());
  }
  part_.wants_fext = bar.wants_fext;
  linear_[i]->vjp(zero_.data(), bar_.data(), part_, set);
  for (std::size_t k = 0; k < part_.fext.size(); ++k) bar.fext[k] += part_.fext[k];
  double of_planned = 0;
  for (int d = 0; d < nv; ++d) {
    const double of_v = part_.v[d] - bar_[d];
    bar.v[d] += of_v, bar.tau[d] += part_.tau[d];
    step -= bar_[d] * p.length * a[d];
    if (p.midpoint_velocity) of_planned += 0.5 * of_v * a[d];
  }
  (p.share > 0 ? step : rest) += (p.share > 0 ? p.share : 1.0) * of_planned;
  for (int k = 0; k < model_->nu; ++k) bar.u[k] += part_.u[k];
  const int of_length = set ? timestep_column(*set) : -1;
  for (int k = 0; k < static_cast<int>(part_.parameters.size()); ++k)
    bar.parameters[k] += (k == of_length ? p.length : 1.0) * part_.parameters[k];
  if (p.midpoint) {
    for (int d = 0; d < nv; ++d) w_[d] = 0.5 * p.planned * p.v[d];
    std::copy(part_.q.begin(), part_.q.end(), bar_.begin());
    integrate_jacobian_times(*model_, w_.data(), IntegrateArgument::w, true, bar_.data(), 1, 1);
    integrate_jacobian_times(*model_, w_.data(), IntegrateArgument::q, true, part_.q.data(), 1, 1);
    for (int d = 0; d < nv; ++d) {
      bar.v[d] += 0.5 * p.planned * bar_[d];
      (p.share > 0 ? step : rest) += (p.share > 0 ? p.share : 1.0) * 0.5 * bar_[d] * p.v[d];
    }
  }
  for (int d = 0; d < nv; ++d) bar.q[d] += part_.q[d] + (of_start != 0 ? of_start * starts_[i].row()[d] : 0.0);
}

/// lag_bar_ of the events that an impact follows; bar: cotangents after it.
void ImpactGradient::catch_up_vjp(int i, const StepCotangent& bar) {
  if (i == 0 || phase(i - 1).others.empty()) return;
  lag_bar_.assign(num_events(i - 1), 0.0);
  if (i + 1 == phases_->count) return;
  for (int d = 0; d < model_->nv; ++d)
    lag_bar_[event_of(i - 1, d)] += bar.q[d] * record(i).v_next[d] + bar.v[d] * record(i + 1).acceleration[d];
}

void ImpactGradient::vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set) {
  const int nv = model_->nv;
  out.q.assign(dq1, dq1 + nv), out.v.assign(dv1, dv1 + nv);
  out.u.assign(model_->nu, 0.0), out.tau.assign(nv, 0.0);
  out.fext.assign(out.wants_fext ? std::size_t(6) * model_->num_bodies : 0, 0.0);
  out.parameters.assign(set ? set->size() : 0, 0.0);
  const int column = set ? timestep_column(*set) : -1;
  double rest = 0, step = 0;
  for (int i = phases_->count - 1; i >= 0; --i) {
    if (phase(i).end != PhaseEnd::instant) {
      smooth_vjp(i, out, set, rest, step);
      continue;
    }
    catch_up_vjp(i, out);
    part_.wants_fext = false;  // forces do nothing in an impact
    linear_[i]->vjp(zero_.data(), out.v.data(), part_, set);
    out.v = part_.v;
    for (int d = 0; d < nv; ++d) out.q[d] += part_.q[d];
    for (int k = 0; k < static_cast<int>(part_.parameters.size()); ++k)
      if (k != column) out.parameters[k] += part_.parameters[k];
  }
  if (column >= 0) out.parameters[column] += rest + step;
}

}  // namespace coulomb
