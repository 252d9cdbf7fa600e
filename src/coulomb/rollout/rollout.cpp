#include "coulomb/rollout/rollout.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "coulomb/model/configuration.hpp"
#include "coulomb/rollout/replay.hpp"

namespace coulomb {
namespace {

constexpr std::size_t default_budget = std::size_t(64) << 20;

std::string finite_or_name(double value) { return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"; }

void check(const Model& model, const RolloutInput& input, const RolloutOptions& options) {
  if (input.steps < 0)
    throw std::invalid_argument("steps: got " + std::to_string(input.steps) + ", expected at least 0");
  if (options.checkpoint_every < 0)
    throw std::invalid_argument("checkpoint_every: got " + std::to_string(options.checkpoint_every) +
                                ", expected at least 1");
  if (options.checkpoint_every > 0 && options.memory_budget > 0)
    throw std::invalid_argument("memory_budget: got " + std::to_string(options.memory_budget) +
                                " beside checkpoint_every " + std::to_string(options.checkpoint_every) +
                                ", expected one of them");
  check_configuration(model, input.q0, "q0");
  for (int d = 0; d < model.nv; ++d)
    if (!std::isfinite(input.v0[d]))
      throw std::invalid_argument("v0[" + std::to_string(d) + "] is " + finite_or_name(input.v0[d]) +
                                  ", expected a finite number");
  check_finite_rows("U", input.u, input.steps, model.nu);
  check_finite_rows("tau", input.tau, input.steps, model.nv);
  check_finite_wrenches(input.fext, input.steps, model.num_bodies);
}

std::size_t trajectory_bytes(const Rollout& r) {
  return sizeof r +
         (r.q.capacity() + r.v.capacity() + r.u.capacity() + r.tau.capacity() + r.fext.capacity()) * sizeof(double) +
         r.status.capacity() * sizeof(StepStatus);
}

std::size_t budget_of(const RolloutOptions& options, std::size_t states) {
  return options.memory_budget ? options.memory_budget : states + default_budget;
}

// Storage of the trajectory, and checkpoints with what the budget leaves.
Rollout start(const Simulator& simulator, const RolloutInput& input, const RolloutOptions& options) {
  const Model& model = simulator.model();
  const auto nq = std::size_t(model.nq), nv = std::size_t(model.nv), nu = std::size_t(model.nu),
             steps = std::size_t(input.steps);
  Rollout out;
  out.steps = input.steps;
  out.model = simulator.shared_model();
  out.workspaces = std::make_shared<ReplayWorkspaces>();
  out.step_options = simulator.resolved_options();
  out.q.resize((steps + 1) * nq);
  out.v.resize((steps + 1) * nv);
  out.status.reserve(steps);
  std::copy_n(input.q0, nq, out.q.begin());
  std::copy_n(input.v0, nv, out.v.begin());
  if (input.u) out.u.assign(input.u, input.u + steps * nu);
  if (input.tau) out.tau.assign(input.tau, input.tau + steps * nv);
  if (input.fext) out.fext.assign(input.fext, input.fext + steps * 6 * std::size_t(model.num_bodies));
  const std::size_t states = trajectory_bytes(out), budget = budget_of(options, states);
  if (budget < states)
    throw std::invalid_argument("memory_budget: got " + std::to_string(budget) + " bytes, the states of " +
                                std::to_string(steps) + " steps alone need " + std::to_string(states));
  out.checkpoints = Checkpoints(options.checkpoint_every, budget - states);
  return out;
}

// Can the whole of it fit? Asked after the first step, by what it needed, and where checkpoints are as far apart as is of use.
void check_budget(const Rollout& r, const RolloutOptions& options, int step) {
  if (options.memory_budget == 0 || (step != 1 && step % r.checkpoints.every() != 0)) return;
  std::size_t needed = r.checkpoints.bytes() + r.checkpoints.sweep_bytes(r.steps);
  if (step == 1) needed = std::max(needed, r.checkpoints.least_bytes(r.steps));
  needed += trajectory_bytes(r);
  if (needed > options.memory_budget)
    throw std::invalid_argument("memory_budget: got " + std::to_string(options.memory_budget) + " bytes, " +
                                std::to_string(r.steps) + " steps with their checkpoints need about " +
                                std::to_string(needed));
}

}  // namespace

void check_finite_wrenches(const double* x, int steps, int bodies) {
  if (!x) return;
  const auto width = std::size_t(6) * bodies;
  for (std::size_t i = 0; i < steps * width; ++i) {
    if (std::isfinite(x[i])) continue;
    throw std::invalid_argument("fext[" + std::to_string(i / width) + ", " + std::to_string(i % width / 6) + ", " +
                                std::to_string(i % 6) + "] is " + finite_or_name(x[i]) + ", expected a finite number");
  }
}

void check_finite_rows(const char* name, const double* x, int rows, int columns) {
  if (!x) return;
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < columns; ++k) {
      const double value = x[std::size_t(i) * columns + k];
      if (!std::isfinite(value))
        throw std::invalid_argument(std::string(name) + "[" + std::to_string(i) + ", " + std::to_string(k) + "] is " +
                                    finite_or_name(value) + ", expected a finite number");
    }
}

std::size_t Rollout::bytes() const {
  return trajectory_bytes(*this) + checkpoints.bytes() + checkpoints.sweep_bytes(steps) + kept.bytes();
}

Rollout rollout(Simulator& simulator, const RolloutInput& input, const RolloutOptions& options,
                const Progress& progress) {
  const Model& model = simulator.model();
  check(model, input, options);
  Rollout out = start(simulator, input, options);
  const auto nq = std::size_t(model.nq), nv = std::size_t(model.nv), nu = std::size_t(model.nu),
             width = std::size_t(6) * model.num_bodies;
  simulator.reset();
  StepKeeper keeper(simulator, options.keep_factors);
  const std::size_t budget = budget_of(options, trajectory_bytes(out));
  for (int step = 0; step < out.steps; ++step) {
    const auto t = std::size_t(step);
    out.checkpoints.store(step, simulator.memory(), step == 0 ? 0 : record_bytes(simulator.record()));
    if (step > 0) check_budget(out, options, step);
    try {
      simulator.step(&out.q[t * nq], &out.v[t * nv], input.u ? input.u + t * nu : nullptr,
                     input.tau ? input.tau + t * nv : nullptr, input.fext ? input.fext + t * width : nullptr,
                     &out.q[(t + 1) * nq], &out.v[(t + 1) * nv]);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("step " + std::to_string(step) + " of the rollout: " + error.what());
    }
    keeper.take(out.kept, [&] { return out.bytes() <= budget; });
    out.status.push_back(simulator.status());
    out.converged = out.converged && out.status.back().converged;
    if (progress) progress(step + 1, out.steps);
  }
  return out;
}

Rollout rollout(Simulator& simulator, const double* q0, const double* v0, const double* u, int steps) {
  return rollout(simulator, RolloutInput{q0, v0, u, nullptr, steps});
}

}  // namespace coulomb
