// Where a solve begins: a rollout, a guess of states, or the last solve, perhaps one knot on.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "coulomb/configuration.hpp"
#include "coulomb/control/solver_parts.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/rollout/checks.hpp"

namespace coulomb {

void TrajectorySolver::Parts::check(const ControlStart& start, const ControlBudget& asked) const {
  const int N = options.horizon;
  if (!start.q0 || !start.v0) checks::fail("q0, v0", "the first state is needed");
  check_configuration(*model, start.q0, "q0");
  checks::finite("v0", start.v0, model->nv);
  check_finite_rows("U", start.u, N, nu);
  if (start.u_before) checks::finite("u_before", start.u_before, nu);
  if (!start.q != !start.v) checks::fail("Q, V", "got one of them, expected both or none");
  if (start.q && start.from_last) checks::fail("Q, V", "not together with the states of the last solve");
  if (start.from_last && !there) checks::fail("from_last", "there is no last solve");
  for (int t = 1; start.q && t <= N; ++t)
    check_configuration(*model, start.q + std::size_t(t) * model->nq, ("Q[" + std::to_string(t) + "]").c_str());
  check_finite_rows("V", start.v, N + 1, model->nv);

  if (asked.iterations < 0) refuse("iterations", asked.iterations, "at least 0");
  if (asked.step_lengths < 1) refuse("step_lengths", asked.step_lengths, "at least 1");
  const std::pair<const char*, double> numbers[] = {{"tolerance", asked.tolerance},
                                                    {"gap_tolerance", asked.gap_tolerance},
                                                    {"regularization", asked.regularization},
                                                    {"max_regularization", asked.max_regularization}};
  for (const auto& [name, value] : numbers)
    if (!(value >= 0) || !std::isfinite(value)) checks::not_negative(name, value);
  if (!(asked.armijo >= 0 && asked.armijo < 1))
    checks::fail("armijo", "got " + checks::text(asked.armijo) + ", expected [0, 1)");
}

/// Fills `now`; finite tells whether it could.
void TrajectorySolver::Parts::begin(const ControlStart& start) {
  fit();
  if (start.from_last && start.shift) shift();
  const int N = options.horizon;
  const int nq = model->nq;
  const int nv = model->nv;
  if (start.u_before)
    std::copy_n(start.u_before, nu, u_before.begin());
  else if (!start.from_last)
    std::fill(u_before.begin(), u_before.end(), 0.0);

  // Controls: those given, or the last.
  if (start.u) std::copy_n(start.u, now.u.size(), now.u.begin());
  for (std::size_t i = 0; i < now.u.size(); ++i)
    now.u[i] = std::clamp(now.u[i], lower[i % nu], upper[i % nu]);

  // States that are guessed.
  now.finite = true;
  linearized = false;
  if (start.q) {
    std::copy_n(start.q, now.q.size(), now.q.begin());
    std::copy_n(start.v, now.v.size(), now.v.begin());
    for (int t = 1; t <= N; ++t)
      normalize_configuration(*model, now.q.data() + std::size_t(t) * nq);
  }
  if (!start.from_last)
    for (StepMemory& memory : now.memory)
      memory = cold;
  const bool roll = start.from_last ? start.roll : !start.q;
  if (!roll) {
    std::copy_n(start.q0, nq, now.q.begin());
    std::copy_n(start.v0, nv, now.v.begin());
    normalize_configuration(*model, now.q.data());
    return;
  }

  // Or states that follow, with the feedback of the last solve if that is where the others come from.
  Trajectory& to = candidates.front();
  std::copy_n(start.q0, nq, to.q.begin());
  std::copy_n(start.v0, nv, to.v.begin());
  normalize_configuration(*model, to.q.data());
  to.memory.front() = now.memory.front();
  const bool follow = start.from_last && !start.u;
  if (follow) std::fill(feedback.k.begin(), feedback.k.end(), 0.0);
  run(1, [&](int, int thread) { roll_out(thread, now, follow, 1.0, std::numeric_limits<double>::infinity(), to); });
  std::swap(now, to);
}

void TrajectorySolver::Parts::shift() {
  const int N = options.horizon;
  const int nq = model->nq;
  const int nv = model->nv;
  std::copy_n(now.u.begin(), nu, u_before.begin());

  // The last control once more, from the last state.
  Worker& worker = *workers.front();
  const Knot last = knot(now, N);
  const double* u = now.u.data() + std::size_t(N - 1) * nu;
  worker.dynamics.start(now.memory[N]);
  const KnotDynamics::Outcome outcome =
      worker.dynamics.step(last.q, last.v, u, worker.q_next.data(), worker.v_next.data());

  // All else moves up.
  const auto up = [](auto& x, std::size_t width) { std::copy(x.begin() + width, x.end(), x.begin()); };
  up(now.q, nq);
  up(now.v, nv);
  up(now.u, nu);
  up(feedback.K, std::size_t(nu) * feedback.ld);
  for (int t = 0; t < N; ++t)
    std::swap(now.memory[t], now.memory[t + 1]);
  if (outcome.finite) {
    std::copy_n(worker.q_next.begin(), nq, now.q.end() - nq);
    std::copy_n(worker.v_next.begin(), nv, now.v.end() - nv);
  }
  now.memory[N] = worker.dynamics.memory();
  linearized = false;
}

}  // namespace coulomb
