#include "coulomb/rollout/batch_simulator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

#include "coulomb/model/configuration.hpp"
#include "coulomb/rollout/replay.hpp"
#include "coulomb/stepping/force_outputs.hpp"

namespace coulomb {
namespace {

bool all_finite(const double* x, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (!std::isfinite(x[i])) return false;
  return true;
}

std::string environment_name(int i) { return "environment " + std::to_string(i) + ": "; }

// out: rows x columns in C order, from its transpose.
void store_transposed(const double* transposed, int rows, int columns, double* out) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) out[std::size_t(i) * columns + j] = transposed[std::size_t(j) * rows + i];
}

void fill(double* x, std::size_t count) {
  if (x) std::fill_n(x, count, 0.0);
}

// The identity, or zero.
void store_identity(double* x, std::size_t rows, std::size_t columns, bool identity) {
  fill(x, rows * columns);
  for (std::size_t k = 0; x && identity && k < rows; ++k) x[k * columns + k] = 1;
}

void copy_or_zero(const double* from, std::size_t count, double* to) {
  if (from) std::copy_n(from, count, to);
  else fill(to, count);
}

}  // namespace

void check_parameter_size(int environment, std::size_t size, std::size_t expected) {
  if (size != expected)
    throw std::invalid_argument(environment_name(environment) + "its parameters are " + std::to_string(size) +
                                " numbers, those of environment 0 " + std::to_string(expected));
}

void check_finite_batch(const char* name, const double* x, std::size_t n, std::size_t width, const unsigned char* mask,
                        std::size_t depth) {
  const std::size_t count = depth ? depth * width : width;
  for (std::size_t i = 0; x && i < n; ++i) {
    const double* row = x + i * count;
    if ((mask && !mask[i]) || all_finite(row, count)) continue;
    const auto k =
        static_cast<std::size_t>(std::find_if(row, row + count, [](double e) { return !std::isfinite(e); }) - row);
    const std::string place = depth ? std::to_string(k / width) + ", " + std::to_string(k % width) : std::to_string(k);
    throw std::invalid_argument(std::string(name) + "[" + std::to_string(i) + ", " + place + "] is " +
                                (std::isnan(row[k]) ? "nan"
                                 : row[k] > 0       ? "inf"
                                                    : "-inf") +
                                ", expected a finite number");
  }
}

BatchSimulator::BatchSimulator(std::shared_ptr<const Model> model, int num_envs, int num_threads,
                               SimulatorOptions options, const BatchParameters& parameters)
    : options_(std::move(options)), pool_(num_threads) {
  if (num_envs < 1) throw std::invalid_argument("num_envs: got " + std::to_string(num_envs) + ", expected at least 1");
  if (!model) throw std::invalid_argument("model: got a null pointer");
  models_.assign(static_cast<std::size_t>(num_envs), with_penalty_options(std::move(model), options_));
  if (!parameters.empty()) models_ = changed_models(parameters, nullptr);
  simulators_ = make_simulators(models_);
  outcome_.assign(models_.size(), Outcome::none);
  starts_.resize(models_.size());
  workspaces_ = std::make_shared<ReplayWorkspaces>();
  for (int t = 0; t < pool_.num_threads(); ++t)
    gradients_.push_back(make_step_gradient(this->model(), simulators_.front()->resolved_options()));
}

// Every environment's model with its row of the values.
BatchSimulator::Models BatchSimulator::changed_models(const BatchParameters& values, const unsigned char* mask) {
  Models out = models_;
  const int n = static_cast<int>(models_.size());
  for (const auto& [name, value] : values)
    if (value.size() % static_cast<std::size_t>(n) != 0)
      throw std::invalid_argument("parameter '" + name + "': got " + std::to_string(value.size()) + " values for " +
                                  std::to_string(n) + " environments");
  pool_.run(n, [&](int i, int) {
    if (mask && !mask[i]) return;
    ParameterValues own;
    for (const auto& [name, value] : values) {
      const auto size = static_cast<std::ptrdiff_t>(value.size()) / n;
      own.emplace_back(name, std::vector<double>(value.begin() + i * size, value.begin() + (i + 1) * size));
    }
    try {
      out[static_cast<std::size_t>(i)] = with_parameters(*models_[static_cast<std::size_t>(i)], own);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(environment_name(i) + error.what());
    }
  });
  return out;
}

