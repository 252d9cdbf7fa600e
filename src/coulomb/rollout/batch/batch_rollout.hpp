// Trajectories of all environments of a batch, and their derivatives: each environment's is a Rollout of its own (rollout.hpp), so it
// has the bits of a single one. Time is the inner loop: one environment runs from start to end on one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "coulomb/rollout/batch/batch_simulator.hpp"
#include "coulomb/rollout/rollout_outputs.hpp"

namespace coulomb {

/// What the caller gives; null: zero.
struct BatchRolloutInput {
  const double* q0 = nullptr;   ///< n x nq
  const double* v0 = nullptr;   ///< n x nv
  const double* u = nullptr;    ///< n x steps x nu
  const double* tau = nullptr;  ///< n x steps x nv
  int steps = 0;
  const double* fext = nullptr;         ///< n x steps x num_bodies x 6
  const unsigned char* mask = nullptr;  ///< n: environments that move; the others' rows are not looked at
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
  StepStatus* worst = nullptr;  ///< n: of a step that overflowed, or the first that did not converge, or the last; or null
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
};

/// The matrices of all steps of all environments, n x those of one (rollout_derivatives.hpp); valid: n; false, and zeros, where numbers
/// overflowed on the way. False if interrupted.
bool linearize(BatchSimulator& batch, const BatchRollout& rollout, const std::vector<std::string>& parameters,
               const StepMatrices& out, bool* valid, const Interrupted& interrupted = {});

/// dq, dv: n x (steps + 1) x nv; valid: as in vjp.
bool jvp(BatchSimulator& batch, const BatchRollout& rollout, const BatchRolloutTangent& tangent, double* dq, double* dv,
         bool* valid, const Interrupted& interrupted = {});

}  // namespace coulomb
