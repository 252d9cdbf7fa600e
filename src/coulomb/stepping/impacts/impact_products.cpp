// The reverse product of a step that was split at impacts: a sweep over its phases from the last to the first, each with one vjp of its
// own problem, and no matrix. Start reading at ImpactGradient::vjp.
#include <algorithm>

#include "coulomb/configuration.hpp"
#include "coulomb/stepping/impacts/impact_gradient.hpp"
#include "coulomb/stepping/impacts/impact_path.hpp"

namespace coulomb {

void ImpactGradient::vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set) {
  const int nv = model_->nv;
  out.q.assign(dq1, dq1 + nv);
  out.v.assign(dv1, dv1 + nv);
  out.u.assign(model_->nu, 0.0);
  out.tau.assign(nv, 0.0);
  out.fext.assign(out.wants_fext ? std::size_t(6) * model_->num_bodies : 0, 0.0);
  out.parameters.assign(set ? set->size() : 0, 0.0);

  // q and v are cotangents of the end of phase i, then of its start; the others collect.
  ClockCotangent clock;
  for (int i = phases_->count - 1; i >= 0; --i) {
    if (phase(i).end == PhaseEnd::instant)
      impact_vjp(i, out, set);
    else
      smooth_vjp(i, out, set, clock);
  }

  // A longer step leaves more time, and has longer parts.
  const int of_timestep = set ? timestep_column(*set) : -1;
  if (of_timestep >= 0) {
    out.parameters[of_timestep] += clock.rest + clock.step;
  }
}

/// Through an impact (I1), in which forces do nothing and which takes no time.
void ImpactGradient::impact_vjp(int i, StepCotangent& bar, const ParameterSet* set) {
  catch_up_vjp(i, bar);
  part_.wants_fext = false;
  linear_[i]->vjp(zero_.data(), bar.v.data(), part_, set);

  // The state after the impact follows that before it.
  bar.v = part_.v;
  for (int d = 0; d < model_->nv; ++d)
    bar.q[d] += part_.q[d];

  // Parameters act in it as in any problem, but for the time step.
  const int of_timestep = set ? timestep_column(*set) : -1;
  for (int k = 0; k < static_cast<int>(part_.parameters.size()); ++k) {
    if (k == of_timestep) continue;
    bar.parameters[k] += part_.parameters[k];
  }
}

/// (I8): lag_bar_ of the events that an impact follows; bar: cotangents after it.
void ImpactGradient::catch_up_vjp(int i, const StepCotangent& bar) {
  if (i == 0 || phase(i - 1).others.empty()) return;
  lag_bar_.assign(num_events(i - 1), 0.0);

  // Bodies that wait for the rest of the step do not move on.
  if (i + 1 == phases_->count) return;
  const std::vector<double>& v_plus = record(i).v_next;
  const std::vector<double>& a_plus = record(i + 1).acceleration;
  for (int d = 0; d < model_->nv; ++d) {
    double& lag_bar = lag_bar_[event_of(i - 1, d)];
    lag_bar += bar.q[d] * v_plus[d] + bar.v[d] * a_plus[d];
  }
}

/// Through a smooth phase, from its end to its start: the time at which it ended, the path to there, the problem that gave its
/// acceleration.
void ImpactGradient::smooth_vjp(int i, StepCotangent& bar, const ParameterSet* set, ClockCotangent& clock) {
  path_velocity(i, displacement_, path_velocity_);
  event_rates(i, path_velocity_.data());
  times_vjp(i, bar, clock);
  const double of_start = gaps_vjp(i, bar, set);

  path_vjp(i, bar);
  problem_vjp(i, bar, set, clock);
  if (phase(i).midpoint) {
    midpoint_vjp(i, bar, clock);
  }

  // Where the problem was evaluated, and where the threshold of the event was measured from.
  for (int d = 0; d < model_->nv; ++d) {
    const double by_start = of_start != 0 ? of_start * starts_[i].row()[d] : 0.0;
    bar.q[d] += part_.q[d] + by_start;
  }
}

/// (I4): time_bar_ of the events, which move the end of the phase and what is left of the step.
void ImpactGradient::times_vjp(int i, const StepCotangent& bar, ClockCotangent& clock) {
  const ImpactPhase& p = phase(i);
  const std::vector<double>& a = record(i).acceleration;
  time_bar_.assign(num_events(i), 0.0);
  for (int d = 0; d < model_->nv; ++d) {
    double& time_bar = time_bar_[event_of(i, d)];
    time_bar += bar.q[d] * path_velocity_[d] + bar.v[d] * a[d];
  }

  // The time of an end without event is that of the clock.
  if (p.end == PhaseEnd::whole) {
    clock.rest = time_bar_[0];
  }
  if (p.end == PhaseEnd::part) {
    clock.step += p.share * (time_bar_[0] - clock.rest);
  }
  time_bar_[0] -= clock.rest;

  // (I8): the others catch up with the event.
  for (int e = 1; e < num_events(i); ++e) {
    time_bar_[0] += lag_bar_[e];
    time_bar_[e] -= lag_bar_[e];
  }
}

