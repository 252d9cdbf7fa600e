// Where a solve begins: a rollout, a guess of states, or the last solve, perhaps one knot on.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "coulomb/configuration.hpp"
#include "coulomb/control/solver_parts.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/rollout/checks.hpp"

namespace coulomb {

void check_budget(const ControlBudget& asked) {
  if (asked.iterations < 0) {
    refuse("iterations", asked.iterations, "at least 0");
  }
  if (asked.step_lengths < 1) {
    refuse("step_lengths", asked.step_lengths, "at least 1");
  }
  const std::pair<const char*, double> numbers[] = {{"tolerance", asked.tolerance},
                                                    {"gap_tolerance", asked.gap_tolerance},
                                                    {"regularization", asked.regularization},
                                                    {"max_regularization", asked.max_regularization}};
  for (const auto& [name, value] : numbers) {
    if (value >= 0 && std::isfinite(value)) continue;
    checks::not_negative(name, value);  // a name is memory
  }

  // The regularisation starts below its bound.
  if (asked.regularization > asked.max_regularization) {
    const std::string bound = checks::text(asked.max_regularization);
    const std::string got = checks::text(asked.regularization);
    checks::fail("regularization", "got " + got + ", expected at most max_regularization " + bound);
  }
  const bool is_share = asked.armijo >= 0 && asked.armijo < 1;
  if (!is_share) {
    checks::fail("armijo", "got " + checks::text(asked.armijo) + ", expected [0, 1)");
  }
}

void TrajectorySolver::Parts::check_inputs(const double* q0, const double* v0, const double* u,
                                           const double* u_before) const {
  if (!q0 || !v0) {
    checks::fail("q0, v0", "the first state is needed");
  }
  check_configuration(*model, q0, "q0");
  checks::finite("v0", v0, model->nv);
  check_finite_rows("U", u, options.horizon, nu);
  if (u_before) {
    checks::finite("u_before", u_before, nu);
  }
}

void TrajectorySolver::Parts::check(const ControlStart& start) const {
  const int N = options.horizon;
  check_inputs(start.q0, start.v0, start.u, start.u_before);
  if (!start.q != !start.v) {
    checks::fail("Q, V", "got one of them, expected both or none");
  }
  if (start.q && start.from_last) {
    checks::fail("Q, V", "not together with the states of the last solve");
  }
  if (start.from_last && !there) {
    checks::fail("from_last", "there is no earlier solve to start from");
  }
  if (start.shift && !start.from_last) {
    checks::fail("shift", "only applies with from_last=True");
  }
  if (!start.roll && !start.from_last) {
    checks::fail("roll", "only applies with from_last=True");
  }

  // Guessed states: the first one is q0, v0.
  for (int t = 1; start.q && t <= N; ++t) {
    const double* q = start.q + std::size_t(t) * model->nq;
    const std::string name = "Q[" + std::to_string(t) + "]";
    check_configuration(*model, q, name.c_str());
  }
  check_finite_rows("V", start.v, N + 1, model->nv);
}

/// At a state that was measured.
void TrajectorySolver::Parts::set_first(const double* q0, const double* v0, Trajectory& x) const {
  std::copy_n(q0, model->nq, x.q.begin());
  std::copy_n(v0, model->nv, x.v.begin());
  normalize_configuration(*model, x.q.data());
}

/// Fills `now`, with its cost, the first of the result; finite tells whether it could. False if interrupted.
bool TrajectorySolver::Parts::begin(const ControlStart& start) {
  fit();
  if (start.from_last && start.shift) shift();
  const int N = options.horizon;
  const int nq = model->nq;

  // The control before the first one: given, or the last solve's, or none.
  if (start.u_before)
    std::copy_n(start.u_before, nu, now.u_before.begin());
  else if (!start.from_last)
    std::fill(now.u_before.begin(), now.u_before.end(), 0.0);

  // Controls: those given, or the last, or none.
  if (start.u)
    std::copy_n(start.u, now.u.size(), now.u.begin());
  else if (!start.from_last)
    std::fill(now.u.begin(), now.u.end(), 0.0);
  for (std::size_t i = 0; i < now.u.size(); ++i)
    now.u[i] = std::clamp(now.u[i], lower[i % nu], upper[i % nu]);

  // Feedback that nobody has asked for is none.
  if (!start.from_last) {
    std::fill(feedback.k.begin(), feedback.k.end(), 0.0);
    std::fill(feedback.K.begin(), feedback.K.end(), 0.0);
    for (StepMemory& memory : now.memory)
      memory = cold;
  }

  // States that are guessed, with gaps.
  now.finite = true;
  linearized = false;
  if (start.q) {
    std::copy_n(start.q, now.q.size(), now.q.begin());
    std::copy_n(start.v, now.v.size(), now.v.begin());
    for (int t = 1; t <= N; ++t)
      normalize_configuration(*model, now.q.data() + std::size_t(t) * nq);
  }
  const bool roll = start.from_last ? start.roll : !start.q;
  if (!roll) {
    const Watch watch(budget->clock, result.timings.linearize);
    set_first(start.q0, start.v0, now);
    if (!linearize(now)) return false;
    result.costs.push_back(now.cost);
    result.gaps.push_back(sum_of_gaps());
    return true;
  }

  // Or states that follow, with the feedback of the last solve if that is where the others come from.
  const Watch watch(budget->clock, result.timings.rollouts);
  Trajectory& to = candidates.front();
  set_first(start.q0, start.v0, to);
  std::copy(now.u_before.begin(), now.u_before.end(), to.u_before.begin());
  to.memory.front() = now.memory.front();
  const bool follow = start.from_last && !start.u;
  if (follow) {
    std::fill(feedback.k.begin(), feedback.k.end(), 0.0);
  }
  constexpr double any = std::numeric_limits<double>::infinity();
  const auto work = [&](int, int thread) { roll_out(thread, now, follow, 1.0, any, to); };
  if (!run(1, work)) return false;
  std::swap(now, to);
  result.costs.push_back(now.cost);
  result.gaps.push_back(0);
  return true;
}

/// One knot on.
void TrajectorySolver::Parts::shift() {
  const int N = options.horizon;
  const int nq = model->nq;
  const int nv = model->nv;
  std::copy_n(now.u.begin(), nu, now.u_before.begin());

  // The last control once more, from the last state.
  Worker& worker = *workers.front();
  const Knot last = knot(now, N);
  const double* u = now.u.data() + std::size_t(N - 1) * nu;
  worker.dynamics.start(now.memory[N]);
  const KnotDynamics::Outcome outcome =
      worker.dynamics.step(last.q, last.v, u, worker.q_next.data(), worker.v_next.data());

  // All else moves up.
  const auto up = [](auto& x, std::size_t width) { std::copy(x.begin() + width, x.end(), x.begin()); };

  // All else moves up.
  up(now.q, nq);
  up(now.v, nv);
  up(now.u, nu);
  up(feedback.K, std::size_t(nu) * feedback.ld);
  for (int t = 0; t < N; ++t)
    std::swap(now.memory[t], now.memory[t + 1]);

  // The new last state, where the step has one.
  if (outcome.finite) {
    std::copy_n(worker.q_next.begin(), nq, now.q.end() - nq);
    std::copy_n(worker.v_next.begin(), nv, now.v.end() - nv);
  }
  now.memory[N] = worker.dynamics.memory();
  linearized = false;
}

}  // namespace coulomb
