#include "coulomb/rollout/batch_rollout.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>

#include "coulomb/stepping/force_outputs.hpp"

namespace coulomb {
namespace {

constexpr int steps_between_questions = 64;

struct Stopped {};

// Carries the caller's question to the loops: thread 0 asks, all stop.
class Stop {
 public:
  explicit Stop(const Interrupted& interrupted) : interrupted_(interrupted) {}
  void look(int thread) {
    if (thread == 0 && interrupted_ && ++looks_ % steps_between_questions == 0) ask();
    if (stopped_.load(std::memory_order_relaxed)) throw Stopped{};
  }
  void ask() {
    if (!stopped_ && interrupted_()) stopped_ = true;
  }
  /// body(simulator, i, thread) for all environments; false if stopped.
  template <class Body>
  bool run(BatchSimulator& batch, Body&& body) {
    const auto idle =
        interrupted_ ? [](void* self) { static_cast<Stop*>(self)->ask(); } : static_cast<void (*)(void*)>(nullptr);
    try {
      batch.for_each([&](Simulator& sim, int i, int thread) { body(sim, static_cast<std::size_t>(i), thread); }, idle,
                     this);
    } catch (const Stopped&) {
      return false;
    }
    return true;
  }

 private:
  const Interrupted& interrupted_;
  int looks_ = 0;  // thread 0's
  std::atomic<bool> stopped_{false};
};

struct Sizes {
  Sizes(const BatchSimulator& batch, int steps)
      : n(std::size_t(batch.num_envs())), nq(std::size_t(batch.model().nq)), nv(std::size_t(batch.model().nv)),
        nu(std::size_t(batch.model().nu)), wrenches(std::size_t(6) * batch.model().num_bodies),
        steps(std::size_t(steps)), states(std::size_t(steps) + 1) {}
  std::size_t n, nq, nv, nu, wrenches, steps, states;
};

const double* row(const double* x, std::size_t i, std::size_t width) { return x ? x + i * width : nullptr; }

void check_planes(const char* name, const double* x, std::size_t n, std::size_t rows, std::size_t width) {
  if (rows > 0) check_finite_batch(name, x, n, width, nullptr, rows);
}

// One environment's part of the arrays.
struct Trajectory {
  double *q, *v;
  bool* converged;
  int* iterations;
  double* residual;
};

// What an environment keeps for derivatives beside its trajectory.
struct Keeping {
  Checkpoints checkpoints;
  KeptSteps steps;
  bool keep_steps = true;
  std::size_t budget = 0;  // bytes for steps
};

// Runs one environment. keeping: null if no derivatives are wanted.
void run(Simulator& sim, const Sizes& s, const double* u, const double* tau, const double* fext, const Trajectory& to,
         Keeping* keeping, Stop& stop, int thread) {
  sim.reset();
  StepKeeper keeper(sim, keeping && keeping->keep_steps);
  for (std::size_t t = 0; t < s.steps; ++t) {
    stop.look(thread);
    if (keeping) keeping->checkpoints.store(static_cast<int>(t), sim.memory(), 0);
    sim.step(to.q + t * s.nq, to.v + t * s.nv, row(u, t, s.nu), row(tau, t, s.nv), row(fext, t, s.wrenches),
             to.q + (t + 1) * s.nq, to.v + (t + 1) * s.nv);
    if (keeping) keeper.take(keeping->steps, [&] { return keeping->steps.bytes() <= keeping->budget; });
    const SolverResult& solution = sim.record().solution;
    to.converged[t] = solution.status == SolveStatus::solved;
    to.iterations[t] = solution.iterations, to.residual[t] = solution.residual;
  }
}

// What derivatives need.
Rollout kept(const Simulator& sim, const Sizes& s, const double* u, const double* tau, const double* fext,
             const Trajectory& from, Keeping&& keeping) {
  Rollout out;
  out.steps = static_cast<int>(s.steps);
  out.q.assign(from.q, from.q + s.states * s.nq);
  out.v.assign(from.v, from.v + s.states * s.nv);
  out.converged = std::all_of(from.converged, from.converged + s.steps, [](bool c) { return c; });
  out.model = sim.shared_model();
  out.step_options = sim.resolved_options();
  if (u) out.u.assign(u, u + s.steps * s.nu);
  if (tau) out.tau.assign(tau, tau + s.steps * s.nv);
  if (fext) out.fext.assign(fext, fext + s.steps * s.wrenches);
  out.checkpoints = std::move(keeping.checkpoints), out.kept = std::move(keeping.steps);
  return out;
}

void check(const BatchSimulator& batch, const BatchRolloutInput& in, const BatchRolloutOptions& options) {
  if (in.steps < 0) throw std::invalid_argument("steps: got " + std::to_string(in.steps) + ", expected at least 0");
  if (options.checkpoint_every < 0)
    throw std::invalid_argument("checkpoint_every: got " + std::to_string(options.checkpoint_every) +
                                ", expected at least 1");
  const Sizes s(batch, in.steps);
  batch.check_states(in.q0, in.v0, nullptr, "Q0", "V0");
  check_planes("U", in.u, s.n, s.steps, s.nu);
  check_planes("tau", in.tau, s.n, s.steps, s.nv);
  for (std::size_t i = 0; in.fext && i < s.n; ++i) {
    try {
      check_finite_wrenches(in.fext + i * s.steps * s.wrenches, in.steps, batch.model().num_bodies);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("environment " + std::to_string(i) + ": " + error.what());
    }
  }
}

// False if the derivative does not exist in double precision: numbers overflowed in a step, or the derivative itself grows too large.
template <class Work>
bool attempt(Work&& work) {
  try {
    work();
    return true;
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const std::overflow_error&) {
    return false;
  } catch (const std::logic_error&) {
    return false;
  }
}

void check_kept(const BatchSimulator& batch, const BatchRollout& rollout) {
  if (rollout.environments.size() != std::size_t(batch.num_envs()))
    throw std::logic_error("derivatives: the rollout was made without them");
}

}  // namespace

std::size_t BatchRollout::bytes() const {
  std::size_t bytes = sizeof *this;
  for (const Rollout& r : environments) bytes += r.bytes();
  return bytes;
}

bool rollout(BatchSimulator& batch, const BatchRolloutInput& in, const BatchRolloutOptions& options,
             const BatchTrajectories& to, BatchRollout& out, const Interrupted& interrupted) {
  check(batch, in, options);
  const Sizes s(batch, in.steps);
  const int every =
      options.checkpoint_every ? options.checkpoint_every : std::max(1, static_cast<int>(std::sqrt(double(in.steps))));
  const std::size_t budget = (options.memory_budget ? options.memory_budget : default_batch_budget) / s.n;
  out.steps = in.steps;
  out.environments.clear();
  out.environments.resize(options.derivatives ? s.n : 0);
  Stop stop(interrupted);
  const bool finished = stop.run(batch, [&](Simulator& sim, std::size_t i, int thread) {
    const Trajectory mine{to.q + i * s.states * s.nq, to.v + i * s.states * s.nv, to.converged + i * s.steps,
                          to.iterations + i * s.steps, to.residual + i * s.steps};
    const double *u = row(in.u, i, s.steps * s.nu), *tau = row(in.tau, i, s.steps * s.nv),
                 *fext = row(in.fext, i, s.steps * s.wrenches);
    std::copy_n(in.q0 + i * s.nq, s.nq, mine.q);
    std::copy_n(in.v0 + i * s.nv, s.nv, mine.v);
    Keeping keeping{Checkpoints(every, 0), {}, options.keep_factors, budget};
    run(sim, s, u, tau, fext, mine, options.derivatives ? &keeping : nullptr, stop, thread);
    batch.set_outcome(static_cast<int>(i),
                      in.steps > 0 ? BatchSimulator::Outcome::stepped : BatchSimulator::Outcome::none);
    if (!options.derivatives) return;
    out.environments[i] = kept(sim, s, u, tau, fext, mine, std::move(keeping));
    out.environments[i].workspaces = batch.workspaces();
  });
  if (!finished) batch.reset();
  return finished;
}

bool vjp(BatchSimulator& batch, const BatchRollout& rollout, const double* dq, const double* dv,
         const std::vector<std::string>& parameters, const BatchRolloutCotangent& out, const Interrupted& interrupted,
         const OutputSet* outputs, const double* doutputs) {
  check_kept(batch, rollout);
  const Sizes s(batch, rollout.steps);
  const auto size = std::size_t(ParameterSet(*rollout.environments.front().model, parameters).size());
  check_planes("dQ", dq, s.n, s.states, s.nv);
  check_planes("dV", dv, s.n, s.states, s.nv);
  static const OutputSet none;
  const OutputSet& read = outputs ? *outputs : none;
  const auto width = std::size_t(read.tangent_size());
  check_forces_told(read, rollout.environments.front().step_options);
  Stop stop(interrupted);
  return stop.run(batch, [&](Simulator&, std::size_t i, int thread) {
    const Rollout& r = rollout.environments[i];
    double *u = out.u + i * s.steps * s.nu, *tau = out.tau + i * s.steps * s.nv;
    std::fill_n(u, s.steps * s.nu, 0.0), std::fill_n(tau, s.steps * s.nv, 0.0);
    RolloutCotangent g;
    out.valid[i] = attempt([&] {
      g = vjp(
          r, row(dq, i, s.states * s.nv), row(dv, i, s.states * s.nv), read, row(doutputs, i, s.states * width),
          parameters, [&](int, int) { stop.look(thread); }, out.fext != nullptr);
    });
    if (out.fext) {
      g.fext.resize(out.valid[i] ? g.fext.size() : 0);
      double* fext = out.fext + i * s.steps * s.wrenches;
      std::fill_n(fext, s.steps * s.wrenches, 0.0);
      std::copy(g.fext.begin(), g.fext.end(), fext);
    }
    if (!out.valid[i])
      g.q0.assign(s.nv, 0.0), g.v0.assign(s.nv, 0.0), g.parameters.assign(size, 0.0), g.u.clear(), g.tau.clear();
    check_parameter_size(static_cast<int>(i), g.parameters.size(), size);
    std::copy_n(g.q0.data(), s.nv, out.q0 + i * s.nv);
    std::copy_n(g.v0.data(), s.nv, out.v0 + i * s.nv);
    std::copy(g.u.begin(), g.u.end(), u);
    std::copy(g.tau.begin(), g.tau.end(), tau);
    std::copy_n(g.parameters.data(), size, out.parameters + i * size);
  });
}

void read_outputs(BatchSimulator& batch, const BatchRollout& rollout, const OutputSet& outputs, double* readings) {
  check_kept(batch, rollout);
  batch.for_each([&](Simulator&, int environment, int) {
    const auto i = std::size_t(environment);
    const std::vector<double> mine = read_outputs(rollout.environments[i], outputs);
    std::copy(mine.begin(), mine.end(), readings + i * mine.size());
  });
}

bool jvp(BatchSimulator& batch, const BatchRollout& rollout, const BatchRolloutTangent& tangent, double* dq, double* dv,
         bool* valid, const Interrupted& interrupted) {
  check_kept(batch, rollout);
  const Sizes s(batch, rollout.steps);
  const auto size = std::size_t(ParameterSet(*rollout.environments.front().model, tangent.parameters).size());
  check_finite_batch("dQ0", tangent.dq0, s.n, s.nv, nullptr);
  check_finite_batch("dV0", tangent.dv0, s.n, s.nv, nullptr);
  check_planes("dU", tangent.du, s.n, s.steps, s.nu);
  check_planes("dtau", tangent.dtau, s.n, s.steps, s.nv);
  check_finite_batch("dparameters", tangent.dparameters, s.n, size, nullptr);
  Stop stop(interrupted);
  return stop.run(batch, [&](Simulator&, std::size_t i, int thread) {
    const Rollout& r = rollout.environments[i];
    RolloutTangent mine{row(tangent.dq0, i, s.nv),
                        row(tangent.dv0, i, s.nv),
                        row(tangent.du, i, s.steps * s.nu),
                        row(tangent.dtau, i, s.steps * s.nv),
                        tangent.parameters,
                        {}};
    if (size > 0) mine.dparameters.assign(tangent.dparameters + i * size, tangent.dparameters + (i + 1) * size);
    double *dq_i = dq + i * s.states * s.nv, *dv_i = dv + i * s.states * s.nv;
    valid[i] = attempt([&] { jvp(r, mine, dq_i, dv_i, [&](int, int) { stop.look(thread); }); });
    if (!valid[i]) std::fill_n(dq_i, s.states * s.nv, 0.0), std::fill_n(dv_i, s.states * s.nv, 0.0);
  });
}

bool linearize(BatchSimulator& batch, const BatchRollout& rollout, const std::vector<std::string>& parameters,
               const StepMatrices& out, bool* valid, const Interrupted& interrupted) {
  check_kept(batch, rollout);
  const Sizes s(batch, rollout.steps);
  const auto size = std::size_t(ParameterSet(*rollout.environments.front().model, parameters).size());
  const std::size_t rows = 2 * s.nv;

  Stop stop(interrupted);
  return stop.run(batch, [&](Simulator&, std::size_t i, int thread) {
    const Rollout& r = rollout.environments[i];
    check_parameter_size(static_cast<int>(i), std::size_t(ParameterSet(*r.model, parameters).size()), size);

    // This environment's part of every array.
    const auto part = [&](double* all, std::size_t columns) {
      return all ? all + i * s.steps * rows * columns : nullptr;
    };
    const StepMatrices mine{part(out.A, rows),          part(out.B, s.nu),
                            part(out.B_tau, s.nv),      part(out.A_previous, rows),
                            part(out.parameters, size), out.ambiguous ? out.ambiguous + i * s.steps : nullptr};

    valid[i] = attempt([&] { linearize(r, parameters, mine, [&](int, int) { stop.look(thread); }); });
    if (valid[i]) return;
    const auto clear = [&](double* x, std::size_t columns) {
      if (x) std::fill_n(x, s.steps * rows * columns, 0.0);
    };
    clear(mine.A, rows), clear(mine.B, s.nu), clear(mine.B_tau, s.nv);
    clear(mine.A_previous, rows), clear(mine.parameters, size);
    if (mine.ambiguous) std::fill_n(mine.ambiguous, s.steps, false);
  });
}

}  // namespace coulomb