// Simulators of the models, null for null. Each thread makes those of its share, in its own part of the heap. Environments with the same
// model also share what is left of it without the pairs that overlap.
BatchSimulator::Simulators BatchSimulator::make_simulators(const Models& models) {
  Simulators out(models.size());
  const Model* shared = models.front().get();
  std::shared_ptr<const Model> simulated;
  SimulatorOptions as_it_is = options_;
  as_it_is.exclude_neutral_overlaps = false;
  if (shared) simulated = Simulator(models.front(), options_).shared_model();
  pool_.run(static_cast<int>(models.size()), [&](int i, int) {
    const auto& model = models[static_cast<std::size_t>(i)];
    if (!model) return;
    const bool known = model.get() == shared;
    out[static_cast<std::size_t>(i)] =
        std::make_unique<Simulator>(known ? simulated : model, known ? as_it_is : options_);
  });
  return out;
}

void BatchSimulator::check_states(const double* q, const double* v, const unsigned char* mask, const char* q_name,
                                  const char* v_name) const {
  const Model& m = model();
  const std::size_t n = simulators_.size();
  check_finite_batch(q_name, q, n, static_cast<std::size_t>(m.nq), mask);
  for (std::size_t i = 0; i < n; ++i) {
    if (mask && !mask[i]) continue;
    try {
      check_configuration(m, q + i * static_cast<std::size_t>(m.nq), "");
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(std::string(q_name) + "[" + std::to_string(i) + "]" + error.what());
    }
  }
  check_finite_batch(v_name, v, n, static_cast<std::size_t>(m.nv), mask);
}

void BatchSimulator::check_stepped() const {
  const bool none = std::all_of(outcome_.begin(), outcome_.end(), [](Outcome o) { return o == Outcome::none; });
  if (none)
    throw std::logic_error("derivatives: " + environment_name(0) +
                           "no step was taken yet, nor by any other environment");
}

void BatchSimulator::step(const BatchInput& in, double* q_next, double* v_next) {
  const Model& m = model();
  const std::size_t n = simulators_.size(), nq = static_cast<std::size_t>(m.nq), nv = static_cast<std::size_t>(m.nv),
                    nu = static_cast<std::size_t>(m.nu), bodies = static_cast<std::size_t>(m.num_bodies);
  check_states(in.q, in.v, in.mask, "Q", "V");
  check_finite_batch("U", in.u, n, nu, in.mask);
  check_finite_batch("tau", in.tau, n, nv, in.mask);
  check_finite_batch("fext", in.fext, n, 6, in.mask, bodies);
  for_each([&](Simulator& sim, int environment, int) {
    const auto i = static_cast<std::size_t>(environment);
    const double *q = in.q + i * nq, *v = in.v + i * nv;
    if (in.mask && !in.mask[i]) {
      if (q_next != in.q) std::copy_n(q, nq, q_next + i * nq);
      if (v_next != in.v) std::copy_n(v, nv, v_next + i * nv);
      outcome_[i] = Outcome::left_out;
      return;
    }
    sim.step(q, v, in.u ? in.u + i * nu : nullptr, in.tau ? in.tau + i * nv : nullptr,
             in.fext ? in.fext + i * 6 * bodies : nullptr, q_next + i * nq, v_next + i * nv);
    set_outcome(environment, Outcome::stepped);
  });
}

