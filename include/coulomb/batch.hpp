// BatchSimulator: many environments of one model, stepped on threads. Environment i is a Simulator of its own (memory, record,
// workspace), so it gives the bits of a single one, for any number of threads, and its trouble is its own.
//
// Arrays have one row per environment, in C order. Every call checks all of its input before the first environment is touched and names
// what it refuses: "Q[3, 1] is nan, expected a finite number". One caller at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coulomb/outputs.hpp"
#include "coulomb/parameters.hpp"
#include "coulomb/rollout.hpp"
#include "coulomb/simulator.hpp"

namespace coulomb {

/// Inputs of a batched step; null: zero (mask: every environment).
struct BatchInput {
  const double* q = nullptr;            ///< n x nq
  const double* v = nullptr;            ///< n x nv
  const double* u = nullptr;            ///< n x nu
  const double* tau = nullptr;          ///< n x nv
  const double* fext = nullptr;         ///< n x num_bodies x 6
  const unsigned char* mask = nullptr;  ///< n: environments to step
  /// n x mocap bodies x 7, as Simulator::move_mocap_bodies before the step; null: they stay where they are
  const double* mocap = nullptr;
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
  ~BatchSimulator();
  BatchSimulator(const BatchSimulator&) = delete;
  BatchSimulator& operator=(const BatchSimulator&) = delete;

  int num_envs() const;
  int num_threads() const;
  /// Options of the simulators; timestep 0: each model's own.
  const SimulatorOptions& options() const;
  /// One per environment, as given or as changed by parameters: before pairs that overlap are left out.
  const std::vector<std::shared_ptr<const Model>>& models() const;
  /// The model of environment 0; all models have its sizes and names.
  const Model& model() const;
  const Simulator& environment(int i) const;

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
  /// As above, with one given model per environment, each with the structure of the present ones.
  void set_models(const std::vector<std::shared_ptr<const Model>>& models);
  /// The names as places in one vector of scalars, the same for every environment.
  ParameterSet parameter_set(const std::vector<std::string>& names) const { return ParameterSet(model(), names); }

  /// Environments (of the mask) forget their last step. q, v (n x nq, n x nv, or null; checked as in step): the states they start from, at
  /// which outputs are read until they step.
  void reset(const unsigned char* mask = nullptr, const double* q = nullptr, const double* v = nullptr);
  /// n x outputs.size() readings after the last step of every environment; after a reset at its start, forces zero; nan where no state is
  /// known. Throws std::logic_error if there is none to read.
  void read_outputs(const OutputSet& outputs, double* readings) const;
  /// n x mocap bodies x 7: where they are, and to put them there (as Simulator::move_mocap_bodies; all or none).
  std::vector<double> mocap() const;
  void move_mocap_bodies(const double* poses);
  std::vector<StepMemory> memory() const;
  void set_memory(const std::vector<StepMemory>& memory);

