#include "coulomb/control/solver_parts.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/rollout/checks.hpp"
#include "coulomb/stepping/stepper.hpp"

namespace coulomb {
namespace {

int checked_controls(const Model& model, const ControlOptions& options) {
  if (options.horizon < 1) {
    refuse("horizon", options.horizon, "at least 1 knot");
  }
  if (options.substeps < 1) {
    refuse("substeps", options.substeps, "at least 1 step of the simulator");
  }
  if (options.inputs == "tau") return model.nv;
  if (options.inputs != "u") {
    checks::fail("inputs", "got '" + options.inputs + "', expected 'u' or 'tau'");
  }
  if (model.nu == 0) {
    checks::fail("inputs", "'u' are the controls of actuators, and the model has none: take 'tau'");
  }
  return model.nu;
}

}  // namespace

TrajectorySolver::Parts::Parts(std::shared_ptr<const Model> of, ControlOptions asked)
    : model(std::move(of)), options(std::move(asked)), nu(checked_controls(*model, options)), pool(options.num_threads),
      costs(*model, options.horizon, nu) {
  for (int i = 0; i < pool.num_threads(); ++i)
    workers.push_back(std::make_unique<Worker>(model, options));
  const Simulator& simulator = workers.front()->dynamics.simulator();
  if (simulator.resolved_options().stepper->num_states() > 1) {
    const std::string name = "'" + options.simulator.stepper + "'";
    checks::fail("stepper",
                 name + " depends on two earlier states; use a stepper that depends on one: semi_implicit or bdf1");
  }
  cold = workers.front()->dynamics.memory();

  // What actuators are limited to.
  constexpr double infinity = std::numeric_limits<double>::infinity();
  range_lower.assign(nu, -infinity);
  range_upper.assign(nu, infinity);
  for (int i = 0; options.inputs == "u" && i < nu; ++i) {
    // What acts may be an activation; a filter keeps it within the range of its control.
    const Actuator& actuator = model->actuators[i];
    const bool of_activation = actuator.activation != ActivationType::none && actuator.activation_limited;
    if (!of_activation && (!actuator.control_limited || actuator.activation == ActivationType::integrator)) continue;
    const std::array<double, 2>& range = of_activation ? actuator.activation_range : actuator.control_range;
    range_lower[i] = range[0];
    range_upper[i] = range[1];
  }
  for (int i = 0; options.inputs == "u" && i < nu; ++i)
    if (model->actuators[i].activation == ActivationType::muscle && !model->actuators[i].activation_limited) {
      range_lower[i] = 0;
      range_upper[i] = 1;
    }
  lower = range_lower;
  upper = range_upper;
}

/// Arrays for the terms that there are; a trajectory that is there is kept.
void TrajectorySolver::Parts::fit() {
  const int N = options.horizon;
  const KnotLayout wanted = costs.layout();

  // Trajectories: the best one, and a candidate a thread.
  if (now.memory.empty()) {
    const auto size = [&](Trajectory& x) {
      x.q.resize(std::size_t(N + 1) * model->nq);
      x.v.resize(std::size_t(N + 1) * model->nv);
      x.u.resize(std::size_t(N) * nu);
      x.u_before.resize(nu);
      x.memory.assign(N + 1, cold);
      x.converged.assign(N, 1);
    };
    size(now);
    candidates.resize(pool.num_threads());
    for (Trajectory& x : candidates)
      size(x);
    knot_costs.resize(N + 1);
    knot_finite.resize(N + 1);
  }

  // Models of the knots, in the layout that the terms ask for.
  const bool is_other = wanted.ld() != layout.ld() || wanted.rates != layout.rates;
  if (feedback.k.empty() || is_other) {
    layout = wanted;
    models.resize(layout, N);
    feedback.resize(layout, N);
    tried.resize(layout, N);
    gains.resize(layout, N);
    riccati.resize(layout);
  }

  // What each thread works on.
  for (auto& worker : workers) {
    costs.fit(worker->cost);
    worker->dx.resize(layout.ld());
  }
}

Knot TrajectorySolver::Parts::knot(const Trajectory& x, int t) const {
  Knot out;
  out.t = t;
  // The state ...
  out.q = x.q.data() + std::size_t(t) * model->nq;
  out.v = x.v.data() + std::size_t(t) * model->nv;
  if (t == options.horizon) return out;

  // ... and the controls, which the last knot has none of.
  out.u = x.u.data() + std::size_t(t) * nu;
  out.u_before = t == 0 ? x.u_before.data() : out.u - nu;
  return out;
}

/// From knot t on nothing moves: what is left of a rollout that overflowed.
void TrajectorySolver::Parts::stand_still(Trajectory& x, int t) const {
  const int nq = model->nq;
  const int nv = model->nv;
  const Knot last = knot(x, t);
  for (int k = t + 1; k <= options.horizon; ++k) {
    double* q = x.q.data() + std::size_t(k) * nq;
    double* v = x.v.data() + std::size_t(k) * nv;
    std::copy_n(last.q, nq, q);
    std::copy_n(last.v, nv, v);
  }
  const auto first_control = x.u.begin() + std::size_t(t) * nu;
  std::fill(first_control, x.u.end(), 0.0);
  x.cost = std::numeric_limits<double>::infinity();
}

/// `to` from its own first state, under u_t + length k_t + K_t (x (-) x_t); without feedback under the controls of `from`. What is left of gaps
/// is 1 - length of them. Without feedback the two may be one. Costs are sums of what is not negative: beyond the limit the rest is not looked at.
void TrajectorySolver::Parts::roll_out(int thread, const Trajectory& from, bool with_feedback, double length,
                                       double limit, Trajectory& to) {
  Worker& worker = *workers[thread];
  const int nq = model->nq;
  const int nv = model->nv;
  double* dx = worker.dx.data();
  to.cost = 0;
  to.finite = true;
  worker.dynamics.start(to.memory.front());

  for (int t = 0; t < options.horizon; ++t) {
    if (thread == 0 ? ask() : stopped.load(std::memory_order_relaxed)) return;
    const Knot old = knot(from, t);
    const Knot here = knot(to, t);
    double* u = to.u.data() + std::size_t(t) * nu;

    // The control.
    if (u != old.u) {
      std::copy_n(old.u, nu, u);
    }
    if (with_feedback) {
      // How far the state, and the control before, are from the old ones.
      difference(*model, old.q, here.q, dx);
      for (int i = 0; i < nv; ++i)
        dx[nv + i] = here.v[i] - old.v[i];
      for (int i = 0; layout.rates && i < nu; ++i)
        dx[2 * nv + i] = here.u_before[i] - old.u_before[i];

      // The feedback at that distance, within the limits.
      const double* k = feedback.k_of(t);
      for (int i = 0; i < nu; ++i) {
        const double* K = feedback.K_of(t) + std::size_t(i) * layout.ld();
        u[i] += length * k[i];
        for (int j = 0; j < layout.nx(); ++j)
          u[i] += K[j] * dx[j];
        u[i] = std::clamp(u[i], lower[i], upper[i]);
      }
    }

    // What the knot costs.
    to.cost += costs.value(here, worker.cost);
    if (to.cost > limit) {
      to.finite = false;
      return;
    }

    // The steps. A candidate that overflows is none.
    to.memory[t] = worker.dynamics.memory();
    double* q = to.q.data() + std::size_t(t + 1) * nq;
    double* v = to.v.data() + std::size_t(t + 1) * nv;
    const bool sane = std::all_of(u, u + nu, [](double x) { return std::isfinite(x); });
    KnotDynamics::Outcome outcome{false, false};
    if (sane) {
      outcome = worker.dynamics.step(here.q, here.v, u, q, v);
    }
    to.converged[t] = outcome.converged;
    to.finite = outcome.finite && std::isfinite(to.cost);
    if (!to.finite) {
      stand_still(to, t);
      return;
    }

    // What is left of the gap.
    if (!with_feedback || length == 1) continue;
    const double* gap = models.gap_of(t);
    const bool closed = std::all_of(gap, gap + 2 * nv, [](double x) { return x == 0; });
    if (closed) continue;
    for (int i = 0; i < 2 * nv; ++i)
      dx[i] = (length - 1) * gap[i];
    integrate(*model, q, dx, q);
    for (int i = 0; i < nv; ++i)
      v[i] += dx[nv + i];
  }

  // The last state.
  to.memory.back() = worker.dynamics.memory();
  to.cost += costs.value(knot(to, options.horizon), worker.cost);
  to.finite = std::isfinite(to.cost);
}

/// The models of all knots, and the cost and the gaps of x; where it overflows its cost is infinite, and gaps that are not known count as
/// none. False if interrupted.
bool TrajectorySolver::Parts::linearize(Trajectory& x) {
  const int nv = model->nv;
  linearized = false;
  of_feedback = -1;
  const bool finished = run(options.horizon + 1, [&](int t, int thread) {
    Worker& worker = *workers[thread];
    const Knot here = knot(x, t);
    double* gap = t < options.horizon ? models.gap_of(t) : nullptr;

    // The model of the cost.
    if (gap) {
      std::fill_n(gap, layout.nx(), 0.0);
    }
    knot_costs[t] = costs.expand(here, worker.cost, models.g_of(t), models.H_of(t));
    knot_finite[t] = std::isfinite(knot_costs[t]);
    if (t == options.horizon || !knot_finite[t]) return;

    // The step of the rollout once more: to recall it (rollout/replay) every candidate of a search would keep the records of all its steps, in
    // memory that grows during a tick, for the one that is taken.
    worker.dynamics.start(x.memory[t]);
    double* F = models.F_of(t);
    const KnotDynamics::Outcome outcome =
        worker.dynamics.linearize(here.q, here.v, here.u, layout, worker.q_next.data(), worker.v_next.data(), F);
    x.converged[t] = outcome.converged;
    knot_finite[t] = outcome.finite;
    if (!outcome.finite) return;

    // None where the trajectory is a rollout: differences of rotations would round.
    const Knot next = knot(x, t + 1);
    const std::vector<double>& q_next = worker.q_next;
    const std::vector<double>& v_next = worker.v_next;
    const bool same_q = std::equal(q_next.begin(), q_next.end(), next.q);
    const bool same_v = std::equal(v_next.begin(), v_next.end(), next.v);
    if (same_q && same_v) return;

    // The gap to the next state, and the dynamics in that state's tangent space.
    difference(*model, next.q, q_next.data(), gap);
    for (int i = 0; i < nv; ++i)
      gap[nv + i] = v_next[i] - next.v[i];
    knot_finite[t] = std::all_of(gap, gap + 2 * nv, [](double x) { return std::isfinite(x); });
    if (knot_finite[t])
      costs.turn_into(gap, layout, F);
    else
      std::fill_n(gap, layout.nx(), 0.0);
  });

  if (!finished) return false;

  // The sum over all knots.
  x.cost = 0;
  x.finite = true;
  for (int t = 0; t <= options.horizon; ++t) {
    x.cost += knot_costs[t];
    x.finite = x.finite && knot_finite[t];
  }
  if (!std::isfinite(x.cost)) {
    x.cost = std::numeric_limits<double>::infinity();
  }
  linearized = &x == &now;
  return true;
}

double TrajectorySolver::Parts::sum_of_gaps() const {
  double sum = 0;
  for (const double x : models.gap)
    sum += std::abs(x);
  return sum;
}

double TrajectorySolver::Parts::largest_gap() const {
  double most = 0;
  for (const double x : models.gap)
    most = std::max(most, std::abs(x));
  return most;
}

bool TrajectorySolver::Parts::ask() {
  if (interrupted && !stopped && (*interrupted)()) {
    stopped = true;
  }
  return stopped;
}

}  // namespace coulomb