/// (I3): the gaps that close at the events, whose times move with the state and with parameters. Returns the cotangent of the gap where the
/// event's threshold was measured from, 0: it was not.
double ImpactGradient::gaps_vjp(int i, StepCotangent& bar, const ParameterSet* set) {
  const bool by_parameters = set && set->size() > 0;
  double of_start = 0;
  for (int e = 0; e < num_events(i); ++e) {
    if (rate_[e] == 0) continue;
    const double weight = -time_bar_[e] / rate_[e];

    // The first may be measured from where the phase starts.
    if (e == 0 && phase(i).from_start) {
      of_start = -weight;
    }
    const std::vector<double>& row = gaps_[i][e].row();
    for (int d = 0; d < model_->nv; ++d)
      bar.q[d] += weight * row[d];
    if (by_parameters && weight != 0) {
      add_gap_parameters(gaps_[i][e], *set, weight, bar);
    }
  }
  if (by_parameters && of_start != 0) {
    add_gap_parameters(starts_[i], *set, of_start, bar);
  }
  return of_start;
}

/// bar.parameters += weight dPhi/dtheta.
void ImpactGradient::add_gap_parameters(ImpactGap& gap, const ParameterSet& set, double weight, StepCotangent& bar) {
  gap.parameters(set, gap_columns_);
  for (int k = 0; k < set.size(); ++k)
    bar.parameters[k] += weight * gap_columns_[k];
}

/// (I6), (I7): from the end of the path to its start and to v_next_bar_, of the velocity that the phase's problem gives.
void ImpactGradient::path_vjp(int i, StepCotangent& bar) {
  const ImpactPhase& p = phase(i);
  const double T = p.duration;

  // The end of the path follows the displacement, and the start carries it along.
  std::copy(bar.q.begin(), bar.q.end(), displacement_bar_.begin());
  integrate_jacobian_times(*model_, displacement_.data(), IntegrateArgument::w, true, displacement_bar_.data(), 1, 1);
  integrate_jacobian_times(*model_, displacement_.data(), IntegrateArgument::q, true, bar.q.data(), 1, 1);

  // The displacement is T v + T^2/2 r, the velocity v + T a.
  for (int d = 0; d < model_->nv; ++d) {
    v_next_bar_[d] = T * bar.v[d];
    bar.v[d] += T * displacement_bar_[d];
    displacement_bar_[d] *= 0.5 * T * T;
  }
  path_acceleration_cotangent(*model_, p, record(i), displacement_bar_.data(), bar.v.data(), v_next_bar_.data());

  // a is that of the problem's velocity.
  solve_acceleration(i, true, v_next_bar_.data(), 1);
}

/// Through the phase's own problem; part_.q: the cotangent of where it was evaluated.
void ImpactGradient::problem_vjp(int i, StepCotangent& bar, const ParameterSet* set, ClockCotangent& clock) {
  const ImpactPhase& p = phase(i);
  const std::vector<double>& a = record(i).acceleration;
  part_.wants_fext = bar.wants_fext;
  linear_[i]->vjp(zero_.data(), v_next_bar_.data(), part_, set);

  // a is the change of velocity over the length of the problem, at the velocity half way where that is the phase's.
  half_way(i, true);
  double of_planned = 0;
  for (int d = 0; d < model_->nv; ++d) {
    const double of_v = part_.v[d] - v_next_bar_[d];
    bar.v[d] += of_v;
    bar.tau[d] += part_.tau[d];
    clock.step -= v_next_bar_[d] * p.length * a[d];
    of_planned += half_[d] * of_v * a[d];
  }
  clock.of_planned(p) += planned_share(p) * of_planned;

  // Forces, controls and parameters are those of the step; its length is a share of the step's.
  for (std::size_t k = 0; k < part_.fext.size(); ++k)
    bar.fext[k] += part_.fext[k];
  for (int k = 0; k < model_->nu; ++k)
    bar.u[k] += part_.u[k];
  const int of_timestep = set ? timestep_column(*set) : -1;
  for (int k = 0; k < static_cast<int>(part_.parameters.size()); ++k) {
    const double share = k == of_timestep ? p.length : 1.0;
    bar.parameters[k] += share * part_.parameters[k];
  }
}

/// From where the problem was evaluated, half way of what was planned, to the start of the phase: part_.q, and bar.v.
void ImpactGradient::midpoint_vjp(int i, StepCotangent& bar, ClockCotangent& clock) {
  const ImpactPhase& p = phase(i);

  // By q the displacement half way, which carries it along ...
  half_way(i, false);
  for (int d = 0; d < model_->nv; ++d)
    displacement_[d] = half_[d] * p.planned * p.v[d];
  std::copy(part_.q.begin(), part_.q.end(), displacement_bar_.begin());
  integrate_jacobian_times(*model_, displacement_.data(), IntegrateArgument::w, true, displacement_bar_.data(), 1, 1);
  integrate_jacobian_times(*model_, displacement_.data(), IntegrateArgument::q, true, part_.q.data(), 1, 1);

  // ... and which changes with v and with the time planned.
  double of_planned = 0;
  for (int d = 0; d < model_->nv; ++d) {
    bar.v[d] += half_[d] * p.planned * displacement_bar_[d];
    of_planned += half_[d] * displacement_bar_[d] * p.v[d];
  }
  clock.of_planned(p) += planned_share(p) * of_planned;
}

}  // namespace coulomb
