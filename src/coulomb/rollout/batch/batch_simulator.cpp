#include "coulomb/batch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

#include "coulomb/configuration.hpp"
#include "coulomb/rollout/batch/batch_parts.hpp"
#include "coulomb/rollout/checks.hpp"
#include "coulomb/rollout/replay/replay.hpp"
#include "coulomb/rollout/rows.hpp"
#include "coulomb/stepping/outputs/force_outputs.hpp"
#include "coulomb/stepping/outputs/step_outputs.hpp"
#include "coulomb/stepping/simulator_options.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "coulomb/stepping/steppers.hpp"

namespace coulomb {
namespace {

std::string environment_name(int i) { return "environment " + std::to_string(i) + ": "; }

[[noreturn]] void refuse_environment(int i, const std::string& what) {
  throw std::invalid_argument(environment_name(i) + what);
}

/// out: rows x columns in C order, from its transpose.
void store_transposed(const double* transposed, int rows, int columns, double* out) {
  for (int i = 0; i < rows; ++i) {
    double* row = out + std::size_t(i) * columns;
    for (int j = 0; j < columns; ++j)
      row[j] = transposed[std::size_t(j) * rows + i];
  }
}

/// Zeros; null: not wanted.
void fill(double* x, std::size_t count) {
  if (x) {
    std::fill_n(x, count, 0.0);
  }
}

/// The identity, or zero.
void store_identity(double* x, std::size_t rows, std::size_t columns, bool identity) {
  fill(x, rows * columns);
  for (std::size_t k = 0; x && identity && k < rows; ++k)
    x[k * columns + k] = 1;
}

/// Null: zero.
void copy_or_zero(const double* from, std::size_t count, double* to) {
  if (from)
    std::copy_n(from, count, to);
  else
    fill(to, count);
}

/// Poses of the mocap bodies of every environment of the mask; null: not given.
void check_poses(const Model& model, const double* poses, std::size_t n, const unsigned char* mask) {
  for (std::size_t i = 0; poses && i < n; ++i)
    if (!mask || mask[i]) {
      check_mocap_poses(model, poses + i * mocap_size(model), "mocap[" + std::to_string(i) + ", ");
    }
}

}  // namespace

void check_parameter_size(int environment, std::size_t size, std::size_t expected) {
  if (size == expected) return;
  const std::string own = "its parameters are " + std::to_string(size) + " numbers";
  refuse_environment(environment, own + ", those of environment 0 " + std::to_string(expected));
}

BatchSimulator::BatchSimulator(std::shared_ptr<const Model> model, int num_envs, int num_threads,
                               SimulatorOptions options, const BatchParameters& parameters)
    : parts_(std::make_unique<Parts>(num_threads, std::move(options))) {
  if (num_envs < 1) {
    refuse("num_envs", num_envs, "at least 1");
  }
  if (!model) {
    throw std::invalid_argument("model: got a null pointer");
  }

  // One model for all, except where parameters make them differ.
  Parts& p = *parts_;
  p.models.assign(num_envs, with_penalty_options(std::move(model), p.options));
  if (!parameters.empty()) {
    p.models = p.changed_models(parameters, nullptr);
  }
  // A simulator for each; none has stepped.
  p.simulators = p.make_simulators(p.models);
  p.outcome.assign(p.models.size(), Parts::Outcome::none);
  p.starts.resize(p.models.size());

  // Workspaces of derivatives are lent to whoever computes: rollouts, and one per thread for steps.
  p.workspaces = std::make_shared<ReplayWorkspaces>();
  const StepOptions& step = p.simulators.front()->resolved_options();
  for (int t = 0; t < p.pool.num_threads(); ++t)
    p.gradients.push_back(step.stepper->make_gradient(p.model(), step));
}

BatchSimulator::~BatchSimulator() = default;

int BatchSimulator::num_envs() const { return static_cast<int>(parts_->simulators.size()); }
int BatchSimulator::num_threads() const { return parts_->pool.num_threads(); }
const SimulatorOptions& BatchSimulator::options() const { return parts_->options; }
const Models& BatchSimulator::models() const { return parts_->models; }
const Model& BatchSimulator::model() const { return parts_->model(); }
const Simulator& BatchSimulator::environment(int i) const { return *parts_->simulators[i]; }

/// Every environment's model with its row of the values; the old one where the mask leaves it out.
Models BatchSimulator::Parts::changed_models(const BatchParameters& values, const unsigned char* mask) {
  Models out = models;
  const int n = int(models.size());
  for (const auto& [name, value] : values) {
    if (value.size() % n == 0) continue;
    const std::string got = std::to_string(value.size()) + " values";
    throw std::invalid_argument("parameter '" + name + "': got " + got + " for " + std::to_string(n) + " environments");
  }

  pool.run(n, [&](int i, int) {
    if (mask && !mask[i]) return;

    // Its rows, by name.
    ParameterValues own;
    for (const auto& [name, value] : values) {
      const auto size = std::ptrdiff_t(value.size()) / n;
      const double* row = value.data() + i * size;
      own.emplace_back(name, std::vector<double>(row, row + size));
    }

    try {
      out[i] = with_parameters(*models[i], own);
    } catch (const std::invalid_argument& error) {
      refuse_environment(i, error.what());
    }
  });
  return out;
}

/// Simulators of the models, null for null. Environments with the same model also share what is left of it without the pairs that overlap.
BatchSimulator::Parts::Simulators BatchSimulator::Parts::make_simulators(const Models& of) {
  Simulators out(of.size());

  // The first model goes without its overlapping pairs; those that have it need not look for them again.
  const Model* shared = of.front().get();
  std::shared_ptr<const Model> simulated;
  if (shared) {
    simulated = Simulator(of.front(), options).shared_model();
  }
  SimulatorOptions as_it_is = options;
  as_it_is.exclude_neutral_overlaps = false;

  // Each thread makes those of its share, in its own part of the heap.
  pool.run(int(of.size()), [&](int i, int) {
    const auto& model = of[i];
    if (!model) return;
    if (model.get() == shared) {
      out[i] = std::make_unique<Simulator>(simulated, as_it_is);
      return;
    }

    // What its own numbers make impossible, this environment says.
    try {
      out[i] = std::make_unique<Simulator>(model, options);
    } catch (const std::invalid_argument& error) {
      refuse_environment(i, error.what());
    }
  });
  return out;
}

void BatchSimulator::Parts::check_states(const double* q, const double* v, const unsigned char* mask,
                                         const char* q_name, const char* v_name) const {
  const StepSizes s(model());
  const std::size_t n = simulators.size();
  check_finite_batch(q_name, q, n, s.nq, mask);

  // Quaternions must have a length.
  for (std::size_t i = 0; i < n; ++i) {
    if (mask && !mask[i]) continue;
    try {
      check_configuration(model(), q + i * s.nq, "");
    } catch (const std::invalid_argument& error) {
      const std::string row = std::string(q_name) + "[" + std::to_string(i) + "]";
      throw std::invalid_argument(row + error.what());
    }
  }
  check_finite_batch(v_name, v, n, s.nv, mask);
}

/// Some environment must have something to differentiate.
void BatchSimulator::Parts::check_stepped() const {
  const auto num_without = std::count(outcome.begin(), outcome.end(), Outcome::none);
  if (num_without < int(simulators.size())) return;
  throw std::logic_error("derivatives: " + environment_name(0) + "no step was taken yet, nor by any other environment");
}

void BatchSimulator::step(const BatchInput& in, double* q_next, double* v_next) {
  const StepSizes s(model());
  const std::size_t n = parts_->simulators.size();
  parts_->check_states(in.q, in.v, in.mask, "Q", "V");
  check_finite_batch("U", in.u, n, s.nu, in.mask);
  check_finite_batch("tau", in.tau, n, s.nv, in.mask);
  check_finite_batch("fext", in.fext, n, 6, in.mask, s.fext / 6);
  check_poses(model(), in.mocap, n, in.mask);

  parts_->for_each([&](Simulator& sim, int environment, int) {
    const auto i = std::size_t(environment);
    const double* q = in.q + i * s.nq;
    const double* v = in.v + i * s.nv;

    // Left out: it stays where it is.
    if (in.mask && !in.mask[i]) {
      if (q_next != in.q) {
        std::copy_n(q, s.nq, q_next + i * s.nq);
      }
      if (v_next != in.v) {
        std::copy_n(v, s.nv, v_next + i * s.nv);
      }
      parts_->outcome[i] = Parts::Outcome::left_out;
      return;
    }

    // Its rows of the input, its step.
    const double* u = row_of(in.u, i, s.nu);
    const double* tau = row_of(in.tau, i, s.nv);
    const double* fext = row_of(in.fext, i, s.fext);
    if (in.mocap) {
      sim.move_mocap_bodies(in.mocap + i * s.mocap);
    }
    sim.step(q, v, u, tau, fext, q_next + i * s.nq, v_next + i * s.nv);
    parts_->set_outcome(environment, Parts::Outcome::stepped);
  });
}

/// work() for an environment that stepped; nothing if it was left out, or took no step yet or one that overflowed (valid[i] says so).
template <class Work>
auto BatchSimulator::Parts::attempt(std::size_t i, bool* valid, Work&& work) -> decltype(work()) {
  if (valid) valid[i] = true;
  if (outcome[i] == Outcome::left_out) return {};
  if (outcome[i] == Outcome::none) {
    if (valid) valid[i] = false;
    return {};
  }
  try {
    return work();
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const std::logic_error&) {  // has no derivative
    if (valid) valid[i] = false;
    return {};
  }
}

void BatchSimulator::derivatives(const std::vector<std::string>& parameters, const BatchJacobian& out) {
  parts_->check_stepped();
  const StepSizes s(model());
  const std::size_t size = parameter_set(parameters).size();
  const std::size_t rows = 2 * s.nv;

  parts_->for_each([&](Simulator& sim, int environment, int) {
    const auto i = std::size_t(environment);
    double* A = row_of(out.A, i, rows * rows);
    double* B = row_of(out.B, i, rows * s.nu);
    double* B_tau = row_of(out.B_tau, i, rows * s.nv);
    double* A_previous = row_of(out.A_previous, i, rows * rows);
    double* columns = size > 0 ? row_of(out.parameters, i, rows * size) : nullptr;
    fill(A_previous, rows * rows);

    // Left out: its state stays. Without a derivative: zeros.
    const StepDerivatives* d = parts_->attempt(i, out.valid, [&] { return &sim.derivatives(); });
    if (!d) {
      store_identity(A, rows, rows, parts_->outcome[i] == Parts::Outcome::left_out);
      fill(B, rows * s.nu);
      fill(B_tau, rows * s.nv);
      fill(columns, rows * size);
      return;
    }

    // Derivatives are kept by columns, results go by rows.
    const int height = int(rows);
    if (A) {
      store_transposed(d->A_T.data(), height, height, A);
    }
    if (A_previous && !d->A_previous_T.empty()) {
      store_transposed(d->A_previous_T.data(), height, height, A_previous);
    }
    if (B) {
      store_transposed(d->B_T.data(), height, d->nu, B);
    }
    if (B_tau) {
      store_transposed(d->B_tau_T.data(), height, d->nv, B_tau);
    }
    if (!columns) return;

    // Parameters are asked for apart: they cost columns of their own.
    const auto with = sim.derivatives(parameters);
    check_parameter_size(environment, with->parameters->size(), size);
    store_transposed(with->parameters_T.data(), height, int(size), columns);
  });
}

/// Environment i has no derivative: the mask left it out, or there was none to take. Its state stays if it was left out, and its outputs are
/// those of the state that is known, if one is.
void BatchSimulator::Parts::vjp_without_step(std::size_t i, const NextCotangent& from,
                                             const std::vector<std::string>& parameters,
                                             const BatchCotangent& out) const {
  const StepSizes s(model());
  const Simulator& sim = *simulators[i];
  const State& start = starts[i];

  // It passes where the mask left it out, if its outputs can be read.
  const bool left_out = outcome[i] == Outcome::left_out;
  const bool readable = sim.record().valid || !start.q.empty();
  const bool pass = left_out && (!from.outputs || readable);
  if (out.valid && left_out) {
    out.valid[i] = pass;
  }

  // The cotangent of a state that stays is that of its next one.
  const std::size_t size = ParameterSet(model(), parameters).size();
  double* q = out.q + i * s.nv;
  double* v = out.v + i * s.nv;
  const double* dq = pass ? from.dq : nullptr;
  const double* dv = pass ? from.dv : nullptr;
  copy_or_zero(dq, s.nv, q);
  copy_or_zero(dv, s.nv, v);
  clear_row(out.u, i, s.nu);
  clear_row(out.tau, i, s.nv);
  clear_row(out.parameters, i, size);
  if (!pass || !from.outputs) return;

  // Outputs are read at that state.
  const ParameterSet set(sim.model(), parameters);
  StateOutputs at(sim.model());
  if (start.q.empty())
    at.move_to(sim.record().q_next.data(), sim.record().v_next.data());
  else
    at.move_to(start.q.data(), start.v.data());
  at.vjp(*from.outputs, from.doutputs, q, v, &set, out.parameters + i * size);
}

void BatchSimulator::vjp(const double* dq1, const double* dv1, const std::vector<std::string>& parameters,
                         const BatchCotangent& out, const OutputSet* outputs, const double* doutputs) {
  const StepSizes s(model());
  check_finite_batch("dQ1", dq1, parts_->simulators.size(), s.nv, nullptr);
  check_finite_batch("dV1", dv1, parts_->simulators.size(), s.nv, nullptr);
  parts_->check_stepped();
  if (outputs) {
    check_forces_told(*outputs, parts_->simulators.front()->resolved_options());
  }
  const std::size_t size = parameter_set(parameters).size();
  const bool wants_fext = out.fext != nullptr;

  parts_->for_each([&](Simulator& sim, int environment, int) {
    const auto i = std::size_t(environment);
    const double* dq = row_of(dq1, i, s.nv);
    const double* dv = row_of(dv1, i, s.nv);
    const double* own_outputs = outputs ? doutputs + i * outputs->tangent_size() : nullptr;
    const OutputCotangent of_outputs{outputs, own_outputs, nullptr};

    // What a step may not depend on is zero.
    clear_row(out.previous_q, i, s.nv);
    clear_row(out.previous_v, i, s.nv);
    clear_row(out.fext, i, s.fext);

    const auto product = [&] {
      if (outputs) return std::optional(coulomb::vjp(sim, dq, dv, of_outputs, parameters, wants_fext));
      return std::optional(sim.vjp(dq, dv, parameters, wants_fext));
    };
    const std::optional<StepCotangent> cotangent = parts_->attempt(i, out.valid, product);
    if (!cotangent) return parts_->vjp_without_step(i, {dq, dv, outputs, of_outputs.doutputs}, parameters, out);

    // This environment's rows.
    const StepCotangent& g = *cotangent;
    check_parameter_size(environment, g.parameters.size(), size);
    store_row(g.q, i, out.q);
    store_row(g.v, i, out.v);
    store_row(g.u, i, out.u);
    store_row(g.tau, i, out.tau);
    store_row(g.parameters, i, out.parameters);
    store_row(g.fext, i, out.fext);
    store_row(g.previous_q, i, out.previous_q);
    store_row(g.previous_v, i, out.previous_v);
  });
}

void BatchSimulator::jvp(const double* dq, const double* dv, const double* du, const double* dtau, double* dq1,
                         double* dv1, bool* valid) {
  const StepSizes s(model());
  const std::size_t n = parts_->simulators.size();
  check_finite_batch("dQ", dq, n, s.nv, nullptr);
  check_finite_batch("dV", dv, n, s.nv, nullptr);
  check_finite_batch("dU", du, n, s.nu, nullptr);
  check_finite_batch("dtau", dtau, n, s.nv, nullptr);
  parts_->check_stepped();

  parts_->for_each([&](Simulator& sim, int environment, int) {
    const auto i = std::size_t(environment);
    const double* dq_i = row_of(dq, i, s.nv);
    const double* dv_i = row_of(dv, i, s.nv);
    double* dq_next = dq1 + i * s.nv;
    double* dv_next = dv1 + i * s.nv;
    const bool done = parts_->attempt(i, valid, [&] {
      const double* du_i = row_of(du, i, s.nu);
      const double* dtau_i = row_of(dtau, i, s.nv);
      sim.jvp(dq_i, dv_i, du_i, dtau_i, dq_next, dv_next);
      return true;
    });
    if (done) return;

    // Left out: its state stays.
    const bool pass = parts_->outcome[i] == Parts::Outcome::left_out;
    const double* kept_dq = pass ? dq_i : nullptr;
    const double* kept_dv = pass ? dv_i : nullptr;
    copy_or_zero(kept_dq, s.nv, dq_next);
    copy_or_zero(kept_dv, s.nv, dv_next);
  });
}

void BatchSimulator::set_parameters(const BatchParameters& values, const unsigned char* mask) {
  Models models = parts_->changed_models(values, mask);

  // Only those of the mask are made again.
  Models changed = models;
  for (std::size_t i = 0; i < models.size(); ++i) {
    const bool left_out = mask && !mask[i];
    if (left_out) changed[i] = nullptr;
  }

  // All are made before the first one is replaced: a refused value changes nothing.
  Parts::Simulators made = parts_->make_simulators(changed);
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (!made[i]) continue;
    parts_->simulators[i] = std::move(made[i]);
    parts_->set_outcome(int(i), Parts::Outcome::none);
  }
  parts_->models = std::move(models);
}

