#include "coulomb/rollout.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "coulomb/configuration.hpp"
#include "coulomb/rollout/checks.hpp"
#include "coulomb/rollout/replay/replay.hpp"
#include "coulomb/rollout/rollout_parts.hpp"
#include "coulomb/rollout/rows.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {
namespace {

constexpr std::size_t default_budget = std::size_t(64) << 20;

void check(const Model& model, const RolloutInput& input, const RolloutOptions& options) {
  if (input.steps < 0) {
    refuse("steps", input.steps, "at least 0");
  }
  if (options.checkpoint_every < 0) {
    refuse("checkpoint_every", options.checkpoint_every, "at least 1");
  }
  if (options.checkpoint_every > 0 && options.memory_budget > 0)
    throw std::invalid_argument("memory_budget: got " + std::to_string(options.memory_budget) +
                                " beside checkpoint_every " + std::to_string(options.checkpoint_every) +
                                ", expected one of them");

  // The state, then what drives it.
  check_configuration(model, input.q0, "q0");
  for (int d = 0; d < model.nv; ++d)
    if (!std::isfinite(input.v0[d])) {
      refuse_number("v0", {std::size_t(d)}, input.v0[d]);
    }
  check_finite_rows("U", input.u, input.steps, model.nu);
  check_finite_rows("tau", input.tau, input.steps, model.nv);
  check_finite_wrenches(input.fext, input.steps, model.num_bodies);
  check_mocap_rows(model, input.mocap, input.steps);
}

/// Of states, inputs and statuses: what must fit before anything is kept for derivatives.
std::size_t trajectory_bytes(const Rollout& r) {
  std::size_t numbers = 0;
  for (const auto* x : {&r.q, &r.v, &r.u, &r.tau, &r.fext, &r.mocap})
    numbers += x->capacity();
  return sizeof r + sizeof(Rollout::Parts) + numbers * sizeof(double) + r.status.capacity() * sizeof(StepStatus);
}

/// states: bytes of the trajectory.
std::size_t budget_of(const RolloutOptions& options, std::size_t states) {
  return options.memory_budget ? options.memory_budget : states + default_budget;
}

/// Storage of the trajectory, and checkpoints with what the budget leaves.
Rollout start(const Simulator& simulator, const RolloutInput& input, const RolloutOptions& options) {
  const StepSizes s(simulator.model());
  const auto steps = std::size_t(input.steps);
  Rollout out;
  out.steps = input.steps;
  out.model = input.mocap ? simulator.unmoved_model() : simulator.shared_model();
  out.parts = std::make_shared<Rollout::Parts>();
  out.parts->workspaces = std::make_shared<ReplayWorkspaces>();
  out.parts->step_options = simulator.resolved_options();

  // The states, of which the first is known, and copies of the inputs.
  out.q.resize((steps + 1) * s.nq);
  out.v.resize((steps + 1) * s.nv);
  out.status.reserve(steps);
  std::copy_n(input.q0, s.nq, out.q.begin());
  std::copy_n(input.v0, s.nv, out.v.begin());
  if (input.u) {
    out.u.assign(input.u, input.u + steps * s.nu);
  }
  if (input.tau) {
    out.tau.assign(input.tau, input.tau + steps * s.nv);
  }
  if (input.fext) {
    out.fext.assign(input.fext, input.fext + steps * s.fext);
  }
  if (input.mocap) {
    out.mocap.assign(input.mocap, input.mocap + steps * s.mocap);
  }

  // They come first; what is left is for checkpoints.
  const std::size_t states = trajectory_bytes(out);
  const std::size_t budget = budget_of(options, states);
  if (budget < states)
    throw std::invalid_argument("memory_budget: got " + std::to_string(budget) + " bytes, the states of " +
                                std::to_string(steps) + " steps alone need " + std::to_string(states));
  out.parts->checkpoints = Checkpoints(options.checkpoint_every, budget - states);
  return out;
}

/// Can the whole of it fit? Asked after the first step, by what it needed, and where checkpoints are as far apart as is of use.
void check_budget(const Rollout& r, const RolloutOptions& options, int step) {
  if (options.memory_budget == 0 || (step != 1 && step % r.parts->checkpoints.every() != 0)) return;

  // What there is, and what there will be at the least, by the largest checkpoint so far: after the first step only, since
  // later ones may be smaller.
  const std::size_t states = trajectory_bytes(r);
  const std::size_t held = states + r.parts->checkpoints.bytes() + r.parts->checkpoints.sweep_bytes(r.steps);
  const std::size_t foreseen = std::max(held, states + r.parts->checkpoints.least_bytes(r.steps));
  if ((step == 1 ? foreseen : held) > options.memory_budget)
    throw std::invalid_argument("memory_budget: got " + std::to_string(options.memory_budget) + " bytes, " +
                                std::to_string(r.steps) + " steps with their checkpoints need about " +
                                std::to_string(foreseen));
}

}  // namespace

std::size_t Rollout::bytes() const {
  const std::size_t of_steps =
      parts ? parts->checkpoints.bytes() + parts->checkpoints.sweep_bytes(steps) + parts->kept.bytes() : 0;
  return trajectory_bytes(*this) + of_steps;
}

Rollout rollout(Simulator& simulator, const RolloutInput& input, const RolloutOptions& options,
                const Progress& progress) {
  check(simulator.model(), input, options);
  Rollout out = start(simulator, input, options);
  const StepSizes s(*out.model);

  simulator.reset();
  StepKeeper keeper(simulator, options.keep_factors);
  const std::size_t budget = budget_of(options, trajectory_bytes(out));
  for (int step = 0; step < out.steps; ++step) {
    // The memory before the step, if it is the turn of a checkpoint.
    const auto t = std::size_t(step);
    out.parts->checkpoints.store(step, simulator.memory(), step == 0 ? 0 : record_bytes(simulator.record()));
    if (step > 0) check_budget(out, options, step);

    const double* u = row_of(input.u, t, s.nu);
    const double* tau = row_of(input.tau, t, s.nv);
    const double* fext = row_of(input.fext, t, s.fext);
    double* q = out.q.data() + t * s.nq;
    double* v = out.v.data() + t * s.nv;
    if (input.mocap) {
      simulator.move_mocap_bodies(input.mocap + t * s.mocap);
    }
    try {
      simulator.step(q, v, u, tau, fext, q + s.nq, v + s.nv);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("step " + std::to_string(step) + " of the rollout: " + error.what());
    }

    // What the step leaves for the way back, as long as there is room.
    keeper.take(out.parts->kept, [&] { return out.bytes() <= budget; });
    out.status.push_back(simulator.status());
    out.converged = out.converged && out.status.back().converged;
    if (progress) progress(step + 1, out.steps);
  }
  return out;
}

/// The shortest call.
Rollout rollout(Simulator& simulator, const double* q0, const double* v0, const double* u, int steps) {
  return rollout(simulator, RolloutInput{q0, v0, u, nullptr, steps});
}

}  // namespace coulomb
