#include "coulomb/stepping/impacts/impact_gradient.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "coulomb/configuration.hpp"
#include "coulomb/linalg/dense.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/stepping/gradients/gradient_modes.hpp"
#include "coulomb/stepping/impacts/impact_path.hpp"
#include "coulomb/stepping/semi_implicit/step_linearization.hpp"

namespace coulomb {
namespace {

constexpr double same_time = 1e-6;  // relative: two gaps close together

}  // namespace

ImpactGradient::ImpactGradient(const Model& model, GradientMode mode)
    : model_(&model), mode_(mode), displacement_(model.nv), path_velocity_(model.nv), displacement_bar_(model.nv),
      v_next_bar_(model.nv), zero_(model.nv) {}

void ImpactGradient::Tangents::reset(int columns, int ld) {
  count = columns;
  for (auto* x : {&q, &v})
    x->assign(std::size_t(columns) * ld, 0.0);
  for (auto* x : {&rest, &step})
    x->assign(columns, 0.0);
  lag.clear();
}

void ImpactGradient::prepare(const Model& model, const StepOptions& options, StepRecord& record,
                             const StepMemory& memory) {
  model_ = &model;
  step_ = &record;
  phases_ = &phases_of(record);
  h_ = options.constraints.timestep;
  ld_ = record.dynamics.ld;
  have_jacobian_ = false;

  // Every phase has the derivative of its own problem.
  const int count = phases_->count;
  while (static_cast<int>(linear_.size()) < count)
    linear_.push_back(with_mode(mode_, model, make_one<StepLinearization>));
  for (int i = 0; i < count; ++i)
    linear_[i]->prepare(model, phases_->options(i), phases_->record(i, record), memory);

  // Where it ends in an impact, the gaps that close there tell the time.
  if (static_cast<int>(gaps_.size()) < count) {
    gaps_.resize(count);
    starts_.resize(count);
  }
  tied_ = false;
  for (int i = 0; i + 1 < count; ++i) {
    if (!is_event(phase(i).end)) continue;
    build_gaps(i);
    tied_ = tied_ || is_tied(i);
  }

  // Where impacts at the same time end the step, whichever comes first tells when, and what it leaves to the other.
  tied_ = tied_ || (count > 1 && phase(count - 1).end == PhaseEnd::instant && !phase(count - 2).others.empty());
}

/// Gaps of the events that end a phase: what follows starts where they are.
void ImpactGradient::build_gaps(int i) {
  const ImpactPhase& p = phase(i);
  const ConstraintOptions& constraints = phases_->smooth.constraints;
  const int events = num_events(i);
  if (static_cast<int>(gaps_[i].size()) < events) {
    gaps_[i].resize(events);
  }
  for (int k = 0; k < events; ++k) {
    const ClosingGap& gap = k == 0 ? p.gap : p.others[k - 1];
    gaps_[i][k].build(*model_, gap, record(i + 1), constraints);
  }

  // The threshold may be measured from where the phase starts.
  if (p.from_start) {
    starts_[i].build(*model_, ClosingGap{p.sank_from}, start_of(i), constraints);
  }
}

/// Of the event whose time the bodies of this gap have.
int ImpactGradient::event_of(int i, const ClosingGap& gap) const {
  if (gap.joint >= 0) return event_of(i, model_->joint_v[gap.joint]);
  const int tree_a = model_->body_tree[gap.contact.body_a];
  const int tree_b = model_->body_tree[gap.contact.body_b];
  const int tree = std::max(tree_a, tree_b);
  return event_of(i, model_->tree_first_dof[tree]);
}

/// Is something hit at the same time as an event of the same bodies, and at another time wherever the state is a little different? Which of
/// them comes first then depends on the direction.
bool ImpactGradient::is_tied(int i) {
  const ImpactPhase& p = phase(i);
  if (p.ties.size() < 2 || p.grazing || p.fixed_time) return false;
  path_velocity(i, displacement_, path_velocity_);
  event_rates(i, path_velocity_.data());

  for (const ClosingGap& gap : p.ties) {
    const int event = event_of(i, gap);
    if (rate_[event] == 0) continue;
    tie_.build(*model_, gap, record(i + 1), phases_->smooth.constraints);

    // Of times, dT = -J dq / rate.
    const std::vector<double>& J = tie_.row();
    const std::vector<double>& J_event = gaps_[i][event].row();
    double rate = 0;
    for (int d = 0; d < model_->nv; ++d)
      rate += J[d] * path_velocity_[d];
    if (!(rate < 0)) continue;

    // The two times differ by a state's change where their gradients do.
    double difference = 0;
    double size = 0;
    for (int d = 0; d < model_->nv; ++d) {
      const double by_event = J_event[d] / rate_[event];
      difference = std::max(difference, std::abs(J[d] / rate - by_event));
      size = std::max(size, std::abs(by_event));
    }
    if (difference > same_time * size) return true;
  }
  return false;
}

/// Where a phase starts: its record, or, where that is of half way, a record of its own.
const StepRecord& ImpactGradient::start_of(int i) {
  const ImpactPhase& p = phase(i);
  const StepRecord& r = record(i);
  if (!p.midpoint) return r;

  // It is kept for the next step.
  while (static_cast<int>(start_records_.size()) <= i)
    start_records_.emplace_back();
  if (!start_records_[i]) {
    start_records_[i] = std::make_unique<StepRecord>(*model_);
  }

  // Kinematics there, inputs of the step.
  StepRecord& start = *start_records_[i];
  start.q = p.q;
  start.v = p.v;
  start.u = r.u;
  start.fext = r.fext;
  start.joint_forces = r.joint_forces;
  kinematics(*model_, start.q.data(), start.dynamics);
  velocities(*model_, start.v.data(), start.dynamics);
  return start;
}

bool ImpactGradient::ambiguous() {
  if (tied_) return true;
  for (int i = 0; i < phases_->count; ++i)
    if (linear_[i]->ambiguous()) return true;
  return false;
}

int ImpactGradient::last_smooth() const {
  int i = phases_->count - 1;
  while (phase(i).end == PhaseEnd::instant)
    --i;
  return i;
}

/// (I2): w = T v + T^2/2 r, and q'(T) in the tangent space at its end.
void ImpactGradient::path_velocity(int i, std::vector<double>& w, std::vector<double>& velocity) const {
  const ImpactPhase& p = phase(i);
  const double T = p.duration;
  for (int d = 0; d < model_->nv; ++d) {
    w[d] = T * (p.v[d] + 0.5 * T * p.path[d]);
    velocity[d] = p.v[d] + T * p.path[d];
  }
  integrate_jacobian_times(*model_, w.data(), IntegrateArgument::w, false, velocity.data(), 1, 1);
}

/// rate_ of the phase's events: the denominators of (I3).
void ImpactGradient::event_rates(int i, const double* velocity) {
  rate_.assign(num_events(i), 0.0);
  if (!is_event(phase(i).end)) return;
  for (int k = 0; k < num_events(i); ++k) {
    const std::vector<double>& J = gaps_[i][k].row();
    double rate = 0;
    double size = 0;
    for (int d = 0; d < model_->nv; ++d) {
      rate += J[d] * velocity[d];
      size += std::abs(J[d] * velocity[d]);
    }

    // A gap that does not close but by rounding tells no time.
    const bool end_is_fixed = phase(i).grazing || phase(i).fixed_time;
    const bool closes = -rate > 1e-12 * size;
    const bool fixed = (k == 0 && end_is_fixed) || !closes;
    rate_[k] = fixed ? 0.0 : rate;
  }
}

/// (I7): `count` rows of right-hand sides become a. Of what spins by the LU of 1 + t_p/2h (1 - V), tree by tree, or of its transpose.
void ImpactGradient::solve_acceleration(int i, bool transposed, double* rows, int count) {
  const ImpactPhase& p = phase(i);
  const int nv = model_->nv;
  const double h = p.length * h_;
  const double half = 0.5 * p.planned;
  for (int k = 0; k < count; ++k)
    for (int d = 0; d < nv; ++d)
      rows[std::size_t(k) * ld_ + d] /= h;
  for (int tree = 0; tree < model_->num_trees && p.midpoint_velocity; ++tree) {
    if (p.rules[tree] != TreeRule::spins) continue;
    const int first = model_->tree_first_dof[tree];
    const int size = model_->tree_first_dof[tree + 1] - first;

    const int ld = dense::padded(size);
    const std::vector<double>& A_T = linear_[i]->jacobian().A_T;
    midpoint_.assign(std::size_t(size) * ld, 0.0);
    pivot_scratch_.resize(ld);
    pivots_.resize(size);
    for (int k = 0; k < size; ++k) {
      const double* V_k = A_T.data() + std::size_t(2) * nv * (nv + first + k) + nv + first;
      for (int d = 0; d < size; ++d) {
        const int row = transposed ? k : d;
        const int column = transposed ? d : k;
        const double diagonal = d == k ? 1 + half / h : 0.0;
        midpoint_[std::size_t(row) * ld + column] = diagonal - half / h * V_k[d];
      }
    }
    dense::lu(midpoint_.data(), size, ld, pivots_.data(), pivot_scratch_.data());
    solved_.resize(ld);
    for (int k = 0; k < count; ++k) {
      double* row = rows + std::size_t(k) * ld_ + first;
      std::copy_n(row, size, solved_.begin());
      dense::lu_solve(midpoint_.data(), size, ld, pivots_.data(), solved_.data());
      std::copy_n(solved_.begin(), size, row);
    }
  }
}

/// half_: 1/2 for the trees that the phase's problem has half way of what was planned: in position, or in velocity, too. Else 0.
void ImpactGradient::half_way(int i, bool of_velocity) const {
  const ImpactPhase& p = phase(i);
  half_.assign(model_->nv, 0.0);
  for (int tree = 0; tree < model_->num_trees; ++tree) {
    const TreeRule rule = p.rules[tree];
    if (!(of_velocity ? rule == TreeRule::spins : flies(rule))) continue;
    for (int d = model_->tree_first_dof[tree]; d < model_->tree_first_dof[tree + 1]; ++d)
      half_[d] = 0.5;
  }
}

double ImpactGradient::planned(const ImpactPhase& p, const Tangents& t, int k) {
  return p.share > 0 ? p.share * t.step[k] : t.rest[k];
}

/// dq where the phase's problem was evaluated: at its start, or half way of what was planned.
void ImpactGradient::evaluated_at(int i, const Tangents& t, std::vector<double>& q_T) const {
  q_T = t.q;
  const ImpactPhase& p = phase(i);
  if (!p.midpoint) return;

  // By q the displacement carries it along ...
  const int nv = model_->nv;
  half_way(i, false);
  for (int d = 0; d < nv; ++d)
    displacement_[d] = half_[d] * p.planned * p.v[d];
  times_integrate_jacobian(*model_, displacement_.data(), IntegrateArgument::q, true, q_T.data(), ld_, t.count);

  // ... by v and by the time planned the displacement itself changes.
  half_T_.assign(t.v.size(), 0.0);
  for (int k = 0; k < t.count; ++k) {
    const double* dv = t.v.data() + std::size_t(k) * ld_;
    double* dw = half_T_.data() + std::size_t(k) * ld_;
    const double dt = planned(p, t, k);
    for (int d = 0; d < nv; ++d)
      dw[d] = half_[d] * (p.planned * dv[d] + dt * p.v[d]);
  }
  times_integrate_jacobian(*model_, displacement_.data(), IntegrateArgument::w, true, half_T_.data(), ld_, t.count);
  for (std::size_t k = 0; k < half_T_.size(); ++k)
    q_T[k] += half_T_[k];
}

/// dv_T_: what q and v at the start of the phase change in the velocity of its problem.
void ImpactGradient::problem_tangents(int i, const Tangents& t) {
  const ImpactPhase& p = phase(i);
  const int nv = model_->nv;
  const StepDerivatives& J = linear_[i]->jacobian();
  for (auto* x : {&by_q_, &by_v_})
    x->assign(std::size_t(nv) * ld_, 0.0);
  for (int k = 0; k < nv; ++k) {
    const double* of_q = J.A_T.data() + std::size_t(2) * nv * k;
    const double* of_v = J.A_T.data() + std::size_t(2) * nv * (nv + k);
    std::copy_n(of_q + nv, nv, by_q_.data() + std::size_t(k) * ld_);
    std::copy_n(of_v + nv, nv, by_v_.data() + std::size_t(k) * ld_);
  }

  // Where it was evaluated,
  evaluated_at(i, t, q_T_);
  dv_T_.resize(t.v.size());
  multiply(Product::set, rows_of(q_T_.data(), t.count, nv, ld_), by_q_.data(), dv_T_.data(), ld_, ld_, product_);

  // and at which velocity: that half way, dv + a dt_p/2, where bodies spin (the part of da is solved for later).
  if (p.midpoint_velocity) {
    const std::vector<double>& a = record(i).acceleration;
    mid_v_T_ = t.v;
    half_way(i, true);
    for (int k = 0; k < t.count; ++k) {
      const double dt = planned(p, t, k);
      double* row = mid_v_T_.data() + std::size_t(k) * ld_;
      for (int d = 0; d < nv; ++d)
        row[d] += half_[d] * dt * a[d];
    }
  }
  const std::vector<double>& v_T = p.midpoint_velocity ? mid_v_T_ : t.v;
  multiply(Product::add, rows_of(v_T.data(), t.count, nv, ld_), by_v_.data(), dv_T_.data(), ld_, ld_, product_);
}

/// Tangents of the start of a phase become those of its end; dv_T_ and gap_columns_ are complete.
void ImpactGradient::follow_phase(int i, Tangents& t) {
  if (phase(i).end != PhaseEnd::instant) {
    follow_path(i, gap_columns_, t);
    return;
  }
  t.v = dv_T_;
  catch_up(i, t);
}

/// (I8), after an impact. Bodies that wait for the rest of the step do not move on.
void ImpactGradient::catch_up(int i, Tangents& t) const {
  if (t.lag.empty()) return;
  const int events = num_events(i - 1);
  const bool is_last = i + 1 >= phases_->count;
  for (int k = 0; k < t.count && !is_last; ++k) {
    const double* lags = t.lag.data() + std::size_t(k) * events;
    double* dq = t.q.data() + std::size_t(k) * ld_;
    double* dv = t.v.data() + std::size_t(k) * ld_;
    for (int d = 0; d < model_->nv; ++d) {
      const double lag = lags[event_of(i - 1, d)];
      dq[d] += record(i).v_next[d] * lag;
      dv[d] += record(i + 1).acceleration[d] * lag;
    }
  }
  t.lag.clear();
}

/// (I6), (I7): da_T_ from the velocities dv_T_ of the phase's problem, and path_T_ = T dv + T^2/2 dr.
void ImpactGradient::path_tangents(int i, const Tangents& t) {
  const ImpactPhase& p = phase(i);
  const int nv = model_->nv;
  const std::vector<double>& a = record(i).acceleration;
  const double T = p.duration;
  const std::vector<double>& from_T = p.midpoint_velocity ? mid_v_T_ : t.v;
  da_T_ = dv_T_;
  path_T_.resize(dv_T_.size());

  // The change of velocity is that of a h.
  for (int k = 0; k < t.count; ++k) {
    double* da = da_T_.data() + std::size_t(k) * ld_;
    const double* from = from_T.data() + std::size_t(k) * ld_;
    for (int d = 0; d < nv; ++d)
      da[d] -= from[d] + a[d] * p.length * t.step[k];
  }
  solve_acceleration(i, false, da_T_.data(), t.count);

  // The displacement to the end, at fixed time.
  path_acceleration_tangents(*model_, p, record(i), t.v.data(), da_T_.data(), t.count, ld_, path_T_.data());
  for (int k = 0; k < t.count; ++k) {
    const double* dv = t.v.data() + std::size_t(k) * ld_;
    double* dw = path_T_.data() + std::size_t(k) * ld_;
    for (int d = 0; d < nv; ++d)
      dw[d] = T * (dv[d] + 0.5 * T * dw[d]);
  }
}

/// (I3): time_ of a column's events, whose gaps are closed at the tangent of the path at fixed time, t.q. The first is the end of the
/// phase, which moves with the clock where nothing happens.
void ImpactGradient::event_times(int i, const std::vector<double>& gap, const Tangents& t, int k) {
  const ImpactPhase& p = phase(i);
  const double* dq = t.q.data() + std::size_t(k) * ld_;
  time_.assign(num_events(i), 0.0);
  if (p.end == PhaseEnd::whole || p.end == PhaseEnd::part) {
    time_[0] = planned(p, t, k);
  }
  for (int e = 0; e < num_events(i); ++e) {
    if (rate_[e] == 0) continue;
    double change = gap[std::size_t(e) * t.count + k] - (e == 0 ? at_start_[k] : 0.0);
    const std::vector<double>& row = gaps_[i][e].row();
    for (int d = 0; d < model_->nv; ++d)
      change += row[d] * dq[d];
    time_[e] = -change / rate_[e];
  }
}

/// From the velocities dv_T_ of the phase's problem to its end, (I4).
void ImpactGradient::follow_path(int i, const std::vector<double>& gap, Tangents& t) {
  const ImpactPhase& p = phase(i);
  const int nv = model_->nv;
  const int events = num_events(i);
  const double* a = record(i).acceleration.data();
  const double T = p.duration;
  path_velocity(i, displacement_, path_velocity_);
  event_rates(i, path_velocity_.data());
  if (events > 1) {
    t.lag.assign(std::size_t(t.count) * events, 0.0);
  }

  // Where the threshold is measured from.
  at_start_.assign(t.count, 0.0);
  for (int k = 0; k < t.count && p.from_start; ++k) {
    const std::vector<double>& row = starts_[i].row();
    const double* dq = t.q.data() + std::size_t(k) * ld_;
    for (int d = 0; d < nv; ++d)
      at_start_[k] += row[d] * dq[d];
  }

  // dq(T) at fixed time: the start is carried along, and the displacement changes.
  path_tangents(i, t);
  const double* w = displacement_.data();
  times_integrate_jacobian(*model_, w, IntegrateArgument::w, true, path_T_.data(), ld_, t.count);
  times_integrate_jacobian(*model_, w, IntegrateArgument::q, true, t.q.data(), ld_, t.count);
  for (int k = 0; k < t.count; ++k) {
    double* dq = t.q.data() + std::size_t(k) * ld_;
    double* dv = t.v.data() + std::size_t(k) * ld_;
    const double* dw = path_T_.data() + std::size_t(k) * ld_;
    const double* da = da_T_.data() + std::size_t(k) * ld_;
    for (int d = 0; d < nv; ++d)
      dq[d] += dw[d];

    // The time of the end moves with it, of every island by its own event.
    event_times(i, gap, t, k);
    for (int d = 0; d < nv; ++d) {
      const double dT = time_[event_of(i, d)];
      dq[d] += path_velocity_[d] * dT;
      dv[d] += T * da[d] + a[d] * dT;
    }

    // The clock goes on from the first.
    t.rest[k] -= time_[0];
    for (int e = 1; e < events; ++e)
      t.lag[std::size_t(k) * events + e] = time_[0] - time_[e];
  }
}

/// Columns of q, then of v.
void ImpactGradient::start_by_state(Tangents& t) const {
  const int nv = model_->nv;
  for (int d = 0; d < nv; ++d) {
    t.q[std::size_t(d) * ld_ + d] = 1;
    t.v[std::size_t(nv + d) * ld_ + d] = 1;
  }
}

/// A longer step has more time left.
void ImpactGradient::start_by_timestep(const ParameterSet& set, Tangents& t) const {
  const int h = timestep_column(set);
  if (h < 0) return;
  t.rest[h] = 1;
  t.step[h] = 1;
}

/// Adds the velocity columns by u and tau from row first_u and first_tau on (negative: not wanted). Forces do nothing in an impact.
void ImpactGradient::input_columns(int i, double* dv_T, int first_u, int first_tau) {
  if (phase(i).end == PhaseEnd::instant) return;
  const int nv = model_->nv;
  const StepDerivatives& J = linear_[i]->jacobian();
  const auto add = [&](const std::vector<double>& columns_T, int count, int first) {
    for (int k = 0; k < count && first >= 0; ++k) {
      const double* column = columns_T.data() + std::size_t(2) * nv * k + nv;
      double* out = dv_T + std::size_t(first + k) * ld_;
      for (int d = 0; d < nv; ++d)
        out[d] += column[d];
    }
  };
  add(J.B_T, model_->nu, first_u);
  add(J.B_tau_T, nv, first_tau);
}

/// Rows (dq, dv) of `count` tangents, from the first on.
void ImpactGradient::store_columns(const Tangents& t, int first, int count, std::vector<double>& columns_T) const {
  const int nv = model_->nv;
  for (int k = 0; k < count; ++k) {
    const double* dq = t.q.data() + std::size_t(first + k) * ld_;
    const double* dv = t.v.data() + std::size_t(first + k) * ld_;
    double* row = columns_T.data() + std::size_t(2) * nv * k;
    std::copy_n(dq, nv, row);
    std::copy_n(dv, nv, row + nv);
  }
}

const StepDerivatives& ImpactGradient::jacobian() {
  if (have_jacobian_) return *derivatives_;
  const int nv = model_->nv;
  const int nu = model_->nu;
  StepDerivatives& out = writable_derivatives(*model_);

  // q, v, u and tau together, phase by phase.
  tangents_.reset(3 * nv + nu, ld_);
  start_by_state(tangents_);
  const auto direct = [&](int i, double* dv_T, std::vector<double>&) { input_columns(i, dv_T, 2 * nv, 2 * nv + nu); };
  follow(phases_->count, direct, tangents_);

  store_columns(tangents_, 0, 2 * nv, out.A_T);
  store_columns(tangents_, 2 * nv, nu, out.B_T);
  store_columns(tangents_, 2 * nv + nu, nv, out.B_tau_T);
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
  const ImpactPhase& p = phase(i);
  linear_[i]->parameter_columns(set, columns_);

  // The problem's length is a share of the step's; an instant has none.
  const int of_timestep = timestep_column(set);
  const double length = p.end == PhaseEnd::instant ? 0.0 : p.length;
  for (int k = 0; k < set.size(); ++k) {
    const double share = k == of_timestep ? length : 1.0;
    const double* column = columns_.data() + std::size_t(2) * nv * k + nv;
    double* out = dv_T + std::size_t(k) * ld_;
    for (int d = 0; d < nv; ++d)
      out[d] += share * column[d];
  }

  // The gaps of the events, less that of where the threshold is measured from.
  if (!is_event(p.end)) return;
  for (int e = 0; e < num_events(i); ++e) {
    gaps_[i][e].parameters(set, columns_);
    std::copy(columns_.begin(), columns_.end(), gap.begin() + std::ptrdiff_t(e) * set.size());
  }
  if (!p.from_start) return;
  starts_[i].parameters(set, columns_);
  for (int k = 0; k < set.size(); ++k)
    gap[k] -= columns_[k];
}

void ImpactGradient::parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) {
  tangents_.reset(set.size(), ld_);
  start_by_timestep(set, tangents_);
  const auto direct = [&](int i, double* dv_T, std::vector<double>& gap) { theta_columns(i, set, dv_T, gap); };
  follow(phases_->count, direct, tangents_);
  columns_T.resize(std::size_t(2) * model_->nv * set.size());
  store_columns(tangents_, 0, set.size(), columns_T);
}

}  // namespace coulomb
