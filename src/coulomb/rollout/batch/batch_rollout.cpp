#include "coulomb/batch.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>

#include "coulomb/rollout/batch/batch_parts.hpp"
#include "coulomb/rollout/checks.hpp"
#include "coulomb/rollout/rollout_parts.hpp"
#include "coulomb/rollout/rows.hpp"
#include "coulomb/stepping/outputs/force_outputs.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {
namespace {

constexpr int steps_between_questions = 64;

struct Stopped {};

/// Carries the caller's question to the loops: thread 0 asks, all stop.
class Stop {
 public:
  explicit Stop(const Interrupted& interrupted) : interrupted_(interrupted) {}

  /// In every step of every loop; throws Stopped.
  void look(int thread) {
    if (thread == 0 && interrupted_ && ++looks_ % steps_between_questions == 0) {
      ask();
    }
    if (stopped_.load(std::memory_order_relaxed)) throw Stopped{};
  }

  void ask() {
    if (!stopped_ && interrupted_()) stopped_ = true;
  }

  /// body(simulator, i, thread) for all environments; false if stopped.
  template <class Body>
  bool run(BatchSimulator& batch, Body&& body) {
    // While the caller's thread waits for the others it goes on asking.
    void (*idle)(void*) = nullptr;
    if (interrupted_) {
      idle = [](void* self) { static_cast<Stop*>(self)->ask(); };
    }

    const auto one = [&](Simulator& sim, int i, int thread) { body(sim, std::size_t(i), thread); };
    try {
      batch.parts().for_each(one, idle, this);
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

/// Sizes of the arrays of a batch.
struct Sizes : StepSizes {
  Sizes(const BatchSimulator& batch, int num_steps) : StepSizes(batch.model()) {
    n = batch.num_envs();
    steps = num_steps;
    states = steps + 1;
  }

  std::size_t n;  // environments
  std::size_t steps;
  std::size_t states;  // of one trajectory: steps + 1
};

/// As check_finite_batch of n planes; nothing is there without steps.
void check_planes(const char* name, const double* x, std::size_t n, std::size_t rows, std::size_t width,
                  const unsigned char* mask = nullptr) {
  if (rows > 0) {
    check_finite_batch(name, x, n, width, mask, rows);
  }
}

bool moves(const BatchRolloutInput& in, std::size_t i) { return !in.mask || in.mask[i]; }

void check(const BatchSimulator& batch, const BatchRolloutInput& in, const BatchRolloutOptions& options) {
  if (in.steps < 0) {
    refuse("steps", in.steps, "at least 0");
  }
  if (options.checkpoint_every < 0) {
    refuse("checkpoint_every", options.checkpoint_every, "at least 1");
  }

  // Refused before any environment moves.
  const Sizes s(batch, in.steps);
  batch.parts().check_states(in.q0, in.v0, in.mask, "Q0", "V0");
  check_planes("U", in.u, s.n, s.steps, s.nu, in.mask);
  check_planes("tau", in.tau, s.n, s.steps, s.nv, in.mask);
  for (std::size_t i = 0; in.mocap && i < s.n; ++i)
    if (moves(in, i)) {
      check_mocap_rows(batch.model(), in.mocap + i * s.steps * s.mocap, in.steps, std::to_string(i) + ", ");
    }
  if (!in.fext) return;

  // Wrenches have an index more than the others.
  for (std::size_t i = 0; i < s.n; ++i) {
    if (!moves(in, i)) continue;
    try {
      check_finite_wrenches(in.fext + i * s.steps * s.fext, in.steps, batch.model().num_bodies);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("environment " + std::to_string(i) + ": " + error.what());
    }
  }
}

/// Throws where a rollout kept nothing for derivatives.
void check_kept(const BatchSimulator& batch, const BatchRollout& rollout) {
  if (rollout.environments.size() != std::size_t(batch.num_envs()))
    throw std::logic_error("derivatives: the rollout was made without them");
}

/// How many numbers the parameters are; environment 0 names them.
std::size_t parameter_size(const BatchRollout& rollout, const std::vector<std::string>& parameters) {
  return std::size_t(ParameterSet(*rollout.environments.front().model, parameters).size());
}

/// False if the derivative does not exist in double precision: numbers overflowed in a step, or the derivative itself grows too large.
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

/// One environment's inputs; null: zero.
struct Inputs {
  const double* u;      // steps x nu
  const double* tau;    // steps x nv
  const double* fext;   // steps x num_bodies x 6
  const double* mocap;  // steps x mocap bodies x 7; null: they stay where they are
};

/// One environment's part of BatchTrajectories.
struct Trajectory {
  double* q;
  double* v;
  bool* converged;
  int* iterations;
  double* residual;
  StepStatus* worst;
};

Trajectory part_of(const BatchTrajectories& all, std::size_t i, const Sizes& s) {
  Trajectory out;
  out.q = all.q + i * s.states * s.nq;
  out.v = all.v + i * s.states * s.nv;
  out.converged = all.converged + i * s.steps;
  out.iterations = all.iterations + i * s.steps;
  out.residual = all.residual + i * s.steps;
  out.worst = all.worst ? all.worst + i : nullptr;
  return out;
}

/// What an environment keeps for derivatives beside its trajectory.
struct Keeping {
  Checkpoints checkpoints;
  KeptSteps steps;
  bool keep_steps = true;
  std::size_t budget = 0;  // bytes for steps
};

/// Runs one environment from the first state of `to` and from what it remembers. keeping: null if no derivatives are wanted. After every
/// step: stop_here().
template <class StopHere>
void run(Simulator& sim, const Sizes& s, const Inputs& in, const Trajectory& to, Keeping* keeping,
         StopHere&& stop_here) {
  bool told = false;
  StepKeeper keeper(sim, keeping && keeping->keep_steps);
  for (std::size_t t = 0; t < s.steps; ++t) {
    stop_here();

    // The memory before the step, the step, and what it leaves for the way back.
    if (keeping) {
      keeping->checkpoints.store(int(t), sim.memory(), 0);
    }
    const double* u = row_of(in.u, t, s.nu);
    const double* tau = row_of(in.tau, t, s.nv);
    const double* fext = row_of(in.fext, t, s.fext);
    double* q = to.q + t * s.nq;
    double* v = to.v + t * s.nv;
    if (in.mocap) {
      sim.move_mocap_bodies(in.mocap + t * s.mocap);
    }
    sim.step(q, v, u, tau, fext, q + s.nq, v + s.nv);
    if (keeping) {
      keeper.take(keeping->steps, [&] { return keeping->steps.bytes() <= keeping->budget; });
    }

    const SolverResult& solution = sim.record().solution;
    to.converged[t] = solution.status == SolveStatus::solved;
    to.iterations[t] = solution.iterations;
    to.residual[t] = solution.residual;

    // Names are looked up where something is to be told. An overflow is the worst of all.
    if (to.worst == nullptr) continue;
    const bool tell = !told && (!to.converged[t] || t + 1 == s.steps);
    if (tell || sim.overflowed()) {
      *to.worst = sim.status();
    }
    told |= tell;
  }
}

/// A trajectory that stays where it begins.
void stand_still(const Sizes& s, const Trajectory& to) {
  for (std::size_t t = 1; t < s.states; ++t) {
    std::copy_n(to.q, s.nq, to.q + t * s.nq);
    std::copy_n(to.v, s.nv, to.v + t * s.nv);
  }
  std::fill_n(to.converged, s.steps, true);
  std::fill_n(to.iterations, s.steps, 0);
  std::fill_n(to.residual, s.steps, 0.0);
  if (!to.worst) return;
  *to.worst = {};
  to.worst->reason = "left out by the mask";
}

/// Null: stays empty.
void copy_rows(const double* from, std::size_t count, std::vector<double>& to) {
  if (from) to.assign(from, from + count);
}

/// What derivatives need. The model is that before the first step.
void keep(const Simulator& sim, const Sizes& s, const Inputs& in, const Trajectory& from, Keeping&& keeping,
          Rollout& out) {
  out.steps = int(s.steps);
  out.q.assign(from.q, from.q + s.states * s.nq);
  out.v.assign(from.v, from.v + s.states * s.nv);
  out.converged = std::all_of(from.converged, from.converged + s.steps, [](bool c) { return c; });

  // The step's definition, its inputs, and what the loop has kept.
  out.parts = std::make_shared<Rollout::Parts>();
  out.parts->step_options = sim.resolved_options();
  copy_rows(in.u, s.steps * s.nu, out.u);
  copy_rows(in.tau, s.steps * s.nv, out.tau);
  copy_rows(in.fext, s.steps * s.fext, out.fext);
  copy_rows(in.mocap, s.steps * s.mocap, out.mocap);
  out.parts->checkpoints = std::move(keeping.checkpoints);
  out.parts->kept = std::move(keeping.steps);
}

/// Environment i's row of the cotangents; zeros where it has no derivative.
void store(const RolloutCotangent& g, std::size_t i, const Sizes& s, const BatchRolloutCotangent& out) {
  store_row(g.q0, i, out.q0);
  store_row(g.v0, i, out.v0);
  store_row(g.parameters, i, out.parameters);

  // Of the inputs nothing is there if it has none.
  const auto store_inputs = [&](const std::vector<double>& from, std::size_t width, double* all) {
    double* to = all + i * s.steps * width;
    std::fill_n(to, s.steps * width, 0.0);
    std::copy(from.begin(), from.end(), to);
  };
  store_inputs(g.u, s.nu, out.u);
  store_inputs(g.tau, s.nv, out.tau);
  if (out.mocap) {
    store_inputs(g.mocap, s.mocap_tangent, out.mocap);
  }
  if (out.fext) {
    store_inputs(g.fext, s.fext, out.fext);
  }
}

/// The cotangent of an environment without derivative.
RolloutCotangent no_cotangent(const Sizes& s, std::size_t size) {
  RolloutCotangent g;
  g.q0.assign(s.nv, 0.0);
  g.v0.assign(s.nv, 0.0);
  g.parameters.assign(size, 0.0);
  return g;
}

/// The mask has left this one out.
bool stood_still(const BatchRollout& rollout, std::size_t i) { return rollout.environments[i].steps < rollout.steps; }

/// The sum of all states' rows, of one environment that stands still: they are one state. Null: zero.
std::vector<double> sum_of_rows(const double* rows, std::size_t states, std::size_t width) {
  std::vector<double> sum(width, 0.0);
  for (std::size_t k = 0; rows && k < states * width; ++k)
    sum[k % width] += rows[k];
  return sum;
}

/// Copies the first of an environment's rows to all others.
void repeat_first_row(std::size_t states, std::size_t width, double* rows) {
  for (std::size_t t = 1; t < states; ++t)
    std::copy_n(rows, width, rows + t * width);
}

/// The reverse product of an environment that stands still.
RolloutCotangent standing_vjp(const Rollout& rollout, const TrajectoryCotangent& from, const Sizes& s,
                              const std::vector<std::string>& parameters) {
  const std::vector<double> dq = sum_of_rows(from.dq, s.states, s.nv);
  const std::vector<double> dv = sum_of_rows(from.dv, s.states, s.nv);
  const auto width = std::size_t(from.outputs->tangent_size());
  const std::vector<double> doutputs = sum_of_rows(from.doutputs, s.states, width);
  return vjp(rollout, TrajectoryCotangent{dq.data(), dv.data(), from.outputs, doutputs.data()}, parameters);
}

/// Of the matrices of all steps of one environment.
struct MatrixSizes {
  std::size_t steps;
  std::size_t rows;  // 2 nv
  std::size_t nu;
  std::size_t nv;
  std::size_t parameters;  // columns
};

/// Environment i's part of every array.
StepMatrices part_of(const StepMatrices& all, std::size_t i, const MatrixSizes& s) {
  const auto part = [&](double* x, std::size_t columns) { return row_of(x, i, s.steps * s.rows * columns); };
  StepMatrices out;
  out.A = part(all.A, s.rows);
  out.B = part(all.B, s.nu);
  out.B_tau = part(all.B_tau, s.nv);
  out.A_previous = part(all.A_previous, s.rows);
  out.parameters = part(all.parameters, s.parameters);
  out.ambiguous = row_of(all.ambiguous, i, s.steps);
  return out;
}

/// Zeros where an environment has no derivative.
void clear(const StepMatrices& matrices, const MatrixSizes& s) {
  const auto clear_one = [&](double* x, std::size_t columns) {
    if (x) {
      std::fill_n(x, s.steps * s.rows * columns, 0.0);
    }
  };
  clear_one(matrices.A, s.rows);
  clear_one(matrices.B, s.nu);
  clear_one(matrices.B_tau, s.nv);
  clear_one(matrices.A_previous, s.rows);
  clear_one(matrices.parameters, s.parameters);
  if (matrices.ambiguous) {
    std::fill_n(matrices.ambiguous, s.steps, false);
  }
}

/// Steps that change nothing.
void set_identity(const StepMatrices& matrices, const MatrixSizes& s) {
  clear(matrices, s);
  if (!matrices.A) return;
  for (std::size_t t = 0; t < s.steps; ++t)
    for (std::size_t d = 0; d < s.rows; ++d)
      matrices.A[(t * s.rows + d) * s.rows + d] = 1;
}

}  // namespace

std::size_t BatchRollout::bytes() const {
  std::size_t bytes = sizeof *this;
  for (const Rollout& r : environments)
    bytes += r.bytes();
  return bytes;
}

bool rollout(BatchSimulator& batch, const BatchRolloutInput& in, const BatchRolloutOptions& options,
             const BatchTrajectories& to, BatchRollout& out, const Interrupted& interrupted) {
  check(batch, in, options);
  const Sizes s(batch, in.steps);
  const Sizes none(batch, 0);
  out.steps = in.steps;
  out.environments.clear();
  out.environments.resize(options.derivatives ? s.n : 0);

  // Every environment gets an equal part of the memory.
  const std::size_t budget = (options.memory_budget ? options.memory_budget : default_batch_budget) / s.n;
  int every = options.checkpoint_every;
  if (every == 0) {
    every = std::max(1, int(std::sqrt(double(in.steps))));
  }
  using Outcome = BatchSimulator::Parts::Outcome;
  const auto outcome = in.steps > 0 ? Outcome::stepped : Outcome::none;

  Stop stop(interrupted);
  const bool finished = stop.run(batch, [&](Simulator& sim, std::size_t i, int thread) {
    // Its rows of all arrays, the first state in them.
    const Trajectory mine = part_of(to, i, s);
    Inputs inputs;
    inputs.u = row_of(in.u, i, s.steps * s.nu);
    inputs.tau = row_of(in.tau, i, s.steps * s.nv);
    inputs.fext = row_of(in.fext, i, s.steps * s.fext);
    inputs.mocap = row_of(in.mocap, i, s.steps * s.mocap);
    std::copy_n(in.q0 + i * s.nq, s.nq, mine.q);
    std::copy_n(in.v0 + i * s.nv, s.nv, mine.v);

    // One that is left out is a trajectory without steps.
    Keeping keeping{Checkpoints(every, 0), {}, options.keep_factors, budget};
    if (!moves(in, i)) {
      stand_still(s, mine);
      batch.parts().set_outcome(int(i), Outcome::left_out);
      if (options.derivatives) {
        out.environments[i].model = sim.shared_model();
        keep(sim, none, {}, mine, std::move(keeping), out.environments[i]);
      }
    } else {
      if (options.carry_memory)
        sim.forget_states();
      else
        sim.reset();
      if (options.derivatives) {
        out.environments[i].model = in.mocap ? sim.unmoved_model() : sim.shared_model();
      }
      run(sim, s, inputs, mine, options.derivatives ? &keeping : nullptr, [&] { stop.look(thread); });
      batch.parts().set_outcome(int(i), outcome);
      if (options.derivatives) {
        keep(sim, s, inputs, mine, std::move(keeping), out.environments[i]);
      }
    }
    if (options.derivatives) {
      out.environments[i].parts->workspaces = batch.parts().workspaces;
    }
  });

  // Half a trajectory is none.
  if (!finished) batch.reset();
  return finished;
}

bool vjp(BatchSimulator& batch, const BatchRollout& rollout, const TrajectoryCotangent& from,
         const std::vector<std::string>& parameters, const BatchRolloutCotangent& out, const Interrupted& interrupted) {
  check_kept(batch, rollout);
  const Sizes s(batch, rollout.steps);
  const std::size_t size = parameter_size(rollout, parameters);
  if (out.mocap) {
    check_no_pose(parameters, mocap_parameters(batch.model()));
  }
  check_planes("dQ", from.dq, s.n, s.states, s.nv);
  check_planes("dV", from.dv, s.n, s.states, s.nv);

  // Without outputs: an empty set.
  static const OutputSet none;
  const OutputSet& outputs = from.outputs ? *from.outputs : none;
  const auto width = std::size_t(outputs.tangent_size());
  check_forces_told(outputs, rollout.environments.front().parts->step_options);

  Stop stop(interrupted);
  return stop.run(batch, [&](Simulator&, std::size_t i, int thread) {
    TrajectoryCotangent mine;
    mine.dq = row_of(from.dq, i, s.states * s.nv);
    mine.dv = row_of(from.dv, i, s.states * s.nv);
    mine.outputs = &outputs;
    mine.doutputs = row_of(from.doutputs, i, s.states * width);
    const auto progress = [&](int, int) { stop.look(thread); };

    const Rollout& r = rollout.environments[i];
    RolloutCotangent g;
    out.valid[i] = attempt([&] {
      g = stood_still(rollout, i) ? standing_vjp(r, mine, s, parameters)
                                  : vjp(r, mine, parameters, progress, {out.fext != nullptr, out.mocap != nullptr});
    });
    if (!out.valid[i]) {
      g = no_cotangent(s, size);
    }
    check_parameter_size(int(i), g.parameters.size(), size);
    store(g, i, s, out);
  });
}

void read_outputs(BatchSimulator& batch, const BatchRollout& rollout, const OutputSet& outputs, double* readings) {
  check_kept(batch, rollout);
  batch.parts().for_each([&](Simulator&, int environment, int) {
    const auto i = std::size_t(environment);
    const std::vector<double> mine = read_outputs(rollout.environments[i], outputs);
    const auto width = std::size_t(outputs.size());
    const auto states = std::size_t(rollout.steps) + 1;
    double* rows = readings + i * states * width;
    std::copy(mine.begin(), mine.end(), rows);
    if (stood_still(rollout, i)) {
      repeat_first_row(states, width, rows);
    }
  });
}

bool jvp(BatchSimulator& batch, const BatchRollout& rollout, const BatchRolloutTangent& tangent, double* dq, double* dv,
         bool* valid, const Interrupted& interrupted) {
  check_kept(batch, rollout);
  const Sizes s(batch, rollout.steps);
  const std::size_t size = parameter_size(rollout, tangent.parameters);
  check_finite_batch("dQ0", tangent.dq0, s.n, s.nv, nullptr);
  check_finite_batch("dV0", tangent.dv0, s.n, s.nv, nullptr);
  check_planes("dU", tangent.du, s.n, s.steps, s.nu);
  check_planes("dtau", tangent.dtau, s.n, s.steps, s.nv);
  check_planes("dmocap", tangent.dmocap, s.n, s.steps, s.mocap_tangent);
  check_finite_batch("dparameters", tangent.dparameters, s.n, size, nullptr);

  Stop stop(interrupted);
  return stop.run(batch, [&](Simulator&, std::size_t i, int thread) {
    RolloutTangent mine;
    mine.dq0 = row_of(tangent.dq0, i, s.nv);
    mine.dv0 = row_of(tangent.dv0, i, s.nv);
    mine.du = row_of(tangent.du, i, s.steps * s.nu);
    mine.dtau = row_of(tangent.dtau, i, s.steps * s.nv);
    mine.dmocap = row_of(tangent.dmocap, i, s.steps * s.mocap_tangent);
    mine.parameters = tangent.parameters;
    const double* dparameters = tangent.dparameters + i * size;
    if (size > 0) {
      mine.dparameters.assign(dparameters, dparameters + size);
    }

    double* dq_i = dq + i * s.states * s.nv;
    double* dv_i = dv + i * s.states * s.nv;
    const auto progress = [&](int, int) { stop.look(thread); };
    const bool still = stood_still(rollout, i);
    if (still) mine.du = mine.dtau = mine.dmocap = nullptr;
    valid[i] = attempt([&] { jvp(rollout.environments[i], mine, dq_i, dv_i, progress); });
    if (still) repeat_first_row(s.states, s.nv, dq_i);
    if (still) repeat_first_row(s.states, s.nv, dv_i);
    if (valid[i]) return;
    clear_row(dq, i, s.states * s.nv);
    clear_row(dv, i, s.states * s.nv);
  });
}

bool linearize(BatchSimulator& batch, const BatchRollout& rollout, const std::vector<std::string>& parameters,
               const StepMatrices& out, bool* valid, const Interrupted& interrupted) {
  check_kept(batch, rollout);
  const Sizes s(batch, rollout.steps);
  const MatrixSizes matrix_sizes{s.steps, 2 * s.nv, s.nu, s.nv, parameter_size(rollout, parameters)};

  Stop stop(interrupted);
  return stop.run(batch, [&](Simulator&, std::size_t i, int thread) {
    const Rollout& r = rollout.environments[i];
    const auto size = std::size_t(ParameterSet(*r.model, parameters).size());
    check_parameter_size(int(i), size, matrix_sizes.parameters);

    const StepMatrices mine = part_of(out, i, matrix_sizes);
    if (stood_still(rollout, i)) {
      valid[i] = true;
      set_identity(mine, matrix_sizes);
      return;
    }
    const auto progress = [&](int, int) { stop.look(thread); };
    valid[i] = attempt([&] { linearize(r, parameters, mine, progress); });
    if (!valid[i]) clear(mine, matrix_sizes);
  });
}

}  // namespace coulomb