  struct Parts;
  /// For loops over environments.
  Parts& parts() { return *parts_; }
  const Parts& parts() const { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

// Trajectories of all environments, and their derivatives: each environment's is a Rollout of its own, so it has the bits of a single one.
// Time is the inner loop: one environment runs from start to end on one thread.

/// Inputs of the caller; null: zero.
struct BatchRolloutInput {
  const double* q0 = nullptr;   ///< n x nq
  const double* v0 = nullptr;   ///< n x nv
  const double* u = nullptr;    ///< n x steps x nu
  const double* tau = nullptr;  ///< n x steps x nv
  int steps = 0;
  const double* fext = nullptr;         ///< n x steps x num_bodies x 6
  const unsigned char* mask = nullptr;  ///< n: environments that move; the others' rows are not looked at
  const double* mocap = nullptr;        ///< n x steps x mocap bodies x 7, as RolloutInput
};

inline constexpr std::size_t default_batch_budget = std::size_t(1) << 30;

struct BatchRolloutOptions {
  bool derivatives = true;   ///< keep what they need: the trajectory once more, and checkpoints
  int checkpoint_every = 0;  ///< steps between checkpoints; 0: the square root of steps
  /// Bytes of what is kept of steps so that they need not be run again, for all environments; 0: default_batch_budget.
  std::size_t memory_budget = 0;
  bool keep_factors = true;  ///< false: keep nothing of steps
  /// Start from what every environment remembers (contact features, impulses) instead of from reset. Multistep methods start anew.
  bool carry_memory = false;
};

/// Where trajectories go: written by rollout().
struct BatchTrajectories {
  double* q = nullptr;        ///< n x (steps + 1) x nq
  double* v = nullptr;        ///< n x (steps + 1) x nv
  bool* converged = nullptr;  ///< n x steps, as the next two
  int* iterations = nullptr;
  double* residual = nullptr;
  /// n: of a step that overflowed, or the first that did not converge, or the last; or null.
  StepStatus* worst = nullptr;
};

struct BatchRollout {
  int steps = 0;
  std::vector<Rollout> environments;  ///< empty without derivatives; one that the mask left out has no steps
  std::size_t bytes() const;          ///< of all this
};

/// Asked now and then on the caller's thread; yes ends the loop.
using Interrupted = std::function<bool()>;

/// From reset, or from memory (carry_memory). Environments that the mask leaves out stay where they are, and the derivative of what they do
/// is the identity. Throws std::invalid_argument before any environment moves. False if interrupted: all environments are then reset.
bool rollout(BatchSimulator& batch, const BatchRolloutInput& input, const BatchRolloutOptions& options,
             const BatchTrajectories& to, BatchRollout& out, const Interrupted& interrupted = {});

/// Where cotangents of the inputs go: written by vjp().
struct BatchRolloutCotangent {
  double* q0 = nullptr;          ///< n x nv
  double* v0 = nullptr;          ///< n x nv
  double* u = nullptr;           ///< n x steps x nu
  double* tau = nullptr;         ///< n x steps x nv
  double* parameters = nullptr;  ///< n x size
  bool* valid = nullptr;         ///< n; false, and zeros, where numbers overflowed on the way
  double* fext = nullptr;        ///< n x steps x num_bodies x 6; null: not wanted
  double* mocap = nullptr;       ///< n x steps x mocap bodies x 6; null: not wanted
};

/// from: of all n trajectories, one behind the other. `batch` lends its threads. False if interrupted.
bool vjp(BatchSimulator& batch, const BatchRollout& rollout, const TrajectoryCotangent& from,
         const std::vector<std::string>& parameters, const BatchRolloutCotangent& out,
         const Interrupted& interrupted = {});

/// n x (steps + 1) x outputs.size() readings of a rollout that keeps what derivatives need.
void read_outputs(BatchSimulator& batch, const BatchRollout& rollout, const OutputSet& outputs, double* readings);

/// Tangents of the inputs, shaped as those; null: zero.
struct BatchRolloutTangent {
  const double* dq0 = nullptr;          ///< n x nv
  const double* dv0 = nullptr;          ///< n x nv
  const double* du = nullptr;           ///< n x steps x nu
  const double* dtau = nullptr;         ///< n x steps x nv
  std::vector<std::string> parameters;  ///< names, size numbers together
  const double* dparameters = nullptr;  ///< n x size
  const double* dmocap = nullptr;       ///< n x steps x mocap bodies x 6
};

/// The matrices of all steps of all environments, n x those of one; valid: n; false, and zeros, where numbers
/// overflowed on the way. False if interrupted.
bool linearize(BatchSimulator& batch, const BatchRollout& rollout, const std::vector<std::string>& parameters,
               const StepMatrices& out, bool* valid, const Interrupted& interrupted = {});

/// dq, dv: n x (steps + 1) x nv; valid: as in vjp.
bool jvp(BatchSimulator& batch, const BatchRollout& rollout, const BatchRolloutTangent& tangent, double* dq, double* dv,
         bool* valid, const Interrupted& interrupted = {});

}  // namespace coulomb
