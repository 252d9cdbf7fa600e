// BatchSimulator: many environments of one model, stepped on threads. Environment i is a Simulator of its own (memory, record,
// workspace), so it gives the bits of a single one, for any number of threads, and its trouble is its own.
//
// Arrays have one row per environment, in C order. Every call checks all of its input before the first environment is touched and names
// what it refuses: "Q[3, 1] is nan, expected a finite number". One caller at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coulomb/rollout/batch/thread_pool.hpp"
#include "coulomb/stepping/outputs/step_outputs.hpp"
#include "coulomb/stepping/simulator.hpp"

namespace coulomb {

class ReplayWorkspaces;  // replay.hpp

/// Inputs of a batched step; null: zero (mask: every environment).
struct BatchInput {
  const double* q = nullptr;            ///< n x nq
  const double* v = nullptr;            ///< n x nv
  const double* u = nullptr;            ///< n x nu
  const double* tau = nullptr;          ///< n x nv
  const double* fext = nullptr;         ///< n x num_bodies x 6
  const unsigned char* mask = nullptr;  ///< n: environments to step
};

/// Where Jacobians go: written by derivatives(); null: not wanted.
struct BatchJacobian {
  double* A = nullptr;           ///< n x 2nv x 2nv
  double* B = nullptr;           ///< n x 2nv x nu
  double* B_tau = nullptr;       ///< n x 2nv x nv
  double* parameters = nullptr;  ///< n x 2nv x set.size()
  double* A_previous = nullptr;  ///< as A, by the state before; zeros where a step does not depend on it
  bool* valid = nullptr;         ///< n; false, and zeros, where a step's numbers overflowed and it has no derivative
};

/// Where cotangents go: written by vjp().
struct BatchCotangent {
  double* q = nullptr;           ///< n x nv
  double* v = nullptr;           ///< n x nv
  double* u = nullptr;           ///< n x nu
  double* tau = nullptr;         ///< n x nv
  double* parameters = nullptr;  ///< n x set.size()
  double* previous_q =
      nullptr;  ///< n x nv, of the state before, zeros where a step does not depend on it; null: not wanted
  double* previous_v = nullptr;  ///< n x nv, likewise
  bool* valid = nullptr;         ///< n, as BatchJacobian::valid
  double* fext = nullptr;        ///< n x num_bodies x 6; null: not wanted
};

/// Values of parameters that differ between environments: n x size each.
using BatchParameters = ParameterValues;

class BatchSimulator {
 public:
  /// num_threads: the caller's included; 0: all cores that this process may use. Environments share `model` and what `parameters` do not change of it.
  BatchSimulator(std::shared_ptr<const Model> model, int num_envs, int num_threads = 0, SimulatorOptions options = {},
                 const BatchParameters& parameters = {});

  int num_envs() const { return static_cast<int>(simulators_.size()); }
  int num_threads() const { return pool_.num_threads(); }
  /// Those that simulators are made with; timestep 0: each model's own.
  const SimulatorOptions& options() const { return options_; }
  /// One per environment, as given or as changed by parameters: before pairs that overlap are left out.
  const std::vector<std::shared_ptr<const Model>>& models() const { return models_; }
  /// Of environment 0; all have its sizes and names.
  const Model& model() const { return simulators_.front()->model(); }
  const Simulator& environment(int i) const { return *simulators_[i]; }

  /// One step of every environment of the mask; the others' rows are copied, whatever they hold. Where numbers overflow, an
  /// environment stays where it was and its status says so. q_next, v_next may be the inputs.
  void step(const BatchInput& input, double* q_next, double* v_next);

  /// Derivatives of the last call of step: the identity for environments that the mask left out; zeros, and `valid` false, for those that
  /// took no part in a step since they were made or reset. Throws std::logic_error if none did.
  void derivatives(const std::vector<std::string>& parameters, const BatchJacobian& out);
  /// dq1, dv1: n x nv, cotangents of the next states (null: zero). doutputs: n x outputs->tangent_size(), cotangents of outputs. Throws
  /// std::logic_error for forces that the steps do not tell.
  void vjp(const double* dq1, const double* dv1, const std::vector<std::string>& parameters, const BatchCotangent& out,
           const OutputSet* outputs = nullptr, const double* doutputs = nullptr);
  /// Tangents of the inputs (null: zero) to those of the next states, n x nv; valid: null or n, as above.
  void jvp(const double* dq, const double* dv, const double* du, const double* dtau, double* dq1, double* dv1,
           bool* valid = nullptr);