void BatchSimulator::set_models(const std::vector<std::shared_ptr<const Model>>& models) {
  if (models.size() != parts_->models.size()) {
    const std::string expected = "one for each of the " + std::to_string(num_envs()) + " environments";
    refuse("models", models.size(), expected);
  }
  for (std::size_t i = 0; i < models.size(); ++i) {
    const Model& old = *parts_->models[i];
    const bool fits = models[i] && StepMemory(*models[i]).structure == StepMemory(old).structure;
    if (fits) continue;
    throw std::invalid_argument("models: " + environment_name(int(i)) +
                                "of another structure (bodies, joints, shapes or pairs)");
  }

  // Accepted: the old simulators go.
  parts_->simulators = parts_->make_simulators(models);
  parts_->models = models;
  for (int i = 0; i < num_envs(); ++i)
    parts_->set_outcome(i, Parts::Outcome::none);
}

void BatchSimulator::reset(const unsigned char* mask, const double* q, const double* v) {
  const bool one_missing = (q == nullptr) != (v == nullptr);
  if (one_missing) {
    throw std::invalid_argument(q ? "V: None, expected the velocities that belong to Q"
                                  : "Q: None, expected the configurations that belong to V");
  }
  if (q) {
    parts_->check_states(q, v, mask, "Q", "V");
  }

  const StepSizes s(model());
  for (std::size_t i = 0; i < parts_->simulators.size(); ++i) {
    if (mask && !mask[i]) continue;
    parts_->simulators[i]->reset();
    parts_->set_outcome(int(i), Parts::Outcome::none);
    if (!q) continue;
    const double* own_q = q + i * s.nq;
    const double* own_v = v + i * s.nv;
    parts_->starts[i].q.assign(own_q, own_q + s.nq);
    parts_->starts[i].v.assign(own_v, own_v + s.nv);
  }
}