// work() for an environment that stepped; nothing if it was left out, or took no step yet or one that overflowed (valid[i] says so).
template <class Work>
auto BatchSimulator::attempt(std::size_t i, bool* valid, Work&& work) -> decltype(work()) {
  if (valid) valid[i] = true;
  if (outcome_[i] == Outcome::left_out) return {};
  if (outcome_[i] == Outcome::none) {
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
  check_stepped();
  const std::size_t size = static_cast<std::size_t>(parameter_set(parameters).size());
  for_each([&](Simulator& sim, int environment, int) {
    const auto i = static_cast<std::size_t>(environment);
    const int rows = 2 * sim.model().nv;
    const std::size_t nv = static_cast<std::size_t>(sim.model().nv), nu = static_cast<std::size_t>(sim.model().nu);
    double* A = out.A ? out.A + i * 4 * nv * nv : nullptr;
    double* B = out.B ? out.B + i * 2 * nv * nu : nullptr;
    double* B_tau = out.B_tau ? out.B_tau + i * 2 * nv * nv : nullptr;
    double* A_previous = out.A_previous ? out.A_previous + i * 4 * nv * nv : nullptr;
    double* columns = out.parameters && size > 0 ? out.parameters + i * 2 * nv * size : nullptr;
    fill(A_previous, 4 * nv * nv);
    const StepDerivatives* derivatives = attempt(i, out.valid, [&] { return &sim.derivatives(); });
    if (!derivatives) {
      store_identity(A, 2 * nv, 2 * nv, outcome_[i] == Outcome::left_out);
      fill(B, 2 * nv * nu), fill(B_tau, 2 * nv * nv), fill(columns, 2 * nv * size);
      return;
    }
    const StepDerivatives& d = *derivatives;
    if (A) store_transposed(d.A_T.data(), rows, rows, A);
    if (A_previous && !d.A_previous_T.empty()) store_transposed(d.A_previous_T.data(), rows, rows, A_previous);
    if (B) store_transposed(d.B_T.data(), rows, d.nu, B);
    if (B_tau) store_transposed(d.B_tau_T.data(), rows, d.nv, B_tau);
    if (!columns) return;
    const auto with = sim.derivatives(parameters);
    check_parameter_size(environment, static_cast<std::size_t>(with->parameters->size()), size);
    store_transposed(with->parameters_T.data(), rows, static_cast<int>(size), columns);
  });
}

void BatchSimulator::vjp(const double* dq1, const double* dv1, const std::vector<std::string>& parameters,
                         const BatchCotangent& out, const OutputSet* outputs, const double* doutputs) {
  const std::size_t n = simulators_.size(), nv = static_cast<std::size_t>(model().nv),
                    nu = static_cast<std::size_t>(model().nu);
  check_finite_batch("dQ1", dq1, n, nv, nullptr);
  check_finite_batch("dV1", dv1, n, nv, nullptr);
  check_stepped();
  if (outputs) check_forces_told(*outputs, simulators_.front()->resolved_options());
  const std::size_t size = static_cast<std::size_t>(parameter_set(parameters).size());
  for_each([&](Simulator& sim, int environment, int) {
    const auto i = static_cast<std::size_t>(environment);
    const double *dq = dq1 ? dq1 + i * nv : nullptr, *dv = dv1 ? dv1 + i * nv : nullptr;
    const OutputCotangent of_outputs{outputs, outputs ? doutputs + i * outputs->tangent_size() : nullptr, nullptr};
    for (double* x : {out.previous_q, out.previous_v})
      if (x) fill(x + i * nv, nv);
    const std::size_t wrenches = static_cast<std::size_t>(6) * static_cast<std::size_t>(sim.model().num_bodies);
    if (out.fext) fill(out.fext + i * wrenches, wrenches);
    const std::optional<StepCotangent> cotangent = attempt(i, out.valid, [&] {
      return std::optional(outputs ? coulomb::vjp(sim, dq, dv, of_outputs, parameters, out.fext != nullptr)
                                   : sim.vjp(dq, dv, parameters, out.fext != nullptr));
    });
    if (!cotangent) {
      // Left out: its state stays, and its outputs are those of the state that is known, if one is.
      const bool left_out = outcome_[i] == Outcome::left_out, readable = sim.record().valid || !starts_[i].q.empty();
      const bool pass = left_out && (!outputs || readable);
      if (out.valid && left_out) out.valid[i] = pass;
      copy_or_zero(pass ? dq : nullptr, nv, out.q + i * nv);
      copy_or_zero(pass ? dv : nullptr, nv, out.v + i * nv);
      fill(out.u + i * nu, nu), fill(out.tau + i * nv, nv), fill(out.parameters + i * size, size);
      if (!pass || !outputs) return;
      const ParameterSet set(sim.model(), parameters);
      StateOutputs at(sim.model());
      const State& start = starts_[i];
      if (start.q.empty()) at.move_to(sim.record().q_next.data(), sim.record().v_next.data());
      else at.move_to(start.q.data(), start.v.data());
      at.vjp(*outputs, of_outputs.doutputs, out.q + i * nv, out.v + i * nv, &set, out.parameters + i * size);
      return;
    }
    const StepCotangent& g = *cotangent;
    check_parameter_size(environment, g.parameters.size(), size);
    std::copy_n(g.q.data(), nv, out.q + i * nv);
    std::copy_n(g.v.data(), nv, out.v + i * nv);
    std::copy_n(g.u.data(), nu, out.u + i * nu);
    std::copy_n(g.tau.data(), nv, out.tau + i * nv);
    std::copy_n(g.parameters.data(), size, out.parameters + i * size);
    if (out.fext) std::copy_n(g.fext.data(), wrenches, out.fext + i * wrenches);
    if (out.previous_q) std::copy(g.previous_q.begin(), g.previous_q.end(), out.previous_q + i * nv);
    if (out.previous_v) std::copy(g.previous_v.begin(), g.previous_v.end(), out.previous_v + i * nv);
  });
}

void BatchSimulator::jvp(const double* dq, const double* dv, const double* du, const double* dtau, double* dq1,
                         double* dv1, bool* valid) {
  const std::size_t n = simulators_.size(), nv = static_cast<std::size_t>(model().nv),
                    nu = static_cast<std::size_t>(model().nu);
  check_finite_batch("dQ", dq, n, nv, nullptr);
  check_finite_batch("dV", dv, n, nv, nullptr);
  check_finite_batch("dU", du, n, nu, nullptr);
  check_finite_batch("dtau", dtau, n, nv, nullptr);
  check_stepped();
  for_each([&](Simulator& sim, int environment, int) {
    const auto i = static_cast<std::size_t>(environment);
    const auto row = [&](const double* x, std::size_t width) { return x ? x + i * width : nullptr; };
    double *dq_next = dq1 + i * nv, *dv_next = dv1 + i * nv;
    if (attempt(i, valid,
                [&] { return sim.jvp(row(dq, nv), row(dv, nv), row(du, nu), row(dtau, nv), dq_next, dv_next), true; }))
      return;
    const bool pass = outcome_[i] == Outcome::left_out;
    copy_or_zero(pass ? row(dq, nv) : nullptr, nv, dq_next);
    copy_or_zero(pass ? row(dv, nv) : nullptr, nv, dv_next);
  });
}

void BatchSimulator::set_parameters(const BatchParameters& values, const unsigned char* mask) {
  Models models = changed_models(values, mask), changed = models;
  for (std::size_t i = 0; i < models.size(); ++i)
    if (mask && !mask[i]) changed[i] = nullptr;
  Simulators made = make_simulators(changed);
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (!made[i]) continue;
    simulators_[i] = std::move(made[i]);
    set_outcome(static_cast<int>(i), Outcome::none);
  }
  models_ = std::move(models);
}