  /// New values for some parameters: environments (of the mask) get new models and forget their last step. All or, if one is refused
  /// (std::invalid_argument names it), none.
  void set_parameters(const BatchParameters& values, const unsigned char* mask = nullptr);
  /// The same with models that are given, one per environment, of the structure of those that there are.
  void set_models(const std::vector<std::shared_ptr<const Model>>& models);
  /// The names as places in one vector of scalars, the same for every environment.
  ParameterSet parameter_set(const std::vector<std::string>& names) const { return ParameterSet(model(), names); }

  /// Environments (of the mask) forget their last step. q, v (n x nq, n x nv, or null; checked as in step): the states they start from, at
  /// which outputs are read until they step.
  void reset(const unsigned char* mask = nullptr, const double* q = nullptr, const double* v = nullptr);
  /// n x outputs.size() readings after the last step of every environment; after a reset at its start, forces zero; nan where no state is
  /// known. Throws std::logic_error if there is none to read.
  void read_outputs(const OutputSet& outputs, double* readings) const;
  std::vector<StepMemory> memory() const;
  void set_memory(const std::vector<StepMemory>& memory);

  // for loops over environments (batch_rollout.cpp)
  /// body(simulator, environment, thread); idle: see ThreadPool.
  template <class Body>
  void for_each(Body&& body, void (*idle)(void*) = nullptr, void* idle_argument = nullptr) {
    pool_.run(
        num_envs(),
        [&](int i, int thread) {
          Simulator& simulator = *simulators_[i];
          simulator.share_gradient(gradients_[thread]);
          body(simulator, i, thread);
        },
        idle, idle_argument);
  }
  void check_states(const double* q, const double* v, const unsigned char* mask, const char* q_name,
                    const char* v_name) const;
  /// What an environment did in the last call.
  enum class Outcome : std::uint8_t { none, stepped, left_out };
  /// For the derivatives of its rollouts.
  const std::shared_ptr<ReplayWorkspaces>& workspaces() const { return workspaces_; }
  void set_outcome(int i, Outcome outcome) {
    outcome_[i] = outcome;
    starts_[i] = {};
  }

 private:
  using Models = std::vector<std::shared_ptr<const Model>>;
  using Simulators = std::vector<std::unique_ptr<Simulator>>;

  /// One environment's part of what a reverse product starts from; null: zero.
  struct NextCotangent {
    const double* dq;  ///< nv
    const double* dv;  ///< nv
    const OutputSet* outputs;
    const double* doutputs;  ///< outputs->tangent_size()
  };

  Models changed_models(const BatchParameters& values, const unsigned char* mask);
  Simulators make_simulators(const Models& models);
  void check_stepped() const;
  void vjp_without_step(std::size_t i, const NextCotangent& from, const std::vector<std::string>& parameters,
                        const BatchCotangent& out) const;
  template <class Work>
  auto attempt(std::size_t i, bool* valid, Work&& work) -> decltype(work());

  SimulatorOptions options_;
  ThreadPool pool_;
  Models models_;  // as given, before pairs that overlap are left out
  Simulators simulators_;
  std::vector<std::shared_ptr<StepGradient>> gradients_;  // one per thread
  std::vector<Outcome> outcome_;                          // of the last call of step
  std::vector<State> starts_;                             // what reset was told, until the next step; else empty
  std::shared_ptr<ReplayWorkspaces> workspaces_;
};

/// Throws std::invalid_argument "name[i, k] is nan, ..." for the first entry of n rows of `width` that is not finite; with depth > 0 of n
/// planes of depth x width. Null, and rows that the mask leaves out, are fine.
void check_finite_batch(const char* name, const double* x, std::size_t n, std::size_t width, const unsigned char* mask,
                        std::size_t depth = 0);
/// Environments may have meshes of their own: throws where their parameters are not as long as those of environment 0.
void check_parameter_size(int environment, std::size_t size, std::size_t expected);

}  // namespace coulomb