void BatchSimulator::read_outputs(const OutputSet& outputs, double* readings) const {
  const std::size_t size = outputs.size();
  StateOutputs at(model());
  bool any = false;
  for (std::size_t i = 0; i < parts_->simulators.size(); ++i) {
    const Simulator& sim = *parts_->simulators[i];
    double* own = readings + i * size;

    // The step tells, else the start; of neither nothing is known.
    any = any || sim.record().valid || !parts_->starts[i].q.empty();
    if (sim.record().valid) {
      coulomb::read_outputs(sim, outputs, at, own);
    } else if (!parts_->starts[i].q.empty()) {
      std::fill_n(own, size, 0.0);  // forces
      at.set_model(sim.model());
      at.move_to(parts_->starts[i].q.data(), parts_->starts[i].v.data());
      at.read(outputs, own);
    } else {
      std::fill_n(own, size, std::numeric_limits<double>::quiet_NaN());
    }
  }
  if (!any)
    throw std::logic_error("output: " + environment_name(0) + "no step was taken yet, nor by any other environment");
}

std::vector<double> BatchSimulator::mocap() const {
  std::vector<double> out;
  for (const auto& sim : parts_->simulators) {
    const std::vector<double> poses = mocap_poses(sim->model());
    out.insert(out.end(), poses.begin(), poses.end());
  }
  return out;
}