void BatchSimulator::set_models(const std::vector<std::shared_ptr<const Model>>& models) {
  if (models.size() != models_.size())
    throw std::invalid_argument("models: got " + std::to_string(models.size()) + ", expected one for each of the " +
                                std::to_string(models_.size()) + " environments");
  for (std::size_t i = 0; i < models.size(); ++i)
    if (!models[i] || StepMemory(*models[i]).structure != StepMemory(*models_[i]).structure)
      throw std::invalid_argument("models: " + environment_name(static_cast<int>(i)) +
                                  "of another structure (bodies, joints, shapes or pairs)");

  simulators_ = make_simulators(models);
  models_ = models;
  for (int i = 0; i < num_envs(); ++i) set_outcome(i, Outcome::none);
}

void BatchSimulator::reset(const unsigned char* mask, const double* q, const double* v) {
  const auto nq = static_cast<std::size_t>(model().nq), nv = static_cast<std::size_t>(model().nv);
  if ((q == nullptr) != (v == nullptr))
    throw std::invalid_argument(q ? "V: None, expected the velocities that belong to Q"
                                  : "Q: None, expected the configurations that belong to V");
  if (q) check_states(q, v, mask, "Q", "V");
  for (std::size_t i = 0; i < simulators_.size(); ++i) {
    if (mask && !mask[i]) continue;
    simulators_[i]->reset();
    set_outcome(static_cast<int>(i), Outcome::none);
    if (q) starts_[i] = {{q + i * nq, q + (i + 1) * nq}, {v + i * nv, v + (i + 1) * nv}};
  }
}

void BatchSimulator::read_outputs(const OutputSet& outputs, double* readings) const {
  const auto size = static_cast<std::size_t>(outputs.size());
  StateOutputs at(model());
  bool any = false;
  for (std::size_t i = 0; i < simulators_.size(); ++i) {
    const Simulator& sim = *simulators_[i];
    double* own = readings + i * size;

    // The step tells, else the start; of neither nothing is known.
    any = any || sim.record().valid || !starts_[i].q.empty();
    if (sim.record().valid) {
      coulomb::read_outputs(sim, outputs, at, own);
    } else if (!starts_[i].q.empty()) {
      std::fill_n(own, size, 0.0);  // forces
      at.set_model(sim.model());
      at.move_to(starts_[i].q.data(), starts_[i].v.data());
      at.read(outputs, own);
    } else {
      std::fill_n(own, size, std::numeric_limits<double>::quiet_NaN());
    }
  }
  if (!any)
    throw std::logic_error("output: " + environment_name(0) + "no step was taken yet, nor by any other environment");
}

std::vector<StepMemory> BatchSimulator::memory() const {
  std::vector<StepMemory> out;
  out.reserve(simulators_.size());
  for (const auto& sim : simulators_) out.push_back(sim->memory());
  return out;
}

void BatchSimulator::set_memory(const std::vector<StepMemory>& memory) {
  if (memory.size() != simulators_.size())
    throw std::invalid_argument("memory: of " + std::to_string(memory.size()) + " environments, expected " +
                                std::to_string(simulators_.size()));
  for (int i = 0; i < num_envs(); ++i)
    if (memory[static_cast<std::size_t>(i)].structure != environment(i).memory().structure)
      throw std::invalid_argument("memory: " + environment_name(i) + "belongs to a model of another structure");
  for (std::size_t i = 0; i < memory.size(); ++i) simulators_[i]->set_memory(memory[i]);
}

}  // namespace coulomb
