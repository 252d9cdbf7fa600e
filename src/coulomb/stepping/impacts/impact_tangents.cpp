// How tangents go through the phases of a step that was split at impacts, (I4): from the start of a phase to where its problem was
// evaluated, to the velocity and the acceleration of that problem, along the path to its end, and to the time of its event.
#include <algorithm>
#include <cmath>

#include "coulomb/configuration.hpp"
#include "coulomb/linalg/dense.hpp"
#include "coulomb/stepping/impacts/impact_gradient.hpp"
#include "coulomb/stepping/impacts/impact_path.hpp"

namespace coulomb {

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
  path_acceleration_tangents(*model_, p, record(i), {t.v.data(), da_T_.data(), t.count, ld_}, path_T_.data());
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

}  // namespace coulomb
