#include "coulomb/stepping/impacts/impact_gradient.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/stepping/gradients/gradient_modes.hpp"
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
