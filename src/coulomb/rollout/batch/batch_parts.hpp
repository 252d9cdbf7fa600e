// What a BatchSimulator has: its environments, the threads that step them, and loops over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "coulomb/base/thread_pool.hpp"
#include "coulomb/batch.hpp"

namespace coulomb {

class ReplayWorkspaces;  // replay.hpp

struct BatchSimulator::Parts {
  using Simulators = std::vector<std::unique_ptr<Simulator>>;
  /// What an environment did in the last call.
  enum class Outcome : std::uint8_t { none, stepped, left_out };

  Parts(int num_threads, SimulatorOptions asked) : options(std::move(asked)), pool(num_threads) {}

  const Model& model() const { return simulators.front()->model(); }
  /// body(simulator, environment, thread); idle: see ThreadPool.
  template <class Body>
  void for_each(Body&& body, void (*idle)(void*) = nullptr, void* idle_argument = nullptr) {
    pool.run(
        int(simulators.size()),
        [&](int i, int thread) {
          Simulator& simulator = *simulators[i];
          simulator.share_gradient(gradients[thread]);
          body(simulator, i, thread);
        },
        idle, idle_argument);
  }
  void check_states(const double* q, const double* v, const unsigned char* mask, const char* q_name,
                    const char* v_name) const;
  void set_outcome(int i, Outcome done) {
    outcome[i] = done;
    starts[i] = {};
  }

  // batch_simulator.cpp
  /// One environment's part of what a reverse product starts from; null: zero.
  struct NextCotangent {
    const double* dq;  ///< nv
    const double* dv;  ///< nv
    const OutputSet* outputs;
    const double* doutputs;  ///< outputs->tangent_size()
  };
  Models changed_models(const BatchParameters& values, const unsigned char* mask);
  Simulators make_simulators(const Models& of);
  void check_stepped() const;
  void vjp_without_step(std::size_t i, const NextCotangent& from, const std::vector<std::string>& parameters,
                        const BatchCotangent& out) const;
  template <class Work>
  auto attempt(std::size_t i, bool* valid, Work&& work) -> decltype(work());

  SimulatorOptions options;
  ThreadPool pool;
  Models models;  // as given, before pairs that overlap are left out
  Simulators simulators;
  std::vector<std::shared_ptr<StepGradient>> gradients;  // one per thread
  std::vector<Outcome> outcome;                          // of the last call of step
  std::vector<State> starts;                             // what reset was told, until the next step; else empty
  std::shared_ptr<ReplayWorkspaces> workspaces;          // of the derivatives of its rollouts
};

/// Environments may have meshes of their own: throws where their parameters are not as long as those of environment 0.
void check_parameter_size(int environment, std::size_t size, std::size_t expected);

}  // namespace coulomb