void BatchSimulator::move_mocap_bodies(const double* poses) {
  check_poses(model(), poses, parts_->simulators.size(), nullptr);
  for (std::size_t i = 0; i < parts_->simulators.size(); ++i)
    parts_->simulators[i]->move_mocap_bodies(poses + i * mocap_size(model()));
}

/// One per environment, as single simulators have it.
std::vector<StepMemory> BatchSimulator::memory() const {
  std::vector<StepMemory> out;
  out.reserve(parts_->simulators.size());
  for (const auto& sim : parts_->simulators)
    out.push_back(sim->memory());
  return out;
}

void BatchSimulator::set_memory(const std::vector<StepMemory>& memory) {
  if (memory.size() != parts_->simulators.size())
    throw std::invalid_argument("memory: of " + std::to_string(memory.size()) + " environments, expected " +
                                std::to_string(parts_->simulators.size()));

  // All are checked before the first one is set.
  for (int i = 0; i < num_envs(); ++i)
    if (memory[i].structure != environment(i).memory().structure)
      throw std::invalid_argument("memory: " + environment_name(i) + "belongs to a model of another structure");
  for (std::size_t i = 0; i < memory.size(); ++i)
    parts_->simulators[i]->set_memory(memory[i]);
}

}  // namespace coulomb
